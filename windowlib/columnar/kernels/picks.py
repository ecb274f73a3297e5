"""Functions that pick one value: by its place, by its size, or by the size of another.

State refers to values by number (`ValuePool`), so that they may be of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.physical import check_movable, gather
from windowlib.columnar.arrays.value_pool import NOTHING, ValuePool
from windowlib.columnar.kernels.kernel import (
    Kernel,
    Planes,
    Result,
    Values,
    added,
    column,
    data_of,
    dense_plane,
    nullity,
    nulls,
    physical,
    plain_places,
    some,
    totals,
)
from windowlib.columnar.primitives import Array, largest, slide, smallest, sums
from windowlib.summaries.folds import Fold
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns, SliceRows


class PickKernel(Kernel):
    """Base: the first plane is the number of the picked value."""

    dtypes: tuple[Any, ...] = (np.int64,)

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        check_movable(types[0])
        self.pool: ValuePool = ValuePool()

    def finish(self, planes: Planes, n: Array) -> Result:
        """The picked values."""
        return self.picked(planes[0])

    def picked(self, numbers: Array) -> pa.Array:
        """Values by number, null for none."""
        if not len(numbers) or (numbers < 0).all():
            return pa.nulls(len(numbers), self.types[0])
        found, known = self.pool.take(numbers), numbers >= 0
        if known.all():
            return found.arrow()
        if not found.physical:
            return gather(found.data, pa.array(np.arange(len(numbers)), mask=~known))
        valid = known if found.valid is None else found.valid & known
        return Column(found.type, found.data, valid).arrow()

    def numbered(self, values: Sequence[Any], known: Array) -> Array:
        """The numbers of values that come from elsewhere, `NOTHING` where there is none."""
        base = self.pool.add(Column.from_values(list(values), self.types[0]))
        return np.where(known, base + np.arange(len(values)), NOTHING)


class EndKernel(PickKernel):
    """The first value that is not null, or the last."""

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Its place."""
        (values_,) = values
        base, n = self.pool.add(values_), len(values_)
        if values_.valid is None:
            places = self.end(lo, hi)
            return (np.where(hi > lo, base + places, NOTHING),)
        places = self.nearest(values_.valid, lo, hi, n)
        inside = (places >= lo) & (places < hi)
        return (np.where(inside, base + places, NOTHING),)

    def end(self, lo: Array, hi: Array) -> Array:
        """The place at the end of each run."""
        raise NotImplementedError

    def nearest(self, valid: Array, lo: Array, hi: Array, n: int) -> Array:
        """The value next to the end of each run that is not null."""
        raise NotImplementedError

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The value, None for none."""
        return [[value] for value in self.picked(planes[0]).to_pylist()]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Numbers of the values."""
        values = [value for (value,) in saved]
        known = np.array([value is not None for value in values], bool)
        return (self.numbered(values, known),)


