"""The rows of a batch, sorted by partition and each partition in arrival order, with numpy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]
"""Indices: places of a layout, rows of a batch, or numbers of partitions."""
NONE: Places = np.empty(0, np.intp)

# Arrow counts instead of comparing from 1,024 rows on, while ids span at most 4,096 numbers:
# 2 ns per row, against 4 to 12 of numpy's radix sort. Outside of that it compares, 60 to 100 ns.
ARROW_ROWS = 1024
ARROW_SPAN = 4096

# numpy sorts 16 bit numbers by radix: 4 to 12 ns per row on every machine. Packing id and row
# number into one integer for `np.sort` takes 4 to 8 ns where its vector code suits the processor,
# and 20 to 50 where it does not (Zen 4), so it is not used.
RADIX_BITS = 16

# With so many rows for each possible id, segments are found by halving; with fewer, neighbours are
# compared.
HALVED_ROWS_PER_ID = 32

# Copying values brings them into the cache in turn, before they are wanted in another order: 1.1 ns
# for a value instead of 2.5, in the largest of the caches. Larger arrays do not stay there.
GATHERED = 1 << 23

# Places that are counted once and for all: 8 MB.
COUNTED = 1 << 20

# Rows looked at before all of them are, to see whether a batch comes sorted.
GLANCE = 64


def ranges(starts: Array, lengths: Array) -> Places:
    """The places `start`, `start + 1`, … of each range, one range after the other.

    >>> ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    if len(lengths) and lengths[0] > 0 and lengths.min() == lengths.max():  # a block
        block: Places = np.add.outer(starts, np.arange(lengths[0])).ravel()
        return block
    ends = np.cumsum(lengths)
    if not len(ends):
        return np.empty(0, np.int64)
    places: Places = np.repeat(starts - (ends - lengths), lengths)
    places += counting(len(places))
    return places


_counted: Places = NONE


def counting(stop: int) -> Places:
    """0, 1, … below `stop`, of which there is one copy, if not too long; not to be written.

    >>> counting(3).tolist()
    [0, 1, 2]
    """
    global _counted
    if stop > COUNTED:
        return np.arange(stop)
    if len(_counted) < stop:
        _counted = np.arange(min(2 * stop, COUNTED))
        _counted.flags.writeable = False
    return _counted[:stop]


def look_up(table: Array, base: int, values: Array) -> Array | None:
    """See `primitives.look_up`."""
    slots = values - base if base else values
    if not slots.view(np.uint64).max() < len(table):  # a negative one is huge without a sign
        return None
    found = table.take(slots, mode="wrap")  # they are in it, which need not be checked again
    return found if found.min() >= 0 else None


def group(ids: Array, partitions: int) -> tuple[Places, Places, Places]:
    """See `primitives.group`."""
    rows = len(ids)
    if not rows:
        empty = np.empty(0, np.int64)
        return empty, empty, np.zeros(1, np.int64)
    low, span = 0, partitions
    if partitions > ARROW_SPAN:
        low = int(ids.min())
        span = int(ids.max()) - low + 1
    if span == 1:
        return np.arange(rows), np.array([low]), np.array([0, rows])
    shifted = ids - low if low else ids
    order = np.arange(rows) if _ascending(shifted) else stable_order(shifted, span)
    touched, starts = _segments(shifted, order, span)
    return order, touched + low, starts


def group_keys(keys: Array, base: int, table: Array) -> tuple[Places, Places, Places] | None:
    """See `primitives.group_keys`."""
    rows, span = len(keys), len(table)
    if rows < ARROW_ROWS or span > ARROW_SPAN:
        return None
    slots = keys - base if base else keys
    if not slots.view(np.uint64).max() < span:  # a negative one is huge without a sign
        return None
    narrow = slots.astype(np.uint16)
    order = np.arange(rows) if _ascending(narrow) else stable_order(narrow, span)
    used, starts = _segments(narrow, order, span)
    touched = table.take(used).astype(np.intp)
    return None if touched.min() < 0 else (order, touched, starts)


def gather(values: Array, order: Places) -> Array:
    """See `primitives.gather`."""
    if values.nbytes <= GATHERED:
        values = values.copy()
    return values.take(order, mode="clip")  # all are in it, which need not be checked


