"""Tumbling windows over batches: pieces, their partial state, and what stays open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.closings import Carried, Closings, by_lapse, by_ticks, with_others
from windowlib.columnar.dealt import MOST, deal, deals
from windowlib.columnar.decline import Decline
from windowlib.columnar.deltas import DeltaColumn
from windowlib.columnar.engine import Engine
from windowlib.columnar.firings import Firings
from windowlib.columnar.functions import functions_of
from windowlib.columnar.group_summaries import GroupSummaries
from windowlib.columnar.groups import group_keys
from windowlib.columnar.inputs import Inputs, Sorted
from windowlib.columnar.pieces import NONE, Grouped, Pieces, Places, by_count, by_cuts, whole
from windowlib.columnar.primitives import chain
from windowlib.columnar.stamps import HUGE
from windowlib.columnar.summaries import Summaries
from windowlib.policies import Count, Delta, Either

if TYPE_CHECKING:
    from windowlib.tumbling import TumblingWindow


class TumblingEngine(Engine):
    """A tumbling window with ready-made summaries; the rows themselves are not kept."""

    way = "running summaries, piece by piece"
    form = "tumbling"

    def __init__(self, window: TumblingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, n=0, ref=0, known=False)
        evict = window.spec.evict
        self.lapse = min(evict.time.micros, HUGE) if isinstance(evict, Either) else 0
        evict = evict.count if isinstance(evict, Either) else evict
        self.size = evict.size if isinstance(evict, Count) else 0
        if isinstance(evict, Count) and not self.size:
            raise Decline("Count(0) keeps nothing")
        self.delta = None
        self.numbers: Places = NONE
        if isinstance(evict, Delta):
            self.delta = DeltaColumn(evict, self.type_of(evict.attribute))
            self.ledger.set_dtype("ref", self.delta.dtype)
        self.summaries = self._summaries(window._factory)
        self._counts = 0 < self.size < MOST and not self.lapse

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

    def grouped(self, batch: pa.RecordBatch) -> Grouped:
        """The batch by partition, with those that time closes before its last row is in."""
        found, ledger = super().grouped(batch), self.ledger
        if self.ticks:
            return with_others(found, np.flatnonzero(ledger.alive))
        if self.lapse:
            over = ledger.alive & (ledger.ref + self.lapse <= self.until)
            return with_others(found, np.flatnonzero(over))
        return found

    def _closed(self, grouped: Grouped) -> Closings | None:
        """What time closes, if it closes anything."""
        if not self.ticks and not self.lapse:
            return None
        ledger, touched = self.ledger, grouped.touched
        n, ref, born = ledger.n[touched], ledger.ref[touched], ledger.born[touched]
        carried = Carried(n, ref, born, self.seen_rows)
        arrivals = self.arrivals
        if self.ticks and arrivals is not None:
            return by_ticks(grouped, carried, arrivals, self.passed, self.tick_times())
        if self.lapse:
            if arrivals is None:
                arrivals = np.full(int(grouped.starts[-1]), self.until)
            return by_lapse(grouped, carried, arrivals, self.size, self.lapse)
        return None

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch; `commit` makes it so."""
        grouped, columns, pieces, references = self._laid_out(batch, Inputs(batch))
        self.summaries.grow(self.ledger.size)
        values, groups = self.summaries.fold(columns, grouped, pieces)
        self.pending = (grouped, pieces, references)
        ids, sizes = pieces.fired_ids, pieces.fired_sizes
        return Firings(self.keys, ids, sizes, values, pieces.rows, groups)

    def _laid_out(
        self, batch: pa.RecordBatch, inputs: Inputs
    ) -> tuple[Grouped, Sorted, Pieces, Any]:
        """The pieces of a batch, the columns they are of, and the references at its end."""
        if self._counts and deals(self, batch.num_rows) and self.summaries.deal(inputs):
            dealt, pieces = deal(self, batch, self.size)
            return dealt, Sorted(inputs, None), pieces, None
        grouped = self.grouped(batch)
        columns = Sorted(inputs, grouped.order)
        return grouped, columns, *self._pieces(grouped, columns)

    def _pieces(self, grouped: Grouped, columns: Sorted) -> tuple[Pieces, Any]:
        if (closings := self._closed(grouped)) is not None:
            self.fired_at = closings.times
            return closings.pieces, closings.opened
        carried = self.ledger.n[grouped.touched]
        if self.size:
            return by_count(grouped, carried, self.size), None
        if self.delta is None:
            return whole(grouped, carried), None
        (column,) = columns.read(self.delta.policy.attribute)
        values = self.delta.read(column)
        self.delta.ordered(values, grouped.starts)
        starts, ends = grouped.starts[:-1], grouped.starts[1:]
        reference, known = self.ledger.ref[grouped.touched], self.ledger.known[grouped.touched]
        cuts, reference = chain(values, starts, ends, reference, known, self.delta.threshold)
        return by_cuts(grouped, carried, cuts), reference

    def commit(self) -> None:
        """The batch has been taken: remember what is open."""
        grouped, pieces, references = self.pending
        ledger, touched = self.ledger, grouped.touched
        open_ids = pieces.ids[pieces.stays]
        self.summaries.commit(pieces)
        ledger.n[touched] = 0
        ledger.n[open_ids] = pieces.sizes[pieces.stays]
        if self.delta is None:
            self.left += int(pieces.fired_sizes.sum())
            ledger.alive[touched] = False
            ledger.alive[open_ids] = True
            if self.lapse:
                ledger.ref[open_ids] = references
            joined = np.zeros(len(pieces.starts), bool)
            joined[pieces.joins] = True
            fresh = pieces.stays[~joined[pieces.stays]]
        else:
            np.add.at(ledger.taken, pieces.fired_ids, pieces.fired_sizes)
            ledger.ref[touched], ledger.known[touched] = references, True
            heads = np.searchsorted(pieces.starts, grouped.starts[:-1])
            fresh = heads[~ledger.alive[touched]]
            ledger.alive[touched] = True
        ledger.born[pieces.ids[fresh]] = self.seen_rows + grouped.rows(pieces.starts[fresh])
        self.used(grouped)
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
