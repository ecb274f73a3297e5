"""Live time. Most tests move time by hand and poll; a few let the clock's own thread run."""
# ruff: noqa: SIM300 - asserts read expected first

import logging
import pickle
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from windowlib import (
    KEY,
    ClockError,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    PartitionError,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WallClock,
    WindowEvents,
    summarizers,
)
from windowlib.spec.spl import parse

PATIENCE = 60  # seconds to wait for the clock's thread before giving up


class HandClock(WallClock):
    """A clock whose thread ends at once: the test polls."""

    def _run(self):
        pass


class Hand:
    """What tells the time, moved by hand."""

    def __init__(self, at=1000.0):
        self.at = at

    def __call__(self):
        return self.at


class Log(WindowEvents[Any, Any]):
    """What happens and when, in seconds since 1000."""

    def __init__(self, name="", lines=None):
        self.name = name
        self.lines = [] if lines is None else lines

    def write(self, event, window, key, tuple_=""):
        when = round(window.now - 1000, 6)
        held = "" if window.state.summarizer else "".join(window[key])
        self.lines.append(f"{self.name}{event}{tuple_} {key} [{held}] at {when:g}")

    def after_insert(self, window, tuple_, key):
        self.write("+", window, key, tuple_)

    def before_evict(self, window, tuple_, key):
        self.write("-", window, key, tuple_)

    def before_flush(self, window, key):
        self.write("flush", window, key)

    def on_trigger(self, window, key):
        self.write("trigger", window, key)

    def on_partitions_evicted(self, window, keys):
        for key in keys:
            self.write("forget", window, key)


@pytest.fixture
def hand():
    return Hand()


@pytest.fixture
def clock(hand):
    made = HandClock(hand)
    yield made
    made.close()


def tumbling(evict=None, **options):
    options.setdefault("events", Log())
    return TumblingWindow(evict=Time("10s") if evict is None else evict, **options)


def sliding(evict, trigger, **options):
    options.setdefault("events", Log())
    return SlidingWindow(evict=evict, trigger=trigger, **options)


def lines(window):
    return window.events.lines


# -- by hand --


def test_batches_are_flushed_at_their_own_deadlines_and_an_idle_window_rests(hand, clock):
    window = clock.attach(tumbling(Count(2) | Time("10s")))
    hand.at += 35
    clock.poll()
    window.insert("a", key=1)
    hand.at += 4
    window.insert("b", key=2)
    hand.at += 20
    clock.poll()
    expected = ["+a 1 [a] at 35", "+b 2 [b] at 39", "flush 1 [a] at 45", "flush 2 [b] at 49"]
    assert expected == lines(window)
    assert window.next_due is None


def test_an_insert_comes_after_a_deadline_that_is_over(hand, clock):
    window = clock.attach(tumbling(Count(2) | Time("10s")))
    window.insert("a")
    hand.at += 10
    window.insert("b")
    assert ["+a None [a] at 0", "flush None [a] at 10", "+b None [b] at 10"] == lines(window)
    assert 1020 == window.next_due


def test_batches_that_fill_up_do_not_keep_the_clock_busy(hand, clock):
    window = clock.attach(tumbling(Count(2) | Time("10s")))
    for _ in range(100):
        window.insert("a")
        window.insert("b")
        hand.at += 0.05
    assert 1 == len(clock._heap)
    window.insert("c")
    del lines(window)[:]
    hand.at = 1010  # what was the first deadline
    clock.poll()
    assert [] == lines(window)
    hand.at = 1015
    clock.poll()
    assert ["flush None [c] at 15"] == lines(window)


def test_batches_that_wait_for_a_clock_start_with_it(hand, clock):
    window = tumbling(Count(3) | Time("10s"))
    window.insert("a", key=1)
    window.insert("b", key=2)
    clock.attach(window)
    window.state.check()
    assert 1010 == window.next_due
    hand.at += 10
    clock.poll()
    assert ["flush 1 [a] at 10", "flush 2 [b] at 10"] == lines(window)[2:]


def test_batches_on_another_scale_are_refused(clock):
    window = tumbling(Count(3) | Time("1us"))
    window.advance(1)
    with pytest.raises(ClockError, match="the window's clock is at 1"):
        clock.attach(window)


