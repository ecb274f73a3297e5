"""Exact sums of whole numbers and decimals, and results of them that are rounded once.

A decimal is a whole number of units, of which 10 ** `digits` make 1; sums of such numbers are whole
numbers as well, of any size.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from typing import Any

WIDEST = 6144
"""The largest exponent of a decimal that is added exactly, either way."""


def exact_number(x: Any) -> tuple[int, int | None] | None:
    """A number as units and digits; no digits for a whole number; None if it is something else.

    >>> from decimal import Decimal
    >>> exact_number(7), exact_number(Decimal("1.50")), exact_number(0.5)
    ((7, None), (150, 2), None)
    """
    if isinstance(x, int):
        return int(x), None
    if isinstance(x, Decimal):
        sign, places, exponent = x.as_tuple()
        if not isinstance(exponent, int) or abs(exponent) > WIDEST:  # infinite or NaN, or too wide
            return None
        units = int("".join(map(str, places)) or "0") * 10 ** max(exponent, 0)
        return -units if sign else units, max(-exponent, 0)
    if hasattr(x, "__index__"):  # whole numbers of numpy, which are not exact by themselves
        return x.__index__(), None
    return None


def ratio(above: int, below: int) -> float:
    """A quotient, rounded once; infinite if it is too large for a float.

    >>> ratio(1, 3), ratio(10**400, 1)
    (0.3333333333333333, inf)
    """
    try:
        return above / below
    except OverflowError:
        return math.inf if (above > 0) == (below > 0) else -math.inf


def root(above: int, below: int) -> float:
    """The square root of a quotient that is not negative, rounded once.

    >>> root(2, 1), root(4, 9), root(10**800, 1)
    (1.4142135623730951, 0.6666666666666666, inf)
    """
    # 64 bits or more of the root, and below them a bit that tells whether anything is left.
    shift = 128 + below.bit_length() - above.bit_length()
    shift = max(shift + shift % 2, 0)
    found = math.isqrt((above << shift) // below)
    sticky = found * found * below != above << shift
    return ratio(2 * found + sticky, 2 << shift // 2)


def decimal_ratio(above: int, below: int, digits: int) -> Decimal:
    """A quotient of numbers of units, rounded once to the precision of the decimal context.

    >>> decimal_ratio(100, 3, 2)
    Decimal('0.3333333333333333333333333333')
    """
    unit: int = 10**digits
    return Decimal(above) / (below * unit)


def decimal_root(above: int, below: int, digits: int) -> Decimal:
    """The square root of such a quotient, rounded once to the precision of the context.

    >>> decimal_root(200, 1, 2), decimal_root(900, 1, 2)
    (Decimal('1.414213562373095048801688724'), Decimal('3'))
    """
    below *= 10**digits
    places = 2 * getcontext().prec + 4 + len(str(below)) - len(str(above))
    half = max(places // 2, 0)
    scaled = above * 100**half
    found = math.isqrt(scaled // below)
    if found * found * below == scaled:
        return (Decimal(found) / Decimal(10**half)).normalize()
    # A digit behind the last one tells that the root goes on, so that no tie is seen in it.
    return Decimal(10 * found + 1) / Decimal(10 ** (half + 1))
