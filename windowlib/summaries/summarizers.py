"""Summarizers: what a window keeps instead of its tuples (paper, sections 4.1.6 and 4.1.8).

Write your own as a subclass of `Summarizer`, or use the ready-made ones of this module: `count`,
`sum`, `mean`, `variance`, `min`, `max`. The container updates the ready-made ones inside its
generated insert, without a call per tuple.

>>> from windowlib import Count, TumblingWindow, WindowEvents, summarizers
>>> class Report(WindowEvents):
...     def before_flush(self, window, key):
...         self.emit(window.summary(key).value())
>>> window = TumblingWindow(
...     evict=Count(3),
...     events=Report(),
...     summarizer={"n": summarizers.count(), "mean": summarizers.mean("price")},
... )
>>> window.insert_many([{"price": 1.0}, {"price": 2.0}, {"price": None}])
>>> window.events.emitted
[{'n': 3, 'mean': 1.5}]

Null (None) values are skipped, as in SQL; a summary of nothing but nulls is None. NaN counts as
the largest number, as in Spark. Integers and decimals are exact.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from windowlib.attributes import Getter
from windowlib.errors import PolicyError
from windowlib.spec.policies import Attribute, attribute_text, check_attribute
from windowlib.summaries.aggregate_function import AggregateFunction
from windowlib.summaries.folds import (
    CountFold,
    Fold,
    MaxFold,
    MeanFold,
    MinFold,
    SumFold,
    VarianceFold,
)
from windowlib.summaries.incremental import Incremental, Program
from windowlib.window.subwindow import Subwindow, place

__all__ = ["Summarizer", "count", "max", "mean", "min", "sum", "variance"]
T = TypeVar("T")


class Summarizer(Generic[T]):
    """One subwindow's summary. The container makes one per subwindow and value_methods it in order.

    `open` when the subwindow gets its first tuple, `insert` for every tuple, `close` at the flush.
    State is whatever attributes you set; snapshots carry them.

    >>> class Longest(Summarizer[str]):
    ...     def open(self, key):
    ...         self.best = ""
    ...     def insert(self, word):
    ...         self.best = max(self.best, word, key=len)
    ...     def value(self):
    ...         return self.best
    """

    def open(self, key: Any) -> None:
        """The subwindow of `key` starts."""

    def insert(self, tuple_: T) -> None:
        """A tuple enters the subwindow logically; keep of it what you need."""
        raise NotImplementedError(f"{type(self).__name__} must define insert(self, tuple_).")

    def close(self) -> None:
        """The subwindow is about to be flushed; `value` is read after this."""

    def value(self) -> Any:
        """The summary so far."""

    def snapshot(self) -> Any:
        """The state as plain data; by default a copy of all attributes."""
        return copy.deepcopy(self.__getstate__())

    def restore(self, state: Any) -> None:
        """Restore what `snapshot` returned."""
        plain, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(plain or {}), **(slots or {})}.items():
            setattr(self, name, copy.deepcopy(value))


class FoldSummary(Summarizer[Any]):
    """The ready-made summarizers of one subwindow: a tuple count and one state per fold.

    The readable form of what the generated insert does in place: the reference engine runs it tuple
    by tuple, and the generated insert falls back on it for nulls and unusual types.
    """

    __slots__ = ("n", "plan", "states")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.n = 0
        self.states: list[tuple[Any, ...]] = [fold.empty for fold in plan.folds]

    def insert(self, tuple_: Any) -> None:
        """Fold one tuple into every state, or into none if a fold refuses its value."""
        folds, states = self.plan.folds, list(self.states)
        values = [None if get is None else get(tuple_) for get in self.plan.getters]
        for fold, state, x in zip(folds, states, values, strict=True):
            fold.check(state, x)
        for i in self.plan.step_order:
            states[i] = folds[i].step(states[i], values[i])
        self.states = states
        self.n += 1

    def values(self) -> list[Any]:
        """The values, in the order of the plan."""
        folded = zip(self.plan.folds, self.states, strict=True)
        return [fold.value(self.n, state) for fold, state in folded]

    def value(self) -> Any:
        """The value, or a dict of them if the window was given a dict."""
        return self.plan.named(self.values())

    def snapshot(self) -> Any:
        """Tuple count and places of state."""
        return [self.n, self.plan.encode(v for state in self.states for v in state)]

    def restore(self, state: Any) -> None:
        """Restore what `snapshot` returned."""
        self.n, places = state
        self.states = self.plan.states(self.plan.decode(places))


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """An aggregate function with its attribute and options: a ready-made summarizer."""

    function: AggregateFunction
    attribute: Attribute | None = None
    options: tuple[tuple[str, Any], ...] = ()
    shown: str = ""
    """The user's source text, for messages."""

    def __post_init__(self) -> None:
        name = self.function.name
        if self.attribute is not None or name != "count":
            owner = f"summarizers.{name}({{attribute!r}})"
            check_attribute(self.attribute, owner, f'summarizers.{name}("price")')

    def fold(self, short: bool) -> Fold:
        """The fold, for a short run of tuples or one of any length."""
        return self.function.new_fold(dict(self.options), short=short).called(repr(self))

    def __repr__(self) -> str:
        if self.shown:
            return self.shown
        shown = [] if self.attribute is None else [_shown(self.attribute)]
        shown += [f"{name}={value!r}" for name, value in self.options]
        return f"summarizers.{self.function.name}({', '.join(shown)})"


