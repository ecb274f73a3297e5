"""The primitives with numba, where that is much faster than numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from windowlib.columnar.primitives import compiled_loops, delta_chains, grouping, reductions
from windowlib.columnar.primitives.grouping import Array, Places

# Counting goes over all possible ids. With more than so many of them for a row, numpy sorts.
IDS_PER_ROW = 4

# What was measured, in ns: an extent on its own (more where lengths vary, so that the processor
# cannot foresee the end of the loop), and each value it covers, by what is wanted.
ALONE, ALONE_UNEVEN = 2.0, 10.0
SUM, PICK, PAIR = 0.12, 0.2, 2.0

# The same for overlapping extents that ascend: for each value that they span, and each extent.
SPANNED_PICK, SLIDING_PICK = 1.5, 1.0
SPANNED_PAIR, SLIDING_PAIR = 4.0, 5.0

# The same for pairs by digits, which numpy takes in any order.
SPANNED_DIGITS, DIGITS = 5.0, 20.0

# Below this length, doubling with numpy is faster where an extent begins at every value.
SHORT = 16

# The same for differences of running sums of integers.
SPANNED_SUM, DIFFERENCE = 0.6, 2.5


def group(ids: Array, partitions: int) -> tuple[Places, Places, Places]:
    """As `grouping.group`: count the rows of each id, then put each row in its place."""
    rows = len(ids)
    if not rows or partitions == 1:
        return grouping.group(ids, partitions)
    low = int(ids.min())
    span = int(ids.max()) - low + 1
    if span == 1 or span > IDS_PER_ROW * rows:
        return grouping.group(ids, partitions)
    ends = np.zeros(span, np.int64)
    found = compiled_loops.count(ids, low, ends)
    order = np.empty(rows, np.int64)
    compiled_loops.place(ids, low, ends, order)
    touched, starts = np.empty(found, np.int64), np.empty(found + 1, np.int64)
    compiled_loops.segments(ends, low, touched, starts)
    return order, touched, starts


def look_up(table: Array, base: int, values: Array) -> Array | None:
    """As `grouping.look_up`."""
    found = np.empty(len(values), table.dtype)
    return found if compiled_loops.look_up(table, base, values, found) else None


def gather(values: Array, order: Places) -> Array:
    """As `grouping.gather`."""
    if not _fits(values, order):
        return grouping.gather(values, order)
    result = np.empty(len(order), values.dtype)
    compiled_loops.gather(values, order, result)
    return result


def _fits(values: Array, wanted: Array) -> bool:
    """Whether there is something to do, for the types that loops are compiled for."""
    return len(wanted) > 0 and len(values) > 0 and values.dtype in (np.int64, np.float64)


class _Shape:
    """What the choice of a loop depends on."""

    def __init__(self, lo: Array, hi: Array) -> None:
        self.count = len(lo)
        self.span, self.total, self.longest, self.ascends = compiled_loops.shape(lo, hi)
        self.even = self.total == self.longest * self.count

    def alone(self, value: float) -> float:
        """What it costs to take each extent on its own."""
        return (ALONE if self.even else ALONE_UNEVEN) * self.count + value * self.total

    def sliding(self, value: float, extent: float) -> float:
        """What it costs to go over all extents together."""
        return value * self.span + extent * self.count


def sums(values: Array, lo: Array, hi: Array) -> Array:
    """As `reductions.sums`."""
    if not _fits(values, lo):
        return reductions.sums(values, lo, hi)
    shape = _Shape(lo, hi)
    result = np.empty(len(lo), values.dtype)
    if values.dtype.kind == "i":
        if shape.alone(SUM) > shape.sliding(SPANNED_SUM, DIFFERENCE):
            return reductions.sums(values, lo, hi)
        compiled_loops.int_sums(values, lo, hi, result)
        return result
    if shape.alone(SUM) <= shape.sliding(SPANNED_PAIR, SLIDING_PAIR):
        compiled_loops.float_sums(values, lo, hi, result)
        return result
    if shape.even or not shape.ascends:
        return reductions.sums(values, lo, hi)
    high, low = _sliding_pairs(values, lo, hi, shape.longest)
    return high + low


def largest(values: Array, lo: Array, hi: Array) -> Array:
    """As `reductions.largest`."""
    return _picked(_LARGEST, reductions.limits(values)[0], values, lo, hi)


def smallest(values: Array, lo: Array, hi: Array) -> Array:
    """As `reductions.smallest`."""
    return _picked(_SMALLEST, reductions.limits(values)[1], values, lo, hi)


def slide(op: np.ufunc, values: Array, length: int, before: Array | None = None) -> Array:
    """As `reductions.slide`."""
    if length < SHORT or not _fits(values, values):
        return reductions.slide(op, values, length, before)
    if before is not None:
        values = np.concatenate([before, values])
    result = np.empty(len(values) - length + 1, values.dtype)
    ways = _LARGEST if op is np.maximum else _SMALLEST
    ways.slide(values, length, result, np.empty((2, length), values.dtype))
    return result


class _PickLoops(NamedTuple):
    """The ways of picking a value."""

    alone: Callable[..., None]
    sliding: Callable[..., None]
    slide: Callable[..., None]
    doubling: Callable[[Array, Array, Array], Array]


_LARGEST = _PickLoops(
    compiled_loops.largest,
    compiled_loops.sliding_largest,
    compiled_loops.slide_largest,
    reductions.largest,
)
_SMALLEST = _PickLoops(
    compiled_loops.smallest,
    compiled_loops.sliding_smallest,
    compiled_loops.slide_smallest,
    reductions.smallest,
)


def _picked(ways: _PickLoops, nothing: Any, values: Array, lo: Array, hi: Array) -> Array:
    if not _fits(values, lo):
        return ways.doubling(values, lo, hi)
    shape = _Shape(lo, hi)
    nothing = values.dtype.type(nothing)
    result = np.empty(len(lo), values.dtype)
    if shape.alone(PICK) <= shape.sliding(SPANNED_PICK, SLIDING_PICK):
        ways.alone(values, lo, hi, result, nothing)
        return result
    if not shape.ascends:
        return ways.doubling(values, lo, hi)
    ways.sliding(values, lo, hi, result, np.empty(shape.longest, values.dtype), nothing)
    return result


def two_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """As `reductions.two_sums`."""
    if not len(lo) or reductions.one_sign(values):
        return sums(values, lo, hi), np.zeros(len(lo))
    if not max(values.max(), -values.min()) < reductions.HUGE:  # or NaN, or infinite
        return reductions.two_sums(values, lo, hi)
    shape = _Shape(lo, hi)
    together = (SPANNED_PAIR, SLIDING_PAIR) if shape.ascends else (SPANNED_DIGITS, DIGITS)
    if shape.alone(PAIR) <= shape.sliding(*together):
        high, low = np.empty(len(lo)), np.empty(len(lo))
        compiled_loops.pairs(values, lo, hi, high, low)
        return high, low
    if shape.ascends:
        return _sliding_pairs(values, lo, hi, shape.longest)
    return reductions.two_sums(values, lo, hi)


def _sliding_pairs(values: Array, lo: Array, hi: Array, longest: int) -> tuple[Array, Array]:
    high, low = np.empty(len(lo)), np.empty(len(lo))
    compiled_loops.sliding_pairs(values, lo, hi, high, low, np.empty((3, longest)))
    return high, low


def chain(
    values: Array, starts: Array, ends: Array, reference: Array, known: Array, threshold: Any
) -> tuple[Places, Array]:
    """As `delta_chains.chain`."""
    last = reference.astype(values.dtype)
    places = np.empty(int((ends - starts).sum()), np.int64)
    limit = delta_chains.exact(threshold, values)
    fired = compiled_loops.chain(values, starts, ends, known, limit, last, places)
    return places[:fired].copy(), last


def oldest_within(values: Array, lo: Array, hi: Array, newest: Array, threshold: Any) -> Places:
    """As `delta_chains.oldest_within`."""
    places = np.empty(len(lo), np.int64)
    compiled_loops.oldest_within(
        values, lo, hi, newest, delta_chains.exact(threshold, values), places
    )
    return places


def skyline_places(points: Array, part: Places | None = None) -> Places:
    """As `dominance.skyline_places`."""
    size, lanes = points.shape[1], compiled_loops.LANES
    labels = np.zeros(size, np.intp) if part is None else part
    room = -(-(np.array([size]) if part is None else np.bincount(part)) // lanes)
    blocks = np.empty((int(room.sum()), len(points), lanes))
    starts, places = np.cumsum(room) - room, np.empty(size, np.intp)
    found = compiled_loops.skyline_places(points, labels, starts, part is None, blocks, places)
    return places[:found]


def dominance_counts(points: Array, by: Array) -> Array:
    """As `dominance.dominance_counts`."""
    dimensions, size = by.shape
    lanes = compiled_loops.LANES
    rows = np.full((dimensions, -(-size // lanes) * lanes), np.inf)
    rows[:, :size] = by
    blocks = np.ascontiguousarray(rows.reshape(dimensions, -1, lanes).swapaxes(0, 1))
    found = np.empty(points.shape[1], np.int64)
    compiled_loops.dominance_counts(points, blocks, found)
    return found
