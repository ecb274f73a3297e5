"""Functions of the user's own, as a few callables."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import Any

from windowlib.operators.functions.call import Agg, Column, aggregate, refuse_argument
from windowlib.operators.functions.value_order import NOTHING
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fifo, Fold, State

__all__ = ["custom"]


class Custom(Fold):
    """Folds values with callables; nulls come to `step`, too."""

    name = "custom"
    empty = (NOTHING,)
    commutative = False
    pure = textual = False  # who knows what the author's step does

    def __init__(
        self,
        init: Callable[[], Any],
        step: Callable[[Any, Any], Any],
        result: Callable[[Any], Any] | None,
        merge: Callable[[Any, Any], Any] | None,
        inverse: Callable[[Any, Any], Any] | None,
    ) -> None:
        self.init, self.add, self.result = init, step, result
        self.join, self.inverse = merge, inverse
        self.mergeable = merge is not None

    def step(self, state: State, x: Any) -> State:
        """The author's step, from the author's start."""
        return (self.add(self.init() if state[0] is NOTHING else state[0], x),)

    def value(self, n: int, state: State) -> Any:
        """The author's result of the state; a copy of it, because `step` may change it later."""
        last = self.init() if state[0] is NOTHING else state[0]
        return copy.deepcopy(last) if self.result is None else self.result(last)

    def merge(self, a: State, b: State) -> State:
        """The author's merge."""
        if a[0] is NOTHING or b[0] is NOTHING:
            return b if a[0] is NOTHING else a
        assert self.join is not None
        return (self.join(a[0], b[0]),)

    def save(self, state: State) -> list[Any]:
        """A copy, because the author's step may change it in place."""
        return [] if state[0] is NOTHING else [copy.deepcopy(state[0])]

    def load(self, saved: list[Any]) -> State:
        """The state that `save` wrote."""
        return (copy.deepcopy(saved[0]),) if saved else self.empty

    def sliding(self) -> Fifo | None:
        """Subtract what leaves, where the author says how."""
        return None if self.inverse is None else Subtract(self)


class Subtract(Fifo):
    """One state that values enter and leave: only where leaving undoes entering exactly."""

    algorithm = "subtract on evict"

    def __init__(self, fold: Custom) -> None:
        self.fold = fold
        self.values: deque[Any] = deque()
        self.state: State = fold.empty

    def push(self, x: Any) -> None:
        """Step."""
        self.state = self.fold.step(self.state, x)
        self.values.append(x)

    def pop(self, count: int) -> None:
        """Step back."""
        assert self.fold.inverse is not None
        for _ in range(count):
            self.state = (self.fold.inverse(self.state[0], self.values.popleft()),)

    def value(self) -> Any:
        """The author's result."""
        return self.fold.value(len(self.values), self.state)


CUSTOM = AggregateFunction("custom", Custom)

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

    >>> from windowlib.operators import agg
    >>> def times(product, x):
    ...     return product * x
    >>> product = agg.custom(lambda: 1, times, column="x", merge=times)
    >>> from windowlib import Count, Tumbling, replay
    >>> from windowlib.operators import Aggregate
    >>> rows = [{"x": 2}, {"x": 3}, {"x": 7}]
    >>> list(replay(Aggregate(Tumbling(Count(3)), product=product), rows))
    [{'product': 42}]
    """
    given: dict[str, Any] = {
        "init": init,
        "step": step,
        "result": result,
        "merge": merge,
        "inverse": inverse,
    }
    for name, value in given.items():
        needed = name in ("init", "step")
        if (needed or value is not None) and not callable(value):
            refuse_argument("custom", name, value, f"not a function. Write {name}={SAMPLES[name]}.")
    hidden = tuple(name for name, value in given.items() if value is None)
    return aggregate(CUSTOM, {"column": column}, hidden=hidden, **given)
