"""The readable definition: one method per step, run in the order that `order.steps` gives.

Slow on purpose: every insert walks the steps, looks handlers up by name, and tests everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windowlib.engine.rules import (
    check_delta,
    check_mixes,
    evict_where,
    key_default,
    pair,
    reject_key,
)
from windowlib.events import FLUSH_EVENTS
from windowlib.failure import add_count, collected
from windowlib.order import Step, steps
from windowlib.policies import Count, Delta, Either, Time
from windowlib.sliding import SlidingWindow
from windowlib.spec import KEY
from windowlib.subwindow import UNSET, Subwindow
from windowlib.tumbling import TumblingWindow
from windowlib.window import NO_KEY

if TYPE_CHECKING:
    from windowlib.window import Window


@dataclass(slots=True)
class Arrival:
    """One tuple on its way in."""

    tuple: Any
    key: Any
    s: Subwindow


class Reference:
    """Runs the steps of a window, one by one."""

    def __init__(self, window: Window[Any, Any]) -> None:
        self.w = window
        self.evict = window.spec.evict
        self.trigger = window.spec.policies[-1]
        self.sliding = isinstance(window, SlidingWindow)
        # A count of 0 keeps nothing: tumbling ignores the tuple, sliding only counts triggers.
        self.keeps = not (isinstance(self.evict, Count) and self.evict.size == 0)
        order = steps(window.spec)
        if not self.keeps:
            left = {Step.AGE, Step.TRIGGER} if self.sliding else set()
            order = tuple(step for step in order if step in left)
        insert = self._slide_insert if self.sliding else self._tumble_insert
        blocks: dict[Step, Callable[[Arrival], None]] = {
            Step.FULL: self._full,
            Step.EVICT: self._evict,
            Step.INSERT: insert,
            Step.TRIGGER: self._trigger,
            Step.FLUSH: self._flush,
        }
        self.steps = {step: blocks[step] for step in order if step in blocks}
        self.ages = bool(order)

    def insert(self, tuple_: Any, /, key: Any = ...) -> None:
        """Take one tuple."""
        w = self.w
        with w.locked():
            try:
                key = self._key(tuple_, key)
                if not self.ages:
                    return
                for policy, get in w._getters.items():
                    check_delta(policy, get(tuple_), tuple_)
                    check_mixes(w, policy, get(tuple_), w._find(key))
                w._age()
                arrival = Arrival(tuple_, key, self._subwindow(key))
                arrival.key = arrival.s.key
                for step in self.steps.values():
                    step(arrival)
            except Exception as error:
                raise w._failed(error, tuple_, key)  # noqa: B904  # the same error, or its cause

    def finish(self, event: str, tuple_: Any, key: Any, error: Exception) -> None:
        """Do the steps that were still to come when the handler of `event` raised `error`."""
        failures: list[Exception] = []
        for step in self._left_after(event):
            with collected(self.w, failures):
                s = self.w._find(key)
                step(Arrival(tuple_, key, self._dead(key) if s is None else s))
        add_count(error, len(failures))

    def _left_after(self, event: str) -> list[Callable[[Arrival], None]]:
        if event in (*FLUSH_EVENTS, "on_trigger", "close"):
            return []  # always the last step, and the container has finished it
        if isinstance(self.w, SlidingWindow) and self.w._slices is not None:
            return [lambda arrival: self._fire("on_trigger", arrival.key)]
        order = list(self.steps)
        failed = Step.FULL if event == "on_initial_full" else Step.INSERT
        left = [self.steps[step] for step in order[order.index(failed) + 1 :]]
        return [self._partition_eviction, *left] if event == "after_insert" else left

    def _dead(self, key: Any) -> Subwindow:
        """What is left of a partition that this very insert has evicted."""
        s = self.w._make(key)
        s.alive = False
        return s

    def insert_many(self, tuples: Iterable[Any], keys: Iterable[Any] | None = None) -> None:
        """Take tuples in order."""
        for tuple_, key in pair(self.w, tuples, keys):
            self.insert(tuple_, key)

    def _key(self, tuple_: Any, key: Any) -> Any:
        w = self.w
        if key is ...:
            key = key_default(w)
        if w.spec.by is KEY:
            return w._sound_key(key) if key is NO_KEY else key
        if key is not key_default(w):
            reject_key(w, f"insert(key={key!r})")
        return None if w._key_of is None else w._key_of(tuple_)

    def _subwindow(self, key: Any) -> Subwindow:
        w = self.w
        if isinstance(w, SlidingWindow) and not self.keeps:
            s = w._revive(key)
            w._left += 1
            return s
        s = w._subs[key] if key in w._subs else w._new(key)
        if isinstance(self.evict, Either) and s.ref is UNSET:
            s.ref = w._now
        return s

    def _fire(self, event: str, *args: Any) -> None:
        if handler := self.w._on.get(event):
            handler(self.w, *args)

    # -- tumbling -------------------------------------------------------------------------------

    def _tumble_insert(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        assert isinstance(w, TumblingWindow)
        self._fire("before_insert", arrival.tuple, arrival.key)
        if w._factory is None:
            s.data.append(arrival.tuple)
        else:
            if s.summary is None:
                w._open(s)
            s.summary.insert(arrival.tuple)
            s.n += 1
        if isinstance(self.evict, Delta) and s.ref is UNSET:
            s.ref = w._getters[self.evict](arrival.tuple)
        self._after_insert(arrival)

    def _flush(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        assert isinstance(w, TumblingWindow)
        if isinstance(self.evict, Delta):
            value = w._getters[self.evict](arrival.tuple)
            due = w._size(s) > 0 and self.evict.exceeds(value, s.ref)
        else:
            assert w.spec.full_at is not None
            due = s.alive and w._size(s) >= w.spec.full_at
        if due:
            w._flush(s)

    def _after_insert(self, arrival: Arrival) -> None:
        w = self.w
        if w._pe is not None:
            w._pe.touch(arrival.s)
        self._fire("after_insert", arrival.tuple, arrival.key)
        self._partition_eviction(arrival)

    def _partition_eviction(self, arrival: Arrival) -> None:
        if self.w._pe is not None and not self.w._pe.by_age:
            self.w._pe.evict()

    # -- sliding --------------------------------------------------------------------------------

    def _evict(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        assert isinstance(w, SlidingWindow)
        if isinstance(self.evict, Count):
            if len(s.data) == self.evict.size:
                w._evict_one(s, s.data[0])
        elif isinstance(self.evict, Delta) and self._leaving(arrival):
            s.full = True
            evict_where(w, s, self.evict, w._getters[self.evict](arrival.tuple))

    def _leaving(self, arrival: Arrival) -> bool:
        """Whether delta eviction will drop something for this tuple."""
        assert isinstance(self.evict, Delta)
        get = self.w._getters[self.evict]
        new = get(arrival.tuple)
        return any(self.evict.exceeds(new, get(t)) for t in arrival.s.data)

    def _slide_insert(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        self._fire("before_insert", arrival.tuple, arrival.key)
        s.data.append(arrival.tuple)
        s.taken += 1
        if isinstance(self.evict, Time):
            s.stamps.append(w._now)
            w._arrivals.append(s)
        if isinstance(self.evict, Delta):
            value = w._getters[self.evict](arrival.tuple)
            s.rough = s.rough or (s.newest is not UNSET and value < s.newest)
            s.newest = value
        self._after_insert(arrival)

    def _full(self, arrival: Arrival) -> None:
        s = arrival.s
        if s.full or not s.alive:
            return
        if isinstance(self.evict, Count):
            reached = len(s.data) == self.evict.size
        else:
            reached = isinstance(self.evict, Time) or self._leaving(arrival)
        if reached:
            s.full = True
            self._fire("on_initial_full", arrival.key)

    def _trigger(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        assert isinstance(w, SlidingWindow)
        if not s.alive:  # this very insert evicted its own partition: the count starts afresh
            s = w._revive(arrival.key)
        if isinstance(self.trigger, Count):
            s.count += 1
            due = s.count == self.trigger.size
            if due or not self.trigger.size:
                s.count = 0
        else:
            assert isinstance(self.trigger, Delta)
            value = w._getters[self.trigger](arrival.tuple)
            if s.ref is UNSET:
                s.ref = value
            due = self.trigger.exceeds(value, s.ref)
            if due:
                s.ref = value
        if due:
            self._fire("on_trigger", arrival.key)
