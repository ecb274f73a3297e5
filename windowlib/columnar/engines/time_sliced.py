"""Sliding time windows over batches, as slices of time, whose partials make up the windows.

Time is cut where some window begins or ends (see `windowlib.summaries.time_slices`). The rows of a
partition in one slice are one run of the layout, and go on with the slice that is there already.
The slices of all partitions stand in one table, by partition and time, so that the window of a
partition at a tick is an extent of it:

    a until 10 | a until 20 | a until 30 | b until 20 | b until 30      window 20, a tick every 10
                [                       )             at 30, of a
                                          [                        )    at 30, of b
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import (
    checked_count,
    checked_numbers,
    dump_column,
    load_column,
    need,
    packed,
    unpacked,
)
from windowlib.columnar.arrays.stamps import HUGE, Stamps
from windowlib.columnar.arrays.value_pool import NOTHING
from windowlib.columnar.engines.engine import Engine
from windowlib.columnar.extents.layout import Layout
from windowlib.columnar.extents.time import at_ticks, with_partitions
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, LayoutColumns
from windowlib.columnar.kernels.functions import MIN_POOL_TO_PACK, AlgebraicFunction, functions_of
from windowlib.columnar.kernels.kernel import Kernel, Planes, concat_planes, planes_at
from windowlib.columnar.primitives import NONE, Array, Places
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.window.sliding import SlidingWindow

MAX_OVERLAP = 64
"""Slices looked at for each that there is, from which on some functions are better kept by rows."""


@dataclass(slots=True)
class SliceTable:
    """Slices of partitions, ascending by partition and time."""

    ids: Places
    """The partition of each."""
    ends: Stamps
    n: Places
    """How many tuples it has."""
    planes: list[Planes]
    """The state of each function."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Any) -> SliceTable:
        """Some of them."""
        planes = [planes_at(each, places) for each in self.planes]
        return SliceTable(self.ids[places], self.ends[places], self.n[places], planes)

    def filter(self, which: Any) -> SliceTable:
        """The slices for which a condition holds."""
        return self if which.all() else self.take(np.flatnonzero(which))

    def merged_with(self, other: SliceTable, kernels: list[Kernel]) -> SliceTable:
        """Both in one table, with slices of the same partition and time merged."""
        if not len(self) or not len(other):
            return other if len(other) else self
        sizes = len(self), len(other)
        planes = [
            concat_planes(a, b, *sizes) for a, b in zip(self.planes, other.planes, strict=True)
        ]
        ids, ends, n = (
            np.concatenate(pair)
            for pair in ((self.ids, other.ids), (self.ends, other.ends), (self.n, other.n))
        )
        if (codes := slice_codes(ids, ends)) is None:
            order = np.lexsort((ends, ids))
        else:
            order = np.argsort(codes, kind="stable")  # two runs in order, so that this is a merge
        both = SliceTable(ids, ends, n, planes).take(order)
        new = (both.ids[1:] != both.ids[:-1]) | (both.ends[1:] != both.ends[:-1])
        if new.all():
            return both
        starts = np.flatnonzero(np.append(True, new))
        merged = both.merged(kernels, starts, np.append(starts[1:], len(both)))
        return SliceTable(both.ids[starts], both.ends[starts], *merged)

    def merged(self, kernels: list[Kernel], lo: Places, hi: Places) -> tuple[Places, list[Planes]]:
        """The sizes and the states of all slices of each extent together; none is empty."""
        total = np.append(0, np.cumsum(self.n))
        pairs = zip(kernels, self.planes, strict=True)
        return total[hi] - total[lo], [
            kernel.combine(planes, lo, hi) if planes else planes for kernel, planes in pairs
        ]


def slice_codes(ids: Places, ends: Stamps) -> Array | None:
    """A number for each slice, ascending by partition and time.

    None: 64 bits are too few for them.

    >>> slice_codes(np.array([0, 1, 1]), np.array([20, 10, 30]))
    array([10, 21, 41])
    """
    low = int(ends.min())
    span = int(ends.max()) - low + 1
    if (int(ids.max()) + 2) * span >= HUGE:
        return None
    codes: Array = ids * span + (ends - low)
    return codes


