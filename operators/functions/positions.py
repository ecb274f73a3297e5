"""Values by their position in the window: first, last, nth, and all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from windowlib.operators.functions.call import (
    Agg,
    Column,
    aggregate,
    is_whole_number,
    refuse_argument,
)
from windowlib.operators.functions.output_types import column_type, list_type
from windowlib.operators.functions.value_order import NOTHING
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fifo, Fold, State

__all__ = ["any", "collect", "first", "last", "nth"]


class ValueQueue(Fifo):
    """The values that are not null, in order; the result is read from them."""

    algorithm = "queue of values"

    def __init__(self, result: Callable[[deque[Any]], Any]) -> None:
        self.result = result
        self.nulls: deque[bool] = deque()
        self.values: deque[Any] = deque()

    def push(self, x: Any) -> None:
        """Keep it."""
        self.nulls.append(x is None)
        if x is not None:
            self.values.append(x)

    def pop(self, count: int) -> None:
        """Drop the oldest."""
        for _ in range(count):
            if not self.nulls.popleft():
                self.values.popleft()

    def value(self) -> Any:
        """The result of the function for the values."""
        return self.result(self.values)


class First(Fold):
    """The first value that is not null."""

    name = "first"
    empty = (NOTHING,)
    commutative = False
    picks = True
    nothing = NOTHING
    store = "if {0} is F.nothing and x is not None: {0} = x"

    def step(self, state: State, x: Any) -> State:
        """Only the first counts."""
        return (x,) if state[0] is NOTHING and x is not None else state

    def value(self, n: int, state: State) -> Any:
        """The value, or None."""
        return None if state[0] is NOTHING else state[0]

    def merge(self, a: State, b: State) -> State:
        """The earlier one's, if it has any."""
        return b if a[0] is NOTHING else a

    def sliding(self) -> Fifo:
        """A queue, whose oldest value it is."""
        return ValueQueue(lambda values: values[0] if values else None)


class Last(Fold):
    """The last value that is not null."""

    name = "last"
    empty = (None,)
    commutative = False
    picks = True
    store = "if x is not None: {0} = x"
    read, merged = "{0}", ("{a0} if {b0} is None else {b0}",)

    def step(self, state: State, x: Any) -> State:
        """The newest value."""
        return state if x is None else (x,)

    def value(self, n: int, state: State) -> Any:
        """The value, or None."""
        return state[0]

    def merge(self, a: State, b: State) -> State:
        """The later one's, if it has any."""
        return a if b[0] is None else b

    def sliding(self) -> Fifo:
        """A queue, whose newest value it is."""
        return ValueQueue(lambda values: values[-1] if values else None)


class ValuesFold(Fold):
    """Base of functions that need all values: a list of those that are not null."""

    empty = (None,)
    mergeable = pure = False
    holistic = True
    compute = "_0 = [] if {0} is None else {0}"
    store = "{0} = _0; x is None or _0.append(x)"

    def step(self, state: State, x: Any) -> State:
        """Keep the value, in place."""
        values = [] if state[0] is None else state[0]
        if x is not None:
            values.append(x)
        return (values,)

    def value(self, n: int, state: State) -> Any:
        """The result of the function for the values."""
        return self.result(state[0] or [])

    def result(self, values: Any) -> Any:
        """The result for values in order of arrival, none of them null."""
        raise NotImplementedError

    def sliding(self) -> Fifo:
        """A queue of the values."""
        return ValueQueue(self.result)


class Collect(ValuesFold):
    """All values, as a list."""

    name = "collect"
    commutative = False

    def result(self, values: Any) -> list[Any]:
        """A list of them."""
        return list(values)


class Nth(ValuesFold):
    """The value at a place: 0 is the first, -1 the last."""

    name = "nth"
    commutative = False

    def __init__(self, k: int) -> None:
        self.k = k

    def result(self, values: Any) -> Any:
        """The value there, or None."""
        inside = -len(values) <= self.k < len(values)
        return values[self.k] if inside else None


ANY = AggregateFunction(
    "any",
    First,
    column_type,
    kernel="windowlib.columnar.kernels.picks:FirstKernel",
)


def any(column: Column) -> Agg:
    """Some value, the same one every time: the first."""
    return aggregate(ANY, {"": column})


FIRST = AggregateFunction(
    "first",
    First,
    column_type,
    kernel="windowlib.columnar.kernels.picks:FirstKernel",
)


def first(column: Column) -> Agg:
    """The first value."""
    return aggregate(FIRST, {"": column})


LAST = AggregateFunction(
    "last",
    Last,
    column_type,
    kernel="windowlib.columnar.kernels.picks:LastKernel",
)


def last(column: Column) -> Agg:
    """The last value."""
    return aggregate(LAST, {"": column})


NTH = AggregateFunction(
    "nth", Nth, column_type, kernel="windowlib.columnar.kernels.holistic:NthFunction"
)


def nth(column: Column, k: int) -> Agg:
    """The value at place `k`: 0 is the first, -1 the last; null if there are too few."""
    if not is_whole_number(k):
        refuse_argument(
            "nth", "k", k, "a place is a whole number; 0 is the first value, -1 the last."
        )
    return aggregate(NTH, {"": column}, k=k)


COLLECT = AggregateFunction(
    "collect",
    Collect,
    list_type,
    kernel="windowlib.columnar.kernels.holistic:CollectFunction",
)


def collect(column: Column | None = None) -> Agg:
    """All values as a list, in order; without a column, the rows themselves."""
    return aggregate(COLLECT, {"": column})
