"""One operator twice over the same input: rows one by one, and whole batches. And what differs."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.columnar.random_streams import Stream
from tests.columnar.random_windows import LIKE_ZERO, Near, nearness
from windowlib.operators import Aggregate
from windowlib.runtime.running import Running
from windowlib.summaries.folds import Fold
from windowlib.summaries.summarizers import Plan

PUNCT = "punctuation"


@dataclass
class Log:
    """What came out, what the state was at every restart and at the end, who took the batches."""

    out: list[Any] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    types: list[Any] = field(default_factory=list)
    batches: int = 0
    columnar: int = 0


class Run:
    """An operator at work, whose output may raise for some of the rows."""

    def __init__(self, definition: Aggregate, fails: Iterable[int] = ()) -> None:
        self.definition, self.fails, self.log = definition, set(fails), Log()
        self.number = 0
        self.running = self._opened()

    def _opened(self) -> Running:
        running = self.definition.open()
        running.connect(0, self._came, lambda: self._came(PUNCT))
        return running

    def _came(self, item: Any) -> None:
        self.number += 1
        if self.number in self.fails:
            raise ValueError(f"item {self.number} is not wanted")
        self.log.out.append(item)

    @property
    def window(self) -> Any:
        """Its window."""
        return self.running.operator.containers[0]

    def do(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call it, and write down what it raises."""
        return written(self.log.out, call, *arguments)

    def insert_rows(self, batch: Any) -> None:
        """Take the rows of a batch one by one."""
        self.do(self.running.insert_many, batch.to_pylist())

    def insert_batch(self, batch: Any) -> None:
        """Take a batch as it is."""
        self.do(self.running.insert_batch, batch)
        self.count(batch)

    def process(self, batch: Any) -> None:
        """Take a batch as it is, and what it makes as another."""
        made = self.do(self.running.process_batch, batch)
        if made is not None:
            self.log.types.append(made.schema)
            self.log.out += made.to_pylist()
        self.count(batch)

    def process_rows(self, batch: Any) -> None:
        """The same by the event engine."""
        held_back(self.window)
        self.process(batch)

    def count(self, batch: Any) -> None:
        """Note who took it."""
        self.log.batches += batch.num_rows > 0
        self.log.columnar += self.window.state.in_arrays and batch.num_rows > 0

    def over(self, items: Iterable[Any], take: Callable[[Any], None]) -> Log:
        """All of a stream, its batches by `take`; and the state at the end, and what comes then."""
        for what, given in items:
            self.step(what, given, take)
        self.log.states.append(self.running.snapshot())
        self.do(self.running.finish)
        return self.log

    def step(self, what: str, given: Any, take: Callable[[Any], None]) -> None:
        """One step of a stream."""
        running = self.running
        if what == "batch":
            take(given)
        elif what == "many":
            self.do(running.insert_many, given.to_pylist())
        elif what == "insert":
            for row in given.to_pylist():
                self.do(running.insert, row)
        elif what == "punctuate":
            self.do(running.punctuate)
        elif what == "advance":
            self.do(running.advance, running.now + 3)
        else:
            state = running.snapshot()
            self.log.states.append(state)
            self.running = self._opened()
            self.running.restore(pickle.loads(pickle.dumps(state)))


def written(log: list[Any], call: Callable[..., Any], *arguments: Any) -> Any:
    """Call something; what it raises goes into a log, with its notes."""
    try:
        return call(*arguments)
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        log.append(("error", type(error).__name__, str(error), notes))


def held_back(window: Any) -> None:
    """Leave all batches to the event engine."""
    window.state.handover()._pause = 10**9


def through_window(
    made: Callable[[], Any], items: Iterable[Any], columnar: bool, out: list[Any]
) -> Log:
    """A window by itself over a stream; `out` is what its handlers write."""
    window, log = made(), Log(out)
    for what, given in items:
        if what in ("insert", "many"):
            written(out, window.insert_many, given.to_pylist())
        elif what == "batch":
            if not columnar:
                held_back(window)
            written(out, window.insert_batch, given)
            log.batches += given.num_rows > 0
            log.columnar += window.state.in_arrays and given.num_rows > 0
        elif what == "punctuate":
            written(out, window.punctuate)
        else:
            log.states.append(window.snapshot())
            window = made()
            window.restore(pickle.loads(pickle.dumps(log.states[-1])))
    log.states.append(window.snapshot())
    return log


# -- comparison -----------------------------------------------------------------------------------


