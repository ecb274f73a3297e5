"""Farms with two worker processes: wall time, variants in turn, medians of the rounds.

Workers are started and have answered before the clock runs, and are stopped after it. The function
burns a time that is calibrated first, as turns of a loop, so all variants do the same work.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from bench.farms_virtual import between, by_time, timed
from bench.farms_work import (
    PATTERNS,
    SIZE,
    SLIDE,
    T_G,
    T_H,
    Burn,
    cut,
    expected,
    keyed,
    light,
    plain,
    same,
    turns_in,
)
from bench.harness import Measure, ratio
from windowlib import Count, Sliding, Time
from windowlib.farms import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.scheduler import Task
from windowlib.workload import Keys, Poisson

Feed = Callable[[Any], None]
N = 2


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    keys: int = 10
    rows_a_key: int = 4000
    windows: int = 100
    """Windows of the measures with one partition."""
    seconds: float = 4.0
    """How long streams are, where time counts."""
    pane: float = T_G
    """Seconds that a pane takes."""
    rounds: int = 5


FULL = Scale()


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """B2 to B6, B8, B10 and B12."""
    turns = turns_in(scale.pane)
    yield from scaling(scale, turns)
    yield from skew(scale, turns)
    yield from panes(scale, turns)
    yield from latencies(scale, turns)
    yield from models(scale, turns)
    yield from chunks(scale, turns)
    yield from completion(scale, turns)


# -- how it is timed ------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What one run took."""

    seconds: float
    worked: float
    """Seconds in the processor, of all workers."""
    rows: list[Any]


class Variant(NamedTuple):
    """A farm and what it gets: some rows to warm up with, then those that count."""

    farm: Farm | Alone
    warm: Feed
    feed: Feed


class Alone:
    """The operator without a farm, which is run as one."""

    def __init__(self, operator: Burn) -> None:
        self._operator = operator

    @contextmanager
    def running(self) -> Iterator[Any]:
        """The operator at work; what it is given has come out when the call is over."""
        running: Any = self._operator.open()
        running.drain, running.pool = _done, _NO_POOL
        yield running


class NoPool(NamedTuple):
    """No worker."""

    pids: tuple[int, ...] = ()


_NO_POOL = NoPool()


def _done() -> None:
    """There is nothing to wait for."""


def ran(variant: Variant) -> Ran:
    """Run a farm: the time from the first row that counts until everything has come out."""
    out: list[Any] = []
    with variant.farm.running() as running:
        running.connect(0, out.append)
        if isinstance(variant.farm, Farm):
            await_answers(running)
        variant.warm(running)
        running.drain()
        before, start = _worked(running), time.perf_counter()
        variant.feed(running)
        running.drain()
        seconds, worked = time.perf_counter() - start, _worked(running) - before
        running.finish()
    return Ran(seconds, worked, out)


def await_answers(running: Any) -> None:
    """Have every worker answer, so that all have started."""
    work, args = ("snapshot", ()) if isinstance(running.farm, KeyFarm) else ("merged", ([0],))
    for worker in range(running.farm.workers):
        running.submit(Task(work, args, owner=worker))
    while len(running.scheduler):
        running.pump(block=True)


def _worked(running: Any) -> float:
    """Seconds in the processor that the workers had."""
    ticks = 0
    for pid in running.pool.pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def in_turn(
    label: str, variants: Mapping[str, Variant], wanted: Mapping[str, list[Any]], rounds: int
) -> dict[str, list[Ran]]:
    """All variants one after the other, then back; each run has to give the right rows."""
    found: dict[str, list[Ran]] = {name: [] for name in variants}
    order = list(variants)
    for _ in range(rounds):
        for name in order:
            took = ran(variants[name])
            same(f"{label} {name}", took.rows, wanted[name])
            found[name].append(took)
        order.reverse()
    return found


def _wall(found: Mapping[str, list[Ran]]) -> dict[str, list[float]]:
    return {name: [each.seconds for each in runs] for name, runs in found.items()}


def variant(
    farm: Farm | Alone, batch: pa.RecordBatch, times: str | None = None, warm: int | None = None
) -> Variant:
    """A farm that gets a batch at once, its first rows (a fifth) before the clock runs."""
    first = batch.num_rows // 5 if warm is None else warm

    def feed(lo: int, hi: int) -> Feed:
        return lambda running: running.insert_batch(batch.slice(lo, hi - lo), times=times)

    return Variant(farm, feed(0, first), feed(first, batch.num_rows))


# -- B2, B3 ---------------------------------------------------------------------------------------


def scaling(scale: Scale, turns: float) -> Iterator[Measure]:
    """B2: two workers against one."""
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE), by="key"), turns / SLIDE)
    rows = scale.keys * scale.rows_a_key
    data = {name: rows * (3 if name == "PF" else 1) for name in PATTERNS}  # it has less to do
    for name, kind in PATTERNS.items():
        batch = keyed(data[name], Keys.uniform(scale.keys))
        gain, alone = _one_and_two(f"B2 {name}", kind, op, batch, scale)
        yield Measure(f"B2 R {name}: speed-up of {N} workers / {N}", gain / N, 0.8, True)
        yield Measure(f"B2 R {name}: {N} workers / the operator alone", alone, 0.95, True)


