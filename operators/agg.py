"""Aggregate functions, for `Aggregate`.

A column is a name, an index, a callable, or an expression such as `col("price") * col("qty")`.
Results combine with arithmetic and comparison: `agg.sum("notional") / agg.sum("qty")`.

Nulls are skipped, as in SQL; of nothing but nulls the result is null, lists are empty, and `count`
and the counts of distinct values are 0. NaN counts as the largest number, as in Spark. Integer sums
are exact, float sums are compensated, decimals and timestamps keep their types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, Literal

from operators.expressions import Expr
from operators.functions.approximate import ApproxCount, ApproxQuantile, ApproxTop
from operators.functions.custom import Custom
from operators.functions.distinct import CollectDistinct, CountByDistinct, CountDistinct, Mode
from operators.functions.ends import Collect, CountValues, First, Last, Nth
from operators.functions.extremes import ArgExtreme, CollectArgExtreme, ExtremeCount, Top
from operators.functions.lists import OrLists
from operators.functions.moments import Correlation, Covariance, Std, WeightedMean
from operators.functions.quantiles import Quantile
from operators.making import Agg, made, refuse, shown_text, whole
from windowlib.errors import FunctionError, suggestion
from windowlib.folds import CountFold, Fold, MaxFold, MeanFold, MinFold, SumFold, VarianceFold
from windowlib.policies import Attribute

Column = Attribute | Expr
Method = Literal["linear", "lower", "higher", "nearest"]
METHODS = ("linear", "lower", "higher", "nearest")
LARGEST = 1 << 20
"""The largest size of a sketch."""


# -- how many -----------------------------------------------------------------------------------


def count(column: Column | None = None) -> Agg:
    """How many tuples; with a column, how many of its values are not null."""
    if column is None:
        return made("count", CountFold, {})
    return made("count", CountValues, {"": column})


def count_all() -> Agg:
    """How many tuples the whole subwindow has, whatever the group."""
    return Agg("agg.count_all()", (), None)


def count_groups() -> Agg:
    """How many groups the subwindow has."""
    return Agg("agg.count_groups()", (), None)


def count_by_group() -> Agg:
    """How many tuples each group of the subwindow has, as a list in the order of the groups."""
    return Agg("agg.count_by_group()", (), None)


def count_distinct(column: Column) -> Agg:
    """How many distinct values."""
    return made("count_distinct", CountDistinct, {"": column})


def count_by_distinct(column: Column) -> Agg:
    """How often each distinct value came, as a list aligned with `collect_distinct`."""
    return made("count_by_distinct", CountByDistinct, {"": column})


# -- which --------------------------------------------------------------------------------------


def any(column: Column) -> Agg:
    """Some value, the same one every time: the first."""
    return made("any", First, {"": column})


def first(column: Column) -> Agg:
    """The first value."""
    return made("first", First, {"": column})


def last(column: Column) -> Agg:
    """The last value."""
    return made("last", Last, {"": column})


def nth(column: Column, k: int) -> Agg:
    """The value at place `k`: 0 is the first, -1 the last; null if there are too few."""
    if not whole(k):
        refuse("nth", "k", k, "a place is a whole number; 0 is the first value, -1 the last.")
    return made("nth", Nth, {"": column}, k=k)


def collect(column: Column | None = None) -> Agg:
    """All values as a list, in order; without a column, the rows themselves."""
    return made("collect", Collect, {"": column})


def collect_distinct(column: Column) -> Agg:
    """The distinct values as a list, in order of first appearance."""
    return made("collect_distinct", CollectDistinct, {"": column})


def mode(column: Column) -> Agg:
    """The most frequent value; of several, the one that came first."""
    return made("mode", Mode, {"": column})


# -- numbers ------------------------------------------------------------------------------------


def _lists(fold: Callable[..., Fold], **options: Any) -> Fold:
    return OrLists(fold(**options))


def sum(column: Column) -> Agg:
    """The sum; of lists, element by element."""
    return made("sum", partial(_lists, SumFold, short=False), {"": column})


def mean(column: Column) -> Agg:
    """The arithmetic mean; of lists, element by element."""
    return made("mean", partial(_lists, MeanFold, short=False), {"": column})


def weighted_mean(column: Column, *, weight: Column) -> Agg:
    """The sum of value times weight over the sum of weights; null if that is zero."""
    return made("weighted_mean", WeightedMean, {"": column, "weight": weight})


def var(column: Column, *, ddof: int = 1) -> Agg:
    """The variance: of a sample (`ddof=1`, null for one value) or a population (`ddof=0`)."""
    return made("var", VarianceFold, {"": column}, ddof=_ddof("var", ddof))


def std(column: Column, *, ddof: int = 1) -> Agg:
    """The standard deviation; `ddof` as for `var`."""
    return made("std", Std, {"": column}, ddof=_ddof("std", ddof))


def cov(x: Column, y: Column, *, ddof: int = 1) -> Agg:
    """The covariance of two columns; `ddof` as for `var`."""
    return made("cov", Covariance, {"": x, " ": y}, ddof=_ddof("cov", ddof))


def corr(x: Column, y: Column) -> Agg:
    """Pearson's correlation of two columns; null for fewer than two pairs."""
    return made("corr", Correlation, {"": x, " ": y})


