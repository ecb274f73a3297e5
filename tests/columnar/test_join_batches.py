"""Join over whole batches gives what it gives row by row."""
# ruff: noqa: SIM300 - asserts read expected first

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.batch_runs import Fed, compared
from tests.helpers.examples import at_least, examples
from windowlib import (
    AccessError,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    SchemaError,
    Sliding,
    Time,
    TupleCount,
)
from windowlib.columnar import handover
from windowlib.columnar.engines import equi_join, row_engine
from windowlib.operators import Join, Lookup
from windowlib.operators.join import batches as join_columns

NAN = math.nan
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
DAY = dt.datetime(2024, 3, 1)


@pytest.fixture(autouse=True)
def all_batches_are_worth_it(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)


# -- random streams --------------------------------------------------------------------------------

KEYS: dict[str, tuple[Any, Any, list[Any]]] = {
    # the types of the left and of the right column, and values
    "k": (pa.int64(), pa.int64(), [1, 2, 3, None]),
    "narrow": (pa.int8(), pa.uint16(), [1, 2, 3, None]),
    "f": (pa.float64(), pa.float32(), [0.5, NAN, math.inf, None]),
    "s": (pa.string(), pa.large_string(), ["a", "b", "", None]),
    "dict": (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", "b", None]),
    "d": (pa.decimal128(5, 2), pa.decimal128(5, 2), [Decimal("1.10"), Decimal("2.00"), None]),
    "t": (pa.timestamp("us"), pa.timestamp("us"), [DAY, DAY + dt.timedelta(1), None]),
}
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "g": (pa.string(), ["x", "y", None]),
    "both": (pa.int32(), [1, 2, None]),
    "list": (pa.list_(pa.int64()), [[1], [], None]),
}


