"""The output rows of a join: the columns of both sides, under names that do not clash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from windowlib.attributes import column_names
from windowlib.errors import SchemaError
from windowlib.operators.arrow_output import common_type, schema_with, type_of
from windowlib.summaries.source import compiled

Plan = list[tuple[str, str]]
"""Columns of a side, and what they are called in the output."""
Merge = Callable[[Any, Any], dict[str, Any]]

MERGE = """
def merged(left, right):
    if type(left) is dict and type(right) is dict and len(left) == {columns}:
        try: return {{**left{added}}}
        except KeyError: pass  # the right one lacks a column
    return general(left, right)
"""


class JoinedRows:
    """Makes a dict of two rows; a row that is None counts as nulls.

    The columns of a side are those that its rows have had so far. Before its first row none are
    known, except the shared ones.

    Args:
        owner: the operator, for messages.
        shared: the columns that both sides have with equal values, which come out once.
        suffixes: what is appended to other names that both sides have.

    >>> pairs = JoinedRows("Join", ("id",), ("", "_right"))
    >>> pairs.note({"id": 1, "x": 2}, 0)
    >>> pairs.note({"id": 1, "x": 3}, 1)
    >>> pairs({"id": 1, "x": 2}, {"id": 1, "x": 3})
    {'id': 1, 'x': 2, 'x_right': 3}
    >>> pairs({"id": 1, "x": 2}, None)
    {'id': 1, 'x': 2, 'x_right': None}
    """

    def __init__(self, owner: str, shared: Sequence[str], suffixes: tuple[str, str]) -> None:
        self._owner = owner
        self.merged: Merge = self._general
        """Makes the output row: as calling it does, without that call."""
        self._shared = dict.fromkeys(shared)
        self._suffixes = suffixes
        self._fixed_types: tuple[set[type], set[type]] = (set(), set())
        self._known: tuple[dict[str, None], dict[str, None]] = ({}, {})
        self.names = (self._known[0].keys(), self._known[1].keys())
        """The columns known of each side, as views that grow with them."""
        self.columns = [list(self._shared), list(self._shared)]

    @property
    def columns(self) -> list[list[str]]:
        """The columns known of each side."""
        return [list(known) for known in self._known]

    @columns.setter
    def columns(self, columns: Sequence[Iterable[str]]) -> None:
        known = [dict.fromkeys(names) for names in columns]
        plans = [self._plan(side, known) for side in (0, 1)]
        self._refuse_clash([name for plan in plans for _, name in plan])
        self._left, self._right = plans
        self._as_is = all(column == name for column, name in self._left)
        self.merged = self._compile_merge(len(known[0])) if self._as_is else self._general
        for mine, names in zip(self._known, known, strict=True):
            mine.clear()
            mine.update(names)

    def expect(self, columns: Sequence[Iterable[str]]) -> None:
        """Count columns as known that rows will have; what else is known stays so."""
        known = [[*mine, *more] for mine, more in zip(self.columns, columns, strict=True)]
        self.columns = known

    @property
    def plans(self) -> tuple[Plan, Plan]:
        """The columns of each side that come out, and what they are called."""
        return self._left, self._right

    def order(self, names: Sequence[str]) -> list[str]:
        """The columns of an output row with a left row of these columns, in their order."""
        plain = self._as_is and len(names) == len(self._known[0])
        left = list(names) if plain else [name for _, name in self._left]
        return [*left, *(name for _, name in self._right)]

    def note(self, row: Any, side: int) -> None:
        """Take note of a row's columns as it arrives; refuse it if it cannot be put out."""
        kind = type(row)
        if kind in self._fixed_types[side]:
            return
        names = self._row_columns(row)
        if not names.keys() <= self.names[side]:
            columns: list[Iterable[str]] = [*self._known]
            columns[side] = self._known[side] | names
            self.columns = columns
        if is_dataclass(row) or hasattr(kind, "_fields"):
            self._fixed_types[side].add(kind)  # all its rows have the same columns

    def __call__(self, left: Any, right: Any) -> dict[str, Any]:
        """The output row."""
        return self.merged(left, right)

    def _compile_merge(self, columns: int) -> Merge:
        """`merged` for dicts, where the left one has all its columns, under their own names."""
        added = "".join(f", {name!r}: right[{column!r}]" for column, name in self._right)
        names: dict[str, Any] = {"general": self._general}
        exec(compiled(MERGE.format(columns=columns, added=added)), names)
        merged: Merge = names["merged"]
        return merged

    def _general(self, left: Any, right: Any) -> dict[str, Any]:
        ours, theirs = _fields(left, self._shared), _fields(right, self._shared)
        if self._as_is and len(ours) == len(self._known[0]):
            made = dict(ours)  # all its columns, under their own names
        else:
            made = {name: ours.get(column) for column, name in self._left}
        for column, name in self._right:
            made[name] = theirs.get(column)
        if left is None:
            for column in self._shared:
                made[column] = theirs.get(column)
        return made

    def _row_columns(self, row: Any) -> dict[str, None]:
        names = dict.fromkeys(row if isinstance(row, Mapping) else column_names(row))
        if not names and not isinstance(row, Mapping):
            msg = (
                f"{self._owner}: the row {row!r} has no column names, so it cannot be put together "
                f"with another. Pass select=lambda left, right: ..., or use rows with names."
            )
            raise SchemaError(msg)
        return names

    def _plan(self, side: int, known: Sequence[Mapping[str, None]]) -> Plan:
        other = known[1 - side]
        plan = []
        for column in known[side]:
            if column in self._shared:
                plan += [(column, column)] * (side == 0)
            else:
                plan.append(
                    (column, f"{column}{self._suffixes[side]}" if column in other else column)
                )
        return plan

    def _refuse_clash(self, names: Sequence[str]) -> None:
        met: set[str] = set()
        for name in names:
            if name in met:
                msg = (
                    f"{self._owner}(suffixes={self._suffixes!r}): the output would have two "
                    f"columns {name!r}. Choose other suffixes, or pass select=."
                )
                raise SchemaError(msg)
            met.add(name)


def pair_schema(pairs: JoinedRows, schemas: Sequence[Any]) -> Any:
    """The Arrow columns of the output for these of both sides, None where they are not known."""
    fresh = JoinedRows(pairs._owner, tuple(pairs._shared), pairs._suffixes)
    names = [[] if schema is None else list(schema.names) for schema in schemas]
    fresh.columns = [
        dict.fromkeys([*mine, *known]) for mine, known in zip(names, pairs.columns, strict=True)
    ]
    kinds = [
        {name: None if schema is None else type_of(name, schema) for name in known}
        for schema, known in zip(schemas, fresh.columns, strict=True)
    ]
    found = []
    for side, plan in enumerate(fresh.plans):
        for column, name in plan:
            kind = kinds[side][column]
            if column in pairs._shared:  # the row of either side may have to tell it
                other = kinds[1 - side][column]
                known = kind is not None and other is not None
                kind = (
                    (kind if kind == other else common_type(kind, other))
                    if known
                    else kind or other
                )
            found.append((name, kind))
    return schema_with(found)


def _fields(row: Any, shared: Iterable[str]) -> Mapping[str, Any]:
    if type(row) is dict:
        return row
    if row is None:
        return {}
    if isinstance(row, Mapping):
        return row
    # A key may be a property, which is no column of the row by itself.
    return {name: getattr(row, name, None) for name in (*column_names(row), *shared)}