class FirstKernel(EndKernel):
    """The first value."""

    def end(self, lo: Array, hi: Array) -> Array:
        """Where the run starts."""
        return lo

    def nearest(self, valid: Array, lo: Array, hi: Array, n: int) -> Array:
        """The next value from the start on."""
        at = np.where(valid, np.arange(n), n)
        return np.append(np.minimum.accumulate(at[::-1])[::-1], n)[lo]

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The earlier one's, if it has any."""
        return (np.where(a[0] >= 0, a[0], b[0]),)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The first that has any."""
        (numbers,) = planes
        at = self.nearest(numbers >= 0, lo, hi, len(numbers))
        inside = at < hi
        return (np.where(inside, numbers[np.where(inside, at, 0)], NOTHING),)


class LastKernel(EndKernel):
    """The last value."""

    def end(self, lo: Array, hi: Array) -> Array:
        """Before the run ends."""
        return hi - 1

    def nearest(self, valid: Array, lo: Array, hi: Array, n: int) -> Array:
        """The next value from the end back."""
        at = np.where(valid, np.arange(n), -1)
        return np.append(-1, np.maximum.accumulate(at))[hi]

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The later one's, if it has any."""
        return (np.where(b[0] >= 0, b[0], a[0]),)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The last that has any."""
        (numbers,) = planes
        at = self.nearest(numbers >= 0, lo, hi, len(numbers))
        inside = at >= lo
        return (np.where(inside, numbers[np.where(inside, at, 0)], NOTHING),)


class RankKeys:
    """Sort keys as integers, of which the best is the largest and none is NaN.

    Floats become whole numbers in their order, NaN above all and −0.0 equal to 0.0.
    """

    def __init__(self, name: str, kind: pa.DataType, *, best_is_largest: bool) -> None:
        physical(name, kind)
        self.kind, self.up = kind, best_is_largest
        self.floating = pa.types.is_floating(kind)

    def of(self, values: Column) -> Array:
        """Whole numbers, the best the largest; nulls the smallest of all."""
        keys = _ordered_bits(values.data) if self.floating else data_of(values)
        if not self.up:
            keys = ~keys
        if not self.floating and len(keys) and keys.min() == LOWEST:
            raise Decline(f"{self.kind} at the end of its range")
        return keys if values.valid is None else np.where(values.valid, keys, LOWEST)

    def values_of(self, keys: Array) -> pa.Array:
        """The values; null where there is none."""
        known = keys > LOWEST
        data = keys if self.up else ~keys
        if self.floating:
            data = _from_bits(data)
        data = np.where(known, data, 0)
        return Column(self.kind, data, None if known.all() else known).arrow()

    def load(self, values: Sequence[Any]) -> Array:
        """The numbers of Python values, None for none."""
        return self.of(Column.from_values(list(values), self.kind))


def _ordered_bits(data: Array) -> Array:
    """Whole numbers in the order of floats."""
    data = np.where(np.isnan(data), np.nan, data + 0.0)  # one NaN, one zero
    bits = np.ascontiguousarray(data).view(np.int64)
    return np.where(bits < 0, LOWEST - bits, bits)


def _from_bits(keys: Array) -> Array:
    return np.ascontiguousarray(np.where(keys < 0, LOWEST - keys, keys)).view(np.float64)


class ArgKernel(PickKernel):
    """The value that goes with the smallest or largest of another; the earliest of several."""

    dtypes = (np.int64, np.int64)

    def __init__(self, fold: Any, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.by = RankKeys(fold.name, types[1], best_is_largest=fold.largest)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The number of the value, and what it is judged by."""
        base, keys = self.pool.add(values[0]), self.by.of(values[1])
        best = largest(keys, lo, hi)
        return self._first(keys, best, lo, hi, base + np.arange(len(keys))), best

    def _first(self, keys: Array, best: Array, lo: Array, hi: Array, numbers: Array) -> Array:
        """The number of the first of each run that is as good as its best."""
        found = np.full(len(lo), NOTHING, np.int64)
        some = np.flatnonzero((hi > lo) & (best > LOWEST))
        if not len(some):
            return found
        at = _first_equal(keys, best[some], lo[some])
        found[some] = numbers[at]
        return found

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The earlier one's, unless the later is better."""
        later = b[1] > a[1]
        return np.where(later, b[0], a[0]), np.where(later, b[1], a[1])

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The first of the best."""
        numbers, keys = planes
        best = largest(keys, lo, hi)
        return self._first(keys, best, lo, hi, numbers), best

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The sort key and the value."""
        by, values = self.by.values_of(planes[1]).to_pylist(), self.picked(planes[0]).to_pylist()
        pairs = zip(by, values, strict=True)
        return [[None, None] if by is None else [by, value] for by, value in pairs]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Numbers of the values, and ranks."""
        known = np.array([each[0] is not None for each in saved], bool)
        return (
            self.numbered([each[1] for each in saved], known),
            self.by.load([each[0] for each in saved]),
        )


def _first_equal(keys: Array, wanted: Array, lo: Array) -> Array:
    """The first place of each extent that holds its wanted key, which is there."""
    order = np.argsort(keys, kind="stable")  # equal keys in order of place
    ordered = keys[order]
    # Among equal keys places ascend: look for the first at or behind `lo`.
    rank = np.searchsorted(ordered, wanted, "left")
    last = np.searchsorted(ordered, wanted, "right")
    while True:
        middle = (rank + last) >> 1
        open_ = rank < last
        if not open_.any():
            return order[rank]
        before = open_ & (order[np.minimum(middle, len(order) - 1)] < lo)
        rank = np.where(before, middle + 1, rank)
        last = np.where(open_ & ~before, middle, last)


class ExtremeCountKernel(Kernel):
    """How many values equal the smallest, or the largest."""

    overlaps = False

    dtypes = (np.int64, np.int64)

    def __init__(self, fold: Any, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.by = RankKeys(fold.name, types[0], best_is_largest=fold.largest)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The best, and how many are as good."""
        keys = self.by.of(values[0])
        return self._counted(keys, np.ones(len(keys), np.int64), lo, hi)

    def _counted(self, keys: Array, weights: Array, lo: Array, hi: Array) -> Planes:
        best = largest(keys, lo, hi)
        lengths = hi - lo
        owner = np.repeat(np.arange(len(lo)), lengths)
        starts = np.cumsum(lengths) - lengths
        places = np.arange(len(owner)) + np.repeat(lo - starts, lengths)
        equal = (keys[places] == best[owner]) & (best[owner] > LOWEST)
        count = np.bincount(owner[equal], weights[places[equal]], minlength=len(lo))
        return best, count.astype(np.int64)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The better one's, or both."""
        counts = np.where(a[0] >= b[0], a[1], 0) + np.where(b[0] >= a[0], b[1], 0)
        return np.maximum(a[0], b[0]), counts

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Those of the best."""
        return self._counted(planes[0], planes[1], lo, hi)

    def finish(self, planes: Planes, n: Array) -> Result:
        """The count; null if every value was."""
        return pa.array(planes[1], mask=planes[1] == 0)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The best and the count."""
        pairs = zip(self.by.values_of(planes[0]).to_pylist(), planes[1].tolist(), strict=True)
        return [[None, None] if best is None else [best, count] for best, count in pairs]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Ranks and counts."""
        counts = np.array([each[1] or 0 for each in saved], np.int64)
        return self.by.load([each[0] for each in saved]), counts


# The smallest and the largest value; NaN is above every number.


class ExtremeKernel(Kernel):
    """Planes: the best number, how many nulls, how many NaN."""

    best: Any  # the reduction
    better: Any  # of two arrays
    nan_wins: bool
    mostly_zero = (1, 2)

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        physical(fold.name, types[0])
        self.floating = pa.types.is_floating(types[0])
        self.dtypes = (np.float64 if self.floating else np.int64, np.int64, np.int64)
        lowest, highest = (-np.inf, np.inf) if self.floating else (LOWEST, HIGHEST)
        self.worst = lowest if self.nan_wins else highest

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The best of each run."""
        data, odd = self._numbers(values[0])
        nans = None if odd is None else sums(odd, lo, hi)
        return type(self).best(data, lo, hi), nulls(values[0].valid, lo, hi), nans

    def takes_arrivals(self, values: Values) -> bool:
        """The best can be told in any order."""
        return True

    def arrived(self, values: Values, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """The best of each run, and of what it goes on with."""
        data, odd = self._numbers(values[0])
        best, left, nans = state
        closed, later = zip(
            (runs.largest if self.nan_wins else runs.smallest)(data, best),
            runs.sums(nullity(values[0].valid), left),
            runs.sums(odd, nans),
            strict=True,
        )
        return closed, later

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """The best of all slices of each window."""
        best = rows.largest if self.nan_wins else rows.smallest
        counts = [rows.sums(closed[i], carried[i]) for i in (1, 2)]
        return best(closed[0], carried[0]), *counts

    def _numbers(self, values: Column) -> tuple[Array, Array | None]:
        """The values, the worst there is for null and NaN; and, if there is any, NaN as 1."""
        data = data_of(values)
        if values.valid is not None:
            data = np.where(values.valid, data, self.worst)
        # The largest of values with a NaN is NaN: one look at all tells whether there is any.
        if not self.floating or not len(data) or not np.isnan(data.max()):
            return data, None
        odd = np.isnan(data)
        return np.where(odd, self.worst, data), odd.astype(np.int64)

    def singles(self, values: Values) -> Planes:
        """Each value itself."""
        (values_,) = values
        plain = values_.valid is None and not (self.floating and np.isnan(values_.data.max()))
        return (values_.data, None, None) if plain else super().singles(values)

    def slide(self, carried: Planes, planes: Planes, size: int, length: int) -> Planes:
        """The best of each `length` in a row."""
        if all(plane is None for plane in (*carried[1:], *planes[1:])):
            best = slide(type(self).better, planes[0], length, carried[0])
            return best, None, None
        return super().slide(carried, planes, size, length)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The better of both."""
        return type(self).better(a[0], b[0]), added(a[1], b[1]), added(a[2], b[2])

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The best of all."""
        best = type(self).best(planes[0], lo, hi)
        return best, totals(planes[1], lo, hi), totals(planes[2], lo, hi)

    def finish(self, planes: Planes, n: Array) -> Result:
        """The best; null if every value was."""
        best, left, nans = planes
        assert best is not None
        if nans is not None and self.floating:
            lost = nans > 0 if self.nan_wins else (nans > 0) & (nans + dense_plane(left, n) == n)
            best = np.where(lost, np.nan, best)
        known = some(left, n)
        if known is not None:
            best = np.where(known, best, 0)  # any value will do that its type can have
        return column(self.types[0], best, known)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The best value, None if there is none yet."""
        return [self.fold.as_saved([best]) for best in self.finish(planes, n).to_pylist()]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """One best value stands for all that came."""
        plain = plain_places(self.fold, saved)
        best = Column.from_values([each[0] for each in plain], self.types[0])
        if not best.physical:
            raise Decline(f"{self.fold.name} so far has no physical value")
        known = np.ones(len(best), bool) if best.valid is None else best.valid
        odd = np.isnan(best.data) & known if self.floating else np.zeros(len(best), bool)
        data = np.where(known & ~odd, best.data, self.worst)
        # NaN stands for all if nothing else has come; otherwise for one.
        nans = np.where(odd, 1 if self.nan_wins else n, 0) if odd.any() else None
        return data, np.where(known, 0, n), nans


LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class MaxKernel(ExtremeKernel):
    """The largest value; NaN if there is one."""

    best, better = staticmethod(largest), np.maximum
    nan_wins = True


class MinKernel(ExtremeKernel):
    """The smallest value; NaN only if there is nothing else."""

    best, better = staticmethod(smallest), np.minimum
    nan_wins = False
