"""Arguments of operators: windows, columns, functions, and the rows that functions return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal

from windowlib.attributes import brief, column_names
from windowlib.durations import amount_of
from windowlib.errors import ModelError, SchemaError
from windowlib.event_time.slack import FixedSlack, Slack
from windowlib.spec.policies import Attribute, attribute_text, check_attribute
from windowlib.spec.specification import KEY, Sliding, Spec, Tumbling
from windowlib.spec.spl import parse

Columns = Attribute | Sequence[Attribute]
"""One column, or several."""
Late = Literal["drop", "port", "error"]
"""What becomes of late rows."""


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
    """The row that a function returned; None is refused."""
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


def name_tuple(names: str | Iterable[str], owner: str) -> tuple[str, ...]:
    """Column names: one, or several."""
    one = isinstance(names, str) or not isinstance(names, Iterable)
    found: tuple[Any, ...] = (names,) if one else tuple(names)
    if not found or not all(isinstance(name, str) for name in found):
        raise ModelError(f'{owner}: name columns, such as "price" or ["price", "qty"].')
    return found


def as_tuple(columns: Any) -> tuple[Any, ...]:
    """An argument that is one column or a list of columns, as a tuple.

    >>> as_tuple("user"), as_tuple(["user", "day"])
    (('user',), ('user', 'day'))
    """
    return tuple(columns) if isinstance(columns, list | tuple) else (columns,)


def column_tuple(columns: Columns, owner: str) -> tuple[Attribute, ...]:
    """One column or several, as a tuple."""
    found = as_tuple(columns)
    plain = owner.replace("{", "{{").replace("}", "}}")  # it is a template there
    for column in found:
        check_attribute(column, plain, '"user" or ["user", "day"]')
    if not found:
        raise ModelError(f"{owner}: no column. Name one, or leave it out.")
    return found


def slack_of(slack: Any, owner: str) -> Slack:
    """A slack as a user passes it: a strategy, or an amount for a fixed one."""
    if isinstance(slack, Slack):
        return slack
    amounts = int | float | Decimal | timedelta | str
    if isinstance(slack, bool) or not isinstance(slack, amounts):
        msg = (
            f'{owner}: not a slack. Use a duration, as "5s", a number, or a strategy, as '
            f"QuantileSlack()."
        )
        raise ModelError(msg)
    return FixedSlack(amount_of(slack, owner, "0"))


def check_callable(function: Any, owner: str, sample: str) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        stop = "" if sample.endswith(".") else "."
        raise ModelError(f"{owner}: not a function. Write {sample}{stop}")


def function_text(function: Any) -> str:
    """A function or column, for messages."""
    return repr(function) if isinstance(function, str) else attribute_text(function)


def window_of(kind: str, argument: str, window: Spec | str, by: Any, word: str = "by") -> Spec:
    """A window as a user passes it, a specification or SPL text, partitioned by `by` if given.

    `kind`, `argument` and `word` are what messages call the operator, the window and the key.

    >>> from windowlib import Count
    >>> window_of("Sort", "window", Tumbling(Count(2)), "symbol")
    Tumbling(Count(size=2), by='symbol')
    """
    spec = parse(window) if isinstance(window, str) else window
    if not isinstance(spec, Tumbling | Sliding):
        msg = (
            f"{kind}({argument}={window!r}): not a window. Pass a specification, as "
            f"{argument}=Sliding(Count(10)), or SPL text."
        )
        raise ModelError(msg)
    if isinstance(window, str) and by is not None and spec.by is None:
        msg = (
            f"{kind}({word}={by!r}): the window {window!r} is not partitioned. Add the word "
            f"'partitioned' to it, or drop `{word}=`."
        )
        raise ModelError(msg)
    made = spec if by is None else replace(spec, by=by)
    if spec.by not in (None, KEY, made.by):
        msg = f"{kind}({word}={by!r}): the window says by={spec.by!r}. Drop one of them."
        raise ModelError(msg)
    if made.by is KEY:
        msg = (
            f"{kind}({argument}={made!r}): an operator reads its keys from the rows. Name the "
            f'columns, such as {word}="symbol".'
        )
        raise ModelError(msg)
    return made
