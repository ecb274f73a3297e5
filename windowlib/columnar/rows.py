"""Engines that keep rows: those of earlier batches and the new ones, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from windowlib.attributes import Getter, column_names
from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.dumps import need, whole
from windowlib.columnar.engine import Engine
from windowlib.columnar.physical import check_movable, numeric, plain_type
from windowlib.columnar.pieces import Grouped, Places
from windowlib.columnar.primitives import ranges
from windowlib.columnar.store import ROOM, Store

WORTH = 32
"""Kept rows for each new one from which on moving them costs more than array arithmetic gains."""
PATIENCE = 32
"""How often rows are moved in vain before they go back to the event engine, which costs more."""


class Rows(Mapping[str, Column]):
    """The kept and the new rows of the touched partitions; columns are put in order when read."""

    def __init__(self, names: list[str], columns: list[Column], place: Places | None) -> None:
        self.names, self._columns, self._place = names, columns, place
        self._ordered: dict[str, Column] = {}
        self.laid = 0  # how many are in the store only as new rows, if all places are there
        self.base: Places  # where each partition begins
        self.fresh: Places  # where its new rows begin
        self.ends: Places  # where it ends

    def __getitem__(self, name: str) -> Column:
        found = self._ordered.get(name)
        if found is None:
            found = self._columns[self.names.index(name)]
            if self._place is not None:
                found = found.take(self._place)
                if found.valid is not None and found.valid.all():  # nulls are elsewhere
                    found = found.with_values(found.data)
            self._ordered[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def part(self, places: Places) -> list[Column]:
        """All columns of some rows."""
        source = self.sources(places)
        return [column.take(source) for column in self._columns]

    def at(self, places: Places) -> Rows:
        """Some rows, in this order, without moving anything yet."""
        return Rows(self.names, self._columns, self.sources(places))

    def sources(self, places: Places) -> Places:
        """Where the rows at some places are in the columns."""
        return places if self._place is None else self._place[places]

    def last(self) -> Column:
        """The last column, which need not have a name."""
        column = self._columns[-1]
        return column if self._place is None else column.take(self._place)

    def picked(self, name: str, places: Places) -> Column | None:
        """Some values of a column, if there is such a column."""
        if name not in self.names:
            return None
        return self._columns[self.names.index(name)].take(self.sources(places))

    def partition(self, places: Places) -> Places:
        """The number of the partition that each place is in."""
        return np.searchsorted(self.base, places, "right") - 1


class RowsEngine(Engine):
    """Base of engines that keep rows."""

    names: list[str]
    store: Store
    reads_some = False  # whether nobody looks at columns that are not kept
    worth = WORTH
    _in_vain = 0  # rows that were moved, beyond what is worth it

    def keep(self, names: list[str], *more: Column) -> None:
        """Say which columns are kept, and give empty ones like those that `more` adds to them."""
        self.names = names
        for name in names:
            check_movable(plain_type(self.type_of(name)))
        named = [Column.of(pa.array([], self.type_of(name))) for name in names]
        self.store = Store([*named, *more])

    def more(self, rows: int) -> list[Column]:
        """Columns that new rows have beside those of the batch."""
        return []

    def rows(self, batch: pa.RecordBatch, grouped: Grouped) -> Rows:
        """The rows of the touched partitions: those that are kept, then the new ones."""
        self.store.grow(self.ledger.size)
        held, new = self.store.lengths[grouped.touched], grouped.lengths
        self._move(int(held.sum()), batch.num_rows)
        columns = [
            _narrow(Column.of(batch.column(self.schema.get_field_index(name))))
            for name in self.names
        ]
        columns += self.more(batch.num_rows)
        both = held + new
        ends = np.cumsum(both)
        base = ends - both
        if grouped.order is None:
            rows = self._side_by_side(grouped, columns)
        else:
            columns, first = self.store.lay(columns)
            place = np.empty(int(ends[-1]), np.intp)
            place[ranges(base, held)] = self.store.places(grouped.touched)
            place[ranges(base + held, new)] = first + grouped.order
            rows = Rows(self.names, columns, place)
            rows.laid = batch.num_rows
        rows.base, rows.fresh, rows.ends = base, base + held, ends
        return rows

    def _side_by_side(self, grouped: Grouped, columns: list[Column]) -> Rows:
        """The rows of one partition, in memory of their own, which may be handed on."""
        kept, _ = self.store.take(grouped.touched)
        if kept and len(kept[0]):
            columns = [Column.concat([a, b]) for a, b in zip(kept, columns, strict=True)]
        return Rows(self.names, columns, None)

    def hold(self, ids: Places, rows: Rows, places: Places, lengths: Places) -> None:
        """Partitions have these rows from now on, one partition after the other."""
        if rows.laid:
            self.store.keep(ids, rows.sources(places), lengths, rows.laid)
        else:
            self.store.put(ids, rows.part(places), lengths)

    def _move(self, held: int, rows: int) -> None:
        """Refuse to go on moving many rows for a few new ones; once in a while does no harm."""
        self._in_vain = max(0, self._in_vain + held - self.worth * rows - ROOM)
        if self._in_vain > PATIENCE * held:
            self._long()

    def _long(self) -> NoReturn:
        raise Decline("windows that are long against the batch are better kept row by row")

    def check_load(self, rows: int) -> None:
        """Refuse windows that are long against a batch of so many rows."""
        held = sum(len(s.data) for s in self.window._subs.values())
        if held > self.worth * rows + ROOM:
            self._long()

    def held(self) -> int:
        """How many tuples are kept."""
        return int(self.store.lengths.sum())

    def load_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Take over the tuples of the event engine."""
        self.store.grow(self.ledger.size)
        tuples = [tuple_ for part in parts for tuple_ in part["data"]]
        if not all(self._fits(tuple_) for tuple_ in tuples):
            raise Decline("tuples with other columns than the batch")
        columns = []
        for name in self.names:
            get = Getter(name, name)
            values = [get(tuple_) for tuple_ in tuples]
            columns.append(_narrow(Column.from_values(values, self.type_of(name))))
        lengths = np.array([len(part["data"]) for part in parts], np.intp)
        self.store.put(ids, columns + self.load_more(parts), lengths)

    def _fits(self, tuple_: Any) -> bool:
        """Whether a tuple has the columns that are kept; where that is all, it comes out again."""
        if self.names == self.schema.names:
            return type(tuple_) is dict and list(tuple_) == self.names
        return set(self.names) <= set(column_names(tuple_))

    def load_more(self, parts: list[dict[str, Any]]) -> list[Column]:
        """Columns that tuples of the event engine have beside their own."""
        return []

    def kept(self, ids: Places) -> tuple[list[Column], Places]:
        """The rows that some partitions hold, and how many each has."""
        return self.store.take(ids)

    def save_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Give the tuples to the event engine."""
        columns, lengths = self.kept(ids)
        lists = [column.arrow().to_pylist() for column in columns[: len(self.names)]]
        tuples = [dict(zip(self.names, row, strict=True)) for row in zip(*lists, strict=True)]
        if not lists:
            tuples = [{} for _ in range(int(lengths.sum()))]
        at = 0
        for part, length in zip(parts, lengths.tolist(), strict=True):
            part["data"] = tuples[at : at + length]
            at += length

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The rows that are kept, and how often they were moved in vain."""
        self.store.grow(self.ledger.size)
        rows = {"names": list(self.names), "in_vain": self._in_vain, **self.store.dump(ids)}
        return {**super().dump_content(ids), "rows": rows}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over rows."""
        super().load_content(ids, state)
        rows = state["rows"]
        need(rows["names"] == self.names, f"rows of {rows['names']}")
        self._in_vain = whole(rows["in_vain"], "rows moved in vain")
        self.store.grow(self.ledger.size)
        self.store.load_dump(ids, rows)


def _narrow(column: Column) -> Column:
    """The column, unless it has no numbers where others of its type do."""
    if not column.physical and numeric(column.type):
        raise Decline(f"values of {column.type} beyond 64 bits")
    return column
