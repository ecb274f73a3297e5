"""Tumbling windows over batches: pieces, their partial state, and what stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.deltas import DeltaColumn
from windowlib.columnar.engine import Engine
from windowlib.columnar.firings import Firings
from windowlib.columnar.functions import functions_of
from windowlib.columnar.inputs import Inputs, Sorted
from windowlib.columnar.pieces import NONE, Grouped, Pieces, Places, by_count, by_cuts, whole
from windowlib.columnar.primitives import chain
from windowlib.policies import Count, Delta, Either

if TYPE_CHECKING:
    from windowlib.tumbling import TumblingWindow


class TumblingEngine(Engine):
    """A tumbling window with ready-made summaries; the rows themselves are not kept."""

    def __init__(self, window: TumblingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, n=0, ref=0, known=False)
        evict = window.spec.evict
        if isinstance(evict, Either):
            raise Decline(f"{evict} runs on the clock")
        self.size = evict.size if isinstance(evict, Count) else 0
        if isinstance(evict, Count) and not self.size:
            raise Decline("Count(0) keeps nothing")
        self.delta = None
        if isinstance(evict, Delta):
            self.delta = DeltaColumn(evict, self.type_of(evict.attribute))
            self.ledger.set_dtype("ref", self.delta.dtype)
        self.functions = functions_of(window._factory, schema)

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch; `commit` makes it so."""
        inputs = Inputs(batch)
        grouped = self.grouped(batch)
        columns = Sorted(inputs, grouped.order)
        pieces, references = self._pieces(grouped, columns)
        folded = []
        for each in self.functions:
            each.grow(self.ledger.size)
            folded.append(each.fold(columns.read(each.attribute), pieces))
        values = [result for result, _ in folded]
        self.pending = (grouped, pieces, references, [later for _, later in folded])
        return Firings(self.keys, pieces.fired_ids, pieces.fired_sizes, values, pieces.rows)

    def _pieces(self, grouped: Grouped, columns: Sorted) -> tuple[Pieces, Any]:
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
        grouped, pieces, references, later = self.pending
        ledger, touched = self.ledger, grouped.touched
        open_ids = pieces.ids[pieces.stays]
        for each, state in zip(self.functions, later, strict=True):
            each.commit(open_ids, state)
        ledger.n[touched] = 0
        ledger.n[open_ids] = pieces.sizes[pieces.stays]
        if self.delta is None:
            self.left += int(pieces.fired_sizes.sum())
            ledger.alive[touched] = False
            ledger.alive[open_ids] = True
            fresh = np.setdiff1d(pieces.stays, pieces.joins, assume_unique=True)
        else:
            np.add.at(ledger.taken, pieces.fired_ids, pieces.fired_sizes)
            ledger.ref[touched], ledger.known[touched] = references, True
            heads = np.searchsorted(pieces.starts, grouped.starts[:-1])
            fresh = heads[~ledger.alive[touched]]
            ledger.alive[touched] = True
        ledger.born[pieces.ids[fresh]] = self.seen_rows + grouped.rows(pieces.starts[fresh])
        self.used(grouped)
        self.pending = None

    def flush_all(self) -> Firings:
        """Flush every partition, in order of storage: a punctuation, or a tick."""
        ids = self.stored()
        sizes = self.ledger.n[ids]
        values = [each.carried(ids, sizes) for each in self.functions]
        self.pending = ids
        return Firings(self.keys, ids, sizes, values, np.zeros(len(ids), np.intp))

    def commit_flush(self) -> None:
        """All partitions have been flushed."""
        ids, ledger = self.pending, self.ledger
        self.left += int(ledger.n[ids].sum())
        for each in self.functions:
            each.forget(ids)
        ledger.n[ids], ledger.alive[ids] = 0, False
        self.pending = None

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over what the event engine holds."""
        ids, ledger = self.adopted(parts), self.ledger
        sizes = np.array([part["n"] for part in parts], np.intp)
        ledger.n[ids] = sizes
        held = sizes > 0
        saved = [part["summary"][0][1] for part in parts if part["n"]]
        for i, each in enumerate(self.functions):
            each.grow(ledger.size)
            each.load(ids[held], [row[i] for row in saved], sizes[held])
        if self.delta is not None:
            known = np.array([bool(part["ref"]) for part in parts], bool)
            values = [part["ref"][0] for part in parts if part["ref"]]
            ledger.ref[ids[known]] = self.delta.load(values) if values else NONE
            ledger.known[ids] = known

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """What the event engine needs to go on with these partitions."""
        sizes = self.ledger.n[ids]
        parts = self.common(ids)
        saved = [each.save(ids, sizes) for each in self.functions]
        for i, (part, n) in enumerate(zip(parts, sizes.tolist(), strict=True)):
            part["n"], part["summary"] = n, [[n, [places[i] for places in saved]]]
        if self.delta is not None:
            for part, ref in zip(parts, self.delta.python(self.ledger.ref[ids]), strict=True):
                part["ref"] = [ref]
        return parts
