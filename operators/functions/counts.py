"""How many: tuples, values that are not null, groups of a firing."""

from __future__ import annotations

from typing import Any

from windowlib.operators.functions.call import Agg, Column, FiringFunction, aggregate
from windowlib.operators.functions.output_types import count_type, counts_type
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import CountFold, Fold, State

__all__ = ["count", "count_all", "count_by_group", "count_groups"]

COUNT = AggregateFunction(
    "count",
    CountFold,
    count_type,
    kernel="windowlib.columnar.kernels.sums:CountKernel",
    combined_by="sum",
)


def count(column: Column | None = None) -> Agg:
    """How many tuples; with a column, how many of its values are not null."""
    if column is None:
        return aggregate(COUNT, {})
    return aggregate(COUNT_VALUES, {"": column})


class CountValues(Fold):
    """How many values are not null."""

    name = "count"
    empty = (0,)
    compute, store = "_0 = x is not None", "{0} += _0"
    read, merged = "{0}", ("{a0} + {b0}",)

    def step(self, state: State, x: Any) -> State:
        """One more, unless it is null."""
        return (state[0] + (x is not None),)

    def value(self, n: int, state: State) -> int:
        """The count."""
        return int(state[0])

    def merge(self, a: State, b: State) -> State:
        """The sum of both."""
        return (a[0] + b[0],)


COUNT_VALUES = AggregateFunction(
    "count",
    CountValues,
    count_type,
    kernel="windowlib.columnar.kernels.sums:CountValuesKernel",
    combined_by="sum",
)

# -- of a whole firing ----------------------------------------------------------------------------

COUNT_ALL = FiringFunction("count_all", count_type, "n", "n", "whole_sizes")
COUNT_GROUPS = FiringFunction("count_groups", count_type, "1", "len(sizes)", "group_counts")
# The sizes of the groups are one list for all rows of a firing: each row gets its own.
COUNT_BY_GROUP = FiringFunction("count_by_group", counts_type, "[n]", "[*sizes]", "group_sizes")


def count_all() -> Agg:
    """How many tuples the whole subwindow has, whatever the group."""
    return COUNT_ALL.aggregate()


def count_groups() -> Agg:
    """How many groups the subwindow has."""
    return COUNT_GROUPS.aggregate()


def count_by_group() -> Agg:
    """How many tuples each group of the subwindow has, as a list in the order of the groups."""
    return COUNT_BY_GROUP.aggregate()
