"""The distinct values of a subwindow: how many, which, how often, the most frequent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.kernels.holistic import (
    NONE,
    HolisticFunction,
    PresentValues,
    check_affordable,
    list_array,
    split,
    take_or_null,
)
from windowlib.columnar.kernels.kernel import Result
from windowlib.columnar.kernels.order_statistics import (
    AscendingExtents,
    ascending_extents,
    codes_of,
    portions,
)
from windowlib.columnar.primitives import Array, Places, ranges
from windowlib.columnar.primitives.grouping import stable_order
from windowlib.summaries.folds import State

CHUNK_VALUES = 1 << 20
"""About how many values are worked on at a time."""


class DistinctFunction(HolisticFunction):
    """Base: values that Python takes for equal are one, all NaN are one, the first stands for all.

    What is carried are values with how often they came, those of a batch once each at first.
    """

    weighted = True
    prunes = True

    def check(self) -> None:
        """Values must tell apart."""
        Column.of(pa.array([], self.types[0])).codes()

    def occurrences(
        self, content: PresentValues, lo: Places, hi: Places
    ) -> Iterator[tuple[AscendingExtents, Occurrences]]:
        """Where values stand in the extents."""
        codes, span = codes_of(content.columns[0])
        weights = content.weights
        for each in ascending_extents(lo, hi):
            heavy = None if weights is None else weights[each.places]
            yield each, Occurrences(codes[each.places], span, each.lo, each.hi, heavy)

    def pruned(
        self, content: PresentValues, lo: Places, hi: Places
    ) -> tuple[PresentValues, Places]:
        """Each value once, with how often it came."""
        places, counts, lengths = self.value_counts(content, lo, hi)
        column = content.columns[0].take(places)
        return PresentValues((column,), counts), lengths

    def value_counts(
        self, content: PresentValues, lo: Places, hi: Places
    ) -> tuple[Places, Array, Places]:
        """In order of first appearance: places of values, how often they came, how many each."""
        found = ExtentResults(len(lo))
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            check_affordable(distinct, len(content.columns[0]))
            for part in portions(distinct, CHUNK_VALUES):
                extents, places, counts = occurrences.counted(part.start, part.stop)
                order = np.lexsort((places, extents))
                real = _real(each, places[order])
                found.add(each.which[part], extents[order], real, counts[order])
        places, counts = found.columns()
        return places, counts, found.lengths

    def states(self, content: PresentValues, lo: Places, hi: Places) -> list[State]:
        """Dicts from value to count."""
        places, counts, lengths = self.value_counts(content, lo, hi)
        values = content.columns[0].take(places).arrow().to_pylist()
        pairs = zip(split(values, lengths), split(counts.tolist(), lengths), strict=True)
        return [(dict(zip(*pair, strict=True)),) for pair in pairs]

    def loaded(self, saved: Sequence[Any]) -> tuple[PresentValues, Places]:
        """Values, with how often they came."""
        found = [pairs or [] for (pairs,) in saved]
        flat = list(chain.from_iterable(found))
        weights = np.array([count for _, count in flat], np.int64)
        lengths = np.array(list(map(len, found)), np.intp)
        return PresentValues((self.column([value for value, _ in flat]),), weights), lengths


class ExtentResults:
    """Parts of results, some extents at a time, put together in the order of all extents."""

    def __init__(self, size: int) -> None:
        self.lengths: Places = np.zeros(size, np.intp)
        self._which: list[Places] = []
        self._parts: list[tuple[Array, ...]] = []

    def add(self, which: Places, owners: Places, *columns: Array) -> None:
        """The values of some extents; `owners` says which of them each belongs to, in order."""
        self.lengths[which] = np.bincount(owners, minlength=len(which))
        self._which.append(which)
        self._parts.append(columns)

    def columns(self, count: int = 2) -> tuple[Array, ...]:
        """The values of all extents."""
        if not self._parts:
            return (np.empty(0, np.int64),) * count
        joined = tuple(map(np.concatenate, zip(*self._parts, strict=True)))
        which = np.concatenate(self._which)
        if (which[1:] > which[:-1]).all():
            return joined
        lengths = self.lengths[which]
        starts = np.zeros(len(self.lengths), np.intp)
        starts[which] = np.cumsum(lengths) - lengths
        places = ranges(starts, self.lengths)
        return tuple(column[places] for column in joined)


def _real(each: AscendingExtents, places: Places) -> Places:
    """The places of the whole content that those of some extents stand for."""
    if isinstance(each.places, slice):
        return places + int(each.places.start)
    return each.places[places]


class CountDistinctFunction(DistinctFunction):
    """How many distinct values."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """Their number."""
        found = np.zeros(len(lo), np.int64)
        for each, occurrences in self.occurrences(content, lo, hi):
            found[each.which] = occurrences.distinct()
        return pa.array(found)


class CollectDistinctFunction(DistinctFunction):
    """The distinct values, in order of first appearance."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """Lists of them."""
        found = ExtentResults(len(lo))
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            check_affordable(distinct, len(content.columns[0]))
            for part in portions(distinct, CHUNK_VALUES):
                extents, places = occurrences.firsts(part.start, part.stop)
                found.add(each.which[part], extents, _real(each, places))
        (places,) = found.columns(1)
        return list_array(content.columns[0].take(places), found.lengths)


class CountByDistinctFunction(DistinctFunction):
    """How often each distinct value came, in order of first appearance."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """Lists of counts."""
        _, counts, lengths = self.value_counts(content, lo, hi)
        return list_array(Column(pa.int64(), counts), lengths)


class ModeFunction(DistinctFunction):
    """The most frequent value; of several, the one that came first."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """That value; null if there is none."""
        found = np.full(len(lo), NONE)
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            for part in portions(distinct, CHUNK_VALUES):
                extents, places, counts = occurrences.counted(part.start, part.stop)
                starts = np.cumsum(distinct[part]) - distinct[part]
                most = np.maximum.reduceat(counts, starts)
                places = np.where(counts == most[extents], places, np.iinfo(np.intp).max)
                best = np.minimum.reduceat(places, starts)
                found[each.which[part]] = _real(each, best)
        return take_or_null(content.columns[0], found)


# Where equal values stand, and which of them are the first or the last in extents.
#
# Starts and ends of the extents ascend, as they do when a window slides. Then the extents that hold
# a place are neighbours, and so are those in which it is the first of its kind, namely those that
# begin after the place before it that holds the same value. So the number of distinct values in
# every extent is a running sum over where these runs of extents begin and end, and takes no more
# time where extents overlap.


class Occurrences:
    """Codes from 0 to `span`, and extents over their places; none is empty.

    >>> codes, lo, hi = np.array([3, 7, 3, 7, 7]), np.array([0, 2]), np.array([3, 5])
    >>> found = Occurrences(codes, 8, lo, hi)
    >>> found.distinct().tolist()
    [2, 2]
    >>> found.firsts(0, 2)
    (array([0, 0, 1, 1]), array([0, 1, 2, 3]))
    """

    def __init__(
        self, codes: Array, span: int, lo: Places, hi: Places, weights: Array | None = None
    ) -> None:
        self.lo, self.hi = lo, hi
        size = len(codes)
        self.order = stable_order(codes, span)
        self._running = None
        if weights is not None:
            self._running = np.append(0, np.cumsum(weights[self.order]))
        # The extents that hold a place are those from `_since` to `_until`, without the last.
        self._since = np.cumsum(np.bincount(hi, minlength=size + 1))
        self._until = np.cumsum(np.bincount(lo, minlength=size + 1))
        sorted_codes = codes[self.order]
        again = np.flatnonzero(sorted_codes[1:] == sorted_codes[:-1])
        earlier, later = self.order[again], self.order[again + 1]
        # It is the first there since the extents begin after the earlier one of its kind, ...
        self.first_since = self._since[:size].copy()
        self.first_since[later] = np.maximum(self.first_since[later], self._until[earlier])
        # ... and the last until they reach the later one.
        self.last_until = self._until[:size].copy()
        self.last_until[earlier] = np.minimum(self.last_until[earlier], self._since[later])

    def distinct(self) -> Places:
        """How many different values each extent has."""
        some = self.first_since < self._until[:-1]
        size = len(self.lo) + 1
        begun = np.bincount(self.first_since[some], minlength=size)
        ended = np.bincount(self._until[:-1][some], minlength=size)
        return np.cumsum(begun - ended)[:-1]

    def firsts(self, begin: int, end: int) -> tuple[Places, Places]:
        """For some extents, the places where a value comes first: extents, and places in them."""
        places = np.arange(int(self.lo[begin]), int(self.hi[end - 1]))
        return self._spread(places, self.first_since, self._until, begin, end)

    def counted(self, begin: int, end: int) -> tuple[Places, Places, Array]:
        """For some extents, each of their values: the extent, its first place, how often it came.

        Extents come in order, the values of each in no order that means anything.
        """
        lo, hi = int(self.lo[begin]), int(self.hi[end - 1])
        inside = (self.order >= lo) & (self.order < hi)
        numbers = np.flatnonzero(inside)  # in the order of codes
        places = self.order[numbers]
        # First and last places in the order of codes go in step: each code has one of both.
        extents, first = self._spread(places, self.first_since, self._until, begin, end, numbers)
        _, last = self._spread(places, self._since, self.last_until, begin, end, numbers)
        running = self._running
        counts = last - first + 1 if running is None else running[last + 1] - running[first]
        return extents, self.order[first], counts

    def _spread(
        self,
        places: Places,
        since: Array,
        until: Array,
        begin: int,
        end: int,
        named: Places | None = None,
    ) -> tuple[Places, Places]:
        """The extents that places stand for something in, and the places, extent by extent."""
        start = np.maximum(since[places], begin)
        lengths = np.minimum(until[places], end) - start
        some = np.flatnonzero(lengths > 0)
        start, lengths = start[some], lengths[some]
        extents = ranges(start, lengths) - begin
        who = np.repeat((places if named is None else named)[some], lengths)
        order = stable_order(extents, end - begin)
        return extents[order], who[order]
