"""The primitives with numba, where that is much faster than numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from windowlib.columnar import chains, compiled, grouping, reduce
from windowlib.columnar.grouping import Array, Places

# Counting goes over all possible ids. With more than so many of them for a row, numpy sorts.
IDS_PER_ROW = 4

# Extents are added up each on its own while they cover the values fewer times than this: picking
# takes 0.1 ns for a value and sums 0.15, pairs 1.3; going over overlapping extents 3 to 5 ns.
PICKS_ALONE = 24
SUMS_ALONE = 24
PAIRS_ALONE = 4


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
    found = compiled.count(ids, low, ends)
    order = np.empty(rows, np.int64)
    compiled.place(ids, low, ends, order)
    touched, starts = np.empty(found, np.int64), np.empty(found + 1, np.int64)
    compiled.segments(ends, low, touched, starts)
    return order, touched, starts


def sums(values: Array, lo: Array, hi: Array) -> Array:
    """As `reduce.sums`."""
    result = np.zeros(len(lo), values.dtype)
    if not len(lo):
        return result
    first, last, total, longest = compiled.covered(lo, hi)
    alone = total <= SUMS_ALONE * (last - first)
    if values.dtype.kind == "i":
        if not alone:
            return reduce.sums(values, lo, hi)
        compiled.int_sums(values, lo, hi, result)
    elif alone:
        compiled.float_sums(values, lo, hi, result)
    elif compiled.ascending(lo, hi):
        high, low = _sliding_pairs(values, lo, hi, longest)
        return high + low
    else:
        return reduce.sums(values, lo, hi)
    return result


def largest(values: Array, lo: Array, hi: Array) -> Array:
    """As `reduce.largest`."""
    nothing = values.dtype.type(reduce.limits(values)[0])
    result = np.full(len(lo), nothing)
    if not len(lo):
        return result
    first, last, total, longest = compiled.covered(lo, hi)
    if total <= PICKS_ALONE * (last - first):
        compiled.largest(values, lo, hi, result, nothing)
    elif compiled.ascending(lo, hi):
        front = np.empty(longest, values.dtype)
        compiled.sliding_largest(values, lo, hi, result, front, nothing)
    else:
        return reduce.largest(values, lo, hi)
    return result


def smallest(values: Array, lo: Array, hi: Array) -> Array:
    """As `reduce.smallest`."""
    nothing = values.dtype.type(reduce.limits(values)[1])
    result = np.full(len(lo), nothing)
    if not len(lo):
        return result
    first, last, total, longest = compiled.covered(lo, hi)
    if total <= PICKS_ALONE * (last - first):
        compiled.smallest(values, lo, hi, result, nothing)
    elif compiled.ascending(lo, hi):
        front = np.empty(longest, values.dtype)
        compiled.sliding_smallest(values, lo, hi, result, front, nothing)
    else:
        return reduce.smallest(values, lo, hi)
    return result


def two_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """As `reduce.two_sums`; a sum is infinite if a partial sum is too large for a float."""
    if not len(lo) or reduce.one_sign(values):
        return sums(values, lo, hi), np.zeros(len(lo))
    first, last, total, longest = compiled.covered(lo, hi)
    if total <= PAIRS_ALONE * (last - first):
        high, low = np.empty(len(lo)), np.empty(len(lo))
        compiled.pairs(values, lo, hi, high, low)
        return high, low
    if compiled.ascending(lo, hi):
        return _sliding_pairs(values, lo, hi, longest)
    return reduce.two_sums(values, lo, hi)


def _sliding_pairs(values: Array, lo: Array, hi: Array, longest: int) -> tuple[Array, Array]:
    high, low = np.empty(len(lo)), np.empty(len(lo))
    front, front_low = np.empty(longest), np.empty(longest)
    compiled.sliding_pairs(values, lo, hi, high, low, front, front_low)
    return high, low


def chain(
    values: Array, starts: Array, ends: Array, reference: Array, known: Array, threshold: Any
) -> tuple[Places, Array]:
    """As `chains.chain`."""
    last = reference.astype(values.dtype)
    places = np.empty(int((ends - starts).sum()), np.int64)
    limit = chains.exact(threshold, values)
    fired = compiled.chain(values, starts, ends, known, limit, last, places)
    return places[:fired].copy(), last


def oldest_within(values: Array, lo: Array, hi: Array, newest: Array, threshold: Any) -> Places:
    """As `chains.oldest_within`."""
    places = np.empty(len(lo), np.int64)
    compiled.oldest_within(values, lo, hi, newest, chains.exact(threshold, values), places)
    return places
