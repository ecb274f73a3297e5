"""The arithmetic of the ready-made summarizers.

Each fold exists twice, side by side: `step` is the full definition, one value at a time on a
tuple of state; `compute` and `store` are the same arithmetic as source text for the generated
insert, for values that are neither null nor of a surprising type. Anything that the text cannot
do raises TypeError before it has stored anything, and `step` takes over.

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

# Below and above every number. They are told from a real infinity by identity.
LOWEST, HIGHEST = float("-inf"), float("inf")

State = tuple[Any, ...]
Column = Sequence[Any]


class Fold:
    """One aggregate's state and arithmetic."""

    name: ClassVar[str]
    empty: State
    compute: str
    store: str
    inplace: str = ""  # compute and store in one, for a fold that is alone
    # Results as source text, for as long as no tuple needed `step`: from places, from columns.
    read: str = ""
    read_joined: str = ""
    spare: tuple[int, ...] = ()  # places that only `step` changes
    may_be_nan: bool = False  # place 0 turns NaN without an error, and then columns need `joined`

    def step(self, state: State, x: Any) -> State:
        """The state after one more value; nulls are skipped."""
        raise NotImplementedError

    def value(self, n: int, state: State) -> Any:
        """The result for `n` tuples folded into `state`."""
        raise NotImplementedError

    def joined(self, n: int, *columns: Column) -> Any:
        """The result for `n` tuples in several runs, given each place of state as a column."""
        raise NotImplementedError


class CountFold(Fold):
    """Counts tuples; the container counts them anyway, so there is no state."""

    name = "count"
    empty = ()
    compute = store = ""
    read = read_joined = "n"

    def step(self, state: State, x: Any) -> State:  # noqa: ARG002
        """Nothing: the tuple count is the container's."""
        return state

    def value(self, n: int, state: State) -> int:  # noqa: ARG002
        """The tuple count."""
        return n

    def joined(self, n: int, *columns: Column) -> int:  # noqa: ARG002
        """The tuple count."""
        return n


def _addable(x: Any, name: str) -> Any:
    if isinstance(x, str | bytes | list | tuple):
        msg = f"{name} of {x!r}: a {type(x).__name__} cannot be summed. Keep the tuples instead."
        raise SchemaError(msg)
    return x


class SumFold(Fold):
    """State: total, how many nulls, and the compensation unless the run is short."""

    name = "sum"

    def __init__(self, short: bool) -> None:
        self.spare = (1,)
        if short:
            self.empty = (0, 0)
            self.compute, self.store, self.inplace = "_0 = {0} + x", "{0} = _0", "{0} += x"
            self.read = "{0}"
            self.read_joined = "(fsum({0}) if type({0}[-1]) is float else sum({0}))"
        else:
            self.empty = (0, 0, 0)
            self.compute = (
                "_0 = {0}; _1 = _0 + x; "
                "_2 = {2} + ((_0 - _1) + x if abs(_0) >= abs(x) else (x - _1) + _0)"
            )
            self.store = "{0} = _1; {2} = _2"

    def step(self, state: State, x: Any) -> State:
        """Add one value, carrying the rounding error along unless the run is short."""
        total, nulls, *carry = state
        if x is None:
            return total, nulls + 1, *carry
        try:
            after = _addable(x, self.name) + total
        except TypeError:
            if total != 0 or not isinstance(total, int):
                raise
            return x, nulls, *(x - x for _ in carry)  # a type that does not add to 0: timedelta
        if carry:
            larger = abs(total) >= abs(x)
            carry = [carry[0] + ((total - after) + x if larger else (x - after) + total)]
        return after, nulls, *carry

    def value(self, n: int, state: State) -> Any:
        """Total plus compensation; None if every value was null."""
        total, nulls, *carry = state
        if n == nulls:
            return None
        if not carry or not carry[0]:
            return total
        exact = total + carry[0]
        return exact if exact == exact else total  # inf - inf in the compensation means nothing

    def joined(self, n: int, totals: Column, nulls: Column, *carries: Column) -> Any:
        """One sum over the runs' totals, without rounding in between."""
        if n == sum(nulls):
            return None
        return exact_sum([*totals, *carries[0]] if carries else totals)


def exact_sum(values: Column) -> Any:
    """The sum of some values, rounded once if they are floats."""
    if type(values[0]) is float:
        try:
            return fsum(values)
        except (OverflowError, ValueError):  # infinities: plain addition says it best
            return sum(values)
    try:
        total = sum(values)
    except TypeError:  # a type that does not add to 0, such as timedelta
        start, *rest = (v for v in values if type(v) is not int)
        return sum(rest, start)
    return exact_sum([float(total - total), *values]) if type(total) is float else total


