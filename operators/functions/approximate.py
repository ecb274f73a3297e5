"""Approximate functions: sketches that are small whatever the window, and can be merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from operators.sketches import HeavyHitters, HyperLogLog, QuantileSketch
from windowlib.folds import Fold, State

PLAIN = (int, float, str, bytes, bool)
"""Types whose values a sketch of such values always takes."""


class Sketched(Fold):
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
        """The sketch, after a look at whether it takes `x`: nothing has changed if not."""
        sketch = self.make() if sketch is None else sketch
        if x is not None and not (type(x) is kind and kind in PLAIN):
            sketch.copy().add(x)
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
        """What the sketch says."""
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
        """What `save` got."""
        return None if saved[0] is None else self.kind.restore(saved[0]), None


class ApproxCount(Sketched):
    """About how many distinct values."""

    name = "approx_count_distinct"
    kind = HyperLogLog

    def __init__(self, precision: int) -> None:
        super().__init__(lambda: HyperLogLog(precision))

    def result(self, sketch: HyperLogLog) -> int:
        """The estimate."""
        return sketch.count()


class ApproxQuantile(Sketched):
    """A value of about the right rank."""

    name = "approx_quantile"
    kind = QuantileSketch

    def __init__(self, q: float, size: int) -> None:
        super().__init__(lambda: QuantileSketch(size))
        self.q = q

    def result(self, sketch: QuantileSketch) -> Any:
        """The value, or None."""
        return sketch.quantile(self.q)


class ApproxTop(Sketched):
    """The most frequent values with about how often they came."""

    name = "approx_top_k"
    kind = HeavyHitters

    def __init__(self, k: int, capacity: int) -> None:
        super().__init__(lambda: HeavyHitters(k, capacity))
        self.k = k

    def result(self, sketch: HeavyHitters) -> list[Any]:
        """Pairs of value and count."""
        return sketch.top(self.k)