def test_the_clock_moves_a_restored_batch(hand, clock):
    window = clock.attach(tumbling(Count(3) | Time("10s")))
    window.insert("a")
    hand.at += 4
    other = clock.attach(tumbling(Count(3) | Time("10s")))
    other.restore(pickle.loads(pickle.dumps(window.snapshot())))
    hand.at += 6
    clock.poll()
    assert ["flush None [a] at 10"] == lines(other)


def test_ticks_fire_in_order_each_at_its_own_time(hand, clock):
    window = clock.attach(tumbling())
    window.insert("a")
    hand.at += 35
    clock.poll()
    expected = ["+a None [a] at 0", "flush None [a] at 10", "flush None [] at 20"]
    assert [*expected, "flush None [] at 30"] == lines(window)
    assert 1035 == window.now


def test_nothing_fires_before_it_is_due(hand, clock):
    window = clock.attach(tumbling())
    window.insert("a")
    hand.at += 9.999999
    clock.poll()
    assert ["+a None [a] at 0"] == lines(window)
    hand.at = 1010
    clock.poll()
    assert ["+a None [a] at 0", "flush None [a] at 10"] == lines(window)
    clock.poll()
    assert 2 == len(lines(window))


def test_overdue_ticks_come_before_the_tuple_of_an_insert(hand, clock):
    window = clock.attach(tumbling())
    window.insert("a")
    hand.at += 25
    window.insert("b")
    expected = ["+a None [a] at 0", "flush None [a] at 10", "flush None [] at 20"]
    assert [*expected, "+b None [b] at 25"] == lines(window)
    clock.poll()
    assert 4 == len(lines(window)), "what the insert has done is not done again"


def test_insert_many_inserts_each_tuple_at_its_own_time(hand, clock):
    window = clock.attach(tumbling())

    def slowly():
        for letter in "abc":
            yield letter
            hand.at += 8

    window.insert_many(slowly())
    expected = ["+a None [a] at 0", "+b None [ab] at 8"]
    assert [*expected, "flush None [ab] at 10", "+c None [c] at 16"] == lines(window)


def test_insert_many_takes_keys(clock):
    window = clock.attach(tumbling())
    window.insert_many("ab", "xy")
    assert ["+a x [a] at 0", "+b y [b] at 0"] == lines(window)


def test_insert_many_refuses_keys_that_do_not_match_before_it_takes_any(clock):
    window = clock.attach(tumbling())
    with pytest.raises(PartitionError) as caught:
        window.insert_many(["a", "b"], ["x"])
    expected = "insert_many(keys=...): 1 key for 2 tuples. Give one key per tuple."
    assert expected == str(caught.value)
    assert 0 == window.seen


def test_an_idle_window_ticks(hand, clock):
    window = clock.attach(tumbling())
    slid = clock.attach(sliding(Count(3), Time("10s")))
    hand.at += 20
    clock.poll()
    assert ["flush None [] at 10", "flush None [] at 20"] == lines(window)
    assert ["trigger None [] at 10", "trigger None [] at 20"] == lines(slid)


def test_a_time_trigger_ticks_over_what_is_there(hand, clock):
    window = clock.attach(sliding(Count(2), Time("10s")))
    for letter in "abc":
        window.insert(letter)
    hand.at += 10
    clock.poll()
    assert "trigger None [bc] at 10" == lines(window)[-1]


def test_a_tuple_leaves_when_it_is_older_than_the_period(hand, clock):
    window = clock.attach(sliding(Time("10s"), Count(9)))
    window.insert("a")
    hand.at += 4
    window.insert("b")
    hand.at = 1010
    clock.poll()
    assert 2 == window.size(), "exactly as old is not older"
    hand.at = 1010.000001
    clock.poll()
    assert ["b"] == window[None]
    hand.at = 1030
    clock.poll()
    assert ["-a None [ab] at 10", "-b None [b] at 14"] == lines(window)[2:]
    assert 0 == len(window.keys())


def test_an_insert_evicts_what_is_overdue_first(hand, clock):
    window = clock.attach(sliding(Time("10s"), Count(1)))
    window.insert("a")
    hand.at += 11
    window.insert("b")
    expected = ["+a None [a] at 0", "trigger None [a] at 0", "-a None [a] at 10"]
    assert [*expected, "+b None [b] at 11", "trigger None [b] at 11"] == lines(window)


