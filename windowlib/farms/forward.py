"""Windows that are known only when their trigger has come: what a trigger takes, it takes back.

| model | trigger | takes |
| --- | --- | --- |
| `SlideByTuple` | every `slide` tuples | what is less than `size` older than the trigger, and it |
| `SlideByTime` | every `slide` ticks | the last `size` tuples that came before the tick |
| `DeltaWindows` | a value more than `slide` past the last trigger's | what is at most `size` \
behind the newest tuple before the trigger |
| `Triggered` | any of these | any of these |

The mappings go over tuples in order, with what is compared in the values' own arithmetic, as the
policies of windows do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from windowlib.farms.axis import Array, exact, floors, length, whole
from windowlib.farms.extents import Extents, fitting, in_order, kept_from, steps
from windowlib.farms.regular import Context, WindowModel

By = Literal["count", "delta", "time"]


class Forward(WindowModel):
    """Base of the models with forward context."""

    __slots__ = ()
    context: ClassVar[Context] = "forward"

    @property
    def overlapping(self) -> bool:
        """Nobody knows how far the next trigger reaches back."""
        return True


@dataclass(frozen=True, slots=True)
class SlideByTuple(Forward):
    """Every `slide` tuples, those of the last `size` ticks.

    Of the tuples up to the trigger, window w takes those newer than `size` before it:
    `(ts - size, ts]`. With `closed` also those of exactly that age, as windows of `windowlib` do.

    >>> list(SlideByTuple(5, 2).mapped([0, 1, 6, 7, 20, 21]))
    [(0, 0, 2), (1, 2, 4), (2, 4, 6)]
    >>> SlideByTuple(5, 2).mapped([0, 1, 6, 20]).windows(2)
    []
    """

    size: Any
    slide: int
    closed: bool = False
    partial: bool = True

    def __post_init__(self) -> None:
        slide = whole(length(self.slide, "SlideByTuple(slide"), "SlideByTuple(slide")
        object.__setattr__(self, "slide", slide)

    def mapped(self, values: Any) -> Extents:
        """The windows of tuples with these timestamps whose trigger is among them.

        Without `partial`, none before a tuple was too old for the first time.
        """
        times = in_order(values, "SlideByTuple")
        hi = by_count(len(times), self.slide)
        lo = kept_from(times, times[hi - 1], hi, self.size, closed=self.closed)
        found = _extents(lo, hi)
        return found if self.partial else found.only(hi > first_out(times, self.size))


@dataclass(frozen=True, slots=True)
class SlideByTime(Forward):
    """Every `slide` ticks, the last `size` tuples.

    Window w is taken at `phase + (w + 1) * slide`, of the tuples before that. Without `repeat`
    only those that hold a tuple that no window before them held; without `partial` only those of
    `size` tuples.

    >>> list(SlideByTime(2, 10).mapped([0, 5, 9, 31, 40]))
    [(0, 1, 3), (1, 1, 3), (2, 1, 3), (3, 2, 4)]
    >>> list(SlideByTime(2, 10, repeat=False).mapped([0, 5, 9, 31, 40]))
    [(0, 1, 3), (3, 2, 4)]
    """

    size: int
    slide: Any
    phase: Any = 0
    repeat: bool = True
    partial: bool = True

    def __post_init__(self) -> None:
        size = whole(length(self.size, "SlideByTime(size"), "SlideByTime(size")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "slide", length(self.slide, "SlideByTime(slide"))
        object.__setattr__(self, "phase", exact(self.phase, "SlideByTime(phase"))

    def mapped(self, values: Any, until: Any = None) -> Extents:
        """The windows from the first tuple to `until`, which is the last timestamp unless given."""
        times = in_order(values, "SlideByTime")
        ids, hi = by_time(times, self.slide, self.phase, until)
        found = Extents(ids, np.maximum(hi - self.size, 0), hi, len(ids))
        fresh = np.diff(hi, prepend=0) > 0
        return found.only((fresh | self.repeat) & ((hi >= self.size) | self.partial))


@dataclass(frozen=True, slots=True)
class DeltaWindows(Forward):
    """When a value is more than `slide` past that of the last trigger, what came before it.

    The first tuple is the first reference and triggers nothing. A trigger is not in its own
    window, and what counts as old is measured from the tuple before it.

    >>> list(DeltaWindows(5, 2).mapped([0, 1, 2, 3, 10]))
    [(0, 0, 3), (1, 0, 4)]
    """

    size: Any
    slide: Any
    partial: bool = True

    def mapped(self, values: Any, triggers: Any = None) -> Extents:
        """The windows of tuples with these values; `triggers` if another attribute triggers.

        Without `partial`, none before a tuple was too old for the first time.
        """
        points = in_order(values, "DeltaWindows")
        hi = by_delta(
            points if triggers is None else in_order(triggers, "DeltaWindows"), self.slide
        )
        found = _extents(kept_from(points, points[hi - 1], hi, self.size, closed=True), hi)
        return found if self.partial else found.only(hi >= first_out(points, self.size))


@dataclass(frozen=True, slots=True)
class Triggered(Forward):
    """What the models above do not have: a count, delta or time that evicts, another that triggers.

    >>> model = Triggered("count", 2, "delta", 3)
    >>> list(model.mapped([0, 1, 2, 9], triggers=[0, 2, 4, 9]))
    [(0, 0, 2), (1, 1, 3)]
    """

    evict: By
    size: Any
    trigger: By
    slide: Any
    partial: bool = True

    def mapped(self, values: Any, triggers: Any = None, until: Any = None) -> Extents:
        """The windows of tuples with these values.

        Args:
            values: what eviction goes by: timestamps or the delta attribute; of a count, anything.
            triggers: what the trigger goes by: timestamps or the delta attribute.
            until: for a time trigger, how far time has come.
        """
        points = in_order(values, "Triggered")
        others = points if triggers is None else in_order(triggers, "Triggered")
        if self.trigger == "time":
            ids, hi = by_time(others, self.slide, 0, until)
        else:
            by_tuple = self.trigger == "count"
            hi = by_count(len(points), self.slide) if by_tuple else by_delta(others, self.slide)
            ids = np.arange(len(hi))
        lo = self._begins(points, hi)
        found = Extents(ids, lo, hi, len(ids))
        return found if self.partial else found.only(self._full(points, hi))

    def _begins(self, points: Array, hi: Array) -> Array:
        if self.evict == "count":
            cut: Array = np.maximum(hi - self.size, 0)
            return cut
        # Time has come to the trigger, values only to the newest tuple.
        newest = hi if self.evict == "time" and self.trigger == "delta" else hi - 1
        return kept_from(points, points[newest], hi, self.size, closed=True)

    def _full(self, points: Array, hi: Array) -> Array:
        if self.evict == "time":
            return np.full(len(hi), True)
        if self.evict == "count":
            full: Array = hi >= self.size
            return full
        # A tuple that triggers on its own value is not in, but has made the window full.
        first = first_out(points, self.size)
        return hi >= first if self.trigger == "delta" else hi > first


def by_count(count: int, slide: int) -> Array:
    """How many tuples there are at each trigger: every `slide` of them."""
    return np.arange(slide, count + 1, slide)


def by_delta(values: Array, slide: Any) -> Array:
    """How many tuples there are at each trigger, which is not counted itself."""
    return np.array(steps(values, slide)[1:], dtype=np.int64)


def by_time(times: Array, slide: Any, phase: Any, until: Any) -> tuple[Array, Array]:
    """The ticks from the first tuple to `until`, and how many tuples came before each."""
    slots = floors(times, phase, slide)
    if not len(slots):
        return np.arange(0), np.arange(0)
    end = slots[-1] if until is None else floors(until, phase, slide)
    ids = np.arange(slots[0], end)
    return ids, np.searchsorted(slots, ids, "right")


def first_out(values: Array, size: Any) -> int:
    """The first tuple that makes another too old; beyond the last if there is none."""
    out = np.flatnonzero(values - values[:1] > fitting(size, values))
    return int(out[0]) if len(out) else len(values) + 1


def _extents(lo: Array, hi: Array) -> Extents:
    return Extents(np.arange(len(hi)), lo, hi, len(hi))
