"""The smallest and the largest value; NaN is above every number."""

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
    added,
    column,
    data_of,
    nullity,
    nulls,
    physical,
    plain_places,
    some,
    totals,
    whole,
)
from windowlib.columnar.pieces import Runs
from windowlib.columnar.primitives import largest, slide, smallest, sums
from windowlib.folds import Fold


class Extreme(Kernel):
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

    def deals(self, values: Values) -> bool:
        """The best can be told in any order."""
        return True

    def dealt(self, values: Values, runs: Runs, before: Planes) -> Planes:
        """The best of each run, and of what it goes on with."""
        data, odd = self._numbers(values[0])
        best, left, nans = before
        found = (runs.largest if self.nan_wins else runs.smallest)(data, best)
        return found, runs.sums(nullity(values[0].valid), left), runs.sums(odd, nans)

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

    def slide(self, planes: Planes, size: int, length: int) -> Planes:
        """The best of each `length` in a row."""
        if planes[1] is None and planes[2] is None:
            return slide(type(self).better, planes[0], length), None, None
        return super().slide(planes, size, length)

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
            lost = nans > 0 if self.nan_wins else (nans > 0) & (nans + whole(left, n) == n)
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


class Largest(Extreme):
    """The largest value; NaN if there is one."""

    best, better = staticmethod(largest), np.maximum
    nan_wins = True


class Smallest(Extreme):
    """The smallest value; NaN only if there is nothing else."""

    best, better = staticmethod(smallest), np.minimum
    nan_wins = False
