"""Variance, covariance and correlation: counts, means and sums of squared distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import (
    Array,
    Kernel,
    Planes,
    Result,
    Values,
    masked,
)
from windowlib.columnar.primitives import ranges, sums, two_sums
from windowlib.folds import Fold

LARGE = 1e140
"""Sums of squares up to here are floats, however many there are."""


class Moments(Kernel):
    """Planes: how many, the means, and sums of products of distances from them (Chan's form)."""

    width: int  # how many columns
    overlaps = False

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        for kind in types:
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise Decline(f"{fold.name} of {kind} needs Python values")
        self.pairs = [(i, j) for i in range(self.width) for j in range(i, self.width)]
        self.dtypes = (np.int64,) + (np.float64,) * (self.width + len(self.pairs))

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """Means first, then distances from them: the second look loses nothing to offsets."""
        masks = [each.valid for each in values if each.valid is not None]
        valid = np.logical_and.reduce(masks) if masks else None
        data = [_squarable(each.data.astype(np.float64)) for each in values]
        count = hi - lo if valid is None else sums(valid.astype(np.int64), lo, hi)
        if valid is not None:
            data = [np.where(valid, each, 0.0) for each in data]
        lengths = hi - lo
        places = ranges(lo, lengths)
        ends = np.cumsum(lengths)
        with np.errstate(invalid="ignore", over="ignore"):
            some = np.where(count > 0, count, 1)
            means = [np.add(*two_sums(each, lo, hi)) / some for each in data]
            away = [
                each[places] - np.repeat(mean, lengths)
                for each, mean in zip(data, means, strict=True)
            ]
            if valid is not None:
                known = valid[places]
                away = [np.where(known, each, 0.0) for each in away]
            begins = ends - lengths
            # What the rounded mean is off by, taken out again (the corrected two-pass form).
            off = [sums(each, begins, ends) for each in away]
            products = [
                sums(away[i] * away[j], begins, ends) - off[i] * off[j] / some
                for i, j in self.pairs
            ]
        return (count, *means, *(np.where(count > 0, each, 0.0) for each in products))

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The products of both, plus those of the distances between the means."""
        count = a[0] + b[0]
        some = np.where(count > 0, count, 1)
        means, width = [], self.width
        with np.errstate(invalid="ignore", over="ignore"):
            away = [
                np.where((a[0] > 0) & (b[0] > 0), b[1 + i] - a[1 + i], 0.0) for i in range(width)
            ]
            for i in range(width):
                means.append(np.where(a[0] > 0, a[1 + i] + away[i] * b[0] / some, b[1 + i]))
            share = a[0] * (b[0] / some)
            products = [
                a[1 + width + k] + b[1 + width + k] + away[i] * away[j] * share
                for k, (i, j) in enumerate(self.pairs)
            ]
        return (count, *means, *products)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """Merge the runs of each extent one after the other, in all extents at once."""
        total = tuple(plane[lo] for plane in planes)
        for step in range(1, int((hi - lo).max(initial=1))):
            at = np.flatnonzero(lo + step < hi)
            later = tuple(plane[lo[at] + step] for plane in planes)
            merged = self.merge(tuple(plane[at] for plane in total), later)
            for plane, new in zip(total, merged, strict=True):
                plane[at] = new
        return total

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """All places."""
        rows = zip(*(plane.tolist() for plane in planes), strict=True)
        return [list(row) for row in rows]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """All planes; decimals are another matter."""
        for each in saved:
            if any(not isinstance(place, int | float | None) for place in each):
                raise Decline(f"{self.fold.name} so far is no float")
        width = len(self.dtypes)
        rows = np.array([[place or 0 for place in each] for each in saved], np.float64)
        rows = rows.reshape(len(saved), width)
        return (rows[:, 0].astype(np.int64), *(rows[:, i].copy() for i in range(1, width)))


def _squarable(data: Array) -> Array:
    """The values, unless their squares are too large for floats; infinities and NaN may be."""
    with np.errstate(invalid="ignore"):
        if not len(data) or max(-data.min(), data.max()) <= LARGE:
            return data
    finite = np.abs(data[np.isfinite(data)])
    if (finite > LARGE).any():
        raise Decline("squares that are too large for floats")
    return data


class VarianceKernel(Moments):
    """The variance of one column."""

    width = 1

    def finish(self, planes: Planes, n: Array) -> Result:
        """Squares over count − ddof; null if there are too few."""
        count, _, squares = planes
        ddof = self.fold.ddof  # type: ignore[attr-defined]
        enough = count > ddof
        return masked(self.shown(squares / np.where(enough, count - ddof, 1)), enough)

    def shown(self, variance: Array) -> Array:
        """The variance itself."""
        return variance


class Spread(VarianceKernel):
    """Its square root."""

    def shown(self, variance: Array) -> Array:
        """The root."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.maximum(variance, 0.0))


class CovarianceKernel(Moments):
    """The covariance of two columns, or their correlation."""

    width = 2

    def finish(self, planes: Planes, n: Array) -> Result:
        """Products over count − ddof, or over the root of both squares."""
        count, mean_x, mean_y, x, together, y = planes
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            together = np.where(np.isfinite(mean_x + mean_y), together, np.nan)
            if self.fold.kernel == "corr":
                scale = np.sqrt(np.maximum(x, 0.0)) * np.sqrt(np.maximum(y, 0.0))
                found = np.where(scale != 0, together / np.where(scale != 0, scale, 1.0), np.nan)
                return masked(found, count > 1)
            ddof = self.fold.ddof  # type: ignore[attr-defined]
            return masked(together / np.where(count > ddof, count - ddof, 1), count > ddof)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """In the order of the fold: count, means, products, squares."""
        return super().save(_swapped(planes), n)

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """In the order of the planes."""
        return _swapped(super().load(saved, n))


def _swapped(planes: Planes) -> Planes:
    """The fold keeps products before squares; the planes keep x, xy, y. Its own inverse."""
    count, mean_x, mean_y, first, second, y = planes
    return count, mean_x, mean_y, second, first, y
