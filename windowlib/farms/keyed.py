"""Key farming: each worker has an operator of its own, for the tuples of some keys.

Workers keep state here, so what one had must not be lost with it. The emitter remembers what it
gave each worker since the worker last sent its state; a new worker gets both.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.host import FIRST
from windowlib.columnar.primitives import Array
from windowlib.columnar.stamps import Stamps
from windowlib.farms.chunks import Piece, Reader
from windowlib.farms.placing import Placement
from windowlib.farms.pool import dumped
from windowlib.farms.running import Failure, RunningFarm
from windowlib.farms.schedule import Task
from windowlib.farms.station import Job, Raised
from windowlib.farms.work import Item

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.farms.farm import KeyFarm

ROW = "_row"
SAVE = 64
"""After so many tasks a worker sends its state."""

Found = tuple[list[tuple[int, Item]], Raised | None]
"""What rows made a worker send, each with the number of its row; and what went wrong."""


class KeyStation:
    """A worker with an operator of its own."""

    silent = frozenset({"restore", "replay"})

    def __init__(self, job: Job) -> None:
        self.job, self.reader = job, Reader(job.folder)
        self.running = job.operator.open(job.start / 1e6)
        self._made: list[tuple[int, Item]] = []
        self._rows: Array = np.empty(0, np.int64)
        self._row = 0
        self._fired: Array | None = None
        for port in range(len(self.running.model.outputs)):
            self.running.connect(port, *self._writers(port))
        self._exact = self._watched()

    def _writers(self, port: int) -> Any:
        def row(row: Any) -> None:
            self._made.append((self._row, (port, row)))

        def mark() -> None:
            self._made.append((self._row, (port,)))
            if self._fired is not None:  # a firing ends with its punctuation
                self._fired = self._fired[1:]
                self._row = int(self._fired[0]) if len(self._fired) else self._row

        return row, mark

    def _watched(self) -> bool:
        """Have batches tell which of their rows does what; whether they do."""
        operator = self.running.operator
        window = operator.containers[0] if len(operator.containers) == 1 else None
        if window is None or self.running._direct[0] is None:
            return False
        window._host().cause = self._caused
        if (consumer := window._consumer) is not None:
            if not operator.functions():  # one of whose firings nothing is known
                return False

            def consume(firings: Firings) -> None:
                self._fired = self._rows[firings.rows]
                self._row = int(self._fired[0])
                try:
                    consumer(firings)
                finally:
                    self._fired = None

            window._consumer = consume
        return True

    def _caused(self, row: int) -> None:
        self._row = int(self._rows[row])

    def do(self, work: str, args: Any, oldest: int) -> Any:
        """The answer to a task."""
        answer = getattr(self, work)(*args)
        self.reader.forget(oldest)
        return answer

    # -- tasks ------------------------------------------------------------------------------------

    def rows(self, pieces: Sequence[Piece], port: int, stamps: Stamps | None, order: str) -> Found:
        """Take rows; what they made."""
        batch = self.reader.read(pieces)
        numbers = batch.column(ROW).to_numpy()
        batch = batch.drop_columns([ROW])
        self._tell_columns(batch.schema, port)
        if stamps is not None:
            return self._after(self._timed, batch, numbers, port, stamps)
        take = self._at_once if self._exact or order == "keys" else self._one_by_one
        return self._after(take, batch, numbers, port)

    def _tell_columns(self, schema: pa.Schema, port: int) -> None:
        """Handlers that read columns find those of an empty window, also if rows go in singly."""
        operator = self.running.operator
        if getattr(operator, "content", None) == "arrow":
            window = operator.containers[port]
            if window is not None:
                window._host().schema = schema

    def _at_once(self, batch: Any, numbers: Array, port: int) -> None:
        for at in range(0, batch.num_rows, FIRST):
            self._rows = numbers[at : at + FIRST]
            self._row = int(self._rows[0])
            self.running.insert_batch(batch.slice(at, FIRST), port)

    def _one_by_one(self, batch: Any, numbers: Array, port: int) -> None:
        for self._row, row in zip(numbers.tolist(), batch.to_pylist(), strict=True):
            self.running.insert(row, port)

    def _timed(self, batch: Any, numbers: Array, port: int, stamps: Stamps) -> None:
        rows = zip(numbers.tolist(), batch.to_pylist(), stamps.tolist(), strict=True)
        for self._row, row, now in rows:
            self.running.advance_micros(now)
            self.running.insert(row, port)

    def advance(self, now: int) -> Found:
        """Move the clock, unless a row has."""
        return self._after(self.running.advance_micros, max(now, self.running._now))

    def punctuate(self, port: int) -> Found:
        """Take a punctuation."""
        return self._after(self.running.punctuate, port)

    def finish(self, port: int | None) -> Found:
        """The input ends."""
        return self._after(self.running.finish, port)

    def _after(self, act: Any, *args: Any) -> Found:
        failure = None
        try:
            act(*args)
        except Exception as error:
            failure = Raised.of(error)
        made, self._made = self._made, []
        return made, failure

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything that it holds."""
        return dumped(self.running.snapshot(arrays=True))

    def restore(self, state: bytes) -> None:
        """Take back what `snapshot` gave."""
        self.running.restore(pickle.loads(state))

    def replay(self, work: str, args: Any) -> None:
        """What another worker has done, and is gone: only its state matters."""
        getattr(self, work)(*args)


