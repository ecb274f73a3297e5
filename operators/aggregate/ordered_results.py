"""Partial results of functions that depend on the order of rows, merged in any order.

`first` needs the rows in order, but its result is one of the values. With the position of the value
beside it, the earlier of two results is known, whichever is merged first. The same holds for all
functions that pick some of the values, but not for those of all values in order, such as `collect`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, starmap
from typing import Any

from windowlib.attributes import Getter, Several
from windowlib.extensions import extension
from windowlib.farms.window_function import NUMBER, ORDER
from windowlib.operators.aggregate.aggregate import Aggregate
from windowlib.operators.aggregate.partial_results import PartialResult, partial_results
from windowlib.spec.policies import Attribute
from windowlib.summaries.folds import Fold, State
from windowlib.summaries.summarizers import FunctionCall, Plan
from windowlib.window.arrow import ranks


class PickFold(Fold):
    """A function that picks values, over values in any order that carry their positions.

    State: the positions and values that may still be picked, in order.

    >>> from windowlib.operators.functions.positions import First
    >>> first = PickFold(First(), paired=False)
    >>> first.value(2, first.merge(((([5], "b"),),), ((([3], "a"),),)))
    'a'
    """

    empty = ((),)

    def __init__(self, fold: Fold, paired: bool) -> None:
        self.fold, self.paired, self.name = fold, paired, fold.name

    def merge(self, a: State, b: State) -> State:
        """The picks of both states."""
        both = sorted((*a[0], *b[0]), key=lambda pair: ranks(pair[0]))
        numbers = [(n, x[1]) if self.paired else n for n, (_, x) in enumerate(both)]
        return (tuple([both[n] for n in sorted(picked(self._result(numbers)))]),)

    def value(self, n: int, state: State) -> Any:
        """The result for what is left."""
        return self._result([x for _, x in state[0]])

    def _result(self, values: Sequence[Any]) -> Any:
        state = self.fold.empty
        for x in values:
            state = self.fold.step(state, x)
        return self.fold.value(len(values), state)


def picked(result: Any) -> list[int]:
    """The numbers of rows that a function has picked: none, one, or some.

    >>> picked(None), picked(3), picked([2, 1])
    ([], [3], [2, 1])
    """
    return [] if result is None else result if isinstance(result, list) else [result]


class RowNumber:
    """Reads the number of a row, and null where an attribute is null."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self._get = Getter(attribute, NUMBER)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowNumber, (self.attribute,)

    def __call__(self, row: Any) -> int | None:
        """For one row."""
        return None if self._get(row) is None else row[NUMBER]

    def columnar(self, inputs: Any) -> Any:
        """For all rows of a batch (`windowlib.columnar.inputs`)."""
        (column,), numbers = inputs.read(self.attribute), inputs.named(NUMBER)
        return type(numbers)(numbers.type, numbers.data, column.valid)


class OrderedAggregate(Aggregate):
    """An aggregation whose partial results are merged in any order; made by `ordered_aggregate`.

    Its input rows have the columns `NUMBER` and `ORDER`, and the rows of one slice come in order.
    """

    def _make_plan(self) -> Plan:
        plan = super()._make_plan()
        pairs = list(zip(plan.calls, plan.folds, strict=True))
        self._numbers = Plan(dict(enumerate(starmap(_numbered, pairs))), short=False, named=False)
        plan.folds = tuple([_order_free(call, fold) for call, fold in pairs])
        return plan

    def parts_of(self, windows: Sequence[Any], keys: Sequence[Any]) -> list[PartialResult]:
        """The partial results of slices: of functions that pick, the rows that they have picked."""
        found = [part[None] for part in partial_results(self._numbers, windows, keys)]
        rows, columns = windows[0].fired.rows, []
        for at, fold in enumerate(self._plan.folds):
            states = [places[at] for _, places in found]
            if isinstance(fold, PickFold):
                sizes = [n for n, _ in found]
                states = self._picked_rows(fold, rows, sizes, states, self._plan.getters[at])
            columns.append(states)
        made = zip(*columns, strict=True) if columns else ([] for _ in found)
        return [{None: (n, list(own))} for (n, _), own in zip(found, made, strict=True)]

    def _picked_rows(
        self,
        pick: PickFold,
        rows: Any,
        sizes: list[int],
        states: list[Any],
        get: Any,
    ) -> list[Any]:
        """The rows that a function has picked of each slice, as they are saved."""
        import pyarrow as pa

        fold = pick.fold
        pairs = zip(sizes, states, strict=True)
        numbers = [sorted(picked(fold.value(n, fold.load(state)))) for n, state in pairs]
        places = [n for own in numbers for n in own]
        taken = extension("gather_rows")(rows, pa.array(places)).to_pylist() if places else []
        entries = ((list(row[ORDER].values()), get(row)) for row in taken)
        return [pick.save((tuple(islice(entries, len(own))),)) for own in numbers]


def _numbered(call: FunctionCall, fold: Fold) -> FunctionCall:
    """A function of numbers of rows, in place of the values that it picks."""
    if not fold.picks:
        return call
    attribute = call.attribute
    assert attribute is not None
    if isinstance(attribute, Several):
        _, *judged = attribute.attributes
        return replace(call, attribute=Several((NUMBER, *judged), call.shown))
    return replace(call, attribute=RowNumber(attribute))


def _order_free(call: FunctionCall, fold: Fold) -> Fold:
    return PickFold(fold, isinstance(call.attribute, Several)) if fold.picks else fold


def ordered_aggregate(operator: Any) -> OrderedAggregate | None:
    """An aggregation with partials that merge in any order; None if it has none.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import agg
    >>> window = Tumbling(Count(3))
    >>> ordered_aggregate(Aggregate(window, first=agg.first("x"), n=agg.count())) is not None
    True
    >>> ordered_aggregate(Aggregate(window, all=agg.collect("x"))) is None
    True
    """
    if type(operator) is not Aggregate or operator.group_by is not None:
        return None
    folds = [fold for _, fold in operator.functions() or ()]
    if not all(fold.mergeable and (fold.commutative or fold.picks) for fold in folds):
        return None
    _, (_, args, kwargs) = operator.__reduce__()
    return OrderedAggregate(*args, **kwargs)
