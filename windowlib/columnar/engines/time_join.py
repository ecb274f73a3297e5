"""Joins in time over batches: both inputs as arrays, matched by binary search.

A batch comes to one side, and moves the watermark of that side alone. Left rows wait in the order
of arrival; right rows are sorted by key and timestamp when they are searched. The output of a batch
is ordered by the row that causes it, then by timestamp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.columns import exact_columns
from windowlib.columnar.engines.equi_join import JoinKeys
from windowlib.columnar.primitives import group, ranges
from windowlib.window.consumer import Decline

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Number = int | float
END_OF_TIME = 1 << 62
"""A watermark after all timestamps, for whole numbers."""
MAX_UNUSED_ROWS = 1 << 14
"""How many unused right rows are kept at most before they are dropped."""


class Rule(Protocol):
    """The rule that matches right rows to left rows."""

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """Where in the index the matches of each timestamp and key are."""

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """The row of the batch with which the matches of each timestamp become final."""

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first place in the index that each key needs from a timestamp on."""


@dataclass(slots=True)
class SideRows:
    """Rows of one side, in the order of arrival."""

    ts: Any
    keys: Ints
    numbers: Ints
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys)

    def filter(self, which: Mask) -> SideRows:
        """Some of them."""
        if which.all():
            return self
        rows = physical.gather_rows(self.rows, pa.array(np.flatnonzero(which)))
        return SideRows(self.ts[which], self.keys[which], self.numbers[which], rows)

    def concat(self, more: SideRows) -> SideRows:
        """These and others, which came later."""
        if not len(self):
            return more
        rows = pa.concat_batches([self.rows, more.rows])
        ts, keys = np.concatenate((self.ts, more.ts)), np.concatenate((self.keys, more.keys))
        return SideRows(ts, keys, np.concatenate((self.numbers, more.numbers)), rows)


class RightIndex:
    """The right rows by key, timestamp and arrival."""

    def __init__(self, held: SideRows, keys: int) -> None:
        ts = held.ts
        sorted_ = not len(ts) or bool((ts[1:] >= ts[:-1]).all())
        by_time = np.arange(len(ts)) if sorted_ else np.argsort(ts, kind="stable")
        order, touched, starts = group(held.keys[by_time], keys)
        self.places = by_time[order]
        """The place of each entry among the rows of the side."""
        self._ts, self._numbers = ts[self.places], held.numbers[self.places]
        rising = ts[by_time]
        new = np.concatenate((np.ones(min(len(ts), 1), bool), rising[1:] > rising[:-1]))
        self._values = rising[new]
        self._width = len(self._values) + 1
        self._codes = held.keys[self.places] * self._width + (np.cumsum(new) - 1)[order]
        # One slot more than keys, which is empty: what the number -1 finds.
        self._starts, self._ends = np.zeros((2, keys + 1), np.int64)
        self._starts[touched], self._ends[touched] = starts[:-1], starts[1:]

    def starts(self, keys: Ints) -> Ints:
        """Where the entries of each key start."""
        found: Ints = self._starts[self._known(keys)]
        return found

    def ends(self, keys: Ints) -> Ints:
        """Where the entries of each key end."""
        found: Ints = self._ends[self._known(keys)]
        return found

    def _known(self, keys: Ints) -> Ints:
        """The same keys, -1 for keys that are newer than the index."""
        found: Ints = np.where(keys < len(self._starts) - 1, keys, -1)
        return found

    def upto(self, keys: Ints, ts: Any, *, equal: bool) -> Ints:
        """The place behind the entries of each key before a timestamp, or at it if `equal`."""
        ranks = np.searchsorted(self._values, ts, side="right" if equal else "left")
        found = np.searchsorted(self._codes, keys * self._width + ranks, side="left")
        held: Ints = np.clip(found, self.starts(keys), self.ends(keys))
        return held

    def at(self, places: Ints) -> Any:
        """The timestamps of some entries; arbitrary ones for places out of range."""
        return self._some(self._ts, places)

    def numbers(self, places: Ints) -> Ints:
        """The arrival numbers of some entries; arbitrary ones for places out of range."""
        found: Ints = self._some(self._numbers, places)
        return found

    def _some(self, values: Any, places: Ints) -> Any:
        if not len(values):
            return np.zeros(len(places), values.dtype)
        return values[np.clip(places, 0, len(values) - 1)]


class RightProgress:
    """The progress of the right side, measured in rows of a batch.

    Args:
        size: how many rows the batch has.
        mark: the right watermark, if the batch is of the left side.
        reached: the right watermark after each row, if it is of the right side.
        first: the number of the batch's first row.
    """

    def __init__(self, size: int, mark: Number | None, reached: Any, first: int) -> None:
        self.never = size
        self._mark, self._reached, self._first = mark, reached, first

    def when(self, ts: Any, *, over: bool) -> Ints:
        """The row at which the watermark reaches each timestamp, or passes it if `over`."""
        if self._reached is not None:
            found: Ints = np.searchsorted(self._reached, ts, side="right" if over else "left")
            return found
        if self._mark is None:
            return np.full(len(ts), self.never)
        passed = ts < self._mark if over else ts <= self._mark
        return np.where(passed, 0, self.never)

    def of(self, places: Ints, index: RightIndex) -> Ints:
        """The row at which entries of the index are present and complete up to their timestamps."""
        there = index.numbers(places) - self._first
        return np.maximum(there, self.when(index.at(places), over=False))