def test_eviction_and_trigger_timers_run_in_the_order_of_their_times(hand, clock):
    window = clock.attach(sliding(Time("5s"), Time("10s")))
    window.insert("a")
    hand.at += 4
    window.insert("b")
    hand.at += 6
    clock.poll()
    expected = ["-a None [ab] at 5", "-b None [b] at 9", "trigger None [] at 10"]
    assert expected == lines(window)[2:]


def test_a_slow_handler_makes_ticks_catch_up_and_none_is_lost(hand, clock):
    class Slow(Log):
        def before_flush(self, window, key):
            super().before_flush(window, key)
            if len(self.lines) == 1:
                hand.at += 32  # while the first tick is handled, three more become due

    window = clock.attach(tumbling(events=Slow()))
    hand.at += 10
    clock.poll()
    assert [f"flush None [] at {at}" for at in (10, 20, 30, 40)] == lines(window)
    hand.at += 8
    clock.poll()
    assert "flush None [] at 50" == lines(window)[-1]


def test_windows_on_one_clock_act_in_the_order_of_their_deadlines(hand, clock):
    seen: list[str] = []
    for name, period in (("a ", "3s"), ("b ", "2s"), ("c ", "5s")):
        clock.attach(tumbling(Time(period), events=Log(name, seen)))
    for _ in range(6):
        hand.at += 1
        clock.poll()
    expected = ["b 2", "a 3", "b 4", "c 5", "a 6", "b 6"]
    shown = [line.replace("flush None [] at ", "") for line in seen]
    assert expected[:4] == shown[:4]
    assert sorted(expected) == sorted(shown)


def test_overdue_windows_act_in_the_order_of_their_deadlines_too(hand, clock):
    seen: list[str] = []
    for name, period in (("a ", "3s"), ("b ", "2s")):
        clock.attach(tumbling(Time(period), events=Log(name, seen)))
    hand.at += 5
    clock.poll()
    shown = [line.replace("flush None [] at ", "") for line in seen]
    assert ["b 2", "a 3", "b 4"] == shown


def test_a_window_attached_later_starts_when_it_is_attached(hand, clock):
    hand.at += 3
    window = clock.attach(tumbling())
    hand.at += 10
    clock.poll()
    assert ["flush None [] at 13"] == lines(window)


def test_a_window_that_was_moved_before_keeps_its_own_time(hand, clock):
    window = tumbling(start=1000)
    window.advance(1004)
    hand.at = 1006
    clock.attach(window)
    hand.at = 1010
    clock.poll()
    assert ["flush None [] at 10"] == lines(window)


def test_a_system_clock_that_goes_back_repeats_and_breaks_nothing(hand, clock):
    window = clock.attach(tumbling())
    hand.at = 1022
    clock.poll()
    hand.at = 1001
    clock.poll()
    window.insert("a")
    assert 1022 == window.now
    expected = ["flush None [] at 10", "flush None [] at 20", "+a None [a] at 22"]
    assert expected == lines(window)
    hand.at = 1030
    clock.poll()
    assert [*expected, "flush None [a] at 30"] == lines(window)


def test_the_clock_never_says_less_than_it_did(hand, clock):
    window = clock.attach(tumbling(Count(9)))
    times = []
    for hand.at in (1005.5, 1000.0, 1005.0, 1006.0):
        window.insert("a")
        times.append(window.now)
    assert [1005.5, 1005.5, 1005.5, 1006.0] == times


def test_partition_age_goes_by_the_clock(hand, clock):
    window = clock.attach(tumbling(Count(5), forget=PartitionAge("10s")))
    window.insert("a", key="k")
    hand.at += 5
    window.insert("b", key="l")
    hand.at = 1010.5
    window.insert("c", key="l")
    assert ["forget k [a] at 10.5", "+c l [bc] at 10.5"] == lines(window)[2:]


def test_partition_age_is_checked_at_ticks(hand, clock):
    window = clock.attach(tumbling(Time("4s"), forget=PartitionAge("1s")))
    window.insert("a", key="k")
    hand.at += 3.5
    window.insert("b", key="l")
    hand.at += 1
    clock.poll()
    expected = ["+a k [a] at 0", "forget k [a] at 3.5", "+b l [b] at 3.5", "flush l [b] at 4"]
    assert expected == lines(window)


