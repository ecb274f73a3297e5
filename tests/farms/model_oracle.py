"""The windows of a model as extents of tuples that have all come: an oracle for real windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import singledispatch
from typing import Any

import numpy as np

from windowlib.farms.exact_axis import Array, floors, spread
from windowlib.farms.models import (
    CountOrTime,
    DeltaTumbling,
    DeltaWindows,
    LandmarkWindows,
    PunctuationWindows,
    SessionWindows,
    SlideByTime,
    SlideByTuple,
    Triggered,
    WindowModel,
)


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Windows in order: window `ids[k]` holds the tuples `[lo[k], hi[k])` of those mapped.

    Neither `lo` nor `hi` ever goes down from one window to the next. The first `closed` of them
    are final; to the others, tuples that come later may be added.

    >>> extents = Extents(np.array([0, 1]), np.array([0, 2]), np.array([3, 4]), 2)
    >>> list(extents), extents.windows(2), extents.windows(3)
    ([(0, 0, 3), (1, 2, 4)], [0, 1], [1])
    """

    ids: Array
    lo: Array
    hi: Array
    closed: int

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.ids.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True)

    def windows(self, i: int) -> list[int]:
        """The windows that hold tuple `i`."""
        begin = np.searchsorted(self.hi, i, "right")
        found: list[int] = self.ids[begin : np.searchsorted(self.lo, i, "right")].tolist()
        return found

    def first(self, i: int) -> int | None:
        """The first window that holds tuple `i`, if any does."""
        return next(iter(self.windows(i)), None)

    def last(self, i: int) -> int | None:
        """The last window that holds tuple `i`, if any does."""
        return next(reversed(self.windows(i)), None)

    def assigned(self) -> tuple[Array, Array]:
        """For every tuple of every window: its number, and the window. Window by window."""
        places, tuples = spread(self.lo, self.hi - self.lo)
        return tuples, self.ids[places]

    def only(self, keep: Array) -> Extents:
        """Some of them."""
        closed = int(np.count_nonzero(keep[: self.closed]))
        return Extents(self.ids[keep], self.lo[keep], self.hi[keep], closed)


def runs(starts: Any, count: int) -> Extents:
    """Windows that follow one another without a gap, of which the last is open."""
    lo = np.asarray(starts, dtype=np.int64)
    hi = np.append(lo[1:], count) if len(lo) else lo
    return Extents(np.arange(len(lo)), lo, hi, max(len(lo) - 1, 0))


def in_order(values: Any) -> Array:
    """Values as an array; they must not go back."""
    found: Array = np.asarray(values)
    assert bool((found[:-1] <= found[1:]).all()), f"not in order: {values!r}"
    return found


def steps(values: Array, threshold: Any) -> list[int]:
    """The tuples that are more than `threshold` past the last such tuple; the first is one.

    >>> steps(np.array([0, 1, 2, 3, 10]), 2)
    [0, 3, 4]
    """
    found: list[int] = []
    threshold, at = fitting(threshold, values), 0
    while at < len(values):
        found.append(at)
        reference = values[at]
        at = max(int(np.searchsorted(values, reference + threshold, "right")), at + 1)
        # The sum may have been rounded; the difference is what the policies compare.
        while at < len(values) and not values[at] - reference > threshold:
            at += 1
        while at - 1 > found[-1] and values[at - 1] - reference > threshold:
            at -= 1
    return found


def kept_from(values: Array, newest: Array, hi: Array, size: Any, *, closed: bool) -> Array:
    """For each window the first tuple before `hi` that is recent enough for its newest value.

    Recent is less than `size` behind, or at most that if `closed`.
    """
    lo: Array
    size = fitting(size, values)
    lo = np.minimum(np.searchsorted(values, newest - size, "left" if closed else "right"), hi)
    while bool((more := _recent(values, newest, lo - 1, size, closed) & (lo > 0)).any()):
        lo = lo - more
    while bool((fewer := ~_recent(values, newest, lo, size, closed) & (lo < hi)).any()):
        lo = lo + fewer
    return lo


def fitting(distance: Any, values: Array) -> Any:
    """A distance that can be compared with those of the values: of instants, as numpy's."""
    instants = values.dtype.kind == "M" and isinstance(distance, timedelta)
    return np.timedelta64(distance) if instants else distance


def _recent(values: Array, newest: Array, at: Array, size: Any, closed: bool) -> Array:
    away = newest - values[np.clip(at, 0, len(values) - 1)]
    found: Array = away <= size if closed else away < size
    return found


# -- the windows of each model ---------------------------------------------------------------------


@singledispatch
def mapped(model: WindowModel, *values: Any, **more: Any) -> Extents:
    """The windows of tuples with these values of what their model goes by."""
    raise TypeError(f"mapped({model!r}): its windows follow from each tuple alone.")