def _ddof(call: str, ddof: int) -> int:
    if ddof not in (0, 1):
        refuse(call, "ddof", ddof, "say 1 for a sample or 0 for a population.")
    return ddof


# -- order --------------------------------------------------------------------------------------


def min(column: Column) -> Agg:
    """The smallest value; of lists, element by element."""
    return made("min", partial(_lists, MinFold), {"": column})


def max(column: Column) -> Agg:
    """The largest value; of lists, element by element."""
    return made("max", partial(_lists, MaxFold), {"": column})


def min_count(column: Column) -> Agg:
    """How many values equal the smallest."""
    return made("min_count", partial(ExtremeCount, largest=False), {"": column})


def max_count(column: Column) -> Agg:
    """How many values equal the largest."""
    return made("max_count", partial(ExtremeCount, largest=True), {"": column})


def arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the smallest `by`, the earliest of several; or the row."""
    return made("arg_min", partial(ArgExtreme, largest=False), {"": column, "by": by})


def arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the largest `by`, the earliest of several; or the row."""
    return made("arg_max", partial(ArgExtreme, largest=True), {"": column, "by": by})


def collect_arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the smallest `by`, as a list; or the rows."""
    return made(
        "collect_arg_min", partial(CollectArgExtreme, largest=False), {"": column, "by": by}
    )


def collect_arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the largest `by`, as a list; or the rows."""
    return made("collect_arg_max", partial(CollectArgExtreme, largest=True), {"": column, "by": by})


def top(k: int, column: Column | None = None, *, by: Column, largest: bool = True) -> Agg:
    """The values that go with the `k` largest `by`, best first, as a list; or the rows."""
    if not whole(k) or k < 1:
        refuse("top", "k", k, "say how many, 1 or more.")
    shown = [str(k), *([] if column is None else [shown_text(column)]), f"by={shown_text(by)}"]
    shown += [] if largest else ["largest=False"]
    text = f"agg.top({', '.join(shown)})"
    return made("top", Top, {"": column, "by": by}, (text,), k=k, largest=largest)


def median(column: Column, *, method: Method = "linear") -> Agg:
    """The middle value; between two values as `method` says."""
    return _quantile("median", column, 0.5, method)


def quantile(column: Column, q: float, *, method: Method = "linear") -> Agg:
    """The value below which the fraction `q` of the others lies.

    Between two values: straight between them ("linear"), or one of them ("lower", "higher",
    "nearest"), which works for anything that has an order.
    """
    return _quantile("quantile", column, _fraction("quantile", q), method)


def _quantile(call: str, column: Column, q: float, method: str) -> Agg:
    if method not in METHODS:
        refuse(call, "method", method, f"use one of {', '.join(METHODS)}.")
    hidden = ("q",) * (call == "median") + ("method",) * (method == "linear")
    return made(call, Quantile, {"": column}, hidden, q=q, method=method)


def _fraction(call: str, q: float) -> float:
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        refuse(call, "q", q, "a fraction between 0 and 1, such as 0.95.")
    return q


