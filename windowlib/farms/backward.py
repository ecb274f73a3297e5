"""Windows that a tuple is assigned to by looking back: the next tuple changes nothing.

Who sends tuples to workers keeps a few numbers a key, and knows the window of each tuple when it
comes. Apart from landmark windows, each tuple is in one window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from windowlib.farms.axis import Array, exact, floors, length, whole
from windowlib.farms.extents import Extents, in_order, runs, steps
from windowlib.farms.regular import Context, WindowModel


@dataclass(frozen=True, slots=True)
class SessionWindows(WindowModel):
    """A window ends where nothing comes for longer than `gap`; tuples come in order.

    >>> list(SessionWindows(3).mapped([0, 3, 4, 8, 20]))
    [(0, 0, 3), (1, 3, 4), (2, 4, 5)]
    """

    context: ClassVar[Context] = "backward"
    gap: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", length(self.gap, "SessionWindows(gap"))

    def mapped(self, values: Any) -> Extents:
        """The windows of tuples with these timestamps."""
        times = in_order(values, "SessionWindows")
        return runs(
            np.flatnonzero(np.append(len(times) > 0, np.diff(times) > self.gap)), len(times)
        )


@dataclass(frozen=True, slots=True)
class DeltaTumbling(WindowModel):
    """A window ends before the tuple whose value is more than `threshold` past its first.

    >>> list(DeltaTumbling(10).mapped([0, 4, 9, 10, 11, 15, 30]))
    [(0, 0, 4), (1, 4, 6), (2, 6, 7)]
    """

    context: ClassVar[Context] = "backward"
    threshold: Any

    def mapped(self, values: Any) -> Extents:
        """The windows of tuples with these values of the delta attribute."""
        found = in_order(values, "DeltaTumbling")
        return runs(steps(found, self.threshold), len(found))


@dataclass(frozen=True, slots=True)
class CountOrTime(WindowModel):
    """A window ends with its tuple number `size`, or `period` after its first one came.

    >>> list(CountOrTime(3, 5).mapped([0, 1, 2, 3, 8, 9]))
    [(0, 0, 3), (1, 3, 4), (2, 4, 6)]
    """

    context: ClassVar[Context] = "backward"
    size: int
    period: Any

    def __post_init__(self) -> None:
        size = whole(length(self.size, "CountOrTime(size"), "CountOrTime(size")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "period", length(self.period, "CountOrTime(period"))

    def mapped(self, values: Any) -> Extents:
        """The windows of tuples with these arrival times."""
        times, starts = in_order(values, "CountOrTime"), []
        at = 0
        while at < len(times):
            starts.append(at)
            ahead = times[at + 1 : at + self.size] - times[at] >= self.period
            at += 1 + int(np.argmax(ahead)) if ahead.any() else self.size
        found = runs(starts, len(times))
        full = len(found) > 0 and found.hi[-1] - found.lo[-1] == self.size
        return Extents(found.ids, found.lo, found.hi, found.closed + int(full))


@dataclass(frozen=True, slots=True)
class PunctuationWindows(WindowModel):
    """A window ends at a punctuation in the stream.

    >>> list(PunctuationWindows().mapped(5, [2, 2, 4]))
    [(0, 0, 2), (1, 2, 2), (2, 2, 4), (3, 4, 5)]
    """

    context: ClassVar[Context] = "backward"

    def mapped(self, count: int, marks: Any) -> Extents:
        """The windows of so many tuples; `marks` says how many came before each punctuation."""
        places = in_order(marks, "PunctuationWindows").astype(np.int64)
        found = runs(np.append(0, places), count)
        empty_tail = found.lo[-1] == count
        return found.only(np.append(np.full(len(places), True), not empty_tail))


@dataclass(frozen=True, slots=True)
class LandmarkWindows(WindowModel):
    """Window w reaches from `start` to the end of slide w: `[start, start + (w + 1) * slide)`.

    A tuple is in every window from `first` on; before `start` it is in none, and `first` is
    negative. Only results can be kept, not tuples: there is no end to them.

    >>> model = LandmarkWindows(10, start=100)
    >>> model.first(125), model.extent(2), model.panes_of(2)
    (2, (100, 130), range(0, 3))
    """

    context: ClassVar[Context] = "backward"
    slide: Any
    start: Any = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", length(self.slide, "LandmarkWindows(slide"))
        object.__setattr__(self, "start", exact(self.start, "LandmarkWindows(start"))

    @property
    def overlapping(self) -> bool:
        """Each window holds all before it."""
        return True

    def first(self, x: Any) -> Any:
        """The first window that holds a point, or each of an array; negative before the start."""
        return floors(x, self.start, self.slide)

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The interval `[lo, hi)` of a window."""
        return self.start, self.start + (w + 1) * self.slide

    def panes_of(self, w: int) -> range:
        """The slices of a window, one a slide."""
        return range(w + 1)

    def mapped(self, values: Any, until: Any = None) -> Extents:
        """The windows that end by `until`, the last value unless given."""
        points = in_order(values, "LandmarkWindows")
        slides = self.first(points)
        end = int(self.first(until)) if until is not None else int(max([-1, *slides[-1:]]))
        ids: Array = np.arange(max(end, 0))
        begin = int(np.searchsorted(slides, 0, "left"))
        hi = np.searchsorted(slides, ids, "right")
        return Extents(ids, np.full(len(ids), begin), hi, len(ids))

    def windows(self, x: Any) -> Iterator[int]:
        """The windows that hold a point, without end."""
        from itertools import count

        first = int(self.first(x))
        return count(first) if first >= 0 else iter(())