def _ascending(ids: Array) -> bool:
    """Whether the rows come in layout order, as they do when a host has sorted them."""
    return all(bool((part[1:] >= part[:-1]).all()) for part in (ids[:GLANCE], ids))


def stable_order(ids: Array, span: int) -> Places:
    """A stable order of ids in `range(span)`."""
    if span <= ARROW_SPAN and len(ids) >= ARROW_ROWS:
        order: Places = pc.array_sort_indices(pa.array(ids)).to_numpy().view(np.int64)
        return order
    order = np.argsort(ids.astype(np.uint16), kind="stable")  # by the low bits
    while span > 1 << RADIX_BITS:
        ids = ids >> RADIX_BITS
        span = ((span - 1) >> RADIX_BITS) + 1
        digits = ids.astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


LEADING = (32, 48)
"""Bits that tell most numbers apart: as many as two or three rounds of sorting look at."""
TIED = 16
"""Of so many numbers, one may look like another."""


def stable_argsort(keys: Array) -> Places:
    """The places of numbers in ascending order, equal ones in order of place; NaN is above all.

    >>> stable_argsort(np.array([3, 9, 3, 1])).tolist()
    [3, 0, 2, 1]
    """
    if len(keys) < 2:
        return np.arange(len(keys))
    numbers = rising(keys) if keys.dtype.kind == "f" else keys.astype(np.int64, copy=False)
    numbers = (numbers - numbers.min()).view(np.uint64)
    bits = int(numbers.max()).bit_length()
    for leading in LEADING:
        spare = max(bits - leading, 0)
        heads = numbers >> np.uint64(spare) if spare else numbers
        order = stable_order(heads, 1 << (bits - spare))
        if not spare or _settled(order, numbers, heads):
            return order
    return np.argsort(numbers, kind="stable")


def _settled(order: Places, numbers: Array, heads: Array) -> bool:
    """Put numbers with the same leading bits in order, unless they are many."""
    ascending = numbers.take(order)
    if not (ascending[1:] < ascending[:-1]).any():
        return True
    heads = heads.take(order)
    same = heads[1:] == heads[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if TIED * len(tied) > len(order):
        return False
    order[tied] = order[tied].take(np.argsort(ascending[tied], kind="stable"))
    return True


SIGN, HIGHEST = np.int64(63), np.iinfo(np.int64).max
NAN = np.array(np.nan).view(np.int64)[()]  # larger than the bits of any number


def rising(floats: Array) -> npt.NDArray[np.int64]:
    """Whole numbers in the order of floats: NaN above all, 0.0 and −0.0 equal.

    >>> np.argsort(rising(np.array([2.0, -np.inf, np.nan, -0.5]))).tolist()
    [1, 3, 0, 2]
    """
    bits: npt.NDArray[np.int64] = (floats + 0.0).view(np.int64)  # one zero
    bits ^= (bits >> SIGN) & HIGHEST  # negative ones are turned round
    bits[np.isnan(floats)] = NAN
    return bits


def ascending(numbers: Array) -> Places | slice:
    """What puts numbers in ascending order, equal ones as they came.

    >>> ascending(np.array([7, 5, 7])).tolist()
    [1, 0, 2]
    """
    return slice(None) if bool((numbers[1:] >= numbers[:-1]).all()) else stable_argsort(numbers)


def _segments(ids: Array, order: Places, span: int) -> tuple[Places, Places]:
    """The ids that occur, and where the layout's segments start and end."""
    if HALVED_ROWS_PER_ID * span <= len(ids):
        bounds = np.searchsorted(ids, np.arange(span + 1, dtype=ids.dtype), sorter=order)
        touched = np.flatnonzero(bounds[1:] > bounds[:-1])
        return touched, np.append(bounds[touched], len(ids))
    placed = ids.take(order)
    inner = np.flatnonzero(placed[1:] != placed[:-1])
    starts = np.empty(len(inner) + 2, np.int64)
    starts[0], starts[-1] = 0, len(ids)
    np.add(inner, 1, out=starts[1:-1])
    return placed.take(starts[:-1]).astype(np.int64), starts
