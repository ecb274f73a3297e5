"""From a call such as `agg.sum("x")` to an aggregate: text, columns and function call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from windowlib.attributes import Several
from windowlib.errors import ModelError
from windowlib.operators.expressions import (
    Col,
    Expr,
    RowExpr,
    When,
    from_spark,
    quoted,
    row_attribute,
)
from windowlib.spec.policies import Attribute, attribute_text, is_attribute
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.summarizers import FunctionCall

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from windowlib.operators.functions.firing_facts import FiringFunction

Column: TypeAlias = "Attribute | Expr | SparkColumn"
"""What a function reads of a row."""


class _Row:
    """Reads the whole row."""

    __qualname__ = "row"

    def __call__(self, row: Any) -> Any:
        return row

    def __reduce__(self) -> str:
        return "ROW"

    def columnar(self, inputs: Any) -> Any:
        """All rows of a batch (`windowlib.columnar.inputs`)."""
        return inputs.whole()

    def inline(self, variable: str, sample: object) -> str:
        """The variable itself."""
        return variable


ROW = _Row()


class Agg(Expr):
    """An aggregate of a window: a function and the columns it reads.

    It is computed from the tuples, as its function call says, or is a fact of the firing.
    """

    def __init__(
        self,
        shown: str,
        columns: tuple[Attribute, ...] = (),
        call: FunctionCall | None = None,
        callables: tuple[Callable[..., Any], ...] = (),
        firing: FiringFunction | None = None,
    ) -> None:
        self.shown, self.columns, self.call = shown, columns, call
        self.callables, self.firing = callables, firing

    @property
    def identity(self) -> tuple[Any, ...]:
        """A value that is equal for equal aggregates; two lambdas with equal texts differ."""
        return (self.shown, *map(id, self.callables))

    def where(self, condition: Expr | SparkColumn) -> Agg:
        """This function over the rows for which a condition is true.

        >>> from windowlib import Count, Tumbling, replay
        >>> from windowlib.operators import Aggregate, agg, col
        >>> bought = agg.sum("qty").where(col("side") == "buy")
        >>> orders = [("buy", 1), ("sell", 2), ("buy", 4)]
        >>> rows = [{"side": side, "qty": qty} for side, qty in orders]
        >>> list(replay(Aggregate(Tumbling(Count(3)), bought=bought, n=agg.count()), rows))
        [{'bought': 5, 'n': 3}]
        """
        return _filtered(self, condition)

    filter = where

    def __repr__(self) -> str:
        return self.shown


# -- functions of some of the rows ----------------------------------------------------------------
#
# Nulls are skipped by every function, so a column that is null where the condition does not hold
# is enough: no function, fold or kernel knows of conditions.


def _filtered(aggregate: Agg, condition: Any) -> Agg:
    """An aggregate of the rows for which a condition is true."""
    from windowlib.operators.functions.statistics import COUNT_VALUES

    condition = from_spark(condition)
    text = f"{aggregate.shown}.where({condition!r})"
    if not isinstance(condition, Expr):
        fix = 'Write one of columns, as col("side") == "buy"'
        raise ModelError(f"{text}: not a condition. {fix}.")
    call = aggregate.call
    if call is None:
        msg = f"{text}: {aggregate.shown} reads no rows. Drop the condition, or use agg.count()."
        raise ModelError(msg)
    if call.attribute is None:  # how many tuples: how many for which it is true
        attributes: list[Attribute] = [RowExpr(When(condition, True))]
        call = replace(call, function=COUNT_VALUES)
    else:
        attributes = list(_wrapped(call.attribute, condition, text))
    one = attributes[0] if len(attributes) == 1 else Several(attributes, text)
    read = tuple(each for each in attributes if each is not ROW)
    return Agg(text, read, replace(call, attribute=one, shown=text), aggregate.callables)


def _wrapped(attribute: Attribute, condition: Expr, owner: str) -> Iterator[Attribute]:
    """The attributes of a function, each with nulls where the condition is not true."""
    parts = attribute.attributes if isinstance(attribute, Several) else (attribute,)
    if ROW in parts and len(parts) == 1:
        fix = 'Name a column, as agg.collect("x"), or filter the rows before'
        raise ModelError(f"{owner}: whole rows cannot be left out. {fix}.")
    for part in parts:
        if part is ROW:  # picked by another column, which is null where the row is left out
            yield part
        elif callable(part) and not isinstance(part, RowExpr):
            msg = f"{owner}: {part!r} is a function of the row. Put the condition into it."
            raise ModelError(msg)
        else:
            operand = part.expression if isinstance(part, RowExpr) else Col(part)
            yield RowExpr(When(condition, operand))


# -- calls ----------------------------------------------------------------------------------------


def shown_text(value: Any) -> str:
    """An argument as source text."""
    if isinstance(value, str):
        return quoted(value)
    plain = isinstance(value, Expr) or not callable(value)
    return repr(value) if plain else attribute_text(value)


def aggregate(
    function: AggregateFunction,
    columns: Mapping[str, Any],
    *,
    hidden: Sequence[str] = (),
    text: str = "",
    **options: Any,
) -> Agg:
    """A call of a function.

    Args:
        function: its declaration.
        columns: by the name of the argument; a name that is none, such as "", is not shown.
        hidden: options that are not shown.
        text: the call as source text, if its arguments come in another order.
        options: what makes the fold.
    """
    columns = {name: from_spark(column) for name, column in columns.items()}
    text = text or f"agg.{function.name}({_arguments(columns, options, hidden)})"
    attributes = [_attribute(column, text) for column in columns.values()]
    one = attributes[0] if len(attributes) == 1 else Several(attributes, text)
    call = FunctionCall(function, one if attributes else None, tuple(options.items()), text)
    read = tuple(each for each in attributes if each is not ROW)
    callables = tuple(each for each in (*columns.values(), *options.values()) if callable(each))
    return Agg(text, read, call, callables)


def _arguments(columns: Mapping[str, Any], options: Mapping[str, Any], hidden: Any) -> str:
    given = {name: column for name, column in columns.items() if column is not None}
    shown = [
        f"{name}={shown_text(c)}" if name.isidentifier() else shown_text(c)
        for name, c in given.items()
    ]
    shown += [f"{name}={shown_text(v)}" for name, v in options.items() if name not in hidden]
    return ", ".join(shown)


def _attribute(column: Any, owner: str) -> Attribute:
    if column is None:
        return ROW
    column = row_attribute(column)
    if not is_attribute(column):
        msg = (
            f"{owner}: {column!r} is no column. Give a name, an index, a callable, or an "
            f'expression such as col("price") * col("qty").'
        )
        raise ModelError(msg)
    found: Attribute = column
    return found


def is_whole_number(value: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def refuse_argument(call: str, argument: str, value: Any, fix: str) -> NoReturn:
    """Refuse an argument of a function."""
    raise ModelError(f"agg.{call}({argument}={value!r}): {fix}")
