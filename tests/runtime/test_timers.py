"""Timers of keys: in order, at their time, saved with the operator, and gone with their key."""
# ruff: noqa: SIM300 - asserts read expected first

import warnings
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    ClockError,
    Count,
    Event,
    Keyed,
    Operator,
    OperatorError,
    OperatorModel,
    PartitionCount,
    PolicyError,
    Sliding,
    Time,
    Tumbling,
    Watermark,
    advance,
    replay,
    restart,
)
from windowlib.operators import Filter
from windowlib.testing import assert_same_everywhere, script


class Idle(Operator):
    """Says when a key has been quiet for a while."""

    output = "k string, n long, at double"
    state = Keyed(by="k", n=0)

    def __init__(self, after):
        super().__init__()
        self.after = after

    def on_tuple(self, row, port):
        self.state[row["k"]].n += 1
        self.set_timer(row["k"], after=self.after)

    def on_timer(self, key, now):
        self.emit(k=key, n=self.state.pop(key).n, at=now)


ROWS = [{"k": "abca"[i * i % 4], "ts": float(i * 3 + i * i % 7)} for i in range(40)]


def test_a_timer_goes_off_without_input():
    run = script(Idle("10s")).rows({"k": "a"}).advance("9s").expect().restart()
    run.advance("1s").expect({"k": "a", "n": 1, "at": 10.0}).advance("100s").expect()


def test_a_timer_that_is_set_again_is_moved():
    run = script(Idle("10s")).rows({"k": "a"}).advance("9s").rows({"k": "a"}).advance("9s").expect()
    run.restart().advance("1s").expect({"k": "a", "n": 2, "at": 19.0})


def test_timers_go_off_in_order_of_time_and_then_as_they_were_set():
    class Ordered(Operator):
        def on_tuple(self, row, port):
            for key, at in row:
                self.set_timer(key, at)

        def on_timer(self, key, now):
            self.emit((key, now))

    rows = [[("c", 7), ("b", 5), ("a", 5), ("d", 6.5), ("b", 5)], advance(20)]
    expected = [("a", 5.0), ("b", 5.0), ("d", 6.5), ("c", 7.0)]
    assert expected == list(replay(Ordered(), rows))
    assert expected == list(replay(Ordered(), [rows[0], restart(), restart(), rows[1]]))


def test_timers_are_the_same_everywhere():
    report = assert_same_everywhere(Idle("10s"), ROWS, times="ts")
    assert {"KeyFarm, restarted", "batches and restarts, saved as arrays"} <= set(report.ran)
    assert report.rows > 5


