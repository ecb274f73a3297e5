"""Functions that look at values in order of size: quantiles, the best few, all that are best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.physical import EXACT
from windowlib.columnar.kernels.holistic import (
    NONE,
    HolisticFunction,
    ListFunction,
    PresentValues,
    check_affordable,
    list_array,
    split,
    take_or_null,
)
from windowlib.columnar.kernels.kernel import Result
from windowlib.columnar.kernels.order_statistics import (
    Ranks,
    order_keys_of,
    smallest_from,
)
from windowlib.columnar.primitives import Array, Places, ranges, smallest
from windowlib.columnar.primitives.grouping import stable_argsort
from windowlib.errors import SchemaError
from windowlib.summaries.folds import State
from windowlib.window.consumer import Decline

MIN_OVERLAP = 16
"""Values in extents for each value there is, from which on these are sorted instead."""


class RankedFunction(HolisticFunction):
    """Base: of pairs of a value and what it is judged by, those that `chosen` finds."""

    has_sort_key = 1
    prunes = True

    def check(self) -> None:
        """What values are judged by must have an order."""
        Column.of(pa.array([], self.types[1])).order_keys()

    def keys(self, content: PresentValues) -> Array:
        """Whole numbers, the best the smallest."""
        keys = order_keys_of(content.columns[1])
        return ~keys if self.definition.largest else keys

    def selected(self, content: PresentValues, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the pairs that count in each extent, and how many there are."""
        raise NotImplementedError

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """Lists of the values."""
        places, lengths = self.selected(content, lo, hi)
        return list_array(content.columns[0].take(places), lengths)

    def pruned(
        self, content: PresentValues, lo: Places, hi: Places
    ) -> tuple[PresentValues, Places]:
        """The pairs that count so far."""
        places, lengths = self.selected(content, lo, hi)
        return content.take(places), lengths

    def states(self, content: PresentValues, lo: Places, hi: Places) -> list[State]:
        """The state of the fold over the pairs that count."""
        places, lengths = self.selected(content, lo, hi)
        columns = [column.arrow().to_pylist() for column in content.take(places).columns]
        pairs = zip(*(split(column, lengths) for column in columns), strict=True)
        return [self.state(values, by) for values, by in pairs]

    def state(self, values: list[Any], by: list[Any]) -> State:
        """The state of the fold for the pairs that count."""
        raise NotImplementedError

    def loaded(self, saved: Sequence[Any]) -> tuple[PresentValues, Places]:
        """The pairs, which count."""
        found = [self.pairs(each) for each in saved]
        flat = list(chain.from_iterable(found))
        columns = self.column([value for _, value in flat]), self.column([by for by, _ in flat], 1)
        return PresentValues(columns), np.array(list(map(len, found)), np.intp)

    def pairs(self, saved: Any) -> Sequence[tuple[Any, Any]]:
        """The pairs of a sort key and a value in a saved state."""
        raise NotImplementedError


