"""A farm at work: what goes in becomes tasks, and what comes out is put in order.

Everything happens in the calls of its user; there are no threads. A call that puts in rows
comes back as soon as the tasks are given away, and waits only if too many are not done. Rows come
out in whichever call finds that they are next; `drain` waits for all of them.
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
from windowlib.farms.figures import FarmFigures, FarmMeter, Tell
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
    """What farms have in common: buffered rows, tasks, workers and the order of results."""

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
        self._told = self._now  # the time that the workers know
        self._waiting: list[Any] = []
        self._arrived: list[int] = []  # when the rows came that wait
        self._waiting_port = 0
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
        self._observer: Tell | None = None
        self._every = self._look = 0.0
        self.as_columns = False
        """Whether who waits for rows wants them as columns."""

    def _wire(self) -> None:
        """Rows go out from here, and not from the operator."""

    def __enter__(self) -> RunningFarm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers; what has not come out does not."""
        self.pool.close()
        self.chunks.close()

    # -- input ------------------------------------------------------------------------------------

    def insert(self, row: Any, port: int = 0) -> None:
        """Take one row; rows are given away when there are `chunk` of them, or at `drain`."""
        self.insert_many((row,), port)

    def insert_many(self, rows: Iterable[Any], port: int = 0) -> None:
        """Take rows in order."""
        if port not in self._taking:
            self._refuse("insert_many(rows)", port)
        if port != self._waiting_port:
            self._flush()
            self._waiting_port = port
        now = self._now
        for row in rows:
            try:
                self._waiting.append(row)
                self._arrived.append(now)
                if len(self._waiting) >= self.farm.chunk:
                    self._flush()
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._break("taking a row")
                raise
        self._raise()

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
            self._raise()

    def _take(self, batch: Any, port: int, times: str | None) -> None:
        """Take rows that arrive now, or when a column says."""
        if times is None:
            self._batch(batch, port, None)
            return
        while batch.num_rows:
            stamps = read(batch, times, self._now)
            if not len(stamps):  # for Python to read, or to say what is wrong with it
                (row,) = batch.slice(0, 1).to_pylist()
                stamps = np.array([Times(times)(row)], np.int64)
                self._check_time(int(stamps[0]))
            self._stamped(batch.slice(0, len(stamps)), port, stamps)
            batch = batch.slice(len(stamps))

    def _stamped(self, batch: Any, port: int, stamps: Stamps) -> None:
        """Take rows that came at these times, those of a stretch of time together."""
        cuts = [0, len(stamps)]
        if self.farm.span is not None:
            cuts[1:1] = (np.flatnonzero(np.diff(stamps // self.farm.span)) + 1).tolist()
        for lo, hi in pairwise(cuts):
            self._now = self._told = int(stamps[hi - 1])
            self._batch(batch.slice(lo, hi - lo), port, stamps[lo:hi])

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
        """Give away the rows that wait."""
        rows, self._waiting = self._waiting, []
        stamps, self._arrived = self._arrived, []
        if not rows:
            return
        batch, now = self._table(rows), self._now
        if stamps[-1] == self._told:
            self._batch(batch, self._waiting_port, None)
        else:
            self._stamped(batch, self._waiting_port, np.array(stamps, np.int64))
            self._now = now

    def _sync(self) -> None:
        """Give away the rows that wait, and move the clock of the workers."""
        self.chunks.check()
        self._flush()
        if self._told < self._now:
            self._told = self._now
            self._advance(self._now)

    def _table(self, rows: list[Any], schema: Any = None) -> Any:
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
            self._raise()

    def advance_micros(self, now: int) -> None:
        """Move the clock, in microseconds; rows that wait go on waiting if nothing happens."""
        self._check_time(now)
        with self._atomic("advancing its clock"):
            self._now = now
            tick = self._ticks()
            if not self._waiting or (tick is not None and tick <= now) or self._stretch_over():
                self._sync()
            self._raise()

    def _stretch_over(self) -> bool:
        """Whether rows wait that came in another stretch of time than now is."""
        span = self.farm.span
        return span is not None and self._arrived[0] // span != self._now // span

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
            self._raise()

    def poll(self) -> None:
        """Give away the rows that wait, and send on what is ready, without waiting for more."""
        with self._atomic("sending on what has come out"):
            self._sync()
            self.pump(block=False)
            self._raise()

    def _raise(self) -> None:
        failures, self._failures = self._failures, []
        raise_first(failures)

    # -- what kinds of farms do -------------------------------------------------------------------

    def _batch(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        """Rows have come, now or at these times."""
        raise NotImplementedError

    def _punctuate(self, port: int) -> None:
        """A punctuation has come."""
        raise NotImplementedError

    def _advance(self, now: int) -> None:
        """Time has passed."""
        raise NotImplementedError

    def _finish(self) -> None:
        """The input is over."""
        raise NotImplementedError

    def _ticks(self) -> int | None:
        """When time next makes windows fire, as far as is known here."""
        return None

    def _end_batch(self) -> None:
        """Nothing may be held back any longer."""

    def _worked(self, worker: int, task: Task, seconds: float) -> None:
        """A worker has done a task."""

    def _answers_taken(self) -> None:
        """Workers may have nothing to do now."""

    def _held_tasks(self) -> int:
        """How many tasks there would be of what is held back."""
        return 0

    def _died(self, worker: int) -> None:
        """A worker has been replaced."""

    # -- tasks ------------------------------------------------------------------------------------

    def put(self, task: Task) -> None:
        """Give a task away, as soon as a worker has room for it."""
        self._send(self.scheduler.put(task))

    def _send(self, sends: Assignments) -> None:
        for worker, task in sends:
            self.pool.send(worker, task.work, task.args, self.chunks.oldest)

    def numbers(self, results: int = 1) -> int:
        """A number for the next result, the first of several."""
        if results:
            self._meter.fired(self.collector.given + results, self.pool.now)
        return self.collector.next(results)

    def figures(self) -> FarmFigures:
        """How busy its workers were since it was last asked, what waits, and how long it takes."""
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

    def observe(self, tell: Tell, every: float = 1.0) -> None:
        """Report the figures while it works, every so many seconds at most."""
        self._observer, self._every, self._look = tell, every, self.pool.now + every

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
        """Wait while more than enough is under way; take in what is done."""
        self.pump(block=False)
        while len(self.scheduler) + self._held_tasks() > self.farm.limit:
            self.pump(block=True)

    def pump(self, *, block: bool) -> None:
        """Take in what workers have done; with `block`, wait for it."""
        for answer in self.pool.wait(block=block):
            if isinstance(answer, WorkerDeath):
                self._lost(answer)
            else:
                self._answered(answer)
        self._answers_taken()
        now = self.pool.now
        self._meter.came_out(self.collector.out, now)
        if self._observer is not None and now >= self._look:
            self._look = now + self._every
            self._observer(self.figures())

    def _answered(self, answer: WorkerAnswer) -> None:
        task = self.scheduler.sent[answer.worker][0]
        self.worked += answer.seconds
        self._meter.worked(answer.worker, answer.seconds)
        self._worked(answer.worker, task, answer.seconds)
        self._send(self.scheduler.done(answer.worker))
        if task.then is not None:
            task.then(FailedResult(answer.value.exception()) if answer.failed else answer.value)

    def _lost(self, died: WorkerDeath) -> None:
        """A worker died: what it had goes to others, unless it was that which killed it."""
        self.deaths += 1
        tasks = self.scheduler.sent[died.worker]
        self._died(died.worker)
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
        self._send(self.scheduler.lost(died.worker))

    # -- workers ----------------------------------------------------------------------------------

    def resize(self, workers: int) -> None:
        """Go on with another number of workers, after what is under way has come out."""
        workers = worker_count("resize", workers)
        if workers != self.workers:
            self.use(self.pool, workers)

    def use(self, pool: Any, workers: int) -> None:
        """Go on with other workers, or another number of them."""
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
            "state": self._saved(),
        }

    def _put(self, state: Mapping[str, Any]) -> None:
        self._now = self._told = state["now"]
        self._ended = set(state["ended"])
        self._load(state["state"])

    def _saved(self) -> Any:
        raise NotImplementedError

    def _load(self, state: Any) -> None:
        raise NotImplementedError

    def adopt(self, state: Mapping[str, Any], schema: Any) -> None:
        """Go on from the snapshot of the operator alone, whose batches had these columns."""
        raise NotImplementedError

    def released(self) -> dict[str, Any]:
        """The state as a snapshot of the operator alone, after waiting for what is under way."""
        raise NotImplementedError


def worker_count(call: str, workers: Any, others: str = "") -> int:
    """A number of workers; `others`: what else might have been said."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        msg = f"{call}(workers={workers!r}): not a number of workers. Use 1 or more{others}."
        raise FarmError(msg)
    return workers
