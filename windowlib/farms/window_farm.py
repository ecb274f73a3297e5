"""Farms whose emitter runs the window, and whose workers compute windows or parts of them.

In window farming whole windows go to workers, which apply the operator's function to each.
Agnostic workers are given a window when it fires and they are free. Active workers have windows of
their own, one in n of each partition, and are given the tuples as they come, so that a function of
single tuples has done most of its work when the window fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.columnar.arrays.stamps import Stamps
from windowlib.columnar.primitives import Array
from windowlib.farms.chunks import ChunkReader, RowChunk, RowRange, add_range, row_ranges
from windowlib.farms.emitter import (
    AT,
    INDEX,
    TIME,
    Emitter,
    RowNumbering,
    StoredExtent,
    StoredFiring,
)
from windowlib.farms.evaluator import BatchExtent, ColumnResults, WindowEvaluator
from windowlib.farms.models import CountWindows, RegularWindows, TimeWindows, model_of
from windowlib.farms.round_robin import RoundRobin, key_shift
from windowlib.farms.running_farm import FailedResult, RunningFarm
from windowlib.farms.scheduler import Task
from windowlib.farms.transfer import described_as, stored_window, tuple_window
from windowlib.farms.worker import ExtentColumns, TaskRows, WindowWorker
from windowlib.runtime.running import collect_failures
from windowlib.spec.specification import Tumbling
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.failure import raise_first

if TYPE_CHECKING:
    from windowlib.farms.farm import Farm

TASK = 5e-3
"""Seconds of work that make a task."""
LONG = 4
"""How many times as much it may be while many windows wait: a task costs the caller 0.1 ms."""
LEARN, DOUBT = 0.5, 0.1
"""How much a task counts for how long the next will take: if it was faster than those before it, or
slower, which may be because others had the processor."""
MOST = 1024
"""Windows in a task at most."""
ROOM = 1 << 16
"""So many rows may be held beyond twice what is needed."""


class RunningWindowFarm(RunningFarm):
    """A farm whose emitter runs the window, and dispatches what fires."""

    worker = WindowWorker

    def __init__(self, farm: Farm, *args: Any, **options: Any) -> None:
        super().__init__(farm, *args, **options)
        (spec,) = farm.operator.windows
        assert spec is not None
        spec = replace(spec, order_by=None)  # batches come in that order
        self.evaluator = WindowEvaluator(farm.operator)
        partial = self.evaluator.window.state.consumer.partial
        at_end = getattr(farm.operator, "flush_at_end", False)
        self.emitter = Emitter(spec, partial, at_end).open(self._now / 1e6)
        self.numbering = RowNumbering(spec)
        self.schema: pa.Schema | None = None  # of the rows that have come
        self.base = 0  # the first row of the last batch
        self.stamps: Stamps | None = None  # when its rows came, as they are stored; None: now
        self.dispatch = farm.dispatch(self)
        self._limit, self._rows_seen = ROOM, 0

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
        start: int = self._window.state.start
        return start

    @property
    def timed(self) -> bool:
        """Whether its window runs on the clock."""
        return self.emitter.timed

    def due(self) -> int | None:
        """When its window acts next."""
        return self.emitter.due()

    def _visible_due(self) -> int | None:
        return self.emitter._visible_due()

    def _next_tick(self) -> int | None:
        tick: int | None = self._window.state.tick
        return tick

    def _insert_batch_rows(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        """Store rows, pass them to the emitter, and dispatch what fires."""
        layout = self.numbering.take(batch, self.chunks.end, stamps)
        self.schema = batch.schema.remove_metadata()
        failures: list[Exception] = []
        with collect_failures(failures):  # up to a row that it refuses, all have been taken
            self.emitter.insert_batch(
                layout.emitter_columns, times=None if stamps is None else TIME
            )
        taken = self._rows_taken() if failures else batch.num_rows
        self._rows_seen += taken
        base = self.base = self.chunks.append(layout.batch).base
        stored = stamps is not None and layout.order is not None
        self.stamps = stamps[layout.order] if stored else stamps  # type: ignore[index]
        self.dispatch.arrived(self.numbering.extents(layout, base, taken))
        self._dispatch_firings()
        self.dispatch.after_firings()
        self.throttle()
        self._release()
        raise_first(failures)

    def _rows_taken(self) -> int:
        """How many rows of a batch the emitter has taken before it refused one."""
        return int(self._window.seen) - self._rows_seen

    def _punctuate(self, port: int) -> None:
        self.emitter.punctuate()
        self._dispatch_firings()
        marks = [
            (number,)
            for number, output in enumerate(self.model.outputs)
            if output.preserves == port
        ]
        if marks:
            self._end_batch()
            self.deliver(self.reserve(), list(marks))
        self.throttle()

    def _advance(self, now: int) -> None:
        self.emitter.advance_micros(now)
        self._dispatch_firings()
        self.throttle()

    def _finish(self) -> None:
        self.emitter.finish()
        self._dispatch_firings()

    def _end_batch(self) -> None:
        self.dispatch.flush()

    def _task_done(self, worker: int, task: Task, seconds: float) -> None:
        self.dispatch.worked(worker, task, seconds)

    def _answers_processed(self) -> None:
        self.dispatch.flush_full()

    def _held_tasks(self) -> int:
        return int(self.dispatch.held_tasks())

    def _dispatch_firings(self) -> None:
        """Dispatch what has fired."""
        emitter = self._emitter
        firings, emitter.fired = emitter.fired, []
        first = self.reserve(len(firings))
        if not any(firing.empty or firing.late for firing in firings):
            self.dispatch.fired_together(firings, first)
        else:  # punctuations and late rows, of which there are few
            for number, firing in enumerate(firings, first):
                self._dispatch_firing(firing, number)
        self.dispatch.flush_full()

    def _dispatch_firing(self, firing: StoredFiring, number: int) -> None:
        if firing.empty:
            self.submit(Task("empty", (firing.now,), then=self.receiver([number])))
        elif firing.late:
            (row,) = self._read_rows(firing.runs()).to_pylist()
            self.deliver(number, [(self.model.output("late", self.farm.name), row)])
        else:
            self.dispatch.fired(firing, number)

    def _read_rows(self, runs: list[RowRange]) -> Any:
        """The rows of runs, as they are stored."""
        return ChunkReader(self.chunks.folder).read(self.chunks.chunk_ranges(runs))

    # -- for patterns -----------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether there are fewer tasks than workers."""
        return len(self.scheduler) < self.workers

    def open_keys(self) -> Any:
        """The keys that have open windows."""
        return self._window.keys()

    def needed(self) -> Array:
        """The numbers of all rows that the window holds, ascending."""
        return self._emitter.needed()

    def passed(self, key: Any, start: Mapping[int, int]) -> dict[int, Array]:
        """The rows of open windows of event time that the watermark has passed."""
        return self._emitter.passed(key, start)

    def receiver(self, numbers: list[int]) -> Any:
        """A function that takes the results of windows, a list for each."""

        def receive(found: Any) -> None:
            if isinstance(found, FailedResult):
                for number in numbers:
                    self.deliver(number, found if number == numbers[0] else [])
                return
            if isinstance(found, ColumnResults):
                found = found.windows()
            for number, items in zip(numbers, found, strict=True):
                self.deliver(number, items)

        return receive

    def chunk_ranges(self, runs: list[RowRange]) -> TaskRows:
        """The pieces of chunks with the rows of runs; without rows, their columns."""
        return self.chunks.chunk_ranges(runs) or self.schema or []

    # -- memory -----------------------------------------------------------------------------------

    def _release(self) -> None:
        """Remove chunks behind the oldest row that a window holds or a task reads."""
        if self.chunks.rows <= self._limit:
            return
        emitter = self._emitter
        needed = emitter.needed()
        oldest = [task.first for task in self.scheduler if task.first is not None]
        oldest += [int(needed[0])] if len(needed) else [self.chunks.end]
        held = self.dispatch.oldest()
        self.chunks.release(min(oldest if held is None else [*oldest, held]))
        if self.chunks.rows > 2 * len(needed) + self._limit:
            self.drain()
            self.chunks.compact(needed)
        self._limit = max(ROOM, 2 * self.chunks.rows)

    # -- state ------------------------------------------------------------------------------------

    def _dump(self) -> Any:
        emitter = self._emitter
        needed = emitter.needed()
        rows = None
        if len(needed):
            rows = stream_bytes(self._read_rows(row_ranges(needed)))
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
            "seen": self._rows_seen,
            "dispatch": self.dispatch.saved(),
        }

    def switch_pool(self, pool: Any, workers: int) -> None:
        """Go on with other workers: these hold nothing that is not in chunks as well."""
        super().switch_pool(pool, workers)
        self.dispatch.resized()

    def adopt(self, state: Mapping[str, Any], schema: Any) -> None:
        """Go on from the snapshot of the operator alone, whose batches had these columns."""
        empty, columns = self.emitter.snapshot(), self.numbering.columns
        (window,) = state["windows"]
        if "event_time" in window:
            self._adopt_event_time(state, empty, schema)
            return
        stored = stored_window(
            window, empty["windows"][0], lambda row: {name: row[name] for name in columns}
        )
        rows = self._as_batch(stored.rows, schema) if stored.rows else None
        emitter = {**empty, "windows": [stored.window], "now": state["now"]}
        keys = list(stored.counts) if self.numbering.keys is not None and rows is not None else []
        self._put(
            {
                "now": state["now"],
                "ended": state["ended"],
                "state": {
                    "emitter": emitter,
                    "rows": None if rows is None else stream_bytes(rows),
                    "numbers": list(range(len(stored.rows))),
                    "end": len(stored.rows),
                    "schema": schema if rows is None else rows.schema,
                    "keys": keys,
                    "counts": [stored.counts[key] for key in keys]
                    or [*stored.counts.values(), 0][:1],
                    "seen": 0,
                    "dispatch": None,
                },
            }
        )
        self._rows_seen = int(self._window.seen)
        self.base, self.stamps = 0, stored.stamps
        self.dispatch.adopted(stored.extents, stored.counts)
        self.dispatch.flush_full()

    def _adopt_event_time(
        self, state: Mapping[str, Any], empty: Mapping[str, Any], schema: Any
    ) -> None:
        """`adopt` for windows of event time: the emitter's window gets numbers for its rows."""
        own = described_as(state["windows"][0], empty["windows"][0])
        self.emitter.restore({**empty, "windows": [own], "now": state["now"]})
        self._now = self.worker_time = state["now"]
        self._ended = set(state["ended"])
        self._rows_seen, self.schema = int(self._window.seen), schema
        rows = {id(row): row for row in self._window.all_rows()}
        if rows:
            batch = self._as_batch(list(rows.values()), schema)
            base, self.schema = self.chunks.append(batch).base, batch.schema
            marks = {
                which: {**{name: row[name] for name in self.numbering.columns}, AT: at, INDEX: 0}
                for at, (which, row) in enumerate(rows.items(), base)
            }
            self._window.replace_rows(lambda row: marks[id(row)])

    def operator_snapshot(self) -> dict[str, Any]:
        """The state as a snapshot of the operator alone, after waiting for what is under way."""
        self.drain()
        state, numbers = self.emitter.snapshot(), self._emitter.needed()
        rows: dict[int, Any] = {}
        if len(numbers):
            batch = self._read_rows(row_ranges(numbers))
            rows = dict(zip(numbers.tolist(), batch.to_pylist(), strict=True))
        running = self.farm.operator.open()
        alone = running.snapshot()
        moved = {**alone, "now": self._now, "ended": sorted(self._ended)}
        if "event_time" in state["windows"][0]:
            own = described_as(state["windows"][0], alone["windows"][0])
            running.restore({**moved, "windows": [own]})
            (window,) = running.operator.containers
            assert isinstance(window, EventTimeWindow)
            window.replace_rows(lambda mark: rows[mark[AT]])
            return running.snapshot()
        own = tuple_window(state["windows"][0], alone["windows"][0], rows)
        return {**moved, "windows": [own]}

    def _load(self, state: Any) -> None:
        self.chunks.release(self.chunks.end)
        self.emitter.restore(state["emitter"])
        if state["rows"] is not None:
            (batch,) = stream_table(state["rows"]).to_batches()
            number, size = self.chunks.write(batch)
            numbers = np.array(state["numbers"], np.int64)
            base = int(numbers[0])
            self.chunks.add(RowChunk(number, base, state["end"] - base, size, numbers))
        self.schema, self.chunks.end = state["schema"], state["end"]
        if self.numbering.keys is not None and state["keys"]:
            types = [self.schema.field(name).type for name in self.numbering.keys.names]
            self.numbering.keys.load(state["keys"], types)
        self._rows_seen = state["seen"]
        self.numbering.counts = np.array(state["counts"], np.int64)
        self.dispatch = self.farm.dispatch(self)  # which knows nothing of other rows
        if state["dispatch"] is not None:
            self.dispatch.load(state["dispatch"])