def test_a_punctuation_comes_at_its_own_time(hand, clock):
    window = clock.attach(tumbling(Punct(), forget=PartitionAge("10s")))
    window.insert("a", key="old")
    hand.at += 5
    window.insert("b", key="young")
    hand.at += 6
    window.punctuate()
    assert ["forget old [a] at 11", "flush young [b] at 11"] == lines(window)[2:]
    clock.detach(window)
    hand.at += 5
    window.punctuate()
    assert 1011 == window.now, "no longer the clock's"


def test_summaries_tick_too(hand, clock):
    class Sums(WindowEvents[Any, Any]):
        emitted: list[Any]

        def before_flush(self, window, key):
            self.emit(n=window.summary(key).value())

    window = clock.attach(tumbling(summarizer=summarizers.count(), events=Sums()))
    window.insert("a")
    hand.at += 20
    clock.poll()
    assert [{"n": 1}, {"n": 0}] == window.events.emitted


def test_attach_returns_the_window(clock):
    window = tumbling()
    assert window is clock.attach(window)


def test_polling_an_empty_clock_does_nothing(clock):
    assert clock.poll() is None


# -- failures --


class Fails(Log):
    """Raises at its ticks."""

    def before_flush(self, window, key):
        super().before_flush(window, key)
        raise ZeroDivisionError(f"at {window.now - 1000:g}")


def failed(hand, clock):
    """A window with a failure that nobody has heard of."""
    window = clock.attach(tumbling(events=Fails()))
    window.insert("a")
    hand.at += 10
    clock.poll()
    return window


def test_a_failure_in_a_tick_comes_out_of_the_next_insert_once(hand, clock, caplog):
    with caplog.at_level(logging.ERROR, logger="windowlib"):
        window = failed(hand, clock)
    (record,) = caplog.records
    assert "failed in the clock's thread" in record.getMessage()
    with pytest.raises(ZeroDivisionError, match="at 10") as caught:
        window.insert("b")
    expected = ["in before_flush of Fails, partition None, time 1010, in TumblingWindow"]
    assert expected == [note.split(" '")[0] for note in caught.value.__notes__[:1]]
    assert "in the thread of a WallClock" == caught.value.__notes__[1]
    assert 0 == window.size(), "the insert that brings the news takes no tuple"
    window.insert("b")
    assert ["b"] == window[None]


def test_a_failure_in_a_tick_comes_out_of_detach_once(hand, clock):
    window = failed(hand, clock)
    with pytest.raises(ZeroDivisionError, match="at 10"):
        clock.detach(window)
    clock.detach(window)
    window.insert("b")
    assert ["b"] == window[None]


def test_a_failure_in_a_tick_comes_out_of_close_once(hand):
    clock = HandClock(hand)
    window = failed(hand, clock)
    with pytest.raises(ZeroDivisionError, match="at 10"):
        clock.close()
    clock.close()
    window.insert("b")
    assert ["b"] == window[None], "and the window is released"


def test_leaving_the_block_raises_the_failure(hand):
    def block():
        with HandClock(hand) as clock:
            failed(hand, clock)

    with pytest.raises(ZeroDivisionError, match="at 10"):
        block()


def test_close_releases_every_window_though_one_has_failed(hand):
    clock = HandClock(hand)
    failed(hand, clock)
    other = clock.attach(tumbling())
    with pytest.raises(ZeroDivisionError):
        clock.close()
    other.advance(2000)
    assert 2000 == other.now


def test_a_failing_window_goes_on_ticking_and_the_first_failure_is_kept(hand, clock):
    window = failed(hand, clock)
    hand.at += 10
    clock.poll()
    assert "flush None [] at 20" == lines(window)[-1]
    with pytest.raises(ZeroDivisionError, match="at 10"):
        window.insert("b")


def test_a_failing_window_does_not_hold_up_the_others(hand, clock):
    bad = clock.attach(tumbling(events=Fails()))
    good = clock.attach(tumbling())
    hand.at += 10
    clock.poll()
    assert ["flush None [] at 10"] == lines(good)
    with pytest.raises(ZeroDivisionError):
        clock.detach(bad)


