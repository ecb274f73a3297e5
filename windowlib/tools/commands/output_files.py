"""The output of `run`: a file in the format of its suffix, or a table on the terminal."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from windowlib.attributes import column_names
from windowlib.runtime.operator import Operator
from windowlib.tools.commands.input_files import Input
from windowlib.tools.commands.meter import terminal_width
from windowlib.tools.commands.usage import UsageError, one_line
from windowlib.window.arrow import exact_batch

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")
GAP = "  "


class RowWriter:
    """Base of writers; `close` is called even after a failure, so that earlier rows are kept."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""
        raise NotImplementedError

    def close(self) -> None:
        """End the output."""


def row_writer(
    place: str | None, schema: Any = None, *, shown: int = 20, width: int = 80, live: bool = False
) -> RowWriter:
    """A writer to a file, to stdout as JSON lines for "-", or as a table without a place.

    Args:
        place: the file.
        schema: the Arrow schema of the rows, if it is known.
        shown: how many rows of a table are shown.
        width: how many characters wide a table may be.
        live: whether rows come slowly, and should be seen at once.
    """
    if place is None:
        return (
            LiveTableWriter(sys.stdout, width)
            if live
            else TableWriter(sys.stdout, shown, width, schema)
        )
    if place == "-":
        return JsonLinesWriter(sys.stdout)
    suffix = Path(place).suffix.lower()
    if suffix not in SUFFIXES:
        msg = f"--output {place}: {suffix or 'no suffix'} is no kind of file that is written here."
        raise UsageError(f"{msg} Use {', '.join(SUFFIXES)}, or - for JSON lines on stdout.")
    if suffix == ".parquet":
        return ParquetRowWriter(Path(place), schema)
    file = Path(place).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - the writer closes it
    return CsvWriter(file, place, schema) if suffix == ".csv" else JsonLinesWriter(file)


def output_of(
    operator: Operator, inputs: list[Input], arguments: argparse.Namespace, *, live: bool
) -> RowWriter:
    """The writer for the options of a command."""
    schema = None if live else _output_schema(operator, inputs, arguments.port)
    width = terminal_width()
    return row_writer(arguments.output, schema, shown=arguments.show, width=width, live=live)


def _output_schema(operator: Operator, inputs: list[Input], port: str | None) -> Any:
    """The schema of the output, if the operator knows it all; else None."""
    if any(isinstance(each.rows, list) for each in inputs):
        return None
    if port is None and len(operator.model.outputs) > 1:
        return None
    number = 0 if port is None else operator.model.output(port, operator.name)
    found = operator.schemas(*(each.rows.schema for each in inputs))[number]
    unknown = found is None or any(str(field.type) == "null" for field in found)
    return None if unknown else found


def named_row(row: Any) -> Mapping[str, Any]:
    """A row with named columns, whatever the operator sends.

    >>> named_row(7), named_row({"x": 1})
    ({'value': 7}, {'x': 1})
    """
    if isinstance(row, Mapping):
        return row
    names = [] if isinstance(row, str | bytes) else column_names(row)
    return {name: getattr(row, name) for name in names} or {"value": row}


def json_value(value: Any) -> Any:
    """A value that JSON can hold.

    >>> json_value(timedelta(seconds=1.5)), json_value({3})
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


def json_text(value: Any, *, ascii: bool = False) -> str:
    """A value as JSON, which has no NaN and no infinity: these are null.

    >>> json_text({"x": [1.5, math.nan]})
    '{"x": [1.5, null]}'
    """
    try:
        return json.dumps(value, default=json_value, ensure_ascii=ascii, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=json_value, ensure_ascii=ascii, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, set | frozenset):
        return [_finite(each) for each in json_value(value)]
    return value


class JsonLinesWriter(RowWriter):
    """JSON lines, each there as soon as its row is."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.ascii = (out.encoding or "utf-8").lower() != "utf-8"

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a line."""
        self.out.write(f"{json_text(dict(row), ascii=self.ascii)}\n")
        self.out.flush()

    def close(self) -> None:
        """Close the file, unless it is stdout."""
        if self.out is not sys.stdout:
            self.out.close()


class CsvWriter(RowWriter):
    """CSV with a header: the columns of the operator, or those of the first row."""

    def __init__(self, out: TextIO, place: str, schema: Any) -> None:
        self.out, self.place = out, place
        self.csv = csv.writer(out, lineterminator="\n")
        self.names: list[str] = []
        if schema is not None:
            self._write_header(schema.names)

    def _write_header(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.csv.writerow(self.names)

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a line."""
        if not self.names:
            self._write_header(row)
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
        return json_text(value)
    return json_value(value)


# -- tables ---------------------------------------------------------------------------------------


class TableWriter(RowWriter):
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


