"""Batches for one window: which engine takes them, and how state passes between the two.

A window's state is in its subwindows, where the event engine works, or in the arrays of a columnar
engine. It moves when the other one is needed: to the arrays with a batch that they can do exactly,
back with the first call that asks for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib import snapshot
from windowlib.arrivals import Times
from windowlib.columnar.decline import Decline
from windowlib.columnar.dumps import need, whole
from windowlib.columnar.engine import Engine
from windowlib.columnar.failed import failure_of
from windowlib.columnar.firings import Firings
from windowlib.columnar.physical import plain_type
from windowlib.columnar.stamps import Stamps, read
from windowlib.columnar.ticks import Broken, Ticks, quiet
from windowlib.dicts import rows_of
from windowlib.errors import AccessError, StateVersionError
from windowlib.policies import Attribute

if TYPE_CHECKING:
    from windowlib.window import Window

WORTH = 256
"""Rows from which on it pays to move the state to arrays."""
SLICE = 1 << 16
"""Rows that are worked on at once: their columns fit the cache."""
CROWD = 1 << 17
"""Keys without a partition that are of no concern."""
FIRST = 1 << 14
"""Rows of the first slice, which shows what is coming."""
PATIENCE = 64
"""The most batches that are left to the event engine before the next try."""

Consumer = Callable[[Firings], None]


class Batches(Ticks):
    """Takes Arrow batches into a window, by whichever engine can do it exactly."""

    def __init__(self, window: Window[Any, Any]) -> None:
        self.window = window
        self.engine: Engine | None = None
        self.schema: pa.Schema | None = None  # of the batches that have come
        self.reason = "no batch has come"
        self._pause = self._wait = 0
        self._crowd = CROWD  # keys from which on it is worth asking whether they are in use
        self._telling = False  # whether firings of a batch are being told
        self._handlers: Consumer | None = None
        self.cause: Callable[[int], None] | None = None
        """Told, where somebody asks, which row of a batch causes what happens next."""

    @property
    def arrays(self) -> Engine | None:
        """What has the window's state, if it is in arrays."""
        return self.engine

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order; all of them arrive now."""
        self.schema = batch.schema
        for part in self._slices(batch):
            with self.window.locked():
                self._insert(part, None)

    def insert_timed(self, batch: pa.RecordBatch, times: Attribute) -> list[Any]:
        """For each row, advance to the time in a column, and insert it.

        Gives back, as tuples, the rows from the first on whose time is none, or lies in the past.
        """
        self.schema, window, at = batch.schema, self.window, 0
        stamps = read(batch, times, window._now)
        if window._acting:  # a handler must not move the clock, which is said elsewhere
            stamps = stamps[:0]
        for part in self._slices(batch.slice(0, len(stamps))):
            with window.locked():
                self._insert(part, stamps[at : at + part.num_rows])
            at += part.num_rows
        rest: list[Any] = batch.slice(at).to_pylist()
        return rest

    def one_by_one(self, rows: Sequence[Any], times: Times) -> None:
        """The same for rows whose times Python has to read, or to say what is wrong with them."""
        window = self.window
        for row in rows:
            with window.locked():
                window._advance(times(row))
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
            window._advance(now)
            window.insert(row)

    def plain_schema(self) -> pa.Schema | None:
        """The schema of the rows that have come, without encodings; None: none have."""
        if self.schema is None:
            return None
        return pa.schema([(field.name, _plain(field.type)) for field in self.schema])

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < batch.num_rows:
            step = min(SLICE, FIRST) if self.engine is None else self.engine.step(SLICE)
            yield batch.slice(at, step)
            at += step

    def _columnar(self, batch: pa.RecordBatch, stamps: Stamps | None) -> int:
        """How many rows of a batch the columnar engine has taken, with what is due before them."""
        if self._pause:
            self._pause -= 1
            return 0
        if self.engine is None and batch.num_rows < WORTH:
            self.reason = f"fewer than {WORTH} rows at once"
            return 0
        window, taken = self.window, 0
        try:
            for lo, hi in self._stretches(batch.num_rows, stamps):
                part = None if stamps is None else stamps[lo:hi]
                if part is not None and window._tick is not None and window._tick <= part[0]:
                    self._advance(int(part[0]))
                engine = self._ready(batch.schema, batch.num_rows)
                self._take(engine, batch.slice(lo, hi - lo), part)
                taken = hi
        except Decline as reason:
            self._declined(reason)
            return taken
        self._wait = 0
        return taken

    def _advance(self, now: int) -> None:
        """Let happen what is due before a row, with the state where it is."""
        ahead = self.engine is not None
        self.window._advance(now)
        if ahead and self.engine is None and self.window._subs:
            raise Decline(self.reason)  # and not the same again at the next tick

    def _take(self, engine: Engine, batch: pa.RecordBatch, stamps: Stamps | None) -> None:
        """Insert rows, with all that is due in between."""
        if self.window._guard is not None:
            self.window._guard(batch)
        engine.arrive(stamps)
        firings = engine.insert(batch)
        firings.times = engine.times(firings)
        rows = firings.rows
        if engine.together:  # then a failure has to say which one it was
            firings.rows = np.arange(len(firings))
        if (failed := failure_of(self._tell, firings)) is not None:
            at = failed.row if engine.together else int(np.searchsorted(rows, failed.row))
            first, keys = int(np.searchsorted(rows, rows[at])), firings.python_keys()
            broken = Broken(keys[first:at], keys[at], failed.error)
            self._fail(batch, stamps, int(rows[at]), broken)
        self._commit(engine)

    def _commit(self, engine: Engine) -> None:
        ticks, window = engine.ticks, self.window
        engine.commit()
        window._now = engine.now
        if ticks:
            window._tick = self._tick_after(ticks)
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
        schema = schema.remove_metadata()
        if self.engine is not None and self.engine.schema != schema:
            self.settle()
        if self.engine is None:
            from windowlib.columnar.choice import engine_for

            window = self.window
            engine = engine_for(window, schema)
            engine.check_load(rows)
            engine.load([snapshot._part(window, s) for s in window._subs.values()])
            engine.load_asleep([snapshot._part(window, s) for s in window._asleep.values()])
            self.lead(engine)
            return engine
        return self.engine

    def lead(self, engine: Engine) -> None:
        """The window's state is in this engine from now on."""
        from windowlib.columnar.choice import handlers_of

        self._handlers = handlers_of(self.window)
        self.engine, self.schema = engine, engine.schema
        self.window._lead(True)

    def _declined(self, reason: Decline) -> None:
        """Leave some batches to the event engine, more of them every time."""
        self.reason = str(reason)
        self._wait = min(2 * self._wait + 1, PATIENCE)
        self._pause = self._wait - 1

    def _tell(self, firings: Firings) -> None:
        consumer = self.window._consumer or self._handlers
        if consumer is not None and len(firings):
            self._telling = True
            try:
                consumer(firings)
            finally:
                self._telling = False

    def _check_idle(self) -> None:
        """Refuse to be used by somebody who is being told of a batch that is not yet taken."""
        if self._telling:
            msg = (
                f"{type(self.window).__name__}: it is taking a batch, and what it holds is not "
                f"worked out. Use it between two calls; handlers with content='arrow' may read "
                f"the partition they are called for."
            )
            raise AccessError(msg)

    def _fail(self, batch: pa.RecordBatch, stamps: Stamps | None, row: int, broken: Broken) -> None:
        """Bring the window to where the event engine would have stopped, and raise."""
        window = self.window
        if self.engine is not None:
            window._now = self.engine.now  # which it was when the batch came
        self.settle()
        *before, tuple_ = rows_of(batch.slice(0, row + 1))
        with quiet(window):  # of these firings somebody has been told
            self._by_rows(before, stamps)
        with broken.in_place(window):
            if stamps is not None:
                window._advance(int(stamps[row]))
            window.insert(tuple_)

    def settle(self) -> None:
        """Give the state back to the event engine."""
        engine, window = self.engine, self.window
        if engine is None:
            return
        self._check_idle()
        self.engine = None
        window._lead(False)
        ids = engine.stored()
        subs = [snapshot._restored(window, part) for part in engine.parts(ids)]
        window._asleep.clear()
        if len(asleep := engine.asleep()):
            named = [snapshot._restored(window, part) for part in engine.parts(asleep)]
            window._asleep.update((s.key, s) for s in named)
        snapshot.fill(window, subs, engine.left)
        if window._pe is not None:
            numbered = dict(zip(ids.tolist(), subs, strict=True))
            window._pe.refill([numbered[i] for i in engine.used_order().tolist()])

    # -- as arrays --------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any] | None:
        """The arrays and what batches look like; None: the state is elsewhere."""
        self._check_idle()
        return None if self.engine is None else {"schema": self.engine.schema, **self.engine.dump()}

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
        pause, wait = (whole(found[name], name) for name in ("pause", "wait"))
        need(isinstance(found["schema"], pa.Schema | None), "no schema")
        self.schema, self._pause, self._wait = found["schema"], pause, wait

    def _made(self, schema: pa.Schema, dump: Mapping[str, Any]) -> Engine:
        from windowlib.columnar.choice import engine_for

        engine = engine_for(self.window, schema)
        engine.load_dump(dump)
        return engine

    def resume(self, engine: Engine) -> None:
        """Go on with this engine, as if all batches so far had gone into it."""
        self._pause = self._wait = 0
        self.lead(engine)


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without its encoding, if that is known."""
    try:
        return plain_type(kind)
    except Decline:
        return kind
