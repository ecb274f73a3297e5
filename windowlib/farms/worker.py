"""A worker process of a farm: `python -m windowlib.farms.worker FD`."""

from __future__ import annotations

import gc
import pickle
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import pyarrow as pa

from windowlib.farms.station import Raised

SMALL = 1 << 11
"""Bytes of a message of which several fit into a connection that nobody reads, on any system."""


def main(connection: Connection) -> None:
    """Do the tasks that come, until none can come any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    job = pickle.loads(connection.recv_bytes())
    station = job.station(job)
    gc.freeze()  # what is there now stays, and need not be looked at again and again
    tasks = Tasks(connection)
    while (message := tasks.next()) is not None:
        work, args, oldest = pickle.loads(message)
        answer = _answer(station, work, args, oldest)
        if work in station.silent:
            tasks.ahead()  # which come without end
            continue
        if max(len(answer), len(message)) > SMALL:
            tasks.ahead()
        try:
            connection.send_bytes(answer)
        except OSError:
            return


class Tasks:
    """What a worker is to do: read when it has time for it, or ahead.

    A worker has few tasks at once. While these and their answers are small, they fit into the
    connection, and nobody waits for anybody. With others, tasks are read all the time, so that
    nobody waits for a worker that waits for them. That takes a thread, which costs at every task.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: SimpleQueue[bytes | None] | None = None

    def next(self) -> bytes | None:
        """The next task; None: no more can come."""
        return self._read() if self._queue is None else self._queue.get()

    def ahead(self) -> None:
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


def _answer(station: Any, work: str, args: Any, oldest: int) -> bytes:
    start = time.perf_counter()
    try:
        found = station.do(work, args, oldest)
        return pickle.dumps((False, found, time.perf_counter() - start), protocol=5)
    except Exception as error:
        return pickle.dumps((True, Raised.of(error), time.perf_counter() - start), protocol=5)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
