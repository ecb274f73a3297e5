"""A Spark session in this process, ready for windows."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.errors import HostError
from windowlib.spark.plan.validation import PROVIDER, ROCKSDB
from windowlib.spark.versions import file_manager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = 17
"""The oldest Java that Spark runs on."""
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = str((1 << 31) - 1)
"""With any other limit, Spark adds up the bytes of an Arrow batch anew for every row that it sends
to Python, which takes longer than sending it. The rows of a batch are limited anyway."""
EMPTY_CHECKPOINT = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"
"""Whether Spark refuses a checkpoint without a micro-batch that holds any file. A query that is
killed while it begins its first one leaves such a file, and could never be started again."""
LOCAL_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Whether Java and its Python workers talk through a file of the system (Spark 4.1 or newer, others
do not know the setting). Over TCP, a short answer of a worker waits 40 ms: its last bytes are held
back until Java has confirmed those before, and Java puts that off."""
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""What writes the files of checkpoints. The one that Spark takes by itself suits HDFS. On a local
disk it starts ten processes for a file, `chmod` and `readlink`, where Hadoop has no native code."""


def session(
    master: str = "local[*]", *, local_checkpoints: bool = False, **conf: Any
) -> SparkSession:  # fmt: skip
    """A Spark session with all that windows need; the running one, if there is one.

    A running session gets what windows need, and `conf`; its time zone and its shuffle partitions
    stay as they are.

    Args:
        master: where Spark runs; in this process unless given.
        local_checkpoints: whether all checkpoints are on local disks. Spark then writes them in a
            third of the time. Not for HDFS or object stores: there it would not replace a file that
            a query has left when it was killed, and its state could not be read any more.
        conf: settings, with `__` for the dots in their names: `spark__driver__memory="4g"`.
    """
    from pyspark.sql import SparkSession

    for name in conf:
        if "__" not in name:
            msg = (
                f"session({name}=...): not a setting of Spark, whose names have dots. Write `__` "
                f"for each, as spark__driver__memory."
            )
            raise HostError(msg)
    check_java()
    # The workers must be the Python that has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        BATCH_BYTES: UNLIMITED,
        EMPTY_CHECKPOINT: "false",
        LOCAL_SOCKETS: str(os.name == "posix").lower(),
    }
    if not _running():
        settings |= {
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
        }
    if local_checkpoints:
        settings[FILE_MANAGER] = file_manager()
    settings |= {name.replace("__", "."): str(value) for name, value in conf.items()}
    builder: Any = SparkSession.builder.master(master).appName("windowlib")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with compiled_pyspark(master):
        spark: SparkSession = builder.getOrCreate()
    return spark


@contextmanager
def compiled_pyspark(master: str) -> Iterator[None]:
    """A context in which Java starts with workers that load the installed, compiled PySpark.

    Spark puts an archive of PySpark's sources, `python/lib/pyspark.zip` in its home, first on the
    path of its workers. Python cannot keep what it compiles of an archive, so each worker compiles
    PySpark anew, and a stateful stream starts two. In the home that Java gets here there is no such
    archive. That is right only where workers are on this machine, and are the Python of here.

    Args:
        master: where Spark runs.
    """
    installed = _pyspark_folder()
    same_python = os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable
    if installed is None or not same_python or not master.startswith("local"):
        yield
        return
    os.environ["SPARK_HOME"] = _spark_home(installed)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _pyspark_folder() -> Path | None:
    """The folder where pip has installed PySpark; None if Spark is somewhere else."""
    found = find_spec("pyspark")
    if "SPARK_HOME" in os.environ or os.name != "posix" or found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    return folder if folder.parent == Path(sysconfig.get_path("purelib")) else None


@cache
def _spark_home(installed: Path) -> str:
    """A home of Spark without Python, for as long as this process lives."""
    home = tempfile.mkdtemp(prefix="windowlib-spark-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for part in installed.iterdir():
        if part.is_dir() and part.name != "python":
            Path(home, part.name).symlink_to(part)
    return home


def _running() -> bool:
    """Whether there is a session, whose settings the user may have chosen."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        SparkSession.active()
    except PySparkException:
        return False
    return True


def check_java() -> None:
    """Refuse to start without a Java that Spark can run on."""
    java = _java()
    if java is None:
        msg = (
            f"Spark needs Java {JAVA} or newer, and there is none: neither JAVA_HOME nor the PATH "
            f"leads to one. Install it, as with: apt install openjdk-{JAVA}-jre-headless"
        )
        raise HostError(msg)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = java_version(told.stderr + told.stdout)
    if version is not None and version < JAVA:
        msg = (
            f"Spark needs Java {JAVA} or newer, and {java} is Java {version}. Install it, or let "
            f"JAVA_HOME name a newer one."
        )
        raise HostError(msg)


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def java_version(text: str) -> int | None:
    """The number of a Java release, from what it says of itself.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_292"')
    (17, 8)
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)
