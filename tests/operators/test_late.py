"""Rows whose delta attribute goes back: kept, refused, or sent elsewhere."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import (
    Count,
    Delta,
    DeltaOrderError,
    ModelError,
    PartitionCount,
    SchemaError,
    Sliding,
    Tumbling,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg

WINDOW = Tumbling(Delta("ts", 5), by="k")
NOON = datetime(2024, 3, 1, 12)


def rows(*stamps: Any, k: str = "a") -> list[Any]:
    return [{"k": k, "ts": ts} for ts in stamps]


def collecting(late, window=WINDOW, **more):
    return Aggregate(window, late=late, flush_at_end=True, xs=agg.collect("ts"), **more)


def test_they_are_kept_unless_said_otherwise():
    assert [[1, 3, 2], [9]] == [r["xs"] for r in replay(collecting("keep"), rows(1, 3, 2, 9))]


def test_they_go_to_a_port_of_their_own():
    result = replay(collecting("port"), rows(1, 3, 2, 3, 9))
    assert [[1, 3, 3], [9]] == [row["xs"] for row in result]
    assert rows(2) == result.port("late")


def test_each_partition_has_its_own_order():
    stream = [*rows(5), *rows(1, k="b"), *rows(4), *rows(2, k="b")]
    result = replay(collecting("port"), stream)
    assert [[5], [1, 2]] == [row["xs"] for row in result]
    assert rows(4) == result.port("late")


def test_an_error_names_the_value_and_the_row_and_changes_nothing():
    operator = Aggregate(Sliding(Delta("ts", "1m"), by="symbol"), late="error", n=agg.count())
    running = operator.open()
    for second in (5, 7):
        running.insert({"symbol": "ACME", "ts": NOON + timedelta(seconds=second)})
    before = running.snapshot()
    with pytest.raises(DeltaOrderError) as caught:
        running.insert({"symbol": "ACME", "ts": NOON + timedelta(seconds=6)})
    assert (
        "Delta('ts', \"1m\"), symbol='ACME': the value went back from 2024-03-01 12:00:07 to "
        "2024-03-01 12:00:06 (row 3). Sort first: Sort('ts', window=Sliding(Delta('ts', \"1m\")))"
        '.then(...), or pass late="port" to divert such rows.'
    ) == str(caught.value)
    assert before == running.snapshot()


def test_a_partition_that_is_forgotten_starts_afresh():
    window = Tumbling(Delta("ts", 5), by="k", forget=PartitionCount(1))
    stream = [*rows(5), *rows(1, k="b"), *rows(3)]
    result = replay(collecting("port", window, evicted_partitions="emit"), stream)
    assert [[5], [1], [3]] == [row["xs"] for row in result]
    assert [] == result.port("late")


def test_a_row_that_the_window_refuses_moves_nothing():
    running = Aggregate(Tumbling(Delta("ts", 5)), late="error", n=agg.sum("x")).open()
    running.insert({"ts": 1, "x": 1})
    with pytest.raises(SchemaError):
        running.insert({"ts": 4, "x": "no number"})
    with pytest.raises(SchemaError, match="cannot be compared"):
        running.insert({"ts": None, "x": 1})
    running.insert({"ts": 2, "x": 1})


def test_both_delta_attributes_are_watched():
    window = Sliding(Delta("a", 5), every=Delta("b", 1))
    result = replay(
        Aggregate(window, late="port", partial="emit", n=agg.count()),
        [{"a": 1, "b": 1}, {"a": 2, "b": 0}, {"a": 0, "b": 3}],
    )
    list(result)
    assert [{"a": 2, "b": 0}, {"a": 0, "b": 3}] == result.port("late")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=20), st.data())
def test_nothing_is_lost_and_a_restart_changes_nothing(pairs, data):
    stream = [{"k": k, "ts": ts} for k, ts in pairs]
    result = replay(collecting("port"), stream)
    taken = [row["xs"] for row in result]
    late = result.port("late")
    assert sorted(ts for _, ts in pairs) == sorted(
        [ts for xs in taken for ts in xs] + [row["ts"] for row in late]
    )
    assert all(xs == sorted(xs) for xs in taken)
    place = data.draw(st.integers(0, len(stream)))
    again = replay(collecting("port"), [*stream[:place], restart(), *stream[place:]])
    assert (taken, late) == ([row["xs"] for row in again], again.port("late"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: collecting("never"),
            "Aggregate(late='never'): unknown. Use 'keep', 'error' or 'port'.",
        ),
        (
            lambda: collecting("port", Tumbling(Count(3))),
            "Aggregate(late='port'): the window has no Delta policy, so no row is late. Drop it, "
            "or use a window such as Tumbling(Delta('ts', '1m')).",
        ),
    ],
)
def test_a_wrong_choice_is_refused(make, message):
    with pytest.raises(ModelError) as caught:
        make()
    assert message == str(caught.value)
