"""The suite over the versions of what we depend on: `make test-versions`.

Each row of the table is an environment of its own, made with pip in `.versions/`, and a part of the
suite that runs in it. An environment is kept until its requirements change.

    python -m tests.versions                 all of it, which takes an hour
    python -m tests.versions --short         one older Spark, a few tests of each kind
    python -m tests.versions spark-4.0 low   the rows with these names

Two rows run at a time; `--jobs` says how many. `--quick` leaves out the tests that `make test`
leaves out; the rows of the core are always without them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".versions"
TOOLS = ("pytest>=8", "pytest-rerunfailures>=15", "hypothesis>=6.100", "freezegun>=1.5")
NEWEST = "4.3"
PROTOBUF = "protobuf>=6.33.5"
FRAMES = ("pandas", "polars", "duckdb")
QUICK = ("-m", "not long")
CORE = tuple(
    f"tests/{name}"
    for name in (
        *("spec", "window", "summaries", "event_time", "runtime", "operators", "columnar"),
        *("farms", "control", "formats"),
    )
)
SHORT = tuple(f"tests/spark/test_{name}.py" for name in ("bucket", "versions", "preference", "kit"))
"""Buckets without Spark, a stream and what versions differ in, and static DataFrames."""
JAVAS = ("/usr/lib/jvm/*", "/opt/java*", os.path.expanduser("~/.sdkman/candidates/java/*"))
"""Where systems have their Javas."""
WITHOUT_SPARK = ("farm_stages", "simulation")
"""Stages and histories without a JVM, hundreds of them, which know nothing of Spark's version."""
BUSY = ("--reruns", "2", "--only-rerun", "worker failed to connect back")
"""Spark gives a Python worker ten seconds to start, which a machine with other work may exceed."""


@dataclass(frozen=True)
class Environment:
    """Versions to install, and the tests that must pass with them."""

    name: str
    python: str
    requirements: tuple[str, ...]
    tests: tuple[str, ...]
    java: str = ""
    """Its version; the one that Spark finds by itself unless given."""

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return FOLDER / self.name

    @property
    def interpreter(self) -> str:
        """Its Python."""
        return str(self.folder / "bin" / "python")


@dataclass(frozen=True)
class Result:
    """How the tests went in one environment."""

    environment: Environment
    passed: bool | None
    """None: it could not be tried, because there is no such Python or Java here."""
    summary: str
    versions: str
    seconds: float


ON_SPARK = ("tests/spark", *(f"--ignore=tests/spark/test_{each}.py" for each in WITHOUT_SPARK))


def spark(version: str, *others: str, tests: Sequence[str] = ON_SPARK) -> Environment:
    """An environment with the newest patch of a Spark, and its client for Spark Connect."""
    wanted = (f"pyspark[connect]=={version}.*", *declared(), *others, *TOOLS)
    return Environment(f"spark-{version}", "3.11", wanted, tuple(tests))


def java(version: str) -> Environment:
    """An environment with the newest Spark on another Java."""
    wanted = (f"pyspark=={NEWEST}.*", "pandas>=2.2.2,<3", PROTOBUF, *declared(), *TOOLS)
    return Environment(f"java-{version}", "3.11", wanted, SHORT, version)


def declared(*extras: str, lowest: bool = False) -> tuple[str, ...]:
    """The dependencies as pyproject.toml has them, or each at its lower bound.

    >>> [text for text in declared("spark", lowest=True) if text.startswith(("numpy", "pyspark"))]
    ['numpy==2.0', 'pyspark==4.0']
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [text for extra in extras for text in project["optional-dependencies"][extra]]
    found = (*project["dependencies"], *optional)
    return tuple(text.replace(">=", "==") if lowest else text for text in found)


# The modules that Spark 4.0 generated with protobuf 5 refuse a runtime that is two versions newer.
OLD_PROTOBUF = ("protobuf>=5.28.3,<6", "grpcio-status<1.72", "grpcio<1.72", "zstandard")
ENVIRONMENTS = (
    spark("4.0", "pandas>=2.2,<3", *OLD_PROTOBUF),
    spark("4.1", "pandas>=2.2,<3", f"{PROTOBUF},<7"),
    spark("4.2", "pandas>=2.2,<3", PROTOBUF),
    spark(NEWEST, "pandas>=2.2", PROTOBUF),
    *(java(version) for version in ("21", "25")),
    Environment("low-spark", "3.11", (*declared("spark", lowest=True), *TOOLS), SHORT),
    Environment("low", "3.11", (*declared("speed", lowest=True), *TOOLS), (*QUICK, *CORE)),
    *(
        Environment(f"new-{python}", python, (*declared("speed"), *FRAMES, *TOOLS), (*QUICK, *CORE))
        for python in ("3.11", "3.12", "3.13", "3.14")
    ),
)
FEW = (spark("4.1", "pandas>=2.2,<3", f"{PROTOBUF},<7", tests=SHORT),)


def found_python(version: str) -> str | None:
    """The interpreter of a version, if there is one."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    named = shutil.which(f"python{version}")
    places = [named] if named else []
    places += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    return next((place for place in places if _works(place)), None)


