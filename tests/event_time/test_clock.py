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


@given(st.lists(st.integers(0, 200), min_size=1, max_size=40), st.integers(0, 40))
def test_in_order_it_is_the_clock_of_arrivals_moved_back(stamps, slack):
    """With rows in order, the clock is behind them by the slack, and the windows are the same."""
    stream = rows(*sorted(stamps))
    ages = Sliding(Count(3), every=Count(1), by="k", forget=PartitionAge("20s"))
    for op in (TIMED, Aggregate(ages, n=agg.count(), partial="emit")):
        plain = replay(op, stream, times="ts", start=0)
        moved = [{**row, "at": row["ts"] + slack} for row in stream]
        clock = replay(op, moved, times="at", watermark=f"{slack}s", start=0)
        assert list(plain) == list(clock)


def test_the_least_of_several_sources_is_the_clock():
    stream = [{**row, "host": row["k"]} for row in rows(10, 4, 20, 6)]
    slow = Watermark("0s", sources="host")
    op = Aggregate(Sliding(Count(1), by="k", forget=PartitionAge("3s")), n=agg.count())
    running = replay(op, stream, times="ts", watermark=slow, start=0)
    assert 4 == len(list(running))