class Plan:
    """The ready-made summarizers of a window, as a factory of `FoldSummary` objects.

    `irregular` becomes true with the first tuple that the generated insert leaves to
    `FoldSummary`: a null, or a type with arithmetic of its own. Until then
    results are read by shorter code, and slices are merged by their `hot` places alone.
    """

    __slots__ = (
        "_program",
        "argument",
        "calls",
        "folds",
        "getters",
        "hot",
        "irregular",
        "names",
        "places",
        "start",
        "step_order",
    )

    start: tuple[Any, ...]
    """The initial values of the places of state."""
    places: int
    """How many places of state the folds need together."""
    hot: list[int]
    """The places that change while all tuples are regular, if all folds have text to merge them."""

    def __init__(
        self, calls: Mapping[Any, FunctionCall] | FunctionCall, *, short: bool, named: bool = True
    ) -> None:
        self.argument = calls
        self.irregular = False
        self._program: Program | None = None
        self.names = None if isinstance(calls, FunctionCall) else tuple(calls) if named else ()
        self.calls = (calls,) if isinstance(calls, FunctionCall) else tuple(calls.values())
        self.getters = tuple(
            None if call.attribute is None else Getter(call.attribute, repr(call))
            for call in self.calls
        )
        self._fold_with(tuple(call.fold(short) for call in self.calls))

    def _fold_with(self, folds: tuple[Fold, ...]) -> None:
        self.folds = folds
        self.step_order = _step_order(folds)
        self.start = tuple(value for fold in folds for value in fold.empty)
        self.places = len(self.start)
        self.hot = _hot(folds)

    def __call__(self) -> FoldSummary:
        """A new, empty summary."""
        return FoldSummary(self)

    @property
    def slots(self) -> bool:
        """Whether a subwindow may keep the state in slots, for the generated insert."""
        return all(fold.textual for fold in self.folds)

    @property
    def sliceable(self) -> bool:
        """Whether slices of a window can be merged into it."""
        return self.slots and all(fold.mergeable for fold in self.folds)

    def named(self, values: list[Any]) -> Any:
        """Values in the form of the user's argument: a single value, a dict by name, or a list."""
        if self.names is None:
            return values[0]
        return dict(zip(self.names, values, strict=True)) if self.names else values

    def subset(self, numbers: Iterable[int]) -> Plan:
        """A plan of some of the folds; the folds are shared."""
        part = copy.copy(self)
        part.names, part._program = (), None
        numbers = list(numbers)
        part.getters = tuple(self.getters[i] for i in numbers)
        part._fold_with(tuple(self.folds[i] for i in numbers))
        return part

    def program(self, sample: Any) -> Program:
        """The generated code that updates these summaries for tuples like `sample`."""
        if self._program is None:
            self._program = Program(self, sample)
        return self._program

    def recompute(self, sample: Any) -> Callable[[Sequence[Any]], Any] | None:
        """A function that folds a few tuples like `sample` from scratch; None if that is slower."""
        return self.program(sample).fold_all

    def incremental(self) -> Incremental:
        """A new summary of a sliding subwindow."""
        return Incremental(self)

    def encode(self, places: Iterable[Any]) -> list[Any]:
        """Places of state as plain data, fold by fold."""
        return [f.save(state) for f, state in zip(self.folds, self.states(places), strict=True)]

    def decode(self, saved: Iterable[Any]) -> list[Any]:
        """The places of state from what `encode` returned."""
        states = (f.load(state) for f, state in zip(self.folds, saved, strict=True))
        return [value for state in states for value in state]

    def load(self, s: Subwindow) -> FoldSummary:
        """The summary that the generated insert keeps in the slots of `s`."""
        ready = FoldSummary(self)
        ready.n = s.n
        ready.states = self.states(getattr(s, place(i)) for i in range(self.places))
        return ready

    def states(self, places: Iterable[Any]) -> list[tuple[Any, ...]]:
        """The places of state as one tuple per fold."""
        left = iter(places)
        return [tuple(next(left) for _ in fold.empty) for fold in self.folds]

    def store(self, s: Subwindow, ready: FoldSummary) -> None:
        """Put a summary back into the slots of `s`."""
        s.n = ready.n
        for i, value in enumerate(v for state in ready.states for v in state):
            setattr(s, place(i), value)

    def __repr__(self) -> str:
        if self.names == ():
            return ", ".join(map(repr, self.calls))
        return repr(self.argument)


