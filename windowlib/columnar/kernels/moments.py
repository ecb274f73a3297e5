"""Variance, covariance and correlation: counts, means and sums of squared distances."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.kernels.kernel import (
    Kernel,
    Plane,
    Planes,
    Result,
    Values,
    added,
    dense_plane,
    masked,
    totals,
)
from windowlib.columnar.primitives import Array, ranges, sums, two_sums
from windowlib.summaries.folds import Fold
from windowlib.window.consumer import Decline

LARGE = 1e140
"""Sums of squares up to here are floats, however many there are."""


class MomentsKernel(Kernel):
    """Of floats. Planes: how many, the means, and sums of products of distances (Chan's form)."""

    width: int  # how many columns
    overlaps = False
    exact: type[ExactMoments]  # the same for whole numbers

    @classmethod
    def for_types(cls, fold: Fold, types: Sequence[pa.DataType]) -> Kernel:
        """Whole numbers are added exactly; a pair with a float is a pair of floats."""
        return (cls.exact if all(map(pa.types.is_integer, types)) else cls)(fold, types)

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
        """All places of floats, and none of exact numbers."""
        rows = zip(*(plane.tolist() for plane in planes), strict=True)
        exact = [None] * (len(self.fold.empty) - len(planes))
        return [[*row, *exact] for row in rows]

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """All planes; exact numbers are for the event engine."""
        width = len(self.dtypes)
        states = [self.fold.load(each) for each in saved]
        if any(any(state[width:]) for state in states):
            raise Decline(f"{self.fold.name} of exact numbers so far")
        rows = np.array([state[:width] for state in states], np.float64)
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


class VarianceKernel(MomentsKernel):
    """The variance of one column."""

    width = 1

    def finish(self, planes: Planes, n: Array) -> Result:
        """Squares over count − ddof; null if there are too few."""
        count, _, squares = planes
        ddof = self.fold.ddof  # type: ignore[attr-defined]
        enough = count > ddof
        return masked(self.from_variance(squares / np.where(enough, count - ddof, 1)), enough)

    def from_variance(self, variance: Array) -> Array:
        """The variance itself."""
        return variance


class StdKernel(VarianceKernel):
    """Its square root."""

    def from_variance(self, variance: Array) -> Array:
        """The root."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.maximum(variance, 0.0))


class CovarianceKernel(MomentsKernel):
    """The covariance of two columns."""

    width = 2

    def finish(self, planes: Planes, n: Array) -> Result:
        """Distances from an infinite mean say nothing."""
        count, mean_x, mean_y, x, together, y = planes
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            together = np.where(np.isfinite(mean_x + mean_y), together, np.nan)
            return self.result(count, x, together, y)

    def result(self, count: Array, x: Array, together: Array, y: Array) -> Result:
        """Products over count − ddof; null if there are too few."""
        ddof = self.fold.ddof  # type: ignore[attr-defined]
        return masked(together / np.where(count > ddof, count - ddof, 1), count > ddof)

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """In the order of the fold: count, means, products, squares."""
        return super().save(_swapped(planes), n)

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """In the order of the planes."""
        return _swapped(super().load(saved, n))


class CorrelationKernel(CovarianceKernel):
    """The correlation of two columns."""

    def result(self, count: Array, x: Array, together: Array, y: Array) -> Result:
        """Products over the root of both squares; null for fewer than two pairs."""
        scale = np.sqrt(np.maximum(x, 0.0)) * np.sqrt(np.maximum(y, 0.0))
        found = np.where(scale != 0, together / np.where(scale != 0, scale, 1.0), np.nan)
        return masked(found, count > 1)


def _swapped(planes: Planes) -> Planes:
    """The fold keeps products before squares; the planes keep x, xy, y. Its own inverse."""
    count, mean_x, mean_y, first, second, y = planes
    return count, mean_x, mean_y, second, first, y


# -- whole numbers --------------------------------------------------------------------------------

EXACT = 1 << 53
"""Below it, whole numbers are floats without rounding."""
BITS = 31
MASK = (1 << BITS) - 1
LIMB = 21
"""Three limbs of so many bits make up any whole number of 64 bits; products of two are small."""
ROOM = 1 << 61
"""Coefficients stay below it, so that two of them can be added."""
SUM, PRODUCT = 2, 5
"""How many coefficients a sum has, and a sum of products."""
Coefficients = list[Plane]
"""The planes of one large whole number: of 1, of 2 ** 31, of 2 ** 62 and so on."""


class ExactMoments(Kernel):
    """Of whole numbers. Planes: how many, the coefficients of sums and of sums of products."""

    width: int

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        self.pairs = [(i, j) for i in range(self.width) for j in range(i, self.width)]
        self.lengths = [SUM] * self.width + [PRODUCT] * len(self.pairs)
        self.dtypes = (np.int64,) * (1 + sum(self.lengths))
        self.mostly_zero = tuple(range(1, len(self.dtypes)))

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The sums of each run of places."""
        masks = [each.valid for each in values if each.valid is not None]
        valid = np.logical_and.reduce(masks) if masks else None
        data = [each.data if valid is None else np.where(valid, each.data, 0) for each in values]
        count = hi - lo if valid is None else sums(valid.astype(np.int64), lo, hi)
        largest, longest = [_farthest(each) for each in data], int((hi - lo).max(initial=0))
        planes: list[Plane] = [count]
        for each, most in zip(data, largest, strict=True):
            planes += _added_up(each, most * longest, lo, hi, SUM)
        for i, j in self.pairs:
            most = largest[i] * largest[j]
            if most < 1 << 62:
                planes += _added_up(data[i] * data[j], most * longest, lo, hi, PRODUCT)
            else:
                planes += _large_products(data[i], data[j], lo, hi)
        return tuple(planes)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The sums of both."""
        found: list[Plane] = [a[0] + b[0]]
        for one, other in zip(self._numbers(a), self._numbers(b), strict=True):
            found += _carried([added(x, y) for x, y in zip(one, other, strict=True)])
        return tuple(found)

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The sums over the runs of each extent."""
        longest = int((hi - lo).max(initial=1))
        found: list[Plane] = [sums(planes[0], lo, hi)]
        for number in self._numbers(planes):
            found += [totals(plane, lo, hi) for plane in _carried(number, ROOM // longest)]
        return tuple(found)

    def _numbers(self, planes: Planes) -> list[Coefficients]:
        """The coefficients of each sum."""
        ends = np.cumsum([1, *self.lengths]).tolist()
        return [list(planes[a:b]) for a, b in itertools.pairwise(ends)]

    def exact(self, planes: Planes) -> list[list[int]]:
        """Count and sums of each run."""
        count = planes[0].tolist()
        return [count, *(_whole_numbers(each, len(count)) for each in self._numbers(planes))]

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The exact places of the fold; None for one that is as it starts."""
        floats = [None] * self.places.start
        rest = [None] * (len(self.fold.empty) - self.places.stop)
        rows = zip(*self.ordered(self.exact(planes)), strict=True)
        return [[*floats, *(place or None for place in row), *rest] for row in rows]

    places: slice
    """Where the exact places are in the state of the fold."""

    def ordered(self, numbers: list[Any]) -> list[Any]:
        """Count, sums and sums of products in the order of the fold, and back."""
        return numbers

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """The planes of exact places; `Decline` if floats or decimals came."""
        states = [self.fold.load(each) for each in saved]
        first, last = self.places.start, self.places.stop
        if any(state[0] or state[last:] != self.fold.empty[last:] for state in states):
            raise Decline(f"{self.fold.name} of floats or decimals so far")
        rows = [self.ordered(list(state[first:last])) for state in states]
        planes: list[Plane] = [np.array([row[0] for row in rows], np.int64)]
        for i, length in enumerate(self.lengths, 1):
            planes += _coefficients([row[i] for row in rows], length)
        return tuple(planes)


def _farthest(data: Array) -> int:
    """The largest absolute value, as a number of any size."""
    return max(-int(data.min()), int(data.max())) if len(data) else 0


def _added_up(data: Array, most: int, lo: Array, hi: Array, length: int) -> Coefficients:
    """The sums of numbers, no sum of which is beyond `most`."""
    rest: Coefficients = [None] * (length - 2)
    if most < ROOM:
        return [sums(data, lo, hi), None, *rest]
    return [sums(data & MASK, lo, hi), sums(data >> BITS, lo, hi), *rest]


def _large_products(x: Array, y: Array, lo: Array, hi: Array) -> Coefficients:
    """The sums of products of numbers of up to 64 bits, limb by limb."""
    if (hi - lo).max(initial=0) >= 1 << 18:
        raise Decline("so many products of more than 62 bits")
    found: list[Array] = [np.zeros(len(lo), np.int64) for _ in range(PRODUCT)]
    for (i, a), (j, b) in itertools.product(enumerate(_limbs(x)), enumerate(_limbs(y))):
        limb, shift = divmod((i + j) * LIMB, BITS)
        total = sums(a * b, lo, hi)
        low = total & ((1 << (BITS - shift)) - 1)
        found[limb] = found[limb] + (low << shift)
        if limb + 1 < PRODUCT:
            found[limb + 1] = found[limb + 1] + (total >> (BITS - shift))
    return _carried([*found], 0)


def _limbs(data: Array) -> list[Array]:
    """Numbers in parts: the last one has the sign."""
    mask = (1 << LIMB) - 1
    return [data & mask, data >> LIMB & mask, data >> 2 * LIMB]


def _carried(number: Coefficients, most: int = ROOM) -> Coefficients:
    """The same numbers; if coefficients are beyond `most`, the next ones take the excess."""
    if all(each is None or _farthest(each) < most for each in number):
        return number
    found, excess = [], None
    for each in number[:-1]:
        each = added(each, excess)
        excess = None if each is None else each >> BITS
        found.append(None if each is None else each & MASK)
    return [*found, added(number[-1], excess)]


def _whole_numbers(number: Coefficients, size: int) -> list[int]:
    """Coefficients as whole numbers."""
    found = [0] * size
    for i, each in enumerate(number):
        if each is not None:
            found = [x + (y << BITS * i) for x, y in zip(found, each.tolist(), strict=True)]
    return found


def _coefficients(numbers: list[int], length: int) -> Coefficients:
    """Whole numbers as coefficients; `Decline` if they have too many bits."""
    if all(-ROOM < each < ROOM for each in numbers):
        return [np.array(numbers, np.int64), *[None] * (length - 1)]
    found: Coefficients = []
    for _ in range(length - 1):
        found.append(np.array([each & MASK for each in numbers], np.int64))
        numbers = [each >> BITS for each in numbers]
    if not all(-ROOM < each < ROOM for each in numbers):
        raise Decline("sums with more bits than there are planes for")
    return [*found, np.array(numbers, np.int64)]


class ExactStd(ExactMoments):
    """The root of the variance of a column of whole numbers."""

    width = 1
    places = slice(3, 6)

    def finish(self, planes: Planes, n: Array) -> Result:
        """Of a quotient, rounded once; null if there are too few."""
        fold: Any = self.fold
        rows = zip(*self.exact(planes), strict=True)
        found = [
            fold.of_exact(k * q - s * s, k * (k - fold.ddof), None) if k > fold.ddof else None
            for k, s, q in rows
        ]
        return pa.array(found, pa.float64())


class ExactVariance(ExactStd):
    """The variance of a column of whole numbers."""

    def finish(self, planes: Planes, n: Array) -> Result:
        """All at once where both sides of the quotients are floats without rounding."""
        count, total, squares = (
            dense_plane(plane, planes[0]) for plane in (*planes[:2], planes[3])
        )
        large = any(plane is not None for plane in (planes[2], *planes[4:]))
        if (
            large
            or _farthest(count) * _farthest(squares) >= EXACT
            or _farthest(total) ** 2 >= EXACT
        ):
            return super().finish(planes, n)
        ddof = self.fold.ddof  # type: ignore[attr-defined]
        enough = count > ddof
        below = np.where(enough, count * (count - ddof), 1)
        return masked((count * squares - total * total) / below, enough)


class ExactCovariance(ExactMoments):
    """The covariance, or the correlation, of two columns of whole numbers."""

    width = 2
    places = slice(6, 12)

    def finish(self, planes: Planes, n: Array) -> Result:
        """A quotient, rounded once; null if there are too few."""
        fold: Any = self.fold
        rows = zip(*self.ordered(self.exact(planes)), strict=True)
        return pa.array(
            [fold.value(row[0], (*fold.empty[:6], *row, 0, 0)) for row in rows], pa.float64()
        )

    def ordered(self, numbers: list[Any]) -> list[Any]:
        """The fold keeps products before squares; the planes keep x, xy, y. Its own inverse."""
        count, x, y, first, second, last = numbers
        return [count, x, y, second, first, last]


VarianceKernel.exact = ExactVariance
StdKernel.exact = ExactStd
CovarianceKernel.exact = ExactCovariance
