"""Starts the program of `tests.spark.job`, looks at its processes, and kills them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.helpers import java
from tests.spark import job

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    f"spark.driver.extraJavaOptions={java.options()}",
    "spark.sql.codegen.wholeStage=false",
)
"""Settings with which a program that lives for seconds is faster."""
PATIENCE = 300
LATE = "Python worker failed to connect back"
"""What Spark says of a worker that took more than ten seconds to start, on a busy machine."""


def bare_python(folder: Path) -> str:
    """A Python with all packages but this one, which an executor can only have from us."""
    path, places = folder / "python", {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    also = os.pathsep.join(sorted(places))  # not by way of site, which reads .pth files
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH{os.pathsep}{also}"\n'
        f'exec "{sys.executable}" -S "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def spark_home(folder: Path) -> str:
    """Spark in a directory of its own, where a cluster may leave files."""
    home = folder / "spark"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    return str(home)


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the command line of every process."""
    told = subprocess.run(["ps", "-Awwo", "pid=,ppid=,args="], capture_output=True, text=True)
    found = [line.split(None, 2) for line in told.stdout.splitlines()]
    return {int(pid): (int(parent), "".join(rest)) for pid, parent, *rest in found}


def below(root: int, having: str = "") -> list[int]:
    """The processes that a process has started, and those that these have started, and so on."""
    every, found = processes(), [root]
    for pid in found:
        found += [child for child, (parent, _) in every.items() if parent == pid]
    return [pid for pid in found[1:] if having in every[pid][1]]


def kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def started(directory: Path, *args: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program, as a process with a group of its own; nothing of it is left at the end."""
    command = [sys.executable, "-m", "tests.spark.job", str(directory), *args]
    for setting in QUICK:
        command += ["--conf", setting]
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env=os.environ | env
        )
        try:
            yield process
        finally:
            wholly = below(process.pid)  # the workers are a group of their own
            kill(process.pid, *wholly)
            process.wait()


def ends(process: subprocess.Popen[bytes]) -> int:
    """How a program ends by itself."""
    return process.wait(timeout=PATIENCE)


def until(process: subprocess.Popen[bytes], happened: Callable[[], object]) -> bool:
    """Wait until something has happened; whether it did, before the program ended."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "the program neither goes on nor ends"
        time.sleep(0.01)
    return True


def steps(directory: Path) -> int:
    """How far the queries are: micro-batches planned, written and committed."""
    kinds = ("checkpoints/*/offsets/*", "checkpoints/*/commits/*", "out/*/*.json")
    return sum(len(list(directory.glob(kind))) for kind in kinds)


def killed_somewhere(directory: Path, rng: random.Random, *args: str) -> bool:
    """Start the program, and kill all of it after some steps; whether there was something to kill.

    Where in a step it is hit depends on the machine; after which one, on the seed.
    """
    goal, wait = steps(directory) + rng.randrange(1, 12), rng.random() * 0.3
    with started(directory, *args) as process:
        if until(process, lambda: steps(directory) >= goal):
            time.sleep(wait)
            return process.poll() is None
    if process.returncode and LATE in log_of(directory):
        return killed_somewhere(directory, rng, *args)
    assert process.returncode == 0, log_of(directory)
    return False


def log_of(directory: Path) -> str:
    return (directory / "log").read_text(errors="replace")[-5000:]


def check(directory: Path, seed: int = 1, only: str | None = None) -> None:
    """Refuse any difference to what the queries write if nothing happens."""
    differs = directory / "differs"
    assert not differs.exists(), differs.read_text()
    for name in job.operators() if only is None else only.split(","):
        assert job.written(directory, name) == job.expected(name, seed), name
