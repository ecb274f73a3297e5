"""Element by element: sum, mean, min and max of lists of equal length."""

from __future__ import annotations

from typing import Any

from windowlib.errors import SchemaError
from windowlib.folds import Fold, State


class OrLists(Fold):
    """A fold of plain values that takes lists as well, one or the other in a window.

    Lists have a state per element, in one place more than the fold has.
    """

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.name = fold.name  # type: ignore[misc]
        self.empty = (*fold.empty, None)
        self.compute, self.store, self.inplace = fold.compute, fold.store, fold.inplace
        self.cold = (*fold.cold, len(fold.empty))
        self.read = fold.read
        self.merged = (*fold.merged, "None") if fold.merged else ()

    def step(self, state: State, x: Any) -> State:
        """Fold a value, or each element of a list."""
        *plain, lists = state
        if x is not None and isinstance(x, list | tuple) != (lists is not None):
            if lists is not None or tuple(plain) != tuple(self.fold.empty):
                msg = (
                    f"{self.name} of {x!r}: a window holds lists or plain values, not both. Use "
                    f"one type for the column."
                )
                raise SchemaError(msg)
            lists = (0, tuple(self.fold.empty for _ in x))
        if not isinstance(x, list | tuple):
            return (*self.fold.step(tuple(plain), x), lists)
        count, states = lists
        return (*plain, (count + 1, self._each(states, x)))

    def _each(self, states: tuple[State, ...], x: Any) -> tuple[State, ...]:
        if len(states) != len(x):
            msg = (
                f"{self.name} of {x!r}: a list of {len(x)} among lists of {len(states)}. Lists "
                f"are taken element by element, so give all the same length."
            )
            raise SchemaError(msg)
        return tuple(self.fold.step(state, e) for state, e in zip(states, x, strict=True))

    def value(self, n: int, state: State) -> Any:
        """The value, or a list of them."""
        *plain, lists = state
        if lists is None:
            return self.fold.value(n, tuple(plain))
        count, states = lists
        return [self.fold.value(count, each) for each in states]

    def save(self, state: State) -> list[Any]:
        """The plain places, and those of each element."""
        *plain, lists = state
        elements = None if lists is None else [lists[0], [self.fold.save(e) for e in lists[1]]]
        return [self.fold.save(tuple(plain)), elements]

    def load(self, saved: list[Any]) -> State:
        """What `save` got."""
        plain, elements = saved
        if elements is None:
            return (*self.fold.load(plain), None)
        count, states = elements
        return (*self.fold.load(plain), (count, tuple(map(self.fold.load, states))))

    def merge(self, a: State, b: State) -> State:
        """Values with values, elements with elements."""
        plain = self.fold.merge(a[:-1], b[:-1])
        if a[-1] is None or b[-1] is None:
            return (*plain, b[-1] if a[-1] is None else a[-1])
        (before, states), (after, more) = a[-1], b[-1]
        if len(states) != len(more):
            self._each(states, more)
        merged = tuple(self.fold.merge(x, y) for x, y in zip(states, more, strict=True))
        return (*plain, (before + after, merged))
