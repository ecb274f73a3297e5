"""Whether farms pay: against the operator alone, and against pools of processes by hand.

Wall time from `open` to the last row, start-up of processes included, variants in turn in one run.
The pool is what a user writes without this library: windows cut by hand, `map` with a chunk size,
of which the best one counts. joblib and dask do the same, where they are installed. A program loads
the library once for all its workers, so its first farm is measured apart, in programs of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
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
CHUNKS = (1, 8, 32, 128, 512, None)
"""Chunk sizes of the pool, of which the best one counts; None: one chunk for each worker."""


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
SHORT, OFTEN = 0.2, 15
"""A job of fewer seconds than that is measured so many times: a hiccup of 5 ms would count."""
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
            same(f"{name}, {each}", rounded(found), rounded(wanted))
        order.reverse()
    return times


def rounded(rows: list[Any]) -> list[Any]:
    """Rows without the last digits of floats, in which means by hand may differ."""
    return [
        {name: f"{x:.9g}" if isinstance(x, float) else x for name, x in row.items()} for row in rows
    ]


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
        **by_hand(partial(cut, values, SIZE, SLIDE), partial(computed, turns=turns)),
    }
    name = f"handler of {1e3 * cost:.2g} ms, {scale.windows:,} windows"
    yield from compared(name, variants, scale.rounds, partial(in_a_program, turns, scale.windows))


def in_a_program(turns: int, windows: int) -> float:
    """Wall seconds of a farm that is the first of its program, from `open` to the last row."""
    call = f"from bench.farms_pay import first; first({turns}, {windows})"
    return float(subprocess.check_output([sys.executable, "-c", call]))


def first(turns: int, windows: int) -> None:
    """Run a farm, and print how long it took."""
    op = Handler(Sliding(Count(SIZE), every=Count(SLIDE)), turns)
    batch = pa.record_batch({"x": np.arange(SLIDE * windows) % 1009})
    start = time.perf_counter()
    assert len(fed(farm(op, N), batch)) == windows
    print(time.perf_counter() - start)


def cut(values: Any, size: int, slide: int) -> list[Any]:
    """The windows as lists, as a user would cut them; the first ones are partial."""
    ends = range(slide, len(values) + 1, slide)
    return [values[max(0, end - size) : end].tolist() for end in ends]


# -- pools by hand --------------------------------------------------------------------------------


def by_hand(windows: Callable[[], list[Any]], function: Callable[[Any], Any]) -> dict[str, Variant]:
    """The same without this library: with a chunk size of each kind, and with other libraries."""
    found: dict[str, Variant] = {
        f"pool {size or 'one each'}": partial(pooled, windows, function, size) for size in CHUNKS
    }
    for name, other in OTHERS.items():
        if find_spec(name) is not None:
            found[name] = partial(other, windows, function)
    return found


def pooled(windows: Callable[[], list[Any]], function: Any, chunk: int | None) -> list[Any]:
    """Windows cut in the parent, and given to a pool of processes."""
    with ProcessPoolExecutor(N) as pool:
        found = windows()
        return list(pool.map(function, found, chunksize=chunk or -(-len(found) // N)))


def with_joblib(windows: Callable[[], list[Any]], function: Any) -> list[Any]:
    """The same with joblib, which finds the size of batches by itself; its pool starts anew."""
    joblib, reuse = import_module("joblib"), import_module("joblib.externals.loky")
    try:
        run = joblib.delayed(function)
        return list(joblib.Parallel(n_jobs=N)(run(window) for window in windows()))
    finally:
        reuse.get_reusable_executor().shutdown(wait=True)


def with_dask(windows: Callable[[], list[Any]], function: Any) -> list[Any]:
    """The same as a bag of dask's, on its processes."""
    bag, found = import_module("dask.bag"), windows()
    parts = bag.from_sequence(found, npartitions=min(len(found), 16 * N))
    return list(parts.map(function).compute(scheduler="processes", num_workers=N))


OTHERS: dict[str, Callable[..., list[Any]]] = {"joblib": with_joblib, "dask": with_dask}


