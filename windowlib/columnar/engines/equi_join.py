"""Equality joins over batches: the matches of each row, and the rows that leave unmatched.

A batch comes to one side, and meanwhile the window of the other does not change. So all its
matches are a look-up in one index: residents by key, each key's in order of arrival. The batch's
own side is a sliding window that triggers with every row: the rows between the windows of two
successive rows were evicted by the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.columns import Column, exact_columns
from windowlib.columnar.arrays.kept_rows import RowColumns
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.engines.row_engine import narrow
from windowlib.columnar.engines.sliding import SlidingEngine
from windowlib.columnar.primitives import NONE, Places, group, ranges
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.window.sliding import SlidingWindow

Ints = npt.NDArray[np.int64]
State = tuple[Sequence[dict[str, Any]], Sequence[tuple[int, bool]]]
"""The state of a side in the event engine: partitions, and number and match of each row."""

# Kept beside the columns of a row: the number of its key, its place in the order of arrival over
# both sides, and whether it has matched.
HIDDEN = KEY, NUMBER, MATCHED = "\0key", "\0number", "\0matched"
MAX_UNUSED_KEYS = 1 << 16
"""How many unused keys are kept at most before they are dropped."""


class JoinKeys:
    """Numbers for the equality keys of both sides; -1 for a key with a null, which equals none."""

    def __init__(self, columns: tuple[Sequence[str], Sequence[str]]) -> None:
        self.columns = columns
        self._keys = PartitionKeys(tuple(columns[0]), several=True)

    def __len__(self) -> int:
        return len(self._keys) if self.columns[0] else 1

    def encode(self, arrays: Sequence[Any], rows: int) -> Ints:
        """The numbers of the keys of some rows."""
        if not arrays:
            return np.zeros(rows, np.int64)  # no equality asked for: all rows have the same key
        wide = [_wide(array) for array in arrays]
        ids = self._keys.encode(wide).astype(np.int64)
        for array in wide:
            valid = _validity(array)
            if valid is not None:
                ids[~valid] = -1
        return ids

    def compact(self, ids: Ints) -> None:
        """Keep only these keys, and renumber them in this order."""
        self._keys.compact(ids)


def _wide(array: Any) -> Any:
    """The same values in the widest type of their kind, so that both sides have one type."""
    kind = physical.plain_type(array.type)
    for family, widest in ((pa.types.is_integer, pa.int64()), (pa.types.is_floating, pa.float64())):
        if family(kind) and kind != widest:
            try:
                return physical.plain(array).cast(widest)
            except pa.ArrowInvalid as error:
                raise Decline(f"keys that do not fit in {widest}") from error
    return array


def _validity(array: Any) -> physical.Valid:
    """Which values are there; those of a dictionary may be null themselves."""
    if pa.types.is_dictionary(array.type) and not array.dictionary.null_count:
        array = array.indices
    return physical.validity(physical.plain(array))


class JoinSide(SlidingEngine):
    """The window of one side, with key number, arrival and match of each row."""

    any_order = False

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        self.shown = list(schema.names)
        for name in HIDDEN:
            schema = schema.append(pa.field(name, pa.int64()))
        super().__init__(window, schema)
        self._loading: tuple[Any, Any] = (None, None)

    def picked(self, name: str, places: Places) -> Column | None:
        """Some values of a column in storage, null for places below 0; None: no such column."""
        if name not in self.shown:
            return None
        return self.store.whole(self.names.index(name)).take_or_null(places)

    def hidden(self, name: str) -> Ints:
        """One of the hidden columns, of all rows in storage; a view."""
        found: Ints = self.store.whole(self.names.index(name)).data
        return found

    def residents(self) -> Places:
        """The places in storage of the rows of the window, in order of arrival."""
        self.store.grow(self.ledger.size)
        places = self.store.places(np.flatnonzero(self.ledger.alive))
        if self.keys is None:
            return places
        order = np.argsort(self.hidden(NUMBER)[places], kind="stable")
        return places[order]

    # -- hand-over --------------------------------------------------------------------------------

    def adopt(
        self,
        parts: list[dict[str, Any]],
        numbers: Sequence[tuple[int, bool]],
        encode: Callable[[dict[str, Any], int], Ints],
    ) -> None:
        """Load tuples, with the number and the match of each."""
        self._loading = numbers, encode
        self.load(parts)

    def load_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Load the tuples themselves, unchanged."""
        numbers, encode = self._loading
        tuples = [tuple_ for part in parts for tuple_ in part["data"]]
        columns = [narrow(each) for each in exact_columns(tuples, self.shown, self.type_of)]
        named = dict(zip(self.shown, columns, strict=True))
        known = np.array(numbers, np.int64).reshape(-1, 2)
        hidden = [encode(named, len(tuples)), known[:, 0].copy(), known[:, 1].copy()]
        columns += [Column(pa.int64(), values) for values in hidden]
        lengths = np.array([len(part["data"]) for part in parts], np.intp)
        self.store.grow(self.ledger.size)
        self.store.put(ids, columns, lengths)

    def handed_over(self) -> tuple[Places, list[dict[str, Any]], list[tuple[int, bool]]]:
        """The partitions in the form of snapshots, and number and match of each row."""
        ids = self.stored()
        parts, numbers = self.parts(ids), []
        for tuple_ in (tuple_ for part in parts for tuple_ in part["data"]):
            _, number, matched = (tuple_.pop(name) for name in HIDDEN)
            numbers.append((number, bool(matched)))
        return ids, parts, numbers


