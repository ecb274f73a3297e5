"""An operator that is not the same everywhere is found, and the message says where."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import NamedTuple

import pytest

from tests.testing.broken_operators import ROWS, Batched, Farmed, Numbered, Spread, Unread, tumbling
from windowlib import Count, PartitionCount, Punct, Sliding, Time, Tumbling, punct, to
from windowlib.operators import Aggregate, Join, Sort, agg
from windowlib.testing import assert_same_everywhere
from windowlib.testing.comparison import equal, within_tolerance

HIGH = Aggregate(Sliding(Count(4), every=Count(2), by="k"), high=agg.max("x"), m=agg.mean("x"))


def failure(op, rows=ROWS, **options):
    with pytest.raises(AssertionError) as caught:
        assert_same_everywhere(op, rows, **options)
    return str(caught.value)


def test_all_ways_that_apply_are_run():
    report = assert_same_everywhere(HIGH, ROWS)
    for name in ("the reference engine", "batches of 3", "batches and restarts, saved as arrays"):
        assert name in report.ran
    for name in ("a restart before every item", "KeyFarm", "WindowFarm, restarted", "PaneFarm"):
        assert name in report.ran
    assert report.rows > 4
    assert "not: WindowFarm(partials=True): " in str(report)
    assert f"{report.rows} rows, the same in {len(report.ran)} ways" in str(report)


def test_ways_may_be_left_out():
    report = assert_same_everywhere(HIGH, ROWS, batches=False, restarts=False, farms=False)
    assert ["rows taken together", "the reference engine"] == report.ran


def test_time_and_punctuations_are_among_the_rows():
    timed = Aggregate(Tumbling(Time("3s"), by="k"), n=agg.count())
    assert "KeyFarm" in assert_same_everywhere(timed, ROWS, times="ts").ran
    closed = Aggregate(Tumbling(Punct()), n=agg.count())
    assert assert_same_everywhere(closed, [*ROWS[:3], punct(), *ROWS[3:]]).rows >= 2


def test_rows_are_put_in_order_first():
    ordered = Aggregate(Sliding(Count(2), order_by="ts"), x=agg.last("x"))
    assert "batches of 2" in assert_same_everywhere(ordered, ROWS[::-1]).ran


def test_an_operator_may_have_several_inputs():
    pairs = Join(left=Sliding(Count(3)), right=Sliding(Count(2)), on="k")
    rows = [to(("left", "right")[i % 3 == 0], row) for i, row in enumerate(ROWS)]
    assert "batches of 2" in assert_same_everywhere(pairs, rows).ran


def test_a_graph_has_no_reference_engine():
    chain = Sort("x", window=Tumbling(Count(4))).then(Aggregate(Tumbling(Punct()), n=agg.count()))
    report = assert_same_everywhere(chain, ROWS)
    assert "it has no windows itself" == report.left_out["the reference engine"]
    assert "whole batches" in report.ran


def test_an_operator_with_windows_of_its_own_has_no_reference_engine():
    report = assert_same_everywhere(Sort("x", window=Sliding(Count(3))), ROWS)
    assert "it brings windows of its own" == report.left_out["the reference engine"]


def test_where_partitions_are_evicted_keys_are_not_spread():
    few = Aggregate(Sliding(Count(2), by="k", forget=PartitionCount(1)), n=agg.count())
    report = assert_same_everywhere(few, ROWS)
    assert "each place evicts its own partitions" in report.left_out["KeyFarm"]


class Trade(NamedTuple):
    k: str
    x: int


def test_rows_that_are_no_columns_are_not_cut_into_batches():
    rows = [Trade(row["k"], row["x"]) for row in ROWS]
    report = assert_same_everywhere(tumbling(Spread), [row._asdict() for row in rows])
    assert not report.left_out.get("batches")
    total = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
    report = assert_same_everywhere(total, rows)
    assert "its rows are no dicts, but Trade" == report.left_out["batches"]
    report = assert_same_everywhere(Batched(), [0, 0])
    assert "its rows are no dicts, but int" == report.left_out["batches"]
    report = assert_same_everywhere(total, [{"x": 1, "y": object()}, {"x": 1, "y": object()}])
    assert "its rows are no Arrow columns" in report.left_out["farms"]


def test_numbers_of_several_types_are_one_column():
    total = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
    assert "whole batches" in assert_same_everywhere(total, [{"x": 1}, {"x": 2.5}] * 3).ran


# -- what is broken --


def test_state_that_a_snapshot_lacks_is_found():
    told = failure(tumbling(Numbered))
    assert "a restart before every item differs at row 2 of what comes out (output 'out')" in told
    assert "plain Python, row by row     {'k': 'b', 'spread': 2}" in told
    assert "a restart before every item  {'k': 'b', 'spread': 1}" in told


def test_state_that_cannot_be_saved_is_found():
    assert "a restart before every item raised" in failure(tumbling(Unread))


def test_columns_that_give_something_else_are_found():
    told = failure(Batched(), restarts=False, farms=False)
    assert "whole batches differs at row 1 of what comes out" in told
    assert "The same in 1 ways before: rows taken together." in told


def test_parts_that_are_merged_wrongly_are_found():
    told = failure(Farmed(Sliding(Count(4), every=Count(2))), batches=False)
    assert "PaneFarm differs at row 2" in told


def test_a_way_with_fewer_rows_is_found():
    class Stops(Numbered):
        def before_flush(self, window, key):
            self.number += 1
            if self.number < 4:
                self.emit(k=key, spread=0)

    told = failure(tumbling(Stops), batches=False, farms=False)
    assert "nothing  (3 in all)" in told


# -- when values are the same --


def test_values_are_the_same_to_the_type_and_nearly_to_the_digit():
    same = within_tolerance(1e-9)
    assert same({"a": [1.0, None, "x"]}, {"a": [1.0 + 1e-12, None, "x"]})
    assert same(float("nan"), float("nan"))
    for one, other in [(1, 1.0), (1, True), (1.0, 1.1), ([1], [1, 2]), ({"a": 1}, {"b": 1})]:
        assert not same(one, other)


def test_what_was_written_down_is_compared_by_equality():
    assert equal({"a": (1, float("nan"))}, {"a": (1.0, float("nan"))})
    for one, other in [(1, 2), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ([1], (1,))]:
        assert not equal(one, other)
