"""Sort over whole batches gives what it gives row by row."""
# ruff: noqa: SIM300 - asserts read expected first

import datetime as dt
import math
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.batch_runs import Fed, compared
from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Event,
    PartitionAge,
    PartitionCount,
    Punct,
    SchemaError,
    Time,
    Tumbling,
    TupleCount,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.sorting import sort_key, within
from windowlib.operators import Sort, asc, col, desc
from windowlib.operators.expressions import RowExpr

NAN = math.nan
DAY = dt.datetime(2024, 3, 1)


@pytest.fixture(autouse=True)
def all_batches_are_worth_it(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)


# -- random streams --------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, list[Any]]] = {
    "i": (pa.int64(), [0, 1, 2, -1, 2**63 - 1, -(2**63), None]),
    "small": (pa.int8(), [0, 1, 127, -128, None]),
    "f": (pa.float64(), [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, NAN, 1e-300, None]),
    "half": (pa.float32(), [0.0, -0.0, 1.5, NAN, None]),
    "s": (pa.string(), ["", "a", "b", "ab", "ä", "Z", "z" * 50, None]),
    "d": (pa.decimal128(5, 2), [Decimal("1.10"), Decimal("-1.10"), Decimal("0.00"), None]),
    "t": (pa.timestamp("us"), [DAY, DAY + dt.timedelta(1), DAY - dt.timedelta(1), None]),
    "z": (pa.timestamp("ms", "UTC"), [DAY.replace(tzinfo=dt.UTC), None]),
    "b": (pa.bool_(), [True, False, None]),
    "none": (pa.null(), [None]),
}
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "ts": (pa.int64(), [0]),
    "k": (pa.int64(), [1, 2, 3, None]),
    "g": (pa.string(), ["x", "y", None]),
    "list": (pa.list_(pa.int64()), [[1], [], [1, None], None]),
}
TYPES = {name: kind for name, (kind, _) in {**VALUES, **OTHERS}.items()}
SCHEMA = pa.schema(TYPES)


@st.composite
def tables(draw, most=40):
    rows = draw(st.integers(0, most))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    few = draw(st.booleans())  # ties
    columns = {}
    for name, (kind, values) in {**VALUES, **OTHERS}.items():
        some = values[: 1 + draw(st.integers(0, len(values) - 1))] if few else values
        columns[name] = pa.array([some[i] for i in rng.integers(0, len(some), rows)], kind)
    return pa.table(columns, schema=SCHEMA)


@st.composite
def sorts(draw):
    evict = draw(st.sampled_from([Count(1), Count(3), Count(10), Delta("ts", 4), Punct()]))
    by = draw(st.sampled_from([None, "k", "g", ("k", "g")]))
    forgets = [None, None, None, PartitionCount(3), TupleCount(20), PartitionAge("3s")]
    forget = None if by is None else draw(st.sampled_from(forgets))
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    keys = []
    for name in names:
        which = draw(st.sampled_from([asc, desc]))
        keys.append(which(name, nulls=draw(st.sampled_from([None, "first", "last"]))))
    limit = draw(st.sampled_from([None, None, 1, 2, 100]))
    return Sort(
        *keys,
        window=Tumbling(evict, by=by, forget=forget),
        limit=limit,
        flush_at_end=draw(st.booleans()),
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["batch"] * 6 + ["rows", "restart", "punct", "advance"]), tables()),
    min_size=1,
    max_size=6,
)


def rising(steps, seed):
    """The same steps with a delta attribute that never goes back."""
    rng, now = np.random.default_rng(seed), 0
    for what, table in steps:
        ts = now + np.cumsum(rng.integers(0, 3, table.num_rows))
        now = int(ts[-1]) if len(ts) else now
        index = table.schema.get_field_index("ts")
        yield what, table.set_column(index, "ts", pa.array(ts, pa.int64()))


@settings(max_examples=examples(250))
@given(sorts(), STEPS, st.integers(0, 99))
def test_batches_come_out_as_rows_do(op, steps, seed):
    fed = compared(op, rising(steps, seed))
    if op.windows[0].forget is None:
        assert fed.given == fed.took


@settings(max_examples=examples(60))
@given(sorts(), st.lists(tables(), min_size=1, max_size=4), st.integers(0, 99))
def test_process_batch_gives_the_rows_as_columns_of_the_input(op, found, seed):
    rows, running = Fed(op, batches=False), op.open()
    for _, table in rising([("batch", table) for table in found], seed):
        rows.out.clear()
        rows.batch(table)
        batch = running.process_batch(table)
        assert SCHEMA == batch.schema
        assert [row for _, row in rows.out if row != "punct"] == list(map(repr, batch.to_pylist()))
        if table.num_rows and op.windows[0].forget is None:
            assert running._live[0]._in_arrays


