"""Quantiles: the value below which a fraction of the others lies; NaN above all."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from windowlib.attributes import NAN
from windowlib.errors import SchemaError
from windowlib.operators.functions.call import Agg, Column, aggregate, refuse_argument
from windowlib.operators.functions.output_types import quantile_type
from windowlib.operators.functions.positions import ValuesFold
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fifo, State

__all__ = ["median", "quantile"]


class QuantileFold(ValuesFold):
    """The q-quantile; between two values as `method` says, straight between them by default.

    The fraction is what is written: 0.07 of the way from place 0 to place 100 is place 7.
    """

    name = "quantile"
    compute = "_0 = F.ready({0}, x)"

    def __init__(self, q: float, method: str) -> None:
        self.share, self.method = Fraction(str(q)), method
        self._last: tuple[int, int, Fraction] | None = None  # a size, and what `place` says of it

    def ready(self, values: list[Any] | None, x: Any) -> list[Any]:
        """The values, if `x` can be sorted in; raises before anything changes."""
        if values and x is not None:
            self.order(x, values[0])
        return [] if values is None else values

    def order(self, x: Any, other: Any) -> None:
        """Refuse a value that has no order with another."""
        try:
            _ = x == x and other == other and x < other  # only to see whether it can be done
        except TypeError as error:
            msg = f"{self.name} of {x!r}: {error}. Use one type for the column."
            raise SchemaError(msg) from None

    def check(self, state: State, x: Any) -> None:
        """Refuse what cannot be sorted in."""
        self.ready(state[0], x)

    def result(self, values: Any) -> Any:
        """Sort the values and take one, or something between two."""
        numbers = [x for x in values if x == x]
        try:
            numbers.sort()
        except TypeError as error:
            msg = f"{self.name} of {values[-1]!r}: {error}. Use one type for the column."
            raise SchemaError(msg) from None
        return self.pick(numbers, len(values) - len(numbers))

    def pick(self, numbers: Sequence[Any], nans: int) -> Any:
        """The quantile of sorted numbers, with so many NaN after them."""
        size = len(numbers) + nans
        if not size:
            return None
        last = self._last  # in one step: threads may share it
        if last is None or last[0] != size:  # windows are mostly as long as the one before
            self._last = last = (size, *self.place(size))
        _, low, part = last
        below = numbers[low] if low < len(numbers) else NAN
        if self.method != "linear":
            return below
        above = numbers[low + 1] if low + 1 < len(numbers) else NAN
        return self.between(below, above, part)

    def place(self, size: int) -> tuple[int, Fraction]:
        """The index of the quantile among `size` values, and the fraction towards the next."""
        place = self.share * (size - 1)
        low = math.ceil(place) if self.method == "higher" else math.floor(place)
        low = round(place) if self.method == "nearest" else low
        return low, place - low

    def between(self, below: Any, above: Any, part: Fraction) -> Any:
        """Linear interpolation between two values."""
        if not part or below == above:  # an infinity has no distance from itself
            return below / 1 if type(below) is int else below
        if above != above:
            return NAN
        if isinstance(below, Decimal) and isinstance(above, Decimal):
            return below + (above - below) * part.numerator / part.denominator
        try:
            between = below + (above - below) * float(part)
        except TypeError:
            msg = (
                f"{self.name} of {below!r}: there is nothing between {below!r} and {above!r}. "
                f'Say method="lower", "higher" or "nearest".'
            )
            raise SchemaError(msg) from None
        if isinstance(between, float) and not math.isfinite(between):
            # The distance was infinite, or too large; the weighted ends may not be.
            return below * (1 - float(part)) + above * float(part)
        return between

    def sliding(self) -> Fifo:
        """The values, sorted."""
        return SortedValues(self)


class SortedValues(Fifo):
    """The values in order of size, beside their order of arrival."""

    algorithm = "sorted multiset"

    def __init__(self, fold: QuantileFold) -> None:
        from sortedcontainers import SortedList

        self.fold = fold
        self.sorted: Any = SortedList()
        self.values: deque[Any] = deque()
        self.nans = 0

    def push(self, x: Any) -> None:
        """Sort it in."""
        if x is not None:
            if x != x:
                self.nans += 1
            else:
                self._add(x)
        self.values.append(x)

    def _add(self, x: Any) -> None:
        try:
            self.sorted.add(x)
        except TypeError as error:
            msg = f"{self.fold.name} of {x!r}: {error}. Use one type for the column."
            raise SchemaError(msg) from None

    def pop(self, count: int) -> None:
        """Take out the oldest."""
        for _ in range(count):
            x = self.values.popleft()
            if x is None:
                continue
            if x != x:
                self.nans -= 1
            else:
                self.sorted.remove(x)

    def value(self) -> Any:
        """One of them, or something between two."""
        return self.fold.pick(self.sorted, self.nans)


Method = Literal["linear", "lower", "higher", "nearest"]
METHODS = ("linear", "lower", "higher", "nearest")

MEDIAN = AggregateFunction(
    "median",
    QuantileFold,
    quantile_type,
    kernel="windowlib.columnar.kernels.ranked:QuantileFunction",
)
QUANTILE = AggregateFunction(
    "quantile",
    QuantileFold,
    quantile_type,
    kernel="windowlib.columnar.kernels.ranked:QuantileFunction",
)


def median(column: Column, *, method: Method = "linear") -> Agg:
    """The middle value; between two values as `method` says."""
    return _quantile(MEDIAN, column, 0.5, method)


def quantile(column: Column, q: float, *, method: Method = "linear") -> Agg:
    """The value below which the fraction `q` of the others lies.

    Between two values: straight between them ("linear"), or one of them ("lower", "higher",
    "nearest"), which works for anything that has an order.
    """
    return _quantile(QUANTILE, column, check_fraction("quantile", q), method)


def _quantile(function: AggregateFunction, column: Column, q: float, method: str) -> Agg:
    if method not in METHODS:
        refuse_argument(function.name, "method", method, f"use one of {', '.join(METHODS)}.")
    hidden = ("q",) * (function is MEDIAN) + ("method",) * (method == "linear")
    return aggregate(function, {"": column}, hidden=hidden, q=q, method=method)


def check_fraction(call: str, q: float) -> float:
    """A fraction, or a message that says what one is."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        refuse_argument(call, "q", q, "a fraction between 0 and 1, such as 0.95.")
    return q
