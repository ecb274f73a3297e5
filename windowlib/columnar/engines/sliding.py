"""Sliding windows over batches, with the rows they keep: every trigger is an extent of rows.

The layout holds, partition by partition, the rows that are kept and then the new ones:

    kept a1 a2 | new a3 a4 a5 | kept b1 | new b2 b3 ...
    trigger at a4, Count(3):  [a2, a5)       delta triggers look before the tuple is in: [.., a4)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import checked_count
from windowlib.columnar.arrays.kept_rows import ROOM, RowColumns
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.arrays.stamps import HUGE, Stamps
from windowlib.columnar.engines.row_engine import MAX_KEPT_PER_NEW, RowsEngine
from windowlib.columnar.extents.delta import DeltaColumn
from windowlib.columnar.extents.layout import Layout, fired_in_order
from windowlib.columnar.extents.time import at_ticks, with_partitions
from windowlib.columnar.firing_groups import group_keys, over_groups
from windowlib.columnar.firings import Firings, Groups, results_in_order, scatter_results
from windowlib.columnar.inputs import Inputs, empty_batch
from windowlib.columnar.kernels.functions import functions_of
from windowlib.columnar.primitives import NONE, Places, chain, oldest_within, ranges
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.window.sliding import SlidingWindow

MAX_OVERLAP = 64
"""Rows looked at for each row there is, from which on some functions are better kept up to date."""


def _of_each(numbers: Places, which: Places) -> Any:
    """The number of each partition; a single one if all share it."""
    return numbers[which] if len(numbers) > 1 else numbers[0]


class SlidingEngine(RowsEngine):
    """A sliding window that keeps its tuples."""

    way = "extents of kept rows"
    form = "sliding"
    any_order = True

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema, **more: Any) -> None:
        super().__init__(window, schema, count=0, ref=0, known=False, full=False, **more)
        evict, every = window.spec.evict, window.spec.every
        self.evict_delta = self._delta(evict)
        self.trigger_delta = self._delta(every)
        if self.trigger_delta is not None:
            self.ledger.set_dtype("ref", self.trigger_delta.dtype)
        self.size, self.every = evict.tuples or 0, every.tuples or 0
        if window.spec.keeps_nothing or window.spec.never_fires:
            raise Decline("a count of 0")
        plan = window.state.summarizer
        each = getattr(plan, "each", plan)
        self.functions = [] if plan is None else functions_of(each, schema)
        self.groups = None if each is plan else group_keys(plan.group_by, self.type_of)  # type: ignore[union-attr]
        self.since_tick = 0  # how many rows have come since the clock last fired all partitions
        self.reads_some = bool(self.functions) and window.state.consumer.fired is not None
        self.keep(self._names(schema))

    def _delta(self, policy: Any) -> DeltaColumn | None:
        if policy.delta is None:
            return None
        return DeltaColumn(policy.delta, self.type_of(policy.delta.attribute))

    def _names(self, schema: pa.Schema) -> list[str]:
        """The columns to keep: those that functions, policies or users read again."""
        if not self.reads_some:
            return list(schema.names)
        inputs = Inputs(empty_batch(schema))
        deltas = [each.policy.attribute for each in (self.evict_delta, self.trigger_delta) if each]
        names = () if self.groups is None else self.groups.names
        for attribute in (*deltas, *names, *(each.attribute for each in self.functions)):
            inputs.read(attribute)
        return [name for name in schema.names if name in inputs.asked]  # as rows have them

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All triggers of a batch; `commit` applies its changes."""
        layout = self.layout(batch)
        rows = self.rows(batch, layout)
        inputs = Inputs(rows)
        age, marks = self._values(inputs, rows)
        if self.ticks:
            self.pending = (layout, rows, age, None)
            return self._ticked(layout, rows, inputs, age)
        places, references = self._triggers(layout, rows, marks)
        number = rows.partition(places, ascending=True)
        lo, hi, full = self._extents(layout, rows, age, places, number)
        if not self.partial and not full.all():
            places, number, lo, hi = (each[full] for each in (places, number, lo, hi))
        new = places - _of_each(rows.fresh - layout.starts[:-1], number)
        order, cause = fired_in_order(layout.rows(new), layout)
        self._worth(lo, hi, int(rows.ends[-1]))
        self.pending = (layout, rows, age, references)
        return self._firings(layout.touched[number], rows, inputs, lo, hi, order, cause)

    def _firings(
        self,
        ids: Places,
        rows: RowColumns,
        inputs: Inputs,
        lo: Places,
        hi: Places,
        order: Places | slice,
        cause: Places,
    ) -> Firings:
        """Firings over extents of rows, in the order of their causes."""
        found, groups = [], None
        if self.groups is None:
            found = [results_in_order(each, order) for each in self._results(inputs, lo, hi)]
        ids, lo, hi = ids[order], lo[order], hi[order]
        if self.groups is not None:
            groups = self._grouped(self.groups, inputs, lo, hi)
        return Firings(self.keys, ids, hi - lo, found, cause, groups, lo, hi, content=rows)

    def _grouped(self, keys: PartitionKeys, inputs: Inputs, lo: Places, hi: Places) -> Groups:
        codes = keys.encode([inputs.arrow(name) for name in keys.names])
        columns = [inputs.read(each.attribute) for each in self.functions]
        return over_groups(self.functions, keys, codes, columns, lo, hi)

    def layout(self, batch: pa.RecordBatch) -> Layout:
        """The batch by partition; with ticks, all partitions are included."""
        found = super().layout(batch)
        return with_partitions(found, np.flatnonzero(self.ledger.alive)) if self.ticks else found

    def _ticked(self, layout: Layout, rows: RowColumns, inputs: Inputs, age: Any) -> Firings:
        """The triggers of a batch with ticks: each tick triggers all partitions in storage."""
        behind = np.searchsorted(self.passed, np.arange(1, self.ticks + 1))
        number, tick, hi = at_ticks(layout, behind)
        hi += (rows.fresh - layout.starts[:-1])[number]
        there = hi > rows.base[number]
        number, tick, hi = number[there], tick[there], hi[there]
        times = self.tick_times()[tick]
        lo, full = self._held(layout, rows, age, number, hi, times)
        full = (full | self.partial) & (hi > lo)
        born = self._births(layout, rows, age, number, hi)
        number, tick, times, lo, hi, born = (
            each[full] for each in (number, tick, times, lo, hi, born)
        )
        order = np.lexsort((born, tick))
        self.fired_at = times[order]
        self._worth(lo, hi, int(rows.ends[-1]))
        ids, cause = layout.touched[number], behind[tick[order]]
        return self._firings(ids, rows, inputs, lo, hi, order, cause)

    def _held(
        self, layout: Layout, rows: RowColumns, age: Any, number: Places, hi: Places, times: Stamps
    ) -> tuple[Places, Any]:
        """The extents that partitions hold before row `hi`, and whether they were full."""
        base = rows.base[number]
        if self.evict_delta is None:
            lo = np.maximum(hi - self.size, base)
            return lo, hi - lo >= self.size
        last, limit = hi - 1, self.evict_delta.threshold
        lo = oldest_within(age, base, last, age[last], limit)
        return lo, self.ledger.full[layout.touched][number] | (lo > base)

    def _births(
        self, layout: Layout, rows: RowColumns, age: Any, number: Places, hi: Places
    ) -> Places:
        """When partitions entered storage, as of some ticks."""
        old = self.ledger.born[layout.touched]
        first = np.minimum(layout.starts[:-1], layout.starts[-1] - 1)
        new = self.seen_rows + layout.rows(first)
        born: Places = np.where(self.ledger.alive[layout.touched], old, new)[number]
        return born

    def _results(self, inputs: Inputs, lo: Places, hi: Places) -> list[Any]:
        """The values of all functions; those of an empty extent are null."""
        some = hi > lo
        places = slice(None) if some.all() else some
        return [
            scatter_results(each.over(inputs.read(each.attribute), lo[places], hi[places]), some)
            for each in self.functions
            if len(lo)
        ]

    def _worth(self, lo: Places, hi: Places, rows: int) -> None:
        """Decline windows that overlap very much, if a function computes each from scratch."""
        anew = not all(each.overlaps for each in self.functions)
        if anew and int((hi - lo).sum()) > MAX_OVERLAP * rows:
            raise Decline("windows overlap so much that they are better kept up to date")

    def _values(self, inputs: Inputs, rows: RowColumns) -> tuple[Any, Any]:
        """The values of the eviction policy, and those of the trigger policy."""
        evict, trigger = self.evict_delta, self.trigger_delta
        age = None if evict is None else self._ordered(evict, inputs, rows)
        if trigger is None:
            return age, None
        if evict is not None and evict.policy.attribute == trigger.policy.attribute:
            return age, age
        return age, self._ordered(trigger, inputs, rows)

    def _ordered(self, delta: DeltaColumn, inputs: Inputs, rows: RowColumns) -> Any:
        """The values of a delta policy; declines values that go backwards."""
        values = delta.read(inputs.named(str(delta.policy.attribute)))
        delta.ordered(values, np.append(rows.base, rows.ends[-1]))
        return values

    def _triggers(self, layout: Layout, rows: RowColumns, marks: Any) -> tuple[Places, Any]:
        """The places of the rows that trigger, and the new references of delta triggers."""
        ledger, touched = self.ledger, layout.touched
        if not self.every and self.trigger_delta is None:  # the clock triggers
            return NONE, None
        if self.trigger_delta is None:
            counted = ledger.count[touched]
            fires = (counted + rows.ends - rows.fresh) // self.every
            first = rows.fresh - counted + self.every - 1
            if len(first) == 1:
                return first[0] + np.arange(fires[0]) * self.every, None
            return np.repeat(first, fires) + ranges(np.zeros_like(fires), fires) * self.every, None
        limit = self.trigger_delta.threshold
        known, reference = ledger.known[touched], ledger.ref[touched]
        return chain(marks, rows.fresh, rows.ends, reference, known, limit)

    def _extents(
        self, layout: Layout, rows: RowColumns, age: Any, places: Places, number: Places
    ) -> tuple[Places, Places, Any]:
        """The extent of each trigger, and whether its window has been full by then."""
        hi = places if self.trigger_delta else places + 1
        if self.evict_delta is None:
            lo = np.maximum(hi - self.size, _of_each(rows.base, number))
            return lo, hi, hi - lo >= self.size
        base = rows.base[number]
        limit, full = self.evict_delta.threshold, self.ledger.full[layout.touched][number]
        # A delta trigger looks at the window as the tuple before has left it.
        last = places - 1 if self.trigger_delta else places
        lo = after = oldest_within(age, base, last, age.take(last), limit)
        if self.trigger_delta and not self.partial:  # this tuple says whether the window is full
            after = oldest_within(age, base, places, age.take(places), limit)
        return lo, hi, full | (after > base)

    def commit(self) -> None:
        """The batch has been taken: remember what the windows hold."""
        layout, rows, age, references = self.pending
        ledger, touched = self.ledger, layout.touched
        lo = self._oldest(layout, rows, age)
        kept = rows.ends - lo
        self.hold(touched, rows, ranges(lo, kept), kept)
        if self.every > 1:
            ledger.count[touched] = (ledger.count[touched] + layout.lengths) % self.every
        if references is not None:
            ledger.ref[touched], ledger.known[touched] = references, True
        self._enter(layout, rows, age)
        self.since_tick += int(layout.starts[-1])
        self.used(layout)
        self.pending = None

    def _oldest(self, layout: Layout, rows: RowColumns, age: Any) -> Places:
        """The oldest row that each partition keeps."""
        if self.evict_delta is None:
            return np.maximum(rows.ends - self.size, rows.base)
        last, limit = rows.ends - 1, self.evict_delta.threshold
        lo = oldest_within(age, rows.base, last, age[last], limit)
        self.ledger.full[layout.touched] |= lo > rows.base
        return lo

    def _enter(self, layout: Layout, rows: RowColumns, age: Any) -> None:
        """Put the partitions of the batch into storage."""
        ledger, touched = self.ledger, layout.touched
        fresh = ~ledger.alive[touched]
        ledger.born[touched[fresh]] = self.seen_rows + layout.rows(layout.starts[:-1][fresh])
        ledger.alive[touched] = True
        ledger.taken[touched] += layout.lengths

    # -- time -------------------------------------------------------------------------------------

    def fire_all(self) -> Firings:
        """The triggers of all partitions, in order of storage."""
        ids = self.stored()
        self._worth_reading(ids)
        columns, lengths = self.kept(ids)
        rows, hi = RowColumns(self.names, columns, None), np.cumsum(lengths)
        lo = hi - lengths
        if not self.partial:
            full = self.ledger.full[ids] if self.evict_delta else lengths >= self.size
            ids, lo, hi = ids[full], lo[full], hi[full]
        return self._firings(ids, rows, Inputs(rows), lo, hi, slice(None), np.arange(len(ids)))

    def _worth_reading(self, ids: Places) -> None:
        """Decline to read very many rows again and again, unlike incremental summaries."""
        held = int(self.store.lengths[ids].sum())
        if held > MAX_OVERLAP * (self.since_tick + len(ids)) + ROOM:
            raise Decline("windows that are long against what comes between two ticks")

    def commit_all(self) -> None:
        """Commit the triggers of all partitions, which change nothing."""
        self.since_tick = 0

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Load tuples and trigger state."""
        if any(part["rough"] for part in parts):
            raise Decline("values have gone backwards")
        ids = self.adopted(parts)
        self.load_rows(ids, parts)
        self._load_triggers(ids, parts)

    def _load_triggers(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        ledger = self.ledger
        ledger.count[ids] = [part["count"] for part in parts]
        ledger.full[ids] = [part["full"] for part in parts]
        if self.trigger_delta is not None:
            known = np.array([bool(part["ref"]) for part in parts], bool)
            values = [part["ref"][0] for part in parts if part["ref"]]
            ledger.known[ids] = known
            if values:
                ledger.ref[ids[known]] = self.trigger_delta.load(values)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples and trigger state, in the form of snapshots."""
        ledger, parts = self.ledger, self.common(ids)
        size = self.size
        self.save_rows(ids, parts)
        refs = None
        if self.trigger_delta is not None:
            refs = self.trigger_delta.python(ledger.ref[ids])
        known = ledger.known[ids].tolist()
        for i, part in enumerate(parts):
            part["count"] = int(ledger.count[ids[i]])
            part["full"] = bool(ledger.full[ids[i]]) or bool(size and part["taken"] >= size)
            if self.evict_delta is not None:
                part["newest"] = [part["data"][-1][self.evict_delta.policy.attribute]]
            part["ref"] = [refs[i]] if refs is not None and known[i] else []
        return parts

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The rows, and how many have come since the last tick."""
        return {**super().dump_content(ids), "since_tick": self.since_tick}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Load rows."""
        super().load_content(ids, state)
        self.since_tick = checked_count(state["since_tick"], "rows since the last tick")


