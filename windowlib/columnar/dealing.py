"""Rows dealt to the runs they belong to, in order of arrival: loops that numba compiles.

Nothing is sorted and nothing moved. A loop goes over the rows once and keeps what it needs of each
partition next to each other, so that a row costs one look at the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windowlib.columnar import reduce
from windowlib.columnar.compiled import _settle, _two_sum, compiled
from windowlib.columnar.grouping import Array, Places

# What `deal` keeps of each partition: how many tuples its open run has, which run that is (-1: it
# has none in this batch), and its first and last row (-1: it has none).
HELD, RUN, FIRST, LAST = range(4)


@compiled
def start(held: Places, partitions: Array) -> None:
    """How partitions are before the first row."""
    for partition in range(len(held)):
        partitions[partition, HELD] = held[partition]
        partitions[partition, RUN] = partitions[partition, FIRST] = partitions[partition, LAST] = -1


@compiled
def deal(
    ids: Array,
    size: int,
    partitions: Array,
    run: Array,
    owner: Places,
    before: Places,
    first: Places,
    closed: Places,
    rows: Places,
) -> tuple[int, int]:
    """Give each row to the open run of its partition, which closes with its `size`-th tuple.

    Fills in the run of each row; of each run its partition, how many tuples it goes on with and its
    first row; and the runs that close, with the rows that close them. Returns how many runs there
    are, and how many of them close.
    """
    runs = fired = 0
    for row in range(len(ids)):
        partition = np.uint64(ids[row])
        held, mine = partitions[partition, HELD], partitions[partition, RUN]
        if mine < 0:
            mine = runs
            partitions[partition, RUN] = mine
            if partitions[partition, FIRST] < 0:
                partitions[partition, FIRST] = row
            owner[mine] = partition
            before[mine] = held
            first[mine] = row
            runs += 1
        run[row] = mine
        partitions[partition, LAST] = row
        held += 1
        if held == size:
            closed[fired] = mine
            rows[fired] = row
            fired += 1
            held = 0
            partitions[partition, RUN] = -1
        partitions[partition, HELD] = held
    return runs, fired


@compiled
def seat(number: Places, free: Places, places: Places) -> None:
    """Give each number the next place that is free for it."""
    for index in range(len(number)):
        mine = np.uint64(number[index])
        places[index] = free[mine]
        free[mine] += 1


@compiled
def _sums(values: Array, run: Array, sums: Array) -> None:
    for row in range(len(values)):
        sums[np.uint64(run[row])] += values[row]


# As `compiled.pairs`, sums carry their errors along, and where signs differ, the errors of those.


@compiled
def _one_sign(values: Array, run: Array, sums: Array) -> None:
    for row in range(len(values)):
        mine = np.uint64(run[row])
        sums[mine, 0], error = _two_sum(sums[mine, 0], values[row])
        sums[mine, 1] += error


@compiled
def _any_sign(values: Array, run: Array, sums: Array) -> None:
    for row in range(len(values)):
        mine = np.uint64(run[row])
        sums[mine, 0], error = _two_sum(sums[mine, 0], values[row])
        sums[mine, 1], error = _two_sum(sums[mine, 1], error)
        sums[mine, 2] += error


@compiled
def _as_pairs(sums: Array, high: Array, low: Array) -> None:
    for index in range(len(sums)):
        high[index], low[index] = _settle(sums[index, 0], sums[index, 1], sums[index, 2])


def _picking(pick: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """The loop for `max` or `min`."""

    @compiled
    def picked(values: Array, run: Array, best: Array) -> None:
        for row in range(len(values)):
            mine = np.uint64(run[row])
            best[mine] = pick(best[mine], values[row])

    return picked


_largest, _smallest = _picking(max), _picking(min)


class DealtRuns:
    """The rows of runs that are not side by side; some runs go on with what is carried.

    `run` has the run of each row, `joins` the runs that go on, which start from `before`. None in
    place of values or of `before` is 0 for all.
    """

    def __init__(self, run: Array, runs: int, joins: Places) -> None:
        self.run, self.runs, self.joins = run, runs, joins

    def sums(self, values: Array | None, before: Array | None) -> Array | None:
        """The sums of whole numbers."""
        if values is None and before is None:
            return None
        sums = np.zeros(self.runs, np.int64)
        if before is not None:
            sums[self.joins] = before
        if values is not None:
            _sums(values, self.run, sums)
        return sums

    def two_sums(self, values: Array, high: Array, low: Array | None) -> tuple[Array, Array]:
        """The sums of floats as pairs; none is as large as `reduce.HUGE`."""
        sums = np.zeros((self.runs, 3))
        sums[self.joins, 0] = high
        if low is not None:
            sums[self.joins, 1] = low
        add = _one_sign if reduce.one_sign(values) else _any_sign
        add(values, self.run, sums)
        pairs = np.empty(self.runs), np.empty(self.runs)
        _as_pairs(sums, *pairs)
        return pairs

    def largest(self, values: Array, before: Array) -> Array:
        """The largest value of each run."""
        best = np.full(self.runs, reduce.limits(values)[0], values.dtype)
        best[self.joins] = before
        _largest(values, self.run, best)
        return best

    def smallest(self, values: Array, before: Array) -> Array:
        """The smallest value of each run."""
        best = np.full(self.runs, reduce.limits(values)[1], values.dtype)
        best[self.joins] = before
        _smallest(values, self.run, best)
        return best
