"""The input of `run`: CSV, JSON lines and Parquet files, stdin, and sockets.

Files are read whole. CSV and Parquet become Arrow tables, whose columns have one type each; JSON
lines stay rows, because punctuations may stand among them.
"""

from __future__ import annotations

import csv
import io
import json
import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from windowlib.runtime.marks import Mark, advance, punct
from windowlib.runtime.operator import Operator
from windowlib.tools.commands.usage import UsageError, one_line

JSON = (".jsonl", ".ndjson", ".json")
SUFFIXES = (".csv", *JSON, ".parquet")
BATCH = 16_384
"""Rows of a table that go in at once."""
LONGEST = 1 << 24
"""Characters of a line of JSON."""
NAMED = re.compile(r"(?P<port>[A-Za-z_]\w*)=(?P<file>.+)", re.DOTALL)


class Input(NamedTuple):
    """The rows for one port, and the name of their source."""

    name: str
    rows: Any
    """An Arrow table, a list of rows and marks, or `SocketRows`, which come as they come."""

    @property
    def live(self) -> bool:
        """Whether more rows may still come."""
        return isinstance(self.rows, SocketRows)

    @property
    def columns(self) -> list[str]:
        """The names of columns, as far as they are known."""
        if self.live:
            return list(self.rows.schema.names) if self.rows.schema is not None else []
        if not isinstance(self.rows, list):
            return list(self.rows.column_names)
        return list(next((row for row in self.rows if not isinstance(row, Mark)), []))

    @property
    def total(self) -> int:
        """How many rows there are."""
        return 0 if self.live else len(self.rows)

    @property
    def punctuated(self) -> bool:
        """Whether there are punctuations among the rows."""
        return isinstance(self.rows, list) and any(isinstance(row, Mark) for row in self.rows)

    def table(self) -> Any:
        """The rows as an Arrow table."""
        import pyarrow as pa

        if not isinstance(self.rows, list):
            return self.rows
        try:
            return pa.Table.from_pylist(self.rows)
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"{self.name}: the values of a column are not of one type: {one_line(error)}"
            raise UsageError(msg) from None


def inputs_of(operator: Operator, given: Sequence[str], schema: Any = None) -> list[Input]:
    """An input for each port of an operator, in their order, from what `--input` says.

    A socket has the columns of the schema, if there is one.
    """
    ports = [port.name for port in operator.model.inputs]
    places: dict[str, str] = {}
    for text in given:
        named = NAMED.fullmatch(text)
        port = named["port"] if named and not Path(text).exists() else None
        place = named["file"] if named and port is not None else text
        if port is None:
            port = next((each for each in ports if each not in places), ports[-1])
        if port not in ports:
            raise UsageError(f"--input {text}: there is no input {port!r}. {_ports_text(ports)}")
        if port in places:
            msg = f"--input {text}: {port!r} has an input already, {places[port]}."
            raise UsageError(f"{msg} {_ports_text(ports)}")
        places[port] = place
    missing = [port for port in ports if port not in places]
    if missing:
        raise UsageError(f"--input {missing[0]}=FILE is missing. {_ports_text(ports)}")
    found: list[Input] = []
    try:
        for port in ports:
            found.append(Input(places[port], read_input(places[port], schema)))
    except BaseException:
        close_all(found)
        raise
    return found


def close_all(inputs: Sequence[Input]) -> None:
    """Close the sockets."""
    for each in inputs:
        if isinstance(each.rows, SocketRows):
            each.rows.close()


def order_columns(text: str | None) -> tuple[str, ...] | None:
    """The columns that `--order-by` names.

    >>> order_columns("day, ts")
    ('day', 'ts')
    """
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _ports_text(ports: Sequence[str]) -> str:
    return f"The operator has {len(ports)}: {', '.join(ports)}."


def read_input(place: str, schema: Any = None) -> Any:
    """The rows of a file, of stdin for "-", or of tcp://host:port."""
    if place.startswith("tcp://"):
        return SocketRows(place, schema)
    if place == "-":
        text = read_text(place)
        return _json("stdin", text) if is_json(text) else _csv("stdin", text.encode())
    suffix = Path(place).suffix.lower()
    if suffix not in SUFFIXES:
        msg = f"{place}: {suffix or 'no suffix'} is no kind of file that is read here."
        raise UsageError(f"{msg} Use {', '.join(SUFFIXES)}, - or tcp://host:port.")
    if suffix == ".parquet":
        return _parquet(place)
    return _json(place, read_text(place)) if suffix in JSON else _csv(place, _bytes(place))


def _bytes(place: str) -> bytes:
    return Path(place).read_bytes()


def _json(name: str, text: str) -> list[Any]:
    rows = list(json_rows(name, text.split("\n")))
    if not rows:
        raise UsageError(f"{name}: there are no rows in it.")
    return rows