def skew(scale: Scale, turns: float) -> Iterator[Measure]:
    """B3: a key with three quarters of the tuples."""
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE), by="key"), turns / SLIDE)
    batch = keyed(scale.keys * scale.rows_a_key, Keys.heaviest(1000, 0.75))
    found = {name: _one_and_two("B3", PATTERNS[name], op, batch, scale) for name in ("KP", "WF")}
    yield Measure(f"B3 R p_max 0.75: KP speed-up of {N} workers", found["KP"][0], 1.4, False)
    yield Measure(f"B3 R p_max 0.75: WF speed-up of {N} workers", found["WF"][0], 1.6, True)
    for name, (_, alone) in found.items():
        label = f"B3 R p_max 0.75: {name}, {N} workers / the operator alone"
        yield Measure(label, alone, 0.95, True)


def _one_and_two(
    label: str, kind: Any, op: Burn, batch: pa.RecordBatch, scale: Scale
) -> tuple[float, float]:
    """How many times as fast two workers are: as one, and as the operator alone."""
    wanted = expected(light(op), [batch])  # without the burning
    variants = {str(n): variant(kind(op, workers=n, chunk=1 << 14), batch) for n in (1, N)}
    variants["alone"] = variant(Alone(op), batch)
    found = in_turn(label, variants, dict.fromkeys(variants, wanted), scale.rounds)
    wall = _wall(found)
    return ratio(wall, "1", str(N)), ratio(wall, "alone", str(N))


# -- B4 to B6 -------------------------------------------------------------------------------------


def panes(scale: Scale, turns: float) -> Iterator[Measure]:
    """B4: one worker, whole windows and panes."""
    for size, slide, pane in ((SIZE, SLIDE, 200), (500, 200, 100)):
        op = Burn(Sliding(Count(size), every=Count(slide)), turns / pane)
        batch = plain(scale.windows * slide + size)
        wanted = expected(light(op), [batch])
        variants = {
            kind.__name__: variant(kind(op, workers=1), batch) for kind in (WindowFarm, PaneFarm)
        }
        variants["alone"] = variant(Alone(op), batch)
        found = in_turn("B4", variants, dict.fromkeys(variants, wanted), scale.rounds)
        gain = ratio(_wall(found), "WindowFarm", "PaneFarm")
        r, sp = size // pane, slide // pane
        predicted = (r * T_G + T_H) / (sp * T_G + T_H)
        label = f"B4 R size {size}, slide {slide}: PF throughput / WF, by {predicted:.2f}"
        yield from between(f"{label} as predicted", gain / predicted, 0.85, 1.1)
        alone = ratio(_wall(found), "alone", "PaneFarm")
        label = f"B4 R size {size}, slide {slide}: PF, one worker / the operator alone"
        yield Measure(label, alone, 0.95, True)


