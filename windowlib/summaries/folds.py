"""The arithmetic of the ready-made summarizers.

Each fold exists twice, side by side: `step` is the full definition, one value at a time on a
tuple of state; `compute` and `store` are the same arithmetic as source text for the generated
insert, for values that are neither null nor of a surprising type. Anything that the text cannot
do raises TypeError before it has stored anything, and `step` takes over.

In the text `x` is the value, `{0}`, `{1}`, … are places of state, `_0`, `_1`, … local names made
unique by the generator, `n` the number of tuples.

Float sums: a short run (a count window of at most `SHORT` tuples) is added straight, like a leaf
of pairwise summation; longer ones are compensated (Neumaier). Nothing is ever subtracted when a
window slides, so nothing drifts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar, NoReturn, Self

from windowlib.errors import SchemaError
from windowlib.summaries.exact import decimal_ratio, exact_number, ratio

SHORT = 128

# Below and above every number. They are told from a real infinity by identity.
LOWEST, HIGHEST = float("-inf"), float("inf")


class _Zero(int):
    """A zero whose sum with any number is a plain number."""


ZERO = _Zero()
"""The sum of nothing, told by identity from a sum that happens to be 0."""

State = tuple[Any, ...]


class Fold:
    """The state and the arithmetic of one aggregate.

    A fold without text is stepped by a call. `F` in a text is the fold itself.
    """

    name: str  # for messages: the function, or with its column as the user wrote it
    empty: State
    mergeable: bool = True  # whether there is a `merge`, which leaves its arguments as they are
    stackable: bool = True  # whether `step` does so, too, and a state is small
    commutative: bool = True  # whether the order of the values does not matter
    picks: bool = False  # whether the result is some of the values as they came, or None
    holistic: bool = False  # whether the state is the values themselves, in some form
    pure: bool = True  # whether `step` leaves the state as it is; it then may refuse a value
    textual: bool = True  # whether the generated insert may contain it
    compute: str = ""
    store: str = ""
    inplace: str = ""  # compute and store in one; it raises before it stores
    # The three texts for a value that came before those of the state, if they are others: which of
    # several equal values counts does depend on the order.
    earlier: tuple[str, str, str] | None = None
    # As text again, for as long as no tuple needed `step`: the result, and the places of two runs
    # together, where `a0`, … are the places of the earlier run and `b0`, … of the later.
    # `m` is a local name of the fold's own.
    read: str = ""
    merged: tuple[str, ...] = ()
    cold: tuple[int, ...] = ()  # places that only `step` changes, and `read` does not mention

    def called(self, name: str) -> Self:
        """The same fold with another name."""
        self.name = name
        return self

    def step(self, state: State, x: Any) -> State:
        """The state after one more value; nulls are skipped."""
        raise NotImplementedError

    def check(self, state: State, x: Any) -> None:
        """Refuse a value that `step` could not take, where that changes the state in place."""

    def value(self, n: int, state: State) -> Any:
        """The result for `n` tuples folded into `state`."""
        raise NotImplementedError

    def merge(self, a: State, b: State) -> State:
        """The state of two runs together."""
        raise NotImplementedError

    def sliding(self) -> Fifo | None:
        """The algorithm for sliding windows; None: two stacks."""
        return None

    def save(self, state: State) -> list[Any]:
        """A state as plain data: None for a place that is still as it starts.

        Some starts are known by identity, which no serialisation keeps.
        """
        pairs = zip(state, self.empty, strict=True)
        return [None if value is start else _kept(value) for value, start in pairs]

    def load(self, saved: list[Any]) -> State:
        """Restore what `save` returned."""
        pairs = zip(saved, self.empty, strict=True)
        return tuple(start if value is None else _kept(value) for value, start in pairs)

    @property
    def plain(self) -> Fold:
        """The fold of plain values in it."""
        return self

    def as_saved(self, places: list[Any]) -> list[Any]:
        """What `save` gives for a state with these places of plain values."""
        return places

    def from_saved(self, saved: list[Any]) -> list[Any] | None:
        """The places of plain values in what `save` gave, None if there are others."""
        return saved


def _kept(value: Any) -> Any:
    """The value itself, or a copy if it is a container that a fold changes in place."""
    return value.copy() if isinstance(value, list | dict) else value


class Fifo:
    """An aggregate of a queue of values: the algorithm of a fold on a sliding window.

    A subclass says in `algorithm` what it is, for `explain`.
    """

    algorithm: ClassVar[str]

    def push(self, x: Any) -> None:
        """A value enters at the newest end; it may be null."""
        raise NotImplementedError

    def pop(self, count: int) -> None:
        """The oldest `count` values leave."""
        raise NotImplementedError

    def value(self) -> Any:
        """The result for the values that are in."""
        raise NotImplementedError


class CountFold(Fold):
    """Counts tuples; the container counts them anyway, so there is no state."""

    name = "count"
    empty = ()
    read = "n"

    def step(self, state: State, x: Any) -> State:
        """Nothing: the tuple count is the container's."""
        return state

    def value(self, n: int, state: State) -> int:
        """The tuple count."""
        return n

    def merge(self, a: State, b: State) -> State:
        """Nothing to merge."""
        return a