class TopFunction(RankedFunction):
    """The values that go with the k best, best first; the earlier of equal ones first."""

    def selected(self, content: PresentValues, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the k best, in this order."""
        lengths = np.minimum(hi - lo, self.definition.k)
        check_affordable(lengths, len(content.columns[1]))
        ranks = Ranks(self.keys(content))
        some = np.flatnonzero(lengths)
        starts = np.cumsum(lengths) - lengths
        found = np.empty(int(lengths.sum()), ranks.numbers.dtype)
        args = lo[some], hi[some], np.zeros(len(some), np.intp), lengths[some]
        for part, rows in smallest_from(ranks.numbers, *args):
            which = some[part]
            inside = np.arange(rows.shape[1]) < lengths[which, None]
            found[ranges(starts[which], lengths[which])] = rows[inside]
        return ranks.places(found), lengths

    def state(self, values: list[Any], by: list[Any]) -> State:
        """Pairs, best first."""
        return (tuple(zip(by, values, strict=True)),)

    def pairs(self, saved: Any) -> Sequence[tuple[Any, Any]]:
        """The state itself."""
        return saved[0] or ()


class AllBestFunction(RankedFunction):
    """All values that go with the best, in order."""

    def selected(self, content: PresentValues, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the best."""
        keys, lengths = self.keys(content), hi - lo
        if int(lengths.sum()) > MIN_OVERLAP * len(keys):
            return _runs(keys, lo, hi)
        places = ranges(lo, lengths)
        best = keys[places] == np.repeat(smallest(keys, lo, hi), lengths)
        running = np.append(0, np.cumsum(best))
        ends = np.cumsum(lengths)
        return places[best], running[ends] - running[ends - lengths]

    def state(self, values: list[Any], by: list[Any]) -> State:
        """The best, and the values."""
        return (by[0], tuple(values)) if by else self.definition.empty

    def pairs(self, saved: Any) -> Sequence[tuple[Any, Any]]:
        """Each of the values with the best."""
        best, values = saved
        return [(best, value) for value in values or ()]


def _runs(keys: Array, lo: Places, hi: Places) -> tuple[Places, Places]:
    """Where the smallest key of each extent is, and how often: a run in the order of keys."""
    order = stable_argsort(keys)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    some = np.flatnonzero(hi > lo)
    start = smallest(ranks, lo[some], hi[some])
    # Number different keys, so that key and place are one number to search for.
    bits = len(keys).bit_length()
    sorted_keys = keys[order]
    number = np.append(0, np.cumsum(sorted_keys[1:] != sorted_keys[:-1])) << bits
    end = np.searchsorted(number | order, number[start] | hi[some])
    lengths = np.zeros(len(lo), np.intp)
    lengths[some] = end - start
    check_affordable(lengths, len(keys))
    return order[ranges(start, end - start)], lengths


# Quantiles: values at a place in the order of size, or between two of them.


class QuantileFunction(ListFunction):
    """The q-quantile; NaN is the largest number."""

    def check(self) -> None:
        """Values must have an order."""
        Column.of(pa.array([], self.types[0])).order_keys()

    @property
    def linear(self) -> bool:
        """Whether the result may lie between two values."""
        return bool(self.definition.method == "linear")

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """The quantile of each extent; null for none."""
        (values,) = content.columns
        some: Any = hi > lo
        some = slice(None) if some.all() else np.flatnonzero(some)
        lo_, hi_ = lo[some], hi[some]
        places, parts = self._wanted(hi_ - lo_)
        sought = RankedValues(values)
        below, above = sought.at(lo_, hi_, places, 1 + (parts > 0) * self.linear)
        if not self.linear:
            return sought.arrow(len(lo), some, below)
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            found = [sought.arrow(len(lo_), slice(None), at).to_pylist() for at in (below, above)]
            at = np.arange(len(lo))[some]
            return self._in_python(len(lo), at, hi_ - lo_, places, *found)
        numbers = between(sought.numbers(below), sought.numbers(above), parts)
        if isinstance(some, slice):
            return Column(pa.float64(), numbers).arrow()
        result, there = np.zeros(len(lo)), np.zeros(len(lo), bool)
        result[some], there[some] = numbers, True
        return Column(pa.float64(), result, there).arrow()

    def _wanted(self, sizes: Places) -> tuple[Places, Array]:
        """Places in the order of size for so many values, and the part of the way to the next."""
        share, method = self.definition.share, self.definition.method
        most = int(sizes.max(initial=1))
        if len(sizes) > 1 and int(sizes.min()) == most:  # one division for all
            whole, rest = self._wanted(sizes[:1])
            return np.full(len(sizes), whole[0]), np.broadcast_to(rest, len(sizes))
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


class RankedValues:
    """Looks for values by size, and gives them as they are."""

    def __init__(self, values: Column) -> None:
        self.values = values
        self._ranks: Ranks | None = None
        data = values.data
        plain = values.physical and not (values.floating and _two_zeros(data))
        if not plain:  # the place tells which of several that are equal it is
            self._ranks = Ranks(order_keys_of(values))
            data = self._ranks.numbers
        self._keys = data

    def at(self, lo: Places, hi: Places, first: Places, count: Places) -> tuple[Array, Array]:
        """Where `first` and the next are, if `count` is 2: the numbers, or places."""
        below, above = np.empty((2, len(lo)), self._keys.dtype)
        for which, rows in smallest_from(self._keys, lo, hi, first, count):
            one, other = rows[:, 0], rows[:, -1]
            if rows.shape[1] > 1 and (count[which] < 2).any():
                other = np.where(count[which] > 1, other, one)
            if isinstance(which, slice) and len(rows) == len(lo):  # all at once
                below, above = one, other
            else:
                below[which], above[which] = one, other
        if self._ranks is None:
            return below, above
        return self._ranks.places(below), self._ranks.places(above)

    def numbers(self, found: Array) -> Array:
        """The numbers of what was found."""
        return found if self._ranks is None else self.values.data[found]

    def arrow(self, size: int, some: Places | slice, found: Array) -> Any:
        """An Arrow array of so many values, what was found at `some` places; a slice: at all."""
        if isinstance(some, slice):
            if self._ranks is not None:
                return take_or_null(self.values, found)
            return Column(self.values.type, found).arrow()
        if self._ranks is not None:
            places = np.full(size, NONE)
            places[some] = found
            return take_or_null(self.values, places)
        data, there = np.zeros(size, found.dtype), np.zeros(size, bool)
        data[some], there[some] = found, True
        return Column(self.values.type, data, there).arrow()


def _two_zeros(data: Array) -> bool:
    """Whether there are both 0.0 and −0.0, which are equal and not the same."""
    negative = np.signbit(data[data == 0])
    return bool(negative.any() and not negative.all())


def between(below: Array, above: Array, parts: Array) -> Array:
    """Linear interpolation between two numbers, as floats.

    >>> between(np.array([1, 5]), np.array([2, 9]), np.array([0.5, 0.0])).tolist()
    [1.5, 5.0]
    """
    start = below.astype(np.float64, copy=False)
    if below.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            found: Array = above - below
            found *= parts
            found += start
            finite = np.isfinite(found)
            if not finite.all():
                # The distance was infinite, or too large; the weighted ends may not be.
                ends = start * (1 - parts) + above * parts
                found = np.where(finite, found, ends)
                found[np.isnan(above)] = np.nan
    else:  # the distance may be too large for a signed number
        distance = above.astype(np.uint64) - below.astype(np.uint64)
        found = start + distance.astype(np.float64) * parts
    np.copyto(found, start, where=(parts == 0) | (below == above))
    return found
