"""Panes: windows of event time fill in any order, and come out whole and in order."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.disorder.disorder_driver import (
    MARK,
    Watched,
    by_batch,
    by_row,
    numbers,
    panes_in,
    rows_for,
)
from tests.operators.disorder.disorder_oracle import (
    SLACKS,
    TABLE,
    disordered,
    members,
    paned,
    reordered,
)
from windowlib import Count, Punct, Tumbling, replay
from windowlib.errors import DeltaOrderError, ModelError, PolicyError, SchemaError
from windowlib.operators import (
    Aggregate,
    FixedSlack,
    KSlack,
    Panes,
    QuantileSlack,
    Reorder,
    Sort,
    agg,
)
from windowlib.operators.disorder import disorder_operator

slacks = pytest.mark.parametrize("slack", SLACKS, ids=repr)
SHAPES = [(10, 10, 0), (10, 5, 0), (10, 3, 2), (7, 7, 3), (1, 1, 0), (12, 4, 1)]
shapes = pytest.mark.parametrize(("size", "every", "offset"), SHAPES)


@pytest.fixture(autouse=True)
def arrays_for_any_batch(monkeypatch):
    monkeypatch.setattr(disorder_operator, "FEW", 1)


def without_empty(panes):
    return [pane for pane in panes if pane]


# -- what comes out --


@slacks
@shapes
@pytest.mark.parametrize("seed", [5, 7, 8])
def test_windows_hold_what_the_definition_says(slack, size, every, offset, seed):
    stamps = disordered(150, seed)
    op = Panes("ts", size=size, every=every, offset=offset, slack=slack, late="port")
    items = by_row(op, rows_for(stamps))
    content, late = paned(slack, stamps, size, every, offset)
    assert list(content.values()) == without_empty(panes_in(items))
    assert late == numbers(items, "late")


@shapes
@given(data=st.data())
@settings(max_examples=examples(15))
def test_batches_give_the_same_rows_and_punctuations(size, every, offset, data):
    stamps = data.draw(st.lists(st.integers(-30, 60), min_size=1, max_size=60))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=4)))
    slack = data.draw(st.sampled_from(SLACKS))
    op = Panes("ts", size=size, every=every, offset=offset, slack=slack, late="port", start="s")
    rows = rows_for(stamps)
    assert by_row(op, rows) == by_batch(op, rows, cuts)
    assert by_row(op, rows) == by_batch(op, rows, cuts, restarts=True)


@slacks
def test_keys_have_windows_of_their_own(slack):
    stamps = disordered(200, 6)
    rows = rows_for(stamps, ["a", "b"])
    op = Panes("ts", size=10, slack=slack, late="port", by="k", empty=0)
    items = by_row(op, rows)
    assert items == by_batch(op, rows, [70, 71])
    assert items == by_row(op, rows, restarts=True)
    for place, key in enumerate("ab"):
        content, late = paned(slack, stamps[place::2], 10, 10)
        expected = [[2 * n + place for n in pane] for pane in content.values()]
        assert expected == [pane for pane in panes_in(items) if rows[pane[0]]["k"] == key]
        mine = [item for item in items if item != MARK and item[1]["k"] == key]
        assert [2 * n + place for n in late] == numbers(mine, "late")


@slacks
def test_in_an_ordered_stream_no_row_is_late(slack):
    items = by_row(Panes("ts", size=10, slack=slack, late="port"), rows_for(range(300)))
    assert [] == numbers(items, "late")
    assert [list(range(low, low + 10)) for low in range(0, 300, 10)] == panes_in(items)


@pytest.mark.parametrize("delay", ["new", "arrival"])
def test_a_row_behind_the_punctuation_whose_window_is_open_is_not_late(delay):
    slack = KSlack(delay)
    dropped = set(reordered(slack, TABLE)[1])
    late = numbers(by_row(Panes("ts", size=10, slack=slack, late="port"), rows_for(TABLE)), "late")
    assert set(late) < dropped
    assert all(TABLE[n] // 10 < max(TABLE[:n]) // 10 for n in late)


def test_a_window_closes_when_the_punctuation_reaches_its_end():
    watched = Watched(Panes("ts", size=10, slack=3))
    closed = []
    for row in rows_for([5, 12, 9, 13, 8]):
        watched.running.insert(row)
        closed.append(panes_in(watched.taken()))
    assert [[], [], [], [[0, 2]], []] == closed
    assert 1 == watched.live.late_rows


def test_a_row_that_is_late_for_some_of_its_windows_counts_in_the_others():
    op = Panes("ts", size=10, every=5, slack=0, start="from")
    items = by_row(op, rows_for([1, 10, 7]))
    found = [(row["from"], row["n"]) for _, row in items if row != "punctuation"]
    assert [(-5, 0), (0, 0), (5, 2), (5, 1), (10, 1)] == found
    assert [0, 1] == members(7, 10, 5)  # of which the first was closed


@pytest.mark.parametrize("by", [None, "k", ["k", "n"]])
def test_no_row_of_a_batch_is_looked_at_alone(by, monkeypatch):
    def unwanted(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(disorder_operator.DisorderOperator, "on_tuple", unwanted)
    watched = Watched(Panes("ts", size=10, slack=KSlack(), late="port", by=by))
    watched.give(rows_for(disordered(100, 1), ["a", "b"]), whole=True)
    watched.running.finish()
    assert watched.items


# -- empty windows --


def test_an_empty_window_between_others_is_a_punctuation_alone():
    op = Panes("ts", size=10, slack=0)
    assert [[0], [], [], [1]] == panes_in(by_row(op, rows_for([5, 35])))


def test_after_a_long_gap_not_every_empty_window_is_told():
    rows = rows_for([5, 10**12])
    assert [[0], *[[]] * 1000, [1]] == panes_in(by_row(Panes("ts", size=10, slack=0), rows))
    few = Panes("ts", size=10, slack=0, empty=2)
    assert [[0], [], [], [1]] == panes_in(by_row(few, rows))
    assert [[0], [1]] == panes_in(by_row(Panes("ts", size=10, slack=0, empty=0), rows))


def test_there_is_no_empty_window_before_the_first_row():
    assert [[0]] == panes_in(by_row(Panes("ts", size=10, slack=0), rows_for([10**12])))


def test_empty_windows_come_as_soon_as_they_are_closed():
    watched = Watched(Panes("ts", size=10, slack=0))
    watched.running.insert_many(rows_for([5, 45]))
    assert [[0], [], [], []] == panes_in(watched.taken())


# -- where a window begins --


@pytest.mark.parametrize("cuts", [None, []])
def test_rows_say_where_their_window_begins(cuts):
    op = Panes("ts", size=10, offset=3, slack=0, start="from")
    rows = rows_for([2, 3, 25])
    items = by_row(op, rows) if cuts is None else by_batch(op, rows, cuts)
    starts = [row["from"] for _, row in items if row != "punctuation"]
    assert [-7, 3, 23] == starts


DAY = datetime(2024, 3, 1, 12, 34, 56)


@pytest.mark.parametrize(
    ("value", "size", "start"),
    [
        (DAY, "1h", datetime(2024, 3, 1, 12)),
        (DAY.replace(tzinfo=UTC), "1h", datetime(2024, 3, 1, 12, tzinfo=UTC)),
        (timedelta(minutes=90), "1h", timedelta(hours=1)),
        (date(2024, 3, 1), "2d", date(2024, 2, 29)),
        (7, 5, 5),
        (7.5, 2.5, 7.5),
        (7, 2.5, 5.0),
    ],
)
def test_where_a_window_begins_is_what_the_timestamp_is(value, size, start):
    op = Panes("ts", size=size, slack=0, start="from")
    (row,) = replay(op, [{"ts": value}])
    assert {"ts": value, "from": start} == row
    running = op.open()
    made = []
    batch = pa.RecordBatch.from_pylist([{"ts": value}])
    made += running.process_batch(batch).to_pylist()
    later = value + (timedelta(days=9) if isinstance(size, str) else 1000)
    made += running.process_batch(pa.RecordBatch.from_pylist([{"ts": later}])).to_pylist()
    assert [row] == made


def test_the_columns_of_the_output_are_known():
    whole = pa.schema({"ts": pa.int32(), "x": pa.string()})
    timed = pa.schema({"ts": pa.timestamp("s", "UTC")})
    assert whole == Panes("ts", size=5, slack=0).schema(whole)
    assert pa.int64() == Panes("ts", size=5, slack=0, start="s").schema(whole).field("s").type
    half = Panes("ts", size=0.5, slack=0, start="s")
    assert pa.float64() == half.schema(whole).field("s").type
    hour = Panes("ts", size="1h", slack=0, start="s", late="port")
    first, late = hour.schemas(timed)
    assert pa.timestamp("us", "UTC") == first.field("s").type
    assert timed == late
    assert hour.schema(None) is None
    spell = pa.schema({"ts": pa.duration("s")})
    assert pa.duration("us") == hour.schema(spell).field("s").type
    nano = pa.schema({"ts": pa.timestamp("ns")})
    assert pa.timestamp("ns") == hour.schema(nano).field("s").type
    days = pa.schema({"ts": pa.date32()})
    assert pa.date32() == hour.schema(days).field("s").type
    assert not hour.passes("s", 0)
    assert hour.passes("s", 1)
    assert hour.passes("ts", 0)


# -- time --


@pytest.mark.parametrize("whole", [False, True])
def test_an_idle_stream_closes_its_windows(whole):
    watched = Watched(Panes("ts", size=10, slack=100, idle="5s", late="port"))

    def give(*stamps):
        watched.give(rows_for(stamps), whole)

    give(7, 25, 6)
    watched.running.advance(5)
    assert [] == watched.taken()
    watched.running.advance(6)
    assert [[2, 0], [], [1]] == panes_in(watched.taken())
    give(29, 31)
    assert [0] == numbers(watched.taken(), "late")
    watched.running.advance(60)
    assert [[1]] == panes_in(watched.taken())


# -- in graphs, and as a value --


@pytest.mark.parametrize("cuts", [None, [50, 90]])
@pytest.mark.parametrize("every", [10, 5])
def test_an_aggregate_behind_it_is_one_of_event_time(cuts, every):
    stamps = disordered(200, 5)
    sums = Aggregate(Tumbling(Punct()), w=agg.first("w"), n=agg.count(), top=agg.max("ts"))
    graph = Panes("ts", size=10, every=every, slack=KSlack("new"), start="w").then(sums)
    rows = rows_for(stamps)
    items = by_row(graph, rows) if cuts is None else by_batch(graph, rows, cuts)
    content, _ = paned(KSlack("new"), stamps, 10, every)
    expected = [
        {"w": w * every, "n": len(pane), "top": max(stamps[n] for n in pane)}
        for w, pane in content.items()
    ]
    assert expected == [row for _, row in items if row != "punctuation"]
    assert len(expected) > 20


def test_any_operator_that_takes_punctuations_may_follow():
    graph = Panes("ts", size=10, slack=5).then(Sort("n", window=Tumbling(Punct()), limit=1))
    assert [0, 1] == [row["n"] for row in replay(graph, rows_for([9, 12, 3, 14, 4]))]


def test_what_comes_out_is_in_order():
    rows = rows_for(disordered(200, 1))
    panes = Panes("ts", size=10, slack=KSlack("arrival"), late="port")
    result = replay(panes, rows)
    stamps = [row["ts"] for row in result]
    assert sorted(stamps) == stamps
    late = len(result.port("late"))
    reorder = replay(Reorder("ts", slack=KSlack("arrival"), late="port"), rows)
    list(reorder)
    assert late < len(reorder.port("late"))


@pytest.mark.parametrize("whole", [False, True])
def test_a_failure_behind_it_costs_no_row_and_no_punctuation(whole):
    watched = Watched(Panes("ts", size=10, slack=0))
    got: list[Any] = []

    def take(row):
        if row["ts"] == 2:
            raise ValueError("two")
        got.append(row["ts"])

    watched.running.connect(0, take, lambda: got.append("|"))
    with pytest.raises(ValueError, match="two"):
        watched.give(rows_for([1, 2, 3, 11]), whole)
    assert [1, 3, "|"] == got


def test_it_says_what_it_does():
    text = Panes("ts", size="1h", every="10m", slack=QuantileSlack()).explain()
    assert '"1h" of \'ts\', one every "10m"' in text
    assert "so that 0.01 of the last 5000 rows would be late" in text


def test_it_is_the_call_that_made_it():
    op = Panes("ts", size="1h", slack="5s", late="port")
    assert op == eval(repr(op))


def test_it_gives_punctuations_to_those_who_need_them():
    counts = Aggregate(Tumbling(Punct()), n=agg.count())
    assert ("Panes", "Aggregate") == Panes("ts", size=1, slack=0).then(counts).names
    with pytest.raises(ValueError, match="carries no punctuation"):
        Reorder("ts", slack=0).then(counts)


# -- mistakes --


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"size": 0, "slack": 1}, PolicyError, "size=0.: it must be more than zero"),
        ({"size": "1x", "slack": 1}, PolicyError, "is not a duration"),
        ({"size": [5], "slack": 1}, PolicyError, "not a distance"),
        ({"size": 5, "every": -1, "slack": 1}, PolicyError, "every=-1.: it must be more"),
        ({"size": 5, "every": 6, "slack": 1}, ModelError, "rows between two windows"),
        ({"size": 5, "offset": -1, "slack": 1}, PolicyError, "offset=-1.: it must not"),
        ({"size": "5s", "slack": 1}, ModelError, 'slack=1, size="5s".* mix durations and numbers'),
        ({"size": 5, "slack": 1, "start": ""}, ModelError, "start=''.: not a name"),
        ({"size": 5, "slack": 1, "start": 3}, ModelError, "start=3.: not a name"),
        ({"size": 5, "slack": 1, "empty": -1}, ModelError, "not a number of windows"),
        ({"size": 5, "slack": 1, "empty": True}, ModelError, "not a number of windows"),
        ({"size": 5, "slack": 1, "late": "no"}, ModelError, 'say "drop", "port" or "error"'),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        Panes("ts", **options)


def test_a_timestamp_of_another_kind_than_the_size_is_refused():
    with pytest.raises(SchemaError, match=r'size="1h" is no distance of those. Write a number'):
        Watched(Panes("ts", size="1h", slack=KSlack())).running.insert({"ts": 5})


def test_a_late_row_may_be_an_error():
    watched = Watched(Panes("ts", size=10, slack=FixedSlack(0), late="error"))
    rows = rows_for([5, 15, 12, 3, 26])
    with pytest.raises(DeltaOrderError, match=r"'ts': 3.* complete up to 15"):
        watched.running.insert_batch(pa.Table.from_pylist(rows))
    watched.running.finish()
    assert [[0], [2, 1]] == panes_in(watched.items)


def test_rows_without_columns_have_no_place_for_a_start():
    with pytest.raises(SchemaError, match="has no named columns"):
        list(replay(Panes(0, size=5, slack=0, start="s"), [(1, 2)]))


def test_a_count_window_may_follow_too():
    graph = Panes("ts", size=10, slack=0).then(Aggregate(Tumbling(Count(2)), n=agg.count()))
    assert [{"n": 2}] == list(replay(graph, rows_for([1, 2, 3])))