def _refuse(name: str, x: Any, why: str) -> NoReturn:
    msg = f"{name} of {x!r}: {why}. Keep the tuples, or summarise another attribute."
    raise SchemaError(msg)


def _larger(a: str, b: str, total: str) -> str:
    """Text for abs(a) >= abs(b), without a call, and shortest for two positive numbers."""
    return f"{a} >= {b} and ({total} >= {a} or {a} >= -{b}) or {a} <= {b} and {a} <= -{b}"


class SumFold(Fold):
    """State: total, how many nulls, and the compensation unless the run is short."""

    name = "sum"
    cold = (1,)

    def __init__(self, short: bool) -> None:
        if short:
            self.empty = (ZERO, 0)
            self.compute, self.store, self.inplace = "_0 = {0} + x", "{0} = _0", "{0} += x"
            self.read, self.merged = "{0}", ("{a0} + {b0}", "0")
        else:
            self.empty = (ZERO, 0, 0)
            self.compute = (
                "_0 = {0}; _1 = _0 + x; "
                f"_2 = {{2}} + ((_0 - _1) + x if {_larger('_0', 'x', '_1')} else (x - _1) + _0)"
            )
            self.store = "{0} = _1; {2} = _2"
            # Where the total is infinite the compensation is not a number.
            self.read = "({m} if ({m} := {0} + {2}) == {m} else {0})"
            self.merged = (
                "({m} := {a0} + {b0})",
                "0",
                "{a2} + {b2} + (({a0} - {m}) + {b0} "
                f"if {_larger('{a0}', '{b0}', '{m}')} else ({{b0}} - {{m}}) + {{a0}})",
            )

    def step(self, state: State, x: Any) -> State:
        """Add one value, carrying the rounding error along unless the run is short."""
        total, nulls, *carry = state
        if x is None:
            return total, nulls + 1, *carry
        if isinstance(x, str | bytes | list | tuple):
            _refuse(self.name, x, f"a {type(x).__name__} cannot be added up")
        try:
            after = total + x
        except (TypeError, ArithmeticError):  # or a whole number too large for a float
            if total is not ZERO:
                _refuse(self.name, x, f"it cannot be added to {total!r}")
            return x, nulls, *self._zero(x, carry)
        return after, nulls, *(self._error(each, total, x, after) for each in carry)

    def _error(self, carry: Any, total: Any, x: Any, after: Any) -> Any:
        """The compensation with the rounding error of `total + x` added to it."""
        try:
            larger = abs(total) >= abs(x)
            return carry + ((total - after) + x if larger else (x - after) + total)
        except ArithmeticError:  # decimals that are infinite or NaN: nothing to compensate
            return carry

    def _zero(self, x: Any, carry: list[Any]) -> list[Any]:
        """Compensation for a type that adds to itself but not to 0, such as timedelta."""
        try:
            return [(x + x) - (x + x) for _ in carry or [0]][: len(carry)]
        except TypeError:
            _refuse(self.name, x, f"a {type(x).__name__} cannot be added up")

    def value(self, n: int, state: State) -> Any:
        """Total plus compensation; None if every value was null."""
        total, nulls, *carry = state
        if n == nulls:
            return None
        if not carry or not carry[0]:
            return total
        exact = total + carry[0]
        return exact if exact == exact else total  # inf - inf in the compensation means nothing

    def merge(self, a: State, b: State) -> State:
        """The later total is one more value, its nulls and its compensation come on top."""
        if b[0] is ZERO:  # nothing but nulls
            return a[0], a[1] + b[1], *a[2:]
        total, nulls, *carry = self.step(a, b[0])
        return total, nulls + b[1], *(x + y for x, y in zip(carry, b[2:], strict=True))


