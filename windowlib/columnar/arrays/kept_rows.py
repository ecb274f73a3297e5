"""Rows that partitions keep from batch to batch, as columns.

A `RowStore` has them one after the other, as they came, and the places of each partition.
`SlotTables` have a table for each column, in it a row for each partition, and there a slot for each
tuple of a window of one size: a tuple is put into its slot once and stays until the window closes,
so that nothing is moved from batch to batch, and nothing becomes garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import (
    checked_lengths,
    dump_column,
    load_column,
    need,
    packed,
)
from windowlib.columnar.primitives import NONE, Places, arrival_loops, ranges

ROOM = 1 << 12
"""Rows for which there is room at first."""
GARBAGE = 2
"""Batches that may lie about as garbage."""


class Buffer:
    """One column that only grows: numbers in an array with room to spare, or Arrow chunks."""

    def __init__(self, kind: pa.DataType, like: Column) -> None:
        self.kind = kind
        self.size = 0
        self._data: Any = np.empty(ROOM, like.data.dtype) if like.physical else None
        self._valid: Any = None
        self._chunks: list[pa.Array] = []
        self._laid: pa.Array | None = None

    def lay(self, column: Column) -> Column:
        """All values, and behind them others, which are not there before `add`; views."""
        end = self.size + len(column)
        if self._data is None:
            self._laid = pa.concat_arrays([self.whole().data, column.data])
            return Column.of(self._laid)
        self._room(end)
        self._data[self.size : end] = column.data
        if column.valid is not None and self._valid is None:
            self._valid = np.ones(len(self._data), bool)
        if self._valid is not None:
            self._valid[self.size : end] = True if column.valid is None else column.valid
        valid = None if self._valid is None else self._valid[:end]
        return Column(self.kind, self._data[:end], valid)

    def add(self, length: int) -> None:
        """So many values that `lay` laid last are there from now on."""
        self.size += length
        if self._data is None:
            self._chunks, self._laid = [self._laid], None

    def append(self, column: Column) -> None:
        """Add values at the end."""
        if self._data is None:
            self._chunks.append(column.data)
            self.size += len(column)
        else:
            self.lay(column)
            self.add(len(column))

    def _room(self, size: int) -> None:
        if size > len(self._data):
            room = max(size, 2 * len(self._data))
            self._data = _longer(self._data, room)
            if self._valid is not None:
                self._valid = _longer(self._valid, room)

    def take(self, places: Places) -> Column:
        """The values at some places."""
        if self._data is not None:
            valid = None if self._valid is None else self._valid[places]
            valid = None if valid is None or valid.all() else valid
            return Column(self.kind, self._data[places], valid)
        return self.whole().take(places)

    def whole(self) -> Column:
        """All values, those that are no longer needed too; a view, where they are numbers."""
        if self._data is not None:
            valid = None if self._valid is None else self._valid[: self.size]
            return Column(self.kind, self._data[: self.size], valid)
        if len(self._chunks) != 1:
            whole = pa.concat_arrays(self._chunks) if self._chunks else pa.array([], self.kind)
            self._chunks = [whole]
        return Column.of(self._chunks[0])

    def keep(self, places: Places, room: int) -> None:
        """Hold the values at some places and no others, with room for so many; views stay good."""
        self.size = len(places)
        if self._data is None:
            self._chunks = [self.whole().take(places).data]
        else:
            self._data = _taken(self._data, places, room)
            if self._valid is not None:
                self._valid = _taken(self._valid, places, room)

    def replace(self, column: Column) -> None:
        """Hold these values and no others; numbers where they are, without room to spare."""
        self.size = len(column)
        if self._data is None:
            self._chunks = [column.data]
        else:
            self._data = column.data.astype(self._data.dtype, copy=False)
            self._valid = column.valid


def _places(places: Places) -> Column:
    return Column(pa.int64(), places)


def _taken(array: Any, places: Places, room: int) -> Any:
    taken = np.empty(max(room, len(places)), array.dtype)
    array.take(places, out=taken[: len(places)], mode="clip")
    return taken


def _longer(array: Any, room: int) -> Any:
    longer = np.empty((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class RowStore:
    """The rows of each partition, oldest first; a batch costs what it touches, not what is held.

    Rows stay where they are put, and a partition has the places of its rows: a run of `_order`.
    What is replaced stays behind as garbage, until there is more of it than of anything else.
    """

    def __init__(self, like: Sequence[Column]) -> None:
        self._buffers = [Buffer(column.type, column) for column in like]
        self._order = Buffer(pa.int64(), _places(NONE))
        self.starts = np.zeros(0, np.intp)
        self.lengths = np.zeros(0, np.intp)
        self._size = 0

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        if size > len(self.lengths):
            more = np.zeros(max(size, 2 * len(self.lengths)) - len(self.lengths), np.intp)
            self.starts = np.append(self.starts, more)
            self.lengths = np.append(self.lengths, more)

    def take(self, ids: Places) -> tuple[list[Column], Places]:
        """The rows of some partitions, one after the other, and how many each has."""
        places = self.places(ids)
        return [buffer.take(places) for buffer in self._buffers], self.lengths[ids]

    def whole(self, column: int) -> Column:
        """A column of all rows, by their place in storage, garbage too."""
        return self._buffers[column].whole()

    def places(self, ids: Places) -> Places:
        """Where in storage the rows of some partitions are, one partition after the other."""
        found: Places = self._order.take(ranges(self.starts[ids], self.lengths[ids])).data
        return found

    def none(self) -> list[Column]:
        """No rows."""
        return [buffer.take(NONE) for buffer in self._buffers]

    def lay(self, columns: Sequence[Column]) -> tuple[list[Column], int]:
        """All rows, and behind them new ones, which no partition has yet; and where these begin."""
        pairs = zip(self._buffers, columns, strict=True)
        return [buffer.lay(column) for buffer, column in pairs], self._size

    def keep(self, ids: Places, places: Places, lengths: Places, laid: int) -> None:
        """Replace the rows of some partitions by those at some places.

        Args:
            ids: the partitions.
            places: one partition after the other; rows that `lay` laid last may be among them.
            lengths: how many each has.
            laid: how many rows that were.
        """
        if laid:
            for buffer in self._buffers:
                buffer.add(laid)
            self._size += laid
        self.starts[ids] = self._order.size + np.cumsum(lengths) - lengths
        self.lengths[ids] = lengths
        self._order.append(_places(places))
        self._tidy(laid)

    def put(self, ids: Places, columns: Sequence[Column], lengths: Places) -> None:
        """Replace the rows of some partitions."""
        total = int(lengths.sum())
        if self.lengths.sum() == self.lengths[ids].sum():  # nobody else has any
            self._replace(columns, total)
            self.lengths[ids] = lengths
            self._reorder(ids, np.arange(total), lengths)
            return
        for buffer, column in zip(self._buffers, columns, strict=True):
            buffer.append(column)
        self._size += total
        self.keep(ids, np.arange(self._size - total, self._size), lengths, 0)

    def _replace(self, columns: Sequence[Column], size: int) -> None:
        """Store these rows and no others."""
        for buffer, column in zip(self._buffers, columns, strict=True):
            buffer.replace(column)
        self._size = size

    def drop(self, ids: Places) -> None:
        """Forget the rows of some partitions."""
        self.lengths[ids] = 0

    def _tidy(self, laid: int) -> None:
        """Remove garbage, if there is much of it; that of a few batches does no harm."""
        held = int(self.lengths.sum())
        spare = max(ROOM, GARBAGE * laid)
        if self._size > 2 * held + spare:
            ids = np.flatnonzero(self.lengths)
            places = self.places(ids)
            for buffer in self._buffers:
                buffer.keep(places, 2 * held + spare + laid)
            self._size = held
            self._reorder(ids, np.arange(held), self.lengths[ids])
        elif self._order.size > 2 * held + spare:
            ids = np.flatnonzero(self.lengths)
            self._reorder(ids, self.places(ids), self.lengths[ids])

    def _reorder(self, ids: Places, places: Places, lengths: Places) -> None:
        """All partitions that have rows have them at these places."""
        self.starts[ids] = np.cumsum(lengths) - lengths
        self._order.replace(_places(places))

    def dump(self, ids: Places) -> dict[str, Any]:
        """The rows of some partitions, one after the other."""
        columns, held = self.take(ids)
        return {"lengths": packed(held), "columns": [dump_column(each) for each in columns]}

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        held, given = checked_lengths(state["lengths"], len(ids)), state["columns"]
        need(len(given) == len(self._buffers), f"{len(given)} columns")
        total = int(held.sum())
        pairs = zip(given, self._buffers, strict=True)
        self.put(ids, [load_column(each, buffer.kind, total) for each, buffer in pairs], held)


class RowColumns(Mapping[str, Column]):
    """The kept and the new rows of the touched partitions; columns are put in order when read."""

    def __init__(self, names: list[str], columns: Sequence[Column], place: Places | None) -> None:
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
                found = found.gathered(self._place)
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
        return [column.gathered(source) for column in self._columns]

    def at(self, places: Places) -> RowColumns:
        """Some rows, in this order, without moving anything yet."""
        return RowColumns(self.names, self._columns, self.sources(places))

    def sources(self, places: Places) -> Places:
        """Where the rows at some places are in the columns."""
        return places if self._place is None else self._place[places]

    def last(self) -> Column:
        """The last column, which need not have a name."""
        column = self._columns[-1]
        return column if self._place is None else column.gathered(self._place)

    def picked(self, name: str, places: Places) -> Column | None:
        """Some values of a column, if there is such a column."""
        if name not in self.names:
            return None
        return self._columns[self.names.index(name)].gathered(self.sources(places))

    def partition(self, places: Places, *, ascending: bool = False) -> Places:
        """The number of the partition that each place is in."""
        if len(self.base) == 1:
            return np.zeros(len(places), np.intp)
        if ascending and len(self.base) < len(places):  # fewer are to be searched
            ends = np.searchsorted(places, self.ends)
            return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        return np.searchsorted(self.base, places, "right") - 1


class SlotTable:
    """One column of numbers. Slots are counted row after row; behind them is one for the rest."""

    def __init__(self, like: Column, rows: int, width: int) -> None:
        self._type, self._width = like.type, width
        self._data: Any = np.empty(rows * width + 1, like.data.dtype)
        self._valid: Any = None

    def grow(self, rows: int) -> None:
        """Make room for so many rows."""
        have = (len(self._data) - 1) // self._width
        if rows > have:
            room = max(rows, 2 * have) * self._width + 1
            self._data = _longer(self._data, room)
            self._valid = None if self._valid is None else _longer(self._valid, room)

    def fill(self, column: Column, new: SlotMoves | SlotScatter) -> None:
        """Fill slots with new rows."""
        new.fill(self, column)

    def put(self, slots: Places, column: Column) -> None:
        """Fill some slots."""
        self._data[slots] = column.data
        if self._may_have_nulls(column):
            self._valid[slots] = column.validity()

    def scatter(self, places: Places, first: int, column: Column) -> None:
        """Fill the slots at places from `first` on; values at other places are not wanted."""
        put = arrival_loops().put
        put(column.data, places, first, self._data)
        if self._may_have_nulls(column):
            put(column.validity(), places, first, self._valid)

    def _may_have_nulls(self, column: Column) -> bool:
        """Whether nulls are noted, as they are from the first column on that has some."""
        if column.valid is not None:
            self._nullable()
        return self._valid is not None

    def copy(self, rows: Places) -> SlotTable:
        """A table of some rows."""
        made = SlotTable(Column(self._type, self._data), len(rows), self._width)
        self._rows(self._data).take(rows, axis=0, out=made._rows(made._data), mode="clip")
        if self._valid is not None:
            made._nullable()
            self._rows(self._valid).take(rows, axis=0, out=made._rows(made._valid), mode="clip")
        return made

    def _rows(self, slots: Any) -> Any:
        return slots[:-1].reshape(-1, self._width)

    def _nullable(self) -> None:
        if self._valid is None:
            self._valid = np.ones(len(self._data), bool)

    def whole(self) -> Column:
        """The values in all slots; a view."""
        return self.take(slice(-1))

    def take(self, slots: Places | slice) -> Column:
        """The values in some slots; a slice is a view."""
        valid = None if self._valid is None else self._valid[slots]
        if valid is not None and valid.all():
            valid = None
        return Column(self._type, self._data[slots], valid)


class KeyTable:
    """A column of partition keys, which is the same in all slots of a row: nothing is kept.

    Args:
        keys: gives the values for some partitions.
        width: how many slots a row has.
        ids: of a copy, the partition of each row; otherwise that is its number.
    """

    def __init__(self, keys: Callable[[Places], Column], width: int, ids: Places = NONE) -> None:
        self._keys, self._width, self._ids = keys, width, ids

    def grow(self, rows: int) -> None:
        """There is room."""

    def fill(self, column: Column, new: SlotMoves | SlotScatter) -> None:
        """New rows have the key of their partition."""

    def put(self, slots: Places, column: Column) -> None:
        """Rows have the key of their partition."""

    def copy(self, rows: Places) -> KeyTable:
        """A table of some rows."""
        return KeyTable(self._keys, self._width, rows)

    def whole(self) -> Column:
        """The values in all slots of a copy."""
        return self._keys(np.repeat(self._ids, self._width))

    def take(self, slots: Places) -> Column:
        """The values in some slots."""
        return self._keys(slots // self._width)


class SlotTables:
    """All columns of the rows that partitions keep; how many these are is known elsewhere."""

    def __init__(self, tables: Sequence[SlotTable | KeyTable], width: int) -> None:
        self.tables, self.width = tables, width

    def grow(self, partitions: int) -> None:
        """Make room for so many partitions."""
        for table in self.tables:
            table.grow(partitions)

    def put(self, slots: Places, columns: Sequence[Column]) -> None:
        """Fill some slots, partition by partition."""
        for table, column in zip(self.tables, columns, strict=True):
            table.put(slots, column)

    def fill(self, columns: Sequence[Column], new: SlotMoves | SlotScatter) -> None:
        """Fill slots with new rows."""
        for table, column in zip(self.tables, columns, strict=True):
            table.fill(column, new)

    def take(self, ids: Places, lengths: Places) -> list[Column]:
        """The first rows of some partitions, so many of each, one partition after the other."""
        slots = ranges(ids * self.width, lengths)
        return [table.take(slots) for table in self.tables]


class SlotMoves(NamedTuple):
    """Rows of a batch, and the slots they go to."""

    rows: Places
    slots: Places

    def fill(self, table: SlotTable, column: Column) -> None:
        """Fill the slots with these rows of a column."""
        table.put(self.slots, column.gathered(self.rows))


class SlotScatter(NamedTuple):
    """A place for each row of a batch; from `first` on, places are slots."""

    places: Places
    first: int

    def fill(self, table: SlotTable, column: Column) -> None:
        """Fill the slots with rows of a column."""
        table.scatter(self.places, self.first, column)


class FullWindows(Sequence[Column]):
    """The columns of windows that new rows fill, one window after the other; made when read.

    Args:
        kept: where partitions have the rows that they carry.
        columns: the columns of a batch.
        ids: the partition of each window; what it has before its new rows is kept there.
        new: which rows of the batch go to which slots of these windows.
    """

    def __init__(
        self,
        kept: SlotTables,
        columns: Sequence[Column],
        ids: Places,
        new: SlotMoves | SlotScatter,
    ) -> None:
        self._kept, self._columns, self._ids, self._new = kept, columns, ids, new

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, number: Any) -> Any:
        made = self._kept.tables[number].copy(self._ids)
        made.fill(self._columns[number], self._new)
        return made.whole()
