"""Windows of event time: filled in whatever order, closed by a watermark, in the order of ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from windowlib.attributes import brief, one_key
from windowlib.durations import MICROSECOND, Instant, Number, length
from windowlib.errors import (
    AccessError,
    DeltaOrderError,
    LateWarning,
    PartitionError,
    PolicyError,
)
from windowlib.event_time.axis import DAY, EPOCH, Axis, timestamp_like
from windowlib.event_time.slack import SlackState
from windowlib.event_time.watermark import Watermark, source_getter
from windowlib.extensions import extension
from windowlib.spec.specification import KEY, Session, Sliding, Spec, Tumbling
from windowlib.spec.spl import parse
from windowlib.summaries.summarizers import SummarizerArgument
from windowlib.window import snapshot
from windowlib.window.arrow import Times, record_batches
from windowlib.window.consumer import Consumer
from windowlib.window.container import Engine, Window
from windowlib.window.contents import store_of
from windowlib.window.engine.rules import key_default, pair, reject_key
from windowlib.window.events import UNHEARD, WindowEvents
from windowlib.window.failure import add_note, raise_first
from windowlib.window.open_windows import EventTimeConfig, Firing, IdleKeys, OpenWindows
from windowlib.window.subwindow import DEFAULT_KEY, NO_KEY, Tuples

T = TypeVar("T")
K = TypeVar("K")
U = TypeVar("U")

FIRING = {"sliding": ("on_trigger",), "tumbling": ("before_flush", "after_flush")}


class EventTimeWindow(Window[T, K]):
    """A container of the windows of event time: `Tumbling`, `Sliding`, `Session`, `Landmark`.

    A row goes to its windows, in whatever order rows come. When the watermark reaches the end of a
    window, it fires, in the order of ends, and for equal ends in the order in which the first rows
    of keys came. Tumbling windows and sessions call `before_flush` and `after_flush`, the others
    `on_trigger`, once for each key that has rows. In there `window[key]`, `window.summary(key)` and
    `window.bounds(key)` are of the window that fires; rows are in the order of event time.

    Outside of that, `window[key]` holds the rows of all open windows.

    Args:
        spec: a specification with an `Event` policy, or its SPL text.
        events: your handlers.
        summarizer: a `Summarizer` class, or ready-made ones (`windowlib.summaries.summarizers`).
        start: where the window's clock starts, for early results.
        engine: no effect; there is only one engine for event time.
        consumer: takes the firings of whole batches, for operators.

    >>> from windowlib import Event, Tumbling, WindowEvents
    >>> class Show(WindowEvents):
    ...     def before_flush(self, window, key):
    ...         print(window.bounds(key), list(window[key]))
    >>> window = EventTimeWindow(Tumbling(Event(0, 10), watermark=5), events=Show())
    >>> window.insert_many([(3,), (12,), (7,), (15,)])
    (0, 10) [(3,), (7,)]
    >>> window.finish()
    (10, 20) [(12,), (15,)]
    """

    only_handlers = False
    event_time: ClassVar[bool] = True
    on_progress: Callable[[EventTimeWindow[T, K], Any, list[Exception]], None] | None = None
    """Called after each row, with its key, and after a host has moved the watermark."""
    spec_type: ClassVar[Any] = Tumbling | Sliding

    def __init__(
        self,
        spec: Spec | str,
        *,
        events: WindowEvents[T, K] | None = None,
        summarizer: SummarizerArgument | None = None,
        start: Instant = 0,
        engine: Engine = "generated",
        consumer: Consumer | None = None,
    ) -> None:
        known = parse(spec) if isinstance(spec, str) else spec
        if not isinstance(known, Tumbling | Sliding) or not known.event_time:
            msg = (
                f"EventTimeWindow({known!r}): not a window of event time. Pass a specification "
                f'with an Event policy, as Tumbling(Event("ts", "1h")).'
            )
            raise PolicyError(msg)
        self.kind = "sliding" if isinstance(known, Sliding) else "tumbling"
        super().__init__(
            known,
            events=events,
            summarizer=summarizer,
            start=start,
            engine=engine,
            open_key=False,
            consumer=consumer,
        )
        self._refuse_handlers()
        event = known.evict.event
        assert event is not None
        self._axis = Axis(event.attribute, repr(event), known.amounts)
        shown = "" if self._factory is None else self._summary_text()
        merges = isinstance(known, Sliding | Session)
        self._config = EventTimeConfig(known, self._axis, store_of(self._factory, shown, merges))
        self._store = self._config.store
        self._source = source_getter(self._config.watermark)
        watermark = self._config.watermark
        self._watermark_per_key = watermark.scope == "key"
        self._idle: IdleKeys | None = None
        if self._watermark_per_key and watermark.idle is not None:
            self._idle = IdleKeys(watermark.idle, self._config)
        self._windows: dict[Any, OpenWindows] = {}
        self._arrivals_seen = 0
        self.event_time_state = EventTimeState(self)
        self._taken = 0
        self.late_rows = 0
        """How many rows came late so far, dropped or not."""
        self._sample: Any = None  # a timestamp, for the form that bounds have
        self._firing: Firing | None = None
        self._failures: list[Exception] = []
        self._fired_keys: dict[Any, None] = {}  # since the last `closed_keys`
        self._follows = False  # whether a host tells the watermark
        self._period = None if known.early is None else known.early // MICROSECOND
        if self._period is not None:
            self._tick = self._start + self._period

    def _refuse_handlers(self) -> None:
        for name in UNHEARD:
            if name in self._on:
                msg = (
                    f"{type(self.events).__name__}.{name}: windows of event time have no such "
                    f"event, because rows leave with their windows. Use "
                    f"{'on_trigger' if self.kind == 'sliding' else 'before_flush'}."
                )
                raise PolicyError(msg)

    def _short_runs(self) -> bool:
        return False

    # -- input ----------------------------------------------------------------------------------

    def insert(self, tuple_: T, /, key: Any = NO_KEY) -> None:
        """Take one tuple; windows that its timestamp closes fire in here.

        Args:
            tuple_: any object; the timestamp and the key are read from it.
            key: the partition, for windows made with `by=KEY`.
        """
        if key is NO_KEY:
            key = key_default(self.state)
        elif self.spec.by is not KEY:
            reject_key(self.state, f"insert(tuple, key={key!r})")
        with self.locked():
            self._guard.check("insert(tuple)")
            self._sync()
            self._insert_row(tuple_, key)

    def insert_many(self, tuples: Iterable[T], keys: Iterable[Any] | None = None) -> None:
        """Take tuples in order: the same as `insert` for each.

        Args:
            tuples: any iterable.
            keys: one key per tuple, for windows that are given keys at `insert`.
        """
        with self.locked():
            self._guard.check("insert_many(tuples)")
            self._sync()
            for tuple_, key in pair(self.state, tuples, keys):
                self._insert_row(tuple_, key)

    def insert_batch(self, batch: Any, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order: `insert` for each, only faster.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`, or a DataFrame of pandas, polars or
                another library with Arrow streams; rows count as dicts.
            times: the column that says when a row arrives, as seconds or timestamps: `advance` to
                that time comes before its `insert`. Without it all rows arrive now.
        """
        self._guard.check("insert_batch(batch)")
        when = None if times is None else Times(times)
        for part in record_batches(batch, "insert_batch", times):
            if when is None:
                self._host().insert(part)
                continue
            for row in part.to_pylist():
                self.advance(timedelta(microseconds=when(row)))
                self.insert(row)

    def _host(self) -> Any:
        self._refuse_broken()
        if self._batches is None:
            self._batches = extension("event_time_handover")(self)
        return self._batches

    def _insert_row(self, row: Any, key: Any) -> None:
        """Insert a row, or count it as late."""
        try:
            self._assign(row, key)
        except BaseException as error:
            self._stopped(error, "taking a tuple")
            raise

    def _assign(self, row: Any, key: Any) -> None:
        """Add a row to its windows, and fire the windows that it closes."""
        try:
            if self._key_of is not None:
                key = self._key_of(row)
            if key is NO_KEY or key != key or type(key) is tuple:
                key = self._checked_key(key)
            value = self._axis.get(row)
            ts = self._axis.place(value, row)
            source = None if self._source is None else one_key(self._source(row))
            windows = self._windows_of(key)
            if self._idle is not None:
                self._idle.admit(key, windows, self._fire)
            late = windows.late(ts, key)
        except Exception as error:
            raise self._clearer_error(error, key) from error.__cause__
        if self._sample is None:
            self._sample = self._bound_like(value)
        if late:
            self._handle_late(row, key, windows, ts)
        else:
            self._admit(windows, key, ts, row)
        if not self._follows:
            watermark = windows.progress.observe(ts, source)
            if windows.next is None or watermark >= windows.next:
                windows.reach(watermark, self._fire)
            if self._idle is not None:
                self._idle.observe(key, windows, self._windows, self._fire)
        if self.on_progress is not None:
            self.on_progress(self, key, self._failures)
        if self._failures:
            self._raise()

    def _clearer_error(self, error: Exception, key: Any) -> Exception:
        if isinstance(error, TypeError) and "unhashable" in str(error):
            msg = (
                f"insert(key={key!r}): a {type(key).__name__} cannot be a partition key. "
                f"Use a plain value or a tuple of them."
            )
            return PartitionError(msg)
        return error

    def _windows_of(self, key: Any) -> OpenWindows:
        """The open windows of a key, or of all keys."""
        which = key if self._watermark_per_key else None
        windows = self._windows.get(which)
        if windows is None:
            hash(key)
            windows = self._windows[which] = self._config.windows_type(self._config)
        return windows

    def _admit(self, windows: OpenWindows, key: Any, ts: Number, row: Any) -> None:
        """Add a row that is not late, unless a handler raises before it is in."""
        try:
            if handler := self._on.get("before_insert"):
                self._call(handler, row, key)
            windows.add(key, ts, row, self._number(), self._fire)
        except Exception as error:
            add_note(self, error, f"tuple {self.seen + 1}")
            raise self._clearer_error(error, key) from error.__cause__
        self._taken += 1
        if handler := self._on.get("after_insert"):
            try:
                self._call(handler, row, key)
            except Exception as error:
                add_note(self, error, f"tuple {self.seen}")
                self._failures.append(error)

    def _number(self) -> int:
        """The number of the next arrival, counted up."""
        self._arrivals_seen += 1
        return self._arrivals_seen - 1

    @property
    def _slack_hint(self) -> str:
        """A watermark to recommend in messages, in the unit of the timestamps."""
        return 'watermark="1h"' if self._axis.timed else "watermark=10"

    def _handle_late(self, row: Any, key: Any, windows: OpenWindows, ts: Number) -> None:
        """Count a late row, and treat it as the specification says."""
        if self.spec.late == "error":
            at = self._timestamp(windows.progress.current)
            partition = "" if not self._watermark_per_key else f" for {self.spec.by!r}={key!r}"
            msg = (
                f"{self._axis.owner}: the row {brief(row)} is late, the stream{partition} is "
                f"complete up to {at}. Allow more slack, as {self._slack_hint}, or say "
                f'late="port" or late="drop".'
            )
            raise DeltaOrderError(msg)
        since = self._config.since
        if self.event_time_state.warns and (since is None or ts >= since):
            msg = (
                f"{self.spec!r}: the row {brief(row)} came late and was dropped, because nothing "
                f'says how long to wait. Say {self._slack_hint}, or late="drop" if that is right.'
            )
            warnings.warn(msg, LateWarning, stacklevel=4)
        self.late_rows += 1
        if self.spec.late == "port":
            try:
                self._call(self.events.on_late, row, key)
            except Exception as error:
                add_note(self, error, f"late tuple {self.late_rows}")
                self._failures.append(error)

    def _raise(self) -> None:
        failures, self._failures = self._failures, []
        raise_first(failures)

    # -- a watermark from a host ------------------------------------------------------------------

    @property
    def follows(self) -> bool:
        """Whether a host sets the watermark, so that rows do not move it."""
        return self._follows

    def follow(self) -> None:
        """Let a host set the watermark with `reach`, in place of the slack of the specification.

        Only before the first row. A host that splits a stream knows a watermark of all its parts.

        >>> from windowlib import Event, Tumbling
        >>> window = EventTimeWindow(Tumbling(Event(0, 10)))
        >>> window.follow()
        >>> window.insert_many([(3,), (25,), (7,)])
        >>> window.reach(10)
        >>> window.watermark, len(window), window.closes()
        (10, 1, 30)
        """
        self._follows, self._watermark_per_key, self._source, self._idle = True, False, None, None
        self._config.watermark = Watermark()

    def reach(self, watermark: Number) -> None:
        """Raise the watermark: windows that end at it or before it fire.

        Args:
            watermark: a place on the axis: a number, or microseconds for datetimes.
        """
        with self.locked(), self._atomic("taking a watermark"):
            self._guard.check(f"reach({watermark!r})")
            windows = self._windows_of(None)
            if windows.progress.current is not None and watermark <= windows.progress.current:
                return
            if not self._in_arrays or not self._host().reach(watermark):
                windows.progress.current = watermark
                windows.reach(watermark, self._fire)
                if self.on_progress is not None:
                    self.on_progress(self, None, self._failures)
                self._raise()

    @contextmanager
    def _atomic(self, doing: str) -> Iterator[None]:
        """A context in which an interrupt leaves the window broken."""
        self._refuse_broken()
        try:
            yield
        except BaseException as error:
            self._stopped(error, doing)
            raise

    @property
    def watermark_per_key(self) -> bool:
        """Whether each key has a watermark of its own."""
        return self._watermark_per_key

    def reached(self, key: Any) -> Number | None:
        """The watermark of a key, or of the stream, on the axis; None before any row."""
        windows = self._windows.get(one_key(key) if self._watermark_per_key else None)
        return None if windows is None else windows.progress.current

    def closed_keys(self) -> list[K]:
        """The keys that have fired since the last call and have no open window left."""
        fired, self._fired_keys = self._fired_keys, {}
        return [key for key in fired if key not in self]

    def absorb(self, parts: Sequence[Any], schema: Any) -> None:
        """Merge in rows that the columnar engines of other such windows have folded.

        Args:
            parts: what those engines gave.
            schema: the columns of the rows.
        """
        self._host().absorb(parts, schema)

    def closes(self) -> Number | None:
        """The least watermark that may close or drop a window; None: there is none with rows."""
        if self._in_arrays:
            return self._host().closes()
        found = [at for windows in self._windows.values() if (at := windows.closes()) is not None]
        return min(found, default=None)

    def finish(self) -> None:
        """Fire all open windows, because the input has ended."""
        with self.locked(), self._atomic("closing its windows"):
            if self._in_arrays:
                self._host().finish()
            for windows in self._windows.values():
                windows.finish(self._fire)
            self._raise()

    # -- firings --------------------------------------------------------------------------------

    def _fire(self, firing: Firing) -> None:
        """Call the handlers for a window; failures are collected."""
        before, self._firing = self._firing, firing
        if self.on_progress is not None:
            self._fired_keys[firing.key] = None
        try:
            for name in FIRING[self.kind]:
                handler = self._on.get(name)
                if handler is not None:
                    if name == "after_flush" and self._factory is None:
                        self._firing = firing._replace(contents=())
                    self._call(handler, firing.key)
        except Exception as error:
            add_note(self, error, f"window up to {self._timestamp(firing.end)}")
            self._failures.append(error)
        finally:
            self._firing = before

    def _call(self, handler: Callable[..., None], *args: Any) -> None:
        """Call a handler, with the window locked against changes."""
        self._guard.held = True
        try:
            handler(self, *args)
        finally:
            self._guard.held = False

    @property
    def has_datetimes(self) -> bool | None:
        """Whether its timestamps are datetimes, dates or durations; None before the first row."""
        return self._axis.timed

    def _bound_like(self, value: Any) -> Any:
        """A timestamp as bounds have it: a datetime for a date, unless windows are whole days."""
        day = type(value) is date
        return EPOCH if day and not self.event_time_state.whole_days else value

    def _timestamp(self, at: Number | None) -> Any:
        """A place on the axis as a timestamp."""
        return None if at is None else timestamp_like(at, self._sample)

    def bounds(self, key: Any = DEFAULT_KEY) -> tuple[Any, Any]:
        """Start and end of the window that fires, as timestamps; for handlers."""
        firing = self._current("bounds", key)
        return self._timestamp(firing.start), self._timestamp(firing.end)

    def revision(self, key: Any = DEFAULT_KEY) -> int:
        """How often the window that fires was sent before; for handlers."""
        return self._current("revision", key).revision

    def retracts(self, key: Any = DEFAULT_KEY) -> bool:
        """Whether the window that fires takes back what was sent before; for handlers."""
        return self._current("retracts", key).retracts

    # -- for hosts that keep the rows of windows elsewhere ----------------------------------------

    def firing(self, key: Any = DEFAULT_KEY) -> tuple[Any, Any, int, bool, Any]:
        """The bounds of the window that fires, how often it was sent, and a sample timestamp.

        Start and end are places on the axis; the sample has the type of the timestamps.
        """
        found = self._current("firing", key)
        return found.start, found.end, found.revision, found.retracts, self._sample

    def slices(self, key: Any = DEFAULT_KEY) -> list[tuple[int, int]]:
        """The slices of the window that fires: the number of the first arrival, and the size."""
        contents = self._current("slices", key).contents
        return [(each.born, self._store.size([each])) for each in contents]

    def settled(self, key: Any = DEFAULT_KEY) -> int:
        """How many of the first rows of the window that fires begin every later window, too."""
        return self._current("settled", key).settled

    def rows_from(self, start: int, key: Any = DEFAULT_KEY) -> list[Any]:
        """The rows of the window that fires from number `start` on, in order of event time."""
        return self._store.tuples(self._current("rows_from", key).contents, start)

    def rows_behind_watermark(
        self, start: Mapping[int, int], key: Any = DEFAULT_KEY
    ) -> dict[int, list[Any]]:
        """The rows of open windows or sessions before the watermark, in order of event time.

        Args:
            start: how many to leave out of each slice, by the number of its first arrival.
            key: a partition.
        """
        self._sync()
        windows = self._windows.get(key if self._watermark_per_key else None)
        if windows is None or (reached := windows.progress.current) is None:
            return {}
        return {
            each.born: self._store.before(each, reached, start.get(each.born, 0))
            for each in windows.growing_contents(key)
        }

    @contextmanager
    def replayed(self, key: Any, fired: Sequence[Any], rows: Iterable[Any]) -> Iterator[None]:
        """A context in which handlers see a window that another such container has fired.

        Args:
            key: its key.
            fired: what `firing` returned there.
            rows: its rows, in order of event time.
        """
        start, end, revision, retracts, self._sample = fired
        content = self._store.new(0)
        for row in rows:
            self._store.add(content, 0, row)
        before = self._firing
        self._firing = Firing(one_key(key), [content], start, end, revision, retracts)
        try:
            yield
        finally:
            self._firing = before

    def all_rows(self) -> Iterator[Any]:
        """All rows, including those of closed windows that may be corrected."""
        self._sync()
        for windows in self._windows.values():
            for content in windows.all_contents():
                yield from self._store.tuples([content])

    def replace_rows(self, change: Callable[[Any], Any]) -> None:
        """Replace every row by what a function makes of it."""
        for windows in self._windows.values():
            for content in windows.all_contents():
                content.rows = [change(row) for row in content.rows]

    def _current(self, call: str, key: Any) -> Firing:
        firing = self._firing
        if firing is None or (firing.key != key and firing.key is not one_key(key)):
            msg = (
                f"{call}({key!r}): no window of this key is being processed. Ask in before_flush, "
                f"after_flush or on_trigger, for the key that they get."
            )
            raise AccessError(msg)
        return firing

    # -- access ---------------------------------------------------------------------------------

    @property
    def watermark(self) -> Any:
        """The watermark as a timestamp; None before any row.

        With a watermark for each key, the least of them.
        """
        self._sync()
        reached: list[Any] = [windows.progress.current for windows in self._windows.values()]
        return self._timestamp(min(reached)) if reached else None

    def _contents(self, key: Any) -> Any:
        """The contents of a key in the window that fires, or else in all open windows."""
        firing = self._firing
        key = one_key(key)
        if firing is not None and (firing.key is key or firing.key == key):
            return firing.contents
        self._sync()
        windows = self._windows.get(key if self._watermark_per_key else None)
        return () if windows is None else windows.contents(key)

    def keys(self) -> Any:
        """The partitions with rows in open windows, in order of their first arrival."""
        self._sync()
        firsts: dict[Any, int] = {}
        for windows in self._windows.values():
            firsts |= windows.first_arrivals()
        return dict.fromkeys(sorted(firsts, key=firsts.__getitem__)).keys()

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return bool(self._contents(key))

    def __getitem__(self, key: Any) -> Tuples[T]:
        """The tuples of the window that fires, or else of all open windows, in order of time."""
        if self._summarises():
            msg = (
                f"window[{key!r}]: a summarizer stands for the tuples, so they are not kept. "
                f"Use window.summary(key), or build the window without summarizer=."
            )
            raise AccessError(msg)
        return Tuples(self._store.tuples(self._contents(key)))

    def __len__(self) -> int:
        return sum(self.size(key) for key in self.keys())

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions open windows have."""
        if self._in_arrays:
            return self._host().held()  # type: ignore[no-any-return]
        return len(self), len(self.keys())

    def notes(self) -> list[tuple[str, str]]:
        """The watermark and the treatment of late rows, for `explain`."""
        fates = {
            "drop": "dropped, and counted",
            "port": "to the output late",
            "error": "refused",
            "update": "correct what was sent",
        }
        late = fates[self.spec.late or "drop"]
        return [("watermark", self._config.watermark.describe()), ("late rows", late)]

    def size(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples the window that fires has, or else all open windows."""
        return self._store.size(self._contents(key))

    def full(self, key: Any = DEFAULT_KEY) -> bool:
        """Always: a window that fires is whole."""
        return True

    def insertions(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples of a partition there are in open windows."""
        return self.size(key)

    @property
    def seen(self) -> int:
        """How many tuples the window has taken; late ones are not."""
        self._refuse_broken()
        return self._taken

    def summary(self, key: Any = DEFAULT_KEY) -> Any:
        """A summary of the tuples; `.value()` reads it."""
        if self._factory is None:
            return super().summary(key)
        return Summary(self._store.value, key, list(self._contents(key)))

    def _summarises(self) -> bool:
        return self._factory is not None

    def _reader(self, use: Callable[..., U], partial: bool) -> Callable[[Any], U | None]:
        """A function from a key to `use(key, size, summary)`; None for an empty partition."""
        store = self._store

        def read(key: Any) -> U | None:
            contents = self._contents(key)
            return use(key, store.size(contents), store.value(key, contents)) if contents else None

        return read

    def _keeps(self) -> str:
        return self._store.text

    # -- the clock, for early results -----------------------------------------------------------

    def _due(self) -> int | None:
        changed = self._period is not None and any(x.changed for x in self._windows.values())
        return self._tick if changed else None

    def _advance(self, now: int) -> None:
        super()._advance(now)
        self._skip_ticks(now)

    def _advance_if_nothing_due(self, now: int) -> bool:
        moved = super()._advance_if_nothing_due(now)
        if moved:
            self._skip_ticks(now)
        return moved

    def _skip_ticks(self, now: int) -> None:
        """Skip the ticks that have passed without a change."""
        if self._period is not None and self._tick is not None and self._tick <= now:
            self._tick += ((now - self._tick) // self._period + 1) * self._period

    def _act(self, failures: list[Exception]) -> None:
        assert self._tick is not None
        assert self._period is not None
        self._tick += self._period
        for windows in self._windows.values():
            windows.fire_early(self._fire)
        failures += self._failures
        self._failures = []

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything the window holds, as plain data with a version and the spec's fingerprint."""
        with self.locked():
            self._sync()
            entries = [[k, x.progress.snapshot(), x.save()] for k, x in self._windows.items()]
            form = None if self._axis.form is None else self._axis.form.__name__
            state: dict[str, Any] = {
                "lanes": entries,
                "next": self._arrivals_seen,
                "taken": self._taken,
                "late": self.late_rows,
                "axis": [self._axis.timed, form, self._sample],
            }
            if self._idle is not None:
                state["top"] = self._idle.top
            head = snapshot.head(self.state)
            return {**head, "event_time": state, "events": self.events.snapshot()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the window's contents by those of a snapshot of the same specification."""
        with self.locked():
            self._guard.check("restore(state)")
            if self._broken is None:
                self._sync()
            state = snapshot.checked(self.state, state)
            try:
                self._put(state)
            except BaseException as error:
                self._stopped(error, "restoring a snapshot")
                raise
            if self._broken is not None:
                self._discard_broken()
            self._restores += 1
        if self._on_due is not None:
            self._on_due()

    def _put(self, state: Mapping[str, Any]) -> None:
        try:
            self._load(state)
        except snapshot.DAMAGE as error:
            raise snapshot.damaged(error) from error
        if "events" in state:
            self.events.restore(state["events"])
        self._start, self._now, self._tick = state["start"], state["now"], state["tick"]

    def regrouped(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[Any], bool], first: bool
    ) -> dict[str, Any]:  # fmt: skip
        """The "event_time" of several snapshots, merged and restricted to some keys.

        Where all keys have one watermark, it is the greatest of the snapshots.

        Args:
            states: "event_time" of snapshots for different keys.
            mine: whether to keep a key.
            first: whether this part gets the counts of rows.
        """
        entries = [entry for state in states for entry in state["lanes"]]
        if any(key is not None for key, _, _ in entries) or self._watermark_per_key:
            entries = [entry for entry in entries if mine(entry[0])]
        elif entries:
            kind = type(self._config.windows_type(self._config))
            marks = [progress for _, progress, _ in entries if progress[0] is not None]
            progress = max(marks, key=lambda each: each[0], default=entries[0][1])
            entries = [[None, progress, kind.regrouped([saved for *_, saved in entries], mine)]]
        known = [state for state in states if state["axis"][2] is not None]
        return {
            **states[0],
            "lanes": entries,
            "next": max(state["next"] for state in states),
            "taken": sum(state["taken"] for state in states) if first else 0,
            "late": sum(state["late"] for state in states) if first else 0,
            "axis": (known or states)[0]["axis"],
        }

    def _discard_broken(self) -> None:
        super()._discard_broken()
        self._failures, self._firing = [], None

    def _load(self, state: Mapping[str, Any]) -> None:
        saved = state["event_time"]
        timed, form, sample = saved["axis"]
        before = self._axis.timed, self._axis.form
        self._axis.timed, self._axis.form = timed, FORMS[form]
        try:
            opened: dict[Any, OpenWindows] = {}
            for key, progress, content in saved["lanes"]:
                windows = opened[one_key(key)] = self._config.windows_type(self._config)
                windows.progress.restore(progress)
                windows.load(content)
            found = saved["next"], saved["taken"], saved["late"]
        except Exception:
            self._axis.timed, self._axis.form = before
            raise
        self._arrivals_seen, self._taken, self.late_rows = found
        self._windows, self._sample = opened, sample
        if self._idle is not None:
            self._idle.restored(saved["top"], opened)


FORMS: dict[str | None, type | None] = {None: None, "float": float, "Decimal": Decimal}


class EventTimeState:
    """The interface of a window of event time for its columnar engine."""

    __slots__ = ("_window",)

    def __init__(self, window: EventTimeWindow[Any, Any]) -> None:
        self._window = window

    @property
    def config(self) -> EventTimeConfig:
        """What the specification fixes: bounds, store and options."""
        return self._window._config

    @property
    def axis(self) -> Axis:
        """The reader of timestamps."""
        return self._window._axis

    @property
    def whole_days(self) -> bool:
        """Whether windows start and end at midnight."""
        amounts = [length(amount) for _, amount in self._window.spec.amounts]
        return all(amount % DAY == 0 for amount in amounts)

    def open_windows(self) -> Any:
        """The open windows, where all keys have one watermark."""
        return self._window._windows_of(None)

    def slack(self) -> SlackState:
        """The state of the only slack."""
        return self.open_windows().progress.source(None).state  # type: ignore[no-any-return]

    @property
    def drops_quietly(self) -> bool:
        """Whether a late row is just counted."""
        spec = self._window.spec
        return spec.late in (None, "drop") and not self.warns

    @property
    def warns(self) -> bool:
        """Whether the next late row causes a `LateWarning`."""
        window = self._window
        unsaid = window.spec.late is None and window.spec.watermark is None
        return unsaid and not window.late_rows and not window.follows

    @property
    def follows(self) -> bool:
        """Whether a host sets the watermark."""
        return self._window.follows

    @property
    def sample(self) -> Any:
        """A timestamp that has the type of bounds; None before the first row."""
        return self._window._sample

    @property
    def next_number(self) -> int:
        """The number of the next arrival."""
        return self._window._arrivals_seen

    def absorb(self, contents: Iterable[tuple[Any, Any, Any, Any]], sample: Any) -> None:
        """Merge in rows that were folded elsewhere, where nothing moves the watermark.

        Args:
            contents: key, last and first window, and content of each.
            sample: one of their timestamps.
        """
        windows = self.open_windows()
        taken = late = 0
        for key, last, first, content in contents:
            if windows.absorb(key, last, first, content):
                taken += content.n
            else:
                late += content.n
        self.count(taken, late, sample)

    def count(self, taken: int, late: int, sample: Any) -> None:
        """Count rows that were taken, and rows that were late."""
        window = self._window
        window._arrivals_seen += taken + late
        window._taken += taken
        window.late_rows += late
        if window._sample is None:
            window._sample = window._bound_like(sample)


class Summary:
    """The summary of the rows of a window, computed when it is read."""

    __slots__ = ("_contents", "_key", "_read")

    def __init__(self, read: Callable[..., Any], key: Any, contents: list[Any]) -> None:
        self._read, self._key, self._contents = read, key, contents

    def value(self) -> Any:
        """The summary."""
        return self._read(self._key, self._contents)
