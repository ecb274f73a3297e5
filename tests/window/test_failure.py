"""A handler that raises: what the exception says, and how the window goes on."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    SlidingWindow,
    Summarizer,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.durations import seconds_text

ENGINES = ("generated", "reference")
engines = pytest.mark.parametrize("engine", ENGINES)


class BoomError(Exception):
    """What the handlers of these tests raise."""


class Events(WindowEvents[Any, Any]):
    """Logs every event with what the subwindow holds; raises at one of them."""

    def __init__(self, event=None, nth=1):
        self.event, self.nth = event, nth
        self.log: list[str] = []
        self.when: float | None = None  # it raised, and for which partition
        self.key: Any = None

    def hit(self, event, window, key, tuple_=None):
        several = event in ("on_partitions_evicted", "select_partitions", "on_empty_punctuation")
        held = "" if several else "".join(str(t["id"]) for t in window[key])
        self.log.append(f"{event} {key} {tuple_ and tuple_['id']} [{held}]")
        if event == self.event:
            self.nth -= 1
            if not self.nth:
                self.when, self.key = window.now, key
                raise BoomError(event)

    def before_insert(self, window, tuple_, key):
        self.hit("before_insert", window, key, tuple_)

    def after_insert(self, window, tuple_, key):
        self.hit("after_insert", window, key, tuple_)

    def before_evict(self, window, tuple_, key):
        self.hit("before_evict", window, key, tuple_)

    def after_evict(self, window, tuple_, key):
        self.hit("after_evict", window, key, tuple_)

    def before_flush(self, window, key):
        self.hit("before_flush", window, key)

    def after_flush(self, window, key):
        self.hit("after_flush", window, key)

    def on_trigger(self, window, key):
        self.hit("on_trigger", window, key)

    def on_initial_full(self, window, key):
        self.hit("on_initial_full", window, key)

    def on_partitions_evicted(self, window, keys):
        self.hit("on_partitions_evicted", window, keys)

    def select_partitions(self, window, keys):
        self.hit("select_partitions", window, keys)
        return keys[:1]

    def on_empty_punctuation(self, window):
        self.hit("on_empty_punctuation", window, None)


HANDLERS = [name for name in vars(Events) if name.startswith(("before", "after", "on_", "select"))]
EVICTION = ("on_partitions_evicted", "select_partitions")


def alone(event):
    """The same with one handler: all others cost, and do, nothing."""
    kept = {event, "select_partitions"}
    others = {name: vars(WindowEvents)[name] for name in HANDLERS if name not in kept}
    return type("Events", (Events,), others)


# -- windows and what happens to them --

EVICT = (Count(3), Delta("x", 5), Time("10s"))
EVERY = (Count(2), Delta("x", 4), Time("7s"))
FORGET = (PartitionCount(2), PartitionCount(2, "operator"), TupleCount(5), PartitionAge("4s"))


def specs(forget=None):
    closing = (*EVICT, Punct(), Count(3) | Time("3s"))
    tumbling = [Tumbling(evict, by=KEY, forget=forget) for evict in closing]
    pairs = [(evict, every) for evict in EVICT for every in EVERY]
    return [*tumbling, *(Sliding(a, every=b, by=KEY, forget=forget) for a, b in pairs)]


PLAIN = specs()
FORGETTING = [spec for forget in FORGET for spec in specs(forget)]
plain = pytest.mark.parametrize("spec", PLAIN, ids=str)
forgetting = pytest.mark.parametrize("spec", FORGETTING, ids=str)
tumbling_specs = pytest.mark.parametrize("spec", PLAIN[:5], ids=str)


class Insert(NamedTuple):
    row: dict[str, Any]
    key: str


def script(spec, keys="aabababcabaabcabbacaab"):
    """Tuples of some partitions whose x goes up, with time and punctuations between them."""
    for number, key in enumerate(keys, 1):
        yield Insert({"id": number % 10, "x": 2 * number}, key)
        yield 1.3 * number
        if isinstance(spec.evict, Punct) and number % 5 == 0:
            yield "window"
            yield from ["final"] * (number == 10)


def opened(spec, engine, events):
    make: Any = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    return make(spec, engine=engine, events=events)


def apply(window, op):
    if isinstance(op, Insert):
        window.insert(op.row, key=op.key)
    elif isinstance(op, str):
        window.punctuate(op)
    else:
        window.advance(op)


def clean(spec, engine, ops):
    """A window without a failure, after some operations."""
    window = opened(spec, engine, Events())
    for op in ops:
        apply(window, op)
    return window


class Run(NamedTuple):
    window: Any
    error: Any
    at: int  # the operation that failed

    def tuple_number(self, spec):
        """Which insert failed, or None if it was not an insert."""
        ops = list(script(spec))[: self.at + 1]
        return sum(isinstance(op, Insert) for op in ops) if isinstance(ops[-1], Insert) else None


def run(window, check=True):
    """The whole script, though one operation fails; invariants are checked after each."""
    error, at = None, -1
    for index, op in enumerate(script(window.spec)):
        try:
            apply(window, op)
        except BoomError as boom:
            error, at = boom, index
        if check:
            window.state.check()
    return Run(window, error, at)


def contents(window):
    parts = {
        part["key"]: [row["id"] for row in part["data"]] for part in window.snapshot()["parts"]
    }
    return {key: ids for key, ids in parts.items() if ids}


def state(window):
    return {**window.snapshot(), "events": None}


@cache
def occurrences(spec, event):
    """Some of the times that an event happens in the script: the first few, and later ones."""
    log = clean(spec, "generated", script(spec)).events.log
    times = sum(line.split()[0] == event for line in log)
    return sorted({1, 2, times // 2, times} & set(range(1, times + 1)))


def cases(spec, handlers=HANDLERS):
    return [(event, nth) for event in handlers for nth in occurrences(spec, event)]


def test_every_event_happens_somewhere():
    happened = {event for spec in [*PLAIN, *FORGETTING] for event, _ in cases(spec)}
    assert set(HANDLERS) == happened


# -- the exception --


def expected_note(spec, event, found):
    events, number = found.window.events, found.tuple_number(spec)
    when = seconds_text(timedelta(seconds=events.when))  # to the microsecond
    what = f"time {when}" if number is None else f"tuple {number}"
    partition = f"partition{'s' * (event in EVICTION)} {events.key!r}, "
    if event == "on_empty_punctuation":
        partition = ""
    return f"in {event} of Events, {partition}{what}, in {type(found.window).__name__} '{spec}'"


def wrong_notes(spec, engine, handlers):
    for event, nth in cases(spec, handlers):
        found = run(opened(spec, engine, Events(event, nth)), check=False)
        assert BoomError is type(found.error)
        assert (event,) == found.error.args
        notes = [n for n in getattr(found.error, "__notes__", []) if not n.startswith("the tuple")]
        expected = [expected_note(spec, event, found)]
        if expected != notes:
            yield expected, notes


@engines
@plain
def test_the_exception_keeps_its_type_and_says_where_it_was(engine, spec):
    assert [] == list(wrong_notes(spec, engine, HANDLERS))


@engines
@forgetting
def test_a_failing_partition_eviction_says_where_it_was(engine, spec):
    assert [] == list(wrong_notes(spec, engine, EVICTION))


def test_the_context_of_an_exception_is_still_shown():
    class Chained(WindowEvents[Any, Any]):
        def before_insert(self, window, tuple_, key):
            try:
                tuple_["missing"]
            except KeyError:
                raise BoomError("while looking")  # noqa: B904 - that is the point

    for engine in ENGINES:
        window = opened(Tumbling(Count(3)), engine, Chained())
        with pytest.raises(BoomError) as caught:
            window.insert({})
        assert isinstance(caught.value.__context__, KeyError)
        assert not caught.value.__suppress_context__


def test_an_explicit_cause_is_kept():
    class Caused(WindowEvents[Any, Any]):
        def after_insert(self, window, tuple_, key):
            raise BoomError("because") from KeyError("why")

    for engine in ENGINES:
        window = opened(Tumbling(Count(3)), engine, Caused())
        with pytest.raises(BoomError) as caught:
            window.insert({})
        assert isinstance(caught.value.__cause__, KeyError)


def test_what_is_not_an_exception_passes_through_as_it_is():
    class Stop(WindowEvents[Any, Any]):
        def before_insert(self, window, tuple_, key):
            raise KeyboardInterrupt

    for engine in ENGINES:
        with pytest.raises(KeyboardInterrupt):
            opened(Tumbling(Count(3)), engine, Stop()).insert({})


@engines
def test_one_function_for_two_events_is_named_by_the_event_that_fired(engine):
    class Shared(WindowEvents[Any, Any]):
        def before_insert(self, window, tuple_, key):
            raise BoomError

        after_insert = before_insert

    window = opened(Tumbling(Count(3)), engine, Shared())
    with pytest.raises(BoomError) as caught:
        window.insert({})
    assert caught.value.__notes__[0].startswith(
        "in before_insert of Shared, partition None, tuple 1,"
    )


@engines
def test_a_window_that_keeps_nothing_counts_its_tuples_too(engine):
    events = Events("on_trigger")
    window = opened(Sliding(Count(0), every=Count(3)), engine, events)
    for number in range(2):
        window.insert({"id": number})
    with pytest.raises(BoomError) as caught:
        window.insert({"id": 2})
    assert "in on_trigger of Events, partition None, tuple 3," in caught.value.__notes__[0]


@engines
def test_slices_say_where_they_were(engine):
    class Sums(WindowEvents[Any, Any]):
        def on_trigger(self, window, key):
            if window.summary(key).value() == 1 + 2 + 3 + 4:
                raise BoomError
            self.emit(window.summary(key).value())

    window: Any = SlidingWindow(
        Sliding(Count(4), every=Count(2)),
        summarizer=summarizers.sum(0),
        events=Sums(),
        engine=engine,
    )
    window.insert_many([(1,), (2,), (3,)])
    with pytest.raises(BoomError) as caught:
        window.insert((4,))
    assert "in on_trigger of Sums, partition None, tuple 4," in caught.value.__notes__[0]
    window.insert_many([(5,), (6,), (7,), (8,)])
    assert [3, 3 + 4 + 5 + 6, 5 + 6 + 7 + 8] == window.events.emitted


# -- and afterwards --


def differences(spec, handlers):
    for event, nth in cases(spec, handlers):
        a, b = [run(opened(spec, e, Events(event, nth)), check=False) for e in ENGINES]
        if (a.at, a.window.events.log) != (b.at, b.window.events.log):
            yield event, nth, "events"
        elif state(a.window) != state(b.window):
            yield event, nth, "state"


@plain
def test_both_engines_go_on_in_the_same_way(spec):
    assert [] == list(differences(spec, HANDLERS))


@forgetting
def test_both_engines_go_on_in_the_same_way_with_partition_eviction(spec):
    assert [] == list(differences(spec, (*EVICTION, "after_insert", "before_flush", "on_trigger")))


def violations(spec, engine, handlers, make):
    for event, nth in cases(spec, handlers):
        try:
            found = run(opened(spec, engine, make(event)(event, nth)))
        except AssertionError:
            yield event, nth
        else:
            assert isinstance(found.error, BoomError)


@engines
@plain
def test_invariants_hold_afterwards(engine, spec):
    assert [] == list(violations(spec, engine, HANDLERS, lambda event: Events))


@engines
@plain
def test_invariants_hold_afterwards_with_a_single_handler(engine, spec):
    assert [] == list(violations(spec, engine, HANDLERS, alone))


@engines
@forgetting
def test_invariants_hold_after_a_failing_partition_eviction(engine, spec):
    assert [] == list(violations(spec, engine, EVICTION, alone))


ENTERED = {
    # Events of an insert at which its tuple is in already; all others come before it.
    "count": ("after_insert", "on_initial_full", "before_flush", "after_flush"),
    "delta": ("after_insert",),
    "time": ("after_insert",),
    "punct": ("after_insert",),
    "either": ("after_insert", "before_flush", "after_flush"),
}


def entered(spec, event):
    if event == "on_trigger":
        return spec.every.kind == "count"
    return event in ENTERED[spec.evict.kind]


def losses(spec, engine):
    ops = list(script(spec))
    for event, nth in cases(spec):
        found = run(opened(spec, engine, Events(event, nth)), check=False)
        if found.at > len(ops) - 12:
            continue  # too late for enough tuples to follow
        refused = isinstance(ops[found.at], Insert) and not entered(spec, event)
        same = clean(spec, engine, [op for i, op in enumerate(ops) if not refused or i != found.at])
        if contents(same) != contents(found.window):
            yield event, nth, contents(same), contents(found.window)
        elif not refused and state(same) != state(found.window):
            yield event, nth, state(same), state(found.window)


@engines
@plain
def test_nothing_is_lost_but_the_tuple_that_was_refused(engine, spec):
    """Once more tuples have come, the window is as if the failure had not been.

    An insert that fails before its tuple is in is an insert that has not been. Whatever else
    fails, the tuple is in, and what was due is done.
    """
    assert [] == list(losses(spec, engine))


@engines
@pytest.mark.parametrize("event", ["after_insert", "before_flush", "after_flush"])
def test_a_tumbling_count_window_never_holds_more_than_its_size(engine, event):
    sizes = []

    class Fail(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            sizes.append(window.size())

    def fail(self, window, *arguments):
        if window.size() == 3 or event == "after_flush":
            raise BoomError

    events = type("Fail", (Fail,), {event: fail})()
    window = opened(Tumbling(Count(3)), engine, events)
    for number in range(12):
        with suppress(BoomError):
            window.insert({"id": number})
        assert window.size() < 3
        window.state.check()
    assert 0 == window.size()
    assert set(sizes) <= {3}


@engines
@pytest.mark.parametrize(
    "event", ["after_insert", "on_initial_full", "on_trigger"], ids=lambda event: event
)
def test_count_triggers_go_on_at_the_right_counts(engine, event):
    events = Events(event, nth={"after_insert": 3, "on_trigger": 2}.get(event, 1))
    window = opened(Sliding(Count(4), every=Count(2)), engine, events)
    fired = []
    for number in range(1, 11):
        before = len(events.log)
        with suppress(BoomError):
            window.insert({"id": number % 10})
        fired += [number for line in events.log[before:] if line.startswith("on_trigger")]
        window.state.check()
    at = {"after_insert": 3, "on_initial_full": 4, "on_trigger": 4}[event]
    assert [n for n in (2, 4, 6, 8, 10) if n > at] == [n for n in fired if n > at]
    assert {n % 2 for n in fired} == {0}


@engines
@pytest.mark.parametrize("event", ["before_flush", "after_flush"])
@pytest.mark.parametrize("evict", [Time("10s"), Punct()], ids=str)
def test_every_other_partition_is_flushed(engine, event, evict):
    events = Events(event)
    window = opened(Tumbling(evict, by=KEY), engine, events)
    for number, key in enumerate("abc"):
        window.insert({"id": number}, key=key)
    with pytest.raises(BoomError):
        window.advance(10) if isinstance(evict, Time) else window.punctuate()
    flushed = [line.split()[1] for line in events.log if line.startswith("before_flush")]
    assert ["a", "b", "c"] == flushed
    assert [] == list(window.keys())
    window.state.check()


@engines
@pytest.mark.parametrize("evict", [Count(3), Delta("x", 5), Time("60s")], ids=str)
def test_every_other_partition_gets_its_trigger(engine, evict):
    events = Events("on_trigger")
    window = opened(Sliding(evict, every=Time("10s"), by=KEY), engine, events)
    for number, key in enumerate("abc"):
        window.insert({"id": number, "x": 0}, key=key)
    with pytest.raises(BoomError):
        window.advance(20)
    triggered = [line.split()[1] for line in events.log if line.startswith("on_trigger")]
    assert ["a", "b", "c"] * 2 == triggered
    window.state.check()


@engines
@pytest.mark.parametrize("event", ["before_evict", "after_evict"])
def test_every_other_tuple_leaves_when_its_time_is_over(engine, event):
    events = Events(event)
    window = opened(Sliding(Time("10s"), every=Count(99), by=KEY), engine, events)
    for number, key in enumerate("abab"):
        window.insert({"id": number}, key=key)
    with pytest.raises(BoomError):
        window.advance(11)
    left = [line.split()[2] for line in events.log if line.startswith("before_evict")]
    assert ["0", "2", "1", "3"] == left, "partition by partition"
    assert 0 == len(window)
    assert [] == list(window.keys())
    window.state.check()


class AllFail(WindowEvents[Any, Any]):
    def before_flush(self, window, key):
        raise BoomError(key)

    def on_trigger(self, window, key):
        raise BoomError(key)

    def before_evict(self, window, tuple_, key):
        raise BoomError(key)


@engines
@pytest.mark.parametrize(
    ("spec", "event", "when", "more"),
    [
        (Tumbling(Time("10s"), by=KEY), "before_flush", 10, 2),
        (Tumbling(Time("10s"), by=KEY), "before_flush", 30, 4),  # and two idle ticks
        (Tumbling(Punct(), by=KEY), "before_flush", None, 2),
        (Sliding(Count(3), every=Time("10s"), by=KEY), "on_trigger", 10, 2),
        (Sliding(Time("10s"), every=Count(9), by=KEY), "before_evict", 11, 2),
    ],
    ids=str,
)
def test_the_first_failure_of_a_tick_is_raised_and_the_others_are_counted(
    engine, spec, event, when, more
):
    window = opened(spec, engine, AllFail())
    for number, key in enumerate("abc"):
        window.insert({"id": number}, key=key)
    with pytest.raises(BoomError) as caught:
        window.punctuate() if when is None else window.advance(when)
    assert ("a",) == caught.value.args
    first, second = caught.value.__notes__
    assert first.startswith(f"in {event} of AllFail, partition 'a', time ")
    assert f"and {more} more failures after it" == second
    window.state.check()
    assert (when or 0) == window.now


@engines
def test_a_failure_among_several_ticks_names_the_time_of_its_own(engine):
    window = opened(Tumbling(Time("10s")), engine, Events("before_flush", nth=2))
    with pytest.raises(BoomError) as caught:
        window.advance(45)
    assert "partition None, time 20, in" in caught.value.__notes__[0]
    assert 45 == window.now
    assert 50 == window.next_due


@engines
def test_a_failure_names_the_time_of_the_wall_clock_in_full(engine):
    window: Any = TumblingWindow(
        Tumbling(Time("10s")), engine=engine, events=Events("before_flush"), start=1_700_000_000
    )
    with pytest.raises(BoomError) as caught:
        window.advance(1_700_000_010)
    assert "partition None, time 1700000010, in" in caught.value.__notes__[0]


@engines
def test_an_idle_tick_may_fail(engine):
    window = opened(Tumbling(Time("10s"), by=KEY), engine, Events("before_flush"))
    with pytest.raises(BoomError):
        window.advance(10)
    assert [] == list(window.keys())
    window.insert({"id": 1}, key="a")
    window.advance(20)
    assert "before_flush a None [1]" in window.events.log
    window.state.check()


@engines
def test_a_punctuation_of_nothing_may_fail(engine):
    window = opened(Tumbling(Punct()), engine, Events("on_empty_punctuation"))
    with pytest.raises(BoomError) as caught:
        window.punctuate()
    expected = "in on_empty_punctuation of Events, time 0, in TumblingWindow"
    assert expected == caught.value.__notes__[0].split(" '")[0]
    window.punctuate()
    assert 2 == len(window.events.log)


class Erratic(Events):
    """Fails whenever its dice say so."""

    def __init__(self, dice):
        super().__init__()
        self.dice = dice

    def hit(self, event, window, key, tuple_=None):
        super().hit(event, window, key, tuple_)
        if self.dice.random() < 0.15:
            raise BoomError(event)


@settings(max_examples=examples(150))
@given(st.sampled_from([*PLAIN, *FORGETTING]), st.integers(0, 10**9), st.text("abc", max_size=40))
def test_both_engines_go_on_in_the_same_way_whatever_fails(spec, seed, keys):
    windows = [opened(spec, engine, Erratic(random.Random(seed))) for engine in ENGINES]
    for op in script(spec, keys):
        raised: list[Any] = [None, None]
        for i, window in enumerate(windows):
            try:
                apply(window, op)
            except BoomError as boom:
                raised[i] = boom
            window.state.check()
        assert windows[1].events.log == windows[0].events.log
        notes = [error and (error.args, error.__notes__) for error in raised]
        assert notes[1] == notes[0]
    assert state(windows[1]) == state(windows[0])


# -- partition eviction --


def aged(spec, engine, event="on_partitions_evicted"):
    """A window with an old partition and a young one, whose eviction will fail."""
    window = opened(spec, engine, Events(event))
    window.insert({"id": 1, "x": 1}, key="old")
    window.advance(5)
    window.insert({"id": 2, "x": 1}, key="young")
    window.advance(6)
    return window


@engines
def test_partitions_are_forgotten_though_their_handler_fails(engine):
    window = opened(
        Tumbling(Count(9), by=KEY, forget=PartitionCount(1)),
        engine,
        Events("on_partitions_evicted"),
    )
    window.insert({"id": 1}, key="a")
    with pytest.raises(BoomError) as caught:
        window.insert({"id": 2}, key="b")
    assert "partitions ('a',), tuple 2, in" in caught.value.__notes__[0]
    assert ["b"] == list(window.keys())
    assert 1 == window.size("b"), "the tuple is in"
    window.state.check()


@engines
@pytest.mark.parametrize("spec", [Tumbling(Count(9)), Sliding(Count(9))], ids=str)
def test_a_failing_eviction_by_age_comes_before_the_tuple(engine, spec):
    forget = PartitionAge("5s")
    window = aged(type(spec)(spec.evict, by=KEY, forget=forget), engine)
    with pytest.raises(BoomError) as caught:
        window.insert({"id": 3}, key="young")
    assert "partitions ('old',), tuple 3, in" in caught.value.__notes__[0]
    assert ["young"] == list(window.keys())
    assert 1 == window.size("young")
    window.state.check()


@engines
def test_a_failing_eviction_by_age_does_not_keep_a_punctuation_from_flushing(engine):
    window = aged(Tumbling(Punct(), by=KEY, forget=PartitionAge("5s")), engine)
    with pytest.raises(BoomError) as caught:
        window.punctuate()
    assert "in on_partitions_evicted of Events" in getattr(caught.value, "__notes__", [""])[0]
    assert "before_flush young None [2]" in window.events.log
    assert [] == list(window.keys())


@engines
def test_a_failing_eviction_by_age_does_not_keep_a_tick_from_flushing(engine):
    window = aged(Tumbling(Time("7s"), by=KEY, forget=PartitionAge("5s")), engine)
    with pytest.raises(BoomError):
        window.advance(7)
    assert "before_flush young None [2]" in window.events.log
    assert [] == list(window.keys())


@engines
def test_a_failing_eviction_by_age_does_not_keep_a_tick_from_triggering(engine):
    spec = Sliding(Count(9), every=Time("7s"), by=KEY, forget=PartitionAge("5s"))
    window = aged(spec, engine)
    with pytest.raises(BoomError):
        window.advance(7)
    assert "on_trigger young None [2]" in window.events.log
    assert ["young"] == list(window.keys())


@engines
@pytest.mark.parametrize(
    "forget", [PartitionCount(1, "operator"), TupleCount(1, "operator")], ids=str
)
def test_a_selection_that_fails_is_made_up_for_with_the_next_tuple(engine, forget):
    window = opened(Sliding(Count(9), by=KEY, forget=forget), engine, Events("select_partitions"))
    window.insert({"id": 1}, key="a")
    with pytest.raises(BoomError) as caught:
        window.insert({"id": 2}, key="b")
    assert (
        "select_partitions of Events, partitions ('a', 'b'), tuple 2" in caught.value.__notes__[0]
    )
    assert ["a", "b"] == list(window.keys())
    window.insert({"id": 3}, key="c")
    assert len(window.keys()) <= 1
    window.state.check()


# -- storage --


@engines
@plain
def test_a_partition_whose_first_tuple_is_refused_was_never_there(engine, spec):
    window = opened(spec, engine, Events("before_insert"))
    with pytest.raises(BoomError):
        window.insert({"id": 1, "x": 1}, key="a")
    assert [] == list(window.keys())
    assert 0 == window.seen
    window.state.check()
    window.insert({"id": 2, "x": 1}, key="a")
    assert [{"id": 2, "x": 1}] == window["a"]


@engines
@pytest.mark.parametrize("every", [Count(2), Delta("x", 4), Time("60s")], ids=str)
def test_a_partition_that_time_has_emptied_stays_out_if_its_next_tuple_is_refused(engine, every):
    window = opened(Sliding(Time("10s"), every=every, by=KEY), engine, Events("before_insert", 2))
    window.insert({"id": 1, "x": 1}, key="a")
    window.advance(20)
    with pytest.raises(BoomError):
        window.insert({"id": 2, "x": 9}, key="a")
    assert [] == list(window.keys())
    window.state.check()
    window.insert({"id": 3, "x": 9}, key="a")
    assert [{"id": 3, "x": 9}] == window["a"]
    window.state.check()


@engines
@pytest.mark.parametrize("then", [(105, 300), (300, 305)])
def test_a_delta_window_takes_its_reference_from_the_first_tuple_that_is_in(engine, then):
    window = opened(Tumbling(Delta("x", 10)), engine, Events("before_insert", 2))
    window.insert({"id": 0, "x": 0})
    with pytest.raises(BoomError):
        window.insert({"id": 1, "x": 100})  # the window [0] is flushed, and this one refused
    window.state.check()
    for number, x in enumerate(then, 2):
        window.insert({"id": number, "x": x})
        window.state.check()
    flushed = [line.split()[-1] for line in window.events.log if line.startswith("before_flush")]
    assert "[]" not in flushed
    assert (["[0]", "[2]"] if then == (105, 300) else ["[0]"]) == flushed


# -- summarizers --


def failing(method, nth):
    """A summarizer that raises in one of its methods, the n-th time."""
    left = [nth]

    class Letters(Summarizer[Any]):
        opened = 0

        def check(self, name):
            if name == method:
                left[0] -= 1
                if not left[0]:
                    raise BoomError(name)

        def open(self, key):
            self.check("open")
            self.letters: list[int] = []

        def insert(self, tuple_):
            self.check("insert")
            self.letters.append(tuple_["id"])

        def close(self):
            self.check("close")

        def value(self):
            return list(self.letters)

    return Letters


class Flushed(WindowEvents[Any, Any]):
    def __init__(self):
        self.runs: list[Any] = []

    def before_flush(self, window, key):
        self.runs.append((key, window.summary(key).value()))


class Watched(Flushed):
    """With this handler, a summarizer opens later."""

    def before_insert(self, window, tuple_, key): ...


def summarised(spec, engine, method, nth, events):
    return TumblingWindow(spec, engine=engine, events=events(), summarizer=failing(method, nth))


summary_case = pytest.mark.parametrize("method", ["open", "insert", "close"])
watching = pytest.mark.parametrize("events", [Flushed, Watched])


@engines
@summary_case
@watching
@tumbling_specs
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_summarizer_that_fails_costs_its_tuple_or_its_flush(engine, method, events, spec, nth):
    found = run(summarised(spec, engine, method, nth, events))
    assert (method,) == found.error.args
    ops = list(script(spec))
    # A close that fails costs the flush; its tuple is in unless the flush comes first.
    flushing = method == "close" and not isinstance(spec.evict, Delta)
    expected: Any = summarised(spec, engine, "never", 1, events)
    for index, op in enumerate(ops):
        if flushing or index != found.at:
            apply(expected, op)
    missing = [each for each in expected.events.runs if each not in found.window.events.runs]
    assert (1 if method == "close" else 0) == len(missing)
    sizes = [{key: window.size(key) for key in window} for window in (expected, found.window)]
    assert sizes[0] == sizes[1]


@engines
@summary_case
@tumbling_specs
def test_a_summarizer_that_fails_says_where_it_was(engine, method, spec):
    found = run(summarised(spec, engine, method, 2, Flushed))
    note = found.error.__notes__[0]
    assert note.startswith(f"in {method} of Letters, partition "), note
    if (number := found.tuple_number(spec)) is not None:
        assert f", tuple {number}, in TumblingWindow" in note


@engines
@watching
def test_a_summarizer_that_failed_to_open_opens_again(engine, events):
    calls = []

    class Opens(Summarizer[Any]):
        def open(self, key):
            calls.append("open")
            if len(calls) == 2:
                raise BoomError
            self.total = 0

        def insert(self, tuple_):
            self.total += tuple_["x"]

        def value(self):
            return self.total

    window: Any = TumblingWindow(
        Tumbling(Delta("x", 10)), engine=engine, events=events(), summarizer=Opens
    )
    window.insert({"x": 0})
    with pytest.raises(BoomError):
        window.insert({"x": 20})
    window.state.check()
    window.insert({"x": 21})
    window.insert({"x": 22})
    assert 43 == window.summary().value()
    assert ["open"] * 3 == calls


@engines
def test_a_tuple_without_a_key_is_not_taken_for_one_of_the_key_before(engine):
    window: Any = TumblingWindow(Tumbling(Delta("ts", 5), by=lambda row: row["k"]), engine=engine)
    with pytest.raises(KeyError) as failure:  # not that 2 seconds do not mix with 1.0
        window.insert_many([{"k": "a", "ts": 1.0}, {"ts": Decimal(2)}])
    assert ["in TumblingWindow 'tumbling, delta(ts, 5), partitioned'"] == failure.value.__notes__
    assert [1] == [window.size(key) for key in window]
