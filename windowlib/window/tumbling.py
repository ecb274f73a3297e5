"""Tumbling windows: fill up, are processed when full, and start again empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from windowlib.durations import Instant
from windowlib.errors import PunctuationError
from windowlib.spec.policies import PartitionEviction, Policy
from windowlib.spec.specification import By, Spec, Tumbling
from windowlib.spec.spl import combine
from windowlib.summaries.folds import SHORT
from windowlib.summaries.source import slot_reader
from windowlib.summaries.summarizers import FoldSummary, Plan, SummarizerArgument, new_summarizer
from windowlib.window.consumer import Consumer
from windowlib.window.container import Engine, Mark, Window
from windowlib.window.events import WindowEvents
from windowlib.window.failure import collect_handler_failures, raise_first, raised_in
from windowlib.window.partitions import Partitions
from windowlib.window.subwindow import DEFAULT_KEY, UNSET, Subwindow, subwindow_class

T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")


class TumblingWindow(Window[T, K]):
    """A container that is flushed whenever it is full (paper, Table I).

    Insert is O(1). It keeps the tuples of each subwindow, or only its summarizer.

    Args:
        spec: a `Tumbling`, or its SPL text; or give policies instead: `evict`, `by`, `forget`.
        events: your handlers.
        summarizer: a `Summarizer` class, or ready-made ones (`windowlib.summaries.summarizers`).
        start: where the window's clock starts.
        engine: "generated" (the default), or "reference", the slow and readable definition.
        consumer: who is told of the firings of whole batches; operators pass it, users need not.

    A container made from policies without `by` takes the key at `insert`, or none.

    >>> from windowlib import Count, WindowEvents
    >>> class Total(WindowEvents[int, str]):
    ...     def before_flush(self, window, key):
    ...         print(key, sum(window[key]))
    >>> window = TumblingWindow(evict=Count(2), events=Total())
    >>> for value in (1, 2, 3, 4):
    ...     window.insert(value, key="odd" if value % 2 else "even")
    odd 4
    even 6
    """

    spec_type = Tumbling
    kind = "tumbling"
    spec: Tumbling

    def __init__(
        self,
        spec: Spec | str | None = None,
        *,
        evict: Policy | None = None,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        events: WindowEvents[T, K] | None = None,
        summarizer: SummarizerArgument | None = None,
        start: Instant = 0,
        engine: Engine = "generated",
        consumer: Consumer | None = None,
    ) -> None:
        whole, open_key = combine(spec, Tumbling, evict, by, forget)
        super().__init__(
            whole,
            events=events,
            summarizer=summarizer,
            start=start,
            engine=engine,
            open_key=open_key,
            consumer=consumer,
        )
        evict = self.spec.evict
        self._delta, self._beat = evict.delta, evict.tick
        self._tick = None if self._beat is None else self._start + self._beat
        # How long a subwindow has from its first tuple on. It is as long for all, so the first in
        # storage is the first to end.
        self._lapse = evict.lapse
        # Whether ready-made summaries live in slots, where the generated insert updates them.
        plan = self._factory if isinstance(self._factory, Plan) and self._factory.slots else None
        self._plan = plan if engine == "generated" else None
        if self._plan is None:
            self._sub = subwindow_class(self._fields())
        else:
            self._sub = subwindow_class(self._fields(), self._plan.start, slot_reader(self._plan))
        self._before_flush = self._on.get("before_flush")
        self._after_flush = self._on.get("after_flush")
        self._stays = self._delta is not None  # the partition outlives its flush
        # A summarizer opens after before_insert; if that makes no difference, with its partition.
        self._closes = self._factory is not None and self._plan is None
        own = self._closes and engine == "generated"
        self._opens_early = own and not self._stays and "before_insert" not in self._on

    def punctuate(self, mark: Mark = "window") -> None:
        """Take a punctuation: "window" and "final" flush every partition, "other" is ignored."""
        if not self.spec.punctuated:
            super().punctuate(mark)
        if mark not in ("window", "final", "other"):
            msg = f'punctuate({mark!r}): unknown mark. Use "window", "final" or "other".'
            raise PunctuationError(msg)
        self._guard.check(f"punctuate({mark!r})")
        if mark == "other":
            return
        failures: list[Exception] = []
        try:
            self._guard.held = True
            self._close_all(failures)
            self._guard.held = False
        except BaseException as error:
            self._guard.held = False
            self._stopped(error, "taking a punctuation")
            raise
        raise_first(failures)

    def _close_all(self, failures: list[Exception]) -> None:
        """Flush every partition, or say that there is none."""
        empty = self._in_arrays and self._host().has_no_partition
        if self._in_arrays and not empty and self._host().fire_all(self._flush_all, failures):
            return
        if self._subs and not empty:
            with collect_handler_failures(self, failures):
                self._age()
            self._flush_all(failures)
        elif handler := self._on.get("on_empty_punctuation"):
            with collect_handler_failures(self, failures):
                handler(self)

    def _due(self) -> int | None:
        if self._lapse is None:
            return self._tick
        if self._in_arrays:
            return self._host().due()
        first = next(iter(self._subs.values()), None)
        return None if first is None else int(first.ref + self._lapse)

    def _advance_if_nothing_due(self, now: int) -> bool:
        due = self._tick if self._lapse is None else self._due()
        if due is not None and due <= now:
            return False
        self._now = now
        return True

    def _rebase(self, start: int) -> None:
        super()._rebase(start)
        if self._lapse is not None:
            for s in self._subs.values():
                s.ref = start

    def _act(self, failures: list[Exception]) -> None:
        if self._lapse is not None:
            self._flush_first(failures)
            return
        assert self._tick is not None
        assert self._beat is not None
        self._tick += self._beat
        with collect_handler_failures(self, failures):
            self._age()
        if self._subs:
            self._flush_all(failures)
        else:
            with collect_handler_failures(self, failures):
                self._flush_stand_in()

    def _flush_first(self, failures: list[Exception]) -> None:
        """The time of the subwindow that opened first is over."""
        first = next(iter(self._subs.values()))
        with collect_handler_failures(self, failures):
            self._age()
        if first.alive:  # the age of its partition was not over as well
            with collect_handler_failures(self, failures):
                self._flush(first)

    def _flush_all(self, failures: list[Exception]) -> None:
        for s in list(self._subs.values()):
            with collect_handler_failures(self, failures):
                self._flush(s)

    def _flush(self, s: Subwindow) -> None:
        """Process and empty a subwindow; all but delta windows forget the partition."""
        stays = False
        try:
            if self._closes and s.summary is not None:
                s.summary.close()
            if self._before_flush is not None:
                self._before_flush(self, s.key)
            if self._after_flush is not None:
                if self._factory is None:  # a summary stays readable until after_flush is over
                    self._empty(s)
                self._after_flush(self, s.key)
            stays = self._stays
        finally:  # a handler that raised must not leave a subwindow that is over-full for ever
            if stays:
                self._empty(s)
            else:
                self._drop(s)

    def _interrupted(self, error: BaseException, key: Any) -> bool:
        if super()._interrupted(error, key):
            return True
        # The tuple goes in with one instruction, and what comes then can be told from the state:
        # unless something was flushed or evicted, or a handler was due for the tuple.
        flushed = raised_in(error, TumblingWindow._flush.__code__, Partitions.evict.__code__)
        by_age = self._eviction is not None and self._eviction.by_age
        if self._factory is not None or self._stays or flushed or by_age:
            return False
        if "before_insert" in self._on or "after_insert" in self._on:
            return False
        s = self._find(key)
        if s is None or not self._size(s):
            if s is not None:
                self._refused(s)
            return True
        if self._eviction is not None:
            self._eviction.touch_interrupted(s)
            self._eviction.evict()
        if s.alive and self.spec.full_at is not None and self._size(s) >= self.spec.full_at:
            self._flush(s)  # its last tuple is in
        return True

    def _refused(self, s: Subwindow) -> None:
        if not (self._stays and s.taken):  # a delta partition stays after its flush
            self._drop(s)

    def _empty(self, s: Subwindow) -> None:
        size = self._size(s)
        s.taken += size
        if self._eviction is not None:
            self._eviction.total -= size
        if self._factory is None:
            s.data = []
        elif self._plan is None:
            s.n, s.summary = 0, None
        else:
            self._plan.store(s, self._plan())
        if self._stays:
            s.ref = UNSET

    def _flush_stand_in(self) -> None:
        """An idle timed window still ticks, on the default key."""
        s = self._make(DEFAULT_KEY)
        self._subs[DEFAULT_KEY] = s
        try:
            if self._factory is not None and self._plan is None:
                self._open(s)
            self._flush(s)
        finally:
            self._subs.pop(DEFAULT_KEY, None)

    def _make(self, key: Any) -> Subwindow:
        s = self._sub.made(key)
        if self._factory is None:
            s.data = []
        return s

    def _maker(self) -> Callable[[Any], Subwindow]:
        return self._make if self._factory is None else self._sub.made

    def _fields(self) -> tuple[str, ...]:
        """What a subwindow of this configuration has to remember."""
        kept: tuple[str, ...] = ("data",) if self._factory is None else ("n",)
        kept += ("summary",) if self._factory is not None and self._plan is None else ()
        kept += ("ref",) if self._delta is not None or self._lapse is not None else ()
        return kept + (("stamp",) if self._eviction is not None else ())

    def _open(self, s: Subwindow) -> None:
        assert self._factory is not None
        summary = new_summarizer(self._factory)
        summary.open(s.key)
        s.summary = summary

    def _size(self, s: Subwindow) -> int:
        return len(s.data) if self._factory is None else s.n

    def _arrived(self, s: Subwindow) -> int:
        return s.taken + (len(s.data) if self._factory is None else s.n)

    def _summarises(self) -> bool:
        return self._factory is not None

    def _short_runs(self) -> bool:
        return self.spec.full_at is not None and self.spec.full_at <= SHORT

    def summary(self, key: Any = DEFAULT_KEY) -> Any:
        """The summarizer of a partition; `.value()` reads it. Live: it empties with the flush."""
        s = None if self._in_arrays else self._subs.get(key)
        if s is None:
            s = self._find(key)
        if self._plan is not None:
            return s if s is not None and s.n else self._plan()
        if self._factory is None:
            return super().summary(key)
        summary = None if s is None else s.summary
        return self._factory() if summary is None and isinstance(self._factory, Plan) else summary

    def _reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`; None for an empty partition."""
        subs, slots = self._subs, self._plan is not None

        def read(key: Any) -> U | None:
            s = subs.get(key)
            if s is None or not s.n:
                return None
            summary: Any = s if slots else s.summary
            return use(key, s.n, summary.value())

        return read

    def _save_summary(self, s: Subwindow) -> Any:
        if self._plan is not None:
            return [self._plan.load(s).snapshot()]
        return None if s.summary is None else [s.summary.snapshot()]

    def _load_summary(self, s: Subwindow, state: Any) -> None:
        if state is None or self._factory is None:
            return
        summary = self._factory()
        summary.restore(state[0])
        if self._plan is None:
            s.summary = summary
        else:
            assert isinstance(summary, FoldSummary)
            self._plan.store(s, summary)
            self._plan.irregular = True  # unknown; this is merely slower to read

    def _keeps(self) -> str:
        return (
            "tuples"
            if self._factory is None
            else f"one summary per partition: {self._summary_text()}"
        )

    def _check(self) -> None:
        super()._check()
        for s in self._subs.values():
            if self.spec.full_at is not None:
                assert 0 < self._size(s) < max(self.spec.full_at, 1), s.key
            if self._lapse is not None:
                assert s.ref <= self._now < s.ref + self._lapse, s.key
            if self._delta is not None and self._factory is None and s.data:
                get = self._getters[self._delta]
                assert s.ref == get(s.data[0])
                assert not any(self._delta.exceeds(get(t), s.ref) for t in s.data[1:])
        if self._lapse is not None:
            firsts = [s.ref for s in self._subs.values()]
            assert firsts == sorted(firsts), "storage order is the order of deadlines"
