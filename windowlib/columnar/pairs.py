"""Float sums as pairs `high + low`, with about twice the digits of one float.

Where large values cancel, what is left of a plain sum is its rounding errors. The values are cut
into digits of a fixed point number instead, as many bits at a time as sums of 64 bit integers
can take without loss, and each row of digits is added as integers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, ldexp
from typing import overload

import numpy as np

from windowlib.columnar.grouping import Array

# Sums of digits stay below 2 ** 62, so that rounding one to a float and back cannot overflow.
BITS = 62

# Pairs are added so many at a time that what lies between stays in the cache: 5 ns for a pair,
# against 50 when arrays of 2 MB come and go.
BLOCK = 1 << 12


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


def add_pairs(a_high: Array, a_low: Array, b_high: Array, b_low: Array) -> tuple[Array, Array]:
    """The sums of pairs as pairs; where a sum is infinite or NaN its `low` is 0.

    >>> high, low = add_pairs(*map(np.array, ([1e16], [1.0], [-1e16], [0.25])))
    >>> high.tolist(), low.tolist()
    ([1.25], [0.0])
    """
    high, low = np.empty(len(a_high)), np.empty(len(a_high))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(high), BLOCK):
            part = slice(start, start + BLOCK)
            high[part], low[part] = _add(a_high[part], a_low[part], b_high[part], b_low[part])
    return high, low


def _add(a_high: Array, a_low: Array, b_high: Array, b_low: Array) -> tuple[Array, Array]:
    first, error = _two_sum(a_high, b_high)
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
