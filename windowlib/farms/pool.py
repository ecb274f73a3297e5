"""Pools of worker processes: started, given tasks, replaced when they die, and stopped.

A worker is a Python process of its own that runs `windowlib.farms.process`, with one connection to
its parent. It ends when the connection does, so none outlives the program that started it. Where
that is safe it is a fork of a process that has loaded everything; elsewhere it starts afresh.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Pipe
from typing import Any, NamedTuple

import cloudpickle

from windowlib.errors import FarmError
from windowlib.farms.fork_server import ForkServer, environment
from windowlib.farms.worker import WorkerException, WorkerSetup

READY = b"ready "
"""What a worker sends first, when it can take tasks, and then the number of its process."""
FAILED = b"failed: "
"""What a worker sends instead, and then why."""
STOP = b"stop"
"""What a worker gets last; without it, its parent was killed, and it removes what is left."""
GRACE = 5.0
"""Seconds that a worker has to end by itself."""
FORKS = sys.platform == "linux"
"""Whether workers are forks: elsewhere libraries of the system do not survive that."""


class WorkerAnswer(NamedTuple):
    """An answer of a worker."""

    worker: int
    failed: bool
    value: Any
    seconds: float
    """How long the worker worked on it."""


class WorkerDeath(NamedTuple):
    """A worker is gone, and another has started in its place."""

    worker: int
    code: int | None


class WorkerProcess:
    """One worker process."""

    def __init__(self, folder: str, setup: bytes) -> None:
        self.connection, theirs = Pipe()
        self.pid: int | None = None
        """The number of its process, when it has said that it is ready."""
        self.end = (_fork_worker if FORKS else _spawn_worker)(theirs.fileno())
        """Waits until it has ended, or kills it; its exit code."""
        theirs.close()
        self.send(folder.encode())
        self.send(setup)

    def send(self, message: bytes) -> None:
        """Send a task; if the worker is gone, `wait` says so."""
        with suppress(OSError):
            self.connection.send_bytes(message)

    def hang_up(self) -> None:
        """Tell the worker that no task comes any more."""
        if not self.connection.closed:
            with suppress(OSError):
                self.connection.send_bytes(STOP)
            self.connection.close()

    def stop(self) -> int | None:
        """End it, kindly at first."""
        self.hang_up()
        end, self.end = self.end, _already_ended
        return end()


def _already_ended() -> None:
    """The `end` of a worker that has ended."""


def _fork_worker(connection: int) -> Callable[[], int | None]:
    """Fork a worker with a connection; returns what ends it."""
    server = ForkServer.shared()
    return partial(server.end, server.start(connection), GRACE)


def _spawn_worker(connection: int) -> Callable[[], int | None]:
    """Start a worker as a new program; returns what ends it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "windowlib.farms.process", str(connection)],
        pass_fds=[connection],
        env=environment(),
        stdin=subprocess.DEVNULL,
    )

    def end() -> int | None:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return process.returncode

    return end


