"""Where the rows of `run` come from: CSV, JSON lines and Parquet files, stdin, and sockets.

Files are read whole. CSV and Parquet become Arrow tables, whose columns have one type each; JSON
lines stay rows, because punctuations may stand among them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from windowlib.commands.sockets import SocketRows
from windowlib.commands.texts import is_json, json_rows, read_text
from windowlib.commands.usage import UsageError, one_line
from windowlib.marks import Mark
from windowlib.operator import Operator

JSON = (".jsonl", ".ndjson", ".json")
KINDS = (".csv", *JSON, ".parquet")
NAMED = re.compile(r"(?P<port>[A-Za-z_]\w*)=(?P<file>.+)", re.DOTALL)


class Input(NamedTuple):
    """The rows for one port, and where they are from."""

    name: str
    rows: Any
    """An Arrow table, a list of rows and marks, or `SocketRows`, which come as they come."""

    @property
    def live(self) -> bool:
        """Whether nobody knows what is still to come."""
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
            raise UsageError(f"--input {text}: there is no input {port!r}. {_have(ports)}")
        if port in places:
            msg = f"--input {text}: {port!r} has an input already, {places[port]}."
            raise UsageError(f"{msg} {_have(ports)}")
        places[port] = place
    missing = [port for port in ports if port not in places]
    if missing:
        raise UsageError(f"--input {missing[0]}=FILE is missing. {_have(ports)}")
    found: list[Input] = []
    try:
        for port in ports:
            found.append(Input(places[port], read(places[port], schema)))
    except BaseException:
        closed(found)
        raise
    return found


def closed(inputs: Sequence[Input]) -> None:
    """Let go of what is open."""
    for each in inputs:
        if isinstance(each.rows, SocketRows):
            each.rows.close()


def _have(ports: Sequence[str]) -> str:
    return f"The operator has {len(ports)}: {', '.join(ports)}."


def read(place: str, schema: Any = None) -> Any:
    """The rows of a file, of stdin for "-", or of tcp://host:port."""
    if place.startswith("tcp://"):
        return SocketRows(place, schema)
    if place == "-":
        text = read_text(place)
        return _json("stdin", text) if is_json(text) else _csv("stdin", text.encode())
    suffix = Path(place).suffix.lower()
    if suffix not in KINDS:
        msg = f"{place}: {suffix or 'no suffix'} is no kind of file that is read here."
        raise UsageError(f"{msg} Use {', '.join(KINDS)}, - or tcp://host:port.")
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

    data = _bytes(place)  # so that a file that is not there is told of in the usual words
    try:
        return _usual(pq.read_table(pa.BufferReader(data)))
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
    return _usual(table)


def _usual(table: Any) -> Any:
    """The same with timestamps in microseconds, which Python's have, too."""
    import pyarrow as pa

    fields = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields), safe=False)


def parts(rows: Any, size: int = 16_384) -> Iterator[tuple[int, Any]]:
    """Rows in pieces, each with how many rows that makes: parts of a table, single rows of a list.

    >>> list(parts(["a", "b"]))
    [(1, 'a'), (2, 'b')]
    """
    if isinstance(rows, list):
        yield from enumerate(rows, 1)
        return
    for at in range(0, len(rows), size):
        yield min(at + size, len(rows)), rows.slice(at, size)