def test_a_failure_in_an_overdue_tick_comes_out_of_the_insert_that_ran_it(hand, clock):
    window = clock.attach(tumbling(events=Fails()))
    window.insert("a")
    hand.at += 10
    with pytest.raises(ZeroDivisionError, match="at 10") as caught:
        window.insert("b")
    assert "in the thread of a WallClock" not in caught.value.__notes__
    window.insert("b")
    assert ["b"] == window[None]


# -- attach, detach, close --


def test_a_window_is_attached_to_one_clock(hand, clock):
    window = clock.attach(tumbling())
    other = HandClock(hand)
    for each in (clock, other):
        with pytest.raises(ClockError, match=r"attached to a clock already. Detach it first\.$"):
            each.attach(window)
    other.close()
    hand.at += 10
    clock.poll()
    assert ["flush None [] at 10"] == lines(window)


def test_a_closed_clock_takes_no_window(hand):
    clock = HandClock(hand)
    clock.close()
    with pytest.raises(ClockError, match=r"this clock is closed. Make a new WallClock\.$"):
        clock.attach(tumbling())


def test_detach_gives_the_window_back_to_manual_advance(hand, clock):
    window = clock.attach(tumbling())
    window.insert("a")
    clock.detach(window)
    hand.at += 100
    clock.poll()
    window.insert("b")
    assert ["+a None [a] at 0", "+b None [ab] at 0"] == lines(window), "time stands still"
    window.advance(1010)
    assert "flush None [ab] at 10" == lines(window)[-1]
    window.insert_many("cd")
    assert ["c", "d"] == window[None]


def test_close_gives_the_windows_back_to_manual_advance(hand):
    clock = HandClock(hand)
    windows = [clock.attach(tumbling()) for _ in range(2)]
    clock.close()
    clock.close()
    hand.at += 100
    for window in windows:
        window.insert("a")
        window.advance(1010)
        assert ["+a None [a] at 0", "flush None [a] at 10"] == lines(window)


def test_detach_of_a_stranger_does_nothing(clock):
    window = tumbling()
    clock.detach(window)
    clock.attach(window)


def test_a_detached_window_can_go_to_another_clock(hand, clock):
    window = clock.attach(tumbling())
    clock.detach(window)
    later = Hand(1500.0)
    other = HandClock(later)
    other.attach(window)
    later.at += 1
    window.insert("a")
    assert "+a None [a] at 501" == lines(window)[-1]
    other.close()


def test_a_clock_leaves_a_window_alone_that_another_has_taken_over(hand, clock):
    window = clock.attach(tumbling())
    clock.detach(window)
    later = Hand(1000.0)
    other = HandClock(later)
    other.attach(window)
    hand.at += 500
    clock.poll()
    assert [] == lines(window)
    later.at += 10
    other.poll()
    assert ["flush None [] at 10"] == lines(window)
    other.close()


def test_a_window_that_is_attached_again_raises_its_failures(hand, clock):
    window = clock.attach(tumbling(events=Fails()))
    clock.detach(window)
    clock.attach(window)
    hand.at += 10
    clock.poll()
    with pytest.raises(ZeroDivisionError):
        clock.detach(window)


def test_the_heap_does_not_grow_with_the_ticks_that_inserts_run(hand, clock):
    window = clock.attach(tumbling())
    for _ in range(50):
        hand.at += 11
        window.insert("a")  # runs the tick before the clock does
        clock.poll()
    assert len(clock._heap) <= 2


# -- locks --


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(3)),
        Tumbling(Delta(0, 3), by=KEY, forget=PartitionAge("1s")),
        Tumbling(Punct()),
        Sliding(Count(3), every=Delta(0, 3)),
        Sliding(Delta(0, 3), by=0),
    ],
    ids=str,
)
def test_a_window_without_a_time_policy_has_no_lock(spec):
    window: Any = (TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow)(spec)
    assert window.state.lock is None
    assert isinstance(window.locked(), nullcontext)
    assert "lock      none needed" in window.explain()


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Time("1s")),
        Sliding(Time("1s"), every=Count(3)),
        Sliding(Count(3), every=Time("1s")),
        Sliding(Time("1s"), every=Time("1s")),
    ],
    ids=str,
)
def test_a_window_with_a_time_policy_has_one(spec):
    window: Any = (TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow)(spec)
    assert window.locked() is window.state.lock
    with window.locked(), window.locked():
        window.insert("a")  # the thread that holds it may go on
    assert 1 == len(window)