class MeanFold(SumFold):
    """A sum, divided by the number of values that are not null."""

    name = "mean"

    def __init__(self, short: bool) -> None:
        super().__init__(short)
        self.read = f"{self.read} / n"

    def value(self, n: int, state: State) -> Any:
        """Sum over count; None if every value was null."""
        total = SumFold.value(self, n, state)
        return None if total is None else total / (n - state[1])


class VarianceFold(Fold):
    """The variance: exact for whole numbers and decimals, in Welford's form for floats.

    State, of floats: how many, their mean, the sum of squared distances from it. Of the others:
    how many, their sum, the sum of their squares, and the digits of decimals, if any came; see
    `windowlib.summaries.exact`. Decimals and floats do not mix.
    """

    name = "variance"
    empty = (0, 0.0, 0.0, 0, 0, 0, None)
    compute = (
        "if x.__class__ is float: _0 = {0} + 1; _1 = x - {1}; _2 = {1} + _1 / _0; "
        "_3 = {2} + _1 * (x - _2)\n"
        "elif x.__class__ is int and {6} is None: _0 = 0\n"
        "else: raise TypeError"
    )
    store = "if _0: {0} = _0; {1} = _2; {2} = _3\nelse: {3} += 1; {4} += x; {5} += x * x"

    def __init__(self, ddof: int) -> None:
        self.ddof = ddof

    def step(self, state: State, x: Any) -> State:
        """Add an exact number and its square, or move the mean of floats a little."""
        if x is None:
            return state
        number = exact_number(x)
        if number is not None:
            units, digits = number
            if state[0] and digits is not None:
                _refuse(self.name, x, "it is no number like the others")
            return self.merge(state, (0, 0.0, 0.0, 1, units, units * units, digits))
        count, mean, squares, *exact = state
        try:
            if isinstance(x, Decimal):  # infinite, NaN, or with too many digits to be exact
                raise TypeError
            away = x - mean
            after = mean + away / (count + 1)
            return count + 1, after, squares + away * (x - after), *exact
        except (TypeError, ArithmeticError):
            _refuse(self.name, x, "it is no number like the others")

    def value(self, n: int, state: State) -> Any:
        """Squared distances over count − ddof; None if there are too few values."""
        floats, whole = state[0], state[3]
        if floats + whole <= self.ddof:
            return None
        if floats:
            squares = abs(_as_floats(state)[2])  # below 0 where a distance was infinite
            return self.of_floats(squares / (floats + whole - self.ddof))
        _, total, squares, digits = state[3:]
        return self.of_exact(whole * squares - total * total, whole * (whole - self.ddof), digits)

    def of_floats(self, variance: float) -> float:
        """The result for a variance."""
        return variance

    def of_exact(self, above: int, below: int, digits: int | None) -> float | Decimal:
        """The result for a variance that is a quotient."""
        return ratio(above, below) if digits is None else decimal_ratio(above, below, 2 * digits)

    def merge(self, a: State, b: State) -> State:
        """Exact sums of both; of floats the squares, plus those of the means' distance."""
        if (a[6] is not None and b[0]) or (b[6] is not None and a[0]):
            mean = a[1] if a[0] else b[1]
            _refuse(self.name, mean, "floats, of which this is the mean, do not mix with decimals")
        digits = max((each for each in (a[6], b[6]) if each is not None), default=None)
        one, other = (_in_units(each, digits) for each in (a, b))
        floats = _chan(a[:3], b[:3])
        if digits is not None:
            floats = (0, NO_FLOATS, 0.0)
        return (*floats, a[3] + b[3], one[0] + other[0], one[1] + other[1], digits)

    def save(self, state: State) -> list[Any]:
        """The places; what keeps floats out is known from the digits."""
        saved = super().save(state)
        return [*saved[:1], None if state[6] is not None else saved[1], *saved[2:]]

    def load(self, saved: list[Any]) -> State:
        """What `save` got; earlier releases had the places of floats alone."""
        state = super().load([*saved, *[None] * (len(self.empty) - len(saved))])
        return state if state[6] is None else (0, NO_FLOATS, 0.0, *state[3:])


