"""The columns that functions and policies read from a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windowlib.attributes import Several
from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.pieces import Places
from windowlib.policies import Attribute, attribute_text

Read = Callable[[str], Column]


class Inputs:
    """The columns of one batch, read once each."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._columns: dict[Any, Column] = {}

    def named(self, name: str) -> Column:
        """A column of the batch."""
        found = self._columns.get(name)
        if found is None:
            index = self.batch.schema.get_field_index(name)
            if index < 0:
                raise Decline(f"there is no single column {name!r}")
            found = self._columns[name] = Column.of(self.batch.column(index))
        return found

    def whole(self) -> Column:
        """The rows themselves."""
        rows = pa.StructArray.from_arrays(self.batch.columns, fields=list(self.batch.schema))
        return Column.of(rows)

    def read(self, attribute: Attribute | None) -> tuple[Column, ...]:
        """The columns of an attribute: none, one, or those of several as one."""
        if attribute is None:
            return ()
        if isinstance(attribute, Several):
            return tuple(column for part in attribute.attributes for column in self.read(part))
        if isinstance(attribute, str):
            return (self.named(attribute),)
        own = getattr(attribute, "columnar", None)
        if own is None:
            raise Decline(f"{attribute_text(attribute)} reads each row in Python")
        found = self._columns.get(attribute)
        if found is None:
            found = self._columns[attribute] = own(self)
        return (found,)


class Sorted:
    """The columns of one batch in the order of a layout, each sorted once."""

    def __init__(self, inputs: Inputs, order: Places | None) -> None:
        self.inputs, self._order = inputs, order
        self._sorted: dict[int, Column] = {}

    def read(self, attribute: Attribute | None) -> tuple[Column, ...]:
        """The columns of an attribute, sorted."""
        return tuple(map(self._in_order, self.inputs.read(attribute)))

    def _in_order(self, column: Column) -> Column:
        if self._order is None:
            return column
        found = self._sorted.get(id(column))
        if found is None:
            found = self._sorted[id(column)] = column.take(self._order)
        return found
