"""Tuples of the event engine as columns, where they come back as they went in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline


def exact_columns(
    tuples: Sequence[Any], names: Sequence[str], type_of: Callable[[str], Any]
) -> list[Column]:
    """The columns of rows that have these and no others, and no value that a type would change.

    1 is as good as 1.0 where values are compared; a row that comes out again must not show it.
    """
    listed = list(names)
    for tuple_ in tuples:
        if type(tuple_) is not dict or list(tuple_) != listed:
            raise Decline("tuples that are no rows of these columns")
    columns = []
    for name in names:
        values = [tuple_[name] for tuple_ in tuples]
        column = Column.from_values(values, type_of(name))
        if repr(values) != repr(column.arrow().to_pylist()):
            raise Decline("values that these columns would change")
        columns.append(column)
    return columns
