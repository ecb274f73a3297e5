"""Live time: one thread that moves windows along the wall clock.

The core never reads a clock. A `WallClock` does, on its behalf: it advances each attached window
when something is due, and every insert advances it first, so that whatever is overdue happens
before the new tuple, in order. A `HandClock` is read in its place by tests, and moved by them.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from windowlib.durations import Instant, as_duration, as_instant, instant_text, micros
from windowlib.errors import ClockError
from windowlib.window.container import Mark, Window
from windowlib.window.engine.rules import pair
from windowlib.window.subwindow import NO_KEY

logger = logging.getLogger("windowlib")
logger.addHandler(logging.NullHandler())

W = TypeVar("W", bound=Window[Any, Any])
MOST_TICKS = 10_000_000
MOST_AHEAD = 3_600_000_000  # microseconds; a window a little ahead waits for the clock


class WallClock:
    """Moves live windows from one thread with a heap of deadlines.

    Ticks that a slow handler held up are caught up, none is lost. A handler that raises in the
    clock's thread is logged, and the exception comes out of the next `insert` into that window,
    or of `close`.

    Args:
        now: what tells the time, in seconds; a test may pass its own.

    >>> from windowlib import SlidingWindow
    >>> with WallClock() as clock:
    ...     window = clock.attach(SlidingWindow("sliding, time(60), count(1)"))
    ...     window.insert("a tuple")
    ...     window.size()
    1
    """

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        # Looked up at each call, so that a test may replace time.time.
        self._read = now or (lambda: time.time())
        if not callable(self._read):
            msg = f"WallClock(now={now!r}): not a function. Pass one that returns seconds."
            raise ClockError(msg)
        self._latest = as_instant(self._read(), argument="WallClock.now")
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        self._heap: list[tuple[int, int, _Attached]] = []
        self._serial = itertools.count()
        self._attached: list[_Attached] = []
        self._closed = False
        self._thread: threading.Thread | None = None

    def attach(self, window: W) -> W:
        """Move `window` from now on.

        The clock of a window that was never advanced starts now. One that was, by another clock
        before a snapshot, catches up with what is overdue.
        """
        if not isinstance(window, Window):
            msg = f"attach({window!r}): not a window. Pass a TumblingWindow or a SlidingWindow."
            raise ClockError(msg)
        if self._closed:
            raise ClockError("attach(window): this clock is closed. Make a new WallClock.")
        if window.state.driver is not None:
            msg = "attach(window): the window is attached to a clock already. Detach it first."
            raise ClockError(msg)
        attached = _Attached(self, window)
        with self._changed:
            self._attached.append(attached)
            if self._thread is None:
                name = "windowlib-clock"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
        attached.schedule()
        return window

    def detach(self, window: Window[Any, Any]) -> None:
        """Leave `window` alone from now on; raises what its handlers raised in the meantime."""
        with self._changed:
            found = [a for a in self._attached if a.window is window]
            self._attached = [a for a in self._attached if a.window is not window]
        for attached in found:
            attached.release()
            attached.raise_failure()

    def _micros(self) -> int:
        """Now; never less than it was, whatever the system clock does."""
        with self._reading:
            self._latest = max(self._latest, as_instant(self._read(), argument="WallClock.now"))
            return self._latest

    def poll(self) -> None:
        """Do everything that is due, in this thread; what the clock's own thread does."""
        while (attached := self._next_due()) is not None:
            attached.catch_up()

    def close(self) -> None:
        """Stop the thread and release the windows; raises what their handlers raised."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        attached, self._attached = self._attached, []
        for each in attached:
            each.release()
        for each in attached:
            each.raise_failure()

    def __enter__(self) -> WallClock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _schedule(self, due: int, attached: _Attached) -> None:
        with self._changed:
            while self._heap and self._heap[0][2].due != self._heap[0][0]:
                heapq.heappop(self._heap)  # overtaken by an insert
            heapq.heappush(self._heap, (due, next(self._serial), attached))
            self._changed.notify()

    def _next_due(self) -> _Attached | None:
        with self._changed:
            if self._heap and self._heap[0][0] <= self._micros():
                return heapq.heappop(self._heap)[2]
            return None

    def _run(self) -> None:
        while True:
            self.poll()
            with self._changed:
                if self._closed:
                    return
                wait = (self._heap[0][0] - self._micros()) / 1e6 if self._heap else None
                if wait is None or wait > 0:
                    self._changed.wait(wait)


class _Attached:
    """One window on a clock: advances it before every insert, and tells the clock what is due."""

    def __init__(self, clock: WallClock, window: Window[Any, Any]) -> None:
        self.clock = clock
        self.window = window
        self.failure: Exception | None = None
        self.due: int | None = None
        with window.locked():
            state = window.state
            if state.now == state.start:
                state.rebase(clock._micros())
            self._check_lag()
            state.drive(
                self,
                self.schedule,
                insert=self.insert,
                insert_many=self.insert_many,
                punctuate=self.punctuate,
            )

    def _check_lag(self) -> None:
        """Refuse a window whose clock runs on another scale, for it would tick for ever."""
        now, at = self.clock._micros(), self.window.state.now
        lag = now - at
        ticks = max((lag // policy.micros for policy in self.window.spec.times), default=0)
        if ticks > MOST_TICKS or at - now > MOST_AHEAD:
            msg = (
                f"attach(window): the window's clock is at {instant_text(at)}, the wall "
                f"clock at {instant_text(now)}. Attach it before it is advanced, or advance it "
                f"close to the wall clock first."
            )
            raise ClockError(msg)

    def insert(self, tuple_: Any, /, key: Any = NO_KEY) -> None:
        """Advance to now, then insert."""
        self.raise_failure()
        with self.window.locked():
            self.window.state.advance(self._now())
            type(self.window).insert(self.window, tuple_, key)
        self.schedule()

    def insert_many(self, tuples: Iterable[Any], keys: Iterable[Any] | None = None) -> None:
        """Insert one by one, each at its own time."""
        for tuple_, key in pair(self.window.state, tuples, keys):
            self.insert(tuple_, key)

    def punctuate(self, mark: Mark = "window") -> None:
        """Advance to now, then punctuate."""
        self.raise_failure()
        with self.window.locked():
            self.window.state.advance(self._now())
            type(self.window).punctuate(self.window, mark)

    def _now(self) -> int:
        """The clock's time, or the window's own if that is ahead: it then stands still."""
        return max(self.clock._micros(), self.window.state.now)

    def schedule(self) -> None:
        """Tell the clock when this window is next due, if it would not look by then."""
        with self.window.locked():
            due = self.window.state.due()
            if due is None or (self.due is not None and self.due <= due):
                return  # batches that fill up in time put their deadlines off again and again
            self.due = due
        self.clock._schedule(due, self)

    def catch_up(self) -> None:
        """Do what is due first in this window; an exception is kept for the next caller.

        One deadline at a time, so that windows on one clock act in the order of theirs.
        """
        if self.window.state.driver is not self:
            return
        try:
            with self.window.locked():
                self.due, now = None, self._now()
                if (due := self.window.state.due()) is not None and due <= now:
                    self.window.state.advance(due)
                if (due := self.window.state.due()) is None or due > now:
                    self.window.state.advance(now)
        except Exception as error:
            logger.exception("a handler of %r failed in the clock's thread", self.window)
            error.add_note("in the thread of a WallClock")
            self.failure = self.failure or error
        self.schedule()

    def raise_failure(self) -> None:
        """Raise what a handler raised in the clock's thread, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def release(self) -> None:
        """Return the window to manual control."""
        with self.window.locked():
            self.window.state.release()


