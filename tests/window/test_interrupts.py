"""An interrupt at any line of an insert leaves a tumbling window before the tuple or after it."""

import sys
from typing import Any

import pytest

from windowlib import (
    KEY,
    Count,
    PartitionCount,
    Punct,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
)

# Handlers that a window never calls are warned of; here each class of them meets every window.
pytestmark = pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning")
engines = pytest.mark.parametrize("engine", ["reference", "generated"])
INSERTS = ("generated", "reference", "tumbling", "container", "partitions", "<windowlib insert")


class Interrupt:
    """Raises KeyboardInterrupt at the nth line that the library runs, once."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if "_failed" in frame.f_code.co_name or not any(part in name for part in INSERTS):
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def interrupted(nth, call, *arguments):
    """Whether a call was interrupted at the nth line, rather than over before that."""
    before = sys.gettrace()
    sys.settrace(Interrupt(nth))
    try:
        call(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def contents(window):
    return [(key, list(window[key])) for key in window]


class Flushed(WindowEvents[Any, Any]):
    def __init__(self) -> None:
        self.flushed: list[Any] = []

    def before_flush(self, window, key):
        self.flushed.append(list(window[key]))


@engines
@pytest.mark.parametrize("held", [0, 1, 2])
@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(3), by=KEY),
        Tumbling(Punct(), by=KEY),
        Tumbling(Count(3) | Time("5s"), by=KEY),
        Tumbling(Count(3), by=KEY, forget=PartitionCount(2)),
        Tumbling(Count(3), by=KEY, forget=TupleCount(9)),
    ],
    ids=str,
)
def test_a_tumbling_window_is_before_the_tuple_or_after_it(spec, held, engine):
    rows = list("abc")[:held]
    after: Any = TumblingWindow(spec, engine=engine)
    after.insert_many([*rows, "new"], [1] * (held + 1))
    for nth in range(1, 200):
        events = Flushed()
        window = TumblingWindow(spec, events=events, engine=engine)
        window.insert_many(["other", *rows], ["o"] + [1] * held)
        before = contents(window)
        stopped = interrupted(nth, window.insert, "new", 1)
        assert contents(window) in (before, [before[0], *contents(after)])
        window.state.check()
        for number in range(3):  # it goes on, and is flushed when it is full
            window.insert(number, 1)
        window.state.check()
        if spec.full_at is not None:
            assert {len(flushed) for flushed in events.flushed} == {3}
        if not stopped:
            return
    pytest.fail("an insert of so many lines")


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
