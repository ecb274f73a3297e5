"""Timers of keys: something is to be done for a key at a time, whether or not a row comes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from windowlib.attributes import one_key
from windowlib.durations import Number, as_instant
from windowlib.errors import ClockError
from windowlib.event_time.axis import instant
from windowlib.runtime.keyed_state import plain, saved_key


class Timer(NamedTuple):
    """One timer: when, which of several at that time, for which key, and how the time was given."""

    due: Number
    number: int
    key: Any
    at: Any


class Timers:
    """The timers of a running operator, at most one for each key, in order of time.

    Timers of one time come in the order in which they were set.

    Args:
        owner: the operator, for messages.
        event_time: whether they are on the axis of event time, or else on the clock.
    """

    def __init__(self, owner: str, *, event_time: bool) -> None:
        self.owner, self.event_time = owner, event_time
        self._of: dict[Any, Timer] = {}
        self._heap: list[Timer] = []  # those that were set again or dropped are still in it
        self._numbers = count()

    def set(self, key: Any, at: Any) -> None:
        """Wake up for a key at a time, in place of when it was to be."""
        key = one_key(key)
        timer = self._of[key] = Timer(self.place(at), next(self._numbers), key, at)
        heapq.heappush(self._heap, timer)

    def place(self, at: Any) -> Number:
        """A time as microseconds, or as a place on the axis of event time."""
        shown = f"{self.owner}.set_timer(key, at"
        if not self.event_time:
            return as_instant(at, argument=shown)
        if (found := instant(at)) is not None:
            return found
        if isinstance(at, bool) or not hasattr(at, "__sub__") or at - at != 0:
            msg = f"{shown}={at!r}): not a point of event time. Use a timestamp, as rows have it."
            raise ClockError(msg)
        return at

    def drop(self, key: Any) -> None:
        """Do not wake up for a key."""
        self._of.pop(one_key(key), None)

    def __contains__(self, key: object) -> bool:
        return one_key(key) in self._of

    def due(self) -> Number | None:
        """The time of the first, or None."""
        heap = self._heap
        while heap and self._of.get(heap[0].key) is not heap[0]:
            heapq.heappop(heap)
        return heap[0].due if heap else None

    def first(self) -> Timer | None:
        """The one that is due first."""
        return None if self.due() is None else self._heap[0]

    def of(self, key: Any) -> Timer | None:
        """The one of a key."""
        return self._of.get(one_key(key))

    def save(self) -> list[list[Any]]:
        """All of them as plain data, in order."""
        where = f"{self.owner}.set_timer(key, ...)"
        return [[plain(timer.key, where), timer.at] for timer in sorted(self._of.values())]

    def load(self, entries: Iterable[Any]) -> None:
        """Take back what `save` gave."""
        found = [(saved_key(key), at) for key, at in entries]
        self._of, self._heap = {}, []
        for key, at in found:
            self.set(key, at)
