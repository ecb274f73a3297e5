"""A skyline on several workers in virtual time: what pruning does to how it scales.

A task costs as much as its kernels compare pairs of points, so the figures are the same on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from bench.harness import Measure
from windowlib import Count, Tumbling, replay
from windowlib.columnar.kernels import skyline
from windowlib.columnar.kernels.skyline import Points as Coordinates
from windowlib.columnar.primitives import dominance as rivals
from windowlib.columnar.primitives import use
from windowlib.farms import WindowPartition
from windowlib.farms.virtual import simulate
from windowlib.farms.worker import PartialReference
from windowlib.operators import Skyline
from windowlib.workload import Points

KINDS = ("correlated", "independent", "anticorrelated")


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    size: int = 5000
    """Rows of a window."""
    windows: int = 24
    dims: int = 4
    workers: tuple[int, ...] = (2, 4, 8, 12)


FULL = Scale()


def measured(scale: Scale = FULL) -> Iterator[Measure]:
    """B14: window partitioning, with points of three kinds."""
    for n in scale.workers:
        ups = {kind: speed_up(Points(kind, scale.dims), n, scale) for kind in KINDS}
        note = ", ".join(f"{kind} {up:.2f}" for kind, up in ups.items())
        for one, other in pairwise(KINDS):
            label = f"B14 V n = {n}: speed-up, {other} / {one}"
            # Strictly more: what rounding could make of equal ones does not count.
            yield Measure(label, ups[other] / ups[one], 1.0001, True, note)


def speed_up(points: Points, workers: int, scale: Scale) -> float:
    """How much sooner windows are done that several workers have parts of."""
    drawn = points.draw(scale.size * scale.windows, seed=1)
    names = [f"x{i}" for i in range(scale.dims)]
    batch = pa.record_batch({name: drawn[:, i] for i, name in enumerate(names)})
    operator = Skyline(Tumbling(Count(scale.size)), *names)
    wanted = list(replay(operator, batch))
    ends = []
    for n in (1, workers):
        farm = WindowPartition(operator, workers=n, chunk=scale.size)
        with patch("windowlib.farms.worker.LARGE", 1 << 40):  # parts are looked at on their way
            found = simulate(farm, [(0.0, batch)], Tests(drawn.T, scale.size))
        assert wanted == found.rows, f"B14 n = {n}: other results than the operator's"
        ends.append(found.end)
    return ends[0] / ends[1]


class Tests:
    """What a task costs: the dominance tests that the kernels make for it."""

    def __init__(self, points: Coordinates, chunk: int) -> None:
        self._points, self._chunk = points, chunk

    def __call__(self, work: str, args: Any) -> float:
        if work == "finish":
            return float(counted(lambda: self._merge(args[1], [])))
        pieces, given, windows, _ = args
        rows = np.concatenate([np.arange(lo, hi) + c * self._chunk for c, lo, hi in pieces])
        parts = [self._points[:, rows[each.lo : each.hi]] for each in given]

        def work_done() -> None:
            made = [part[:, skyline.skyline(part)] for part in parts]
            for _, merged, _ in windows:
                self._merge(merged, made)

        return float(counted(work_done))

    def _merge(self, parts: list[Any], made: list[Coordinates]) -> None:
        """The parts of a window, all at once; some have just been made."""
        clouds = [
            made[part.at]
            if isinstance(part, PartialReference)
            else np.stack([c.to_numpy() for c in part.rows.columns])
            for part in parts
        ]
        part = np.repeat(np.arange(len(clouds)), [cloud.shape[1] for cloud in clouds])
        skyline.skyline(np.concatenate(clouds, axis=1), part)


def counted(work: Callable[[], object]) -> int:
    """How many pairs of points are compared in some work."""
    pairs, blocks, alone = 0, rivals._nowhere_greater, rivals.less_somewhere

    def counting(ones: Coordinates, others: Coordinates) -> Any:
        nonlocal pairs
        pairs += ones.shape[1] * others.shape[1]
        return blocks(ones, others)

    def counting_one(points: Coordinates, place: int) -> Any:
        nonlocal pairs
        pairs += points.shape[1]
        return alone(points, place)

    with (
        use("numpy"),
        patch.object(rivals, "_nowhere_greater", counting),
        patch.object(rivals, "less_somewhere", counting_one),
    ):
        work()
    return pairs