def _works(python: str) -> bool:
    """Whether it starts: a shim for a version that is not installed does not."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def found_java(version: str, places: Sequence[str] = JAVAS) -> Path | None:
    """Where a version of Java is installed: what JAVA_HOME would be."""
    folders = [Path(found) for place in places for found in sorted(glob(place))]
    for folder in folders:
        said = folder / "release"
        if said.is_file() and f'JAVA_VERSION="{version}.' in said.read_text():
            return folder
    return None


def install(environment: Environment, python: str) -> None:
    """Make an environment, unless it is there already."""
    stamp, wanted = environment.folder / "installed", "\n".join(environment.requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(environment.folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", environment.folder], check=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    pip = [environment.interpreter, "-m", "pip", "install", *quiet, *environment.requirements]
    subprocess.run(pip, check=True, stderr=subprocess.PIPE, text=True)
    stamp.write_text(wanted)


def run(environment: Environment) -> Result:
    """Install an environment and run its tests."""
    start = time.monotonic()
    python = found_python(environment.python)
    if python is None:
        return Result(environment, None, f"no Python {environment.python} here", "", 0)
    java_home = found_java(environment.java) if environment.java else None
    if environment.java and java_home is None:
        return Result(environment, None, f"no Java {environment.java} here", "", 0)
    try:
        install(environment, python)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or str(error)).strip().splitlines()[-1]
        return Result(environment, False, said, "", time.monotonic() - start)
    log = environment.folder / "tests.log"
    # The plugin by its module: where the package is installed it would be loaded twice.
    plugins = ("-p", "no:windowlib", "-p", "windowlib.testing.plugin", "-p", "no:cacheprovider")
    command = [environment.interpreter, "-m", "pytest", *plugins]
    command += ["-rfE", "--tb=short", *BUSY, *environment.tests]
    own = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": command[0]}
    own |= {"JAVA_HOME": str(java_home)} if java_home else {}
    with log.open("w") as out:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **own},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    summary = last_line(log.read_text())
    if done.returncode:
        summary += f"; see {log.relative_to(ROOT)}"
    seconds = time.monotonic() - start
    return Result(environment, not done.returncode, summary, versions(environment), seconds)


def last_line(log: str) -> str:
    """What pytest says of a run in its last line.

    >>> last_line("....\\n===== 4 passed, 1 skipped in 0.12s =====\\n")
    '4 passed, 1 skipped in 0.12s'
    """
    lines = [line for line in log.splitlines() if re.search(r"\d+ (passed|failed|error)", line)]
    return lines[-1].strip("= ") if lines else "no test ran"


def versions(environment: Environment) -> str:
    """What is installed, of what matters."""
    names = ("pyspark", "numpy", "pyarrow", "pandas", "protobuf", "numba")
    code = (
        "from importlib.metadata import PackageNotFoundError, version\n"
        f"for name in {names}:\n"
        "    try:\n"
        "        print(name, version(name))\n"
        "    except PackageNotFoundError:\n"
        "        pass"
    )
    command = [environment.interpreter, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return ", ".join(said.splitlines())


def table(results: Iterable[Result]) -> str:
    """The results as Markdown, as docs/compatibility.md has them."""
    lines = ["| environment | Python | versions | result |", "| --- | --- | --- | --- |"]
    for each in results:
        word = {True: "passed", False: "FAILED", None: "not tried"}[each.passed]
        said = f"{word}: {each.summary}"
        own = each.environment
        lines.append(f"| {own.name} | {own.python} | {each.versions} | {said} |")
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="The suite over versions of dependencies.")
    parser.add_argument("names", nargs="*", help="which environments; all unless given")
    parser.add_argument("--short", action="store_true", help="one older Spark, a few tests")
    parser.add_argument("--quick", action="store_true", help="without tests that take long")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time; 2 unless given")
    arguments = parser.parse_args()
    known = {each.name: each for each in (FEW if arguments.short else ENVIRONMENTS)}
    if arguments.quick:
        known = {each.name: replace(each, tests=(*QUICK, *each.tests)) for each in known.values()}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no environment {unknown[0]!r}; there are {', '.join(known)}")
    results = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(run, [known[name] for name in arguments.names or known]):
            results.append(result)
            print(table(results[-1:]).splitlines()[-1], flush=True)
    print("", table(results), sep="\n")
    return int(any(each.passed is False for each in results))


if __name__ == "__main__":
    sys.exit(main())