def same(a: Any, b: Any, near: Near | None = None) -> bool:
    """Whether two values are equal and of one type; floats as `near` as they have to be."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name], near) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y, near) for x, y in zip(a, b, strict=True))
    if a != a:
        return bool(b != b)
    if isinstance(a, float) and near is not None:
        return a == b or math.isclose(a, b, rel_tol=near.relative, abs_tol=near.absolute)
    return bool(a == b) and repr(a) == repr(b)


def compare(wanted: Log, got: Log, near: Near | None = None) -> None:
    """Everything in order, and the same state, to the last bit or `near` it."""
    for place, (a, b) in enumerate(zip(wanted.out, got.out, strict=False)):
        assert same(a, b), (place, a, b)
    assert len(wanted.out) == len(got.out)
    assert same(wanted.states, got.states, near), (wanted.states, got.states)


class Judge:
    """Says whether two runs of an operator over a stream agree."""

    def __init__(self, definition: Aggregate, stream: Stream, items: Iterable[Any]) -> None:
        outputs = definition.outputs
        scale = scale_of(items)
        self.columns = {
            name: nearness(each, stream, scale) for name, each in outputs.expressions.items()
        }
        leaves = [outputs.aggregates[which] for which in outputs.calls]
        self.folds = [nearness(leaf, stream, scale) for leaf in leaves]
        grouped = definition.group_by is not None
        self.plan = None if grouped else Plan(outputs.calls, short=False, named=False)

    def check(self, wanted: Log, got: Log) -> None:
        """Everything in order, and the same state."""
        for place, (a, b) in enumerate(zip(wanted.out, got.out, strict=False)):
            assert self.row(a, b), (place, a, b)
        assert len(wanted.out) == len(got.out), (wanted.out[-3:], got.out[-3:])
        assert wanted.types == got.types
        for one, other in zip(wanted.states, got.states, strict=True):
            assert same(one["state"], other["state"], LIKE_ZERO), (one["state"], other["state"])
            (a,), (b,) = one["windows"], other["windows"]
            self.windows(a, b)

    def row(self, a: Any, b: Any) -> bool:
        """Whether two rows agree, each column as exactly as it has to."""
        if not isinstance(a, dict) or not isinstance(b, dict):
            return same(a, b)
        return list(a) == list(b) and all(same(a[n], b[n], self.columns.get(n)) for n in a)

    def windows(self, a: Any, b: Any) -> None:
        """Whether two snapshots of a window say the same."""
        for name in ("v", "fingerprint", "spec", "start", "now", "tick", "left", "asleep", "lru"):
            assert same(a[name], b[name]), (name, a[name], b[name])
        keys, others = ([part["key"] for part in each["parts"]] for each in (a, b))
        assert same(keys, others), (keys, others)
        for x, y in zip(a["parts"], b["parts"], strict=True):
            self.parts(x, y)

    def parts(self, a: Any, b: Any) -> None:
        """Whether two partitions say the same."""
        for name in a:
            if name not in ("data", "summary"):
                assert same(a[name], b[name]), (a["key"], name, a[name], b[name])
        assert len(a["data"]) == len(b["data"])
        for x, y in zip(a["data"], b["data"], strict=True):
            # Columns that nobody reads need not be kept.
            assert same({name: x[name] for name in y}, y), (a["key"], x, y)
        self.summaries(a["summary"], b["summary"])

    def summaries(self, a: Any, b: Any) -> None:
        """Whether two summaries stand for the same values."""
        if self.plan is None or a is None or b is None:
            assert type(a) is type(b)
        elif len(a) == 1:
            self.ready(self.plan, a[0], b[0])
        else:  # slices: those that are closed, and the open one
            assert len(a[0]) == len(b[0])
            for one, other in zip(a[0], b[0], strict=True):
                self.ready(self.plan, [MANY, one], [MANY, other])
            self.ready(self.plan, a[2], b[2])

    def ready(self, plan: Plan, a: Any, b: Any) -> None:
        """Whether the folds of two summaries have the same values."""
        assert a[0] == b[0]
        for i, fold in enumerate(plan.folds):
            value, other = (_value(fold, n, saved[i]) for n, saved in (a, b))
            assert same(value, other, self.folds[i]), (fold.name, a, b)


MANY = 10**6
"""A number of tuples that is more than any slice has nulls."""


def _value(fold: Fold, n: int, saved: Any) -> Any:
    """What a saved state stands for; nothing has come if there are no tuples."""
    return fold.value(n, fold.load(saved)) if n and not isinstance(saved, str) else saved


def scale_of(items: Iterable[Any]) -> float:
    """The size of the largest number in a stream."""
    sizes = [1.0]
    for _, given in items:
        for row in [] if given is None else given.to_pylist():
            numbers = [value for value in row.values() if isinstance(value, int | float)]
            sizes += [float(abs(value)) for value in numbers if math.isfinite(value)]
    return max(sizes)
