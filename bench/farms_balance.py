"""Farms in virtual time: where tuples go, who is busy, and in which order results come out."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.farms_virtual import between, by_time
from bench.farms_work import Burn, Price, cut, expected, latency, plain, same
from bench.harness import Measure
from windowlib import Count, Operator, OperatorModel, Sliding, Time
from windowlib.farms import KeyFarm, PaneFarm, RoundRobin, WindowFarm, WindowPartition, model_of
from windowlib.farms.scheduler import Collector
from windowlib.farms.virtual import VirtualPool, simulate
from windowlib.operators import Aggregate, agg
from windowlib.workload import Arrivals, Map2, Poisson

PERIOD = 0.05
"""Seconds between two windows."""


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 16_000
    """Tuples whose copies are counted."""
    panes: int = 400
    """How many slides a stream is long."""
    tuples: int = 1000
    """Tuples of a slide, on average."""
    seeds: int = 9
    orders: int = 200
    """Runs with random delays."""


FULL = Scale()


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """B7, B8, B9 and B28."""
    yield from copies(scale)
    yield from models(scale)
    yield from balance(scale)
    yield from order(scale)


# -- B7: copies of a tuple ------------------------------------------------------------------------


class Rows(Operator):
    """Looks at tuples one by one, so that workers can be sent them as they come."""

    model = OperatorModel(windows=[Sliding])
    function_kind = "incremental"

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit(total=sum(row["x"] for row in window[key]))


class Sent(VirtualPool):
    """Remembers which rows each worker was sent."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.rows: set[tuple[int, int, int]] = set()

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        pieces = args[1] if work == "take" else args[2] if work == "close" else ()
        for chunk, lo, hi in pieces:
            self.rows |= {(worker, chunk, row) for row in range(lo, hi)}
        super().send(worker, work, args, oldest)


def copies(scale: Scale) -> Iterator[Measure]:
    """B7: workers that a tuple goes to, if `batch` neighbouring windows go to the same one."""
    size, slide = 100, 20
    spec = Sliding(Count(size), every=Count(slide))
    model: Any = model_of(spec)
    points = np.arange(size, size + scale.rows)  # those before are in fewer windows
    for batch in (1, 2, 4, 16):
        off, sent_off = 0.0, 0.0
        for n in (9, 3):
            formula = min(n, 1 + (size - slide) / (batch * slide))
            rows, _ = RoundRobin(n, batch).workers_of(model, points)
            off = max(off, abs(len(rows) / len(points) / formula - 1))
            sent = _sent(Rows(spec), n, batch, scale.rows) / scale.rows
            sent_off = max(sent_off, abs(sent / formula - 1))
        label = f"batches of {batch}: copies of a tuple, off the formula by"
        yield Measure(f"B7 mapping, {label}", off, 0.01, False)
        yield Measure(f"B7 active farm, {label}", sent_off, 0.01, False)


def _sent(op: Operator, n: int, batch: int, rows: int) -> int:
    farm = WindowFarm(op, workers=n, batch=batch, active=True)
    running = farm.open(pool=lambda workers, job: Sent(workers, job, cost=lambda *_: 0.0))
    running.insert_batch(plain(rows))
    running.finish()
    return len(running.pool.rows)


# -- B8, B9: who is busy --------------------------------------------------------------------------


def models(scale: Scale) -> Iterator[Measure]:
    """B8: workers that own windows, and workers that take the next one."""
    for name, period, windows in (("5 s / 50 ms", 0.05, 100), ("1 s / 10 ms", 0.01, 100)):
        rate, n = 2000, 4
        times = Poisson(rate).arrivals(int(rate * period * scale.panes))
        millis = round(period * 1000)
        op = Burn(Sliding(Time(f"{millis * windows}ms"), every=Time(f"{millis}ms")))
        price = Price(0.8 * n / (windows * rate))
        arrivals = by_time(times, period)
        rates = []
        for active in (False, True):
            farm = WindowFarm(op, workers=n, active=active)
            found = simulate(farm, arrivals, price, times="at")
            batches, end = [each for _, each in arrivals], arrivals[-1][0]
            same("B8", found.rows, expected(op, batches, times="at", until=end))
            rates.append(len(found.rows) / found.end)
        yield from between(
            f"B8 V {name}: windows a second, active / agnostic", rates[1] / rates[0], 0.95, 1.05
        )


