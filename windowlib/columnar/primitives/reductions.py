"""Sums, largest and smallest values of many extents at once, with numpy.

How it is done depends on the extents alone. None of the ways subtracts floats, so a large value
leaves no trace in extents that it does not belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, ldexp
from typing import Any, TypeAlias, overload

import numpy as np

from windowlib.columnar.primitives.grouping import Array, ranges

# What was measured, in ns: a slot of `reduceat` (an extent takes two), each value under it, a pass
# of doubling for each value, looking up one place, and adding digits for each value and extent.
SLOT = 10.0
COVERED = 0.15
PASS = 0.25
LOOK = 2.0
DIGITS = 10.0

# Digits give up after this many rounds: values of very different sizes need more.
ROUNDS = 3

# Values between extents are added up by `reduceat` too. Copying the covered values out costs about
# this many times as much for each of them.
COPY = 16

# Doubling works on blocks that stay in the cache: 64 k results, or the window if that is longer.
BLOCK = 1 << 16

# From this length on, extents that slide have most of their values in common, so many in a row.
LONG, CORE = 512, 16


# Two arrays to work in, as long as a block and an extent.
Spare: TypeAlias = tuple[Array, Array]

# Partial sums of values below this stay finite.
HUGE = 1e290


def sums(values: Array, lo: Array, hi: Array) -> Array:
    """See `primitives.sums`; floats are added as a tree, pairs before pairs of pairs."""
    return _reduce(np.add, values.dtype.type(0), values, lo, hi)


def largest(values: Array, lo: Array, hi: Array) -> Array:
    """See `primitives.largest`."""
    return _reduce(np.maximum, limits(values)[0], values, lo, hi)


def smallest(values: Array, lo: Array, hi: Array) -> Array:
    """See `primitives.smallest`."""
    return _reduce(np.minimum, limits(values)[1], values, lo, hi)


def limits(values: Array) -> tuple[Any, Any]:
    """The lowest and the highest number of the values' type, infinities included."""
    if values.dtype.kind == "f":
        return -np.inf, np.inf
    info = np.iinfo(values.dtype)
    return info.min, info.max


def two_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """See `primitives.two_sums`."""
    if one_sign(values):
        return sums(values, lo, hi), np.zeros(len(lo))
    finite = np.isfinite(values)
    if finite.all():
        return _two_finite_sums(values, lo, hi)
    high, low = _two_finite_sums(np.where(finite, values, 0.0), lo, hi)
    marks = sums(np.where(finite, 0.0, values), lo, hi)
    low[marks != 0] = 0.0
    return np.where(marks == 0, high, marks), low


def one_sign(values: Array) -> bool:
    """Whether no value is negative or none positive; NaN is neither."""
    with np.errstate(invalid="ignore"):
        return has_sign(values, 1) or has_sign(values, -1)


def has_sign(values: Array, sign: int) -> bool:
    """Whether no value is of the other sign; NaN is of both, and 0 in place of a sign is none.

    >>> has_sign(np.array([0.0, 2.0]), 1), has_sign(np.array([0.0, 2.0]), -1)
    (True, False)
    """
    if not sign or not len(values):
        return bool(sign)
    return bool(values.min() >= 0 if sign > 0 else values.max() <= 0)


def _two_finite_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    longest = int((hi - lo).max()) if len(lo) else 0
    return sums_by_digits(lambda digits: sums(digits, lo, hi), values, len(lo), longest)


def _reduce(op: np.ufunc, nothing: Any, values: Array, lo: Array, hi: Array) -> Array:
    if not len(lo):
        return np.empty(0, values.dtype)
    # Sums of places that belong to no extent may overflow or meet inf - inf.
    with np.errstate(over="ignore", invalid="ignore"):
        if hi[0] > lo[0] and _in_a_row(lo) and _in_a_row(hi):
            return _sliding(op, values[lo[0] : hi[-1]], int(hi[0] - lo[0]))
        lengths = hi - lo
        if lengths.min() > 0:
            return _filled(op, values, lo, hi, lengths)
    some = np.flatnonzero(lengths)
    result = np.full(len(lo), nothing, values.dtype)
    result[some] = _reduce(op, nothing, values, lo[some], hi[some])
    return result


def _in_a_row(places: Array) -> bool:
    """Whether each place follows the one before."""
    if places[-1] - places[0] != len(places) - 1:
        return False
    return bool((places[1:] > places[:-1]).all())