class Dispatch:
    """How windows become tasks."""

    def __init__(self, run: RunningWindowFarm) -> None:
        self.run, self.farm = run, run.farm

    def arrived(self, stored_extents: Iterable[StoredExtent]) -> None:
        """Tuples are stored; their firings are not known yet."""

    def fired(self, firing: StoredFiring, number: int) -> None:
        """A window fires; its results have a number."""
        raise NotImplementedError

    def fired_together(self, firings: Sequence[StoredFiring], first: int) -> None:
        """Windows fire; their results have numbers from `first` on."""
        for number, firing in enumerate(firings, first):
            self.fired(firing, number)

    def after_firings(self) -> None:
        """All firings of the tuples that arrived have been passed to `fired`."""

    def flush_full(self) -> None:
        """All windows that fire at this moment have been passed to `fired`."""

    def flush(self) -> None:
        """Submit all windows that are held back."""

    def worked(self, worker: int, task: Task, seconds: float) -> None:
        """A worker has done a task."""

    def held_tasks(self) -> int:
        """How many whole tasks are held back."""
        return 0

    def oldest(self) -> int | None:
        """The oldest row that is needed beside those of the window and of tasks."""
        return None

    def adopted(self, extents: Iterable[StoredExtent], counts: Mapping[Any, int]) -> None:
        """Tuples that came before the farm are stored; `counts` are those of each partition."""

    def resized(self) -> None:
        """The workers have been replaced, and have no tuples yet."""

    def saved(self) -> Any:
        """State between two calls, when nothing is under way."""
        return None

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""


