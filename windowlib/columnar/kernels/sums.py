"""Counts and sums, and what is divided by them.

Float sums are pairs of floats, `high + low`, so that nothing is lost where values cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import (
    EXACT,
    Array,
    Kernel,
    Planes,
    Result,
    Values,
    bounded,
    column,
    counted,
    is_number,
    masked,
    plain_places,
)
from windowlib.columnar.primitives import add_pairs, sums, two_sums
from windowlib.folds import Fold


class Counting(Kernel):
    """How many tuples; the window counts them anyway."""

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Nothing to keep."""
        return ()

    def merge(self, a: Planes, b: Planes) -> Planes:
        """Nothing to merge."""
        return ()

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Nothing to combine."""
        return ()

    def finish(self, planes: Planes, n: Array) -> Result:
        """The number of tuples."""
        return pa.array(n)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """No places."""
        return [[] for _ in n]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """No planes."""
        return ()


class CountingValues(Kernel):
    """How many values are not null."""

    dtypes = (np.int64,)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The number of values."""
        return (counted(values[0], lo, hi),)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The sum of both."""
        return (a[0] + b[0],)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The sum of all."""
        return (sums(planes[0], lo, hi),)

    def finish(self, planes: Planes, n: Array) -> Result:
        """The number."""
        return pa.array(planes[0])

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """One place."""
        return [[count] for count in planes[0].tolist()]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """A place that is as it started is 0."""
        return (np.array([count or 0 for (count,) in saved], np.int64),)


class Total:
    """Sums of one column of numbers, as planes: whole numbers in one, floats in two."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        if not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_duration(kind)):
            raise Decline(f"{name} of {kind} needs Python values")
        self.kind = kind
        self.floating = pa.types.is_floating(kind)
        self.dtypes: tuple[Any, ...] = (np.float64,) * 2 if self.floating else (np.int64,)

    def partial(self, values: Column, lo: Array, hi: Array) -> Planes:
        """The sum of each run; nulls are 0."""
        if self.floating:
            return two_sums(values.data, lo, hi)
        bounded(values.data, len(values))
        return (sums(values.data, lo, hi),)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The sum of both."""
        if self.floating:
            return add_pairs(*a, *b)
        for part in (a, b):
            bounded(part[0], 2)
        return (a[0] + b[0],)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The sum of all."""
        if not self.floating:
            bounded(planes[0], len(planes[0]))
            return (sums(planes[0], lo, hi),)
        high, low = two_sums(planes[0], lo, hi)
        if not planes[1].any():
            return high, low
        return add_pairs(high, low, sums(planes[1], lo, hi), np.zeros(len(lo)))

    def floats(self, planes: Planes) -> Array:
        """Float sums in one."""
        return planes[0] + planes[1]

    def arrow(self, planes: Planes, valid: Array) -> pa.Array:
        """The sums, null where there was no value."""
        if self.floating:
            return masked(self.floats(planes), valid > 0)
        if pa.types.is_decimal(self.kind):
            return column(pa.decimal128(38, self.kind.scale), planes[0], valid > 0)
        if pa.types.is_duration(self.kind):
            return column(self.kind, planes[0], valid > 0)
        return masked(planes[0], valid > 0)

    def python(self, planes: Planes) -> list[Any]:
        """The sums as the event engine has them: a total and a compensation."""
        if self.floating:
            return list(zip(planes[0].tolist(), planes[1].tolist(), strict=True))
        zero: Any = 0
        if pa.types.is_decimal(self.kind):
            zero = Decimal(0).scaleb(-self.kind.scale)
        elif pa.types.is_duration(self.kind):
            zero = timedelta(0)
        known = np.ones(len(planes[0]), np.int64)
        return [(total, zero) for total in self.arrow(planes, known).to_pylist()]

    def take(self, totals: Sequence[tuple[Any, Any]]) -> Planes:
        """What `python` gave; None for no value."""
        if self.floating:
            pairs = [(total or 0.0, carry or 0.0) for total, carry in totals]
            for part in (each for pair in pairs for each in pair):
                if not isinstance(part, int | float) or (abs(part) > EXACT and type(part) is int):
                    raise Decline(f"the sum so far, {part!r}, is no float")
            both = np.array(pairs, np.float64).reshape(len(totals), 2)
            return both[:, 0].copy(), both[:, 1].copy()
        if any(carry for _, carry in totals):
            raise Decline("the sum so far is not exact")
        kind = self.kind
        if pa.types.is_decimal(kind):
            kind = pa.decimal128(38, kind.scale)
        elif not pa.types.is_duration(kind):
            kind = pa.int64()
        data = Column.from_values([total for total, _ in totals], kind)
        if not data.physical:
            raise Decline("the sum so far needs more than 64 bits")
        return (data.data.astype(np.int64),)


class Sum(Kernel):
    """Totals, and how many values are in them."""

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.total = Total(fold.name, types[0])
        self.dtypes = (*self.total.dtypes, np.int64)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Sums and counts."""
        return (*self.total.partial(values[0], lo, hi), counted(values[0], lo, hi))

    def merge(self, a: Planes, b: Planes) -> Planes:
        """Add both."""
        return (*self.total.merge(a[:-1], b[:-1]), a[-1] + b[-1])

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Add all."""
        return (*self.total.combine(planes[:-1], lo, hi), sums(planes[-1], lo, hi))

    def finish(self, planes: Planes, n: Array) -> Result:
        """The sum, null if every value was."""
        return self.total.arrow(planes[:-1], planes[-1])

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """Total, nulls and, unless the run is short, the compensation."""
        short = len(self.fold.plain.empty) == 2
        found = []
        totals, valid = self.total.python(planes[:-1]), planes[-1].tolist()
        for (total, carry), count, size in zip(totals, valid, n.tolist(), strict=True):
            places = [total if count else None, size - count]
            if short:
                places[0] = total + carry if count else None
            else:
                places.append(carry if count else None)
            found.append(self.fold.as_saved(places))
        return found

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Sums and counts."""
        plain = plain_places(self.fold, saved)
        planes = self.total.take([(each[0], each[2] if len(each) > 2 else 0) for each in plain])
        nulls = np.array([each[1] or 0 for each in plain], np.int64)
        return (*planes, n - nulls)


