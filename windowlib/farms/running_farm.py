"""A running farm: rows become tasks, and results are sent in order.

Everything happens in the calls of its user; there are no threads. A call that inserts rows returns
as soon as the tasks are sent, and waits only if too many are not done. Rows come out in the call
that finds them to be next; `drain` waits for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.stamps import Stamps, read
from windowlib.durations import Instant, as_instant
from windowlib.errors import FarmError, SchemaError
from windowlib.farms.chunks import ChunkStore
from windowlib.farms.evaluator import ColumnResults, Item
from windowlib.farms.figures import FarmFigures, FarmMeter, FigureObserver
from windowlib.farms.pool import ProcessPool, WorkerAnswer, WorkerDeath
from windowlib.farms.scheduler import Assignments, Collector, Task, scheduler
from windowlib.farms.worker import WorkerException, WorkerSetup
from windowlib.runtime.running import VERSION, Running, collect_failures, nowhere
from windowlib.window.arrow import (
    BatchRows,
    OutputRows,
    Times,
    chunks_of,
    exact_batch,
    in_order,
    named_row,
)
from windowlib.window.failure import raise_first

if TYPE_CHECKING:
    from windowlib.farms.farm import Farm

DEATHS = 3
"""How many workers a task may cost before it counts as the reason."""

PoolFactory = Callable[[int, WorkerSetup], Any]


class FailedResult:
    """An exception in place of what a window sends."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class RunningFarm(Running):
    """The base of running farms: buffered rows, tasks, workers and the order of results."""

    streams = False

    worker: type[Any]

    def __init__(
        self,
        farm: Farm,
        start: Instant = 0,
        pool: PoolFactory = ProcessPool,
        workers: int | None = None,
    ) -> None:
        self.definition = self.operator = self.farm = farm
        self.model = farm.model
        self._now = as_instant(start, argument="start")
        self._ended = set()
        ports = len(self.model.outputs)
        self._rows, self._marks, self._finals = ([nowhere] * ports for _ in range(3))
        self._live = []
        self._direct = (None,) * len(self.model.inputs)
        self._made = OutputRows()
        self._schemas = [None] * len(self.model.inputs)
        self.worker_time = self._now  # the time that the workers know
        self._buffered: list[Any] = []
        self._arrival_times: list[int] = []  # when the rows came that wait
        self._buffered_port = 0
        self._failures: list[Exception] = []
        self.chunks = ChunkStore()
        self.workers = workers or farm.workers
        """How many workers there are now."""
        self.scheduler = scheduler(farm.scheduling, self.workers)
        self.collector: Collector[list[Item] | BatchRows | FailedResult] = Collector()
        self.deaths = 0
        """How many workers have died."""
        self.worked = 0.0
        """Seconds that workers have worked."""
        self.setup = WorkerSetup(farm.operator, self.chunks.folder, self.worker, self._now)
        self.pool = pool(self.workers, self.setup)
        self._meter = FarmMeter(self.workers, self.pool.now)
        self._observer: FigureObserver | None = None
        self._every = self._next_report = 0.0
        self.as_columns = False
        """Whether `process_batch` waits for results as columns."""

    def _wire(self) -> None:
        """Nothing: rows are sent from here, not from the operator."""

    def __enter__(self) -> RunningFarm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers; pending results are lost."""
        self.pool.close()
        self.chunks.close()

    # -- input ------------------------------------------------------------------------------------

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row; rows are passed on when there are `chunk` of them, or at `drain`."""
        self.insert_many((row,), port)

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order."""
        if port not in self._taking:
            self._refuse("insert_many(rows)", port)
        if port != self._buffered_port:
            self._flush()
            self._buffered_port = port
        now = self._now
        for row in rows:
            try:
                self._buffered.append(row)
                self._arrival_times.append(now)
                if len(self._buffered) >= self.farm.chunk:
                    self._flush()
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._break("taking a row")
                raise
        self._raise_failures()

    @cached_property
    def _order(self) -> Any:
        return self.farm.operator.order_by

    def _take_batch(self, batch: Any, port: int, times: str | None, order: Any) -> None:
        """Give away the rows of a batch that has been checked, a chunk at a time."""
        with self._atomic("taking a batch"):
            self._sync()
            if batch.num_rows and order is not None:
                batch = in_order(batch, order)
            for part in chunks_of(batch):
                for at in range(0, part.num_rows, self.farm.chunk):
                    self._take(part.slice(at, self.farm.chunk), port, times)
            self._raise_failures()

    def _take(self, batch: Any, port: int, times: str | None) -> None:
        """Take rows that arrive now, or when a column says."""
        if times is None:
            self._insert_batch_rows(batch, port, None)
            return
        while batch.num_rows:
            stamps = read(batch, times, self._now)
            if not len(stamps):  # for Python to read, or to say what is wrong with it
                (row,) = batch.slice(0, 1).to_pylist()
                stamps = np.array([Times(times)(row)], np.int64)
                self._check_time(int(stamps[0]))
            self._take_stamped(batch.slice(0, len(stamps)), port, stamps)
            batch = batch.slice(len(stamps))

    def _take_stamped(self, batch: Any, port: int, stamps: Stamps) -> None:
        """Take rows that came at these times, those of one time span together."""
        cuts = [0, len(stamps)]
        if self.farm.span is not None:
            cuts[1:1] = (np.flatnonzero(np.diff(stamps // self.farm.span)) + 1).tolist()
        for lo, hi in pairwise(cuts):
            self._now = self.worker_time = int(stamps[hi - 1])
            self._insert_batch_rows(batch.slice(lo, hi - lo), port, stamps[lo:hi])

    def process_batch(self, batch: Any, port: int = 0, times: str | None = None) -> Any:
        """Take an Arrow batch, wait, and give the rows of the first output that it made."""
        batch, schemas = self._checked_batch(batch, "process_batch", port, times)
        made, schema = self._made, self.farm.operator.schema(*schemas)
        row, self._rows[0] = self._rows[0], made.add
        self.as_columns = all(mark is nowhere for mark in self._marks)
        try:
            self._take_batch(batch, port, times, self._order)
            self.drain()
        finally:
            self._rows[0], self.as_columns = row, False
        return made.taken(schema)

    def _flush(self) -> None:
        """Pass on the buffered rows."""
        rows, self._buffered = self._buffered, []
        stamps, self._arrival_times = self._arrival_times, []
        if not rows:
            return
        batch, now = self._as_batch(rows), self._now
        if stamps[-1] == self.worker_time:
            self._insert_batch_rows(batch, self._buffered_port, None)
        else:
            self._take_stamped(batch, self._buffered_port, np.array(stamps, np.int64))
            self._now = now

    def _sync(self) -> None:
        """Pass on the buffered rows, and move the clock of the workers."""
        self.chunks.check()
        self._flush()
        if self.worker_time < self._now:
            self.worker_time = self._now
            self._advance(self._now)

    def _as_batch(self, rows: list[Any], schema: Any = None) -> Any:
        try:
            named = [dict(named_row(row)) for row in rows]
            known = schema is not None
            return exact_batch(named, schema) if known else pa.RecordBatch.from_pylist(named)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            msg = (
                f"{self.farm.name}.insert_many(rows): a farm takes rows that Arrow can hold "
                f"({reason}). Give the values of a column one type, or use the operator itself."
            )
            raise SchemaError(msg) from error

    def punctuate(self, port: int = 0) -> None:
        """Take a window punctuation."""
        if port not in self._taking:
            self._refuse("punctuate()", port)
        with self._atomic("taking a punctuation"):
            self._sync()
            self._punctuate(port)
            self._raise_failures()

    def advance_micros(self, now: int) -> None:
        """Move the clock, in microseconds; rows that wait go on waiting if nothing happens."""
        self._check_time(now)
        with self._atomic("advancing its clock"):
            self._now = now
            tick = self._next_tick()
            if not self._buffered or (tick is not None and tick <= now) or self._span_ended():
                self._sync()
            self._raise_failures()

    def _span_ended(self) -> bool:
        """Whether the buffered rows came in an earlier time span than the present one."""
        span = self.farm.span
        return span is not None and self._arrival_times[0] // span != self._now // span

    def finish(self, port: int | None = None) -> None:
        """The input of a port ends, or of all; when the last has, all comes out and workers end."""
        with self._atomic("ending its input"):
            self._sync()
            ended = self._end(port)
            if not ended or self._taking:
                return
            failures: list[Exception] = []
            with collect_failures(failures):
                self._finish()
                self.drain()
            for final in self._finals:
                with collect_failures(failures):
                    final()
            self.close()
            raise_first(failures)

    def drain(self) -> None:
        """Wait until everything that was put in has come out."""
        with self._atomic("sending on what has come out"):
            self._sync()
            self._end_batch()
            while len(self.collector) or len(self.scheduler):
                self.pump(block=True)
            self._raise_failures()

    def poll(self) -> None:
        """Pass on the buffered rows, and send results that are ready, without waiting for more."""
        with self._atomic("sending on what has come out"):
            self._sync()
            self.pump(block=False)
            self._raise_failures()

    def _raise_failures(self) -> None:
        failures, self._failures = self._failures, []
        raise_first(failures)

    # -- hooks of subclasses ----------------------------------------------------------------------

    def _insert_batch_rows(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        """Take rows that came now, or at these times."""
        raise NotImplementedError

    def _punctuate(self, port: int) -> None:
        """Take a punctuation."""
        raise NotImplementedError

    def _advance(self, now: int) -> None:
        """Move the clock."""
        raise NotImplementedError

    def _finish(self) -> None:
        """End the input."""
        raise NotImplementedError

    def _next_tick(self) -> int | None:
        """When windows next fire by the clock, if that is known here."""
        return None

    def _end_batch(self) -> None:
        """Submit all tasks that are held back."""

    def _task_done(self, worker: int, task: Task, seconds: float) -> None:
        """A worker has done a task."""

    def _answers_processed(self) -> None:
        """The answers that had come are processed, and workers may be idle."""

    def _held_tasks(self) -> int:
        """How many tasks are held back."""
        return 0

    def _worker_replaced(self, worker: int) -> None:
        """A worker has been replaced."""

    # -- tasks ------------------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        """Send a task as soon as a worker has room for it."""
        self._send(self.scheduler.put(task))

    def _send(self, sends: Assignments) -> None:
        for worker, task in sends:
            self.pool.send(worker, task.work, task.args, self.chunks.oldest)

    def reserve(self, results: int = 1) -> int:
        """Reserve numbers for the next results; returns the first."""
        if results:
            self._meter.requested(self.collector.reserved + results, self.pool.now)
        return self.collector.reserve(results)

    def figures(self) -> FarmFigures:
        """How busy workers were since the last call, what waits, and how long results take."""
        sent = sum(map(len, self.scheduler.sent))
        return self._meter.read(
            "workers",
            self.pool.now,
            under_way=sent,
            queue=len(self.scheduler) - sent,
            due=len(self.collector),
            rows=self.chunks.rows,
            bytes=self.chunks.bytes,
        )

    def observe(self, tell: FigureObserver, every: float = 1.0) -> None:
        """Report the figures while it works, at most once in `every` seconds."""
        self._observer, self._every, self._next_report = tell, every, self.pool.now + every

    def deliver(
        self,
        number: int,
        items: list[Item] | BatchRows | ColumnResults | WorkerException | FailedResult,
    ) -> None:
        """Send a result once all results with smaller numbers have been sent."""
        if isinstance(items, WorkerException):
            items = FailedResult(items.exception())
        elif isinstance(items, ColumnResults):
            (items,) = items.windows()
        for result in self.collector.add(number, items):
            if isinstance(result, FailedResult):
                self._failures.append(result.error)
                continue
            if isinstance(result, BatchRows):  # which `process_batch` asked for
                self._made.add_columns(result)
                continue
            for item in result:
                try:
                    self._rows[item[0]](item[1]) if len(item) > 1 else self._marks[item[0]]()
                except Exception as error:  # one that fails does not cost the others their turn
                    self._failures.append(error)

    def throttle(self) -> None:
        """Process answers, and wait while more than `limit` tasks are under way."""
        self.pump(block=False)
        while len(self.scheduler) + self._held_tasks() > self.farm.limit:
            self.pump(block=True)

    def pump(self, *, block: bool) -> None:
        """Process the answers of workers; with `block`, wait for one."""
        for answer in self.pool.wait(block=block):
            if isinstance(answer, WorkerDeath):
                self._worker_died(answer)
            else:
                self._process_answer(answer)
        self._answers_processed()
        now = self.pool.now
        self._meter.delivered(self.collector.delivered, now)
        if self._observer is not None and now >= self._next_report:
            self._next_report = now + self._every
            self._observer(self.figures())

    def _process_answer(self, answer: WorkerAnswer) -> None:
        task = self.scheduler.sent[answer.worker][0]
        self.worked += answer.seconds
        self._meter.worked(answer.worker, answer.seconds)
        self._task_done(answer.worker, task, answer.seconds)
        self._send(self.scheduler.done(answer.worker))
        if task.then is not None:
            task.then(FailedResult(answer.value.exception()) if answer.failed else answer.value)

    def _worker_died(self, died: WorkerDeath) -> None:
        """Give the tasks of a dead worker to others, unless one of them kills workers."""
        self.deaths += 1
        tasks = self.scheduler.sent[died.worker]
        self._worker_replaced(died.worker)
        if tasks:
            tasks[0].deaths += 1
            if tasks[0].deaths >= DEATHS:
                self.close()
                msg = (
                    f"{self.farm.name}: {DEATHS} workers died in a row (exit code {died.code}) "
                    f"with the same task, {tasks[0].work}. Look at what it does with its rows: "
                    f"run the operator without a farm."
                )
                raise FarmError(msg)
        self._send(self.scheduler.requeue(died.worker))

    # -- workers ----------------------------------------------------------------------------------

    def resize(self, workers: int) -> None:
        """Go on with another number of workers, after what is under way has come out."""
        workers = check_workers("resize", workers)
        if workers != self.workers:
            self.switch_pool(self.pool, workers)

    def switch_pool(self, pool: Any, workers: int) -> None:
        """Go on with another pool, or another number of workers."""
        self.drain()
        with self._atomic("changing its workers"):
            if pool is self.pool:
                pool.resize(workers)
            else:
                self.pool.close()
            self.pool, self.workers = pool, workers
            self._meter.resized(workers, pool.now)
            self.scheduler = scheduler(self.farm.scheduling, workers)

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self, *, arrays: bool = False) -> dict[str, Any]:
        """Everything it holds, after waiting for what is under way."""
        self.drain()
        return {
            "v": VERSION,
            "operator": self.definition.describe(),
            "now": self._now,
            "ended": sorted(self._ended),
            "state": self._dump(),
        }

    def _put(self, state: Mapping[str, Any]) -> None:
        self._now = self.worker_time = state["now"]
        self._ended = set(state["ended"])
        self._load(state["state"])

    def _dump(self) -> Any:
        raise NotImplementedError

    def _load(self, state: Any) -> None:
        raise NotImplementedError

    def adopt(self, state: Mapping[str, Any], schema: Any) -> None:
        """Go on from the snapshot of the operator alone, whose batches had these columns."""
        raise NotImplementedError

    def operator_snapshot(self) -> dict[str, Any]:
        """The state as a snapshot of the operator alone, after waiting for what is under way."""
        raise NotImplementedError


def check_workers(call: str, workers: Any, others: str = "") -> int:
    """A number of workers; `others`: what else might have been said."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        msg = f"{call}(workers={workers!r}): not a number of workers. Use 1 or more{others}."
        raise FarmError(msg)
    return workers
