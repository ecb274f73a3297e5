"""Reorder: rows come out in the order of timestamps, and late ones where they are told to."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.disorder.disorder_driver import Watched, by_batch, by_row, numbers, rows_for
from tests.operators.disorder.disorder_oracle import SLACKS, TABLE, disordered, reordered
from windowlib import KEY, Count, Delta, Tumbling, replay
from windowlib.errors import (
    DeltaOrderError,
    ModelError,
    PartitionError,
    PolicyError,
    SchemaError,
)
from windowlib.operators import (
    Aggregate,
    Filter,
    FixedSlack,
    KSlack,
    PidSlack,
    QuantileSlack,
    Reorder,
    agg,
)
from windowlib.operators.disorder import disorder_operator
from windowlib.runtime.counters import Counters

slacks = pytest.mark.parametrize("slack", SLACKS, ids=repr)


@pytest.fixture(autouse=True)
def arrays_for_any_batch(monkeypatch):
    monkeypatch.setattr(disorder_operator, "FEW", 1)


# -- what comes out --


@pytest.mark.parametrize(("delay", "late"), [("new", [11, 9]), ("arrival", [11, 13, 9, 22])])
def test_the_table_of_twelve_loses_the_rows_that_it_says(delay, late):
    result = replay(Reorder("ts", slack=KSlack(delay), late="port"), rows_for(TABLE))
    assert sorted(set(TABLE) - set(late)) == [row["ts"] for row in result]
    assert late == [row["ts"] for row in result.port("late")]


@slacks
@pytest.mark.parametrize("seed", range(3))
def test_rows_come_out_as_the_definition_says(slack, seed):
    stamps = disordered(200, seed)
    items = by_row(Reorder("ts", slack=slack, late="port"), rows_for(stamps))
    out, late = reordered(slack, stamps)
    assert out == numbers(items)
    assert late == numbers(items, "late")
    assert sorted(stamps[n] for n in out) == [stamps[n] for n in out]


@slacks
@given(data=st.data())
@settings(max_examples=examples(20))
def test_batches_give_the_same_rows_in_the_same_order(slack, data):
    stamps = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=80))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=4)))
    op = Reorder("ts", slack=slack, late="port")
    rows = rows_for(stamps)
    assert by_row(op, rows) == by_batch(op, rows, cuts)
    assert by_row(op, rows) == by_batch(op, rows, cuts, restarts=True)


@slacks
@pytest.mark.parametrize("by", ["k", ["k", "j"]])
def test_batches_with_keys_give_the_same_rows_in_the_same_order(slack, by):
    stamps = disordered(300, 4)
    rows = [row | {"j": n % 2} for n, row in enumerate(rows_for(stamps, ["a", "b", None, "b"]))]
    op = Reorder("ts", slack=slack, late="port", by=by)
    assert by_row(op, rows) == by_batch(op, rows, [3, 100, 250])


@slacks
def test_each_key_has_an_order_of_its_own(slack):
    stamps = disordered(200, 6)
    rows = rows_for(stamps, ["a", "b", "c"])
    items = by_row(Reorder("ts", slack=slack, late="port", by="k"), rows)
    for place, key in enumerate("abc"):
        out, late = reordered(slack, stamps[place::3])
        mine = [item for item in items if item[1]["k"] == key]
        assert [3 * n + place for n in out] == numbers(mine)
        assert [3 * n + place for n in late] == numbers(mine, "late")


@slacks
def test_a_restart_before_any_row_changes_nothing(slack):
    rows = rows_for(disordered(120, 8), ["a", "b"])
    op = Reorder("ts", slack=slack, late="port", by="k")
    assert by_row(op, rows) == by_row(op, rows, restarts=True)


def test_equal_timestamps_stay_in_the_order_in_which_they_came():
    rows = rows_for([5, 3, 5, 3, 5, 9])
    assert [1, 3, 0, 2, 4, 5] == numbers(by_row(Reorder("ts", slack=2), rows))


def test_an_ordered_stream_passes_without_waiting():
    watched = Watched(Reorder("ts", slack=KSlack("arrival")))
    for n, row in enumerate(rows_for([1, 2, 2, 5])):
        watched.running.insert(row)
        assert [n] == numbers(watched.taken())


def test_rows_wait_until_the_punctuation_reaches_them():
    watched = Watched(Reorder("ts", slack=10))
    found = []
    for row in rows_for([100, 105, 110, 115, 121]):
        watched.running.insert(row)
        found.append(numbers(watched.taken()))
    assert [[], [], [0], [1], [2]] == found


class Point(NamedTuple):
    ts: int
    x: str


@pytest.mark.parametrize("ts", ["ts", 0, lambda row: row.ts])
def test_a_timestamp_is_a_name_an_index_or_a_function(ts):
    rows = [Point(3, "a"), Point(1, "b"), Point(9, "c")]
    assert ["b", "a", "c"] == [row.x for row in replay(Reorder(ts, slack=5), rows)]


DAY = datetime(2024, 3, 1)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (DAY, pa.timestamp("us")),
        (DAY, pa.timestamp("ms")),
        (DAY, pa.timestamp("s")),
        (DAY, pa.timestamp("ns")),
        (DAY.replace(tzinfo=UTC), pa.timestamp("us", "UTC")),
        (timedelta(hours=1), pa.duration("us")),
        (date(2024, 3, 1), pa.date32()),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_timestamps_may_be_datetimes(start, kind):
    stamps = disordered(100, 1)
    values = [start + timedelta(days=ts) for ts in stamps]
    op = Reorder("ts", slack=FixedSlack("7d"), late="port")
    rows = rows_for(values)
    out, late = reordered(FixedSlack(7), stamps)
    items = by_row(op, rows)
    assert (out, late) == (numbers(items), numbers(items, "late"))
    watched = Watched(op)
    columns = {"ts": pa.array(values, kind), "n": range(100)}
    watched.running.insert_batch(pa.table(columns))
    watched.running.finish()
    assert (out, late) == (numbers(watched.items), numbers(watched.items, "late"))


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.int64()]
)
def test_timestamps_may_be_numbers_of_any_size(kind):
    stamps = [ts % 100 for ts in disordered(100, 1)]
    out, late = reordered(KSlack(), stamps)
    watched = Watched(Reorder("ts", slack=KSlack(), late="port"))
    watched.running.insert_batch(pa.table({"ts": pa.array(stamps, kind), "n": range(100)}))
    watched.running.finish()
    assert (out, late) == (numbers(watched.items), numbers(watched.items, "late"))


@pytest.mark.parametrize("slack", [KSlack(), FixedSlack(2), FixedSlack(2.5), FixedSlack(10**15)])
@pytest.mark.parametrize("base", [2**53, 2**62 - 50, 2**62, 2**63 - 200])
def test_large_numbers_keep_all_their_digits(slack, base):
    stamps = [base + ts % 150 for ts in disordered(100, 1)]
    op = Reorder("ts", slack=slack, late="port")
    assert by_row(op, rows_for(stamps)) == by_batch(op, rows_for(stamps), [40])


def test_numbers_of_numpy_are_numbers():
    rows = [{"ts": np.int64(3)}, {"ts": np.float64(1.5)}, {"ts": np.int32(9)}]
    assert [1.5, 3, 9] == [row["ts"] for row in replay(Reorder("ts", slack=4), rows)]


# -- batches as arrays --


@pytest.mark.parametrize("by", [None, "k", ["k", "n"]])
def test_no_row_of_a_batch_is_looked_at_alone(by, monkeypatch):
    def unwanted(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(disorder_operator.DisorderOperator, "on_tuple", unwanted)
    watched = Watched(Reorder("ts", slack=KSlack(), late="port", by=by))
    watched.give(rows_for(disordered(100, 1), ["a", "b"]), whole=True)
    assert watched.items


def test_arrow_in_is_arrow_out():
    stamps = disordered(500, 3)
    rows = rows_for(stamps, ["a", "b"])
    for by in (None, "k"):
        op = Reorder("ts", slack=QuantileSlack(drop=0.02, recent=100), late="port", by=by)
        expected = numbers(by_row(op, rows))
        running = op.open()
        found = []
        for low in range(0, 500, 100):
            batch = pa.RecordBatch.from_pylist(rows[low : low + 100])
            made = running.process_batch(batch)
            assert batch.schema == made.schema
            found += made.column("n").to_pylist()
        assert expected[: len(found)] == found
        assert len(found) > 400


def test_held_rows_that_are_no_arrow_come_out_all_the_same():
    running = Reorder("ts", slack=10).open()
    running.insert({"ts": 5, "n": 0, "k": "a"})
    running.insert({"ts": 6, "n": 1, "k": "a"})
    made = running.process_batch(pa.RecordBatch.from_pylist(rows_for([7, 30])))
    assert [0, 1, 0] == made.column("n").to_pylist()
    running.insert({"ts": 31, "n": 7, "k": None})
    made = running.process_batch(pa.RecordBatch.from_pylist(rows_for([32, 60])))
    assert [1, 7, 0] == made.column("n").to_pylist()


@pytest.mark.parametrize("odd", [{"n": 2**70}, {"n": "text"}])
def test_held_rows_that_do_not_fit_the_columns_are_said_to(odd):
    running = Reorder("ts", slack=10).open()
    running.insert({"ts": 5, "k": "a", **odd})
    with pytest.raises(SchemaError, match="output column 'n'"):
        running.process_batch(pa.RecordBatch.from_pylist(rows_for([7, 30])))


def test_a_large_buffer_is_not_sorted_for_a_few_rows(monkeypatch):
    watched = Watched(Reorder("ts", slack=1000))
    watched.running.insert_batch(pa.Table.from_pylist(rows_for(range(500, 900))))

    def unwanted(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Reorder, "_admit_many", unwanted)
    watched.running.insert_batch(pa.Table.from_pylist(rows_for([900, 901])))
    assert not watched.items


def test_a_subclass_sees_every_row():
    class Counting(Reorder):
        seen = 0

        def on_tuple(self, tuple_, port):
            self.seen += 1
            super().on_tuple(tuple_, port)

    watched = Watched(Counting("ts", slack=1))
    watched.running.insert_batch(pa.Table.from_pylist(rows_for(range(50))))
    assert 50 == watched.live.seen
    assert () == Counting("ts", slack=1, by="k").splits_by(0)


# -- late rows --


@pytest.mark.parametrize("late", ["drop", "port"])
def test_late_rows_are_counted(late):
    stamps = disordered(300, 2)
    expected = len(reordered(KSlack("arrival"), stamps)[1])
    op = Reorder("ts", slack=KSlack("arrival"), late=late)
    for cuts in (None, [100]):
        watched = Watched(op)
        counters = Counters(watched.running)
        if cuts is None:
            watched.running.insert_many(rows_for(stamps))
        else:
            watched.running.insert_batch(pa.Table.from_pylist(rows_for(stamps)))
        assert expected == watched.live.late_rows == counters.read()["late"] > 3
        assert (expected if late == "port" else 0) == len(numbers(watched.items, "late"))
        watched.restart()
        assert expected == watched.live.late_rows


def test_counters_count_the_late_rows_of_all_operators_in_a_graph():
    graph = Reorder("ts", slack=0).then(Reorder("x", slack=0, late="port"))
    running = graph.open()
    running.insert({"ts": 1, "x": 9})
    running.insert({"ts": 0, "x": 9})
    counters = Counters(running)
    running.insert({"ts": 0, "x": 10})
    running.insert({"ts": 2, "x": 3})
    assert 2 == counters.read()["late"]
    state = running.snapshot()
    running.insert({"ts": 0, "x": 10})
    assert 3 == counters.read()["late"]
    running.restore(state)
    assert 3 == counters.read()["late"]
    running.insert({"ts": 0, "x": 10})
    assert 4 == counters.read()["late"]


def test_counters_of_operators_that_know_no_late_rows_are_as_they_were():
    assert "late" not in Counters(Aggregate(Tumbling(Count(2)), n=agg.count()).open()).read()


@pytest.mark.parametrize("whole", [False, True])
def test_a_late_row_may_be_an_error_and_is_then_not_taken(whole):
    watched = Watched(Reorder("ts", slack=KSlack(), late="error"))
    rows = rows_for([1, 5, 9, 4, 20])
    with pytest.raises(DeltaOrderError, match="complete up to 9"):
        watched.give(rows, whole)
    assert [0, 1, 2] == numbers(watched.taken())
    watched.running.insert(rows[4])
    assert [4] == numbers(watched.taken())  # so it was not taken for a delay, either


def test_without_late_rows_an_error_is_none():
    op = Reorder("ts", slack=50, late="error")
    rows = rows_for(disordered(100, 1))
    assert by_row(op, rows) == by_batch(op, rows, [30])


# -- time --


@pytest.mark.parametrize("whole", [False, True])
def test_an_idle_stream_lets_out_what_it_holds(whole):
    watched = Watched(Reorder("ts", slack=100, idle="10s", late="port"))

    def give(*stamps):
        watched.give(rows_for(stamps), whole)

    give(7, 5, 6)
    watched.running.advance(9)
    give(8)
    watched.running.advance(19)
    assert [] == watched.taken()
    assert 19_000_001 == watched.running.due()
    watched.running.advance(20)
    assert [5, 6, 7, 8] == [row["ts"] for _, row in watched.taken()]
    assert watched.running.due() is None
    give(7, 9)
    assert [("late", 7)] == [(port, row["ts"]) for port, row in watched.taken()]
    watched.running.advance(40)
    assert [9] == [row["ts"] for _, row in watched.taken()]


@pytest.mark.parametrize("whole", [False, True])
def test_each_key_is_idle_by_itself(whole):
    watched = Watched(Reorder("ts", slack=100, idle="10s", by="k"))
    for now in range(0, 30, 5):
        watched.running.advance(now)
        rows = [{"ts": 1, "k": "b"}, {"ts": 2, "k": "a"}] if now == 0 else [{"ts": now, "k": "a"}]
        watched.give(rows, whole)
    assert [("out", {"ts": 1, "k": "b"})] == watched.taken()


def test_a_restart_does_not_make_a_stream_idle_sooner_or_later():
    watched = Watched(Reorder("ts", slack=100, idle="10s"))
    watched.running.insert({"ts": 5})
    watched.running.advance(8)
    watched.restart()
    watched.running.advance(10)
    assert [] == watched.taken()
    watched.running.advance(11)
    assert [("out", {"ts": 5})] == watched.taken()


def test_without_an_idle_time_the_clock_is_of_no_matter():
    watched = Watched(Reorder("ts", slack=100))
    watched.running.insert({"ts": 5})
    watched.running.advance(10**9)
    assert not watched.running.timed
    assert [] == watched.taken()


def test_arrival_times_may_come_with_the_rows():
    watched = Watched(Reorder("ts", slack=100, idle="10s"))
    rows = [{"ts": 5, "at": 1}, {"ts": 4, "at": 2}, {"ts": 9, "at": 30}]
    watched.running.insert_batch(pa.Table.from_pylist(rows), times="at")
    assert [4, 5] == [row["ts"] for _, row in watched.items]


# -- in graphs, and as a value --


@pytest.mark.parametrize("cuts", [None, [50]])
def test_windows_behind_it_see_rows_in_order(cuts):
    stamps = disordered(200, 5)
    sums = Aggregate(Tumbling(Delta("ts", 30)), late="error", n=agg.count(), low=agg.min("ts"))
    graph = Reorder("ts", slack=KSlack("new")).then(Filter(lambda t: t["n"] % 2), sums)
    rows = rows_for(stamps)
    found = by_row(graph, rows) if cuts is None else by_batch(graph, rows, cuts)
    out, _ = reordered(KSlack("new"), stamps)
    odd = [rows[n] for n in out if n % 2]
    assert list(replay(sums, odd)) == [row for port, row in found if row != "punctuation"]
    assert len(found) > 5


def test_a_failure_behind_it_costs_no_row():
    running = Reorder("ts", slack=10).open()
    got = []

    def take(row):
        if row["ts"] == 2:
            raise ValueError("two")
        got.append(row["ts"])

    running.connect(0, take)
    running.insert_many(rows_for([1, 3, 2]))
    with pytest.raises(ValueError, match="two"):
        running.insert({"ts": 20, "n": 0, "k": "a"})
    assert [1, 3] == got
    running.finish()
    assert [1, 3, 20] == got


def test_a_failure_behind_a_batch_costs_no_row():
    running = Reorder("ts", slack=10, late="port").open()
    got = []

    def take(row):
        if row["ts"] == 2:
            raise ValueError("two")
        got.append(row["ts"])

    running.connect(0, take)
    with pytest.raises(ValueError, match="two"):
        running.insert_batch(pa.Table.from_pylist(rows_for([1, 3, 2, 20, 30])))
    assert [1, 3, 20] == got


def test_it_can_be_split_by_its_key():
    assert ("k",) == Reorder("ts", slack=1, by="k").splits_by(0)
    assert ("k", "j") == Reorder("ts", slack=1, by=["k", "j"]).splits_by(0)
    assert () == Reorder("ts", slack=1).splits_by(0)
    assert () == Reorder("ts", slack=1, by=len).splits_by(0)


def test_it_says_what_it_waits_for():
    text = Reorder("ts", slack=PidSlack(), late="port", idle="10s", by="k").explain()
    assert "a part of the largest delay" in text
    assert "to the output late" in text


def test_it_is_the_call_that_made_it():
    op = Reorder("ts", slack=QuantileSlack(0.02), late="port", by="k")
    assert op == eval(repr(op))
    assert op != Reorder("ts", slack=QuantileSlack(0.03), late="port", by="k")
    assert "QuantileSlack(drop=0.02, recent=5000)" == op.describe()["slack"]


def test_state_of_another_slack_is_not_taken():
    state = Reorder("ts", slack=KSlack()).open().snapshot()
    with pytest.raises(ValueError, match="slack"):
        Reorder("ts", slack=5).open().restore(state)


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist])
def test_a_slack_that_is_a_decimal_is_a_number_among_floats(form):
    stamps = [(i + (i * 7) % 19) / 10 for i in range(600)]
    rows = form([{"ts": ts} for ts in stamps])
    exact, rounded = (
        replay(Reorder("ts", slack=s, late="port"), rows) for s in (Decimal("0.5"), 0.5)
    )
    assert list(rounded) == list(exact)
    assert rounded.port("late") == exact.port("late") != []


def test_a_slack_may_be_a_decimal_as_timestamps_are():
    rows = [{"ts": Decimal(ts)} for ts in ("1", "0.9", "0.8", "0.7", "2")]
    result = replay(Reorder("ts", slack=Decimal("0.2"), late="port"), rows)
    assert ["0.8", "0.9", "1", "2"] == [str(row["ts"]) for row in result]
    assert [rows[3]] == result.port("late")


# -- mistakes --


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": None}, "not a slack"),
        ({"slack": True}, "not a slack"),
        ({"slack": 1, "late": "dorp"}, 'say "drop", "port" or "error".* Did you mean "drop"'),
        ({"slack": 1, "idle": 10}, "idle=10.*bare number"),
        ({"slack": 1, "idle": "0s"}, "longer than zero"),
        ({"slack": 1, "by": []}, "by=\\[\\]"),
        ({"slack": 1, "by": KEY}, "nothing passes the keys"),
        ({"slack": 1, "name": ""}, "not a name"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ModelError, match=message):
        Reorder("ts", **options)


@pytest.mark.parametrize("slack", ["soon", -1, "-5s", float("nan")])
def test_an_amount_that_is_no_slack_is_refused(slack):
    with pytest.raises(PolicyError, match=r"Reorder\('ts', slack="):
        Reorder("ts", slack=slack)


@pytest.mark.parametrize(
    ("slack", "stamps", "message"),
    [
        (5, [DAY], "slack=5 is no distance of those. Write a duration"),
        ("5s", [5], 'slack="5s" is no distance of those. Write a number'),
        (KSlack(), [5, DAY], "does not mix with those before it"),
        (KSlack(), [DAY, 5], "does not mix with those before it"),
        (KSlack(), [5, None], "the value None .* has no place in time"),
        (KSlack(), [5, float("nan")], "has no place in time"),
        (KSlack(), [5, float("inf")], "has no place in time"),
        (KSlack(), [5, np.float64("nan")], "has no place in time"),
        (KSlack(), [True], "has no place in time"),
        (KSlack(), ["noon"], "has no place in time"),
    ],
)
def test_a_timestamp_that_is_none_is_refused(slack, stamps, message):
    watched = Watched(Reorder("ts", slack=slack))
    with pytest.raises(SchemaError, match=message):
        watched.running.insert_many(rows_for(stamps))
    assert len(stamps) - 1 == len(watched.items)


@pytest.mark.parametrize(
    ("column", "taken"),
    [
        (pa.array([1, 2, None]), 2),
        (pa.array([1.0, 2.0, float("nan")]), 2),
        (pa.array(["a", "b", "c"]), 0),
        (pa.array([DAY] * 3), 0),
    ],
)
def test_rows_of_a_batch_before_a_mistake_are_taken(column, taken):
    watched = Watched(Reorder("ts", slack=FixedSlack(1)))
    with pytest.raises(SchemaError):
        watched.running.insert_batch(pa.table({"ts": column, "n": [0, 1, 2]}))
    watched.running.finish()
    assert list(range(taken)) == numbers(watched.items)


def test_a_missing_column_is_named():
    watched = Watched(Reorder("ts", slack=1))
    with pytest.raises(SchemaError, match="no 'ts'"):
        watched.running.insert({"t": 1})
    with pytest.raises(SchemaError, match="no 'ts'"):
        watched.running.insert_batch(pa.table({"t": [1]}))


def test_a_key_that_cannot_be_one_is_refused():
    op = Reorder("ts", slack=1, by="k")
    rows = [{"ts": 1, "k": "a", "n": 0}, {"ts": 1, "k": [1], "n": 1}]
    with pytest.raises(PartitionError, match="a list cannot be a key"):
        Watched(op).running.insert_many(rows)
    with pytest.raises(PartitionError, match="a list cannot be a key"):
        Watched(op).running.insert_batch(pa.table({"ts": [1, 2], "k": [[1], [2]]}))


def test_all_nan_are_one_key():
    nan = float("nan")
    rows = [{"ts": ts, "k": float("nan") if ts % 2 else nan, "n": ts} for ts in (4, 3, 2, 1)]
    op = Reorder("ts", slack=0, by="k", late="port")
    assert [3, 2, 1] == numbers(by_row(op, rows), "late")
    assert [3, 2, 1] == numbers(by_batch(op, rows, []), "late")


def test_a_punctuation_that_comes_in_ends_here():
    watched = Watched(Reorder("ts", slack=1))
    watched.running.punctuate()
    assert not watched.items
