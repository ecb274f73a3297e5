"""The column that says when rows arrive: what it may hold, what is wrong with it, who takes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import (
    AccessError,
    ClockError,
    Count,
    SchemaError,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    WallClock,
    WindowEvents,
    advance,
    replay,
    summarizers,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays import stamps
from windowlib.operators import Aggregate, Join, agg
from windowlib.window.arrow import Times

SUMS = Aggregate(Tumbling(Time("10s")), n=agg.count(), sum=agg.sum("x"))


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """Batches go to arrays however short they are."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)


def table(times, kind=None):
    """Rows with these times."""
    array = times if isinstance(times, pa.Array) else pa.array(times, kind)
    return pa.table({"ts": array, "x": range(len(array))})


def opened(operator):
    """It, running, and what comes out of it."""
    out: list[Any] = []
    running = operator.open()
    running.connect(0, out.append)
    return running, out


def row_by_row(operator, rows, times="ts"):
    """What comes out if each row is inserted at its time."""
    running, out = opened(operator)
    when = Times(times)
    for row in rows:
        running.advance_micros(when(row))
        running.insert(row)
    return out


# -- what it may hold ---------------------------------------------------------------------------

SECONDS = [0, 1, 3, 11, 11, 25]
MOMENTS = [datetime(1970, 1, 1) + timedelta(seconds=s) for s in SECONDS]
BERLIN = [each.replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin")) for each in MOMENTS]
COLUMNS = {
    "int64": pa.array(SECONDS),
    "int16": pa.array(SECONDS, pa.int16()),
    "float64": pa.array(SECONDS, pa.float64()),
    "float32": pa.array(SECONDS, pa.float32()),
    "seconds": pa.array(MOMENTS, pa.timestamp("s")),
    "milliseconds": pa.array(MOMENTS, pa.timestamp("ms")),
    "microseconds": pa.array(MOMENTS, pa.timestamp("us")),
    "with a zone": pa.array(BERLIN, pa.timestamp("us", "Europe/Berlin")),
    "durations": pa.array([timedelta(seconds=s) for s in SECONDS], pa.duration("ms")),
}
FOR_PYTHON = {
    "uint64": pa.array(SECONDS, pa.uint64()),
    "dictionary": pa.array(SECONDS).dictionary_encode(),
    "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns")),
}


@pytest.mark.parametrize("name", [*COLUMNS, *FOR_PYTHON])
def test_a_column_of_times(name):
    rows = table({**COLUMNS, **FOR_PYTHON}[name])
    running, out = opened(SUMS)
    running.insert_batch(rows, times="ts")
    assert running.operator.containers[0]._in_arrays is (name in COLUMNS)
    assert running.now == 25
    assert out == row_by_row(SUMS, rows.to_pylist())
    assert out == [{"n": 3, "sum": 3}, {"n": 2, "sum": 7}]


@given(st.lists(st.floats(-1e9, 1e9) | st.floats(-1e300, 1e300)))
def test_seconds_are_rounded_as_python_rounds_them(seconds):
    seconds = sorted(seconds)
    batch = pa.record_batch({"ts": pa.array(seconds, pa.float64())})
    found = stamps.read(batch, "ts", now=-(1 << 60))
    expected = [Times("ts")({"ts": value}) for value in seconds]
    sound = [at for at in expected if abs(at) < stamps.HUGE and at >= -(1 << 60)]
    first = next((i for i, at in enumerate(expected) if at not in sound), len(expected))
    assert found.tolist() == expected[:first]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([10**13, 0]),  # beyond 64 bits in microseconds
        pa.array([1e300, 0]),
        pa.array([2**62, 0], pa.timestamp("us")),  # beyond the years that Python has
    ],
)
def test_times_that_arrays_cannot_hold_are_left_to_python(values):
    assert len(stamps.read(pa.record_batch({"ts": values}), "ts", now=0)) == 0


def test_a_clock_that_arrays_cannot_hold_is_left_to_the_event_engine():
    window: Any = TumblingWindow(evict=Time("10s"), summarizer=summarizers.sum("x"), start=10**14)
    window.insert_batch(table([10**14, 10**14 + 11]), times="ts")
    assert not window.state.in_arrays
    assert window.now == 10**14 + 11
    assert window.size() == 1


