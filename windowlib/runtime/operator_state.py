"""The state of a running operator beside its windows: declared state, and timers of keys."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from windowlib.attributes import one_key
from windowlib.durations import MICROSECOND, Number, as_instant, micros, parse_duration
from windowlib.errors import ClockError, OperatorError, PolicyError, StateVersionError
from windowlib.event_time.axis import instant
from windowlib.runtime.keyed_state import plain
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.snapshot import saved_key

if TYPE_CHECKING:
    from windowlib.runtime.operator import Operator
    from windowlib.runtime.running import Running
    from windowlib.window.container import Window

EVICTED = "on_partitions_evicted"
OWN = "own"
"""The entry of an operator's snapshot."""


class OperatorState:
    """The declared state and the timers of a running operator, and when they are dropped.

    Args:
        operator: the running copy, which gets its state as attributes.
        running: what runs it, for the time and for messages.
    """

    def __init__(self, operator: Operator, running: Running) -> None:
        self.operator, self.running = operator, running
        self.keyed = {name: each.open() for name, each in operator.keyed_state.items()}
        self.unkeyed = {name: each.new() for name, each in operator.unkeyed_state.items()}
        self.timers = Timers(operator.name, event_time=operator.on_event_time)
        self._waking: Timer | None = None
        self._windows = [window for window in operator.containers if window is not None]
        vars(operator).update(self.keyed | self.unkeyed)
        if self.keyed or operator.has_timers:
            for window in self._windows:
                self._follow(window)

    # -- the end of a key -------------------------------------------------------------------------

    def _follow(self, window: Window[Any, Any]) -> None:
        """Drop the state of keys when a window evicts their partitions."""
        if isinstance(window, EventTimeWindow):
            window.on_progress = self._moved
        elif window.spec.forget is not None:
            handlers = window.state.handlers
            window.state.handlers = {**handlers, EVICTED: self._evicting(handlers.get(EVICTED))}

    def _evicting(self, handler: Callable[..., None] | None) -> Callable[..., None]:
        def evict(window: Window[Any, Any], keys: Sequence[Any]) -> None:
            try:
                if handler is not None:
                    handler(window, keys)
            finally:
                others = [each for each in self._windows if each is not window]
                self.forget([key for key in keys if not any(key in each for each in others)])

        return evict

    def forget(self, keys: Iterable[Any]) -> None:
        """Drop the state and the timers of keys."""
        for key in keys:
            for records in self.keyed.values():
                records.drop(key)
            self.timers.drop(key)

    def _moved(
        self, window: EventTimeWindow[Any, Any], key: Any, failures: list[Exception]
    ) -> None:
        """Fire the timers that a watermark has reached, and drop the keys that it has closed."""
        if window.watermark_per_key:  # others have watermarks of their own, which have not moved
            self._wake(lambda: self.timers.of(key), self._reached(key), failures)
        else:
            self._wake(self.timers.first, self._reached(None), failures)
        self._close(window.closed_keys())

    def _reached(self, key: Any) -> Number | None:
        """Where the watermark of a key is on the axis of event time, in all windows."""
        timed = [each for each in self._windows if isinstance(each, EventTimeWindow)]
        found: list[Any] = [each.reached(key) for each in timed]
        return None if None in found else min(found)

    def _close(self, keys: Iterable[Any]) -> None:
        """Drop the state of keys that no window holds, unless they have a timer."""
        over = [key for key in keys if key not in self.timers]
        self.forget([key for key in over if not any(key in window for window in self._windows)])

    def close(self, failures: list[Exception]) -> None:
        """At the end of input, fire all timers of event time, and drop all keys."""
        self._wake(self.timers.first, math.inf, failures)
        for records in self.keyed.values():
            self._close(list(records))

    # -- timers -----------------------------------------------------------------------------------

    def set_timer(self, key: Any, at: Any) -> None:
        """Wake up for a key at a time."""
        due, waking = self.timers.place(at), self._waking
        if self.timers.event_time:
            self._check_kind(at)
        if waking is not None and due <= waking.due:
            msg = (
                f"{self.operator.name}.set_timer({key!r}, at={at!r}): not later than the time of "
                f"this on_timer, which would never end. Set a later time."
            )
            raise OperatorError(msg)
        self.timers.set(key, at)

    def _check_kind(self, at: Any) -> None:
        """Refuse a number among datetimes, or the reverse: no watermark would reach it."""
        timed = [each for each in self._windows if isinstance(each, EventTimeWindow)]
        known = {each.has_datetimes for each in timed}
        if None not in known and (instant(at) is not None) not in known:
            of = "datetimes" if True in known else "numbers"
            msg = (
                f"{self.operator.name}.set_timer(key, at={at!r}): the timestamps of its windows "
                f"are {of}. Use a timestamp, as rows have it."
            )
            raise ClockError(msg)

    def set_timer_after(self, key: Any, after: Any) -> None:
        """Wake up for a key after a while."""
        wait = _waiting_time(after, f"{self.operator.name}.set_timer({key!r}, after={after!r})")
        if self.timers.event_time:
            msg = (
                f"{self.operator.name}.set_timer({key!r}, after=...): its windows are of event "
                f"time, which has no now. Use at=, a timestamp."
            )
            raise OperatorError(msg)
        self.set_timer(key, (self.running.micros + micros(wait)) * MICROSECOND)

    def wake(self, now: int, failures: list[Exception]) -> None:
        """Call `on_timer` for the keys whose time of the clock has come."""
        self._wake(self.timers.first, now, failures)

    def _wake(
        self, first: Callable[[], Timer | None], now: Number | None, failures: list[Exception]
    ) -> None:
        while now is not None and (timer := first()) is not None and timer.due <= now:
            self._call(timer, failures)

    def _call(self, timer: Timer, failures: list[Exception]) -> None:
        """Call `on_timer`; a failure does not keep the others from running."""
        self.timers.drop(timer.key)
        self._waking, operator = timer, self.operator
        event_time = self.timers.event_time
        try:
            operator.on_timer(timer.key, timer.at if event_time else timer.due / 1e6)
        except Exception as error:
            self.running._note(error, f"on_timer of key {timer.key!r}")
            failures.append(error)
        finally:
            self._waking = None
        if event_time:
            self._close((timer.key,))

    # -- snapshots --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """All of it as plain data, for a snapshot; nothing where nothing is declared."""
        if not (self.keyed or self.unkeyed or self.operator.has_timers):
            return {}
        declared = self.operator.unkeyed_state
        own = {
            "keyed": {name: records.save() for name, records in self.keyed.items()},
            "unkeyed": {name: declared[name].saved(each) for name, each in self.unkeyed.items()},
            "timers": self.timers.save(),
        }
        return {OWN: own}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what `save` returned."""
        own: Mapping[str, Any] = state.get(OWN) or {"keyed": {}, "unkeyed": {}, "timers": []}
        for place, known in (("keyed", self.keyed), ("unkeyed", self.unkeyed)):
            if unknown := [name for name in own[place] if name not in known]:
                msg = (
                    f"restore(state): the snapshot has the state {unknown[0]!r}, which "
                    f"{self.operator.name} does not declare. Declare it, or start afresh."
                )
                raise StateVersionError(msg)
        for name, records in self.keyed.items():
            records.load(own["keyed"].get(name, ()))
        declared = self.operator.unkeyed_state
        for name in self.unkeyed:
            self.unkeyed[name] = declared[name].loaded(own["unkeyed"].get(name, {}))
        vars(self.operator).update(self.unkeyed)
        self.timers.load(own["timers"])


def keys_of(state: Mapping[str, Any]) -> list[Any]:
    """The keys that a snapshot has declared state or timers of."""
    own = state.get(OWN)
    if own is None:
        return []
    entries = [*own["keyed"].values(), own["timers"]]
    return list(dict.fromkeys(saved_key(key) for each in entries for key, _ in each))


def split(states: Sequence[Mapping[str, Any]], mine: Callable[[Any], bool]) -> dict[str, Any]:
    """The merged state of several snapshots, restricted to some keys."""
    owns = [state[OWN] for state in states if OWN in state]
    if not owns:
        return {}
    keyed: dict[str, list[Any]] = {name: [] for name in owns[0]["keyed"]}
    for own in owns:
        for name, entries in own["keyed"].items():
            keyed[name] += [entry for entry in entries if mine(saved_key(entry[0]))]
    timers = [entry for own in owns for entry in own["timers"] if mine(saved_key(entry[0]))]
    return {OWN: {**owns[0], "keyed": keyed, "timers": timers}}


# -- timers ----------------------------------------------------------------------------------------


class Timer(NamedTuple):
    """A timer: its time on the axis, a number for ties, its key, and its time as it was given."""

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
        self._heap: list[Timer] = []  # including timers that were replaced or dropped
        self._numbers = count()

    def set(self, key: Any, at: Any) -> None:
        """Set the timer of a key; an earlier one is replaced."""
        key = one_key(key)
        timer = self._of[key] = Timer(self.place(at), next(self._numbers), key, at)
        heapq.heappush(self._heap, timer)

    def place(self, at: Any) -> Number:
        """A time as microseconds, or as a place on the axis of event time."""
        shown = f"{self.owner}.set_timer(key, at={at!r})"
        if not self.event_time:
            return _on_clock(at, shown)
        if (found := instant(at)) is not None:
            return found
        if isinstance(at, bool) or not hasattr(at, "__sub__") or at - at != 0:
            msg = f"{shown}: not a point of event time. Use a timestamp, as rows have it."
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
        """The timer that is due first."""
        return None if self.due() is None else self._heap[0]

    def of(self, key: Any) -> Timer | None:
        """The timer of a key."""
        return self._of.get(one_key(key))

    def save(self) -> list[list[Any]]:
        """All timers as plain data, in order."""
        where = f"{self.owner}.set_timer(key, ...)"
        return [[plain(timer.key, where), timer.at] for timer in sorted(self._of.values())]

    def load(self, entries: Iterable[Any]) -> None:
        """Restore what `save` returned."""
        found = [(saved_key(key), at) for key, at in entries]
        self._of, self._heap = {}, []
        for key, at in found:
            self.set(key, at)


def _on_clock(at: Any, shown: str) -> int:
    """A time of the clock in microseconds."""
    try:
        return as_instant(at)
    except ClockError:
        msg = (
            f'{shown}: not a point in time. Use seconds as a number, or a datetime, or after="30s".'
        )
        raise ClockError(msg) from None


def _waiting_time(after: Any, shown: str) -> timedelta:
    """How long from now on a timer is to wait."""
    try:
        found = parse_duration(after) if isinstance(after, str) else after
    except PolicyError as error:
        raise PolicyError(f"{shown}: {error}") from None
    if not isinstance(found, timedelta) or found < timedelta(0):
        why = "it must not be negative" if isinstance(found, timedelta) else "not a duration"
        raise PolicyError(f'{shown}: {why}. Write after="30s", or pass a timedelta.')
    return found