# Sliding windows over batches that time evicts from: beside each row stands when it arrived.
#
# A row leaves when its age exceeds the period. What has left may stay in the store until its
# partition gets new rows; it is looked past wherever rows are read. A partition without rows leaves
# storage, and sleeps: what its trigger and its fullness know is there when it comes back.
#
#     period 10 | a at 0, 4, 30 | triggers at 4: [0, 4], at 30: [30], after a has slept from 15 on


class AgingEngine(SlidingEngine):
    """A sliding window with time eviction."""

    form = "aging"
    any_order = False
    worth = 4 * MAX_KEPT_PER_NEW  # row by row it has to look at the clock, too

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, newest=0, sleeps=False, returning=False)
        assert window.spec.evict.tick is not None
        self.period = min(window.spec.evict.tick, HUGE)

    def keep(self, names: list[str], *more: Column) -> None:
        """Set the columns that are kept, with the arrival of each row."""
        super().keep(names, _stamps([]))

    def more(self, rows: int) -> list[Column]:
        """The arrival times of the batch."""
        arrivals = np.full(rows, self.until) if self.arrivals is None else self.arrivals
        return [_stamps(arrivals)]

    # -- batches ----------------------------------------------------------------------------------

    def _values(self, inputs: Inputs, rows: RowColumns) -> tuple[Any, Any]:
        """Arrival times for eviction, and the values of the trigger policy."""
        _, marks = super()._values(inputs, rows)
        return rows.last().data, marks

    def _extents(
        self, layout: Layout, rows: RowColumns, age: Any, places: Places, number: Places
    ) -> tuple[Places, Places, Any]:
        """The extent of recent rows at each trigger; such windows count as full."""
        hi = places if self.trigger_delta else places + 1
        lo = oldest_within(age, rows.base[number], hi, age[places], self.period)
        return lo, hi, np.ones(len(lo), bool)

    def _held(
        self, layout: Layout, rows: RowColumns, age: Any, number: Places, hi: Places, times: Stamps
    ) -> tuple[Places, Any]:
        """The extents of recent rows at some ticks."""
        lo = oldest_within(age, rows.base[number], hi, times, self.period)
        return lo, hi > lo

    def _births(
        self, layout: Layout, rows: RowColumns, age: Any, number: Places, hi: Places
    ) -> Places:
        """The row with which partitions have last entered storage, as of some ticks."""
        entry = self._entries(rows, age, hi)
        new = np.maximum(entry - (rows.fresh - layout.starts[:-1])[number], 0)
        old = entry < rows.fresh[number]
        births = self.seen_rows + layout.rows(new)
        return np.where(old, self.ledger.born[layout.touched][number], births)

    def _entries(self, rows: RowColumns, age: Any, places: Places) -> Places:
        """The rows before some places that found their partitions empty."""
        begins = np.diff(age, prepend=age[0]) > self.period
        begins[rows.base] = True  # of those that hold rows, not a new one
        entries = np.flatnonzero(begins)
        found: Places = entries[np.searchsorted(entries, places) - 1]
        return found

    def _oldest(self, layout: Layout, rows: RowColumns, age: Any) -> Places:
        """The oldest row of each partition that is recent at the end of the batch."""
        until = np.full(len(rows.ends), self.until)
        return oldest_within(age, rows.base, rows.ends, until, self.period)

    def _enter(self, layout: Layout, rows: RowColumns, age: Any) -> None:
        """Put partitions into storage at the rows that found them empty."""
        ledger, touched = self.ledger, layout.touched
        entry = self._entries(rows, age, rows.ends)
        new, was = entry >= rows.fresh, ledger.alive[touched]
        before, earlier = ledger.taken[touched], entry - rows.fresh
        self.left += int((before + earlier)[new].sum())
        ledger.taken[touched] = np.where(new, rows.ends - entry, before + layout.lengths)
        ledger.returning[touched] |= new & (was | (earlier > 0))
        rows_of = layout.rows((layout.starts[:-1] + earlier)[new])
        ledger.born[touched[new]] = self.seen_rows + rows_of
        ledger.newest[touched] = age[rows.ends - 1]
        ledger.alive[touched] = ledger.full[touched] = True
        ledger.sleeps[touched] = False

    # -- time -------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Take partitions without rows out of storage."""
        super().advance(now)
        self.store.drop(self.put_to_sleep(now - self.period))

    def due(self) -> int | None:
        """When the oldest row becomes too old."""
        columns, _ = self.kept(np.flatnonzero(self.ledger.alive))
        stamps = columns[-1].data
        return int(stamps.min()) + self.period + 1 if len(stamps) else None

    def gone(self) -> int:
        """How many of the tuples taken are evicted; rows that are too old count as evicted."""
        places = self.store.places(np.flatnonzero(self.ledger.alive))
        old = self.now - self.store.whole(-1).data[places] > self.period
        return super().gone() + int(old.sum())

    def kept(self, ids: Places) -> tuple[list[Column], Places]:
        """The recent rows of some partitions, and how many each has."""
        columns, lengths = super().kept(ids)
        young = self.now - columns[-1].data <= self.period
        if young.all():
            return columns, lengths
        counted, ends = np.append(0, np.cumsum(young)), np.cumsum(lengths)
        places = np.flatnonzero(young)
        return [column.take(places) for column in columns], counted[ends] - counted[ends - lengths]

    # -- hand-over --------------------------------------------------------------------------------

    def _load_triggers(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        super()._load_triggers(ids, parts)
        self.ledger.newest[ids] = [
            part["stamps"][-1] if part["stamps"] else -HUGE for part in parts
        ]
        self.ledger.returning[ids] = [part["returning"] for part in parts]

    def load_more(self, parts: list[dict[str, Any]]) -> list[Column]:
        """The arrival times of tuples of the event engine."""
        return [_stamps([stamp for part in parts for stamp in part["stamps"]])]

    def load_asleep(self, parts: list[dict[str, Any]]) -> None:
        """Load sleeping partitions, in the order in which they became empty."""
        seen = self.seen_rows
        ids, ledger = self.adopted(parts), self.ledger
        self.seen_rows = seen
        self.store.grow(ledger.size)
        ledger.alive[ids], ledger.sleeps[ids] = False, True
        self._load_triggers(ids, parts)

    def asleep(self) -> Places:
        """The sleeping partitions in the order in which they became empty, ties by storage."""
        return self.sleeping_order()

    def known_partitions(self) -> Places:
        """The partitions with rows, and those asleep."""
        return np.flatnonzero(self.ledger.alive | self.ledger.sleeps)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples, arrivals and trigger state, in the form of snapshots."""
        parts = super().parts(ids)
        columns, _ = self.kept(ids)
        stamps, at = columns[-1].data.tolist(), 0
        returning = self.ledger.returning[ids].tolist()
        for part, again in zip(parts, returning, strict=True):
            part["stamps"], part["returning"] = stamps[at : at + len(part["data"])], again
            at += len(part["data"])
        return parts


def _stamps(arrivals: Any) -> Column:
    return Column(pa.int64(), np.array(arrivals, np.int64), None)
