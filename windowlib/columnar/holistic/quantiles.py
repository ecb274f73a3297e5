"""Quantiles: values at a place in the order of size, or between two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.holistic.base import Content
from windowlib.columnar.holistic.comparing import Ranks, ordered
from windowlib.columnar.holistic.listed import NONE, Listed, picked
from windowlib.columnar.holistic.statistics import smallest_from
from windowlib.columnar.kernels.base import EXACT, Array, Result
from windowlib.columnar.pieces import Places
from windowlib.errors import SchemaError


class Quantiles(Listed):
    """The q-quantile; NaN is the largest number."""

    def check(self) -> None:
        """Values must have an order."""
        Column.of(pa.array([], self.types[0])).order_keys()

    @property
    def linear(self) -> bool:
        """Whether the result may lie between two values."""
        return bool(self.definition.method == "linear")

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """The quantile of each extent; null for none."""
        (values,) = content.columns
        some = np.flatnonzero(hi > lo)
        lo_, hi_ = lo[some], hi[some]
        places, parts = self._wanted(hi_ - lo_)
        sought = Sought(values)
        below, above = sought.at(lo_, hi_, places, 1 + (parts > 0) * self.linear)
        if not self.linear:
            return sought.arrow(len(lo), some, below)
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            found = [sought.arrow(len(some), None, each).to_pylist() for each in (below, above)]
            return self._in_python(len(lo), some, hi_ - lo_, places, *found)
        numbers = between(sought.numbers(below), sought.numbers(above), parts)
        result, there = np.zeros(len(lo)), np.zeros(len(lo), bool)
        result[some], there[some] = numbers, True
        return Column(pa.float64(), result, None if len(some) == len(lo) else there).arrow()

    def _wanted(self, sizes: Places) -> tuple[Places, Array]:
        """Places in the order of size for so many values, and the part of the way to the next."""
        share, method = self.definition.share, self.definition.method
        most = int(sizes.max(initial=1))
        if share.numerator * most >= EXACT or share.denominator >= EXACT:
            return self._wanted_in_python(sizes)
        whole, rest = np.divmod(share.numerator * (sizes - 1), share.denominator)
        if method == "higher":
            whole += rest > 0
        elif method == "nearest":
            half = 2 * rest - share.denominator
            whole += (half > 0) | ((half == 0) & (whole % 2 == 1))
        return whole, rest / share.denominator

    def _wanted_in_python(self, sizes: Places) -> tuple[Places, Array]:
        """The same for fractions with many digits."""
        different, which = np.unique(sizes, return_inverse=True)
        found = [self.definition.place(size) for size in different.tolist()]
        places = np.array([place for place, _ in found], np.intp)
        parts = np.array([float(part) for _, part in found], np.float64)
        return places[which], parts[which]

    def _in_python(
        self, size: int, some: Places, sizes: Places, places: Places, below: Any, above: Any
    ) -> list[Any]:
        """Values between others that only Python knows."""
        definition, results = self.definition, [None] * size
        wanted = zip(some.tolist(), sizes.tolist(), places.tolist(), below, above, strict=True)
        try:
            for i, n, place, one, other in wanted:
                results[i] = definition.between(one, other, definition.share * (n - 1) - place)
        except (SchemaError, ArithmeticError, TypeError, ValueError) as error:
            raise Decline(f"a value between two of {self.types[0]}") from error
        return results


class Sought:
    """Looks for values by size, and gives them as they are."""

    def __init__(self, values: Column) -> None:
        self.values = values
        self._ranks: Ranks | None = None
        data = values.data
        plain = values.physical and not (values.floating and _two_zeros(data))
        if not plain:  # the place tells which of several that are equal it is
            self._ranks = Ranks(ordered(values))
            data = self._ranks.numbers
        self._keys = data

    def at(self, lo: Places, hi: Places, first: Places, count: Places) -> tuple[Array, Array]:
        """Where `first` and the next are, if `count` is 2: the numbers, or places."""
        below = np.empty(len(lo), self._keys.dtype)
        above = below.copy()
        for which, rows in smallest_from(self._keys, lo, hi, first, count):
            below[which] = rows[:, 0]
            above[which] = np.where(count[which] > 1, rows[:, rows.shape[1] - 1], rows[:, 0])
        if self._ranks is None:
            return below, above
        return self._ranks.places(below), self._ranks.places(above)

    def numbers(self, found: Array) -> Array:
        """The numbers of what was found."""
        return found if self._ranks is None else self.values.data[found]

    def arrow(self, size: int, some: Places | None, found: Array) -> Any:
        """An Arrow array of so many values, what was found at `some` places; None: at all."""
        if some is None or len(some) == size:
            if self._ranks is not None:
                return picked(self.values, found)
            return Column(self.values.type, found).arrow()
        if self._ranks is not None:
            places = np.full(size, NONE)
            places[some] = found
            return picked(self.values, places)
        data, there = np.zeros(size, found.dtype), np.zeros(size, bool)
        data[some], there[some] = found, True
        return Column(self.values.type, data, there).arrow()


def _two_zeros(data: Array) -> bool:
    """Whether there are both 0.0 and −0.0, which are equal and not the same."""
    negative = np.signbit(data[data == 0])
    return bool(negative.any() and not negative.all())


def between(below: Array, above: Array, parts: Array) -> Array:
    """What lies that part of the way from one number to the next, as floats.

    >>> between(np.array([1, 5]), np.array([2, 9]), np.array([0.5, 0.0])).tolist()
    [1.5, 5.0]
    """
    start = below.astype(np.float64)
    if below.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            found = start + (above - below) * parts
            # The distance was infinite, or too large; the weighted ends may not be.
            ends = start * (1 - parts) + above * parts
        found = np.where(np.isfinite(found), found, ends)
        found[np.isnan(above)] = np.nan
    else:  # the distance may be too large for a signed number
        distance = above.astype(np.uint64) - below.astype(np.uint64)
        found = start + distance.astype(np.float64) * parts
    return np.where((parts == 0) | (below == above), start, found)
