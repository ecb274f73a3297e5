"""Farms in virtual time: the same figures on every machine, with as many workers as one likes.

The emitter, the scheduler, the collector and the results are real; only how long a task takes comes
from a price list. So these measures say what the farms do, and not how fast this machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.farms_work import (
    PATTERNS,
    SIZE,
    SLIDE,
    T_G,
    T_H,
    Burn,
    Price,
    cut,
    expected,
    keyed,
    latency,
    plain,
    same,
)
from bench.harness import Measure
from windowlib import Count, Sliding, Time
from windowlib.errors import FarmError
from windowlib.farms import PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.virtual import simulate
from windowlib.workload import Keys, Poisson

T_F = SIZE // SLIDE * T_G + T_H
SLIDING = Sliding(Count(SIZE), every=Count(SLIDE))


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    keys: int = 1000
    rows_a_key: int = 1600
    workers: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 12)
    windows: int = 400
    """Windows of the measures with one partition."""
    rate: int = 2000
    """Tuples a second, where time counts."""
    seconds: float = 20.0


FULL = Scale()


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """B2 to B6, B11 and B12, and several nodes."""
    yield from scaling(scale)
    yield from nodes(scale)
    yield from skew(scale)
    yield from panes(scale)
    yield from latencies(scale)
    yield from slide_by_tuple(scale)
    yield from completion(scale)


def between(name: str, value: float, low: float, high: float) -> list[Measure]:
    """Two measures for a value that has to be in a range."""
    return [Measure(name, value, low, True), Measure(name, value, high, False)]


def keyed_op(size: int = SIZE, slide: int = SLIDE) -> Burn:
    return Burn(Sliding(Count(size), every=Count(slide), by="key"))


def price(size: int = SIZE, slide: int = SLIDE, pane: int = SLIDE) -> Price:
    return Price(T_G / pane, T_H, size / slide, slide)


# -- B2, B3: how far they scale -------------------------------------------------------------------


def scaling(scale: Scale) -> Iterator[Measure]:
    """B2: keys that come equally often."""
    op, batch = keyed_op(), keyed(scale.keys * scale.rows_a_key, Keys.uniform(scale.keys))
    wanted = expected(op, [batch])
    for name, kind in PATTERNS.items():
        ends = {}
        for n in scale.workers:
            found = simulate(kind(op, workers=n, chunk=1 << 16), [(0.0, batch)], price())
            same(f"B2 {name}", found.rows, wanted)
            ends[n] = found.end
        worst = min(ends[1] / ends[n] / n for n in scale.workers)
        label = f"B2 V {name}: speed-up / n, worst of n = 1 to {max(scale.workers)}"
        yield Measure(label, worst, 0.95, True)


def skew(scale: Scale) -> Iterator[Measure]:
    """B3: one key comes more often than the others."""
    op, n = keyed_op(), max(scale.workers)
    for p_max in (0.03, 0.16, 0.75):
        batch = keyed(scale.keys * scale.rows_a_key // 2, Keys.heaviest(scale.keys, p_max))
        found = {
            name: _speed_up(kind, op, batch, n) for name, kind in PATTERNS.items() if name != "WP"
        }
        cap = min(n, 1 / p_max)
        label = f"B3 V p_max {p_max:g}, n = {n}: KP speed-up"
        yield from between(f"{label} / min(n, 1 / p_max)", found["KP"] / cap, 0.95, 1.05)
        for name in ("WF", "PF"):
            label = f"B3 V p_max {p_max:g}, n = {n}: {name} speed-up / n"
            yield Measure(label, found[name] / n, 0.95, True)


def _speed_up(kind: Any, op: Burn, batch: pa.RecordBatch, n: int) -> float:
    one, many = (
        simulate(kind(op, workers=each, chunk=1 << 16), [(0.0, batch)], price()) for each in (1, n)
    )
    same(f"B3 {kind.__name__}", many.rows, one.rows)
    return one.end / many.end


# -- several nodes --------------------------------------------------------------------------------

NODES, CORES = 4, 2
LATENCY, BANDWIDTH, ROW = 200e-6, 125e6, 16
"""Of a network of 1 Gbit/s: seconds for a message, bytes a second, and bytes of a row."""


def by_network(cost: Price) -> Callable[[str, Any], float]:
    """A price list with the way of the rows to another node."""

    def seconds(work: str, args: Any) -> float:
        return cost(work, args) + LATENCY + _sent(work, args) * ROW / BANDWIDTH

    return seconds


def _sent(work: str, args: Any) -> int:
    ranges = args[0] if work in ("rows", "windows", "partials") else ()
    return 0 if isinstance(ranges, pa.Schema) else sum(hi - lo for _, lo, hi in ranges)


def nodes(scale: Scale) -> Iterator[Measure]:
    """Four nodes of two cores each, whose tasks get their rows by a network."""
    op, batch = keyed_op(), keyed(scale.keys * scale.rows_a_key, Keys.uniform(scale.keys))
    n = NODES * CORES
    for name, kind in PATTERNS.items():
        alone = simulate(kind(op, workers=1, chunk=1 << 16), [(0.0, batch)], price())
        spread = simulate(kind(op, workers=n, chunk=1 << 16), [(0.0, batch)], by_network(price()))
        same(f"nodes {name}", spread.rows, alone.rows)
        label = f"{NODES} nodes of {CORES} V {name}: speed-up / {n}, by a network of 1 Gbit/s"
        yield Measure(label, alone.end / spread.end / n, None, True)


# -- B4 to B6: panes and parts --------------------------------------------------------------------


def panes(scale: Scale) -> Iterator[Measure]:
    """B4: a slice is computed once."""
    for size, slide, pane in ((SIZE, SLIDE, 200), (500, 200, 100)):
        op = Burn(Sliding(Count(size), every=Count(slide)))
        batch, cost = plain(scale.windows * slide + size), price(size, slide, pane)
        wf, pf = (
            simulate(kind(op, workers=1), [(0.0, batch)], cost) for kind in (WindowFarm, PaneFarm)
        )
        same("B4", pf.rows, expected(op, [batch]))
        r, sp = size // pane, slide // pane
        gain = (r * T_G + T_H) / (sp * T_G + T_H)
        label = f"B4 V size {size}, slide {slide}: PF throughput / WF, by {gain:.2f} as predicted"
        yield from between(label, wf.end / pf.end / gain, 0.85, 1.1)


def latencies(scale: Scale) -> Iterator[Measure]:
    """B5 and B6: how long after its last tuple a window comes out."""
    r = SIZE // SLIDE
    wf = _latency(WindowFarm, scale, 1, T_F / 0.5)
    pf = _latency(PaneFarm, scale, 1, (T_G + T_H) / 0.5)
    label = f"B5 V load 0.5: WF latency / PF latency, r = {r}"
    yield from between(label, wf / pf, 0.8 * r, 1.1 * r)
    wp = _latency(WindowPartition, scale, 10, T_F / 0.5)
    pf = _latency(PaneFarm, scale, 10, T_F / 0.5)
    yield Measure("B6 V n = 10: WP latency / PF latency", wp / pf, 1.0, False)
    yield Measure("B6 V n = 10: WF latency / WP latency", wf / wp, None, True)


def _latency(kind: Any, scale: Scale, n: int, period: float) -> float:
    op, (arrivals, due) = Burn(SLIDING), slide_by_slide(scale.windows, period)
    found = simulate(kind(op, workers=n), arrivals, price())
    same("B5", found.rows, expected(op, [batch for _, batch in arrivals]))
    return latency(found, due)


def slide_by_slide(
    windows: int, period: float
) -> tuple[list[tuple[float, pa.RecordBatch]], list[float]]:
    """Tuples that come a slide at a time, so that each batch ends a window, and when these end."""
    batches = cut(plain(windows * SLIDE + SIZE), SLIDE)
    arrivals = [(i * period, batch) for i, batch in enumerate(batches)]
    return arrivals, [time for time, _ in arrivals[SIZE // SLIDE - 1 :]]


# -- B11, B12: windows of time --------------------------------------------------------------------


def timed(times: Any) -> pa.RecordBatch:
    """Tuples that come at given times."""
    micros = np.rint(np.asarray(times) * 1e6).astype(np.int64)
    return pa.record_batch(
        {"at": pa.array(micros, pa.duration("us")), "x": np.arange(len(micros)) % 1009}
    )


def slide_by_tuple(scale: Scale) -> Iterator[Measure]:
    """B11: windows that are known only when they are triggered."""
    batch = timed(Poisson(scale.rate).arrivals(int(scale.rate * scale.seconds)))

    def busy(millis: int, slide: int) -> float:
        op = Burn(Sliding(Time(f"{millis}ms"), every=Count(slide)))
        farm = WindowFarm(op, workers=4)
        end = scale.seconds * 2
        found = simulate(farm, [(end, batch)], Price(1e-6), times="at")
        same("B11", found.rows, expected(op, [batch], times="at", until=end))
        return sum(found.busy)

    base = busy(200, 100)
    yield from between("B11 V busy time, size 2 W / W", busy(400, 100) / base, 1.8, 2.2)
    yield from between("B11 V busy time, size 3 W / W", busy(600, 100) / base, 2.7, 3.3)
    yield from between("B11 V busy time, slide S / 2 S", base / busy(200, 200), 1.8, 2.2)
    try:
        WindowFarm(Burn(Sliding(Time("1s"), every=Count(100))), workers=2, active=True)
        refused = 0
    except FarmError:
        refused = 1
    yield Measure("B11 active workers are refused", refused, 1, True)


def completion(scale: Scale) -> Iterator[Measure]:
    """B12: a farm that is fast enough is done when the stream is."""
    times = Poisson(scale.rate).arrivals(int(scale.rate * scale.seconds))
    op = Burn(Sliding(Time("1s"), every=Time("50ms")))
    load = 3.5  # workers that the stream keeps busy
    cost = Price(load * 0.05 / scale.rate)
    arrivals = by_time(times, 0.05)
    for n in (2, 4, 8):
        found = simulate(WindowFarm(op, workers=n), arrivals, cost, times="at")
        target = 1.05 if load < 0.9 * n else None
        label = f"B12 V completion time / length of the stream, n = {n}, load {load / n:.2f} n"
        yield Measure(label, found.end / arrivals[-1][0], target, False)


def by_time(times: Any, period: float) -> list[tuple[float, pa.RecordBatch]]:
    """Tuples as batches that come at the ends of periods."""
    batch, found = timed(times), []
    ends = np.arange(1, int(times[-1] / period) + 1) * period
    cuts = [0, *np.searchsorted(times, ends).tolist()]
    for end, lo, hi in zip(ends.tolist(), cuts, cuts[1:], strict=False):
        found.append((round(end, 6), batch.slice(lo, hi - lo)))
    return found
