"""The base of columnar engines: partition keys, the ledger of partitions, state transfer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import checked_count, need
from windowlib.columnar.arrays.ledger import Ledger
from windowlib.columnar.arrays.numbering import Ids
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.arrays.physical import plain_type
from windowlib.columnar.arrays.stamps import HUGE, Stamps
from windowlib.columnar.extents.layout import Layout
from windowlib.columnar.firings import Firings
from windowlib.columnar.primitives import NONE, Places, arrival_loops, compiles, group
from windowlib.spec.policies import PartitionAge, PartitionCount, TupleCount
from windowlib.spec.specification import KEY
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns
    from windowlib.window.container import Window


MOST = 1 << 31
"""Windows that count up to less than this may do without sorted rows."""
PARTITIONS_PER_ROW = 4
"""Rows that stay as they came need a look at all partitions. With more for a row, sorting pays."""
MANY_PARTITIONS = 1 << 14
"""With more partitions than this, more rows are taken at once."""


class Engine:
    """A window's state as arrays, and how a batch changes it.

    `insert` computes all firings of a batch and changes nothing; `commit` then makes it so.
    """

    way: str
    """How it works, for `explain`."""
    form: str
    """What its arrays are called where they are written down."""
    counts = False
    """Whether windows count tuples and nothing else, so that rows may stay as they came."""

    any_order = False
    """Whether partitions may come in any order, if no tick and no punctuation comes in between."""

    def __init__(self, window: Window[Any, Any], schema: pa.Schema, **starts: Any) -> None:
        self.window, self.schema = window, schema
        self.keys = self._keys(window)
        self._key_places = [] if self.keys is None else list(map(self._place_of, self.keys.names))
        self.ledger = Ledger(alive=False, born=0, last=0, stamp=0, taken=0, **starts)
        self.left = window.state.left
        self._stamps = window.state.eviction is not None  # whether partitions note their last use
        self.seen_rows = 0  # numbers the rows, for their order of arrival
        self.partial = window.state.consumer.partial or window.spec.full_from_start
        self.pending: Any = None
        self.stayed = False  # whether the rows of the last batch stayed as they came
        self.now = window.state.now  # the time up to which the state is worked out
        self.arrivals: Stamps | None = None
        tick = window.spec.policies[-1].tick  # the clock moves the last policy, if any
        self.beat = min(tick or 0, HUGE)  # how far ticks are apart, 0 without any
        self.passed = NONE  # how many ticks come before each row of the batch, if any does
        self.marks = NONE  # before which rows of the batch punctuations come
        self.fired_at: Stamps | None = None

    def _keys(self, window: Window[Any, Any]) -> PartitionKeys | None:
        by = window.spec.by
        if by is None:
            return None
        parts = by if isinstance(by, tuple) else (by,)
        if by is KEY or not all(isinstance(part, str) for part in parts):
            raise Decline("by= is no list of column names")
        return PartitionKeys(tuple(map(str, parts)), isinstance(by, tuple))

    def type_of(self, name: Any) -> pa.DataType:
        """The Arrow type of a column."""
        return plain_type(self.schema.field(self._place_of(name)).type)

    def _place_of(self, name: Any) -> int:
        """The index of a column in a batch."""
        index: int = self.schema.get_field_index(name) if isinstance(name, str) else -1
        if index < 0:
            raise Decline(f"there is no single column {name!r}")
        return index

    # -- time -------------------------------------------------------------------------------------

    def set_arrivals(self, arrivals: Stamps | None) -> None:
        """Set the arrival times of the next batch; None: all rows arrive now."""
        self.arrivals, self.fired_at = arrivals, None
        self.passed, self.marks = NONE, NONE
        if not self.beat or arrivals is None:
            return
        tick = self.window.state.tick
        if tick is not None and tick <= arrivals[-1]:
            self.passed = np.maximum((arrivals - tick) // self.beat + 1, 0)

    @property
    def until(self) -> int:
        """The time after the last row of the batch."""
        return self.window.state.now if self.arrivals is None else int(self.arrivals[-1])

    def advance(self, now: int) -> None:
        """Note that time has passed."""
        self.now = now

    def due(self) -> int | None:
        """The next deadline, apart from ticks; None: there is none."""
        return None

    @property
    def ticks(self) -> int:
        """How many ticks come before the last row of the batch."""
        return int(self.passed[-1]) if len(self.passed) else 0

    def tick_times(self) -> Stamps:
        """The times of these ticks."""
        tick = self.window.state.tick
        assert tick is not None
        times: Stamps = np.arange(self.ticks) * self.beat + tick
        return times

    @property
    def together(self) -> bool:
        """Whether one row of the batch may have caused several firings."""
        return self.fired_at is not None

    def times(self, firings: Firings) -> Stamps | None:
        """The time of each firing of the batch; None: now."""
        if self.fired_at is not None or self.arrivals is None:
            return self.fired_at
        return self.arrivals[firings.rows]

    def fire_all(self) -> Firings:
        """The firings of all partitions at a tick or a punctuation, in order of storage."""
        raise NotImplementedError

    def commit_all(self) -> None:
        """Commit the firings of all partitions."""
        raise NotImplementedError

    # -- batches ----------------------------------------------------------------------------------

    def layout(self, batch: pa.RecordBatch) -> Layout:
        """The batch by partition; declines a batch that might evict a partition."""
        n, self.stayed = batch.num_rows, False
        if self.keys is None:
            self.ledger.grow(1)
            found = Layout(None, np.zeros(1, np.intp), np.array([0, n], np.intp))
        else:
            found = Layout(*self._by_partition(batch, self.keys))
        self._evicts_none(found, n)
        return found

    def _by_partition(
        self, batch: pa.RecordBatch, keys: PartitionKeys
    ) -> tuple[Places, Places, Places]:
        """The rows by partition, which may be in order of their keys."""
        found = None
        if self.any_order and not self.beat and not len(self.marks):
            found = keys.group([batch.column(place) for place in self._key_places])
        return group(self.numbered(batch), len(keys)) if found is None else found

    def unsorted(self, rows: int) -> bool:
        """Whether so many rows are better given to their partitions one by one than sorted."""
        known = self.keys is not None and self.window.spec.forget is None
        return known and self.ledger.size <= PARTITIONS_PER_ROW * rows and compiles()

    def runs(self, batch: pa.RecordBatch, size: int, *, opens: bool) -> ArrivalRuns:
        """The rows of a batch as they came, in runs that close with their `size`-th row."""
        assert self.keys is not None
        self.stayed = True
        make: type[ArrivalRuns] = arrival_loops().ArrivalRuns
        table = self.keys.table([batch.column(place) for place in self._key_places])
        if table is not None:
            found = make(*table, self.ledger.n, size, opens=opens)
            if found.complete:
                return found
        ids = self.numbered(batch)
        itself = np.arange(self.ledger.size, dtype=np.int32)
        return make(ids, 0, itself, self.ledger.n, size, opens=opens)

    def numbered(self, batch: pa.RecordBatch) -> Ids:
        """The partition of each row of a batch, with room for those that are new."""
        keys = self.keys
        assert keys is not None
        ids = keys.encode([batch.column(place) for place in self._key_places])
        if len(keys) > self.ledger.size:
            self.ledger.grow(len(keys))
        return ids

    def _evicts_none(self, layout: Layout, rows: int) -> None:
        """Decline a batch that might evict a partition."""
        forget, ledger = self.window.spec.forget, self.ledger
        if isinstance(forget, PartitionCount):
            fresh = (~ledger.alive[layout.touched]).sum()
            if ledger.alive.sum() + fresh > forget.size:
                raise Decline(f"{forget} would evict partitions")
        elif isinstance(forget, TupleCount):
            if self.held() + rows > forget.size:
                raise Decline(f"{forget} would evict partitions")
        elif isinstance(forget, PartitionAge):
            if self.arrivals is None:
                self.check_age(self.until)
            else:
                self._ages_none(forget, layout, self.arrivals)

    def check_age(self, now: int) -> None:
        """Decline to continue where the age of a partition is over."""
        over = self.ages_at()
        if over is not None and over <= now:
            raise Decline(f"{self.window.spec.forget} would evict partitions")

    def ages_at(self) -> int | None:
        """When the next partition reaches its age; None: there is none."""
        forget, ledger = self.window.spec.forget, self.ledger
        if not isinstance(forget, PartitionAge) or self._empties_first(forget):
            return None
        stamps = ledger.stamp[ledger.alive]
        return int(stamps.min()) + forget.micros + 1 if len(stamps) else None

    def _empties_first(self, forget: PartitionAge) -> bool:
        """Whether time empties a partition before it reaches its age."""
        return any(time.micros <= forget.micros for time in self.window.spec.evict.times)

    def _ages_none(self, forget: PartitionAge, layout: Layout, arrivals: Stamps) -> None:
        """Decline a batch in which a partition has reached its age when a row arrives."""
        if self._empties_first(forget):
            return
        ledger, touched, heads = self.ledger, layout.touched, layout.starts[:-1]
        placed = layout.rows(np.arange(len(arrivals)))
        placed = arrivals[placed]
        gaps = np.diff(placed, prepend=placed[0])
        first = np.where(ledger.alive[touched], ledger.stamp[touched], placed[heads])
        gaps[heads] = placed[heads] - first
        stamps, alive = ledger.stamp.copy(), ledger.alive.copy()
        stamps[touched], alive[touched] = placed[layout.starts[1:] - 1], True
        oldest = self.until - int(stamps[alive].min())
        if max(int(gaps.max()), oldest) > forget.micros:
            raise Decline(f"{forget} would evict partitions")

    def held(self) -> int:
        """How many tuples all partitions hold, for a tuple count policy."""
        return int(self.ledger.n[self.ledger.alive].sum())

    def gone(self) -> int:
        """How many of the tuples taken the window no longer holds."""
        return self.left + int(self.ledger.taken[self.ledger.alive].sum()) - self.held()

    def used(self, layout: Layout) -> None:
        """Note that the partitions of a batch were used, in the order of their last rows."""
        if self._stamps:  # otherwise nothing asks for it
            self._note_use(layout)
        self.seen_rows += layout.size
        self.advance(self.until)

    def _note_use(self, layout: Layout) -> None:
        ledger, touched, places = self.ledger, layout.touched, layout.lasts
        if self.together:  # then some may have no rows
            some = layout.lengths > 0
            touched, places = touched[some], places[some]
        last = layout.rows(places)
        ledger.last[touched] = self.seen_rows + last
        ledger.stamp[touched] = self.until if self.arrivals is None else self.arrivals[last]

    def step(self, usual: int) -> int:
        """How many rows to take at once: more with many partitions, so that each gets a few.

        Rows that are not sorted need not fit the cache.
        """
        more = self.stayed or np.count_nonzero(self.ledger.alive) > MANY_PARTITIONS
        return usual * 4 if more else usual

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All firings of a batch."""
        raise NotImplementedError

    def commit(self) -> None:
        """Commit the batch."""
        raise NotImplementedError

    # -- hand-over --------------------------------------------------------------------------------

    def stored(self) -> Places:
        """The partitions in order of storage."""
        ids = np.flatnonzero(self.ledger.alive)
        return ids[np.argsort(self.ledger.born[ids], kind="stable")]

    def adopted(self, parts: list[dict[str, Any]]) -> Places:
        """The numbers of partitions of the event engine, given in order of storage."""
        if self.keys is None:
            ids = np.zeros(len(parts), np.intp)
            self.ledger.grow(1)
        else:
            types = [self.type_of(name) for name in self.keys.names]
            ids = self.keys.adopt([part["key"] for part in parts], types).astype(np.intp)
            self.ledger.grow(len(self.keys))
        ledger, n = self.ledger, len(parts)
        ledger.alive[ids] = True
        ledger.born[ids] = np.arange(n)
        ledger.last[ids] = self._uses([part["key"] for part in parts])
        for name in ("taken", "stamp"):
            getattr(ledger, name)[ids] = [part[name] for part in parts]
        self.seen_rows = n
        return ids

    def _uses(self, keys: list[Any]) -> list[int]:
        """The place of each key among those from least to most recently used."""
        pe = self.window.state.eviction
        places = {} if pe is None else {key: place for place, key in enumerate(pe.lru)}
        return [places.get(key, 0) for key in keys]

    def check_load(self, rows: int) -> None:
        """Decline state that is too expensive to load for a batch of that many rows."""

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Load partitions of the event engine; `Decline` if the columns cannot hold them."""
        raise NotImplementedError

    def load_asleep(self, parts: list[dict[str, Any]]) -> None:
        """Load partitions that are not in storage but have trigger state."""
        if parts:
            raise Decline("partitions that are not in storage")

    def asleep(self) -> Places:
        """The partitions that are not in storage but have trigger state."""
        return NONE

    # Windows that time evicts from: their ledgers have `newest`, when the last tuple of a partition
    # came, and `sleeps` and `returning`, for those that time has emptied.

    def put_to_sleep(self, before: int) -> Places:
        """Take partitions without a tuple since a point in time out of storage; returns them."""
        ledger = self.ledger
        ids: Places = np.flatnonzero(ledger.alive & (ledger.newest < before))
        if len(ids):
            self.left += int(ledger.taken[ids].sum())
            ledger.taken[ids], ledger.alive[ids] = 0, False
            ledger.sleeps[ids] = ledger.returning[ids] = True
        return ids

    def sleeping_order(self) -> Places:
        """The sleeping partitions in the order in which they became empty, ties by storage."""
        ids = np.flatnonzero(self.ledger.sleeps)
        found: Places = ids[np.lexsort((self.ledger.born[ids], self.ledger.newest[ids]))]
        return found

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Some partitions in the form of snapshots, for the event engine."""
        raise NotImplementedError

    def common(self, ids: Places) -> list[dict[str, Any]]:
        """The entries of partitions that all kinds of windows share, in the form of snapshots."""
        names = [None] * len(ids) if self.keys is None else self.keys.values(ids)
        taken, stamps = self.ledger.taken[ids].tolist(), self.ledger.stamp[ids].tolist()
        return [
            {
                "key": key,
                "taken": taken_,
                "stamp": stamp,
                "count": 0,
                "ref": [],
                "newest": [],
                "full": False,
                "rough": False,
                "returning": False,
                "data": [],
                "stamps": [],
                "n": 0,
                "summary": None,
            }
            for key, taken_, stamp in zip(names, taken, stamps, strict=True)
        ]

    # -- as arrays --------------------------------------------------------------------------------

    def known_partitions(self) -> Places:
        """The partitions with any state, ascending."""
        return np.flatnonzero(self.ledger.alive)

    def dump(self) -> dict[str, Any]:
        """The state of all partitions with any, as arrays and numbers."""
        ids = self.known_partitions()
        return {
            "form": self.form,
            "size": len(ids),
            "keys": None if self.keys is None else self.keys.dump(ids),
            "ledger": self.ledger.dump(ids),
            "left": self.left,
            "seen": self.seen_rows,
            "now": self.now,
            "content": self.dump_content(ids),
        }

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The contents of some partitions, as entries of `dump`."""
        return {}

    def load_dump(self, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned; partitions get new numbers in the same order."""
        need(state["form"] == self.form, f"{state['form']} in place of {self.form}")
        size = checked_count(state["size"], "partitions")
        if self.keys is None:
            need(size <= 1, "one partition has no key")
            self.ledger.grow(1)
        else:
            types = [self.type_of(name) for name in self.keys.names]
            self.keys.load_dump(state["keys"], types, size)
            self.ledger.grow(size)
        ids = np.arange(size)
        self.ledger.load_dump(ids, state["ledger"])
        self.left, self.seen_rows = (checked_count(state[name], name) for name in ("left", "seen"))
        self.now = state["now"]
        need(type(self.now) is int and abs(self.now) < HUGE, "the time")
        self.load_content(ids, state["content"])

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump_content` returned."""

    def used_order(self) -> Places:
        """The partitions from least to most recently used."""
        ids = np.flatnonzero(self.ledger.alive)
        return ids[np.argsort(self.ledger.last[ids], kind="stable")]
