"""Schedulers, which assign tasks to workers, and the collector, which puts results in order.

Nothing here knows of processes or of time: the in-process host and the virtual one drive the same
objects.

A task is `put`; what `put`, `done` and `lost` give back are the tasks to send now, each with its
worker. A worker has at most `room` tasks at once, the one it works on and those that wait beside
it, so that it need not wait for the next and none piles up where others are idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Generic, Literal, TypeVar

from windowlib.errors import FarmError

T = TypeVar("T")
Assignments = list[tuple[int, "Task"]]
Scheduling = Literal["on-demand", "round-robin"]


@dataclass(slots=True, eq=False)
class Task:
    """A task of a worker.

    Args:
        work: what: the name of a kind of work.
        args: what to do it with.
        owner: the worker that must do it, or None.
        first: the number of the oldest row that it reads, so that rows are kept until it is done.
        then: called with the answer.
        rows: how many tuples it is for, where they are counted.
        windows: how many windows it computes.
    """

    work: str
    args: Any = None
    owner: int | None = None
    first: int | None = None
    then: Callable[[Any], None] | None = None
    rows: int = 0
    windows: int = 0
    deaths: int = 0


class Scheduler:
    """On demand: the next task goes to the worker that has least to do, when it has room.

    >>> farm = Scheduler(2, room=1)
    >>> [[worker for worker, _ in farm.put(Task("w"))] for _ in range(3)]
    [[0], [1], []]
    >>> [worker for worker, _ in farm.done(1)]          # which has finished its first task
    [1]
    """

    def __init__(self, workers: int, *, room: int = 2) -> None:
        self.workers, self.room = workers, room
        self.sent: list[deque[Task]] = [deque() for _ in range(workers)]
        """What each worker has, in the order in which it was sent."""
        self.queues: list[deque[Task]] = [deque() for _ in range(workers)]
        """What only one worker may do, and waits for room there."""
        self.queue: deque[Task] = deque()
        """What any worker may do, and waits for room."""
        self._next = 0

    def __len__(self) -> int:
        """How many tasks are not done."""
        return len(self.queue) + sum(map(len, self.sent)) + sum(map(len, self.queues))

    def __iter__(self) -> Iterator[Task]:
        """All tasks that are not done."""
        for each in (*self.sent, *self.queues, self.queue):
            yield from each

    def put(self, task: Task) -> Assignments:
        """A new task."""
        self._queue(task).append(task)
        return self._assignments()

    def done(self, worker: int) -> Assignments:
        """A worker has done the first of its tasks."""
        self.sent[worker].popleft()
        return self._assignments()

    def requeue(self, worker: int) -> Assignments:
        """Queue the tasks of a worker that was replaced again, before all others."""
        for task in reversed(self.sent[worker]):
            self._queue(task).appendleft(task)
        self.sent[worker].clear()
        return self._assignments()

    def _queue(self, task: Task) -> deque[Task]:
        return self.queue if task.owner is None else self.queues[task.owner]

    def _assignments(self) -> Assignments:
        found: Assignments = []
        for worker, queue in enumerate(self.queues):
            while queue and self._has_room(worker):
                found.append(self._send(worker, queue.popleft()))
        while self.queue and (free := self._least_busy()) is not None:
            found.append(self._send(free, self.queue.popleft()))
        return found

    def _has_room(self, worker: int) -> bool:
        return len(self.sent[worker]) < self.room

    def _send(self, worker: int, task: Task) -> tuple[int, Task]:
        self.sent[worker].append(task)
        return worker, task

    def _least_busy(self) -> int | None:
        """The worker with the fewest tasks, of equal ones the next in turn; None: all are busy."""
        turn = [(self._next + i) % self.workers for i in range(self.workers)]
        worker = min(turn, key=lambda each: len(self.sent[each]))
        if not self._has_room(worker):
            return None
        self._next = (worker + 1) % self.workers
        return worker


class RoundRobinScheduler(Scheduler):
    """Round robin: each worker in turn gets the next task, whether it is free or not.

    >>> farm = RoundRobinScheduler(2, room=1)
    >>> [[worker for worker, _ in farm.put(Task("w"))] for _ in range(3)]
    [[0], [1], []]
    >>> [worker for worker, _ in farm.done(1)]          # the third is for worker 0
    []
    """

    def put(self, task: Task) -> Assignments:
        """A new task, for the worker whose turn it is."""
        if task.owner is None:
            task.owner = self._next
            self._next = (self._next + 1) % self.workers
        return super().put(task)


SCHEDULERS: dict[str, type[Scheduler]] = {
    "on-demand": Scheduler,
    "round-robin": RoundRobinScheduler,
}


def scheduler(way: str, workers: int) -> Scheduler:
    """The scheduler of a name: "on-demand" or "round-robin"."""
    if way not in SCHEDULERS:
        msg = f"scheduling={way!r}: no such way. Use {' or '.join(map(repr, SCHEDULERS))}."
        raise FarmError(msg)
    return SCHEDULERS[way](workers)


class Collector(Generic[T]):
    """Puts results in order: each has a number, and comes out when all before it have.

    Numbers are given by `reserve`, in the order in which results shall come out. What waits is in a
    heap; a result that is next goes straight through. A result may be empty, but has to be added,
    or those behind it never come out.

    >>> out = Collector()
    >>> first, second, third = out.reserve(), out.reserve(), out.reserve()
    >>> out.add(second, "b"), out.add(first, "a"), out.add(third, "c")
    ([], ['a', 'b'], ['c'])
    """

    def __init__(self) -> None:
        self.reserved = 0
        """How many numbers are reserved."""
        self.delivered = 0
        """How many results came out, which is the number of the next."""
        self._waiting: list[tuple[int, T]] = []

    def __len__(self) -> int:
        """How many results have not come out."""
        return self.reserved - self.delivered

    def reserve(self, results: int = 1) -> int:
        """Reserve numbers for the next results; returns the first."""
        self.reserved += results
        return self.reserved - results

    def add(self, number: int, result: T) -> list[T]:
        """Add a result; returns all that come out with it."""
        if number != self.delivered:
            heappush(self._waiting, (number, result))
            return []
        found = [result]
        self.delivered += 1
        while self._waiting and self._waiting[0][0] == self.delivered:
            found.append(heappop(self._waiting)[1])
            self.delivered += 1
        return found
