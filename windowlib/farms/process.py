"""A worker process of a farm: `python -m windowlib.farms.process FD`.

`python -m windowlib.farms.process serve FD` is the process that makes workers of itself.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import pyarrow as pa

from windowlib.farms.chunks import remove_folder
from windowlib.farms.fork_server import serve
from windowlib.farms.pool import FAILED, READY, STOP
from windowlib.farms.worker import WorkerException

SMALL = 1 << 11
"""Bytes of a message of which several fit into a connection that is not read, on any system."""


def main(connection: Connection) -> None:
    """Do tasks until the parent sends no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        folder = connection.recv_bytes().decode()
    except (EOFError, OSError):  # its parent is gone, and has nothing to remove
        return
    try:
        setup = pickle.loads(connection.recv_bytes())
        worker = setup.worker(setup)
        gc.freeze()  # present objects stay, so collections need not visit them
        connection.send_bytes(READY + str(os.getpid()).encode())
    except (EOFError, OSError):
        remove_folder(folder)
        return
    except Exception as error:  # what the operator needs is not there
        with suppress(OSError):
            connection.send_bytes(FAILED + f"{type(error).__name__}: {error}".encode())
        return
    if not _do_tasks(connection, worker):
        remove_folder(folder)


def _do_tasks(connection: Connection, worker: Any) -> bool:
    """Do tasks; returns whether the parent has stopped the worker, and is not simply gone."""
    tasks = TaskQueue(connection)
    while (message := tasks.next()) is not None:
        if message == STOP:
            return True
        work, args, oldest = pickle.loads(message)
        answer = _answer(worker, work, args, oldest)
        if work in worker.silent:
            tasks.read_ahead()  # which come without end
            continue
        if max(len(answer), len(message)) > SMALL:
            tasks.read_ahead()
        try:
            connection.send_bytes(answer)
        except OSError:
            return _stopped(tasks)
    return False


def _stopped(tasks: TaskQueue) -> bool:
    """Whether the parent, which reads no more answers, has stopped the worker."""
    while (message := tasks.next()) is not None:
        if message == STOP:
            return True
    return False


class TaskQueue:
    """The tasks of a worker: read when the worker is free, or ahead of time.

    A worker has few tasks at once. While these and their answers are small, they fit into the
    connection, and neither side waits for the other. With others, tasks are read all the time, so
    that no parent waits for a worker that waits for it. That takes a thread, which costs something
    at every task.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: SimpleQueue[bytes | None] | None = None

    def next(self) -> bytes | None:
        """The next task; None: no more can come."""
        return self._read() if self._queue is None else self._queue.get()

    def read_ahead(self) -> None:
        """Read tasks all the time from now on."""
        if self._queue is None:
            self._queue = SimpleQueue()
            threading.Thread(target=self._read_all, args=(self._queue,), daemon=True).start()

    def _read(self) -> bytes | None:
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def _read_all(self, queue: SimpleQueue[bytes | None]) -> None:
        while (message := self._read()) is not None:
            queue.put(message)
        queue.put(None)


def _answer(worker: Any, work: str, args: Any, oldest: int) -> bytes:
    start = time.perf_counter()
    try:
        found = worker.do(work, args, oldest)
        return pickle.dumps((False, found, time.perf_counter() - start), protocol=5)
    except Exception as error:
        return pickle.dumps(
            (True, WorkerException.of(error), time.perf_counter() - start), protocol=5
        )


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])), lambda number: main(Connection(number)))
    else:
        main(Connection(int(sys.argv[1])))
