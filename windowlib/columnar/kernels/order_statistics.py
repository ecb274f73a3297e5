"""The k-th smallest values of many extents, from sorted rows.

Extents of about the same length become rows of a matrix, which numpy sorts at once. Where extents
overlap much, they share the work: of a block of neighbours, what they have in common is sorted
once. A value of it is a candidate for the k-th of an extent only if its rank is at most k, and less
than k by at most the number of values that the extent has besides. The few candidates go down to
smaller blocks, which have a little more in common, and at last to single extents. Where an extent
needs but a few of them, a wavelet matrix finds these faster, and for a window that slides from key
to key, bits that stand for candidates. With numba, a window slides over ranks in place of both.
Where keys rarely pass the wanted place, pivots find candidates faster than any of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import (
    Array,
    Places,
    compiles,
    ranges,
    sliding_pivots,
    sliding_ranks,
    wavelet,
)
from windowlib.columnar.primitives.grouping import rising, stable_argsort
from windowlib.columnar.primitives.reductions import limits

STEP = 4
"""A block has so many smaller blocks: a power of two, so that bits tell where blocks begin."""
MIN_OVERLAP = 12
"""From so many extents over a place on, sharing pays."""
FEW_KEYS = 6
"""Up to so many keys of an extent are looked for one by one."""
CHUNK_VALUES = 1 << 17
"""About how many values are sorted at a time: a few matrices of them fit the cache."""

Found = tuple[Places | slice, Array]


def smallest_from(
    keys: Array, lo: Places, hi: Places, first: Places, count: Places
) -> Iterator[Found]:
    """For each extent the keys that are sorted into the places from `first` on, `count` of them.

    No extent is empty, and all these places are inside. Gives numbers of extents and a row for
    each; a row that needs less than others is filled up with anything.

    >>> extents = np.array([0, 1]), np.array([3, 4])
    >>> first, count = np.array([1, 0]), np.array([1, 1])
    >>> [(which, rows)] = smallest_from(np.array([5, 4, 6, 1]), *extents, first, count)
    >>> which.tolist(), rows.tolist()
    ([0, 1], [[5], [1]])
    """
    if sliding_ranks.slides(lo, hi, first, count):
        yield from _slid(keys, lo, hi, first, count)
        return
    if compiles():
        from windowlib.columnar.primitives import compiled_ranks

        if compiled_ranks.slides(lo, hi):
            yield slice(None), compiled_ranks.ranked(keys, lo, hi, first, count)
            return
    elif int(count.max(initial=0)) <= FEW_KEYS and _overlap(lo, hi):
        order = slice(None) if (lo[1:] >= lo[:-1]).all() else np.argsort(lo)
        yield order, wavelet.ranked(keys, lo[order], hi[order], first[order], count[order])
        return
    exponents = np.frexp(hi - lo)[1]
    for exponent in np.unique(exponents):
        which = np.flatnonzero(exponents == exponent)
        args = lo[which], hi[which], first[which], count[which]
        for part, rows in _alike(keys, *args):
            yield which[part], rows


def _slid(keys: Array, lo: Places, hi: Places, first: Places, count: Places) -> Iterator[Found]:
    """Extents of a window that slides from key to key: by pivots as long as keys allow it."""
    sought = int(hi[0] - lo[0]), int(first[0]), int(count[0])
    rows = sliding_pivots.ranked(keys[lo[0] : hi[-1]], *sought)
    done = len(rows)
    if done:
        yield slice(done), rows
    if done == len(lo):
        return
    rest = slice(done, None)
    if compiles():
        from windowlib.columnar.primitives import compiled_ranks

        rows = compiled_ranks.ranked(keys, lo[rest], hi[rest], first[rest], count[rest])
    else:
        rows = sliding_ranks.ranked(keys[lo[done] : hi[-1]], *sought)
    yield rest, rows


def _overlap(lo: Places, hi: Places) -> bool:
    """Whether extents have each place between them in common with many others."""
    return len(lo) > MIN_OVERLAP and int((hi - lo).sum()) >= MIN_OVERLAP * int(hi.max() - lo.min())


def _alike(keys: Array, lo: Places, hi: Places, first: Places, count: Places) -> Iterator[Found]:
    """Extents of which none is twice as long as another."""
    order = ascending_order(lo, hi)
    lo, hi, first, count = lo[order], hi[order], first[order], count[order]
    sizes = _block_sizes(lo, hi)
    shared = np.zeros(len(lo), bool)
    if len(sizes) > 1:
        number = _numbers(lo, hi)
        heads, tails = _blocks(number, sizes[0])
        shared = np.repeat(lo[tails] < hi[heads], tails - heads + 1)
        for part in _portions(np.flatnonzero(shared), number, sizes[0], hi - lo):
            args = lo[part], hi[part], first[part], count[part], number[part]
            yield order[part], _descend(keys, *args, sizes)
    rest = np.flatnonzero(~shared)
    number = np.zeros(len(lo), np.intp)
    for part in _portions(rest, number, 1, hi - lo):
        args = lo[part], hi[part], first[part], count[part], number[part]
        yield order[part], _descend(keys, *args, [1])


def _block_sizes(lo: Places, hi: Places) -> list[int]:
    """How many extents the blocks have, from large to small; 1 at the end."""
    if (hi[1:] < hi[:-1]).any():
        return [1]
    lengths = hi - lo
    places = int(lengths[0] + np.minimum(hi[1:] - hi[:-1], lengths[1:]).sum())
    overlap = int(lengths.sum()) / places
    size = 1
    if overlap >= MIN_OVERLAP:
        while size * STEP <= overlap / 2:
            size *= STEP
    sizes = [size]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] // STEP)
    return sizes


def _numbers(lo: Places, hi: Places) -> Places:
    """The number of each extent in a row of such that overlap, from 0 on."""
    starts = np.flatnonzero(np.append(True, lo[1:] >= hi[:-1]))
    lengths = np.diff(np.append(starts, len(lo)))
    numbers: Places = np.arange(len(lo)) - np.repeat(starts, lengths)
    return numbers


def _blocks(number: Places, size: int) -> tuple[Places, Places]:
    """The first and the last extent of each block."""
    heads = np.flatnonzero(number & (size - 1) == 0)
    return heads, np.append(heads[1:], len(number)) - 1


def _portions(which: Places, number: Places, size: int, lengths: Places) -> Iterator[Places]:
    """Extents in portions of whole blocks."""
    if not len(which):
        return
    longest = int(lengths[which].max())
    heads = np.flatnonzero(number[which] & (size - 1) == 0)
    step = max(1, CHUNK_VALUES // (longest + size * 2 * STEP))
    edges = [*heads[::step].tolist(), len(which)]
    for start, end in pairwise(edges):
        yield which[start:end]


def _descend(
    keys: Array,
    lo: Places,
    hi: Places,
    first: Places,
    count: Places,
    number: Places,
    sizes: list[int],
) -> Array:
    """Sort what blocks have in common, and pass the candidates on to smaller blocks."""
    heads = inner_lo = inner_hi = below = np.empty(0, np.intp)
    rows = np.empty((0, 0), keys.dtype)
    for size in sizes:
        before = heads
        heads, tails = _blocks(number, size)
        common_lo, common_hi = lo[tails], hi[heads]
        if len(before):
            parent = np.searchsorted(before, heads, "right") - 1
            rows, below = rows[parent], below[parent]
            inner_lo, inner_hi = inner_lo[parent], inner_hi[parent]
        else:
            rows, below = np.empty((len(heads), 0), keys.dtype), np.zeros(len(heads), np.intp)
            inner_lo = inner_hi = common_lo
        more = _around(keys, common_lo, common_hi, inner_lo, inner_hi)
        rows = np.hstack([rows, more]) if rows.shape[1] else more
        rows.sort(axis=1)
        besides = (hi - lo) - np.repeat(common_hi - common_lo, tails - heads + 1)
        least = np.maximum(np.minimum.reduceat(first - besides, heads) - below, 0)
        rows = _cut(rows, least, np.maximum.reduceat(first + count, heads) - below)
        below = below + least
        inner_lo, inner_hi = common_lo, common_hi
    return rows


def _around(keys: Array, lo: Places, hi: Places, inner_lo: Places, inner_hi: Places) -> Array:
    """The keys of extents without those of the extents inside them, as rows."""
    inside = inner_hi - inner_lo
    counts = hi - lo - inside
    width = int(counts.max())
    places = lo[:, None] + np.arange(width)
    if inside.any():
        behind = places >= inner_lo[:, None]
        np.add(places, inside[:, None], out=places, where=behind)
    if (counts == width).all():
        return keys.take(places)
    there = np.arange(width) < counts[:, None]
    return np.where(there, keys.take(places, mode="clip"), _above_all(keys))


def _cut(rows: Array, begin: Places, end: Places) -> Array:
    """Of each row the columns from `begin` to `end`, filled up to the same width."""
    width = int((end - begin).max())
    least = int(begin.min())
    if least == begin.max():
        return rows[:, least : least + width]
    columns = begin[:, None] + np.arange(width)
    found = np.take_along_axis(rows, np.minimum(columns, rows.shape[1] - 1), axis=1)
    return np.where(columns < rows.shape[1], found, _above_all(rows))


def _above_all(keys: Array) -> Array:
    """What sorts behind every key."""
    highest = np.nan if keys.dtype.kind == "f" else limits(keys)[1]
    return np.asarray(highest, keys.dtype)


# Values as whole numbers that compare like them, or that only tell them apart.


MAX_SPREAD = 4
"""Whole numbers in a range of up to this many times as many numbers stand for themselves."""


def order_keys_of(values: Column) -> Array:
    """Whole numbers in the order of the values: NaN above all, 0.0 and −0.0 equal.

    >>> import pyarrow as pa
    >>> column = Column.of(pa.array([float("nan"), -0.0, 2.0, 0.0, -1.0]))
    >>> np.argsort(order_keys_of(column), kind="stable").tolist()
    [4, 1, 3, 2, 0]
    """
    keys = values.order_keys()
    return rising(keys) if values.floating else keys


def codes_of(values: Column) -> tuple[Array, int]:
    """Whole numbers from 0 on that are equal where the values are, and how many there may be.

    >>> import pyarrow as pa
    >>> codes_of(Column.of(pa.array([7, 5, 7])))
    (array([2, 0, 2]), 3)
    """
    if values.physical and not values.floating and len(values):
        low, high = int(values.data.min()), int(values.data.max())
        if high - low < MAX_SPREAD * len(values):
            return values.data - low, high - low + 1
    codes, distinct = values.codes()
    return codes, len(distinct)


class Ranks:
    """Whole numbers, all different, in the order of some keys and of place among equal ones.

    >>> ranks = Ranks(np.array([5, 3, 5]))
    >>> np.argsort(ranks.numbers).tolist(), ranks.places(np.sort(ranks.numbers)).tolist()
    ([1, 0, 2], [1, 0, 2])
    """

    def __init__(self, keys: Array) -> None:
        bits = max(len(keys) - 1, 0).bit_length()
        low = int(keys.min()) if len(keys) else 0
        span = int(keys.max()) - low if len(keys) else 0
        self._mask: Any = None
        if span.bit_length() + bits < WORD:  # key and place fit one number
            self._mask = (1 << bits) - 1
            self.numbers = ((keys - low) << bits) | np.arange(len(keys))
            if span.bit_length() + bits < HALF:
                self.numbers = self.numbers.astype(np.int32)
            return
        self._order = stable_argsort(keys)
        self.numbers = np.empty(len(keys), np.int64 if bits >= HALF else np.int32)
        self.numbers[self._order] = np.arange(len(keys), dtype=self.numbers.dtype)

    def places(self, numbers: Array) -> Places:
        """The places that have these numbers."""
        if self._mask is None:
            return self._order[numbers]
        places: Places = (numbers & self._mask).astype(np.intp)
        return places


WORD, HALF = 63, 31


# Extents in the order in which a window slides over the layout.


CHUNK_COPIED = 1 << 22
"""About how many values are copied at a time."""


def ascending_order(lo: Places, hi: Places) -> Places:
    """An order of extents in which starts ascend, and ends where starts are equal."""
    if (lo[1:] >= lo[:-1]).all() and (hi[1:] >= hi[:-1]).all():
        return np.arange(len(lo))
    return np.lexsort((hi, lo))


def portions(counts: Places, most: int) -> Iterator[slice]:
    """Runs of extents that have about `most` values together.

    >>> list(portions(np.array([3, 3, 9, 1]), 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + most, "right")), start + 1)
        yield slice(start, end)
        start = end


