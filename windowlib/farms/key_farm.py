"""Key farming: each worker has an operator of its own, for the tuples of some keys.

Workers keep state here, which must survive them. The emitter logs the tasks of each worker since
the worker last sent its state; a replacement gets the state and the log.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heapreplace, merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.arrays.partition_keys import AnyKeys
from windowlib.columnar.arrays.physical import gather_rows
from windowlib.columnar.arrays.stamps import Stamps
from windowlib.columnar.handover import FIRST_SLICE_ROWS
from windowlib.columnar.primitives import Array
from windowlib.errors import FarmError
from windowlib.farms.chunks import ChunkRange, ChunkReader
from windowlib.farms.evaluator import Item
from windowlib.farms.pool import pickled
from windowlib.farms.running_farm import FailedResult, RunningFarm
from windowlib.farms.scheduler import Task
from windowlib.farms.transfer import key_sizes
from windowlib.farms.worker import WorkerException, WorkerSetup
from windowlib.runtime.operator import Operator
from windowlib.runtime.regrouping import key_columns, node_columns, regrouped, why_not_by_key
from windowlib.window.failure import raise_first

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.farms.farm import KeyFarm

ROW = "_row"
SAVE = 64
"""After so many tasks a worker sends its state."""

RowResults = tuple[list[tuple[int, Item]], WorkerException | None]
"""The items that a worker has sent, each with the number of its row; and its exception."""


class KeyWorker:
    """A worker with an operator of its own."""

    silent = frozenset({"restore", "replay"})

    def __init__(self, setup: WorkerSetup) -> None:
        self.setup, self.reader = setup, ChunkReader(setup.folder)
        self.running = setup.operator.open(setup.start / 1e6)
        self._sent: list[tuple[int, Item]] = []
        self._rows: Array = np.empty(0, np.int64)
        self._row = 0
        self._fired: Array | None = None
        for port in range(len(self.running.model.outputs)):
            self.running.connect(port, *self._writers(port))
        self._tracks_causes = self._track_causes()

    def _writers(self, port: int) -> Any:
        def row(row: Any) -> None:
            self._sent.append((self._row, (port, row)))

        def mark() -> None:
            self._sent.append((self._row, (port,)))
            if self._fired is not None:  # a firing ends with its punctuation
                self._fired = self._fired[1:]
                self._row = int(self._fired[0]) if len(self._fired) else self._row

        return row, mark

    def _track_causes(self) -> bool:
        """Have batches report the row that causes each item; returns whether they can."""
        operator = self.running.operator
        window = operator.containers[0] if len(operator.containers) == 1 else None
        if window is None or self.running._direct[0] is None:
            return False
        window.state.handover().cause = self._set_cause
        if window.state.consumer.fired is not None and not operator.functions():
            return False  # nothing is known of its firings

        def watched(consumer: Callable[[Firings], None]) -> Callable[[Firings], None]:
            def consume(firings: Firings) -> None:
                self._fired = self._rows[firings.rows]
                self._row = int(self._fired[0])
                try:
                    consumer(firings)
                finally:
                    self._fired = None

            return consume

        window.state.intercept(watched)
        return True

    def _set_cause(self, row: int) -> None:
        self._row = int(self._rows[row])

    def do(self, work: str, args: Any, oldest: int) -> Any:
        """The answer to a task."""
        answer = getattr(self, work)(*args)
        self.reader.forget(oldest)
        return answer

    # -- tasks ------------------------------------------------------------------------------------

    def rows(
        self, ranges: Sequence[ChunkRange], port: int, stamps: Stamps | None, order: str
    ) -> RowResults:
        """Insert rows; returns the items that they caused."""
        batch = self.reader.read(ranges)
        numbers = batch.column(ROW).to_numpy()
        batch = batch.drop_columns([ROW])
        self._set_columns(batch.schema, port)
        if stamps is not None:
            return self._run(self._insert_timed, batch, numbers, port, stamps)
        take = self._insert_columns if self._tracks_causes or order == "keys" else self._insert_rows
        return self._run(take, batch, numbers, port)

    def _set_columns(self, schema: pa.Schema, port: int) -> None:
        """Set the schema for handlers that read the columns of an empty window."""
        operator = self.running.operator
        if getattr(operator, "content", None) == "arrow":
            window = operator.containers[port]
            if window is not None:
                window.state.handover().schema = schema

    def _insert_columns(self, batch: Any, numbers: Array, port: int) -> None:
        for at in range(0, batch.num_rows, FIRST_SLICE_ROWS):
            self._rows = numbers[at : at + FIRST_SLICE_ROWS]
            self._row = int(self._rows[0])
            self.running.insert_batch(batch.slice(at, FIRST_SLICE_ROWS), port)

    def _insert_rows(self, batch: Any, numbers: Array, port: int) -> None:
        for self._row, row in zip(numbers.tolist(), batch.to_pylist(), strict=True):
            self.running.insert(row, port)

    def _insert_timed(self, batch: Any, numbers: Array, port: int, stamps: Stamps) -> None:
        rows = zip(numbers.tolist(), batch.to_pylist(), stamps.tolist(), strict=True)
        for self._row, row, now in rows:
            self.running.advance_micros(now)
            self.running.insert(row, port)

    def advance(self, now: int) -> RowResults:
        """Move the clock, unless a row has."""
        return self._run(self.running.advance_micros, max(now, self.running.micros))

    def punctuate(self, port: int) -> RowResults:
        """Take a punctuation."""
        return self._run(self.running.punctuate, port)

    def finish(self, port: int | None) -> RowResults:
        """The input ends."""
        return self._run(self.running.finish, port)

    def _run(self, act: Any, *args: Any) -> RowResults:
        failure = None
        try:
            act(*args)
        except Exception as error:
            failure = WorkerException.of(error)
        made, self._sent = self._sent, []
        return made, failure

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The state of the operator."""
        return pickled(self.running.snapshot(arrays=True))

    def partitions(self) -> bytes:
        """The state of the operator with each key apart."""
        return pickled(self.running.snapshot())

    def restore(self, state: bytes) -> None:
        """Take back what `snapshot` gave."""
        self.running.restore(pickle.loads(state))

    def replay(self, work: str, args: Any) -> None:
        """Repeat a task of a worker that has died, for its state alone."""
        getattr(self, work)(*args)


