"""Slices: ready-made summaries of a sliding window without its tuples (paper, section 4.1.8).

For `count(n)` eviction and `count(m)` trigger, cut each period of m tuples at the places where
some window starts or ends: n mod m tuples before its end. A window is then the last few slices.
With n a multiple of m there is one slice a period.

    n = 5, m = 2:   a | b   c | d   e | f   g | h      | cut; a period is a slice of 1 and one of 1
    window at d:    a   b   c   d                      partial
    window at f:        b   c   d   e   f              the last 5 slices

Their rows of summary state are kept in two stacks: `front` holds, for each older slice, the merged
row of it and all that follow it there; `recent` holds the rows of the newer ones, which are also
merged into slots of the subwindow, the back. A window is then one merge of the top of the front and
the back, whatever its length, and a slice that leaves is a pop: nothing is subtracted.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NoReturn

from windowlib.engine.ready import Row
from windowlib.engine.sliced import Unmerged, flipper, merger_of, padder, slice_reader
from windowlib.errors import AccessError
from windowlib.subwindow import Subwindow, place, subwindow_class
from windowlib.summarizers import Plan


class Slices:
    """How one window keeps slices in its subwindows.

    In a subwindow, `n` counts the tuples of the open slice; `count` is 0 while the slice after
    the cut of a period is open, so that closed slices make up a window if `count and not n`.
    """

    def __init__(self, plan: Plan, size: int, every: int) -> None:
        self.plan = plan
        self.window = size
        self.every = every
        self.tail = size % every  # tuples between the cut and the end of a period
        periods = size // every
        self.kept = 2 * periods + 1 if self.tail else periods
        fields = ("count", "front", "full", "n", "older", "recent", "stamp")
        # Twice the places: of the open slice, and of the recent ones together.
        self._sub = subwindow_class(fields, plan.start * 2, slice_reader(plan, size))
        self._back = [place(plan.places + i) for i in range(plan.places)]
        self._hot, self._whole = plan.hot, padder(plan)

    def make(self, key: Any) -> Subwindow:
        """A subwindow without a slice."""
        s = self._sub(key)
        s.front, s.recent = [], []
        s.count = 1
        return s

    def limit(self, s: Subwindow) -> int:
        """How many tuples the open slice will have."""
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
        closed = [self._save(row) for row in (*s.older[len(s.older) - len(s.front) :], *s.recent)]
        return [closed, len(s.front), self.plan.load(s).snapshot(), self.plan.odd]

    def load(self, s: Subwindow, state: Any) -> None:
        """Put back what `save` gave."""
        closed, older, open_slice, odd = state
        self.plan.odd = self.plan.odd or odd
        rows = [self._load(row) for row in closed]
        s.older, s.recent, s.front = rows[:older], rows[older:], []
        if older:
            flipper(self.plan)([*rows[:1], *s.older], s.front)  # which lets the first one go
        if s.recent:
            back = reduce(merger_of(self.plan), s.recent)
            for name, value in zip(self._back, self._whole(back), strict=True):
                setattr(s, name, value)
        ready = self.plan()
        ready.restore(open_slice)
        self.plan.store(s, ready)

    def _save(self, row: Row) -> Any:
        if row and isinstance(row[0], Unmerged):
            return row[0].message
        return self.plan.encode(self._whole(row))

    def _load(self, saved: Any) -> Row:
        if isinstance(saved, str):
            return (Unmerged(saved),) * self.plan.places
        row = self.plan.decode(saved)
        return tuple(row if self.plan.odd else [row[i] for i in self._hot])

    def refuse(self, key: Any) -> NoReturn:
        """The summary was asked for at another time."""
        msg = (
            f"summary({key!r}): this window keeps slices, which make up a window only while "
            f"a trigger runs. Read it in on_trigger."
        )
        raise AccessError(msg)
