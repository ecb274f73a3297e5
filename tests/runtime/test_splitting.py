"""Which columns operators need, and which keep their work apart: as tables, and as a proof."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Graph,
    Operator,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
)
from windowlib.operators import (
    Aggregate,
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    Join,
    Lookup,
    Pair,
    Punctor,
    Sort,
    Split,
    Union,
    agg,
    col,
)

BY = Tumbling(Count(3), by="k")
RECENT = Sliding(Count(3), by="k")
MINUTE = Sliding(Time("60s"))


class Seen(Operator):
    """Sends what a window holds when it is full."""

    model = OperatorModel(windows=[Tumbling, Sliding], punctuation_in="window_bound")

    def before_flush(self, window, key):
        self.emit(k=key, xs=[t["x"] for t in window[key]])

    def on_trigger(self, window, key):
        self.emit(k=key, xs=[t["x"] for t in window[key]])


class Remembering(Seen):
    def snapshot(self):
        return 1


class Waiting(Seen):
    def on_punctuation(self, port):
        self.emit("punctuation")


class OneByOne(Operator):
    def on_tuple(self, tuple_, port):
        self.emit(tuple_)


class OneByOneByKey(OneByOne):
    def splits_by(self, port):
        return ("k",)

    def passes(self, column, port):
        return column == "k"


class Two(Operator):
    model = OperatorModel(ports_in=2, windows=[Tumbling])


class Loud(Aggregate):
    """Works as Aggregate does, but says so."""

    def before_flush(self, window, key):
        self.emit("loud")


class Preset(Aggregate):
    def __init__(self):
        super().__init__(BY, n=agg.count())


class CountingFilter(Filter):
    def on_tuple(self, tuple_, port):
        self.emit(tuple_)


def one(window, **outputs):
    options = {name: outputs.pop(name) for name in ("late", "group_by") if name in outputs}
    return Aggregate(window, outputs or {"n": agg.count()}, **options)


def joined(left, right, **options):
    return Join(left=left, right=right, **options)


def double(row):
    return {**row, "x": 2 * row["x"]}


SPLITS = [
    (Seen(BY), ("k",)),
    (Seen(Sliding(Count(3), by=("k", "j"))), ("k", "j")),
    (Seen(Tumbling(Count(3))), ()),
    (Seen(Tumbling(Count(3), by=lambda t: t["k"])), ()),
    (Seen(Tumbling(Count(3), by=("k", 1))), ()),
    (Seen(Tumbling(Punct(), by="k")), ()),
    (Seen(Tumbling(Count(3), by="k", forget=PartitionCount(9))), ("k",)),
    (Remembering(BY), ()),
    (Waiting(BY), ()),
    (OneByOne(), ()),
    (OneByOneByKey(), ("k",)),
    (Two(BY, BY), ()),
    (one(BY), ("k",)),
    (one(Sliding(Time("9s"), every=Time("3s"), by="k")), ("k",)),
    (one(BY, group_by="j"), ("k",)),
    (one(Tumbling(Delta("x", 3), by="k"), late="port"), ("k",)),
    (one(Tumbling(Punct(), by="k")), ()),
    (one(Tumbling(Count(3))), ()),
    (one(Tumbling(Count(3), by=lambda t: t["k"])), ()),
    (Preset(), ("k",)),
    (Loud(BY, n=agg.count()), ()),
    (Sort("x", window=BY), ("k",)),
    (Sort("x", window=RECENT), ("k",)),
    (Sort("x", window=Tumbling(Count(3))), ()),
    (Sort("x", window=Tumbling(Punct(), by="k")), ()),
    (Batch(Count(3), by="k"), ("k",)),
    (Batch(Count(3)), ()),
    (Batch(Punct(), by="k"), ()),
    (Dedup("j", within=Count(3)), ()),
    (Dedup("j", within=Count(3), by="k"), ("k",)),
    (Dedup("k", within=Delta("x", 3)), ()),
    (Dedup("k", within=Time("9s")), ("k",)),
    (Dedup(("k", "j"), within=Time("9s"), keep="last"), ("k", "j")),
    (Dedup("j", within=Time("9s"), by="k"), ("k", "j")),
    (Dedup("j", within=Time("9s"), by="k", forget=PartitionAge("1h")), ("k",)),
    (Dedup(within=Time("9s")), ()),
    (Dedup(within=Time("9s"), by="k"), ("k",)),
    (Dedup(lambda t: t["k"], within=Time("9s")), ()),
    (Dedup("j", within=Time("9s"), by=lambda t: t["k"]), ()),
    (Filter("x"), None),
    (CountingFilter("x"), ()),
    (Functor(double), None),
    (Functor(keep="k"), None),
    (Split("side", ports=["a", "b"]), None),
    (Union(2), None),
    (Delay(Count(3)), ()),
    (Delay(Time("9s")), ()),
    (Punctor("x"), None),
    (Punctor(on_change="x"), ()),
    (Punctor(on_change="x", by="k"), ("k",)),
    (Punctor(gap=Delta("x", 3), by=["k", "j"]), ("k", "j")),
    (Punctor(on_change="x", by=lambda t: t["k"]), ()),
    (Barrier(), ()),
    (Barrier(on="k"), ("k",)),
    (Pair(on=["k", "j"]), ("k", "j")),
    (Barrier(on=lambda t: t["k"]), ()),
    (joined(RECENT, RECENT, on="k"), ("k",)),
    (joined(RECENT, RECENT, on=("k", "j")), ("k",)),
    (joined(RECENT, RECENT, on="j"), ()),
    (joined(RECENT, RECENT), ()),
    (joined(RECENT, Sliding(Count(3)), on="k"), ()),
    (joined(RECENT, Sliding(Count(0)), on="k"), ("k",)),
    (joined(MINUTE, MINUTE, on=("k", "j")), ("k", "j")),
    (joined(MINUTE, Sliding(Delta("x", 3)), on="k"), ()),
    (joined(MINUTE, MINUTE, on=lambda t: t["k"]), ()),
    (joined(MINUTE, MINUTE, on="k", how="left"), ("k",)),
    (joined(MINUTE, MINUTE, on="k", how="right"), ()),
    (joined(MINUTE, MINUTE, on="k", how="right", suffixes=("_left", "")), ("k",)),
    (joined(MINUTE, MINUTE, on="k", how="outer"), ()),
    (joined(MINUTE, MINUTE, on="k", how="outer", unmatched="port"), ("k",)),
    (joined(MINUTE, MINUTE, on="k", how="outer", select=lambda a, b: a or b), ("k",)),
    (joined(MINUTE, MINUTE, on="k", how="anti"), ("k",)),
    (Lookup(on="k"), ("k",)),
    (Lookup(on=("k", "j"), how="inner"), ("k", "j")),
]


@pytest.mark.parametrize(("operator", "expected"), SPLITS, ids=repr)
def test_an_operator_says_by_which_columns_its_work_is_kept_apart(operator, expected):
    ports = range(len(operator.model.inputs))
    assert [operator.splits_by(port) for port in ports] == [expected for _ in ports]


def test_each_port_has_its_own_names_in_the_same_order():
    join = joined(
        Sliding(Count(3), by=("a", "b")),
        Sliding(Count(3), by=("y", "x")),
        left_on=("b", "c", "a"),
        right_on=("x", "z", "y"),
    )
    assert (join.splits_by(0), join.splits_by(1)) == (("b", "a"), ("x", "y"))
    lookup = Lookup(left_on="user", right_on="id")
    assert (lookup.splits_by(0), lookup.splits_by(1)) == (("user",), ("id",))
    pair = Pair(on={"a": ("k", "k"), "b": ("x", "y")}, inputs=["a", "b"])
    assert (pair.splits_by(0), pair.splits_by(1)) == (("k", "k"), ("x", "y"))


NEEDS = [
    (Seen(BY), None),
    (OneByOne(), None),
    (one(BY), ("k",)),
    (one(Tumbling(Count(3))), ()),
    (one(Tumbling(Delta("ts", 3), by=("k", "j"), order_by=("ts", "no")), s=agg.sum("x")),
     ("k", "j", "ts", "x", "no")),
    (one(Tumbling(Count(3), order_by=lambda t: t["ts"])), None),
    (one(Tumbling(Count(3), by=lambda t: t["k"])), None),
    (one(Tumbling(Delta(lambda t: t["ts"], 3))), None),
    (one(BY, group_by=("j", "side")), ("k", "j", "side")),
    (one(BY, group_by=lambda t: t["j"]), None),
    (one(Tumbling(Delta("x", 3)), late="error"), ("x",)),
    (one(Tumbling(Delta("x", 3)), late="port"), None),
    (one(BY, v=agg.sum(col("p") * col("q")) / agg.sum("q")), ("k", "p", "q")),
    (one(BY, v=agg.sum(col(0))), None),
    (one(BY, v=agg.sum(1)), None),
    (one(BY, v=agg.sum(lambda t: t["x"])), None),
    (one(BY, v=agg.cov("x", "y")), ("k", "x", "y")),
    (one(BY, v=agg.top(2, by="x")), None),
    (one(BY, v=agg.top(2, "y", by="x")), ("k", "y", "x")),
    (one(BY, v=agg.arg_max(by="x")), None),
    (one(BY, v=agg.collect()), None),
    (one(BY, v=agg.collect("x")), ("k", "x")),
    (one(BY, v=agg.custom(int, max)), None),
    (one(BY, v=agg.custom(int, max, column="x")), ("k", "x")),
    (one(BY, v=agg.count_all(), g=agg.count_groups()), ("k",)),
    (Aggregate(BY, n=agg.count(), having=agg.max("x") > 1), ("k", "x")),
    (Aggregate(BY, n=agg.count(), having=lambda row: row["n"] > 1), ("k",)),
    (Preset(), ("k",)),
    (Loud(BY, n=agg.count()), None),
    (Sort("x", window=BY), None),
    (Dedup("k", within=Count(3)), None),
    (Batch(Count(3), by="k"), None),
    (Filter("x"), None),
    (Functor(double), None),
    (Functor(drop="x"), None),
    (Functor(y="x"), None),
    (Functor(keep=["k", "x"], y="z"), ("k", "x", "z")),
    (Functor(keep=["k", "x"], y=lambda t: t["z"]), None),
    (Barrier(on="k"), None),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "expected"), NEEDS, ids=repr)
def test_an_operator_says_which_columns_it_needs(operator, expected):
    assert operator.needs(0) == expected


def test_the_right_rows_of_a_semi_join_need_only_what_finds_them():
    sides = Sliding(Count(3)), Sliding(Delta("ts", 3), by="j")
    semi = joined(*sides, on="k", how="semi", within=Delta("x", 1))
    assert (semi.needs(0), semi.needs(1)) == (None, ("j", "ts", "k", "x"))
    assert joined(*sides, on="k").needs(1) is None
    assert joined(*sides, on="k", how="anti", where=lambda a, b: a["z"] < b["z"]).needs(1) is None


@pytest.mark.parametrize("operator", [op for op, needs in NEEDS if needs], ids=repr)
def test_rows_without_the_other_columns_give_the_same(operator):
    names = ("k", "j", "side", "ts", "no", "x", "y", "z", "p", "q")
    rows = [dict.fromkeys(names, n) | {"k": n % 2, "j": n % 2} for n in range(20)]
    lean = [{name: row[name] for name in operator.needs(0)} for row in rows]
    assert sent(operator, rows) == sent(operator, lean) != []


def sent(operator, rows):
    running = operator.open()
    found: list[Any] = []
    running.connect(0, found.append)
    running.insert_many(rows)
    running.finish()
    return found


# -- graphs ---------------------------------------------------------------------------------------


def tail(operator):
    """A second operator that can be split by k and by j."""
    return operator.then(Sort("x", window=Tumbling(Count(2), by=("k", "j"))))


GRAPHS = [
    (Filter("x").then(Functor(double)), None),
    (Filter("x").then(one(BY)), ("k",)),
    (one(BY).then(Filter("n")), ("k",)),
    (Functor(double).then(one(BY)), ()),
    (tail(Functor(drop="j")), ("k",)),
    (tail(Functor(keep=["k", "x"], j=lambda t: 1)), ("k",)),
    (tail(Functor(k="k", j="x")), ("k",)),
    (tail(Dedup("x", within=Count(3), by=("j", "k"))), ("j", "k")),
    (tail(Sort("x", window=BY)), ("k",)),
    (tail(Aggregate(Tumbling(Count(2), by=("j", "k")), x=agg.sum("x"))), ("j", "k")),
    (tail(Aggregate(Tumbling(Count(2), by="k"), x=agg.sum("x"), j=agg.last("j"))), ("k",)),
    (tail(Batch(Count(2), by="k")), ("k",)),
    (tail(Batch(Count(2), by="k", function=list)), ()),
    (tail(CountingFilter("x")), ()),
    (tail(OneByOneByKey()), ("k",)),
    (tail(Seen(BY)), ()),
    (tail(Delay(Count(2))), ()),
    (Punctor("x").then(one(Tumbling(Punct(), by="k"))), ()),
    (Filter("x").then(tail(Sort("x", window=BY))), ("k",)),
]


@pytest.mark.parametrize(("graph", "expected"), GRAPHS, ids=[repr(g) for g, _ in GRAPHS])
def test_a_graph_is_split_by_what_splits_all_its_operators(graph, expected):
    assert graph.splits_by(0) == expected


def test_all_inputs_of_a_graph_are_split_by_the_same_columns():
    graph = Graph(
        inputs=["a", "b"],
        both=(Join(left=RECENT, right=RECENT, on="k"), "a", "b"),
        sums=(one(Tumbling(Count(2), by=("j", "k"))), "both"),
    )
    assert (graph.splits_by(0), graph.splits_by(1)) == (("k",), ("k",))
    other = Graph(inputs=["a", "b"], both=(Lookup(left_on="k", right_on="id"), "a", "b"))
    assert (other.splits_by(0), other.splits_by(1)) == ((), ())


def test_select_hides_which_columns_a_join_passes():
    def graph(**options):
        join = joined(RECENT, RECENT, on="k", **options)
        return Graph(inputs=["a", "b"], join=(join, "a", "b"), sums=(one(BY), "join"))

    assert graph().splits_by(0) == ("k",)
    assert graph(how="semi").splits_by(1) == ("k",)
    assert graph(select=lambda a, b: a).splits_by(0) == ()


def test_what_is_put_aside_passes_whole():
    graph = Graph(
        inputs="a",
        sums=(one(Tumbling(Delta("x", 2), by=("k", "j")), late="port"), "a"),
        late=(Sort("x", window=Tumbling(Count(2), by="j")), "sums.late"),
    )
    assert graph.splits_by(0) == ("j",)
    pairs = Graph(
        inputs=["a", "b"],
        pairs=(Pair(on=("k", "j")), "a", "b"),
        rest=(Sort("x", window=BY), "pairs.unpaired"),
        main=(Sort("x", window=BY), "pairs"),
    )
    assert pairs.splits_by(1) == ("k",)


def test_an_input_whose_rows_meet_nothing_may_go_anywhere():
    graph = Graph(
        inputs=["a", "b"],
        sums=(one(BY), "a"),
        large=(Filter("x"), "b"),
        all=(Union(2), "sums", "large"),
    )
    assert (graph.splits_by(0), graph.splits_by(1)) == (("k",), None)


def test_a_graph_in_a_graph_passes_what_its_operators_pass():
    inner = Filter("x").then(Functor(drop="j"))
    assert (inner.passes("k", 0), inner.passes("j", 0)) == (True, False)
    graph = Graph(inputs="a", inner=(inner, "a"), sorted=(Sort("x", window=BY), "inner"))
    assert graph.splits_by(0) == ("k",)


def test_a_graph_needs_what_its_readers_need():
    graph = Graph(
        inputs=["a", "b"],
        sums=(one(BY, s=agg.sum("x")), "a"),
        kept=(Functor(keep=["j", "k"]), "a"),
        all=(Sort("x", window=BY), "b"),
    )
    assert (graph.needs(0), graph.needs(1)) == (("k", "x", "j"), None)
    through = Graph(inputs="a", outputs=["sums", "a"], sums=(one(BY), "a"))
    assert through.needs(0) is None


# -- the proof ------------------------------------------------------------------------------------

PLACES = 3
PROVEN = [
    Seen(BY),
    Seen(Sliding(Count(3), every=Count(2), by=("k", "j"))),
    one(BY, s=agg.sum("x"), xs=agg.collect("x")),
    one(Sliding(Count(3), every=Count(2), by="k"), s=agg.sum("x")),
    one(Sliding(Time("9s"), every=Time("4s"), by="k"), s=agg.sum("x"), xs=agg.collect("x")),
    one(Tumbling(Time("5s"), by="k"), xs=agg.collect("x")),
    one(Tumbling(Count(3) | Time("5s"), by="k"), xs=agg.collect("x")),
    one(Tumbling(Delta("x", 3), by="k"), late="port", xs=agg.collect("x")),
    Aggregate(BY, m=agg.max("x"), emit="changed", group_by="j", flush_at_end=True),
    Sort("x", window=BY, flush_at_end=True),
    Sort("x", window=Sliding(Count(2), by="k")),
    Sort("x", window=Sliding(Time("5s"), by="k")),
    Sort("x", window=Sliding(Delta("x", 3), by="k")),
    Batch(Count(3) | Time("7s"), by="k"),
    Dedup("j", within=Count(2), by="k", duplicates="port"),
    Dedup(("k", "j"), within=Time("5s"), duplicates="port"),
    Dedup(("k", "j"), within=Time("5s"), keep="last", renew=True),
    Dedup("j", within=Time("5s"), by="k", keep="last"),
    Dedup("j", within=Delta("x", 3), by="k"),
    Punctor(on_change="x", by="k"),
    Pair(on="k", select=lambda a, b: {"k": a["k"], "a": a, "b": b}),
    Barrier(on=("k", "j")),
    joined(RECENT, RECENT, on="k"),
    joined(RECENT, Sliding(Count(0)), on="k", how="outer", unmatched="port"),
    joined(RECENT, Sliding(Delta("x", 3), by="k"), on=("k", "j"), how="left"),
    joined(Sliding(Time("5s")), Sliding(Time("9s")), on=("k", "j"), how="left"),
    joined(Sliding(Time("5s")), Sliding(Time("9s")), on="k", how="right", suffixes=("_l", "")),
    joined(MINUTE, RECENT, on="k", how="outer", unmatched="port", within=Delta("x", 2)),
    joined(Sliding(Time("5s")), RECENT, on="k", how="semi"),
    joined(Sliding(Time("5s")), RECENT, on="k", how="anti", where=lambda a, b: a["x"] < b["x"]),
    Lookup(on=("k", "j")),
    Lookup(on="k", how="anti"),
    tail(Dedup("x", within=Count(2), by=("j", "k"))),
    tail(Aggregate(Tumbling(Count(2), by=("j", "k")), x=agg.sum("x"))),
    Filter("x").then(Sort("x", window=Sliding(Time("5s"), by="k")), one(BY, xs=agg.collect("x"))),
    Graph(
        inputs=["a", "b"],
        both=(Join(left=RECENT, right=MINUTE, on="k", how="left"), "a", "b"),
        sums=(one(Tumbling(Time("5s"), by="k"), xs=agg.collect("x")), ["both", "b"]),
    ),
]  # fmt: skip

small = st.integers(0, 4)
arrivals = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 1), small, st.integers(0, 3)),
    max_size=40,
)


class Place:
    """A running operator, and what it has sent: rows by port."""

    def __init__(self, operator):
        self.running = operator.open()
        self.rows: dict[int, list[Any]] = defaultdict(list)
        for port in range(len(operator.model.outputs)):
            self.running.connect(port, self.rows[port].append)

    def by_key(self, names):
        """Rows by port and key; a column that a row lacks is null."""
        found = defaultdict(list)
        for port, rows in self.rows.items():
            for row in rows:
                key = row["k"]
                named = key if isinstance(key, tuple) else tuple(row[name] for name in names)
                whole = {name: value for name, value in row.items() if value is not None}
                found[port, named].append(whole)
        return found


def run(operator, stream, places, names):
    """Rows by port and key, of an operator in one place or in several."""
    found = [Place(operator) for _ in range(places)]
    inputs, now = len(operator.model.inputs), 0
    for port, k, j, x, seconds in stream:
        row = {"k": k, "j": j, "x": x}
        now += seconds
        for place in found:
            place.running.advance(now)
        at = hash(tuple(row[name] for name in names)) % places
        found[at].running.insert(row, port % inputs)
    for place in found:
        place.running.advance(now + 7)
        place.running.finish()
    together: dict[Any, list[Any]] = defaultdict(list)
    for place in found:
        for key, rows in place.by_key(names).items():
            together[key] += rows
    return together


@pytest.mark.parametrize("operator", PROVEN, ids=repr)
@settings(max_examples=examples(30))
@given(stream=arrivals)
def test_split_by_its_columns_an_operator_sends_the_same_rows(operator, stream):
    names = operator.splits_by(0)
    assert names
    assert run(operator, stream, 1, names) == run(operator, stream, PLACES, names)
