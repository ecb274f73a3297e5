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
    column,
    counted,
    physical,
)
from windowlib.columnar.primitives import largest, smallest, sums
from windowlib.folds import Fold


class Extreme(Kernel):
    """Planes: the best number, how many numbers, how many NaN."""

    best: Any  # the reduction
    better: Any  # of two arrays
    nan_wins: bool

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        physical(fold.name, types[0])
        self.floating = pa.types.is_floating(types[0])
        self.dtypes = (np.float64 if self.floating else np.int64, np.int64, np.int64)
        lowest, highest = (-np.inf, np.inf) if self.floating else (LOWEST, HIGHEST)
        self.worst = lowest if self.nan_wins else highest

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The best of each run."""
        (values_,) = values
        data, numbers = values_.data, counted(values_, lo, hi)
        nans = np.zeros(len(lo), np.int64)
        if values_.valid is not None:
            data = np.where(values_.valid, data, self.worst)
        # The largest of values with a NaN is NaN: one look at all tells whether there is any.
        if self.floating and len(data) and np.isnan(data.max()):
            odd = np.isnan(data)
            nans = sums(odd.astype(np.int64), lo, hi)
            data, numbers = np.where(odd, self.worst, data), numbers - nans
        return type(self).best(data, lo, hi), numbers, nans

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The better of both."""
        return type(self).better(a[0], b[0]), a[1] + b[1], a[2] + b[2]

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The best of all."""
        best = type(self).best(planes[0], lo, hi)
        return best, sums(planes[1], lo, hi), sums(planes[2], lo, hi)

    def finish(self, planes: Planes, n: Array) -> Result:
        """The best; null if every value was."""
        best, numbers, nans = planes
        if nans.any():
            odd = nans > 0 if self.nan_wins else (nans > 0) & (numbers == 0)
            best = np.where(odd, np.nan, best)
        known = numbers + nans > 0
        return column(self.types[0], np.where(known, best, 0), known)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The best value, None if there is none yet."""
        return [self.fold.as_saved([best]) for best in self.finish(planes, n).to_pylist()]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """One best value stands for all that came."""
        plain = [self.fold.from_saved(each) for each in saved]
        if any(each is None for each in plain):
            raise Decline(f"{self.fold.name} of lists so far")
        best = Column.from_values([each[0] for each in plain], self.types[0])
        if not best.physical:
            raise Decline(f"{self.fold.name} so far has no physical value")
        known = np.ones(len(best), bool) if best.valid is None else best.valid
        odd = np.isnan(best.data) & known if self.floating else np.zeros(len(best), bool)
        data = np.where(known & ~odd, best.data, self.worst)
        return data, (known & ~odd).astype(np.int64), odd.astype(np.int64)


LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Largest(Extreme):
    """The largest value; NaN if there is one."""

    best, better = staticmethod(largest), np.maximum
    nan_wins = True


class Smallest(Extreme):
    """The smallest value; NaN only if there is nothing else."""

    best, better = staticmethod(smallest), np.minimum
    nan_wins = False
