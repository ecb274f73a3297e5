"""Functions that pick a value by its place, or by another value, and count the best.

State refers to values by number (`Pool`), so that they may be of any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import (
    Array,
    Kernel,
    Planes,
    Result,
    Values,
    data_of,
    physical,
)
from windowlib.columnar.kernels.extremes import LOWEST
from windowlib.columnar.kernels.pool import NOTHING, Pool
from windowlib.columnar.physical import check_movable, gather
from windowlib.columnar.primitives import largest
from windowlib.folds import Fold


class Pick(Kernel):
    """Base: the first plane is the number of the picked value."""

    dtypes: tuple[Any, ...] = (np.int64,)

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        check_movable(types[0])
        self.pool = Pool()

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


class End(Pick):
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


class FirstValue(End):
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


class LastValue(End):
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


class Ranked:
    """What values are judged by, turned so that the best is the largest and no NaN is left.

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

    def back(self, keys: Array) -> pa.Array:
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


class ArgPick(Pick):
    """The value that goes with the smallest or largest of another; the earliest of several."""

    dtypes = (np.int64, np.int64)

    def __init__(self, fold: Any, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.by = Ranked(fold.name, types[1], best_is_largest=fold.largest)

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
        at = _first_equal(keys, best[some], lo[some], hi[some])
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
        """What it is judged by, and the value."""
        by, values = self.by.back(planes[1]).to_pylist(), self.picked(planes[0]).to_pylist()
        pairs = zip(by, values, strict=True)
        return [[None, None] if by is None else [by, value] for by, value in pairs]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Numbers of the values, and ranks."""
        known = np.array([each[0] is not None for each in saved], bool)
        return (
            self.numbered([each[1] for each in saved], known),
            self.by.load([each[0] for each in saved]),
        )


def _first_equal(keys: Array, wanted: Array, lo: Array, hi: Array) -> Array:
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
        self.by = Ranked(fold.name, types[0], best_is_largest=fold.largest)

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
        pairs = zip(self.by.back(planes[0]).to_pylist(), planes[1].tolist(), strict=True)
        return [[None, None] if best is None else [best, count] for best, count in pairs]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """Ranks and counts."""
        counts = np.array([each[1] or 0 for each in saved], np.int64)
        return self.by.load([each[0] for each in saved]), counts
