"""Joins in time over batches: both inputs as arrays, matched by binary search.

A batch comes to one side, and moves the watermark of that side alone. Left rows wait in the order
of arrival; right rows are sorted by key and timestamp when somebody looks for matches. What a
batch lets go comes out in the order of its rows that are the cause, then of timestamps.
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
FAR = 1 << 62
"""Where a watermark is that has reached everything, among whole numbers."""
SPARE = 1 << 14
"""Right rows that may be there for nothing before they are cleared out."""


class Rule(Protocol):
    """Which right rows a left row goes with."""

    def found_many(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """Where in the index the matches of each timestamp and key are."""

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: Arrivals) -> Any:
        """With which row of the batch the matches of each timestamp become final."""

    def needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first place in the index that each key needs from a timestamp on."""


@dataclass(slots=True)
class Held:
    """Rows of one side, in the order of arrival."""

    ts: Any
    keys: Ints
    numbers: Ints
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, which: Mask) -> Held:
        """Some of them."""
        if which.all():
            return self
        rows = physical.gather_rows(self.rows, pa.array(np.flatnonzero(which)))
        return Held(self.ts[which], self.keys[which], self.numbers[which], rows)

    def and_then(self, more: Held) -> Held:
        """These and others, which came later."""
        if not len(self):
            return more
        rows = pa.concat_batches([self.rows, more.rows])
        ts, keys = np.concatenate((self.ts, more.ts)), np.concatenate((self.keys, more.keys))
        return Held(ts, keys, np.concatenate((self.numbers, more.numbers)), rows)


class RightIndex:
    """The right rows by key, each key's by timestamp, at equal ones by arrival."""

    def __init__(self, held: Held, keys: int) -> None:
        ts = held.ts
        sorted_ = not len(ts) or bool((ts[1:] >= ts[:-1]).all())
        by_time = np.arange(len(ts)) if sorted_ else np.argsort(ts, kind="stable")
        order, touched, starts = group(held.keys[by_time], keys)
        self.places = by_time[order]
        """Where each entry is among the rows held."""
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
        """The same numbers, -1 for keys that came after the index was made."""
        found: Ints = np.where(keys < len(self._starts) - 1, keys, -1)
        return found

    def upto(self, keys: Ints, ts: Any, *, equal: bool) -> Ints:
        """The place behind the entries of each key before a timestamp, or at it if `equal`."""
        ranks = np.searchsorted(self._values, ts, side="right" if equal else "left")
        found = np.searchsorted(self._codes, keys * self._width + ranks, side="left")
        held: Ints = np.clip(found, self.starts(keys), self.ends(keys))
        return held

    def at(self, places: Ints) -> Any:
        """The timestamps of some entries; of any, for places that are none."""
        return self._some(self._ts, places)

    def numbers(self, places: Ints) -> Ints:
        """The numbers of some entries, as `at`."""
        found: Ints = self._some(self._numbers, places)
        return found

    def _some(self, values: Any, places: Ints) -> Any:
        if not len(values):
            return np.zeros(len(places), values.dtype)
        return values[np.clip(places, 0, len(values) - 1)]


