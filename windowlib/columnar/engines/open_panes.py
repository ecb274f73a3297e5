"""Panes over whole batches: the rows of open windows, and those that are released, as columns.

A batch is split by window at once. Rows that no window has let go yet stay as Arrow columns, with
the numbers that place them in arrays beside them. What a batch closes comes out as one batch of
rows, window after window, with the places of the punctuations between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import exact_columns
from windowlib.columnar.arrays.physical import plain_type, take_ranges, take_rows
from windowlib.columnar.inputs import empty_batch
from windowlib.columnar.primitives import NONE, Array, Places, ranges
from windowlib.columnar.primitives.grouping import ascending
from windowlib.event_time.axis import Grid
from windowlib.window.arrow import rows_of
from windowlib.window.consumer import Decline

FEW_WINDOWS = 16
"""Up to so many windows that close at once are looked for one by one."""
MOST_GONE = 32
"""If rows that wait are fewer than one of so many in their part, they are copied out of it."""
FEW_PARTS = 4
"""With more parts than this, rows that wait are put together."""


@dataclass(slots=True)
class PlacedRows:
    """Rows of one schema in the order of arrival, with the windows that they belong to."""

    batch: pa.RecordBatch
    ts: Array
    hi: Array
    """The last window of its time."""
    lo: Array | None
    """The first window that it is for: of its time, and not closed when it came. None: `hi`."""
    lanes: Array | None
    """The number of its lane; None: there is but one."""
    some: Places | None = None
    """The places of those that wait; None: all do."""

    def __len__(self) -> int:
        return len(self.ts if self.some is None else self.some)

    @property
    def _arrays(self) -> list[Array | None]:
        return [self.ts, self.hi, self.lo, self.lanes]

    @property
    def windows(self) -> Array:
        """The last window of each row that is still held."""
        return self.hi if self.some is None else self.hi[self.some]

    def places(self, at: Places) -> Places:
        """The places of some of the rows that are still held."""
        return at if self.some is None else self.some[at]

    def without_others(self) -> PlacedRows:
        """Only the rows that are still held, copied."""
        if self.some is None:
            return self
        arrays: list[Any] = [None if each is None else each[self.some] for each in self._arrays]
        return PlacedRows(take_rows(self.batch, self.some), *arrays)

    @classmethod
    def concat(cls, parts: Sequence[PlacedRows]) -> PlacedRows:
        """Several in a row."""
        parts = [part.without_others() for part in parts]
        if len(parts) == 1:
            return parts[0]
        arrays: list[Any] = [
            None if each[0] is None else np.concatenate(each)
            for each in zip(*(part._arrays for part in parts), strict=True)
        ]
        return cls(pa.concat_batches([part.batch for part in parts]), *arrays)


class PaneStep(NamedTuple):
    """Windows of one lane that a row of the batch closes."""

    lane: Any
    cause: int
    bound: int
    """The first window that is open after it."""


class ReleasedPanes(NamedTuple):
    """The output: rows, window after window, and the punctuations between them."""

    batch: pa.RecordBatch
    windows: Array | None
    """The number of the window of each row; None: not asked for."""
    marks: Places
    """Before which row each punctuation comes."""
    causes: Places
    """The row of the incoming batch that let each punctuation out, and the rows before it."""

    def start_column(self, grid: Grid, kind: pa.DataType) -> pa.Array:
        """Where the window of each row starts, in the form that timestamps of a type have."""
        assert self.windows is not None
        at, types = grid.points(self.windows), pa.types
        if types.is_timestamp(kind):
            return pa.array(at, pa.timestamp("us", kind.tz))
        if types.is_duration(kind):
            return pa.array(at, pa.duration("us"))
        if types.is_date(kind):
            return pa.array(at, pa.timestamp("us")).cast(pa.date32())
        return pa.array(at)


class PaneColumns:
    """The rows of the open windows of all lanes.

    Args:
        schema: of the batches that come in.
        starts: where windows start.
        ends: where they end.
        empty: how many empty windows in a row give a punctuation.
        keyed: whether there may be several lanes.
        folded: the columns that are read of rows that come out, if their order within a window is
            irrelevant; None: all of them, in order.
    """

    def __init__(
        self,
        schema: pa.Schema,
        starts: Grid,
        ends: Grid,
        empty: int,
        keyed: bool,
        folded: frozenset[str] | None = None,
    ) -> None:
        self._folded = folded
        names = schema.names if folded is None else [n for n in schema.names if n in folded]
        self._sent = names or schema.names[:1]
        self.schema, self._empty, self._keyed = schema, empty, keyed
        self._starts, self._ends = starts, ends
        self._hops = starts.origin * ends.scale != (ends.origin - ends.step) * starts.scale
        self._parts: list[PlacedRows] = []
        self.size = 0
        """How many rows there are."""

    # -- from and to single rows ------------------------------------------------------------------

    def load(self, entries: Sequence[tuple[Any, int, int, Any, int, Any]]) -> None:
        """Load rows that came one by one; `Decline` if the columns cannot hold them.

        Args:
            entries: lane, first and last window, timestamp, number and row of each, in the order
                of arrival.
        """
        if not entries:
            return
        lanes, lo, hi, ts, _, rows = zip(*entries, strict=True)
        names = self.schema.names
        columns = exact_columns(rows, names, lambda name: plain_type(self.schema.field(name).type))
        arrays = [each.arrow() for each in columns]
        if [each.type for each in arrays] != self.schema.types:
            raise Decline("columns with an encoding")
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if len({type(each) for each in ts}) > 1 or not isinstance(ts[0], int | float):
            raise Decline("timestamps that are no numbers of one type")
        whole: list[Any] = [np.array(ts), np.array(hi)]
        whole.append(np.array(lo) if self._hops else None)
        whole.append(np.array([lane.number for lane in lanes]) if self._keyed else None)
        self._parts, self.size = [PlacedRows(batch, *whole)], len(rows)

    def entries(self) -> Iterable[tuple[int, int, Any, Any]]:
        """Lane, last window, timestamp and row of all that wait, in order of arrival."""
        for part in (each.without_others() for each in self._parts):
            lanes = [0] * len(part) if part.lanes is None else part.lanes.tolist()
            columns = (part.hi.tolist(), part.ts.tolist(), rows_of(part.batch))
            yield from zip(lanes, *columns, strict=True)

    # -- batches ----------------------------------------------------------------------------------

    def take(self, batch: pa.RecordBatch, taken: Sequence[Any]) -> ReleasedPanes | None:
        """Insert the rows of a batch; the panes that they release, if any.

        Args:
            batch: the rows.
            taken: those of each lane, with their timestamps, and which of them are late.
        """
        steps: list[PaneStep] = []
        placed = [self._placed(each, steps) for each in taken]
        if not self._keyed:
            ((hi, lo),) = placed
            new = PlacedRows(batch, taken[0].ts, hi, lo, None)
        else:
            order = np.argsort(np.concatenate([each.at for each in taken]))
            ts, hi, lanes = (
                np.concatenate(parts)[order]
                for parts in (
                    [each.ts for each in taken],
                    [hi for hi, _ in placed],
                    [np.full(len(each.at), each.buffer.number) for each in taken],
                )
            )
            lo = np.concatenate([lo for _, lo in placed])[order] if self._hops else None
            new = PlacedRows(batch, ts, hi, lo, lanes)
        if any(bool(each.late.any()) for each in taken):
            late = np.concatenate([each.at[each.late] for each in taken])
            new.some = np.delete(np.arange(batch.num_rows), late)
        if len(new):
            self._parts.append(new)
            self.size += len(new)
        return self._released(steps)

    def _placed(self, taken: Any, steps: list[PaneStep]) -> tuple[Array, Any]:
        """The last and the first window of the rows of a lane; adds what they close."""
        lane, (moves, bounds) = taken.buffer, taken.reached
        first = int(bounds[0] if lane.bound is None else lane.bound)
        lane.bound, lane.punctuation = first, lane.state.punctuation
        pairs = zip(taken.at[moves].tolist(), bounds.tolist(), strict=True)
        steps += [PaneStep(lane, at, bound) for at, bound in pairs if bound > first]
        hi = self._starts.indexes(taken.ts)
        if not self._hops:
            return hi, None
        after = np.repeat(bounds, np.diff(moves, append=len(hi)))
        return hi, np.maximum(self._ends.indexes(taken.ts) + 1, np.append(first, after[:-1]))

    def let_out(self, lanes: Sequence[Any]) -> ReleasedPanes | None:
        """Close all windows of some lanes that have rows."""
        lowest = np.iinfo(np.int64).min
        if not self._keyed:
            last = [max((int(part.hi.max()) for part in self._parts), default=lowest)]
        else:
            held = self._whole()
            assert held.lanes is not None
            most = np.full(int(held.lanes.max(initial=0)) + 1, lowest)
            np.maximum.at(most, held.lanes, held.hi)
            last = most.tolist()
        ends = [(lane, last[lane.number] if lane.number < len(last) else lowest) for lane in lanes]
        steps = [PaneStep(lane, at, end + 1) for at, (lane, end) in enumerate(ends) if end > lowest]
        return self._released(steps)

    def _whole(self) -> PlacedRows:
        """All rows together."""
        if not self._parts:
            lo, lanes = NONE if self._hops else None, NONE if self._keyed else None
            return PlacedRows(empty_batch(self.schema), NONE, NONE, lo, lanes)
        self._parts = [PlacedRows.concat(self._parts)]
        return self._parts[0]

    def _keep(self, parts: Iterable[tuple[PlacedRows, Places]]) -> None:
        """Of each of some parts these rows wait, and no others do."""
        waiting = [replace(part, some=places) for part, places in parts if len(places)]
        self._parts = [
            part if MOST_GONE * len(part) >= len(part.ts) else part.without_others()
            for part in waiting
        ]
        self.size = sum(map(len, self._parts))

    def _released(self, steps: list[PaneStep]) -> ReleasedPanes | None:
        """Let out the windows that some steps close, in their order."""
        if not steps:
            return None
        if self._parts and self._folded is not None and not self._hops and not self._keyed:
            first = min(int(part.windows.min()) for part in self._parts)
            bound = steps[-1].bound
            if first < bound <= first + FEW_WINDOWS:
                return self._folding(steps, range(first, bound))
        held = self._whole()
        bounds = self._limits(held, steps)
        owners, windows, lanes = self._in_order(held, bounds)
        new = windows[1:] != windows[:-1]
        if lanes is not None:
            new |= lanes[1:] != lanes[:-1]
        heads = np.append(0, np.flatnonzero(new) + 1)[: len(owners)]
        lengths = np.diff(np.append(heads, len(owners)))
        of = [0] * len(heads) if lanes is None else lanes[heads].tolist()
        order, marks, causes = self._marked(steps, windows[heads].tolist(), of, lengths.tolist())
        if not len(marks):
            return None
        if order is not None:
            within = ranges(heads[order], lengths[order])
            owners, windows = owners[within], windows[within]
        batch = take_rows(held.batch.select(self._sent), owners)
        if held.lo is not None:
            held.lo = np.maximum(held.lo, bounds)
        self._keep([(held, np.flatnonzero(held.hi >= bounds))])
        return ReleasedPanes(batch, windows, marks, causes)

    def _folding(self, steps: list[PaneStep], windows: range) -> ReleasedPanes | None:
        """As `_released` for one lane, where the order within a window is irrelevant.

        Rows stay in their parts, and each part gives those of a window as they came.
        """
        if len(self._parts) > FEW_PARTS:
            self._whole()
        parts, hi = self._parts, [part.windows for part in self._parts]
        found = [[np.flatnonzero(each == window) for window in windows] for each in hi]
        lengths = [sum(map(len, each)) for each in zip(*found, strict=True)]
        some = [at for at, length in enumerate(lengths) if length]
        filled, sizes = [windows[at] for at in some], [lengths[at] for at in some]
        _, marks, causes = self._marked(steps, filled, [0] * len(filled), sizes)
        if not len(marks):
            return None
        pieces = [
            (n, part.places(own[at]))
            for at in some
            for n, (part, own) in enumerate(zip(parts, found, strict=True))
            if len(own[at])
        ]
        batch = take_ranges([part.batch.select(self._sent) for part in parts], pieces)
        staying = (np.flatnonzero(each >= windows.stop) for each in hi)
        self._keep([(part, part.places(each)) for part, each in zip(parts, staying, strict=True)])
        return ReleasedPanes(batch, None, marks, causes)

    def _limits(self, held: PlacedRows, steps: list[PaneStep]) -> Array:
        """The first window that stays open, for each row; one for all if there is one lane."""
        if held.lanes is None:
            return np.array(steps[-1].bound)
        limit = np.full(int(held.lanes.max(initial=0)) + 1, np.iinfo(np.int64).min)
        for lane, _, bound in steps:
            if lane.number < len(limit):
                limit[lane.number] = bound
        return limit[held.lanes]

    def _in_order(self, held: PlacedRows, bounds: Array) -> tuple[Places, Array, Array | None]:
        """The rows that come out, once for each of their windows, these, and lanes if several.

        By lane and window, in the order of time; equal timestamps as they came.
        """
        owners, windows = self._pairs(held, bounds)
        if self._folded is not None and held.lanes is None:
            order = ascending(windows)
            return owners[order], windows[order], None
        ts = held.ts[owners]
        if held.lanes is not None:
            lanes = held.lanes[owners]
            order = np.lexsort((ts, windows, lanes))
            return owners[order], windows[order], lanes[order]
        if held.lo is not None:
            order = np.lexsort((ts, windows))
            return owners[order], windows[order], None
        order = ascending(ts)
        return owners[order], windows[order], None

    def _pairs(self, held: PlacedRows, bounds: Array) -> tuple[Places, Array]:
        """The rows that come out, each once for each of its windows, and these."""
        if held.lo is None:
            leaving = np.flatnonzero(held.hi < bounds)
            return leaving, held.hi[leaving]
        last = np.minimum(held.hi, np.maximum(bounds, held.lo) - 1)
        lengths = last - held.lo + 1
        return np.repeat(np.arange(len(held)), lengths), ranges(held.lo, lengths)

    def _marked(
        self, steps: list[PaneStep], windows: list[int], lanes: list[int], lengths: list[int]
    ) -> tuple[Places | None, Places, Places]:
        """The order of windows, None: as they are; where punctuations come, and what causes them.

        Windows are given by lane and number. An empty one between others is a punctuation alone.
        """
        single = len({step.lane.number for step in steps}) == 1
        waiting: dict[int, list[tuple[int, int]]] = {}
        for place, (lane, window) in enumerate(zip(lanes, windows, strict=True)):
            waiting.setdefault(lane, []).append((window, place))
        order: list[int] = []
        marks: list[int] = []  # rows that come before each punctuation
        causes: list[int] = []  # the row that causes it
        out = 0
        for queue in waiting.values():
            queue.reverse()  # the next one is the last
        for lane, cause, bound in steps if single else sorted(steps, key=lambda step: step.cause):
            queue, at = waiting.get(lane.number, []), lane.bound
            while at < bound:
                following = queue[-1][0] if queue else bound
                target = min(bound, following)
                silent = min(target - at, self._empty) if lane.begun else 0
                marks += [out] * silent
                causes += [cause] * silent
                if target == bound:
                    break
                _, place = queue.pop()
                order.append(place)
                out += lengths[place]
                marks.append(out)
                causes.append(cause)
                lane.begun, at = True, target + 1
            lane.bound = max(bound, at)
        found = np.array(marks, np.int64), np.array(causes, np.int64)
        return None if single else np.array(order, np.int64), *found
