"""Counts and sums, and what is divided by them.

Float sums are pairs of floats, `high + low`, so that nothing is lost where values cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.physical import EXACT, max_magnitude
from windowlib.columnar.kernels.kernel import (
    Kernel,
    Planes,
    Result,
    Values,
    added,
    check_bounded,
    column,
    data_of,
    dense_plane,
    is_number,
    masked,
    nullity,
    nulls,
    plain_places,
    some,
    totals,
)
from windowlib.columnar.primitives import Array, add_pairs, arrival_loops, sums, two_sums
from windowlib.columnar.primitives.reductions import has_sign, one_sign
from windowlib.summaries.folds import Fold
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns, SliceRows


LEAF_SIZE = 128
"""Floats of one sign that are added one after the other, as a leaf of pairwise sums is."""


class CountKernel(Kernel):
    """How many tuples; the window counts them anyway."""

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Nothing to keep."""
        return ()

    def takes_spread(self, values: Values) -> bool:
        """There is nothing to do."""
        return True

    def spread(self, values: Values, ids: Array, partitions: int) -> Planes:
        """Nothing to keep."""
        return ()

    def takes_arrivals(self, values: Values) -> bool:
        """There is nothing to do."""
        return True

    def arrived(self, values: Values, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """Nothing to keep."""
        return (), ()

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """Nothing to combine."""
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


class CountValuesKernel(Kernel):
    """How many values are not null: the plane counts those that are."""

    dtypes = (np.int64,)
    mostly_zero = (0,)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The number of nulls."""
        return (nulls(values[0].valid, lo, hi),)

    def takes_spread(self, values: Values) -> bool:
        """Nulls can be counted in any order."""
        return True

    def spread(self, values: Values, ids: Array, partitions: int) -> Planes:
        """The number of nulls."""
        return (spread_nulls(values[0], ids, partitions),)

    def takes_arrivals(self, values: Values) -> bool:
        """Nulls can be counted in any order."""
        return True

    def arrived(self, values: Values, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """The number of nulls."""
        closed, later = runs.sums(nullity(values[0].valid), state[0])
        return (closed,), (later,)

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """The sum of all."""
        return (rows.sums(closed[0], carried[0]),)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The sum of both."""
        return (added(a[0], b[0]),)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The sum of all."""
        return (totals(planes[0], lo, hi),)

    def finish(self, planes: Planes, n: Array) -> Result:
        """All but the nulls."""
        return pa.array(n if planes[0] is None else n - planes[0])

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """One place: the number of values."""
        return [[count] for count in (n - dense_plane(planes[0], n)).tolist()]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """A place that is as it started is 0."""
        return (n - np.array([count or 0 for (count,) in saved], np.int64),)


class Total:
    """Sums of one column of numbers, as planes: whole numbers in one, floats in two."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        if not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_duration(kind)):
            raise Decline(f"{name} of {kind} needs Python values")
        self.kind = kind
        self.floating = pa.types.is_floating(kind)
        self.dtypes: tuple[Any, ...] = (np.float64,) * 2 if self.floating else (np.int64,)
        self._sign = 0  # of the values that were last asked about; 0: they have both

    def partial(self, values: Column, lo: Array, hi: Array) -> Planes:
        """The sum of each run; nulls are 0."""
        if self.floating:
            return pair(two_sums(values.data, lo, hi))
        data = data_of(values)
        check_bounded(data, len(data))
        return (sums(data, lo, hi),)

    def takes_spread(self, values: Column) -> bool:
        """Whether nothing is lost in sums of floats in any order: nothing cancels, or all fit."""
        if self.floating:
            return one_sign(values.data)
        return max_magnitude(data_of(values)) * len(values) < EXACT

    def spread(self, values: Column, ids: Array, partitions: int) -> Planes:
        """The sum of each partition."""
        found = np.bincount(ids, values.data, partitions)
        return (found, None) if self.floating else (found.astype(np.int64),)

    def takes_arrivals(self, values: Column) -> bool:
        """Whether no float is so large that a part of a sum might be infinite, nor NaN."""
        if not self.floating:
            return True
        tame, self._sign = arrival_loops().signs(values.data)
        return bool(tame)

    def arrived(self, values: Column, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """The sum of each run, and of what it goes on with."""
        if self.floating:
            high, low = state
            if runs.length <= LEAF_SIZE and low is None and has_sign(high, self._sign):
                closed, later = runs.sums(values.data, high)
                return (closed, None), (later, None)
            return runs.two_sums(values.data, high, low, one_sign=self._sign != 0)
        data = data_of(values)
        check_bounded(data, len(data))
        check_bounded(state[0], 2)
        closed, later = runs.sums(data, state[0])
        return (closed,), (later,)

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """The sum of all slices of each window."""
        if self.floating:
            if rows.kept <= LEAF_SIZE and _alike(closed, carried):
                return rows.sums(closed[0], carried[0]), None
            return rows.two_sums(_dense(closed), _dense(carried))
        for part in (closed, carried):
            check_bounded(part[0], rows.kept)
        return (rows.sums(closed[0], carried[0]),)

    def merge(self, a: Planes, b: Planes, *, straight: bool) -> Planes:
        """The sum of both; `straight`: without pairs, if nothing cancels."""
        if self.floating:
            return (a[0] + b[0], None) if straight and _alike(a, b) else add_float_sums(a, b)
        for part in (a, b):
            check_bounded(part[0], 2)
        return (added(a[0], b[0]),)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The sum of all."""
        if self.floating:
            return combine_float_sums(planes, lo, hi)
        check_bounded(planes[0], int((hi - lo).max(initial=0)))
        return (totals(planes[0], lo, hi),)

    def floats(self, planes: Planes) -> Array:
        """Float sums in one."""
        high, low = planes
        floats: Array = high + (0.0 if low is None else low)  # no sum is -0.0: it starts at 0
        return floats

    def arrow(self, planes: Planes, known: Array | None) -> pa.Array:
        """The sums, null where there was no value."""
        if self.floating:
            return masked(self.floats(planes), known)
        assert planes[0] is not None
        if pa.types.is_decimal(self.kind):
            return column(pa.decimal128(38, self.kind.scale), planes[0], known)
        if pa.types.is_duration(self.kind):
            return column(self.kind, planes[0], known)
        return masked(planes[0], known)

    def python(self, planes: Planes) -> list[Any]:
        """The sums as the event engine has them: a total and a compensation."""
        if self.floating:
            high = dense_plane(planes[0], planes[0])
            low = dense_plane(planes[1], high, np.float64)
            return list(zip(high.tolist(), low.tolist(), strict=True))
        zero: Any = 0
        if pa.types.is_decimal(self.kind):
            zero = Decimal(0).scaleb(-self.kind.scale)
        elif pa.types.is_duration(self.kind):
            zero = timedelta(0)
        return [(total, zero) for total in self.arrow(planes, None).to_pylist()]

    def take(self, totals: Sequence[tuple[Any, Any]]) -> Planes:
        """What `python` gave; None for no value."""
        if self.floating:
            return loaded(totals)
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


class SumKernel(Kernel):
    """Totals, and how many nulls were left out of them."""

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.total = Total(fold.name, types[0])
        self.dtypes = (*self.total.dtypes, np.int64)
        self.mostly_zero = tuple(range(1, len(self.dtypes)))

    def singles(self, values: Values) -> Planes:
        """Each value itself; nulls are 0."""
        valid = values[0].valid
        left = None if valid is None else (~valid).astype(np.int64)
        return (values[0].data, *(None for _ in self.total.dtypes[1:]), left)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Sums and nulls."""
        return (*self.total.partial(values[0], lo, hi), nulls(values[0].valid, lo, hi))

    def takes_spread(self, values: Values) -> bool:
        """As its sums."""
        return self.total.takes_spread(values[0])

    def spread(self, values: Values, ids: Array, partitions: int) -> Planes:
        """Sums and nulls."""
        left = spread_nulls(values[0], ids, partitions)
        return (*self.total.spread(values[0], ids, partitions), left)

    def takes_arrivals(self, values: Values) -> bool:
        """Unless a part of a sum might be infinite."""
        return self.total.takes_arrivals(values[0])

    def arrived(self, values: Values, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """Sums and nulls."""
        closed, later = self.total.arrived(values[0], runs, state[:-1])
        missing, left = runs.sums(nullity(values[0].valid), state[-1])
        return (*closed, missing), (*later, left)

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """Add all."""
        missing = rows.sums(closed[-1], carried[-1])
        return (*self.total.slid(closed[:-1], rows, carried[:-1]), missing)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """Add both."""
        straight = 0 < self.most <= LEAF_SIZE
        return (*self.total.merge(a[:-1], b[:-1], straight=straight), added(a[-1], b[-1]))

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Add all."""
        return (*self.total.combine(planes[:-1], lo, hi), totals(planes[-1], lo, hi))

    def finish(self, planes: Planes, n: Array) -> Result:
        """The sum, null if every value was."""
        return self.total.arrow(planes[:-1], some(planes[-1], n))

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """Total, nulls and, unless the run is short, the compensation."""
        short = len(self.fold.plain.empty) == 2
        found = []
        totals_, left = self.total.python(planes[:-1]), dense_plane(planes[-1], n).tolist()
        for (total, carry), nulls_, size in zip(totals_, left, n.tolist(), strict=True):
            count = size - nulls_
            places = [total if count else None, nulls_]
            if short:
                places[0] = total + carry if count else None
            else:
                places.append(carry if count else None)
            found.append(self.fold.as_saved(places))
        return found

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Sums and nulls."""
        plain = plain_places(self.fold, saved)
        planes = self.total.take([(each[0], each[2] if len(each) > 2 else 0) for each in plain])
        return (*planes, np.array([each[1] or 0 for each in plain], np.int64))


class MeanKernel(SumKernel):
    """Totals over counts."""

    def finish(self, planes: Planes, n: Array) -> Result:
        """Sum over count, exactly as one division of Python numbers would round it."""
        parts, left = planes[:-1], planes[-1]
        known, total = some(left, n), self.total
        count = n if left is None else n - left
        if total.floating:
            above = total.floats(parts)
        else:
            assert parts[0] is not None
            above = parts[0]
            if not _floats(above) or not is_number(total.kind) or is_decimal(total.kind):
                return self._divided(parts, known, count)
        if known is None:
            return masked(above / count)
        return masked(above / np.where(known, count, 1), known)

    def _divided(self, parts: Planes, known: Array | None, count: Array) -> list[Any]:
        pairs = zip(self.total.arrow(parts, known).to_pylist(), count.tolist(), strict=True)
        return [None if total is None else total / n for total, n in pairs]


def spread_nulls(values: Column, ids: Array, partitions: int) -> Array | None:
    """How many values of each partition are null."""
    if values.valid is None:
        return None
    return np.bincount(ids[~values.valid], minlength=partitions)


def _floats(numbers: Array) -> bool:
    """Whether whole numbers are floats, too."""
    return max_magnitude(numbers) <= EXACT


def is_decimal(kind: pa.DataType) -> bool:
    """Whether Python has decimals for it."""
    return bool(pa.types.is_decimal(kind))


def pair(planes: Planes) -> Planes:
    """A sum as two floats; the second is left out where it is always 0."""
    high, low = planes
    return high, None if low is None or not low.any() else low


def _dense(planes: Planes) -> tuple[Array, Array]:
    """A sum as two floats."""
    high, low = planes
    return high, dense_plane(low, high, np.float64)


def _alike(a: Planes, b: Planes) -> bool:
    """Whether sums are plain floats of one sign."""
    if a[1] is not None or b[1] is not None:
        return False
    return any(has_sign(a[0], sign) and has_sign(b[0], sign) for sign in (1, -1))


def loaded(totals: Sequence[tuple[Any, Any]]) -> Planes:
    """Float sums of the event engine, each a total and a compensation, None for no value."""
    for total, _ in totals:
        if total is not None and type(total) is not float:
            raise Decline(f"the sum so far, {total!r}, is no float")
    both = np.array([(total or 0.0, carry or 0.0) for total, carry in totals], np.float64)
    high, low = both.reshape(len(totals), 2).T.copy()
    low[~np.isfinite(high)] = 0.0  # the compensation of an infinite sum is no number
    return high, low


def add_float_sums(a: Planes, b: Planes) -> Planes:
    """Two sums of two floats each, together."""
    a_high, b_high = a[0], b[0]
    assert a_high is not None
    assert b_high is not None
    if a[1] is None and b[1] is not None:
        a, b, a_high, b_high = b, a, b_high, a_high
    return pair(add_pairs(a_high, dense_plane(a[1], a_high, np.float64), b_high, b[1]))


def combine_float_sums(planes: Planes, lo: Array, hi: Array) -> Planes:
    """The sum of two floats for each extent."""
    high, low = planes
    assert high is not None
    total = pair(two_sums(high, lo, hi))
    if low is None:
        return total
    return add_float_sums(total, (sums(low, lo, hi), None))


# The weighted mean: two sums of floats, one over the other.


class WeightedMeanKernel(Kernel):
    """Sums of value times weight and of weights, of pairs without a null."""

    dtypes = (np.float64,) * 4 + (np.int64,)
    mostly_zero = (1, 3, 4)

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
        for each, integer in zip(values, self.whole, strict=True):
            if integer and max_magnitude(each.data) > EXACT:
                raise Decline("weighted_mean of whole numbers that are no floats")
        x, weight = (each.data.astype(np.float64) for each in values)
        valid = _both_valid(values)
        if valid is not None:
            x, weight = np.where(valid, x, 0.0), np.where(valid, weight, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            above = pair(two_sums(x * weight, lo, hi))
        return (*above, *pair(two_sums(weight, lo, hi)), nulls(valid, lo, hi))

    def merge(self, a: Planes, b: Planes) -> Planes:
        """Add both."""
        return (*add_float_sums(a[:2], b[:2]), *add_float_sums(a[2:4], b[2:4]), added(a[4], b[4]))

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Add all."""
        above, below = (combine_float_sums(part, lo, hi) for part in (planes[:2], planes[2:4]))
        return (*above, *below, totals(planes[4], lo, hi))

    def finish(self, planes: Planes, n: Array) -> Result:
        """The quotient; null without values, or if the weights add up to zero."""
        above, below = (
            dense_plane(high, n, np.float64) + dense_plane(low, n, np.float64)
            for high, low in (planes[:2], planes[2:4])
        )
        known = (n > dense_plane(planes[4], n)) & (below != 0)
        with np.errstate(over="ignore", invalid="ignore"):
            return masked(above / np.where(known, below, 1.0), known)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """Twice total, nulls and compensation, and the number of pairs."""
        floats = [dense_plane(plane, n, np.float64).tolist() for plane in planes[:4]]
        counts = (n - dense_plane(planes[4], n)).tolist()
        return [
            [high, 0, low, weights, 0, rest, count] if count else [None] * 7
            for high, low, weights, rest, count in zip(*floats, counts, strict=True)
        ]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Both sums and the nulls."""
        for each in saved:
            if any(not isinstance(place, int | float | None) for place in each):
                raise Decline("weighted_mean so far is no float")
        above, below = (
            loaded([(None if each[i] is None else float(each[i]), each[i + 2]) for each in saved])
            for i in (0, 3)
        )
        count = np.array([each[6] or 0 for each in saved], np.int64)
        return (*above, *below, n - count)


def _both_valid(values: Values) -> Array | None:
    masks = [each.valid for each in values if each.valid is not None]
    return None if not masks else np.logical_and.reduce(masks)
