"""Windows of event time against a slow oracle: disorder, batches, restarts, keys."""
# mypy: disable-error-code="var-annotated,call-arg,misc,arg-type"
# ruff: noqa: SIM300 - asserts read expected first

import ast
import re
import warnings
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.event_time.oracle import Row, hopping, sessions
from windowlib import (
    Event,
    EventTimeWindow,
    Landmark,
    Session,
    Sliding,
    Tumbling,
    Watermark,
    WindowEvents,
    replay,
    restart,
    summarizers,
)
from windowlib.errors import DeltaOrderError, WindowlibWarning
from windowlib.operators import Aggregate, agg

STREAMS = st.lists(
    st.tuples(st.integers(-20, 60), st.sampled_from("abc")), min_size=1, max_size=30
).map(lambda pairs: [Row(ts, key, n) for n, (ts, key) in enumerate(pairs)])
SLACKS = st.integers(0, 30)
HOPS = st.sampled_from([(10, 10), (10, 5), (10, 4), (7, 3), (3, 1), (12, 12)])


def dicts(rows):
    return [row._asdict() for row in rows]


def aggregate(window, **more):
    return Aggregate(
        window,
        start=agg.window_start(),
        end=agg.window_end(),
        values=agg.collect("value"),
        **more,
    )


def results(found):
    return [(row["key"], row["start"], row["end"], tuple(row["values"])) for row in found]


def spec(size, every, offset, slack, **more: Any):
    first, options = Event("ts", size, offset=offset), {"by": "key", "watermark": slack, **more}
    if size == every:
        return Tumbling(first, **options)
    return Sliding(first, every=Event("ts", every), **options)


@given(STREAMS, HOPS, st.integers(-5, 5), SLACKS)
def test_hopping_windows_are_those_of_the_oracle(rows, hop, offset, slack):
    expected, late, _ = hopping(rows, *hop, offset, slack)
    found = replay(aggregate(spec(*hop, offset, slack, late="port")), dicts(rows))
    assert expected == results(found)
    assert dicts(late) == found.port("late")


@given(STREAMS, HOPS, SLACKS)
def test_a_window_comes_out_with_the_row_that_closes_it(rows, hop, slack):
    _, _, after = hopping(rows, *hop, 0, slack)
    running = aggregate(spec(*hop, 0, slack, late="drop")).open()
    seen: list[int] = []
    taken: list[Any] = []
    running.connect(0, lambda row: seen.append(len(taken)))
    for row in dicts(rows):
        taken.append(row)
        running.insert(row)
    running.finish()
    assert after == seen


@given(STREAMS, HOPS, SLACKS, st.data())
def test_restarts_and_batches_change_nothing(rows, hop, slack, data):
    op = aggregate(spec(*hop, 0, slack, late="port"), n=agg.count(), top=agg.max("value"))
    straight = replay(op, dicts(rows))
    expected, late = list(straight), straight.port("late")
    cut = data.draw(st.integers(0, len(rows)))
    again = replay(op, [*dicts(rows[:cut]), restart(), *dicts(rows[cut:])])
    assert expected == list(again)
    parts = [part for part in (rows[:cut], rows[cut:]) if part]
    batches = replay(op, [pa.RecordBatch.from_pylist(dicts(part)) for part in parts])
    assert expected == list(batches)
    assert late == batches.port("late")


@given(STREAMS, HOPS, SLACKS)
def test_partials_give_what_rows_give(rows, hop, slack):
    """The same functions, with and without one that needs the rows."""
    window = spec(*hop, 0, slack, late="drop")
    functions = {"n": agg.count(), "sum": agg.sum("value"), "max": agg.max("value")}
    folded = list(replay(Aggregate(window, functions), dicts(rows)))
    kept = list(replay(Aggregate(window, {**functions, "all": agg.collect("value")}), dicts(rows)))
    assert folded == [{name: row[name] for name in folded[0]} for row in kept]


