"""Functions that pick tuples by their place: first, last, nth, collect; and the count of values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from operators.functions.ordering import NOTHING
from windowlib.folds import Fifo, Fold, State


class CountValues(Fold):
    """How many values are not null."""

    name = "count"
    kernel = "count_values"
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


class Values(Fifo):
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
        """What the function makes of the values."""
        return self.result(self.values)


class First(Fold):
    """The first value that is not null."""

    name = kernel = "first"
    empty = (NOTHING,)
    commutative = False
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
        return Values(lambda values: values[0] if values else None)


class Last(Fold):
    """The last value that is not null."""

    name = kernel = "last"
    empty = (None,)
    commutative = False
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
        return Values(lambda values: values[-1] if values else None)


class Listed(Fold):
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
        """What the function makes of the values."""
        return self.result(state[0] or [])

    def result(self, values: Any) -> Any:
        """The result for values in order of arrival, none of them null."""
        raise NotImplementedError

    def sliding(self) -> Fifo:
        """A queue of the values."""
        return Values(self.result)


class Collect(Listed):
    """All values, as a list."""

    name = kernel = "collect"

    def result(self, values: Any) -> list[Any]:
        """A list of them."""
        return list(values)


class Nth(Listed):
    """The value at a place: 0 is the first, -1 the last."""

    name = kernel = "nth"

    def __init__(self, k: int) -> None:
        self.k = k

    def result(self, values: Any) -> Any:
        """The value there, or None."""
        inside = -len(values) <= self.k < len(values)
        return values[self.k] if inside else None