def extent_columns(firings: Sequence[StoredFiring]) -> tuple[list[RowRange], ExtentColumns]:
    """Windows over the rows of all of them: runs, and where each window is in these.

    Neighbours of one partition share what they have in common.
    """
    runs: list[RowRange] = []
    starts: list[int] = []
    ends: list[int] = []
    size, before, begin = 0, None, 0
    for firing in firings:
        lo, hi = firing.lo, firing.hi
        if before is not None and _shares(before, firing):
            begin += lo - before.lo
            new = before.hi
        else:
            begin, new = size, lo
        if hi > new:
            for each in firing.runs(new, hi):
                add_range(runs, each)
            size += hi - new
        starts.append(begin)
        ends.append(begin + hi - lo)
        before = firing
    return runs, ([each.key for each in firings], starts, ends, [each.now for each in firings])


def _shares(before: StoredFiring, firing: StoredFiring) -> bool:
    """Whether a window begins with what another one has, from some tuple on."""
    if before.key != firing.key or before.gaps or firing.gaps:
        return False
    return before.lo <= firing.lo <= before.hi


# -- window farming -------------------------------------------------------------------------------


HeldFiring = tuple[StoredFiring, int]
"""A window that fires, and the number of its results."""


class AgnosticDispatch(Dispatch):
    """Any worker may have any window; `batch` neighbours of a partition go together.

    Without a `batch`, windows of all partitions go together, as many as are `TASK` seconds of work
    by what the last ones took, or a share of those that wait. Idle workers get whatever waits.
    """

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self._held: list[HeldFiring] = []
        self._held_by_key: dict[Any, list[HeldFiring]] = {}  # by partition, for a `batch`
        self._seconds: float | None = None  # that a window takes
        self.size = 1
        """How many windows make a task, where nothing else is said."""

    def fired(self, firing: StoredFiring, number: int) -> None:
        """Hold it until there are enough of its partition, or of all."""
        self.fired_together([firing], number)

    def fired_together(self, firings: Sequence[StoredFiring], first: int) -> None:
        """Hold them until there are enough of a partition, or of all."""
        pairs = zip(firings, count(first), strict=False)
        if self.farm.batch is None:
            self._held += pairs
            while self._seconds is not None and len(self._held) >= self.size:
                self._submit_some()
            return
        for pair in pairs:
            held = self._held_by_key.setdefault(pair[0].key, [])
            held.append(pair)
            if len(held) >= self.farm.batch:
                self._submit(self._held_by_key.pop(pair[0].key))

    def worked(self, worker: int, task: Task, seconds: float) -> None:
        """Estimate how long windows take; the fast ones of the last tasks count most."""
        if task.windows:
            each = seconds / task.windows
            before = each if self._seconds is None else self._seconds
            self._seconds = before + (LEARN if each < before else DOUBT) * (each - before)
            self.size = min(MOST, max(1, int(TASK / max(self._seconds, 1e-9))))

    def flush_full(self) -> None:
        """Submit held windows while a worker is idle; one by one at first."""
        while self._held and self.run.idle:
            self._submit_some()

    def held_tasks(self) -> int:
        """How many tasks the held windows make, at the present size of a task."""
        return len(self._held) // self.size

    def _submit_some(self) -> None:
        share = len(self._held) // (LONG * self.run.workers)  # so that the last ones are short
        size = min(max(self.size, share), LONG * self.size, MOST)
        held = self._held[:size]
        del self._held[:size]
        self._submit(held)

    def _submit(self, held: list[HeldFiring]) -> None:
        """Submit one task of several windows, neighbours next to each other."""
        if self.run.numbering.keys is not None:
            by_key: dict[Any, list[HeldFiring]] = {}
            for pair in held:
                by_key.setdefault(pair[0].key, []).append(pair)
            held = [pair for some in by_key.values() for pair in some]
        runs, windows = extent_columns([firing for firing, _ in held])
        self.run.submit(
            Task(
                "windows",
                (self.run.chunk_ranges(runs), windows, self.run.as_columns),
                first=min((lo for lo, _ in runs), default=None),
                then=self.run.receiver([number for _, number in held]),
                windows=len(held),
            )
        )

    def flush(self) -> None:
        """Submit all held windows."""
        while self._held:
            self._submit_some()
        for key in list(self._held_by_key):
            self._submit(self._held_by_key.pop(key))

    def oldest(self) -> int | None:
        """The oldest row of a held window."""
        held = chain(self._held, *self._held_by_key.values())
        rows = [firing.oldest for firing, _ in held]
        return min((row for row in rows if row is not None), default=None)


