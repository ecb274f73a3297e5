"""The k-th smallest values of many extents, from sorted rows.

Extents of about the same length become rows of a matrix, which numpy sorts at once. Where extents
overlap much, they share the work: of a block of neighbours, what they have in common is sorted
once. A value of it is a candidate for the k-th of an extent only if its rank is at most k, and less
than k by at most the number of values that the extent has besides. The few candidates go down to
smaller blocks, which have a little more in common, and at last to single extents.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from windowlib.columnar.holistic.extents import forward
from windowlib.columnar.kernels.base import Array
from windowlib.columnar.pieces import Places
from windowlib.columnar.reduce import limits

STEP = 4
"""A block has so many smaller blocks: a power of two, so that bits tell where blocks begin."""
OVERLAP = 12
"""From so many extents over a place on, sharing pays."""
AT_ONCE = 1 << 17
"""About how many values are sorted at a time: a few matrices of them fit the cache."""

Found = tuple[Places, Array]


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
    exponents = np.frexp(hi - lo)[1]
    for exponent in np.unique(exponents):
        which = np.flatnonzero(exponents == exponent)
        args = lo[which], hi[which], first[which], count[which]
        for part, rows in _alike(keys, *args):
            yield which[part], rows


def _alike(keys: Array, lo: Places, hi: Places, first: Places, count: Places) -> Iterator[Found]:
    """Extents of which none is twice as long as another."""
    order = forward(lo, hi)
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
    if overlap >= OVERLAP:
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
    step = max(1, AT_ONCE // (longest + size * 2 * STEP))
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
