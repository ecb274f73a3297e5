"""Aggregate functions, for `Aggregate`.

A column is a name, an index, a callable, or an expression such as `col("price") * col("qty")`.
Results combine with arithmetic and comparison: `agg.sum("notional") / agg.sum("qty")`.

Nulls are skipped, as in SQL. Where all values are null the result is null, lists are empty, and
`count` and the counts of distinct values are 0. NaN counts as the largest number, as in Spark.
Integer sums are exact, float sums are compensated, decimals and timestamps keep their types.

The modules of `windowlib.operators.functions` hold the functions, each with its declaration and its
arithmetic.
"""
# ruff: noqa: F403 - a namespace: what its modules list in `__all__`

from __future__ import annotations

from types import FunctionType
from typing import Any

from windowlib.errors import FunctionError, suggestion
from windowlib.operators.functions.approximate import *
from windowlib.operators.functions.call import Agg as Agg
from windowlib.operators.functions.call import Column as Column
from windowlib.operators.functions.custom import *
from windowlib.operators.functions.distinct_values import *
from windowlib.operators.functions.extreme_values import *
from windowlib.operators.functions.firing_facts import *
from windowlib.operators.functions.positions import *
from windowlib.operators.functions.quantile import *
from windowlib.operators.functions.quantile import Method as Method
from windowlib.operators.functions.statistics import *

__all__ = sorted(
    name
    for name, value in vars().items()
    if isinstance(value, FunctionType) and value.__module__.startswith(f"{__package__}.functions.")
)

OTHER_NAMES = {
    "average": "mean",
    "avg": "mean",
    "array_agg": "collect",
    "collect_list": "collect",
    "collect_set": "collect_distinct",
    "countDistinct": "count_distinct",
    "max_by": "arg_max",
    "min_by": "arg_min",
    "nunique": "count_distinct",
    "percentile": "quantile",
    "stddev": "std",
    "variance": "var",
}
"""What other libraries call the functions."""


def __getattr__(name: str) -> Any:
    near = OTHER_NAMES.get(name)
    fix = suggestion(name, __all__) if near is None else f' Use "agg.{near}".'
    raise FunctionError(f"agg.{name}: there is no such function.{fix}")