@dataclass(slots=True)
class AscendingExtents:
    """Extents whose starts and ends both ascend, over places of their own; none is empty."""

    which: Places
    """Their numbers among all extents."""
    places: Places | slice
    """The places that theirs stand for."""
    lo: Places
    hi: Places


def ascending_extents(lo: Places, hi: Places) -> Iterator[AscendingExtents]:
    """All extents that are not empty: at once if a window slides like that, else copied out.

    >>> [each] = ascending_extents(np.array([5, 9, 3]), np.array([9, 9, 6]))
    >>> each.which.tolist(), each.places, each.lo.tolist(), each.hi.tolist()
    ([2, 0], slice(3, 9, None), [0, 2], [3, 6])
    """
    which = np.flatnonzero(hi > lo)
    if not len(which):
        return
    which = which[ascending_order(lo[which], hi[which])]
    lo, hi = lo[which], hi[which]
    if (hi[1:] >= hi[:-1]).all():
        first, last = int(lo[0]), int(hi[-1])
        yield AscendingExtents(which, slice(first, last), lo - first, hi - first)
        return
    lengths = hi - lo
    for part in portions(lengths, CHUNK_COPIED):
        ends = np.cumsum(lengths[part])
        places = ranges(lo[part], lengths[part])
        yield AscendingExtents(which[part], places, ends - lengths[part], ends)
