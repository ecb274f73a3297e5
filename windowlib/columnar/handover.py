"""The hand-over between the event engine and arrays: where a window's state is, and how it moves.

A window's state is in its subwindows, where the event engine works, or in the arrays of a columnar
engine. It moves to the arrays with a batch that they can compute exactly, and back with the first
call that needs the event engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import checked_count, need
from windowlib.columnar.arrays.physical import plain_type
from windowlib.columnar.arrays.stamps import HUGE, Stamps, read, spans_between_ticks
from windowlib.columnar.engines.engine import Engine
from windowlib.columnar.engines.event_sessions import event_time_engine
from windowlib.columnar.engines.event_time import EventTimeEngine, SlicePartials
from windowlib.columnar.engines.sliding import AgingEngine
from windowlib.columnar.firings import FIRING, Firings
from windowlib.columnar.planner import engine_for, handlers_of
from windowlib.columnar.primitives import NONE, Places
from windowlib.errors import AccessError, StateVersionError
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import Tumbling
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window import snapshot
from windowlib.window.arrow import Times, rows_of
from windowlib.window.consumer import Consumer, Decline, FiringFailed
from windowlib.window.failure import raise_first
from windowlib.window.sliding import SlidingWindow

if TYPE_CHECKING:
    from windowlib.window.container import Window
    from windowlib.window.event_time import EventTimeWindow

MIN_ROWS = 256
"""The least number of rows for which the state is moved to arrays."""
SLICE_ROWS = 1 << 16
"""How many rows an engine takes at once: their columns fit the cache."""
MANY_KEYS = 1 << 17
"""Up to so many keys are kept without asking whether they still have partitions."""
FIRST_SLICE_ROWS, UNKEYED_SLICE_ROWS = 1 << 14, 1 << 11
"""Rows of the first slice of a new engine, with keys and without."""
MAX_PAUSE = 64
"""The most batches that go to the event engine before columns are tried again."""

MIN_ROWS_PER_TICK = 300
"""The least number of rows between two ticks for which arrays pay."""

MAX_FIRINGS = 1 << 20
"""The most firings that one step computes."""

Parts = Sequence[dict[str, Any]]
"""The state of partitions in the form of snapshots."""


class ColumnarHandover:
    """Base of hand-overs: where the state of some windows is, and how it moves.

    A subclass takes the batches of a window, or of an operator with several windows: it makes the
    engine, and passes rows to it.

    Args:
        windows: the windows whose state moves together.
    """

    def __init__(self, *windows: Window[Any, Any]) -> None:
        self.windows = windows
        self.reason = "no batch has come"
        self._pause = self._wait = 0
        self._telling = False  # whether the output of an uncommitted batch is being sent
        self.cause: Callable[[int], None] | None = None
        """Called, if it is set, with the row of a batch that causes the next firing."""

    @property
    def in_arrays(self) -> bool:
        """Whether the state is in arrays, so that the subwindows are outdated."""
        raise NotImplementedError

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """The columnar engine with the state of a window; None: its subwindows have it."""
        raise NotImplementedError

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches of a window; None: no batch has come."""
        raise NotImplementedError

    def hand_back(self) -> None:
        """Move the state back to the subwindows."""
        raise NotImplementedError

    def stopped(self, error: BaseException, doing: str) -> None:
        """Note that a change raised; an interrupt leaves the windows broken."""
        for window in self.windows:
            window.state.stopped(error, doing)

    @contextmanager
    def _atomic(self) -> Iterator[None]:
        """A context in which an interrupt leaves the windows broken."""
        try:
            yield
        except BaseException as error:
            self.stopped(error, "taking a batch")
            raise

    def plain_schema(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the rows of a window, without encodings."""
        schema = self.schema_of(window)
        if schema is None:
            return None
        return pa.schema([(field.name, _plain(field.type)) for field in schema])

    def text(self, window: Window[Any, Any]) -> str:
        """How the batches of a window are taken, for `explain`."""
        return "none so far" if self.schema_of(window) is None else self._text()

    def _text(self) -> str:
        return f"event engine, row by row: {self.reason}"

    # -- whether to try ---------------------------------------------------------------------------

    def _columns_pay(self, rows: int, least: int) -> bool:
        """Whether to try columns for so many rows; fewer than `least` are refused."""
        if self._pause:
            self._pause -= 1
            return False
        if rows < least:
            self.reason = f"fewer than {least} rows at once"
            return False
        return True

    def _pause_columns(self, reason: Decline) -> None:
        """Leave the next batches to the event engine, more of them each time."""
        self.reason = str(reason)
        self._wait = min(2 * self._wait + 1, MAX_PAUSE)
        self._pause = self._wait - 1

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """A context in which the output of an uncommitted batch is sent."""
        self._telling = True
        try:
            yield
        finally:
            self._telling = False

    def _check_idle(self) -> None:
        """Refuse a call that the output of an uncommitted batch has caused."""
        if self._telling:
            msg = (
                f"{type(self.windows[0]).__name__}: it is taking a batch, and what it holds is not "
                f"worked out. Use it between two calls; handlers with content='arrow' may read "
                f"the partition they are called for."
            )
            raise AccessError(msg)

    # -- moving -----------------------------------------------------------------------------------

    def _moved_to_arrays(self) -> None:
        """Note that the state of the windows is in arrays from now on."""
        for window in self.windows:
            window.state.batches = self
            window.state.set_in_arrays(True)

    def _refill(self, window: Window[Any, Any], engine: Engine, parts: Parts, ids: Places) -> None:
        """Put the state of a window back into its subwindows.

        Args:
            window: the window.
            engine: the columnar engine that had the state.
            parts: the state of each partition in storage, as snapshots have it.
            ids: the numbers of these partitions.
        """
        state = window.state
        state.set_in_arrays(False)
        subs = [snapshot.restored(state, part) for part in parts]
        state.fill(subs, engine.left, [part["stamps"] for part in parts])
        if state.eviction is not None:
            numbered = dict(zip(ids.tolist(), subs, strict=True))
            state.eviction.refill([numbered[i] for i in engine.used_order().tolist()])

    # -- what a window asks where its state may be in arrays --------------------------------------

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine moves it the rest of the way."""
        return False

    def due(self) -> int | None:
        """The next deadline, apart from ticks; None: there is none."""
        return None

    def handlers_changed(self) -> None:
        """Note that the windows call other handlers from now on."""

    def dump(self) -> dict[str, Any] | None:
        """The arrays and the schema as plain data; None: they belong to several windows."""
        return None

    def batch_state(self) -> dict[str, Any] | None:
        """The schema of batches and the pause after declined ones, as plain data; None: initial."""
        return None

    def restore_batch_state(self, batch_state: Mapping[str, Any] | None) -> None:
        """Restore what `batch_state` returned; None: the initial state."""


class ColumnarWindowHandover(ColumnarHandover):
    """Inserts Arrow batches into one window, with the columnar engine that fits it."""

    def __init__(self, window: Window[Any, Any]) -> None:
        super().__init__(window)
        self.window = window
        self.engine: Engine | None = None
        self.schema: pa.Schema | None = None  # of the batches that have come
        self._key_limit = MANY_KEYS  # with more keys than this, unused ones are looked for
        self._handlers: Callable[[Firings], None] | None = None
        self._beat = window.spec.policies[-1].tick  # from one tick to the next, if it ticks
        self._locked = window.locked()  # it is always the same lock, or none

    @property
    def in_arrays(self) -> bool:
        """Whether the state is in arrays."""
        return self.engine is not None

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """The columnar engine, while the state is in arrays."""
        return self.engine

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches; None: no batch has come."""
        return self.schema

    def _text(self) -> str:
        return super()._text() if self.engine is None else f"columnar: {self.engine.way}"

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order; all of them arrive now."""
        self.schema = batch.schema
        for part in self._slices(batch):
            with self._locked, self._atomic():
                self._insert(part, None)

    def insert_marked(
        self, batch: pa.RecordBatch, marks: Places, insert: Callable[[Any], None]
    ) -> list[Exception]:
        """Insert each row in order, with punctuations between them; all of them arrive now.

        All rows are inserted, whatever handlers raise; returns the failures.

        Args:
            batch: the rows.
            marks: before which row each punctuation comes, in order.
            insert: inserts one row, for the event engine.
        """
        self.schema, failures = batch.schema, list[Exception]()
        whole = MarkedRows(batch, np.asarray(marks, np.intp), insert, failures)
        empty = self._empty_marks(whole.marks)
        if len(empty) * MIN_ROWS_PER_TICK > batch.num_rows:
            self.hand_back()
            whole.insert(self.window, 0, batch.num_rows)
            return failures
        for part in whole.parts(empty):
            self._insert_marked_rows(part)
        return failures

    def _empty_marks(self, marks: Places) -> Places:
        """The punctuations that find no partition, if there is a handler for that."""
        if "on_empty_punctuation" not in self.window.state.handlers or not len(marks):
            return NONE
        repeated = marks[1:] == marks[:-1]
        if marks[0] and not repeated.any():
            return NONE
        empty = (
            self.has_no_partition if self.engine is not None else not self.window.state.subwindows
        )
        return np.flatnonzero(np.append(empty and marks[0] == 0, repeated))

    @property
    def has_no_partition(self) -> bool:
        """Whether the state is in arrays, and there is no partition."""
        return self.engine is not None and not self.engine.ledger.alive.any()

    def _insert_marked_rows(self, marked: MarkedRows) -> None:
        """Insert rows with punctuations, one slice after the other."""
        at, batch, marks = 0, marked.batch, marked.marks
        if not batch.num_rows:
            marked.insert(self.window, 0, 0)
        for part in self._slices(batch):
            end = at + part.num_rows
            to = len(marks) if end == batch.num_rows else np.searchsorted(marks, end)
            own = marked.part(at, end, marks[np.searchsorted(marks, at) : to])
            with self.window.locked(), self._atomic():
                self._check_idle()
                if not self._insert_marked_columns(own):
                    self.hand_back()
                    own.insert(self.window, 0, part.num_rows)
            at = end

    def _insert_marked_columns(self, marked: MarkedRows) -> bool:
        """Insert rows and punctuations as columns; false: the event engine has to."""
        batch, consumer = marked.batch, self.window.state.consumer
        if not self._columns_pay(batch.num_rows, MIN_ROWS if self.engine is None else 0):
            return False
        try:
            engine = self._loaded_engine(batch.schema, batch.num_rows)
            if consumer.guard is not None:
                consumer.guard(batch)
            engine.set_arrivals(None)
            engine.marks = marked.marks
            firings = engine.insert(batch)
            firings.times = engine.times(firings)
            causes, firings.rows = firings.rows, np.arange(len(firings))
            failed = self._deliver_timed(firings, marked.failures)
        except Decline as reason:
            self._pause_columns(reason)
            return False
        self._wait = 0
        if failed is None:
            self._commit(engine)
            return True
        row = int(causes[failed.row])
        keys, first = firings.python_keys(), int(np.searchsorted(causes, row))
        self.hand_back()
        with without_handlers(self.window):  # these firings were delivered
            marked.insert(self.window, 0, row)
        broken = RepeatedFiring(keys[first : failed.row], keys[failed.row], failed.error)
        with broken.replaying(self.window):
            rest = marked.cause(self.window, row)
        marked.insert(self.window, rest, batch.num_rows)
        return True

    def insert_timed(self, batch: pa.RecordBatch, times: Attribute) -> list[Any]:
        """For each row, advance to the time in a column, and insert it.

        Returns, as tuples, the rows from the first one on whose time is invalid or in the past.
        """
        self.schema, window, at = batch.schema, self.window, 0
        stamps = read(batch, times, window.state.now)
        if window.state.acting:  # a handler must not move the clock: the event engine refuses it
            stamps = stamps[:0]
        for part in self._slices(batch.slice(0, len(stamps))):
            with self._locked, self._atomic():
                self._insert(part, stamps[at : at + part.num_rows])
            at += part.num_rows
        rest: list[Any] = batch.slice(at).to_pylist()
        return rest

    def insert_timed_rows(self, rows: Sequence[Any], times: Times) -> None:
        """Advance to the time of each row and insert it, where Python has to read the times."""
        window = self.window
        for row in rows:
            with self._locked:
                window.state.advance(times.forward(times(row), window.state.now))
                window.insert(row)

    def _insert(self, batch: pa.RecordBatch, stamps: Stamps | None) -> None:
        self._check_idle()
        taken = self._columnar(batch, stamps)
        if taken == batch.num_rows:
            return
        self.hand_back()
        rest = rows_of(batch.slice(taken))
        if stamps is None and self.cause is not None:
            for row, tuple_ in enumerate(rest, taken):
                self.cause(row)
                self.window.insert(tuple_)
            return
        self._insert_rows(rest, None if stamps is None else stamps[taken:])

    def _insert_rows(self, rows: list[Any], stamps: Stamps | None) -> None:
        """Insert tuples one by one, with the state in the subwindows."""
        window = self.window
        if stamps is None:
            window.insert_many(rows)
            return
        for row, now in zip(rows, stamps.tolist(), strict=False):
            window.state.advance(now)
            window.insert(row)

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < batch.num_rows:
            step = self._first_slice_rows() if self.engine is None else self.engine.step(SLICE_ROWS)
            yield batch.slice(at, step) if at or step < batch.num_rows else batch
            at += step

    def _first_slice_rows(self) -> int:
        """How many rows to insert first, before there is an engine that decides it."""
        window = self.window
        starts = not window.spec.partitioned and not window.state.subwindows
        return (
            min(SLICE_ROWS, FIRST_SLICE_ROWS, UNKEYED_SLICE_ROWS)
            if starts
            else min(SLICE_ROWS, FIRST_SLICE_ROWS)
        )

    def _columnar(self, batch: pa.RecordBatch, stamps: Stamps | None) -> int:
        """Insert rows as columns, with what is due before them; how many rows were taken."""
        if not self._columns_pay(batch.num_rows, MIN_ROWS if self.engine is None else 0):
            return 0
        taken = 0
        try:
            for lo, hi in self._spans_between_ticks(batch.num_rows, stamps):
                part = None if stamps is None else stamps[lo:hi]
                if part is not None:
                    self._advance(int(part[0]))
                engine = self._loaded_engine(batch.schema, batch.num_rows)
                whole = hi - lo == batch.num_rows
                self._insert_columns(engine, batch if whole else batch.slice(lo, hi - lo), part)
                taken = hi
        except Decline as reason:
            self._pause_columns(reason)
            return taken
        self._wait = 0
        return taken

    def _advance(self, now: int) -> None:
        """Move the clock to the time of a row."""
        tick = self.window.state.tick
        if tick is None or tick > now:
            return
        ahead = self.engine is not None
        self.window.state.advance(now)
        if ahead and self.engine is None and self.window.state.subwindows:
            raise Decline(self.reason)  # or else every tick would try again

    def _insert_columns(self, engine: Engine, batch: pa.RecordBatch, stamps: Stamps | None) -> None:
        """Insert rows as columns, and deliver their firings."""
        consumer = self.window.state.consumer
        if consumer.guard is not None:
            consumer.guard(batch)
        engine.set_arrivals(stamps)
        firings = engine.insert(batch)
        firings.times = engine.times(firings)
        rows = firings.rows
        if engine.together:  # then a failure has to name the firing, not the row
            firings.rows = np.arange(len(firings))
        if (failed := self._deliver(firings, consumer)) is not None:
            at = failed.row if engine.together else int(np.searchsorted(rows, failed.row))
            first, keys = int(np.searchsorted(rows, rows[at])), firings.python_keys()
            broken = RepeatedFiring(keys[first:at], keys[at], failed.error)
            self._replay_failure(batch, stamps, int(rows[at]), broken)
        self._commit(engine)

    def _commit(self, engine: Engine) -> None:
        ticks, window = engine.ticks, self.window
        engine.commit()
        if engine.arrivals is not None:
            window.state.now = engine.now
        if ticks:
            window.state.tick = self._tick_after(ticks)
        if engine.keys is not None and len(engine.keys) > self._key_limit:
            self._clear(engine)

    def _clear(self, engine: Engine) -> None:
        """Make a new engine with the keys that have partitions, if most keys have none."""
        keys, known = len(engine.keys or ()), len(engine.known_partitions())
        self._key_limit = 2 * max(known, MANY_KEYS)
        if keys > 2 * known + MANY_KEYS:
            self.engine = self._engine_of_dump(engine.schema, engine.dump())
        else:
            self._key_limit = 2 * keys

    def _loaded_engine(self, schema: pa.Schema, rows: int) -> Engine:
        """The engine for batches of this schema, with the window's state."""
        if self.engine is not None and self.engine.schema.equals(schema):
            return self.engine
        self.hand_back()
        window = self.window
        engine = engine_for(window, schema.remove_metadata())
        engine.check_load(rows)
        engine.load(parts_of(window))
        engine.load_asleep(parts_of(window, asleep=True))
        self.use(engine)
        return engine

    def use(self, engine: Engine) -> None:
        """Note that this engine has the window's state from now on."""
        self._handlers = handlers_of(self.window)
        self.engine, self.schema = engine, engine.schema
        self._moved_to_arrays()

    def handlers_changed(self) -> None:
        """Note that the window has other handlers from now on."""
        if self._handlers is not None:
            self._handlers = handlers_of(self.window)

    def _deliver(self, firings: Firings, consumer: Consumer) -> FiringFailed | None:
        """Deliver firings to the consumer or the handlers; the one that failed, if any.

        The failure is returned, not raised, so that its error can be raised without `FiringFailed`
        as its context.
        """
        tell = consumer.fired or self._handlers
        if tell is None or not len(firings.ids):
            return None
        try:
            with self._sending():
                tell(firings)
        except FiringFailed as failed:
            return failed
        return None

    def _replay_failure(
        self, batch: pa.RecordBatch, stamps: Stamps | None, row: int, broken: RepeatedFiring
    ) -> None:
        """Insert the rows before the failure without handlers, and then repeat the failure."""
        window = self.window
        if self.engine is not None:
            window.state.now = self.engine.now  # the time before the batch
        self.hand_back()
        *before, tuple_ = rows_of(batch.slice(0, row + 1))
        with without_handlers(window):  # these firings were delivered
            self._insert_rows(before, stamps)
        with broken.replaying(window):
            if stamps is not None:
                window.state.advance(int(stamps[row]))
            window.insert(tuple_)

    def hand_back(self) -> None:
        """Move the state back to the subwindows."""
        engine, window = self.engine, self.window
        if engine is None:
            return
        self._check_idle()
        self.engine = None
        ids = engine.stored()
        self._refill(window, engine, engine.parts(ids), ids)
        window.state.asleep.clear()
        if len(asleep := engine.asleep()):
            named = [snapshot.restored(window.state, part) for part in engine.parts(asleep)]
            window.state.asleep.update((s.key, s) for s in named)

    # -- time -------------------------------------------------------------------------------------

    def _spans_between_ticks(self, rows: int, stamps: Stamps | None) -> list[tuple[int, int]]:
        """The extents of a batch to insert at once; declines if ticks make them too short."""
        beat = self._beat
        if stamps is None or beat is None or (tick := self.window.state.tick) is None:
            return [(0, rows)]
        idle = self._idle_time(beat)
        found = spans_between_ticks(stamps, tick, beat, idle, HUGE)
        if len(found) > 2 and rows < MIN_ROWS_PER_TICK * len(found):
            raise Decline(f"fewer than {MIN_ROWS_PER_TICK} rows between ticks that stop them")
        if isinstance(self.window.spec, Tumbling):
            return found
        return spans_between_ticks(stamps, tick, beat, idle, self._max_ticks(rows))

    def _idle_time(self, beat: int) -> int:
        """How long after the last row a tick still finds a partition to fire."""
        if isinstance(self.window.spec, Tumbling):
            return beat
        period = self.window.spec.evict.tick
        return HUGE if period is None else period

    def _max_ticks(self, rows: int) -> int:
        """How many ticks of a sliding window to compute at once."""
        known = self.engine.keys if self.engine is not None else None
        partitions = rows if known is None else len(known)
        return MAX_FIRINGS // (partitions if self.window.spec.partitioned else 1)

    def _tick_after(self, ticks: int) -> int:
        """The next tick after some more ticks."""
        tick, beat = self.window.state.tick, self._beat
        assert tick is not None
        assert beat is not None
        return tick + ticks * beat

    def due(self) -> int | None:
        """The next deadline, apart from ticks; None: there is none."""
        return None if self.engine is None else self.engine.due()

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine has to move it the rest of the way."""
        self._check_idle()
        window = self.window
        if abs(now) >= HUGE or self._lapses(now):
            self.hand_back()
        while self.engine is not None and (tick := window.state.tick) is not None and tick <= now:
            self._tick(tick, failures)
        if self.engine is None:
            return False
        self.engine.advance(now)
        return True

    def ages_at(self) -> int | None:
        """When the next partition reaches its maximum age."""
        return None if self.engine is None else self.engine.ages_at()

    def _lapses(self, now: int) -> bool:
        """Whether the time of a single subwindow, or the age of a partition, is over."""
        eviction = self.window.state.eviction
        ages = eviction is not None and eviction.alone
        found = [self.ages_at() if ages else None]
        if self.window.spec.evict.lapse is not None:
            found.append(self.due())
        return any(due is not None and due <= now for due in found)

    def _tick(self, tick: int, failures: list[Exception]) -> None:
        engine, window = self.engine, self.window
        assert engine is not None
        window.state.now = max(tick, window.state.now)
        engine.advance(window.state.now)  # evicts what is too old before anything fires
        self.fire_all(window.state.act, failures)
        if self.engine is not None:
            window.state.tick = self._tick_after(1)

    def fire_all(
        self, otherwise: Callable[[list[Exception]], None], failures: list[Exception]
    ) -> bool:
        """Fire every partition; false: the event engine has to do it.

        Args:
            otherwise: fires every partition in the event engine, to go on after a failure.
            failures: the list that exceptions of handlers and consumers are added to.
        """
        self._check_idle()
        engine, window = self.engine, self.window
        assert engine is not None
        try:
            if not engine.ledger.alive.any():
                raise Decline("there is no partition to fire")
            engine.check_age(window.state.now)
            firings = engine.fire_all()
            firings.rows = np.arange(len(firings))
            failed = self._deliver_timed(firings, failures)
        except Decline as reason:
            self.reason = str(reason)
            self.hand_back()
            return False
        if failed is not None:
            keys = firings.python_keys()
            self.hand_back()
            with RepeatedFiring(keys[: failed.row], keys[failed.row], failed.error).replaying(
                window
            ):
                otherwise(failures)
        else:
            engine.commit_all()
        return True

    def _deliver_timed(self, firings: Firings, failures: list[Exception]) -> FiringFailed | None:
        """Deliver firings caused by time; the one that failed, if it is known.

        If it is not known, no firing is repeated, and the exception is collected.
        """
        try:
            return self._deliver(firings, self.window.state.consumer)
        except Decline:
            raise
        except Exception as error:
            failures.append(error)
            return None

    # -- as arrays --------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any] | None:
        """The arrays and the schema as plain data; None: the state is not in arrays."""
        self._check_idle()
        return None if self.engine is None else {"schema": self.engine.schema, **self.engine.dump()}

    def legacy_parts(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The partitions of a snapshot whose arrays have rows in place of slices, else None."""
        dump, window = state["arrays"], self.window
        if dump["form"] != AgingEngine.form or not isinstance(window.state.slices, TimeSlices):
            return None
        assert isinstance(window, SlidingWindow)
        need(isinstance(dump["schema"], pa.Schema), "no schema")
        engine = AgingEngine(window, dump["schema"])
        engine.load_dump(dump)
        lru = [part["key"] for part in engine.common(engine.used_order())]
        return {
            "left": engine.left,
            "parts": engine.parts(engine.stored()),
            "asleep": engine.parts(engine.asleep()),
            "lru": None if window.state.eviction is None else lru,
        }

    def engine_of_snapshot(self, state: Mapping[str, Any]) -> Engine:
        """A new engine with the arrays of a snapshot; the window does not use it yet."""
        dump, times = state["arrays"], (state["start"], state["now"], state["tick"] or 0)
        need(all(type(time) is int for time in times), "the clock")
        need(isinstance(dump["schema"], pa.Schema), "no schema")
        try:
            return self._engine_of_dump(dump["schema"], dump)
        except Decline as reason:
            msg = (
                f"restore(state): arrays are not for this window ({reason}). Build the window as "
                f"it was, or restore a snapshot that was taken without arrays=True."
            )
            raise StateVersionError(msg) from reason

    def batch_state(self) -> dict[str, Any] | None:
        """The schema of batches and the pause after declined ones, as plain data."""
        return {"schema": self.schema, "pause": self._pause, "wait": self._wait}

    def restore_batch_state(self, batch_state: Mapping[str, Any] | None) -> None:
        """Restore what `batch_state` returned; None: the initial state."""
        found = {"schema": None, "pause": 0, "wait": 0} if batch_state is None else batch_state
        pause, wait = (checked_count(found[name], name) for name in ("pause", "wait"))
        need(isinstance(found["schema"], pa.Schema | None), "no schema")
        self.schema, self._pause, self._wait = found["schema"], pause, wait

    def _engine_of_dump(self, schema: pa.Schema, dump: Mapping[str, Any]) -> Engine:
        engine = engine_for(self.window, schema)
        engine.load_dump(dump)
        return engine

    def resume(self, engine: Engine) -> None:
        """Use this engine, as if it had taken all batches so far."""
        self._pause = self._wait = 0
        self.use(engine)


def parts_of(window: Window[Any, Any], *, asleep: bool = False) -> list[dict[str, Any]]:
    """The subwindows in storage, or those asleep, in the form of snapshots."""
    state = window.state
    found, stamps = state.asleep if asleep else state.subwindows, state.arrivals.by_subwindow()
    return [snapshot.dumped(state, s, stamps.get(s, ())) for s in found.values()]


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without its encoding; a type that is not supported stays as it is."""
    try:
        return plain_type(kind)
    except Decline:
        return kind


class MarkedRows:
    """Rows with punctuations between them, on their way into the event engine.

    Args:
        batch: the rows.
        marks: before which row each punctuation comes, in order.
        insert: inserts one row.
        failures: the list that exceptions are added to; the other rows are inserted all the same.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        marks: Places,
        insert: Callable[[Any], None],
        failures: list[Exception],
    ) -> None:
        self.batch, self.marks, self.failures = batch, marks, failures
        self._insert = insert

    def part(self, lo: int, hi: int, marks: Places) -> MarkedRows:
        """Some of the rows, with some of the punctuations."""
        return MarkedRows(self.batch.slice(lo, hi - lo), marks - lo, self._insert, self.failures)

    def parts(self, alone: Places) -> Iterator[MarkedRows]:
        """The rows in parts, where the punctuations `alone` are parts without rows."""
        at = done = 0
        for place in alone.tolist():
            end = int(self.marks[place])
            yield self.part(at, end, self.marks[done:place])
            yield self.part(end, end, self.marks[place : place + 1])
            at, done = end, place + 1
        yield self.part(at, self.batch.num_rows, self.marks[done:])

    @cached_property
    def _rows(self) -> list[Any]:
        return rows_of(self.batch)

    @cached_property
    def _counts(self) -> Counter[int]:
        """How many punctuations come before each row."""
        return Counter(self.marks.tolist())

    def insert(self, window: Window[Any, Any], lo: int, hi: int) -> None:
        """Insert rows [lo, hi) and the punctuations before each, and behind the last row."""
        for row in range(lo, hi):
            self._punctuate(window, row)
            self._insert_one(row)
        if hi == len(self._rows):
            self._punctuate(window, hi)

    def cause(self, window: Window[Any, Any], row: int) -> int:
        """Insert the punctuations before a row, or else the row; the number of the next row."""
        if self._counts[row]:
            self._punctuate(window, row)
            return row
        self._insert_one(row)
        return row + 1

    def _punctuate(self, window: Window[Any, Any], row: int) -> None:
        for _ in range(self._counts.pop(row, 0)):
            try:
                window.punctuate()
            except Exception as error:
                self.failures.append(error)

    def _insert_one(self, row: int) -> None:
        try:
            self._insert(self._rows[row])
        except Exception as error:
            self.failures.append(error)


