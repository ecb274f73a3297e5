"""The emitter of a farm: numbers tuples, and says which of them each window holds.

It runs the window of the operator, with all its policies, over a few columns: the key, the
attributes of delta policies, and two numbers of each tuple. `AT` is the number of its row among all
rows, as they are stored: a chunk holds the tuples of one partition next to each other, so that a
window is few runs. `INDEX` counts the tuples of a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.arrays.partition_keys import AnyKeys
from windowlib.columnar.arrays.physical import gather_rows
from windowlib.columnar.arrays.stamps import Stamps
from windowlib.columnar.primitives import Array, group
from windowlib.errors import FarmError
from windowlib.farms.chunks import RowRange, row_ranges
from windowlib.farms.evaluator import EventMoment, Moment
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import Operator
from windowlib.runtime.splitting import names_in
from windowlib.spec.specification import Sliding, Spec, Tumbling
from windowlib.window.consumer import Consumer
from windowlib.window.event_time import EventTimeWindow

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings

AT, INDEX, TIME = "_at", "_index", "_time"
NO_ROWS: Array = np.empty(0, np.int64)


@dataclass(slots=True, eq=False)
class StoredFiring:
    """A window that fires: its partition, its tuples and when."""

    key: Any
    lo: int
    """The tuples of the window among those of its partition: `[lo, hi)`."""
    hi: int
    at: Array | None
    """The numbers of their rows; None if they follow `begin` without a gap."""
    now: Moment
    empty: bool = False
    """A punctuation came, and there was no tuple: nothing fires, but its handler is called."""
    number: int = 0
    """How many windows of this partition fired before it."""
    begin: int = 0
    """The number of the first row, if `at` does not say it."""
    slices: Sequence[tuple[int, int]] = ()
    """Of a window of event time: the slices it is made of, each with its id and its size."""
    settled: int = 0
    """How many of its tuples, the first ones, all later windows of the partition begin with."""
    gaps: bool = False
    """Tuples have left from its middle: `lo` and `hi` do not tell what others have in common."""
    late: bool = False
    """A row came after its windows of event time were closed: it goes to the output late."""

    def runs(self, lo: int | None = None, hi: int | None = None) -> list[RowRange]:
        """The rows of the window, or of a part of it."""
        lo, hi = self.lo if lo is None else lo, self.hi if hi is None else hi
        if self.at is None:
            start = self.begin - self.lo
            return [(start + lo, start + hi)] if lo < hi else []
        return row_ranges(self.at[lo - self.lo : hi - self.lo])

    @property
    def oldest(self) -> int | None:
        """The lowest number of a row of the window; None if it is empty."""
        if self.lo == self.hi:
            return None
        return self.begin if self.at is None else int(self.at.min())


class Emitter(Operator):
    """The window of an operator, without the operator: `fired` has what has fired.

    Args:
        window: the window.
        partial: whether windows that were never full count.
        at_end: whether what a tumbling window holds fires when the input ends.
    """

    model = OperatorModel(windows=[Tumbling, Sliding])

    def __init__(self, window: Spec, partial: bool = True, at_end: bool = False) -> None:
        super().__init__(window)
        self.partial, self.at_end = partial, at_end
        self.fired: list[StoredFiring] = []
        self._fired_counts: dict[Any, int] = {}
        self._settled: dict[Any, Array] = {}  # of landmark windows, the rows that stay
        self._event_rows = 0
        if isinstance(window, Sliding) and window.evict.delta is not None and not partial:
            # A delta window knows that it is full in time for its trigger only if asked.
            self.__dict__["on_initial_full"] = lambda window, key: None

    def consumer(self, port: int) -> Consumer:
        """Whole batches are read at once; windows of event time one by one, with their bounds."""
        (spec,) = self.windows
        if spec is not None and spec.event_time:
            return Consumer(partial=self.partial)
        return Consumer(self._consume, partial=self.partial)

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        at, index = (_column_numbers(firings.content[name]) for name in (AT, INDEX))
        keys, los, his = firings.python_keys(), firings.lo.tolist(), firings.hi.tolist()
        now = window.state.now
        times = [now] * len(keys) if firings.times is None else firings.times.tolist()
        firsts, begins = _first_rows(firings, at, index)
        numbers, fired = self._fired_counts, self.fired
        for key, lo, hi, time, first, begin in zip(
            keys, los, his, times, firsts, begins, strict=True
        ):
            number = numbers.get(key, 0)
            numbers[key] = number + 1
            own = at[lo:hi] if begin < 0 else None
            fired.append(StoredFiring(key, first, first + hi - lo, own, time, False, number, begin))

    def on_trigger(self, window: Any, key: Any) -> None:
        """A sliding window fires, unless it is partial and those are skipped."""
        # Windows of time count as full from the start, also before there is anything in them.
        if self.partial or window.spec.full_from_start or window.full(key):
            self._record(window, key)

    def before_flush(self, window: Any, key: Any) -> None:
        """A tumbling window fires."""
        self._record(window, key)

    def on_empty_punctuation(self, window: Any) -> None:
        """A punctuation came, and there was nothing to flush."""
        self.fired.append(StoredFiring(None, 0, 0, None, window.state.now, empty=True))

    def _record(self, window: Any, key: Any) -> None:
        if isinstance(window, EventTimeWindow):
            self._record_event_time(window, key)
            return
        rows, now = window[key], window.state.now
        first, at = rows[0][INDEX] if rows else 0, _row_numbers(rows)
        gaps = len(at) > 0 and rows[-1][INDEX] - first >= len(at)
        number, hi = self._firing_number(key), first + len(at)
        self.fired.append(StoredFiring(key, first, hi, at, now, False, number, gaps=gaps))

    def _firing_number(self, key: Any) -> int:
        """How many windows of a partition fired before this one, which is counted."""
        number = self._fired_counts.get(key, 0)
        self._fired_counts[key] = number + 1
        return number

    def _record_event_time(self, window: EventTimeWindow[Any, Any], key: Any) -> None:
        """A window of event time fires; the settled rows of a landmark window are read once."""
        known, settled = self._settled.get(key, NO_ROWS), window.settled(key)
        rows = window.rows_from(len(known), key)
        at = np.fromiter(map(itemgetter(AT), rows), np.int64, len(rows))
        if len(known):
            at = np.concatenate([known, at])
        if settled > len(known):
            self._settled[key] = at[:settled]
        moment = EventMoment(window.state.now, window.firing(key))
        self._add_event_rows(key, at, moment, slices=window.slices(key), settled=settled)

    def passed(self, key: Any, start: Mapping[int, int]) -> dict[int, Array]:
        """The numbers of rows of open windows of event time that the watermark has passed."""
        (window,) = self.containers
        assert isinstance(window, EventTimeWindow)
        return {
            which: np.fromiter(map(itemgetter(AT), rows), np.int64, len(rows))
            for which, rows in window.rows_behind_watermark(start, key).items()
        }

    def on_late(self, window: Any, tuple_: Any, key: Any) -> None:
        """Record a late row, which is sent on."""
        self._add_event_rows(key, np.array([tuple_[AT]]), window.state.now, late=True)

    def _add_event_rows(self, key: Any, at: Array, now: Moment, **more: Any) -> None:
        """Record rows of event time; they come in any order, so no two such windows share any."""
        lo = self._event_rows = self._event_rows + 1
        self._event_rows += len(at)
        number = self._firing_number(key)
        self.fired.append(StoredFiring(key, lo, lo + len(at), at, now, number=number, **more))

    def on_finish(self) -> None:
        """Fire what a tumbling window holds, with `at_end`."""
        super().on_finish()
        (window,) = self.containers
        assert window is not None
        for key in list(window.keys()) if self.at_end else []:
            if window.size(key):
                self._record(window, key)

    def needed(self) -> Array:
        """The numbers of all rows that the window holds, ascending."""
        (window,) = self.containers
        assert window is not None
        if isinstance(window, EventTimeWindow):
            return np.unique(np.array([row[AT] for row in window.all_rows()], np.int64))
        engine = None if window.state.batches is None else window.state.batches.engine_of(window)
        if engine is not None:
            columns, _ = engine.store.take(engine.stored())
            found = _column_numbers(columns[engine.names.index(AT)])
        else:
            keys = window.keys()
            found = np.array([row[AT] for key in keys for row in window[key]], np.int64)
        return np.sort(found)

    def snapshot(self) -> Any:
        """How many windows of each partition have fired."""
        return list(self._fired_counts.items())

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self._fired_counts = {one_key(key): number for key, number in state}
        self._settled = {}


def _first_rows(firings: Firings, at: Array, index: Array) -> tuple[list[int], list[int]]:
    """For each firing its first tuple, counted in its partition, and the number of that row.

    The number is -1 where the rows have gaps; both are 0 for a firing without rows.
    """
    some = firings.hi > firings.lo
    lo, last = np.where(some, firings.lo, 0), np.where(some, firings.hi - 1, 0)
    if not some.any():
        return [0] * len(some), [0] * len(some)
    begin = at[lo]
    whole = at[last] - begin == last - lo
    found = np.where(some, np.where(whole, begin, -1), 0)
    return np.where(some, index[lo], 0).tolist(), found.tolist()


def _row_numbers(rows: Any) -> Array:
    """The row numbers of tuples; they ascend, so the first and last may determine them."""
    if rows and (end := rows[-1][AT] + 1) - rows[0][AT] == len(rows):
        return np.arange(rows[0][AT], end)
    return np.fromiter(map(itemgetter(AT), rows), np.int64)


def _column_numbers(column: Any) -> Array:
    found: Array = column.arrow().to_numpy(zero_copy_only=False)
    return found


class StoredExtent(NamedTuple):
    """Tuples of one partition that came together: rows `[at, at + size)`."""

    key: Any
    first: int
    """How many tuples of the partition came before."""
    at: int
    size: int


class StoredBatch(NamedTuple):
    """How the rows of a batch are stored."""

    batch: pa.RecordBatch
    """The rows, those of one partition next to each other."""
    emitter_columns: pa.RecordBatch
    """The columns for the emitter, in the order in which the rows came."""
    ids: Array
    """The partition of each row, in that order, too."""
    order: Array | None
    """The row that is stored at each place; None: as they came."""


@dataclass(slots=True)
class RowNumbering:
    """Gives each tuple its numbers, and puts those of one partition together.

    >>> from windowlib import Count
    >>> numbering = RowNumbering(Tumbling(Count(2), by="k"))
    >>> layout = numbering.take(pa.record_batch({"k": ["b", "a", "b"]}), 10)
    >>> layout.batch.column("k").to_pylist(), layout.emitter_columns.column(AT).to_pylist()
    (['b', 'b', 'a'], [10, 12, 11])
    >>> [tuple(each) for each in numbering.extents(layout, 10, 3)]
    [('b', 0, 10, 2), ('a', 0, 12, 1)]
    """

    spec: Spec
    columns: tuple[str, ...] = field(init=False)
    keys: AnyKeys | None = field(init=False, default=None)
    counts: Array = field(init=False, default_factory=lambda: np.zeros(1, np.int64))
    """How many tuples of each partition have come."""

    def __post_init__(self) -> None:
        by = names_in(self.spec.by)
        axes = [each.attribute for each in self.spec.deltas]
        if self.spec.evict.event is not None:
            axes.append(self.spec.evict.event.attribute)
        if self.spec.watermark is not None and self.spec.watermark.sources is not None:
            axes.append(self.spec.watermark.sources)
        if by is None or not all(isinstance(each, str) for each in axes):
            what = "the timestamp" if self.spec.event_time else "a delta policy"
            msg = (
                f"farm({self.spec!r}): its key or {what} is a function, and the emitter of a farm "
                f"reads columns. Name a column, which a Functor before it can make."
            )
            raise FarmError(msg)
        self.columns = tuple(dict.fromkeys((*by, *map(str, axes))))
        if by:
            parts = self.spec.by if isinstance(self.spec.by, tuple) else (self.spec.by,)
            self.keys = AnyKeys(tuple(map(str, parts)), isinstance(self.spec.by, tuple))

    def take(self, batch: pa.RecordBatch, base: int, stamps: Stamps | None = None) -> StoredBatch:
        """The layout of a batch whose first row gets the number `base`; changes no counts yet.

        Args:
            batch: the rows.
            base: the number of the first.
            stamps: when they came, if that is not now.
        """
        n = batch.num_rows
        if self.keys is None:
            index = np.arange(n) + self.counts[0]
            marks = self._emitter_columns(batch, np.arange(base, base + n), index, stamps)
            return StoredBatch(batch, marks, np.zeros(n, np.intp), None)
        ids = self.keys.encode([batch.column(name) for name in self.keys.names])
        if len(self.keys) > len(self.counts):
            more = np.zeros(max(len(self.keys), 64), np.int64)
            self.counts = np.append(self.counts, more)
        order, touched, starts = group(ids, len(self.keys))
        at, index = np.empty(n, np.int64), np.empty(n, np.int64)
        at[order] = np.arange(base, base + n)
        begin = self.counts[touched] - starts[:-1]
        index[order] = np.arange(n) + np.repeat(begin, np.diff(starts))
        marks = self._emitter_columns(batch, at, index, stamps)
        return StoredBatch(gather_rows(batch, pa.array(order)), marks, ids, order)

    def extents(self, layout: StoredBatch, base: int, taken: int) -> list[StoredExtent]:
        """The extents of the first rows of a batch, which are counted from now on."""
        if self.keys is None:
            self.counts[0] += taken
            return [StoredExtent(None, int(self.counts[0]) - taken, base, taken)]
        sizes = np.bincount(layout.ids, minlength=len(self.keys))
        starts = np.cumsum(sizes) - sizes  # partitions are stored in the order of their numbers
        ids = layout.ids[:taken]
        counted = np.bincount(ids, minlength=len(self.keys))
        touched = np.flatnonzero(counted)
        first = self.counts[touched]
        self.counts[touched] += counted[touched]
        parts = (first, starts[touched] + base, counted[touched])
        lists = [part.tolist() for part in parts]
        return list(map(StoredExtent, self.keys.values(touched), *lists))

    def _emitter_columns(
        self, batch: pa.RecordBatch, at: Array, index: Array, stamps: Stamps | None
    ) -> pa.RecordBatch:
        columns: dict[str, Any] = {name: batch.column(name) for name in self.columns}
        if stamps is not None:
            columns[TIME] = pa.array(stamps, pa.duration("us"))
        return pa.record_batch({**columns, AT: at, INDEX: index})