def test_a_window_without_a_time_policy_can_be_attached_and_stays_without_a_lock(hand, clock):
    window = clock.attach(tumbling(Count(2)))
    hand.at += 7
    window.insert("a")
    assert 1007 == window.now
    assert window.state.lock is None
    assert [] == clock._heap


def test_ticks_wait_while_a_reader_holds_the_window(hand, clock):
    window = clock.attach(tumbling())
    window.insert("a")
    hand.at += 10
    done = threading.Event()

    def tick():
        clock.poll()
        done.set()

    other = threading.Thread(target=tick)
    with window.locked():
        other.start()
        assert not done.wait(0.05)
        assert ["a"] == window[None]
    assert done.wait(PATIENCE)
    other.join()
    assert 0 == window.size()


# -- snapshots --


def test_restoring_into_an_attached_window_catches_up_what_is_overdue(hand, clock):
    window = clock.attach(tumbling())
    hand.at = 1025
    window.insert("a")
    state = pickle.loads(pickle.dumps(window.snapshot()))
    later = Hand(1052.0)
    with HandClock(later) as other:
        restored = other.attach(tumbling())
        restored.restore(state)
        assert [] == lines(restored)
        other.poll()
        expected = [f"flush None [{held}] at {at}" for held, at in (("a", 30), ("", 40), ("", 50))]
        assert expected == lines(restored)
        restored.insert("b")
        assert "+b None [b] at 52" == lines(restored)[-1]


def test_an_insert_after_restoring_comes_after_what_is_overdue(hand, clock):
    window = clock.attach(sliding(Time("10s"), Count(9)))
    window.insert("a")
    state = window.snapshot()
    with HandClock(Hand(1011.0)) as other:
        restored = other.attach(sliding(Time("10s"), Count(9)))
        restored.restore(state)
        restored.insert("b")
        assert ["-a None [a] at 10", "+b None [b] at 11"] == lines(restored)


def test_a_restored_window_keeps_its_time_when_it_is_attached(hand, clock):
    window = clock.attach(tumbling())
    hand.at += 1
    window.insert("a")
    state = window.snapshot()
    restored = tumbling()
    restored.restore(state)
    with HandClock(Hand(1025.0)) as other:
        other.attach(restored)
        other.poll()
        assert ["flush None [a] at 10", "flush None [] at 20"] == lines(restored)


def test_a_snapshot_of_a_clock_that_was_ahead_does_not_stop_the_window(hand, clock):
    window = clock.attach(tumbling())
    hand.at = 1005
    window.insert("a")
    state = window.snapshot()
    behind = Hand(1003.0)
    with HandClock(behind) as other:
        restored = other.attach(tumbling())
        restored.restore(state)
        restored.insert("b")
        assert ["+b None [ab] at 5"] == lines(restored), "time stands still until it is reached"
        behind.at = 1010
        other.poll()
        assert "flush None [ab] at 10" == lines(restored)[-1]


# -- freezegun --


def test_frozen_time_moves_the_windows():
    with freeze_time("2100-01-01") as frozen:
        clock = HandClock(lambda: time.time())
        window = clock.attach(tumbling(events=Log()))
        window.insert("a")
        frozen.tick(9)
        clock.poll()
        assert ["a"] == window[None]
        frozen.tick(1)
        clock.poll()
        assert 0 == window.size()
        frozen.tick(25)
        window.insert("b")
        assert 3 == sum("flush" in line for line in lines(window))
        clock.close()


def test_a_clock_without_arguments_follows_frozen_time():
    with freeze_time("2100-01-01") as frozen, HandClock() as clock:
        window = clock.attach(tumbling(Count(3)))
        window.insert("a")
        assert time.time() == window.now
        frozen.tick(60)
        window.insert("b")
        assert time.time() == window.now


# -- the clock's own thread --


def clock_threads():
    return [thread for thread in threading.enumerate() if thread.name == "windowlib-clock"]


class Signal(WindowEvents[Any, Any]):
    """Tells when it has ticked often enough."""

    def __init__(self, ticks=1):
        self.ticks = ticks
        self.times = []
        self.enough = threading.Event()

    def before_flush(self, window, key):
        self.times.append(window.now)
        if len(self.times) >= self.ticks:
            self.enough.set()