# -- approximate --------------------------------------------------------------------------------


def approx_count_distinct(column: Column, *, precision: int = 12) -> Agg:
    """About how many distinct values (HyperLogLog): 2 ** `precision` bytes, 1.6 % off at 12."""
    if not whole(precision) or not 4 <= precision <= 18:
        refuse("approx_count_distinct", "precision", precision, "a whole number from 4 to 18.")
    return made("approx_count_distinct", ApproxCount, {"": column}, precision=precision)


def approx_quantile(column: Column, q: float, *, size: int = 512) -> Agg:
    """A value of about the rank `q` (KLL sketch): 5 / `size` of the ranks off, 1 % at 512."""
    _fraction("approx_quantile", q)
    if not whole(size) or not 8 <= size <= LARGEST:
        refuse("approx_quantile", "size", size, f"a whole number from 8 to {LARGEST}.")
    return made("approx_quantile", ApproxQuantile, {"": column}, q=q, size=size)


def approx_top_k(column: Column, k: int, *, capacity: int | None = None) -> Agg:
    """The `k` most frequent values with their counts, as pairs (Space-Saving).

    Exact while there are at most `capacity` distinct values: 512, or 8 times `k` if that is more.
    """
    if not whole(k) or not 1 <= k <= LARGEST // 8:
        refuse("approx_top_k", "k", k, f"say how many, from 1 to {LARGEST // 8}.")
    # builtins are hidden by the functions of this module
    size = (512 if k <= 64 else 8 * k) if capacity is None else capacity
    if not whole(size) or not 2 * k <= size <= LARGEST:
        fix = f"a whole number from {2 * k}, twice k, to {LARGEST}."
        refuse("approx_top_k", "capacity", capacity, fix)
    return made("approx_top_k", ApproxTop, {"": column}, k=k, capacity=size)


# -- your own -----------------------------------------------------------------------------------

SAMPLES = {
    "init": "lambda: 0",
    "step": "lambda state, x: state + x",
    "result": "lambda state: state / 2",
    "merge": "lambda a, b: a + b",
    "inverse": "lambda state, x: state - x",
}
"""What the callables of `custom` look like, for messages."""


def custom(
    init: Callable[[], Any],
    step: Callable[[Any, Any], Any],
    result: Callable[[Any], Any] | None = None,
    *,
    column: Column | None = None,
    merge: Callable[[Any, Any], Any] | None = None,
    inverse: Callable[[Any, Any], Any] | None = None,
) -> Agg:
    """A function of your own, from callables.

    Args:
        init: makes the first state.
        step: takes a state and a value and gives the next state; nulls come, too. It may change
            the state in place, but not if it then raises.
        column: what `step` gets of a row; left out, the row.
        result: makes the result from the last state; left out, it is the state.
        merge: makes one state of two, the earlier first, and changes neither; with it a sliding
            window need not look at every tuple again.
        inverse: takes a state and the value that leaves, and gives the state without it. Give it
            only if that is exact, which it is not for sums of floats.

    >>> from operators import agg
    >>> agg.custom(lambda: 1, lambda product, x: product * x, column="x")
    agg.custom(column="x", init=operators.agg.<lambda>, step=operators.agg.<lambda>)
    """
    given = {"init": init, "step": step, "result": result, "merge": merge, "inverse": inverse}
    for name, value in given.items():
        needed = name in ("init", "step")
        if (needed or value is not None) and not callable(value):
            refuse("custom", name, value, f"not a function. Write {name}={SAMPLES[name]}.")
    hidden = tuple(name for name, value in given.items() if value is None)
    return made("custom", Custom, {"column": column}, hidden, **given)


# -- what others call them ------------------------------------------------------------------------

ELSEWHERE = {
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


def __getattr__(name: str) -> Any:
    near = ELSEWHERE.get(name)
    known = [
        each
        for each, value in globals().items()
        if isinstance(value, FunctionType) and not each.startswith("_")
    ]
    fix = suggestion(name, known) if near is None else f' Use "agg.{near}".'
    raise FunctionError(f"agg.{name}: there is no such function.{fix}")