def _parquet(place: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = _bytes(place)  # so that a missing file is refused in the usual words
    try:
        return _in_microseconds(pq.read_table(pa.BufferReader(data)))
    except pa.ArrowException as error:
        raise UsageError(f"{place}: not a Parquet file: {one_line(error)}") from None


def _csv(name: str, data: bytes) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    if not data.strip():
        raise UsageError(f"{name}: there are no rows in it.")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{name}: not text in UTF-8.") from None
    if data.count(b'"') % 2:  # Arrow would take the rest of the file for one cell
        raise UsageError(f"{name}: malformed CSV: a quote is not closed.")
    wrong: list[Any] = []

    def note(row: Any) -> str:
        wrong.append(row)
        return "error"

    try:
        table = csv.read_csv(
            io.BytesIO(data),
            csv.ReadOptions(use_threads=False),  # which would lose the numbers of lines
            csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        )
    except pa.ArrowException as error:
        if wrong:
            row = wrong[0]
            about = f"{name}, line {row.number}: the header has {row.expected_columns} columns"
            raise UsageError(f"{about}, and this row {row.actual_columns}.") from None
        raise UsageError(f"{name}: malformed CSV: {one_line(error)}") from None
    twice = next((each for each in table.column_names if table.column_names.count(each) > 1), None)
    if twice is not None:
        raise UsageError(f"{name}: two columns are called {twice!r}. Rename one of them.")
    return _in_microseconds(table)


def _in_microseconds(table: Any) -> Any:
    """The table with timestamps in microseconds, the precision of Python's."""
    import pyarrow as pa

    fields = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields), safe=False)


def row_batches(rows: Any) -> Iterator[tuple[int, Any]]:
    """Rows to feed, each with how many that makes: batches of a table, single rows of a list.

    >>> list(row_batches(["a", "b"]))
    [(1, 'a'), (2, 'b')]
    """
    if isinstance(rows, list):
        yield from enumerate(rows, 1)
        return
    for at in range(0, len(rows), BATCH):
        yield min(at + BATCH, len(rows)), rows.slice(at, BATCH)


# -- cells that make text of a column of numbers --------------------------------------------------


def text_cells(inputs: Sequence[Input]) -> str:
    """The text among the numbers of a file, as the end of a message; empty if there is none.

    Arrow takes a column of CSV for text if a single cell of it is no number.
    """
    for each in inputs:
        for name in each.columns if hasattr(each.rows, "schema") else ():
            if str(each.rows.schema.field(name).type) == "string":
                found = _first_text_cell(each.rows.column(name).to_pylist())
                if found is not None:
                    row, cell = found
                    why = f"because row {row:,} has {cell!r}"
                    return f" The column {name!r} of {each.name} is text, {why}."
    return ""


def _first_text_cell(cells: list[Any]) -> tuple[int, str] | None:
    """The first cell that is no number, if the first of all is one.

    >>> _first_text_cell(["1", "n/a", "2.5", "lost"])
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


# -- rows from text: CSV with a header, or one JSON object per line -------------------------------


def read_rows(source: str) -> Iterator[Any]:
    """The rows of a CSV or JSON lines file, or of stdin for "-"; cells have types of their own."""
    name = "stdin" if source == "-" else source
    text = read_text(source)
    if not text.strip():
        raise UsageError(f"{name}: there are no rows in it.")
    return json_rows(name, text.split("\n")) if is_json(text) else _csv_rows(name, text)


def read_text(source: str) -> str:
    """A text file, or stdin for "-"."""
    name = "stdin" if source == "-" else source
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: not text in UTF-8.") from None


def is_json(text: str) -> bool:
    """Whether text looks like JSON lines rather than CSV."""
    return text.lstrip().startswith(("{", "["))


def json_rows(name: str, lines: Iterable[str]) -> Iterator[Any]:
    """JSON objects, one a line; {"punct": true} is a punctuation, ISO dates are dates.

    >>> list(json_rows("rows", ['{"ts": 7}', "", '{"punct": true}']))
    [{'ts': 7}, punct()]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield json_row(f"{name}, line {number}", line)


def json_row(where: str, line: str, schema: Any = None) -> Any:
    """The row or the punctuation that a line is; with a schema, of these columns and types."""
    if len(line) > LONGEST:
        raise UsageError(f"{where}: {_too_long(len(line))}")
    try:
        row = json.loads(line)
    except RecursionError:
        raise UsageError(f"{where}: the JSON is nested too deep.") from None
    except json.JSONDecodeError as error:
        msg = f"{where}: malformed JSON: {error.msg}."
        raise UsageError(f"{msg} Each line is a JSON object.") from None
    if not isinstance(row, dict):
        raise UsageError(f'{where}: not a JSON object, such as {{"ts": 7}}, one a line.')
    if list(row) == ["punct"] and row["punct"] is True:
        return punct()
    if schema is None:
        return {key: _date(value) for key, value in row.items()}
    return {field.name: _typed_value(where, field, row.get(field.name)) for field in schema}


def _too_long(length: int) -> str:
    return f"a line of {length:,} characters; {LONGEST:,} are read. Each line is one JSON object."