def test_the_thread_ticks_by_itself():
    with WallClock() as clock:
        window: Any = clock.attach(tumbling(Time("5ms"), events=Signal(10)))
        assert window.events.enough.wait(PATIENCE)
    times = window.events.times
    steps = {round((b - a) * 1000, 3) for a, b in pairwise(times)}
    assert {5.0} == steps, "in steps of the period, none left out"


def test_the_thread_wakes_up_for_a_deadline_that_comes_before_the_one_it_waits_for():
    with WallClock() as clock:
        clock.attach(tumbling(Time("1h")))
        window: Any = clock.attach(tumbling(Time("5ms"), events=Signal()))
        assert window.events.enough.wait(PATIENCE)


def test_the_thread_wakes_up_for_a_tuple_that_will_expire():
    class Gone(WindowEvents[Any, Any]):
        def __init__(self):
            self.event = threading.Event()

        def after_evict(self, window, tuple_, key):
            self.event.set()

    with WallClock() as clock:
        window: Any = clock.attach(sliding(Time("5ms"), Count(1), events=Gone()))
        window.insert("a")
        assert window.events.event.wait(PATIENCE)


def test_the_thread_starts_with_the_first_window_and_ends_at_close():
    clock = WallClock()
    assert [] == clock_threads()
    clock.attach(tumbling(Time("1h")))
    clock.attach(tumbling(Time("1h")))
    (thread,) = clock_threads()
    assert thread.daemon
    clock.close()
    assert not thread.is_alive()
    assert [] == clock_threads()
    clock.close()


def test_a_failure_in_the_thread_comes_out_of_close():
    class Fail(Signal):
        def before_flush(self, window, key):
            super().before_flush(window, key)
            raise ZeroDivisionError("in a tick")

    clock = WallClock()
    window: Any = clock.attach(tumbling(Time("5ms"), events=Fail()))
    assert window.events.enough.wait(PATIENCE)
    with pytest.raises(ZeroDivisionError, match="in a tick"):
        clock.close()
    assert [] == clock_threads()


def test_a_handler_may_close_the_clock():
    class Close(Signal):
        def before_flush(self, window, key):
            own.close()
            super().before_flush(window, key)

    own = WallClock()
    window: Any = own.attach(tumbling(Time("5ms"), events=Close()))
    (thread,) = clock_threads()
    assert window.events.enough.wait(PATIENCE)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_nothing_is_lost_or_doubled_when_threads_insert_while_it_ticks():
    class Collect(WindowEvents[Any, Any]):
        def __init__(self):
            self.got = []

        def before_flush(self, window, key):
            self.got.extend(window[key])

    writers, each = 4, 400
    with WallClock() as clock:
        window: Any = clock.attach(tumbling(Time("1ms"), events=Collect()))
        ready = threading.Barrier(writers)

        def write(number):
            ready.wait(PATIENCE)
            for i in range(each):
                window.insert((number, i))

        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    got = [*window.events.got, *window[None]]
    assert writers * each == window.seen
    assert [(n, i) for n in range(writers) for i in range(each)] == sorted(got)
    for n in range(writers):
        assert list(range(each)) == [i for number, i in got if number == n], "in order"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40),
    st.sampled_from(["count(2)", "time(3)", "delta(x, 2.0)"]),
    st.sampled_from([None, PartitionCount(2), TupleCount(5)]),
)
def test_tuples_that_leave_unseen_leave_as_they_do_with_a_handler(steps, trigger, forget):
    """What nobody watches is done in one go, with the same state and the same triggers after it."""

    class Seen(WindowEvents[Any, Any]):
        def __init__(self):
            self.told = []

        def on_trigger(self, window, key):
            self.told.append((window.now, key, [t["x"] for t in window[key]]))

    def made(engine):
        spec = replace(parse(f"sliding, time(4), {trigger}"), by="k", forget=forget)
        return SlidingWindow(spec, events=Seen(), engine=engine)

    fast, slow = made("generated"), made("reference")
    now = 0
    for i, (key, wait) in enumerate(steps):
        now += wait
        for window in (fast, slow):
            window.advance(now)
            window.insert({"k": key, "x": i})
        assert fast.snapshot()["parts"] == slow.snapshot()["parts"]
        assert list(fast.state.asleep) == list(slow.state.asleep)
        assert fast.next_due == slow.next_due
    fast.state.check()
    assert fast.events.told == slow.events.told