@st.composite
def streams(draw, *, steps=8, most=25):
    """Steps of one stream: batches and rows for both sides, restarts; the number of each row."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    now, number, found = [0, 0], 0, []
    for _ in range(draw(st.integers(1, steps))):
        what = draw(st.sampled_from(["batch"] * 6 + ["rows", "restart", "advance"]))
        port, n = draw(st.integers(0, 1)), draw(st.integers(0, most))
        columns: dict[str, pa.Array] = {}
        for name, (*types, values) in KEYS.items():
            picked = [values[i] for i in rng.integers(0, len(values), n)]
            columns[name] = pa.array(picked, types[port])
        for name, (kind, values) in OTHERS.items():
            columns[name] = pa.array([values[i] for i in rng.integers(0, len(values), n)], kind)
        ts = now[port] + np.cumsum(rng.integers(0, 3, n))
        now[port] = int(ts[-1]) if n else now[port]
        columns["ts"] = pa.array(ts, pa.int64())
        columns["n" if port == 0 else "m"] = pa.array(np.arange(number, number + n))
        number += n
        order = ["n", *columns] if port == 0 else [*columns]
        table = pa.table({name: columns[name] for name in dict.fromkeys(order)})
        found.append((what, table, port))
    return found


@st.composite
def sides(draw, *, probe=True):
    sizes = [Count(1), Count(4), Count(30), Delta("ts", 5)]
    evict = draw(st.sampled_from([*sizes, Count(0)] if probe else sizes))
    by = draw(st.sampled_from([None, None, "g", ("g", "k")]))
    forgets = [None, None, PartitionCount(3), TupleCount(20), PartitionAge("3s")]
    forget = None if by is None else draw(st.sampled_from(forgets))
    return Sliding(evict) if evict == Count(0) else Sliding(evict, by=by, forget=forget)


@st.composite
def joins(draw):
    how = draw(st.sampled_from(HOWS))
    left = draw(sides())
    right = draw(sides(probe=left.evict != Count(0)))
    on = draw(st.sampled_from([*KEYS, ["k", "s"], ["g", "k"], None]))
    options: dict[str, Any] = {}
    if how in ("left", "right", "outer") and draw(st.booleans()):
        options["unmatched"] = "port"
    if how not in ("semi", "anti"):
        options["suffixes"] = draw(st.sampled_from([("", "_right"), ("_l", "_r")]))
    if isinstance(on, str) and on != "dict" and draw(st.booleans()):
        options["left_on"] = options["right_on"] = on
    else:
        options["on"] = on
    return Join(left=left, right=right, how=how, **options)


@pytest.mark.search
def test_batches_give_what_rows_give():
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(400))
    @given(joins(), streams())
    def check(op, steps):
        fed = compared(op, steps)
        seen.update(took=fed.took, given=fed.given)

    check()
    assert at_least(0.7) * seen["given"] < seen["took"]


@settings(max_examples=examples(100))
@given(joins(), streams())
def test_process_batch_gives_the_rows_as_columns(op, steps):
    rows, columns = Fed(op, batches=False), Fed(op, batches=True)
    for what, table, port in steps:
        if what != "batch":
            for fed in (rows, columns):
                fed.step(what, table, port)
            continue
        for fed in (rows, columns):
            fed.out.clear()
            fed.rows.clear()
        rows.batch(table, port)
        batch = columns.running.process_batch(table, port)
        assert list(map(there, rows.rows)) == list(map(there, batch.to_pylist()))
        assert [item for item in rows.out if item[0]] == [item for item in columns.out if item[0]]
        schemas = [*columns.running._schemas]
        schemas[port] = table.schema
        schema = columns.running.operator.schema(*schemas)
        known = [field for field in schema or () if not pa.types.is_null(field.type)]
        assert known == [batch.schema.field(field.name) for field in known]


def there(row):
    """A column of a side that has sent nothing may be missing, or null."""
    return {name: repr(value) for name, value in row.items() if value is not None}


# -- one by one ------------------------------------------------------------------------------------


def table(**columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def left(**columns):
    return "batch", table(**columns), 0


def right(**columns):
    return "batch", table(**columns), 1


ten = Sliding(Count(10))


def test_one_row_with_many_matches_is_not_too_much(monkeypatch):
    monkeypatch.setattr(join_columns, "MOST", 7)
    op = Join(left=Sliding(Count(20)), right=Sliding(Count(20)), how="outer")
    fed = compared(op, [left(x=range(15)), right(y=range(25)), left(x=range(30))])
    assert 3 == fed.took
    assert 500 < len(fed.out)


def test_large_batches_in_slices(monkeypatch):
    monkeypatch.setattr(handover, "SLICE_ROWS", 64)
    rng = np.random.default_rng(1)
    steps = []
    for i in range(4):
        make = right if i % 2 else left
        steps.append(make(k=rng.integers(0, 50, 300), x=np.arange(300)))
    fed = compared(Join(left=ten, right=ten, on="k", how="left"), steps)
    assert 4 == fed.took


def test_keys_that_nobody_has_any_more_are_forgotten(monkeypatch):
    monkeypatch.setattr(equi_join, "MAX_UNUSED_KEYS", 20)
    steps = []
    for start in range(0, 600, 30):
        keys = [None if i % 3 == 0 else i for i in range(start, start + 30)]
        steps += [left(k=keys, x=keys), right(k=keys[::-2], y=keys[::-2])]
    op = Join(left=ten, right=ten, on="k", how="outer")
    fed = compared(op, steps, end=False)
    assert len(steps) == fed.took
    fed = Fed(op, batches=True)
    for step in steps:
        fed.step(*step)
    engine = fed.running.operator._hand_over.engine  # type: ignore[attr-defined]
    assert len(engine.keys) <= 20 + 4 * 20


def test_clearing_out_keys_leaves_the_others_as_they_are(monkeypatch):
    monkeypatch.setattr(equi_join, "MAX_UNUSED_KEYS", -(10**9))  # after every batch
    rng, steps = np.random.default_rng(3), []
    for i in range(20):
        keys = [None if k % 5 == 0 else int(k) for k in rng.integers(i, i + 9, 12)]
        steps.append((right if i % 2 else left)(k=keys, x=keys))
    fed = compared(Join(left=ten, right=ten, on="k", how="outer"), steps)
    assert len(steps) == fed.took


@pytest.mark.parametrize("how", HOWS)
def test_a_row_that_has_matched_is_known_to_have_in_the_next_batch(how):
    keys = [1, 2, 1]
    steps = [left(k=keys), right(k=[1]), right(k=keys), left(k=keys), left(k=[1]), right(k=[3])]
    op = Join(left=ten, right=ten, on="k", how=how)
    assert len(steps) == compared(op, steps).took


def test_the_reference_of_a_lookup_is_looked_up_for_all_rows_at_once():
    steps = [
        ("batch", table(user=[1, 2, 1, None], name=["Ann", "Ben", "Anna", "?"]), 1),
        ("batch", table(user=[1, 2, 3, None], page=["/", "/a", "/b", "/c"]), 0),
        ("batch", table(user=[3], name=["Cy"]), 1),
        ("batch", table(user=[3, 1], page=["/", "/"]), 0),
    ]
    for how in ("left", "inner", "semi", "anti"):
        fed = compared(Lookup(on="user", how=how), steps)
        assert 4 == fed.took


def test_a_reference_that_does_not_change_is_indexed_once():
    fed = Fed(Lookup(on="k"), batches=True)
    fed.batch(table(k=range(50), name=range(50)), 1)
    fed.batch(table(k=range(50)), 0)
    engine = fed.running.operator._hand_over.engine  # type: ignore[attr-defined]
    index = engine._indexes[1]
    fed.batch(table(k=range(50)), 0)
    assert index is engine._indexes[1]
    assert index is not None


def test_columns_of_a_side_that_has_sent_nothing_are_missing():
    op = Join(left=Sliding(Count(1)), right=Sliding(Count(1)), on="k", how="outer")
    fed = compared(op, [left(x=[1, 2], k=[1, 2])], end=False)
    assert [(0, "{'x': 1, 'k': 1}"), (0, "punct")] == fed.out
    fed = compared(op, [right(k=[1, 2], y=[1, 2]), left(x=[1], k=[9]), right(y=[7], k=[8])])
    assert (0, "{'k': 2, 'x': None, 'y': 2}") in fed.out


def test_columns_that_clash_are_refused_with_the_same_words():
    op = Join(left=ten, right=ten, on="k", suffixes=("_right", ""))
    texts = []
    for batches in (True, False):
        fed = Fed(op, batches=batches)
        fed.batch(table(k=[1], x=[1], x_right=[1]), 0)
        with pytest.raises(SchemaError) as error:
            fed.batch(table(k=[1], x=[1]), 1)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_rows_that_came_before_keep_their_values():
    op = Join(left=ten, right=ten, on="k", how="left")
    for first in ({"k": 1, "x": 1}, {"k": 1, "x": 1.0}, {"x": 1, "k": 1}, {"k": 1, "x": 1, "z": 0}):
        outs = []
        for batches in (True, False):
            fed = Fed(op, batches=batches)
            fed.running.insert(first, 0)
            fed.batch(table(k=[2], x=[2.5]), 0)
            fed.batch(table(k=[1, 2], y=[1, 2]), 1)
            fed.end()
            outs.append(fed.out)
        assert outs[0] == outs[1]


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Join(left=ten, right=ten, on="k", where=lambda a, b: True), "where= reads each row in"),
        (Join(left=ten, right=ten, on="k", select=lambda a, b: a or b), "select= reads each row"),
        (Join(left=ten, right=ten, within=Delta("x", 1)), "within= has an index of its own"),
        (Join(left=ten, right=ten, on=lambda t: t["k"]), "a key is read from each row in Python"),
        (Join(left=ten, right=Sliding(Time("5s")), on="k"), "time(5) runs on the clock"),
        (
            Join(left=Sliding(Count(2), by="k", forget=PartitionCount(1)), right=ten, on="k"),
            "partitionCount(1) would evict partitions",
        ),
        (Join(left=Sliding(Delta("x", 1)), right=ten, on="k"), "values go backwards"),
        (Join(left=ten, right=ten, left_on="k", right_on="s"), "changed type from string to int64"),
        (Join(left=ten, right=ten, on="z"), "with -0.0"),
    ],
)
def test_what_arrays_cannot_do_is_left_to_rows(op, reason):
    columns = {"k": [1, 2, 3], "s": ["a", "b", "c"], "x": [3, 2, 1], "z": [0.0, -0.0, 1.0]}
    fed = compared(op, [right(**columns), left(**columns)], end=False)
    assert fed.took < 2
    assert reason in fed.running.operator._hand_over.reason  # type: ignore[attr-defined]
    never = "batches      row by row" in op.explain()
    assert never == (" = " in reason or "= " in reason or "Python" in reason or "clock" in reason)


def test_a_subclass_keeps_its_handlers():
    class Loud(Join):
        def after_evict(self, window, tuple_, key):
            super().after_evict(window, tuple_, key)
            self.emit({"gone": tuple_["x"]})

    op = Loud(left=Sliding(Count(1)), right=ten)
    assert (0, "{'gone': 1}") in compared(op, [left(x=[1, 2])]).out


def test_windows_that_are_long_against_the_batches_go_back_to_rows(monkeypatch):
    monkeypatch.setattr(row_engine, "MAX_KEPT_PER_NEW", 0)
    monkeypatch.setattr("windowlib.columnar.arrays.kept_rows.ROOM", 30)
    monkeypatch.setattr(join_columns, "LEAN", 2)
    op = Join(left=Sliding(Count(1)), right=Sliding(Count(90)), on="k")
    many, few = range(20), [1, 2]
    steps = [right(k=many, y=many) for _ in range(4)]
    for _ in range(4):
        steps += [left(k=few, x=few), right(k=few, y=few)]
    fed = compared(op, steps)
    assert len(steps) > fed.took > 4
    assert "long against" in fed.running.operator._hand_over.reason  # type: ignore[attr-defined]


def test_whoever_looks_at_a_window_sees_its_rows():
    fed = Fed(Join(left=ten, right=Sliding(Count(2), by="k"), on="k"), batches=True)
    fed.batch(table(k=[1, 2], x=[1, 2]), 0)
    fed.batch(table(k=[1, 2, 1, 1], y=[1, 2, 3, 4]), 1)
    assert fed.in_arrays
    left_window, right_window = fed.running._live
    assert 2 == len(left_window)
    assert not fed.in_arrays
    assert [{"k": 1, "y": 3}, {"k": 1, "y": 4}] == right_window[1]


@pytest.mark.parametrize("way", ["insert", "read", "batch", "snapshot"])
def test_a_join_that_is_taking_a_batch_cannot_be_used_meanwhile(way):
    running = Join(left=ten, right=ten, on="k").open()
    uses: dict[str, Any] = {
        "insert": lambda: running.insert({"k": 1, "x": 1}, 0),
        "batch": lambda: running.insert_batch(table(k=[1], x=[1]), 0),
        "read": lambda: len(running._live[0]),
        "snapshot": running.snapshot,
    }
    running.insert_batch(table(k=[1, 2], x=[1, 2]), 0)
    running.connect(0, lambda row: uses[way]())
    with pytest.raises(AccessError, match="it is taking a batch"):
        running.insert_batch(table(k=[3, 1], y=[1, 2]), 1)
    running.connect(0, (rows := list[Any]()).append)
    running.insert_batch(table(k=[2], y=[3]), 1)
    assert [{"k": 2, "x": 2, "y": 3}] == rows
    assert [1, 2, 3] == [row["y"] for row in running._live[1][None]]


class BoomError(Exception):
    pass


@pytest.mark.parametrize("at", range(1, 14))
@pytest.mark.parametrize(
    ("how", "unmatched"),
    [*((how, "row") for how in HOWS), *((how, "port") for how in ("left", "right", "outer"))],
)
def test_a_failure_downstream_leaves_the_same_state_and_the_same_output(how, at, unmatched):
    op = Join(left=Sliding(Count(3)), right=Sliding(Count(2)), on="k", how=how, unmatched=unmatched)
    outcomes = []
    for batches in (True, False):
        fed = Fed(op, batches=batches)
        sent: list[Any] = []

        def send(*row, sent=sent):
            sent.append(row)
            if len(sent) % at == 0:
                raise BoomError

        for port in range(len(fed.running.model.outputs)):
            fed.running.connect(port, send, send)
        keys = np.array([1, 2, 3, 1, 1, 4, 2, 5, 1, 1])
        for i in range(4):
            try:
                fed.batch(table(k=keys[i:], n=range(i, 10)), i % 2)
            except BoomError as error:
                sent.append(getattr(error, "__notes__", None))
        outcomes.append((sent, repr(fed.running.snapshot())))
    assert outcomes[0] == outcomes[1]


def test_rows_with_decimals_beyond_64_bits_may_come_before_columns():
    price = pa.decimal128(38, 2)
    wide, small = (
        pa.table({"k": [1, 2], "x": pa.array([Decimal(n)] * 2, price)}) for n in (10**30, 1)
    )
    for first in ("rows", "batch"):
        steps = [(first, wide, 0), ("batch", small, 1), ("batch", small, 0), ("batch", wide, 1)]
        compared(Join(left=ten, right=ten, on="k"), steps)
