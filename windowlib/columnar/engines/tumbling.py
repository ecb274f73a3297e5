"""Tumbling windows over batches: extents, their partial state, and what stays open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.kept_rows import (
    FullWindows,
    KeyTable,
    RowColumns,
    SlotMoves,
    SlotScatter,
    SlotTable,
    SlotTables,
)
from windowlib.columnar.arrays.partition_keys import same_if_equal
from windowlib.columnar.arrays.stamps import HUGE
from windowlib.columnar.engines.engine import MOST, Engine
from windowlib.columnar.engines.row_engine import RowsEngine
from windowlib.columnar.engines.summaries import GroupSummaries, Summaries
from windowlib.columnar.extents.delta import DeltaColumn
from windowlib.columnar.extents.layout import (
    Extents,
    Layout,
    extents_by_count,
    extents_by_cuts,
    open_extents,
)
from windowlib.columnar.extents.time import (
    CarriedSubwindows,
    Closings,
    extents_by_lapse,
    extents_by_marks,
    extents_by_ticks,
    with_partitions,
)
from windowlib.columnar.firing_groups import group_keys
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, LayoutColumns
from windowlib.columnar.kernels.functions import functions_of
from windowlib.columnar.kernels.kernel import repeated
from windowlib.columnar.primitives import NONE, Places, chain, group, ranges
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns
    from windowlib.window.tumbling import TumblingWindow


QUIET = 4
"""Rows of a batch for each that opens or closes a subwindow, from which on the others stay as they
came."""
SHORT = 1 << 10
"""Rows of a partition that can be added up one after the other without a loss that matters."""
SPARSE = 4
"""Slots for each row that is kept or arrives, up to which all partitions have them."""


class TumblingEngine(Engine):
    """A tumbling window with ready-made summaries; the rows themselves are not kept."""

    way = "running summaries, piece by piece"
    form = "tumbling"

    def __init__(self, window: TumblingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, n=0, ref=0, known=False)
        evict = window.spec.evict
        self.lapse, self.size = min(evict.lapse or 0, HUGE), evict.tuples or 0
        if window.spec.keeps_nothing:
            raise Decline("Count(0) keeps nothing")
        self.delta = None
        self.numbers: Places = NONE
        if evict.delta is not None:
            self.delta = DeltaColumn(evict.delta, self.type_of(evict.delta.attribute))
            self.ledger.set_dtype("ref", self.delta.dtype)
        self.summaries = self._summaries(window.state.summarizer)
        if self.size:
            for each in self.summaries.functions:
                each.limit(self.size)
        self._room = 0  # for how many partitions the summaries have room
        self._quiet: Any = None  # of a batch, where subwindows only grow: by how much, and to what
        self.counts = self.any_order = 0 < self.size < MOST and not self.lapse

    def _summaries(self, plan: Any) -> Summaries:
        """What keeps the state of a plan, once a partition or once a group."""
        if plan is None:  # the tuples are kept
            return Summaries([])
        each = getattr(plan, "each", None)
        if each is None:
            return Summaries(functions_of(plan, self.schema))
        keys = group_keys(plan.group_by, self.type_of)
        types = [self.type_of(name) for name in keys.names]
        return GroupSummaries(functions_of(each, self.schema), keys, types)

    # -- time -------------------------------------------------------------------------------------

    def due(self) -> int | None:
        """When the first of the open subwindows has been open for long enough."""
        opened = self.ledger.ref[self.ledger.alive]
        return int(opened.min()) + self.lapse if self.lapse and len(opened) else None

    def layout(self, batch: pa.RecordBatch) -> Layout:
        """The batch by partition, with those that time closes before its last row is in."""
        found, ledger = super().layout(batch), self.ledger
        if self.keys is None:  # there is but one, and it has all rows
            return found
        if len(self.passed) or len(self.marks):
            return with_partitions(found, np.flatnonzero(ledger.alive))
        if self.lapse:
            over = ledger.alive & (ledger.ref + self.lapse <= self.until)
            return with_partitions(found, np.flatnonzero(over))
        return found

    def _closed(self, layout: Layout) -> Closings | None:
        """What time closes, if it closes anything."""
        if not len(self.passed) and not self.lapse and not len(self.marks):
            return None
        ledger, touched = self.ledger, layout.touched
        n, ref, born = ledger.n[touched], ledger.ref[touched], ledger.born[touched]
        carried = CarriedSubwindows(n, ref, born, self.seen_rows)
        arrivals = self.arrivals
        if len(self.marks):
            return extents_by_marks(layout, carried, self.marks, self.until)
        if self.ticks and arrivals is not None:
            return extents_by_ticks(layout, carried, arrivals, self.passed, self.tick_times())
        if self.lapse:
            if arrivals is None:
                arrivals = np.full(int(layout.starts[-1]), self.until)
            return extents_by_lapse(layout, carried, arrivals, self.size, self.lapse)
        return None

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch; `commit` makes it so."""
        inputs = Inputs(batch)
        unsorted = self.counts and self.unsorted(batch.num_rows)
        if unsorted and self.summaries.takes_arrivals(inputs):
            return self._insert_arrivals(batch, inputs)
        layout = self._busy(batch, inputs)
        self._grow()
        columns = LayoutColumns(inputs, layout.order)
        extents, references = self._tiles(layout, columns)
        values, groups = self.summaries.fold(columns, layout, extents)
        self.pending = (layout, extents, references)
        ids, sizes = extents.fired_ids, extents.fired_sizes
        return Firings(self.keys, ids, sizes, values, extents.rows, groups)

    def _insert_arrivals(self, batch: pa.RecordBatch, inputs: Inputs) -> Firings:
        """All flushes of a batch whose rows stay as they came."""
        self.pending = runs = self.runs(batch, self.size, opens=True)
        self._grow()
        sizes = repeated(self.size, len(runs.owners))
        values = self.summaries.fold_arrivals(inputs, runs, sizes)
        return Firings(self.keys, runs.owners, sizes, values, runs.rows)

    def _busy(self, batch: pa.RecordBatch, inputs: Inputs) -> Layout:
        """The rows whose partitions open or close a subwindow; those of others are only added up.

        With many partitions, these are most: their rows need no order.
        """
        rows, self._quiet = batch.num_rows, None
        known = self.keys is not None and self.window.spec.forget is None
        if not self.counts or not known or self.ledger.size * self.size < QUIET * rows:
            return self.layout(batch)
        ids = self.numbered(batch)
        held, lengths = self.ledger.n, np.bincount(ids, minlength=self.ledger.size)
        busy = (held == 0) | (held + lengths >= self.size)
        there = np.flatnonzero(busy[ids])
        few = QUIET * len(there) <= rows and lengths.max(initial=0) <= SHORT
        if not few or not self.summaries.takes_spread(inputs):
            return self.layout(batch)
        lengths[busy] = 0
        self._grow()
        self._quiet = lengths, self.summaries.spread(inputs, ids, self.ledger.size)
        order, touched, starts = group(ids[there], self.ledger.size)
        return Layout(there[order], touched, starts, rows)

    def _grow(self) -> None:
        """Have room for the summaries of all partitions."""
        if self.ledger.size > self._room:
            self._room = self.ledger.size
            self.summaries.grow(self._room)

    def _tiles(self, layout: Layout, columns: LayoutColumns) -> tuple[Extents, Any]:
        if (closings := self._closed(layout)) is not None:
            self.fired_at = closings.times
            return closings.extents, closings.opened
        carried = self.ledger.n[layout.touched]
        if self.size:
            return extents_by_count(layout, carried, self.size), None
        if self.delta is None:
            return open_extents(layout, carried), None
        (column,) = columns.read(self.delta.policy.attribute)
        values = self.delta.read(column)
        self.delta.ordered(values, layout.starts)
        starts, ends = layout.starts[:-1], layout.starts[1:]
        reference, known = self.ledger.ref[layout.touched], self.ledger.known[layout.touched]
        cuts, reference = chain(values, starts, ends, reference, known, self.delta.threshold)
        return extents_by_cuts(layout, carried, cuts), reference

    def commit(self) -> None:
        """The batch has been taken: remember what is open."""
        if not isinstance(self.pending, tuple):
            self._commit_arrivals(self.pending)
            return
        layout, extents, references = self.pending
        ledger, touched = self.ledger, layout.touched
        open_ids = extents.ids[extents.stays]
        if self._quiet is not None:
            lengths, state = self._quiet
            ledger.n[:] += lengths
            self.summaries.replace(state)
            self._quiet = None
        self.summaries.commit(extents)
        ledger.n[touched] = 0
        ledger.n[open_ids] = extents.sizes[extents.stays]
        if self.delta is None:
            full = len(extents.fires) * self.size
            self.left += full if self.counts else int(extents.fired_sizes.sum())
            ledger.alive[touched] = False
            ledger.alive[open_ids] = True
            if self.lapse:
                ledger.ref[open_ids] = references
            joined = np.zeros(len(extents.starts), bool)
            joined[extents.joins] = True
            fresh = extents.stays[~joined[extents.stays]]
        else:
            np.add.at(ledger.taken, extents.fired_ids, extents.fired_sizes)
            ledger.ref[touched], ledger.known[touched] = references, True
            heads = np.searchsorted(extents.starts, layout.starts[:-1])
            fresh = heads[~ledger.alive[touched]]
            ledger.alive[touched] = True
        ledger.born[extents.ids[fresh]] = self.seen_rows + layout.rows(extents.starts[fresh])
        self.used(layout)
        self.pending = None

    def _commit_arrivals(self, runs: ArrivalRuns) -> None:
        """The rows have been taken as they came."""
        ledger = self.ledger
        self.summaries.commit_arrivals()
        runs.open_since(ledger.born, self.seen_rows)
        ledger.put(n=runs.held, alive=runs.held > 0)
        self.left += len(runs.rows) * self.size
        self.seen_rows += runs.size
        self.advance(self.until)
        self.pending = None

    def gone(self) -> int:
        """Those of partitions that have left, and what the others have been flushed of."""
        return self.left + int(self.ledger.taken[self.ledger.alive].sum())

    def flush_all(self) -> Firings:
        """Flush every partition, in order of storage: a punctuation, or a tick."""
        ids = self.stored()
        sizes = self.ledger.n[ids]
        values, groups = self.summaries.carried(ids, sizes)
        self.pending = ids
        return Firings(self.keys, ids, sizes, values, np.zeros(len(ids), np.intp), groups)

    def commit_flush(self) -> None:
        """All partitions have been flushed."""
        ids, ledger = self.pending, self.ledger
        self.left += int(ledger.n[ids].sum())
        ledger.n[ids], ledger.alive[ids] = 0, False
        self.summaries.drop(ids)
        self.pending = None

    def fire_all(self) -> Firings:
        """Every partition is flushed."""
        return self.flush_all()

    def commit_all(self) -> None:
        """Every partition has been flushed."""
        self.commit_flush()

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over what the event engine holds."""
        ids, ledger = self.adopted(parts), self.ledger
        self.numbers = ids
        sizes = np.array([part["n"] for part in parts], np.intp)
        ledger.n[ids] = sizes
        held = sizes > 0
        saved = [part["summary"] for part in parts if part["n"]]
        self.summaries.grow(ledger.size)
        self.summaries.load(ids[held], sizes[held], saved)
        if self.delta is not None:
            known = np.array([bool(part["ref"]) for part in parts], bool)
            values = [part["ref"][0] for part in parts if part["ref"]]
            ledger.ref[ids[known]] = self.delta.load(values) if values else NONE
            ledger.known[ids] = known
        elif self.lapse:
            ledger.ref[ids] = [part["ref"][0] for part in parts]

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """What the event engine needs to go on with these partitions."""
        sizes = self.ledger.n[ids]
        parts = self.common(ids)
        saved = self.summaries.save(ids, sizes)
        for part, n, summary in zip(parts, sizes.tolist(), saved, strict=True):
            part["n"], part["summary"] = n, summary
        if self.delta is not None:
            for part, ref in zip(parts, self.delta.python(self.ledger.ref[ids]), strict=True):
                part["ref"] = [ref]
        elif self.lapse:
            for part, first in zip(parts, self.ledger.ref[ids].tolist(), strict=True):
                part["ref"] = [first]
        return parts

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """What the functions carry."""
        return {**super().dump_content(ids), "summaries": self.summaries.dump(ids)}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what the functions carry."""
        super().load_content(ids, state)
        self.summaries.grow(self.ledger.size)
        self.summaries.load_dump(ids, state["summaries"])


