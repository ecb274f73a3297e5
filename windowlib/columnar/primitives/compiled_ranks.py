"""The k-th smallest keys of extents that slide, with numba.

The keys of a block of extents are sorted once, which gives each its rank. A bit for each rank says
whether the extent at hand has it, and a cursor stands where the last extent's answer was. A key
that enters or leaves moves the cursor by one rank at most. Bits are words of 64, and a second row
of bits says which words are not empty, so that the next rank that is there is found in a few steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windowlib.columnar.primitives.compiled_loops import compiled, shape
from windowlib.columnar.primitives.grouping import Array, Places

# About so many keys are sorted at a time, or four times the longest extent: ranks, bits and keys
# stay in the cache, and what neighbouring blocks share is sorted twice.
BLOCK = 1 << 14

# From so many extents over a place on, ranks pay.
OVERLAP = 12

# Keys are sorted by digits of so many bits, of which 64 bits have so many.
DIGIT, DIGITS = 11, 6

# The upper half of the digits tells most keys apart. What is left takes so many swaps a key, or
# the lower half, too.
SWAPS = 2

ONE, WORD, LAST, SECOND = (np.uint64(number) for number in (1, 6, 63, 12))
ALL = np.uint64(2**64 - 1)
SIGN = np.uint64(2**63)
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
INFINITE = int(np.array(np.inf).view(np.int64))

# A sequence of 64 bits in which every run of six differs: multiplied by a power of two, its first
# six bits tell which power that was.
SEQUENCE, TOP_SIX = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
POWERS = np.zeros(64, np.uint64)
POWERS[(SEQUENCE << np.arange(64, dtype=np.uint64)) >> TOP_SIX] = np.arange(64)


def slides(lo: Places, hi: Places) -> bool:
    """Whether extents ascend and overlap so much that they are better taken in turn."""
    if not len(lo):
        return False
    span, total, _, ascends = shape(lo, hi)
    return bool(ascends) and total >= OVERLAP * span


def ranked(keys: Array, lo: Places, hi: Places, first: Places, count: Places) -> Array:
    """For ascending extents the keys that are sorted into the places from `first` on.

    As `order_statistics.smallest_from`, with a row for each extent; NaN is above all.

    >>> extents = np.array([0, 1]), np.array([3, 4])
    >>> ranked(np.array([5, 4, 6, 1]), *extents, np.array([1, 0]), np.array([1, 1])).tolist()
    [[5], [1]]
    """
    found = np.empty((len(lo), int(count.max())), keys.dtype)
    step, start = max(BLOCK, 4 * int((hi - lo).max())), 0
    while start < len(lo):
        stop = int(np.searchsorted(lo, lo[start] + step))
        part = slice(start, stop)
        base = lo[start]
        own = keys[base : hi[stop - 1]]
        extents = lo[part] - base, hi[part] - base
        _slide(own, _order(own), *extents, first[part], count[part], found[part])
        start = stop
    return found


def _order(keys: Array) -> Array:
    """The places of keys in ascending order."""
    size = len(keys)
    digits, places = np.empty((2, size), np.uint64), np.empty((2, size), np.int32)
    places[0] = np.arange(size)
    if keys.dtype.kind == "f":
        _float_digits(keys.view(np.int64), digits[0])
    else:
        _whole_digits(keys, digits[0])
    row = _sort(digits, places, 0, DIGITS // 2)
    if not _settle(digits[row], places[row], SWAPS * size):
        row = _sort(digits, places, row, 0)
    order: Array = places[row]
    return order


@compiled
def _whole_digits(keys: Array, digits: Array) -> None:
    """Whole numbers as unsigned ones in the same order."""
    for place in range(len(keys)):
        digits[place] = np.uint64(keys[place]) ^ SIGN


@compiled
def _float_digits(bits: Array, digits: Array) -> None:
    """The same for the bits of floats, NaN of either sign above all."""
    for place in range(len(bits)):
        number = bits[place]
        if (number & HIGHEST) > INFINITE:
            number = HIGHEST
        elif number < 0:
            number = LOWEST - number
        digits[place] = np.uint64(number) ^ SIGN


@compiled
def _sort(digits: Array, order: Array, row: int, lowest: int) -> int:
    """Sort keys, and their places, by all digits from `lowest` on; says in which row they are."""
    size, mask = digits.shape[1], np.uint64(2**DIGIT - 1)
    counts = np.zeros((DIGITS, 2**DIGIT), np.int64)
    for place in range(size):
        for digit in range(lowest, DIGITS):
            counts[digit, (digits[row, place] >> np.uint64(DIGIT * digit)) & mask] += 1
    this = row
    for digit in range(lowest, DIGITS):
        ends, shift = counts[digit], np.uint64(DIGIT * digit)
        if ends[(digits[this, 0] >> shift) & mask] == size:  # all the same
            continue
        total = 0
        for each in range(len(ends)):
            ends[each], total = total, total + ends[each]
        source, target = digits[this], digits[1 - this]
        places, moved = order[this], order[1 - this]
        for place in range(size):
            key = source[place]
            own = (key >> shift) & mask
            end = np.uint64(ends[own])
            ends[own] += 1
            target[end] = key
            moved[end] = places[place]
        this = 1 - this
    return this


@compiled
def _settle(keys: Array, order: Array, most: int) -> bool:
    """Put in order what a few digits did not, unless that takes more than so many swaps."""
    for place in range(1, len(keys)):
        key, own, at = keys[place], order[place], place
        while at > 0 and keys[np.uint64(at - 1)] > key:
            keys[np.uint64(at)] = keys[np.uint64(at - 1)]
            order[np.uint64(at)] = order[np.uint64(at - 1)]
            at -= 1
        keys[np.uint64(at)] = key
        order[np.uint64(at)] = own
        most -= place - at
        if most < 0:
            return False
    return True


@compiled
def _lowest(word: Any) -> Any:
    """The number of the lowest bit of a word that is not empty."""
    return POWERS[((word & (~word + ONE)) * SEQUENCE) >> TOP_SIX]


@compiled
def _highest(word: Any) -> Any:
    """The number of the highest bit."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return POWERS[((word - (word >> ONE)) * SEQUENCE) >> TOP_SIX]