class KeyIndex:
    """The residents of a side by key, each key's in order of arrival."""

    def __init__(self, side: JoinSide, keys: int, hide: bool) -> None:
        places = side.residents()
        key = side.hidden(KEY)[places]
        there = key >= 0
        if hide:  # rows that have matched must not be found again
            there &= side.hidden(MATCHED)[places] == 0
        if not there.all():
            places, key = places[there], key[there]
        order, touched, starts = group(key, keys)
        self._places = places[order]
        # One slot more than keys, which stays empty: the number -1 finds it.
        self._first = np.zeros(keys + 1, np.int64)
        self._count = np.zeros(keys + 1, np.int64)
        self._first[touched], self._count[touched] = starts[:-1], np.diff(starts)

    def counts(self, keys: Ints) -> Ints:
        """How many residents each of these keys has."""
        return self._count[self._known(keys)]

    def found(self, keys: Ints, counts: Ints) -> Places:
        """The first `counts` residents of each key, one key after the other."""
        return self._places[ranges(self._first[self._known(keys)], counts)]

    def _known(self, keys: Ints) -> Ints:
        """The same keys, -1 for keys that are newer than the index."""
        return np.where(keys < len(self._count) - 1, keys, -1)


@dataclass(slots=True)
class JoinOutcome:
    """The result of a batch: pairs of a row of its side and one of the other, in order."""

    causes: Places
    """The row of the batch that causes each pair."""
    leaves: npt.NDArray[np.bool_]
    """Whether its row leaves without a match."""
    mine: Places
    """Where it is in `rows`."""
    other: Places
    """Where in the other side's storage its match is; -1: it has none."""
    rows: RowColumns

    def __len__(self) -> int:
        return len(self.causes)

    def filter(self, which: npt.NDArray[np.bool_]) -> JoinOutcome:
        """Some of the pairs."""
        causes, mine, other = (each[which] for each in (self.causes, self.mine, self.other))
        return JoinOutcome(causes, self.leaves[which], mine, other, self.rows)


@dataclass(slots=True)
class PendingBatch:
    """The changes of a batch, which `commit` applies."""

    port: int
    rows: int
    found: Places
    """The residents of the other side that have matched."""


