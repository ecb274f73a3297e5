"""Approximate functions: sketches that are small whatever the window, and can be merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from windowlib.errors import SchemaError
from windowlib.operators.functions.call import (
    Agg,
    Column,
    aggregate,
    is_whole_number,
    refuse_argument,
)
from windowlib.operators.functions.output_types import count_type
from windowlib.operators.functions.quantile import check_fraction
from windowlib.operators.sketches import HeavyHitters, HyperLogLog, QuantileSketch
from windowlib.operators.sketches.hashing import digest
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fold, State

__all__ = ["approx_count_distinct", "approx_quantile", "approx_top_k"]

PLAIN = (int, float, str, bytes, bool)
"""Types whose values a sketch of such values always takes."""


class SketchFold(Fold):
    """Base: one sketch of the values that are not null, and the type of the last of them."""

    empty = (None, None)
    stackable = False  # a sketch for every tuple would be larger than the tuples
    pure = False
    compute = "_0 = F.ready({0}, {1}, x)"
    store = "{0} = _0; {1} = F.put(_0, {1}, x)"
    kind: ClassVar[type[Any]]

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def ready(self, sketch: Any, kind: Any, x: Any) -> Any:
        """The sketch, if it takes `x`; raises before anything changes."""
        sketch = self.make() if sketch is None else sketch
        if x is not None and not (type(x) is kind and kind in PLAIN):
            try:
                sketch.copy().add(x)
            except SchemaError as error:
                _, _, reason = str(error).rpartition(": ")
                raise SchemaError(f"{self.name} of {x!r}: {reason}") from None
        return sketch

    def put(self, sketch: Any, kind: Any, x: Any) -> Any:
        """Add a value, in place; its type."""
        if x is None:
            return kind
        sketch.add(x)
        return type(x)

    def check(self, state: State, x: Any) -> None:
        """Refuse what the sketch does not take."""
        self.ready(state[0], state[1], x)

    def step(self, state: State, x: Any) -> State:
        """Add a value, in place."""
        sketch = self.make() if state[0] is None else state[0]
        return sketch, self.put(sketch, state[1], x)

    def value(self, n: int, state: State) -> Any:
        """The answer of the sketch."""
        return self.result(self.make() if state[0] is None else state[0])

    def result(self, sketch: Any) -> Any:
        """The answer of a sketch."""
        raise NotImplementedError

    def merge(self, a: State, b: State) -> State:
        """A sketch of both."""
        if a[0] is None or b[0] is None:
            return b if a[0] is None else a
        return a[0].merge(b[0]), b[1] if a[1] is None else a[1]

    def save(self, state: State) -> list[Any]:
        """The sketch as plain data."""
        return [None if state[0] is None else state[0].snapshot()]  # the type is only a hint

    def load(self, saved: list[Any]) -> State:
        """The state that `save` wrote."""
        return None if saved[0] is None else self.kind.restore(saved[0]), None


class ApproxCount(SketchFold):
    """About how many distinct values."""

    name = "approx_count_distinct"
    kind = HyperLogLog
    digest = staticmethod(digest)

    def __init__(self, precision: int) -> None:
        super().__init__(lambda: HyperLogLog(precision))

    def result(self, sketch: HyperLogLog) -> int:
        """The estimate."""
        return sketch.count()


class ApproxQuantile(SketchFold):
    """A value of about the right rank."""

    name = "approx_quantile"
    kind = QuantileSketch

    def __init__(self, q: float, size: int) -> None:
        super().__init__(lambda: QuantileSketch(size))
        self.q = q

    def result(self, sketch: QuantileSketch) -> Any:
        """The value, or None."""
        return sketch.quantile(self.q)


class ApproxTop(SketchFold):
    """The most frequent values with about how often they came."""

    name = "approx_top_k"
    kind = HeavyHitters

    def __init__(self, k: int, capacity: int) -> None:
        super().__init__(lambda: HeavyHitters(k, capacity))
        self.k = k

    def result(self, sketch: HeavyHitters) -> list[Any]:
        """Pairs of value and count."""
        return sketch.top(self.k)


LARGEST = 1 << 20
"""The largest size of a sketch."""

APPROX_COUNT_DISTINCT = AggregateFunction(
    "approx_count_distinct",
    ApproxCount,
    count_type,
    kernel="windowlib.columnar.kernels.sketched:CountSketchFunction",
)


def approx_count_distinct(column: Column, *, precision: int = 12) -> Agg:
    """About how many distinct values (HyperLogLog): 2 ** `precision` bytes, 1.6 % off at 12."""
    if not is_whole_number(precision) or not 4 <= precision <= 18:
        refuse_argument(
            "approx_count_distinct", "precision", precision, "a whole number from 4 to 18."
        )
    return aggregate(APPROX_COUNT_DISTINCT, {"": column}, precision=precision)


APPROX_QUANTILE = AggregateFunction(
    "approx_quantile",
    ApproxQuantile,
    kernel="windowlib.columnar.kernels.sketched:QuantileSketchFunction",
)


def approx_quantile(column: Column, q: float, *, size: int = 512) -> Agg:
    """A value of about the rank `q` (KLL sketch): 5 / `size` of the ranks off, 1 % at 512."""
    check_fraction("approx_quantile", q)
    if not is_whole_number(size) or not 8 <= size <= LARGEST:
        refuse_argument("approx_quantile", "size", size, f"a whole number from 8 to {LARGEST}.")
    return aggregate(APPROX_QUANTILE, {"": column}, q=q, size=size)


APPROX_TOP_K = AggregateFunction(
    "approx_top_k", ApproxTop, kernel="windowlib.columnar.kernels.sketched:TopSketchFunction"
)


def approx_top_k(column: Column, k: int, *, capacity: int | None = None) -> Agg:
    """The `k` most frequent values with their counts, as pairs (Space-Saving).

    Exact while there are at most `capacity` distinct values: 512, or 8 times `k` if that is more.
    """
    if not is_whole_number(k) or not 1 <= k <= LARGEST // 8:
        refuse_argument("approx_top_k", "k", k, f"say how many, from 1 to {LARGEST // 8}.")
    # builtins are hidden by the functions of this module
    size = (512 if k <= 64 else 8 * k) if capacity is None else capacity
    if not is_whole_number(size) or not 2 * k <= size <= LARGEST:
        fix = f"a whole number from {2 * k}, twice k, to {LARGEST}."
        refuse_argument("approx_top_k", "capacity", capacity, fix)
    return aggregate(APPROX_TOP_K, {"": column}, k=k, capacity=size)
