"""Tumbling windows over batches whose rows come out sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column, exact_columns
from windowlib.columnar.arrays.encoding import need
from windowlib.columnar.arrays.kept_rows import RowColumns
from windowlib.columnar.arrays.sorting import sort_key, within
from windowlib.columnar.engines.row_engine import narrow
from windowlib.columnar.engines.tumbling import TumblingRowsEngine
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.primitives import Places, ranges
from windowlib.window.consumer import Decline
from windowlib.window.subwindow import UNSET

if TYPE_CHECKING:
    from windowlib.window.tumbling import TumblingWindow


class SortOrder(Protocol):
    """A sort key, its direction and the place of nulls."""

    @property
    def attribute(self) -> Any: ...  # noqa: D102
    @property
    def descending(self) -> bool: ...  # noqa: D102
    @property
    def nulls(self) -> str: ...  # noqa: D102


class ComparedKey(Protocol):
    """One sort key: `known` is its first value, which all others must compare with."""

    key: Any
    known: Any


class OrderedRows:
    """The rows of all firings of a batch, each firing's in order."""

    def __init__(self, rows: RowColumns, places: Places, lengths: Places) -> None:
        self._rows, self._places = rows, places
        self.lengths = lengths
        """How many rows each firing gives."""

    def columns(self) -> dict[str, Any]:
        """The rows as Arrow arrays, by name."""
        taken = self._rows.part(self._places)
        return {name: column.arrow() for name, column in zip(self._rows.names, taken, strict=True)}


class OrderedEngine(TumblingRowsEngine):
    """A tumbling window that keeps its tuples and sorts those of each flush."""

    form = "ordered"

    def __init__(
        self,
        window: TumblingWindow[Any, Any],
        schema: pa.Schema,
        keys: Sequence[ComparedKey],
        limit: int | None,
    ) -> None:
        super().__init__(window, schema)
        self.sort_keys, self.limit = keys, limit
        self._mixes = [False for _ in keys]  # whether its values compare with the known one
        self._batch: pa.RecordBatch | None = None

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch, each sorted; `commit` applies its changes."""
        inputs = Inputs(batch)
        columns = [self._column(inputs, key) for key in self.sort_keys]
        self._first = [
            None if mixes else self._compared(key, column)
            for key, column, mixes in zip(self.sort_keys, columns, self._mixes, strict=True)
        ]
        return self._sorted(super().insert(batch))

    def _column(self, inputs: Inputs, key: ComparedKey) -> Column:
        (column,) = inputs.read(key.key.attribute)
        if pa.types.is_nested(column.type):
            raise Decline(f"{column.type} has no order")
        return column

    def _compared(self, key: ComparedKey, column: Column) -> Any:
        """The first value of a batch; declines one that does not compare with the known value."""
        there = np.ones(len(column), bool) if column.valid is None else column.valid
        if column.floating:
            there = there & ~np.isnan(column.data)
        place = int(there.argmax())
        if not there[place]:
            return None
        (first,) = column.slice(place, place + 1).arrow().to_pylist()
        if key.known is not UNSET:
            try:
                _ = first < key.known
            except TypeError as error:
                raise Decline("values that do not compare with earlier ones") from error
        return first

    def _sorted(self, firings: Firings) -> Firings:
        lengths = firings.hi - firings.lo
        rows = firings.content.at(ranges(firings.lo, lengths))
        inputs = Inputs(rows)
        numbers = []
        for key in self.sort_keys:
            way: SortOrder = key.key
            numbers.append(
                sort_key(
                    self._column(inputs, key),
                    descending=way.descending,
                    nulls_first=way.nulls == "first",
                )
            )
        firings.content = OrderedRows(rows, *within(numbers, lengths, self.limit))
        return firings

    def commit(self) -> None:
        """The batch has been taken: values from now on must compare with its first."""
        super().commit()
        for i, first in enumerate(self._first):
            if first is None:
                continue
            self._mixes[i] = True
            if self.sort_keys[i].known is UNSET:
                self.sort_keys[i].known = first

    def flush_all(self) -> Firings:
        """Flush every partition, in order of storage, each sorted."""
        return self._sorted(super().flush_all())

    def load_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Load tuples, unchanged."""
        self.store.grow(self.ledger.size)
        tuples = [tuple_ for part in parts for tuple_ in part["data"]]
        lengths = np.array([len(part["data"]) for part in parts], np.intp)
        columns = [narrow(each) for each in exact_columns(tuples, self.names, self.type_of)]
        self.store.put(ids, columns, lengths)

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """The rows, and the first value of each sort key."""
        return {**super().dump_content(ids), "mixes": list(self._mixes)}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Load rows, and the first value of each sort key."""
        super().load_content(ids, state)
        self._mixes = [bool(each) for each in state["mixes"]]
        need(len(self._mixes) == len(self.sort_keys), "sort keys")
