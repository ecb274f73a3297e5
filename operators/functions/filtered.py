"""Functions of some of the rows: `agg.sum("qty").where(col("side") == "buy")`.

Nulls are skipped by every function, so a column that is null where the condition does not hold says
it all: no function, fold or kernel knows of conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from windowlib.attributes import Several
from windowlib.errors import ModelError
from windowlib.operators.expressions import Col, Expr, RowExpr, When, translated
from windowlib.operators.functions.call import ROW, Agg
from windowlib.operators.functions.counts import COUNT_VALUES
from windowlib.spec.policies import Attribute


def filtered(aggregate: Agg, condition: Any) -> Agg:
    """An aggregate of the rows for which a condition is true."""
    condition = translated(condition)
    text = f"{aggregate.shown}.where({condition!r})"
    if not isinstance(condition, Expr):
        fix = 'Write one of columns, as col("side") == "buy"'
        raise ModelError(f"{text}: not a condition. {fix}.")
    recipe = aggregate.recipe
    if recipe is None:
        msg = f"{text}: {aggregate.shown} reads no rows. Drop the condition, or use agg.count()."
        raise ModelError(msg)
    if recipe.attribute is None:  # how many tuples: how many for which it is true
        attributes: list[Attribute] = [RowExpr(When(condition, True))]
        recipe = replace(recipe, function=COUNT_VALUES)
    else:
        attributes = list(_wrapped(recipe.attribute, condition, text))
    one = attributes[0] if len(attributes) == 1 else Several(attributes, text)
    read = tuple(each for each in attributes if each is not ROW)
    return Agg(text, read, replace(recipe, attribute=one, shown=text), aggregate.callables)


def _wrapped(attribute: Attribute, condition: Expr, owner: str) -> Iterator[Attribute]:
    """What a function reads, each with nulls where the condition is not true."""
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
