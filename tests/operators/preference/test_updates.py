"""The updates are exactly the differences of successive skylines."""
# ruff: noqa: SIM300 - asserts read expected first

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.preference import preference_oracle as oracles
from tests.operators.preference.preference_driver import END, by_batch, by_row, by_table
from windowlib import Count, Delta, PartitionCount, SchemaError, Sliding, Time, TupleCount, replay
from windowlib.farms.choice import choose
from windowlib.operators import Aggregate, SkylineUpdates, agg, desc

few = st.integers(0, 3)


@st.composite
def streams(draw, most=30, back=0):
    """Rows with many ties; ts may go back by so much."""
    steps = st.integers(-back, 3)
    drawn = draw(st.lists(st.tuples(st.sampled_from("xy"), steps, few, few), max_size=most))
    ts, rows = 0, []
    for n, (city, step, a, b) in enumerate(drawn):
        ts += step
        rows.append({"city": city, "ts": ts, "a": a, "b": b, "n": n})
    return rows


def front(rows):
    """The skyline of rows, by arrival number."""
    places = oracles.skyline([(row["a"], -row["b"]) for row in rows])
    return {rows[i]["n"]: rows[i] for i in places}


def step(before, after):
    """What one step sends: what leaves, what enters, a punctuation."""
    gone = [before[n] | {"change": "-"} for n in sorted(before.keys() - after.keys())]
    come = [after[n] | {"change": "+"} for n in sorted(after.keys() - before.keys())]
    return [*gone, *come]


def differences(spec, rows):
    """The differences of the skylines of all windows, taken at every row."""
    windows = Aggregate(Sliding(spec.evict, by=spec.by), rows=agg.collect(), partial="emit")
    told: dict[str | None, dict[int, Any]] = {}
    found = []
    for sent in by_row(windows, rows):
        if sent == END:
            found.append(END)
            continue
        key = sent.get("city")
        after = front(sent["rows"])
        found += step(told.get(key, {}), after)
        told[key] = after
    return found


WINDOWS = [
    Sliding(Count(1)),
    Sliding(Count(5)),
    Sliding(Count(3), by="city"),
    Sliding(Delta("ts", 4)),
    Sliding(Delta("ts", 4), by="city"),
]
each = pytest.mark.parametrize("spec", WINDOWS, ids=repr)


@each
@settings(max_examples=examples(50))
@given(rows=streams())
def test_updates_are_the_differences_of_successive_skylines(spec, rows):
    updates = SkylineUpdates(spec, "a", desc("b"))
    assert differences(spec, rows) == by_row(updates, rows)


@settings(max_examples=examples(50))
@given(rows=streams(back=3))
def test_rows_may_leave_before_those_that_came_earlier(rows):
    spec = Sliding(Delta("ts", 3))
    assert differences(spec, rows) == by_row(SkylineUpdates(spec, "a", desc("b")), rows)


@each
@settings(max_examples=examples(15))
@given(rows=streams(), data=st.data())
def test_rows_batches_and_restarts_give_the_same(spec, rows, data):
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4))
    updates = SkylineUpdates(spec, "a", desc("b"))
    want = by_row(updates, rows)
    assert want == by_batch(updates, rows, cuts)
    assert want == by_batch(updates, rows, cuts, restarts=False)
    assert want == by_batch(updates, rows, cuts, restarts=True)
    if rows:
        schema = pa.RecordBatch.from_pylist(rows).schema
        assert [row for row in want if row != END] == by_table(updates, rows, cuts, schema)


@settings(max_examples=examples(50))
@given(rows=streams(), restarts=st.booleans())
def test_rows_that_are_too_old_leave_with_the_clock(rows, restarts):
    updates = SkylineUpdates(Sliding(Time("4s")), "a", desc("b"))
    sent: list[Any] = []
    running = updates.open()
    running.connect(0, sent.append, lambda: sent.append(END))
    want: list[Any] = []
    told: dict[int, Any] = {}
    held: list[Any] = []

    def expire(now):
        """One step for each row that is too old, at its time."""
        nonlocal told
        while held and held[0]["ts"] + 4 < now:
            held.pop(0)
            found = step(told, front(held))
            want.extend([*found, END] if found else [])
            told = front(held)

    for row in rows:
        running.advance(row["ts"])
        expire(row["ts"])
        running.insert(row)
        held.append(row)
        want += [*step(told, front(held)), END]
        told = front(held)
        if restarts:
            state = running.snapshot()
            running = updates.open()
            running.connect(0, sent.append, lambda: sent.append(END))
            running.restore(state)
    running.advance(1000)
    expire(1000)
    assert want == sent


def test_a_step_that_changes_nothing_sends_its_punctuation_if_a_row_came_in():
    rows = [{"a": 1}, {"a": 2}]
    updates = SkylineUpdates(Sliding(Count(5)), "a")
    assert [{"a": 1, "change": "+"}, END, END] == by_row(updates, rows)


