"""Functions of sums and squares: standard deviation, weighted mean, covariance, correlation."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from windowlib.errors import SchemaError
from windowlib.folds import Fold, State, SumFold, VarianceFold


class Std(VarianceFold):
    """The square root of the variance."""

    name = kernel = "std"

    def value(self, n: int, state: State) -> Any:
        """The root, of the type of the values."""
        variance = super().value(n, state)
        if variance is None:
            return None
        return variance.sqrt() if isinstance(variance, Decimal) else math.sqrt(variance)


class WeightedMean(Fold):
    """Sum of value times weight over sum of weights; both compensated. Takes pairs."""

    name = kernel = "weighted_mean"

    def __init__(self) -> None:
        self.sum = SumFold(short=False)
        self.empty = (*self.sum.empty, *self.sum.empty, 0)

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
    """How two values vary together, in Welford's form. Takes pairs; a null in one skips both.

    State: how many, both means, the sum of products of distances, both sums of squares.
    """

    name = kernel = "cov"
    empty = (0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __init__(self, ddof: int = 0) -> None:
        self.ddof = ddof

    def step(self, state: State, x: Any) -> State:
        """Move the means a little and add the products of distances."""
        try:
            a, b = (None if each is None else float(each + 0) for each in x)
        except (TypeError, OverflowError):  # text is no number, even if it could be read as one
            msg = f"{self.name} of {x!r}: not two numbers. Use columns of numbers."
            raise SchemaError(msg) from None
        if a is None or b is None:
            return state
        n, mean_a, mean_b, together, squares_a, squares_b = state
        n += 1
        away_a, away_b = a - mean_a, b - mean_b
        mean_a, mean_b = mean_a + away_a / n, mean_b + away_b / n
        together += away_a * (b - mean_b)
        squares_a += away_a * (a - mean_a)
        squares_b += away_b * (b - mean_b)
        return n, mean_a, mean_b, together, squares_a, squares_b

    def value(self, n: int, state: State) -> float | None:
        """Products over count − ddof; None if there are too few, NaN where a mean is infinite."""
        count: int = state[0]
        return self.products(state) / (count - self.ddof) if count > self.ddof else None

    def products(self, state: State) -> float:
        """The sum of products of distances; distances from an infinite mean say nothing."""
        together: float = state[3]
        return together if math.isfinite(state[1] + state[2]) else math.nan

    def merge(self, a: State, b: State) -> State:
        """Chan's form: the products of both, plus those of the means' distances."""
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


class Correlation(Covariance):
    """Pearson's coefficient of correlation."""

    name = kernel = "corr"

    def value(self, n: int, state: State) -> float | None:
        """Products over the root of both squares; None for fewer than two, NaN without variance."""
        if state[0] < 2:
            return None
        scale = math.sqrt(state[4]) * math.sqrt(state[5])
        return self.products(state) / scale if scale else math.nan
