"""Every kind of operator in every kind of configuration, with rows for it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib import (
    Count,
    Delta,
    Graph,
    Keyed,
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
from windowlib.operators import (
    Aggregate,
    AsOf,
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    IntervalJoin,
    Join,
    Lookup,
    Pair,
    Panes,
    Punctor,
    QuantileSlack,
    Reorder,
    Sort,
    Split,
    agg,
)

SCHEMA = pa.schema(
    {"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "x": pa.float64(), "n": pa.int64()}
)
CUTS = 3
SIZE = 480
BY: dict[str, Any] = {"by": "k", "order_by": "ts"}
ALL: dict[str, Any] = {"order_by": "ts"}
OUT: dict[str, Any] = {"n": agg.count(), "s": agg.sum("x"), "last": agg.last("ts")}


class Spread(Operator):
    """Highest less lowest, and how many windows of the key there were: state of its own."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "k string, spread double, windows bigint"

    def __init__(self, *windows, name=None):
        super().__init__(*windows, name=name)
        self.windows_of: dict[Any, int] = {}

    def splits_by(self, port):
        return ("k",)

    def before_flush(self, window, key):
        self._tell(window, key)

    def on_trigger(self, window, key):
        self._tell(window, key)

    def _tell(self, window, key):
        if not len(window[key]):
            return  # of which there is one for each bucket
        xs = [t["x"] for t in window[key] if t["x"] is not None]
        self.windows_of[key] = self.windows_of.get(key, 0) + 1
        self.emit(k=key, spread=max(xs) - min(xs) if xs else None, windows=self.windows_of[key])

    def snapshot(self):
        return list(self.windows_of.items())

    def restore(self, state):
        self.windows_of = dict(state)


class Middle(Operator):
    """The median of a column, read as an array."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"
    output = "k string, median double, rows int"

    def before_flush(self, window, key):
        self._tell(window, key)

    def on_trigger(self, window, key):
        self._tell(window, key)

    def _tell(self, window, key):
        values = window.column("n", key)
        self.emit(k=key, median=float(np.median(values)), rows=len(values))


class Alternate(Operator):
    """No windows; state of its own, two outputs."""

    model = OperatorModel(ports_out=["odd", "even"])
    output = {"odd": "ts bigint, k string", "even": "ts bigint, x double"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.count = 0

    def on_tuple(self, tuple_, port):
        self.count += 1
        if self.count % 2:
            self.emit(ts=tuple_["ts"], k=tuple_["k"])
        else:
            self.emit_to("even", ts=tuple_["ts"], x=tuple_["x"])

    def snapshot(self):
        return self.count

    def restore(self, state):
        self.count = state


class Rise(Operator):
    """How the number of a key's windows grows, and the sum of its column: declared state."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "k string, windows bigint, rise double"
    state = Keyed(windows=0, before=0.0, sums=list)

    def before_flush(self, window, key):
        if not window.size(key):
            return  # a tick without any partition, which is another thing in every bucket
        mine = self.state[key]
        total = sum((t["x"] for t in window[key] if t["x"] is not None), 0.0)
        mine.windows += 1
        mine.sums.append(total)
        self.emit(k=key, windows=mine.windows, rise=total - mine.before)
        mine.before = total

    on_trigger = before_flush


class Sides(Operator):
    """Two windows and one state: how often each input has fired for a key."""

    model = OperatorModel(ports_in=["left", "right"], windows=[Sliding])
    output = "k string, fired array<bigint>, held array<bigint>"
    state = Keyed(fired=[0, 0])

    def on_trigger(self, window, key):
        mine = self.state[key]
        mine.fired[window.port] += 1
        held = [each.size(key) for each in self.containers if each is not None]
        self.emit(k=key, fired=list(mine.fired), held=held)


class Quiet(Operator):
    """One row for each burst of a key, when nothing has come for a while: state and timers."""

    output = "k string, rows bigint, ended double"
    state = Keyed(by="k", rows=0)

    def on_tuple(self, row, port):
        self.state[row["k"]].rows += 1
        self.set_timer(row["k"], after="9s")

    def on_timer(self, key, now):
        self.emit(k=key, rows=self.state.pop(key).rows, ended=now)


