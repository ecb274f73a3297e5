"""Where equal values stand, and which of them are the first or the last in extents.

Starts and ends of the extents ascend, as they do when a window slides. Then the extents that hold
a place are neighbours, and so are those in which it is the first of its kind, namely those that
begin after the place before it that holds the same value. So the number of distinct values in
every extent is a running sum over where these runs of extents begin and end, and takes no more
time where extents overlap.
"""

from __future__ import annotations

import numpy as np

from windowlib.columnar.grouping import stable_order
from windowlib.columnar.kernels.base import Array
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges


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
