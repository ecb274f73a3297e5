"""A clock that a test moves by hand."""

from __future__ import annotations

from windowlib.durations import Instant, as_duration, as_instant, instant_text, micros
from windowlib.errors import ClockError


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