class RunningKeys(RunningFarm):
    """A farm that splits rows by their keys."""

    station = KeyStation
    farm: KeyFarm

    def __init__(self, farm: KeyFarm, *args: Any, **options: Any) -> None:
        super().__init__(farm, *args, **options)
        operator = farm.operator
        names = [operator.splits_by(port) for port in range(len(operator.model.inputs))]
        self._placement = Placement([each or () for each in names], farm.workers)
        self._local = operator.open(self._now / 1e6)
        n = farm.workers
        self._saved_states: list[bytes | None] = [None] * n
        self._log: list[deque[Task]] = [deque() for _ in range(n)]

    @property
    def timed(self) -> bool:
        """Whether the operator runs on the clock."""
        return self._local.timed

    def due(self) -> int | None:
        """Workers know when, and act when the clock is moved."""
        return None

    _wakes = due

    # -- input ------------------------------------------------------------------------------------

    def _batch(self, batch: Any, port: int, stamps: Stamps | None) -> None:
        workers = self.farm.workers
        owners = self._placement.owners(batch, port)
        order = np.argsort(owners, kind="stable")
        numbers = pa.array(order.astype(np.int64))
        stored = batch.take(numbers).append_column(ROW, numbers)
        base = self.chunks.append(stored).base
        starts = np.searchsorted(owners[order], np.arange(workers + 1)).tolist()
        tasks = []
        for worker in range(workers):
            lo, hi = starts[worker] + base, starts[worker + 1] + base
            if lo < hi:
                own = None if stamps is None else stamps[order[lo - base : hi - base]]
                args = (self.chunks.pieces([(lo, hi)]), port, own, self.farm.order)
                tasks.append(Task("rows", args, owner=worker, first=lo))
        self._give(tasks)
        if stamps is not None:  # the clock of those who got no row moves, too
            self._advance(int(stamps[-1]))
        self.throttle()
        self._release()

    def _punctuate(self, port: int) -> None:
        self._everybody("punctuate", port)
        self.throttle()

    def _advance(self, now: int) -> None:
        self._everybody("advance", now)
        self.throttle()

    def _finish(self) -> None:
        self._everybody("finish", None)

    def _everybody(self, work: str, *args: Any) -> None:
        self._give([Task(work, args, owner=worker) for worker in range(self.farm.workers)])

    def _give(self, tasks: list[Task]) -> None:
        """Give away tasks whose results come out together, in the order of the rows."""
        number, found = self.collector.next(), {}

        def received(place: int, answer: Found | Failure) -> None:
            found[place] = answer
            self._logged(tasks[place])
            if len(found) == len(tasks):
                self._merge(number, [found[i] for i in range(len(tasks))])

        for place, task in enumerate(tasks):
            task.then = lambda answer, place=place: received(place, answer)
        for task in tasks:
            self.put(task)

    def _merge(self, number: int, found: list[Found | Failure]) -> None:
        """The results of all workers, row by row; each of them is in order."""
        for each in found:
            raised = None if isinstance(each, Failure) else each[1]
            if isinstance(each, Failure):
                self._failures.append(each.error)
            elif raised is not None:
                self._failures.append(raised.noted())
        made = [each[0] for each in found if not isinstance(each, Failure)]
        self.deliver(number, [item for _, item in merge(*made, key=itemgetter(0))])

    # -- state ------------------------------------------------------------------------------------

    def _logged(self, task: Task) -> None:
        """A worker has done something: that is what another would have to do again."""
        assert task.owner is not None
        log = self._log[task.owner]
        log.append(task)
        if len(log) == SAVE:
            self._save(task.owner)

    def _save(self, worker: int) -> None:
        def saved(state: Any) -> None:
            if not isinstance(state, Failure):
                self._saved_states[worker] = state
                self._log[worker].clear()  # the tasks before it, which have all been done

        self.put(Task("snapshot", (), owner=worker, then=saved))

    def _died(self, worker: int) -> None:
        state = self._saved_states[worker]
        if state is not None:
            self.pool.send(worker, "restore", (state,), 0)
        for task in self._log[worker]:
            self.pool.send(worker, "replay", (task.work, task.args), 0)

    def _release(self) -> None:
        """Give up what neither a task nor a new worker could read."""
        tasks = [*self.scheduler, *(task for log in self._log for task in log)]
        rows = [task.first for task in tasks if task.first is not None]
        self.chunks.release(min(rows, default=self.chunks.end))

    def _saved(self) -> Any:
        for worker in range(self.farm.workers):
            self._save(worker)
        while len(self.scheduler):
            self._pump(block=True)
        return {"keys": self._placement.dump(), "workers": list(self._saved_states)}

    def _load(self, state: Any) -> None:
        self._placement.load(state["keys"])
        for worker, each in enumerate(state["workers"]):
            self._saved_states[worker] = each
            self.pool.send(worker, "restore", (each,), 0)
