"""A farm pattern is a kind of farm and how it makes tasks of windows."""

from windowlib import Count, Sliding, replay
from windowlib.farms.farm import Farm
from windowlib.farms.scheduler import Task
from windowlib.farms.window_farm import Dispatch, extent_columns
from windowlib.operators import Aggregate, agg

TASKS: list[list[object]] = []


class ArrivalDispatch(Dispatch):
    """All windows that tuples fire together are one task, whatever their partitions."""

    def __init__(self, run):
        super().__init__(run)
        self._held = []

    def fired(self, firing, number):
        self._held.append((firing, number))

    def after_firings(self):
        self.flush()

    def flush(self):
        if not self._held:
            return
        held, self._held = self._held, []
        TASKS.append([firing.key for firing, _ in held])
        runs, windows = extent_columns([firing for firing, _ in held])
        first = min((lo for lo, _ in runs), default=None)
        then = self.run.receiver([number for _, number in held])
        rows = self.run.chunk_ranges(runs)
        self.run.submit(Task("windows", (rows, windows), first=first, then=then, windows=len(held)))


class ArrivalFarm(Farm):
    """Windows on workers, those of one arrival together."""

    pattern = "window agnostic"

    def dispatch(self, run):
        return ArrivalDispatch(run)


def test_the_farm_is_the_operator_row_for_row():
    TASKS.clear()
    spec = Sliding(Count(5), every=Count(2), by="k")
    op = Aggregate(spec, total=agg.sum("x"), last=agg.last("x"))
    rows = [{"k": "abc"[i % 3], "x": i} for i in range(90)]
    wanted = list(replay(op, rows))
    assert wanted
    assert wanted == list(replay(ArrivalFarm(op, workers=1, chunk=8, when="always"), rows))
    assert len(wanted) <= sum(map(len, TASKS))
    assert any(len(set(keys)) > 1 for keys in TASKS), "no task had windows of several partitions"
