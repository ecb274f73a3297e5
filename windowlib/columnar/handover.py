"""The hand-over between events and arrays: which engine takes a batch, and where the state is.

A window's state is in its subwindows, where the event engine works, or in the arrays of a columnar
engine. It moves when the other one is needed: to the arrays with a batch that they can do exactly,
back with the first call that asks for anything else.
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
from windowlib.columnar.arrays.stamps import HUGE, Stamps, read, stretches
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

WORTH = 256
"""Rows from which on it pays to move the state to arrays."""
SLICE = 1 << 16
"""Rows that are worked on at once: their columns fit the cache."""
CROWD = 1 << 17
"""Keys without a partition that are of no concern."""
FIRST, ALONE = 1 << 14, 1 << 11
"""Rows of the first slice, which shows what is coming; without keys, what starts a stream."""
PATIENCE = 64
"""The most batches that are left to the event engine before the next try."""

FEW = 300
"""Rows between two ticks from which on it pays to work on them at once."""

MANY = 1 << 20
"""The most firings that are looked for at once."""

Parts = Sequence[dict[str, Any]]
"""The state of partitions, as snapshots have it."""


class HandOver:
    """Where the state of some windows is, and how it moves.

    A window asks its hand-over for its state. What takes the batches, the window or an operator
    with several of them, is a hand-over of its own kind: it makes the engine, and gives it rows.

    Args:
        windows: whose state moves together.
    """

    def __init__(self, *windows: Window[Any, Any]) -> None:
        self.windows = windows
        self.reason = "no batch has come"
        self._pause = self._wait = 0
        self._telling = False  # whether the output of a batch that is not yet taken is sent
        self.cause: Callable[[int], None] | None = None
        """Told, if an operator asks for it, which row of a batch causes what happens next."""

    @property
    def ahead(self) -> bool:
        """Whether the state is in arrays, and the subwindows are behind."""
        raise NotImplementedError

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """What has the state of a window as arrays, if that is where it is."""
        raise NotImplementedError

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches that have come to a window; None: none have."""
        raise NotImplementedError

    def settle(self) -> None:
        """Give the state back to the event engine."""
        raise NotImplementedError

    def stopped(self, error: BaseException, doing: str) -> None:
        """A change raised; after an interrupt, every later use of the windows is refused."""
        for window in self.windows:
            window.state.stopped(error, doing)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A batch that an interrupt must not leave half taken."""
        try:
            yield
        except BaseException as error:
            self.stopped(error, "taking a batch")
            raise

    def plain_schema(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the rows that have come to a window, without encodings."""
        schema = self.schema_of(window)
        if schema is None:
            return None
        return pa.schema([(field.name, _plain(field.type)) for field in schema])

    def text(self, window: Window[Any, Any]) -> str:
        """How the batches of a window are taken, in words."""
        return "none so far" if self.schema_of(window) is None else self._text()

    def _text(self) -> str:
        return f"event engine, row by row: {self.reason}"

    # -- whether to try ---------------------------------------------------------------------------

    def _worth(self, rows: int, least: int) -> bool:
        """Whether to try so many rows as columns; at `least` so many have to come at once."""
        if self._pause:
            self._pause -= 1
            return False
        if rows < least:
            self.reason = f"fewer than {least} rows at once"
            return False
        return True

    def _declined(self, reason: Decline) -> None:
        """Leave some batches to the event engine, more of them every time."""
        self.reason = str(reason)
        self._wait = min(2 * self._wait + 1, PATIENCE)
        self._pause = self._wait - 1

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """Output is sent that comes of a batch which is not yet taken."""
        self._telling = True
        try:
            yield
        finally:
            self._telling = False

    def _check_idle(self) -> None:
        """Refuse to be used by what gets the output of a batch that is not yet taken."""
        if self._telling:
            msg = (
                f"{type(self.windows[0]).__name__}: it is taking a batch, and what it holds is not "
                f"worked out. Use it between two calls; handlers with content='arrow' may read "
                f"the partition they are called for."
            )
            raise AccessError(msg)

    # -- moving -----------------------------------------------------------------------------------

    def _lead(self) -> None:
        """The state of the windows is in arrays from now on."""
        for window in self.windows:
            window.state.batches = self
            window.state.lead(True)

    def _refill(self, window: Window[Any, Any], engine: Engine, parts: Parts, ids: Places) -> None:
        """The state of a window is in its subwindows again.

        Args:
            window: the window.
            engine: what had the state.
            parts: the state of each partition in storage, as snapshots have it.
            ids: the numbers of these partitions.
        """
        state = window.state
        state.lead(False)
        subs = [snapshot.restored(state, part) for part in parts]
        state.fill(subs, engine.left, [part["stamps"] for part in parts])
        if state.eviction is not None:
            numbered = dict(zip(ids.tolist(), subs, strict=True))
            state.eviction.refill([numbered[i] for i in engine.used_order().tolist()])

    # -- what a window asks where its state may be in arrays --------------------------------------

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine goes on from where it is."""
        return False

    def due(self) -> int | None:
        """When time does something by itself next, apart from ticks."""
        return None

    def rehandle(self) -> None:
        """The handlers of the windows are others from now on."""

    def dump(self) -> dict[str, Any] | None:
        """The arrays and what batches look like; None: they do not belong to one window."""
        return None

    def manner(self) -> dict[str, Any] | None:
        """What batches look like, and how many are left to the event engine; None: as at first."""
        return None

    def put_manner(self, manner: Mapping[str, Any] | None) -> None:
        """Take batches as `manner` said; None: as at first."""


class WindowHandOver(HandOver):
    """Takes Arrow batches into one window, by the engine that can do it exactly."""

    def __init__(self, window: Window[Any, Any]) -> None:
        super().__init__(window)
        self.window = window
        self.engine: Engine | None = None
        self.schema: pa.Schema | None = None  # of the batches that have come
        self._crowd = CROWD  # keys from which on it is worth asking whether they are in use
        self._handlers: Callable[[Firings], None] | None = None
        self._beat = window.spec.policies[-1].tick  # how far ticks are apart, if it ticks
        self._locked = window.locked()  # one lock, or none, for good

    @property
    def ahead(self) -> bool:
        """Whether the state is in arrays."""
        return self.engine is not None

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """What has the window's state, if it is in arrays."""
        return self.engine

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches that have come; None: none have."""
        return self.schema

    def _text(self) -> str:
        return super()._text() if self.engine is None else f"columnar: {self.engine.way}"

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order; all of them arrive now."""
        self.schema = batch.schema
        for part in self._slices(batch):
            with self._locked, self._whole():
                self._insert(part, None)

    def insert_marked(
        self, batch: pa.RecordBatch, marks: Places, insert: Callable[[Any], None]
    ) -> list[Exception]:
        """Insert each row in order, with punctuations between them; all of them arrive now.

        A failure costs no other row its turn; gives all of them.

        Args:
            batch: the rows.
            marks: before which row each punctuation comes, in order.
            insert: inserts one row, where arrays cannot take them.
        """
        self.schema, failures = batch.schema, list[Exception]()
        whole = MarkedRows(batch, np.asarray(marks, np.intp), insert, failures)
        empty = self._empty(whole.marks)
        if len(empty) * FEW > batch.num_rows:
            self.settle()
            whole.insert(self.window, 0, batch.num_rows)
            return failures
        for part in whole.parts(empty):
            self._run(part)
        return failures

    def _empty(self, marks: Places) -> Places:
        """Which punctuations find no partition, if a handler is told of that."""
        if "on_empty_punctuation" not in self.window.state.handlers or not len(marks):
            return NONE
        repeated = marks[1:] == marks[:-1]
        if marks[0] and not repeated.any():
            return NONE
        vacant = self.vacant if self.engine is not None else not self.window.state.subwindows
        return np.flatnonzero(np.append(vacant and marks[0] == 0, repeated))

    @property
    def vacant(self) -> bool:
        """Whether the state is in arrays, and there is no partition."""
        return self.engine is not None and not self.engine.ledger.alive.any()

    def _run(self, marked: MarkedRows) -> None:
        """Insert rows with punctuations, slice by slice."""
        at, batch, marks = 0, marked.batch, marked.marks
        if not batch.num_rows:
            marked.insert(self.window, 0, 0)
        for part in self._slices(batch):
            end = at + part.num_rows
            to = len(marks) if end == batch.num_rows else np.searchsorted(marks, end)
            own = marked.part(at, end, marks[np.searchsorted(marks, at) : to])
            with self.window.locked(), self._whole():
                self._check_idle()
                if not self._marked(own):
                    self.settle()
                    own.insert(self.window, 0, part.num_rows)
            at = end

    def _marked(self, marked: MarkedRows) -> bool:
        """Whether the columnar engine has taken rows and punctuations."""
        batch, consumer = marked.batch, self.window.state.consumer
        if not self._worth(batch.num_rows, WORTH if self.engine is None else 0):
            return False
        try:
            engine = self._ready(batch.schema, batch.num_rows)
            if consumer.guard is not None:
                consumer.guard(batch)
            engine.arrive(None)
            engine.marks = marked.marks
            firings = engine.insert(batch)
            firings.times = engine.times(firings)
            causes, firings.rows = firings.rows, np.arange(len(firings))
            failed = self._told(firings, marked.failures)
        except Decline as reason:
            self._declined(reason)
            return False
        self._wait = 0
        if failed is None:
            self._commit(engine)
            return True
        row = int(causes[failed.row])
        keys, first = firings.python_keys(), int(np.searchsorted(causes, row))
        self.settle()
        with quiet(self.window):  # these firings have been told
            marked.insert(self.window, 0, row)
        broken = RepeatedFiring(keys[first : failed.row], keys[failed.row], failed.error)
        with broken.in_place(self.window):
            rest = marked.cause(self.window, row)
        marked.insert(self.window, rest, batch.num_rows)
        return True

    def insert_timed(self, batch: pa.RecordBatch, times: Attribute) -> list[Any]:
        """For each row, advance to the time in a column, and insert it.

        Gives back, as tuples, the rows from the first on whose time is none, or lies in the past.
        """
        self.schema, window, at = batch.schema, self.window, 0
        stamps = read(batch, times, window.state.now)
        if window.state.acting:  # a handler must not move the clock, which is said elsewhere
            stamps = stamps[:0]
        for part in self._slices(batch.slice(0, len(stamps))):
            with self._locked, self._whole():
                self._insert(part, stamps[at : at + part.num_rows])
            at += part.num_rows
        rest: list[Any] = batch.slice(at).to_pylist()
        return rest

    def one_by_one(self, rows: Sequence[Any], times: Times) -> None:
        """The same for rows whose times Python has to read, or to say what is wrong with them."""
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
        self.settle()
        rest = rows_of(batch.slice(taken))
        if stamps is None and self.cause is not None:
            for row, tuple_ in enumerate(rest, taken):
                self.cause(row)
                self.window.insert(tuple_)
            return
        self._by_rows(rest, None if stamps is None else stamps[taken:])

    def _by_rows(self, rows: list[Any], stamps: Stamps | None) -> None:
        """Insert tuples into the event engine, which has the state."""
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
            step = self._first() if self.engine is None else self.engine.step(SLICE)
            yield batch.slice(at, step) if at or step < batch.num_rows else batch
            at += step

    def _first(self) -> int:
        """How many rows to take at once while no engine says so."""
        window = self.window
        starts = not window.spec.partitioned and not window.state.subwindows
        return min(SLICE, FIRST, ALONE) if starts else min(SLICE, FIRST)

    def _columnar(self, batch: pa.RecordBatch, stamps: Stamps | None) -> int:
        """How many rows of a batch the columnar engine has taken, with what is due before them."""
        if not self._worth(batch.num_rows, WORTH if self.engine is None else 0):
            return 0
        taken = 0
        try:
            for lo, hi in self._stretches(batch.num_rows, stamps):
                part = None if stamps is None else stamps[lo:hi]
                if part is not None:
                    self._advance(int(part[0]))
                engine = self._ready(batch.schema, batch.num_rows)
                whole = hi - lo == batch.num_rows
                self._take(engine, batch if whole else batch.slice(lo, hi - lo), part)
                taken = hi
        except Decline as reason:
            self._declined(reason)
            return taken
        self._wait = 0
        return taken

    def _advance(self, now: int) -> None:
        """Let happen what is due before a row, with the state where it is."""
        tick = self.window.state.tick
        if tick is None or tick > now:
            return
        ahead = self.engine is not None
        self.window.state.advance(now)
        if ahead and self.engine is None and self.window.state.subwindows:
            raise Decline(self.reason)  # and not the same again at the next tick

    def _take(self, engine: Engine, batch: pa.RecordBatch, stamps: Stamps | None) -> None:
        """Insert rows, with all that is due in between."""
        consumer = self.window.state.consumer
        if consumer.guard is not None:
            consumer.guard(batch)
        engine.arrive(stamps)
        firings = engine.insert(batch)
        firings.times = engine.times(firings)
        rows = firings.rows
        if engine.together:  # then a failure has to say which one it was
            firings.rows = np.arange(len(firings))
        if (failed := self._failure(firings, consumer)) is not None:
            at = failed.row if engine.together else int(np.searchsorted(rows, failed.row))
            first, keys = int(np.searchsorted(rows, rows[at])), firings.python_keys()
            broken = RepeatedFiring(keys[first:at], keys[at], failed.error)
            self._fail(batch, stamps, int(rows[at]), broken)
        self._commit(engine)

    def _commit(self, engine: Engine) -> None:
        ticks, window = engine.ticks, self.window
        engine.commit()
        if engine.arrivals is not None:
            window.state.now = engine.now
        if ticks:
            window.state.tick = self._tick_after(ticks)
        if engine.keys is not None and len(engine.keys) > self._crowd:
            self._clear(engine)

    def _clear(self, engine: Engine) -> None:
        """Forget keys whose partitions are gone, by taking over the others, if most are."""
        keys, known = len(engine.keys or ()), len(engine.remembered())
        self._crowd = 2 * max(known, CROWD)
        if keys > 2 * known + CROWD:
            self.engine = self._made(engine.schema, engine.dump())
        else:
            self._crowd = 2 * keys

    def _ready(self, schema: pa.Schema, rows: int) -> Engine:
        """The engine, with the window's state in it."""
        if self.engine is not None and self.engine.schema.equals(schema):
            return self.engine
        self.settle()
        window = self.window
        engine = engine_for(window, schema.remove_metadata())
        engine.check_load(rows)
        engine.load(parts_of(window))
        engine.load_asleep(parts_of(window, asleep=True))
        self.lead(engine)
        return engine

    def lead(self, engine: Engine) -> None:
        """The window's state is in this engine from now on."""
        self._handlers = handlers_of(self.window)
        self.engine, self.schema = engine, engine.schema
        self._lead()

    def rehandle(self) -> None:
        """The window has other handlers from now on."""
        if self._handlers is not None:
            self._handlers = handlers_of(self.window)

    def _failure(self, firings: Firings, consumer: Consumer) -> FiringFailed | None:
        """Tell of firings; what failed, if anything did.

        The error is raised again outside of this `except`, so that it is not said to have come up
        while the one was handled that has it as its cause.
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

    def _fail(
        self, batch: pa.RecordBatch, stamps: Stamps | None, row: int, broken: RepeatedFiring
    ) -> None:
        """Bring the window to where the event engine would have stopped, and raise."""
        window = self.window
        if self.engine is not None:
            window.state.now = self.engine.now  # which it was when the batch came
        self.settle()
        *before, tuple_ = rows_of(batch.slice(0, row + 1))
        with quiet(window):  # these firings have been told
            self._by_rows(before, stamps)
        with broken.in_place(window):
            if stamps is not None:
                window.state.advance(int(stamps[row]))
            window.insert(tuple_)

    def settle(self) -> None:
        """Give the state back to the event engine."""
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

    def _stretches(self, rows: int, stamps: Stamps | None) -> list[tuple[int, int]]:
        """The rows of a batch in runs that are inserted at once; not if these get too short."""
        beat = self._beat
        if stamps is None or beat is None or (tick := self.window.state.tick) is None:
            return [(0, rows)]
        quiet = self._quiet(beat)
        found = stretches(stamps, tick, beat, quiet, HUGE)
        if len(found) > 2 and rows < FEW * len(found):
            raise Decline(f"fewer than {FEW} rows between ticks that stop them")
        if isinstance(self.window.spec, Tumbling):
            return found
        return stretches(stamps, tick, beat, quiet, self._most(rows))

    def _quiet(self, beat: int) -> int:
        """How long after the last row a tick finds a partition in storage, which then fires."""
        if isinstance(self.window.spec, Tumbling):
            return beat
        period = self.window.spec.evict.tick
        return HUGE if period is None else period

    def _most(self, rows: int) -> int:
        """How many ticks fire all partitions of a sliding window at once."""
        known = self.engine.keys if self.engine is not None else None
        partitions = rows if known is None else len(known)
        return MANY // (partitions if self.window.spec.partitioned else 1)

    def _tick_after(self, ticks: int) -> int:
        """When the clock ticks after some more ticks."""
        tick, beat = self.window.state.tick, self._beat
        assert tick is not None
        assert beat is not None
        return tick + ticks * beat

    def due(self) -> int | None:
        """When time does something by itself next, apart from ticks."""
        return None if self.engine is None else self.engine.due()

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine has the state, and goes on from where it is."""
        self._check_idle()
        window = self.window
        if abs(now) >= HUGE or self._lapses(now):
            self.settle()
        while self.engine is not None and (tick := window.state.tick) is not None and tick <= now:
            self._tick(tick, failures)
        if self.engine is None:
            return False
        self.engine.advance(now)
        return True

    def ages_at(self) -> int | None:
        """When the next partition has been idle for longer than its age."""
        return None if self.engine is None else self.engine.ages_at()

    def _lapses(self, now: int) -> bool:
        """Whether the time of a subwindow of its own is over, or the age of a partition."""
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
        engine.advance(window.state.now)  # what is too old goes before anything fires
        self.fire_all(window.state.act, failures)
        if self.engine is not None:
            window.state.tick = self._tick_after(1)

    def fire_all(
        self, otherwise: Callable[[list[Exception]], None], failures: list[Exception]
    ) -> bool:
        """Let every partition fire; false: the event engine has to, which has the state.

        Args:
            otherwise: how the event engine does it, to go on after a firing that failed.
            failures: where exceptions of handlers go, and of consumers.
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
            failed = self._told(firings, failures)
        except Decline as reason:
            self.reason = str(reason)
            self.settle()
            return False
        if failed is not None:
            keys = firings.python_keys()
            self.settle()
            with RepeatedFiring(keys[: failed.row], keys[failed.row], failed.error).in_place(
                window
            ):
                otherwise(failures)
        else:
            engine.commit_all()
        return True

    def _told(self, firings: Firings, failures: list[Exception]) -> FiringFailed | None:
        """Tell the consumer of firings that time caused; the firing that failed, if it is known.

        If it is not known, none of the firings is repeated, and time goes on.
        """
        try:
            return self._failure(firings, self.window.state.consumer)
        except Decline:
            raise
        except Exception as error:
            failures.append(error)
            return None

    # -- as arrays --------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any] | None:
        """The arrays and what batches look like; None: the state is elsewhere."""
        self._check_idle()
        return None if self.engine is None else {"schema": self.engine.schema, **self.engine.dump()}

    def former_parts(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The partitions of a snapshot whose arrays have rows where slices are kept now, if so."""
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

    def loaded(self, state: Mapping[str, Any]) -> Engine:
        """A new engine with the arrays of a window's snapshot; nothing changes yet."""
        dump, times = state["arrays"], (state["start"], state["now"], state["tick"] or 0)
        need(all(type(time) is int for time in times), "the clock")
        need(isinstance(dump["schema"], pa.Schema), "no schema")
        try:
            return self._made(dump["schema"], dump)
        except Decline as reason:
            msg = (
                f"restore(state): arrays are not for this window ({reason}). Build the window as "
                f"it was, or restore a snapshot that was taken without arrays=True."
            )
            raise StateVersionError(msg) from reason

    def manner(self) -> dict[str, Any] | None:
        """What batches look like, and how many are left to the event engine."""
        return {"schema": self.schema, "pause": self._pause, "wait": self._wait}

    def put_manner(self, manner: Mapping[str, Any] | None) -> None:
        """Take batches as `manner` said; None: as at first."""
        found = {"schema": None, "pause": 0, "wait": 0} if manner is None else manner
        pause, wait = (checked_count(found[name], name) for name in ("pause", "wait"))
        need(isinstance(found["schema"], pa.Schema | None), "no schema")
        self.schema, self._pause, self._wait = found["schema"], pause, wait

    def _made(self, schema: pa.Schema, dump: Mapping[str, Any]) -> Engine:
        engine = engine_for(self.window, schema)
        engine.load_dump(dump)
        return engine

    def resume(self, engine: Engine) -> None:
        """Go on with this engine, as if all batches so far had gone into it."""
        self._pause = self._wait = 0
        self.lead(engine)