class Mean(Sum):
    """Totals over counts."""

    def finish(self, planes: Planes, n: Array) -> Result:
        """Sum over count, exactly as one division of Python numbers would round it."""
        *parts, valid = planes
        total = self.total
        if total.floating:
            above = total.floats(tuple(parts))
        elif pa.types.is_decimal(total.kind) or pa.types.is_duration(total.kind):
            return self._divided(tuple(parts), valid)
        else:
            above = parts[0]
            if len(above) and max(-float(above.min()), float(above.max())) > EXACT:
                return self._divided(tuple(parts), valid)
        some = valid > 0
        return masked(above / np.where(some, valid, 1), some)

    def _divided(self, parts: Planes, valid: Array) -> list[Any]:
        totals = self.total.arrow(parts, valid).to_pylist()
        pairs = zip(totals, valid.tolist(), strict=True)
        return [None if total is None else total / count for total, count in pairs]


class WeightedMeanKernel(Kernel):
    """Sums of value times weight and of weights, of pairs without a null."""

    dtypes = (np.float64,) * 4 + (np.int64,)

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        if not any(map(pa.types.is_floating, types)):
            raise Decline("weighted_mean of whole numbers or decimals needs Python values")
        for kind in types:
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise Decline(f"weighted_mean of {kind} needs Python values")
        self.whole = [pa.types.is_integer(kind) for kind in types]

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Both sums."""
        for each, whole in zip(values, self.whole, strict=True):
            if whole and len(each) and float(np.abs(each.data).max()) > EXACT:
                raise Decline("weighted_mean of whole numbers that are no floats")
        x, weight = (each.data.astype(np.float64) for each in values)
        valid = _both_valid(values)
        if valid is not None:
            x, weight = np.where(valid, x, 0.0), np.where(valid, weight, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            above = two_sums(x * weight, lo, hi)
        count = hi - lo if valid is None else sums(valid.astype(np.int64), lo, hi)
        return (*above, *two_sums(weight, lo, hi), count)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """Add both."""
        above, below = add_pairs(*a[:2], *b[:2]), add_pairs(*a[2:4], *b[2:4])
        return (*above, *below, a[4] + b[4])

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Add all."""
        found: list[Array] = []
        for high, low in (planes[:2], planes[2:4]):
            total = two_sums(high, lo, hi)
            found += add_pairs(*total, sums(low, lo, hi), np.zeros(len(lo)))
        return (*found, sums(planes[4], lo, hi))

    def finish(self, planes: Planes, n: Array) -> Result:
        """The quotient; null without values, or if the weights add up to zero."""
        above, below = planes[0] + planes[1], planes[2] + planes[3]
        some = (planes[4] > 0) & (below != 0)
        with np.errstate(over="ignore", invalid="ignore"):
            return masked(above / np.where(some, below, 1.0), some)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """Twice total, nulls and compensation, and the number of pairs."""
        rows = zip(*(plane.tolist() for plane in planes), strict=True)
        return [
            [high, 0, low, weights, 0, rest, count] if count else [None] * 7
            for high, low, weights, rest, count in rows
        ]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Both sums and the number."""
        for each in saved:
            if any(not isinstance(place, int | float | None) for place in each):
                raise Decline("weighted_mean so far is no float")
        rows = [[each[i] or 0.0 for i in (0, 2, 3, 5)] for each in saved]
        both = np.array(rows, np.float64).reshape(len(saved), 4)
        count = np.array([each[6] or 0 for each in saved], np.int64)
        return (*(both[:, i].copy() for i in range(4)), count)


def _both_valid(values: Values) -> Array | None:
    masks = [each.valid for each in values if each.valid is not None]
    return None if not masks else np.logical_and.reduce(masks)
