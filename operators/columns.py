"""Rows of any form as dicts, and what users' functions give back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windowlib.attributes import brief, column_names
from windowlib.errors import ModelError, SchemaError
from windowlib.policies import Attribute, attribute_text, check_attribute


def as_dict(row: Any, owner: str) -> dict[str, Any]:
    """The columns of a row in a dict of their own.

    >>> as_dict({"x": 1}, "Functor()")
    {'x': 1}
    """
    if isinstance(row, Mapping):
        return dict(row)
    names = column_names(row)
    if not names:
        msg = f"{owner}: the row {row!r} has no named columns. Use dicts, or objects with fields."
        raise SchemaError(msg)
    return {name: getattr(row, name) for name in names}


def one_row(result: Any, owner: str, given: Any) -> Any:
    """What a function made of a row, which must be something."""
    if result is None:
        msg = (
            f"{owner}: it returned None for {brief(given)}, and rows are not lost silently. "
            f"Return a row, or drop rows with a Filter."
        )
        raise SchemaError(msg)
    return result


def many_rows(result: Any, owner: str, given: Any) -> list[Any]:
    """The rows that a function gave, all of them before the first is sent."""
    if isinstance(result, Mapping | str | bytes) or not isinstance(result, Iterable):
        msg = (
            f"{owner}: it returned {brief(result)} for {brief(given)}, which is no list of rows. "
            f"Return a list or an iterator of rows; [] for none."
        )
        raise SchemaError(msg)
    return list(result)


def names_of(names: str | Iterable[str], owner: str) -> tuple[str, ...]:
    """Column names: one, or several."""
    one = isinstance(names, str) or not isinstance(names, Iterable)
    found: tuple[Any, ...] = (names,) if one else tuple(names)
    if not found or not all(isinstance(name, str) for name in found):
        raise ModelError(f'{owner}: name columns, such as "price" or ["price", "qty"].')
    return found


def several(columns: Any) -> tuple[Any, ...]:
    """What a user gave as one column or as a list of them, as a tuple.

    >>> several("user"), several(["user", "day"])
    (('user',), ('user', 'day'))
    """
    return tuple(columns) if isinstance(columns, list | tuple) else (columns,)


def columns_of(columns: Attribute | Sequence[Attribute], owner: str) -> tuple[Attribute, ...]:
    """One column or several, as a tuple."""
    found = several(columns)
    plain = owner.replace("{", "{{").replace("}", "}}")  # it is a template there
    for column in found:
        check_attribute(column, plain, '"user" or ["user", "day"]')
    if not found:
        raise ModelError(f"{owner}: no column. Name one, or leave it out.")
    return found


def check_callable(function: Any, owner: str, sample: str) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        stop = "" if sample.endswith(".") else "."
        raise ModelError(f"{owner}: not a function. Write {sample}{stop}")


def shown(function: Any) -> str:
    """A function or column, for messages."""
    return repr(function) if isinstance(function, str) else attribute_text(function)
