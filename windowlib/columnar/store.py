"""Rows that partitions keep from batch to batch, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.dumps import column_of, dumped, lengths, need, packed
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges

ROOM = 1 << 12
"""Rows for which there is room at first."""


class Buffer:
    """One column that only grows: numbers in an array with room to spare, or Arrow chunks."""

    def __init__(self, kind: pa.DataType, like: Column) -> None:
        self.kind = kind
        self.size = 0
        self._data: Any = np.empty(ROOM, like.data.dtype) if like.physical else None
        self._valid: Any = None
        self._chunks: list[pa.Array] = []

    def append(self, column: Column) -> None:
        """Add values at the end."""
        end = self.size + len(column)
        if self._data is None:
            self._chunks.append(column.data)
        else:
            self._room(end)
            self._data[self.size : end] = column.data
            if column.valid is not None and self._valid is None:
                self._valid = np.ones(len(self._data), bool)
            if self._valid is not None:
                valid = True if column.valid is None else column.valid
                self._valid[self.size : end] = valid
        self.size = end

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

    def replace(self, column: Column) -> None:
        """Hold these values and no others."""
        self.size = 0
        self._chunks, self._valid = [], None
        self.append(column)


def _longer(array: Any, room: int) -> Any:
    longer = np.empty(room, array.dtype)
    longer[: len(array)] = array
    return longer


class Store:
    """The rows of each partition, oldest first; a batch costs what it touches, not what is held.

    Rows that are replaced stay behind as garbage, until there is more of it than of anything else.
    """

    def __init__(self, like: Sequence[Column]) -> None:
        self._buffers = [Buffer(column.type, column) for column in like]
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
        lengths = self.lengths[ids]
        places = ranges(self.starts[ids], lengths)
        return [buffer.take(places) for buffer in self._buffers], lengths

    def whole(self, column: int) -> Column:
        """A column of all rows, by their place in storage, garbage too."""
        return self._buffers[column].whole()

    def places(self, ids: Places) -> Places:
        """Where in storage the rows of some partitions are, one partition after the other."""
        return ranges(self.starts[ids], self.lengths[ids])

    def none(self) -> list[Column]:
        """No rows."""
        return [buffer.take(np.empty(0, np.intp)) for buffer in self._buffers]

    def put(self, ids: Places, columns: Sequence[Column], lengths: Places) -> None:
        """Replace the rows of some partitions."""
        for buffer, column in zip(self._buffers, columns, strict=True):
            buffer.append(column)
        self.starts[ids] = self._size + np.cumsum(lengths) - lengths
        self.lengths[ids] = lengths
        self._size += int(lengths.sum())
        if self._size > ROOM and self._size > 2 * int(self.lengths.sum()):
            self._pack()

    def drop(self, ids: Places) -> None:
        """Forget the rows of some partitions."""
        self.lengths[ids] = 0

    def _pack(self) -> None:
        ids = np.flatnonzero(self.lengths)
        columns, lengths = self.take(ids)
        for buffer, column in zip(self._buffers, columns, strict=True):
            buffer.replace(column)
        self.starts[ids] = np.cumsum(lengths) - lengths
        self._size = int(lengths.sum())

    def dump(self, ids: Places) -> dict[str, Any]:
        """The rows of some partitions, one after the other."""
        columns, held = self.take(ids)
        return {"lengths": packed(held), "columns": [dumped(each) for each in columns]}

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        held, given = lengths(state["lengths"], len(ids)), state["columns"]
        need(len(given) == len(self._buffers), f"{len(given)} columns")
        total = int(held.sum())
        pairs = zip(given, self._buffers, strict=True)
        self.put(ids, [column_of(each, buffer.kind, total) for each, buffer in pairs], held)
