"""What preference queries cost: by dimensions, by kind of points, and with panes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from bench.harness import Measure, Setup, alternate, ratio
from bench.preference_panes import within
from windowlib import Count, Sliding, Tumbling
from windowlib.operators import Skyline, TopDelta
from windowlib.workload import Points

KINDS = ("correlated", "independent", "anticorrelated")
OVERLAPS = (2, 5, 10)
"""Panes of a window."""


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    panes: tuple[int, ...] = (1000, 5000)
    """Rows of a pane."""
    shared: tuple[int, ...] = (1000, 10_000)
    """Rows of a pane of overlapping windows."""
    dims: tuple[int, ...] = (4, 8)
    length: int = 20
    """Panes of a stream: fewer would time the opening of the operator."""
    windows: int = 40
    """Overlapping windows of a stream: with few, there are many more panes than windows."""
    rounds: int = 5


FULL = Scale()


def measured(scale: Scale = FULL) -> Iterator[Measure]:
    """B13 and B23."""
    yield from costs(scale)
    yield from panes(scale)


def rows(kind: str, dims: int, size: int) -> tuple[pa.RecordBatch, list[str]]:
    """Points as rows, and the names of their dimensions."""
    drawn, names = Points(kind, dims).draw(size, seed=1), [f"x{i}" for i in range(dims)]
    return pa.record_batch({name: drawn[:, i] for i, name in enumerate(names)}), names


# -- B13: kinds of points -------------------------------------------------------------------------


def costs(scale: Scale) -> Iterator[Measure]:
    """B13: more dimensions and larger skylines cost more, and so do factors."""
    for size in scale.panes:
        times = alternate(dict(_candidates(scale, size)), scale.rounds)
        for dims in scale.dims:
            for one, other in pairwise(KINDS):
                label = f"B13 R pane {size}, d = {dims}: skyline, time, {other} / {one}"
                found = ratio(times, f"sky {other} {dims}", f"sky {one} {dims}")
                yield Measure(label, found, 1.0, True)
            for kind in KINDS:
                label = f"B13 R pane {size}, d = {dims}, {kind}: time, top-delta / skyline"
                found = ratio(times, f"top {kind} {dims}", f"sky {kind} {dims}")
                yield from within(label, found, 1.2, 3.0)
        for few, many in pairwise(scale.dims):
            for kind in KINDS:
                label = f"B13 R pane {size}, {kind}: skyline, time, d = {many} / d = {few}"
                found = ratio(times, f"sky {kind} {many}", f"sky {kind} {few}")
                yield Measure(label, found, 1.0, True)


def _candidates(scale: Scale, size: int) -> Iterator[tuple[str, Setup]]:
    window = Tumbling(Count(size))
    for dims in scale.dims:
        for kind in KINDS:
            batch, names = rows(kind, dims, size * scale.length)
            yield f"sky {kind} {dims}", timed(Skyline(window, *names), batch)
            yield f"top {kind} {dims}", timed(TopDelta(window, *names, delta=10), batch)


def timed(operator: Any, batch: pa.RecordBatch) -> Setup:
    """A batch through an operator."""

    def setup() -> Callable[[], Any]:
        running = operator.open()
        return lambda: running.process_batch(batch)

    return setup


# -- B23: panes -----------------------------------------------------------------------------------


def panes(scale: Scale) -> Iterator[Measure]:
    """B23: windows anew, and from the partial results of the panes that they share."""
    for size in scale.shared:
        gains, ours = [], []
        for each in OVERLAPS:
            batch, names = rows("independent", 4, size * (scale.windows + each - 1))
            operator = Skyline(Sliding(Count(each * size), every=Count(size)), *names)
            ways = {
                "windows": partial(by_windows, operator, batch, size, each),
                "panes": partial(by_panes, operator, batch, size, each),
            }
            one, other = (way() for way in ways.values())
            assert one == other, f"B23 {each} panes a window: other results with panes"
            setups: dict[str, Setup] = {name: partial(_same, way) for name, way in ways.items()}
            setups["operator"] = timed(operator, batch)
            times = alternate(setups, scale.rounds)
            gains.append(ratio(times, "windows", "panes"))
            ours.append(ratio(times, "windows", "operator"))
        for each, gain, own in zip(OVERLAPS, gains, ours, strict=True):
            label = f"B23 R pane {size}, {each} panes a window: time,"
            needed = 1.5 if each == 5 else None
            yield Measure(f"{label} without panes / with panes", gain, needed, True)
            yield Measure(f"{label} without panes / Skyline over a batch", own, None, True)
        for (few, low), (many, high) in pairwise(zip(OVERLAPS, gains, strict=True)):
            label = f"B23 R pane {size}: gain, {many} / {few} panes a window"
            yield Measure(label, high / low, 1.0, True)


def _same(way: Callable[[], Any]) -> Callable[[], Any]:
    return way


def by_windows(operator: Any, batch: pa.RecordBatch, pane: int, each: int) -> list[Any]:
    """Every window from all its rows."""
    work, size = operator.partials, each * pane
    begins = range(0, batch.num_rows - size + 1, pane)
    return [work.rows(work.of(batch.slice(begin, size), begin)) for begin in begins]


def by_panes(operator: Any, batch: pa.RecordBatch, pane: int, each: int) -> list[Any]:
    """Every window from the partial results of its panes."""
    work = operator.partials
    parts = [work.of(batch.slice(at, pane), at) for at in range(0, batch.num_rows, pane)]
    windows = (parts[at : at + each] for at in range(len(parts) - each + 1))
    return [work.rows(work.merge(*window)) for window in windows]
