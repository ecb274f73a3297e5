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

from windowlib.columnar.closings import at_ticks, with_others
from windowlib.columnar.decline import Decline
from windowlib.columnar.deltas import DeltaColumn
from windowlib.columnar.dumps import whole
from windowlib.columnar.firings import Firings, reordered, spread
from windowlib.columnar.functions import empty_batch, functions_of
from windowlib.columnar.groups import Groups, group_keys, over_groups
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import NONE, Grouped, Places, fired_in_order
from windowlib.columnar.primitives import chain, oldest_within, ranges
from windowlib.columnar.rows import Rows, RowsEngine
from windowlib.columnar.stamps import Stamps
from windowlib.columnar.store import ROOM
from windowlib.policies import Count, Delta

if TYPE_CHECKING:
    from windowlib.sliding import SlidingWindow

OVERLAP = 64
"""Rows looked at for each row there is, from which on some functions are better kept up to date."""


class SlidingEngine(RowsEngine):
    """A sliding window that keeps its tuples."""

    way = "extents of kept rows"
    form = "sliding"

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema, **more: Any) -> None:
        super().__init__(window, schema, count=0, ref=0, known=False, full=False, **more)
        evict, every = window.spec.evict, window.spec.every
        self.evict_delta = self._delta(evict)
        self.trigger_delta = self._delta(every)
        if self.trigger_delta is not None:
            self.ledger.set_dtype("ref", self.trigger_delta.dtype)
        self.size = evict.size if isinstance(evict, Count) else 0
        self.every = every.size if isinstance(every, Count) else 0
        if Count(0) in (evict, every):
            raise Decline("a count of 0")
        plan = window._factory
        each = getattr(plan, "each", plan)
        self.functions = [] if plan is None else functions_of(each, schema)
        self.groups = None if each is plan else group_keys(plan.group_by, self.type_of)  # type: ignore[union-attr]
        self.since_tick = 0  # how many rows have come since the clock last fired all partitions
        self.reads_some = bool(self.functions) and window._consumer is not None
        self.keep(self._names(schema))

    def _delta(self, policy: Any) -> DeltaColumn | None:
        if not isinstance(policy, Delta):
            return None
        return DeltaColumn(policy, self.type_of(policy.attribute))

    def _names(self, schema: pa.Schema) -> list[str]:
        """The columns that have to be kept: those that are read again, by us or by users."""
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
        """All triggers of a batch; `commit` makes it so."""
        grouped = self.grouped(batch)
        rows = self.rows(batch, grouped)
        inputs = Inputs(rows)
        age, marks = self._values(inputs, rows)
        if self.ticks:
            self.pending = (grouped, rows, age, None)
            return self._ticked(grouped, rows, inputs, age)
        places, references = self._triggers(grouped, rows, marks)
        number = rows.partition(places)
        lo, hi, full = self._extents(grouped, rows, age, places, number)
        if not self.partial:
            places, number, lo, hi = (each[full] for each in (places, number, lo, hi))
        new = places - rows.fresh[number] + grouped.starts[:-1][number]
        order, cause = fired_in_order(grouped.rows(new), grouped)
        self._worth(int((hi - lo).sum()), int(rows.ends[-1]))
        self.pending = (grouped, rows, age, references)
        return self._firings(grouped.touched[number], rows, inputs, lo, hi, order, cause)

    def _firings(
        self,
        ids: Places,
        rows: Rows,
        inputs: Inputs,
        lo: Places,
        hi: Places,
        order: Places | slice,
        cause: Places,
    ) -> Firings:
        """Firings over extents of rows, which are then put in order."""
        found, groups = [], None
        if self.groups is None:
            found = [reordered(each, order) for each in self._results(inputs, lo, hi)]
        ids, lo, hi = ids[order], lo[order], hi[order]
        if self.groups is not None:
            groups = self._grouped(self.groups, inputs, lo, hi)
        return Firings(self.keys, ids, hi - lo, found, cause, groups, lo, hi, content=rows)

    def _grouped(self, keys: Keys, inputs: Inputs, lo: Places, hi: Places) -> Groups:
        codes = keys.encode([inputs.arrow(name) for name in keys.names])
        columns = [inputs.read(each.attribute) for each in self.functions]
        return over_groups(self.functions, keys, codes, columns, lo, hi)

    def grouped(self, batch: pa.RecordBatch) -> Grouped:
        """The batch by partition; at a tick, with all partitions in it."""
        found = super().grouped(batch)
        return with_others(found, np.flatnonzero(self.ledger.alive)) if self.ticks else found

    def _ticked(self, grouped: Grouped, rows: Rows, inputs: Inputs, age: Any) -> Firings:
        """The triggers of a batch in which the clock ticks: each for all partitions in storage."""
        behind = np.searchsorted(self.passed, np.arange(1, self.ticks + 1))
        number, tick, hi = at_ticks(grouped, behind)
        hi += (rows.fresh - grouped.starts[:-1])[number]
        there = hi > rows.base[number]
        number, tick, hi = number[there], tick[there], hi[there]
        times = self.tick_times()[tick]
        lo, full = self._held(grouped, rows, age, number, hi, times)
        full = (full | self.partial) & (hi > lo)
        born = self._births(grouped, rows, age, number, hi)
        number, tick, times, lo, hi, born = (
            each[full] for each in (number, tick, times, lo, hi, born)
        )
        order = np.lexsort((born, tick))
        self.fired_at = times[order]
        self._worth(int((hi - lo).sum()), int(rows.ends[-1]))
        ids, cause = grouped.touched[number], behind[tick[order]]
        return self._firings(ids, rows, inputs, lo, hi, order, cause)

    def _held(
        self, grouped: Grouped, rows: Rows, age: Any, number: Places, hi: Places, times: Stamps
    ) -> tuple[Places, Any]:
        """What partitions hold behind the rows before `hi`, and whether they have been full."""
        base = rows.base[number]
        if self.evict_delta is None:
            lo = np.maximum(hi - self.size, base)
            return lo, hi - lo >= self.size
        last, limit = hi - 1, self.evict_delta.threshold
        lo = oldest_within(age, base, last, age[last], limit)
        return lo, self.ledger.full[grouped.touched][number] | (lo > base)

    def _births(self, grouped: Grouped, rows: Rows, age: Any, number: Places, hi: Places) -> Places:
        """Since when partitions are in storage, at some ticks."""
        old = self.ledger.born[grouped.touched]
        first = np.minimum(grouped.starts[:-1], grouped.starts[-1] - 1)
        new = self.seen_rows + grouped.rows(first)
        born: Places = np.where(self.ledger.alive[grouped.touched], old, new)[number]
        return born

    def _results(self, inputs: Inputs, lo: Places, hi: Places) -> list[Any]:
        """The values of all functions; those of an empty extent are null."""
        some = hi > lo
        places = slice(None) if some.all() else some
        return [
            spread(each.over(inputs.read(each.attribute), lo[places], hi[places]), some)
            for each in self.functions
            if len(lo)
        ]

    def _worth(self, covered: int, rows: int) -> None:
        if covered > OVERLAP * rows and not all(each.overlaps for each in self.functions):
            raise Decline("windows overlap so much that they are better kept up to date")

    def _values(self, inputs: Inputs, rows: Rows) -> tuple[Any, Any]:
        """The values that eviction looks at, and those that the trigger looks at."""
        found: list[Any] = []
        for delta in (self.evict_delta, self.trigger_delta):
            if delta is None:
                found.append(None)
                continue
            values = delta.read(inputs.named(str(delta.policy.attribute)))
            delta.ordered(values, np.append(rows.base, rows.ends[-1]))
            found.append(values)
        return found[0], found[1]

    def _triggers(self, grouped: Grouped, rows: Rows, marks: Any) -> tuple[Places, Any]:
        """The places of the rows that trigger, and what delta triggers measure from then on."""
        ledger, touched = self.ledger, grouped.touched
        if not self.every and self.trigger_delta is None:  # the clock triggers
            return NONE, None
        if self.trigger_delta is None:
            counted = ledger.count[touched]
            fires = (counted + rows.ends - rows.fresh) // self.every
            first = rows.fresh - counted + self.every - 1
            return np.repeat(first, fires) + ranges(np.zeros_like(fires), fires) * self.every, None
        limit = self.trigger_delta.threshold
        known, reference = ledger.known[touched], ledger.ref[touched]
        return chain(marks, rows.fresh, rows.ends, reference, known, limit)

    def _extents(
        self, grouped: Grouped, rows: Rows, age: Any, places: Places, number: Places
    ) -> tuple[Places, Places, Any]:
        """What each trigger looks at, and whether its window has been full by then."""
        base = rows.base[number]
        hi = places if self.trigger_delta else places + 1
        if self.evict_delta is None:
            lo = np.maximum(hi - self.size, base)
            return lo, hi, hi - lo >= self.size
        limit, full = self.evict_delta.threshold, self.ledger.full[grouped.touched][number]
        after = oldest_within(age, base, places, age[places], limit)
        if self.trigger_delta is None:
            return after, hi, full | (after > base)
        # The window is as the tuple before has left it; this one says whether it is full.
        lo = oldest_within(age, base, hi - 1, age[hi - 1], limit)
        return lo, hi, full | (after > base)

    def commit(self) -> None:
        """The batch has been taken: remember what the windows hold."""
        grouped, rows, age, references = self.pending
        ledger, touched = self.ledger, grouped.touched
        lo = self._oldest(grouped, rows, age)
        kept = rows.ends - lo
        self.hold(touched, rows, ranges(lo, kept), kept)
        if self.every > 1:
            ledger.count[touched] = (ledger.count[touched] + grouped.lengths) % self.every
        if references is not None:
            ledger.ref[touched], ledger.known[touched] = references, True
        self._enter(grouped, rows, age)
        self.since_tick += int(grouped.starts[-1])
        self.used(grouped)
        self.pending = None

    def _oldest(self, grouped: Grouped, rows: Rows, age: Any) -> Places:
        """The oldest row that each partition keeps."""
        if self.evict_delta is None:
            return np.maximum(rows.ends - self.size, rows.base)
        last, limit = rows.ends - 1, self.evict_delta.threshold
        lo = oldest_within(age, rows.base, last, age[last], limit)
        self.ledger.full[grouped.touched] |= lo > rows.base
        return lo

    def _enter(self, grouped: Grouped, rows: Rows, age: Any) -> None:
        """The partitions of the batch are in storage."""
        ledger, touched = self.ledger, grouped.touched
        fresh = ~ledger.alive[touched]
        ledger.born[touched[fresh]] = self.seen_rows + grouped.rows(grouped.starts[:-1][fresh])
        ledger.alive[touched] = True
        ledger.taken[touched] += grouped.lengths

    # -- time -------------------------------------------------------------------------------------

    def fire_all(self) -> Firings:
        """Every partition triggers, in order of storage."""
        ids = self.stored()
        self._worth_reading(ids)
        columns, lengths = self.kept(ids)
        rows, hi = Rows(self.names, columns, None), np.cumsum(lengths)
        lo = hi - lengths
        if not self.partial:
            full = self.ledger.full[ids] if self.evict_delta else lengths >= self.size
            ids, lo, hi = ids[full], lo[full], hi[full]
        return self._firings(ids, rows, Inputs(rows), lo, hi, slice(None), np.arange(len(ids)))

    def _worth_reading(self, ids: Places) -> None:
        """Refuse to read very many rows again and again; what is kept up to date is not read."""
        held = int(self.store.lengths[ids].sum())
        if held > OVERLAP * (self.since_tick + len(ids)) + ROOM:
            raise Decline("windows that are long against what comes between two ticks")

    def commit_all(self) -> None:
        """Every partition has triggered, and is as it was."""
        self.since_tick = 0

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over tuples and trigger state."""
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
        """Tuples and trigger state, the way the event engine saves them."""
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
        """Take over rows."""
        super().load_content(ids, state)
        self.since_tick = whole(state["since_tick"], "rows since the last tick")
