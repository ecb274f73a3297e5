"""An Aggregate as a value: its text, equality, pickling, explanation; and what it refuses."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle
import subprocess
import sys
from typing import Any

import pytest

from tests.helpers.aggregate_oracle import FUNCTIONS, a_stream, named, output
from windowlib import (
    KEY,
    Count,
    Delta,
    ModelError,
    PartitionAge,
    PartitionCount,
    PolicyError,
    Punct,
    SchemaError,
    Sliding,
    StateVersionError,
    Time,
    Tumbling,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg, col

N = agg.count()
X = agg.sum("x")


def by_size(row):
    return row["x"] > 1


# -- as a value ---------------------------------------------------------------------------------

OPERATORS: dict[str, Aggregate] = {
    "plain": Aggregate(Tumbling(Count(3)), n=N),
    "named": Aggregate(Tumbling(Count(3)), n=N, name="sizes"),
    "dict": Aggregate(Tumbling(Count(3)), {"name": N, "by": agg.sum("i")}, more=agg.max("i")),
    "text": Aggregate("sliding, count(3), count(2)", n=N),
    "keyed": Aggregate(Tumbling(Punct()), by=["k", "g"], n=N),
    "grouped": Aggregate(
        Sliding(Time("1s"), every=Time("2s")), group_by=["g"], n=N, partial="emit"
    ),
    "options": Aggregate(
        Tumbling(Delta("ts", 2), by="k", forget=PartitionAge("1h")),
        n=N,
        evicted_partitions="emit",
        flush_at_end=True,
        having=(N > 1) & (agg.max("i") >= 0.5),
        emit="changed",
        order_by="ts",
    ),
    "expressions": Aggregate(
        Tumbling(Count(2)), a=agg.sum(col("i") * 2) / N, b=-agg.median("i", method="lower")
    ),
    "spl": Aggregate(Sliding(Count(2)), partitionBy="k", groupBy="g", n=N),
} | {name: Aggregate(Tumbling(Count(2)), out=each.made(named)) for name, each in FUNCTIONS.items()}
PLAIN = {name: op for name, op in OPERATORS.items() if name not in ("product", "bag", "text")}


@pytest.mark.parametrize("name", PLAIN)
def test_the_text_of_an_aggregate_evaluates_to_it(name):
    scope: dict[str, Any] = {"Aggregate": Aggregate, "agg": agg, "col": col}
    exec("import datetime; from windowlib import *", scope)
    again = eval(repr(OPERATORS[name]), scope)
    assert OPERATORS[name] == again
    assert repr(OPERATORS[name]) == repr(again)
    assert hash(OPERATORS[name]) == hash(again)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_aggregate_can_be_pickled(name):
    again = pickle.loads(pickle.dumps(OPERATORS[name]))
    assert OPERATORS[name] == again
    assert OPERATORS[name].describe() == again.describe()
    items = a_stream(31, 40)
    assert str(output(OPERATORS[name], items)) == str(output(again, items))


def test_different_aggregates_are_not_equal():
    window = Tumbling(Count(3))
    others = [
        Aggregate(window, n=N),
        Aggregate(window, m=N),
        Aggregate(window, n=X),
        Aggregate(window, n=agg.sum("y")),
        Aggregate(window, n=N, group_by="g"),
        Aggregate(window, n=agg.quantile("x", 0.5)),
        Aggregate(window, n=agg.quantile("x", 0.6)),
        Aggregate(Tumbling(Count(4)), n=N),
    ]
    assert len(others) == len(set(others))
    described = {str(op.describe()) for op in others}
    assert len(others) - 1 == len(described)  # the names of outputs may change in a running query


def test_a_snapshot_is_taken_back_only_by_the_same_aggregate():
    running = Aggregate(Tumbling(Count(3)), s=X).open()
    running.insert({"x": 1})
    state = running.snapshot()
    Aggregate(Tumbling(Count(3)), s=agg.sum("x"), name="other name").open().restore(state)
    with pytest.raises(StateVersionError) as caught:
        Aggregate(Tumbling(Count(3)), s=agg.max("x")).open().restore(state)
    assert (
        'restore(state): the snapshot was written with functions=agg.sum("x"); this operator says '
        'functions=agg.max("x"). Build it as it was, or start afresh.'
    ) == str(caught.value)


@pytest.mark.parametrize("window", [Tumbling(Count(2), by="k"), Sliding(Count(4), every=Count(2))])
def test_what_is_computed_of_the_functions_may_change(window):
    rows = [{"k": "a", "x": n} for n in (1, 2, 3, 4)]

    def op(**more):
        return Aggregate(window, partial=None if isinstance(window, Tumbling) else "emit", **more)

    running = op(s=agg.sum("x"), m=agg.max("x")).open()
    running.insert_many(rows[:3])
    state = running.snapshot()
    total, most = agg.sum("x"), agg.max("x")
    for changed in (
        op(s=total, m=most, having=total > 5),
        op(renamed=total, m=most),
        op(s=total, m=most, both=total + most),
        op(s=total, m=most, name="another"),
    ):
        whole = list(replay(changed, rows))[-1]
        later, got = changed.open(), list[Any]()
        later.connect(0, got.append)
        later.restore(state)
        later.insert(rows[3])
        assert [whole] == got
    for changed in (
        op(s=total),
        op(s=total, m=most, n=agg.median("x")),
        op(s=total, m=most, having=agg.median("x") > 1),
        op(m=most, s=total),
        op(s=total, m=most, emit="changed"),
    ):
        with pytest.raises(StateVersionError, match="the snapshot was written with"):
            changed.open().restore(state)


def test_where_only_changes_come_out_the_rows_are_state():
    state = Aggregate(Tumbling(Count(2)), s=agg.sum("x"), emit="changed").open().snapshot()
    with pytest.raises(StateVersionError, match=r"written with s=agg\.sum"):
        Aggregate(Tumbling(Count(2)), t=agg.sum("x"), emit="changed").open().restore(state)


def test_the_description_is_the_same_in_every_process():
    code = (
        "from windowlib.operators import Aggregate, agg; from windowlib import *; "
        "from tests.operators.test_expressions"
        " import of_row; print(Aggregate(Tumbling(Count(2), by='k'), n=agg.sum('x') / 2, "
        "having=of_row, f=agg.max(of_row)).describe())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert 1 == len(runs)
    assert "at 0x" not in runs.pop()


def test_opening_an_aggregate_twice_gives_two_that_share_nothing():
    op = Aggregate(Tumbling(Count(2)), xs=agg.collect("x"), emit="changed", group_by="g")
    one, other = op.open(), op.open()
    got: list[Any] = []
    one.connect(0, got.append)
    other.connect(0, got.append)
    one.insert({"x": 1, "g": 1})
    other.insert({"x": 2, "g": 1})
    one.insert({"x": 3, "g": 1})
    other.insert({"x": 4, "g": 1})
    assert [{"g": 1, "xs": [1, 3]}, {"g": 1, "xs": [2, 4]}] == got


# -- explain ------------------------------------------------------------------------------------


def columns(op: Aggregate) -> list[str]:
    """What `explain` says of the outputs and their aggregates."""
    lines = op.explain().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("column"))
    return [line.removeprefix("column").strip() for line in lines[start:]]


EVERY = {
    "n": N,
    "s": X,
    "a": agg.arg_max(by="x"),
    "m": agg.median("x"),
    "d": agg.mode("x"),
    "f": agg.first("x"),
    "i": agg.custom(int, max, column="x", inverse=min),
    "c": agg.custom(int, max, column="x"),
    "q": agg.approx_quantile("x", 0.5),
}
WAYS = [
    "size of the window",
    "two stacks",
    "monotone deque",
    "sorted multiset",
    "counted multiset",
    "queue of values",
    "subtract on evict",
    "recomputed from the tuples",
    "recomputed from the tuples",
]


def test_explain_names_the_algorithm_of_each_function():
    shown = columns(Aggregate(Sliding(Delta("ts", 9)), EVERY))
    wanted = [
        f"{name} = {each!r}: {way}" for (name, each), way in zip(EVERY.items(), WAYS, strict=True)
    ]
    assert wanted == shown
    assert [f"{name} = {each!r}: running summary" for name, each in EVERY.items()] == columns(
        Aggregate(Tumbling(Count(3)), EVERY)
    )
    assert ["n = agg.count(): running summary per group"] == columns(
        Aggregate(Tumbling(Count(3)), n=N, group_by="g")
    )
    assert ['s = agg.sum("x"): slices in two stacks'] == columns(Aggregate(Sliding(Count(3)), s=X))


def test_explain_shows_the_aggregates_of_an_expression_once():
    op = Aggregate(Sliding(Time("1s")), a=X / (N + agg.count_all() * X), b=agg.count_groups())
    assert [
        'a = (agg.sum("x") / (agg.count() + (agg.count_all() * agg.sum("x"))))',
        'agg.sum("x"): two stacks',
        "agg.count(): size of the window",
        "agg.count_all(): a fact of the firing",
        "b = agg.count_groups(): a fact of the firing",
    ] == columns(op)


def test_explain_says_what_becomes_of_partial_windows():
    assert (
        "partial      skip: windows that have never been full"
        in Aggregate(Sliding(Count(3)), n=N).explain()
    )
    assert "partial" not in Aggregate(Tumbling(Count(3)), n=N).explain()


# -- what is refused ----------------------------------------------------------------------------

T, S = Tumbling(Count(3)), Sliding(Count(3))


def make(*args: Any, **kwargs: Any) -> Any:
    return lambda: Aggregate(*args, **kwargs)


BAD: list[tuple[Any, type[Exception], str]] = [
    # the window
    (
        make(Count(3), n=N),
        ModelError,
        "Aggregate(window=Count(size=3)): not a window. Pass a specification, as "
        "window=Sliding(Count(10)), or SPL text.",
    ),
    (
        make(Tumbling(Count(0)), n=N),
        ModelError,
        "Aggregate does not support Tumbling(Count(0)): a window of size 0 keeps nothing to "
        'aggregate. Only Join accepts it (a one-sided join). Use Count(1) for "the latest tuple".',
    ),
    (
        make(Sliding(Count(0)), n=N),
        ModelError,
        "Aggregate does not support Sliding(Count(0)): a window of size 0 keeps nothing to "
        'aggregate. Only Join accepts it (a one-sided join). Use Count(1) for "the latest tuple".',
    ),
    (
        make(Sliding(Count(3), every=Count(0)), n=N),
        ModelError,
        "Aggregate does not support Sliding(Count(size=3), every=Count(size=0)): a trigger of 0 "
        "never fires, so nothing would come out. Use every=Count(1) or more.",
    ),
    (
        make(Tumbling(Count(3), by=KEY), n=N),
        ModelError,
        "Aggregate(window=Tumbling(Count(size=3), by=KEY)): an operator reads its keys from the "
        'rows. Name the columns, such as by="symbol".',
    ),
    # outputs
    (
        make(T),
        ModelError,
        "Aggregate(...): no output. Name at least one, such as n=agg.count().",
    ),
    (
        make(T, N),
        ModelError,
        "Aggregate(window, agg.count()): outputs are columns by name. Write n=agg.count(), or a "
        "dict.",
    ),
    (
        make(T, {1: N}),
        ModelError,
        "Aggregate({1: ...}): a column has a name. Use a str, such as 'n'.",
    ),
    (
        make(T, {"n": N}, n=X),
        ModelError,
        "Aggregate(n=...): given twice, in the dict and as a keyword. Drop one.",
    ),
    (
        make(T, n=5),
        ModelError,
        'Aggregate(n=5): not an aggregate. Write a function of a column, such as agg.sum("x").',
    ),
    (
        make(T, n=N, groupby="g"),
        ModelError,
        "Aggregate(groupby='g'): not an aggregate. Write a function of a column, such as "
        'agg.sum("x"). Did you mean "group_by"?',
    ),
    (
        make(T, n=N, lates="port"),
        ModelError,
        "Aggregate(lates='port'): not an aggregate. Write a function of a column, such as "
        'agg.sum("x"). Did you mean "late"?',
    ),
    (
        make(T, n=agg.count),
        ModelError,
        "Aggregate(n=agg.count): not an aggregate. Call it: agg.count().",
    ),
    (
        make(T, n=agg.max),
        ModelError,
        'Aggregate(n=agg.max): not an aggregate. Call it: agg.max("x").',
    ),
    (
        make(T, n=col("x")),
        ModelError,
        'Aggregate(n=col("x")): col("x") has a value for each row, and there is one row for many. '
        'Say which: agg.last("x").',
    ),
    (
        make(T, n=X + col("y")),
        ModelError,
        'Aggregate(n=(agg.sum("x") + col("y"))): col("y") has a value for each row, and there is '
        'one row for many. Say which: agg.last("y").',
    ),
    (
        make(T, by="k", k=N),
        ModelError,
        "Aggregate(k=...): the rows have a column 'k' already, which is a key. Give this one "
        "another name.",
    ),
    (
        make(T, group_by=by_size, group=N),
        ModelError,
        "Aggregate(group=...): the rows have a column 'group' already, which is a key. Give this "
        "one another name.",
    ),
    (
        make(T, by="group", group_by=0, n=N),
        ModelError,
        "Aggregate(by='group', group_by=0): two keys would be called 'group'. Name columns instead "
        "of callables and indexes.",
    ),
    # parameters
    (
        make(T, by=N),
        ModelError,
        "Aggregate(by=agg.count()): by is a parameter. To call an output so, pass the outputs as a "
        'dict: Aggregate(window, {"by": ...}).',
    ),
    (
        make(T, n=N, name=agg.last("name")),
        ModelError,
        'Aggregate(name=agg.last("name")): name is a parameter. To call an output so, pass the '
        'outputs as a dict: Aggregate(window, {"name": ...}).',
    ),
    (
        make(T, n=N, group_by=col("g")),
        ModelError,
        'Aggregate(group_by=col("g")): group_by names a column. Write group_by="g".',
    ),
    (
        make(T, n=N, by=True),
        PolicyError,
        "Tumbling(by=True): by must be a column name, an index, a tuple of those, a callable, or "
        "KEY if you pass the key to insert.",
    ),
    (
        make(Tumbling(Count(3), by="a"), n=N, by="b"),
        ModelError,
        "Aggregate(by='b'): the window says by='a'. Drop one of them.",
    ),
    (
        make(T, n=N, group_by=[]),
        ModelError,
        'Aggregate(group_by=[]): name columns, such as group_by="side".',
    ),
    (
        make(T, n=N, group_by=True),
        ModelError,
        'Aggregate(group_by=True): name columns, such as group_by="side".',
    ),
    (
        make(S, n=N, partial="sometimes"),
        ModelError,
        "Aggregate(partial='sometimes'): unknown. Use 'skip' or 'emit'.",
    ),
    (
        make(T, n=N, partial="emit"),
        ModelError,
        "Aggregate(partial='emit'): a tumbling window is processed when it is full. Drop "
        "`partial=`, or say flush_at_end=True to see the last one.",
    ),
    (
        make(T, n=N, evicted_partitions="keep"),
        ModelError,
        "Aggregate(evicted_partitions='keep'): unknown. Use 'drop' or 'emit'.",
    ),
    (
        make(T, n=N, evicted_partitions="emit"),
        ModelError,
        'Aggregate(evicted_partitions="emit"): the window evicts no partitions. Add forget=, such '
        "as forget=PartitionAge('1h'), or drop it.",
    ),
    (
        make(T, n=N, flush_at_end="yes"),
        ModelError,
        "Aggregate(flush_at_end='yes'): unknown. Use True or False.",
    ),
    (
        make(S, n=N, flush_at_end=True),
        ModelError,
        "Aggregate(flush_at_end=True): a sliding window is processed at its triggers, and has "
        'nothing left at the end. Drop it, or say partial="emit".',
    ),
    (
        make(T, n=N, emit="sometimes"),
        ModelError,
        "Aggregate(emit='sometimes'): unknown. Use 'always' or 'changed'.",
    ),
    (
        make(T, n=N, order_by=KEY),
        PolicyError,
        'Tumbling(order_by=KEY): name columns, such as order_by="ts".',
    ),
    (
        make(T, n=N, having="n > 1"),
        ModelError,
        "Aggregate(having='n > 1'): not a condition. Write an expression such as agg.count() > 1, "
        "or a function of the row.",
    ),
    (
        make(T, n=N, having=col("x") > 1),
        ModelError,
        'Aggregate(having=(col("x") > 1)): col("x") has a value for each row, and there is one row '
        'for many. Say which: agg.last("x").',
    ),
    # SPL's names
    (
        make(T, n=N, by="a", partitionBy="b"),
        ModelError,
        "Aggregate(partitionBy='b'): the same as by, which is 'a'. Say it once.",
    ),
    (
        make(S, n=N, partial="skip", aggregatePartialWindows=True),
        ModelError,
        "Aggregate(aggregatePartialWindows='emit'): the same as partial, which is 'skip'. Say it "
        "once.",
    ),
    (
        make(T, n=N, partitionBy=False),
        PolicyError,
        "Tumbling(by=False): by must be a column name, an index, a tuple of those, a callable, or "
        "KEY if you pass the key to insert.",
    ),
    # functions
    (
        lambda: agg.sum(1.5),  # type: ignore[arg-type]
        ModelError,
        "agg.sum(1.5): 1.5 is no column. Give a name, an index, a callable, or an expression such "
        'as col("price") * col("qty").',
    ),
    (
        lambda: agg.nth("x", "first"),  # type: ignore[arg-type]
        ModelError,
        "agg.nth(k='first'): a place is a whole number; 0 is the first value, -1 the last.",
    ),
    (
        lambda: agg.nth("x", True),
        ModelError,
        "agg.nth(k=True): a place is a whole number; 0 is the first value, -1 the last.",
    ),
    (
        lambda: agg.var("x", ddof=2),
        ModelError,
        "agg.var(ddof=2): say 1 for a sample or 0 for a population.",
    ),
    (
        lambda: agg.std("x", ddof=-1),
        ModelError,
        "agg.std(ddof=-1): say 1 for a sample or 0 for a population.",
    ),
    (
        lambda: agg.cov("x", "y", ddof=None),  # type: ignore[arg-type]
        ModelError,
        "agg.cov(ddof=None): say 1 for a sample or 0 for a population.",
    ),
    (lambda: agg.top(0, by="x"), ModelError, "agg.top(k=0): say how many, 1 or more."),
    (
        lambda: agg.top("x", by="x"),  # type: ignore[arg-type]
        ModelError,
        "agg.top(k='x'): say how many, 1 or more.",
    ),
    (
        lambda: agg.median("x", method="middle"),  # type: ignore[arg-type]
        ModelError,
        "agg.median(method='middle'): use one of linear, lower, higher, nearest.",
    ),
    (
        lambda: agg.quantile("x", 95),
        ModelError,
        "agg.quantile(q=95): a fraction between 0 and 1, such as 0.95.",
    ),
    (
        lambda: agg.quantile("x", float("nan")),
        ModelError,
        "agg.quantile(q=nan): a fraction between 0 and 1, such as 0.95.",
    ),
    (
        lambda: agg.approx_quantile("x", -0.1),
        ModelError,
        "agg.approx_quantile(q=-0.1): a fraction between 0 and 1, such as 0.95.",
    ),
    (
        lambda: agg.approx_quantile("x", 0.5, size=4),
        ModelError,
        "agg.approx_quantile(size=4): a whole number from 8 to 1048576.",
    ),
    (
        lambda: agg.approx_quantile("x", 0.5, size=1 << 30),
        ModelError,
        "agg.approx_quantile(size=1073741824): a whole number from 8 to 1048576.",
    ),
    (
        lambda: agg.approx_count_distinct("x", precision=3),
        ModelError,
        "agg.approx_count_distinct(precision=3): a whole number from 4 to 18.",
    ),
    (
        lambda: agg.approx_count_distinct("x", precision=12.0),  # type: ignore[arg-type]
        ModelError,
        "agg.approx_count_distinct(precision=12.0): a whole number from 4 to 18.",
    ),
    (
        lambda: agg.approx_top_k("x", 0),
        ModelError,
        "agg.approx_top_k(k=0): say how many, from 1 to 131072.",
    ),
    (
        lambda: agg.approx_top_k("x", 3, capacity=5),
        ModelError,
        "agg.approx_top_k(capacity=5): a whole number from 6, twice k, to 1048576.",
    ),
    (
        lambda: agg.custom(0, max),  # type: ignore[arg-type]
        ModelError,
        "agg.custom(init=0): not a function. Write init=lambda: 0.",
    ),
    (
        lambda: agg.custom(int, max, merge=1),  # type: ignore[arg-type]
        ModelError,
        "agg.custom(merge=1): not a function. Write merge=lambda a, b: a + b.",
    ),
]


@pytest.mark.parametrize(("wrong", "kind", "message"), BAD, ids=[case[2][:60] for case in BAD])
def test_what_makes_no_sense_is_refused_when_it_is_built(wrong, kind, message):
    with pytest.raises(kind) as caught:
        wrong()
    assert kind is type(caught.value)
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (
            Aggregate(T, s=agg.sum("notionl")),
            'agg.sum("notionl"): no such column. Columns: k, notional. Did you mean "notional"?',
        ),
        (
            Aggregate(T, s=agg.cov("notional", "qty")),
            'agg.cov("notional", "qty", ddof=1): no such column. Columns: k, notional.',
        ),
        (
            Aggregate(T, n=N, group_by=["k", "side"]),
            "group_by=('k', 'side'): no such column. Columns: k, notional.",
        ),
        (Aggregate(T, n=N, by="key"), "by='key': no such column. Columns: k, notional."),
        (
            Aggregate(T, n=N, having=agg.max("size") > 1),
            'agg.max("size"): no such column. Columns: k, notional.',
        ),
    ],
)
def test_a_missing_column_is_named_before_anything_runs(op, message):
    with pytest.raises(SchemaError) as caught:
        list(replay(op, [{"k": 1, "notional": 2}]))
    assert message == str(caught.value)


def test_a_column_that_is_missing_later_is_named_too():
    op = Aggregate(Tumbling(Count(2)), s=X)
    with pytest.raises(SchemaError, match=r'agg\.sum\("x"\): the tuple .* has no .x.\. Columns: y'):
        list(replay(op, [{"x": 1}, {"y": 1}]))


def test_a_group_that_cannot_be_a_key_is_refused():
    with pytest.raises(SchemaError) as caught:
        list(replay(Aggregate(T, n=N, group_by="g"), [{"g": [1]}]))
    assert (
        "group_by='g' of [1]: a list cannot be told apart from others quickly. Use a plain value, "
        "or a tuple of them."
    ) == str(caught.value)


def test_many_partitions_are_forgotten_with_their_last_rows():
    window = Sliding(Count(1), by="k", forget=PartitionCount(2))
    op = Aggregate(window, n=N, emit="changed")
    running = op.open()
    for key in range(50):
        running.insert({"k": key})
    assert 2 == len(running.snapshot()["state"])
    got = list(replay(op, [{"k": 1}, {"k": 1}, {"k": 2}, {"k": 3}, restart(), {"k": 1}]))
    assert [1, 2, 3, 1] == [row["k"] for row in got]