def _sliding(op: np.ufunc, values: Array, length: int) -> Array:
    """Extents of one length, each a place behind the one before: nothing is looked up."""
    if op is not np.add or values.dtype.kind not in "iu":
        return slide(op, values, length)
    running = np.cumsum(values)
    result: Array = running[length - 1 :].copy()
    result[1:] -= running[:-length]
    return result


def _filled(op: np.ufunc, values: Array, lo: Array, hi: Array, lengths: Array) -> Array:
    """The results of extents of which none is empty."""
    if len(lo) == 1 or (hi[0] == lo[1] and np.array_equal(hi[:-1], lo[1:])):
        return _tiles(op, values[: hi[-1]], lo)
    first, last = int(lo.min()), int(hi.max())
    if 2 * first > last:  # rather than look at values that no extent has
        values, last, lo, hi = values[first:], last - first, lo - first, hi - first
    return _overlapping(op, values[:last], lo, hi, lengths)


def _tiles(op: np.ufunc, values: Array, lo: Array) -> Array:
    """Each extent starts where the one before ends."""
    result: Array = op.reduceat(values, lo)
    return result


def _overlapping(op: np.ufunc, values: Array, lo: Array, hi: Array, lengths: Array) -> Array:
    span, count, total = len(values), len(lo), int(lengths.sum())
    if COPY * total < span:
        return _copied(op, values, lo, lengths)
    if op is np.add and values.dtype.kind in "iu":
        return _differences(values, lo, hi)
    longest = int(lengths.max())
    passes = PASS * longest.bit_length() * span
    by_pairs = 2 * SLOT * count + COVERED * total
    if longest * count == total:
        if passes + LOOK * count < by_pairs:
            return slide(op, values, longest).take(lo)
    elif op is not np.add:
        if passes + 4 * LOOK * count < by_pairs:
            return _picks_by_doubling(op, values, lo, lengths)
    elif DIGITS * (span + count) < by_pairs:
        return _float_sums(values, lo, hi, lengths, longest)
    return _pairs(op, values, lo, hi)


def _float_sums(values: Array, lo: Array, hi: Array, lengths: Array, longest: int) -> Array:
    """Sums of extents of any lengths: exact as integers, if few rounds do for all values."""
    if np.isfinite(values).all():
        found = sums_by_digits(
            lambda digits: _differences(digits, lo, hi), values, len(lo), longest, ROUNDS
        )
        if found is not None:
            return found[0] + found[1]
    return _sums_by_doubling(values, lo, lengths)


def _copied(op: np.ufunc, values: Array, lo: Array, lengths: Array) -> Array:
    """Few values of many: bring the covered ones together, where they tile."""
    ends = np.cumsum(lengths)
    return _tiles(op, values.take(ranges(lo, lengths)), ends - lengths)


def _differences(values: Array, lo: Array, hi: Array) -> Array:
    """Integer sums as differences of running sums; a running sum that wraps round cancels."""
    running = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=running[1:])
    return running.take(hi) - running.take(lo)


def _pairs(op: np.ufunc, values: Array, lo: Array, hi: Array) -> Array:
    """`reduceat` over lo, hi, lo, hi, …, of which every second result counts.

    The slots between extents take from hi to the next lo. While lo ascends that is every value
    once at most; in another order it could be every value each time.
    """
    if (lo[1:] < lo[:-1]).any():
        order = np.argsort(lo, kind="stable")
        result = np.empty(len(lo), values.dtype)
        result[order] = _pairs(op, values, lo[order], hi[order])
        return result
    slots = np.empty(2 * len(lo), np.int64)
    slots[::2] = lo
    slots[1::2] = hi
    # A slot cannot start at the end of the values. Extents that reach the end stop one earlier
    # and get the last value afterwards, except those that consist of it.
    end = len(values) - 1
    np.minimum(slots, end, out=slots)
    result = op.reduceat(values, slots)[::2]
    short = np.flatnonzero((hi > end) & (lo < end))
    result[short] = op(result[short], values[end])
    return result


def slide(op: np.ufunc, values: Array, length: int, before: Array | None = None) -> Array:
    """The result of each `length` values in a row; `before` come first, fewer than that.

    >>> slide(np.maximum, np.array([1, 5, 2, 3]), 2).tolist()
    [5, 5, 3]
    """
    if before is None or not len(before):
        return _slide(op, values, length, 1)
    # Neighbours of both are joined in one array, rather than the values themselves.
    ahead = len(before)
    pairs = np.empty(ahead + len(values) - 1, values.dtype)
    op(before[:-1], before[1:], out=pairs[: ahead - 1])
    pairs[ahead - 1] = op(before[-1], values[0])
    op(values[:-1], values[1:], out=pairs[ahead:])
    return _slide(op, pairs, length, 2)


