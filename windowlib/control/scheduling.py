"""Scheduling: which worker gets which tuples of a pane, and which worker merges which window.

A pane is a slice of the stream whose result does not depend on how it is split: each worker makes a
partial result of its partition, and partial results are merged. Fewer, larger partitions give
smaller partial results; more, smaller ones spread the work better.

The results of panes are merged into windows. A task is one result of a pane that goes into one
window. Tasks of one window are done one after another; different windows may be worked on at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf, sqrt
from typing import Any, Literal, NamedTuple, Protocol

from windowlib.control.pid import Pid, bounds, check_count, check_finite, clamp
from windowlib.control.utilisation import Utilisation, WorkerStats
from windowlib.errors import FarmError

Run = tuple[int, int]
CEILING = 10.0  # a utilisation above this says no more than this one: far too busy


# -- the tuples of panes ---------------------------------------------------------------------------


class PanePolicy(Protocol):
    """Splits panes among workers."""

    workers: int

    def assign(self, pane: int, count: int, loads: Sequence[float]) -> list[Run]:
        """Who gets the next `count` tuples of a pane, in order: (worker, tuples) each.

        `loads` is what waits at each worker, without these tuples.
        """

    def partitions(self, pane: int) -> Mapping[int, int]:
        """The workers that have tuples of a pane, and how many: as many results are to come."""

    def closed(self, pane: int, sizes: Sequence[int] | None = None) -> dict[int, int]:
        """A pane is complete: its partitions, which are forgotten here.

        `sizes` says how large they really were, where it was not `assign` that split the pane.
        """

    def sample(
        self, now: float, stats: Sequence[WorkerStats], interval: float | None = None
    ) -> None:
        """What workers did in the `interval` up to `now`; else since the last sample."""


class _PanePolicyBase:
    """Base of the policies: the open panes, and how large their partitions are."""

    def __init__(self, workers: int) -> None:
        self.workers = check_count(f"{type(self).__name__}(workers)", workers)
        self._open: dict[int, dict[int, int]] = {}
        self._turn = 0

    def partitions(self, pane: int) -> Mapping[int, int]:
        """The workers that have tuples of a pane, and how many."""
        return dict(self._open.get(pane, {}))

    def closed(self, pane: int, sizes: Sequence[int] | None = None) -> dict[int, int]:
        """A pane is complete: its partitions, which are forgotten."""
        return self._open.pop(pane, {})

    def sample(
        self, now: float, stats: Sequence[WorkerStats], interval: float | None = None
    ) -> None:
        """Nothing: this policy ignores the workers."""

    def _record(self, pane: int, runs: list[Run]) -> list[Run]:
        """Join neighbouring runs of the same worker, and record them."""
        sizes = self._open.setdefault(pane, {})
        joined: list[Run] = []
        for worker, size in runs:
            sizes[worker] = sizes.get(worker, 0) + size
            if joined and joined[-1][0] == worker:
                joined[-1] = (worker, joined[-1][1] + size)
            else:
                joined.append((worker, size))
        return joined

    def _round_robin(self, pane: int, count: int) -> list[Run]:
        """Single tuples, each for the next worker; a lone worker gets them as one run."""
        if not check_count("assign(count)", count, least=0):
            return []
        if self.workers == 1:
            return self._record(pane, [(0, count)])
        order = [(self._turn + i) % self.workers for i in range(self.workers)]
        rounds, rest = divmod(count, self.workers)
        self._turn = (self._turn + rest) % self.workers
        sizes = self._open.setdefault(pane, {})
        for i, worker in enumerate(order):
            if rounds or i < rest:
                sizes[worker] = sizes.get(worker, 0) + rounds + (i < rest)
        one_round = [(worker, 1) for worker in order]
        return one_round * rounds + one_round[:rest]


class PaneRoundRobin(_PanePolicyBase):
    """A whole pane to one worker, panes in turn: the smallest results, and the worst balance.

    >>> policy = PaneRoundRobin(2)
    >>> policy.assign(0, 100, [0, 0]), policy.assign(1, 5, [100, 0]), policy.assign(0, 7, [100, 5])
    ([(0, 100)], [(1, 5)], [(0, 7)])
    """

    def assign(self, pane: int, count: int, loads: Sequence[float]) -> list[Run]:
        """All tuples, for the worker of the pane."""
        if not check_count("assign(count)", count, least=0):
            return []
        owners = self._open.get(pane)
        if owners is None:
            owner, self._turn = self._turn, (self._turn + 1) % self.workers
        else:
            owner = next(iter(owners))
        return self._record(pane, [(owner, count)])


class TupleRoundRobin(_PanePolicyBase):
    """Tuples in turn, so every pane is split among all: the best balance, and the largest results.

    >>> policy = TupleRoundRobin(3)
    >>> policy.assign(0, 4, [0, 0, 0]), dict(policy.partitions(0))
    ([(0, 1), (1, 1), (2, 1), (0, 1)], {0: 2, 1: 1, 2: 1})
    """

    def assign(self, pane: int, count: int, loads: Sequence[float]) -> list[Run]:
        """The tuples, each for the next worker."""
        return self._round_robin(pane, count)


class Adaptive(_PanePolicyBase):
    """A pane stays with a worker up to a threshold, then goes on with the one that has least to do.

    The threshold is the mean of recent partitions plus their standard deviation, where a partition
    weighs `weight` in the estimate and older ones less and less. The first `warmup` panes are not
    split. A worker that had tuples of the pane before goes on with the same partition, so a pane
    has at most one partition for each worker.

    >>> policy = Adaptive(2, warmup=1)
    >>> policy.assign(0, 100, [0, 0]), policy.closed(0), policy.threshold
    ([(0, 100)], {0: 100}, 100.0)
    >>> policy.assign(1, 150, [30, 0])
    [(1, 100), (0, 50)]
    """

    def __init__(self, workers: int, *, warmup: int = 5, weight: float = 0.1) -> None:
        super().__init__(workers)
        self.warmup = check_count("Adaptive(warmup)", warmup, least=0)
        self.weight = _check_weight("Adaptive(weight", weight)
        self.mean = self.variance = 0.0
        self._closed = self._seen = 0
        self._owners: dict[int, int] = {}

    @property
    def base(self) -> float:
        """The mean of recent partitions plus their standard deviation; infinite in the warm-up."""
        warm = self._closed >= self.warmup and self._seen
        return self.mean + sqrt(self.variance) if warm else inf

    @property
    def threshold(self) -> float:
        """How many tuples a partition gets before another worker is looked for."""
        return max(1.0, self.base)

    def assign(self, pane: int, count: int, loads: Sequence[float]) -> list[Run]:
        """The tuples, cut where a partition reaches the threshold."""
        check_count("assign(count)", count, least=0)
        if len(loads) != self.workers:
            msg = f"assign(loads): {len(loads)} loads of {self.workers} workers. Give one for each."
            raise FarmError(msg)
        if not count:
            return []
        sizes, waiting = dict(self._open.get(pane, {})), list(loads)
        owner, runs = self._owners.get(pane), []
        while count:
            if owner is None or sizes.get(owner, 0) >= self.threshold:
                owner = self._least_loaded(waiting)
            size = min(count, self._capacity(owner, sizes.get(owner, 0), waiting))
            runs.append((owner, size))
            sizes[owner] = sizes.get(owner, 0) + size
            waiting[owner] += size
            count -= size
        self._owners[pane] = owner  # type: ignore[assignment]
        return self._record(pane, runs)

    def _least_loaded(self, waiting: Sequence[float]) -> int:
        """The worker with least to do; of several, the first one after the last choice."""
        after = [(self._turn + i) % self.workers for i in range(self.workers)]
        found = min(after, key=waiting.__getitem__)
        self._turn = (found + 1) % self.workers
        return found

    def _capacity(self, owner: int, size: int, waiting: Sequence[float]) -> int:
        """How many tuples the owner gets before another worker could be chosen."""
        threshold = self.threshold
        if size < threshold:
            return _ceil(threshold - size)
        others = [load for worker, load in enumerate(waiting) if worker != owner]
        return max(1, _ceil(min(others, default=inf) - waiting[owner]))

    def closed(self, pane: int, sizes: Sequence[int] | None = None) -> dict[int, int]:
        """A pane is complete: its partitions, which count for the next threshold."""
        self._owners.pop(pane, None)
        found = self._open.pop(pane, {})
        given = [size for size in (found.values() if sizes is None else sizes) if size]
        for size in given:
            self._seen += 1
            weight = max(self.weight, 1 / self._seen)  # the first few all count alike
            away = size - self.mean
            self.mean += weight * away
            self.variance = (1 - weight) * (self.variance + weight * away * away)
        self._closed += bool(given)
        return found


def _check_weight(name: str, value: float) -> float:
    """A weight, if it is one."""
    if check_finite(f"{name})", value, least=0, strict=True) > 1:
        raise FarmError(f"{name}={value!r}): not a share. Use more than 0, and at most 1.")
    return value


def _ceil(value: float) -> int:
    """Rounded up; of infinity, more tuples than any batch has."""
    return 1 << 62 if value == inf else int(-(-value // 1))


class AdaptivePid(Adaptive):
    """Adaptive, with the threshold steered so that workers are as busy as they should be.

    The threshold is `alpha` times that of `Adaptive`. At each sample a controller moves alpha: up,
    to larger partitions and smaller results, while the utilisation is below the set point, and down
    while it is above. `on` says which utilisation: of the "worst" worker, which is never less than
    the mean, or the "weighted" mean. It is averaged: a sample weighs `smooth`, older ones less and
    less. One sample of a few panes says little of many workers; moved by each of them alone, alpha
    takes its largest step most of the time, as large for a burst as for a trifle, and so workers
    are busier than they should be on average.

    If it stays above 1 for `patience` samples, tuples go to workers in turn, which is as well
    spread as can be; that ends when it has been below the set point for as many samples.

    >>> policy = AdaptivePid(2)
    >>> policy.sample(1.0, [WorkerStats(500, 500, 0.3), WorkerStats(400, 400, 0.2)], interval=1.0)
    >>> round(policy.alpha, 6)
    1.2
    """

    def __init__(
        self,
        workers: int,
        *,
        warmup: int = 5,
        weight: float = 0.1,
        setpoint: float = 0.9,
        gains: tuple[float, float, float] = (0.9, 0.0, 1.0),
        step: float = 0.2,
        smooth: float = 0.25,
        alphas: tuple[float, float] = (0.01, 4.0),
        patience: int = 5,
        on: Literal["worst", "weighted"] = "worst",
    ) -> None:
        super().__init__(workers, warmup=warmup, weight=weight)
        low, high = bounds("AdaptivePid(alphas)", *alphas)
        check_finite("AdaptivePid(alphas)[0]", low, least=0, strict=True)
        if on not in ("worst", "weighted"):
            msg = f"AdaptivePid(on={on!r}): no such utilisation. Use worst or weighted."
            raise FarmError(msg)
        self.patience = check_count("AdaptivePid(patience)", patience)
        self.on = on
        self.smooth = _check_weight("AdaptivePid(smooth", smooth)
        self.pid = Pid(
            *gains,
            setpoint=setpoint,
            limits=(low, high),
            start=1.0,
            step=step,
            form="velocity",
        )
        self.utilisation: Utilisation | None = None
        self.fallback = False
        self._streak = 0
        self._now: float | None = None
        self._mean: float | None = None  # of recent utilisations

    @property
    def alpha(self) -> float:
        """The factor of the threshold of `Adaptive`."""
        return self.pid.output

    @property
    def threshold(self) -> float:
        """How many tuples a partition gets before another worker is looked for; 1 in fallback."""
        return 1.0 if self.fallback else max(1.0, self.alpha * self.base)

    def assign(self, pane: int, count: int, loads: Sequence[float]) -> list[Run]:
        """The tuples, cut where a partition reaches the threshold; in fallback, in turn."""
        if not self.fallback:
            return super().assign(pane, count, loads)
        self._owners.pop(pane, None)
        return self._round_robin(pane, count)

    def sample(
        self, now: float, stats: Sequence[WorkerStats], interval: float | None = None
    ) -> None:
        """Move alpha by what workers did in the `interval` up to `now`, or since the last sample.

        The very first sample needs the interval, or only says when the next one begins.
        """
        check_finite("sample(now)", now)
        last, self._now = self._now, now
        if interval is None:
            if last is None:
                return
            interval = now - last
        self.utilisation = Utilisation.of(stats, interval)
        if self.utilisation is None:
            return
        found = self.utilisation.worst if self.on == "worst" else self.utilisation.weighted
        self._update_fallback(found)
        if not self.fallback:
            found = clamp(found, 0.0, CEILING)
            before = found if self._mean is None else self._mean
            self._mean = before + self.smooth * (found - before)
            self.pid.update(self._mean)

    def _update_fallback(self, found: float) -> None:
        """Fall back after too many samples that were too busy, and come back after as many good."""
        counts = found < self.pid.setpoint if self.fallback else found > 1
        self._streak = self._streak + 1 if counts else 0
        if self._streak < self.patience:
            return
        self.fallback, self._streak = not self.fallback, 0
        self._mean = None
        self.pid.reset()
        self.pid.output = self.pid.limits[0]  # small partitions first: they were needed just now


# -- the tasks of windows --------------------------------------------------------------------------


class WindowTask(NamedTuple):
    """A piece of work for a window; `last` says that the window is complete with it."""

    window: int
    item: Any = None
    last: bool = False


Assignments = list[tuple[int, WindowTask]]


class WindowPolicy(Protocol):
    """Hands tasks to workers. The caller sends what it returns, in that order."""

    workers: int

    def ready(self, task: WindowTask) -> Assignments:
        """A task is there: what to send now, and to whom."""

    def done(self, worker: int, window: int) -> Assignments:
        """A worker has finished the task of a window that it was sent: what to send next."""


class WindowRoundRobin:
    """Window w goes to worker `w mod workers`, whatever that one has to do.

    >>> policy = WindowRoundRobin(2)
    >>> policy.ready(WindowTask(3)), policy.done(1, 3)
    ([(1, WindowTask(window=3, item=None, last=False))], [])
    """

    def __init__(self, workers: int) -> None:
        self.workers = check_count("WindowRoundRobin(workers)", workers)

    def ready(self, task: WindowTask) -> Assignments:
        """The task, for the worker of its window."""
        return [(task.window % self.workers, task)]

    def done(self, worker: int, window: int) -> Assignments:
        """Nothing: workers keep queues of their own."""
        return []


class _Window:
    """The tasks of a window that wait, its worker if it has one, and its last worker."""

    __slots__ = ("complete", "last_worker", "pending", "worker")

    def __init__(self) -> None:
        self.pending: deque[WindowTask] = deque()
        self.worker: int | None = None
        self.last_worker: int | None = None
        self.complete = False


class WindowFeedback:
    """A task goes to a worker that has said it is free; a worker has one task at a time.

    A worker that is done gets the next task of the same window, whose contents it has at hand.
    Else it gets the oldest window that waits, and if none does, it is free. The tasks of a window
    are sent in the order in which they came. A window is forgotten when its last task is done.

    >>> policy = WindowFeedback(1)
    >>> policy.ready(WindowTask(0, "a"))
    [(0, WindowTask(window=0, item='a', last=False))]
    >>> policy.ready(WindowTask(1, "b")), policy.ready(WindowTask(0, "c", last=True))
    ([], [])
    >>> policy.done(0, window=0)
    [(0, WindowTask(window=0, item='c', last=True))]
    >>> policy.done(0, window=0)
    [(0, WindowTask(window=1, item='b', last=False))]
    """

    def __init__(self, workers: int) -> None:
        self.workers = check_count("WindowFeedback(workers)", workers)
        self._windows: dict[int, _Window] = {}
        self._free: dict[int, None] = dict.fromkeys(range(workers))  # longest free first
        self._waiting: list[int] = []  # a heap of windows with tasks that no worker has

    @property
    def windows(self) -> int:
        """How many windows are not complete."""
        return len(self._windows)

    @property
    def pending(self) -> int:
        """How many tasks wait."""
        return sum(len(window.pending) for window in self._windows.values())

    def ready(self, task: WindowTask) -> Assignments:
        """The task, if its window is not being worked on and a worker is free."""
        window = self._windows.setdefault(task.window, _Window())
        if window.complete:
            msg = (
                f"ready(window={task.window}): its last task was there before. Say last=True with "
                f"the task that completes the window."
            )
            raise FarmError(msg)
        window.complete = task.last
        if window.worker is None and self._free and not window.pending:
            return [self._send(window, self._choose(window), task)]
        if window.worker is None and not window.pending:
            heappush(self._waiting, task.window)
        window.pending.append(task)
        return []

    def done(self, worker: int, window: int) -> Assignments:
        """The next task for a worker, if there is one."""
        found = self._windows.get(window)
        if found is None or found.worker != worker:
            msg = (
                f"done(worker={worker}, window={window}): this worker has no task of this window. "
                f"Call it once for each task that was sent."
            )
            raise FarmError(msg)
        found.worker = None
        if found.pending:
            return [self._send(found, worker, found.pending.popleft())]
        if found.complete:
            del self._windows[window]
        if self._waiting:
            oldest = self._windows[heappop(self._waiting)]
            return [self._send(oldest, worker, oldest.pending.popleft())]
        self._free[worker] = None
        return []

    def _choose(self, window: _Window) -> int:
        """The last worker of the window, if it is free, else the one that has been free longest."""
        worker = window.last_worker if window.last_worker in self._free else next(iter(self._free))
        del self._free[worker]
        return worker

    def _send(self, window: _Window, worker: int, task: WindowTask) -> tuple[int, WindowTask]:
        window.worker = window.last_worker = worker
        return worker, task