@compiled
def _at_or_after(words: Array, filled: Array, rank: Any) -> Any:
    """The first rank that is there from this one on; there is one."""
    number = rank >> WORD
    word = words[number] & (ALL << (rank & LAST))
    if not word:
        number += ONE
        index = number >> WORD
        rest = filled[index] & (ALL << (number & LAST))
        while not rest:
            index += ONE
            rest = filled[index]
        number = (index << WORD) | _lowest(rest)
        word = words[number]
    return (number << WORD) | _lowest(word)


@compiled
def _before(words: Array, filled: Array, rank: Any) -> Any:
    """The last rank that is there before this one; there is one."""
    number = rank >> WORD
    word = words[number] & ~(ALL << (rank & LAST))
    if not word:
        index = number >> WORD
        rest = filled[index] & ~(ALL << (number & LAST))
        while not rest:
            index -= ONE
            rest = filled[index]
        number = (index << WORD) | _highest(rest)
        word = words[number]
    return (number << WORD) | _highest(word)


@compiled
def _slide(
    keys: Array,
    order: Array,
    lo: Places,
    hi: Places,
    first: Places,
    count: Places,
    found: Array,
) -> None:
    """Go from extent to extent; `order` has the places of the keys, ascending."""
    size = len(order)
    ranks = np.empty(size, np.int32)
    for index in range(size):
        ranks[np.uint64(order[index])] = index
    words = np.zeros((size >> 6) + 2, np.uint64)
    filled = np.zeros((size >> 12) + 2, np.uint64)
    cursor = np.uint64(0)  # a rank
    below: Any = 0  # how many lower ones are there
    begin: Any = 0
    end: Any = 0  # of the places whose ranks are there
    for extent in range(len(lo)):
        while begin < min(lo[extent], end):
            rank = np.uint64(ranks[np.uint64(begin)])
            words[rank >> WORD] &= ~(ONE << (rank & LAST))
            if not words[rank >> WORD]:
                filled[rank >> SECOND] &= ~(ONE << ((rank >> WORD) & LAST))
            below -= rank < cursor
            begin += 1
        begin = lo[extent]
        end = max(end, begin)
        while end < hi[extent]:
            rank = np.uint64(ranks[np.uint64(end)])
            words[rank >> WORD] |= ONE << (rank & LAST)
            filled[rank >> SECOND] |= ONE << ((rank >> WORD) & LAST)
            below += rank < cursor
            end += 1
        while below > first[extent]:
            cursor = _before(words, filled, cursor)
            below -= 1
        if not (words[cursor >> WORD] >> (cursor & LAST)) & ONE:
            cursor = _at_or_after(words, filled, cursor)
        while below < first[extent]:
            cursor = _at_or_after(words, filled, cursor + ONE)
            below += 1
        rank = cursor
        found[extent, 0] = keys[np.uint64(order[rank])]
        for more in range(1, count[extent]):
            rank = _at_or_after(words, filled, rank + ONE)
            found[extent, more] = keys[np.uint64(order[rank])]
