"""The k-th smallest keys of extents that overlap, by a wavelet matrix, with numpy.

The keys of a block are ranked once. The matrix has a level for each digit of the ranks, the highest
first: a level counts the digits up to each place, and puts places in order of their digits for the
next level, where the places of an extent that share a digit are an extent again. So all extents go
down together. At each level the count of every digit says which one the k-th smallest has, how many
smaller keys are left behind, and where the extent is on the next level.

The counts of all digits are fields of one number of 64 bits: four of 16 bits, or two of 32 where a
block has more keys than such a field counts. Adding, comparing and picking work on all fields at
once, and a level looks up two numbers for each extent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowlib.columnar.primitives.grouping import Array, Places, stable_argsort

SHORT = 1 << 11
"""Extents up to this length have blocks of `BLOCK` keys, longer ones what four fields can count."""
BLOCK = 1 << 14
MORE = 4
"""Extents longer than half of that have blocks of so many times as many keys, and two fields."""

WORD = np.uint64


class Fields(NamedTuple):
    """How counts share a word."""

    bits: int
    """Of a digit."""
    width: int
    """Of a field."""
    ones: np.uint64
    """A one in each field; as a factor, it makes fields sums of all up to them."""
    signs: np.uint64
    """The highest bit of each field but the first."""

    @property
    def digits(self) -> int:
        """How many digits there are, and fields."""
        return 1 << self.bits

    @property
    def most(self) -> int:
        """The most keys that can be counted, and compared."""
        return (1 << (self.width - 1)) - 1


FOUR = Fields(2, 16, WORD(0x0001_0001_0001_0001), WORD(0x8000_8000_8000_0000))
TWO = Fields(1, 32, WORD(0x0000_0001_0000_0001), WORD(0x8000_0000_0000_0000))


def ranked(keys: Array, lo: Places, hi: Places, first: Places, count: Places) -> Array:
    """For each extent the keys that are sorted into the places from `first` on, `count` of them.

    Starts ascend, and no extent is empty. Each has a row, filled up with anything.

    >>> extents = np.array([0, 1]), np.array([3, 4])
    >>> ranked(np.array([5, 4, 6, 1]), *extents, np.array([1, 0]), np.array([1, 1])).tolist()
    [[5], [1]]
    """
    lengths, more = hi - lo, np.arange(int(count.max()))[:, None]
    longest = int(lengths.max())
    found = np.empty((len(more), len(lo)), keys.dtype)
    fields, size = _block(longest)
    start = 0
    while start < len(lo):
        base = lo[start]
        stop = int(np.searchsorted(lo, base + size - longest, "right"))
        part = slice(start, stop)
        own, places = keys[base : hi[part].max()], first[part] + more
        if len(more) > 1:
            np.minimum(places, lengths[part] - 1, out=places)
        found[:, part] = _descend(own, lo[part] - base, hi[part] - base, places, fields)
        start = stop
    return found.T


def _block(longest: int) -> tuple[Fields, int]:
    """How counts share words, and how many keys a block has."""
    if longest <= SHORT:
        return FOUR, BLOCK
    if 2 * longest <= FOUR.most:
        return FOUR, FOUR.most
    return TWO, MORE * longest


def _descend(keys: Array, lo: Places, hi: Places, places: Array, fields: Fields) -> Array:
    """The keys at some places of each extent, once it is sorted; a row for each of these."""
    rows, extents = places.shape
    if rows > 1:
        lo, hi = np.tile(lo, rows), np.tile(hi, rows)
    size, field = len(keys), WORD((1 << fields.width) - 1)
    order = stable_argsort(keys)
    ranks: Array = np.empty(size, np.uint16 if size <= 1 << 16 else np.uint32)
    ranks[order] = np.arange(size, dtype=ranks.dtype)
    left = places.ravel().astype(WORD)  # how many smaller keys an extent has, in each field
    counts, shift = np.empty(size + 1, WORD), np.empty(len(left), WORD)
    for level in reversed(range(-(-max(size - 1, 1).bit_length() // fields.bits))):
        ranks = _count(ranks, level * fields.bits, fields, counts)
        before, after = counts.take(lo, mode="wrap"), counts.take(hi, mode="wrap")
        left *= fields.ones
        left |= fields.signs
        smaller = after - before
        smaller *= fields.ones << WORD(fields.width)  # those with lower digits
        left -= smaller
        np.bitwise_and(left, fields.signs, out=smaller)
        # A sign stays with digits that have no more keys below them than are smaller.
        digit = np.bitwise_count(smaller)
        digit *= fields.width
        shift[:] = digit
        left >>= shift
        left &= field >> WORD(1)
        lo, hi = (_field(each, shift, field) for each in (before, after))
    return keys.take(order.take(ranks.take(lo))).reshape(rows, extents)


def _field(words: Array, shift: Array, field: np.uint64) -> Places:
    """One field of each word, in place."""
    words >>= shift
    words &= field
    return words.view(np.int64)


def _count(ranks: Array, shift: int, fields: Fields, counts: Array) -> Array:
    """Count the digits up to each place; ranks in the order of the next level.

    A digit is counted from where it begins there, so that a count is a place. Ranks are all numbers
    from 0 on, so how many have each digit is known.
    """
    digits = (ranks >> shift).astype(np.uint8)
    digits &= fields.digits - 1
    rounds, rest = divmod(len(ranks), fields.digits << shift)
    start = end = 0
    for digit in range(fields.digits):
        start |= end << (digit * fields.width)
        end += (rounds << shift) + min(max(rest - (digit << shift), 0), 1 << shift)
    counts[0] = start
    np.left_shift(WORD(1), digits * np.uint8(fields.width), out=counts[1:], dtype=WORD)
    np.cumsum(counts, out=counts)
    return ranks.take(np.argsort(digits, kind="stable"))