class HandClock:
    """Stands still until it is moved; call it for the time in seconds.

    It is what `WallClock(now=...)` asks for, so that windows which live on the wall clock can be
    tested without waiting: move it, then `poll`.

    >>> from windowlib import SlidingWindow, WallClock
    >>> clock = HandClock()
    >>> with WallClock(now=clock) as wall:
    ...     window = wall.attach(SlidingWindow("sliding, time(60), count(1)"))
    ...     window.insert("a tuple")
    ...     clock.advance("61s")
    ...     wall.poll()
    ...     window.size()
    61.0
    0
    """

    def __init__(self, start: Instant = 0) -> None:
        self._now = as_instant(start, argument="start")

    def __call__(self) -> float:
        """The time, in seconds."""
        return self._now / 1e6

    @property
    def now(self) -> float:
        """The time, in seconds."""
        return self()

    def advance(self, to: Instant | str) -> float:
        """Move to a point in time, or on by a text such as "3s"; the time it is then."""
        if isinstance(to, str):
            now = self._now + micros(as_duration(to, argument="advance"))
        else:
            now = as_instant(to)
        if now < self._now:
            msg = (
                f"advance({to!r}): time went back from {instant_text(self._now)} to "
                f"{instant_text(now)}. A clock only moves forward; make a new one."
            )
            raise ClockError(msg)
        self._now = now
        return self()

    def __repr__(self) -> str:
        return f"<HandClock at {instant_text(self._now)}>"
