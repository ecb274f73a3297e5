"""The values that go with the best of another column: the best few, or all that are best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.holistic.base import Content, Holistic
from windowlib.columnar.holistic.comparing import Ranks, ordered, stable
from windowlib.columnar.holistic.listed import affordable, lists, split
from windowlib.columnar.holistic.statistics import smallest_from
from windowlib.columnar.kernels.base import Array, Result
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges, smallest
from windowlib.folds import State

OVERLAP = 16
"""Values in extents for each value there is, from which on these are sorted instead."""


class Judged(Holistic):
    """Base: of pairs of a value and what it is judged by, those that `chosen` finds."""

    judged = 1
    thins = True

    def check(self) -> None:
        """What values are judged by must have an order."""
        Column.of(pa.array([], self.types[1])).order_keys()

    def keys(self, content: Content) -> Array:
        """Whole numbers, the best the smallest."""
        keys = ordered(content.columns[1])
        return ~keys if self.definition.largest else keys

    def chosen(self, content: Content, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the pairs that count in each extent, and how many there are."""
        raise NotImplementedError

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """Lists of the values."""
        places, lengths = self.chosen(content, lo, hi)
        return lists(content.columns[0].take(places), lengths)

    def thinned(self, content: Content, lo: Places, hi: Places) -> tuple[Content, Places]:
        """The pairs that count so far."""
        places, lengths = self.chosen(content, lo, hi)
        return content.take(places), lengths

    def states(self, content: Content, lo: Places, hi: Places) -> list[State]:
        """What the fold makes of the pairs that count."""
        places, lengths = self.chosen(content, lo, hi)
        columns = [column.arrow().to_pylist() for column in content.take(places).columns]
        pairs = zip(*(split(column, lengths) for column in columns), strict=True)
        return [self.state(values, by) for values, by in pairs]

    def state(self, values: list[Any], by: list[Any]) -> State:
        """The state of the fold for the pairs that count."""
        raise NotImplementedError

    def loaded(self, saved: Sequence[Any]) -> tuple[Content, Places]:
        """The pairs, which count."""
        found = [self.pairs(each) for each in saved]
        flat = list(chain.from_iterable(found))
        columns = self.column([value for _, value in flat]), self.column([by for by, _ in flat], 1)
        return Content(columns), np.array(list(map(len, found)), np.intp)

    def pairs(self, saved: Any) -> Sequence[tuple[Any, Any]]:
        """What values are judged by, and values, in what the fold saved."""
        raise NotImplementedError


class Best(Judged):
    """The values that go with the k best, best first; the earlier of equal ones first."""

    def chosen(self, content: Content, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the k best, in this order."""
        lengths = np.minimum(hi - lo, self.definition.k)
        affordable(lengths, len(content.columns[1]))
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
        """They are what was saved."""
        return saved[0] or ()


class AllBest(Judged):
    """All values that go with the best, in order."""

    def chosen(self, content: Content, lo: Places, hi: Places) -> tuple[Places, Places]:
        """The places of the best."""
        keys, lengths = self.keys(content), hi - lo
        if int(lengths.sum()) > OVERLAP * len(keys):
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
    order = stable(keys)
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
    affordable(lengths, len(keys))
    return order[ranges(start, end - start)], lengths
