"""Aggregate functions, for `Aggregate` and `Batch`.

A column is a name, an index, a callable, or an expression such as `col("price") * col("qty")`.
Results combine with arithmetic and comparison: `agg.sum("notional") / agg.sum("qty")`.

Nulls are skipped, as in SQL; of nothing but nulls the result is null. NaN counts as the largest
number, as in Spark. Integer sums are exact, float sums are compensated, decimals and timestamps
keep their types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from operators.expressions import Col, Expr, RowExpr
from operators.functions.approximate import ApproxCount, ApproxQuantile, ApproxTop
from operators.functions.custom import Custom
from operators.functions.distinct import CollectDistinct, CountByDistinct, CountDistinct, Mode
from operators.functions.ends import Collect, CountValues, First, Last, Nth
from operators.functions.extremes import ArgExtreme, CollectArgExtreme, ExtremeCount, Top
from operators.functions.lists import OrLists
from operators.functions.moments import Correlation, Covariance, Std, WeightedMean
from operators.functions.quantiles import Quantile
from windowlib.attributes import Several
from windowlib.errors import ModelError
from windowlib.folds import CountFold, Fold, MaxFold, MeanFold, MinFold, SumFold, VarianceFold
from windowlib.policies import Attribute, attribute_text
from windowlib.summarizers import Recipe

Column = Attribute | Expr
Method = Literal["linear", "lower", "higher", "nearest"]
METHODS = ("linear", "lower", "higher", "nearest")


class _Row:
    """Reads the whole row."""

    __qualname__ = "row"

    def __call__(self, row: Any) -> Any:
        return row

    def __reduce__(self) -> str:
        return "ROW"

    def inline(self, variable: str, sample: object) -> str:
        """The variable itself."""
        return variable


ROW = _Row()


class Agg(Expr):
    """An aggregate of a window: a function and the columns it reads."""

    def __init__(self, shown: str, columns: tuple[Attribute, ...], recipe: Recipe | None) -> None:
        self.shown, self.columns, self.recipe = shown, columns, recipe

    def __repr__(self) -> str:
        return self.shown


def _text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    plain = isinstance(value, Expr) or not callable(value)
    return repr(value) if plain else attribute_text(value)


def _made(
    function: str,
    make: Callable[..., Fold],
    columns: dict[str, Any],
    hidden: tuple[str, ...] = (),
    **options: Any,
) -> Agg:
    """An aggregate of a function; `columns` by argument name, "" for those without one.

    `hidden` names options that are not shown, or is the whole text.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    shown = [f"{name}={_text(c)}" if name.isidentifier() else _text(c) for name, c in given.items()]
    shown += [f"{name}={_text(v)}" for name, v in options.items() if name not in hidden]
    text = f"agg.{function}({', '.join(shown)})"
    text = hidden[0] if hidden and hidden[0].startswith("agg.") else text
    attributes = [_attribute(column, text) for column in columns.values()]
    one = attributes[0] if len(attributes) == 1 else Several(attributes, text)
    recipe = Recipe(function, one if attributes else None, tuple(options.items()), make, text)
    return Agg(text, tuple(each for each in attributes if each is not ROW), recipe)


def _attribute(column: Any, owner: str) -> Attribute:
    if column is None:
        return ROW
    if isinstance(column, Col):
        return column.name
    if isinstance(column, Expr):
        return RowExpr(column)
    if isinstance(column, bool) or not (isinstance(column, str | int) or callable(column)):
        msg = (
            f"{owner}: {column!r} is no column. Give a name, an index, a callable, or an "
            f'expression such as col("price") * col("qty").'
        )
        raise ModelError(msg)
    found: Attribute = column
    return found


def _refuse(call: str, argument: str, value: Any, fix: str) -> None:
    raise ModelError(f"agg.{call}({argument}={value!r}): {fix}")


# -- how many -----------------------------------------------------------------------------------


def count(column: Column | None = None) -> Agg:
    """How many tuples; with a column, how many of its values are not null."""
    if column is None:
        return _made("count", CountFold, {})
    return _made("count", CountValues, {"": column})


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
    return _made("count_distinct", CountDistinct, {"": column})


def count_by_distinct(column: Column) -> Agg:
    """How often each distinct value came, as a list aligned with `collect_distinct`."""
    return _made("count_by_distinct", CountByDistinct, {"": column})


# -- which --------------------------------------------------------------------------------------


def any(column: Column) -> Agg:
    """Some value, the same one every time: the first."""
    return _made("any", First, {"": column})


def first(column: Column) -> Agg:
    """The first value."""
    return _made("first", First, {"": column})


def last(column: Column) -> Agg:
    """The last value."""
    return _made("last", Last, {"": column})


def nth(column: Column, k: int) -> Agg:
    """The value at place `k`: 0 is the first, -1 the last; null if there are too few."""
    if isinstance(k, bool) or not isinstance(k, int):
        _refuse("nth", "k", k, "a place is a whole number; 0 is the first value, -1 the last.")
    return _made("nth", Nth, {"": column}, k=k)


def collect(column: Column | None = None) -> Agg:
    """All values as a list, in order; without a column, the rows themselves."""
    return _made("collect", Collect, {"": column})


def collect_distinct(column: Column) -> Agg:
    """The distinct values as a list, in order of first appearance."""
    return _made("collect_distinct", CollectDistinct, {"": column})


def mode(column: Column) -> Agg:
    """The most frequent value; of several, the one that came first."""
    return _made("mode", Mode, {"": column})


# -- numbers ------------------------------------------------------------------------------------


def _lists(fold: Callable[..., Fold], **options: Any) -> Fold:
    return OrLists(fold(**options))


def sum(column: Column) -> Agg:
    """The sum; of lists, element by element."""
    return _made("sum", partial(_lists, SumFold, short=False), {"": column})


