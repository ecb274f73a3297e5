"""Engines over rows: rows kept from earlier batches, followed by those of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from windowlib.attributes import Getter, column_names
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import checked_count, need
from windowlib.columnar.arrays.kept_rows import ROOM, RowColumns, RowStore
from windowlib.columnar.arrays.physical import check_movable, gather_rows, numeric, plain_type
from windowlib.columnar.engines.engine import Engine
from windowlib.columnar.extents.layout import Layout
from windowlib.columnar.firing_groups import group_keys, over_groups
from windowlib.columnar.firings import Firings, scatter_results
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.kernels.functions import functions_of
from windowlib.columnar.primitives import Places
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.window.container import Window

MAX_KEPT_PER_NEW = 32
"""Kept rows for each new one from which on moving them costs more than array arithmetic gains."""
LONG_SHARE, LONG_FACTOR = 4, 4
"""With kept rows from a share of a slice on, slices are so many times as long."""
MAX_MOVES_IN_VAIN = 32
"""How often rows are moved in vain before they go back to the event engine, which costs more."""


class RowsEngine(Engine):
    """Base of engines that keep rows."""

    names: list[str]
    store: RowStore
    reads_some = False  # whether columns that are not kept are never read
    worth = MAX_KEPT_PER_NEW
    _in_vain = 0  # rows that were moved, beyond what is worth it

    def keep(self, names: list[str], *more: Column) -> None:
        """Set the columns that are kept, and return empty ones for those that `more` adds."""
        self.names = names
        for name in names:
            check_movable(plain_type(self.type_of(name)))
        named = [Column.of(pa.array([], self.type_of(name))) for name in names]
        self.store = RowStore([*named, *more])

    def more(self, rows: int) -> list[Column]:
        """Additional columns of new rows."""
        return []

    def rows(self, batch: pa.RecordBatch, layout: Layout) -> RowColumns:
        """The rows of the touched partitions: kept ones, then new ones."""
        held, columns = self._arrived(batch, layout)
        both = held + layout.lengths
        ends = np.cumsum(both)
        base = ends - both
        if layout.order is None:
            rows = self._side_by_side(layout, columns)
        else:
            columns, first = self.store.lay(columns)
            lengths = np.stack([held, layout.lengths], axis=1).ravel()
            fresh = np.repeat(np.tile([False, True], len(held)), lengths)
            place = np.empty(int(ends[-1]), np.intp)
            place[fresh] = first + layout.order
            place[~fresh] = self.store.places(layout.touched)
            rows = RowColumns(self.names, columns, place)
            rows.laid = batch.num_rows
        rows.base, rows.fresh, rows.ends = base, base + held, ends
        return rows

    def apart(self, batch: pa.RecordBatch, layout: Layout) -> RowColumns:
        """The rows of the touched partitions: kept ones of all partitions, then all new ones."""
        assert layout.order is not None
        held, columns = self._arrived(batch, layout)
        columns, first = self.store.lay(columns)
        kept = self.store.places(layout.touched)
        place = np.empty(len(kept) + batch.num_rows, np.intp)
        place[: len(kept)] = kept
        np.add(layout.order, first, out=place[len(kept) :])
        rows = RowColumns(self.names, columns, place)
        rows.laid = batch.num_rows
        rows.base, rows.fresh = np.cumsum(held) - held, layout.starts[:-1] + len(kept)
        rows.ends = rows.fresh + layout.lengths
        return rows

    def _arrived(self, batch: pa.RecordBatch, layout: Layout) -> tuple[Places, list[Column]]:
        """How many rows each touched partition has, and the columns of new ones."""
        self.store.grow(self.ledger.size)
        held = self.store.lengths[layout.touched]
        self._move(int(held.sum()), batch.num_rows)
        return held, self.arriving(batch)

    def arriving(self, batch: pa.RecordBatch) -> list[Column]:
        """The columns of new rows."""
        columns = [
            narrow(Column.of(batch.column(self.schema.get_field_index(name))))
            for name in self.names
        ]
        return columns + self.more(batch.num_rows)

    def _side_by_side(self, layout: Layout, columns: list[Column]) -> RowColumns:
        """The rows of one partition, copied, so that they can be passed on."""
        kept, _ = self.store.take(layout.touched)
        if kept and len(kept[0]):
            columns = [Column.concat([a, b]) for a, b in zip(kept, columns, strict=True)]
        return RowColumns(self.names, columns, None)

    def hold(self, ids: Places, rows: RowColumns, places: Places, lengths: Places) -> None:
        """Replace the rows of partitions, one partition after the other."""
        if rows.laid:
            self.store.keep(ids, rows.sources(places), lengths, rows.laid)
        else:
            self.store.put(ids, rows.part(places), lengths)

    def _move(self, held: int, rows: int) -> None:
        """Decline to move many rows for a few new ones again and again."""
        self._in_vain = max(0, self._in_vain + held - self.worth * rows - ROOM)
        if self._in_vain > MAX_MOVES_IN_VAIN * held:
            self._long()

    def _long(self) -> NoReturn:
        raise Decline("windows that are long against the batch are better kept row by row")

    def step(self, usual: int) -> int:
        """How many rows to take at once: more where many kept rows are moved with them."""
        return max(
            super().step(usual), usual * LONG_FACTOR if LONG_SHARE * self.held() > usual else 0
        )

    def check_load(self, rows: int) -> None:
        """Decline windows that are long relative to the batch."""
        held = sum(len(s.data) for s in self.window.state.subwindows.values())
        if held > self.worth * rows + ROOM:
            self._long()

    def held(self) -> int:
        """How many tuples are kept."""
        return int(self.store.lengths.sum())

    def load_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Load the tuples of the event engine."""
        self.store.grow(self.ledger.size)
        tuples = [tuple_ for part in parts for tuple_ in part["data"]]
        if not all(self._fits(tuple_) for tuple_ in tuples):
            raise Decline("tuples with other columns than the batch")
        columns = []
        for name in self.names:
            get = Getter(name, name)
            values = [get(tuple_) for tuple_ in tuples]
            columns.append(narrow(Column.from_values(values, self.type_of(name))))
        lengths = np.array([len(part["data"]) for part in parts], np.intp)
        self.store.put(ids, columns + self.load_more(parts), lengths)

    def _fits(self, tuple_: Any) -> bool:
        """Whether a tuple has exactly the columns that are kept, so that it can be restored."""
        if self.names == self.schema.names:
            return type(tuple_) is dict and list(tuple_) == self.names
        return set(self.names) <= set(column_names(tuple_))

    def load_more(self, parts: list[dict[str, Any]]) -> list[Column]:
        """Additional columns of the tuples of the event engine."""
        return []

    def kept(self, ids: Places) -> tuple[list[Column], Places]:
        """The rows of some partitions, and how many each has."""
        return self.store.take(ids)

    def save_rows(self, ids: Places, parts: list[dict[str, Any]]) -> None:
        """Add the tuples to partitions in the form of snapshots."""
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
        """The kept rows, and how often they were moved in vain."""
        self.store.grow(self.ledger.size)
        rows = {"names": list(self.names), "in_vain": self._in_vain, **self.store.dump(ids)}
        return {**super().dump_content(ids), "rows": rows}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Load rows."""
        super().load_content(ids, state)
        rows = state["rows"]
        need(rows["names"] == self.names, f"rows of {rows['names']}")
        self._in_vain = checked_count(rows["in_vain"], "rows moved in vain")
        self.store.grow(self.ledger.size)
        self.store.load_dump(ids, rows)


def narrow(column: Column) -> Column:
    """The column, unless it has no numbers where others of its type do."""
    if not column.physical and numeric(column.type):
        raise Decline(f"values of {column.type} beyond 64 bits")
    return column


# Functions over windows that are given as extents of rows: nothing is carried, nothing kept.


class WholeWindows(Engine):
    """The firings of windows whose tuples are all given, for an operator.

    It stands beside the engine of the window, and changes nothing in it.
    """

    way = "whole windows"
    form = "whole"

    def __init__(self, window: Window[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema)
        plan: Any = window.state.summarizer
        if window.state.consumer.engine is not None:
            raise Decline("its operator keeps rows in a way of its own")
        each = getattr(plan, "each", plan)
        self.functions = [] if plan is None else functions_of(each, schema)
        self.groups = None if each is plan else group_keys(plan.group_by, self.type_of)

    def firings(self, batch: pa.RecordBatch, lo: Places, hi: Places) -> Firings:
        """The windows `[lo, hi)` of rows, as firings."""
        inputs, groups = Inputs(batch), None
        found: list[Any] = []
        some = hi > lo
        columns = [inputs.read(each.attribute) for each in self.functions]
        if self.groups is not None:
            codes = self.groups.encode([inputs.arrow(name) for name in self.groups.names])
            groups = over_groups(self.functions, self.groups, codes, columns, lo, hi)
        elif len(lo):
            found = [
                scatter_results(each.over(values, lo[some], hi[some]), some)
                for each, values in zip(self.functions, columns, strict=True)
            ]
        ids, rows = self._ids(batch, lo, some), np.arange(len(lo))
        content = RowColumns(
            batch.schema.names, [Column.of(column) for column in batch.columns], None
        )
        return Firings(self.keys, ids, hi - lo, found, rows, groups, lo, hi, content)

    def _ids(self, batch: pa.RecordBatch, lo: Places, some: Any) -> Places:
        """The partitions, which the first rows tell; that of an empty window is never read."""
        ids = np.zeros(len(lo), np.intp)
        if self.keys is not None and some.any():
            first = gather_rows(batch.select(self.keys.names), pa.array(lo[some]))
            ids[some] = self.keys.encode(first.columns)
        return ids