def test_a_period_that_arrays_cannot_hold_lasts_for_ever():
    for spec in (
        Tumbling(Time(timedelta.max)),
        Tumbling(Count(9) | Time(timedelta.max)),
        Sliding(Time(timedelta.max), every=Count(3)),
        Sliding(Count(9), every=Time(timedelta.max)),
    ):
        out = row_by_row(Aggregate(spec, n=agg.count()), table(SECONDS).to_pylist())
        running = Aggregate(spec, n=agg.count()).open()
        assert running.process_batch(table(SECONDS), times="ts").to_pylist() == out
        window: Any = running.operator.containers[0]
        assert window.state.in_arrays


# -- what is wrong with it ----------------------------------------------------------------------

WRONG = {
    "null": pa.array([1, None, 2]),
    "nan": pa.array([1, float("nan"), 2]),
    "infinite": pa.array([1, float("inf"), 2]),
    "null moment": pa.array([MOMENTS[1], None], pa.timestamp("us")),
    "text": pa.array(["1", "2"]),
    "truth": pa.array([False, True]),
    "decimal": pa.array([Decimal(1), Decimal(2)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_time_that_is_none_is_refused_as_replay_does(name):
    rows = table(WRONG[name])
    taken = int(name not in ("text", "truth", "decimal"))
    with pytest.raises(ClockError) as expected:
        list(replay(SUMS, rows.to_pylist(), times="ts", start=0))
    with pytest.raises(ClockError) as whole:
        list(replay(SUMS, rows, times="ts", start=0))
    assert str(whole.value) == str(expected.value)
    assert "is no point in time" in str(expected.value)
    targets: list[Any] = [TumblingWindow(Tumbling(Time("10s"))), SUMS.open()]
    for target in targets:
        with pytest.raises(ClockError) as found:
            target.insert_batch(rows, times="ts")
        assert str(found.value) == str(expected.value)
        window = target if isinstance(target, TumblingWindow) else target.operator.containers[0]
        assert window.seen == taken  # the rows before it have been
        assert target.now == taken


def test_a_time_that_goes_back_is_refused_with_its_column():
    rows = table([1, 7, 7, 5, 9])
    window: Any = TumblingWindow(Tumbling(Time("10s")))
    running: Any = SUMS.open()
    for target in (window, running):
        with pytest.raises(ClockError) as found:
            target.insert_batch(rows, times="ts")
        assert str(found.value) == (
            "times='ts': time went back from 7 to 5. Sort the rows by it, or let them wait for one "
            'another with replay(..., watermark="5s").'
        )
        assert target.now == 7
    assert window.seen == running.operator.containers[0].seen == 3


def test_a_batch_that_begins_before_the_clock_is_not_taken():
    window: Any = TumblingWindow(Tumbling(Time("10s")), start=5)
    with pytest.raises(ClockError, match="time went back from 5"):
        window.insert_batch(table([4, 6]), times="ts")
    assert window.seen == 0


def test_a_column_that_is_not_there_is_named():
    window: Any = TumblingWindow(Tumbling(Time("10s")))
    with pytest.raises(SchemaError, match=r"times='tz': no such column\. Columns: ts, x\."):
        window.insert_batch(table([4, 6]), times="tz")
    assert window.seen == 0


def test_an_empty_batch_says_nothing():
    window: Any = TumblingWindow(Tumbling(Time("10s")))
    window.insert_batch(table([], pa.string()), times="ts")
    assert window.now == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda window: window.insert_batch(table([20]), times="ts"),
        lambda window: window.insert_batch(table([20])),
        lambda window: window.insert({"ts": 20, "x": 0}),
        lambda window: window.advance(20),
        lambda window: window.snapshot(),
    ],
)
@pytest.mark.parametrize("spec", [Tumbling(Count(2)), Tumbling(Time("10s"))], ids=str)
def test_a_handler_may_not_use_a_window_that_is_taking_a_batch(spec, ask):
    class Asks(WindowEvents[Any, Any]):
        content = "arrow"

        def before_flush(self, window, key):
            assert window.size(key) == 2  # of the window it is given, it may ask anything
            ask(own)

    own: Any = TumblingWindow(spec, events=Asks())
    with pytest.raises(AccessError, match="it is taking a batch"):
        own.insert_batch(table([1, 2, 11, 12]), times="ts")
    assert own.now == (2 if spec.evict == Count(2) else 11)  # as where any handler fails
    assert own.seen == 2


# -- who takes it -------------------------------------------------------------------------------


def test_windows_take_it():
    window: Any = SlidingWindow("sliding, time(10), count(2)")
    window.insert_batch(table([0, 4, 12, 13]), times="ts")
    assert window.state.in_arrays
    assert [row["ts"] for row in window[None]] == [4, 12, 13]
    assert window.now == 13


def test_process_batch_takes_it():
    running = SUMS.open()
    marks: list[Any] = []
    running.connect(0, marks.append, lambda: marks.append("punctuation"))
    assert running.process_batch(table([1, 11, 12]), times="ts").to_pylist() == [{"n": 1, "sum": 0}]
    assert running.process_batch(table([35]), times="ts").to_pylist() == [{"n": 2, "sum": 3}]
    assert marks.count("punctuation") == 3  # at 10, 20 and 30


def test_a_window_on_a_wall_clock_takes_it_row_by_row():
    with WallClock(now=lambda: 100.0) as clock:
        window: Any = clock.attach(TumblingWindow(Tumbling(Time("10s"))))
        window.insert_batch(table([100, 100, 101]), times="ts")
        assert window.size() == 3
        with pytest.raises(ClockError, match="time went back"):
            window.insert_batch(table([99]), times="ts")


def test_graphs_take_it():
    graph = SUMS.then(Aggregate(Tumbling(Time("20s")), all=agg.sum("sum")))
    rows = table([1, 2, 12, 13, 25, 41])
    running, out = opened(graph)
    running.insert_batch(rows, times="ts")
    assert out == row_by_row(graph, rows.to_pylist())
    assert running.now == 41


def test_operators_with_two_windows_take_it():
    join = Join(left=Sliding(Time("10s")), right=Sliding(Time("10s")), on="x")
    left, right = table([0, 1, 2]), table([3, 11, 12])
    found = []
    for batches in (False, True):
        running, out = opened(join)
        for port, rows in enumerate((left, right)):
            if batches:
                running.insert_batch(rows, port, times="ts")
                continue
            for row in rows.to_pylist():
                running.advance(row["ts"])
                running.insert(row, port)
        found.append(out)
        assert running.now == 12
    assert found[0] == found[1] != []


def test_replay_takes_tables_whole(monkeypatch):
    rows = table([5, 6, 16, 17, 30])
    expected = list(replay(SUMS, rows.to_pylist(), times="ts").items())
    assert expected
    took: list[Any] = []
    insert = handover.ColumnarWindowHandover.insert_timed

    def noted(*given: Any) -> Any:
        took.append(given)
        return insert(*given)

    monkeypatch.setattr(handover.ColumnarWindowHandover, "insert_timed", noted)
    assert list(replay(SUMS, rows, times="ts").items()) == expected
    assert list(replay(SUMS, rows.to_batches(max_chunksize=2), times="ts").items()) == expected
    assert list(replay(SUMS, iter(rows.to_batches()), times="ts").items()) == expected
    assert len(took) == 1 + 3 + 1


def test_replay_starts_at_the_first_arrival_of_a_table():
    rows = table([1005, 1006, 1016])
    assert list(replay(SUMS, rows, times="ts")) == [{"n": 2, "sum": 1}]
    assert len(list(replay(SUMS, rows, times="ts", start=1000).items())) == 2
    marked = [advance(1005), rows, advance(1030)]
    plain = [advance(1005), *rows.to_pylist(), advance(1030)]
    expected = list(replay(SUMS, plain, times="ts", start=1005).items())
    assert list(replay(SUMS, marked, times="ts", start=1005).items()) == expected
    assert list(replay(SUMS, marked, times="ts").items()) == expected


def test_replay_says_which_times_a_table_lacks():
    with pytest.raises(SchemaError, match=r"times='tz': the tuple .* has no 'tz'"):
        list(replay(SUMS, table([0, 5]), times="tz", start=0))


def test_replay_reads_times_with_a_function():
    rows = table([0, 5, 15, 31])
    expected = list(replay(SUMS, rows.to_pylist(), times=lambda row: row["ts"] / 2).items())
    assert list(replay(SUMS, rows, times=lambda row: row["ts"] / 2).items()) == expected


def test_arrival_times_of_numpy_are_no_numbers_of_their_own():
    window: Any = TumblingWindow(Tumbling(Time("10s")))
    window.insert_batch(table(pa.array(np.array([1, 2]))), times="ts")
    window.insert({"ts": 2, "x": 0})
    assert type(window.state.now) is int
    assert [type(s.stamp) for s in window.state.subwindows.values()] == [int]