@mapped.register
def _(model: SessionWindows, values: Any) -> Extents:
    times = in_order(values)
    starts = np.flatnonzero(np.append(len(times) > 0, np.diff(times) > model.gap))
    return runs(starts, len(times))


@mapped.register
def _(model: DeltaTumbling, values: Any) -> Extents:
    found = in_order(values)
    return runs(steps(found, model.threshold), len(found))


@mapped.register
def _(model: CountOrTime, values: Any) -> Extents:
    times, starts, at = in_order(values), [], 0
    while at < len(times):
        starts.append(at)
        ahead = times[at + 1 : at + model.size] - times[at] >= model.period
        at += 1 + int(np.argmax(ahead)) if ahead.any() else model.size
    found = runs(starts, len(times))
    full = len(found) > 0 and found.hi[-1] - found.lo[-1] == model.size
    return Extents(found.ids, found.lo, found.hi, found.closed + int(full))


@mapped.register
def _(model: PunctuationWindows, values: Any, marks: Any) -> Extents:
    """`values` is how many tuples there are; `marks` how many came before each punctuation."""
    places = in_order(marks).astype(np.int64)
    found = runs(np.append(0, places), values)
    empty_tail = found.lo[-1] == values
    return found.only(np.append(np.full(len(places), True), not empty_tail))


@mapped.register
def _(model: LandmarkWindows, values: Any, until: Any = None) -> Extents:
    """The windows that end by `until`, the last value unless given."""
    slides = model.first(in_order(values))
    end = int(model.first(until)) if until is not None else int(max([-1, *slides[-1:]]))
    ids: Array = np.arange(max(end, 0))
    begin = int(np.searchsorted(slides, 0, "left"))
    hi = np.searchsorted(slides, ids, "right")
    return Extents(ids, np.full(len(ids), begin), hi, len(ids))


@mapped.register
def _(model: SlideByTuple, values: Any) -> Extents:
    times = in_order(values)
    hi = by_count(len(times), model.slide)
    lo = kept_from(times, times[hi - 1], hi, model.size, closed=model.closed)
    found = Extents(np.arange(len(hi)), lo, hi, len(hi))
    return found if model.partial else found.only(hi > first_out(times, model.size))


@mapped.register
def _(model: SlideByTime, values: Any, until: Any = None) -> Extents:
    """The windows from the first tuple to `until`, which is the last timestamp unless given."""
    ids, hi = by_time(in_order(values), model.slide, model.phase, until)
    found = Extents(ids, np.maximum(hi - model.size, 0), hi, len(ids))
    fresh = np.diff(hi, prepend=0) > 0
    return found.only((fresh | model.repeat) & ((hi >= model.size) | model.partial))


@mapped.register
def _(model: DeltaWindows, values: Any, triggers: Any = None) -> Extents:
    """`triggers` if another attribute triggers."""
    points = in_order(values)
    hi = by_delta(points if triggers is None else in_order(triggers), model.slide)
    lo = kept_from(points, points[hi - 1], hi, model.size, closed=True)
    found = Extents(np.arange(len(hi)), lo, hi, len(hi))
    return found if model.partial else found.only(hi >= first_out(points, model.size))


@mapped.register
def _(model: Triggered, values: Any, triggers: Any = None, until: Any = None) -> Extents:
    """`values` is what eviction goes by, `triggers` what the trigger does."""
    points = in_order(values)
    others = points if triggers is None else in_order(triggers)
    if model.trigger == "time":
        ids, hi = by_time(others, model.slide, 0, until)
    else:
        by_tuple = model.trigger == "count"
        hi = by_count(len(points), model.slide) if by_tuple else by_delta(others, model.slide)
        ids = np.arange(len(hi))
    found = Extents(ids, _begins(model, points, hi), hi, len(ids))
    return found if model.partial else found.only(_full(model, points, hi))


def _begins(model: Triggered, points: Array, hi: Array) -> Array:
    if model.evict == "count":
        cut: Array = np.maximum(hi - model.size, 0)
        return cut
    # Time has come to the trigger, values only to the newest tuple.
    newest = hi if model.evict == "time" and model.trigger == "delta" else hi - 1
    return kept_from(points, points[newest], hi, model.size, closed=True)


def _full(model: Triggered, points: Array, hi: Array) -> Array:
    if model.evict == "time":
        return np.full(len(hi), True)
    if model.evict == "count":
        full: Array = hi >= model.size
        return full
    # A tuple that triggers on its own value is not in, but has made the window full.
    first = first_out(points, model.size)
    return hi >= first if model.trigger == "delta" else hi > first


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
