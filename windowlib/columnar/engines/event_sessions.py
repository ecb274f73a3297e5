"""Sessions and landmark windows of event time over whole batches.

The rows of a batch are sorted by key and time, and cut where the gap is longer than that of a
session. Each such run is folded into one partial; runs and open sessions that touch are merged.
A landmark window is a tumbling one whose partial is merged into that of its key when it closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.engines.event_time import (
    EventTimeEngine,
    EventTimeRowsEngine,
    PendingGroups,
    SliceGroups,
    SlicePartials,
)
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, LayoutColumns
from windowlib.columnar.primitives import NONE, Array, Places
from windowlib.columnar.primitives.grouping import stable_order
from windowlib.event_time.axis import later, later_many
from windowlib.window.consumer import Decline
from windowlib.window.open_windows import OpenLandmarkWindows, OpenSessions

if TYPE_CHECKING:
    from windowlib.window.event_time import EventTimeWindow

MIN_ROWS_PER_LATE = 64
"""Rows for each one behind the watermark, from which on it pays to look at them at once."""


@dataclass(slots=True)
class SessionGroups(SliceGroups):
    """Sessions, or parts of some, from their first to their last timestamps."""


class SessionEngine(EventTimeEngine):
    """The open sessions as arrays."""

    way = "partials of sessions"
    windows_type = OpenSessions

    # -- from and to the event engine -------------------------------------------------------------

    def _loaded(self, empty: bool) -> Any:
        entries = [] if empty else list(self.windows.opened())
        ids = np.zeros(len(entries), np.int64)
        if self.keys is not None:
            ids = self.adopted([key for key, *_ in entries])
        n = np.array([content.n for *_, content in entries], np.int64)
        saved = [self.plan.encode(content.row) for *_, content in entries]
        planes = [
            kernel.load([each[i] for each in saved], n) for i, kernel in enumerate(self.kernels)
        ]
        stamps = [(first, last) for _, first, last, _ in entries]
        if len({type(each) for pair in stamps for each in pair}) > 1:
            raise Decline("timestamps that change their type")
        first, last = np.array(stamps).reshape(-1, 2).T if stamps else (NONE, NONE)
        born = np.array([content.born for *_, content in entries], np.int64)
        found = SessionGroups(last, first, ids, n, born, planes)
        return found.take(np.lexsort((first, ids)))

    def unload(self) -> None:
        """Write the sessions back to the event engine."""
        groups = self.open.take(np.argsort(self.open.born))
        saved = [k.save(p, groups.n) for k, p in zip(self.kernels, groups.planes, strict=True)]
        load = self.config.store.load
        columns = (groups.first, groups.last, groups.born, groups.n)
        rows = zip(self._python_keys(groups.ids), *(each.tolist() for each in columns), strict=True)
        self.windows.refill(
            (one_key(key), first, last, load([born, n, [each[i] for each in saved]]))
            for i, (key, first, last, born, n) in enumerate(rows)
        )

    # -- batches ----------------------------------------------------------------------------------

    def _insert_rows(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        current = self.windows.progress.current
        reached = state.observe_many(ts)
        if current is not None:
            reached = np.maximum(reached, current)
        before = np.empty_like(reached)
        before[1:], before[0] = reached[:-1], ts[0] if current is None else current
        return self._joined(batch, ts, np.flatnonzero(ts < before), before, reached)

    def _insert_following(self, batch: pa.RecordBatch, ts: Array) -> Firings:
        """The same where rows do not move the watermark: no session closes."""
        current = self.windows.progress.current
        behind, at = NONE, current
        if at is None:  # any that closes none
            at = min(ts.min(), self.open.first.min()) if len(self.open) else ts.min()
        else:
            behind = np.flatnonzero(self._ends(ts) < at)
        reached = np.broadcast_to(np.asarray(at), ts.shape)
        firings = self._joined(batch, ts, behind, reached, reached)
        assert self.pending is not None
        self.pending.watermark = current
        return firings

    def _joined(
        self, batch: pa.RecordBatch, ts: Array, behind: Places, before: Array, reached: Array
    ) -> Firings:
        """Take rows, with the watermark before and after each.

        Args:
            batch: the rows.
            ts: their timestamps.
            behind: those that may be late.
            before: the watermark when a row comes.
            reached: the watermark after it.
        """
        if len(behind) * MIN_ROWS_PER_LATE > len(ts):
            raise Decline("many rows behind the watermark")
        inputs = Inputs(batch)
        ids: Array = np.zeros(len(ts), np.int64)
        if self.keys is not None:
            codes = self.keys.encode([inputs.arrow(name) for name in self.keys.names])
            ids = codes.astype(np.int64)
        opened, done, late = self.open, [], 0
        for lo, hi in self._stretches(behind, len(ts)):
            # Only the first row may be behind the watermark. What is closed is gone by then, so
            # all that is open and touches a row is joined by it.
            if ts[lo] < before[lo] and self._late(opened, ids[lo], ts[lo], before[lo]):
                late, lo = late + 1, lo + 1
            new = self._folded(inputs, ids, ts, lo, hi)
            opened, closed = self._split(self._merged_sessions(opened.concat(new)), reached[hi - 1])
            done.append(closed)
        if late and not self.event_time_state.drops_quietly:
            raise Decline("late rows that are looked at one by one")
        (sample,) = batch.column(self.event_time_state.axis.attribute).slice(0, 1).to_pylist()
        watermark = reached[-1].item()
        self.pending = PendingGroups(opened, len(ts) - late, late, watermark, sample)
        closed = done[0]
        for each in done[1:]:
            closed = closed.concat(each)
        return self._session_firings(closed)

    def reach(self, watermark: Any) -> Firings:
        """The firings of the sessions that end before a watermark."""
        opened, closed = self._split(self.open, watermark)
        self.pending = PendingGroups(opened, 0, 0, watermark, None)
        return self._session_firings(closed)

    def absorb(self, partials: SlicePartials) -> Firings:
        """Take rows that were folded elsewhere, where rows do not move the watermark.

        They have no order. So those are late that are in no open session when all are joined.
        """
        groups = SessionGroups(partials.last, partials.first, *self._numbered(partials))
        current, whole = self.windows.progress.current, int(groups.n.sum())
        opened, behind = self._merged_sessions(self.open.concat(groups)), 0
        if current is not None:
            opened, closed = self._split(opened, current)
            behind = int(closed.n.sum())
        self.pending = PendingGroups(opened, whole - behind, behind, current, partials.sample)
        return self._session_firings(groups.take(NONE))

    @staticmethod
    def _stretches(behind: Places, rows: int) -> Iterator[tuple[int, int]]:
        """The extents of a batch that start at rows behind the watermark."""
        cuts = [0, *(place for place in behind.tolist() if place), rows]
        return pairwise(cuts)

    def _ends(self, last: Array) -> Array:
        found: Array = later_many(last, self.config.gap)
        return found

    def _late(self, opened: SessionGroups, key: int, ts: Any, watermark: Any) -> bool:
        """Whether a row would be in a session that is closed, and touches none that is open."""
        end = later(ts.item(), self.config.gap)
        touched = (opened.ids == key) & (opened.first <= end) & (ts <= self._ends(opened.last))
        return bool(end < watermark) and not touched.any()

    def _folded(self, inputs: Inputs, ids: Array, ts: Array, lo: int, hi: int) -> SessionGroups:
        """The rows from lo to hi by key and time, cut at gaps, each such run folded."""
        order = lo + self._by_key_and_time(ids[lo:hi], ts[lo:hi])
        key, at = ids[order], ts[order]
        apart = (key[1:] != key[:-1]) | (at[1:] > self._ends(at[:-1]))
        starts = np.append(0, np.flatnonzero(apart) + 1)[: len(order)]
        ends = np.append(starts[1:], len(order))[: len(starts)]
        columns = LayoutColumns(inputs, order)
        planes = [
            kernel.partial(columns.read(attribute), starts, ends)
            for kernel, attribute in zip(self.kernels, self.attributes, strict=True)
        ]
        born = np.minimum.reduceat(order, starts) if len(starts) else NONE
        numbers = self.event_time_state.next_number + born
        return SessionGroups(at[ends - 1], at[starts], key[starts], ends - starts, numbers, planes)

    @staticmethod
    def _by_key_and_time(ids: Array, ts: Array) -> Places:
        """The order of rows by key and time, equal ones as they came."""
        if len(ts) and bool((ts[1:] >= ts[:-1]).all()):
            return stable_order(ids, int(ids.max()) + 1)
        return np.lexsort((ts, ids))

    def _merged_sessions(self, groups: SessionGroups) -> SessionGroups:
        """Sessions, with those that touch each other merged."""
        groups = groups.take(np.lexsort((groups.first, groups.ids)))
        if len(groups) < 2:
            return groups
        # The latest end so far of the same key: ranks of key and end ascend from key to key.
        ranked = np.lexsort((groups.last, groups.ids))
        rank = np.empty(len(groups), np.intp)
        rank[ranked] = np.arange(len(groups))
        latest = groups.last[ranked[np.maximum.accumulate(rank)]]
        apart = groups.ids[1:] != groups.ids[:-1]
        apart |= groups.first[1:] > self._ends(latest[:-1])
        starts = np.append(0, np.flatnonzero(apart) + 1)
        if len(starts) == len(groups):
            return groups
        ends = np.append(starts[1:], len(groups))
        planes = [
            kernel.combine(each, starts, ends) if each else each
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        n = np.add.reduceat(groups.n, starts)
        born = np.minimum.reduceat(groups.born, starts)
        ids = groups.ids[starts]
        return SessionGroups(latest[ends - 1], groups.first[starts], ids, n, born, planes)

    def _split(self, groups: SessionGroups, watermark: Any) -> tuple[SessionGroups, SessionGroups]:
        """The sessions that a watermark leaves open, and those that it closes."""
        over = self._ends(groups.last) < watermark
        return groups.take(np.flatnonzero(~over)), groups.take(np.flatnonzero(over))

    # -- firings ----------------------------------------------------------------------------------

    def _session_firings(self, closed: SessionGroups) -> Firings:
        """The firings of closed sessions, in the order of their ends."""
        ends = self._ends(closed.last)
        order = np.lexsort((closed.born, ends))
        groups = closed.take(order)
        values = [
            kernel.finish(each, groups.n)
            for kernel, each in zip(self.kernels, groups.planes, strict=True)
        ]
        made = Firings(self.keys, groups.ids, groups.n, values, np.arange(len(groups)))
        made.bounds = self._bound(groups.first), self._bound(ends[order])
        return made

    def closes(self) -> Any:
        """The watermark after which the first session closes; None: there is none."""
        return self._ends(self.open.last).min().item() if len(self.open) else None

    def finish(self) -> Firings:
        """The firings of all open sessions."""
        self.pending = PendingGroups(self.open.take(NONE), 0, 0, None, None)
        return self._session_firings(self.open)

    def commit(self) -> None:
        """Commit the batch, after its firings were delivered."""
        pending, self.pending = self.pending, None
        assert pending is not None
        if pending.watermark is not None:
            self.windows.progress.current = pending.watermark
        self.open = pending.groups
        self.event_time_state.count(pending.rows, pending.late, pending.sample)


# -- landmark windows -----------------------------------------------------------------------------


class LandmarkEngine(EventTimeEngine):
    """Landmark windows: the partials of open slices, and one of all closed ones, by key."""

    way = "partials by stretch and key, and one of all before them"
    windows_type = OpenLandmarkWindows

    def _check(self) -> None:
        super()._check()
        if isinstance(self.config.since, Decimal):
            raise Decline("a landmark that is a decimal")

    def _loaded(self, empty: bool) -> SliceGroups:
        contents = {} if empty else self.windows.closed_contents
        ids = np.zeros(len(contents), np.int64)
        if self.keys is not None:
            ids = self.adopted(list(contents))
        n = np.array([content.n for content in contents.values()], np.int64)
        saved = [self.plan.encode(content.row) for content in contents.values()]
        planes = [
            kernel.load([each[i] for each in saved], n) for i, kernel in enumerate(self.kernels)
        ]
        born = np.array([content.born for content in contents.values()], np.int64)
        none = np.zeros(len(ids), np.int64)
        self.whole = SliceGroups(none, none, ids, n, born, planes).take(np.argsort(ids))
        self._grown = self.whole
        return super()._loaded(empty)

    def unload(self) -> None:
        """Write the contents back to the event engine."""
        super().unload()
        groups = self.whole.take(np.argsort(self.whole.born))
        saved = [k.save(p, groups.n) for k, p in zip(self.kernels, groups.planes, strict=True)]
        load, keys = self.config.store.load, self._python_keys(groups.ids)
        rows = zip(keys, groups.born.tolist(), groups.n.tolist(), strict=True)
        self.windows.closed_contents = {
            one_key(key): load([born, n, [each[i] for each in saved]])
            for i, (key, born, n) in enumerate(rows)
        }

    def _insert_rows(self, batch: pa.RecordBatch, ts: Array, state: Any) -> Firings:
        since = self.config.since
        if since is not None and bool(ts.min() < since):
            raise Decline("rows before the landmark")
        return super()._insert_rows(batch, ts, state)

    def _late_slices(self, last: Array) -> Array:
        late = super()._late_slices(last)
        if self.config.since is None or self.sends:
            return late
        return late | (last < 0)  # before the landmark

    def _close_through(self, to: int) -> Firings:
        """The firings of the landmark windows up to a number that are still open."""
        assert self.pending is not None
        groups = self.pending.groups
        done = groups.take(np.flatnonzero(groups.last <= to))
        found, whole = [], self.whole
        for k in np.unique(done.last).tolist():
            part = done.take(np.flatnonzero(done.last == k))
            whole = self._absorbed(whole, part)
            grown = whole.take(np.searchsorted(whole.ids, part.ids))
            grown.last = part.last
            found.append(grown.take(np.argsort(part.born)))
        self._grown = whole
        if not found:
            return self._firings(done, NONE)
        made = found[0]
        for each in found[1:]:
            made = made.concat(each)
        return self._firings(made, made.last)

    def _absorbed(self, whole: SliceGroups, part: SliceGroups) -> SliceGroups:
        """The merged contents of closed windows, with one more slice."""
        both = whole.concat(part)
        both = both.take(np.argsort(both.ids, kind="stable"))
        starts = np.append(0, np.flatnonzero(both.ids[1:] != both.ids[:-1]) + 1)
        ends = np.append(starts[1:], len(both))
        planes = [
            kernel.combine(each, starts, ends) if each else each
            for kernel, each in zip(self.kernels, both.planes, strict=True)
        ]
        n, born = np.add.reduceat(both.n, starts), np.minimum.reduceat(both.born, starts)
        zeros = np.zeros(len(starts), np.int64)
        return SliceGroups(zeros, zeros, both.ids[starts], n, born, planes)

    def _firings(self, groups: SliceGroups, windows: Array) -> Firings:
        made = super()._firings(groups, windows)
        assert made.bounds is not None
        _, ends = made.bounds
        since = self.config.since
        start = pa.nulls(len(ends), ends.type)
        if since is not None:
            start = self._bound(np.full(len(ends), since))
        made.bounds = start, ends
        return made

    def commit(self) -> None:
        """Commit the batch, after its firings were delivered."""
        super().commit()
        self.whole = self._grown

    def undo(self) -> None:
        """Undo the batch."""
        super().undo()
        self._grown = self.whole

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions there are."""
        rows = int(self.open.n.sum()) + int(self.whole.n.sum())
        return rows, len(np.union1d(self.open.ids, self.whole.ids))


def event_time_engine(
    window: EventTimeWindow[Any, Any], schema: pa.Schema, empty: bool = False
) -> EventTimeEngine:
    """The engine for batches of this schema; `Decline` says why there is none.

    Args:
        window: the window.
        schema: of the batches.
        empty: whether it starts without what the window holds.
    """
    if window.state.summarizer is None:
        return EventTimeRowsEngine(window, schema)
    kind = window.event_time_state.config.windows_type
    engine = {OpenSessions: SessionEngine, OpenLandmarkWindows: LandmarkEngine}.get(
        kind, EventTimeEngine
    )
    return engine(window, schema, empty)
