"""Sliding windows: keep the most recent tuples and are processed at each trigger."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from windowlib.durations import Instant
from windowlib.errors import PolicyError
from windowlib.spec.policies import (
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Policy,
    TupleCount,
)
from windowlib.spec.specification import By, Sliding, Spec
from windowlib.spec.spl import combine
from windowlib.summaries.folds import SHORT
from windowlib.summaries.incremental import SMALL
from windowlib.summaries.slices import Slices, refuse_summary
from windowlib.summaries.summarizers import Plan, SummarizerArgument, new_summarizer
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window.consumer import Consumer
from windowlib.window.container import Engine, Window
from windowlib.window.events import (
    EVICT_EVENTS,
    INSERT_EVENTS,
    PARTITION_EVENTS,
    WindowEvents,
)
from windowlib.window.failure import collect_handler_failures
from windowlib.window.subwindow import (
    DEFAULT_KEY,
    NO_KEY,
    UNKNOWN,
    UNSET,
    Subwindow,
    subwindow_class,
)

T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")


class SlidingWindow(Window[T, K]):
    """A container that keeps recent tuples, with separate eviction and trigger (paper, Table II).

    Insert is O(1) amortised. Delta eviction over values that go backwards costs O(window) per
    insert until they are in order again.

    Args:
        spec: a `Sliding`, or its SPL text; or give policies instead: `evict`, `trigger` (or
            `every`, as in `Sliding`), `by`, `forget`.
        events: your handlers.
        summarizer: ready-made summarizers, or a `Summarizer` class. With count eviction and count
            trigger, or time eviction, time trigger and `on_trigger`, ready-made ones are kept as
            slices instead of the tuples (see `explain`).
        start: where the window's clock starts.
        engine: "generated" (the default), or "reference", the slow and readable definition.
        consumer: who is told of the firings of whole batches; operators pass it, users need not.

    >>> from windowlib import WindowEvents
    >>> class Show(WindowEvents[int, None]):
    ...     def on_trigger(self, window, key):
    ...         print(list(window[key]))
    >>> SlidingWindow("sliding, count(3), count(2)", events=Show()).insert_many([1, 2, 3, 4])
    [1, 2]
    [2, 3, 4]
    """

    spec_type = Sliding
    kind = "sliding"
    spec: Sliding

    def __init__(
        self,
        spec: Spec | str | None = None,
        *,
        evict: Policy | None = None,
        trigger: Policy | None = None,
        every: Policy | None = None,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        events: WindowEvents[T, K] | None = None,
        summarizer: SummarizerArgument | None = None,
        start: Instant = 0,
        engine: Engine = "generated",
        consumer: Consumer | None = None,
    ) -> None:
        if trigger is not None and every is not None:
            msg = (
                f"SlidingWindow(trigger={trigger!r}, every={every!r}): two words for one policy. "
                f"Drop one of them."
            )
            raise PolicyError(msg)
        whole, open_key = combine(spec, Sliding, evict, by, forget, every=trigger or every)
        super().__init__(
            whole,
            events=events,
            summarizer=summarizer,
            start=start,
            engine=engine,
            open_key=open_key,
            consumer=consumer,
        )
        evict, every = self.spec.evict, self.spec.every
        self._most, self._delta, self._period = evict.tuples, evict.delta, evict.tick
        self._every, self._trigger_delta, self._beat = every.tuples, every.delta, every.tick
        self._tick = None if self._beat is None else self._start + self._beat
        self._slices = self._sliced()
        self._periods = isinstance(self._slices, Slices)  # whether slices are of counts
        self._sub = subwindow_class(self._fields())
        self._use_handlers(self._on)

    def _use_handlers(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        super()._use_handlers(handlers)
        watched = any(name in handlers for name in EVICT_EVENTS)
        self._evicts_unseen = self._engine == "generated" and not watched

    def _sliced(self) -> Slices | TimeSlices | None:
        """Slices stand for the tuples where the difference cannot be seen."""
        plan = self._factory
        if not isinstance(plan, Plan) or self._why_tuples():
            return None
        if self._most is not None and self._every is not None:
            return Slices(plan, self._most, self._every)
        assert self._period is not None
        assert self._beat is not None
        return TimeSlices(plan, self._period, self._beat)

    def _why_tuples(self) -> str:
        if not isinstance(self._factory, Plan):
            return ""
        questions = (
            self._why_boundaries,
            self._why_functions,
            self._why_handlers,
            self._why_forget,
        )
        return next((why for question in questions if (why := question())), "")

    @property
    def _ticks(self) -> bool:
        """Whether time evicts and triggers."""
        return self._period is not None and self._beat is not None

    def _why_boundaries(self) -> str:
        """Why windows are not made of slices that are known when a tuple comes."""
        if self._engine == "reference":
            return "the reference engine keeps tuples"
        if self.spec.keeps_nothing or self.spec.never_fires:
            return "a count of 0"
        if self._ticks or (self._most is not None and self._every is not None):
            return ""
        return f"a window of {self.spec.evict} at {self.spec.every} may begin at any tuple"

    def _why_functions(self) -> str:
        """Why partial results do not make up those of a window."""
        plan = self._factory
        assert isinstance(plan, Plan)
        large = self._ticks and not all(fold.stackable for fold in plan.folds)
        small = plan.sliceable and not large
        return "" if small else "a function whose results do not merge, or are large"

    def _why_handlers(self) -> str:
        """Who may look at a window while it is no number of slices, as it is while it triggers."""
        watched = [*INSERT_EVENTS, *EVICT_EVENTS, *PARTITION_EVENTS]
        if self._most is None or self._every is None or self._most % self._every:
            watched.append("on_initial_full")
        found = [name for name in watched if name in self._on]
        if not found and self._ticks and "on_trigger" not in self._on:
            return "without on_trigger, a summary is read at any time"
        return f"{', '.join(found)} may read them" if found else ""

    def _why_forget(self) -> str:
        """Why the eviction of partitions has to know tuples."""
        forget = self.spec.forget
        if forget is None or isinstance(forget, PartitionAge):
            return ""
        if isinstance(forget, PartitionCount) and forget.select == "lru" and forget.size:
            return ""
        # An insert that evicts its own partition would leave a trigger count without tuples.
        counts = isinstance(forget, TupleCount)
        return f"{forget} " + ("counts them" if counts else "may evict the partition of a new one")

    # -- time -----------------------------------------------------------------------------------

    def _due(self) -> int | None:
        expiry = None if self._period is None else self._expiry()
        return self._tick if expiry is None or self._tick_first(expiry) else expiry

    def _visible_due(self) -> int | None:
        unseen = self._in_arrays or self._evicts_unseen  # arrays forget what is old in silence
        return self._tick if unseen else self._due()

    def _advance_if_nothing_due(self, now: int) -> bool:
        if self._period is None or not self._evicts_unseen:
            return super()._advance_if_nothing_due(now)
        if self._tick is not None and self._tick <= now:
            return False
        self._now = now
        self._forget(now - self._period)
        return True

    def _forget(self, before: int) -> None:
        """Evict, without an event, the tuples that came before a point in time."""
        if isinstance(self._slices, TimeSlices):
            if self._slices.idle_before(before):
                for s in self._slices.emptied_since(before):
                    self._rest(s)
            return
        arrivals, emptied, pe = self._arrivals, [], self._eviction
        while (stamp := arrivals.oldest()) is not None and stamp < before:
            s = arrivals.pop()
            s.data.popleft()
            if pe is not None:
                pe.total -= 1
            if not s.data:
                emptied.append((stamp, s.born, s))
        self._oldest = UNKNOWN if stamp is None else stamp
        if len(emptied) > 1:
            emptied.sort(key=itemgetter(0, 1))
        for _, _, s in emptied:
            self._rest(s)

    def _tick_first(self, expiry: int) -> bool:
        """At one instant, what is too old goes before the trigger looks."""
        return self._tick is not None and self._tick < expiry

    def _expiry(self) -> int | None:
        """When the oldest tuple is too old: its age must exceed the period, by a microsecond."""
        if self._in_arrays:
            return self._host().due()
        if isinstance(self._slices, TimeSlices):
            newest = self._slices.oldest()
            return None if newest is None else newest + self._slices.period + 1
        oldest = self._arrivals.oldest()
        if oldest is None:
            return None
        assert self._period is not None
        return oldest + self._period + 1

    def _act(self, failures: list[Exception]) -> None:
        expiry = self._expiry()
        if expiry is not None and not self._tick_first(expiry):
            self._expire(failures)
        elif self._tick is not None:
            assert self._beat is not None
            self._tick += self._beat
            self._fire_all(failures)

    def _fire_all(self, failures: list[Exception]) -> None:
        with collect_handler_failures(self, failures):
            self._age()
        if handler := self._on.get("on_trigger"):
            for key in list(self._subs) or [DEFAULT_KEY]:
                with collect_handler_failures(self, failures):
                    handler(self, key)

    def _expire(self, failures: list[Exception]) -> None:
        """Evict the tuples that came at the oldest instant, partition by partition."""
        if isinstance(self._slices, TimeSlices):
            self._forget(self._now - self._slices.period)
            return
        self._oldest = UNKNOWN
        for s in self._arrivals.leaving():
            with collect_handler_failures(self, failures):
                self._expire_oldest(s)
            if not s.data:
                self._rest(s)

    def _expire_oldest(self, s: Subwindow) -> None:
        before = len(s.data)
        try:
            self._evict_one(s, s.data[0])
        finally:
            if len(s.data) == before:  # its time is over, whatever its handler says
                self._leave(s, s.data[0])

    def _evict_one(self, s: Subwindow, tuple_: Any) -> None:
        if handler := self._on.get("before_evict"):
            handler(self, tuple_, s.key)
        self._leave(s, tuple_)
        if handler := self._on.get("after_evict"):
            handler(self, tuple_, s.key)

    def _leave(self, s: Subwindow, tuple_: Any) -> None:
        # By identity, and nearly always the oldest; only delta eviction takes from the middle.
        index = next(i for i, held in enumerate(s.data) if held is tuple_)
        del s.data[index]
        if self._period is not None:
            self._arrivals.pop()
        if self._eviction is not None:
            self._eviction.total -= 1

    def _rest(self, s: Subwindow) -> None:
        """Out of storage without an event; trigger state and fullness survive."""
        if self._eviction is not None:
            self._eviction.forget(s)
        del self._subs[s.key]
        if isinstance(self._slices, TimeSlices):
            self._slices.clear(s)
        self._asleep[s.key] = s
        self._left += s.taken  # the next incarnation counts its own
        s.taken, s.returning = 0, True

    def _refused(self, s: Subwindow) -> None:
        if s.returning:
            self._rest(s)
        elif not s.taken:
            self._drop(s)

    # -- partitions -----------------------------------------------------------------------------

    def _make(self, key: Any) -> Subwindow:
        if self._slices is not None:
            return self._slices.make(key)
        s = self._sub.made(key)
        s.data = deque(maxlen=self._maxlen())
        if self._delta is not None:
            s.rough = self._mixed
        return s

    def _fields(self) -> tuple[str, ...]:
        """What a subwindow of this configuration has to remember."""
        kept: tuple[str, ...] = ("data", "full")
        kept += ("newest", "rough") if self._delta is not None else ()
        kept += ("returning",) if self._period is not None else ()
        kept += ("count",) if self._every is not None else ()
        kept += ("ref",) if self._trigger_delta is not None else ()
        kept += ("summary",) if isinstance(self._factory, Plan) else ()
        return kept + (("stamp",) if self._eviction is not None else ())

    def _maxlen(self) -> int | None:
        """The deque itself evicts, where it cannot be seen that the oldest leaves only then."""
        watched = any(name in self._on for name in (*EVICT_EVENTS, "before_insert"))
        if self._engine == "reference" or watched or self._eviction is not None:
            return None
        return self._most

    def _revive(self, key: Any) -> Subwindow:
        """Trigger state for a key that is not in storage: nothing is kept, or it was evicted."""
        if key is NO_KEY or key != key or type(key) is tuple:
            key = self._checked_key(key)
        s = self._asleep.get(key) or self._make(key)
        counts = self._every is not None and self._every > 1
        if counts or self._trigger_delta is not None:  # other triggers have no state to keep
            self._asleep[key] = s
        return s

    def _size(self, s: Subwindow) -> int:
        return len(s.data) if self._slices is None else self._slices.size(s, self._now)

    def _arrived(self, s: Subwindow) -> int:
        return s.taken if self._slices is None else self._slices.arrived(s)

    def full(self, key: Any = DEFAULT_KEY) -> bool:
        """Whether a partition has been full since it was created: `partial` windows before that."""
        s = self._find(key)
        if s is None:
            return False
        return self._was_full(s) or self._period is not None

    def _short_runs(self) -> bool:
        return self.spec.full_at is not None and self.spec.full_at <= SHORT

    def _summarises(self) -> bool:
        return self._slices is not None

    def summary(self, key: Any = DEFAULT_KEY) -> Any:
        """A summary of the tuples of a partition; `.value()` reads it."""
        s = self._subs.get(key)
        if s is not None and self._periods and s.count and not s.n:
            return s  # its slices are a window: a trigger runs
        return self._summary(key, self._find(key) if s is None else s)

    def _summary(self, key: Any, s: Subwindow | None) -> Any:
        if self._slices is not None:
            if s is None:
                return self._slices.plan()
            return s if self._triggering(self._slices, s) else refuse_summary(key)
        if self._factory is None:
            return super().summary(key)
        if isinstance(self._factory, Plan) and self._engine == "generated":
            return self._up_to_date(self._factory, s)
        summary = new_summarizer(self._factory)
        summary.open(key)
        for tuple_ in s.data if s is not None else ():
            summary.insert(tuple_)
        return summary

    def _triggering(self, slices: Slices | TimeSlices, s: Subwindow) -> bool:
        """Whether the slices of a subwindow are a window, as they are while a trigger runs."""
        if isinstance(slices, Slices):
            return bool(s.count) and not s.n
        assert self._tick is not None
        assert self._beat is not None
        if self._now + self._beat != self._tick:
            return False
        slices.expire(s, self._now)
        return not s.n

    def _reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`, None if empty or never full.

        All that a trigger asks in one call, for operators that do so very often.
        """
        subs, plan, slices = self._subs, self._factory, self._slices
        assert isinstance(plan, Plan)

        def closed(key: Any) -> U | None:
            s: Any = subs.get(key)
            if s is None:
                return None
            if s.taken >= limit:
                return use(key, limit, s.value())
            return use(key, s.taken, s.value()) if partial else None

        few: Any = UNSET

        def kept(key: Any) -> U | None:
            nonlocal few
            s = subs.get(key)
            if s is None or not s.data:
                return None
            size = len(s.data)
            if not partial and (size < limit if limit else not s.full):
                return None
            if few is UNSET:
                few = plan.recompute(s.data[-1])
            if size <= SMALL and few is not None:
                return use(key, size, few(s.data))
            if s.summary is None:
                s.summary = plan.incremental()
            s.summary.sync(s)
            return use(key, size, s.summary.value())

        if isinstance(slices, TimeSlices):
            return self._tick_reader(slices, use)
        limit = self._most or 0
        partial = partial or self._period is not None  # such windows count as full from the start
        return kept if slices is None else closed

    def _tick_reader(self, slices: TimeSlices, use: Callable[..., U]) -> Callable[[Any], U | None]:
        """The same for slices of time, which make up a window at ticks."""
        subs = self._subs

        def at_tick(key: Any) -> U | None:
            s = subs.get(key)
            if s is None:
                return None
            slices.expire(s, self._now)
            return use(key, slices.window_size(s), slices.value(s))

        return at_tick

    def _up_to_date(self, plan: Plan, s: Subwindow | None) -> Any:
        if s is None or not s.data:
            return plan()
        if s.summary is None:
            s.summary = plan.incremental()
        s.summary.sync(s)
        return s.summary

    def _was_full(self, s: Subwindow) -> bool:
        if self._most is not None:  # the generated insert sets the flag only for a handler
            return self._arrived(s) >= self._most  # also while its oldest has just left
        return s.full

    def _save_summary(self, s: Subwindow) -> Any:
        return None if self._slices is None else self._slices.save(s, self._now)

    def _load_summary(self, s: Subwindow, state: Any) -> None:
        if self._slices is not None:
            self._slices.load(s, state)

    def _folded(self, part: Mapping[str, Any], tick: int | None) -> Mapping[str, Any]:
        if not isinstance(self._slices, TimeSlices) or tick is None:
            return part
        return self._slices.folded(part, tick)

    def _storage_replaced(self) -> None:
        if isinstance(self._slices, TimeSlices):
            self._slices.fill(self._subs.values())

    def _rebase(self, start: int) -> None:
        by = start - self._start
        super()._rebase(start)
        if isinstance(self._slices, TimeSlices):
            for s in self._subs.values():
                self._slices.shift_arrival(s, by)
            self._storage_replaced()

    def _keeps(self) -> str:
        if self._slices is not None:
            return f"{self._slices.kept} slices per partition, for {self._summary_text()}"
        return "tuples" if self._factory is None else f"tuples, read by {self._summary_text()}"

    def _check(self) -> None:
        super()._check()
        stamps = self._arrivals.by_subwindow()
        for s in self._subs.values():
            if self._most is not None:
                assert self._size(s) <= self._most, s.key
            if self._every and not self._slices:
                assert 0 <= s.count < self._every, s.key
            if self._delta is not None and s.data:
                get = self._getters[self._delta]
                *older, newest = map(get, s.data)
                assert newest == s.newest
                assert s.rough or older == sorted(older)
                assert not any(self._delta.exceeds(newest, value) for value in older)
            if isinstance(self._slices, TimeSlices):
                self._slices.check(s, self._now)
            elif self._period is not None:
                assert s.data
                own = stamps.pop(s, [])
                assert len(own) == len(s.data)
                assert self._now - own[0] <= self._period, "age invariant"
        assert not any(s.alive for s in stamps), "what time will evict is in storage"
