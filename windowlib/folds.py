"""The arithmetic of the ready-made summarizers.

Each fold exists twice, side by side: `step` is the full definition, one value at a time on a
tuple of state; `first`, `compute` and `store` are the same arithmetic as source text for the
generated insert, for values that are neither null nor of a surprising type. Anything that the
text cannot do raises TypeError before it has stored anything, and `step` takes over.

In the text `x` is the value, `{0}`, `{1}`, … are places of state, `_0`, `_1`, … local names made
unique by the generator.

Float sums: a short run (a count window of at most `SHORT` tuples) is added straight, like a leaf
of pairwise summation; longer windows are compensated (Neumaier). Slices are joined with `fsum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum, isnan
from typing import Any, ClassVar

from windowlib.errors import SchemaError

SHORT = 128

State = tuple[Any, ...]


class Fold:
    """One aggregate's state and arithmetic."""

    name: ClassVar[str]
    empty: ClassVar[State]
    first: ClassVar[str]
    compute: str
    store: str

    def step(self, state: State, x: Any) -> State:
        """The state after one more value; nulls are skipped."""
        raise NotImplementedError

    def value(self, n: int, state: State) -> Any:
        """The result for `n` tuples folded into `state`."""
        raise NotImplementedError

    def join(self, columns: Sequence[Sequence[Any]]) -> State:
        """The state of several runs together, given each place of state as a column."""
        raise NotImplementedError


class CountFold(Fold):
    """Counts tuples; the container counts them anyway, so there is no state."""

    name = "count"
    empty = ()
    first = compute = store = ""

    def step(self, state: State, x: Any) -> State:  # noqa: ARG002
        """Nothing: the tuple count is the container's."""
        return state

    def value(self, n: int, state: State) -> int:  # noqa: ARG002
        """The tuple count."""
        return n

    def join(self, columns: Sequence[Sequence[Any]]) -> State:  # noqa: ARG002
        """Nothing to join."""
        return ()


def _addable(x: Any, name: str) -> Any:
    if isinstance(x, str | bytes | list | tuple):
        msg = f"{name} of {x!r}: a {type(x).__name__} cannot be summed. Keep the tuples instead."
        raise SchemaError(msg)
    return x


class SumFold(Fold):
    """State: total, compensation, how many nulls."""

    name = "sum"
    empty = (0, 0, 0)
    first = "x + 0; {0} = x; {1} = 0; {2} = 0"

    def __init__(self, short: bool) -> None:
        self.short = short
        if short:
            self.compute, self.store = "_0 = {0} + x", "{0} = _0"
        else:
            self.compute = (
                "_0 = {0}; _1 = _0 + x; "
                "_2 = {1} + ((_0 - _1) + x if abs(_0) >= abs(x) else (x - _1) + _0)"
            )
            self.store = "{0} = _1; {1} = _2"

    def step(self, state: State, x: Any) -> State:
        """Add one value, carrying the rounding error along unless the run is short."""
        total, carry, nulls = state
        if x is None:
            return total, carry, nulls + 1
        _addable(x, self.name)
        try:
            after = total + x
        except TypeError:
            if total != 0 or not isinstance(total, int):
                raise
            return x, x - x, nulls  # the zero of a type that does not add to 0, such as timedelta
        if not self.short:
            larger = abs(total) >= abs(x)
            carry = carry + ((total - after) + x if larger else (x - after) + total)
        return after, carry, nulls

    def value(self, n: int, state: State) -> Any:
        """Total plus compensation; None if every value was null."""
        total, carry, nulls = state
        if n == nulls:
            return None
        if not carry:
            return total
        exact = total + carry
        return exact if exact == exact else total  # inf - inf in the compensation means nothing

    def join(self, columns: Sequence[Sequence[Any]]) -> State:
        """One sum over the runs' totals, without rounding in between."""
        totals, carries, nulls = columns
        if self.short:
            return _exact_sum(totals), 0, sum(nulls)
        return _exact_sum([*totals, *carries]), 0, sum(nulls)