@dataclass(frozen=True)
class Case:
    """An operator, the column that keeps its output in order, and how it is attached."""

    operator: Operator
    key: str | tuple[str, ...] | None = "k"
    orders: tuple[str | None, ...] = ("ts",)
    attach: dict[str, Any] = field(default_factory=dict)

    @property
    def sides(self) -> int:
        return len(self.operator.model.inputs)


def rows(seed: int, size: int = SIZE, back: bool = False) -> list[dict[str, Any]]:
    """Rows with null keys, null values and ties, in the order of `ts`, or with steps back."""
    rng = random.Random(seed)
    ts, made = 0, []
    for number in range(size):
        ts += rng.choice([1, 1, 2, 7])
        made.append(
            {
                "ts": ts - (rng.choice([0, 0, 0, 30]) if back else 0),
                "k": rng.choice(["a", "a", "b", "c", "d", None]),
                "j": rng.randrange(4),
                "x": rng.choice([None, round(rng.uniform(-9, 9), 2), 0.1]),
                "n": number if not back else rng.randrange(9),
            }
        )
    return made


def kept(cut: int, side: int = 0) -> list[dict[str, Any]]:
    """The rows of one input in one micro-batch; sides overlap in time, and cuts do not."""
    per = SIZE // CUTS
    found = rows(side)[cut * per : (cut + 1) * per]
    if side == 1:
        return [{"ts": r["ts"], "k": r["k"], "j": r["j"], "y": r["n"] * 0.5} for r in found]
    return found