class ProcessPool:
    """Several worker processes that do the same setup."""

    def __init__(self, workers: int, setup: Any) -> None:
        if (why := why_no_processes()) is not None:
            msg = f'farm(..., when="always"): {why}. Leave out when=, or use a Unix system or WSL.'
            raise FarmError(msg)
        self._setup, self._folder = pickled(setup), getattr(setup, "folder", "")
        self._poll = select.poll()
        self._worker_numbers: dict[int, int] = {}  # whose connection has which number
        self._starting: set[int] = set()
        self.waited = 0.0
        """Seconds that the caller has waited for answers."""
        self.processes = [self._start_worker(worker) for worker in range(workers)]
        self._finalizer = weakref.finalize(self, _stop, self.processes)

    @property
    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    @property
    def ready(self) -> bool:
        """Whether all workers have started; one that dies before that is the next answer."""
        for number, _ in self._poll.poll(0) if self._starting else ():
            worker = self._worker_numbers[number]
            if worker in self._starting:
                found = self._receive(worker)
                if isinstance(found, WorkerDeath):
                    raise FarmError(_start_failure(f"it ended with exit code {found.code}"))
        return not self._starting

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes, when they have started."""
        while self._finalizer.alive and not self.ready:
            time.sleep(0.002)
        return [each.pid for each in self.processes if each.pid is not None]

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """Send a task to a worker."""
        self.processes[worker].send(pickle.dumps((work, args, oldest), protocol=5))

    def wait(self, *, block: bool) -> Iterator[WorkerAnswer | WorkerDeath]:
        """The messages that have come from workers; with `block`, waits for one at least."""
        start = time.perf_counter()
        ready = self._poll.poll(None if block else 0)
        self.waited += time.perf_counter() - start
        for number, _ in ready:
            if (found := self._receive(self._worker_numbers[number])) is not None:
                yield found

    def _receive(self, worker: int) -> WorkerAnswer | WorkerDeath | None:
        process = self.processes[worker]
        try:
            message = process.connection.recv_bytes()
        except (EOFError, OSError):
            self._poll.unregister(process.connection)
            code = process.stop()
            self.processes[worker] = self._start_worker(worker)
            return WorkerDeath(worker, code)
        if worker in self._starting and message.startswith(READY):
            process.pid = int(message[len(READY) :])
            self._starting.discard(worker)
            return None
        if worker in self._starting and message.startswith(FAILED):
            raise FarmError(_start_failure(message[len(FAILED) :].decode()))
        return WorkerAnswer(worker, *pickle.loads(message))

    def resize(self, workers: int) -> None:
        """Start more workers, or stop some that have nothing to do; the others go on."""
        for worker in range(len(self.processes), workers):
            self.processes.append(self._start_worker(worker))
        stopped = self.processes[workers:]
        for process in stopped:
            self._poll.unregister(process.connection)
            self._starting.discard(self._worker_numbers.pop(process.connection.fileno()))
        del self.processes[workers:]
        _stop(stopped)

    def _start_worker(self, worker: int) -> WorkerProcess:
        process = WorkerProcess(self._folder, self._setup)
        self._starting.add(worker)
        self._poll.register(process.connection, select.POLLIN)
        self._worker_numbers[process.connection.fileno()] = worker
        return process

    def close(self) -> None:
        """Stop all workers."""
        self._finalizer()


def why_no_processes() -> str | None:
    """Why worker processes cannot be started on this system; None if they can."""
    if hasattr(select, "poll") and os.name == "posix":
        return None
    return "worker processes inherit a connection, which this system does not allow"


def _stop(processes: Sequence[WorkerProcess]) -> None:
    for each in processes:
        each.hang_up()
    for each in processes:
        each.stop()


class CallerPool:
    """One worker in the calling process, for trials of a farm.

    Tasks and answers are pickled as for other processes, so that a trial costs the caller what a
    farm of processes would cost it.
    """

    def __init__(self, workers: int, setup: WorkerSetup) -> None:
        self._worker = setup.worker(setup)
        self._tasks: deque[tuple[int, bytes]] = deque()
        self.ready, self.pids = True, list[int]()
        self.waited = 0.0
        """Seconds that its tasks took, which other processes would have had."""

    @property
    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """A task waits until the farm asks for answers."""
        if work in self._worker.silent:
            self._worker.do(work, args, oldest)
        else:
            self._tasks.append((worker, pickle.dumps((work, args, oldest), protocol=5)))

    def wait(self, *, block: bool) -> Iterator[WorkerAnswer]:
        """Do all tasks, one after the other."""
        while self._tasks:
            worker, message = self._tasks.popleft()
            task = pickle.loads(message)
            start = time.perf_counter()
            try:
                failed, found = False, self._worker.do(*task)
            except Exception as error:
                failed, found = True, WorkerException.of(error)
            seconds = time.perf_counter() - start
            self.waited += seconds
            value = pickle.loads(pickle.dumps(found, protocol=5))
            yield WorkerAnswer(worker, failed, value, seconds)

    def close(self) -> None:
        """Nothing: there are no processes."""


def pickled(value: Any) -> bytes:
    """A value as bytes, also if its class or function is defined in a script or a notebook."""
    try:
        data: bytes = cloudpickle.dumps(value, protocol=5)
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".")
        msg = (
            f"farm(...): the operator cannot be sent to workers ({reason}). Leave out what belongs "
            f"to this process alone, such as open files and locks, or make it in on_open."
        )
        raise FarmError(msg) from error
    return data


def _start_failure(reason: str) -> str:
    return (
        f"farm(...): a worker process cannot start ({reason.rstrip('.')}). Look for modules that "
        f"the operator needs and workers cannot import."
    )
