"""Errors of commands as one line each: usage errors, results of checks, and Spark's errors."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from windowlib.errors import WindowlibError, suggestion

LONGEST = 400
RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


class UsageError(Exception):
    """An error that the user can correct."""


class CheckError(Exception):
    """An error in what a command checks: its result, with exit code 1."""


def one_line(error: BaseException) -> str:
    """The message of an exception without line breaks.

    >>> one_line(ValueError("size must\\n    not be negative."))
    'size must not be negative.'
    """
    if isinstance(error, OSError) and error.strerror is not None:
        about = f"{error.filename}: " if error.filename is not None else ""
        return f"{about}{error.strerror}"
    return " ".join(str(error).split())


def error_text(error: Exception) -> str:
    """An exception of other code on one line: its kind, its message, and where it was raised.

    >>> error = ValueError("no price")
    >>> error.add_note("in Spread, row {'x': 1}")
    >>> error_text(error)
    "ValueError: no price (in Spread, row {'x': 1})"
    """
    message = " ".join(str(error).split())
    notes = "; ".join(" ".join(note.split()) for note in getattr(error, "__notes__", ()))
    where = f" ({notes})" if notes else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}{where}"


def count_option(noun: str) -> Callable[[str], int]:
    """The `type` of an option that is a number of something, 1 or more."""

    def count(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {noun}")
        return int(text)

    return count


def check_column(option: str, name: str | None, columns: Iterable[str], source: str) -> None:
    """Refuse a column that a file does not have; a file without rows may have any."""
    known = list(columns)
    if name is not None and known and name not in known:
        msg = f"{option} {name}: no such column in {source}."
        raise UsageError(f"{msg} Columns: {', '.join(known)}.{suggestion(name, known)}")


@contextlib.contextmanager
def muted_stderr() -> Iterator[TextIO]:
    """Discard what Java and its children write on stderr; yields a stderr for this process."""
    sys.stderr.flush()
    try:
        number = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # not a file, as in a notebook: nothing to send
        yield sys.stderr
        return
    ours = os.dup(number)
    with open(os.devnull, "wb") as away, os.fdopen(ours, "w", closefd=False) as err:
        os.dup2(away.fileno(), number)
        try:
            yield err
        finally:
            err.flush()
            os.dup2(ours, number)
    os.close(ours)


@contextlib.contextmanager
def spark_failures() -> Iterator[None]:
    """Turn what Spark raises into one line."""
    try:
        yield
    except (WindowlibError, UsageError, OSError):
        raise
    except Exception as error:
        raise UsageError(f"Spark: {spark_message(str(error))}") from None


def spark_message(text: str) -> str:
    r"""The relevant line of an error of Spark: the last exception, or the first line.

    >>> spark_message("Job aborted\nTraceback:\n  File x\nwindowlib.errors.SchemaError: no x.\n")
    'SchemaError: no x.'
    """
    found = RAISED.findall(text)
    line = ": ".join(found[-1]) if found else text.strip().partition("\n")[0]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