class Arrivals:
    """When, in terms of the rows of a batch, the right watermark passes, and right rows are there.

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
        """After which row the watermark has reached each timestamp, or passed it if `over`."""
        if self._reached is not None:
            found: Ints = np.searchsorted(self._reached, ts, side="right" if over else "left")
            return found
        if self._mark is None:
            return np.full(len(ts), self.never)
        passed = ts < self._mark if over else ts <= self._mark
        return np.where(passed, 0, self.never)

    def of(self, places: Ints, index: RightIndex) -> Ints:
        """When some entries of the index are there, and complete up to their timestamps."""
        there = index.numbers(places) - self._first
        return np.maximum(there, self.when(index.at(places), over=False))


@dataclass(slots=True)
class Released:
    """What a batch lets go: pairs of a left row and a right row, in the order of leaving."""

    causes: Ints
    """The row of the batch that each pair comes with."""
    left: Ints
    """Where each left row is in `lefts`."""
    right: Ints
    """Where its match is in `rights`; -1: it has none."""
    lefts: pa.RecordBatch | None
    rights: pa.RecordBatch | None

    def __len__(self) -> int:
        return len(self.causes)

    def only(self, which: Mask) -> Released:
        """Some of the pairs."""
        if which.all():
            return self
        causes, left, right = self.causes[which], self.left[which], self.right[which]
        return Released(causes, left, right, self.lefts, self.rights)

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
        """The right row of each pair, nulls where there is none; None if no right row has come."""
        if self.rights is None:
            return None
        return physical.gather_rows(self.rights, pa.array(self.right, mask=self.right < 0))


@dataclass(slots=True)
class Coming:
    """A batch, as the watermark of its side has seen it."""

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
        self.sides: list[Held | None] = [None, None]
        self._index: RightIndex | None = None
        self._kept = 0  # right rows that were needed when somebody looked

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
        """Decline a batch that does not go with those before it."""
        if not schema.names or len(set(schema.names)) < len(schema.names):
            raise Decline("columns need names of their own")
        if self.schemas[port] not in (None, schema):
            raise Decline("columns that are not those of the batches before")
        if any(side is not None and side.ts.dtype != kind for side in self.sides):
            raise Decline("timestamps of several types")

    def adopt(
        self, port: int, schema: pa.Schema | None, entries: Sequence[tuple[Any, int, Any]]
    ) -> None:
        """Begin a side with rows that came one by one, given the columns of its batches."""
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
        self._add(port, Held(ts, keys, np.array(numbers, np.int64), rows))

    def entries(self, port: int) -> list[tuple[Any, int, Any]]:
        """The rows of a side, one by one, in the order of arrival."""
        side = self.sides[port]
        if side is None or not len(side):
            return []
        rows = side.rows.to_pylist()
        return list(zip(side.ts.tolist(), side.numbers.tolist(), rows, strict=True))

    def _add(self, port: int, more: Held) -> None:
        side = self.sides[port]
        self.sides[port] = more if side is None else side.and_then(more)
        if port:
            self._index = None

    def _right(self, dtype: Any) -> RightIndex:
        if self._index is None:
            right = self.sides[1]
            none = np.zeros(0, np.int64)
            right = Held(none.astype(dtype), none, none, None) if right is None else right
            self._index = RightIndex(right, len(self.keys))
        return self._index

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, coming: Coming, marks: Sequence[Number | None]) -> Released:
        """Take a batch; what it lets go, given the watermarks of both sides after it."""
        port, size = coming.port, coming.rows.num_rows
        keys = self.encoded(port, coming.rows)
        wanted = ~coming.late if port == 0 else ~coming.late & (keys >= 0)
        numbers = coming.first + np.arange(size)
        self._add(port, Held(coming.ts, keys, numbers, coming.rows).only(wanted))
        reached = coming.reached if port else None
        arrivals = Arrivals(size, marks[1], reached, coming.first if port else FAR)
        return self._released(arrivals, None if port else coming, marks)

    def finish(self, marks: Sequence[Number | None]) -> Released:
        """What the end of an input lets go."""
        return self._released(Arrivals(1, marks[1], None, FAR), None, marks)

    def _released(
        self, arrivals: Arrivals, coming: Coming | None, marks: Sequence[Number | None]
    ) -> Released:
        left, none = self.sides[0], np.zeros(0, np.int64)
        if left is None or not len(left) or marks[0] is None:
            return Released(none, none, none, None, None)
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
            self.sides[0] = left.only(stays)
        self._forget(marks[0])
        return found

    def _pairs(self, left: Held, going: Ints, causes: Ints, index: RightIndex) -> Released:
        """The matches of left rows that are final, in the order of leaving."""
        order = _leaving(causes, left.ts[going])
        if order is not None:
            going, causes = going[order], causes[order]
        lo, hi = self.rule.found_many(left.ts[going], left.keys[going], index)
        counts = np.maximum(hi - lo, 1)  # one without a match is a pair, too
        there = np.repeat(hi > lo, counts)
        places = np.full(len(there), -1)
        rows = np.repeat(np.arange(len(going)), counts) if len(there) > len(going) else None
        at = lo if rows is None else ranges(lo, counts)
        places[there] = index.places[at[there]]
        if rows is not None:
            going, causes = going[rows], causes[rows]
        rights = None if self.sides[1] is None else self.sides[1].rows
        return Released(causes, going, places, left.rows, rights)

    # -- what is no longer needed -----------------------------------------------------------------

    def _forget(self, mark: Number | None) -> None:
        """Drop right rows that no left row can need, once there may be as many of them as others.

        Args:
            mark: the left watermark.
        """
        left, right = self.sides
        if right is None or mark is None or len(right) <= 2 * self._kept + SPARE:
            return
        index = self._right(right.ts.dtype)
        floor = np.full(len(self.keys), min(mark, FAR), right.ts.dtype)
        if left is not None and len(left):
            known = left.keys >= 0
            np.minimum.at(floor, left.keys[known], left.ts[known])
        ids = np.arange(len(self.keys))
        first = self.rule.needed_many(floor, ids, index)
        needed = np.arange(len(right)) >= first[right.keys[index.places]]
        which = np.zeros(len(right), bool)
        which[index.places[needed]] = True
        self.sides[1], self._index = right.only(which), None
        self._kept = int(needed.sum())
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Number the keys anew, once most of them are of rows that have gone."""
        used = np.unique(np.concatenate([side.keys for side in self.sides if side is not None]))
        used = used[used >= 0]
        if len(self.keys) <= 2 * len(used) + SPARE:
            return
        self.keys.compact(used)
        for side in self.sides:
            if side is not None:
                there = side.keys >= 0
                side.keys[there] = np.searchsorted(used, side.keys[there])
        self._index = None


def _leaving(causes: Ints, ts: Any) -> Ints | None:
    """The order of causes, then of timestamps, then of arrival; None if it is there already."""
    later, tied = causes[1:] > causes[:-1], causes[1:] == causes[:-1]
    if (later | (tied & (ts[1:] >= ts[:-1]))).all():
        return None
    return np.lexsort((ts, causes))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose columns have no encoding, so that rows of several can be put together."""
    arrays = [physical.plain(array) for array in batch.columns]
    fields = [pa.field(f.name, a.type) for f, a in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
