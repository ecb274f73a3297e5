"""The smallest and the largest values: which, how many, what goes with them, the best few."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cmp_to_key, partial
from typing import Any, ClassVar

from windowlib.operators.functions.call import (
    Agg,
    Column,
    aggregate,
    is_whole_number,
    refuse_argument,
    shown_text,
)
from windowlib.operators.functions.elementwise import elementwise
from windowlib.operators.functions.output_types import column_type, count_type, list_type
from windowlib.operators.functions.value_order import NOTHING, greater
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import Fifo, Fold, MaxFold, MinFold, State

__all__ = [
    "arg_max",
    "arg_min",
    "collect_arg_max",
    "collect_arg_min",
    "max",
    "max_count",
    "min",
    "min_count",
    "top",
]


class ExtremeFold(Fold):
    """Base: compares values in the direction it was made for; `better` is strict."""

    names: ClassVar[tuple[str, str]]
    """What it is called for the smallest, and for the largest."""

    def __init__(self, largest: bool) -> None:
        self.largest = largest
        self.name = self.names[largest]

    def better(self, a: Any, b: Any) -> bool:
        """Whether `a` beats `b`."""
        return greater(self.name, a, b) if self.largest else greater(self.name, b, a)

    def merge(self, a: State, b: State) -> State:
        """The better one's, of two states that start with the best value; both, if it is equal."""
        if a[0] is NOTHING or b[0] is NOTHING:
            return b if a[0] is NOTHING else a
        if self.better(a[0], b[0]):
            return a
        return b if self.better(b[0], a[0]) else (a[0], a[1] + b[1])


class ExtremeCount(ExtremeFold):
    """How many values equal the smallest, or the largest."""

    names = ("min_count", "max_count")
    empty = (NOTHING, 0)

    def step(self, state: State, x: Any) -> State:
        """Start again at a better value, count an equal one."""
        return state if x is None else self.merge(state, (x, 1))

    def value(self, n: int, state: State) -> int | None:
        """The count; None if every value was null."""
        return state[1] or None


class ArgExtreme(ExtremeFold):
    """The value that goes with the smallest, or the largest; the earliest of several.

    Takes pairs: the value, and what it is judged by.
    """

    names = ("arg_min", "arg_max")
    empty = (NOTHING, None)
    commutative = False
    picks = True

    def step(self, state: State, x: Any) -> State:
        """Replace only what is strictly worse."""
        value, by = x
        return state if by is None else self.merge(state, (by, value))

    def value(self, n: int, state: State) -> Any:
        """The value, or None."""
        return state[1]

    def merge(self, a: State, b: State) -> State:
        """The earlier one's, unless the later one is better."""
        if a[0] is NOTHING or b[0] is NOTHING:
            return b if a[0] is NOTHING else a
        return b if self.better(b[0], a[0]) else a

    def sliding(self) -> Fifo:
        """A monotone queue: whatever is beaten by a newer value will never be the answer."""
        return Monotone(self.better, lambda best: best[0][2] if best else None)


class CollectArgExtreme(ExtremeFold):
    """All values that go with the smallest, or the largest. Takes pairs, as `ArgExtreme` does."""

    names = ("collect_arg_min", "collect_arg_max")
    empty = (NOTHING, ())
    commutative = False
    picks = True

    def step(self, state: State, x: Any) -> State:
        """Start again at a better one, add an equal one."""
        value, by = x
        return state if by is None else self.merge(state, (by, (value,)))

    def value(self, n: int, state: State) -> list[Any]:
        """The values, oldest first."""
        return list(state[1])

    def sliding(self) -> Fifo:
        """A monotone queue, whose best are at its front."""
        return Monotone(self.better, self._best)

    def _best(self, queue: deque[tuple[int, Any, Any]]) -> list[Any]:
        found: list[Any] = []
        for _, by, value in queue:
            if self.better(queue[0][1], by):
                break
            found.append(value)
        return found


class Monotone(Fifo):
    """A queue from the best value to the newest, without those that a newer one beats."""

    algorithm = "monotone deque"

    def __init__(
        self,
        better: Callable[[Any, Any], bool],
        result: Callable[[deque[tuple[int, Any, Any]]], Any],
    ) -> None:
        self.better, self.result = better, result
        self.queue: deque[tuple[int, Any, Any]] = deque()
        self.first = self.next = 0

    def push(self, x: Any) -> None:
        """Drop from the end what it beats."""
        value, by = x
        if by is not None:
            queue, better = self.queue, self.better
            while queue and better(by, queue[-1][1]):
                queue.pop()
            queue.append((self.next, by, value))
        self.next += 1

    def pop(self, count: int) -> None:
        """Drop from the front what has left."""
        self.first += count
        while self.queue and self.queue[0][0] < self.first:
            self.queue.popleft()

    def value(self) -> Any:
        """The result of the function for the queue."""
        return self.result(self.queue)