def compared(
    name: str,
    variants: Mapping[str, Variant],
    rounds: int,
    first: Callable[[], float] | None = None,
) -> Iterator[Measure]:
    """A farm against its operator, against the best pool, and against other libraries."""
    times = in_turn(name, variants, rounds)
    two = times
    if rounds > 1 and statistics.median(times["plain"]) < SHORT:
        two = in_turn(name, {each: variants[each] for each in ("plain", "farm")}, OFTEN)
    yield Measure(f"{name}: farm / plain", speed(two, "farm", "plain"), 0.95, True)
    pools = [each for each in variants if each.startswith("pool")]
    best = min(pools, key=lambda each: sum(times[each]))
    size, pool = best.removeprefix("pool "), speed(times, best, "plain")
    note = f"the pool is {pool:.2f} x plain with chunks of {size}"
    yield Measure(f"{name}: farm / pool", speed(times, "farm", best), 1.0, True, note)
    if first is not None:
        times["first farm"] = [first() for _ in range(rounds)]
        label = f"{name}: the first farm of a program / pool"
        yield Measure(label, speed(times, "first farm", best), 1.0, True)
    for other in OTHERS:
        if other in variants:
            note = f"it is {speed(times, other, 'plain'):.2f} x plain"
            yield Measure(f"{name}: farm / {other}", speed(times, "farm", other), None, True, note)


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
    hand = by_hand(partial(stretches, x, 10 * slide, slide), high_and_mean)
    yield from plainly(f"Aggregate, {rows:,} rows", total, keyed, scale.rounds, hand)
    per_key = min(1000, rows // 200)  # so that each of the 100 keys has some windows
    window = Sliding(Count(per_key), every=Count(per_key // 10), by="k")
    by_key = Aggregate(window, high=agg.max("x"), mean=agg.mean("x"))
    hand = by_hand(partial(stretches_by_key, x, per_key, 100), of_key)
    yield from plainly(f"Aggregate by key, {rows:,} rows", by_key, keyed, scale.rounds, hand)
    size = 10_000 if scale.skylines > 5 else 200
    points = Points.anticorrelated(4).draw(size + size // 5 * scale.skylines, 3)
    batch = pa.record_batch({f"x{i}": points[:, i] for i in range(4)})
    window = Sliding(Count(size), every=Count(size // 5))
    skyline = Skyline(window, "x0", "x1", "x2", "x3")
    hand = by_hand(partial(stretches, points, size, size // 5), best_points)
    hand = {each: partial(flat, variant) for each, variant in hand.items()}
    yield from plainly(f"skyline, {size:,} / {size // 5:,}", skyline, batch, scale.rounds, hand)


def plainly(
    name: str, op: Operator, batch: pa.RecordBatch, rounds: int, hand: Mapping[str, Variant]
) -> Iterator[Measure]:
    """A farm of an operator that reads whole batches."""
    variants: dict[str, Variant] = {
        "plain": partial(fed, op, batch, 65_536),
        "farm": partial(fed, farm(op, N), batch, 65_536),
        **hand,
    }
    yield from compared(name, variants, rounds)


def stretches(values: Any, size: int, slide: int) -> list[Any]:
    """Full windows of an array."""
    return [values[end - size : end] for end in range(size, len(values) + 1, slide)]


def stretches_by_key(values: Any, size: int, keys: int) -> list[Any]:
    """Full windows of each key, of which each has every `keys`-th value, in order of their ends."""
    own = [values[key::keys] for key in range(keys)]
    ends = range(size, len(own[0]) + 1, size // 10)
    return [(key, each[end - size : end]) for end in ends for key, each in enumerate(own)]


def high_and_mean(window: Any) -> dict[str, float]:
    """What the aggregates compute, with numpy."""
    return {"high": float(window.max()), "mean": float(window.mean())}


def of_key(window: Any) -> dict[str, Any]:
    """The same for a window of a key."""
    key, values = window
    return {"k": key, **high_and_mean(values)}


def best_points(window: Any) -> list[Any]:
    """The skyline of a window, by the operator itself: there is no faster way by hand."""
    batch = pa.record_batch({f"x{i}": window[:, i] for i in range(4)})
    return fed(Skyline(Tumbling(Count(len(window))), *batch.schema.names), batch, len(window))


def flat(variant: Variant) -> list[Any]:
    """The rows of all windows."""
    return [row for rows in variant() for row in rows]


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