@settings(max_examples=examples(30))
@given(sorts(), STEPS)
def test_values_that_go_back_are_left_to_rows(op, steps):
    compared(op, steps)


@settings(max_examples=examples(60))
@given(tables(), st.sampled_from(list(VALUES)), st.booleans(), st.booleans())
def test_a_sort_key_ascends_as_the_order_says(table, name, descending, first):
    column = Column.of(table.column(name))
    keys = sort_key(column, descending=descending, nulls_first=first)
    order = Sort(
        (desc if descending else asc)(name, nulls="first" if first else "last"),
        window=Tumbling(Count(1)),
    ).order
    rows = table.to_pylist()
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            assert (order.place(row) < order.place(other)) == bool(keys[i] < keys[j])


@settings(max_examples=examples(100))
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=9), max_size=12),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
)
def test_extents_of_any_length_are_sorted_by_themselves(extents, limit, two):
    pairs = [pair for extent in extents for pair in extent]
    keys = [np.array([pair[i] for pair in pairs], np.int64) for i in range(1 + two)]
    places, lengths = within(keys, np.array([len(e) for e in extents], np.int64), limit)
    expected, at = [], 0
    for extent in extents:
        numbers = range(at, at + len(extent))
        expected += sorted(numbers, key=lambda n: pairs[n][: 1 + two])[:limit]
        at += len(extent)
    assert expected == places.tolist()
    assert [min(len(e), limit or 99) for e in extents] == lengths.tolist()


@pytest.mark.parametrize("descending", [False, True])
def test_extreme_values_have_their_place(descending):
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)  # NaN
    for values in (
        [-(2**63), 2**63 - 1, 0, -(2**63)],
        [-(2**63), 2**63 - 1, 0, None],
        [*odd.tolist(), math.inf, -math.inf, -0.0, 0.0, NAN],
    ):
        op = Sort((desc if descending else asc)("x"), window=Tumbling(Count(len(values))))
        array = pa.array(values) if None in values else pa.array(np.array(values))
        fed = compared(op, [("batch", pa.table({"n": range(len(values)), "x": array}))])
        assert 1 == fed.took


# -- one by one ------------------------------------------------------------------------------------


def table(**columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def test_large_batches_in_slices(monkeypatch):
    monkeypatch.setattr(handover, "SLICE_ROWS", 100)
    rng = np.random.default_rng(5)
    steps = [
        ("batch", table(k=rng.integers(0, 9, 1000), x=rng.integers(0, 50, 1000))) for _ in range(3)
    ]
    fed = compared(Sort(desc("x"), window=Tumbling(Count(7), by="k"), limit=3), steps)
    assert 3 == fed.took
    assert 1000 < len(fed.out)


def test_a_timed_window_takes_batches_between_its_ticks():
    columns, rows = (Fed(Sort("x", window=Tumbling(Time("10s"))), batches=b) for b in (True, False))
    for fed in (columns, rows):
        fed.batch(table(x=[3, 1, 2]))
        fed.running.advance(10)
        fed.batch(table(x=[9, 8]))
        fed.running.advance(20)
    assert 2 == columns.took
    assert rows.out == columns.out
    assert 7 == len(rows.out)


def test_a_punctuation_flushes_columns():
    op = Sort("x", window=Tumbling(Punct(), by="k"))
    fed = Fed(op, batches=True)
    for _ in range(2):
        fed.batch(table(k=[2, 1, 2], x=[3, 1, 2]))
        fed.running.punctuate()
        assert fed.in_arrays
    rows = ["{'k': 2, 'x': 2}", "{'k': 2, 'x': 3}", "punct", "{'k': 1, 'x': 1}", "punct"]
    assert 2 * rows == [text for _, text in fed.out]


def test_ticks_inside_of_a_batch(monkeypatch):
    op = Sort("x", window=Tumbling(Time("10s")))
    rows = table(x=np.arange(3000) % 7, at=np.arange(3000) / 100)
    outs = []
    for worth in (1, 10**9):
        monkeypatch.setattr(handover, "MIN_ROWS", worth)
        fed = Fed(op, batches=True)
        fed.running.insert_batch(rows, times="at")
        assert fed.in_arrays == (worth == 1)
        outs.append(fed.out)
    assert outs[0] == outs[1]
    assert 2 == outs[0].count((0, "punct"))


def test_computed_keys_are_columns_too():
    op = Sort(RowExpr(col("x") * col("y")), window=Tumbling(Count(4)))
    fed = compared(op, [("batch", table(x=[3, 1, -2, 0, 7], y=[1, 2, 3, 4, 5]))])
    assert 1 == fed.took


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Sort(lambda t: -t["x"], window=Tumbling(Count(2))), "reads each row in Python"),
        (Sort("list", window=Tumbling(Count(3))), "list<item: int64> has no order"),
        (
            Sort("x", window=Tumbling(Count(2), by="x", forget=PartitionCount(1))),
            "partitionCount(1) would evict partitions",
        ),
    ],
)
def test_what_arrays_cannot_do_is_left_to_rows(op, reason):
    fed = compared(op, [("batch", table(x=[2, 1, 3], list=[[2], [1], [3]]))])
    assert 0 == fed.took
    assert reason in fed.reason


