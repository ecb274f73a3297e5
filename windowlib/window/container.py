"""What tumbling and sliding windows share: partitions, access, time, and how an insert is built."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Sized,
)
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain, count, islice
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeVar, cast

from windowlib.attributes import Getter, brief, key_getter, one_key
from windowlib.durations import Instant, as_instant, instant_text
from windowlib.errors import (
    AccessError,
    ClockError,
    CopyError,
    PartitionError,
    PolicyError,
    PunctuationError,
    WindowlibError,
    WindowlibWarning,
    suggestion,
)
from windowlib.extensions import extension
from windowlib.spec.policies import Delta, PartitionAge, TupleCount, attribute_text
from windowlib.spec.specification import KEY, Sliding, Spec, Tumbling
from windowlib.spec.spl import parse
from windowlib.summaries.slices import Slices
from windowlib.summaries.summarizers import (
    FunctionCall,
    Plan,
    Summarizer,
    SummarizerArgument,
    check_summarizer,
)
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window import snapshot
from windowlib.window.arrow import (
    Handover,
    Times,
    WindowHandover,
    content_of,
    named_row,
    no_column,
    record_batches,
)
from windowlib.window.consumer import Consumer
from windowlib.window.engine import build, explain
from windowlib.window.engine.generated import (
    InsertEach,
    InsertTimed,
    generate_each,
    generate_fused_advance,
    generate_fused_insert,
    generate_timed,
)
from windowlib.window.engine.reference import Reference
from windowlib.window.engine.rules import clearer_error, pair
from windowlib.window.events import HANDLERS, WindowEvents, misspelt, never_called, overridden
from windowlib.window.failure import (
    Guard,
    add_note,
    before_changes,
    broken_state,
    collect_handler_failures,
    find,
    raise_first,
    tuple_entered,
)
from windowlib.window.partitions import Partitions
from windowlib.window.subwindow import (
    DEFAULT_KEY,
    NO_KEY,
    UNKNOWN,
    Arrivals,
    Subwindow,
    Tuples,
)

T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")
Engine = Literal["generated", "reference"]
Mark = Literal["window", "final", "other"]
UNLOCKED = nullcontext()
Bound = tuple[Callable[..., None], Callable[[], None]]
"""A function in the place of a running operator's method, and what gives its calls back to it."""