def latencies(scale: Scale, turns: float) -> Iterator[Measure]:
    """B5 and B6: from the last tuple of a window to its row, with nothing else to do."""
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE)), turns / SLIDE)
    batches = cut(plain(scale.windows * SLIDE), SLIDE)
    wanted = expected(light(op), batches)
    taken: dict[str, list[float]] = {}

    def feed(name: str) -> Feed:
        def one_by_one(running: Any) -> None:
            seconds = []
            for batch in batches:
                start = time.perf_counter()
                running.insert_batch(batch)
                running.drain()
                seconds.append(time.perf_counter() - start)
            taken.setdefault(name, []).append(statistics.median(seconds[SIZE // SLIDE :]))

        return one_by_one

    variants = {
        kind.__name__: Variant(kind(op, workers=N), _nothing, feed(kind.__name__))
        for kind in (WindowFarm, PaneFarm, WindowPartition)
    }
    variants["alone"] = Variant(Alone(op), _nothing, feed("alone"))
    in_turn("B6", variants, dict.fromkeys(variants, wanted), scale.rounds)
    r = SIZE // SLIDE
    gain = ratio(taken, "WindowFarm", "PaneFarm")
    yield from between(f"B5 R WF latency / PF latency, r = {r}", gain, 0.8 * r, 1.1 * r)
    gain = ratio(taken, "WindowFarm", "WindowPartition")
    yield Measure(f"B6 R n = {N}: WF latency / WP latency", gain, 1.6, True)
    for name, target in (("WindowFarm", None), ("PaneFarm", 0.95), ("WindowPartition", 0.95)):
        label = f"B5, B6 R latency of the operator alone / {name}"
        yield Measure(label, ratio(taken, "alone", name), target, True)


# -- B8, B10, B12 ---------------------------------------------------------------------------------


def models(scale: Scale, turns: float) -> Iterator[Measure]:
    """B8: workers that own windows, and workers that take the next one."""
    rate = 2000
    for millis, windows in ((50, 100), (10, 100)):
        full = rate * millis * windows // 1000  # rows until windows are full: to warm up with
        batch = timed(Poisson(rate).arrivals(full + int(rate * scale.seconds)))
        spec = Sliding(Time(f"{millis * windows}ms"), every=Time(f"{millis}ms"))
        op = Burn(spec, 2 * turns / full)
        wanted = expected(Burn(spec), [batch], times="at")
        variants = {
            name: variant(WindowFarm(op, workers=N, active=name == "active"), batch, "at", full)
            for name in ("agnostic", "active")
        }
        variants["alone"] = variant(Alone(op), batch, "at", full)
        found = in_turn("B8", variants, dict.fromkeys(variants, wanted), scale.rounds)
        label = f"B8 R {millis * windows / 1000:g} s / {millis} ms"
        rates = ratio(_wall(found), "agnostic", "active")
        yield from between(f"{label}: windows a second, active / agnostic", rates, 0.95, 1.05)
        alone = ratio(_wall(found), "alone", "active")
        yield Measure(f"{label}: active / the operator alone", alone, 0.95, True)
        worked = {name: [each.worked for each in runs] for name, runs in found.items()}
        name = f"{label}: processor time of a window, agnostic / active"
        yield Measure(name, ratio(worked, "agnostic", "active"), 1.15, False)


def chunks(scale: Scale, turns: float) -> Iterator[Measure]:
    """B10: how many rows are stored together."""
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE)), turns / SLIDE / 2)
    batch = plain(scale.windows * SLIDE + SIZE)
    sizes = (50, 200, 1000, 5000)
    variants = {str(size): variant(WindowFarm(op, workers=N, chunk=size), batch) for size in sizes}
    variants["alone"] = variant(Alone(op), batch)
    wanted = expected(light(op), [batch])
    times = _wall(in_turn("B10", variants, dict.fromkeys(variants, wanted), scale.rounds))
    for size, target, higher in ((50, 1.02, True), (200, None, False), (1000, 1.1, False)):
        yield Measure(
            f"B10 R time, chunks of {size} / 5000", ratio(times, str(size), "5000"), target, higher
        )
    name = "B10 R chunks of 5000 / the operator alone"
    yield Measure(name, ratio(times, "alone", "5000"), 0.95, True)
    yield from _common_divisor(scale, turns)


def _common_divisor(scale: Scale, turns: float) -> Iterator[Measure]:
    """Chunks of a fifth of a second, of which every window is a whole number."""
    rate = 5000
    spec = Sliding(Time("1s"), every=Time("400ms"))
    op = Burn(spec, turns / SLIDE / 2)
    whole = timed(_stream(rate, scale))
    sizes: dict[str, Any] = {"fixed": 1000, "gcd": Time("200ms")}
    variants = {
        name: variant(WindowFarm(op, workers=N, chunk=size), whole, "at")
        for name, size in sizes.items()
    }
    wanted = expected(Burn(spec), [whole], times="at")
    times = _wall(in_turn("B10", variants, dict.fromkeys(variants, wanted), scale.rounds))
    name = "B10 R time, chunks of the common divisor of size and slide / of 1000 rows"
    yield Measure(name, ratio(times, "gcd", "fixed"), 1.1, False)


def completion(scale: Scale, turns: float) -> Iterator[Measure]:
    """B12: a stream at its own pace."""
    rate, load = 2000, 0.7 * N
    spec = Sliding(Time("1s"), every=Time("50ms"))
    arrivals = by_time(_stream(rate, scale), 0.05)
    op = Burn(spec, turns / scale.pane * load * 0.05 / rate)
    first = len(arrivals) // 5
    (begin, _), (end, _) = arrivals[first - 1], arrivals[-1]

    def feed(arrivals: list[tuple[float, pa.RecordBatch]], begin: float) -> Feed:
        def paced(running: Any) -> None:
            start = time.perf_counter() - begin
            for due, batch in arrivals:
                time.sleep(max(0.0, start + due - time.perf_counter()))
                running.insert_batch(batch, times="at")
                running.advance(due)

        return paced

    farm = WindowFarm(op, workers=N)
    wf = Variant(farm, feed(arrivals[:first], 0.0), feed(arrivals[first:], begin))
    wanted = expected(Burn(spec), [batch for _, batch in arrivals], times="at", until=end)
    variants = {"WF": wf, "alone": wf._replace(farm=Alone(op))}
    found = in_turn("B12", variants, dict.fromkeys(variants, wanted), min(3, scale.rounds))
    took = {name: statistics.median(each.seconds for each in runs) for name, runs in found.items()}
    name = f"B12 R completion time / length of the stream, load {load / N:.2f} n"
    yield Measure(name, took["WF"] / (end - begin), 1.05, False)
    yield Measure("B12 R completion, WF / the operator alone", took["alone"] / took["WF"], 1, True)


def _stream(rate: int, scale: Scale) -> Any:
    return Poisson(rate).arrivals(int(rate * scale.seconds))


def _nothing(running: Any) -> None:
    """No row to warm up with."""