# Tumbling windows over batches whose handlers look at the rows: every flush is an extent.


class TumblingRowsEngine(TumblingEngine, RowsEngine):
    """A tumbling window that keeps its tuples."""

    way = "extents of kept rows"
    form = "kept"

    def __init__(self, window: TumblingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema)
        self.keep(list(schema.names))
        self._slots: SlotTables | None = None  # where rows are, if not in the store
        keys = () if self.keys is None else self.keys.names
        self._keyed = [name for name in keys if same_if_equal(self.type_of(name))]
        pairs = zip(self.names, self.store.none(), strict=True)
        self._slotted = all(column.physical or name in self._keyed for name, column in pairs)
        self._arriving: list[Column] = []
        self._staying: SlotMoves | SlotScatter = SlotMoves(
            NONE, NONE
        )  # which arriving rows go to which slots

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch; `commit` makes it so."""
        size = batch.num_rows
        if self.unsorted(size) and self._fits_slots(size):
            runs = self.runs(batch, self.size, opens=True)
            if self._fits_slots(size):  # with new partitions, too
                return self._insert_runs(batch, runs)
        layout = self.layout(batch)
        extents, references = self._tiles(layout, LayoutColumns(Inputs(batch), layout.order))
        self.pending = (layout, extents, references)
        if layout.order is not None and self._fits_slots(size):
            return self._insert_slots(batch, layout.order, extents)
        self._leave_slots()
        apart = layout.order is not None
        self._rows = rows = self.apart(batch, layout) if apart else self.rows(batch, layout)
        held = self.store.lengths[layout.touched]
        self._pieces = pieces = Pieces(layout, extents, rows, held)
        fires, sizes = extents.fires, pieces.sizes[extents.fires]
        if apart:  # what does not fire is not looked at
            rows, lo = rows.at(pieces.places(fires)), np.cumsum(sizes) - sizes
        else:  # a subwindow is where what it carries is, and the new rows behind that
            lo = np.where(pieces.carried > 0, pieces.kept, pieces.new)[fires]
        ids = extents.fired_ids
        return Firings(self.keys, ids, sizes, [], extents.rows, lo=lo, hi=lo + sizes, content=rows)

    def commit(self) -> None:
        """The batch has been taken: keep the rows of open subwindows."""
        if self._slots is not None:
            self._slots.fill(self._arriving, self._staying)
        else:
            layout, extents, *_ = self.pending
            kept = np.zeros(len(layout.touched), np.intp)
            kept[extents.number[extents.stays]] = self._pieces.sizes[extents.stays]
            self.hold(layout.touched, self._rows, self._pieces.places(extents.stays), kept)
        super().commit()

    def flush_all(self) -> Firings:
        """Flush every partition, in order of storage."""
        self._leave_slots()
        ids = self.stored()
        columns, lengths = self.store.take(ids)
        rows = RowColumns(self.names, columns, None)
        hi = np.cumsum(lengths)
        self.pending = ids
        causes = np.zeros(len(ids), np.intp)
        return Firings(self.keys, ids, lengths, [], causes, lo=hi - lengths, hi=hi, content=rows)

    def commit_flush(self) -> None:
        """All partitions have been flushed."""
        self.store.put(self.pending, self.store.none(), np.zeros(len(self.pending), np.intp))
        super().commit_flush()

    # -- windows that close by count --------------------------------------------------------------

    def _fits_slots(self, rows: int) -> bool:
        """Whether a slot for each tuple of a full subwindow, for all partitions, is no waste."""
        if not self.counts or not self._slotted or len(self.marks):
            return False
        return self.ledger.size * self.size <= SPARSE * (self.held() + rows)

    def _insert_runs(self, batch: pa.RecordBatch, runs: ArrivalRuns) -> Firings:
        """All flushes of a batch whose rows stay as they came."""
        self.pending = runs
        places = runs.places()
        self._staying = SlotScatter(places, len(runs.rows) * self.size)
        return self._flushes(batch, runs.owners, SlotScatter(places, 0), runs.rows)

    def _insert_slots(self, batch: pa.RecordBatch, order: Places, extents: Extents) -> Firings:
        """All flushes of a batch whose rows are sorted."""
        stays, fires = extents.stays, extents.fires
        self._staying = self._moves(extents, stays, order, extents.ids[stays])
        new = self._moves(extents, fires, order, np.arange(len(fires)))
        return self._flushes(batch, extents.fired_ids, new, extents.rows)

    def _moves(self, extents: Extents, which: Places, order: Places, rows: Places) -> SlotMoves:
        """Move the new rows of some extents to rows of slots, behind what they carry."""
        starts = extents.starts[which]
        new = extents.ends[which] - starts
        carried = extents.sizes[which] - new
        slots = ranges(rows * self.size + carried, new)
        return SlotMoves(order[ranges(starts, new)], slots)

    def _flushes(
        self, batch: pa.RecordBatch, ids: Places, new: SlotMoves | SlotScatter, causes: Places
    ) -> Firings:
        """The flushes of full subwindows of some partitions, and the rows that cause them."""
        self._arriving = columns = self.arriving(batch)
        windows = FullWindows(self._enter_slots(), columns, ids, new)
        content = RowColumns(self.names, windows, None)
        hi = np.arange(1, len(ids) + 1) * self.size
        lo, sizes = hi - self.size, repeated(self.size, len(ids))
        return Firings(self.keys, ids, sizes, [], causes, lo=lo, hi=hi, content=content)

    def _enter_slots(self) -> SlotTables:
        """Have all rows in slots."""
        if self._slots is None:
            pairs = zip(self.names, self.store.none(), strict=True)
            self._slots = SlotTables([self._table(*pair) for pair in pairs], self.size)
            ids = np.flatnonzero(self.store.lengths)
            columns, lengths = self.store.take(ids)
            self._slots.put(ranges(ids * self.size, lengths), columns)
            self.store.put(ids, self.store.none(), np.zeros(len(ids), np.intp))
        self._slots.grow(self.ledger.size)
        return self._slots

    def _table(self, name: str, like: Column) -> SlotTable | KeyTable:
        """The slots of a column."""
        keys = self.keys
        if keys is None or name not in self._keyed:
            return SlotTable(like, self.ledger.size, self.size)
        place = keys.names.index(name)
        return KeyTable(lambda ids: Column.of(keys.arrow(ids)[place]), self.size)

    def _leave_slots(self) -> None:
        """Have all rows in the store."""
        if self._slots is not None:
            ids = np.flatnonzero(self.ledger.n)
            lengths = self.ledger.n[ids]
            self.store.grow(self.ledger.size)
            self.store.put(ids, self._slots.take(ids, lengths), lengths)
            self._slots = None

    def held(self) -> int:
        """How many tuples are kept."""
        return int(self.ledger.n.sum())

    def kept(self, ids: Places) -> tuple[list[Column], Places]:
        """The rows that some partitions hold, and how many each has."""
        self._leave_slots()
        return super().kept(ids)

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The rows that are kept, from the store."""
        self._leave_slots()
        return super().dump_content(ids)

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over tuples and references."""
        sized = [{**part, "n": len(part["data"])} for part in parts]
        super().load(sized)
        self.load_rows(self.numbers, parts)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples and references."""
        parts = super().parts(ids)
        self.save_rows(ids, parts)
        for part in parts:
            part["n"], part["summary"] = 0, None
        return parts


class Pieces:
    """Where the rows of subwindows are: those that they carry, and new ones; by number of extents.

    Behind the extents come subwindows that close before a new row enters them.
    """

    def __init__(self, layout: Layout, extents: Extents, rows: RowColumns, held: Places) -> None:
        number, joins, starts = extents.number, extents.joins, extents.starts
        new = extents.ends - starts
        if len(extents.bare):
            number = np.append(number, np.searchsorted(layout.touched, extents.bare))
            joins = np.append(joins, np.arange(len(starts), len(number)))
            starts, new = (
                np.append(starts, layout.heads[number[len(starts) :]]),
                np.append(new, np.zeros(len(extents.bare), np.intp)),
            )
        self.kept, self.carried = rows.base[number], np.zeros(len(number), np.intp)
        self.carried[joins] = held[number[joins]]
        self.new = starts + (rows.fresh - layout.heads)[number]
        self._lengths = np.stack([self.carried, new], axis=1)
        self.sizes = self.carried + new

    def places(self, which: Places) -> Places:
        """The places of all rows of some subwindows, one after the other."""
        starts = np.stack([self.kept[which], self.new[which]], axis=1)
        return ranges(starts.ravel(), self._lengths[which].ravel())
