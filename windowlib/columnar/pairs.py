"""Float sums as pairs `high + low`, with about twice the digits of one float.

Where large values cancel, what is left of a plain sum is its rounding errors. The values are cut
into digits of a fixed point number instead, as many bits at a time as sums of 64 bit integers
can take without loss, and each row of digits is added as integers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, ldexp

import numpy as np

from windowlib.columnar.grouping import Array
from windowlib.columnar.reduce import sums

Sums = Callable[[Array, Array, Array], Array]

# Sums of digits stay below 2 ** 62, so that rounding one to a float and back cannot overflow.
BITS = 62


def two_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The sum of each extent as `high + low`, right to about 100 bits; `low` is small.

    If no value is negative, or none positive, nothing can cancel: `high` is the plain sum and
    `low` is 0. Infinities and NaN give what adding them gives, in the extents they belong to. A
    sum is infinite only if the exact sum is too large for a float.

    >>> high, low = two_sums(np.array([1e16, 1.0, -1e16]), np.array([0, 0]), np.array([3, 2]))
    >>> (high + low).tolist(), low.tolist()
    ([1.0, 1e+16], [0.0, 1.0])
    """
    return pairs_by_digits(sums, values, lo, hi)


def pairs_by_digits(add: Sums, values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """`two_sums` by means of another function for plain sums."""
    if one_sign(values):
        return add(values, lo, hi), np.zeros(len(lo))
    finite = np.isfinite(values)
    if finite.all():
        return _finite_pairs(add, values, lo, hi)
    high, low = _finite_pairs(add, np.where(finite, values, 0.0), lo, hi)
    with np.errstate(invalid="ignore"):
        marks = add(np.where(finite, 0.0, values), lo, hi)
    high = np.where(marks == 0, high, marks)
    low[marks != 0] = 0.0
    return high, low


def one_sign(values: Array) -> bool:
    """Whether no value is negative or none positive; NaN is neither."""
    with np.errstate(invalid="ignore"):
        return not len(values) or bool(values.min() >= 0) or bool(values.max() <= 0)


def _finite_pairs(add: Sums, values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    high, low = np.zeros(len(lo)), np.zeros(len(lo))
    if not len(lo):
        return high, low
    bits = BITS - int((hi - lo).max()).bit_length()
    # What is left of a value after some digits is below the last of them, so this ends, and at
    # once where the values have similar exponents: after two rounds or three.
    while top := max(float(values.max()), -float(values.min())):
        shift = bits - frexp(top)[1]
        # A scale beyond the range of floats is two factors. Values so small that they vanish
        # on the way have no digit in this row.
        one, two = ldexp(1.0, shift // 2), ldexp(1.0, shift - shift // 2)
        digits = values * one
        digits *= two
        np.trunc(digits, out=digits)
        total = add(digits.astype(np.int64), lo, hi)
        digits *= 1 / one
        digits *= 1 / two
        values = values - digits
        high, low = add_pairs(high, low, *_scaled(total, 1 / one, 1 / two))
    return high, low


def _scaled(total: Array, one: float, two: float) -> tuple[Array, Array]:
    """Integers times a power of two, as pairs."""
    high = total.astype(np.float64)
    low = (total - high.astype(np.int64)).astype(np.float64)
    with np.errstate(over="ignore"):
        return high * one * two, low * one * two


def add_pairs(a_high: Array, a_low: Array, b_high: Array, b_low: Array) -> tuple[Array, Array]:
    """The sums of pairs as pairs; where a sum is infinite or NaN its `low` is 0.

    >>> high, low = add_pairs(*map(np.array, ([1e16], [1.0], [-1e16], [0.25])))
    >>> high.tolist(), low.tolist()
    ([1.25], [0.0])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        plain = a_high + b_high
        high, error = _two_sum(a_high, b_high)
        low, least = _two_sum(a_low, b_low)
        high, error = _quick_two_sum(high, error + low)
        high, error = _quick_two_sum(high, error + least)
    finite = np.isfinite(high)
    if finite.all():
        return high, error
    return np.where(finite, high, plain), np.where(finite, error, 0.0)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum rounded, and what rounding took away."""
    high = a + b
    other = high - a
    return high, (a - (high - other)) + (b - other)


def _quick_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The same where |a| is not below |b|, or where one of them is 0."""
    high = a + b
    return high, b - (high - a)