WindowName = tuple[Any, int]
"""A window by its key and its number, which its owner has tuples of before it fires."""


class ActiveDispatch(Dispatch):
    """A window goes to its owner, `batch` neighbours of a partition to the same one."""

    def __init__(self, run: RunningWindowFarm) -> None:
        super().__init__(run)
        self.round_robin = RoundRobin(self.run.workers, self.farm.batch or 1)
        (spec,) = self.farm.operator.windows
        assert spec is not None
        self.model = model_of(spec)
        self._tumbling = isinstance(spec, Tumbling)
        self._fired: dict[Any, int] = {}
        self._ends: dict[Any, int] = {}  # where the last tumbling window of a partition ended
        self._new_extents: list[StoredExtent] = []
        self._owned_rows: dict[WindowName, RowRange] = {}  # the tuples that owners have

    def _owner(self, key: Any, number: int) -> int:
        found: int = self.round_robin.owner(number, key_shift(key, self.run.workers))
        return found

    def arrived(self, stored_extents: Iterable[StoredExtent]) -> None:
        """Note the extents; those in open windows are known after the firings."""
        if self._sends_early():
            self._new_extents += stored_extents

    def _sends_early(self) -> bool:
        """Whether tuples go to the owners of their windows as they come.

        Not where all tuples of a window are read at once: then an owner has nothing that others
        have not, and a window is for a free worker.
        """
        schema = self.run.schema
        return schema is not None and self.run.evaluator.fills_windows(schema)

    def _window_name(self, firing: StoredFiring) -> WindowName:
        """The name by which the owner of a window may have tuples of it."""
        if self._tumbling:
            return firing.key, firing.number
        assert isinstance(self.model, RegularWindows)
        assert isinstance(firing.now, int)
        by_time = isinstance(self.model, TimeWindows)
        end = firing.now - self.run.start if by_time else firing.hi
        return firing.key, int(self.model.complete(end))

    def fired(self, firing: StoredFiring, number: int) -> None:
        """The worker that owns the window gets the missing tuples, and computes the window."""
        which = self._window_name(firing)
        self._fired[firing.key] = firing.number + 1
        if firing.lo < firing.hi:
            self._ends[firing.key] = firing.hi
        begin, end = self._owned_rows.pop(which, (firing.lo, firing.lo))
        # An owner that began elsewhere has to begin anew.
        taken = end - begin if begin == firing.lo and end <= firing.hi else -1
        pieces = self.run.chunk_ranges(firing.runs())
        args = (which, taken, pieces, BatchExtent(firing.key, 0, firing.hi - firing.lo, firing.now))
        owner = self._owner(*which) if self._sends_early() else None
        then = self.run.receiver([number])
        self.run.submit(Task("close", args, owner=owner, first=firing.oldest, then=then))

    def after_firings(self) -> None:
        """Send tuples on to the owners of their open windows."""
        stored_extents, self._new_extents = self._new_extents, []
        for extent in stored_extents:
            for number, begin, lo, hi in self._open_windows(extent):
                which = (extent.key, number)
                # A window of which a worker has not had the beginning comes to it as a whole.
                known, end = self._owned_rows.get(which, (begin, begin))
                if end == lo:
                    self._owned_rows[which] = known, hi
                    at = extent.at + lo - extent.first
                    self._send_rows(which, (at, at + hi - lo))

    def _send_rows(self, which: WindowName, rows: RowRange) -> None:
        pieces = self.run.chunk_ranges([rows])
        self.run.pool.send(self._owner(*which), "take", (which, pieces), self.run.chunks.oldest)

    def _open_windows(self, extent: StoredExtent) -> Iterator[tuple[int, int, int, int]]:
        """The windows that are still open: number, first tuple, and those of an extent in it."""
        if self._tumbling:
            return self._open_tumbling(extent)
        if isinstance(self.model, CountWindows):
            return self._open_by_count(extent, self.model)
        assert isinstance(self.model, TimeWindows)
        return self._open_by_time(extent, self.model)

    def _open_by_count(
        self, extent: StoredExtent, model: CountWindows
    ) -> Iterator[tuple[int, int, int, int]]:
        begin, end = extent.first, extent.first + extent.size
        for w in range(max(model.first(begin), model.complete(end) + 1), model.last(end - 1) + 1):
            lo, _ = model.extent(w)
            if lo < end:
                yield w, lo, max(lo, begin), end

    def _open_tumbling(self, extent: StoredExtent) -> Iterator[tuple[int, int, int, int]]:
        """Tuples since the last flush belong to the next window."""
        number, end = self._fired.get(extent.key, 0), extent.first + extent.size
        begin = self._ends.get(extent.key, 0)
        if begin < end:
            yield number, begin, max(begin, extent.first), end

    def _open_by_time(
        self, extent: StoredExtent, model: TimeWindows
    ) -> Iterator[tuple[int, int, int, int]]:
        """By arrival time, with which the first and last windows of tuples ascend."""
        run = self.run
        if run.stamps is None:
            stamps = np.full(extent.size, run.worker_time - run.start)
        else:
            at = extent.at - run.base
            stamps = run.stamps[at : at + extent.size] - run.start
        over = int(model.complete(run.micros - run.start))
        for w in range(max(int(model.first(stamps)[0]), over + 1), int(model.last(stamps)[-1]) + 1):
            lo, hi = (extent.first + int(each) for each in np.searchsorted(stamps, model.extent(w)))
            if lo < hi:
                yield w, lo, lo, hi

    def resized(self) -> None:
        """Windows have new owners, which get them as a whole."""
        self.round_robin = RoundRobin(self.run.workers, self.farm.batch or 1)
        self._owned_rows.clear()

    def saved(self) -> Any:
        """How many windows have fired; the tuples that workers have are sent to them again."""
        self._owned_rows.clear()
        return list(self._fired.items())

    def load(self, state: Any) -> None:
        """Take back what `saved` gave."""
        self._fired = dict(state)
