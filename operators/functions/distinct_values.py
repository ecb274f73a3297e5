"""Functions of the distinct values: how many, which, how often, the most frequent.

Values that Python takes for equal are one value; all NaN are one.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from windowlib.operators.functions.call import Agg, Column, aggregate
from windowlib.operators.functions.output_types import (
    column_type,
    count_type,
    counts_type,
    list_type,
)
from windowlib.operators.functions.value_order import hashable, one_nan
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fifo, Fold, State

__all__ = ["collect_distinct", "count_by_distinct", "count_distinct", "mode"]

Counts = dict[Any, int]


class DistinctFold(Fold):
    """Base: a dict from value to how often it came, in order of first appearance."""

    empty = (None,)
    mergeable = pure = False
    holistic = True
    compute = "_0 = F.ready({0}, x)"
    store = "{0} = _0; F.put(_0, x)"

    def ready(self, counts: Counts | None, x: Any) -> Counts:
        """The counts, if `x` can be counted; raises before anything changes."""
        hashable(self.name, x)
        return {} if counts is None else counts

    def check(self, state: State, x: Any) -> None:
        """Refuse what cannot be counted."""
        self.ready(state[0], x)

    def put(self, counts: Counts, x: Any) -> None:
        """Count a value, in place."""
        if x is not None:
            x = one_nan(x)
            counts[x] = counts.get(x, 0) + 1

    def step(self, state: State, x: Any) -> State:
        """Count a value."""
        counts = self.ready(state[0], x)
        self.put(counts, x)
        return (counts,)

    def value(self, n: int, state: State) -> Any:
        """The result of the function for the counts."""
        return self.result(state[0] or {})

    def result(self, counts: Counts) -> Any:
        """The result for counts in order of first appearance."""
        raise NotImplementedError

    def save(self, state: State) -> list[Any]:
        """Pairs of value and count; as keys, NaN would not survive."""
        return [None if state[0] is None else list(state[0].items())]

    def load(self, saved: list[Any]) -> State:
        """The state that `save` wrote."""
        return (None if saved[0] is None else {one_nan(x): n for x, n in saved[0]},)

    def sliding(self) -> Fifo:
        """A multiset that values leave again."""
        return Multiset(self)


class Multiset(Fifo):
    """Values with the places where they stand: counted in, and exactly counted out again."""

    algorithm = "counted multiset"

    def __init__(self, fold: DistinctFold) -> None:
        self.fold = fold
        self.values: deque[Any] = deque()
        self.places: dict[Any, deque[int]] = {}
        self.next = 0

    def push(self, x: Any) -> None:
        """Note where it stands."""
        x = None if x is None else hashable(self.fold.name, x)
        self.values.append(x)
        if x is not None:
            self.places.setdefault(x, deque()).append(self.next)
        self.next += 1

    def pop(self, count: int) -> None:
        """Forget the oldest places."""
        for _ in range(count):
            x = self.values.popleft()
            if x is None:
                continue
            places = self.places[x]
            places.popleft()
            if not places:
                del self.places[x]

    def value(self) -> Any:
        """The result; values are put in order of first appearance only if that matters."""
        if isinstance(self.fold, CountDistinct):
            return len(self.places)
        ordered = sorted(self.places.items(), key=lambda entry: entry[1][0])
        return self.fold.result({x: len(places) for x, places in ordered})


class CountDistinct(DistinctFold):
    """How many distinct values."""

    name = "count_distinct"

    def result(self, counts: Counts) -> int:
        """The number of distinct values."""
        return len(counts)


class CollectDistinct(DistinctFold):
    """The distinct values."""

    name = "collect_distinct"
    commutative = False

    def result(self, counts: Counts) -> list[Any]:
        """A list of them."""
        return list(counts)


class CountByDistinct(DistinctFold):
    """How often each distinct value came, aligned with `collect_distinct`."""

    name = "count_by_distinct"
    commutative = False

    def result(self, counts: Counts) -> list[int]:
        """A list of counts."""
        return list(counts.values())


class Mode(DistinctFold):
    """The most frequent value; of several, the one that came first."""

    name = "mode"
    commutative = False

    def result(self, counts: Counts) -> Any:
        """The most frequent value, or None."""
        return max(counts, key=counts.__getitem__, default=None)


COUNT_DISTINCT = AggregateFunction(
    "count_distinct",
    CountDistinct,
    count_type,
    kernel="windowlib.columnar.kernels.distinct:CountDistinctFunction",
)


def count_distinct(column: Column) -> Agg:
    """How many distinct values."""
    return aggregate(COUNT_DISTINCT, {"": column})


COUNT_BY_DISTINCT = AggregateFunction(
    "count_by_distinct",
    CountByDistinct,
    counts_type,
    kernel="windowlib.columnar.kernels.distinct:CountByDistinctFunction",
)


def count_by_distinct(column: Column) -> Agg:
    """How often each distinct value came, as a list aligned with `collect_distinct`."""
    return aggregate(COUNT_BY_DISTINCT, {"": column})


COLLECT_DISTINCT = AggregateFunction(
    "collect_distinct",
    CollectDistinct,
    list_type,
    kernel="windowlib.columnar.kernels.distinct:CollectDistinctFunction",
)


def collect_distinct(column: Column) -> Agg:
    """The distinct values as a list, in order of first appearance."""
    return aggregate(COLLECT_DISTINCT, {"": column})


MODE = AggregateFunction(
    "mode",
    Mode,
    column_type,
    kernel="windowlib.columnar.kernels.distinct:ModeFunction",
)


def mode(column: Column) -> Agg:
    """The most frequent value; of several, the one that came first."""
    return aggregate(MODE, {"": column})
