"""An interrupt at any instruction leaves a window before the tuple, after it, or broken.

Never anything else: what follows and what is told must be what it would be had the tuple not come,
or had nothing happened; or the next use is refused, and a snapshot restored goes on.
"""

import os
import pickle
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.helpers.examples import is_thorough
from tests.helpers.interrupts import instructions, interrupted
from windowlib import (
    KEY,
    Count,
    Delta,
    Event,
    PartitionAge,
    PartitionCount,
    Punct,
    Session,
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
from windowlib.errors import BrokenStateError
from windowlib.window.event_time import EventTimeWindow

# Handlers that a window never calls are warned of; here each class of them meets every window.
pytestmark = [
    pytest.mark.search,
    pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning"),
]
engines = pytest.mark.parametrize("engine", ["reference", "generated"])


class Log(WindowEvents[Any, Any]):
    """Keeps what it is told, as part of the window's snapshot."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def _content(self, window, key):
        try:
            return list(window[key])
        except LookupError:
            return window.size(key), window.summary(key).value()

    def snapshot(self):
        return list(self.told)

    def restore(self, state):
        self.told = list(state)


class Flushes(Log):
    def before_flush(self, window, key):
        self.told.append(("flush", key, self._content(window, key)))

    def on_trigger(self, window, key):
        self.told.append(("trigger", key, self._content(window, key)))


class Everything(Flushes):
    def after_insert(self, window, tuple_, key):
        self.told.append(("in", key, tuple_))

    def before_evict(self, window, tuple_, key):
        self.told.append(("out", key, tuple_))

    def on_initial_full(self, window, key):
        self.told.append(("full", key))

    def on_partitions_evicted(self, window, keys):
        self.told.append(("gone", keys))


def rows(*numbers):
    return [{"x": n, "k": n % 2} for n in numbers]


BEFORE, NEW, REST = rows(1, 2, 3, 4, 5), {"x": 9, "k": 1}, rows(11, 12, 13, 15, 17, 19, 20)
SPECS = [
    Tumbling(Count(4), by="k"),
    Tumbling(Punct(), by="k"),
    Tumbling(Delta("x", 3), by="k"),
    Tumbling(Time("10s"), by="k"),
    Tumbling(Count(4) | Time("10s"), by="k"),
    Tumbling(Count(4), by="k", forget=PartitionCount(1)),
    Tumbling(Count(4), by="k", forget=TupleCount(4)),
    Tumbling(Count(4), by="k", forget=PartitionAge("5s")),
    Sliding(Count(3), every=Count(2), by="k"),
    Sliding(Count(3), every=Delta("x", 2), by="k"),
    Sliding(Delta("x", 4), every=Count(2), by="k"),
    Sliding(Delta("x", 4), every=Delta("x", 2), by="k"),
    Sliding(Time("10s"), every=Count(2), by="k"),
    Sliding(Count(3), every=Time("10s"), by="k"),
    Sliding(Count(3), every=Count(2), by="k", forget=PartitionCount(1)),
    Sliding(Count(0), every=Count(2), by="k"),
]
EVENT_TIME = [
    Tumbling(Event("x", 4), by="k", watermark=2),
    Sliding(Event("x", 4), every=Event("x", 2), by="k"),
    Session(Event("x"), gap=3, by="k"),
]
SUMMARIES = {
    "tuples": {},
    "ready-made": {"summarizer": {"s": summarizers.sum("x"), "n": summarizers.count()}},
}


def opened(spec, engine, events, kept):
    made: Any = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    if spec.event_time:
        made = EventTimeWindow
    return made(spec, events=events(), engine=engine, **SUMMARIES[kept])


def run_on(window):
    """What comes of a window when the stream goes on."""
    at = window.now
    for n, row in enumerate(REST):
        if window.spec.timed:
            window.advance(at + n)
        window.insert(row)
    if window.spec.timed:
        window.advance(at + 30)
    if window.spec.event_time:
        window.finish()
    elif window.spec.punctuated:
        window.punctuate()
    if not window.event_time:
        window.state.check()
    state = window.snapshot()
    return state.pop("events"), state


def outcome(window, saved, before, after):
    """Which of the three it is; anything else fails the test."""
    try:
        found = run_on(window)
    except BrokenStateError:
        with pytest.raises(BrokenStateError, match="it was interrupted while it was"):
            window.snapshot()
        window.restore(pickle.loads(saved))
        assert run_on(window) == before
        return "broken"
    assert found in (before, after), f"neither before nor after: {found[0]}"
    return "before" if found == before else "after"


# One instruction of so many, another for each case; all of them take minutes: INTERRUPTS=1.
STRIDE = int(os.environ.get("INTERRUPTS", 11 if is_thorough() else 23))


def outcomes(spec, engine, events, kept, change):
    """What interrupts at every instruction of a change lead to."""

    def window():
        made = opened(spec, engine, events, kept)
        made.insert_many(BEFORE)
        return made

    first = window()
    saved = pickle.dumps(first.snapshot())
    before = run_on(first)
    second = window()
    change(second)
    after = run_on(second)
    found = []
    start = sum(map(ord, f"{spec} {engine} {kept}")) % STRIDE
    for nth in range(1 + start, 100_000, STRIDE):
        made = window()
        stopped = interrupted(nth, partial(change, made))
        found.append(outcome(made, saved, before, after))
        if not stopped:
            assert found[-1] == "after" or before == after
            return found
    raise AssertionError("a call of so many instructions")


def insert(window):
    window.insert(NEW)


@engines
@pytest.mark.parametrize("kept", SUMMARIES)
@pytest.mark.parametrize("events", [Flushes, Everything])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_insert_is_before_the_tuple_or_after_it_or_refused(spec, events, kept, engine):
    if events is Everything and kept != "tuples":
        events = Flushes
    found = outcomes(spec, engine, events, kept, insert)
    assert set(found) & {"before", "broken"}


@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(9), by="k"),
        Tumbling(Punct(), by="k"),
        Tumbling(Count(9) | Time("9s"), by="k"),
    ],
    ids=str,
)
def test_a_tumbling_window_that_keeps_tuples_is_never_broken_between_its_own_steps(spec):
    """An insert that does not flush; a flush is of several steps."""
    assert "broken" not in outcomes(spec, "generated", Flushes, "tuples", insert)


@pytest.mark.parametrize("kept", SUMMARIES)
@pytest.mark.parametrize("spec", EVENT_TIME, ids=str)
def test_a_window_of_event_time_is_before_the_tuple_or_after_it_or_refused(spec, kept):
    found = outcomes(spec, "generated", Flushes, kept, insert)
    assert {"broken", "after"} <= set(found)


def tick(window):
    window.advance(window.now + 10)


def mark(window):
    window.punctuate()


def finish(window):
    window.finish()


@engines
@pytest.mark.parametrize(
    ("spec", "change"),
    [(spec, tick) for spec in SPECS if spec.timed and not spec.forget]
    + [(Tumbling(Punct(), by="k"), mark)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_tick_or_a_punctuation_happens_or_not_or_is_refused(spec, change, engine):
    found = outcomes(spec, engine, Flushes, "tuples", change)
    assert set(found) & {"before", "broken"}


@pytest.mark.parametrize("spec", EVENT_TIME, ids=str)
def test_the_end_of_event_time_happens_or_not_or_is_refused(spec):
    found = outcomes(spec, "generated", Flushes, "tuples", finish)
    assert "broken" in found


@pytest.mark.parametrize("kept", SUMMARIES)
@pytest.mark.parametrize(
    "spec",
    [SPECS[0], SPECS[2], SPECS[8], SPECS[11], *EVENT_TIME[:2]],
    ids=str,
)
def test_a_batch_is_taken_or_not_or_refused(spec, kept):
    """And so is the single tuple after it, for which the state moves out of the arrays."""
    batch = pa.RecordBatch.from_pylist(rows(*range(6, 306)))

    def change(window):
        window.insert_batch(batch)
        window.insert({"x": 310, "k": 1})

    window = opened(spec, "generated", Flushes, kept)
    window.insert_many(BEFORE)
    saved, count = pickle.dumps(window.snapshot()), 40 if is_thorough() else 8
    before = later(window)
    window.restore(pickle.loads(saved))
    change(window)
    after = later(window)
    total = instructions(partial(change, window))
    found = set()
    for nth in range(1, total, max(1, total // count)):
        window = opened(spec, "generated", Flushes, kept)
        window.insert_many(BEFORE)
        interrupted(nth, partial(change, window))
        try:
            rest = later(window)
        except BrokenStateError:
            window.restore(pickle.loads(saved))
            assert later(window) == before
            found.add("broken")
            continue
        # The batch may be in, and the tuple not.
        taken = window.seen
        assert rest in (before, after) or taken == len(BEFORE) + batch.num_rows + 7
        found.add("sound")
    assert "broken" in found


def later(window):
    """What comes of a window that is far on."""
    for row in rows(*range(400, 407)):
        window.insert(row)
    state = window.snapshot()
    return state.pop("events"), state["event_time"] if window.event_time else state["parts"]


class Stops(WindowEvents[Any, Any]):
    """Is interrupted in one handler, once."""

    def __init__(self, event: str) -> None:
        self.event, self.done = event, False

    def hit(self, event: str) -> None:
        if event == self.event and not self.done:
            self.done = True
            raise KeyboardInterrupt

    def before_insert(self, window, tuple_, key):
        self.hit("before_insert")

    def after_insert(self, window, tuple_, key):
        self.hit("after_insert")

    def before_flush(self, window, key):
        self.hit("before_flush")

    def after_flush(self, window, key):
        self.hit("after_flush")

    def on_trigger(self, window, key):
        self.hit("on_trigger")

    def on_initial_full(self, window, key):
        self.hit("on_initial_full")


@engines
@pytest.mark.parametrize("event", [name for name in vars(Stops) if "_" in name.strip("_")])
@pytest.mark.parametrize(
    "spec",
    [Tumbling(Count(2), by=KEY), Sliding(Count(2), every=Count(2), by=KEY)],
    ids=str,
)
def test_a_handler_that_is_interrupted_leaves_the_window_before_the_tuple_or_after_it(
    spec, event, engine
):
    made: Any = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    events, rest = Stops(event), Stops("none")
    window, whole = made(spec, events=events, engine=engine), made(spec, events=rest, engine=engine)
    for row in "abcdefg":
        try:
            window.insert(row, 1)
        except KeyboardInterrupt:
            if event == "before_insert":
                window.insert(row, 1)  # it was not taken
        whole.insert(row, 1)
        assert contents(window) == contents(whole)
        assert window.seen == whole.seen
        window.state.check()


def contents(window):
    return [(key, list(window[key])) for key in window]


class Counting(Summarizer[Any]):
    """A summarizer that is interrupted half-way through its third tuple."""

    def __init__(self) -> None:
        self.n = self.total = 0

    def insert(self, tuple_):
        self.n += 1
        if tuple_ == 3:
            raise KeyboardInterrupt
        self.total += tuple_

    def value(self):
        return self.n, self.total


@engines
def test_a_summarizer_that_is_interrupted_breaks_its_window(engine):
    window: Any = TumblingWindow(evict=Count(9), summarizer=Counting, engine=engine)
    with pytest.raises(KeyboardInterrupt):
        window.insert_many([1, 2, 3, 4])
    with pytest.raises(BrokenStateError, match="interrupted while it was taking a tuple"):
        window.insert(4)
    with pytest.raises(BrokenStateError):
        window.size()


def test_an_interrupt_between_two_tuples_changes_nothing():
    window: Any = TumblingWindow(evict=Count(3))

    def source():
        yield 1
        yield 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        window.insert_many(source())
    assert list(window[None]) == [1, 2]


def test_a_clock_finds_a_broken_window():
    window: Any = SlidingWindow("sliding, time(10), count(1)", events=Stops("none"))
    window.state.stopped(KeyboardInterrupt(), "taking a tuple")
    for use in (lambda: window.advance(1), lambda: window.insert(1), lambda: window.keys()):
        with pytest.raises(BrokenStateError, match=r"restore\(\) the last snapshot"):
            use()