def balance(scale: Scale) -> Iterator[Measure]:
    """B9: round robin and on demand, where some windows are heavier than others."""
    rate = scale.tuples / PERIOD
    bursts = Map2(rate=rate, dispersion=0.6 * scale.tuples)
    wanted = {(1, 2): 1.3, (1, 4): 1.6, (2, 4): 1.2}
    for overlap in (1, 2, 4):
        for n in (2, 4):
            ratio, note = _median(bursts, overlap, n, scale)
            label = f"B9 V bursts, size {overlap} S, n = {n}: latency, round robin / on demand"
            if (overlap, n) in wanted:
                yield Measure(label, ratio, wanted[overlap, n], True, note)
            else:
                yield from between(f"{label} (control)", ratio, 0.95, 1.05)
    for n in (2, 4):
        label = f"B9 V Poisson, size S, n = {n}: latency, round robin / on demand (control)"
        ratio, _ = _median(Poisson(rate=rate), 1, n, scale)
        yield from between(label, ratio, 0.95, 1.05)


def _median(process: Arrivals, overlap: int, n: int, scale: Scale) -> tuple[float, str]:
    """The median of several streams, and how far they are apart, which is a lot with bursts."""
    found = [_unbalanced(process, overlap, n, scale, seed) for seed in range(scale.seeds)]
    note = f"single streams {min(found):.2f} to {max(found):.2f}"
    return statistics.median(found), note


def _unbalanced(process: Arrivals, overlap: int, n: int, scale: Scale, seed: int) -> float:
    """The ordered latency with round robin by that on demand, for the same stream."""
    times = process.arrivals(scale.tuples * scale.panes, seed)
    arrivals = by_time(times, PERIOD)
    millis = round(PERIOD * 1000)
    op = Aggregate(Sliding(Time(f"{millis * overlap}ms"), every=Time(f"{millis}ms")), n=agg.count())
    # The load counts what came, and not what comes on average.
    per_slide = overlap * len(times) / len(arrivals)
    price = Price(0.9 * n * PERIOD / per_slide)
    found = []
    for way in ("round-robin", "on-demand"):
        farm = WindowFarm(op, workers=n, scheduling=way)
        report = simulate(farm, arrivals, price, times="at")
        found.append(latency(report, [end for end, _ in arrivals]))
    return found[0] / found[1]


# -- B28: order -----------------------------------------------------------------------------------


def order(scale: Scale) -> Iterator[Measure]:
    """B28: results come out in order, none is missing, whenever workers are done."""
    yield Measure("B28 collector: results out of order or missing", _collected(scale), 0, False)
    yield Measure("B28 farms: runs that differ from the operator", _ordered(scale), 0, False)


def _collected(scale: Scale) -> int:
    rng, wrong = np.random.default_rng(28), 0
    for _ in range(scale.orders):
        collector: Collector[list[int]] = Collector()
        numbers = [collector.reserve() for _ in range(100)]
        given = {i: [i] if rng.random() < 0.7 else [] for i in numbers}  # some have nothing
        out = [each for i in rng.permutation(100).tolist() for each in collector.add(i, given[i])]
        wrong += out != [given[i] for i in numbers] or len(collector) > 0
    return wrong


def _ordered(scale: Scale) -> int:
    rng, wrong = np.random.default_rng(29), 0
    # Half of the time nothing comes, so many windows are empty.
    times = np.sort(rng.uniform(0, 0.05, 2000) + 0.1 * rng.integers(0, 10, 2000))
    micros = pa.array((times * 1e6).astype(np.int64), pa.duration("us"))
    columns = {"at": micros, "key": rng.integers(0, 5, 2000), "x": rng.integers(0, 99, 2000)}
    batches = cut(pa.record_batch(columns), 100)
    for by in (None, "key"):
        op = Burn(Sliding(Time("20ms"), every=Time("5ms"), by=by))
        wanted = expected(op, batches, times="at")
        kinds = [WindowFarm, PaneFarm, WindowPartition] + ([KeyFarm] if by else [])
        arrivals = [(batch.column("at")[-1].as_py().total_seconds(), batch) for batch in batches]
        for run in range(max(1, scale.orders // 20)):
            kind, n = kinds[run % len(kinds)], 2 + run % 4
            found = simulate(
                kind(op, workers=n), arrivals, lambda *_: float(rng.exponential(0.01)), times="at"
            )
            seen = _by_key if kind is KeyFarm else list
            wrong += seen(found.rows) != seen(wanted)
    return wrong


def _by_key(rows: list[Any]) -> list[Any]:
    """What keys send, each in its order: what time sends comes worker by worker.

    Without empty windows, of which every worker has one that ticks.
    """
    return sorted((row for row in rows if row["size"]), key=lambda row: row["key"])
