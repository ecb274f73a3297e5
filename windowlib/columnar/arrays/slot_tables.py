"""Rows that partitions keep in slots: for each column a table with a row for each partition.

A window of one size has a slot for each of its tuples. A row is put into its slot once and stays
there until the window closes: nothing is moved from batch to batch, and nothing becomes garbage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Places, ranges


class SlotTable:
    """One column of numbers. Slots are counted row after row."""

    def __init__(self, like: Column, rows: int, width: int) -> None:
        self._type = like.type
        self._data: Any = np.empty((rows, width), like.data.dtype)
        self._valid: Any = None

    def grow(self, rows: int) -> None:
        """Make room for so many rows."""
        if rows > len(self._data):
            rows = max(rows, 2 * len(self._data))
            self._data = _longer(self._data, rows)
            self._valid = None if self._valid is None else _longer(self._valid, rows)

    def put(self, slots: Places, column: Column) -> None:
        """Fill some slots."""
        self._data.ravel()[slots] = column.data
        if column.valid is not None:
            self._nullable()
        if self._valid is not None:
            self._valid.ravel()[slots] = True if column.valid is None else column.valid

    def copy(self, rows: Places, other: SlotTable, others: Places) -> None:
        """Fill some rows with those of another table."""
        self._data[rows] = other._data.take(others, axis=0)
        if other._valid is not None:
            self._nullable()
            self._valid[rows] = other._valid.take(others, axis=0)

    def _nullable(self) -> None:
        if self._valid is None:
            self._valid = np.ones(self._data.shape, bool)

    def take(self, slots: Places | slice) -> Column:
        """The values in some slots; a slice is a view."""
        valid = None if self._valid is None else self._valid.ravel()[slots]
        if valid is not None and valid.all():
            valid = None
        return Column(self._type, self._data.ravel()[slots], valid)


def _longer(table: Any, rows: int) -> Any:
    longer = np.empty((rows, table.shape[1]), table.dtype)
    longer[: len(table)] = table
    return longer


class SlotTables:
    """All columns of the rows that partitions keep; how many these are is known elsewhere."""

    def __init__(self, like: Sequence[Column], partitions: int, width: int) -> None:
        self.like, self.width = like, width
        self.tables = [SlotTable(column, partitions, width) for column in like]

    def grow(self, partitions: int) -> None:
        """Make room for so many partitions."""
        for table in self.tables:
            table.grow(partitions)

    def put(self, slots: Places, columns: Sequence[Column]) -> None:
        """Fill some slots, partition by partition."""
        for table, column in zip(self.tables, columns, strict=True):
            table.put(slots, column)

    def take(self, ids: Places, lengths: Places) -> list[Column]:
        """The first rows of some partitions, so many of each, one partition after the other."""
        slots = ranges(ids * self.width, lengths)
        return [table.take(slots) for table in self.tables]


class FullWindows(Sequence[Column]):
    """The columns of windows that new rows fill, one window after the other; made when read.

    Args:
        kept: where partitions have the rows that they carry.
        columns: the columns of a batch.
        ids: the partition of each window.
        carried: how many of its rows are kept ones.
        rows: the rows of the batch that are in these windows, one window after the other.
    """

    def __init__(
        self,
        kept: SlotTables,
        columns: Sequence[Column],
        ids: Places,
        carried: Places,
        rows: Places,
    ) -> None:
        self._kept, self._columns, self._windows, self._rows = kept, columns, len(ids), rows
        self._begun = np.flatnonzero(carried)
        self._ids = ids[self._begun]
        first = np.arange(len(ids)) * kept.width + carried
        self._slots = ranges(first, kept.width - carried)

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, number: Any) -> Any:
        kept = self._kept
        made = SlotTable(kept.like[number], self._windows, kept.width)
        made.copy(self._begun, kept.tables[number], self._ids)
        made.put(self._slots, self._columns[number].gathered(self._rows))
        return made.take(slice(None))