def _hot(folds: Sequence[Fold]) -> list[int]:
    changing = [j not in fold.cold for fold in folds for j in range(len(fold.empty))]
    textual = all(len(fold.merged) == len(fold.empty) for fold in folds)
    return [i for i, hot in enumerate(changing) if hot or not textual]


def _step_order(folds: Sequence[Fold]) -> list[int]:
    """The order in which folds step, so that no state has changed if a fold refuses a value.

    First those that leave their state as it is, then a user's own, which may raise, and last those
    whose `check` has said that they will not.
    """
    return sorted(range(len(folds)), key=lambda i: (not folds[i].pure, folds[i].textual))


def _shown(attribute: Attribute) -> str:
    return repr(attribute) if isinstance(attribute, str | int) else attribute_text(attribute)


COUNT = AggregateFunction("count", CountFold, kernel="windowlib.columnar.kernels.sums:CountKernel")


def count() -> FunctionCall:
    """How many tuples."""
    return FunctionCall(COUNT)


def _sum_fold(short: bool, compensated: bool = False) -> SumFold:
    return SumFold(short and not compensated)


SUM = AggregateFunction(
    "sum", _sum_fold, kernel="windowlib.columnar.kernels.sums:SumKernel", short_form=True
)


def sum(attribute: Attribute, *, compensated: bool = False) -> FunctionCall:
    """Sum of an attribute; exact for integers and decimals.

    Floats are compensated (Neumaier) in windows of more than 128 tuples; shorter windows are
    added straight, which is faster, unless you say `compensated=True`.
    """
    return FunctionCall(SUM, attribute, _compensation(compensated))


def _mean_fold(short: bool, compensated: bool = False) -> MeanFold:
    return MeanFold(short and not compensated)


