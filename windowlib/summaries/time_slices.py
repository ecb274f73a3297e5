"""Slices of time: ready-made summaries of a sliding window without its tuples (paper, 4.1.8).

With `time(p)` eviction and `time(b)` trigger the clock ticks every b, and the window at a tick T
has the tuples that came in [T - p, T). So time is cut at every tick, and where b does not divide p
also p mod b before every tick. Every window begins and ends at a cut, and is made of whole slices.

    p = 5, b = 2:   0   1 | 2   3 | 4   5 | 6      ticks at 2, 4, 6: a cut at each, and 1 before it
    window at 6:      [ 1 | 2 | 3 | 4 | 5 )        the last 5 slices

A partition has a slice only where it has tuples. The rows of summary state are kept in two stacks
as those of count slices are (`windowlib.summaries.slices`), here with the end and the number of
tuples of each slice. A partition is empty once its newest tuple is too old, so that is all that has
to be known of single tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from windowlib.summaries.slices import Unmerged, merger_of
from windowlib.summaries.source import (
    Row,
    folder,
    function,
    merged_texts,
    place_names,
    row_reader,
    row_text,
)
from windowlib.summaries.summarizers import Plan
from windowlib.window.subwindow import UNSET, Subwindow, place, subwindow_class


class TimeSlice(NamedTuple):
    """Tuples that came before `end`, and not before the cut before it."""

    end: int
    n: int
    row: Row


class TimeSlices:
    """The slices of time of one window, which its subwindows keep.

    In a subwindow, `ref` is where the open slice ends, `n` how many tuples it has, and `newest`
    when the last tuple came. `recent` are closed slices, and `summary` is them together; `front`
    has for each slice of `older` that is still there all from it on together, the oldest on top.
    """

    def __init__(self, plan: Plan, period: int, beat: int) -> None:
        self.plan, self.period, self.beat = plan, period, beat
        self.tail = period % beat
        """How long before a tick the other cut is; 0: there is none."""
        beats = period // beat
        self.kept = 2 * beats + 1 if self.tail else beats
        """The most slices that a window is made of."""
        fields = ("front", "full", "n", "newest", "older", "recent", "ref", "returning", "stamp")
        self._merge, self._read = row_merger(plan), row_reader(plan)
        self._sub = subwindow_class((*fields, "summary"), plan.start, lambda s: self.value(s))
        self._cut_off = _cutter(plan)
        self._waiting: list[tuple[int, int, Subwindow]] = []
        # One entry for each partition in storage: a time when it had tuples, and its birth.

    def make(self, key: Any) -> Subwindow:
        """A subwindow without a slice."""
        s = self._sub.made(key)
        s.front, s.older, s.recent = [], [], []
        s.full = True  # a window of time counts as full from its first tuple on
        return s

    def end(self, stamp: int, tick: int) -> int:
        """Where the slice of a point in time ends, if the clock ticks at `tick`.

        >>> from windowlib import summarizers
        >>> slices = TimeSlices(Plan(summarizers.count(), short=False), period=5, beat=2)
        >>> [slices.end(stamp, tick=6) for stamp in (2, 3, 4, 9)]
        [3, 4, 5, 10]
        """
        end = tick + ((stamp - tick) // self.beat + 1) * self.beat
        return end - self.tail if stamp < end - self.tail else end

    # -- tuples -----------------------------------------------------------------------------------

    def next_slice(self, s: Subwindow, end: int, now: int) -> None:
        """Go on to the slice that ends at `end`, for a tuple that comes now."""
        if s.n:
            self.close(s)
            if len(s.recent) > 2 * self.kept:  # a handler does not read them
                self.expire(s, now)
        elif not s.recent and not s.front:
            heappush(self._waiting, (now, s.born, s))
        s.ref = end

    def close(self, s: Subwindow) -> None:
        """Close the open slice."""
        n, row = self._cut_off(s)
        s.recent.append(TimeSlice(s.ref, n, row))
        back = s.summary
        s.summary = (n, row) if back is None else (back[0] + n, self._merge(back[1], row))

    def expire(self, s: Subwindow, now: int) -> None:
        """At a tick, close the open slice and drop slices that are too old."""
        if s.n and s.ref <= now:
            self.close(s)
        before, front = now - self.period, s.front
        while front and front[-1].end <= before:
            front.pop()
        if not front and s.recent and s.recent[0].end <= before:
            self._flip(s, [each for each in s.recent if each.end > before])

    def _flip(self, s: Subwindow, slices: list[TimeSlice]) -> None:
        """Put slices on the front stack, merged from the newest on; there are no recent ones."""
        s.older, s.recent, s.summary, s.front = slices, [], None, []
        for each in reversed(slices):
            newer = s.front[-1] if s.front else None
            row = each.row if newer is None else self._merge(each.row, newer.row)
            s.front.append(TimeSlice(each.end, each.n + (newer.n if newer else 0), row))

    # -- what is held -----------------------------------------------------------------------------

    def arrived(self, s: Subwindow) -> int:
        """How many tuples have entered the subwindow."""
        return s.taken

    def size(self, s: Subwindow, now: int) -> int:
        """Tuples in slices that are not too old: at a tick, those of the window."""
        before = now - self.period
        front = next((each.n for each in reversed(s.front) if each.end > before), 0)
        return int(s.n + front + sum(each.n for each in s.recent if each.end > before))

    def window_size(self, s: Subwindow) -> int:
        """Tuples of the window, at a tick, after `expire`."""
        front: int = s.front[-1].n if s.front else 0
        return front if s.summary is None else front + int(s.summary[0])

    def value(self, s: Subwindow) -> Any:
        """The value of all closed slices."""
        front, back = s.front, s.summary
        n = self.window_size(s)
        if not front:
            row = self.plan.start if back is None else back[1]
        else:
            row = front[-1].row if back is None else self._merge(front[-1].row, back[1])
        if row and type(row[0]) is Unmerged:
            row[0].refuse()
        return self._read(n, row)

    # -- partitions that time empties -------------------------------------------------------------

    def fill(self, subwindows: Collection[Subwindow]) -> None:
        """These are the partitions in storage."""
        assert all(s.newest is not UNSET for s in subwindows), "a partition in storage has tuples"
        self._waiting = [(s.newest, s.born, s) for s in subwindows]
        heapify(self._waiting)

    def oldest(self) -> int | None:
        """When the newest tuple arrived of the partition that becomes empty first."""
        waiting = self._waiting
        while waiting:
            stamp, born, s = waiting[0]
            if not _stands(s, born):
                heappop(waiting)
            elif s.newest > stamp:
                heapreplace(waiting, (s.newest, born, s))
            else:
                return stamp
        return None

    def idle_before(self, before: int) -> bool:
        """Whether a partition may have no tuple since a point in time."""
        return bool(self._waiting) and self._waiting[0][0] < before

    def emptied_since(self, before: int) -> Iterator[Subwindow]:
        """The partitions without a tuple since a point in time, the longest idle first."""
        while (stamp := self.oldest()) is not None and stamp < before:
            yield heappop(self._waiting)[2]

    def clear(self, s: Subwindow) -> None:
        """All tuples are too old."""
        s.front, s.older, s.recent, s.summary, s.ref, s.newest = [], [], [], None, UNSET, UNSET
        if s.n:
            self._cut_off(s)

    def shift_arrival(self, s: Subwindow, by: int) -> None:
        """Move the arrival of all tuples, which is one instant, by a distance."""
        if s.ref is not UNSET:
            s.ref, s.newest = s.ref + by, s.newest + by

    # -- as plain data ----------------------------------------------------------------------------

    def save(self, s: Subwindow, now: int) -> Any:
        """Closed slices, and the state of the open one, as plain data."""
        if s.ref is UNSET:
            return None
        if s.n and s.ref <= now:
            self.close(s)
        closed = [*s.older[len(s.older) - len(s.front) :], *s.recent]
        saved = [[each.end, each.n, self._save(each.row)] for each in closed]
        return [saved, len(s.front), self.plan.load(s).snapshot(), self.plan.irregular]

    def load(self, s: Subwindow, state: Any) -> None:
        """Restore what `save` returned."""
        if state is None:
            return
        closed, older, open_slice, irregular = state
        self.plan.irregular = self.plan.irregular or irregular
        slices = [TimeSlice(end, n, self._load(row)) for end, n, row in closed]
        self._flip(s, slices[:older])
        for each in slices[older:]:
            s.recent.append(each)
            back = s.summary
            merged = each.row if back is None else self._merge(back[1], each.row)
            s.summary = (each.n + (0 if back is None else back[0]), merged)
        ready = self.plan()
        ready.restore(open_slice)
        self.plan.store(s, ready)

    def _save(self, row: Row) -> Any:
        unmerged = row and isinstance(row[0], Unmerged)
        return row[0].message if unmerged else self.plan.encode(row)

    def _load(self, saved: Any) -> Row:
        if isinstance(saved, str):
            return (Unmerged(saved),) * self.plan.places
        return tuple(self.plan.decode(saved))

    def folded(self, part: Mapping[str, Any], tick: int) -> Mapping[str, Any]:
        """A partition as plain data, with slices in place of its tuples if it has any."""
        tuples, stamps = part["data"], part["stamps"]
        if not tuples:
            return part
        run, _ = folder(self.plan, tuples[0])
        ends = [self.end(stamp, tick) for stamp in stamps]
        slices: list[list[Any]] = []
        for end, places in groupby(range(len(tuples)), ends.__getitem__):
            group = [tuples[i] for i in places]
            slices.append([end, len(group), self.plan.encode(run(group, self.plan.start))])
        *closed, (end, n, last) = slices
        summary = [closed, 0, [n, last], self.plan.irregular]
        known = {"n": n, "ref": [end], "newest": [stamps[-1]], "summary": summary}
        return {**part, "data": [], "stamps": [], **known}

    def check(self, s: Subwindow, now: int) -> None:
        """Walk all invariants; for tests, and for snapshots."""
        slices = [*s.older[len(s.older) - len(s.front) :], *s.recent]
        ends = [each.end for each in slices] + [s.ref] * bool(s.n)
        assert ends, "a partition in storage has tuples"
        assert all(a < b for a, b in pairwise(ends)), "slices are in order"
        assert all(each.n > 0 for each in slices), "a slice has tuples"
        assert s.newest <= now < s.newest + self.period + 1, "age invariant"
        assert s.newest < ends[-1] <= s.newest + self.beat, "the newest tuple is in the last slice"
        assert sum(each.n for each in slices) + s.n <= s.taken


def _stands(s: Subwindow, born: int) -> bool:
    """Whether this incarnation of a partition is in storage and has tuples."""
    return s.alive and s.born == born and s.ref is not UNSET


def row_merger(plan: Plan) -> Callable[[Row, Row], Row]:
    """Merges rows of any slices, by text as long as all tuples are regular."""
    by_methods, merged = merger_of(plan), merged_texts(plan)
    if merged is None:
        return by_methods
    hot = set(plan.hot)
    a, b = (row_text(place_names(run, range(plan.places))) for run in "ab")
    texts = [merged[i] if i in hot else f"a{i}" for i in range(plan.places)]
    lines = [
        "if not plan.irregular:",
        f"    try: {a} = a; {b} = b; return {row_text(texts)}",
        "    except Exception: plan.irregular = True",
        "return by_methods(a, b)",
    ]
    return function("a, b", lines, {"plan": plan, "by_methods": by_methods})


def _cutter(plan: Plan) -> Callable[[Subwindow], tuple[int, Row]]:
    """Takes the size and the row of the open slice out of a subwindow, which is left without."""
    places = row_text([f"s.{place(i)}" for i in range(plan.places)])
    lines = [f"n, row = s.n, {places}", f"{places} = start", "s.n = 0", "return n, row"]
    return function("s", lines, {"start": plan.start})