def parts_of(window: Window[Any, Any], *, asleep: bool = False) -> list[dict[str, Any]]:
    """What the subwindows in storage hold, or what those asleep know, as snapshots have it."""
    state = window.state
    found, stamps = state.asleep if asleep else state.subwindows, state.arrivals.by_subwindow()
    return [snapshot.dumped(state, s, stamps.get(s, ())) for s in found.values()]


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without its encoding, if that is known."""
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
        failures: where exceptions go; they cost no other row its turn.
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
        """Some rows, with these punctuations before and behind them."""
        return MarkedRows(self.batch.slice(lo, hi - lo), marks - lo, self._insert, self.failures)

    def parts(self, alone: Places) -> Iterator[MarkedRows]:
        """All of them, with some of the punctuations by themselves."""
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
        """How many punctuations come before a row."""
        return Counter(self.marks.tolist())

    def insert(self, window: Window[Any, Any], lo: int, hi: int) -> None:
        """Rows lo to hi, hi excluded, with the punctuations before them; at the end, all others."""
        for row in range(lo, hi):
            self._punctuate(window, row)
            self._one(row)
        if hi == len(self._rows):
            self._punctuate(window, hi)

    def cause(self, window: Window[Any, Any], row: int) -> int:
        """What makes windows fire before a row is in, or else with it; the next row."""
        if self._counts[row]:
            self._punctuate(window, row)
            return row
        self._one(row)
        return row + 1

    def _punctuate(self, window: Window[Any, Any], row: int) -> None:
        for _ in range(self._counts.pop(row, 0)):
            try:
                window.punctuate()
            except Exception as error:
                self.failures.append(error)

    def _one(self, row: int) -> None:
        try:
            self._insert(self._rows[row])
        except Exception as error:
            self.failures.append(error)


class RepeatedFiring:
    """A firing that failed: the event engine repeats what caused it, and goes on behind it.

    Args:
        done: the keys of firings with the same cause that are over.
        key: the key of the one that failed.
        error: what it raised.
    """

    def __init__(self, done: Sequence[Any], key: Any, error: Exception) -> None:
        self._done, self._key, self._error = list(done), [key], error

    @contextmanager
    def in_place(self, window: Window[Any, Any]) -> Iterator[None]:
        """Let handlers do nothing for what is over, and raise for what failed."""
        with handling(window, self._rest):
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
def handling(
    window: Window[Any, Any], change: Callable[[Callable[..., None]], Callable[..., None]]
) -> Iterator[None]:
    """Call other handlers of firings for a while."""
    handlers = window.state.handlers
    window.state.handlers = {
        name: change(each) if name in FIRING else each for name, each in handlers.items()
    }
    try:
        yield
    finally:
        window.state.handlers = handlers


def quiet(window: Window[Any, Any]) -> AbstractContextManager[None]:
    """Call no handler of firings for a while."""
    return handling(window, lambda _: lambda window, key: None)


# -- event time -----------------------------------------------------------------------------------


class EventTimeHandOver(HandOver):
    """Takes Arrow batches into a window of event time."""

    def __init__(self, window: EventTimeWindow[Any, Any]) -> None:
        super().__init__(window)
        self.window = window
        self.engine: EventTimeEngine | None = None
        self.schema: pa.Schema | None = None

    @property
    def ahead(self) -> bool:
        """Whether the state is in arrays."""
        return self.engine is not None

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """None: what it has is no partitions."""
        return None

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the batches that have come; None: none have."""
        return self.schema

    def _text(self) -> str:
        return super()._text() if self.engine is None else f"columnar: {self.engine.way}"

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order; all of them arrive now."""
        self.schema = batch.schema
        for at in range(0, batch.num_rows, SLICE):
            part = batch.slice(at, SLICE)
            with self.window.locked(), self._whole():
                self._check_idle()
                if not self._columnar(part):
                    self.settle()
                    self.window.insert_many(rows_of(part))

    def _columnar(self, batch: pa.RecordBatch) -> bool:
        """Whether the columnar engine has taken a batch."""
        if not self._worth(batch.num_rows, WORTH if self.engine is None else 0):
            return False
        try:
            engine = self._ready(batch.schema.remove_metadata())
            if (guard := self.window.state.consumer.guard) is not None:
                guard(batch)
            firings = engine.insert(batch)
            failures = self._tell(engine, firings)
        except Decline as reason:
            self._declined(reason)
            return False
        self._wait = 0
        engine.commit()
        self._forget_keys(engine)
        raise_first(failures)
        return True

    def _forget_keys(self, engine: EventTimeEngine) -> None:
        """Start anew with the keys of open windows, if most of the others are closed."""
        keys = 0 if engine.keys is None else len(engine.keys)
        if keys > CROWD and keys > CROWD + 2 * self.held()[1]:
            self.settle()  # the next batch takes over what is open

    def _ready(self, schema: pa.Schema) -> EventTimeEngine:
        """The engine, with the window's state in it."""
        if self.engine is not None and self.engine.schema != schema:
            self.settle()
        if self.engine is None:
            self.engine = event_time_engine(self.window, schema)
            self._lead()
        return self.engine

    def _tell(self, engine: EventTimeEngine, firings: Firings) -> list[Exception]:
        """Tell the consumer of all firings; those that failed cost no other its turn."""
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
        """The least watermark that closes a window; for state that is in arrays."""
        assert self.engine is not None
        return self.engine.closes()

    def absorb(self, parts: Sequence[SlicePartials], schema: pa.Schema) -> None:
        """Take rows that were folded elsewhere by the same functions."""
        partials = SlicePartials.joined(parts)
        with self.window.locked(), self._whole():
            self._check_idle()
            try:
                engine = self._ready(schema)
                engine.absorb(partials)
            except Decline:  # such as sums that have become too large for arrays
                self.settle()
                engine = event_time_engine(self.window, schema, empty=True)
                self.window.event_time_state.absorb(engine.contents(partials), partials.sample)
                return
            engine.commit()

    def reach(self, watermark: Any) -> bool:
        """Whether the columnar engine has closed the windows that end up to a watermark."""
        engine = self.engine
        assert engine is not None
        try:
            failures = self._tell(engine, engine.reach(watermark))
        except Decline:
            self.settle()
            return False
        engine.commit()
        raise_first(failures)
        return True

    def held(self) -> tuple[int, int]:
        """How many tuples and how many partitions the arrays have."""
        assert self.engine is not None
        return self.engine.held()

    def finish(self) -> None:
        """The input has ended: all open windows fire."""
        engine = self.engine
        if engine is None:
            return
        try:
            failures = self._tell(engine, engine.finish())
        except Decline:
            self.settle()
            return
        engine.commit()
        self.settle()
        raise_first(failures)

    def settle(self) -> None:
        """Give the state back to the event engine."""
        engine = self.engine
        if engine is None:
            return
        self._check_idle()
        self.engine = None
        self.window.state.lead(False)
        engine.unload()
