"""Mistakes in a command line: one line each."""

from __future__ import annotations

from collections.abc import Iterable

from windowlib.errors import suggestion


class UsageError(Exception):
    """Something the user can put right."""


class FoundError(Exception):
    """What was to be checked has an error: the answer of a command, and exit code 1."""


def one_line(error: BaseException) -> str:
    """What an exception says, without line breaks.

    >>> one_line(ValueError("size must\\n    not be negative."))
    'size must not be negative.'
    """
    if isinstance(error, OSError) and error.strerror is not None:
        about = f"{error.filename}: " if error.filename is not None else ""
        return f"{about}{error.strerror}"
    return " ".join(str(error).split())


def told(error: Exception) -> str:
    """An exception that is not ours on one line: its kind, what it says, and where it was.

    >>> error = ValueError("no price")
    >>> error.add_note("in Spread, row {'x': 1}")
    >>> told(error)
    "ValueError: no price (in Spread, row {'x': 1})"
    """
    said = " ".join(str(error).split())
    notes = "; ".join(" ".join(note.split()) for note in getattr(error, "__notes__", ()))
    where = f" ({notes})" if notes else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"


def check_column(option: str, name: str | None, columns: Iterable[str], source: str) -> None:
    """Refuse a column that a file does not have; a file without rows may have any."""
    known = list(columns)
    if name is not None and known and name not in known:
        msg = f"{option} {name}: no such column in {source}."
        raise UsageError(f"{msg} Columns: {', '.join(known)}.{suggestion(name, known)}")
