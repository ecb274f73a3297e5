"""Deployment of the package on the executors of a cluster and the server of Spark Connect."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

from windowlib.errors import HostError

ARCHIVE = "windowlib.zip"
_sessions_with_package: WeakSet[Any] = WeakSet()
_checked_servers: WeakSet[Any] = WeakSet()


def ship(spark: Any) -> None:
    """Send the package to the executors, once a session, unless they are threads of this driver."""
    if spark not in _sessions_with_package and not is_local(spark):
        spark.addArtifacts(str(archive()), pyfile=True)
        _sessions_with_package.add(spark)


def is_connect(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: Any) -> bool:
    """Whether executors are threads of the driver, whose Python imports what this one does."""
    if is_connect(spark):
        return False  # `local` there is the machine of the server, whose Python is its own
    master = str(spark.conf.get("spark.master", ""))
    return master == "local" or master.startswith("local[")


def check_server(spark: Any) -> None:
    """Refuse a stream on a server that lacks the package: files of a session reach no stream."""
    if not is_connect(spark) or spark in _checked_servers:
        return

    name = ARCHIVE

    def check_workers(
        batches: Iterable[Any],
    ) -> Iterator[Any]:  # inside, so that it travels as code
        import sys

        import pyarrow

        own = [place for place in sys.path if not place.endswith(name)]  # without what we sent
        for _ in batches:
            found = any(finder.find_spec("windowlib", own) for finder in sys.meta_path)
            yield pyarrow.record_batch({"found": [found]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(check_workers, "found boolean").collect()
    if not row.found:
        msg = (
            "a stream on Spark Connect needs windowlib on the server, because files that a client "
            "sends do not reach streams. Run there, with the Python of its workers: "
            "pip install spl-windows"
        )
        raise HostError(msg)
    _checked_servers.add(spark)


def archive(to: Path | None = None) -> Path:
    """The package as a zip file that Python can import from, for `spark-submit --py-files`.

    Args:
        to: where it is written; to a directory of its own unless given.
    """
    root = Path(__file__).resolve().parents[2]
    if root.is_file():  # it was imported from such an archive
        return root if to is None else Path(shutil.copy(root, to))
    to = to or Path(tempfile.mkdtemp(prefix="windowlib-")) / ARCHIVE
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for folder, _, names in os.walk(root / "windowlib", followlinks=True):  # operators is one
            for path in sorted(Path(folder, name) for name in names if name.endswith(".py")):
                out.write(path, path.relative_to(root))
    return to


if __name__ == "__main__":
    print(archive(Path(sys.argv[1] if len(sys.argv) > 1 else ARCHIVE)))
