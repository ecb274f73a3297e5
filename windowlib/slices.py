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
from windowlib.engine.ready import slice_reader
from windowlib.subwindow import Subwindow, subwindow_class
from windowlib.summarizers import Plan


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
        fields = ("count", "full", "n", "stamp", "summary")
        self._sub = subwindow_class(fields, plan.start, slice_reader(plan, size))

    def make(self, key: Any) -> Subwindow:
        """A subwindow without a slice."""
        s = self._sub(key)
        s.summary = [deque(maxlen=self.kept) for _ in range(self.plan.places)]
        s.count = 1 if self.tail else 0
        return s

    def limit(self, s: Subwindow) -> int:
        """How many tuples the open slice will have."""
        if not self.tail:
            return self.every
        return self.every - self.tail if s.count else self.tail

    def turn(self, s: Subwindow) -> bool:
        """Go on to the next slice of a period cut in two; whether a period has just ended."""
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
        columns = [list(column) for column in s.summary]
        return [columns, self.plan.load(s).snapshot(), self.plan.odd]

    def load(self, s: Subwindow, state: Any) -> None:
        """Put back what `save` gave."""
        columns, open_slice, odd = state
        for column, values in zip(s.summary, columns, strict=True):
            column.extend(values)
        ready = self.plan()
        ready.restore(open_slice)
        self.plan.store(s, ready)
        self.plan.odd = self.plan.odd or odd

    def read(self, key: Any, s: Subwindow | None) -> Any:
        """The summary of the window that a trigger is looking at: the subwindow itself."""
        if s is None or not s.taken + s.n:
            return self.plan()
        if s.n or (self.tail and not s.count):
            msg = (
                f"summary({key!r}): this window keeps slices, which make up a window only while "
                f"a trigger runs. Read it in on_trigger."
            )
            raise AccessError(msg)
        return s