class RunningKeyFarm(RunningFarm):
    """A farm that splits rows by their keys."""

    worker = KeyWorker
    farm: KeyFarm

    def __init__(self, farm: KeyFarm, *args: Any, **options: Any) -> None:
        super().__init__(farm, *args, **options)
        self._placement = KeyPlacement(split_columns(farm.operator), self.workers)
        self._local = farm.operator.open(self._now / 1e6)
        n = self.workers
        self._saved_states: list[bytes | None] = [None] * n
        self._log: list[deque[Task]] = [deque() for _ in range(n)]

    @property
    def timed(self) -> bool:
        """Whether the operator runs on the clock."""
        return self._local.timed

    def due(self) -> int | None:
        """None: workers know when they act, and do when the clock moves."""
        return None

    _visible_due = due

    # -- input ------------------------------------------------------------------------------------

    def _insert_batch_rows(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        workers = self.workers
        owners = self._placement.owners(batch, port)
        order = np.argsort(owners, kind="stable")
        numbers = pa.array(order.astype(np.int64))
        stored = gather_rows(batch, numbers).append_column(ROW, numbers)
        base = self.chunks.append(stored).base
        starts = np.searchsorted(owners[order], np.arange(workers + 1)).tolist()
        tasks = []
        for worker in range(workers):
            lo, hi = starts[worker] + base, starts[worker + 1] + base
            if lo < hi:
                own = None if stamps is None else stamps[order[lo - base : hi - base]]
                args = (self.chunks.chunk_ranges([(lo, hi)]), port, own, self.farm.order)
                tasks.append(Task("rows", args, owner=worker, first=lo))
        self._submit(tasks)
        if stamps is not None:  # the clock of workers without a row moves, too
            self._advance(int(stamps[-1]))
        self.throttle()
        self._release()

    def _punctuate(self, port: int) -> None:
        self._broadcast("punctuate", port)
        self.throttle()

    def _advance(self, now: int) -> None:
        self._broadcast("advance", now)
        self.throttle()

    def _finish(self) -> None:
        self._broadcast("finish", None)

    def _broadcast(self, work: str, *args: Any) -> None:
        self._submit([Task(work, args, owner=worker) for worker in range(self.workers)])

    def _submit(self, tasks: list[Task]) -> None:
        """Submit tasks whose results come out together, in the order of the rows."""
        number, found = self.reserve(), {}

        def received(place: int, answer: RowResults | FailedResult) -> None:
            found[place] = answer
            self._log_task(tasks[place])
            if len(found) == len(tasks):
                self._merge(number, [found[i] for i in range(len(tasks))])

        for place, task in enumerate(tasks):
            task.then = lambda answer, place=place: received(place, answer)
        for task in tasks:
            self.submit(task)

    def _merge(self, number: int, found: list[RowResults | FailedResult]) -> None:
        """The results of all workers, row by row; each of them is in order."""
        for each in found:
            raised = None if isinstance(each, FailedResult) else each[1]
            if isinstance(each, FailedResult):
                self._failures.append(each.error)
            elif raised is not None:
                self._failures.append(raised.exception())
        made = [each[0] for each in found if not isinstance(each, FailedResult)]
        self.deliver(number, [item for _, item in merge(*made, key=itemgetter(0))])

    # -- state ------------------------------------------------------------------------------------

    def _log_task(self, task: Task) -> None:
        """Log a task that is done, for a replacement of its worker to repeat."""
        assert task.owner is not None
        log = self._log[task.owner]
        log.append(task)
        if len(log) == SAVE:
            self._save(task.owner)

    def _save(self, worker: int) -> None:
        def saved(state: Any) -> None:
            if not isinstance(state, FailedResult):
                self._saved_states[worker] = state
                self._log[worker].clear()  # the tasks before it, which have all been done

        self.submit(Task("snapshot", (), owner=worker, then=saved))

    def _worker_replaced(self, worker: int) -> None:
        state = self._saved_states[worker]
        if state is not None:
            self.pool.send(worker, "restore", (state,), 0)
        for task in self._log[worker]:
            self.pool.send(worker, "replay", (task.work, task.args), 0)

    def _release(self) -> None:
        """Remove chunks that neither a task nor a new worker can read."""
        tasks = [*self.scheduler, *(task for log in self._log for task in log)]
        rows = [task.first for task in tasks if task.first is not None]
        self.chunks.release(min(rows, default=self.chunks.end))

    def _dump(self) -> Any:
        for worker in range(self.workers):
            self._save(worker)
        while len(self.scheduler):
            self.pump(block=True)
        # As data: pickles go between processes of one program, and into no snapshot.
        states = [None if each is None else pickle.loads(each) for each in self._saved_states]
        return {"keys": self._placement.dump(), "workers": states}

    def resize(self, workers: int) -> None:
        """Go on with another number of workers, to which the keys move with their windows."""
        if (why := why_keys_stay(self.farm.operator)) is not None:
            raise FarmError(f"resize(workers={workers}): {why}. Open a farm of {workers} workers.")
        super().resize(workers)

    def switch_pool(self, pool: Any, workers: int) -> None:
        """Go on with another pool, whose workers get the keys of these."""
        state = self.operator_snapshot()
        super().switch_pool(pool, workers)
        self._saved_states, self._log = [None] * workers, [deque() for _ in range(workers)]
        self._placement = KeyPlacement(self._placement.columns, workers)
        self._distribute(state)

    def adopt(self, state: Mapping[str, Any], schema: Any) -> None:
        """Go on from the snapshot of the operator alone."""
        self._now = self.worker_time = state["now"]
        self._ended = set(state["ended"])
        self._distribute(state)

    def _distribute(self, state: Mapping[str, Any]) -> None:
        """Distribute the keys of an operator among the workers."""
        operator, place = self.farm.operator, self._placement
        place.assign(key_sizes(operator, state, self._farm_key))

        def owner(operator: Operator, port: int, key: Any) -> int:
            return place.owner(self._farm_key(operator, port, key))

        states = regrouped(operator, [state], owner, self.workers)
        self._load({"keys": self._placement.dump(), "workers": states})

    def _farm_key(self, operator: Operator, port: int, key: Any) -> Any:
        """The key of the farm to which one of its operator belongs, or of a node of a graph."""
        columns: Sequence[Sequence[str]] = self._placement.columns
        if operator is not self.farm.operator:
            columns = node_columns(operator, columns)
        values = tuple(map(one_key, key_columns(operator, columns, port, key)))
        return values[0] if len(values) == 1 else values

    def operator_snapshot(self) -> dict[str, Any]:
        """The state as a snapshot of the operator alone, after waiting for what is under way."""
        self.drain()
        found: list[Any] = []
        for worker in range(self.workers):
            self.submit(Task("partitions", (), owner=worker, then=found.append))
        while len(self.scheduler):
            self.pump(block=True)
        raise_first([each.error for each in found if isinstance(each, FailedResult)])
        states = [pickle.loads(each) for each in found]
        (state,) = regrouped(self.farm.operator, states, lambda *_: 0, 1)
        return {**state, "now": self._now, "ended": sorted(self._ended)}

    def _redistribute(self, saved: Sequence[Mapping[str, Any] | None]) -> None:
        """Distribute a state that was saved with another number of workers."""
        if (why := why_keys_stay(self.farm.operator)) is not None:
            many = len(saved)
            msg = f"restore(state): it is of {many} workers. {why}. Open a farm of {many}."
            raise FarmError(msg)
        states = []
        for each in saved:
            alone = self.farm.operator.open()
            if each is not None:
                alone.restore(each)
            states.append(alone.snapshot())
        (state,) = regrouped(self.farm.operator, states, lambda *_: 0, 1)
        self._distribute(state)

    def _load(self, state: Any) -> None:
        if len(state["workers"]) != self.workers:
            self._redistribute(state["workers"])
            return
        self._placement.load(state["keys"])
        for worker, each in enumerate(state["workers"]):
            self._saved_states[worker] = blob = None if each is None else pickled(each)
            self.pool.send(worker, "restore", (blob,), 0)


def split_columns(operator: Operator) -> list[tuple[str, ...]]:
    """For each input the columns by which rows are kept apart; none if rows never meet."""
    return [operator.splits_by(port) or () for port in range(len(operator.model.inputs))]


def why_keys_stay(operator: Operator) -> str | None:
    """Why the keys of an operator cannot move to other workers; None if they can."""
    return why_not_by_key(operator, split_columns(operator))


# -- which worker has which key: a new key goes where there is least to do ------------------------


class KeyPlacement:
    """Workers of keys, found for whole batches; a key stays where its state is.

    The batch that brings new keys also tells how often they come: the most frequent are placed
    first, so a heavy key has a worker nearly to itself. Inputs share the workers of equal keys.

    >>> placement = KeyPlacement([("k",)], workers=2)
    >>> placement.owners(pa.record_batch({"k": ["a", "b", "b", "b", "c", "d"]}), 0)
    array([1, 0, 0, 0, 1, 1])
    >>> placement.owners(pa.record_batch({"k": ["e", "a"]}), 0)
    array([0, 1])
    """

    def __init__(self, columns: Sequence[tuple[str, ...]], workers: int) -> None:
        self.columns = columns
        self._tables = [AnyKeys(names, len(names) > 1) if names else None for names in columns]
        self._owners: list[Array] = [np.empty(0, np.intp) for _ in columns]
        self._workers: dict[Any, int] = {}
        self._load: Array = np.zeros(workers, np.int64)

    def owners(self, batch: pa.RecordBatch, port: int) -> Array:
        """The worker of each row; without a key, all have the same share."""
        table = self._tables[port]
        columns = [batch.column(name) for name in self.columns[port]]
        if table is None:
            shares: Array = np.arange(batch.num_rows) * len(self._load) // max(batch.num_rows, 1)
            return shares
        ids, known = table.encode(columns), self._owners[port]
        if len(table) > len(known):
            keys = table.values(range(len(known), len(table)))
            counts = np.bincount(ids, minlength=len(table))[len(known) :]
            load = self._load + self._row_counts(known[ids[ids < len(known)]])
            self._place_keys(zip(keys, counts.tolist(), strict=True), load)
            new = [self._workers[key] for key in keys]
            self._owners[port] = np.append(known, np.array(new, np.intp))
        found: Array = self._owners[port][ids]
        self._load += self._row_counts(found)
        return found

    def _row_counts(self, workers: Array) -> Array:
        """How many rows each worker has, of those with these workers."""
        found: Array = np.bincount(workers, minlength=len(self._load))
        return found

    def _place_keys(self, counts: Iterable[tuple[Any, int]], load: Array) -> None:
        """Give a worker to the keys without one; those of other inputs have one."""
        new = []
        for key, count in counts:
            if (worker := self._workers.get(key)) is None:
                new.append((key, count))
            else:
                load[worker] += count
        least = [(each, worker) for worker, each in enumerate(load.tolist())]
        heapify(least)
        for key, count in sorted(new, key=lambda each: -each[1]):
            each, worker = least[0]
            heapreplace(least, (each + count, worker))
            self._workers[key] = worker

    def assign(self, sizes: Mapping[Any, int]) -> None:
        """Give workers to keys that have been somewhere else."""
        self._place_keys(sizes.items(), self._load.copy())
        for key, size in sizes.items():
            self._load[self._workers[key]] += size

    def owner(self, key: Any) -> int:
        """The worker of a key, which may be new."""
        if key not in self._workers:
            self.assign({key: 1})
        return self._workers[key]

    def dump(self) -> list[Any]:
        """The workers of all keys, and how much they have been given, as plain data."""
        return [list(self._workers.items()), self._load.tolist()]

    def load(self, state: list[Any]) -> None:
        """Take back what `dump` gave."""
        self._workers = {one_key(key): worker for key, worker in state[0]}
        self._load = np.array(state[1], np.int64)
