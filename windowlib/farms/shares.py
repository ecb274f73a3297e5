"""How slices are cut into parts, if a policy decides it that is told what workers do.

The policies of `windowlib.control` say of each tuple who gets it. A farm gives away whole slices,
and their parts go to whoever is free; so it takes from a policy how large a part may be, and tells
it how large parts became and how busy workers were.
"""

from __future__ import annotations

from windowlib.control import Adaptive, WorkerStats

INTERVAL = 0.25
"""Seconds between two looks at the workers, at least."""
SLICES = 5
"""So many slices have to have ended in between, too."""


class Shares:
    """The parts of slices: each has up to `policy.threshold` tuples next to each other.

    What is left of a slice is a part of its own. If that were more parts than there are workers,
    all of them have equal ones.

    >>> shares = Shares(Adaptive(2, warmup=1))
    >>> shares.cut(100), shares.cut(130), shares.cut(500)
    ([100], [100, 30], [250, 250])
    """

    def __init__(self, policy: Adaptive) -> None:
        self.policy = policy
        self.slices = 0
        """How many slices have been cut."""
        self._since: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._given, self._first = 0, self.slices
        self._done = [0] * self.policy.workers
        self._busy = [0.0] * self.policy.workers

    def cut(self, size: int) -> list[int]:
        """How large the parts of a slice are; the policy learns from it."""
        found = self._cut(size)
        self.policy.closed(self.slices, found)
        self.slices += 1
        self._given += size
        return found

    def _cut(self, size: int) -> list[int]:
        threshold, workers = self.policy.threshold, self.policy.workers
        if size <= threshold:
            return [size]
        most = int(threshold)
        if size > most * workers:
            return [size // workers + (i < size % workers) for i in range(min(size, workers))]
        whole, rest = divmod(size, most)
        return [most] * whole + [rest] * bool(rest)

    def worked(self, worker: int, rows: int, seconds: float) -> None:
        """A worker has done a task."""
        self._done[worker] += rows
        self._busy[worker] += seconds

    def look(self, now: float) -> None:
        """Tell the policy how busy workers were, if it is time to."""
        if self._since is None:
            self._since = now
        interval = now - self._since
        if interval < INTERVAL or self.slices - self._first < SLICES:
            return
        self.policy.sample(now, self._stats(), interval)
        self._since = now
        self._begin()

    def _stats(self) -> list[WorkerStats]:
        """What workers did. A task is nobody's until somebody is free, so each is said to have
        been given as much of what came as it had of what was done."""
        done = sum(self._done)
        return [
            WorkerStats(self._given * (own / done if done else 1 / len(self._done)), own, busy)
            for own, busy in zip(self._done, self._busy, strict=True)
        ]
