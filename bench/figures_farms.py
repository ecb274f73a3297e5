"""The figures in which the papers on farms evaluate them, from our measurements.

Throughput and latency by the number of workers, the size and the slide of windows, how many of them
go together, and how keys are distributed. Lines are in virtual time, with as many workers as one
likes; dots are of one and two worker processes on this machine, in wall time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from bench import charts, farms_real, harness
from bench.farms_virtual import SLIDING, T_F, price, slide_by_slide, timed
from bench.farms_work import (
    PATTERNS,
    SIZE,
    SLIDE,
    T_G,
    Burn,
    Price,
    expected,
    keyed,
    latency,
    light,
    same,
    turns_in,
)
from bench.harness import Measure
from windowlib import Count, Sliding, Time
from windowlib.farms import PaneFarm, RoundRobin, WindowFarm, WindowPartition
from windowlib.farms.models import CountWindows
from windowlib.farms.virtual import SimulationReport, simulate
from windowlib.workload import Keys, Poisson

Lines = dict[str, dict[float, float]]


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 160_000
    keys: int = 100
    workers: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 12)
    windows: int = 200
    rate: int = 2000
    seconds: float = 10.0
    real: bool = True
    """Whether worker processes are measured, too."""


FULL = Scale()


def run(scale: Scale = FULL) -> list[Measure]:
    """Draw all figures into bench/out; what they show."""
    return list(draw(scale))


def draw(scale: Scale) -> Iterator[Measure]:
    """One figure after the other."""
    for name, figure in FIGURES.items():
        drawn = figure(scale)
        harness.OUT.mkdir(exist_ok=True)
        (harness.OUT / f"figures_farms_{name}.svg").write_text(drawn.svg(), encoding="utf-8")
        for kind, found in (("V", drawn.virtual), ("R", drawn.real)):
            for line, points in found.items():
                for x, y in points.items():
                    label = f"{drawn.topic}, {kind} {line}, {drawn.x} {x:g}: {drawn.y}"
                    yield Measure(label, y, None, True)


class Figure(NamedTuple):
    """Lines in virtual time, and dots of what processes took."""

    topic: str
    title: str
    x: str
    y: str
    virtual: Lines
    real: Lines

    def svg(self) -> str:
        """The picture."""
        labels = {"x": self.x, "y": self.y, "title": self.title}
        return charts.lines(self.virtual, measured=self.real, **labels)


def _keyed_op() -> Burn:
    return Burn(Sliding(Count(SIZE), every=Count(SLIDE), by="key"))


def _at_once(kind: Any, op: Burn, batch: pa.RecordBatch, n: int, cost: Price) -> SimulationReport:
    return simulate(kind(op, workers=n, chunk=1 << 14), [(0.0, batch)], cost)


def _speed_ups(scale: Scale, keys: Keys, patterns: Mapping[str, Any]) -> Lines:
    op, batch = _keyed_op(), keyed(scale.rows, keys)
    found: Lines = {}
    for name, kind in patterns.items():
        runs = {n: _at_once(kind, op, batch, n, price()) for n in scale.workers}
        same(name, runs[max(scale.workers)].rows, runs[1].rows)
        found[name] = {n: runs[1].end / each.end for n, each in runs.items()}
    return found


def _processes(scale: Scale, keys: Keys) -> Lines:
    """How many times as fast one and two processes are as the operator alone."""
    if not scale.real:
        return {}
    turns = turns_in(T_G / 4)
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE), by="key"), turns / SLIDE)
    batch = keyed(40_000, keys)
    wanted = expected(light(op), [batch])
    found: Lines = {}
    for name, kind in PATTERNS.items():
        variants = {
            str(n): farms_real.variant(kind(op, workers=n, chunk=1 << 14), batch) for n in (1, 2)
        }
        variants["alone"] = farms_real.variant(farms_real.Alone(op), batch)
        runs = farms_real.in_turn(name, variants, dict.fromkeys(variants, wanted), 1)
        alone = runs["alone"][0].seconds
        found[name] = {n: alone / runs[str(n)][0].seconds for n in (1, 2)}
    return found


# -- 002, figure 6: throughput and latency of the four patterns -----------------------------------


def by_workers(scale: Scale) -> Figure:
    """Keys that come equally often."""
    keys = Keys.uniform(scale.keys)
    return Figure(
        "workers",
        "Throughput by workers, uniform keys",
        "workers",
        "times one worker",
        _speed_ups(scale, keys, PATTERNS),
        {name: {2: found[2]} for name, found in _processes(scale, keys).items()},
    )


def by_workers_skewed(scale: Scale) -> Figure:
    """One key with 16 % of the tuples."""
    found = _speed_ups(scale, Keys.heaviest(scale.keys, 0.16), PATTERNS)
    title = "Throughput by workers, one key with 16 % of the tuples"
    return Figure("workers", title, "workers", "times one worker", found, {})


def by_keys(scale: Scale) -> Figure:
    """The share of the most frequent key."""
    n = max(scale.workers)
    found: Lines = {}
    for share in (0.03, 0.08, 0.16, 0.33, 0.75):
        op, batch = _keyed_op(), keyed(scale.rows, Keys.heaviest(scale.keys, share))
        for name in ("WF", "KP", "PF"):
            one, many = (_at_once(PATTERNS[name], op, batch, each, price()) for each in (1, n))
            found.setdefault(name, {})[share] = one.end / many.end
    title = f"Throughput by the share of the most frequent key, {n} workers"
    return Figure("keys", title, "share", "times one worker", found, {})


def latency_by_workers(scale: Scale) -> Figure:
    """From the last tuple of a window to its row, under half of the load."""
    op, found = Burn(SLIDING), dict[str, dict[float, float]]()
    arrivals, due = slide_by_slide(scale.windows, T_F / 0.5)
    for name, kind in (("WF", WindowFarm), ("PF", PaneFarm), ("WP", WindowPartition)):
        found[name] = {
            n: 1e3 * latency(simulate(kind(op, workers=n), arrivals, price()), due)
            for n in scale.workers
        }
    title = "Latency by workers, windows one after the other"
    return Figure("latency", title, "workers", "ms", found, {})


# -- 000, figures 11 to 16, and 004: active and agnostic workers ----------------------------------


def _windows_a_second(op: Burn, active: bool, n: int, scale: Scale) -> float:
    batch = timed(Poisson(scale.rate).arrivals(int(scale.rate * scale.seconds)))
    farm = WindowFarm(op, workers=n, active=active)
    report = simulate(farm, [(scale.seconds, batch)], Price(5e-6), times="at")
    return len(report.rows) / max(report.end - scale.seconds, 1e-9)


def by_size(scale: Scale) -> Figure:
    """Windows of time that grow."""
    n = 4
    found = {
        name: {
            millis / 1000: _windows_a_second(
                Burn(Sliding(Time(f"{millis}ms"), every=Time("50ms"))), name == "active", n, scale
            )
            for millis in (250, 500, 1000, 2000, 4000)
        }
        for name in ("active", "agnostic")
    }
    title = f"Throughput by window size, slide 50 ms, {n} workers"
    return Figure("size", title, "seconds", "windows a second", found, {})


def by_slide(scale: Scale) -> Figure:
    """Windows that slide by tuples, which only agnostic workers have."""
    found: Lines = {}
    for millis in (500, 1000, 2000):
        found[f"{millis} ms"] = {
            slide: scale.rate
            * scale.seconds
            / _end(Burn(Sliding(Time(f"{millis}ms"), every=Count(slide))), scale)
            for slide in (25, 50, 100, 200, 400)
        }
    title = "Throughput by slide in tuples, windows of time, 4 agnostic workers"
    return Figure("slide", title, "tuples", "tuples a second", found, {})


def _end(op: Burn, scale: Scale) -> float:
    batch = timed(Poisson(scale.rate).arrivals(int(scale.rate * scale.seconds)))
    report = simulate(WindowFarm(op, workers=4), [(scale.seconds, batch)], Price(5e-6), times="at")
    return report.end - scale.seconds


# -- 002, figure 2b: how many windows go together -------------------------------------------------


def by_batch(scale: Scale) -> Figure:
    """Copies of a tuple that active workers get."""
    model = CountWindows(SIZE, SLIDE)
    found = {
        f"n = {n}": {float(b): RoundRobin(n, batch=b).copies(model) for b in (1, 2, 4, 8, 16)}
        for n in (2, 4, 12)
    }
    title = "Copies of a tuple by windows that go together"
    return Figure("batch", title, "windows", "copies", found, {})


def latency_by_batch(scale: Scale) -> Figure:
    """What it costs to wait for others."""
    op, found = Burn(SLIDING), dict[str, dict[float, float]]()
    arrivals, due = slide_by_slide(scale.windows, T_F / 2)
    for n in (2, 4, 12):
        found[f"n = {n}"] = {
            b: 1e3 * latency(simulate(WindowFarm(op, workers=n, batch=b), arrivals, price()), due)
            for b in (1, 2, 4, 8)
        }
    title = "Latency by windows that go together"
    return Figure("batch", title, "windows", "ms", found, {})


FIGURES: dict[str, Callable[[Scale], Figure]] = {
    "workers": by_workers,
    "workers_skewed": by_workers_skewed,
    "keys": by_keys,
    "latency": latency_by_workers,
    "size": by_size,
    "slide": by_slide,
    "batch": by_batch,
    "latency_batch": latency_by_batch,
}
