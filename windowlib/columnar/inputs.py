"""The columns that functions and policies read from a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windowlib.attributes import Several
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Places
from windowlib.spec.policies import Attribute, attribute_text
from windowlib.window.consumer import Decline


class Inputs:
    """The columns of some rows, converted when they are first read."""

    def __init__(self, rows: pa.RecordBatch | Mapping[str, Column]) -> None:
        self._rows = rows
        self._columns: dict[Any, Column] = {}
        self.asked: dict[str, None] = {}

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(
            self._rows.schema.names if isinstance(self._rows, pa.RecordBatch) else self._rows
        )

    def named(self, name: str) -> Column:
        """A column by name."""
        found = self._columns.get(name)
        if found is None:
            self.asked[name] = None
            found = self._columns[name] = self._found(name)
        return found

    def _found(self, name: str) -> Column:
        if not isinstance(self._rows, pa.RecordBatch):
            if name not in self._rows:
                raise Decline(f"there is no column {name!r}")
            return self._rows[name]
        index = self._rows.schema.get_field_index(name)
        if index < 0:
            raise Decline(f"there is no single column {name!r}")
        return Column.of(self._rows.column(index))

    def arrow(self, name: str) -> pa.Array:
        """A column as an Arrow array, for keys."""
        if not isinstance(self._rows, pa.RecordBatch):
            return self._rows[name].arrow()
        return self._rows.column(self._rows.schema.get_field_index(name))

    def whole(self) -> Column:
        """The rows as a batch."""
        names = self.names
        arrays = [self.named(name).arrow() for name in names]
        return Column.of(pa.StructArray.from_arrays(arrays, names))

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


class LayoutColumns:
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
            found = self._sorted[id(column)] = column.gathered(self._order)
        return found


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
