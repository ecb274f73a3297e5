"""Counts, sums, means, variance, covariance and correlation."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial
from typing import Any, Self

from windowlib.errors import SchemaError
from windowlib.operators.functions.call import Agg, Column, aggregate, refuse_argument
from windowlib.operators.functions.elementwise import elementwise
from windowlib.operators.functions.output_types import (
    count_type,
    float_type,
    mean_type,
    quotient_type,
    sum_type,
)
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.exact import decimal_root, exact_number, ratio, root
from windowlib.summaries.folds import CountFold, Fold, MeanFold, State, SumFold, VarianceFold

__all__ = [
    "corr",
    "count",
    "cov",
    "mean",
    "std",
    "sum",
    "var",
    "weighted_mean",
]

COUNT = AggregateFunction(
    "count",
    CountFold,
    count_type,
    kernel="windowlib.columnar.kernels.sums:CountKernel",
    combined_by="sum",
)


def count(column: Column | None = None) -> Agg:
    """How many tuples; with a column, how many of its values are not null."""
    if column is None:
        return aggregate(COUNT, {})
    return aggregate(COUNT_VALUES, {"": column})


class CountValues(Fold):
    """How many values are not null."""

    name = "count"
    empty = (0,)
    compute, store = "_0 = x is not None", "{0} += _0"
    read, merged = "{0}", ("{a0} + {b0}",)

    def step(self, state: State, x: Any) -> State:
        """One more, unless it is null."""
        return (state[0] + (x is not None),)

    def value(self, n: int, state: State) -> int:
        """The count."""
        return int(state[0])

    def merge(self, a: State, b: State) -> State:
        """The sum of both."""
        return (a[0] + b[0],)


COUNT_VALUES = AggregateFunction(
    "count",
    CountValues,
    count_type,
    kernel="windowlib.columnar.kernels.sums:CountValuesKernel",
    combined_by="sum",
)


class Std(VarianceFold):
    """The square root of the variance."""

    name = "std"

    def of_floats(self, variance: float) -> float:
        """The root."""
        return math.sqrt(variance)

    def of_exact(self, above: int, below: int, digits: int | None) -> float | Decimal:
        """The root of a quotient."""
        return root(above, below) if digits is None else decimal_root(above, below, 2 * digits)


class WeightedMean(Fold):
    """Sum of value times weight over sum of weights; both compensated. Takes pairs."""

    name = "weighted_mean"

    def __init__(self) -> None:
        self.sum = SumFold(short=False)
        self.empty = (*self.sum.empty, *self.sum.empty, 0)

    def called(self, name: str) -> Self:
        """The same by another name, which its sums have as well."""
        self.sum.called(name)
        return super().called(name)

    def step(self, state: State, x: Any) -> State:
        """Add both, unless one of them is null."""
        value, weight = x
        if value is None or weight is None:
            return state
        try:
            product = value * weight
        except TypeError:
            msg = (
                f"{self.name} of {value!r} with the weight {weight!r}: they cannot be "
                f"multiplied. Use numbers of types that mix."
            )
            raise SchemaError(msg) from None
        above, below = self.sum.step(state[:3], product), self.sum.step(state[3:6], weight)
        return (*above, *below, state[6] + 1)

    def value(self, n: int, state: State) -> Any:
        """The quotient; None without values, or if the weights add up to zero."""
        weights = self.sum.value(state[6], state[3:6])
        return self.sum.value(state[6], state[:3]) / weights if weights else None

    def merge(self, a: State, b: State) -> State:
        """The sums of both."""
        above, below = self.sum.merge(a[:3], b[:3]), self.sum.merge(a[3:6], b[3:6])
        return (*above, *below, a[6] + b[6])


class Covariance(Fold):
    """How two values vary together. Takes pairs; a null in one skips both.

    State, of pairs with a float, in Welford's form: how many, both means, the sum of products of
    distances, both sums of squares. Of other pairs, exactly: how many, both sums, the sum of
    products, both sums of squares, and the digits of decimals on both sides.
    """

    name = "cov"
    empty = (0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0)

    def __init__(self, ddof: int = 0) -> None:
        self.ddof = ddof

    def step(self, state: State, x: Any) -> State:
        """Add exact numbers and their products, or move the means of floats a little."""
        if x[0] is None or x[1] is None:
            return state
        one, other = map(exact_number, x)
        if one is None or other is None:
            return (*_welford(state[:6], *self._floats(x)), *state[6:])
        (a, a_digits), (b, b_digits) = one, other
        pair = (1, a, b, a * b, a * a, b * b, a_digits or 0, b_digits or 0)
        return (*state[:6], *_add_exact(state[6:], pair))

    def _floats(self, x: Any) -> tuple[float, float]:
        try:
            return float(x[0] + 0), float(x[1] + 0)
        except (TypeError, OverflowError):  # text is no number, even if it could be read as one
            msg = f"{self.name} of {x!r}: not two numbers. Use columns of numbers."
            raise SchemaError(msg) from None

    def value(self, n: int, state: State) -> float | None:
        """Products over count − ddof; None if there are too few, NaN where a mean is infinite."""
        count: int = state[0] + state[6]
        if count <= self.ddof:
            return None
        if state[0]:
            return _products(_all_floats(state)) / (count - self.ddof)
        digits = state[12] + state[13]
        return ratio(_covariance(state[6:]), count * (count - self.ddof) * 10**digits)

    def merge(self, a: State, b: State) -> State:
        """The exact sums of both; of floats the products, plus those of the means' distances."""
        return (*_chan(a[:6], b[:6]), *_add_exact(a[6:], b[6:]))

    def load(self, saved: list[Any]) -> State:
        """The state that `save` wrote; earlier releases had the places of floats alone."""
        return super().load([*saved, *[None] * (len(self.empty) - len(saved))])


