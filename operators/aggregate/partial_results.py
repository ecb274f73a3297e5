"""Partial results of an aggregation: what slices of a window give, merged into rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from windowlib.attributes import one_key
from windowlib.operators import agg
from windowlib.operators.aggregate.groups import GroupedPlan, GroupValues
from windowlib.operators.functions.call import Agg
from windowlib.spec.specification import Sliding
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.summarizers import Plan
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.operators.aggregate.aggregate import Aggregate

Saved = tuple[int, list[Any]]
"""How many tuples, and the state of each function as it is saved."""
PartialResult = Mapping[Any, Saved]
"""What a slice of a window gives, by group; without groups there is one, None."""


def partial_results(plan: Plan, windows: Sequence[Any], keys: Sequence[Any]) -> list[PartialResult]:
    """The partial results of slices: views of the same rows."""

    try:
        return _columnar_results(plan, windows)
    except Decline:
        pairs = zip(windows, keys, strict=True)
        return [_row_result(plan, window[key]) for window, key in pairs]


def merged_results(plan: Plan, a: PartialResult, b: PartialResult) -> PartialResult:
    """Two partial results as one; groups come in the order of their first tuples."""
    found = {one_key(group): saved for group, saved in a.items()}
    for group, saved in b.items():
        group = one_key(group)
        found[group] = _merge_states(plan, found[group], saved) if group in found else saved
    return found


def group_values(plan: Plan, part: PartialResult) -> list[GroupValues]:
    """The values of a partial result that is the whole window."""
    return [_final_values(plan, group, *saved) for group, saved in part.items()]


def _columnar_results(plan: Plan, windows: Sequence[Any]) -> list[PartialResult]:
    """Whole columns, for all slices together."""
    import numpy as np

    from windowlib.columnar.inputs import Inputs
    from windowlib.columnar.kernels.functions import AlgebraicFunction, functions_of

    if isinstance(plan, GroupedPlan):
        raise Decline("groups")
    fired = [each.fired for each in windows]
    lo, hi = np.array([[each.lo, each.hi] for each in fired], np.intp).T
    inputs, columns, sizes = Inputs(fired[0].rows), [], hi - lo
    for each in functions_of(plan, fired[0].arrow(fired[0].key).schema):
        if not isinstance(each, AlgebraicFunction):
            raise Decline("a function that needs all values")
        planes = each.kernel.partial(inputs.read(each.attribute), lo, hi)
        columns.append(each.kernel.save(planes, sizes))
    saved = zip(*columns, strict=True) if columns else ([] for _ in windows)
    return [{None: (n, list(places))} for n, places in zip(sizes.tolist(), saved, strict=True)]


def _row_result(plan: Plan, rows: Sequence[Any]) -> PartialResult:
    if isinstance(plan, GroupedPlan):
        grouped = plan()
        for row in rows:
            grouped.insert(row)
        return {group: (n, places) for group, (n, places) in grouped.snapshot()}
    ready = plan()
    for row in rows:
        ready.insert(row)
    n, places = ready.snapshot()
    return {None: (n, places)}


def _merge_states(plan: Plan, a: Saved, b: Saved) -> Saved:
    folds = zip(plan.folds, a[1], b[1], strict=True)
    merged = [fold.save(fold.merge(fold.load(x), fold.load(y))) for fold, x, y in folds]
    return a[0] + b[0], merged


def _final_values(plan: Plan, group: Any, n: int, places: list[Any]) -> GroupValues:
    folds = zip(plan.folds, places, strict=True)
    return GroupValues(group, n, [fold.value(n, fold.load(saved)) for fold, saved in folds])


# -- two steps -------------------------------------------------------------------------------------


class Preaggregated(NamedTuple):
    """The functions of the first step, and the operator that combines their results.

    The first step is over rows of the same windows, so that one row stands for many: a count
    becomes a sum of counts. A host with functions of its own can take it where the rows are.
    """

    functions: dict[str, tuple[str, str | None]]
    """By the name of the column that it makes: a function, and the column that it reads."""
    operator: Aggregate


def preaggregated(operator: Aggregate) -> Preaggregated | None:
    """The two steps of an aggregation; None if there is more to it.

    >>> from windowlib.operators import Aggregate
    >>> from windowlib import Time, Tumbling
    >>> found = preaggregated(Aggregate(Tumbling(Time("1s"), by="k"), n=agg.count()))
    >>> found.functions, found.operator.outputs.expressions
    ({'_part0': ('count', None)}, {'n': agg.sum("_part0")})
    """
    (spec,) = operator.windows
    functions, outputs = {}, {}
    for number, (name, leaf) in enumerate(operator.outputs.expressions.items()):
        column = f"_part{number}"
        if (read := _combinable(leaf)) is None:
            return None
        function, attribute = read
        combined = getattr(agg, function.combined_by)
        functions[column], outputs[name] = (function.name, attribute), combined(column)
    if not operator.one_row_per_firing or spec is None or spec.forget is not None:
        return None
    again = type(operator)(
        replace(spec, order_by=None),
        outputs,
        partial=operator.partial if isinstance(spec, Sliding) else None,  # type: ignore[arg-type]
        flush_at_end=operator.flush_at_end,
        name=operator.name,
    )
    return Preaggregated(functions, again)


def _combinable(leaf: object) -> tuple[AggregateFunction, str | None] | None:
    """The function of an output, and its column; None if it is no such function of a column."""
    call = leaf.call if isinstance(leaf, Agg) else None
    if not isinstance(leaf, Agg) or call is None or not call.function.combined_by:
        return None
    if call.options or not all(isinstance(each, str) for each in leaf.columns):
        return None
    return call.function, leaf.columns[0] if leaf.columns else None  # type: ignore[return-value]
