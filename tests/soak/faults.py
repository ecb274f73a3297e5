"""Queries whose processes are killed and stopped: `python -m tests.soak.faults [MINUTES] [MASTER]`.

Operators of all kinds run at once, in one program. Its driver, its executors and its Python workers
are killed (-9) at random, or stopped for a while. What was committed at the end must be
what the operators give without Spark, row for row. Memory of workers and the size of state are
noted all the while.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

FILES = 14
os.environ["JOB_FILES"] = str(FILES)  # read by the program, and by what it is compared with

from tests.spark import job  # noqa: E402
from tests.spark import killed_job as killing  # noqa: E402

QUERIES = ("means", "peaks", "pairs", "sorts", "firsts", "hours", "alone")
AT_ONCE = 3
"""Queries of one program."""
LOCAL, CLUSTER = "local[2,64]", "local-cluster[2,1,1024]"
"""In one process with retries of tasks, as a cluster has them; and two executors."""
EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "pyspark.daemon"
OPTIONS = (
    "spark.task.maxFailures=64",
    "spark.deploy.maxExecutorRetries=1000",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.python.authenticate.socketTimeout=60s",
)
MIB = 1 << 20


class Faults:
    """One program after another, until there were enough faults."""

    def __init__(self, seed: int, master: str) -> None:
        self.rng, self.seed, self.master = random.Random(seed), seed, master
        self.done: Counter[str] = Counter()
        self.names: set[str] = set()
        self.memory: list[float] = []
        self.state: list[float] = []

    def round(self, end: float) -> None:
        """Start the program again and again until it is done, and look at what it has written."""
        with tempfile.TemporaryDirectory(prefix="windowlib-faults-") as name:
            directory = Path(name)
            job.write_input(directory, self.seed)
            some = [QUERIES[(self.seed + n) * AT_ONCE % len(QUERIES)] for n in range(AT_ONCE)]
            queries = ",".join(dict.fromkeys(some))
            while not self._run(directory, queries, end):
                pass
            killing.check(directory, self.seed, only=queries)
        self.names |= set(some)
        self.seed += 1

    def _run(self, directory: Path, queries: str, end: float) -> bool:
        """One life of the program; whether it came to its end."""
        env = {"JOB_FILES": str(FILES)}
        args = ["--master", self.master, "--only", queries]
        for option in OPTIONS:
            args += ["--conf", option]
        if self.master == CLUSTER and not (directory / "spark").exists():
            killing.spark_home(directory)
        if self.master == CLUSTER:
            env["SPARK_HOME"] = str(directory / "spark")
        lives, injected = self.rng.randrange(4, 16), sum(self.done.values())
        with killing.started(directory, *args, **env) as process:
            before = killing.steps(directory)
            alive = killing.until(process, lambda: killing.steps(directory) > before)
            while alive and process.poll() is None:
                if time.monotonic() < end:
                    lives -= 1
                    if not lives:
                        self.done["kills of the driver"] += 1
                        return False
                    self._fault(process.pid)
                self._measure(process.pid, directory)
                with suppress(Exception):
                    process.wait(self.rng.uniform(0.1, 0.8))
            code = process.wait()
        if code and sum(self.done.values()) > injected:
            self.done["ends of the program by a fault"] += 1  # of a worker that Spark runs once
            return False
        if code and killing.LATE in killing.log_of(directory):
            return False
        assert code == 0, killing.log_of(directory)
        return True

    def _fault(self, driver: int) -> None:
        """Kill a worker or an executor, or stop one for a while."""
        workers, executors = (killing.below(driver, having) for having in (WORKER, EXECUTOR))
        kind = self.rng.choice(["kill", "kill", "stop", "stop", "executor"])
        if kind == "executor" and executors:
            killing.kill(self.rng.choice(executors))
            self.done["kills of executors"] += 1
        elif kind == "kill" and workers:
            killing.kill(self.rng.choice(workers))
            self.done["kills of Python workers"] += 1
        elif kind == "stop" and (found := [*workers, *executors]):
            pid = self.rng.choice(found)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self.rng.uniform(0.1, 2))
                os.kill(pid, signal.SIGCONT)
                self.done["stops"] += 1

    def _measure(self, driver: int, directory: Path) -> None:
        """What the Python workers have in memory, and what is on disk of the state."""
        sizes = []
        for pid in killing.below(driver, WORKER):
            with suppress(OSError, IndexError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                sizes.append(pages * resource.getpagesize() / MIB)
        if sizes:
            self.memory.append(max(sizes))
        found = 0
        for folder, _, files in os.walk(directory / "checkpoints"):
            for name in files:
                with suppress(OSError):
                    found += os.stat(os.path.join(folder, name)).st_size
        self.state.append(found / MIB)

    def told(self) -> str:
        """What has happened."""
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.done.items()))
        return (
            f"{self.master}, {len(self.names)} operators: {faults}; the same rows; workers up to "
            f"{max(self.memory):.0f} MiB, checkpoints up to {max(self.state):.1f} MiB"
        )


def run(end: float, master: str, seed: int | None = None) -> Faults:
    """Rounds on a master until the time is up, at least one."""
    faults = Faults(random.randrange(1 << 30) if seed is None else seed, master)
    first = True
    while first or time.monotonic() < end:
        faults.round(end)
        first = False
    return faults


def main(minutes: str = "5", master: str = LOCAL) -> None:
    """Rounds for some minutes."""
    found = run(time.monotonic() + 60 * float(minutes), master)
    print(found.told())
    print(json.dumps({"memory": found.memory, "state": found.state}))


if __name__ == "__main__":
    main(*sys.argv[1:])
