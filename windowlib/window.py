"""What tumbling and sliding windows share: partitions, access, time, and how an insert is built."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

from windowlib import snapshot
from windowlib.access import Access
from windowlib.attributes import Getter, brief, key_getter, one_key
from windowlib.durations import Instant, as_instant, instant_text
from windowlib.errors import (
    ClockError,
    CopyError,
    PartitionError,
    PolicyError,
    PunctuationError,
    WindowlibError,
    WindowlibWarning,
    suggestion,
)
from windowlib.events import HANDLERS, WindowEvents, misspelt, overridden
from windowlib.failure import add_note, entered, find, raise_first
from windowlib.partitions import Partitions
from windowlib.policies import Delta, PartitionAge, TupleCount, attribute_text
from windowlib.spec import KEY, Sliding, Spec, Tumbling
from windowlib.spl import parse
from windowlib.subwindow import Subwindow
from windowlib.summarizers import Plan, Recipe, Summarizer, SummarizerArgument, check_summarizer

T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
Engine = Literal["generated", "reference"]
Mark = Literal["window", "final", "other"]


class _NoKey:
    def __repr__(self) -> str:
        return "no key"


NO_KEY = _NoKey()


class Window(Access[T, K]):
    """A container of tuples that fires events. Use `TumblingWindow` or `SlidingWindow`.

    Not thread-safe by itself, except that windows with a time policy run every insert and every
    timer under one lock, because a `WallClock` moves them from its own thread.
    """

    spec_type: ClassVar[type[Any]]
    kind: ClassVar[str]

    def __init__(
        self,
        spec: Spec | str,
        *,
        events: WindowEvents[T, K] | None,
        summarizer: SummarizerArgument | None,
        start: Instant,
        engine: Engine,
        open_key: bool,
    ) -> None:
        self.spec: Spec = parse(spec) if isinstance(spec, str) else spec
        if not isinstance(self.spec, self.spec_type):
            kind = self.spec_type.__name__
            other = isinstance(self.spec, Tumbling | Sliding)
            fix = f"Use {type(self.spec).__name__}Window" if other else f"Pass a {kind} or SPL text"
            msg = f"{kind}Window({self.spec!r}): not a {kind} specification. {fix}."
            raise PolicyError(msg)
        if engine not in ("generated", "reference"):
            raise PolicyError(f'engine={engine!r}: use "generated" (the default) or "reference".')
        self.events: WindowEvents[T, K] = WindowEvents() if events is None else events
        if not isinstance(self.events, WindowEvents):
            shown = events.__name__ if isinstance(events, type) else repr(events)
            fix = f"events={shown}()" if isinstance(events, type) else "a subclass of WindowEvents"
            raise PolicyError(f"events={shown}: not an object with handlers. Pass {fix}.")
        self._on: Mapping[str, Callable[..., Any]] = overridden(self.events)
        self._engine = engine
        self._open_key = open_key
        self._subs: dict[Any, Subwindow] = {}
        self._asleep: dict[Any, Subwindow] = {}  # no tuples, but a trigger state that survives
        self._born = count()
        self._left = 0  # tuples that partitions took along when they were dropped
        self._now = self._start = as_instant(start, argument="start")
        self._mixed = False  # whether tuples come as mappings and as other objects
        self._acting = False  # whether the clock's actions are running
        self._arrivals: deque[Subwindow] = deque()  # one entry per tuple that time will evict
        self._lock = threading.RLock() if self.spec.timed else None
        self._pe = Partitions(self, self.spec.forget) if self.spec.forget is not None else None
        deltas = [policy for policy in self.spec.policies if isinstance(policy, Delta)]
        self._getters = {policy: Getter(policy.attribute, policy.shown) for policy in deltas}
        by = self.spec.by
        self._key_of = None if by is None or by is KEY else key_getter(by, f"by={by!r}")
        self._factory = self._summaries(summarizer)
        self._on_due: Callable[[], None] | None = None
        self._tick: int | None = None
        self._warn()
        self._reset_insert()

    # -- construction ---------------------------------------------------------------------------

    def _summaries(
        self, argument: SummarizerArgument | None
    ) -> Callable[[], Summarizer[Any]] | None:
        if argument is None:
            return None
        check_summarizer(argument)
        if isinstance(argument, Recipe | Mapping):
            return Plan(argument, short=self._short_runs())
        return argument

    def _short_runs(self) -> bool:
        """Whether a summary covers so few tuples that plain addition is accurate."""
        raise NotImplementedError

    def _warn(self) -> None:
        for name in misspelt(self.events):
            known = suggestion(name, HANDLERS)
            msg = f"{type(self.events).__name__}.{name} is no handler, nothing calls it.{known}"
            warnings.warn(msg, WindowlibWarning, stacklevel=4)
        forget = self.spec.forget
        if forget is None or isinstance(forget, PartitionAge) or forget.select != "operator":
            return
        if "select_partitions" not in self._on:
            msg = (
                f"{forget!r} has no select_partitions handler: no partition will ever be evicted. "
                f'Override select_partitions, or use select="lru".'
            )
            warnings.warn(msg, WindowlibWarning, stacklevel=4)

    def _reset_insert(self) -> None:
        """Forget the specialised inserts; the next call builds them for the tuple it brings."""
        self._built: tuple[Callable[..., None], Callable[..., None]] | None = None
        if "_clock" in self.__dict__:
            return
        for name in ("insert", "insert_many"):
            self.__dict__.pop(name, None)

    def _build(self, sample: T) -> tuple[Callable[..., None], Callable[..., None]]:
        """Specialised inserts, which take the place of the methods."""
        from windowlib.engine import build  # the engines know the containers, not the reverse

        if self._built is None:
            self._built = build(self, sample)
        if "_clock" not in self.__dict__:  # a clock has its own in that place, which call these
            self.__dict__.update(zip(("insert", "insert_many"), self._built, strict=True))
        return self._built

    # -- input ----------------------------------------------------------------------------------

    def insert(self, tuple_: T, /, key: Any = NO_KEY) -> None:
        """Take one tuple; its events fire in here, in the order of `explain()`.

        Args:
            tuple_: any object; policies read their attributes from it.
            key: the partition, for windows made with `by=KEY` or straight from policies.
        """
        self._settle()
        insert, _ = self._build(tuple_)
        if key is NO_KEY:
            insert(tuple_)
        else:
            insert(tuple_, key)

    def insert_many(self, tuples: Iterable[T], keys: Iterable[Any] | None = None) -> None:
        """Take tuples in order: the same as `insert` for each, only faster.

        Args:
            tuples: any iterable.
            keys: one key per tuple, for windows that are given keys at `insert`.
        """
        self._settle()
        if not isinstance(tuples, Sequence):
            source = iter(tuples)
            first = list(islice(source, 1))
            tuples = chain(first, source) if first else []
        else:
            first = list(tuples[:1])
        if first:
            self._build(first[0])[1](tuples, keys)
        elif keys is not None:
            self._no_tuples(keys)

    def _no_tuples(self, keys: Iterable[Any]) -> None:
        from windowlib.engine.rules import pair

        for _ in pair(self, (), keys):
            pass

    def punctuate(self, mark: Mark = "window") -> None:
        """Take a punctuation. Only tumbling windows with `Punct()` take any.

        Args:
            mark: "window" or "final" closes the window, "other" is ignored.
        """
        msg = (
            f"punctuate({mark!r}): this window is '{self.spec}', which takes no punctuation. "
            f"Use Tumbling(Punct()), or do not forward punctuations to it."
        )
        raise PunctuationError(msg)

    def advance(self, now: Instant) -> None:
        """Move the window's clock to `now`; whatever is due happens at its own time, in order.

        Args:
            now: seconds as a number, a datetime, or a timedelta; the same scale as `start`.
        """
        with self.locked():
            self._advance(as_instant(now))

    def _advance(self, now: int) -> None:
        if self._acting:
            msg = (
                f"advance({instant_text(now)}): called by a handler while the window is being "
                f"advanced. Handlers may read the window, not move it."
            )
            raise ClockError(msg)
        if now < self._now:
            msg = (
                f"advance({instant_text(now)}): time went back from {instant_text(self._now)}. A "
                f"window's clock only moves forward; use a new window, or restore a snapshot."
            )
            raise ClockError(msg)
        failures: list[Exception] = []
        self._acting = True
        try:
            done = self._ahead and self._host().advance(now, failures)
            while not done and (due := self._due()) is not None and due <= now:
                self._now = max(due, self._now)
                self._act(failures)
        finally:
            self._acting = False
        self._now = now
        raise_first(failures)

    def _rebase(self, start: int) -> None:
        """Start the clock of a window that has never been advanced at another time."""
        self._settle()
        if self._tick is not None:
            self._tick += start - self._start
        self._now = self._start = start
        for s in [*self._subs.values(), *self._asleep.values()]:
            if s.stamps:
                s.stamps = deque(start for _ in s.stamps)
            if "stamp" in s.fields:
                s.stamp = start

    def _age(self) -> None:
        """The check of partition age, before anything else of an insert, a mark or a tick."""
        if self._pe is not None and self._pe.by_age:
            self._pe.evict()

    def _act(self, failures: list[Exception]) -> None:
        """Do what is due first; a handler's failure does not keep the others from running."""
        raise NotImplementedError

    # -- what each kind of window does its own way ------------------------------------------------

    def _save_summary(self, s: Subwindow) -> Any:
        """A subwindow's summary as plain data."""
        raise NotImplementedError

    def _load_summary(self, s: Subwindow, state: Any) -> None:
        """Put back what `_save_summary` gave."""
        raise NotImplementedError

    def _reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`, None if there is nothing."""
        raise NotImplementedError

    def _was_full(self, s: Subwindow) -> bool:
        """Whether initial_full is over for this subwindow."""
        return s.full

    def _keeps(self) -> str:
        """What a subwindow consists of, in words that are the same in every process."""
        raise NotImplementedError

    def _summary_text(self) -> str:
        made = self._factory
        return repr(made) if isinstance(made, Plan) else attribute_text(made)

    # -- partitions -----------------------------------------------------------------------------

    def _new(self, key: Any) -> Subwindow:
        """The subwindow of a key that is not in storage."""
        if key is NO_KEY or key != key or type(key) is tuple:
            key = self._sound_key(key)
            if key in self._subs:
                return self._subs[key]
        return self._enter(key)

    def _enter(self, key: Any) -> Subwindow:
        s = self._asleep.pop(key, None) or self._make(key)
        s.born = next(self._born)
        self._subs[key] = s
        return s

    def _sound_key(self, key: Any) -> Any:
        if key is NO_KEY:
            msg = (
                f"insert(tuple): this window is '{self.spec}' and gets its keys from the caller. "
                f"Pass key=..., or build it with by=..."
            )
            raise PartitionError(msg)
        return one_key(key)

    def _make(self, key: Any) -> Subwindow:
        raise NotImplementedError

    def _drop(self, s: Subwindow) -> None:
        """A partition leaves with all it remembers."""
        if self._pe is not None:
            self._pe.forget(s)
        del self._subs[s.key]
        s.alive = False
        self._left += self._arrived(s)

    def _failed(self, error: Exception, tuple_: Any, key: Any) -> Exception:
        """An insert failed: say why, and bring the insert to a sound end.

        A tuple that has not entered is not taken. For one that has, the remaining steps are done,
        as if the handler had returned, and then its exception comes out.
        """
        from windowlib.engine.reference import Reference
        from windowlib.engine.rules import better_error

        if (better := better_error(self, error, tuple_, key)) is not None:
            return better
        failed = find(self, error)
        inside = failed is not None and entered(self, failed.event)
        add_note(self, error, f"tuple {self.seen + (not inside)}")
        if failed is not None and not isinstance(error, WindowlibError):  # for readers of logs
            error.add_note(f"the tuple: {brief(tuple_)}")
        if failed is not None and inside:
            Reference(self).finish(failed.event, tuple_, key, error)
        elif (s := self._find(key)) is not None and not self._size(s):
            self._refused(s)
        return error

    def _refused(self, s: Subwindow) -> None:
        """An empty subwindow is left over from a tuple that was not taken."""
        self._drop(s)

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        msg = f"a {name} cannot be pickled or copied. Use snapshot(), and restore() in a new one."
        raise CopyError(msg)

    def explain(self) -> str:
        """Specification, order of events, storage, engine and handlers, as text."""
        from windowlib.engine import explain

        return explain(self)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything the window holds, as plain data with a version and the spec's fingerprint.

        Restoring it at any point and going on gives the same remaining events. With `arrays`, what
        batches have left in arrays comes out as arrays, which is faster and smaller.
        """
        with self.locked():
            return snapshot.take(self, arrays)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the window's contents by those of a snapshot of the same specification."""
        with self.locked():
            snapshot.put(self, state)
            self._restores += 1
            self._reset_insert()
        if self._on_due is not None:
            self._on_due()

    def _check(self) -> None:
        """Walk all invariants; for tests."""
        for key, s in self._subs.items():
            assert s.alive, key
            assert s.key is key or s.key == key
            assert key not in self._asleep
        births = [s.born for s in self._subs.values()]
        assert births == sorted(births), "storage order is creation order"
        if self._pe is not None:
            assert set(self._pe.lru) <= set(self._subs)
            stamps = [s.stamp for s in self._pe.lru.values()]
            assert stamps == sorted(stamps), "LRU order is the order of last insertions"
            if isinstance(self.spec.forget, TupleCount):  # the only policy that counts tuples
                sizes = sum(map(self._size, self._pe.lru.values()))
                assert self._pe.total == sizes, (self._pe.total, sizes)
        if self._lock is None:
            assert not self._arrivals
            assert not self.spec.times
