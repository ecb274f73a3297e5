"""Where the rows of `run` go: a file whose suffix says how, or a table on the terminal."""

from __future__ import annotations

import csv
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, TextIO

from windowlib.attributes import column_names
from windowlib.commands.usage import UsageError

SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")
GAP = "  "


class Writer:
    """Takes rows, and closes even if they end early, so that what has come is there."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more comes."""


def writer(
    place: str | None, schema: Any = None, *, shown: int = 20, width: int = 80, live: bool = False
) -> Writer:
    """What writes rows to a file, to stdout as JSON lines for "-", or as a table without a place.

    Args:
        place: the file.
        schema: the Arrow schema of the rows, if it is known.
        shown: how many rows of a table are shown.
        width: how many characters wide a table may be.
        live: whether rows come slowly, and should be seen at once.
    """
    if place is None:
        return LiveTable(sys.stdout, width) if live else Table(sys.stdout, shown, width, schema)
    if place == "-":
        return Lines(sys.stdout)
    suffix = Path(place).suffix.lower()
    if suffix not in SUFFIXES:
        msg = f"--output {place}: {suffix or 'no suffix'} is no kind of file that is written here."
        raise UsageError(f"{msg} Use {', '.join(SUFFIXES)}, or - for JSON lines on stdout.")
    if suffix == ".parquet":
        from windowlib.commands.parquet import Parquet

        return Parquet(Path(place), schema)
    file = Path(place).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - the writer closes it
    return Cells(file, place, schema) if suffix == ".csv" else Lines(file)


def named(row: Any) -> Mapping[str, Any]:
    """A row with named columns, whatever the operator sends.

    >>> named(7), named({"x": 1})
    ({'value': 7}, {'x': 1})
    """
    if isinstance(row, Mapping):
        return row
    names = [] if isinstance(row, str | bytes) else column_names(row)
    return {name: getattr(row, name) for name in names} or {"value": row}


def plain(value: Any) -> Any:
    """A value that JSON can hold.

    >>> plain(timedelta(seconds=1.5)), plain({3})
    (1.5, [3])
    """
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


class Lines(Writer):
    """JSON lines, each there as soon as its row is."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.ascii = (out.encoding or "utf-8").lower() != "utf-8"

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a line."""
        self.out.write(f"{json.dumps(dict(row), default=plain, ensure_ascii=self.ascii)}\n")
        self.out.flush()

    def close(self) -> None:
        """Close the file, unless it is stdout."""
        if self.out is not sys.stdout:
            self.out.close()


class Cells(Writer):
    """CSV with a header: the columns of the operator, or those of the first row."""

    def __init__(self, out: TextIO, place: str, schema: Any) -> None:
        self.out, self.place = out, place
        self.csv = csv.writer(out, lineterminator="\n")
        self.names: list[str] = []
        if schema is not None:
            self._head(schema.names)

    def _head(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.csv.writerow(self.names)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a line."""
        if not self.names:
            self._head(row)
        more = [name for name in row if name not in self.names]
        if more:
            msg = f"--output {self.place}: a row has a column {more[0]!r} that the first had not."
            raise UsageError(f"{msg} Use .jsonl, where rows may differ.")
        self.csv.writerow([_cell(row.get(name)) for name in self.names])

    def close(self) -> None:
        """Close the file."""
        self.out.close()


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return plain(value)


# -- tables ---------------------------------------------------------------------------------------


class Table(Writer):
    """Rows on the terminal when all have come: the first and the last, if they are many."""

    def __init__(self, out: TextIO, shown: int, width: int, schema: Any = None) -> None:
        self.out, self.shown, self.width = out, shown, width
        self.first: list[Mapping[str, Any]] = []
        self.last: deque[Mapping[str, Any]] = deque(maxlen=shown // 2)
        self.count = 0
        self.names: dict[str, None] = {} if schema is None else dict.fromkeys(schema.names)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, if it may be shown."""
        self.count += 1
        self.names |= dict.fromkeys(row)
        (self.first if len(self.first) < self.shown else self.last).append(row)

    def close(self) -> None:
        """Show them."""
        if not self.count:
            return
        head, tail, left = self.first, list[Mapping[str, Any]](), self.count - self.shown
        if left > 0:
            end = self.shown // 2
            head = self.first[: self.shown - end]
            tail = [*self.first, *self.last][-end:] if end else []
        lines = table_lines(list(self.names), [*head, *tail], self.width)
        if left > 0:
            lines.insert(len(head) + 1, f"… {left:,} more; --output FILE takes them all")
        self.out.write("\n".join(lines) + "\n")
        self.out.flush()


class LiveTable(Writer):
    """Rows on the terminal as they come; the first ones say how wide columns are."""

    def __init__(self, out: TextIO, width: int) -> None:
        self.out, self.width = out, width
        self.names: list[str] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Show a row, with a header when the columns change."""
        if list(row) != self.names:
            self.names = list(row)
            self.out.write(f"{GAP.join(f'{name:>10}' for name in self.names)}"[: self.width] + "\n")
        sizes = [max(10, len(name)) for name in self.names]
        cells = (f"{text(row[n]):>{s}}" for n, s in zip(self.names, sizes, strict=True))
        self.out.write(f"{GAP.join(cells)[: self.width]}\n")
        self.out.flush()


def table_lines(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    width: int,
    form: Callable[[Any], str] | None = None,
) -> list[str]:
    """A header and a line for each row; columns that have no room are counted in the header.

    >>> print(*table_lines(["symbol", "vwap"], [{"symbol": "IBM", "vwap": 190.25}], 80), sep="\\n")
    symbol    vwap
    IBM     190.25
    """
    shape = form or text
    columns = [[name, *(shape(row.get(name)) for row in rows)] for name in names]
    right = [all(isinstance(row.get(name), int | float) for row in rows) for name in names]
    sizes = [min(max(map(len, column)), max(12, width // 2)) for column in columns]
    fitting, used = 0, 0
    for size in sizes:
        if fitting and used + len(GAP) + size > width - 12:
            break
        used += size + (len(GAP) if fitting else 0)
        fitting += 1
    if fitting == len(names) - 1 and used + len(GAP) + sizes[-1] <= width:
        fitting += 1
    lines = []
    for cells in zip(*columns[:fitting], strict=True):
        padded = [
            f"{cut(cell, size):>{size}}" if side else f"{cut(cell, size):<{size}}"
            for cell, size, side in zip(cells, sizes, right, strict=False)
        ]
        lines.append(GAP.join(padded).rstrip())
    if lines and fitting < len(names):
        lines[0] += f"{GAP}(+{len(names) - fitting} more)"
    return lines


def cut(cell: str, size: int) -> str:
    """Text that is no longer than that."""
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"


def text(value: Any) -> str:
    """A value in a table.

    >>> text(190.123456789), text(None), text(datetime(2024, 3, 1, 14, 30))
    ('190.123', '', '2024-03-01 14:30:00')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    return " ".join(str(value).split())
