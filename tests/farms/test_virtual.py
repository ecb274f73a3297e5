"""Farms in virtual time: they give the operator's rows, when the cost model says."""
# ruff: noqa: SIM300 - asserts read expected first

import numpy as np
import pyarrow as pa
import pytest

from operators import Aggregate, agg
from windowlib import Count, Operator, OperatorModel, Punct, Sliding, Time, Tumbling, replay
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.virtual import simulate

BATCH = pa.record_batch({"key": np.arange(60) % 3, "x": np.arange(60)})
FARMS = (KeyFarm, WindowFarm, PaneFarm, WindowPartition)


def total(window):
    return Aggregate(window, last=agg.last("key"), total=agg.sum("x"), n=agg.count())


def second(*_):
    return 1.0


@pytest.mark.parametrize("kind", FARMS)
def test_the_rows_are_those_of_the_operator(kind):
    op = total(Sliding(Count(8), every=Count(4), by="key"))
    found = simulate(kind(op, workers=5), [(0.0, BATCH), (0.5, BATCH)], second)
    assert list(replay(op, BATCH.to_pylist() * 2)) == found.rows
    assert 5 == len(found.busy)


def test_a_task_begins_when_its_worker_has_done_those_before_it():
    tens = total(Tumbling(Count(10)))
    arrivals = [(at, BATCH.slice(0, 10)) for at in (0.0, 0.25, 5.0)]
    found = simulate(WindowFarm(tens, workers=1), arrivals, second)
    assert [1.0, 2.0, 6.0] == [time for time, _, row in found.out if row is not None]
    assert ([3.0], 6.0, [0.0, 0.25, 5.0]) == (found.busy, found.end, found.entered)


def test_a_result_waits_for_those_before_it():
    tens = total(Tumbling(Count(10)))

    def cost(work, args):
        return 7.0 if args[1][0].now == 0 else 1.0  # the first takes long

    arrivals = [(at, BATCH.slice(0, 10)) for at in (0.0, 2.0, 3.0)]
    found = simulate(WindowFarm(tens, workers=3), arrivals, cost)
    assert [7.0, 7.0, 7.0] == [time for time, _, row in found.out if row is not None]
    assert [7.0, 1.0, 1.0] == found.busy


def test_a_batch_enters_late_when_too_much_is_under_way():
    tens = total(Tumbling(Count(10)))
    farm = WindowFarm(tens, workers=1)
    arrivals = [(0.0, BATCH.slice(0, 10))] * (farm.limit + 3)
    found = simulate(farm, arrivals, second)
    assert [0.0] * (farm.limit + 1) + [1.0, 2.0] == found.entered


def test_windows_of_time_end_by_when_batches_come_and_not_by_when_workers_get_to_them():
    op = Aggregate(Tumbling(Time("1s")), n=agg.count())
    arrivals = [(at, BATCH.slice(0, 2)) for at in (0.0, 0.5, 1.0, 2.5)]
    found = simulate(WindowFarm(op, workers=1), arrivals, lambda *_: 10.0)
    # Time passes before the rows that come then; what is left at the end does not fire.
    assert [{"n": 4}, {"n": 2}] == found.rows
    assert [11.0, 21.0] == [time for time, _, row in found.out if row is not None]


def test_a_column_says_when_rows_came():
    op = Aggregate(Sliding(Time("2s"), every=Time("1s")), n=agg.count(), total=agg.sum("x"))
    seconds = np.array([0.2, 0.9, 1.1, 2.3, 2.9])
    stamps = pa.array((seconds * 1e6).astype(np.int64), pa.duration("us"))
    batch = pa.record_batch({"at": stamps, "x": [1, 2, 4, 8, 16]})
    arrivals = [(1.0, batch.slice(0, 2)), (3.0, batch.slice(2))]
    found = simulate(WindowFarm(op, workers=2), arrivals, second, times="at")
    assert [{"n": 2, "total": 3}, {"n": 3, "total": 7}, {"n": 3, "total": 28}] == found.rows
    assert [2.0, 4.0, 4.0] == [time for time, _, row in found.out if row is not None]


def test_a_punctuation_is_an_arrival():
    op = total(Tumbling(Punct()))
    arrivals = [(0.0, BATCH.slice(0, 3)), (4.0, None)]
    found = simulate(WindowFarm(op, workers=1), arrivals, second)
    assert [(5.0, {"last": 2, "total": 3, "n": 3})] == [
        (time, row) for time, _, row in found.out if row is not None
    ]


def test_what_goes_wrong_in_a_worker_is_raised():
    def fail(values):
        raise ValueError("too much")

    op = Aggregate(Tumbling(Count(10)), x=agg.custom(lambda: 0, lambda s, x: fail(x), column="x"))
    with pytest.raises(ValueError, match="too much"):
        simulate(WindowFarm(op, workers=2), [(0.0, BATCH)], second)


class Total(Operator):
    """Reads a column, of empty windows, too."""

    model = OperatorModel(windows=[Sliding])
    content = "arrow"

    def on_trigger(self, window, key):
        self.emit(key=key, total=int(window.column("x", key).sum()))


@pytest.mark.parametrize("kind", [KeyFarm, WindowFarm])
def test_an_empty_window_has_the_columns_of_the_rows_that_came(kind):
    op = Total(Sliding(Time("1s"), every=Time("1s"), by="key"))
    stamps = pa.array([100_000, 200_000, 4_500_000], pa.duration("us"))
    batch = pa.record_batch({"at": stamps, "key": [1, 2, 1], "x": [4, 5, 6]})
    found = simulate(kind(op, workers=2), [(5.0, batch)], second, times="at")
    running = op.open()
    wanted: list[dict[str, int | None]] = []
    running.connect(0, wanted.append)
    running.insert_batch(batch, times="at")
    running.advance(5)
    empty = {"key": None, "total": 0}  # fires wherever there are partitions of the window
    assert empty in wanted
    assert empty in found.rows
    assert [row for row in wanted if row != empty] == [row for row in found.rows if row != empty]
