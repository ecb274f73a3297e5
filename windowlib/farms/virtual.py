"""A farm in virtual time: the real emitter, scheduler and collector, with simulated workers.

Results are computed as usual, in this process; a cost model gives the time that they take. So a
farm can be studied with more workers than the machine has cores, and every run is the same.

>>> from windowlib.operators import Aggregate, agg
>>> from windowlib import Count, Tumbling
>>> from windowlib.farms import WindowFarm
>>> import pyarrow as pa
>>> total = Aggregate(Tumbling(Count(10)), total=agg.sum("x"))
>>> batch = pa.record_batch({"x": list(range(10))})
>>> def run(workers):
...     arrivals = [(0.0, batch)] * 12
...     return simulate(WindowFarm(total, workers=workers), arrivals, cost=lambda *_: 1.0)
>>> run(1).end, run(4).end, run(12).end
(12.0, 3.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from windowlib.farms.farm import Farm
from windowlib.farms.pool import WorkerAnswer
from windowlib.farms.worker import WorkerException, WorkerSetup

Cost = Callable[[str, Any], float]
"""How long a task takes, in seconds, given its name and arguments."""


class VirtualPool:
    """Workers in virtual time: they take as long as the cost model says."""

    def __init__(self, workers: int, setup: WorkerSetup, *, cost: Cost) -> None:
        self.now = 0.0
        self.busy = [0.0] * workers
        """How long each worker has worked."""
        self._cost, self._free, self._setup = cost, [0.0] * workers, setup
        self._workers = [setup.worker(setup) for _ in range(workers)]
        self._under_way: list[tuple[float, int, int, float, str, Any, int]] = []
        self._count = count()

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """A task begins when the worker has done those before it."""
        took = self._cost(work, args)
        self._free[worker] = max(self.now, self._free[worker]) + took
        self.busy[worker] += took
        if work in self._workers[worker].silent:
            self._workers[worker].do(work, args, oldest)
            return
        end, number = self._free[worker], next(self._count)
        heappush(self._under_way, (end, number, worker, took, work, args, oldest))

    @property
    def next(self) -> float | None:
        """When the next task is done, if one is under way."""
        return self._under_way[0][0] if self._under_way else None

    def wait(self, *, block: bool) -> Iterator[WorkerAnswer]:
        """The next task that is done, if it is done by now; with `block`, time goes on to it."""
        if self._under_way and (block or self._under_way[0][0] <= self.now):
            time, _, worker, took, work, args, oldest = heappop(self._under_way)
            self.now = max(self.now, time)
            try:
                yield WorkerAnswer(
                    worker, False, self._workers[worker].do(work, args, oldest), took
                )
            except Exception as error:
                yield WorkerAnswer(worker, True, WorkerException.of(error), took)

    def resize(self, workers: int) -> None:
        """Go on with more workers, or with fewer; none of them has anything to do."""
        more = workers - len(self._workers)
        self._workers += [self._setup.worker(self._setup) for _ in range(more)]
        self._free += [self.now] * more
        self.busy += [0.0] * more
        for each in (self._workers, self._free, self.busy):
            del each[workers:]

    def close(self) -> None:
        """Nothing: there are no processes."""


@dataclass
class SimulationReport:
    """The outcome of a run."""

    end: float = 0.0
    """When the last result came out."""
    out: list[tuple[float, int, Any]] = field(default_factory=list)
    """What came out: when, at which output, and the row, or None for a punctuation."""
    entered: list[float] = field(default_factory=list)
    """When each batch went in, which is later than it came if the farm had too much to do."""
    busy: list[float] = field(default_factory=list)
    """How long each worker worked."""

    @property
    def rows(self) -> list[Any]:
        """The rows of the first output."""
        return [row for _, port, row in self.out if port == 0 and row is not None]


def simulate(
    farm: Farm, arrivals: Iterable[tuple[float, Any]], cost: Cost, *, times: str | None = None
) -> SimulationReport:
    """Run a farm on batches that come at given times.

    The clock of windows follows the arrival of batches, not the time at which the farm takes them.

    Args:
        farm: any farm.
        arrivals: pairs of a time in seconds, which does not go back, and an Arrow batch, or a
            punctuation as None.
        cost: how long tasks take.
        times: the column that says when each row came, if that was before its batch did.
    """
    report = SimulationReport()
    run = farm.open(pool=lambda workers, setup: VirtualPool(workers, setup, cost=cost))
    pool: VirtualPool = run.pool

    def writers(port: int) -> Any:
        return (
            lambda row: report.out.append((pool.now, port, row)),
            lambda: report.out.append((pool.now, port, None)),
        )

    for port in range(len(run.model.outputs)):
        run.connect(port, *writers(port))
    for time, batch in arrivals:
        while (done := pool.next) is not None and done <= time:
            run.pump(block=True)  # one task after the other, each at its time
        pool.now = max(pool.now, time)
        report.entered.append(pool.now)
        if times is None or batch is None:
            run.advance(time)
        if batch is None:
            run.punctuate()
        else:
            run.insert_batch(batch, times=times)
        if times is not None:  # what ends now, after its last rows
            run.advance(time)
    run.finish()
    report.end, report.busy = pool.now, pool.busy
    return report
