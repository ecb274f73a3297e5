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
    try:
        return str(spark.conf.get("spark.master", "")).startswith("local[") or (
            spark.conf.get("spark.master", "") == "local"
        )
    except Exception:  # a remote session may not tell
        return False


def archive() -> Path:
    """The package as a zip file that Python can import from."""
    root = Path(__file__).resolve().parents[2]
    to = Path(tempfile.mkdtemp(prefix="windowlib-")) / "windowlib.zip"
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                out.write(path, path.relative_to(root))
    return to
