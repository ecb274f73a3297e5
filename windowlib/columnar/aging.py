"""Sliding windows over batches that time evicts from: beside each row stands when it arrived.

A row leaves when its age exceeds the period. What has left may stay in the store until its
partition gets new rows; it is looked past wherever rows are read. A partition without rows leaves
storage, and sleeps: what its trigger and its fullness know is there when it comes back.

    period 10 | a at 0, 4, 30 | triggers at 4: [0, 4], at 30: [30], after a has slept from 15 on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.pieces import Grouped, Places
from windowlib.columnar.primitives import oldest_within
from windowlib.columnar.rows import WORTH, Rows
from windowlib.columnar.sliding import SlidingEngine
from windowlib.columnar.stamps import HUGE, Stamps
from windowlib.policies import Time

if TYPE_CHECKING:
    from windowlib.sliding import SlidingWindow


class AgingEngine(SlidingEngine):
    """A sliding window with time eviction."""

    form = "aging"
    worth = 4 * WORTH  # row by row it has to look at the clock, too

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema, newest=0, sleeps=False, returning=False)
        assert isinstance(window.spec.evict, Time)
        self.period = min(window.spec.evict.micros, HUGE)

    def keep(self, names: list[str], *more: Column) -> None:
        """The arrival of each row is kept with it."""
        super().keep(names, _stamps([]))

    def more(self, rows: int) -> list[Column]:
        """When the rows of the batch arrive."""
        arrivals = np.full(rows, self.until) if self.arrivals is None else self.arrivals
        return [_stamps(arrivals)]

    # -- batches ----------------------------------------------------------------------------------

    def _values(self, inputs: Inputs, rows: Rows) -> tuple[Any, Any]:
        """Eviction looks at arrivals."""
        _, marks = super()._values(inputs, rows)
        return rows.last().data, marks

    def _extents(
        self, grouped: Grouped, rows: Rows, age: Any, places: Places, number: Places
    ) -> tuple[Places, Places, Any]:
        """What is young enough when each trigger looks; such windows count as full."""
        hi = places if self.trigger_delta else places + 1
        lo = oldest_within(age, rows.base[number], hi, age[places], self.period)
        return lo, hi, np.ones(len(lo), bool)

    def _held(
        self, grouped: Grouped, rows: Rows, age: Any, number: Places, hi: Places, times: Stamps
    ) -> tuple[Places, Any]:
        """What is young enough at some ticks."""
        lo = oldest_within(age, rows.base[number], hi, times, self.period)
        return lo, hi > lo

    def _births(self, grouped: Grouped, rows: Rows, age: Any, number: Places, hi: Places) -> Places:
        """With which row partitions have last entered storage, at some ticks."""
        entry = self._entries(rows, age, hi)
        new = np.maximum(entry - (rows.fresh - grouped.starts[:-1])[number], 0)
        old = entry < rows.fresh[number]
        births = self.seen_rows + grouped.rows(new)
        return np.where(old, self.ledger.born[grouped.touched][number], births)

    def _entries(self, rows: Rows, age: Any, places: Places) -> Places:
        """The rows before some places that found their partitions empty."""
        begins = np.diff(age, prepend=age[0]) > self.period
        begins[rows.base] = True  # of those that hold rows, not a new one
        entries = np.flatnonzero(begins)
        found: Places = entries[np.searchsorted(entries, places) - 1]
        return found

    def _oldest(self, grouped: Grouped, rows: Rows, age: Any) -> Places:
        """What is young enough when the last row of the batch has arrived."""
        until = np.full(len(rows.ends), self.until)
        return oldest_within(age, rows.base, rows.ends, until, self.period)

    def _enter(self, grouped: Grouped, rows: Rows, age: Any) -> None:
        """Partitions enter storage with a row that finds them empty, perhaps several times."""
        ledger, touched = self.ledger, grouped.touched
        entry = self._entries(rows, age, rows.ends)
        new, was = entry >= rows.fresh, ledger.alive[touched]
        before, earlier = ledger.taken[touched], entry - rows.fresh
        self.left += int((before + earlier)[new].sum())
        ledger.taken[touched] = np.where(new, rows.ends - entry, before + grouped.lengths)
        ledger.returning[touched] |= new & (was | (earlier > 0))
        rows_of = grouped.rows((grouped.starts[:-1] + earlier)[new])
        ledger.born[touched[new]] = self.seen_rows + rows_of
        ledger.newest[touched] = age[rows.ends - 1]
        ledger.alive[touched] = ledger.full[touched] = True
        ledger.sleeps[touched] = False

    # -- time -------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Partitions without rows leave storage."""
        super().advance(now)
        ledger = self.ledger
        ids = np.flatnonzero(ledger.alive & (now - ledger.newest > self.period))
        if len(ids):
            self.left += int(ledger.taken[ids].sum())
            ledger.taken[ids], ledger.alive[ids] = 0, False
            ledger.sleeps[ids] = ledger.returning[ids] = True
            self.store.drop(ids)

    def due(self) -> int | None:
        """When the oldest row is too old."""
        columns, _ = self.kept(np.flatnonzero(self.ledger.alive))
        stamps = columns[-1].data
        return int(stamps.min()) + self.period + 1 if len(stamps) else None

    def gone(self) -> int:
        """Rows that are too old, too, though they may still be in the store."""
        places = self.store.places(np.flatnonzero(self.ledger.alive))
        old = self.now - self.store.whole(-1).data[places] > self.period
        return super().gone() + int(old.sum())

    def kept(self, ids: Places) -> tuple[list[Column], Places]:
        """The rows that are young enough."""
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
        """When the tuples arrived."""
        return [_stamps([stamp for part in parts for stamp in part["stamps"]])]

    def load_asleep(self, parts: list[dict[str, Any]]) -> None:
        """Take over what sleeping partitions remember; they sleep in this order."""
        seen = self.seen_rows
        ids, ledger = self.adopted(parts), self.ledger
        self.seen_rows = seen
        self.store.grow(ledger.size)
        ledger.alive[ids], ledger.sleeps[ids] = False, True
        self._load_triggers(ids, parts)

    def asleep(self) -> Places:
        """In the order in which they fell asleep: the first to empty, by storage at one instant."""
        ids = np.flatnonzero(self.ledger.sleeps)
        return ids[np.lexsort((self.ledger.born[ids], self.ledger.newest[ids]))]

    def remembered(self) -> Places:
        """Those that hold rows, and those that sleep."""
        return np.flatnonzero(self.ledger.alive | self.ledger.sleeps)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples, arrivals and trigger state, the way the event engine saves them."""
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