def _slide(op: np.ufunc, values: Array, length: int, span: int) -> Array:
    """The result of each `length` values in a row, where one stands for `span` of them."""
    step = max(BLOCK, 2 * length)
    result = np.empty(len(values) - length + span, values.dtype)
    room = min(step, len(result)) + length
    # Values that were joined for this may be written over, if no other block reads them.
    joined = span > 1 and len(result) <= step
    spare = np.empty(room, values.dtype), values if joined else np.empty(room, values.dtype)
    block = _sum_block if op is np.add else _long_pick_block if length >= LONG else _pick_block
    for start in range(0, len(result), step):
        out = result[start : start + step]
        block(op, values[start : start + len(out) + length - span], length, spare, out, span)
    return result


def _pick_block(
    op: np.ufunc, source: Array, length: int, spare: Spare, out: Array, span: int
) -> None:
    """Doubling for an operation that may see a value twice: two overlapping halves."""
    source, span = _doubled(op, source, length, spare, span)
    _ends(op, source, length - span, out)


def _long_pick_block(
    op: np.ufunc, source: Array, length: int, spare: Spare, out: Array, span: int
) -> None:
    """The same for long extents: doubling for both ends, and what is between for several at once.

    `CORE` extents in a row have the values from the last one's `CORE`-th on in common, up to the
    end of the first: more of its parts, one behind the other, the last of which overlaps.
    """
    source, _ = _doubled(op, source, CORE, spare, span)
    rest = length - CORE
    _ends(op, source, rest, out)
    parts, cores = length // CORE - 1, -(-len(out) // CORE)
    between = source[CORE : (cores - 1 + parts) * CORE + 1 : CORE]
    core = slide(op, between.copy(), parts)
    op(core, source[rest::CORE], out=core)
    op(out, core.repeat(CORE)[: len(out)], out=out)


def _doubled(
    op: np.ufunc, source: Array, length: int, spare: Spare, span: int
) -> tuple[Array, int]:
    """The results of the most values up to a length that is a power of two times `span`."""
    this, other = spare
    while 2 * span <= length:
        size = len(source) - span
        source = op(source[:size], source[span:], out=this[:size])
        this, other = other, this
        span *= 2
    return source, span


def _ends(op: np.ufunc, source: Array, rest: int, out: Array) -> None:
    """Two parts of each extent, of which the second begins so many places behind the first."""
    op(source[: len(out)], source[rest : rest + len(out)], out=out)


def _sum_block(
    op: np.ufunc, source: Array, length: int, spare: Spare, out: Array, step: int
) -> None:
    """Doubling for sums: the parts that the bits of the length stand for, one after the other."""
    size, begun = len(source), 0
    this, other = spare
    while True:
        if length & step:
            part = source[begun : begun + len(out)]
            if begun:
                op(out, part, out=out)
            else:
                out[:] = part
            begun += step
        if 2 * step > length:
            return
        size -= step
        op(source[:size], source[step : step + size], out=this[:size])
        source, this, other = this, other, this
        step *= 2


def _picks_by_doubling(op: np.ufunc, values: Array, lo: Array, lengths: Array) -> Array:
    """Largest or smallest of extents of any lengths: two lookups in the pass of its length."""
    result = np.empty(len(lo), values.dtype)
    exponents = np.frexp(lengths)[1] - 1
    table, step = values, 1
    for exponent in range(int(exponents.max()) + 1):
        if exponent:
            table, step = op(table[:-step], table[step:]), 2 * step
        which = np.flatnonzero(exponents == exponent)
        if len(which):
            begin = lo[which]
            left = table.take(begin)
            begin += lengths[which]
            begin -= step
            result[which] = op(left, table.take(begin), out=left)
    return result


def _sums_by_doubling(values: Array, lo: Array, lengths: Array) -> Array:
    """Sums of extents of any lengths: the parts that the bits of each length stand for."""
    result = np.zeros(len(lo), values.dtype)
    begun = lo.copy()
    table, step = values, 1
    for exponent in range(int(lengths.max()).bit_length()):
        if exponent:
            table, step = table[:-step] + table[step:], 2 * step
        which = np.flatnonzero(lengths & step)
        begin = begun[which]
        result[which] += table.take(begin)
        begun[which] = begin + step
    return result