def test_the_rows_of_an_evicted_partition_leave_the_skyline():
    rows = [{"city": "x", "a": 1}, {"city": "x", "a": 1}, {"city": "y", "a": 2}]
    one = Sliding(Count(5), by="city", forget=PartitionCount(1))
    found = by_row(SkylineUpdates(one, "a"), rows)
    changes = [row if row == END else row["change"] + row["city"] for row in found]
    assert ["+x", END, "+x", END, "+y", END, "-x", "-x", END] == changes


def test_a_partition_that_comes_again_starts_afresh():
    rows = [{"city": city, "a": a} for city, a in (("x", 1), ("y", 1), ("x", 2))]
    window = Sliding(Count(5), by="city", forget=TupleCount(1))
    found = by_row(SkylineUpdates(window, "a"), rows)
    shown = [row if row == END else f"{row['change']}{row['city']}{row['a']}" for row in found]
    assert ["+x1", END, "+y1", END, "-x1", END, "+x2", END, "-y1", END] == shown


def test_the_same_object_may_come_twice():
    same, better = {"a": 2, "b": 2}, {"a": 1, "b": 1}
    rows = [same, better, same, {"a": 5, "b": 5}, {"a": 0, "b": 9}]
    updates = SkylineUpdates(Sliding(Count(3)), "a", "b")
    found = [f"{row['change']}{row['a']}{row['b']}" for row in by_row(updates, rows) if row != END]
    assert ["+22", "-22", "+11", "-11", "+22", "+09"] == found


def test_values_that_are_no_floats_change_nothing_of_the_answer():
    one = [Decimal(1), "b", math.inf, 2**70]
    for odd in one:
        rows = [{"a": odd, "b": b, "n": n} for n, b in enumerate((3, 1, 2, 1, 5, 0, 7))]
        plain = [row | {"a": 1} for row in rows]
        for spec in (Sliding(Count(3)), Sliding(Delta("n", 2))):
            updates = SkylineUpdates(spec, "a", desc("b"))
            want = by_row(updates, plain)
            found = by_row(updates, rows)
            assert want == [row if row == END else row | {"a": 1} for row in found]


def test_numbers_may_turn_into_values_that_only_python_compares():
    numbers = [3, 1, 2**60 + 1, 2**60, 0.5, 2**60, 7]
    rows = [{"a": a, "b": -i % 3, "n": i} for i, a in enumerate(numbers)]
    spec = Sliding(Count(4))
    assert differences(spec, rows) == by_row(SkylineUpdates(spec, "a", desc("b")), rows)


def test_nan_is_worse_than_infinity():
    rows = [{"a": math.nan}, {"a": 7.0}, {"a": None}, {"a": math.inf}, {"a": math.nan}]
    updates = SkylineUpdates(Sliding(Count(2)), "a", nan="worst")
    found = [f"{row['change']}{row['a']}" for row in by_row(updates, rows) if row != END]
    assert ["+nan", "-nan", "+7.0", "-7.0", "+inf"] == found


def test_a_row_that_is_refused_has_pushed_out_the_oldest_all_the_same():
    sent: list[Any] = []
    running = SkylineUpdates(Sliding(Count(2)), "a").open()
    running.connect(0, sent.append, lambda: sent.append(END))
    running.insert_many([{"a": 1}, {"a": 2}])
    with pytest.raises(SchemaError, match="'a' is None in the row"):
        running.insert({"a": None})
    changes = [row if row == END else f"{row['change']}{row['a']}" for row in sent]
    assert ["+1", END, END, "-1", "+2", END] == changes


def test_it_holds_more_rows_than_it_makes_room_for_at_first():
    rows = [{"a": n, "b": n, "n": n} for n in range(200)]  # larger b is better: all stay
    spec = Sliding(Count(150))
    found = by_row(SkylineUpdates(spec, "a", desc("b")), rows)
    assert 200 == sum(row != END and row["change"] == "+" for row in found)
    assert 50 == sum(row != END and row["change"] == "-" for row in found)


def test_the_column_can_be_renamed():
    updates = SkylineUpdates(Sliding(Count(2)), "a", change="how")
    assert [{"a": 1, "how": "+"}] == list(replay(updates, [{"a": 1}]))
    schema = pa.schema({"a": pa.int64()})
    assert pa.schema({"a": pa.int64(), "how": pa.string()}) == updates.schema(schema)
    assert updates.schema(None) is None
    assert updates.passes("a", 0)
    assert not updates.passes("how", 0)


def test_only_keys_keep_its_work_apart():
    assert "key" == choose(SkylineUpdates(Sliding(Count(9), by="city"), "a"), 2).pattern
    assert "the skyline before" == SkylineUpdates(Sliding(Count(9)), "a").beyond_window()
    assert "largest b" in SkylineUpdates(Sliding(Count(9)), "a", desc("b")).explain()
