"""Rows from text: CSV with a header, or one JSON object per line."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from windowlib.commands.usage import UsageError
from windowlib.marks import punct


def read_rows(source: str) -> Iterator[Any]:
    """The rows of a CSV or JSON lines file, or of stdin for "-"; cells have types of their own."""
    name = "stdin" if source == "-" else source
    text = read_text(source)
    if not text.strip():
        raise UsageError(f"{name}: there are no rows in it.")
    return json_rows(name, text.split("\n")) if is_json(text) else _csv(name, text)


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
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        msg = f"{where}: malformed JSON: {error.msg}."
        raise UsageError(f"{msg} Each line is a JSON object.") from None
    if not isinstance(row, dict):
        raise UsageError(f'{where}: not a JSON object, such as {{"ts": 7}}, one a line.')
    if list(row) == ["punct"] and row["punct"] is True:
        return punct()
    if schema is None:
        return {key: _date(value) for key, value in row.items()}
    return {field.name: _fitted(where, field, row.get(field.name)) for field in schema}


def _fitted(where: str, field: Any, value: Any) -> Any:
    """A value as a column of that type has it."""
    import pyarrow as pa

    dated = pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)
    try:
        if _whole(value, field.type):
            return pa.scalar(_date(value) if dated else value, field.type).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"{where}: {field.name} is {value!r}, and --schema says {field.type}.")


def _whole(value: Any, kind: Any) -> bool:
    """Whether Arrow, which cuts floats to integers, would cut nothing off."""
    from pyarrow import types

    if isinstance(value, float):
        return value.is_integer() or not types.is_integer(kind)
    if isinstance(value, list) and types.is_list(kind):
        return all(_whole(each, kind.value_type) for each in value)
    if isinstance(value, dict) and types.is_struct(kind):
        return all(_whole(value.get(field.name), field.type) for field in kind)
    return True


def _csv(name: str, text: str) -> Iterator[Any]:
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