# Float sums as pairs `high + low`, with about twice the digits of one float.
#
# Where large values cancel, what is left of a plain sum is its rounding errors. The values are cut
# into digits of a fixed point number instead, as many bits at a time as sums of 64 bit integers
# can take without loss, and each row of digits is added as integers.


# Sums of digits stay below 2 ** 62, so that rounding one to a float and back cannot overflow.
BITS = 62

# Pairs are added so many at a time that what lies between stays in the cache: 5 ns for a pair,
# against 50 when arrays of 2 MB come and go.
PAIR_BLOCK = 1 << 12


@overload
def sums_by_digits(
    add: Callable[[Array], Array], values: Array, count: int, longest: int
) -> tuple[Array, Array]: ...


@overload
def sums_by_digits(
    add: Callable[[Array], Array], values: Array, count: int, longest: int, rounds: int
) -> tuple[Array, Array] | None: ...


def sums_by_digits(
    add: Callable[[Array], Array],
    values: Array,
    count: int,
    longest: int,
    rounds: int | None = None,
) -> tuple[Array, Array] | None:
    """Sums of finite floats as pairs, by means of exact sums of integers.

    `add` gives the sums of its extents for an array of integers, `count` of them, the longest of
    `longest` values. None if the values have more digits than `rounds` rounds can take.
    """
    high, low = np.zeros(count), np.zeros(count)
    bits = BITS - longest.bit_length()
    done = 0
    # What is left of a value after some digits is below the last of them, so this ends, and soon
    # where the values are of similar size: after two rounds or three.
    while len(values) and (top := max(float(values.max()), -float(values.min()))):
        if done == rounds:
            return None
        scale = _Scale(bits - frexp(top)[1])
        digits = scale.up(values)
        np.trunc(digits, out=digits)
        total = add(digits.astype(np.int64))
        if done:
            high, low = add_pairs(high, low, *scale.pairs(total))
        else:
            high, low = scale.pairs(total)
        values = np.subtract(values, scale.down(digits), out=digits)
        done += 1
    return high, low


class _Scale:
    """A power of two as two factors, since it may be beyond the range of floats itself."""

    def __init__(self, shift: int) -> None:
        self.one, self.two = ldexp(1.0, shift // 2), ldexp(1.0, shift - shift // 2)

    def up(self, values: Array) -> Array:
        """Values times the scale. Those so small that they vanish have no digit in this round."""
        with np.errstate(under="ignore"):
            scaled: Array = values * self.one
            scaled *= self.two
        return scaled

    def down(self, digits: Array) -> Array:
        """Back to the size they had, in place."""
        digits *= 1 / self.one
        digits *= 1 / self.two
        return digits

    def pairs(self, totals: Array) -> tuple[Array, Array]:
        """Integers over the scale, as pairs."""
        high = totals.astype(np.float64)
        low = (totals - high.astype(np.int64)).astype(np.float64)
        with np.errstate(over="ignore"):
            return self.down(high), self.down(low)


def add_pairs(
    a_high: Array, a_low: Array, b_high: Array, b_low: Array | None
) -> tuple[Array, Array]:
    """The sums of pairs as pairs; where a sum is infinite or NaN its `low` is 0.

    None in place of `b_low` is 0 for all.

    >>> high, low = add_pairs(*map(np.array, ([1e16], [1.0], [-1e16], [0.25])))
    >>> high.tolist(), low.tolist()
    ([1.25], [0.0])
    """
    high, low = np.empty(len(a_high)), np.empty(len(a_high))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(high), PAIR_BLOCK):
            part = slice(start, start + PAIR_BLOCK)
            rest = None if b_low is None else b_low[part]
            high[part], low[part] = _add(a_high[part], a_low[part], b_high[part], rest)
    return high, low


def _add(a_high: Array, a_low: Array, b_high: Array, b_low: Array | None) -> tuple[Array, Array]:
    first, error = _two_sum(a_high, b_high)
    if b_low is None:
        high, error = _quick_two_sum(first, error + a_low)
    else:
        low, least = _two_sum(a_low, b_low)
        high, error = _quick_two_sum(first, error + low)
        high, error = _quick_two_sum(high, error + least)
    finite = np.isfinite(high)
    if finite.all():
        return high, error
    return np.where(finite, high, first), np.where(finite, error, 0.0)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum rounded, and what rounding took away."""
    high = a + b
    other = high - a
    return high, (a - (high - other)) + (b - other)


def _quick_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The same where |a| is not below |b|, or where one of them is 0."""
    high = a + b
    return high, b - (high - a)
