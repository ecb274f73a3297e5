"""Groups and conditions over whole batches: row for row what single inserts give."""

import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Count, Delta, Punct, SchemaError, Tumbling
from windowlib.columnar import firing_groups, handover
from windowlib.columnar.arrays import ledger
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.ledger import Ragged
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.engines import summaries
from windowlib.columnar.firing_groups import group_extents, over_groups
from windowlib.columnar.firings import concat_results, take_results, truth
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.kernels.functions import functions_of
from windowlib.operators import Aggregate, agg, col
from windowlib.operators.aggregate.groups import GroupedFoldSummary
from windowlib.operators.aggregate.output_batch import aggregate_batch
from windowlib.window.consumer import Decline

NAN = float("nan")
P = "punctuation"
EPOCH = datetime(2024, 5, 1)


@pytest.fixture(autouse=True)
def _any_batch_is_worth_it(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)


# -- the same rows both ways --

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "b": pa.bool_(),
        "g": pa.int64(),
        "h": pa.float64(),
        "day": pa.timestamp("us"),
        "ts": pa.int64(),
        "i": pa.int64(),
        "f": pa.float64(),
        "c": pa.float64(),
        "d": pa.decimal128(9, 2),
        "s": pa.string(),
    }
)

FUNCTIONS = {
    "n": agg.count(),
    "values": agg.count("i"),
    "total": agg.sum("i"),
    "sum": agg.sum("f"),
    "money": agg.sum("d"),
    "mean": agg.mean("f"),
    "mean_i": agg.mean("i"),
    "mean_d": agg.mean("d"),
    "weighted": agg.weighted_mean("f", weight="i"),
    "std": agg.std("f"),
    "var": agg.var("f"),
    "cov": agg.cov("c", "i"),
    "corr": agg.corr("c", "i"),
    "low": agg.min("f"),
    "high": agg.max("f"),
    "low_d": agg.min("d"),
    "latest": agg.max("day"),
    "first": agg.first("s"),
    "last": agg.last("s"),
    "best": agg.arg_max("s", by="f"),
    "worst": agg.arg_min("s", by="i"),
    "best_row": agg.arg_max(by="i"),
    "ties": agg.max_count("i"),
    "product": agg.sum(col("i") * col("i")),
    "share": agg.count() / agg.count_all(),
    "all": agg.count_all(),
    "groups": agg.count_groups(),
    "sizes": agg.count_by_group(),
    "ratio": agg.sum("i") / agg.count("i"),
    "either": (agg.sum("i") > 2) | (agg.count() > 3),
}
CONDITIONS = {
    "none": None,
    "expression": agg.count() > 1,
    "null": agg.sum("i") >= 2,
    "several": (agg.count_groups() > 1) & (agg.max("f") != 1.5),
    "number": agg.sum("i"),
    "text": agg.first("s"),
    "function": lambda row: row["n"] % 2 == 1,
}
GROUPINGS = ["g", "h", "s", "b", "day", "d", ("g",), ("g", "h"), ("s", "b", "g"), "k"]
PARTITIONS = [None, "k", ("k", "b"), "g"]
WINDOWS = [Count(1), Count(3), Count(8), Count(25), Delta("ts", 0), Delta("ts", 4), Delta("ts", 15)]

a_row = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "b": st.sampled_from([True, False, None]),
        "g": st.sampled_from([1, 2, 7, None]),
        "h": st.sampled_from([0.0, 1.5, NAN, None]),
        "day": st.sampled_from([EPOCH, EPOCH + timedelta(1), None]),
        "ts": st.integers(0, 3),
        "i": st.sampled_from([-1, 0, 1, 2, 3, None]),
        "f": st.sampled_from([0.1, 1.5, -2.0, 1e15, NAN, math.inf, None]),
        "c": st.sampled_from([0.5, 1.25, -3.0, None]),
        "d": st.sampled_from([Decimal("0.10"), Decimal("-3.25"), None]),
        "s": st.sampled_from(["ant", "bee", "", None]),
    }
)


