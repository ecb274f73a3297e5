"""Panes and windows in virtual time: real policies, and workers whose work is arithmetic."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowlib.control import PanePolicy, Utilisation, WindowPolicy, WindowTask, WorkerStats

STEP = 0.005  # seconds that pass at a time
SAMPLE = 50  # steps
POWER = 0.6  # a partial result has as many rows as its partition has tuples, to this power

Times = NDArray[np.float64]


class Seen(NamedTuple):
    """Means over the last two thirds of a run; `waiting` is the queue at its end."""

    weighted: float
    worst: float
    split: float
    size: float
    waiting: float


class Worker:
    """Processes runs of tuples in order; a tuple costs the more, the larger its partition is."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.sizes: dict[int, float] = {}
        self.queue: deque[list[Any]] = deque()
        self.waiting = self.done = self.given = 0.0
        self.busy = 0.0

    def give(self, pane: int, count: int) -> None:
        """More tuples of a pane."""
        self.queue.append([pane, count])
        self.waiting += count
        self.given += count

    def work(self, seconds: float) -> None:
        """So much time passes."""
        left = seconds
        while self.queue and left > 1e-12:
            pane, count = self.queue[0]
            size = self.sizes.get(pane, 0.0)
            each = self.cost * (size + count / 2) ** POWER
            able = min(count, left / each) if each else count
            self.sizes[pane] = size + able
            self.queue[0][1] -= able
            left -= able * each
            self.waiting -= able
            self.done += able
            if self.queue[0][1] <= 1e-9:
                self.queue.popleft()
        self.busy += seconds - left

    def sample(self) -> WorkerStats:
        """What it did since the last time."""
        found = WorkerStats(self.given, self.done, self.busy)
        self.given = self.done = self.busy = 0.0
        return found


def cost_of(load: float, workers: int, tuples: float = 1000.0, pane: float = 0.05) -> float:
    """The cost of a tuple with which workers have this load if tuples go to them in turn."""
    return float(load * pane * (1 + POWER) / (tuples / workers) ** (1 + POWER))


def run(policy: PanePolicy, arrivals: Times, cost: float, *, pane: float = 0.05) -> Seen:
    """What a policy does with a stream."""
    workers = [Worker(cost) for _ in range(policy.workers)]
    steps = int(arrivals[-1] / STEP)
    counts = np.diff(np.searchsorted(arrivals, np.arange(steps + 1) * STEP))
    utilisations, sizes, splits = [], [], []
    per_pane = round(pane / STEP)
    for step, count in enumerate(counts.tolist()):
        number = step // per_pane
        shares = [0] * policy.workers
        for owner, size in policy.assign(number, count, [w.waiting for w in workers]):
            shares[owner] += size
        for worker, size in zip(workers, shares, strict=True):
            if size:
                worker.give(number, size)
        for worker in workers:
            worker.work(STEP)
        if step % per_pane == per_pane - 1:
            closed = policy.closed(number)
            if step > steps / 3 and closed:
                splits.append(len(closed))
                sizes.append(sum(size**POWER for size in closed.values()))
        if step % SAMPLE == SAMPLE - 1:
            stats = [worker.sample() for worker in workers]
            policy.sample(step * STEP, stats, SAMPLE * STEP)
            utilisations.append(_utilisation(stats))
    late = utilisations[len(utilisations) // 3 :]
    weighted, worst = np.mean(late, axis=0).tolist()
    waiting = sum(worker.waiting for worker in workers)
    return Seen(weighted, worst, float(np.mean(splits)), float(np.mean(sizes)), waiting)


def _utilisation(stats: Sequence[WorkerStats]) -> tuple[float, float]:
    found = Utilisation.of(stats, SAMPLE * STEP)
    assert found is not None
    return (min(found.weighted, 10.0), min(found.worst, 10.0))


def merge(policy: WindowPolicy, tasks: Sequence[tuple[float, WindowTask]], costs: Times) -> float:
    """How long windows take from their last task until they are sent on, in virtual time.

    `tasks` are (time, task) in order; `costs` says what each item costs. Workers that have no
    feedback keep queues of their own. Windows are sent on in order, as farms do.
    """
    events: list[Any] = [(time, 0, i, None, task) for i, (time, task) in enumerate(tasks)]
    heapify(events)
    queues: list[deque[list[Any]]] = [deque() for _ in range(policy.workers)]
    came: dict[int, float] = {}
    ended: dict[int, float] = {}
    number = len(events)
    while events:
        now, kind, _, worker, task = heappop(events)
        if kind == 0:
            came[task.window] = now
            sent = policy.ready(task)
        else:
            queues[worker].popleft()
            if task.last:
                ended[task.window] = now
            sent = policy.done(worker, task.window)
        touched = {worker} if kind else set()
        for target, each in sent:
            queues[target].append([each, False])
            touched.add(target)
        for target in touched:
            if queues[target] and not queues[target][0][1]:
                queues[target][0][1] = True
                number += 1
                end = now + costs[queues[target][0][0].item]
                heappush(events, (end, 1, number, target, queues[target][0][0]))
    windows = sorted(ended)
    sent_on = accumulate((ended[window] for window in windows), max)
    return sum(end - came[window] for window, end in zip(windows, sent_on, strict=True)) / len(
        ended
    )


def pane_tasks(
    arrivals: Times, *, panes_per_window: int, pane: float = 0.05
) -> tuple[list[tuple[float, WindowTask]], Times]:
    """A task for each pane and each window that has it, when the pane ends; and tuples of panes."""
    edges = np.arange(int(arrivals[-1] / pane) + 1) * pane
    counts = np.diff(np.searchsorted(arrivals, edges)).astype(np.float64)
    tasks = []
    for number in range(len(counts)):
        first = max(0, number - panes_per_window + 1)
        for window in range(first, number + 1):
            last = number == window + panes_per_window - 1
            tasks.append(((number + 1) * pane, WindowTask(window, number, last)))
    return tasks, counts