class LiveTableWriter(RowWriter):
    """Rows on the terminal as they come, in columns as wide as their names."""

    def __init__(self, out: TextIO, width: int) -> None:
        self.out, self.width = out, width
        self.names: list[str] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Show a row, with a header when the columns change."""
        if list(row) != self.names:
            self.names = list(row)
            self.out.write(f"{GAP.join(f'{name:>10}' for name in self.names)}"[: self.width] + "\n")
        sizes = [max(10, len(name)) for name in self.names]
        cells = (f"{cell_text(row[n]):>{s}}" for n, s in zip(self.names, sizes, strict=True))
        self.out.write(f"{GAP.join(cells)[: self.width]}\n")
        self.out.flush()


def table_lines(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    width: int,
) -> list[str]:
    """A header and a line for each row; columns that have no room are counted in the header.

    >>> print(*table_lines(["symbol", "vwap"], [{"symbol": "IBM", "vwap": 190.25}], 80), sep="\\n")
    symbol    vwap
    IBM     190.25
    """
    columns = [[name, *(cell_text(row.get(name)) for row in rows)] for name in names]
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
            f"{truncated(cell, size):>{size}}" if side else f"{truncated(cell, size):<{size}}"
            for cell, size, side in zip(cells, sizes, right, strict=False)
        ]
        lines.append(GAP.join(padded).rstrip())
    if lines and fitting < len(names):
        lines[0] += f"{GAP}(+{len(names) - fitting} more)"
    return lines


def truncated(cell: str, size: int) -> str:
    """A text of at most `size` characters."""
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"


def cell_text(value: Any) -> str:
    """A value in a table.

    >>> cell_text(190.123456789), cell_text(None), cell_text(datetime(2024, 3, 1, 14, 30))
    ('190.123', '', '2024-03-01 14:30:00')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    return " ".join(str(value).split())


# -- Parquet --------------------------------------------------------------------------------------

GROUP = 65_536
"""Rows that are kept until they are written as a row group."""


class ParquetRowWriter(RowWriter):
    """A Parquet file, written a row group at a time under another name until it is whole.

    Without a schema the first rows determine the columns. If later ones need more columns, or wider
    types, the file is rewritten with these, so that it is the same as if all rows had been known.
    """

    def __init__(self, path: Path, schema: pa.Schema | None) -> None:
        import pyarrow as pa

        self.path, self.draft = path, path.with_name(f".{path.name}.part")
        self.declared = schema is not None
        self.schema = schema if schema is not None else pa.schema([])
        self.rows: list[Mapping[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        self._failed = False
        try:  # a place where nothing can be written is refused at once
            if path.exists():
                os.close(os.open(path, os.O_WRONLY))
            self.draft.touch()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""
        self.rows.append(row)
        if len(self.rows) >= GROUP:
            self._write()

    def close(self) -> None:
        """Write the rest, and give the file its name; nothing if rows could not be written."""
        try:
            if not self._failed:
                self._write()
                self._close()
                self.draft.replace(self.path)
        finally:
            self._close()
            self.draft.unlink(missing_ok=True)

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._failed = True  # until it has gone well
        try:
            table = self._table()
            if table.schema != self.schema:
                self._widen(table.schema)
            if self._writer is None:
                self._writer = pq.ParquetWriter(self.draft, self.schema)
            if table.num_rows:
                self._writer.write_table(conform(table, self.schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"--output {self.path}: the values of a column are not of one type"
            raise UsageError(f"{msg}: {one_line(error)}. Use .jsonl.") from None
        self.rows, self._failed = [], False

    def _table(self) -> pa.Table:
        import pyarrow as pa

        if self.declared:
            return pa.Table.from_batches([exact_batch(self.rows, self.schema)])
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        columns = [pa.array([row.get(name) for row in self.rows]) for name in names]
        return pa.Table.from_arrays(columns, names)

    def _widen(self, more: pa.Schema) -> None:
        """A schema that holds what is written and what comes, and the file written with it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        both = pa.unify_schemas([self.schema, more], promote_options="permissive")
        if both == self.schema:
            return
        self.schema, written = both, self._writer is not None
        self._close()
        if not written:
            return
        before = self.draft.with_suffix(".old")
        self.draft.replace(before)
        try:
            self._writer = pq.ParquetWriter(self.draft, self.schema)
            with pq.ParquetFile(before) as file:
                for group in range(file.num_row_groups):
                    self._writer.write_table(conform(file.read_row_group(group), self.schema))
        finally:
            before.unlink()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly these columns; missing ones are null.

    >>> import pyarrow as pa
    >>> conform(pa.table({"a": [1]}), pa.schema({"b": pa.string(), "a": pa.float64()})).to_pylist()
    [{'b': None, 'a': 1.0}]
    """
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# -- files that are complete or absent ------------------------------------------------------------


def check_output(place: str | None, inputs: Iterable[str]) -> None:
    """Refuse an output that is also an input."""
    for name in inputs:
        try:
            same = place is not None and os.path.samefile(place, name)
        except OSError:  # one of them is not there, or no file
            continue
        if same and not _is_device(name):
            msg = f"--output {place}: it is an input as well, {name}."
            raise UsageError(f"{msg} Write to another file.")


@contextlib.contextmanager
def atomic_file(place: str | None, *, live: bool) -> Iterator[str | None]:
    """The path to write to in place of `place`: a draft beside it, renamed at the end.

    A device, and the output of a socket, are written directly.
    """
    if place is None or live or Path(place).suffix.lower() not in SUFFIXES or _is_device(place):
        yield place
        return
    path = Path(os.path.realpath(place))  # what a link leads to
    beside = path.with_name(f".{path.stem}.{os.getpid()}{Path(place).suffix}")
    try:
        yield str(beside)
        beside.replace(path)
    except UsageError as error:
        raise UsageError(str(error).replace(str(beside), place)) from None
    except OSError as error:
        if error.filename in (None, str(beside)):
            error.filename = place
        raise
    finally:
        with contextlib.suppress(OSError):  # if it could not be made, it cannot be removed
            beside.unlink(missing_ok=True)


def _is_device(place: str) -> bool:
    """Whether a path exists and is no regular file, such as a device."""
    return Path(place).exists() and not Path(place).is_file()