def mean(column: Column) -> Agg:
    """The arithmetic mean; of lists, element by element."""
    return _made("mean", partial(_lists, MeanFold, short=False), {"": column})


def weighted_mean(column: Column, *, weight: Column) -> Agg:
    """The sum of value times weight over the sum of weights; null if that is zero."""
    return _made("weighted_mean", WeightedMean, {"": column, "weight": weight})


def var(column: Column, *, ddof: int = 1) -> Agg:
    """The variance: of a sample (`ddof=1`, null for one value) or a population (`ddof=0`)."""
    return _made("var", VarianceFold, {"": column}, ddof=_ddof("var", ddof))


def std(column: Column, *, ddof: int = 1) -> Agg:
    """The standard deviation; `ddof` as for `var`."""
    return _made("std", Std, {"": column}, ddof=_ddof("std", ddof))


def cov(x: Column, y: Column, *, ddof: int = 1) -> Agg:
    """The covariance of two columns; `ddof` as for `var`."""
    return _made("cov", Covariance, {"": x, " ": y}, ddof=_ddof("cov", ddof))


def corr(x: Column, y: Column) -> Agg:
    """Pearson's correlation of two columns; null for fewer than two pairs."""
    return _made("corr", Correlation, {"": x, " ": y})


def _ddof(call: str, ddof: int) -> int:
    if ddof not in (0, 1):
        _refuse(call, "ddof", ddof, "say 1 for a sample or 0 for a population.")
    return ddof


# -- order --------------------------------------------------------------------------------------


def min(column: Column) -> Agg:
    """The smallest value; of lists, element by element."""
    return _made("min", partial(_lists, MinFold), {"": column})


def max(column: Column) -> Agg:
    """The largest value; of lists, element by element."""
    return _made("max", partial(_lists, MaxFold), {"": column})


def min_count(column: Column) -> Agg:
    """How many values equal the smallest."""
    return _made("min_count", partial(ExtremeCount, largest=False), {"": column})


def max_count(column: Column) -> Agg:
    """How many values equal the largest."""
    return _made("max_count", partial(ExtremeCount, largest=True), {"": column})


def arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the smallest `by`, the earliest of several; or the row."""
    return _made("arg_min", partial(ArgExtreme, largest=False), {"": column, "by": by})


def arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the largest `by`, the earliest of several; or the row."""
    return _made("arg_max", partial(ArgExtreme, largest=True), {"": column, "by": by})


def collect_arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the smallest `by`, as a list; or the rows."""
    return _made(
        "collect_arg_min", partial(CollectArgExtreme, largest=False), {"": column, "by": by}
    )


def collect_arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the largest `by`, as a list; or the rows."""
    return _made(
        "collect_arg_max", partial(CollectArgExtreme, largest=True), {"": column, "by": by}
    )


def top(k: int, column: Column | None = None, *, by: Column, largest: bool = True) -> Agg:
    """The values that go with the `k` largest `by`, best first, as a list; or the rows."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        _refuse("top", "k", k, "say how many, 1 or more.")
    shown = [str(k), *([] if column is None else [_text(column)]), f"by={_text(by)}"]
    shown += [] if largest else ["largest=False"]
    text = f"agg.top({', '.join(shown)})"
    return _made("top", Top, {"": column, "by": by}, (text,), k=k, largest=largest)


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
        _refuse(call, "method", method, f"use one of {', '.join(METHODS)}.")
    hidden = ("q",) * (call == "median") + ("method",) * (method == "linear")
    return _made(call, Quantile, {"": column}, hidden, q=q, method=method)


def _fraction(call: str, q: float) -> float:
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        _refuse(call, "q", q, "a fraction between 0 and 1, such as 0.95.")
    return q


# -- approximate --------------------------------------------------------------------------------


def approx_count_distinct(column: Column, *, precision: int = 12) -> Agg:
    """About how many distinct values (HyperLogLog): 2 ** `precision` bytes, 1.6 % off at 12."""
    if precision not in range(4, 19):
        _refuse("approx_count_distinct", "precision", precision, "a whole number from 4 to 18.")
    return _made("approx_count_distinct", ApproxCount, {"": column}, precision=precision)


def approx_quantile(column: Column, q: float, *, size: int = 512) -> Agg:
    """A value of about the rank `q` (KLL sketch): 5 / `size` of the ranks off, 1 % at 512."""
    _fraction("approx_quantile", q)
    if isinstance(size, bool) or not isinstance(size, int) or size < 8:
        _refuse("approx_quantile", "size", size, "a whole number, 8 or more.")
    return _made("approx_quantile", ApproxQuantile, {"": column}, q=q, size=size)


def approx_top_k(column: Column, k: int, *, capacity: int | None = None) -> Agg:
    """The `k` most frequent values with their counts, as pairs (Space-Saving).

    Exact while there are at most `capacity` distinct values: 512, or 8 times `k` if that is more.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        _refuse("approx_top_k", "k", k, "say how many, 1 or more.")
    # builtins are hidden by the functions of this module
    size = (512 if k <= 64 else 8 * k) if capacity is None else capacity
    if isinstance(size, bool) or not isinstance(size, int) or size < 2 * k:
        _refuse("approx_top_k", "capacity", capacity, "a whole number, twice k or more.")
    return _made("approx_top_k", ApproxTop, {"": column}, k=k, capacity=size)


# -- your own -----------------------------------------------------------------------------------


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
        step: takes a state and a value and gives the next state; nulls come, too.
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
            _refuse("custom", name, value, "not a function.")
    hidden = tuple(name for name, value in given.items() if value is None)
    return _made("custom", Custom, {"column": column}, hidden, **given)
