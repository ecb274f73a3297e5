"""Batches into windows of event time: as arrays, and the same rows as one by one."""
# mypy: disable-error-code="misc,arg-type"
# ruff: noqa: SIM300 - asserts read expected first

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.event_time import oracle
from tests.helpers.examples import examples
from windowlib import (
    Event,
    EventTimeWindow,
    KSlack,
    Landmark,
    QuantileSlack,
    Session,
    Sliding,
    Tumbling,
    Watermark,
    replay,
)
from windowlib.columnar import handover
from windowlib.columnar.engines import event_sessions
from windowlib.operators import Aggregate, Skyline, agg

FUNCTIONS: Any = {
    "start": agg.window_start(),
    "end": agg.window_end(),
    "r": agg.revision(),
    "n": agg.count(),
    "sum": agg.sum("x"),
    "mean": agg.mean("x"),
    "low": agg.min("x"),
    "high": agg.max("x"),
    "ratio": agg.sum("x") / agg.count(),
}


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """Take the smallest batches as arrays."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(event_sessions, "MIN_ROWS_PER_LATE", 0)


def table(stamps, keys, kind=None):
    values = [None if n % 7 == 3 else (n * 37 % 11) / 4 for n in range(len(stamps))]
    columns = {"ts": pa.array(stamps, kind), "k": pa.array(keys), "x": pa.array(values)}
    return pa.table(columns)


def both_ways(window, rows, cuts):
    """The rows of an aggregation one by one, in batches, and how many rows were late."""
    op = Aggregate(window, FUNCTIONS)
    straight = list(replay(op, rows.to_pylist()))
    running = op.open()
    found: list[Any] = []
    running.connect(0, found.append)
    for lo, hi in zip([0, *cuts], [*cuts, rows.num_rows], strict=True):
        running.insert_batch(rows.slice(lo, hi - lo))
    (window,) = running.operator.containers
    assert window is not None
    way = window.explain()
    running.finish()
    return straight, found, way


WINDOWS = [
    lambda slack: Tumbling(Event("ts", 10), by="k", watermark=slack, late="drop"),
    lambda slack: Tumbling(Event("ts", 7, offset=3), watermark=slack, late="drop"),
    lambda slack: Sliding(
        Event("ts", 10), every=Event("ts", 5), by="k", watermark=slack, late="drop"
    ),
    lambda slack: Sliding(Event("ts", 10), every=Event("ts", 4), watermark=slack, late="drop"),
    lambda slack: Session(Event("ts"), gap=4, by="k", watermark=slack, late="drop"),
    lambda slack: Session(Event("ts"), gap=0.5, by="k", watermark=slack, late="drop"),
    lambda slack: Session(Event("ts"), gap=11, watermark=slack, late="drop"),
    lambda slack: Landmark(Event("ts", 10), since=-5, by="k", watermark=slack, late="drop"),
    lambda slack: Landmark(Event("ts", 7), watermark=slack, late="drop"),
]
SLACKS = st.sampled_from([0, 3, 25, KSlack(), QuantileSlack(drop=0.1, recent=10)])


@given(
    st.sampled_from(WINDOWS),
    SLACKS,
    st.lists(st.tuples(st.integers(-30, 80), st.sampled_from("abc")), min_size=1, max_size=60),
    st.booleans(),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_batches_give_the_rows_of_single_tuples(make, slack, pairs, ordered, cuts):
    pairs = sorted(pairs) if ordered else pairs
    rows = table([ts for ts, _ in pairs], [key for _, key in pairs])
    cuts = sorted(min(cut, len(pairs)) for cut in cuts)
    straight, found, _ = both_ways(make(slack), rows, cuts)
    assert straight == found


@given(
    st.lists(st.tuples(st.integers(-30, 80), st.sampled_from("abc")), min_size=1, max_size=60),
    st.sampled_from([1, 4, 11]),
    st.sampled_from([0, 3, 25]),
    st.lists(st.integers(0, 60), max_size=4),
    st.booleans(),
)
@settings(max_examples=examples(150))
def test_sessions_in_batches_are_those_of_the_definition(pairs, gap, slack, cuts, restarts):
    rows = table([ts for ts, _ in pairs], [key for _, key in pairs])
    values = [oracle.Row(ts, key, n) for n, (ts, key) in enumerate(pairs)]
    results, late = oracle.sessions(values, gap, slack)
    window = Session(Event("ts"), gap=gap, by="k", watermark=slack, late="drop")
    op = Aggregate(window, s=agg.window_start(), e=agg.window_end(), n=agg.count())
    running, found = op.open(), list[Any]()
    cuts = sorted(min(cut, len(pairs)) for cut in cuts)
    for lo, hi in zip([0, *cuts], [*cuts, len(pairs)], strict=True):
        if restarts:
            state = running.snapshot()
            running = op.open()
            running.restore(state)
        running.connect(0, found.append)
        running.insert_batch(rows.slice(lo, hi - lo))
    (container,) = running.operator.containers
    running.finish()
    assert [(r.key, r.start, r.end, len(r.values)) for r in results] == [
        (row["k"], row["s"], row["e"], row["n"]) for row in found
    ]
    assert isinstance(container, EventTimeWindow)
    assert len(late) == container.late_rows


@pytest.mark.parametrize(
    "window",
    [
        Session(Event("ts"), gap=3, by="k", watermark=5, late="drop"),
        Landmark(Event("ts", 10), since=0, by="k", watermark=5, late="drop"),
    ],
    ids=str,
)
def test_sessions_and_landmarks_are_taken_as_arrays(window):
    stamps = [n // 2 + (n * 7 % 5) for n in range(400)]
    rows = table(stamps, [("a", "b")[n % 40 // 20] for n in range(400)])
    straight, found, way = both_ways(window, rows, [100, 101, 350])
    assert straight == found
    assert len(found) > 5
    assert "columnar: partials" in way


@given(
    st.lists(st.integers(0, 300), min_size=2, max_size=80),
    st.sampled_from([0.2, 0.7, 1.0, 3]),
    st.sampled_from([0, 0.4, 2.5]),
)
def test_floats_too(tenths, size, slack):
    rows = table([n / 10 for n in tenths], ["a"] * len(tenths))
    window = Tumbling(Event("ts", size), by="k", watermark=slack, late="drop")
    straight, found, _ = both_ways(window, rows, [len(tenths) // 2])
    assert straight == found


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("kind", "make", "size"),
    [
        (pa.timestamp("us"), lambda n: datetime(1969, 12, 31) + n * timedelta(minutes=7), "1h"),
        (
            pa.timestamp("s", "Europe/Berlin"),
            lambda n: (
                datetime(2024, 10, 27, tzinfo=UTC).astimezone(BERLIN) + n * timedelta(minutes=7)
            ),
            "1h",
        ),
        (pa.date32(), lambda n: date(2024, 2, 1) + timedelta(days=n), "72h"),
        (pa.date32(), lambda n: date(2024, 2, 1) + timedelta(days=n), "36h"),
        (pa.duration("ms"), lambda n: timedelta(seconds=n), "10s"),
        (pa.int32(), lambda n: n, 10),
        (pa.int64(), lambda n: n, 2.5),
        (pa.float32(), lambda n: float(n), 10),
    ],
    ids=str,
)
def test_timestamps_of_every_kind_are_taken_as_arrays(kind, make, size):
    rows = table([make(n) for n in range(60)], list("abc" * 20), kind)
    window = Tumbling(Event("ts", size), by="k", late="drop")
    straight, found, way = both_ways(window, rows, [20, 41])
    assert straight == found
    assert [type(row["start"]) for row in straight] == [type(row["start"]) for row in found]
    assert ("columnar: partials by slice and key" in way) == (size != 2.5 or "int" in str(kind))


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (Tumbling(Event("ts", 5), late="update", allowed=5), "sent more than once"),
        (Tumbling(Event("ts", 5), watermark=Watermark(sources="k")), "several watermarks"),
        (Tumbling(Event("ts", 5), watermark=Watermark(max_ahead=5)), "max_ahead= looks at"),
    ],
    ids=str,
)
def test_what_is_not_done_as_arrays_says_why(window, reason):
    straight, found, way = both_ways(window, table(list(range(60)), ["a"] * 60), [30])
    assert straight == found
    assert reason in way
    assert reason in Aggregate(window, FUNCTIONS).explain(table([1], ["a"]).schema)


def test_late_rows_of_a_port_come_out_where_they_would():
    stamps = [1, 12, 3, 25, 14, 30, 2]
    op = Aggregate(Tumbling(Event("ts", 10), late="port"), FUNCTIONS)
    rows = table(stamps, ["a"] * len(stamps))
    straight = list(replay(op, rows.to_pylist()).items())
    assert straight == list(replay(op, rows).items())
    assert 3 == sum(port == "late" for port, _ in straight)


def test_columns_come_out_as_columns():
    op = Aggregate(Tumbling(Event("ts", 10), by="k", late="drop"), FUNCTIONS)
    rows = table(list(range(100)), list("ab" * 50))
    running = op.open()
    found = running.process_batch(rows)
    assert pa.int64() == found.schema.field("start").type
    expected = list(replay(op, rows.to_pylist()))
    assert expected[: len(found)] == found.to_pylist()
    assert 18 == len(found)


def test_a_snapshot_between_batches_goes_on():
    op = Aggregate(Tumbling(Event("ts", 10), by="k", watermark=15, late="drop"), FUNCTIONS)
    stamps = np.random.default_rng(3).integers(0, 400, 500) // 4 + np.arange(500) // 2
    rows = table(stamps.tolist(), list("abcde" * 100))
    expected = list(replay(op, rows.to_pylist()))
    found: list[Any] = []
    running = op.open()
    running.connect(0, found.append)
    for at in range(0, 500, 90):
        running.insert_batch(rows.slice(at, 90))
        state = running.snapshot()
        running = op.open()
        running.connect(0, found.append)
        running.restore(state)
    running.finish()
    assert expected == found


def test_a_row_that_cannot_be_sent_costs_no_other_its_turn():
    op = Aggregate(Tumbling(Event("ts", 10), late="drop"), FUNCTIONS)
    running = op.open()
    found: list[Any] = []

    def send(row):
        found.append(row["start"])
        if row["start"] == 10:
            raise ValueError("no")

    running.connect(0, send)
    with pytest.raises(ValueError, match="no"):
        running.insert_batch(table(list(range(60)), ["a"] * 60))
    assert [0, 10, 20, 30, 40] == found
    running.finish()
    assert 50 == found[-1]


def test_keys_whose_windows_are_closed_are_forgotten(monkeypatch):
    monkeypatch.setattr(handover, "MANY_KEYS", 50)
    op = Aggregate(Tumbling(Event("ts", 10), by="k", late="drop"), n=agg.count())
    rows = pa.table({"ts": list(range(2_000)), "k": [n // 4 for n in range(2_000)]})
    running = op.open()
    found: list[Any] = []
    running.connect(0, found.append)
    most = 0
    for at in range(0, 2_000, 100):
        running.insert_batch(rows.slice(at, 100))
        (window,) = running.operator.containers
        assert window is not None
        engine = getattr(window.state.batches, "engine", None)
        most = max(most, 0 if engine is None else len(engine.keys))
    running.finish()
    assert list(replay(op, rows.to_pylist())) == found
    assert most <= 100


@given(
    SLACKS,
    st.lists(st.tuples(st.integers(-30, 80), st.sampled_from("abc")), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=3),
    st.booleans(),
)
def test_rows_of_windows_are_looked_at_as_columns(slack, pairs, cuts, by):
    window = Tumbling(Event("ts", 10), by="k" if by else None, watermark=slack, late="drop")
    rows = table([ts for ts, _ in pairs], [key for _, key in pairs]).drop(["x"])
    rows = rows.append_column("y", pa.array([n * 37 % 11 for n in range(len(pairs))]))
    op = Skyline(window, "y", "ts")
    running = op.open()
    found: list[Any] = []
    running.connect(0, found.append)
    cuts = sorted(min(cut, len(pairs)) for cut in cuts)
    for lo, hi in zip([0, *cuts], [*cuts, rows.num_rows], strict=True):
        running.insert_batch(rows.slice(lo, hi - lo))
    running.finish()
    assert list(replay(op, rows.to_pylist())) == found
    assert "rows by window and key" in op.explain(rows.schema)