def _exact_sum(values: Iterable[Any]) -> Any:
    try:
        total = sum(values)
    except TypeError:  # a type that does not add to 0, such as timedelta
        start, *rest = (v for v in values if type(v) is not int)
        return sum(rest, start)
    if type(total) is not float:
        return total
    try:
        return fsum(values)
    except (OverflowError, ValueError):  # infinities: plain addition says it best
        return total


class MeanFold(SumFold):
    """A sum, divided by the number of values that are not null."""

    name = "mean"

    def value(self, n: int, state: State) -> Any:
        """Sum over count; None if every value was null."""
        total = super().value(n, state)
        return None if total is None else total / (n - state[2])


class VarianceFold(Fold):
    """Welford's form. State: how many values, their mean, sum of squared distances from it."""

    name = "variance"
    empty = (0, 0, 0)
    first = "{0} = 1; {1} = x; {2} = x - x"
    compute = "_0 = {0} + 1; _1 = x - {1}; _2 = {1} + _1 / _0; _3 = {2} + _1 * (x - _2)"
    store = "{0} = _0; {1} = _2; {2} = _3"

    def __init__(self, ddof: int) -> None:
        self.ddof = ddof

    def step(self, state: State, x: Any) -> State:
        """Move the mean a little and add the squared distance."""
        count, mean, squares = state
        if x is None:
            return state
        if not count:
            return 1, x, x - x
        count += 1
        away = x - mean
        mean = mean + away / count
        return count, mean, squares + away * (x - mean)

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """Squared distances over count − ddof; None if there are too few values."""
        count, _, squares = state
        return squares / (count - self.ddof) if count > self.ddof else None

    def join(self, columns: Sequence[Sequence[Any]]) -> State:
        """Chan's form: runs' squares plus the squares of their means' distances."""
        count, mean, squares = 0, 0, 0
        for c, m, s in zip(*columns, strict=True):
            if not c:
                continue
            if not count:
                count, mean, squares = c, m, s
                continue
            both = count + c
            away = m - mean
            squares = squares + s + away * away * count * c / both
            mean, count = mean + away * c / both, both
        return count, mean, squares


class MaxFold(Fold):
    """State: the largest value so far, NaN above all, or None."""

    name = "max"
    empty = (None,)
    first = "x < x; {0} = x"
    compute = "_0 = x > {0} or x != x"
    store = "if _0: {0} = x"

    def step(self, state: State, x: Any) -> State:
        """The larger of both."""
        best = state[0]
        return (x,) if x is not None and (best is None or x > best or x != x) else state

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """The largest value, or None."""
        return state[0]

    def join(self, columns: Sequence[Sequence[Any]]) -> State:
        """The largest of the runs' largest."""
        return (_extreme(columns[0], max, any),)


class MinFold(Fold):
    """State: the smallest value so far, NaN only if there is nothing else, or None."""

    name = "min"
    empty = (None,)
    first = "x < x; {0} = x"
    compute = "_1 = {0}; _0 = x < _1 or _1 != _1"
    store = "if _0: {0} = x"

    def step(self, state: State, x: Any) -> State:
        """The smaller of both."""
        best = state[0]
        return (x,) if x is not None and (best is None or x < best or best != best) else state

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """The smallest value, or None."""
        return state[0]

    def join(self, columns: Sequence[Sequence[Any]]) -> State:
        """The smallest of the runs' smallest."""
        return (_extreme(columns[0], min, all),)


def _extreme(
    values: Iterable[Any],
    pick: Callable[[Iterable[Any]], Any],
    nan_wins: Callable[[Iterable[bool]], bool],
) -> Any:
    try:
        best = pick(values)
    except TypeError:  # a run of nulls only
        values = [v for v in values if v is not None]
        best = pick(values) if values else None
    if not isinstance(best, float) or not isnan(sum(values)):
        return best
    # NaN compares with nothing, so the builtins cannot be trusted as soon as there is one.
    nans = [isnan(v) for v in values]
    if not any(nans):  # infinities of both signs add up to NaN too
        return best
    if nan_wins(nans):
        return float("nan")
    return pick([v for v, nan in zip(values, nans, strict=True) if not nan])