class JoinEngine:
    """Both sides of a join as arrays.

    `insert` computes what a batch gives and changes nothing; `commit` then makes it so.

    Args:
        keys: the equality keys.
        stores: whether each side keeps its rows, or only probes.
        outer: whether the rows of each side are put out if they leave without a match.
        once: whether left rows count once, as in semi and anti joins: a match hides them.
        number: of the row that came last, on either side.
    """

    def __init__(
        self,
        keys: JoinKeys,
        stores: Sequence[bool],
        outer: Sequence[bool],
        once: bool,
        number: int,
    ) -> None:
        self.keys, self.stores, self.outer, self.once = keys, stores, outer, once
        self.number = number
        self.schemas: list[pa.Schema | None] = [None, None]
        self.sides: list[JoinSide | None] = [None, None]
        self._indexes: list[KeyIndex | None] = [None, None]
        self._pending = PendingBatch(0, 0, NONE)

    def open(
        self, port: int, window: SlidingWindow[Any, Any], schema: pa.Schema, state: State = ((), ())
    ) -> None:
        """Load a side with these columns from the state of the event engine."""
        if not schema.names or len(set(schema.names)) < len(schema.names):
            raise Decline("columns need names of their own")
        if self.stores[port]:
            side = JoinSide(window, schema)
            parts, numbers = state
            if parts:
                encode = partial(self._encoded, port)
                side.adopt(list(parts), numbers, encode)
            self.sides[port] = side
        self.schemas[port] = schema

    def _encoded(self, port: int, columns: dict[str, Any], rows: int) -> Ints:
        arrays = []
        for name in self.keys.columns[port]:
            if name not in columns:
                raise Decline(f"there is no column {name!r}")
            found = columns[name]
            arrays.append(found.arrow() if isinstance(found, Column) else found)
        return self.keys.encode(arrays, rows)

    def held(self, port: int) -> int:
        """How many rows a side keeps."""
        side = self.sides[port]
        return 0 if side is None else side.held()

    def indexed(self, port: int) -> bool:
        """Whether the index of a side is up to date."""
        return self._indexes[port] is not None

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch, port: int, most: int) -> JoinOutcome | None:
        """The result of a batch; None: more than `most` rows, and the batch is not a single row."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = self._encoded(port, columns, batch.num_rows)
        index = self._index(1 - port)
        counts = np.zeros(len(keys), np.int64) if index is None else index.counts(keys)
        if self.once:
            counts = np.minimum(counts, 1) if port == 0 else _of_first(keys, counts)
        if counts.sum() > most and len(keys) > 1:
            return None
        found = NONE if index is None else index.found(keys, counts)
        matched = counts > 0
        rows, places, leaving = self._entered(batch, port, keys, matched)
        self._pending = PendingBatch(port, len(keys), found)
        return _outcome(rows, places, np.repeat(np.arange(len(keys)), counts), found, leaving)

    def _index(self, port: int) -> KeyIndex | None:
        side = self.sides[port]
        if side is not None and self._indexes[port] is None:
            self._indexes[port] = KeyIndex(side, len(self.keys), self.once and port == 0)
        return self._indexes[port]

    def _entered(
        self, batch: pa.RecordBatch, port: int, keys: Ints, matched: npt.NDArray[np.bool_]
    ) -> tuple[RowColumns, Places, tuple[Places, Places]]:
        """The rows of a batch among those of its side, where they are, and who leaves unmatched.

        Those who leave are given as the rows of the batch that they leave with, and their places.
        """
        side, n = self.sides[port], len(keys)
        if side is None:  # it only probes
            rows = RowColumns(batch.schema.names, [Column.of(each) for each in batch.columns], None)
            alone = np.flatnonzero(~matched) if self.outer[port] else NONE
            return rows, np.arange(n), (alone, alone)
        numbers = np.arange(self.number + 1, self.number + 1 + n)
        for name, values in zip(HIDDEN, (keys, numbers, matched.astype(np.int64)), strict=True):
            batch = batch.append_column(name, pa.array(values))
        firings = side.insert(batch)
        rows, places = firings.content, firings.hi - 1
        leaving = (NONE, NONE)
        if self.outer[port]:
            leaving = _evicted(rows, places, firings.lo)
        return rows, places, leaving

    def commit(self) -> None:
        """Commit the batch."""
        pending = self._pending
        mine, other = self.sides[pending.port], self.sides[1 - pending.port]
        if mine is not None:
            mine.commit()
            self._indexes[pending.port] = None
        if other is not None and len(pending.found):
            other.hidden(MATCHED)[pending.found] = 1
            if self.once and pending.port == 1:
                self._indexes[0] = None
        self.number += pending.rows
        if len(self.keys) > MAX_UNUSED_KEYS + 4 * (self.held(0) + self.held(1)):
            self._compact()

    def _compact(self) -> None:
        """Drop keys without residents."""
        sides = [side for side in self.sides if side is not None]
        places = [side.residents() for side in sides]
        held = [side.hidden(KEY)[at] for side, at in zip(sides, places, strict=True)]
        alive = np.unique(np.concatenate([np.empty(0, np.int64), *held]))
        alive = alive[alive >= 0]
        self.keys.compact(alive)
        for side, at, keys in zip(sides, places, held, strict=True):
            side.hidden(KEY)[at] = np.where(keys < 0, -1, np.searchsorted(alive, keys))
        self._indexes = [None, None]


def _of_first(keys: Ints, counts: Ints) -> Ints:
    """Counts for the first row of each key, and 0 for the others, which find no match left."""
    kept = np.zeros_like(counts)
    firsts = np.unique(keys, return_index=True)[1]
    kept[firsts] = counts[firsts]
    return kept


def _evicted(rows: RowColumns, places: Places, lo: Places) -> tuple[Places, Places]:
    """The rows that leave unmatched, and the row of the batch that evicts each."""
    order = np.argsort(places)  # partition by partition
    number = rows.partition(places[order])
    starts = lo[order]
    before = np.empty_like(starts)
    before[1:] = starts[:-1]
    heads = np.append(True, number[1:] != number[:-1])
    before[heads] = rows.base[number[heads]]
    counts = starts - before
    evicted = ranges(before, counts)
    causes = np.repeat(order, counts)
    alone = rows[MATCHED].data[evicted] == 0
    causes, evicted = causes[alone], evicted[alone]
    order = np.argsort(causes, kind="stable")
    return causes[order], evicted[order]


def _outcome(
    rows: RowColumns, places: Places, causes: Places, found: Places, leaving: tuple[Places, Places]
) -> JoinOutcome:
    """For each row of the batch its matches, and then the unmatched rows that it evicts."""
    causing, gone = leaving
    mine = places[causes]
    if not len(gone):
        return JoinOutcome(causes, np.zeros(len(causes), bool), mine, found, rows)
    leaves = np.repeat([False, True], [len(causes), len(gone)])
    causes = np.concatenate([causes, causing])
    order = np.argsort(causes, kind="stable")
    mine = np.concatenate([mine, gone])
    other = np.concatenate([found, np.full(len(gone), -1)])
    return JoinOutcome(causes[order], leaves[order], mine[order], other[order], rows)
