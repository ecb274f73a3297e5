"""How busy workers are, from what they were given and what they did."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from windowlib.control.pid import check_finite
from windowlib.errors import FarmError


class WorkerStats(NamedTuple):
    """One worker in one interval: tuples it was given, tuples it processed, seconds it worked."""

    given: float
    done: float
    busy: float


class Utilisation(NamedTuple):
    """For each worker, the tuples it was given relative to those it could have processed.

    More than 1 is a queue that grows. `weighted` is the mean for a tuple; it can be below 1 while
    one worker falls behind, so look at `worst`, too.

    >>> stats = [WorkerStats(600, 500, 1.0), WorkerStats(400, 400, 0.6)]
    >>> load = Utilisation.of(stats, interval=1.0)
    >>> round(load.weighted, 3), round(load.worst, 3)
    (0.976, 1.2)
    """

    weighted: float
    worst: float
    workers: tuple[float, ...]

    @classmethod
    def of(cls, stats: Sequence[WorkerStats], interval: float) -> Utilisation | None:
        """The utilisation in an interval, in seconds; None if no worker has done anything.

        A worker could have processed the tuples that it did, and as many more in its idle time as
        the mean cost of a tuple allows.
        """
        check_finite("Utilisation.of(interval)", interval, least=0, strict=True)
        if not stats:
            msg = "Utilisation.of(stats=[]): no workers. Give the WorkerStats of one or more."
            raise FarmError(msg)
        given = sum(each.given for each in stats)
        done, busy = sum(each.done for each in stats), sum(each.busy for each in stats)
        if not given:
            return cls(0.0, 0.0, (0.0,) * len(stats))
        if not done and not busy:
            return None
        shares = tuple(_worker_utilisation(each, interval, done, busy) for each in stats)
        pairs = zip(stats, shares, strict=True)
        weighted = sum(each.given / given * share for each, share in pairs if each.given)
        return cls(weighted, max(shares), shares)

    @property
    def control(self) -> float:
        """The controlled utilisation: the larger of the mean and the worst worker, the latter."""
        return max(self.weighted, self.worst)


def _worker_utilisation(each: WorkerStats, interval: float, done: float, busy: float) -> float:
    """The utilisation of one worker; a tuple costs `busy / done`."""
    if not each.given:
        return 0.0
    idle = max(0.0, interval - each.busy)
    if not busy:  # faster than the clock could measure
        return 0.0
    able = each.done + idle * done / busy
    return each.given / able if able else inf
