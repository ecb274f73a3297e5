"""`windowlib trace`: the timeline of a window."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from windowlib import samples
from windowlib.errors import ClockError
from windowlib.spec.specification import KEY, Spec
from windowlib.spec.spl import parse
from windowlib.tools.commands.input_files import read_rows
from windowlib.tools.commands.operator_text import expression_value
from windowlib.tools.commands.usage import UsageError, check_column, count_option
from windowlib.tools.tracing import Mark, trace

SPEC_HELP = 'such as "sliding, count(4), count(2)", or "Sliding(Count(4), every=Count(2))"'
ROWS_HELP = """\
FILE is CSV with a header, or one JSON object per line; - reads stdin. Numbers and ISO dates in it
are read as such. The JSON line {"punct": true} is a punctuation. Tuples arrive one second apart
unless --time names the column that says when.
"""


def add(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser("trace", help="the timeline of a window", epilog=ROWS_HELP)
    parser.add_argument("spec", metavar="SPEC", help=SPEC_HELP)
    parser.add_argument("file", metavar="FILE", nargs="?", help="rows; made up if left out")
    parser.add_argument("--by", metavar="COL", help="the partition key")
    parser.add_argument("--time", metavar="COL", help="when each tuple arrives, in seconds")
    parser.add_argument("--rows", metavar="N", type=count_option("tuples"), help="this many tuples")
    parser.add_argument("--svg", metavar="OUT", help="also draw the timeline into this file")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the timeline."""
    spec = _spec(arguments.spec, arguments.by)
    rows = _rows(spec, arguments)
    by = arguments.by or ("key" if spec.by is KEY else None)
    try:
        seen = trace(spec, rows, by=by, times=arguments.time)
    except ClockError as error:
        raise UsageError(f"--time {arguments.time}: {error}") from None
    if arguments.svg is not None:
        Path(arguments.svg).write_text(seen.to_svg(), encoding="utf-8")
    print(seen)
    return 0


def _spec(text: str, by: str | None) -> Spec:
    """The window, in the words of SPL or of Python."""
    if not text.lstrip().startswith(("Sliding(", "Tumbling(")):
        return parse(text, by=by)
    found = expression_value(text)
    if not isinstance(found, Spec):
        raise UsageError(f"{text}: of type {type(found).__name__}, not a window.")
    return found if by is None else replace(found, by=by)


def _rows(spec: Spec, arguments: argparse.Namespace) -> list[Any]:
    if arguments.file is None:
        if arguments.time is not None:
            raise UsageError(f"--time {arguments.time}: there is no FILE with that column.")
        return samples.stream(spec, arguments.rows)
    rows = list(_first(read_rows(arguments.file), arguments.rows))
    columns = list(next((row for row in rows if not isinstance(row, Mark)), {}))
    if spec.by is KEY and arguments.by is None:
        listed = f" Columns: {', '.join(columns)}." if columns else ""
        raise UsageError(f"{str(spec)!r} is partitioned: name its key with --by COL.{listed}")
    check_column("--by", arguments.by, columns, arguments.file)
    check_column("--time", arguments.time, columns, arguments.file)
    return rows


def _first(rows: Iterator[Any], n: int | None) -> Iterator[Any]:
    """Rows up to the n-th tuple; punctuations do not count."""
    seen = 0
    for row in rows:
        seen += not isinstance(row, Mark)
        if n is not None and seen > n:
            return
        yield row