def _welford(state: State, a: float, b: float) -> State:
    """Means, products and squares with one more pair."""
    n, mean_a, mean_b, together, squares_a, squares_b = state
    n += 1
    away_a, away_b = a - mean_a, b - mean_b
    mean_a, mean_b = mean_a + away_a / n, mean_b + away_b / n
    together += away_a * (b - mean_b)
    squares_a += away_a * (a - mean_a)
    squares_b += away_b * (b - mean_b)
    return n, mean_a, mean_b, together, squares_a, squares_b


def _chan(a: State, b: State) -> State:
    """Two runs of pairs of floats together."""
    if not a[0] or not b[0]:
        return a if a[0] else b
    n = a[0] + b[0]
    away_a, away_b, share = b[1] - a[1], b[2] - a[2], a[0] * b[0] / n
    return (
        n,
        a[1] + away_a * b[0] / n,
        a[2] + away_b * b[0] / n,
        a[3] + b[3] + away_a * away_b * share,
        a[4] + b[4] + away_a * away_a * share,
        a[5] + b[5] + away_b * away_b * share,
    )


def _add_exact(a: State, b: State) -> State:
    """Two runs of exact pairs together."""
    digits = max(a[6], b[6]), max(a[7], b[7])
    one, other = _in_units(a, *digits), _in_units(b, *digits)
    return (*(x + y for x, y in zip(one, other, strict=True)), *digits)


def _in_units(state: State, digits_a: int, digits_b: int) -> tuple[int, ...]:
    """Count and sums of exact pairs in units of so many digits."""
    n, a, b, together, squares_a, squares_b = state[:6]
    if state[6:] == (digits_a, digits_b):
        return n, a, b, together, squares_a, squares_b
    x, y = 10 ** (digits_a - state[6]), 10 ** (digits_b - state[7])
    return n, a * x, b * y, together * x * y, squares_a * x * x, squares_b * y * y


def _covariance(exact: State) -> int:
    """The sum of products of distances, times the count, in units of both sides."""
    covariance: int = exact[0] * exact[3] - exact[1] * exact[2]
    return covariance


def _variances(exact: State) -> tuple[int, int]:
    """Both sums of squared distances, times the count, in units of the sides."""
    n, a, b, _, squares_a, squares_b = exact[:6]
    return n * squares_a - a * a, n * squares_b - b * b


