"""Farms that give away windows, or parts of them: the emitter is here, the work elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.ipc import packed, unpacked
from windowlib.columnar.stamps import Stamps
from windowlib.failure import raise_first
from windowlib.farms.chunks import Chunk, Reader, Run, runs_of
from windowlib.farms.emitter import TIME, Emitter, Firing, Numbering, Stretch
from windowlib.farms.running import Failure, RunningFarm
from windowlib.farms.schedule import Task
from windowlib.farms.station import Pieces, Station
from windowlib.farms.work import Given, Work
from windowlib.running import kept

if TYPE_CHECKING:
    from windowlib.farms.farm import Farm

ROOM = 1 << 16
"""So many rows may be held beyond twice what is needed."""


class RunningWindows(RunningFarm):
    """A farm whose emitter keeps the window, and gives away what fires."""

    station = Station

    def __init__(self, farm: Farm, *args: Any, **options: Any) -> None:
        super().__init__(farm, *args, **options)
        (spec,) = farm.operator.windows
        assert spec is not None
        spec = replace(spec, order_by=None)  # batches come in that order
        self.local = Work(farm.operator)
        partial = self.local.window._partial
        at_end = getattr(farm.operator, "flush_at_end", False)
        self.emitter = Emitter(spec, partial, at_end).open(self._now / 1e6)
        self.numbering = Numbering(spec)
        self.schema: pa.Schema | None = None  # of the rows that have come
        self.base = 0  # the first row of the last batch
        self.stamps: Stamps | None = None  # when its rows came, as they are stored; None: now
        self.pattern = farm.pattern(self)
        self._limit, self._seen = ROOM, 0

    @property
    def _emitter(self) -> Emitter:
        operator = self.emitter.operator
        assert isinstance(operator, Emitter)
        return operator

    @property
    def _window(self) -> Any:
        """The emitter's window."""
        (window,) = self._emitter.containers
        return window

    @property
    def start(self) -> int:
        """When the clock started, in microseconds; a restored one started long before."""
        start: int = self._window._start
        return start

    @property
    def timed(self) -> bool:
        """Whether its window runs on the clock."""
        return self.emitter.timed

    def due(self) -> int | None:
        """When its window acts next."""
        return self.emitter.due()

    def _wakes(self) -> int | None:
        return self.emitter._wakes()

    def _ticks(self) -> int | None:
        tick: int | None = self._window._tick
        return tick

    def _batch(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        """Store rows, let the emitter see them, and give away what fires."""
        layout = self.numbering.take(batch, self.chunks.end, stamps)
        self.schema = batch.schema.remove_metadata()
        failures: list[Exception] = []
        with kept(failures):  # up to a row that it refuses, all have been taken
            self.emitter.insert_batch(layout.marks, times=None if stamps is None else TIME)
        taken = self._taken() if failures else batch.num_rows
        self._seen += taken
        base = self.base = self.chunks.append(layout.batch).base
        stored = stamps is not None and layout.order is not None
        self.stamps = stamps[layout.order] if stored else stamps  # type: ignore[index]
        self.pattern.arrived(self.numbering.stretches(layout, base, taken))
        self._fired()
        self.pattern.behind()
        self.throttle()
        self._release()
        raise_first(failures)

    def _taken(self) -> int:
        """How many rows of a batch the emitter has taken that has refused one."""
        return int(self._window.seen) - self._seen

    def _punctuate(self, port: int) -> None:
        self.emitter.punctuate()
        self._fired()
        marks = [
            (number,)
            for number, output in enumerate(self.model.outputs)
            if output.preserves == port
        ]
        if marks:
            self._end_batch()
            self.deliver(self.collector.next(), list(marks))
        self.throttle()

    def _advance(self, now: int) -> None:
        self.emitter.advance_micros(now)
        self._fired()
        self.throttle()

    def _finish(self) -> None:
        self.emitter.finish()
        self._fired()

    def _end_batch(self) -> None:
        self.pattern.flush()

    def _worked(self, worker: int, rows: int, seconds: float) -> None:
        self.pattern.worked(worker, rows, seconds)

    def _fired(self) -> None:
        """Give away what has fired."""
        emitter = self._emitter
        firings, emitter.fired = emitter.fired, []
        for firing in firings:
            number = self.collector.next()
            if firing.empty:
                self.put(Task("empty", (firing.now,), then=self.receiver([number])))
            else:
                self.pattern.fired(firing, number)
        self.pattern.flush_full()

    # -- for patterns -----------------------------------------------------------------------------

    def receiver(self, numbers: list[int]) -> Any:
        """What takes the results of windows: a list for each."""

        def receive(found: Any) -> None:
            if isinstance(found, Failure):
                for number in numbers:
                    self.deliver(number, found if number == numbers[0] else [])
                return
            for number, items in zip(numbers, found, strict=True):
                self.deliver(number, items)

        return receive

    def pieces(self, runs: list[Run]) -> Pieces:
        """Where the rows of runs are; without any, what columns they would have."""
        return self.chunks.pieces(runs) or self.schema or []

    # -- memory -----------------------------------------------------------------------------------

    def _release(self) -> None:
        """Give up chunks behind the oldest row that a window holds, or a task under way reads."""
        if self.chunks.rows <= self._limit:
            return
        emitter = self._emitter
        needed = emitter.needed()
        oldest = [task.first for task in self.scheduler if task.first is not None]
        oldest += [int(needed[0])] if len(needed) else [self.chunks.end]
        held = self.pattern.oldest()
        self.chunks.release(min(oldest if held is None else [*oldest, held]))
        if self.chunks.rows > 2 * len(needed) + self._limit:
            self.drain()
            self.chunks.thin(needed)
        self._limit = max(ROOM, 2 * self.chunks.rows)

    # -- state ------------------------------------------------------------------------------------

    def _saved(self) -> Any:
        emitter = self._emitter
        needed = emitter.needed()
        rows = None
        if len(needed):
            rows = packed(Reader(self.chunks.folder).read(self.chunks.pieces(runs_of(needed))))
        keys = self.numbering.keys
        known = None if keys is None else keys.values(np.arange(len(keys)))
        return {
            "emitter": self.emitter.snapshot(),
            "rows": rows,
            "numbers": needed.tolist(),
            "end": self.chunks.end,
            "schema": self.schema,
            "keys": known,
            "counts": self.numbering.counts.tolist(),
            "seen": self._seen,
            "pattern": self.pattern.saved(),
        }

    def _load(self, state: Any) -> None:
        self.chunks.release(self.chunks.end)
        self.emitter.restore(state["emitter"])
        if state["rows"] is not None:
            (batch,) = unpacked(state["rows"]).to_batches()
            number, size = self.chunks.write(batch)
            numbers = np.array(state["numbers"], np.int64)
            base = int(numbers[0])
            self.chunks.add(Chunk(number, base, state["end"] - base, size, numbers))
        self.schema, self.chunks.end = state["schema"], state["end"]
        if self.numbering.keys is not None and state["keys"]:
            types = [self.schema.field(name).type for name in self.numbering.keys.names]
            self.numbering.keys.load(state["keys"], types)
        self._seen = state["seen"]
        self.numbering.counts = np.array(state["counts"], np.int64)
        self.pattern.load(state["pattern"])


class Pattern:
    """How windows become tasks."""

    def __init__(self, run: RunningWindows) -> None:
        self.run, self.farm = run, run.farm

    def arrived(self, stretches: Iterable[Stretch]) -> None:
        """Tuples are stored, and what they fire has not been told."""

    def fired(self, firing: Firing, number: int) -> None:
        """A window fires; its results have a number."""
        raise NotImplementedError

    def behind(self) -> None:
        """What the tuples fired has fired."""

    def flush_full(self) -> None:
        """All that has fired at once has been told."""

    def flush(self) -> None:
        """Nothing may be held back."""

    def worked(self, worker: int, rows: int, seconds: float) -> None:
        """A worker has done a task."""

    def oldest(self) -> int | None:
        """The oldest row that is needed beside those of the window and of tasks."""
        return None

    def saved(self) -> Any:
        """State between two calls, when nothing is under way."""
        return None

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""


def given(firings: Iterable[Firing]) -> tuple[list[Run], list[Given], int | None]:
    """Windows over the rows of all of them: runs, where each is, and the oldest row.

    Neighbours of one partition share what they have in common.
    """
    runs: list[Run] = []
    found: list[Given] = []
    size, before, begin = 0, None, 0
    for firing in firings:
        if before is not None and before.key == firing.key and before.lo <= firing.lo <= before.hi:
            lo = begin + firing.lo - before.lo
            new = firing.runs(before.hi) if firing.hi > before.hi else []
        else:
            lo, new = size, firing.runs()
        runs += new
        size += sum(hi - lo for lo, hi in new)
        found.append(Given(firing.key, lo, lo + firing.hi - firing.lo, firing.now))
        before, begin = firing, lo
    return runs, found, min((lo for lo, _ in runs), default=None)