NO_FLOATS = Decimal(0)
"""Stands for the mean of floats where decimals came: no float can be subtracted from it."""


def _in_units(state: State, digits: int | None) -> tuple[int, int]:
    """The exact sum and the sum of squares, in units of so many digits."""
    factor = 10 ** ((digits or 0) - (state[6] or 0))
    return state[4] * factor, state[5] * factor * factor


def _chan(a: State, b: State) -> State:
    """Count, mean and squares of two runs of floats together."""
    if not a[0] or not b[0]:
        return a if a[0] else b
    count, away = a[0] + b[0], b[1] - a[1]
    mean = a[1] + away * b[0] / count
    return count, mean, a[2] + b[2] + away * away * a[0] * b[0] / count


def _as_floats(state: State) -> State:
    """Count, mean and squares of all values, of which some are floats."""
    whole, total, squares = state[3:6]
    if not whole:
        return state[:3]
    exact = whole, ratio(total, whole), ratio(whole * squares - total * total, whole)
    return _chan(state[:3], exact)


def _less(name: str, a: Any, b: Any, *, best: Any) -> bool:
    try:
        return bool(a < b)
    except TypeError:
        _refuse(name, b if a is best else a, f"it cannot be compared with {best!r}")
    except ArithmeticError:  # a decimal that is NaN, and not less than anything
        return False


class MaxFold(Fold):
    """State: the largest value so far, NaN above all; `LOWEST` stands for none."""

    name = "max"
    empty = (LOWEST,)
    compute = "_0 = x < {0}"
    store = "if not _0 and {0} == {0}: {0} = x"  # NaN is not less, and then stays
    inplace = "if not x < {0} and {0} == {0}: {0} = x"
    earlier = (
        "_0 = x > {0}",
        "if _0 or x != x or {0} is LOWEST: {0} = x",
        "if x > {0} or x != x or {0} is LOWEST: {0} = x",
    )
    read, merged = "{0}", ("{a0} if {a0} > {b0} or {a0} != {a0} else {b0}",)

    def step(self, state: State, x: Any) -> State:
        """The larger of both."""
        best = state[0]
        if x is None or best != best:
            return state
        return (x,) if best is LOWEST or not _less(self.name, x, best, best=best) else state

    def value(self, n: int, state: State) -> Any:
        """The largest value, or None."""
        return None if state[0] is LOWEST else state[0]

    def merge(self, a: State, b: State) -> State:
        """The larger of both."""
        return a if b[0] is LOWEST else self.step(a, b[0])


class MinFold(Fold):
    """State: the smallest value so far, NaN only if there is nothing else; `HIGHEST` for none."""

    name = "min"
    empty = (HIGHEST,)
    compute = "_0 = x > {0}"
    store = "if not _0 and (x == x or {0} is HIGHEST): {0} = x"  # NaN is not greater, nor less
    inplace = "if not x > {0} and (x == x or {0} is HIGHEST): {0} = x"
    earlier = (
        "_0 = x < {0}",
        "if _0 or {0} != {0} or {0} is HIGHEST: {0} = x",
        "if x < {0} or {0} != {0} or {0} is HIGHEST: {0} = x",
    )
    read, merged = "{0}", ("{b0} if {a0} != {a0} or {a0} >= {b0} else {a0}",)

    def step(self, state: State, x: Any) -> State:
        """The smaller of both."""
        best = state[0]
        if x is None or (best is not HIGHEST and (_less(self.name, best, x, best=best) or x != x)):
            return state
        return (x,)

    def value(self, n: int, state: State) -> Any:
        """The smallest value, or None."""
        return None if state[0] is HIGHEST else state[0]

    def merge(self, a: State, b: State) -> State:
        """The smaller of both."""
        return a if b[0] is HIGHEST else self.step(a, b[0])
