"""The cell that makes text of a column of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windowlib.commands.inputs import Input


def odd_cells(inputs: Sequence[Input]) -> str:
    """What a file has among its numbers, as the tail of a message; nothing if all is as it should.

    Arrow takes a column of CSV for text if a single cell of it is no number.
    """
    for each in inputs:
        for name in each.columns if hasattr(each.rows, "schema") else ():
            if str(each.rows.schema.field(name).type) == "string":
                found = _odd(each.rows.column(name).to_pylist())
                if found is not None:
                    row, cell = found
                    why = f"because row {row:,} has {cell!r}"
                    return f" The column {name!r} of {each.name} is text, {why}."
    return ""


def _odd(cells: list[Any]) -> tuple[int, str] | None:
    """The first cell that is no number, if the first of all is one.

    >>> _odd(["1", "n/a", "2.5", "lost"])
    (4, 'lost')
    """
    from pyarrow import csv

    nulls = {None, *csv.ConvertOptions().null_values}
    filled = [(row, cell) for row, cell in enumerate(cells, 1) if cell not in nulls]
    if not filled or not _is_number(filled[0][1]):
        return None
    return next((each for each in filled if not _is_number(each[1])), None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