def in_time(rows):
    """The rows with `ts` as the distance to the one before."""
    now = 0
    for row in rows:
        now += row["ts"]
        yield {name: now if name == "ts" else row[name] for name in SCHEMA.names}


def batch(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def opened(op, out):
    running = op.open()
    running.connect(0, out.append, lambda: out.append(P))
    return running


def one_by_one(op, rows):
    out: list[Any] = []
    running = opened(op, out)
    running.insert_many(rows)
    return out, running


def ahead(running):
    """Whether the window's state is in arrays; without that nothing is tested."""
    (window,) = running._live
    assert window.state.in_arrays, window.state.batches.reason
    return window.state.batches.engine


def alike(a, b):
    """Equal, of equal types, float sums to the last digits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-14)
    return bool(a == b)


def open_groups(running):
    """Keys, groups and sizes of what is open, in order."""
    parts = running.snapshot()["windows"][0]["parts"]
    if running.operator.group_by is None:
        return [(part["key"], part["n"]) for part in parts]
    return [
        (part["key"], part["n"], [(group, n) for group, (n, _) in part["summary"][0]])
        for part in parts
    ]


def differing(one, other):
    """The columns in which two rows differ, or both."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [(name, one[name], other[name]) for name in one if not alike(one[name], other[name])]
    return one, other


def check(found, expected):
    assert len(found) == len(expected)
    for at, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert alike(one, other), (at, differing(one, other))


# A row that holds a NaN does not pass from the event engine to arrays.
PASSED_ON = sorted(FUNCTIONS.keys() - {"best_row"})


@st.composite
def a_case(draw):
    window = Tumbling(draw(st.sampled_from(WINDOWS)), by=draw(st.sampled_from(PARTITIONS)))
    names = draw(st.lists(st.sampled_from(PASSED_ON), min_size=1, max_size=6, unique=True))
    having = CONDITIONS[draw(st.sampled_from(sorted(CONDITIONS)))]
    outputs = {name: FUNCTIONS[name] for name in {**dict.fromkeys(names), "n": None}}
    group_by = draw(st.sampled_from([*GROUPINGS, None]))
    rows = list(in_time(draw(st.lists(a_row, min_size=1, max_size=60))))
    steps = draw(
        st.lists(
            st.tuples(st.integers(1, 20), st.sampled_from(["batch"] * 4 + ["restart", "insert"])),
            min_size=1,
            max_size=12,
        )
    )
    return Aggregate(window, outputs, group_by=group_by, having=having), rows, steps


@settings(max_examples=examples(400))
@given(a_case())
def test_batches_in_any_cuts_give_what_single_rows_give(case):
    op, rows, steps = case
    expected, event = one_by_one(op, rows)
    out: list[Any] = []
    running, at = opened(op, out), 0
    for size, what in [*steps, (len(rows), "batch")]:
        part = rows[at : at + size]
        at += size
        if what == "insert":
            for row in part:
                running.insert(row)
        elif part:
            running.insert_batch(batch(part))
            ahead(running)
        if what == "restart":
            saved = running.snapshot()
            running = opened(op, out)
            running.restore(saved)
    check(out, expected)
    assert repr(open_groups(running)) == repr(open_groups(event))
    for each in (running, event):  # what they hold comes out later
        each.insert_many([{**row, "ts": row["ts"] + rows[-1]["ts"]} for row in rows])
    check(out, expected)


@pytest.mark.parametrize("policy", [Count(40), Delta("ts", 20)])
@pytest.mark.parametrize("group_by", ["g", ("g", "h"), "s"])
@pytest.mark.parametrize("by", [None, "k"])
def test_every_function_in_groups_of_many_rows(policy, group_by, by):
    rng = np.random.default_rng(5)
    rows = [
        {
            "k": rng.choice(["a", "b", "c"]).item(),
            "b": None,
            "g": int(rng.integers(0, 9)) or None,
            "h": rng.choice([1.0, 2.0, NAN]).item(),
            "day": EPOCH + timedelta(hours=int(rng.integers(0, 99))),
            "ts": int(rng.integers(0, 2)),
            "i": int(rng.integers(-5, 5)) or None,
            "f": float(rng.normal()) * 10 ** int(rng.integers(-3, 12)),
            "c": float(rng.normal()),
            "d": Decimal(int(rng.integers(-999, 999))) / 100,
            "s": rng.choice(["x", "y", "z"]).item(),
        }
        for _ in range(1500)
    ]
    rows = list(in_time(rows))
    op = Aggregate(Tumbling(policy, by=by), FUNCTIONS, group_by=group_by)
    expected, _ = one_by_one(op, rows)
    out: list[Any] = []
    running, at = opened(op, out), 0
    for size in (1, 7, 300, 20, 600, 5, 1500):
        if rows[at : at + size]:
            running.insert_batch(batch(rows[at : at + size]))
            ahead(running)
        at += size
    assert len(expected) > 40
    check(out, expected)


# -- groups, one claim at a time --

SMALL = pa.schema({"g": pa.float64(), "x": pa.int64()})


def fed(op, *batches):
    """What comes out for batches, each a list of pairs of group and value."""
    out: list[Any] = []
    running = opened(op, out)
    for pairs in batches:
        rows = [{"g": g, "x": x} for g, x in pairs]
        running.insert_batch(pa.Table.from_pylist(rows, SMALL))
        ahead(running)
    return out


def totals(size, **more):
    return Aggregate(Tumbling(Count(size)), n=agg.count(), x=agg.sum("x"), group_by="g", **more)


def shown(out):
    return [item if item == P else tuple(item.values()) for item in out]


def test_a_null_is_a_group_and_all_nan_are_one():
    out = fed(totals(5), [(None, 1), (NAN, 2), (1.0, 3), (NAN, 4), (None, 5)])
    assert repr(shown(out)) == repr([(None, 2, 6), (NAN, 2, 6), (1.0, 1, 3), P])


def test_groups_come_in_the_order_of_their_first_tuple():
    out = fed(totals(4), [(9.0, 1), (3.0, 2), (5.0, 3), (3.0, 4), (3.0, 5), (9.0, 6), (3.0, 7)])
    assert shown(out) == [(9.0, 1, 1), (3.0, 2, 6), (5.0, 1, 3), P]


def test_a_group_of_an_earlier_batch_comes_out_without_a_new_row():
    out = fed(totals(4), [(7.0, 1), (2.0, 2)], [(1.0, 3)], [(2.0, 4)])
    assert shown(out) == [(7.0, 1, 1), (2.0, 2, 6), (1.0, 1, 3), P]


def test_a_group_starts_anew_in_the_next_subwindow():
    out = fed(totals(2), [(1.0, 1)], [(1.0, 2), (1.0, 3)], [(2.0, 4), (1.0, 5)], [(1.0, 6)])
    assert shown(out) == [(1.0, 2, 3), P, (1.0, 1, 3), (2.0, 1, 4), P, (1.0, 2, 11), P]


def test_a_delta_window_closes_groups_before_the_row_that_is_too_far():
    op = Aggregate(Tumbling(Delta("x", 5)), n=agg.count(), x=agg.sum("x"), group_by="g")
    out = fed(op, [(1.0, 0), (2.0, 1)], [(2.0, 9)], [(1.0, 10), (1.0, 20)])
    assert shown(out) == [(1.0, 1, 0), (2.0, 1, 1), P, (2.0, 1, 9), (1.0, 1, 10), P]


def test_groups_of_several_columns_and_a_key():
    op = Aggregate(Tumbling(Count(3), by="k"), n=agg.count(), group_by=["g", "k"])
    table = pa.table({"k": ["a", "b", "a", "a"], "g": [1, 1, 2, 1]})
    out: list[Any] = []
    running = opened(op, out)
    running.insert_batch(table)
    ahead(running)
    assert out == [{"k": "a", "g": 1, "n": 2}, {"k": "a", "g": 2, "n": 1}, P]


def test_each_row_has_its_own_list_of_group_sizes():
    op = Aggregate(Tumbling(Count(3)), sizes=agg.count_by_group(), group_by="g")
    first, second, _ = fed(op, [(1.0, 0), (2.0, 0), (2.0, 0)])
    assert first == {"g": 1.0, "sizes": [1, 2]}
    first["sizes"].clear()
    assert second["sizes"] == [1, 2]


def test_sizes_of_whole_firings_without_groups():
    op = Aggregate(
        Tumbling(Count(2)), a=agg.count_all(), g=agg.count_groups(), s=agg.count_by_group()
    )
    assert shown(fed(op, [(1.0, 0), (2.0, 0)])) == [(2, 1, [2]), P]


@pytest.mark.parametrize("having", [agg.count() > 1, lambda row: row["n"] > 1])
def test_a_firing_without_rows_has_its_punctuation(having):
    out = fed(
        totals(2, having=having), [(1.0, 1), (2.0, 2), (2.0, 3), (2.0, 4), (1.0, 5), (3.0, 6)]
    )
    assert shown(out) == [P, (2.0, 2, 7), P, P]


@pytest.mark.parametrize("having", [agg.sum("x") > 3, lambda row: row["x"] > 3])
def test_a_condition_without_groups(having):
    op = Aggregate(Tumbling(Count(2)), x=agg.sum("x"), having=having)
    out = fed(op, [(1.0, 1), (1.0, 2), (1.0, 3), (1.0, 4)])
    assert shown(out) == [P, (7,), P]


# -- what fails --


def inserting(running, batches, schema):
    """What takes rows: as one batch, or one by one."""
    if not batches:
        return running.insert_many
    return lambda rows: running.insert_batch(pa.Table.from_pylist(rows, schema))


def failing(op, rows, bad, *, batches, schema=SMALL):
    """What comes out, and what is left, when the reader of row number `bad` raises."""
    out: list[Any] = []
    running = op.open()

    def row(found):
        if len([item for item in out if item != P]) == bad:
            raise ValueError("no more")
        out.append(found)

    running.connect(0, row, lambda: out.append(P))
    insert = inserting(running, batches, schema)
    with pytest.raises((ValueError, SchemaError)) as caught:
        insert(rows)
    running.connect(0, out.append, lambda: out.append(P))
    running.insert_many(rows[-2:])
    notes = getattr(caught.value, "__notes__", [])
    return out, str(caught.value), notes, running.snapshot()["windows"]


GROUPED = [{"g": g, "x": x} for x, g in enumerate([1.0, 2.0, 1.0, 3.0, 3.0, 2.0, 1.0, 1.0, 2.0])]


@pytest.mark.parametrize("bad", [0, 1, 2, 3])
def test_a_reader_that_raises_stops_where_it_would_row_by_row(bad):
    both = [failing(totals(3), GROUPED, bad, batches=each) for each in (True, False)]
    assert both[0] == both[1]


def test_a_condition_that_raises_stops_where_it_would_row_by_row():
    def having(row):
        return 1 / (row["n"] - 2) if row["g"] == 3.0 else True

    both = []
    for batches in (True, False):
        out: list[Any] = []
        running = opened(totals(3, having=having), out)
        insert = inserting(running, batches, SMALL)
        with pytest.raises(ZeroDivisionError):
            insert(GROUPED)
        both.append((out, running.snapshot()["windows"]))
    assert both[0] == both[1]
    assert [item["g"] for item in both[0][0] if item != P] == [1.0, 2.0]


@pytest.mark.parametrize("having", [None, agg.count() > 1, agg.count() > 9])
def test_an_expression_without_a_value_stops_where_it_would_row_by_row(having):
    op = Aggregate(Tumbling(Count(4)), y=agg.first("s") + agg.count(), having=having, group_by="g")
    schema = pa.schema({"g": pa.float64(), "s": pa.string()})
    letters = [None, None, None, None, None, None, "a", "b", "c", "d"]
    rows = [{"g": x % 2 / 2, "s": letter} for x, letter in enumerate(letters)]
    both = [failing(op, rows, 99, batches=each, schema=schema) for each in (True, False)]
    assert both[0] == both[1]
    assert "has no value" in both[0][1]
    assert both[0][0].count(P) == 1


def test_the_first_row_without_a_value_counts_whichever_column_it_is():
    later, sooner = agg.first("s") + agg.count(), agg.last("t") + agg.count()
    op = Aggregate(Tumbling(Count(3)), later=later, sooner=sooner, group_by="g")
    schema = pa.schema({"g": pa.int64(), "s": pa.string(), "t": pa.string()})
    rows = [{"g": 1, "s": "a" if x > 5 else None, "t": "b" if x > 2 else None} for x in range(9)]
    both = [failing(op, rows, 99, batches=each, schema=schema) for each in (True, False)]
    assert both[0] == both[1]
    assert both[0][0] == [{"g": 1, "later": None, "sooner": None}, P]


# -- what stays with the event engine --


@pytest.mark.parametrize(
    ("group_by", "reason"),
    [
        (lambda row: row["g"], "no list of column names"),
        (("g", len), "no list of column names"),
        ("v", "of type list"),
        ("z", "-0.0"),
    ],
)
def test_groups_that_are_not_exact_as_columns_are_left_to_the_event_engine(group_by, reason):
    table = pa.table({"g": [1, 2, 1], "v": [[1], [2], [1]], "z": [0.0, -0.0, 1.0]})
    op = Aggregate(Tumbling(Count(2)), n=agg.count(), group_by=group_by)
    running = op.open()
    window: Any = running._live[0]
    if group_by == "v":
        with pytest.raises(SchemaError, match="cannot be told apart"):
            running.insert_batch(table)
    else:
        running.insert_batch(table)
    assert not window.state.in_arrays
    assert reason in window.state.batches.reason


def test_changes_alone_are_left_to_the_event_engine():
    op = totals(1, emit="changed")
    out: list[Any] = []
    running = opened(op, out)
    running.insert_batch(pa.table({"g": [1.0, 1.0, 2.0], "x": [5, 5, 5]}))
    assert not running._live[0]._in_arrays
    assert shown(out) == [(1.0, 1, 5), P, P, (2.0, 1, 5), P]


def test_a_group_that_the_column_cannot_hold_goes_on_row_by_row():
    out: list[Any] = []
    running = opened(totals(4), out)
    running.insert({"g": "one", "x": 1})
    table = pa.Table.from_pylist([{"g": 1.0, "x": 2}] * 3, SMALL)
    running.insert_batch(table)
    assert not running._live[0]._in_arrays
    running.insert_batch(table)
    ahead(running)  # the subwindow with that group is over
    assert shown(out) == [("one", 1, 1), (1.0, 3, 6), P]


# -- what is kept --


def test_slots_of_closed_subwindows_are_used_again():
    op = Aggregate(Tumbling(Count(50)), n=agg.count(), group_by="g")
    running = op.open()
    for first in range(0, 20_000, 200):
        running.insert_batch(pa.table({"g": np.arange(first, first + 200) // 2}))
        assert ahead(running).summaries.slots.size <= 200


def test_groups_that_are_long_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(summaries, "MAX_IDLE_GROUPS", 10)
    op = Aggregate(Tumbling(Count(7), by="k"), n=agg.count(), z=agg.last("s"), group_by=["g", "s"])
    rng = np.random.default_rng(3)
    out: list[Any] = []
    running, rows = opened(op, out), []
    for first in range(60):
        part = [
            {
                "k": rng.choice(["a", "b"]).item(),
                "g": first + int(rng.integers(0, 6)),
                "s": f"s{first % 17}",
            }
            for _ in range(12)
        ]
        rows += part
        running.insert_batch(pa.Table.from_pylist(part))
        engine = ahead(running)
        assert len(engine.summaries.keys) <= 2 * 14 + 10 + 12
    check(out, one_by_one(op, rows)[0])


def test_a_flush_of_all_partitions_gives_what_a_punctuation_gives():
    op = Aggregate(Tumbling(Punct(), by="k"), n=agg.count(), s=agg.last("g"), group_by="g")
    table = pa.table({"k": ["b", "a", "b", "b"], "g": [2, 2, 1, 2]})
    out: list[Any] = []
    running = opened(op, out)
    running.insert_batch(table)
    engine = ahead(running)
    rows = list(aggregate_batch(running.operator.outputs, engine.flush_all()).rows())
    engine.commit_flush()
    assert not len(engine.stored())
    assert not engine.summaries.slots.table.n.any()
    running = opened(op, out)
    running.insert_many(table.to_pylist())
    running.punctuate()
    assert rows == [item for item in out if item != P]
    assert len(rows) == 3


@given(
    st.lists(
        st.one_of(
            st.dictionaries(st.integers(0, 5), st.integers(1, 9), min_size=1),
            st.sets(st.integers(0, 5), min_size=1),
        ),
        max_size=30,
    )
)
def test_lists_of_slots_are_lists(steps):
    before, ledger.CAPACITY = ledger.CAPACITY, 3
    try:
        found, number = Ragged([np.intp]), 0
        expected: dict[int, list[int]] = {i: [] for i in range(6)}
        found.grow(6)
        for step in steps:
            ids = np.array(sorted(step))
            if isinstance(step, set):
                found.clear(ids)
                expected |= {i: [] for i in step}
                continue
            counts = np.array([step[i] for i in ids.tolist()])
            numbers = np.arange(number, number + counts.sum())
            number += len(numbers)
            found.append(ids, counts, [numbers])
            for i, part in zip(
                ids.tolist(), np.split(numbers, np.cumsum(counts)[:-1]), strict=True
            ):
                expected[i] += part.tolist()
        for i in range(6):
            (numbers,), length = found.take(np.array([i])), found.lengths[i]
            assert numbers.tolist() == expected[i]
            assert length == len(expected[i])
    finally:
        ledger.CAPACITY = before


# -- extents --


def grouped_extents(op, rows, lo, hi):
    """The groups of each extent, from the summary that the event engine keeps."""
    found = []
    for a, b in zip(lo, hi, strict=True):
        ready = GroupedFoldSummary(op._plan)
        for row in rows[a:b]:
            ready.insert(row)
        found.append(ready.value())
    return found


def columnar_extents(op, rows, lo, hi):
    (table,) = batch(rows).to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
    functions = functions_of(op._plan.each, SCHEMA)
    names = op.group_by if isinstance(op.group_by, tuple) else (op.group_by,)
    keys = PartitionKeys(names, isinstance(op.group_by, tuple))
    codes = keys.encode([table.column(name) for name in names])
    inputs = Inputs(table)
    columns = [inputs.read(each.attribute) for each in functions]
    return over_groups(functions, keys, codes, columns, np.array(lo, int), np.array(hi, int))


PLAIN = {
    name: each
    for name, each in FUNCTIONS.items()
    if name not in ("share", "all", "groups", "sizes", "ratio", "either")
}


@st.composite
def some_extents(draw, rows):
    """Extents as windows have them that slide, of which some are empty; in any order."""
    places = st.lists(st.integers(0, rows), min_size=0, max_size=20)
    hi = sorted(draw(places))
    lo = sorted(draw(st.lists(st.integers(0, rows), min_size=len(hi), max_size=len(hi))))
    order = draw(st.permutations(range(len(hi))))
    return [min(lo[i], hi[i]) for i in order], [hi[i] for i in order]


@settings(max_examples=examples(150))
@given(st.data())
def test_groups_of_overlapping_extents(data):
    rows = list(in_time(data.draw(st.lists(a_row, min_size=1, max_size=40))))
    lo, hi = data.draw(some_extents(len(rows)))
    group_by = data.draw(st.sampled_from(GROUPINGS))
    names = data.draw(st.lists(st.sampled_from(sorted(PLAIN)), min_size=1, unique=True))
    op = Aggregate(Tumbling(Count(9)), {n: PLAIN[n] for n in names}, group_by=group_by)
    before, firing_groups.CHUNK_GROUPS = (
        firing_groups.CHUNK_GROUPS,
        data.draw(st.sampled_from([5, 64, 1 << 22])),
    )
    try:
        found = columnar_extents(op, rows, lo, hi)
    finally:
        firing_groups.CHUNK_GROUPS = before
    expected = grouped_extents(op, rows, lo, hi)
    assert found.counts.tolist() == [len(each) for each in expected]
    flat = [each for values in expected for each in values]
    assert found.sizes.tolist() == [each.n for each in flat]
    keys = zip(*(column.to_pylist() for column in found.columns), strict=True)
    check(list(keys), [x.key if isinstance(group_by, tuple) else (x.key,) for x in flat])
    values = [list(row) for row in zip(*(as_python(each) for each in found.values), strict=True)]
    check(values, [each.values for each in flat])


def as_python(result):
    return result if isinstance(result, list) else result.to_pylist()


def test_extents_that_hold_one_another_are_declined():
    op = Aggregate(Tumbling(Count(9)), n=agg.count(), group_by="g")
    rows = [dict.fromkeys(SCHEMA.names)] * 10
    assert columnar_extents(op, rows, [0, 4, 9], [5, 4, 10]).sizes.tolist() == [5, 1]
    with pytest.raises(Decline, match="hold other windows"):
        columnar_extents(op, rows, [0, 4], [10, 5])


def test_runs_of_no_places():
    runs = group_extents(np.empty(0, int), np.empty(0, int), 0)
    assert len(runs) == 0
    assert runs.firsts.tolist() == []


# -- results --


@pytest.mark.parametrize(
    "result",
    [
        pa.array([True, False, None]),
        pa.array([0, 3, -1, None]),
        pa.array([0.0, -0.0, NAN, 2.5, None]),
        pa.array(["", "a", None]),
        pa.array([EPOCH, datetime(1970, 1, 1), None]),
        pa.array([timedelta(0), timedelta(1), None]),
        pa.array([Decimal("0.00"), Decimal("0.10"), None]),
        pa.array([[], [0], None]),
        [0, None, Decimal(0), "x"],
    ],
)
def test_truth_is_that_of_python(result):
    assert truth(result).tolist() == [bool(value) for value in as_python(result)]


def test_results_of_one_type_stay_an_array_and_others_become_a_list():
    one, other, text = pa.array([1, 2]), pa.array([3]), ["x"]
    assert concat_results([one, other]).to_pylist() == [1, 2, 3]
    assert concat_results([one, text]) == [1, 2, "x"]
    assert concat_results([one, pa.array([0.5])]) == [1, 2, 0.5]
    assert concat_results([text]) is text
    assert take_results(text * 3, np.array([2, 0])) == ["x", "x"]


def test_a_column_is_taken_once_for_functions_that_share_it(monkeypatch):
    op = Aggregate(Tumbling(Count(9)), s=agg.sum("f"), m=agg.max("f"), group_by="g")
    rows = [dict.fromkeys(SCHEMA.names) for _ in range(4)]
    taken, take = [], Column.take

    def noting(self, places):
        taken.append(self)
        return take(self, places)

    monkeypatch.setattr(Column, "take", noting)
    columnar_extents(op, rows, [0], [4])
    assert len([column for column in taken if column.type == pa.float64()]) == 1
