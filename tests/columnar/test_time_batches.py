"""Time policies over batches: the same as advancing to each row's time, and inserting it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import Aggregate, agg
from windowlib import (
    Count,
    Delta,
    Operator,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
)
from windowlib.columnar import host, ticks

SCHEMA = pa.schema(
    [("t", pa.timestamp("us")), ("k", pa.string()), ("a", pa.int64()), ("x", pa.int64())]
)
PUNCT = "punctuation"
MICROS = 1_000_000
START = datetime(1970, 1, 1)


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """Batches go to arrays however short they are, whatever was declined before."""
    monkeypatch.setattr(host, "WORTH", 1)
    monkeypatch.setattr(host, "PATIENCE", 1)
    monkeypatch.setattr(ticks, "FEW", 0)


class Looker(Operator):
    """Sends what its handler sees: the key, the columns of the window, and the time."""

    model = OperatorModel(windows=[Tumbling, Sliding], punctuation_out="generating")
    content = "arrow"

    def _seen(self, window: Any, key: Any) -> None:
        self.emit(key=key, x=[row["x"] for row in window[key]], now=window.now)


class Flushes(Looker):
    def before_flush(self, window: Any, key: Any) -> None:
        self._seen(window, key)


class Triggers(Looker):
    def on_trigger(self, window: Any, key: Any) -> None:
        self._seen(window, key)


def operator(spec, looks, partial="skip"):
    """Functions of the tuples, or a handler that looks at them."""
    if looks:
        return Flushes(spec) if isinstance(spec, Tumbling) else Triggers(spec)
    more = {"partial": partial} if isinstance(spec, Sliding) else {}
    made: Any = {"n": agg.count(), "sum": agg.sum("x"), "max": agg.max("x"), "mean": agg.mean("x")}
    return Aggregate(spec, **made, first=agg.first("x"), **more)


# -- what is done to a window -------------------------------------------------------------------


class Batch(NamedTuple):
    rows: list[dict[str, Any]]


class Single(NamedTuple):
    row: dict[str, Any]


class Advance(NamedTuple):
    to: int


class Mark(NamedTuple):
    pass


class Restart(NamedTuple):
    pass


@dataclass
class Side:
    """A running operator, and what has come out of it."""

    operator: Operator
    batches: bool
    broken: frozenset[int] = frozenset()  # which rows and punctuations the one who reads refuses
    out: list[Any] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)

    def __post_init__(self):
        self.running = self.opened()

    def opened(self):
        running = self.operator.open()
        running.connect(0, self.read, lambda: self.read(PUNCT))
        return running

    def read(self, row):
        self.out.append(row)
        if len(self.out) in self.broken:
            raise LookupError(f"not {row}")

    @property
    def window(self):
        return self.running.operator.containers[0]

    def one(self, row):
        self.running.advance(row["t"])
        self.running.insert(row)

    def do(self, op):
        """Do it, and give what is raised."""
        try:
            self.do_whole(op)
        except LookupError as error:
            return str(error)
        return None

    def do_whole(self, op):
        if isinstance(op, Batch) and self.batches:
            self.batch(op.rows)
        elif isinstance(op, Batch):
            for row in op.rows:
                self.one(row)
        elif isinstance(op, Single):
            self.one(op.row)
        elif isinstance(op, Advance):
            self.running.advance_micros(op.to)
        elif isinstance(op, Mark):
            self.running.punctuate()
        elif self.batches:
            state = self.running.snapshot()
            self.running = self.opened()
            self.running.restore(state)

    def batch(self, rows):
        self.ran["batches"] += 1
        self.running.insert_batch(pa.RecordBatch.from_pylist(rows, SCHEMA), times="t")
        self.ran["columnar"] += self.window._ahead
        if not self.window._ahead:
            self.ran[self.window._batches.reason] += 1

    def state(self):
        """All that is saved; of tuples only what is read, of slices not how they are stacked."""
        sliced = getattr(self.window, "_slices", None) is not None
        saved = self.running.snapshot()
        (window,) = saved["windows"]
        for part in (*window["parts"], *window["asleep"]):
            part["data"] = [row["x"] for row in part["data"]]
            part["summary"] = None if sliced else part["summary"]
        return saved


def same(spec, looks, partial, ops, ran, broken=frozenset()):
    """Do the same to both engines; what comes out and what is kept must be the same."""
    made = operator(spec, looks, partial)
    one, many = Side(made, False, broken), Side(made, True, broken)
    for op in ops:
        assert one.do(op) == many.do(op)
        assert one.out == many.out
        assert one.window.now == many.window.now
        assert one.running.now == many.running.now
        assert one.window.next_due == many.window.next_due
    ran.update(many.ran)
    ran["fired"] += len(many.out)
    assert one.state() == many.state()
    many.window._check()


# -- anything -----------------------------------------------------------------------------------

periods = st.sampled_from([0.5, 1, 2, 5]).map(lambda s: Time(timedelta(seconds=s)))
counts = st.integers(1, 5).map(Count)
deltas = st.integers(0, 6).map(lambda d: Delta("a", d))
ages = st.sampled_from([0, 1, 3, 8, 60]).map(lambda s: PartitionAge(timedelta(seconds=s)))
forgets = st.one_of(
    st.none(),
    st.none(),
    ages,
    st.integers(2, 4).map(PartitionCount),
    st.integers(3, 30).map(TupleCount),
)


@st.composite
def specs(draw):
    """A window in which time plays a part: in its policies, or in the age of its partitions."""
    by = draw(st.sampled_from([None, "k", "k"]))
    forget = draw(forgets) if by else None
    aged = isinstance(forget, PartitionAge)
    if draw(st.integers(0, 2)) == 0:
        policies = [periods, st.just(Punct())] + [counts, deltas] * aged
        return Tumbling(draw(st.one_of(*policies)), by=by, forget=forget)
    evict = draw(st.one_of(periods, counts, deltas))
    every = draw(st.one_of(periods, counts, deltas) if isinstance(evict, Time) or aged else periods)
    return Sliding(evict, every=every, by=by, forget=forget)


steps = st.sampled_from([0, 0, 0, 0, 1, 250_000, 500_000, 500_000, MICROS, 3 * MICROS, 9 * MICROS])


@st.composite
def streams(draw, spec):
    """Rows with times that stand still, go on and jump, in batches and one by one."""
    ops: list[Any] = []
    now = a = x = 0
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["batch"] * 6 + ["single", "advance", "mark", "restart"]))
        rows = []
        for _ in range(draw(st.integers(1, 12)) if kind == "batch" else 1):
            now, a, x = now + draw(steps), a + draw(st.integers(0, 3)), x + 1
            key = draw(st.sampled_from(["p", "q", "r", None]))
            rows.append({"t": START + timedelta(microseconds=now), "k": key, "a": a, "x": x})
        if kind == "batch":
            ops.append(Batch(rows))
        elif kind == "single":
            ops.append(Single(rows[0]))
        elif kind == "advance":
            ops.append(Advance(now))
        elif kind == "restart":
            ops.append(Restart())
        elif isinstance(spec.evict, Punct):
            ops.append(Mark())
    return ops


@settings(deadline=None, max_examples=600)
@given(st.data())
def whatever_comes(ran, data):
    spec = data.draw(specs())
    looks, partial = data.draw(st.booleans()), data.draw(st.sampled_from(["skip", "emit"]))
    same(spec, looks, partial, data.draw(streams(spec)), ran)


def test_batches_give_what_advancing_and_inserting_each_row_gives():
    ran: Counter[str] = Counter()
    whatever_comes(ran)
    assert ran["columnar"] > 0.7 * ran["batches"] > 0
    assert ran["fired"]
