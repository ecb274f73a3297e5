"""A program with a farm, for tests that kill it: `python -m tests.farms.farm_process NAME`."""

import os
import sys
import time

import pyarrow as pa

from windowlib import Count, Tumbling
from windowlib.farms import WindowFarm
from windowlib.operators import Aggregate, agg

MIB_OF_ROWS = 40_000


def farm():
    """Two workers, from the first row on."""
    op = Aggregate(Tumbling(Count(100)), m=agg.median("x"))
    return WindowFarm(op, workers=2, when="always")


def batches(n):
    """About one MiB of rows each."""
    return (pa.record_batch({"x": range(i * MIB_OF_ROWS, (i + 1) * MIB_OF_ROWS)}) for i in range(n))


def hang():
    """Put in rows, say so, and wait to be killed."""
    running = farm().open()
    for batch in batches(2):
        running.insert_batch(batch)
    print(running.chunks.folder, *running.pool.pids, flush=True)
    time.sleep(600)


def full():
    """Put in more than the memory holds, and count what comes out."""
    running = farm().open()
    out: list[object] = []
    running.connect(0, out.append)
    for batch in batches(8):
        running.insert_batch(batch)
    running.finish()
    print(len(out), sorted(os.listdir("/dev/shm")))


def nowhere():
    """The same where no file can be written: an error, again at the end."""
    import resource

    from windowlib.errors import FarmError

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    running = farm().open()
    for call in (lambda: running.insert_batch(next(batches(1))), running.finish):
        try:
            call()
        except FarmError as error:
            print(str(error).partition(" (")[0])
    running.close()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