@dataclass(slots=True)
class JoinedPairs:
    """The joined pairs that a batch causes, in order of output."""

    causes: Ints
    """The row of the batch that causes each pair."""
    left: Ints
    """Where each left row is in `lefts`."""
    right: Ints
    """Where its match is in `rights`; -1: it has none."""
    lefts: pa.RecordBatch | None
    rights: pa.RecordBatch | None

    def __len__(self) -> int:
        return len(self.causes)

    def filter(self, which: Mask) -> JoinedPairs:
        """Some of the pairs."""
        if which.all():
            return self
        causes, left, right = self.causes[which], self.left[which], self.right[which]
        return JoinedPairs(causes, left, right, self.lefts, self.rights)

    def firsts(self) -> Mask:
        """Whether each pair is the first of its left row."""
        return np.concatenate((np.ones(min(len(self), 1), bool), self.left[1:] != self.left[:-1]))

    def left_rows(self) -> pa.RecordBatch:
        """The left row of each pair."""
        assert self.lefts is not None
        first, size = (int(self.left[0]), len(self.left)) if len(self) else (0, 0)
        if (self.left == np.arange(first, first + size)).all():
            return self.lefts.slice(first, size)
        return physical.gather_rows(self.lefts, pa.array(self.left))

    def right_rows(self) -> pa.RecordBatch | None:
        """The right row of each pair, nulls for none; None: no right row has come."""
        if self.rights is None:
            return None
        return physical.gather_rows(self.rights, pa.array(self.right, mask=self.right < 0))


@dataclass(slots=True)
class ArrivingBatch:
    """A batch, with the watermark of its side after each row."""

    port: int
    rows: pa.RecordBatch
    ts: Any
    reached: Any
    """The watermark after each row."""
    late: Mask
    first: int
    """The number of its first row."""


