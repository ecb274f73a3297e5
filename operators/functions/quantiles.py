"""Quantiles: the value below which a fraction of the others lies; NaN above all."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from operators.functions.ends import Listed
from windowlib.errors import SchemaError
from windowlib.folds import Fifo

NAN = float("nan")


class Quantile(Listed):
    """The q-quantile; between two values as `method` says, straight between them by default."""

    name = "quantile"

    def __init__(self, q: float, method: str) -> None:
        self.q, self.method = q, method

    def result(self, values: Any) -> Any:
        """Sort the values and take one, or something between two."""
        numbers = [x for x in values if x == x]
        try:
            numbers.sort()
        except TypeError as error:
            msg = f"quantile of {values[-1]!r}: {error}. Use one type for the column."
            raise SchemaError(msg) from None
        return self.pick(numbers, len(values) - len(numbers))

    def pick(self, numbers: Sequence[Any], nans: int) -> Any:
        """The quantile of sorted numbers, with so many NaN after them."""
        size = len(numbers) + nans
        if not size:
            return None
        place = self.q * (size - 1)
        low = int(place)
        part = place - low
        if self.method == "nearest":
            low, part = round(place), 0.0
        if self.method == "higher" and part:
            low, part = low + 1, 0.0
        below = numbers[low] if low < len(numbers) else NAN
        if not part or self.method == "lower":
            return float(below) if self.method == "linear" and type(below) is int else below
        above = numbers[low + 1] if low + 1 < len(numbers) else NAN
        return self._between(below, above, part)

    def _between(self, below: Any, above: Any, part: float) -> Any:
        if isinstance(below, Decimal) and isinstance(above, Decimal):
            return below + (above - below) * Decimal(part)
        try:
            if below == above:  # an infinity has no distance from itself
                return float(below) if type(below) is int else below
            return below + (above - below) * part
        except TypeError:
            msg = (
                f"quantile of {below!r}: there is nothing between {below!r} and {above!r}. "
                f'Say method="lower", "higher" or "nearest".'
            )
            raise SchemaError(msg) from None

    def sliding(self) -> Fifo:
        """The values, sorted."""
        return SortedValues(self)


class SortedValues(Fifo):
    """The values in order of size, beside their order of arrival."""

    algorithm = "sorted multiset"

    def __init__(self, fold: Quantile) -> None:
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
            msg = f"quantile of {x!r}: {error}. Use one type for the column."
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
