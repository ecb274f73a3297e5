"""Sliding windows over batches, with the rows they keep: every trigger is an extent of rows.

The layout holds, partition by partition, the rows that are kept and then the new ones:

    kept a1 a2 | new a3 a4 a5 | kept b1 | new b2 b3 ...
    trigger at a4, Count(3):  [a2, a5)       delta triggers look before the tuple is in: [.., a4)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.attributes import Getter
from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.deltas import DeltaColumn
from windowlib.columnar.engine import Engine
from windowlib.columnar.firings import Firings
from windowlib.columnar.functions import empty_batch, functions_of
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.pieces import Grouped, Places, fired_in_order
from windowlib.columnar.primitives import chain, oldest_within, ranges
from windowlib.columnar.store import ROOM, Store
from windowlib.policies import Count, Delta, Time

if TYPE_CHECKING:
    from windowlib.sliding import SlidingWindow

WORTH = 32
"""Kept rows for each new one from which on moving them costs more than array arithmetic gains."""
OVERLAP = 64
"""Rows looked at for each row there is, from which on some functions are better kept up to date."""


@dataclass(slots=True)
class Rows:
    """The kept and new rows of the touched partitions, side by side."""

    columns: list[Column]
    """The columns that are read, in the order of the layout."""
    base: Places
    """Where each partition begins."""
    fresh: Places
    """Where its new rows begin."""
    ends: Places
    """Where it ends."""

    def partition(self, places: Places) -> Places:
        """The number of the partition that each place is in."""
        return np.searchsorted(self.base, places, "right") - 1


class SlidingEngine(Engine):
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
        self.functions = functions_of(window._factory, schema)
        self.names = self._names(schema)
        empty = [Column.of(pa.array([], self.type_of(name))) for name in self.names]
        self.store = Store(empty)

    def _delta(self, policy: Any) -> DeltaColumn | None:
        if not isinstance(policy, Delta):
            return None
        return DeltaColumn(policy, self.type_of(policy.attribute))

    def _names(self, schema: pa.Schema) -> list[str]:
        """The columns that have to be kept: those that are read again."""
        inputs = Inputs(empty_batch(schema))
        deltas = [each.policy.attribute for each in (self.evict_delta, self.trigger_delta) if each]
        for attribute in (*deltas, *(each.attribute for each in self.functions)):
            inputs.read(attribute)
        return list(inputs.asked)

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All triggers of a batch; `commit` makes it so."""
        grouped = self.grouped(batch)
        self.store.grow(self.ledger.size)
        rows = self._rows(batch, grouped)
        inputs = Inputs(dict(zip(self.names, rows.columns, strict=True)))
        age, marks = self._values(inputs, rows)
        places, references = self._triggers(grouped, rows, marks)
        number = rows.partition(places)
        lo, hi, full = self._extents(grouped, rows, age, places, number)
        if not self.partial:
            places, number, lo, hi = (each[full] for each in (places, number, lo, hi))
        new = places - rows.fresh[number] + grouped.starts[:-1][number]
        order, cause = fired_in_order(grouped.rows(new), grouped)
        lo, hi, number = lo[order], hi[order], number[order]
        self._worth(int((hi - lo).sum()), int(rows.ends[-1]))
        found = [each.over(inputs.read(each.attribute), lo, hi) for each in self.functions]
        self.pending = (grouped, rows, age, references)
        return Firings(self.keys, grouped.touched[number], hi - lo, found, cause)

    def _worth(self, covered: int, rows: int) -> None:
        if covered > OVERLAP * rows and not all(each.overlaps for each in self.functions):
            raise Decline("windows overlap so much that they are better kept up to date")

    def _rows(self, batch: pa.RecordBatch, grouped: Grouped) -> Rows:
        """The rows of the touched partitions: those that are kept, then the new ones."""
        kept, held = self.store.take(grouped.touched)
        total, new = int(held.sum()), grouped.lengths
        if total > WORTH * batch.num_rows + ROOM:
            raise Decline("windows that are long against the batch are better kept row by row")
        both = held + new
        ends = np.cumsum(both)
        base = ends - both
        columns = [Column.of(batch.column(self.schema.get_field_index(n))) for n in self.names]
        if total:
            columns = [Column.concat([a, b]) for a, b in zip(kept, columns, strict=True)]
        if grouped.order is not None:
            place = np.empty(int(ends[-1]), np.intp)
            place[ranges(base, held)] = np.arange(total)
            place[ranges(base + held, new)] = total + grouped.order
            columns = [column.take(place) for column in columns]
        return Rows(columns, base, base + held, ends)

    def _values(self, inputs: Inputs, rows: Rows) -> tuple[Any, Any]:
        """The values that eviction looks at, and those that the trigger looks at."""
        found = []
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
        self.store.put(touched, [column.take(places) for column in rows.columns], kept)
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

    def held(self) -> int:
        """How many tuples are kept."""
        return int(self.store.lengths.sum())

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over tuples and trigger state."""
        if any(part["rough"] for part in parts):
            raise Decline("values have gone backwards")
        ids, ledger = self.adopted(parts), self.ledger
        self.store.grow(ledger.size)
        tuples = [tuple_ for part in parts for tuple_ in part["data"]]
        columns = [self._read(name, tuples) for name in self.names]
        lengths = np.array([len(part["data"]) for part in parts], np.intp)
        self.store.put(ids, columns, lengths)
        ledger.count[ids] = [part["count"] for part in parts]
        ledger.full[ids] = [part["full"] for part in parts]
        if self.trigger_delta is not None:
            known = np.array([bool(part["ref"]) for part in parts], bool)
            values = [part["ref"][0] for part in parts if part["ref"]]
            ledger.known[ids] = known
            if values:
                ledger.ref[ids[known]] = self.trigger_delta.load(values)

    def _read(self, name: str, tuples: list[Any]) -> Column:
        get = Getter(name, name)
        return Column.from_values([get(tuple_) for tuple_ in tuples], self.type_of(name))

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples and trigger state, the way the event engine saves them."""
        ledger, parts = self.ledger, self.common(ids)
        columns, lengths = self.store.take(ids)
        tuples = _dicts(self.names, columns, int(lengths.sum()))
        ends = np.cumsum(lengths).tolist()
        size = self.size
        newest = None
        if self.evict_delta is not None and len(ids):
            at = self.names.index(str(self.evict_delta.policy.attribute))
            newest = columns[at].take(np.cumsum(lengths) - 1).arrow().to_pylist()
        refs = None
        if self.trigger_delta is not None:
            refs = self.trigger_delta.python(ledger.ref[ids])
        for i, part in enumerate(parts):
            part["data"] = tuples[ends[i] - int(lengths[i]) : ends[i]]
            part["count"] = int(ledger.count[ids[i]])
            part["full"] = bool(ledger.full[ids[i]]) or bool(size and part["taken"] >= size)
            part["newest"] = [] if newest is None else [newest[i]]
            part["ref"] = [] if refs is None else [refs[i]]
        return parts


def _dicts(names: list[str], columns: list[Column], size: int) -> list[dict[str, Any]]:
    """Rows as dicts."""
    if not names:
        return [{} for _ in range(size)]
    lists = [column.arrow().to_pylist() for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]