def _all_floats(state: State) -> State:
    """The state of all pairs, of which some have floats."""
    exact = state[6:]
    n, a, b = exact[:3]
    if not n:
        return state[:6]
    x, y = 10 ** exact[6], 10 ** exact[7]
    squares_a, squares_b = _variances(exact)
    floats = (
        n,
        ratio(a, n * x),
        ratio(b, n * y),
        ratio(_covariance(exact), n * x * y),
        ratio(squares_a, n * x * x),
        ratio(squares_b, n * y * y),
    )
    return _chan(state[:6], floats)


def _products(state: State) -> float:
    """The sum of products of distances; distances from an infinite mean say nothing."""
    together: float = state[3]
    return together if math.isfinite(state[1] + state[2]) else math.nan


class Correlation(Covariance):
    """Pearson's coefficient of correlation."""

    name = "corr"

    def value(self, n: int, state: State) -> float | None:
        """Products over the root of both squares; None for fewer than two, NaN without variance."""
        if state[0] + state[6] < 2:
            return None
        if state[0]:
            pairs = _all_floats(state)
            scale = math.sqrt(abs(pairs[4])) * math.sqrt(abs(pairs[5]))
            return _products(pairs) / scale if scale else math.nan
        together, (squares_a, squares_b) = _covariance(state[6:]), _variances(state[6:])
        if not squares_a or not squares_b:
            return math.nan
        found = root(together * together, squares_a * squares_b)
        return -found if together < 0 else found


SUM = AggregateFunction(
    "sum",
    partial(elementwise, SumFold, short=False),
    sum_type,
    kernel="windowlib.columnar.kernels.sums:SumKernel",
    adds=True,
    combined_by="sum",
)


def sum(column: Column) -> Agg:
    """The sum; of lists, element by element."""
    return aggregate(SUM, {"": column})


MEAN = AggregateFunction(
    "mean",
    partial(elementwise, MeanFold, short=False),
    mean_type,
    kernel="windowlib.columnar.kernels.sums:MeanKernel",
    adds=True,
)


def mean(column: Column) -> Agg:
    """The arithmetic mean; of lists, element by element."""
    return aggregate(MEAN, {"": column})


WEIGHTED_MEAN = AggregateFunction(
    "weighted_mean",
    WeightedMean,
    quotient_type,
    kernel="windowlib.columnar.kernels.sums:WeightedMeanKernel",
    adds=True,
)


def weighted_mean(column: Column, *, weight: Column) -> Agg:
    """The sum of value times weight over the sum of weights; null if that is zero."""
    return aggregate(WEIGHTED_MEAN, {"": column, "weight": weight})


VAR = AggregateFunction(
    "var",
    VarianceFold,
    quotient_type,
    kernel="windowlib.columnar.kernels.moments:VarianceKernel",
    adds=True,
)


def var(column: Column, *, ddof: int = 1) -> Agg:
    """The variance: of a sample (`ddof=1`, null for one value) or a population (`ddof=0`)."""
    return aggregate(VAR, {"": column}, ddof=_ddof("var", ddof))


STD = AggregateFunction(
    "std",
    Std,
    quotient_type,
    kernel="windowlib.columnar.kernels.moments:StdKernel",
    adds=True,
)


def std(column: Column, *, ddof: int = 1) -> Agg:
    """The standard deviation; `ddof` as for `var`."""
    return aggregate(STD, {"": column}, ddof=_ddof("std", ddof))


COV = AggregateFunction(
    "cov",
    Covariance,
    float_type,
    kernel="windowlib.columnar.kernels.moments:CovarianceKernel",
    adds=True,
)


def cov(x: Column, y: Column, *, ddof: int = 1) -> Agg:
    """The covariance of two columns; `ddof` as for `var`."""
    return aggregate(COV, {"": x, " ": y}, ddof=_ddof("cov", ddof))


CORR = AggregateFunction(
    "corr",
    Correlation,
    float_type,
    kernel="windowlib.columnar.kernels.moments:CorrelationKernel",
    adds=True,
)


def corr(x: Column, y: Column) -> Agg:
    """Pearson's correlation of two columns; null for fewer than two pairs."""
    return aggregate(CORR, {"": x, " ": y})


def _ddof(call: str, ddof: int) -> int:
    if ddof not in (0, 1):
        refuse_argument(call, "ddof", ddof, "say 1 for a sample or 0 for a population.")
    return ddof