class RepeatedFiring:
    """A firing that failed, to be repeated in the event engine, which then goes on after it.

    Args:
        done: the keys of earlier firings with the same cause, which succeeded.
        key: the key of the one that failed.
        error: what it raised.
    """

    def __init__(self, done: Sequence[Any], key: Any, error: Exception) -> None:
        self._done, self._key, self._error = list(done), [key], error

    @contextmanager
    def replaying(self, window: Window[Any, Any]) -> Iterator[None]:
        """A context in which handlers skip earlier firings, and the failed one raises."""
        with replaced_handlers(window, self._rest):
            yield

    def _rest(self, handler: Callable[..., None]) -> Callable[..., None]:
        def call(window: Any, key: Any) -> None:  # named as handlers are, for the note
            if key in self._done:
                self._done.remove(key)
            elif key in self._key:
                self._key.clear()
                raise self._error
            else:
                handler(window, key)

        return call


@contextmanager
def replaced_handlers(
    window: Window[Any, Any], change: Callable[[Callable[..., None]], Callable[..., None]]
) -> Iterator[None]:
    """A context in which other handlers of firings are called."""
    handlers = window.state.handlers
    window.state.handlers = {
        name: change(each) if name in FIRING else each for name, each in handlers.items()
    }
    try:
        yield
    finally:
        window.state.handlers = handlers


