"""Exact arithmetic on the axis of a window: indexes, ticks or real numbers, one or an array.

A float is the number that it is. Whole parameters stay ints, others become fractions, and nothing
is rounded on the way: `floor(x)` decides for whole parameters, whatever the digits behind the
point are.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowlib.errors import FarmError

Exact = int | Fraction
Array = NDArray[Any]
SAFE = 1 << 62
"""Beyond this, sums of two numbers may not fit into 64 bits."""


def exact(value: Any, owner: str) -> Exact:
    """A number as an int or a fraction; `owner` is how the message begins.

    >>> exact(2.0, "TimeWindows(size"), exact(0.5, "TimeWindows(size")
    (2, Fraction(1, 2))
    """
    if type(value) is int:
        return value
    value = value.item() if isinstance(value, np.generic) else value
    number = isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool)
    if not number or value - value != 0:
        msg = (
            f"{owner}={value!r}): not a point or a length on an axis. Use a finite number; for "
            f"instants and durations, ticks such as microseconds."
        )
        raise FarmError(msg)
    found = Fraction(value)
    return found.numerator if found.denominator == 1 else found


def length(value: Any, owner: str) -> Exact:
    """A number above zero."""
    found = exact(value, owner)
    if found <= 0:
        raise FarmError(f"{owner}={value!r}): a length is more than zero. Use 1, for example.")
    return found


def whole(value: Any, owner: str) -> int:
    """A number of tuples, or an index."""
    found = exact(value, owner)
    if not isinstance(found, int):
        raise FarmError(f"{owner}={value!r}): tuples and windows are counted. Use a whole number.")
    return found


def floors(x: Any, origin: Exact, step: Exact) -> Any:
    """How many whole steps a point is from the origin, rounded down; of an array, for each.

    >>> floors(-1, 0, 4), floors(5.5, 4, 2)
    (-1, 0)
    >>> floors(np.array([-1, 0, 7]), 0, 4).tolist()
    [-1, 0, 1]
    """
    if not isinstance(x, np.ndarray):
        return (exact(x, "windows(x") - origin) // step
    scale = lcm(Fraction(origin).denominator, Fraction(step).denominator)
    start, width = int(origin * scale), int(step * scale)
    points = _ticks(x, scale)
    if points.dtype == object or max(abs(start), width) >= SAFE:
        return narrow((points.astype(object) - start) // width)
    return (points - start) // width


def _ticks(x: Array, scale: int) -> Array:
    """The floor of each point times `scale`: as 64 bits where they suffice, else Python's ints."""
    if x.dtype.kind in "iu" and _largest(x) * scale < SAFE:
        return x.astype(np.int64) * scale
    if x.dtype.kind == "f" and x.dtype.itemsize <= 8 and scale & (scale - 1) == 0:
        with np.errstate(over="ignore"):  # what becomes infinite is done below
            # A power of two only moves the point, so nothing is rounded before the floor.
            found = np.floor(np.ldexp(x.astype(np.float64), scale.bit_length() - 1))
        if bool((np.abs(found) < SAFE).all()):  # which no NaN is
            return found.astype(np.int64)
    ticks = [floor(exact(each, "windows(x") * scale) for each in x.ravel().tolist()]
    return np.array(ticks, dtype=object).reshape(x.shape)


def _largest(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0


def narrow(x: Array) -> Array:
    """An array of Python's ints in 64 bits, if they fit."""
    try:
        return x.astype(np.int64)
    except OverflowError:
        return x


def spread(first: Any, counts: Any) -> tuple[Array, Array]:
    """The runs `first, first + 1, …` of given lengths end to end, and the row of each number.

    >>> rows, numbers = spread(np.array([7, 0, 3]), np.array([2, 0, 3]))
    >>> rows.tolist(), numbers.tolist()
    ([0, 0, 2, 2, 2], [7, 8, 3, 4, 5])
    """
    counts = np.maximum(counts, 0).astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, first[rows] + (np.arange(len(rows)) - begins[rows])
