"""The readable definition: one method per step, run in the order that `order.steps` gives.

Slow on purpose: every insert walks the steps, looks handlers up by name, and tests everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windowlib.spec.order import Step, steps
from windowlib.spec.specification import KEY
from windowlib.window.engine.rules import (
    check_delta,
    check_same_kind,
    evict_unordered,
    key_default,
    pair,
    reject_key,
)
from windowlib.window.events import FLUSH_EVENTS
from windowlib.window.failure import add_count, collect_handler_failures
from windowlib.window.subwindow import NO_KEY, UNSET, Subwindow

if TYPE_CHECKING:
    from windowlib.window.container import WindowState


@dataclass(slots=True)
class Arrival:
    """One tuple on its way in."""

    tuple: Any
    key: Any
    s: Subwindow


class Reference:
    """Runs the steps of a window, one by one."""

    def __init__(self, state: WindowState) -> None:
        self.w = state
        evict, trigger = state.spec.evict, state.spec.policies[-1]
        self.most, self.delta, self.period = evict.tuples, evict.delta, evict.tick
        self.every, self.trigger_delta = trigger.tuples, trigger.delta
        self.sliding = state.sliding
        # A count of 0 keeps nothing: tumbling ignores the tuple, sliding only counts triggers.
        self.keeps = not state.spec.keeps_nothing
        order = steps(state.spec)
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
        w, changing = self.w, False
        with w.window.locked():
            w.guard.check("insert(tuple)")
            try:
                w.guard.held = True
                key = self._key(tuple_, key)
                if not self.ages:
                    return
                for policy, get in w.getters.items():
                    check_delta(policy, get(tuple_), tuple_)
                    check_same_kind(w, policy, get(tuple_), w.find(key))
                changing = not self.keeps or (w.eviction is not None and w.eviction.by_age)
                w.age()
                arrival = Arrival(tuple_, key, self._subwindow(key))
                arrival.key = arrival.s.key
                changing = True  # noqa: F841 - for `before_changes`, after an interrupt
                for step in self.steps.values():
                    step(arrival)
            except BaseException as error:
                raise w.failed(error, tuple_, key)  # noqa: B904  # the same error, or its cause
            finally:
                w.guard.held = False

    def finish(self, event: str, tuple_: Any, key: Any, error: BaseException) -> None:
        """Do the steps that were still to come when the handler of `event` raised `error`."""
        failures: list[Exception] = []
        known = self.w.find(key)
        key = key if known is None else known.key  # a partition keeps the key it was born with
        for step in self._left_after(event):
            with collect_handler_failures(self.w.window, failures):
                s = self.w.find(key)
                s = self._dead(key) if s is None else s
                step(Arrival(tuple_, s.key, s))
        add_count(error, len(failures))

    def _left_after(self, event: str) -> list[Callable[[Arrival], None]]:
        if event in (*FLUSH_EVENTS, "on_trigger", "close"):
            return []  # always the last step, and the container has finished it
        if self.w.sliding and self.w.slices is not None:
            return [lambda arrival: self._fire("on_trigger", arrival.key)]
        order = list(self.steps)
        failed = Step.FULL if event == "on_initial_full" else Step.INSERT
        left = [self.steps[step] for step in order[order.index(failed) + 1 :]]
        return [self._partition_eviction, *left] if event == "after_insert" else left

    def _dead(self, key: Any) -> Subwindow:
        """What is left of a partition that this very insert has evicted."""
        s = self.w.make(key)
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
            return w.checked_key(key) if key is NO_KEY else key
        if key is not key_default(w):
            reject_key(w, f"insert(key={key!r})")
        return None if w.key_getter is None else w.key_getter(tuple_)

    def _subwindow(self, key: Any) -> Subwindow:
        w = self.w
        if w.sliding and not self.keeps:
            s = w.revive(key)
            w.left += 1
            return s
        s = w.subwindows[key] if key in w.subwindows else w.new(key)
        if w.spec.evict.lapse is not None and s.ref is UNSET:
            s.ref = w.now
        return s

    def _fire(self, event: str, *args: Any) -> None:
        if handler := self.w.handlers.get(event):
            handler(self.w.window, *args)

    # -- tumbling -------------------------------------------------------------------------------

    def _tumble_insert(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        self._fire("before_insert", arrival.tuple, arrival.key)
        if w.summarizer is None:
            s.data.append(arrival.tuple)
        else:
            if s.summary is None:
                w.open_summary(s)
            s.summary.insert(arrival.tuple)
            s.n += 1
        if self.delta is not None and s.ref is UNSET:
            s.ref = w.getters[self.delta](arrival.tuple)
        self._after_insert(arrival)

    def _flush(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        if self.delta is not None:
            value = w.getters[self.delta](arrival.tuple)
            due = w.size(s) > 0 and self.delta.exceeds(value, s.ref)
        else:
            assert w.spec.full_at is not None
            due = s.alive and w.size(s) >= w.spec.full_at
        if due:
            w.flush(s)

    def _after_insert(self, arrival: Arrival) -> None:
        w = self.w
        if w.eviction is not None:
            w.eviction.touch(arrival.s)
        self._fire("after_insert", arrival.tuple, arrival.key)
        self._partition_eviction(arrival)

    def _partition_eviction(self, arrival: Arrival) -> None:
        if self.w.eviction is not None and not self.w.eviction.by_age:
            self.w.eviction.evict()

    # -- sliding --------------------------------------------------------------------------------

    def _evict(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        if self.most is not None:
            if len(s.data) == self.most:
                w.evict_one(s, s.data[0])
        elif self.delta is not None and self._leaving(arrival):
            s.full = True
            evict_unordered(w, s, self.delta, w.getters[self.delta](arrival.tuple))

    def _leaving(self, arrival: Arrival) -> bool:
        """Whether delta eviction will drop something for this tuple."""
        assert self.delta is not None
        get = self.w.getters[self.delta]
        new = get(arrival.tuple)
        return any(self.delta.exceeds(new, get(t)) for t in arrival.s.data)

    def _slide_insert(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        self._fire("before_insert", arrival.tuple, arrival.key)
        s.data.append(arrival.tuple)
        s.taken += 1
        if self.period is not None:
            w.arrivals.add(s, w.now)
        if self.delta is not None:
            value = w.getters[self.delta](arrival.tuple)
            s.rough = s.rough or (s.newest is not UNSET and value < s.newest)
            s.newest = value
        self._after_insert(arrival)

    def _full(self, arrival: Arrival) -> None:
        s = arrival.s
        if s.full or not s.alive:
            return
        if self.most is not None:
            reached = len(s.data) == self.most
        else:
            reached = self.period is not None or self._leaving(arrival)
        if reached:
            s.full = True
            self._fire("on_initial_full", arrival.key)

    def _trigger(self, arrival: Arrival) -> None:
        w, s = self.w, arrival.s
        if not s.alive:  # this very insert evicted its own partition: the count starts afresh
            s = w.revive(arrival.key)
        if self.every is not None:
            s.count += 1
            due = s.count == self.every
            if due or not self.every:
                s.count = 0
        else:
            assert self.trigger_delta is not None
            value = w.getters[self.trigger_delta](arrival.tuple)
            if s.ref is UNSET:
                s.ref = value
            due = self.trigger_delta.exceeds(value, s.ref)
            if due:
                s.ref = value
        if due:
            self._fire("on_trigger", arrival.key)
