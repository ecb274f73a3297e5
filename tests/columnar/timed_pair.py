"""One stream for two running operators: row by row, and in batches with arrival times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from windowlib import Operator, OperatorModel, Sliding, Tumbling
from windowlib.operators import Aggregate, agg

SCHEMA = pa.schema(
    {"t": pa.timestamp("us"), "k": pa.string(), "a": pa.int64(), "x": pa.int64(), "g": pa.int64()}
)
PUNCT = "punctuation"
EPOCH = datetime(1970, 1, 1)


def at(seconds: float) -> datetime:
    """A point in time, as rows have it."""
    return EPOCH + timedelta(microseconds=round(seconds * 1e6))


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Rows as a batch."""
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


class Looker(Operator):
    """Sends what its handler sees: the key, the tuples of the window, and the time."""

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


PLANS: dict[str, dict[str, Any]] = {
    "numbers": {
        "n": agg.count(),
        "sum": agg.sum("x"),
        "max": agg.max("x"),
        "mean": agg.mean("x"),
        "first": agg.first("k"),
    },
    "all values": {"median": agg.median("x"), "list": agg.collect("x"), "some": agg.first("a")},
    "groups": {"group_by": "g", "n": agg.count(), "sum": agg.sum("x"), "median": agg.median("x")},
    "condition": {"having": agg.count() > 1, "sum": agg.sum("x") + agg.count()},
}
KINDS = ("looks", *PLANS)


def operator(spec: Any, kind: str, partial: str = "skip") -> Operator:
    """A handler that looks at the tuples, or functions of them."""
    if kind == "looks":
        return Flushes(spec) if isinstance(spec, Tumbling) else Triggers(spec)
    more: dict[str, Any] = {"partial": partial} if isinstance(spec, Sliding) else {}
    return Aggregate(spec, **PLANS[kind], **more)


# -- what is done to a window -------------------------------------------------------------------


class Batch(NamedTuple):
    """Rows that say when they arrive."""

    rows: list[dict[str, Any]]


class Now(NamedTuple):
    """Rows that arrive now."""

    rows: list[dict[str, Any]]


class Single(NamedTuple):
    """One row, at its time."""

    row: dict[str, Any]


class Advance(NamedTuple):
    """The clock moves to a time in seconds."""

    to: float


class Mark(NamedTuple):
    """A punctuation."""


class Restart(NamedTuple):
    """The operator that takes batches goes on in a copy."""


Op = Batch | Now | Single | Advance | Mark | Restart


@dataclass
class Side:
    """A running operator, and what has come out of it."""

    operator: Operator
    batches: bool
    broken: frozenset[int] = frozenset()  # which rows and punctuations the one who reads refuses
    out: list[Any] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.running = self.opened()

    def opened(self) -> Any:
        running = self.operator.open()
        running.connect(0, self.read, lambda: self.read(PUNCT))
        return running

    def read(self, row: Any) -> None:
        self.out.append(row)
        if len(self.out) in self.broken:
            raise LookupError(f"not {row}")

    @property
    def window(self) -> Any:
        return self.running.operator.containers[0]

    def do(self, op: Op) -> str | None:
        """Do it, and give what is raised."""
        try:
            self.do_whole(op)
        except LookupError as error:
            return str(error)
        return None

    def do_whole(self, op: Op) -> None:
        running = self.running
        if isinstance(op, Batch | Now) and self.batches:
            self.batch(op)
        elif isinstance(op, Batch | Now):
            for row in op.rows:
                if isinstance(op, Batch):
                    running.advance(row["t"])
                running.insert(row)
        elif isinstance(op, Single):
            running.advance(op.row["t"])
            running.insert(op.row)
        elif isinstance(op, Advance):
            running.advance(op.to)
        elif isinstance(op, Mark):
            running.punctuate()
        elif self.batches:
            state = running.snapshot()
            self.running = self.opened()
            self.running.restore(state)

    def batch(self, op: Batch | Now) -> None:
        self.ran["batches"] += 1
        self.running.insert_batch(batch_of(op.rows), times="t" if isinstance(op, Batch) else None)
        self.ran["columnar"] += self.window.state.in_arrays

    def state(self) -> Any:
        """All that is saved; of tuples only what is read, of slices not how they are stacked."""
        sliced = getattr(self.window, "_slices", None) is not None
        saved = self.running.snapshot()
        (window,) = saved["windows"]
        for part in (*window["parts"], *window["asleep"]):
            part["data"] = [row.get("x") for row in part["data"]]
            part["summary"] = None if sliced else part["summary"]
        return saved


def same(
    made: Operator, ops: list[Op], ran: Counter[str], broken: frozenset[int] = frozenset()
) -> None:
    """Do the same to both; what comes out, what is due and what is kept must be the same."""
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
    many.window.state.check()
