"""The parts of an aggregation: what slices of a window give, merged into rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from operators.groups import GroupedPlan, GroupValues
from operators.splitting import Partitioned
from windowlib.summarizers import Plan

if TYPE_CHECKING:
    from operators.compile import Outputs

Saved = tuple[int, list[Any]]
"""How many tuples, and the state of each function as it is saved."""
Part = Mapping[Any, Saved]
"""By group; without groups there is one, None."""


class Parted(Partitioned):
    """The half of an aggregation that works on parts of windows."""

    _plan: Plan
    outputs: Outputs

    def parts_of(self, windows: Sequence[Any], keys: Sequence[Any]) -> list[Part]:
        """The parts of slices: views of the same rows."""
        from windowlib.columnar.decline import Decline

        try:
            return _at_once(self._plan, windows)
        except Decline:
            pairs = zip(windows, keys, strict=True)
            return [_one_by_one(self._plan, window[key]) for window, key in pairs]

    def merge_parts(self, a: Part, b: Part) -> Part:
        """Two parts together; groups come in the order of their first tuples."""
        found = dict(a)
        for group, saved in b.items():
            found[group] = _merged(self._plan, found[group], saved) if group in found else saved
        return found

    def emit_part(self, key: Any, part: Part) -> None:
        """The rows of a window, and a punctuation."""
        groups = [_values(self._plan, group, *saved) for group, saved in part.items()]
        for row in self.outputs.rows(key, sum(group.n for group in groups), groups):
            self._outputs[0](row)
        self._puncts[0]()


def _at_once(plan: Plan, windows: Sequence[Any]) -> list[Part]:
    """Whole columns, for all slices together."""
    import numpy as np

    from windowlib.columnar.decline import Decline
    from windowlib.columnar.functions import Partial, functions_of
    from windowlib.columnar.inputs import Inputs

    if isinstance(plan, GroupedPlan):
        raise Decline("groups")
    rows = windows[0]._rows
    lo, hi = np.array([[each._lo, each._hi] for each in windows], np.intp).T
    inputs, columns, sizes = Inputs(rows), [], hi - lo
    for each in functions_of(plan, windows[0].arrow(windows[0]._key).schema):
        if not isinstance(each, Partial):
            raise Decline("a function that needs all values")
        planes = each.kernel.partial(inputs.read(each.attribute), lo, hi)
        columns.append(each.kernel.save(planes, sizes))
    saved = zip(*columns, strict=True) if columns else ([] for _ in windows)
    return [{None: (n, list(places))} for n, places in zip(sizes.tolist(), saved, strict=True)]


def _one_by_one(plan: Plan, rows: Sequence[Any]) -> Part:
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


def _merged(plan: Plan, a: Saved, b: Saved) -> Saved:
    folds = zip(plan.folds, a[1], b[1], strict=True)
    merged = [fold.save(fold.merge(fold.load(x), fold.load(y))) for fold, x, y in folds]
    return a[0] + b[0], merged


def _values(plan: Plan, group: Any, n: int, places: list[Any]) -> GroupValues:
    folds = zip(plan.folds, places, strict=True)
    return GroupValues(group, n, [fold.value(n, fold.load(saved)) for fold, saved in folds])
