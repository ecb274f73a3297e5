"""Whether farms pay: against the operator alone, and against a pool of processes by hand.

Wall time from `open` to the last row, start-up of processes included, variants in turn in one run.
The pool is what a user writes without this library: windows cut by hand, `map` with a chunk size,
of which the best one counts.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.farms_work import burn, same, turns_in
from bench.harness import Measure
from windowlib import Count, Operator, OperatorModel, Sliding, Tumbling
from windowlib.farms import WindowFarm, farm
from windowlib.operators import Aggregate, Skyline, agg
from windowlib.workload import Points

N = 2
CHUNKS = (1, 4, 16, 64)
"""Chunk sizes of the pool, of which the best one counts."""


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    windows: int = 6000
    costs: tuple[float, ...] = (1e-3, 3.7e-4)
    """Seconds that a handler takes."""
    rows: int = 2_000_000
    skylines: int = 40
    overhead: int = 20_000
    """Windows that do nothing."""
    rounds: int = 3


FULL = Scale()
SIZE, SLIDE = 50, 20


class Handler(Operator):
    """The sum of a window, with so many turns of a loop."""

    model = OperatorModel(windows=[Tumbling, Sliding])

    def __init__(self, window: Any, turns: int = 0) -> None:
        self.turns = turns
        super().__init__(window)

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit(**computed([row["x"] for row in window[key]], self.turns))


def computed(values: list[int], turns: int) -> dict[str, int]:
    """What a handler does with the values of a window."""
    burn(turns)
    return {"total": sum(values)}


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """All of it."""
    for cost in scale.costs:
        yield from handlers(scale, cost)
    yield from cheap(scale)
    yield from overhead(scale)
    yield buffered()


# -- how it is timed ------------------------------------------------------------------------------

Variant = Callable[[], list[Any]]


def in_turn(name: str, variants: Mapping[str, Variant], rounds: int) -> dict[str, list[float]]:
    """Wall seconds of each variant, one after the other and back; all must give the same rows."""
    times: dict[str, list[float]] = {each: [] for each in variants}
    wanted = next(iter(variants.values()))()  # which also loads libraries and compiles
    order = list(variants)
    for _ in range(rounds):
        for each in order:
            start = time.perf_counter()
            found = variants[each]()
            times[each].append(time.perf_counter() - start)
            same(f"{name}, {each}", found, wanted)
        order.reverse()
    return times


def speed(times: Mapping[str, list[float]], name: str, to: str) -> float:
    """How many times as fast as another, median of the rounds."""
    return statistics.median(b / a for a, b in zip(times[name], times[to], strict=True))


def fed(operator: Operator, batch: pa.RecordBatch, size: int = 4096) -> list[Any]:
    """All rows that come out of an operator, or of a farm."""
    out: list[Any] = []
    running = operator.open()
    running.connect(0, out.append)
    for at in range(0, batch.num_rows, size):
        running.insert_batch(batch.slice(at, size))
    running.finish()
    return out


# -- handlers -------------------------------------------------------------------------------------


def handlers(scale: Scale, cost: float) -> Iterator[Measure]:
    """A handler in Python, against the operator alone and the pool."""
    turns = int(turns_in(cost))
    op = Handler(Sliding(Count(SIZE), every=Count(SLIDE)), turns)
    values = np.arange(SLIDE * scale.windows) % 1009
    batch = pa.record_batch({"x": values})
    variants: dict[str, Variant] = {
        "plain": partial(fed, op, batch),
        "farm": partial(fed, farm(op, N), batch),
        **{f"pool {size}": partial(pooled, values, turns, size) for size in CHUNKS},
    }
    name = f"handler of {1e3 * cost:.2g} ms, {scale.windows:,} windows"
    times = in_turn(name, variants, scale.rounds)
    best = min((f"pool {size}" for size in CHUNKS), key=lambda each: sum(times[each]))
    pool = speed(times, best, "plain")
    yield Measure(f"{name}: farm / plain", speed(times, "farm", "plain"), 0.95, True)
    note = f"the pool is {pool:.2f} x plain with chunks of {best.removeprefix('pool ')}"
    yield Measure(f"{name}: farm / pool", speed(times, "farm", best), 1.0, True, note)


def pooled(values: Any, turns: int, chunk: int) -> list[Any]:
    """The same by hand: windows cut in the parent, and given to a pool of processes."""
    ends = range(SLIDE, len(values) + 1, SLIDE)
    windows = [values[max(0, end - SIZE) : end].tolist() for end in ends]
    with ProcessPoolExecutor(N) as pool:
        return list(pool.map(partial(computed, turns=turns), windows, chunksize=chunk))


# -- what a farm does not speed up ----------------------------------------------------------------


def cheap(scale: Scale) -> Iterator[Measure]:
    """Aggregates and skylines, which one process does as fast as it can read."""
    rows = scale.rows
    x = np.random.default_rng(7).normal(size=rows)
    keyed = pa.record_batch({"k": np.arange(rows) % 100, "x": x})
    slide = max(1, rows // 20_000)
    total = Aggregate(
        Sliding(Count(10 * slide), every=Count(slide)), high=agg.max("x"), mean=agg.mean("x")
    )
    yield from plainly(f"Aggregate, {rows:,} rows", total, keyed, scale.rounds)
    per_key = min(1000, rows // 200)  # so that each of the 100 keys has some windows
    window = Sliding(Count(per_key), every=Count(per_key // 10), by="k")
    by_key = Aggregate(window, high=agg.max("x"), mean=agg.mean("x"))
    yield from plainly(f"Aggregate by key, {rows:,} rows", by_key, keyed, scale.rounds)
    size = 10_000 if scale.skylines > 5 else 200
    points = Points.anticorrelated(4).draw(size + size // 5 * scale.skylines, 3)
    batch = pa.record_batch({f"x{i}": points[:, i] for i in range(4)})
    window = Sliding(Count(size), every=Count(size // 5))
    skyline = Skyline(window, "x0", "x1", "x2", "x3")
    yield from plainly(f"skyline, {size:,} / {size // 5:,}", skyline, batch, scale.rounds)


def plainly(name: str, op: Operator, batch: pa.RecordBatch, rounds: int) -> Iterator[Measure]:
    """A farm against its operator."""
    variants: dict[str, Variant] = {
        "plain": partial(fed, op, batch, 65_536),
        "farm": partial(fed, farm(op, N), batch, 65_536),
    }
    times = in_turn(name, variants, rounds)
    yield Measure(f"{name}: farm / plain", speed(times, "farm", "plain"), 0.95, True)


# -- overhead -------------------------------------------------------------------------------------


def overhead(scale: Scale) -> Iterator[Measure]:
    """Processor time of a window that does nothing: in all processes, and in the parent."""
    op = Handler(Sliding(Count(SIZE), every=Count(SLIDE)))
    batch = pa.record_batch({"x": np.arange(SLIDE * scale.overhead) % 1009})
    found = [_overhead(op, batch, scale.overhead) for _ in range(scale.rounds)]
    alone = statistics.median(each[0] for each in found)
    parent = statistics.median(each[1] for each in found)
    workers = statistics.median(each[2] for each in found)
    note = f"alone {alone:.1f} µs, workers {workers:.1f} µs"
    yield Measure("overhead, µs a window", parent + workers - alone, 40.0, False, note)
    yield Measure("overhead in the parent, µs a window", parent, 10.0, False)


def _overhead(op: Operator, batch: pa.RecordBatch, windows: int) -> tuple[float, float, float]:
    start = time.process_time()
    fed(op, batch)
    alone = time.process_time() - start
    with WindowFarm(op, workers=N, when="always").open() as running:
        while not running.pool.ready:
            time.sleep(0.01)
        before, start = worked(running.pool.pids), time.process_time()
        for at in range(0, batch.num_rows, 4096):
            running.insert_batch(batch.slice(at, 4096))
        running.drain()
        parent = time.process_time() - start
        workers = worked(running.pool.pids) - before
    return 1e6 * alone / windows, 1e6 * parent / windows, 1e6 * workers / windows


def worked(pids: list[int]) -> float:
    """Seconds in the processor that processes had."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def buffered() -> Measure:
    """Bytes of the parent for each row that a window of a farm holds, beside the row itself."""
    import tracemalloc

    rows = 200_000
    op = Handler(Sliding(Count(rows), every=Count(rows)))
    batch = pa.record_batch({"x": np.arange(rows - 1)})
    with WindowFarm(op, workers=1, when="always").open() as running:
        running.insert_batch(batch.slice(0, 4096))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        for at in range(4096, batch.num_rows, 4096):
            running.insert_batch(batch.slice(at, 4096))
        after = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        tracemalloc.stop()
    return Measure("bytes a buffered row", (after - before) / (rows - 4096), 32.0, False)
