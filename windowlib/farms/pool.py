"""Worker processes: started, talked to, replaced when they die, and stopped.

A worker is a Python process of its own that runs `windowlib.farms.worker`, with one connection to
its parent. It ends when the connection does, so none outlives the program that started it.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any, NamedTuple

from windowlib.errors import FarmError

GRACE = 5.0
"""Seconds that a worker has to end by itself."""
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Answer(NamedTuple):
    """What came from a worker."""

    worker: int
    failed: bool
    value: Any
    seconds: float
    """How long the worker worked on it."""


class Died(NamedTuple):
    """A worker is gone, and another has started in its place."""

    worker: int
    code: int | None


class Process:
    """One worker process."""

    def __init__(self, job: bytes) -> None:
        self.connection, theirs = Pipe()
        path = os.pathsep.join(each for each in sys.path if each)
        command = [sys.executable, "-m", "windowlib.farms.worker", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **ALONE, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self.connection.send_bytes(job)

    def send(self, message: bytes) -> None:
        """Send a task; if nobody is there, `wait` says so."""
        with suppress(OSError):
            self.connection.send_bytes(message)

    def stop(self) -> int | None:
        """End it, kindly at first."""
        self.connection.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode


class Pool:
    """Several worker processes that do the same job."""

    def __init__(self, workers: int, job: Any) -> None:
        self._job = dumped(job)
        self._ready = select.poll()
        self._by: dict[int, int] = {}  # whose connection has which number
        self.processes = [self._started(worker) for worker in range(workers)]
        self._finalizer = weakref.finalize(self, _stop, self.processes)

    @property
    def now(self) -> float:
        """Seconds, since some time or other."""
        return time.monotonic()

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [each.process.pid for each in self.processes]

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """Send a task to a worker."""
        self.processes[worker].send(pickle.dumps((work, args, oldest), protocol=5))

    def wait(self, *, block: bool) -> Iterator[Answer | Died]:
        """What has come from workers since; if that is nothing and `block`, what comes next."""
        for number, _ in self._ready.poll(None if block else 0):
            yield self._received(self._by[number])

    def _received(self, worker: int) -> Answer | Died:
        process = self.processes[worker]
        try:
            answer = pickle.loads(process.connection.recv_bytes())
        except (EOFError, OSError):
            self._ready.unregister(process.connection)
            code = process.stop()
            self.processes[worker] = self._started(worker)
            return Died(worker, code)
        return Answer(worker, *answer)

    def _started(self, worker: int) -> Process:
        process = Process(self._job)
        self._ready.register(process.connection, select.POLLIN)
        self._by[process.connection.fileno()] = worker
        return process

    def close(self) -> None:
        """Stop all workers."""
        self._finalizer()


def _stop(processes: Sequence[Process]) -> None:
    for each in processes:
        each.connection.close()
    for each in processes:
        each.stop()


def dumped(value: Any) -> bytes:
    """A value as bytes, also where its class lives in the user's script, if that can be done."""
    try:
        from pyspark import cloudpickle
    except ImportError:
        return _pickled(value)
    data: bytes = cloudpickle.dumps(value, protocol=5)  # type: ignore[no-untyped-call]
    return data


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".")
        msg = (
            f"farm(...): the operator cannot be sent to workers ({reason}). Define its functions "
            f"in a module, or install pyspark, which can send those of a script."
        )
        raise FarmError(msg) from error
