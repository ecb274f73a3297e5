"""The distinct values of a subwindow: how many, which, how often, the most frequent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.holistic.base import Content, Holistic
from windowlib.columnar.holistic.comparing import numbered
from windowlib.columnar.holistic.extents import Forward, forwards, portions
from windowlib.columnar.holistic.listed import NONE, affordable, lists, picked, split
from windowlib.columnar.holistic.occurrences import Occurrences
from windowlib.columnar.kernels.base import Array, Result
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges
from windowlib.folds import State

AT_ONCE = 1 << 20
"""About how many values are worked on at a time."""


class Distinct(Holistic):
    """Base: values that Python takes for equal are one, all NaN are one, the first stands for all.

    What is carried are values with how often they came, those of a batch once each at first.
    """

    weighted = True
    thins = True

    def check(self) -> None:
        """Values must tell apart."""
        Column.of(pa.array([], self.types[0])).codes()

    def occurrences(
        self, content: Content, lo: Places, hi: Places
    ) -> Iterator[tuple[Forward, Occurrences]]:
        """Where values stand in the extents."""
        codes, span = numbered(content.columns[0])
        weights = content.weights
        for each in forwards(lo, hi):
            heavy = None if weights is None else weights[each.places]
            yield each, Occurrences(codes[each.places], span, each.lo, each.hi, heavy)

    def thinned(self, content: Content, lo: Places, hi: Places) -> tuple[Content, Places]:
        """Each value once, with how often it came."""
        places, counts, lengths = self.tallied(content, lo, hi)
        column = content.columns[0].take(places)
        return Content((column,), counts), lengths

    def tallied(self, content: Content, lo: Places, hi: Places) -> tuple[Places, Array, Places]:
        """In order of first appearance: places of values, how often they came, how many each."""
        found = Gathered(len(lo))
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            affordable(distinct, len(content.columns[0]))
            for part in portions(distinct, AT_ONCE):
                extents, places, counts = occurrences.counted(part.start, part.stop)
                order = np.lexsort((places, extents))
                real = _real(each, places[order])
                found.add(each.which[part], extents[order], real, counts[order])
        places, counts = found.columns()
        return places, counts, found.lengths

    def states(self, content: Content, lo: Places, hi: Places) -> list[State]:
        """Dicts from value to count."""
        places, counts, lengths = self.tallied(content, lo, hi)
        values = content.columns[0].take(places).arrow().to_pylist()
        pairs = zip(split(values, lengths), split(counts.tolist(), lengths), strict=True)
        return [(dict(zip(*pair, strict=True)),) for pair in pairs]

    def loaded(self, saved: Sequence[Any]) -> tuple[Content, Places]:
        """Values, with how often they came."""
        found = [pairs or [] for (pairs,) in saved]
        flat = list(chain.from_iterable(found))
        weights = np.array([count for _, count in flat], np.int64)
        lengths = np.array(list(map(len, found)), np.intp)
        return Content((self.column([value for value, _ in flat]),), weights), lengths


class Gathered:
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


def _real(each: Forward, places: Places) -> Places:
    """The places of the whole content that those of some extents stand for."""
    if isinstance(each.places, slice):
        return places + int(each.places.start)
    return each.places[places]


class CountedDistinct(Distinct):
    """How many distinct values."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """Their number."""
        found = np.zeros(len(lo), np.int64)
        for each, occurrences in self.occurrences(content, lo, hi):
            found[each.which] = occurrences.distinct()
        return pa.array(found)


class CollectedDistinct(Distinct):
    """The distinct values, in order of first appearance."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """Lists of them."""
        found = Gathered(len(lo))
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            affordable(distinct, len(content.columns[0]))
            for part in portions(distinct, AT_ONCE):
                extents, places = occurrences.firsts(part.start, part.stop)
                found.add(each.which[part], extents, _real(each, places))
        (places,) = found.columns(1)
        return lists(content.columns[0].take(places), found.lengths)


class CountedByDistinct(Distinct):
    """How often each distinct value came, in order of first appearance."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """Lists of counts."""
        _, counts, lengths = self.tallied(content, lo, hi)
        return lists(Column(pa.int64(), counts), lengths)


class MostFrequent(Distinct):
    """The most frequent value; of several, the one that came first."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """That value; null if there is none."""
        found = np.full(len(lo), NONE)
        for each, occurrences in self.occurrences(content, lo, hi):
            distinct = occurrences.distinct()
            for part in portions(distinct, AT_ONCE):
                extents, places, counts = occurrences.counted(part.start, part.stop)
                starts = np.cumsum(distinct[part]) - distinct[part]
                most = np.maximum.reduceat(counts, starts)
                places = np.where(counts == most[extents], places, np.iinfo(np.intp).max)
                best = np.minimum.reduceat(places, starts)
                found[each.which[part]] = _real(each, best)
        return picked(content.columns[0], found)
