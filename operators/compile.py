"""From the outputs a user asked for to summaries, and from summaries to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from operators.agg import Agg
from operators.expressions import Col, Expr, RowExpr, plain
from operators.groups import GroupValues
from windowlib.errors import ModelError
from windowlib.policies import Attribute
from windowlib.summarizers import Recipe


def key_names(by: Any, word: str = "key") -> list[str]:
    """The names of key columns in output rows: their own, or `key` for what has none.

    >>> key_names("symbol"), key_names(("src", 1)), key_names(None)
    (['symbol'], ['src', 'key_2'], [])
    """
    if by is None:
        return []
    if not isinstance(by, tuple):
        return [by if isinstance(by, str) else word]
    return [part if isinstance(part, str) else f"{word}_{i}" for i, part in enumerate(by, 1)]


class Outputs:
    """The columns of an aggregation: which summaries they need, and how rows are made of them.

    The values of one group are a list: those of the summaries, then the size of the subwindow,
    the number of groups and the list of their sizes.
    """

    def __init__(
        self,
        outputs: Mapping[str, Any],
        by: Any,
        group_by: Any,
        having: Expr | Callable[[Any], Any] | None,
    ) -> None:
        if not outputs:
            msg = "Aggregate(...): no output. Name at least one, such as n=agg.count()."
            raise ModelError(msg)
        keys = [*_key_texts(by, "key"), *_key_texts(group_by, "group")]
        self.keys = [name for name, _ in keys]
        for name, value in outputs.items():
            _check_output(name, value, self.keys)
        self.expressions: dict[str, Expr] = dict(outputs)
        _check_having(having)
        self.having = having
        condition = [having] if isinstance(having, Expr) else []
        leaves = [leaf for e in [*outputs.values(), *condition] for leaf in e.leaves()]
        self.aggregates: dict[str, Agg] = {repr(leaf): leaf for leaf in leaves}
        self.recipes: dict[str, Recipe] = {
            text: each.recipe for text, each in self.aggregates.items() if each.recipe is not None
        }
        places = [*self.recipes, *WHOLE]
        self._place = {leaf: places.index(repr(leaf)) for leaf in leaves}
        self._make = self._compiled(keys)

    def reads(self) -> Iterator[tuple[Attribute, str]]:
        """The columns that the functions read, each with the function."""
        for text, each in self.aggregates.items():
            for column in each.columns:
                yield from ((name, text) for name in _names(column))

    def rows(self, key: Any, groups: Sequence[GroupValues], n: int) -> Iterator[dict[str, Any]]:
        """The rows of one firing: one for each group that the condition lets through."""
        sizes = [group.n for group in groups]
        whole = [n, len(sizes), sizes]
        for group in groups:
            row = self.row(key, group.key, group.values + whole)
            if row is not None:
                yield row

    def row(self, key: Any, group: Any, values: list[Any]) -> dict[str, Any] | None:
        """The row of one group, None if the condition does not let it through."""
        try:
            row = self._make(key, group, values)
        except (TypeError, ArithmeticError):  # a null, or a division by zero
            row = self._slow_row(key, group, values)
        having = self.having
        if having is None:
            return row
        true = self._evaluated(having, values) if isinstance(having, Expr) else having(row)
        return row if true else None

    def _compiled(self, keys: list[tuple[str, str]]) -> Callable[..., dict[str, Any]]:
        """A function that writes the row down, for operands that are not null."""
        self._keys = _function("key, group", keys, {})
        names: dict[str, Any] = {}
        parts = list(keys)
        for i, (name, expression) in enumerate(self.expressions.items()):
            text = f"slow{i}(v)"
            names[f"slow{i}"] = partial(self._evaluated, expression)
            if plain(expression):
                text = expression.text(lambda leaf: f"v[{self._place[leaf]}]")
            parts.append((name, text))
        return _function("key, group, v", parts, names)

    def _evaluated(self, expression: Expr, values: list[Any]) -> Any:
        return expression.evaluate(lambda leaf: values[self._place[leaf]])

    def _slow_row(self, key: Any, group: Any, values: list[Any]) -> dict[str, Any]:
        row = self._keys(key, group)
        return row | {name: self._evaluated(e, values) for name, e in self.expressions.items()}


WHOLE = ("agg.count_all()", "agg.count_groups()", "agg.count_by_group()")
"""Aggregates of a whole subwindow, in the order of their places after the summaries."""


def _key_texts(by: Any, variable: str) -> list[tuple[str, str]]:
    """The name of each part of a key, and source text that reads it from `variable`."""
    names = key_names(by, variable)
    if not isinstance(by, tuple):
        return [(name, variable) for name in names]
    return [(name, f"{variable}[{i}]") for i, name in enumerate(names)]


def _function(
    arguments: str, parts: list[tuple[str, str]], names: dict[str, Any]
) -> Callable[..., dict[str, Any]]:
    body = ", ".join(f"{name!r}: {text}" for name, text in parts)
    made: Callable[..., dict[str, Any]] = eval(f"lambda {arguments}: {{{body}}}", names)
    return made


def _names(column: Attribute) -> Iterator[str]:
    """The column names in an attribute: itself, or those of an expression."""
    if isinstance(column, RowExpr):
        for leaf in column.expression.leaves():
            if isinstance(leaf, Col) and isinstance(leaf.name, str):
                yield leaf.name
    elif isinstance(column, str):
        yield column


def _check_output(name: str, value: Any, keys: list[str]) -> None:
    if name in keys:
        msg = (
            f"Aggregate({name}=...): the rows have a column {name!r} already, which is a key. Give "
            f"this one another name."
        )
        raise ModelError(msg)
    if not isinstance(value, Expr):
        _refuse_output(name, value)
    for leaf in value.leaves():
        if not isinstance(leaf, Agg):
            msg = (
                f"Aggregate({name}={value!r}): {leaf!r} has a value for each row, and there is one "
                f'row for many. Say which: agg.last("{getattr(leaf, "name", "x")}").'
            )
            raise ModelError(msg)


def _refuse_output(name: str, value: Any) -> NoReturn:
    shown = repr(value)
    fix = 'Write a function of a column, such as agg.sum("x").'
    if callable(value) and getattr(value, "__module__", "") == "operators.agg":
        shown = f"agg.{value.__name__}"
        fix = f"Call it: {shown}()." if value.__name__ == "count" else f'Call it: {shown}("x").'
    raise ModelError(f"Aggregate({name}={shown}): not an aggregate. {fix}")


def _check_having(having: Any) -> None:
    if isinstance(having, Expr):
        _check_output("having", having, [])
    elif having is not None and not callable(having):
        msg = (
            f"Aggregate(having={having!r}): not a condition. Write an expression such as "
            f"agg.count() > 1, or a function of the row."
        )
        raise ModelError(msg)
