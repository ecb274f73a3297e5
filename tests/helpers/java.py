"""How Spark is started by tests: many Javas, which live for seconds or minutes, and their workers.

`python -m tests.helpers.java` makes what both need once, as `make test` does: an archive of Spark's
classes, and a home of Spark from which workers load PySpark faster. A JVM that maps the archive
starts and runs its first stream with 7 seconds of processor time instead of 12. An archive of
another Java or another Spark is ignored by Java.

Spark names an archive of Python's sources, `pyspark.zip`, as the first place where its workers look
for modules, and Python compiles them anew in every process that it starts: two for each stateful
stream, a second of processor time each. In our home there is no such file, so workers load PySpark
compiled, from where it is installed.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HOME = Path(sys.prefix) / "spark"
ARCHIVE = Path(sys.prefix) / "spark.jsa"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""In a short life the better compiler costs more than it saves, and so does a better collector."""


def options() -> str:
    """What Java is told."""
    return f"{BRIEF} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else BRIEF


def environment() -> dict[str, str]:
    """Where Spark is, and what its Java is told; the archive is for Spark in this home."""
    home = {"SPARK_HOME": str(HOME)} if ARCHIVE.exists() and HOME.exists() else {}
    return {"SPARK_SUBMIT_OPTS": options(), **home}


def make_home() -> None:
    """Links to all of Spark that is not Python."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    HOME.mkdir(exist_ok=True)
    for name in ("bin", "jars", "sbin"):
        link = HOME / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(found.origin).parent / name)


def make_archive() -> int:
    """Write down the classes that a stream needs, and give the exit code of its program."""
    # Why a class is left out, which Java says of thousands, is of no use here.
    java = f"{BRIEF} -XX:ArchiveClassesAtExit={ARCHIVE} -Xlog:disable"
    program = [sys.executable, "-m", "windowlib", "demo", "--spark"]
    env = {**os.environ, "SPARK_SUBMIT_OPTS": java, "SPARK_HOME": str(HOME)}
    # Its output ends when Java does, which writes the archive after the program is over.
    return subprocess.run(program, env=env, stdout=subprocess.PIPE).returncode


if __name__ == "__main__":
    make_home()
    sys.exit(make_archive())