class TimeJoinEngine:
    """Both sides of a join in time as arrays.

    Args:
        keys: the equality keys.
        rule: which right rows a left row goes with.
    """

    def __init__(self, keys: JoinKeys, rule: Rule) -> None:
        self.keys, self.rule = keys, rule
        self.schemas: list[pa.Schema | None] = [None, None]
        self.sides: list[SideRows | None] = [None, None]
        self._index: RightIndex | None = None
        self._kept = 0  # how many right rows were needed at the last check

    def __len__(self) -> int:
        return sum(0 if side is None else len(side) for side in self.sides)

    def encoded(self, port: int, rows: pa.RecordBatch) -> Ints:
        """The numbers of the keys of some rows."""
        names = self.keys.columns[port]
        missing = [name for name in names if name not in rows.schema.names]
        if missing:
            raise Decline(f"there is no column {missing[0]!r}")
        return self.keys.encode([rows.column(name) for name in names], rows.num_rows)

    def check(self, port: int, schema: pa.Schema, kind: Any) -> None:
        """Decline a batch that does not fit the batches before it."""
        if not schema.names or len(set(schema.names)) < len(schema.names):
            raise Decline("columns need names of their own")
        if self.schemas[port] not in (None, schema):
            raise Decline("columns that are not those of the batches before")
        if any(side is not None and side.ts.dtype != kind for side in self.sides):
            raise Decline("timestamps of several types")

    def adopt(
        self, port: int, schema: pa.Schema | None, entries: Sequence[tuple[Any, int, Any]]
    ) -> None:
        """Load the rows of a side that came one by one."""
        self.schemas[port] = schema
        if not entries:
            return
        if schema is None:
            raise Decline("no batch has come to the other input")
        tuples = [row for _, _, row in entries]
        columns = exact_columns(tuples, schema.names, lambda name: schema.field(name).type)
        rows = pa.RecordBatch.from_arrays([each.arrow() for each in columns], schema=schema)
        stamps, numbers, _ = zip(*entries, strict=True)
        kinds = set(map(type, stamps))
        if kinds not in ({int}, {float}):
            raise Decline("timestamps of several types")
        ts = np.array(stamps, np.float64 if float in kinds else np.int64)
        keys = self.encoded(port, rows)
        self._add(port, SideRows(ts, keys, np.array(numbers, np.int64), rows))

    def entries(self, port: int) -> list[tuple[Any, int, Any]]:
        """The rows of a side, one by one, in the order of arrival."""
        side = self.sides[port]
        if side is None or not len(side):
            return []
        rows = side.rows.to_pylist()
        return list(zip(side.ts.tolist(), side.numbers.tolist(), rows, strict=True))

    def _add(self, port: int, more: SideRows) -> None:
        side = self.sides[port]
        self.sides[port] = more if side is None else side.concat(more)
        if port:
            self._index = None

    def _right(self, dtype: Any) -> RightIndex:
        if self._index is None:
            right = self.sides[1]
            none = np.zeros(0, np.int64)
            right = SideRows(none.astype(dtype), none, none, None) if right is None else right
            self._index = RightIndex(right, len(self.keys))
        return self._index

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, coming: ArrivingBatch, marks: Sequence[Number | None]) -> JoinedPairs:
        """Insert a batch; the pairs that it causes, given the watermarks of both sides after it."""
        port, size = coming.port, coming.rows.num_rows
        keys = self.encoded(port, coming.rows)
        wanted = ~coming.late if port == 0 else ~coming.late & (keys >= 0)
        numbers = coming.first + np.arange(size)
        self._add(port, SideRows(coming.ts, keys, numbers, coming.rows).filter(wanted))
        reached = coming.reached if port else None
        arrivals = RightProgress(size, marks[1], reached, coming.first if port else END_OF_TIME)
        return self._released(arrivals, None if port else coming, marks)

    def finish(self, marks: Sequence[Number | None]) -> JoinedPairs:
        """The pairs that the end of an input causes."""
        return self._released(RightProgress(1, marks[1], None, END_OF_TIME), None, marks)

    def _released(
        self, arrivals: RightProgress, coming: ArrivingBatch | None, marks: Sequence[Number | None]
    ) -> JoinedPairs:
        left, none = self.sides[0], np.zeros(0, np.int64)
        if left is None or not len(left) or marks[0] is None:
            return JoinedPairs(none, none, none, None, None)
        going = np.flatnonzero(left.ts <= marks[0])
        ts, keys = left.ts[going], left.keys[going]
        index = self._right(ts.dtype)
        causes = np.zeros(len(ts), np.int64)
        if marks[1] != math.inf:  # where the right input goes on
            causes = self.rule.final_many(ts, keys, index, arrivals)
        if coming is not None:  # a left batch: when its own watermark has come so far
            own = np.maximum(left.numbers[going] - coming.first, 0)
            passed = np.searchsorted(coming.reached, ts, side="left")
            causes = np.maximum(causes, np.maximum(own, passed))
        final = causes < arrivals.never
        found = self._pairs(left, going[final], causes[final], index)
        if final.any():
            stays = np.ones(len(left), bool)
            stays[going[final]] = False
            self.sides[0] = left.filter(stays)
        self._forget(marks[0])
        return found

    def _pairs(self, left: SideRows, going: Ints, causes: Ints, index: RightIndex) -> JoinedPairs:
        """The pairs of final left rows, in order of output."""
        order = _leaving(causes, left.ts[going])
        if order is not None:
            going, causes = going[order], causes[order]
        lo, hi = self.rule.match_ranges(left.ts[going], left.keys[going], index)
        counts = np.maximum(hi - lo, 1)  # one without a match is a pair, too
        there = np.repeat(hi > lo, counts)
        places = np.full(len(there), -1)
        rows = np.repeat(np.arange(len(going)), counts) if len(there) > len(going) else None
        at = lo if rows is None else ranges(lo, counts)
        places[there] = index.places[at[there]]
        if rows is not None:
            going, causes = going[rows], causes[rows]
        rights = None if self.sides[1] is None else self.sides[1].rows
        return JoinedPairs(causes, going, places, left.rows, rights)

    # -- what is no longer needed -----------------------------------------------------------------

    def _forget(self, mark: Number | None) -> None:
        """Drop right rows that no left row can need, once they may be half of all.

        Args:
            mark: the left watermark.
        """
        left, right = self.sides
        if right is None or mark is None or len(right) <= 2 * self._kept + MAX_UNUSED_ROWS:
            return
        index = self._right(right.ts.dtype)
        floor = np.full(len(self.keys), min(mark, END_OF_TIME), right.ts.dtype)
        if left is not None and len(left):
            known = left.keys >= 0
            np.minimum.at(floor, left.keys[known], left.ts[known])
        ids = np.arange(len(self.keys))
        first = self.rule.first_needed_many(floor, ids, index)
        needed = np.arange(len(right)) >= first[right.keys[index.places]]
        which = np.zeros(len(right), bool)
        which[index.places[needed]] = True
        self.sides[1], self._index = right.filter(which), None
        self._kept = int(needed.sum())
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Renumber the keys, once most of them have no rows left."""
        used = np.unique(np.concatenate([side.keys for side in self.sides if side is not None]))
        used = used[used >= 0]
        if len(self.keys) <= 2 * len(used) + MAX_UNUSED_ROWS:
            return
        self.keys.compact(used)
        for side in self.sides:
            if side is not None:
                there = side.keys >= 0
                side.keys[there] = np.searchsorted(used, side.keys[there])
        self._index = None


def _leaving(causes: Ints, ts: Any) -> Ints | None:
    """The order by cause, timestamp and arrival; None: already in order."""
    later, tied = causes[1:] > causes[:-1], causes[1:] == causes[:-1]
    if (later | (tied & (ts[1:] >= ts[:-1]))).all():
        return None
    return np.lexsort((ts, causes))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose columns have no encoding, so that rows of several can be put together."""
    arrays = [physical.plain(array) for array in batch.columns]
    fields = [pa.field(f.name, a.type) for f, a in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
