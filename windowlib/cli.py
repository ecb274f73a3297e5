"""The command line: `demo`, `trace` and `conformance`.

A user's mistake is one line on stderr and exit code 2.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from windowlib import conformance, samples
from windowlib.errors import ClockError, WindowlibError, WindowlibWarning, suggestion
from windowlib.spec import Spec
from windowlib.spl import parse
from windowlib.trace import Mark, punct, trace

ROWS_HELP = """\
FILE is CSV with a header, or one JSON object per line; - reads stdin. Numbers and ISO dates in it
are read as such. The JSON line {"punct": true} is a punctuation. Tuples arrive one second apart
unless --time names the column that says when.
"""


class UsageError(Exception):
    """Something the user can put right."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", WindowlibWarning)
            warnings.showwarning = _warn
            code = _run(argv)
        sys.stdout.flush()
    except (UsageError, WindowlibError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # Nobody reads on; and Python must not find that out again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"windowlib: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    code: int = arguments.command(arguments)
    return code


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"windowlib: {message}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m windowlib", description="SPL-style windows for Python.")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")
    demo = commands.add_parser("demo", help="one window, from the question to the answer")
    demo.set_defaults(command=_demo)

    tracing = commands.add_parser("trace", help="the timeline of a window", epilog=ROWS_HELP)
    tracing.add_argument("spec", metavar="SPEC", help='such as "sliding, count(4), count(2)"')
    tracing.add_argument("file", metavar="FILE", nargs="?", help="rows; made up if left out")
    tracing.add_argument("--by", metavar="COL", help="the partition key")
    tracing.add_argument("--time", metavar="COL", help="when each tuple arrives, in seconds")
    tracing.add_argument("--rows", metavar="N", type=_positive, help="this many tuples")
    tracing.add_argument("--svg", metavar="OUT", help="also draw the timeline into this file")
    tracing.set_defaults(command=_trace)

    checking = commands.add_parser("conformance", help="check recorded event traces")
    checking.add_argument("paths", metavar="PATH", nargs="+", help="trace files, or their folders")
    checking.add_argument("--engine", choices=("generated", "reference"), default="generated")
    checking.set_defaults(command=_conformance)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tuples")
    return int(text)


def _demo(_: argparse.Namespace) -> int:
    from windowlib import demo

    print(demo.text())
    return 0


def _trace(arguments: argparse.Namespace) -> int:
    spec = parse(arguments.spec, by=arguments.by)
    rows = _rows(spec, arguments)
    by = arguments.by or ("key" if spec.partitioned else None)
    try:
        seen = trace(spec, rows, by=by, times=arguments.time)
    except ClockError as error:
        raise UsageError(f"--time {arguments.time}: {error}") from None
    if arguments.svg is not None:
        Path(arguments.svg).write_text(seen.to_svg(), encoding="utf-8")
    print(seen)
    return 0


def _rows(spec: Spec, arguments: argparse.Namespace) -> list[Any]:
    if arguments.file is None:
        if arguments.time is not None:
            raise UsageError(f"--time {arguments.time}: there is no FILE with that column.")
        return samples.stream(spec, arguments.rows)
    rows = list(_first(read_rows(arguments.file), arguments.rows))
    columns = list(next((row for row in rows if not isinstance(row, Mark)), {}))
    if spec.partitioned and arguments.by is None:
        listed = f" Columns: {', '.join(columns)}." if columns else ""
        raise UsageError(f"{str(spec)!r} is partitioned: name its key with --by COL.{listed}")
    for option, name in (("--by", arguments.by), ("--time", arguments.time)):
        if name is not None and columns and name not in columns:
            msg = f"{option} {name}: no such column in {arguments.file}."
            raise UsageError(f"{msg} Columns: {', '.join(columns)}.{suggestion(name, columns)}")
    return rows


def _first(rows: Iterator[Any], n: int | None) -> Iterator[Any]:
    """Rows up to the n-th tuple; punctuations do not count."""
    seen = 0
    for row in rows:
        seen += not isinstance(row, Mark)
        if n is not None and seen > n:
            return
        yield row


def read_rows(source: str) -> Iterator[Any]:
    """The rows of a CSV or JSON lines file, or of stdin for "-"."""
    name = "stdin" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: not a text file.") from None
    if not text.strip():
        raise UsageError(f"{name}: there are no rows in it.")
    return (_json if text.lstrip().startswith(("{", "[")) else _csv)(name, text)


def _json(name: str, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{name}, line {number}: malformed JSON: {error.msg}.") from None
        if not isinstance(row, dict):
            raise UsageError(f'{name}, line {number}: not a JSON object, such as {{"ts": 7}}.')
        if list(row) == ["punct"] and row["punct"] is True:
            yield punct()
        else:
            yield {key: _date(value) for key, value in row.items()}


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
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value


def _conformance(arguments: argparse.Namespace) -> int:
    total = wrong = 0
    for case in _cases(arguments.paths):
        total += 1
        mismatch = conformance.check(case, arguments.engine)
        if mismatch is not None:
            wrong += 1
            print(mismatch)
    print(f"{total} cases, {wrong} mismatches")
    return 1 if wrong else 0


def _cases(paths: list[str]) -> Iterator[dict[str, Any]]:
    try:
        yield from conformance.cases(paths)
    except ValueError as error:
        raise UsageError(_one_line(error)) from None
