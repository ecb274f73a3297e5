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


def main(connection: Connection) -> None:
    """Do the tasks that come, until none can come any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    job = pickle.loads(connection.recv_bytes())
    station = job.station(job)
    gc.freeze()  # what is there now stays, and need not be looked at again and again
    tasks: SimpleQueue[bytes | None] = SimpleQueue()
    # Tasks are read all the time, so that nobody waits for a worker that waits for them.
    threading.Thread(target=_read, args=(connection, tasks), daemon=True).start()
    while (message := tasks.get()) is not None:
        work, args, oldest = pickle.loads(message)
        answer = _answer(station, work, args, oldest)
        if work in station.silent:
            continue
        try:
            connection.send_bytes(answer)
        except OSError:
            return


def _read(connection: Connection, tasks: SimpleQueue[bytes | None]) -> None:
    try:
        while True:
            tasks.put(connection.recv_bytes())
    except (EOFError, OSError):
        tasks.put(None)


def _answer(station: Any, work: str, args: Any, oldest: int) -> bytes:
    start = time.perf_counter()
    try:
        found = station.do(work, args, oldest)
        return pickle.dumps((False, found, time.perf_counter() - start), protocol=5)
    except Exception as error:
        return pickle.dumps((True, Raised.of(error), time.perf_counter() - start), protocol=5)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
