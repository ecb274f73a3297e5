"""Batches for one window: which engine takes them, and how state passes between the two.

A window's state is in its subwindows, where the event engine works, or in the arrays of a columnar
engine. It moves when the other one is needed: to the arrays with a batch that they can do exactly,
back with the first call that asks for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib import snapshot
from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine
from windowlib.columnar.failed import Failed
from windowlib.columnar.firings import Firings
from windowlib.dicts import rows_of

if TYPE_CHECKING:
    from windowlib.window import Window

WORTH = 256
"""Rows from which on it pays to move the state to arrays."""
SLICE = 1 << 16
"""Rows that are worked on at once: their columns fit the cache."""
MANY = 1 << 14
"""With more partitions than this, slices are longer, so that each partition gets a few rows."""
PATIENCE = 64
"""The most batches that are left to the event engine before the next try."""

Consumer = Callable[[Firings], None]


class Batches:
    """Takes Arrow batches into a window, by whichever engine can do it exactly."""

    def __init__(self, window: Window[Any, Any]) -> None:
        self.window = window
        self.engine: Engine | None = None
        self.schema: pa.Schema | None = None  # of the batches that have come
        self.reason = "no batch has come"
        self._pause = self._wait = 0
        self._handlers: Consumer | None = None

    def insert(self, batch: pa.RecordBatch) -> None:
        """Insert each row in order."""
        self.schema = batch.schema
        for part in self._slices(batch):
            if not self._columnar(part):
                self.settle()
                self.window.insert_many(rows_of(part))

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        step, at = SLICE, 0
        while at < batch.num_rows:
            if self.engine is not None and self.engine.keys is not None:
                many = len(self.engine.keys) > MANY
                step = SLICE * 16 if many else SLICE
            yield batch.slice(at, step)
            at += step

    def _columnar(self, batch: pa.RecordBatch) -> bool:
        """Whether the columnar engine has taken a batch."""
        if self._pause:
            self._pause -= 1
            return False
        if self.engine is None and batch.num_rows < WORTH:
            self.reason = f"fewer than {WORTH} rows at once"
            return False
        try:
            engine = self._ready(batch.schema)
            firings = engine.insert(batch)
        except Decline as reason:
            self._declined(reason)
            return False
        try:
            self._tell(firings)
        except Failed as failed:
            self._fail(engine, batch, failed)
        engine.commit()
        self._wait = 0
        return True

    def _ready(self, schema: pa.Schema) -> Engine:
        """The engine, with the window's state in it."""
        schema = schema.remove_metadata()
        if self.engine is not None and self.engine.schema != schema:
            self.settle()
        if self.engine is None:
            from windowlib.columnar.choice import engine_for, handlers_of

            window = self.window
            engine = engine_for(window, schema)
            self._handlers = handlers_of(window)
            engine.load([snapshot._part(window, s) for s in window._subs.values()])
            self.engine = engine
            window._lead(True)
        return self.engine

    def _declined(self, reason: Decline) -> None:
        """Leave some batches to the event engine, more of them every time."""
        self.reason = str(reason)
        self._wait = min(2 * self._wait + 1, PATIENCE)
        self._pause = self._wait - 1

    def _tell(self, firings: Firings) -> None:
        consumer = self.window._consumer or self._handlers
        if consumer is not None and len(firings):
            consumer(firings)

    def _fail(self, engine: Engine, batch: pa.RecordBatch, failed: Failed) -> None:
        """Bring the window to where the event engine would have stopped, and raise."""
        if failed.row:
            engine.insert(batch.slice(0, failed.row))
            engine.commit()
        self.settle()

        def again(*_: Any) -> None:
            raise failed.error

        from windowlib.columnar.choice import FIRING

        window, handlers = self.window, self.window._on
        (row,) = batch.slice(failed.row, 1).to_pylist()
        window._rehandled({**handlers, **dict.fromkeys(FIRING & set(handlers), again)})
        try:
            window.insert(row)
        finally:
            window._rehandled(handlers)

    def settle(self) -> None:
        """Give the state back to the event engine."""
        engine, window = self.engine, self.window
        if engine is None:
            return
        self.engine = None
        window._lead(False)
        ids = engine.stored()
        subs = [snapshot._restored(window, part) for part in engine.parts(ids)]
        snapshot.fill(window, subs, engine.left)
        if window._pe is not None:
            named = dict(zip(ids.tolist(), subs, strict=True))
            window._pe.refill([named[i] for i in engine.used_order().tolist()])
