"""Sliding windows over batches, with the rows they keep: every trigger is an extent of rows.

The layout holds, partition by partition, the rows that are kept and then the new ones:

    kept a1 a2 | new a3 a4 a5 | kept b1 | new b2 b3 ...
    trigger at a4, Count(3):  [a2, a5)       delta triggers look before the tuple is in: [.., a4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.deltas import DeltaColumn
from windowlib.columnar.firings import Firings, reordered
from windowlib.columnar.functions import empty_batch, functions_of
from windowlib.columnar.groups import Groups, group_keys, over_groups
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import Grouped, Places, fired_in_order
from windowlib.columnar.primitives import chain, oldest_within, ranges
from windowlib.columnar.rows import Rows, RowsEngine
from windowlib.policies import Count, Delta, Time

if TYPE_CHECKING:
    from windowlib.sliding import SlidingWindow

OVERLAP = 64
"""Rows looked at for each row there is, from which on some functions are better kept up to date."""


class SlidingEngine(RowsEngine):
    """A sliding window that keeps its tuples."""

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, count=0, ref=0, known=False, full=False)
        evict, every = window.spec.evict, window.spec.every
        if isinstance(evict, Time) or isinstance(every, Time):
            raise Decline(f"{evict if isinstance(evict, Time) else every} runs on the clock")
        self.evict_delta = self._delta(evict)
        self.trigger_delta = self._delta(every)
        if self.trigger_delta is not None:
            self.ledger.set_dtype("ref", self.trigger_delta.dtype)
        self.size = evict.size if isinstance(evict, Count) else 0
        self.every = every.size if isinstance(every, Count) else 0
        if not (self.size or self.evict_delta) or not (self.every or self.trigger_delta):
            raise Decline("a count of 0")
        plan = window._factory
        each = getattr(plan, "each", plan)
        self.functions = [] if plan is None else functions_of(each, schema)
        self.groups = None if each is plan else group_keys(plan.group_by, self.type_of)  # type: ignore[union-attr]
        self.keep(self._names(schema))

    def _delta(self, policy: Any) -> DeltaColumn | None:
        if not isinstance(policy, Delta):
            return None
        return DeltaColumn(policy, self.type_of(policy.attribute))

    def _names(self, schema: pa.Schema) -> list[str]:
        """The columns that have to be kept: those that are read again."""
        if not self.functions:
            return list(schema.names)
        inputs = Inputs(empty_batch(schema))
        deltas = [each.policy.attribute for each in (self.evict_delta, self.trigger_delta) if each]
        names = self.groups.names if self.groups else ()
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
        places, references = self._triggers(grouped, rows, marks)
        number = rows.partition(places)
        lo, hi, full = self._extents(grouped, rows, age, places, number)
        if not self.partial:
            places, number, lo, hi = (each[full] for each in (places, number, lo, hi))
        new = places - rows.fresh[number] + grouped.starts[:-1][number]
        order, cause = fired_in_order(grouped.rows(new), grouped)
        self._worth(int((hi - lo).sum()), int(rows.ends[-1]))
        found, groups = [], None
        if self.groups is None:
            found = [
                reordered(each.over(inputs.read(each.attribute), lo, hi), order)
                for each in self.functions
            ]
        lo, hi, number = lo[order], hi[order], number[order]
        if self.groups is not None:
            groups = self._grouped(self.groups, inputs, lo, hi)
        self.pending = (grouped, rows, age, references)
        ids = grouped.touched[number]
        return Firings(self.keys, ids, hi - lo, found, cause, groups, lo, hi, content=rows)

    def _grouped(self, keys: Keys, inputs: Inputs, lo: Places, hi: Places) -> Groups:
        codes = keys.encode([inputs.arrow(name) for name in keys.names])
        columns = [inputs.read(each.attribute) for each in self.functions]
        return over_groups(self.functions, keys, codes, columns, lo, hi)

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
        if self.evict_delta is None:
            lo = np.maximum(rows.ends - self.size, rows.base)
        else:
            last = rows.ends - 1
            limit = self.evict_delta.threshold
            lo = oldest_within(age, rows.base, last, age[last], limit)
            ledger.full[touched] |= lo > rows.base
        kept = rows.ends - lo
        places = ranges(lo, kept)
        self.store.put(touched, rows.part(places), kept)
        if self.every > 1:
            ledger.count[touched] = (ledger.count[touched] + grouped.lengths) % self.every
        if references is not None:
            ledger.ref[touched], ledger.known[touched] = references, True
        fresh = ~ledger.alive[touched]
        ledger.born[touched[fresh]] = self.seen_rows + grouped.rows(grouped.starts[:-1][fresh])
        ledger.alive[touched] = True
        ledger.taken[touched] += grouped.lengths
        self.used(grouped)
        self.pending = None

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over tuples and trigger state."""
        if any(part["rough"] for part in parts):
            raise Decline("values have gone backwards")
        ids, ledger = self.adopted(parts), self.ledger
        self.load_rows(ids, parts)
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
        for i, part in enumerate(parts):
            part["count"] = int(ledger.count[ids[i]])
            part["full"] = bool(ledger.full[ids[i]]) or bool(size and part["taken"] >= size)
            if self.evict_delta is not None:
                part["newest"] = [part["data"][-1][self.evict_delta.policy.attribute]]
            part["ref"] = [] if refs is None else [refs[i]]
        return parts
