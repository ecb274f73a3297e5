"""Rows as a table: text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from windowlib.attributes import column_names
from windowlib.tools.timeline import short

LONGEST = 32
# Grey at half strength can be read on white and on black; everything else is the notebook's.
BORDER = "1px solid rgba(128,128,128,.35)"
CELL = f"padding:.2em .8em;border-bottom:{BORDER}"


class Listing:
    """Some rows with columns, to print or to show in a notebook.

    Args:
        rows: dicts, dataclasses, named tuples or other objects.
        more: whether more may follow.
        failure: what happened instead of the next row.

    >>> print(Listing([{"symbol": "IBM", "price": 190.25}, {"symbol": "AAPL"}], more=True))
    symbol   price
    ------  ------
    IBM     190.25
    AAPL
    2 rows, and more may follow
    """

    def __init__(
        self, rows: Sequence[Any], *, more: bool = False, failure: Exception | None = None
    ) -> None:
        self.rows = list(rows)
        self.more = more
        self.failure = failure

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they appear; "row" for other values."""
        return list(dict.fromkeys(name for row in self.rows for name in _cells(row)))

    @property
    def note(self) -> str:
        """How many rows these are, and what follows."""
        count = f"{len(self.rows)} row{'s' * (len(self.rows) != 1)}"
        if self.failure is not None:
            return f"{count}, then {type(self.failure).__name__}: {self.failure}"
        return f"{count}, and more may follow" if self.more else count

    def to_html(self) -> str:
        """The table for a page or a notebook."""
        columns = self.columns
        head = "".join(f'<th style="{CELL};text-align:left">{_html(c)}</th>' for c in columns)
        body = "".join(
            f"<tr>{''.join(_td(_cells(row).get(name, '')) for name in columns)}</tr>"
            for row in self.rows
        )
        table = f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table>'
        note = f'<div style="opacity:.7">{escape(self.note)}</div>'
        return f'<div style="overflow-x:auto">{table if columns else ""}{note}</div>'

    _repr_html_ = to_html

    def __str__(self) -> str:
        columns = self.columns
        found = [_cells(row) for row in self.rows]
        numbers = {name for name in columns if all(_is_number(c.get(name)) for c in found)}
        lines = []
        if columns:
            table = [[short(name, LONGEST) for name in columns]]
            table += [[_text(cells.get(name, "")) for name in columns] for cells in found]
            wide = [max(map(len, column)) for column in zip(*table, strict=True)]
            table.insert(1, ["-" * each for each in wide])
            right = [name in numbers for name in columns]
            lines = [_line(cells, wide, right) for cells in table]
        return "\n".join([*lines, self.note])

    def __repr__(self) -> str:
        return f"<Listing of {self.note}>"


def _cells(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return {str(name): value for name, value in row.items()}
    names = [] if isinstance(row, type) else column_names(row)
    return {name: getattr(row, name, "") for name in names} or {"row": row}


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    return "" if value is None else short(value, LONGEST)


def _html(value: Any) -> str:
    return escape(_text(value))


def _td(value: Any) -> str:
    side = "right" if _is_number(value) else "left"
    return f'<td style="{CELL};text-align:{side}">{_html(value)}</td>'


def _line(cells: Sequence[str], wide: Sequence[int], right: Sequence[bool]) -> str:
    parts = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, wide, right, strict=True)
    ]
    return "  ".join(parts).rstrip()
