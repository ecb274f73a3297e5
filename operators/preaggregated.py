"""Aggregations in two steps: a row that stands for many, and the aggregation of such rows.

A count is then a sum of counts, a sum one of sums, and the smallest value that of the smallest.
A host with functions of its own can take the first step, wherever the rows are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from operators import agg
from operators.making import Agg
from windowlib.spec import Sliding

if TYPE_CHECKING:
    from operators.aggregate import Aggregate

AGAIN = {"count": agg.sum, "sum": agg.sum, "min": agg.min, "max": agg.max}
"""What is computed of the results of a function."""


class Preaggregated(NamedTuple):
    """What to compute of rows that are in the same windows, and the operator that takes it."""

    functions: dict[str, tuple[str, str | None]]
    """By the name of the column that it makes: a function, and the column that it reads."""
    operator: Aggregate


def preaggregated(operator: Aggregate) -> Preaggregated | None:
    """The two steps of an aggregation; None if there is more to it.

    >>> from operators import Aggregate
    >>> from windowlib import Time, Tumbling
    >>> found = preaggregated(Aggregate(Tumbling(Time("1s"), by="k"), n=agg.count()))
    >>> found.functions, found.operator.outputs.expressions
    ({'_part0': ('count', None)}, {'n': agg.sum("_part0")})
    """
    (spec,) = operator.windows
    functions, outputs = {}, {}
    for number, (name, leaf) in enumerate(operator.outputs.expressions.items()):
        column = f"_part{number}"
        if (read := _read(leaf)) is None:
            return None
        functions[column], outputs[name] = read, AGAIN[read[0]](column)
    if not operator.plain or spec is None or spec.forget is not None:
        return None
    again = type(operator)(
        replace(spec, order_by=None),
        outputs,
        partial=operator.partial if isinstance(spec, Sliding) else None,  # type: ignore[arg-type]
        flush_at_end=operator.flush_at_end,
        name=operator.name,
    )
    return Preaggregated(functions, again)


def _read(leaf: object) -> tuple[str, str | None] | None:
    """The function of an output, and its column; None if it is no such function of a column."""
    recipe = leaf.recipe if isinstance(leaf, Agg) else None
    if not isinstance(leaf, Agg) or recipe is None or recipe.function not in AGAIN:
        return None
    if recipe.options or not all(isinstance(each, str) for each in leaf.columns):
        return None
    return recipe.function, leaf.columns[0] if leaf.columns else None  # type: ignore[return-value]
