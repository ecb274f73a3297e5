"""Marks among the rows of a stream: punctuations, the clock, restarts, port tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowlib.durations import Instant, as_duration, as_instant, micros


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark in a stream: a punctuation, or the clock moving to `at`."""

    at: Instant | str | None = None

    def moment(self, now: int) -> int:
        """Where the clock goes from `now`, in microseconds."""
        assert self.at is not None
        if isinstance(self.at, str):
            return now + micros(as_duration(self.at, argument="advance"))
        return as_instant(self.at)

    def __repr__(self) -> str:
        return "punct()" if self.at is None else f"advance({self.at!r})"


@dataclass(frozen=True, slots=True)
class Restart:
    """The operator is saved as bytes, and goes on from there in a new copy."""

    def __repr__(self) -> str:
        return "restart()"


@dataclass(frozen=True, slots=True)
class Tagged:
    """A row, or a punctuation, for one input port of several."""

    port: int | str
    row: Any

    def __repr__(self) -> str:
        return f"to({self.port!r}, {self.row!r})"


def punct() -> Mark:
    """A punctuation, to stand among the rows of `trace` and `replay`."""
    return Mark()


def advance(to: Instant | str) -> Mark:
    """The clock moving: to a point in time (seconds or a datetime), or on by a text such as "2h".

    >>> advance(10).moment(now=4_000_000), advance("10s").moment(now=4_000_000)
    (10000000, 14000000)
    """
    # Refuse what is no time here, where it was written.
    _ = as_duration(to, argument="advance") if isinstance(to, str) else as_instant(to)
    return Mark(to)


def restart() -> Restart:
    """A crash and a restart from the last state, to stand among the rows of `replay`."""
    return Restart()


def to(port: int | str, row: Any) -> Tagged:
    """A row for one input port, by number or name: `to("left", row)`."""
    return Tagged(port, row)