@dataclass(slots=True)
class PendingSlices:
    """The changes of a batch."""

    layout: Layout
    arrivals: Stamps
    """When the row at each place of the layout came."""
    entries: Places
    """The places of rows that found their partitions empty."""
    table: SliceTable
    """The slices of the running period; if the clock has ticked, all of them."""
    ends: Stamps
    """Where the slice of each place ends."""


class TimeSlicedEngine(Engine):
    """A sliding time window that keeps slices in place of tuples."""

    way = "slices of time, side by side"
    form = "time_sliced"

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, newest=0, sleeps=False, returning=False)
        slices = window.state.slices
        assert isinstance(slices, TimeSlices)
        self.period, self.tail = slices.period, slices.tail
        if slices.period >= HUGE:
            raise Decline("a period beyond 64 bits")
        self.functions: list[AlgebraicFunction] = []
        for each in functions_of(slices.plan, schema):
            if not isinstance(each, AlgebraicFunction):
                raise Decline("a function of slices that needs all values")
            self.functions.append(each)
        self.kernels = [each.kernel for each in self.functions]
        self.closed = self._table()  # slices that ended with the last tick, or before it
        self.running = self._table()

    def _table(self) -> SliceTable:
        planes = [tuple(np.zeros(0, dtype) for dtype in kernel.dtypes) for kernel in self.kernels]
        return SliceTable(NONE, np.zeros(0, np.int64), NONE, planes)

    # -- batches ----------------------------------------------------------------------------------

    def layout(self, batch: pa.RecordBatch) -> Layout:
        """The batch by partition; with ticks, all partitions are included."""
        found = super().layout(batch)
        return with_partitions(found, np.flatnonzero(self.ledger.alive)) if self.ticks else found

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All triggers of a batch; `commit` applies its changes."""
        layout = self.layout(batch)
        rows = layout.rows(np.arange(layout.size))
        arrivals = np.full(len(rows), self.until) if self.arrivals is None else self.arrivals[rows]
        ends = self._ends(arrivals, rows)
        entries = self._entries(layout, arrivals)
        new = self._folded(LayoutColumns(Inputs(batch), layout.order), layout, ends, entries)
        table = self._going_on(layout, ends, entries).merged_with(new, self.kernels)
        if self.ticks:
            table = self.closed.merged_with(table, self.kernels)
        self.pending = PendingSlices(layout, arrivals, entries, table, ends)
        return self._ticked(self.pending) if self.ticks else self._firings(table, NONE, NONE, NONE)

    def _ends(self, arrivals: Stamps, rows: Places) -> Stamps:
        """Where the slices of rows end."""
        tick = self.window.state.tick
        assert tick is not None
        ends = np.full(len(rows), tick)
        if self.ticks:
            ends += self.passed[rows] * self.beat
        if self.tail:
            ends -= np.where(arrivals < ends - self.tail, self.tail, 0)
        return ends

    def _folded(
        self, columns: LayoutColumns, layout: Layout, ends: Stamps, entries: Places
    ) -> SliceTable:
        """The slices of a batch; rows before an entry of their partition are left out.

        Only where windows leave gaps can a partition be empty within a slice.
        """
        number = np.repeat(np.arange(len(layout.touched)), layout.lengths)
        begins = np.append(True, (number[1:] != number[:-1]) | (ends[1:] != ends[:-1]))
        begins[entries] = True
        starts = np.flatnonzero(begins)
        stops = np.append(starts[1:], len(ends))
        if self.period < self.beat:
            of, to = number[starts], ends[starts]
            last = np.append((of[1:] != of[:-1]) | (to[1:] != to[:-1]), True)
            starts, stops = starts[last], stops[last]
        planes = [
            each.kernel.partial(columns.read(each.attribute), starts, stops)
            for each in self.functions
        ]
        ids = layout.touched[number[starts]]
        return SliceTable(ids, ends[starts], stops - starts, planes)

    def _going_on(self, layout: Layout, ends: Stamps, entries: Places) -> SliceTable:
        """The open slices that the batch continues."""
        if self.period >= self.beat:
            return self.running
        heads = np.intersect1d(entries, layout.starts[:-1])
        anew = np.full(self.ledger.size, -HUGE)
        anew[layout.touched[np.searchsorted(layout.starts, heads, "right") - 1]] = ends[heads]
        return self.running.filter(self.running.ends != anew[self.running.ids])

    def _entries(self, layout: Layout, arrivals: Stamps) -> Places:
        """The places of rows that find their partitions empty."""
        heads, some = layout.starts[:-1], layout.lengths > 0
        heads, touched = heads[some], layout.touched[some]
        begins = np.diff(arrivals, prepend=arrivals[0]) > self.period
        late = arrivals[heads] - self.ledger.newest[touched] > self.period
        begins[heads] = ~self.ledger.alive[touched] | late
        return np.flatnonzero(begins)

    def _entered(
        self, pending: PendingSlices, number: Places, places: Places
    ) -> tuple[Places, Array]:
        """The last entries of partitions before some places; whether there are any."""
        entries = np.append(pending.entries, -1)  # what is behind the last stands for none
        found = entries[np.searchsorted(pending.entries, places) - 1]
        return found, found >= pending.layout.starts[:-1][number]

    def _ticked(self, pending: PendingSlices) -> Firings:
        """The triggers of a batch with ticks: each tick triggers all partitions in storage."""
        layout, table, ledger = pending.layout, pending.table, self.ledger
        behind = np.searchsorted(self.passed, np.arange(1, self.ticks + 1))
        number, tick, places = at_ticks(layout, behind)
        times, ids = self.tick_times()[tick], layout.touched[number]
        lo, hi = self._extents(table, ids, times)
        some = hi > lo
        number, tick, places, times, ids, lo, hi = (
            each[some] for each in (number, tick, places, times, ids, lo, hi)
        )
        covered = int((hi - lo).sum())
        if covered > MAX_OVERLAP * len(table) and not all(each.overlaps for each in self.functions):
            raise Decline("windows overlap so much that they are better kept up to date")
        entry, new = self._entered(pending, number, places)
        births = self.seen_rows + layout.rows(np.where(new, entry, 0))
        born = np.where(new, births, ledger.born[ids])
        order = np.lexsort((born, tick))
        self.fired_at = times[order]
        return self._firings(table, lo[order], hi[order], behind[tick[order]])

    def _extents(self, table: SliceTable, ids: Places, times: Stamps) -> tuple[Places, Places]:
        """The slices that make up the windows of partitions at ticks, as extents of a table."""
        if not len(table):
            return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.intp)
        low = int(table.ends.min())
        span, codes = int(table.ends.max()) - low + 1, slice_codes(table.ids, table.ends)
        if codes is None:
            raise Decline("too many partitions for such a period")
        lo, hi = (
            np.searchsorted(codes, ids * span + np.clip(at - low, -1, span - 1), "right")
            for at in (times - self.period, times)
        )
        return lo, hi

    def _firings(self, table: SliceTable, lo: Places, hi: Places, cause: Places) -> Firings:
        """The firings of windows that are extents of a table."""
        sizes, states = table.merged(self.kernels, lo, hi) if len(lo) else (lo, table.planes)
        values = [
            kernel.finish(planes_at(planes, slice(0, len(lo))), sizes)
            for kernel, planes in zip(self.kernels, states, strict=True)
        ]
        return Firings(self.keys, table.ids[lo], sizes, values, cause)

    def commit(self) -> None:
        """The batch has been taken: remember its slices, and who has come."""
        pending: PendingSlices = self.pending
        self._enter(pending)
        table = pending.table
        if self.ticks:
            last = int(self.tick_times()[-1])
            self.closed = table.filter((table.ends <= last) & (table.ends > last - self.period))
            table = table.filter(table.ends > last)
        self.running = table
        self._forget_left(pending)
        self._pack()
        self.used(pending.layout)
        self.pending = None

    def _enter(self, pending: PendingSlices) -> None:
        """Put partitions into storage at the rows that found them empty."""
        layout, ledger = pending.layout, self.ledger
        number = np.flatnonzero(layout.lengths)
        touched, starts, stops = (
            each[number] for each in (layout.touched, layout.starts[:-1], layout.starts[1:])
        )
        entry, new = self._entered(pending, number, stops)
        was, before, earlier = ledger.alive[touched], ledger.taken[touched], entry - starts
        self.left += int((before + earlier)[new].sum())
        ledger.taken[touched] = np.where(new, stops - entry, before + stops - starts)
        ledger.returning[touched] |= new & (was | (earlier > 0))
        ledger.born[touched[new]] = self.seen_rows + layout.rows(entry[new])
        ledger.newest[touched] = pending.arrivals[stops - 1]
        ledger.alive[touched], ledger.sleeps[touched] = True, False

    def _forget_left(self, pending: PendingSlices) -> None:
        """Drop the slices of partitions that were empty in between."""
        if not len(pending.entries):
            return
        first = np.full(self.ledger.size, -HUGE)
        layout = pending.layout
        owner = np.searchsorted(layout.starts, pending.entries, "right") - 1
        first[layout.touched[owner]] = pending.ends[pending.entries]  # the last entry counts
        self.closed, self.running = (
            each.filter(each.ends >= first[each.ids]) for each in (self.closed, self.running)
        )

    def _pack(self) -> None:
        """Drop picked values that no slice refers to, once there are many."""
        for i, kernel in enumerate(self.kernels):
            pool = kernel.pool
            tables = (self.closed, self.running)
            held = sum(map(len, tables))
            if pool is None or pool.size <= max(MIN_POOL_TO_PACK, 4 * held):
                continue
            numbers = pool.pack(np.concatenate([each.planes[i][0] for each in tables]))
            parts = np.split(numbers, [len(self.closed)])
            for table, part in zip(tables, parts, strict=True):
                table.planes[i] = (part, *table.planes[i][1:])

    # -- time -------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Take partitions without tuples out of storage."""
        super().advance(now)
        if len(self.put_to_sleep(now - self.period)):
            self.closed, self.running = (
                each.filter(self.ledger.alive[each.ids]) for each in (self.closed, self.running)
            )

    def due(self) -> int | None:
        """When the first partition becomes empty."""
        newest = self.ledger.newest[self.ledger.alive]
        return int(newest.min()) + self.period + 1 if len(newest) else None

    def fire_all(self) -> Firings:
        """The triggers of all partitions, in order of storage."""
        table = self._now()
        starts = np.flatnonzero(np.append(True, table.ids[1:] != table.ids[:-1]))
        stops = np.append(starts[1:], len(table))
        order = np.argsort(self.ledger.born[table.ids[starts]], kind="stable")
        self.pending = table
        return self._firings(table, starts[order], stops[order], np.arange(len(order)))

    def _now(self) -> SliceTable:
        """The slices that are not too old."""
        table = self.closed.merged_with(self.running, self.kernels)
        return table.filter(table.ends > self.now - self.period)

    def commit_all(self) -> None:
        """Commit the triggers of all partitions, which change nothing."""
        self.closed, self.running, self.pending = self.pending, self._table(), None

    def held(self) -> int:
        """How many tuples are in slices that are not too old."""
        tables = (self.closed, self.running)
        return sum(int(each.n[each.ends > self.now - self.period].sum()) for each in tables)

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Load open and closed slices."""
        ids = self.adopted(parts)
        self.ledger.newest[ids] = [part["newest"][0] for part in parts]
        self.ledger.returning[ids] = [part["returning"] for part in parts]
        found: list[tuple[int, int, int, Any]] = []
        for id_, part in zip(ids.tolist(), parts, strict=True):
            closed, _, (n, places), _ = part["summary"]
            found += [(id_, end, size, row) for end, size, row in closed]
            found += [(id_, part["ref"][0], n, places)] * bool(n)
        if any(isinstance(row, str) for *_, row in found):
            raise Decline("slices that do not go together")
        if not found:
            return
        owners, ends, n = (np.array([each[i] for each in found], np.int64) for i in range(3))
        planes = [
            kernel.load([row[i] for *_, row in found], n) for i, kernel in enumerate(self.kernels)
        ]
        self._put(SliceTable(owners, ends, n, planes).take(np.lexsort((ends, owners))))

    def _put(self, table: SliceTable) -> None:
        """Replace all slices."""
        tick = self.window.state.tick
        assert tick is not None
        ended = table.ends <= tick - self.beat
        self.closed, self.running = table.filter(ended), table.filter(~ended)

    def load_asleep(self, parts: list[dict[str, Any]]) -> None:
        """Load sleeping partitions, in the order in which they became empty."""
        seen = self.seen_rows
        ids, ledger = self.adopted(parts), self.ledger
        self.seen_rows = seen
        ledger.alive[ids], ledger.sleeps[ids], ledger.newest[ids] = False, True, -HUGE
        ledger.returning[ids] = [part["returning"] for part in parts]

    def asleep(self) -> Places:
        """The sleeping partitions in the order in which they became empty, ties by storage."""
        return self.sleeping_order()

    def known_partitions(self) -> Places:
        """The partitions with slices, and those asleep."""
        return np.flatnonzero(self.ledger.alive | self.ledger.sleeps)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Open and closed slices, in the form of snapshots."""
        parts, table = self.common(ids), self.closed.merged_with(self.running, self.kernels)
        pairs = zip(self.kernels, table.planes, strict=True)
        saved = [kernel.save(planes, table.n) for kernel, planes in pairs]
        slices = [
            [end, n, [each[i] for each in saved]]
            for i, (end, n) in enumerate(zip(table.ends.tolist(), table.n.tolist(), strict=True))
        ]
        lo, hi = (np.searchsorted(table.ids, ids, side).tolist() for side in ("left", "right"))
        newest, returning = (
            getattr(self.ledger, name)[ids].tolist() for name in ("newest", "returning")
        )
        for i, part in enumerate(parts):
            part["full"], part["returning"] = True, returning[i]
            if lo[i] < hi[i]:
                part["newest"] = [newest[i]]
                self._save(part, slices[lo[i] : hi[i]])
        return parts

    def _save(self, part: dict[str, Any], slices: list[Any]) -> None:
        """Add the slices of a partition to its snapshot; the last one may be open."""
        end = slices[-1][0]
        part["ref"] = [end]
        opened = [0, self._empty()]
        if end > self.window.state.now:
            *slices, (_, *opened) = slices
        part["n"], part["summary"] = opened[0], [slices, 0, opened, True]

    def _empty(self) -> list[Any]:
        return [kernel.fold.save(kernel.fold.empty) for kernel in self.kernels]

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The slices, and the values that their planes refer to."""
        table = self.closed.merged_with(self.running, self.kernels)
        functions = [
            self._dump(kernel, planes)
            for kernel, planes in zip(self.kernels, table.planes, strict=True)
        ]
        numbers = np.searchsorted(ids, table.ids)
        named = {"ids": numbers, "ends": table.ends, "n": table.n}
        arrays = {name: packed(array) for name, array in named.items()}
        return {"slices": {"size": len(table), **arrays, "functions": functions}}

    def _dump(self, kernel: Kernel, planes: Planes) -> dict[str, Any]:
        arrays: list[Any] = list(planes)
        found: dict[str, Any] = {}
        if kernel.pool is not None:
            arrays[0], values = kernel.pool.packed(arrays[0])
            found["values"] = None if values is None else dump_column(values)
        return {"planes": [None if each is None else packed(each) for each in arrays], **found}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Load slices."""
        saved = state["slices"]
        size, given = checked_count(saved["size"], "slices"), saved["functions"]
        need(len(given) == len(self.kernels), f"{len(given)} functions")
        numbers = checked_numbers(saved["ids"], size, len(ids))
        ends, n = (unpacked(saved[name], np.int64, size) for name in ("ends", "n"))
        later = (np.diff(numbers) > 0) | ((np.diff(numbers) == 0) & (np.diff(ends) > 0))
        need(bool(later.all()) and bool((n > 0).all()), "slices that are not in order")
        pairs = zip(self.kernels, given, strict=True)
        planes = [self._load(kernel, each, size) for kernel, each in pairs]
        self._put(SliceTable(ids[numbers], ends, n, planes))

    def _load(self, kernel: Kernel, saved: Mapping[str, Any], size: int) -> Planes:
        given = saved["planes"]
        need(len(given) == len(kernel.dtypes), f"{len(given)} planes")
        for i, plane in enumerate(given):
            need(plane is not None or i in kernel.mostly_zero, "a plane is missing")
        planes = tuple(
            None if plane is None else np.array(unpacked(plane, dtype, size))
            for plane, dtype in zip(given, kernel.dtypes, strict=True)
        )
        if kernel.pool is not None:
            if (values := saved["values"]) is not None:
                count = checked_count(values["size"], "values")
                kernel.pool.add(load_column(values, kernel.types[0], count))
            checked_numbers(planes[0], size, kernel.pool.size, NOTHING)
        return planes