@given(STREAMS, HOPS, SLACKS)
def test_every_row_is_in_windows_or_late_or_open(rows, hop, slack):
    gone = set()

    class Count(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            gone.update(row["value"] for row in window[key])

    window = EventTimeWindow(spec(*hop, 0, slack, late="drop"), events=Count())
    window.insert_many(dicts(rows))
    opened = {row["value"] for key in window for row in window[key]}
    assert len(rows) == window.seen + window.late_rows
    if hop[0] == hop[1]:
        assert not opened & gone
        assert window.seen == len(opened) + len(gone)
    assert len(window) == len(opened)
    window.finish()
    assert 0 == len(window)
    assert [] == list(window.keys())


@given(STREAMS, st.integers(1, 12), SLACKS)
def test_sessions_are_those_of_the_oracle(rows, gap, slack):
    expected, late = sessions(rows, gap, slack)
    window = Session(Event("ts"), gap=gap, by="key", watermark=slack, late="port")
    found = replay(aggregate(window), dicts(rows))
    assert expected == results(found)
    assert dicts(late) == found.port("late")


@given(STREAMS, st.integers(1, 12), SLACKS, st.data())
def test_sessions_survive_restarts_and_fold(rows, gap, slack, data):
    window = Session(Event("ts"), gap=gap, by="key", watermark=slack, late="drop")
    for op in (aggregate(window), Aggregate(window, n=agg.count(), s=agg.sum("value"))):
        cut = data.draw(st.integers(0, len(rows)))
        cut_up = [*dicts(rows[:cut]), restart(), *dicts(rows[cut:])]
        assert list(replay(op, dicts(rows))) == list(replay(op, cut_up))
    expected, _ = sessions(rows, gap, slack)
    assert [len(each.values) for each in expected] == [row["n"] for row in replay(op, dicts(rows))]


@pytest.mark.parametrize("scope", ["stream", "key"])
@pytest.mark.parametrize("value", [agg.count(), agg.collect("ts")], ids=repr)
def test_a_key_of_several_sessions_is_shown_as_it_came_first(scope, value):
    window = Session(Event("ts"), gap=10, by="key", watermark=Watermark(5, scope=scope))
    op = Aggregate(window, value=value)
    pairs = [(1, 1), (1.0, 5), (1.0, 18), (True, 30), (1, 100), (True, 100)]
    rows = [{"key": key, "ts": ts} for key, ts in pairs]
    expected = [repr(row) for row in replay(op, rows)]
    for cut in range(len(rows) + 1):
        again = replay(op, [*rows[:cut], restart(), *rows[cut:]])
        assert expected == [repr(row) for row in again]


@given(STREAMS, st.integers(1, 12), SLACKS, st.none() | st.integers(-10, 10), st.data())
def test_a_landmark_window_has_all_since_then(rows, size, slack, since, data):
    window = Landmark(Event("ts", size), since=since, by="key", watermark=slack, late="port")
    op = aggregate(window)
    found = replay(op, dicts(rows))
    late: list[Any] = found.port("late")
    kept = [row for row in dicts(rows) if row not in late]
    offset = 0 if since is None else since
    assert all(row["ts"] >= since for row in kept if since is not None)
    for key, start, end, values in results(found.port("out")):
        assert start == since
        assert 0 == (end - offset) % size
        own = [row for row in kept if row["key"] == key and row["ts"] < end]
        assert [row["value"] for row in sorted(own, key=lambda row: row["ts"])] == list(values)
        assert any(end - size <= row["ts"] for row in own)
    cut = data.draw(st.integers(0, len(rows)))
    again = replay(op, [*dicts(rows[:cut]), restart(), *dicts(rows[cut:])])
    assert list(replay(op, dicts(rows))) == list(again)


# -- watermarks -----------------------------------------------------------------------------------


@given(STREAMS, HOPS, SLACKS)
def test_a_watermark_for_each_key_is_that_of_its_rows_alone(rows, hop, slack):
    window = spec(*hop, 0, Watermark(slack, scope="key"), late="port")
    found = replay(aggregate(window), dicts(rows))
    together = results(found)
    for key in "abc":
        own = [row for row in rows if row.key == key]
        expected, _, _ = hopping(own, *hop, 0, slack)
        assert expected == [each for each in together if each[0] == key]


def window_of(*rows, **options):
    window = EventTimeWindow(Tumbling(Event("ts", 10), late="drop", **options))
    window.insert_many(rows)
    return window


HOSTS = [{"ts": ts, "host": host} for ts, host in ((5, "b"), (50, "a"), (6, "b"), (70, "a"))]


def test_the_slowest_source_holds_the_watermark():
    slowest = window_of(*HOSTS, watermark=Watermark(sources="host"))
    assert (6, 0) == (slowest.watermark, slowest.late_rows)
    assert (70, 1) == (window_of(*HOSTS).watermark, window_of(*HOSTS).late_rows)


def test_a_source_that_is_far_behind_does_not_hold_it():
    assert 6 == window_of(*HOSTS, watermark=Watermark(sources="host", idle=64)).watermark
    assert 70 == window_of(*HOSTS, watermark=Watermark(sources="host", idle=63)).watermark


def test_it_never_goes_back():
    window = window_of({"ts": 50, "host": "a"}, watermark=Watermark(sources="host"))
    window.insert({"ts": 5, "host": "b"})
    assert 50 == window.watermark


def test_one_row_of_the_future_does_not_move_it():
    ahead = Watermark(max_ahead=100)
    rows = [{"ts": ts} for ts in (1, 2, 9_999, 3, 11, 12)]
    window = window_of(*rows, watermark=ahead)
    assert (12, 0) == (window.watermark, window.late_rows)
    assert 3 == window_of(*rows).late_rows


def test_two_rows_of_the_future_do():
    window = window_of(
        *({"ts": ts} for ts in (1, 9_999, 5_000, 5_001)), watermark=Watermark(max_ahead=100)
    )
    assert 5_001 == window.watermark


# -- late rows ------------------------------------------------------------------------------------

MINUTE = timedelta(minutes=1)
START = datetime(2013, 1, 1)


def minutes(*stamps):
    return [{"ts": START + ts * MINUTE, "x": ts} for ts in stamps]


def shown(op, *stamps):
    return [
        (int((row["start"] - START) / MINUTE), row["r"], row["gone"], row["xs"])
        for row in replay(op, minutes(*stamps))
    ]


def revised(window):
    columns = {"start": agg.window_start(), "r": agg.revision(), "gone": agg.retracts()}
    return Aggregate(window, columns, xs=agg.collect("x"))


def test_a_late_row_corrects_what_was_sent():
    window = Tumbling(Event("ts", "10min"), late="update", allowed="30min")
    assert [
        (0, 0, False, [1]),
        (0, 1, False, [1, 7]),
        (10, 0, False, [12]),
        (0, 2, False, [1, 5, 7]),
        (20, 0, False, [22]),
        (50, 0, False, [55]),
    ] == shown(revised(window), 1, 12, 7, 22, 5, 55, 6)


def test_what_is_corrected_is_taken_back_first():
    window = Sliding(
        Event("ts", "10min"),
        every=Event("ts", "5min"),
        late="update",
        allowed="30min",
        retract=True,
    )
    assert [
        (-5, 0, False, [1]),
        (0, 0, False, [1]),
        (0, 0, True, [1]),
        (0, 1, False, [1, 7]),
        (5, 0, False, [7, 12]),
        (10, 0, False, [12]),
    ] == shown(revised(window), 1, 12, 7)


def test_a_late_row_of_a_window_without_any_is_its_first():
    window = Tumbling(Event("ts", "10min"), late="update", allowed="30min", retract=True)
    found = shown(revised(window), 12, 3)
    assert [(0, 0, False, [3]), (10, 0, False, [12])] == found


def test_a_late_row_may_join_two_sessions_that_were_sent():
    window = Session(Event("ts"), gap="10min", late="update", allowed="60min", retract=True)
    assert [
        (0, 0, False, [0]),
        (15, 0, False, [15]),
        (0, 0, True, [0]),
        (15, 0, True, [15]),
        (0, 1, False, [0, 7, 15]),
        (50, 0, False, [50]),
    ] == shown(revised(window), 0, 15, 50, 7)


@given(STREAMS, HOPS, SLACKS)
def test_after_all_corrections_rows_are_those_of_a_longer_wait(rows, hop, slack):
    """With `allowed`, the last revision is what waiting as long would have given."""
    allowed = 15
    waits = replay(aggregate(spec(*hop, 0, slack + allowed, late="port")), dicts(rows))
    options: Any = {"late": "update", "allowed": allowed}
    updates = replay(aggregate(spec(*hop, 0, slack, **options), r=agg.revision()), dicts(rows))
    last: dict[Any, Any] = {}
    for row in updates:
        key = row["key"], row["start"]
        assert row["r"] == (last[key][0] + 1 if key in last else 0)
        last[key] = row["r"], tuple(row["values"])
    expected = {(key, start): values for key, start, _, values in results(waits)}
    assert expected == {key: values for key, (_, values) in last.items()}


# -- early results --------------------------------------------------------------------------------


def test_open_windows_are_looked_at_early():
    window = Tumbling(Event("ts", 10), early="1min", late="drop")
    running = Aggregate(window, r=agg.revision(), xs=agg.collect("ts")).open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    running.insert({"ts": 1})
    running.advance(59)
    assert [] == rows
    running.advance(60)
    assert [{"r": 0, "xs": [1]}] == rows
    running.advance(600)
    assert 1 == len(rows)
    running.insert({"ts": 3})
    running.advance(659)
    assert 1 == len(rows)
    running.advance(660)
    assert {"r": 1, "xs": [1, 3]} == rows[-1]
    running.insert({"ts": 12})
    assert {"r": 2, "xs": [1, 3]} == rows[-1]


# -- memory ---------------------------------------------------------------------------------------


def test_keys_are_forgotten_with_their_windows():
    window = EventTimeWindow(Tumbling(Event("ts", 10), by="k"), summarizer=summarizers.count())
    window.insert_many([{"ts": ts // 100, "k": ts} for ts in range(10_000)])
    assert 1000 == len(list(window.keys()))
    window.insert({"ts": 1_000, "k": 1})
    assert [1] == list(window.keys())


@pytest.mark.parametrize("many", [20_000])
def test_a_key_takes_little_beside_the_state_of_functions(many):
    import tracemalloc

    window = EventTimeWindow(Tumbling(Event("ts", 10), by="k"), summarizer=summarizers.count())
    rows = [{"ts": 1, "k": k} for k in range(many)]
    tracemalloc.start()
    window.insert_many(rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / many <= 200


# -- as values ------------------------------------------------------------------------------------


def test_a_handler_that_fails_costs_no_other_window_its_turn():
    class Fails(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            self.emit((key, window.bounds(key)))
            raise ValueError(key)

    window = EventTimeWindow(Tumbling(Event("ts", 10), by="k", watermark=100), events=Fails())
    window.insert_many([{"ts": 1, "k": "a"}, {"ts": 2, "k": "b"}, {"ts": 15, "k": "a"}])
    with pytest.raises(ValueError, match="a") as caught:
        window.finish()
    assert [("a", (0, 10)), ("b", (0, 10)), ("a", (10, 20))] == window.events.emitted
    assert "and 2 more failures after it" in caught.value.__notes__
    assert "window up to 10" in caught.value.__notes__[0]


def test_a_late_row_without_a_watermark_is_a_warning_once():
    window = EventTimeWindow(Tumbling(Event("ts", 10)))
    window.insert_many([{"ts": 1}, {"ts": 20}])
    with pytest.warns(match="came late and was dropped, because nothing says how long to wait"):
        window.insert({"ts": 2})
    window.insert({"ts": 3})
    assert 2 == window.late_rows


@pytest.mark.parametrize(("first", "size"), [(datetime(2024, 1, 1), "1h"), (0, 10), (0.0, 0.5)])
def test_what_is_advised_for_late_rows_is_accepted(first, size):
    step = timedelta(days=1) if isinstance(size, str) else 1000
    stamps = [{"ts": first + step}, {"ts": first}]
    for late, kind in ((None, WindowlibWarning), ("error", DeltaOrderError)):
        window = EventTimeWindow(Tumbling(Event("ts", size), late=late))
        window.insert_many(stamps[:1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(kind) as caught:
                window.insert(stamps[1])
        (advice,) = re.findall(r'watermark=("?\w+"?)', str(caught.value))
        waiting = Tumbling(Event("ts", size), watermark=ast.literal_eval(advice))
        EventTimeWindow(waiting).insert_many(stamps[:1])
