"""Element by element: sum, mean, min and max of lists of equal length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, Self

from windowlib.errors import SchemaError
from windowlib.summaries.folds import Fold, State


class _Lists:
    """Adds to nothing and compares with nothing, so that the text for plain values raises."""

    def __repr__(self) -> str:
        return "LISTS"


LISTS: Final = _Lists()
"""Stands in the first place of the state if lists have come."""


class Elementwise(Fold):
    """A fold of plain values that takes lists as well, one or the other in a window.

    Lists have a state per element, in one place more than the fold has: how many lists, and the
    states.
    """

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.name = fold.name
        self.empty = (*fold.empty, None)
        self.compute, self.store, self.inplace = fold.compute, fold.store, fold.inplace
        self.cold = (*fold.cold, len(fold.empty))
        self.read = fold.read
        self.merged = (*fold.merged, "None") if fold.merged else ()

    def called(self, name: str) -> Self:
        """This fold, and the one inside, by another name."""
        self.fold.called(name)
        return super().called(name)

    def step(self, state: State, x: Any) -> State:
        """Fold a value, or each element of a list."""
        if not isinstance(x, list | tuple):
            if state[0] is not LISTS:
                return (*self.fold.step(state[:-1], x), None)
            return state if x is None else self._mixed(x)
        if state[0] is not LISTS:
            if state[0] is not self.fold.empty[0]:
                self._mixed(x)
            state = self._of_lists(0, tuple(self.fold.empty for _ in x))
        count, states = state[-1]
        self._check_length(len(states), x)
        stepped = (self.fold.step(each, e) for each, e in zip(states, x, strict=True))
        return self._of_lists(count + 1, tuple(stepped))

    def _of_lists(self, count: int, states: tuple[State, ...]) -> State:
        return (LISTS, *self.fold.empty[1:], (count, states))

    def _mixed(self, x: Any) -> NoReturn:
        msg = (
            f"{self.name} of {x!r}: a window holds lists or plain values, not both. Use one type "
            f"for the column."
        )
        raise SchemaError(msg)

    def _check_length(self, length: int, x: Any) -> None:
        if length != len(x):
            msg = (
                f"{self.name} of {x!r}: a list of {len(x)} among lists of {length}. Lists are "
                f"taken element by element, so give all the same length."
            )
            raise SchemaError(msg)

    def value(self, n: int, state: State) -> Any:
        """The value, or a list of them."""
        if state[0] is not LISTS:
            return self.fold.value(n, state[:-1])
        count, states = state[-1]
        return [self.fold.value(count, each) for each in states]

    def save(self, state: State) -> list[Any]:
        """The places of plain values, or those of each element."""
        if state[0] is not LISTS:
            return [self.fold.save(state[:-1]), None]
        count, states = state[-1]
        return [None, [count, [self.fold.save(each) for each in states]]]

    def load(self, saved: list[Any]) -> State:
        """The state that `save` wrote."""
        plain, elements = saved
        if elements is None:
            return (*self.fold.load(plain), None)
        count, states = elements
        return self._of_lists(count, tuple(map(self.fold.load, states)))

    @property
    def plain(self) -> Fold:
        """The fold of plain values."""
        return self.fold

    def as_saved(self, places: list[Any]) -> list[Any]:
        """No lists."""
        return [places, None]

    def from_saved(self, saved: list[Any]) -> list[Any] | None:
        """The places, if no lists have come."""
        return saved[0] if saved[1] is None else None

    def merge(self, a: State, b: State) -> State:
        """Values with values, elements with elements; nulls go with either."""
        if a[0] is not LISTS and b[0] is not LISTS:
            return (*self.fold.merge(a[:-1], b[:-1]), None)
        for one, other in ((a, b), (b, a)):
            if one[0] is self.fold.empty[0]:
                return other
        if a[0] is not b[0]:
            self._mixed(self.value(1, a if a[0] is LISTS else b))
        (before, states), (after, more) = a[-1], b[-1]
        self._check_length(len(states), [self.fold.value(after, each) for each in more])
        merged = tuple(self.fold.merge(x, y) for x, y in zip(states, more, strict=True))
        return self._of_lists(before + after, merged)


def elementwise(fold: Callable[..., Fold], **options: Any) -> Elementwise:
    """A fold of plain values, made with options, that takes lists as well."""
    return Elementwise(fold(**options))