def _typed_value(where: str, field: Any, value: Any) -> Any:
    """A value as one of a field's type."""
    import pyarrow as pa

    dated = pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)
    try:
        if _is_lossless(value, field.type):
            return pa.scalar(_date(value) if dated else value, field.type).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"{where}: {field.name} is {value!r}, and --schema says {field.type}.")


def _is_lossless(value: Any, kind: Any) -> bool:
    """Whether Arrow, which truncates floats to integers, would keep the value."""
    from pyarrow import types

    if isinstance(value, float):
        return value.is_integer() or not types.is_integer(kind)
    if isinstance(value, list) and types.is_list(kind):
        return all(_is_lossless(each, kind.value_type) for each in value)
    if isinstance(value, dict) and types.is_struct(kind):
        return all(_is_lossless(value.get(field.name), field.type) for field in kind)
    return True


def _csv_rows(name: str, text: str) -> Iterator[Any]:
    reader = csv.reader(io.StringIO(text.lstrip(), newline=""), strict=True)
    try:
        header = next(reader)
        for cells in reader:
            if cells and len(cells) != len(header):
                msg = f"the header has {len(header)} columns, and this row {len(cells)}."
                raise UsageError(f"{name}, line {reader.line_num}: {msg}")
            if cells:
                yield dict(zip(header, map(_value, cells), strict=True))
    except csv.Error as error:
        raise UsageError(f"{name}, line {reader.line_num}: malformed CSV: {error}.") from None


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return _date(cell)


def _date(value: Any) -> Any:
    # Python would also read "20240301" as a date, which may as well be a number of something.
    if not isinstance(value, str) or value[4:5] != "-":
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return value


# -- rows from a socket: JSON lines, as they come -------------------------------------------------

PLACE = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\s]+):(?P<port>\d{1,5})/?")
PATIENCE = 10.0
"""Seconds to wait for the connection."""
TICK = 0.2
"""Seconds of silence after which the clock moves by itself."""
BATCH_SECONDS = 0.5
"""Seconds in which the rows of one batch arrive."""
MOST = 16_384
"""Rows that a batch has at most."""
UNPUNCTUATED = "Spark has no punctuations among rows. Leave out --spark."


class SocketRows:
    """The rows that a peer sends, until it closes the connection.

    Args:
        place: tcp://host:port; the connection is made at once.
        schema: the Arrow schema that rows are to have, if it is known.
        clock: what time it is, in seconds.
    """

    def __init__(
        self, place: str, schema: Any = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.place, self.schema, self.clock = place, schema, clock
        found = PLACE.fullmatch(place)
        if found is None or not 0 < int(found["port"]) < 65536:
            raise UsageError(f"{place}: not an address. Write tcp://host:port.")
        try:
            address = found["host"].strip("[]"), int(found["port"])
            self._socket = socket.create_connection(address, timeout=PATIENCE)
        except OSError as error:
            raise UsageError(f"{place}: {error.strerror or error}.") from None
        self._socket.settimeout(TICK)
        self.start = clock()

    def rows(self, *, timed: bool) -> Iterator[Any]:
        """Rows and punctuations; if `timed`, the clock moves before them and in silence, too."""
        with self._socket:
            number = 0
            for line in self._lines():
                if timed:
                    yield advance(self.now())
                if line is None:
                    continue
                number += 1
                if line.strip():
                    yield json_row(f"{self.place}, line {number}", line, self.schema)

    def batches(self) -> Iterator[list[Any]]:
        """The rows in batches of `BATCH_SECONDS`, which may be empty."""
        waiting: list[Any] = []
        since, failure = time.monotonic(), None
        try:
            for item in self.rows(timed=True):
                if not isinstance(item, Mark):
                    waiting.append(item)
                elif item.at is None:
                    raise UsageError(f"{self.place}: {UNPUNCTUATED}")
                elif time.monotonic() - since >= BATCH_SECONDS or len(waiting) >= MOST:
                    yield waiting
                    waiting, since = [], time.monotonic()
        except UsageError as error:  # the rows before it are as good as any
            failure = error
        yield waiting
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def now(self) -> float:
        """The time, which never goes back, even if the clock of the machine does."""
        self.start = max(self.start, self.clock())
        return self.start

    def _lines(self) -> Iterator[str | None]:
        """Lines as they come; None after each `TICK` without one."""
        rest = b""
        while True:
            if len(rest) > LONGEST:  # a peer that sends something else without end
                raise UsageError(f"{self.place}: {_too_long(len(rest))}")
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                yield None
                continue
            except OSError as error:
                raise UsageError(f"{self.place}: {error.strerror or error}.") from None
            *lines, end = data.split(b"\n")
            if lines:
                lines[0], rest = rest + lines[0], end
            else:
                rest += end
            if not data and rest:
                lines = [rest]
            for line in lines:
                yield self._text(line)
            if not data:
                return

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{self.place}: what comes is not text.") from None
