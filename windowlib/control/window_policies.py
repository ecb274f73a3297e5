"""Which worker merges which window: the tasks of windows, in turn or to a free worker.

A task is one result of a pane that goes into one window. Tasks of one window are done one after
another; different windows may be worked on at once.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

from windowlib.control.pid import counted
from windowlib.errors import FarmError


class WindowTask(NamedTuple):
    """A piece of work for a window; `last` says that the window is complete with it."""

    window: int
    item: Any = None
    last: bool = False


Sent = list[tuple[int, WindowTask]]


class WindowPolicy(Protocol):
    """Hands tasks to workers. The caller sends what it returns, in that order."""

    workers: int

    def ready(self, task: WindowTask) -> Sent:
        """A task is there: what to send now, and to whom."""

    def done(self, worker: int, window: int) -> Sent:
        """A worker has finished the task of a window that it was sent: what to send next."""


class WindowRoundRobin:
    """Window w goes to worker `w mod workers`, whatever that one has to do.

    >>> policy = WindowRoundRobin(2)
    >>> policy.ready(WindowTask(3)), policy.done(1, 3)
    ([(1, WindowTask(window=3, item=None, last=False))], [])
    """

    def __init__(self, workers: int) -> None:
        self.workers = counted("WindowRoundRobin(workers)", workers)

    def ready(self, task: WindowTask) -> Sent:
        """The task, for the worker of its window."""
        return [(task.window % self.workers, task)]

    def done(self, worker: int, window: int) -> Sent:
        """Nothing: workers keep queues of their own."""
        return []


class _Window:
    """What waits for a window, whether a worker has it, and which had it last."""

    __slots__ = ("busy", "complete", "home", "pending")

    def __init__(self) -> None:
        self.pending: deque[WindowTask] = deque()
        self.busy: int | None = None
        self.home: int | None = None
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
        self.workers = counted("WindowFeedback(workers)", workers)
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

    def ready(self, task: WindowTask) -> Sent:
        """The task, if its window is not being worked on and a worker is free."""
        window = self._windows.setdefault(task.window, _Window())
        if window.complete:
            msg = (
                f"ready(window={task.window}): its last task was there before. Say last=True with "
                f"the task that completes the window."
            )
            raise FarmError(msg)
        window.complete = task.last
        if window.busy is None and self._free and not window.pending:
            return [self._send(window, self._choose(window), task)]
        if window.busy is None and not window.pending:
            heappush(self._waiting, task.window)
        window.pending.append(task)
        return []

    def done(self, worker: int, window: int) -> Sent:
        """The next task for a worker, if there is one."""
        found = self._windows.get(window)
        if found is None or found.busy != worker:
            msg = (
                f"done(worker={worker}, window={window}): this worker has no task of this window. "
                f"Call it once for each task that was sent."
            )
            raise FarmError(msg)
        found.busy = None
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
        worker = window.home if window.home in self._free else next(iter(self._free))
        del self._free[worker]
        return worker

    def _send(self, window: _Window, worker: int, task: WindowTask) -> tuple[int, WindowTask]:
        window.busy = window.home = worker
        return worker, task