class Top(ExtremeFold):
    """The values that go with the k largest, the largest first; the earlier of equal ones first.

    Takes pairs: the value, and what it is judged by.
    """

    names = ("top", "top")
    empty = ((),)
    commutative = False
    picks = True

    def __init__(self, k: int, largest: bool) -> None:
        super().__init__(largest)
        self.k = k

    def step(self, state: State, x: Any) -> State:
        """Put it before the first that it beats."""
        value, by = x
        if by is None:
            return state
        best: tuple[tuple[Any, Any], ...] = state[0]
        at = next((i for i, (other, _) in enumerate(best) if self.better(by, other)), len(best))
        return ((*best[:at], (by, value), *best[at:])[: self.k],)

    def value(self, n: int, state: State) -> list[Any]:
        """The values, best first."""
        return [value for _, value in state[0]]

    def merge(self, a: State, b: State) -> State:
        """The best of both, each in order."""
        merged: list[tuple[Any, Any]] = []
        left, right = list(a[0]), list(b[0])
        while (left or right) and len(merged) < self.k:
            later = not left or (right and self.better(right[0][0], left[0][0]))
            merged.append((right if later else left).pop(0))
        return (tuple(merged),)

    def sliding(self) -> Fifo:
        """All values, sorted."""
        return RankedQueue(self)


class RankedQueue(Fifo):
    """Values sorted from best to worst, earlier before later: the best are a slice."""

    algorithm = "sorted multiset"

    def __init__(self, fold: Top) -> None:
        from sortedcontainers import SortedKeyList

        self.fold = fold
        rank = cmp_to_key(self._compare)
        self.sorted: Any = SortedKeyList(key=lambda entry: rank(entry))
        self.entries: deque[tuple[int, Any, Any] | None] = deque()
        self.next = 0

    def _compare(self, a: tuple[int, Any, Any], b: tuple[int, Any, Any]) -> int:
        if self.fold.better(a[1], b[1]):
            return -1
        return 1 if self.fold.better(b[1], a[1]) else a[0] - b[0]

    def push(self, x: Any) -> None:
        """Sort it in."""
        value, by = x
        entry = None if by is None else (self.next, by, value)
        self.next += 1
        self.entries.append(entry)
        if entry is not None:
            self.sorted.add(entry)

    def pop(self, count: int) -> None:
        """Take out the oldest."""
        for _ in range(count):
            entry = self.entries.popleft()
            if entry is not None:
                self.sorted.remove(entry)

    def value(self) -> list[Any]:
        """The best few."""
        return [value for _, _, value in self.sorted[: self.fold.k]]


MIN = AggregateFunction(
    "min",
    partial(elementwise, MinFold),
    column_type,
    kernel="windowlib.columnar.kernels.picks:MinKernel",
    combined_by="min",
)


def min(column: Column) -> Agg:
    """The smallest value; of lists, element by element."""
    return aggregate(MIN, {"": column})


MAX = AggregateFunction(
    "max",
    partial(elementwise, MaxFold),
    column_type,
    kernel="windowlib.columnar.kernels.picks:MaxKernel",
    combined_by="max",
)


def max(column: Column) -> Agg:
    """The largest value; of lists, element by element."""
    return aggregate(MAX, {"": column})


MIN_COUNT = AggregateFunction(
    "min_count",
    partial(ExtremeCount, largest=False),
    count_type,
    kernel="windowlib.columnar.kernels.picks:ExtremeCountKernel",
)


def min_count(column: Column) -> Agg:
    """How many values equal the smallest."""
    return aggregate(MIN_COUNT, {"": column})


MAX_COUNT = AggregateFunction(
    "max_count",
    partial(ExtremeCount, largest=True),
    count_type,
    kernel="windowlib.columnar.kernels.picks:ExtremeCountKernel",
)


def max_count(column: Column) -> Agg:
    """How many values equal the largest."""
    return aggregate(MAX_COUNT, {"": column})


ARG_MIN = AggregateFunction(
    "arg_min",
    partial(ArgExtreme, largest=False),
    column_type,
    kernel="windowlib.columnar.kernels.picks:ArgKernel",
)


def arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the smallest `by`, the earliest of several; or the row."""
    return aggregate(ARG_MIN, {"": column, "by": by})


ARG_MAX = AggregateFunction(
    "arg_max",
    partial(ArgExtreme, largest=True),
    column_type,
    kernel="windowlib.columnar.kernels.picks:ArgKernel",
)


def arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """The value that goes with the largest `by`, the earliest of several; or the row."""
    return aggregate(ARG_MAX, {"": column, "by": by})


COLLECT_ARG_MIN = AggregateFunction(
    "collect_arg_min",
    partial(CollectArgExtreme, largest=False),
    list_type,
    kernel="windowlib.columnar.kernels.ranked:AllBestFunction",
)


def collect_arg_min(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the smallest `by`, as a list; or the rows."""
    return aggregate(COLLECT_ARG_MIN, {"": column, "by": by})


COLLECT_ARG_MAX = AggregateFunction(
    "collect_arg_max",
    partial(CollectArgExtreme, largest=True),
    list_type,
    kernel="windowlib.columnar.kernels.ranked:AllBestFunction",
)


def collect_arg_max(column: Column | None = None, *, by: Column) -> Agg:
    """All values that go with the largest `by`, as a list; or the rows."""
    return aggregate(COLLECT_ARG_MAX, {"": column, "by": by})


TOP = AggregateFunction(
    "top", Top, list_type, kernel="windowlib.columnar.kernels.ranked:TopFunction"
)


def top(k: int, column: Column | None = None, *, by: Column, largest: bool = True) -> Agg:
    """The values that go with the `k` largest `by`, best first, as a list; or the rows."""
    if not is_whole_number(k) or k < 1:
        refuse_argument("top", "k", k, "say how many, 1 or more.")
    shown = [str(k), *([] if column is None else [shown_text(column)]), f"by={shown_text(by)}"]
    shown += [] if largest else ["largest=False"]
    text = f"agg.top({', '.join(shown)})"
    return aggregate(TOP, {"": column, "by": by}, text=text, k=k, largest=largest)
