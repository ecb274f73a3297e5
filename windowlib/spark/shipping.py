"""The package itself for the executors of a cluster."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

PACKAGES = ("windowlib", "operators")
_shipped: set[int] = set()


def ship(spark: Any) -> None:
    """Send the package to the executors, once a session, unless they run in this process's own."""
    if id(spark) in _shipped or is_local(spark):
        return
    spark.addArtifacts(str(archive()), pyfile=True)
    _shipped.add(id(spark))


def is_local(spark: Any) -> bool:
    """Whether executors are threads of the driver, whose Python imports what this one does."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False  # `local` there is the machine of the server, whose Python is its own
    master = str(spark.conf.get("spark.master", ""))
    return master == "local" or master.startswith("local[")


def archive() -> Path:
    """The package as a zip file that Python can import from."""
    root = Path(__file__).resolve().parents[2]
    to = Path(tempfile.mkdtemp(prefix="windowlib-")) / "windowlib.zip"
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                out.write(path, path.relative_to(root))
    return to
