"""Slices: ready-made summaries of a sliding window without its tuples (paper, section 4.1.8).

For `count(n)` eviction and `count(m)` trigger, cut each period of m tuples at the places where
some window starts or ends: n mod m tuples before its end. A window is then the last few slices,
and a trigger joins their partial summaries. With n a multiple of m there is one slice a period.

    n = 5, m = 2:   a | b   c | d   e | f   g | h      | cut; a period is a slice of 1 and one of 1
    window at d:    a   b   c   d                      partial
    window at f:        b   c   d   e   f              the last 5 slices
"""

from __future__ import annotations

from collections import deque
from typing import Any

from windowlib.errors import AccessError
from windowlib.subwindow import Subwindow, place, with_places
from windowlib.summarizers import Plan, Ready


class Slices:
    """How one window keeps slices in its subwindows.

    In a subwindow, `n` counts the tuples of the open slice, `count` is 1 while the slice before
    the last cut of the period is open, `summary` holds a column of closed slices for each place.
    """

    def __init__(self, plan: Plan, size: int, every: int) -> None:
        self.plan = plan
        self.window = size
        self.every = every
        self.tail = size % every  # tuples between the cut and the end of a period
        periods = size // every
        self.kept = 2 * periods + 1 if self.tail else periods
        self._sub = with_places(plan.places)
        self._places = [place(i) for i in range(plan.places)]

    def make(self, key: Any) -> Subwindow:
        """A subwindow without a slice."""
        s = self._sub(key, 0, [])
        s.summary = [deque(maxlen=self.kept) for _ in self._places]
        s.count = 1 if self.tail else 0
        return s

    def limit(self, s: Subwindow) -> int:
        """How many tuples the open slice will have."""
        if not self.tail:
            return self.every
        return self.every - self.tail if s.count else self.tail

    def close(self, s: Subwindow) -> bool:
        """Close the open slice; whether that ends a period, so that the trigger fires."""
        for column, name in zip(s.summary, self._places, strict=True):
            column.append(getattr(s, name))
        s.taken += s.n
        s.n = 0
        if not self.tail:
            return True
        s.count = 1 - s.count
        return bool(s.count)

    def arrived(self, s: Subwindow) -> int:
        """Tuples that entered the subwindow."""
        return s.taken + s.n

    def size(self, s: Subwindow) -> int:
        """Tuples that the subwindow would hold."""
        return min(self.window, self.arrived(s))

    def save(self, s: Subwindow) -> Any:
        """Closed slices, and the state of the open one, as plain data."""
        return [[list(column) for column in s.summary], self.plan.load(s).snapshot()]

    def load(self, s: Subwindow, state: Any) -> None:
        """Put back what `save` gave."""
        columns, open_slice = state
        for column, values in zip(s.summary, columns, strict=True):
            column.extend(values)
        ready = self.plan()
        ready.restore(open_slice)
        self.plan.store(s, ready)

    def read(self, key: Any, s: Subwindow | None) -> Ready:
        """The summary of the window that a trigger is looking at."""
        ready = self.plan()
        if s is None or not s.taken + s.n:
            return ready
        if s.n or (self.tail and not s.count):
            msg = (
                f"summary({key!r}): this window keeps slices, which make up a window only while "
                f"a trigger runs. Read it in on_trigger."
            )
            raise AccessError(msg)
        ready.n = self.size(s)
        columns = iter(s.summary)
        ready.states = [
            fold.join([next(columns) for _ in fold.empty]) for fold in self.plan.folds
        ]
        return ready