class Aged(Operator):
    """A window with a clock of its own, and timers between its ticks."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    output = "what string, k string, at double"
    state = Keyed(n=0)

    def after_insert(self, window, row, key):
        self.set_timer(key, after="5s")

    def before_flush(self, window, key):
        self.emit(what="flush", k=key, at=window.now)

    on_trigger = before_flush

    def on_timer(self, key, now):
        self.emit(what="timer", k=key, at=now)


def test_what_is_due_in_windows_comes_first_at_one_time():
    rows = [{"k": "a"}, advance(4), {"k": "b"}, advance(12)]
    found = [tuple(row.values()) for row in replay(Aged(Tumbling(Time("5s"), by="k")), rows)]
    assert [
        ("flush", "a", 5.0),
        ("flush", "b", 5.0),
        ("timer", "a", 5.0),
        ("timer", "b", 9.0),
        ("flush", None, 10.0),
    ] == found


@pytest.mark.parametrize(
    "window",
    [
        Tumbling(Time("5s"), by="k"),
        Tumbling(Count(3) | Time("4s"), by="k"),
        Sliding(Time("6s"), every=Time("4s"), by="k"),
        Sliding(Count(2), by="k"),
    ],
    ids=str,
)
def test_windows_and_timers_are_the_same_everywhere(window):
    assert_same_everywhere(Aged(window), ROWS, times="ts")


def test_a_partition_that_is_evicted_takes_its_timer_along():
    op = Aged(Sliding(Count(5), every=Count(0), by="k", forget=PartitionCount(1)))
    rows = [{"k": "a"}, {"k": "b"}, restart(), advance(10)]
    assert [("timer", "b", 5.0)] == [tuple(row.values()) for row in replay(op, rows)]


def test_the_author_may_drop_a_timer_and_a_key():
    class Dropped(Idle):
        def on_tuple(self, row, port):
            super().on_tuple(row, port)
            if row["k"] == "b":
                self.drop_timer("b")
            if row["k"] == "c":
                self.forget("c")

    running = Dropped("1s").open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    running.insert_many({"k": k} for k in "abc")
    running.advance(10)
    assert [{"k": "a", "n": 1, "at": 1.0}] == rows
    assert ["b"] == list(state_of(running))


def test_a_timer_that_fails_does_not_keep_the_others():
    class Fails(Idle):
        def on_timer(self, key, now):
            if key == "a":
                raise ValueError("no")
            super().on_timer(key, now)

    running, rows = Fails("1s").open(), list[Any]()
    running.connect(0, rows.append)
    running.insert_many({"k": k} for k in "ab")
    with pytest.raises(ValueError, match="no") as caught:
        running.advance(5)
    assert [{"k": "b", "n": 1, "at": 1.0}] == rows
    assert caught.value.__notes__ == ["in Fails, on_timer of key 'a'"]
    assert running.due() is None


def test_a_timer_may_set_the_next():
    class Beats(Operator):
        def on_tuple(self, row, port):
            self.set_timer(row, after="2s")

        def on_timer(self, key, now):
            self.emit((key, now))
            self.set_timer(key, after="2s")

    assert [("a", 2.0), ("b", 3.0), ("a", 4.0), ("b", 5.0)] == list(
        replay(Beats(), ["a", advance(1), "b", advance(5.5)])
    )


def test_the_host_is_told_when_it_has_to_wake_up():
    running = Idle("10s").open()
    assert running.timed
    assert running.due() is None
    running.insert({"k": "a"})
    assert running.due() == 10_000_000
    graph = Filter(lambda row: True).then(Idle("10s")).open()
    graph.insert({"k": "a"})
    assert graph.timed
    assert graph.due() == 10_000_000


def test_after_the_end_of_the_input_no_timer_goes_off():
    running, rows = Idle("1s").open(), list[Any]()
    running.connect(0, rows.append)
    running.insert({"k": "a"})
    running.finish()
    running.advance(5)
    assert [] == rows


# -- event time -----------------------------------------------------------------------------------


class Closed(Operator):
    """The last row of a key was an hour ago, in event time."""

    model = OperatorModel(windows=[Tumbling])
    output = "what string, k string, at long"
    state = Keyed(last=0)

    def after_insert(self, window, row, key):
        mine = self.state[key]
        mine.last = max(mine.last, row["ts"])
        self.set_timer(key, at=mine.last + 30)

    def before_flush(self, window, key):
        self.emit(what="flush", k=key, at=window.bounds(key)[1])

    def on_timer(self, key, now):
        self.emit(what="timer", k=key, at=now)


def state_of(running: Any) -> Any:
    return running.operator.state


def closed(spec, *pairs):
    rows = [{"k": k, "ts": ts} for k, ts in pairs]
    return [tuple(row.values()) for row in replay(Closed(spec), rows)]


def test_the_watermark_moves_timers_of_event_time():
    spec = Tumbling(Event("ts", 10), by="k", watermark=5)
    found = closed(spec, ("a", 1), ("b", 20), ("b", 35), ("b", 36))
    #  the watermark reaches 10 with the row at 20, and 31 with the one at 36
    assert [("flush", "a", 10), ("flush", "b", 30), ("timer", "a", 31)] == found[:3]
    assert [("flush", "b", 40), ("timer", "b", 66)] == found[3:]  # the end of event time


def test_a_timer_keeps_the_state_of_its_key():
    running = Closed(Tumbling(Event("ts", 10), by="k")).open()
    running.insert({"k": "a", "ts": 1})
    running.insert({"k": "b", "ts": 20})
    assert ["a", "b"] == list(state_of(running))
    running.insert({"k": "b", "ts": 40})
    assert ["b"] == list(state_of(running))


def test_keys_with_watermarks_of_their_own_have_timers_of_their_own():
    spec = Tumbling(Event("ts", 10), by="k", watermark=Watermark(0, scope="key"))
    found = closed(spec, ("a", 1), ("b", 50), ("a", 5), ("a", 9), ("b", 85), ("b", 130))
    #  the rows of b move neither the window nor the timer of a, which ends with the input
    assert [("flush", "b", 60), ("flush", "b", 90)] == found[:2]
    assert {("flush", "a", 10), ("timer", "a", 39)} <= set(found[2:])
    assert ("timer", "b", 115) not in found  # the row at 130 is taken before the watermark it moves


def test_a_host_that_tells_the_watermark_wakes_up_for_timers():
    running, rows = Closed(Tumbling(Event("ts", 10), by="k")).open(), list[Any]()
    running.follow()
    running.connect(0, rows.append)
    running.insert({"k": "a", "ts": 1})
    assert running.closes() == 10
    running.reach(10)
    assert running.closes() == 31
    running.reach(40)
    assert [row["what"] for row in rows] == ["flush", "timer"]
    assert running.closes() is None


def test_timestamps_may_be_datetimes():
    class Dated(Closed):
        state = Keyed(last=datetime(2000, 1, 1))

        def after_insert(self, window, row, key):
            self.set_timer(key, at=row["ts"] + timedelta(minutes=30))

    start = datetime(2024, 5, 1)
    rows = [{"k": k, "ts": start + timedelta(minutes=m)} for k, m in (("a", 0), ("b", 40))]
    op = Dated(Tumbling(Event("ts", "10min"), by="k"))
    found = [row for row in replay(op, [rows[0], restart(), rows[1]]) if row["what"] == "timer"]
    assert {"what": "timer", "k": "a", "at": start + timedelta(minutes=30)} == found[0]


@pytest.mark.parametrize("scope", ["stream", "key"])
def test_timers_of_event_time_are_the_same_everywhere(scope):
    rows = [{"k": "abca"[i * i % 4], "ts": i * 3 + i * i % 7} for i in range(40)]
    spec = Tumbling(Event("ts", 10), by="k", watermark=Watermark(9, scope=scope), late="drop")
    report = assert_same_everywhere(Closed(spec), rows)
    assert ("KeyFarm" in report.ran) == (scope == "key")


# -- mistakes -------------------------------------------------------------------------------------


class Sets(Operator):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.args, self.kwargs = args, kwargs

    def on_tuple(self, row, port):
        self.set_timer(row, *self.args, **self.kwargs)


class Loops(Sets):
    def on_timer(self, key, now):
        self.set_timer(key, at=now)


def test_mistakes_with_timers_are_named():
    with pytest.raises(OperatorError, match=r"nothing is done then\. Override on_timer"):
        list(replay(Sets(5), ["a"]))
    with pytest.raises(OperatorError, match="say when"):
        list(replay(Loops(), ["a"]))
    with pytest.raises(OperatorError, match="say when"):
        list(replay(Loops(5, after="5s"), ["a"]))
    with pytest.raises(
        ClockError, match=r"^Loops\.set_timer\(key, at='tomorrow'\): not a point in"
    ):
        list(replay(Loops("tomorrow"), ["a"]))
    with pytest.raises(OperatorError, match="which would never end"):
        list(replay(Loops(5), ["a", advance(9)]))
    with pytest.raises(OperatorError, match="not running"):
        Loops(5).set_timer("a", 5)


def test_a_replay_without_time_says_that_timers_wait():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        list(replay(Idle("1s"), [{"k": "a"}]))
    assert "nothing moved the clock" in str(seen[0].message)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (5, r'not a duration\. Write after="30s"'),
        ("5", '"5" is not a duration'),
        ("-5s", r'it must not be negative\. Write after="30s"'),
        (timedelta(seconds=-5), "it must not be negative"),
    ],
)
def test_a_wait_that_is_none_is_named(after, why):
    with pytest.raises(PolicyError, match=rf"^Idle\.set_timer\('a', after=.*\): {why}"):
        list(replay(Idle(after), [{"k": "a"}]))


class Stamped(Operator):
    """Sets a timer at what a row says, on the axis of its windows."""

    model = OperatorModel(windows=[Tumbling])

    def after_insert(self, window, row, key):
        self.set_timer(key, at=row["at"])

    def on_timer(self, key, now):
        self.emit(at=now)


@pytest.mark.parametrize(
    ("window", "ts", "at", "kind"),
    [
        (Event("ts", 10), 1, datetime(2020, 1, 1), "numbers"),
        (Event("ts", "10s"), datetime(2020, 1, 1), 5, "datetimes"),
    ],
)
def test_a_timer_that_no_watermark_would_reach_is_refused(window, ts, at, kind):
    message = rf"^Stamped\.set_timer\(key, at=.*\): the timestamps of its windows are {kind}\."
    with pytest.raises(ClockError, match=message):
        list(replay(Stamped(Tumbling(window)), [{"ts": ts, "at": at}]))
    assert [{"at": ts}] == list(replay(Stamped(Tumbling(window)), [{"ts": ts, "at": ts}]))


# -- random streams -------------------------------------------------------------------------------

SECONDS = {repr(advance(f"{n}s")): n for n in (1, 3, 7)}
ITEMS = st.lists(
    st.one_of(
        st.builds(lambda k: {"k": k}, st.sampled_from("abc")),
        st.builds(advance, st.sampled_from(["1s", "3s", "7s"])),
        st.builds(restart),
    ),
    max_size=30,
)


@settings(max_examples=examples(300))
@given(ITEMS)
def test_a_timer_is_what_looking_at_every_second_would_find(items):
    """Against a loop that looks at all keys once a second."""
    now, last, expected = 0, dict[Any, Any](), list[Any]()
    for item in items:
        if item == restart():
            continue
        if isinstance(item, dict):
            last.pop(item["k"], None)
            last[item["k"]] = now
            continue
        until = now + SECONDS[repr(item)]
        while now < until:
            now += 1
            over = [k for k, at in last.items() if at + 5 == now]
            expected += [(k, float(now)) for k in over]
            for k in over:
                del last[k]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(row["k"], row["at"]) for row in replay(Idle("5s"), items)]
    assert expected == found