RIGHT = pa.schema({"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "y": pa.float64()})


def late_rows(cut: int) -> list[dict[str, Any]]:
    """Rows of which some come late, also within a micro-batch."""
    per = SIZE // CUTS
    return rows(7, back=True)[cut * per : (cut + 1) * per]


def pairs(left=None, right=None, **options):
    left = Sliding(Count(4), **BY) if left is None else left
    return Join(left=left, right=Sliding(Count(3), **BY) if right is None else right, **options)


RECENT = Sliding(Count(6), **ALL)
TWO: dict[str, Any] = {"orders": ("ts", "ts")}

ONE_INPUT: dict[str, Case] = {
    "tumbling count": Case(Aggregate(Tumbling(Count(7), **BY), OUT)),
    "tumbling delta": Case(Aggregate(Tumbling(Delta("ts", 40), **BY), OUT)),
    "sliding count": Case(Aggregate(Sliding(Count(9), every=Count(2), **BY), OUT)),
    "sliding count, every row": Case(Aggregate(Sliding(Count(5), **BY), OUT)),
    "sliding count, delta": Case(Aggregate(Sliding(Count(9), every=Delta("ts", 20), **BY), OUT)),
    "sliding delta": Case(Aggregate(Sliding(Delta("ts", 50), every=Count(3), **BY), OUT)),
    "sliding delta, delta": Case(
        Aggregate(Sliding(Delta("ts", 50), every=Delta("ts", 20), **BY), OUT)
    ),
    "without a key": Case(Aggregate(Sliding(Count(12), every=Count(5), **ALL), OUT), key=None),
    "two keys": Case(
        Aggregate(Tumbling(Count(4), by=("k", "j"), order_by="ts"), OUT), key=("k", "j")
    ),
    "groups": Case(Aggregate(Tumbling(Count(20), **BY), OUT, group_by="j")),
    "having": Case(Aggregate(Tumbling(Count(5), **BY), OUT, having=agg.sum("x") > 0)),
    "partial": Case(Aggregate(Sliding(Count(30), every=Count(4), **BY), OUT, partial="emit")),
    "changed": Case(
        Aggregate(Sliding(Count(3), **BY), low=agg.min("j"), high=agg.max("j"), emit="changed")
    ),
    "many functions": Case(
        Aggregate(
            Sliding(Count(15), every=Count(5), **BY),
            mean=agg.mean("x"),
            sd=agg.std("x"),
            kinds=agg.count_distinct("j"),
            median=agg.median("n"),
            values=agg.collect("j"),
            most=agg.max("x"),
        )
    ),
    "partition eviction, one bucket": Case(
        Aggregate(
            Tumbling(Count(9), **BY, forget=PartitionCount(3)), OUT, evicted_partitions="emit"
        ),
        key=None,
        attach={"buckets": 1},
    ),
    "tuple eviction, one bucket": Case(
        Aggregate(Tumbling(Count(9), **BY, forget=TupleCount(20)), OUT, evicted_partitions="emit"),
        key=None,
        attach={"buckets": 1},
    ),
    "many buckets": Case(Aggregate(Tumbling(Count(4), **BY), OUT), attach={"buckets": 7}),
    "a key of its own": Case(
        Aggregate(Tumbling(Count(4), by=("k", "j"), order_by="ts"), OUT), attach={"key": "k"}
    ),
    "sort": Case(Sort("x", "ts", window=Tumbling(Count(8), **BY))),
    "progressive sort": Case(Sort("n", "ts", window=Sliding(Count(5), **BY))),
    "sort of all": Case(Sort("x", "ts", window=Tumbling(Count(25), **ALL)), key=None),
    "dedup": Case(Dedup("j", within=Count(2), by="k"), orders=(None,)),
    "dedup, duplicates": Case(
        Dedup("j", within=Delta("ts", 9), by="k", duplicates="port"), orders=(None,)
    ),
    "filter": Case(Filter("x", rejected="port"), orders=(None,)),
    "functor": Case(Functor(keep=["k", "n"]), orders=(None,)),
    "split": Case(Split("j", ports=["zero", "one", "two", "three"]), orders=(None,)),
    "batch": Case(Batch(Count(6), by="k"), orders=(None,)),
    "delay": Case(Delay(Count(3)), key=None, orders=(None,)),
    "handlers": Case(Spread(Tumbling(Count(5), **BY))),
    "handlers, sliding": Case(Spread(Sliding(Count(5), every=Count(2), **BY))),
    "handlers with columns": Case(Middle(Tumbling(Count(6), **BY))),
    "handlers with columns, sliding": Case(Middle(Sliding(Count(6), every=Count(3), **BY))),
    "declared state": Case(Rise(Tumbling(Count(5), **BY))),
    "declared state, sliding": Case(Rise(Sliding(Delta("ts", 30), every=Count(3), **BY))),
    "no windows": Case(Alternate(), key=None, orders=(None,)),
    "one output of two": Case(Alternate(), key=None, orders=(None,), attach={"port": "even"}),
    "a chain": Case(
        Aggregate(Tumbling(Count(3), **BY), s=agg.sum("n"), ts=agg.last("ts")).then(
            Aggregate(Sliding(Count(4), every=Count(2), by="k"), m=agg.max("s"), t=agg.last("ts"))
        )
    ),
    "a chain with punctuation": Case(
        Sort("x", "ts", window=Tumbling(Count(10), **ALL)).then(
            Aggregate(Tumbling(Punct()), low=agg.min("x"), n=agg.count(), first=agg.first("ts"))
        ),
        key=None,
    ),
    "a punctor before windows": Case(
        Punctor(on_change="j").then(Aggregate(Tumbling(Punct()), n=agg.count(), j=agg.last("j"))),
        key=None,
        orders=(None,),
        attach={"order_by": None},
    ),
}

LATE: dict[str, Case] = {
    "late rows kept": Case(
        Aggregate(Tumbling(Delta("ts", 40), by="k", order_by=None), OUT), orders=(None,)
    ),
    "late rows aside": Case(
        Aggregate(Tumbling(Delta("ts", 40), by="k", order_by=None), OUT, late="port"),
        orders=(None,),
    ),
    "reordered, late rows aside": Case(
        Reorder("ts", slack=QuantileSlack(drop=0.1, recent=50), late="port", by="k").then(
            Aggregate(Tumbling(Delta("ts", 40), by="k", order_by=None), OUT, late="error")
        ),
    ),
    "panes": Case(
        Panes("ts", size=40, every=20, slack=30, start="from", by="k").then(
            Aggregate(Tumbling(Punct(), by="k"), OUT)
        ),
    ),
}

AT_THE_END: dict[str, Case] = {
    "flush at the end": Case(Aggregate(Tumbling(Count(7), **BY), OUT, flush_at_end=True)),
    "sort, flush at the end": Case(
        Sort("x", "ts", window=Tumbling(Count(9), **BY), flush_at_end=True)
    ),
}

TWO_INPUTS: dict[str, Case] = {
    "inner": Case(pairs(on="k", partition_by="k"), **TWO),
    "left": Case(pairs(on="k", partition_by="k", how="left"), **TWO),
    "outer": Case(pairs(on="k", partition_by="k", how="outer"), **TWO),
    "semi": Case(pairs(on="k", partition_by="k", how="semi"), **TWO),
    "anti": Case(pairs(on="k", partition_by="k", how="anti"), **TWO),
    "unmatched": Case(pairs(on=["k", "j"], how="outer", unmatched="port"), **TWO),
    "on a column that does not split": Case(pairs(RECENT, RECENT, on="j"), key=None, **TWO),
    "one-sided": Case(pairs(Sliding(Count(0), **BY), on="k", partition_by="k", how="left"), **TWO),
    "band": Case(pairs(RECENT, RECENT, on="k", within=Delta("ts", 5)), key=None, **TWO),
    "lookup": Case(Lookup(on="k"), orders=(None, None)),
    # In one bucket, so that the watermarks are those of the whole inputs.
    "as of": Case(AsOf("ts", on="k", slack=9), attach={"buckets": 1}, **TWO),
    "as of, forward": Case(
        AsOf("ts", on="k", direction="forward", tolerance=20, how="inner", late="port"),
        attach={"buckets": 1},
        **TWO,
    ),
    "interval": Case(
        IntervalJoin("ts", before=9, after=5, on="k", how="left", unmatched="port"),
        attach={"buckets": 1},
        **TWO,
    ),
    "declared state, two inputs": Case(
        Sides(Sliding(Count(6), **BY), Sliding(Count(4), **BY)), **TWO
    ),
    "pair": Case(Pair(on="k"), orders=(None, None)),
    "barrier": Case(Barrier(on="k"), orders=(None, None)),
    "graph": Case(
        Graph(
            inputs=["l", "r"],
            left=(Aggregate(Tumbling(Count(2), **BY), s=agg.sum("n"), ts=agg.last("ts")), "l"),
            right=(Aggregate(Tumbling(Count(2), **BY), y=agg.max("y"), ts=agg.last("ts")), "r"),
            both=(
                Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k"),
                "left",
                "right",
            ),
        ),
        key=None,
        **TWO,
    ),
}

TIMED: dict[str, Case] = {
    "tumbling time": Case(Aggregate(Tumbling(Time("15s"), **BY), OUT)),
    "tumbling count or time": Case(Aggregate(Tumbling(Count(9) | Time("25s"), **BY), OUT)),
    "sliding time": Case(Aggregate(Sliding(Time("25s"), every=Time("5s"), **BY), OUT)),
    "sliding count, every time": Case(Aggregate(Sliding(Count(9), every=Time("5s"), **BY), OUT)),
    "sliding time, every count": Case(Aggregate(Sliding(Time("25s"), every=Count(4), **BY), OUT)),
    "handlers and time": Case(Spread(Sliding(Time("12s"), every=Time("6s"), **BY))),
    "declared state and time": Case(Rise(Tumbling(Time("15s"), **BY))),
    "timers": Case(Quiet(), orders=(None,)),
    "sort, time": Case(Sort("x", "ts", window=Tumbling(Time("15s"), **BY))),
    "dedup, time": Case(Dedup("j", within=Time("12s"), by="k"), key=("k", "j"), orders=(None,)),
    "delay, time": Case(Delay(Time("12s")), key=None, orders=(None,)),
    "age": Case(
        Aggregate(
            Tumbling(Count(50), **BY, forget=PartitionAge("15s")), OUT, evicted_partitions="emit"
        ),
        key=None,
        attach={"buckets": 1},
    ),
}