def without_handlers(window: Window[Any, Any]) -> AbstractContextManager[None]:
    """A context in which no handler of firings is called."""
    return replaced_handlers(window, lambda _: lambda window, key: None)


# -- event time -----------------------------------------------------------------------------------


class EventTimeHandover(ColumnarHandover):
    """Inserts Arrow batches into a window of event time."""

    def __init__(self, window: EventTimeWindow[Any, Any]) -> None:
        super().__init__(window)
        self.window = window
        self.engine: EventTimeEngine | None = None
        self.schema: pa.Schema | None = None

    @property
    def in_arrays(self) -> bool:
        """Whether the state is in arrays."""
        return self.engine is not None

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """None: its state is not kept by partition."""
        return None

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches; None: no batch has come."""
        return self.schema

    def _text(self) -> str:
        return super()._text() if self.engine is None else f"columnar: {self.engine.way}"

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order; all of them arrive now."""
        self.schema = batch.schema
        for at in range(0, batch.num_rows, SLICE_ROWS):
            part = batch.slice(at, SLICE_ROWS)
            with self.window.locked(), self._atomic():
                self._check_idle()
                if not self._columnar(part):
                    self.hand_back()
                    self.window.insert_many(rows_of(part))

    def _columnar(self, batch: pa.RecordBatch) -> bool:
        """Insert a batch as columns; false: the event engine has to."""
        if not self._columns_pay(batch.num_rows, MIN_ROWS if self.engine is None else 0):
            return False
        try:
            engine = self._loaded_engine(batch.schema.remove_metadata())
            if (guard := self.window.state.consumer.guard) is not None:
                guard(batch)
            firings = engine.insert(batch)
            failures = self._deliver(engine, firings)
        except Decline as reason:
            self._pause_columns(reason)
            return False
        self._wait = 0
        engine.commit()
        self._forget_keys(engine)
        raise_first(failures)
        return True

    def _forget_keys(self, engine: EventTimeEngine) -> None:
        """Hand the state back if most keys have no open window, so that these are forgotten."""
        keys = 0 if engine.keys is None else len(engine.keys)
        if keys > MANY_KEYS and keys > MANY_KEYS + 2 * self.held()[1]:
            self.hand_back()  # the next batch takes over what is open

    def _loaded_engine(self, schema: pa.Schema) -> EventTimeEngine:
        """The engine for batches of this schema, with the window's state."""
        if self.engine is not None and self.engine.schema != schema:
            self.hand_back()
        if self.engine is None:
            self.engine = event_time_engine(self.window, schema)
            self._moved_to_arrays()
        return self.engine

    def _deliver(self, engine: EventTimeEngine, firings: Firings) -> list[Exception]:
        """Deliver all firings to the consumer; the failures."""
        consumer = self.window.state.consumer
        assert consumer.fired is not None
        failures: list[Exception] = []
        done = 0
        while done < len(firings):
            try:
                with self._sending():
                    consumer.fired(firings if not done else firings.behind(done))
                break
            except FiringFailed as failed:
                done = failed.row + 1
                failures.append(failed.error)
            except Decline:
                engine.undo()
                raise
        return failures

    def closes(self) -> Any:
        """The least watermark that closes a window, while the state is in arrays."""
        assert self.engine is not None
        return self.engine.closes()

    def absorb(self, parts: Sequence[SlicePartials], schema: pa.Schema) -> None:
        """Merge in rows that were folded elsewhere by the same functions."""
        partials = SlicePartials.concat(parts)
        with self.window.locked(), self._atomic():
            self._check_idle()
            try:
                engine = self._loaded_engine(schema)
                engine.absorb(partials)
            except Decline:  # such as sums that have become too large for arrays
                self.hand_back()
                engine = event_time_engine(self.window, schema, empty=True)
                self.window.event_time_state.absorb(engine.contents(partials), partials.sample)
                return
            engine.commit()

    def reach(self, watermark: Any) -> bool:
        """Close the windows that a watermark has passed; false: the event engine has to."""
        engine = self.engine
        assert engine is not None
        try:
            failures = self._deliver(engine, engine.reach(watermark))
        except Decline:
            self.hand_back()
            return False
        engine.commit()
        raise_first(failures)
        return True

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions are in the arrays."""
        assert self.engine is not None
        return self.engine.held()

    def finish(self) -> None:
        """Fire all open windows, because the input has ended."""
        engine = self.engine
        if engine is None:
            return
        try:
            failures = self._deliver(engine, engine.finish())
        except Decline:
            self.hand_back()
            return
        engine.commit()
        self.hand_back()
        raise_first(failures)

    def hand_back(self) -> None:
        """Move the state back to the subwindows."""
        engine = self.engine
        if engine is None:
            return
        self._check_idle()
        self.engine = None
        self.window.state.set_in_arrays(False)
        engine.unload()
