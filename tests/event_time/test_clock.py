"""The watermark as the clock of windows that run on time."""
# ruff: noqa: SIM300 - asserts read expected first

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import (
    ClockError,
    Count,
    PartitionAge,
    Sliding,
    Time,
    Tumbling,
    Watermark,
    replay,
    restart,
)
from windowlib.operators import Aggregate, agg


def rows(*stamps):
    return [{"ts": ts, "k": "ab"[n % 2]} for n, ts in enumerate(stamps)]


TIMED = Aggregate(Tumbling(Time("10s"), by="k"), n=agg.count(), ts=agg.collect("ts"))


def test_a_clock_of_arrivals_does_not_go_back():
    with pytest.raises(ClockError, match="time went back"):
        list(replay(TIMED, rows(10, 8), times="ts"))


def test_the_watermark_moves_it_past_rows_that_come_late():
    stream = rows(0, 7, 3, 16, 12, 29, 60)
    found = list(replay(TIMED, stream, times="ts", watermark="5s", start=0))
    assert [[0, 3], [7], [12], [16], [29]] == sorted(row["ts"] for row in found if row["ts"])
    together = replay(TIMED, pa.Table.from_pylist(stream), times="ts", watermark="5s", start=0)
    assert found == list(together)
    again = replay(
        TIMED, [*stream[:3], restart(), *stream[3:]], times="ts", watermark="5s", start=0
    )
    assert found == list(again)


@given(st.lists(st.tuples(st.integers(20, 200), st.integers(0, 40)), min_size=1, max_size=40))
def test_rows_within_the_slack_are_taken_as_if_they_came_in_order(drawn):
    """Whatever the disorder, time policies and ages do as with the sorted rows."""
    come = sorted(drawn, key=sum)  # up to 40 s late
    stream = [{"ts": ts, "k": "ab"[(ts + late) % 2]} for ts, late in come]
    ages = Sliding(Count(3), every=Count(1), by="k", forget=PartitionAge("20s"))
    for op in (TIMED, Aggregate(ages, ts=agg.collect("ts"), partial="emit")):
        plain = replay(op, sorted(stream, key=lambda row: row["ts"]), times="ts")
        clock = replay(op, stream, times="ts", watermark="40s")
        assert list(plain) == list(clock)
        assert clock.late_rows == 0


def test_rows_that_the_clock_has_passed_are_dropped_and_counted():
    outcome = replay(TIMED, rows(20, 50, 21, 48, 90), times="ts", watermark="5s")
    assert [[20], [48], [50]] == sorted(row["ts"] for row in outcome if row["ts"])
    assert 1 == outcome.late_rows


def test_the_least_of_several_sources_is_the_clock():
    stream = [{**row, "host": row["k"]} for row in rows(3, 4, 20, 6, 30, 8)]
    op = Aggregate(Sliding(Count(1)), ts=agg.last("ts"))
    slow = replay(op, stream, times="ts", watermark=Watermark("0s", sources="host"))
    assert ([3, 4, 6, 8, 20, 30], 0) == ([row["ts"] for row in slow], slow.late_rows)
    alone = replay(op, stream, times="ts", watermark="0s")
    assert ([3, 4, 20, 30], 2) == ([row["ts"] for row in alone], alone.late_rows)