MEAN = AggregateFunction(
    "mean", _mean_fold, kernel="windowlib.columnar.kernels.sums:MeanKernel", short_form=True
)


def mean(attribute: Attribute, *, compensated: bool = False) -> FunctionCall:
    """Arithmetic mean of an attribute; `compensated` as for `sum`."""
    return FunctionCall(MEAN, attribute, _compensation(compensated))


def _compensation(wanted: bool) -> tuple[tuple[str, Any], ...]:
    return (("compensated", True),) if wanted else ()


VARIANCE = AggregateFunction(
    "variance", VarianceFold, kernel="windowlib.columnar.kernels.moments:VarianceKernel"
)


def variance(attribute: Attribute, *, ddof: int = 0) -> FunctionCall:
    """Variance of an attribute: `ddof=0` population, `ddof=1` sample (None for one value)."""
    if ddof not in (0, 1):
        msg = f"variance(ddof={ddof!r}): ddof must be 0 (population) or 1 (sample)."
        raise PolicyError(msg)
    return FunctionCall(VARIANCE, attribute, (("ddof", ddof),))


MIN = AggregateFunction("min", MinFold, kernel="windowlib.columnar.kernels.picks:MinKernel")


def min(attribute: Attribute) -> FunctionCall:
    """Smallest value of an attribute."""
    return FunctionCall(MIN, attribute)


MAX = AggregateFunction("max", MaxFold, kernel="windowlib.columnar.kernels.picks:MaxKernel")


def max(attribute: Attribute) -> FunctionCall:
    """Largest value of an attribute."""
    return FunctionCall(MAX, attribute)


SummarizerArgument = (
    type[Summarizer[Any]]
    | Callable[[], Summarizer[Any]]
    | FunctionCall
    | Mapping[str, FunctionCall]
)


def new_summarizer(factory: Callable[[], Summarizer[Any]]) -> Summarizer[Any]:
    """A new summarizer from a factory."""
    summarizer = factory()
    if not isinstance(summarizer, Summarizer):
        msg = (
            f"summarizer={attribute_text(factory)}: it made {summarizer!r}, which is no "
            f"Summarizer. Derive its class from windowlib.Summarizer."
        )
        raise PolicyError(msg)
    return summarizer


def check_summarizer(argument: object) -> None:
    """Refuse anything that is neither ready-made nor a factory of summarizers."""
    if isinstance(argument, FunctionCall | Plan):
        return
    if isinstance(argument, Mapping):
        wrong = [n for n, r in argument.items() if not isinstance(r, FunctionCall)]
        if argument and not wrong:
            return
        msg = (
            f"summarizer={argument!r}: a dict holds ready-made summarizers by name, such as "
            f'{{"n": summarizers.count()}}.'
        )
        raise PolicyError(msg)
    if isinstance(argument, Summarizer):
        name = type(argument).__name__
        msg = (
            f"summarizer={name}(...): one object cannot serve every partition. Pass the class, "
            f"summarizer={name}, or a function that makes one."
        )
        raise PolicyError(msg)
    if getattr(argument, "__module__", "") == __name__ and not isinstance(argument, type):
        name = getattr(argument, "__name__", "")
        sample = f"{name}()" if name == "count" else f'{name}("price")'
        msg = f"summarizer=summarizers.{name}: call it, as in summarizers.{sample}."
        raise PolicyError(msg)
    if getattr(argument, "insert", None) is Summarizer.insert:
        name = getattr(argument, "__name__", repr(argument))
        msg = f"summarizer={name}: it has no insert. Define insert(self, tuple_) in it."
        raise PolicyError(msg)
    wrong_class = isinstance(argument, type) and not issubclass(argument, Summarizer)
    if wrong_class or not builtins.callable(argument):
        msg = f"summarizer={argument!r}: pass a Summarizer class or one of windowlib.summarizers."
        raise PolicyError(msg)
