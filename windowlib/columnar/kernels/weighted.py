"""The weighted mean: two sums of floats, one over the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import (
    EXACT,
    Array,
    Kernel,
    Planes,
    Result,
    Values,
    added,
    farthest,
    masked,
    nulls,
    totals,
    whole,
)
from windowlib.columnar.kernels.sums import loaded, pair, summed, summed_over
from windowlib.columnar.primitives import two_sums
from windowlib.folds import Fold


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
            if integer and farthest(each.data) > EXACT:
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
        return (*summed(a[:2], b[:2]), *summed(a[2:4], b[2:4]), added(a[4], b[4]))

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Add all."""
        above, below = (summed_over(part, lo, hi) for part in (planes[:2], planes[2:4]))
        return (*above, *below, totals(planes[4], lo, hi))

    def finish(self, planes: Planes, n: Array) -> Result:
        """The quotient; null without values, or if the weights add up to zero."""
        above, below = (
            whole(high, n, np.float64) + whole(low, n, np.float64)
            for high, low in (planes[:2], planes[2:4])
        )
        known = (n > whole(planes[4], n)) & (below != 0)
        with np.errstate(over="ignore", invalid="ignore"):
            return masked(above / np.where(known, below, 1.0), known)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """Twice total, nulls and compensation, and the number of pairs."""
        floats = [whole(plane, n, np.float64).tolist() for plane in planes[:4]]
        counts = (n - whole(planes[4], n)).tolist()
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