class MeanFold(SumFold):
    """A sum, divided by the number of values that are not null."""

    name = "mean"

    def __init__(self, short: bool) -> None:
        super().__init__(short)
        if short:
            self.read, self.read_joined = f"{self.read} / n", f"{self.read_joined} / n"

    def value(self, n: int, state: State) -> Any:
        """Sum over count; None if every value was null."""
        total = SumFold.value(self, n, state)
        return None if total is None else total / (n - state[1])

    def joined(self, n: int, totals: Column, nulls: Column, *carries: Column) -> Any:
        """The joined sum over the joined count."""
        total = SumFold.joined(self, n, totals, nulls, *carries)
        return None if total is None else total / (n - sum(nulls))


class VarianceFold(Fold):
    """Welford's form. State: how many values, their mean, sum of squared distances from it."""

    name = "variance"
    empty = (0, 0.0, 0.0)
    compute = "_0 = {0} + 1; _1 = x - {1}; _2 = {1} + _1 / _0; _3 = {2} + _1 * (x - _2)"
    store = "{0} = _0; {1} = _2; {2} = _3"

    def __init__(self, ddof: int) -> None:
        self.ddof = ddof

    def step(self, state: State, x: Any) -> State:
        """Move the mean a little and add the squared distance."""
        count, mean, squares = state
        if x is None:
            return state
        try:
            away = x - mean
        except TypeError:
            if count:
                raise
            return 1, x, x - x  # a type that does not mix with floats: Decimal
        count += 1
        mean = mean + away / count
        return count, mean, squares + away * (x - mean)

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """Squared distances over count − ddof; None if there are too few values."""
        count, _, squares = state
        return squares / (count - self.ddof) if count > self.ddof else None

    def joined(self, n: int, *columns: Column) -> Any:
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
        return self.value(n, (count, mean, squares))


class MaxFold(Fold):
    """State: the largest value so far, NaN above all; `LOWEST` stands for none."""

    name = "max"
    empty = (LOWEST,)
    compute = "_0 = x >= {0} or x != x"
    store = "if _0: {0} = x"
    inplace = "if x >= {0} or x != x: {0} = x"
    read, read_joined, may_be_nan = "{0}", "max({0})", True

    def step(self, state: State, x: Any) -> State:
        """The larger of both."""
        best = state[0]
        return (x,) if x is not None and (best is LOWEST or x >= best or x != x) else state

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """The largest value, or None."""
        return None if state[0] is LOWEST else state[0]

    def joined(self, n: int, *columns: Column) -> Any:  # noqa: ARG002
        """The largest of the runs' largest."""
        return _extreme(columns[0], max, any)


class MinFold(Fold):
    """State: the smallest value so far, NaN only if there is nothing else; `HIGHEST` for none."""

    name = "min"
    empty = (HIGHEST,)
    compute = "_1 = {0}; _0 = x <= _1 or _1 != _1"
    store = "if _0: {0} = x"
    read, read_joined, may_be_nan = "{0}", "min({0})", True

    def step(self, state: State, x: Any) -> State:
        """The smaller of both."""
        best = state[0]
        return (x,) if x is not None and (best is HIGHEST or x <= best or best != best) else state

    def value(self, n: int, state: State) -> Any:  # noqa: ARG002
        """The smallest value, or None."""
        return None if state[0] is HIGHEST else state[0]

    def joined(self, n: int, *columns: Column) -> Any:  # noqa: ARG002
        """The smallest of the runs' smallest."""
        return _extreme(columns[0], min, all)


def _extreme(
    values: Column,
    pick: Callable[[Iterable[Any]], Any],
    nan_wins: Callable[[Iterable[bool]], bool],
) -> Any:
    try:
        best = pick(values)
    except TypeError:  # a run of nulls only, among values that do not compare with floats
        best = LOWEST
    if best is LOWEST or best is HIGHEST or type(best) is not float:
        values = [v for v in values if v is not LOWEST and v is not HIGHEST]
        return pick(values) if values else None
    total = sum(values)
    if total == total:
        return best
    # NaN compares with nothing, so the builtins cannot be trusted as soon as there is one.
    nans = [isnan(v) for v in values]
    if not any(nans):  # infinities of both signs add up to NaN too
        return best
    if nan_wins(nans):
        return float("nan")
    return pick([v for v, nan in zip(values, nans, strict=True) if not nan])