class Window(Generic[T, K]):
    """A container of tuples that fires events. Use `TumblingWindow` or `SlidingWindow`.

    Not thread-safe by itself. A `WallClock`, which moves windows from its own thread, runs every
    insert and every timer under one lock.
    """

    spec_type: ClassVar[Any]
    kind: str
    event_time: ClassVar[bool] = False
    port: int = 0
    """The input of its operator, by number, for handlers of several."""
    holds_tuples: ClassVar[bool] = True
    """Whether what a subwindow keeps are the tuples that came in."""
    only_handlers: ClassVar[bool] = True
    """Whether what is in it is processed by handlers alone; others need not be for its kind."""
    _restores = 0  # how often its state was replaced
    _in_arrays = False  # whether the state is in arrays, and the subwindows are behind
    _broken: str | None = None  # what an interrupt stopped half-way; the state is lost
    _interrupts = 0  # how often one came while a tuple changed the window
    _batches: Handover | None = None
    _on_reset: Callable[[], None] | None = None  # called when inserts have to be generated anew
    _plan: Plan | None = None  # ready-made summaries that live in slots
    _slices: Slices | TimeSlices | None = None
    _opens_early = False  # whether a summarizer is opened together with its partition
    _on: Mapping[str, Callable[..., Any]]

    def __init__(
        self,
        spec: Spec | str,
        *,
        events: WindowEvents[T, K] | None,
        summarizer: SummarizerArgument | None,
        start: Instant,
        engine: Engine,
        open_key: bool,
        consumer: Consumer | None = None,
    ) -> None:
        self.spec: Spec = parse(spec) if isinstance(spec, str) else spec
        if not isinstance(self.spec, self.spec_type):
            kind = self.spec_type.__name__
            other = isinstance(self.spec, Tumbling | Sliding)
            fix = f"Use {type(self.spec).__name__}Window" if other else f"Pass a {kind} or SPL text"
            msg = f"{kind}Window({self.spec!r}): not a {kind} specification. {fix}."
            raise PolicyError(msg)
        if self.spec.event_time and not self.event_time:
            msg = (
                f"{type(self).__name__}({self.spec!r}): a window of event time. Use "
                f"EventTimeWindow."
            )
            raise PolicyError(msg)
        if engine not in ("generated", "reference"):
            raise PolicyError(f'engine={engine!r}: use "generated" (the default) or "reference".')
        self.events: WindowEvents[T, K] = WindowEvents() if events is None else events
        if not isinstance(self.events, WindowEvents):
            shown = events.__name__ if isinstance(events, type) else repr(events)
            fix = f"events={shown}()" if isinstance(events, type) else "a subclass of WindowEvents"
            raise PolicyError(f"events={shown}: not an object with handlers. Pass {fix}.")
        self._on = overridden(self.events)
        self._consumer = Consumer() if consumer is None else consumer
        self._engine = engine
        self._open_key = open_key
        self.state = WindowState(self)
        # Where subwindows end in storage order, an ordered dict finds the first at once, however
        # many left before it.
        ordered = self.spec.evict.lapse is not None
        self._subs: dict[Any, Subwindow] = OrderedDict() if ordered else {}
        self._guard = Guard(self, self._subs)
        self._asleep: dict[Any, Subwindow] = {}  # no tuples, but a trigger state that survives
        self._born = count()
        self._left = 0  # tuples that partitions took along when they were dropped
        self._now = self._start = as_instant(start, argument="start")
        self._mixed = False  # whether tuples come as mappings and as other objects
        self._acting = False  # whether the clock's actions are running
        self._arrivals = Arrivals()  # the tuples that time will evict
        self._oldest: float = UNKNOWN  # when the first of them came
        self._lock = threading.RLock() if self.spec.timed else None
        self._eviction = (
            Partitions(self.state, self.spec.forget) if self.spec.forget is not None else None
        )
        deltas = self.spec.deltas
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
        if isinstance(argument, FunctionCall | Mapping):
            return Plan(argument, short=self._short_runs())
        return argument

    def _short_runs(self) -> bool:
        """Whether a summary covers few tuples, so that plain addition is accurate."""
        raise NotImplementedError

    def _warn(self) -> None:
        for name in misspelt(self.events):
            known = suggestion(name, HANDLERS)
            msg = f"{type(self.events).__name__}.{name} is no handler, nothing calls it.{known}"
            warnings.warn(msg, WindowlibWarning, stacklevel=4)
        missed = never_called(self._on, flushes=isinstance(self.spec, Tumbling))
        for name, instead in missed if self.only_handlers else ():
            kind = type(self.events).__name__
            msg = (
                f"{kind}.{name} is never called: this is {str(self.spec)!r}. Override {instead}, "
                f"or use another window."
            )
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
        """Drop the generated inserts; the next call builds new ones for its tuple."""
        self._built: dict[str, Callable[..., None]] | None = None
        self._each: InsertEach | None = None
        self._timed: dict[Any, InsertTimed] = {}
        self._unbind()
        if self._on_reset is not None:
            self._on_reset()

    def _unbind(self) -> None:
        """Restore the methods, which handle all cases."""
        if "_clock" not in self.__dict__:
            for name in ("insert", "insert_many", "advance"):
                self.__dict__.pop(name, None)

    def _build(self, sample: T) -> dict[str, Callable[..., None]]:
        """Put the generated inserts and `advance` in place of the methods."""
        if self._built is None:
            self._built = self._specialised(sample)
        if "_clock" not in self.__dict__:  # a clock has its own in that place, which call these
            self.__dict__.update(self._built)
        return self._built

    def _specialised(self, sample: T) -> dict[str, Callable[..., None]]:
        return build(self.state, sample)

    # -- input ----------------------------------------------------------------------------------

    def insert(self, tuple_: T, /, key: Any = NO_KEY) -> None:
        """Take one tuple; its events fire in here, in the order of `explain()`.

        Args:
            tuple_: any object; policies read their attributes from it.
            key: the partition, for windows made with `by=KEY` or straight from policies.
        """
        self._sync()
        insert = self._build(tuple_)["insert"]
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
        self._sync()
        if not isinstance(tuples, Sequence):
            source = iter(tuples)
            first = list(islice(source, 1))
            tuples = chain(first, source) if first else []
        else:
            first = list(tuples[:1])
        if first:
            self._build(first[0])["insert_many"](tuples, keys)
        elif keys is not None:
            self._no_tuples(keys)

    def _inserter(self, sample: T) -> InsertEach | None:
        """The generated loop of `insert_many` as a generator; None: there is none."""
        if not self._is_bound():
            return None
        if self._each is None:
            self._each = generate_each(self.state, sample)
        return self._each

    def _is_bound(self) -> bool:
        """Whether a generated insert is in use, with the state in the subwindows."""
        built = self._built is not None and "insert" in self.__dict__
        return built and self._engine == "generated" and "_clock" not in self.__dict__

    def _timed_inserter(self, sample: T, times: Getter) -> InsertTimed | None:
        """The generated loop of `advance` and `insert`; None: there is none."""
        if not self._is_bound():
            return None
        if times.attribute not in self._timed:
            self._timed[times.attribute] = generate_timed(self.state, sample, times)
        return self._timed[times.attribute]

    def insert_batch(self, batch: Any, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order: `insert` for each, only faster.

        Rows count as dicts. Where array arithmetic gives exactly what inserting them one by one
        would give, whole columns are worked on at once; `explain()` says which.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`, or a DataFrame of pandas, polars or
                another library with Arrow streams.
            times: the column that says when a row arrives, as seconds or timestamps: `advance` to
                that time comes before its `insert`. Without it all rows arrive now.

        >>> import pyarrow as pa
        >>> from windowlib import Count, TumblingWindow, summarizers
        >>> window = TumblingWindow(evict=Count(3), summarizer=summarizers.sum("x"))
        >>> window.insert_batch(pa.table({"x": [1, 2, 3, 4, 5]}))
        >>> window.size(), window.summary().value()
        (2, 9)
        """
        self._guard.check("insert_batch(batch)")
        parts = record_batches(batch, "insert_batch", times)
        for part in parts:
            host = self._host()
            if times is None:
                host.insert(part)
            else:
                host.insert_timed_rows(host.insert_timed(part, times), Times(times))

    def _no_tuples(self, keys: Iterable[Any]) -> None:
        for _ in pair(self.state, (), keys):
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
        self._move(as_instant(now))

    def _move(self, now: int) -> None:
        """`advance`, in microseconds."""
        with self.locked():
            self._advance(now)

    def _advance(self, now: int) -> None:
        if self._try_advance(now):
            return
        self._refuse_broken()
        if self._acting:
            msg = (
                f"advance({instant_text(now)}): called by a handler while the window is being "
                f"advanced. Handlers may read the window, not move it."
            )
            raise ClockError(msg)
        self._guard.check(f"advance({instant_text(now)})")
        if now < self._now:
            msg = (
                f"advance({instant_text(now)}): time went back from {instant_text(self._now)}. A "
                f"window's clock only moves forward; use a new window, or restore a snapshot."
            )
            raise ClockError(msg)
        failures: list[Exception] = []
        try:
            self._acting = self._guard.held = True
            done = self._in_arrays and self._host().advance(now, failures)
            while not done and (due := self._earliest(self._due())) is not None and due <= now:
                self._now = max(due, self._now)
                if self._due() == due:  # ticks and deadlines look at ages themselves
                    self._act(failures)
                else:
                    with collect_handler_failures(self, failures):
                        self._age()
            self._now = now
            self._acting = self._guard.held = False
        except BaseException as error:
            self._acting = self._guard.held = False
            self._stopped(error, "advancing its clock")
            raise
        raise_first(failures)

    def _try_advance(self, now: int) -> bool:
        """Move the clock if nothing visible happens until then; whether it moved."""
        if self._now > now or self._acting or self._guard.held or self._in_arrays:
            return False
        if (
            self._eviction is not None
            and self._eviction.alone
            and (age := self._eviction.ages_at()) is not None
        ):
            return age > now and self._advance_if_nothing_due(now)
        return self._advance_if_nothing_due(now)

    def _advance_if_nothing_due(self, now: int) -> bool:
        """Move the clock if nothing is due until then; whether it moved."""
        due = self._due()
        if due is not None and due <= now:
            return False
        self._now = now
        return True

    def _rebase(self, start: int) -> None:
        """Restart the clock of a window that was never advanced, at another time."""
        self._sync()
        if self._tick is not None:
            self._tick += start - self._start
        self._now = self._start = start
        self._oldest = UNKNOWN
        stamps = self._arrivals.by_subwindow()
        self._arrivals.fill({s: [start] * len(own) for s, own in stamps.items()})
        for s in [*self._subs.values(), *self._asleep.values()]:
            if "stamp" in s.fields:
                s.stamp = start

    def _storage_replaced(self) -> None:
        """Rebuild what is derived from the subwindows, after they were replaced."""

    def _age(self) -> None:
        """Evict partitions by age, as the first step of an insert, a punctuation or a tick."""
        if self._eviction is not None and self._eviction.by_age:
            self._eviction.evict()

    def _earliest(self, due: int | None) -> int | None:
        """The earlier of a deadline and the next eviction by age."""
        age = self._ages_at()
        return due if age is None else age if due is None else min(due, age)

    def _ages_at(self) -> int | None:
        """When the next partition reaches its age, where no insert has to check it."""
        if self._eviction is None or not self._eviction.alone:
            return None
        return self._host().ages_at() if self._in_arrays else self._eviction.ages_at()

    def _act(self, failures: list[Exception]) -> None:
        """Do what is due first; failures of handlers are collected."""
        raise NotImplementedError

    # -- what each kind of window does its own way ------------------------------------------------

    def _save_summary(self, s: Subwindow) -> Any:
        """A subwindow's summary as plain data."""
        raise NotImplementedError

    def _load_summary(self, s: Subwindow, state: Any) -> None:
        """Restore what `_save_summary` returned."""
        raise NotImplementedError

    def _reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`; None for an empty partition."""
        raise NotImplementedError

    def _was_full(self, s: Subwindow) -> bool:
        """Whether `on_initial_full` was called for this subwindow."""
        return s.full

    def _keeps(self) -> str:
        """The contents of a subwindow as text, for fingerprints and `explain`."""
        raise NotImplementedError

    def _why_tuples(self) -> str:
        """Why a sliding window keeps tuples although it has summaries; "" if it does not."""
        return ""

    def _folded(self, part: Mapping[str, Any], tick: int | None) -> Mapping[str, Any]:
        """A partition of a snapshot, converted from the form of an earlier release."""
        return part

    def _summary_text(self) -> str:
        made = self._factory
        return repr(made) if isinstance(made, Plan) else attribute_text(made)

    # -- partitions -----------------------------------------------------------------------------

    def _new(self, key: Any) -> Subwindow:
        """The subwindow of a key that is not in storage."""
        if key is NO_KEY or key != key or type(key) is tuple:
            key = self._checked_key(key)
            if key in self._subs:
                return self._subs[key]
        s = self._asleep.get(key) if self._asleep else None
        if s is None:
            s = self._make(key)
        s.born = next(self._born)
        self._subs[s.key] = s  # a returning partition keeps the key it was born with
        if self._asleep:  # after it is in storage, so that an interrupt does not lose it
            self._asleep.pop(key, None)
        if self._opens_early:
            self._open(s)
        return s

    def _opener(self) -> Callable[[Any], Subwindow]:
        """`_new` as one function without calls, for small windows."""
        subs, asleep, born, new = self._subs, self._asleep, self._born, self._new
        make = self._maker()
        opens = self._open if self._opens_early else None

        def opened(key: Any) -> Subwindow:
            if asleep or key is NO_KEY or key != key or type(key) is tuple:
                return new(key)
            s = make(key)
            s.born = next(born)
            subs[key] = s
            if opens is not None:
                opens(s)
            return s

        return opened

    def _maker(self) -> Callable[[Any], Subwindow]:
        """A function that makes an empty subwindow for a key."""
        return self._make

    def _checked_key(self, key: Any) -> Any:
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
        """Remove a partition with all its state."""
        if self._eviction is not None:
            self._eviction.forget(s)
        del self._subs[s.key]
        s.alive = False
        self._left += self._arrived(s)

    def _failed(self, error: BaseException, tuple_: Any, key: Any) -> BaseException:
        """The exception to raise after a failed insert, which is first completed or undone.

        A tuple that has not entered is not taken. For one that has, the remaining steps are done,
        as if the handler had returned, and then its exception comes out. So it is when an interrupt
        stops a handler. One that comes between the steps leaves the window as it was before the
        tuple or after it, or else broken.
        """
        if (refusal := self._guard.refused(error)) is not None:
            return refusal
        try:
            return self._finish_insert(error, tuple_, key)
        except BaseException as other:
            self._stopped(other, "taking a tuple")
            raise
        finally:
            self._guard.held = False

    def _finish_insert(self, error: BaseException, tuple_: Any, key: Any) -> BaseException:
        """The exception to raise, after the remaining steps were done."""
        failed = find(self, error)
        if not isinstance(error, Exception) and (failed is None or failed.event not in HANDLERS):
            if not before_changes(error):
                self._interrupts += 1
            if not self._interrupted(error, key):
                self._break("taking a tuple")
            return error
        if not isinstance(error, Exception):
            self._interrupts += 1
        if (better := clearer_error(self.state, error, tuple_, key)) is not None:
            return better
        inside = failed is not None and tuple_entered(self, failed.event)
        add_note(self, error, f"tuple {self.seen + (not inside)}")
        if failed is not None and not isinstance(error, WindowlibError):  # for readers of logs
            error.add_note(f"the tuple: {brief(tuple_)}")
        if failed is not None and inside:
            Reference(self.state).finish(failed.event, tuple_, key, error)
        elif (s := self._find(key)) is not None and not self._size(s):
            self._refused(s)
        return error

    def _interrupted(self, error: BaseException, key: Any) -> bool:
        """Repair an insert that an interrupt stopped; false: the state is lost."""
        if not before_changes(error):
            return False
        s = self._find(key)
        if s is not None and not self._size(s):
            self._refused(s)
        return True

    def _stopped(self, error: BaseException, doing: str) -> None:
        """Note that a change raised; an interrupt leaves the window broken."""
        if not isinstance(error, Exception):
            self._break(doing)

    def _break(self, doing: str) -> None:
        """Refuse every use until a snapshot is restored.

        The window counts as one whose state is elsewhere: whatever looks at it asks `_sync` or
        `_host` first, so that this costs nothing while all is well.
        """
        self._broken = doing
        self._interrupts += 1
        self._set_in_arrays(True)

    def _refuse_broken(self) -> None:
        if self._broken is not None:
            raise broken_state(f"{type(self).__name__} '{self.spec}'", self._broken)

    def _discard_broken(self) -> None:
        """Discard a broken state before a snapshot replaces it."""
        self._broken = self._batches = None
        self._acting = self._guard.held = False
        self._set_in_arrays(False)
        self._asleep.clear()
        self.state.fill((), 0)

    def _refused(self, s: Subwindow) -> None:
        """Discard the empty subwindow of a tuple that was not inserted."""
        self._drop(s)

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        msg = f"a {name} cannot be pickled or copied. Use snapshot(), and restore() in a new one."
        raise CopyError(msg)

    def explain(self) -> str:
        """Specification, order of events, storage, engine and handlers, as text."""
        return explain(self.state)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything the window holds, as plain data with a version and the spec's fingerprint.

        Restoring it at any point and going on gives the same remaining events. With `arrays`, what
        batches have left in arrays comes out as arrays, which is faster and smaller.
        """
        with self.locked():
            return snapshot.take(self.state, arrays)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the window's contents by those of a snapshot of the same specification."""
        with self.locked():
            self._guard.check("restore(state)")
            broken = self._broken
            if broken is not None:
                self._discard_broken()
            try:
                snapshot.put(self.state, state)
            except BaseException as error:
                if broken is not None:
                    self._break(broken)
                self._stopped(error, "restoring a snapshot")
                raise
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
        if self._eviction is not None:
            assert set(self._eviction.lru) <= set(self._subs)
            stamps = [s.stamp for s in self._eviction.lru.values()]
            assert stamps == sorted(stamps), "LRU order is the order of last insertions"
            if isinstance(self.spec.forget, TupleCount):  # the only policy that counts tuples
                sizes = sum(map(self._size, self._eviction.lru.values()))
                assert self._eviction.total == sizes, (self._eviction.total, sizes)
        if self._lock is None:
            assert not self._arrivals
            assert not self.spec.times

    @property
    def now(self) -> float:
        """The window's time in seconds: where `advance` left it, or the action being run."""
        return self._now / 1e6

    @property
    def next_due(self) -> float | None:
        """When the window next has to act by itself, in seconds, or None."""
        due = self._earliest(self._due())
        return None if due is None else due / 1e6

    def locked(self) -> AbstractContextManager[object]:
        """Hold the window still while code outside handlers reads it; free without time policies.

        >>> from windowlib import SlidingWindow
        >>> window = SlidingWindow("sliding, time(10), count(1)")
        >>> with window.locked():
        ...     list(window.keys())
        []
        """
        return UNLOCKED if self._lock is None else self._lock

    def keys(self) -> KeysView[K]:
        """The partitions in storage order (order of creation)."""
        self._sync()
        return self._subs.keys()

    def __iter__(self) -> Iterator[K]:
        self._sync()
        return iter(self._subs)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def _find(self, key: object) -> Subwindow | None:
        if self._in_arrays:
            self._sync()
        s = self._subs.get(key)
        # NaN equals nothing, itself included; all NaN are one partition.
        return self._subs.get(one_key(key)) if s is None else s

    def __getitem__(self, key: Any) -> Tuples[T]:
        """The tuples of a partition, oldest first; a partition that is not there is empty."""
        s = self._find(key)
        if s is None:
            return Tuples(())
        if self._summarises():
            msg = (
                f"window[{key!r}]: a summarizer stands for the tuples, so they are not kept. "
                f"Use window.summary(key), or build the window without summarizer=."
            )
            raise AccessError(msg)
        return Tuples(s.data)

    def __len__(self) -> int:
        self._sync()
        return sum(map(self._size, self._subs.values()))

    def size(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples a partition holds, kept or summarised."""
        s = self._find(key)
        return 0 if s is None else self._size(s)

    def oldest(self, key: Any = DEFAULT_KEY) -> T:
        """The oldest tuple of a partition."""
        return self._end(key, 0)

    def newest(self, key: Any = DEFAULT_KEY) -> T:
        """The newest tuple of a partition."""
        return self._end(key, -1)

    def _end(self, key: Any, index: int) -> T:
        tuples = self[key]
        if not tuples:
            msg = f"partition {key!r} holds no tuple. Ask window.size(key) first."
            raise AccessError(msg)
        return tuples[index]

    def full(self, key: Any = DEFAULT_KEY) -> bool:
        """Whether a sliding partition has been full since it was created; never for tumbling."""
        return False

    def insertions(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples a partition has taken since it was created."""
        s = self._find(key)
        return 0 if s is None else self._arrived(s)

    @property
    def seen(self) -> int:
        """How many tuples the window has taken."""
        self._sync()
        live = [*self._subs.values(), *self._asleep.values()]
        return self._left + sum(map(self._arrived, live))

    def summary(self, key: Any = DEFAULT_KEY) -> Any:
        """The summarizer of a partition; `.value()` reads it."""
        msg = f"summary({key!r}): this window has no summarizer. Build it with summarizer=..."
        raise AccessError(msg)

    def arrow(self, key: Any = DEFAULT_KEY) -> Any:
        """The tuples of a partition as an Arrow batch; they must be rows with named columns.

        Columns have the types of the batches that came in, without dictionaries. Handlers with
        `content = "arrow"` get it without a copy where batches go in.
        """
        rows = [named_row(row) for row in self[key]]
        schema = None if self._batches is None else self._batches.plain_schema(self)
        return content_of(rows, schema)

    def column(self, name: str, key: Any = DEFAULT_KEY) -> Any:
        """The values of one column of a partition, as a numpy array.

        Without tuples it is empty, also where nothing has told the columns yet.
        """
        found = self.arrow(key)
        if not found.num_columns and not self.size(key):
            import numpy as np

            return np.empty(0)
        if name not in found.schema.names:
            raise AccessError(no_column(name, found.schema.names))
        return found.column(name).to_numpy(zero_copy_only=False)

    def __repr__(self) -> str:
        shown = f"{len(self.keys())} partitions" if self.spec.partitioned else f"{len(self)} tuples"
        return f"<{type(self).__name__} '{self.spec}', {shown}>"

    # -- where the state is: in the subwindows, or in arrays --------------------------------------

    def _host(self) -> WindowHandover:
        self._refuse_broken()
        if self._batches is None:
            self._batches = extension("handover")(self)
        return cast(WindowHandover, self._batches)  # an operator takes the batches of the others

    def _sync(self) -> None:
        """Move the state to the subwindows before they are read."""
        if self._in_arrays:
            self._refuse_broken()
            assert self._batches is not None
            try:
                self._batches.hand_back()
            except BaseException as error:
                self._batches.stopped(error, "moving its state out of arrays")
                raise

    def _set_in_arrays(self, in_arrays: bool) -> None:
        """Note where the state is; the guard makes inserts of tuples check it."""
        self._in_arrays = in_arrays
        self._guard.held = self._guard.held  # what stands in for the table depends on it
        if in_arrays:
            self._unbind()

    def _use_handlers(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        """Call other handlers from now on."""
        self._on = handlers
        self._before_flush = handlers.get("before_flush")
        self._after_flush = handlers.get("after_flush")
        self._reset_insert()

    # -- what each kind of window does its own way ------------------------------------------------

    def _size(self, s: Subwindow) -> int:
        """The logical size of a subwindow."""
        raise NotImplementedError

    def _arrived(self, s: Subwindow) -> int:
        """Tuples that tuple_entered this incarnation."""
        raise NotImplementedError

    def _due(self) -> int | None:
        """The next deadline in microseconds, or None."""
        raise NotImplementedError

    def _visible_due(self) -> int | None:
        """The next deadline with a visible effect in microseconds, or None."""
        return self._due()

    def _summarises(self) -> bool:
        """Whether summaries are kept in place of tuples."""
        raise NotImplementedError

    def _flush(self, s: Subwindow) -> None:
        """Process and empty a subwindow of a tumbling window."""
        raise NotImplementedError

    def _open(self, s: Subwindow) -> None:
        """Make the summarizer of a subwindow of a tumbling window."""
        raise NotImplementedError

    def _forget(self, before: int) -> None:
        """Evict, without an event, the tuples of a sliding window that came before a time."""
        raise NotImplementedError

    def _evict_one(self, s: Subwindow, tuple_: Any) -> None:
        """Evict a tuple from a sliding window, with its events."""
        raise NotImplementedError

    def _revive(self, key: Any) -> Subwindow:
        """The trigger state of a sliding window for a key that is not in storage."""
        raise NotImplementedError

    def _maxlen(self) -> int | None:
        """The size at which a subwindow drops its oldest tuple without an event; None: never."""
        return None


class WindowState:
    """The interface of a window for engines, snapshots, clocks, counters and hosts.

    A window shows its user inserts, handlers and tuples; everything else that the library has to
    know about it goes through `window.state`, and nothing reaches around it. What engines call for
    every tuple or firing is a property that gives the window's own method, so that the call costs
    nothing more.

    >>> from windowlib import TumblingWindow
    >>> state = TumblingWindow("tumbling, time(60)").state
    >>> state.now, state.tick, state.due()
    (0, 60000000, 60000000)
    """

    __slots__ = ("_window",)

    def __init__(self, window: Window[Any, Any]) -> None:
        self._window = window

    @property
    def window(self) -> Window[Any, Any]:
        """The window itself, as handlers get it."""
        return self._window

    # -- what it was made of ----------------------------------------------------------------------

    @property
    def spec(self) -> Spec:
        """The specification."""
        return self._window.spec

    @property
    def sliding(self) -> bool:
        """Whether it is a sliding window."""
        return self._window.kind == "sliding"

    @property
    def engine(self) -> str:
        """The engine that takes single tuples, by name."""
        return self._window._engine

    @property
    def lock(self) -> AbstractContextManager[object] | None:
        """The lock for inserts and timers; None: the window has no time policy."""
        return self._window._lock

    @property
    def guard(self) -> Guard:
        """The guard against changes while a handler runs."""
        return self._window._guard

    @property
    def open_key(self) -> bool:
        """Whether a key may be passed to `insert`, or none."""
        return self._window._open_key

    @property
    def getters(self) -> Mapping[Delta, Getter]:
        """The getter of each delta policy."""
        return self._window._getters

    @property
    def key_getter(self) -> Callable[[Any], Any] | None:
        """The getter of the key; None: there is no key, or the caller passes it."""
        return self._window._key_of

    @property
    def summarizer(self) -> Callable[[], Summarizer[Any]] | None:
        """The factory of summaries; None: there is none."""
        return self._window._factory

    @property
    def slot_plan(self) -> Plan | None:
        """The plan of ready-made summaries that live in the slots of subwindows."""
        return self._window._plan

    @property
    def slices(self) -> Slices | TimeSlices | None:
        """The slices that a sliding window keeps in place of tuples, if it does."""
        return self._window._slices

    @property
    def opens_early(self) -> bool:
        """Whether a summarizer is opened together with its partition."""
        return self._window._opens_early

    @property
    def storage(self) -> str:
        """The contents of a subwindow as text, for fingerprints and `explain`."""
        return self._window._keeps()

    @property
    def why_tuples(self) -> str:
        """Why a sliding window keeps tuples although it has summaries; "" if it does not."""
        return self._window._why_tuples()

    @property
    def legacy_storage(self) -> str | None:
        """The `storage` text of earlier releases that `folded` can convert, if any."""
        slices = self._window._slices
        known = isinstance(slices, TimeSlices)
        return f"tuples, read by {self._window._summary_text()}" if known else None

    def folded(self, part: Mapping[str, Any], tick: int | None) -> Mapping[str, Any]:
        """A partition of a snapshot, with its tuples as slices where the window keeps slices."""
        return self._window._folded(part, tick)

    def capacity(self) -> int | None:
        """The size at which a subwindow drops its oldest tuple without an event; None: never."""
        return self._window._maxlen()

    @property
    def calls(self) -> Mapping[str, Callable[..., None]]:
        """The functions in place of `insert` and `insert_many`, by name."""
        return vars(self._window)

    # -- handlers and consumer --------------------------------------------------------------------

    @property
    def handlers(self) -> Mapping[str, Callable[..., Any]]:
        """The handlers that are called, by name of the event."""
        return self._window._on

    @handlers.setter
    def handlers(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        self._window._use_handlers(handlers)

    @property
    def consumer(self) -> Consumer:
        """The consumer of the firings of whole batches."""
        return self._window._consumer

    def intercept(self, wrap: Callable[[Callable[[Any], None]], Callable[[Any], None]]) -> None:
        """Wrap the function that consumes the firings of a batch, if there is one."""
        fired = self._window._consumer.fired
        if fired is not None:
            self._window._consumer = replace(self._window._consumer, fired=wrap(fired))

    def insert_each(
        self, tuples: Iterator[Any], out: Sized, sample: Any, is_mark: Callable[[Any], bool]
    ) -> Generator[None, None, Any] | None:
        """Insert tuples as `sample`, and pause after one that has put something into `out`.

        Returns:
            A generator, whose value is the first that is no tuple, as `is_mark` says, or UNSET.
            None: there is no such loop; it is made once a tuple was inserted.
        """
        each = self._window._inserter(sample)
        return None if each is None else each(tuples, type(sample), is_mark, out)

    def insert_timed(self, sample: Any, times: Getter) -> InsertTimed | None:
        """A loop over tuples as `sample` that advances to the time of each, and inserts it.

        It takes an iterator, a function from a tuple to its time, and one that advances to a time
        where there is something to be done. None: there is no such loop.
        """
        return self._window._timed_inserter(sample, times)

    def fused_insert(
        self,
        sample: Any,
        other: Callable[[Any, int], None],
        failed: Callable[[BaseException, Any, Any], BaseException],
        reset: Callable[[], None],
    ) -> Bound | None:
        """An operator's `insert(row, port=0)`, fused with that of the window; None: impossible.

        Args:
            sample: a row that was inserted.
            other: takes the rows of other ports.
            failed: what it raises after an error.
            reset: told when another one is needed.

        Returns:
            The function, and one that leaves all rows to `other` from then on.
        """
        if not self._window._is_bound():
            return None
        self._window._on_reset = reset
        return generate_fused_insert(self, sample, other, failed)

    def fused_advance(
        self, host: Any, move: Callable[[int], None], reset: Callable[[], None]
    ) -> Bound | None:
        """A running operator's `advance(now)`, fused with that of its only timed window.

        Args:
            host: the running operator, whose time moves with ours.
            move: advances it, in microseconds, where there is something to be done.
            reset: told when another one is needed.

        Returns:
            The function, and one that leaves all calls to `move` from then on.
        """
        if not self._window._is_bound():
            return None
        self._window._on_reset = reset
        return generate_fused_advance(self, host, move)

    def reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`; None if empty, or never full."""
        return self._window._reader(use, partial)

    @property
    def failed(self) -> Callable[[BaseException, Any, Any], BaseException]:
        """The function that completes or undoes a failed insert, and returns what to raise."""
        return self._window._failed

    # -- time, in microseconds --------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The window's time in microseconds."""
        return self._window._now

    @now.setter
    def now(self, now: int) -> None:
        self._window._now = now

    @property
    def start(self) -> int:
        """The time at which the window's clock started."""
        return self._window._start

    @property
    def tick(self) -> int | None:
        """The next tick, for policies that tick."""
        return self._window._tick

    @tick.setter
    def tick(self, tick: int | None) -> None:
        self._window._tick = tick

    @property
    def acting(self) -> bool:
        """Whether handlers are running because the clock has moved."""
        return self._window._acting

    def set_clock(self, start: int, now: int, tick: int | None) -> None:
        """Set all three times, from a snapshot."""
        self._window._start, self._window._now, self._window._tick = start, now, tick

    def due(self) -> int | None:
        """The next deadline, or None."""
        return self._window._earliest(self._window._due())

    def visible_due(self) -> int | None:
        """The next deadline with a visible effect, or None."""
        return self._window._earliest(self._window._visible_due())

    def isolate_partition_ages(self) -> None:
        """Make eviction by age independent of other partitions.

        For hosts that split keys over several windows: whatever keys share one, a partition goes
        when it has been idle for longer than the age, and at that time.
        """
        if (evicting := self._window._eviction) is not None and evicting.by_age:
            evicting.alone = True

    def try_advance(self, now: int) -> bool:
        """Move the clock if nothing visible happens until then; whether it moved."""
        window = self._window
        if window._lock is None:
            return window._try_advance(now)
        with window._lock:
            return window._try_advance(now)

    def advance(self, now: int) -> None:
        """Move the clock; the lock must be held."""
        self._window._advance(now)

    @property
    def move(self) -> Callable[[int], None]:
        """Moves the clock, with all that is due until then."""
        return self._window._move

    @property
    def forget(self) -> Callable[[int], None]:
        """Evicts, without an event, the tuples of a sliding window that came before a time."""
        return self._window._forget

    def act(self, failures: list[Exception]) -> None:
        """Do what is due first; failures of handlers are collected."""
        self._window._act(failures)

    def rebase(self, start: int) -> None:
        """Restart the clock of a window that was never advanced, at another time."""
        self._window._rebase(start)

    @property
    def driver(self) -> object | None:
        """The clock that drives the window, if any does."""
        return vars(self._window).get("_clock")

    def drive(self, driver: object, due: Callable[[], None], **calls: Callable[..., None]) -> None:
        """Let a clock drive the window: its calls take the place of the window's own.

        Args:
            driver: the clock.
            due: told whenever the next deadline may have changed.
            calls: `insert`, `insert_many` and `punctuate`.
        """
        self._window._reset_insert()
        vars(self._window).update(calls, _clock=driver, _on_due=due)

    def release(self) -> None:
        """Return the window to manual control."""
        for name in ("_clock", "punctuate"):
            vars(self._window).pop(name, None)
        self._window._on_due = None
        self._window._reset_insert()

    # -- partitions -------------------------------------------------------------------------------

    @property
    def subwindows(self) -> dict[Any, Subwindow]:
        """The subwindows by key, in storage order; outdated while the state is in arrays."""
        return self._window._subs

    @property
    def asleep(self) -> dict[Any, Subwindow]:
        """Subwindows without tuples whose trigger state survives, by key."""
        return self._window._asleep

    @property
    def arrivals(self) -> Arrivals:
        """The tuples that time will evict."""
        return self._window._arrivals

    @property
    def eviction(self) -> Partitions | None:
        """Partition eviction, for windows that have it."""
        return self._window._eviction

    @property
    def left(self) -> int:
        """How many tuples partitions took along when they were dropped."""
        return self._window._left

    @left.setter
    def left(self, left: int) -> None:
        self._window._left = left

    @property
    def mixed(self) -> bool:
        """Whether tuples come as mappings and as other objects."""
        return self._window._mixed

    @mixed.setter
    def mixed(self, mixed: bool) -> None:
        self._window._mixed = mixed

    @property
    def restores(self) -> int:
        """How often the state was replaced by a snapshot."""
        return self._window._restores

    @property
    def interrupts(self) -> int:
        """How often an interrupt stopped a change of the window."""
        return self._window._interrupts

    def find(self, key: object) -> Subwindow | None:
        """The subwindow of a key, if there is one."""
        return self._window._find(key)

    @property
    def new(self) -> Callable[[Any], Subwindow]:
        """Puts the subwindow of a new key into storage, and returns it."""
        return self._window._new

    def opener(self) -> Callable[[Any], Subwindow]:
        """`new` as a function that is specialised for this window."""
        return self._window._opener()

    def make(self, key: Any) -> Subwindow:
        """An empty subwindow, which is not in storage."""
        return self._window._make(key)

    @property
    def revive(self) -> Callable[[Any], Subwindow]:
        """Returns the trigger state of a sliding window for a key that is not in storage."""
        return self._window._revive

    def checked_key(self, key: Any) -> Any:
        """A key as it is stored: all NaN are one; a key that is missing is refused."""
        return self._window._checked_key(key)

    @property
    def drop(self) -> Callable[[Subwindow], None]:
        """Removes a partition with all its state."""
        return self._window._drop

    def fill(
        self, parts: Sequence[Subwindow], left: int, stamps: Sequence[Sequence[int]] = ()
    ) -> None:
        """Replace the subwindows in storage.

        Args:
            parts: the subwindows.
            left: how many tuples others took along when they were dropped.
            stamps: for each of them, when its tuples came, where time evicts these.
        """
        window = self._window
        window._left = left
        window._subs.clear()
        for s in parts:
            s.born = next(window._born)
            window._subs[s.key] = s
        window._arrivals.fill(dict(zip(parts, stamps, strict=True)))
        window._oldest = UNKNOWN
        window._storage_replaced()

    def age(self) -> None:
        """Evict partitions by age, as the first step of an insert, a punctuation or a tick."""
        self._window._age()

    @property
    def size(self) -> Callable[[Subwindow], int]:
        """Returns the logical size of a subwindow."""
        return self._window._size

    @property
    def arrived(self) -> Callable[[Subwindow], int]:
        """Tells how many tuples tuple_entered this incarnation of a partition."""
        return self._window._arrived

    def was_full(self, s: Subwindow) -> bool:
        """Whether `on_initial_full` was called for a subwindow."""
        return self._window._was_full(s)

    @property
    def flush(self) -> Callable[[Subwindow], None]:
        """Processes and empties a subwindow of a tumbling window."""
        return self._window._flush

    def evict_one(self, s: Subwindow, tuple_: Any) -> None:
        """Evict a tuple from a sliding window, with its events."""
        self._window._evict_one(s, tuple_)

    @property
    def open_summary(self) -> Callable[[Subwindow], None]:
        """Makes the summarizer of a subwindow of a tumbling window."""
        return self._window._open

    def save_summary(self, s: Subwindow) -> Any:
        """The summary of a subwindow as plain data."""
        return self._window._save_summary(s)

    def load_summary(self, s: Subwindow, saved: Any) -> None:
        """Restore what `save_summary` returned."""
        self._window._load_summary(s, saved)

    def check(self) -> None:
        """Walk all invariants; for tests."""
        self._window._check()

    # -- batches ----------------------------------------------------------------------------------

    @property
    def in_arrays(self) -> bool:
        """Whether the state is in arrays, so that the subwindows are outdated."""
        return self._window._in_arrays

    @property
    def batches(self) -> Handover | None:
        """The hand-over; None before the first batch."""
        return self._window._batches

    @batches.setter
    def batches(self, batches: Handover) -> None:
        self._window._batches = batches

    def handover(self) -> WindowHandover:
        """The hand-over, made if there is none."""
        return self._window._host()

    def set_in_arrays(self, in_arrays: bool) -> None:
        """Note whether the state is in arrays; the guard makes inserts of tuples check it."""
        self._window._set_in_arrays(in_arrays)

    def sync(self) -> None:
        """Move the state to the subwindows."""
        self._window._sync()

    def stopped(self, error: BaseException, doing: str) -> None:
        """Note that a change raised; an interrupt leaves the window broken."""
        self._window._stopped(error, doing)
