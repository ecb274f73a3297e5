"""How the JVMs of tests are started: many of them, which live for seconds or minutes.

`python -m tests.helpers.java` makes an archive of Spark's classes, as `make test` does once. A JVM
that maps it starts and runs its first stream with 7 seconds of processor time instead of 12. An
archive of another Java or another Spark is ignored by Java.
"""

import os
import subprocess
import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""In a short life the better compiler costs more than it saves, and so does a better collector."""


def options() -> str:
    """What Java is told."""
    return f"{BRIEF} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else BRIEF


def make_archive() -> int:
    """Write down the classes that a stream needs, and give the exit code of its program."""
    # Why a class is left out, which Java says of thousands, is of no use here.
    java = f"{BRIEF} -XX:ArchiveClassesAtExit={ARCHIVE} -Xlog:disable"
    program = [sys.executable, "-m", "windowlib", "demo", "--spark"]
    env = {**os.environ, "SPARK_SUBMIT_OPTS": java}
    # Its output ends when Java does, which writes the archive after the program is over.
    return subprocess.run(program, env=env, stdout=subprocess.PIPE).returncode


if __name__ == "__main__":
    sys.exit(make_archive())