def test_a_subclass_keeps_its_handlers():
    class Loud(Sort):
        def before_flush(self, window, key):
            self.emit({"x": "now"})
            super().before_flush(window, key)

    fed = compared(Loud("x", window=Tumbling(Count(2))), [("batch", table(x=[2, 1, 3]))])
    assert [(0, "{'x': 'now'}"), (0, "{'x': 1}"), (0, "{'x': 2}"), (0, "punct")] == fed.out


def test_rows_that_came_before_come_out_as_they_were():
    op = Sort("x", window=Tumbling(Count(3)))
    for first in ({"x": 1}, {"x": 1.0}, {"x": True}, {"x": 1, "more": 2}, {"y": 0, "x": 1}):
        fed = Fed(op, batches=True)
        fed.running.insert(first)
        fed.batch(table(x=[5.0, 3.0]))
        assert [repr(first), "{'x': 3.0}", "{'x': 5.0}", "punct"] == [text for _, text in fed.out]


def test_rows_with_decimals_beyond_64_bits_may_come_before_columns():
    price = pa.decimal128(38, 2)
    wide, small = (pa.array([Decimal(n)] * 2, price) for n in (10**30, 1))
    for op in (Sort("x", window=Tumbling(Count(5))), Sort("n", window=Tumbling(Count(5)))):
        for kind in ("rows", "batch"):
            tables = [pa.table({"x": each, "n": [2, 1]}) for each in (wide, small, wide)]
            compared(op, [(kind, tables[0]), ("batch", tables[1]), ("batch", tables[2])])


@pytest.mark.parametrize("by", [None, "k"])
def test_windows_of_event_time_are_sorted(by):
    op = Sort("x", window=Tumbling(Event("ts", 10), by=by, watermark=5))
    columns = table(ts=np.arange(40) ^ 3, x=np.arange(40) * 7 % 11, k=["a", "b"] * 20)
    fed = compared(op, [("batch", columns), ("batch", columns.slice(20))])
    assert "keeps rows in a way of its own" in fed.reason
    assert 30 < len(fed.rows)


def test_what_does_not_compare_is_refused_whichever_way_it_comes():
    words, numbers = table(x=["a"]), table(x=[None, 1, 2])
    for first, second in ((words, numbers), (numbers, words)):
        errors = []
        for batches in (True, False):
            fed = Fed(Sort("x", window=Tumbling(Count(9))), batches=batches)
            fed.batch(first)
            with pytest.raises(SchemaError) as error:
                fed.batch(second)
            errors.append((str(error.value), repr(fed.running.snapshot())))
        assert errors[0] == errors[1]
    assert "do not compare" in errors[0][0]


def test_the_first_value_of_all_is_the_one_that_others_compare_with():
    fed = Fed(Sort("x", window=Tumbling(Count(2), by="k")), batches=True)
    fed.batch(table(k=[1, 2, 2, 2], x=[NAN, None, 7.0, 8.0]))
    assert fed.in_arrays
    assert [[7.0]] == fed.running.snapshot()["state"]


def test_a_column_that_is_not_there_is_missed_with_the_same_words():
    texts = []
    for batches in (True, False):
        fed = Fed(Sort("prise", window=Tumbling(Count(2))), batches=batches)
        with pytest.raises(SchemaError) as error:
            fed.batch(table(price=[1]))
        texts.append(str(error.value))
    assert texts[0] == texts[1]


class BoomError(Exception):
    pass


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("mark", [False, True])
def test_a_failure_downstream_leaves_the_same_state_and_the_same_output(at, mark):
    outcomes = []
    for batches in (True, False):
        fed = Fed(Sort("x", window=Tumbling(Count(3), by="k")), batches=batches)
        sent: list[Any] = []

        def row(found, sent=sent):
            sent.append(found)
            if not mark and len(sent) == at + 1:
                raise BoomError

        def punct(sent=sent):
            sent.append("punct")
            if mark and len(sent) >= at:
                raise BoomError

        fed.running.connect(0, row, punct)
        rows = table(k=[1, 2, 1, 2, 1, 2, 1, 1, 1], x=[9, 8, 7, 6, 5, 4, 3, 2, 1])
        try:
            fed.batch(rows)
        except BoomError as error:
            sent.append(re.findall(r"tuple \d+", error.__notes__[0]))
        outcomes.append((sent, repr(fed.running.snapshot())))
    assert outcomes[0] == outcomes[1]
