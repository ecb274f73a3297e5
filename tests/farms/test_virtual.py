"""Farms in virtual time: they give the operator's rows, when the cost model says."""
# ruff: noqa: SIM300 - asserts read expected first

from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest

from windowlib import Count, Operator, OperatorModel, Punct, Sliding, Time, Tumbling, replay
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.virtual import VirtualPool, simulate
from windowlib.operators import Aggregate, agg

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
        *_, times = args[1]
        return 7.0 if times[0] == 0 else 1.0  # the first takes long

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


class Sums(Total):
    """The same from parts; refuses to send some."""

    function_kind = "associative"

    def part_of(self, window, key):
        return int(window.column("x", key).sum())

    def merge_parts(self, a, b):
        return a + b

    def emit_part(self, key, part):
        if part == 0 + 1 + 2 + 3 + 4 + 5 + 6 + 7:
            raise ValueError("too little")
        self.emit(total=part)


def test_a_window_ends_where_its_last_part_is_made():
    works = []

    def cost(work, args):
        works.append((work, len(args[2])))
        return 0.125

    op = total(Sliding(Count(8), every=Count(4)))
    arrivals = [(at, BATCH.slice(4 * at, 4)) for at in range(4)]
    found = simulate(PaneFarm(op, workers=2), arrivals, cost)
    assert [("partials", 0)] + [("partials", 1)] * 3 == works
    assert [1.125, 2.125, 3.125] == [time for time, _, row in found.out if row is not None]
    assert list(replay(op, BATCH.to_pylist()[:16])) == found.rows


@pytest.mark.parametrize("rows", [4, 60])
def test_a_window_that_fails_where_its_last_part_is_made_costs_no_other(rows):
    run = PaneFarm(Sums(Sliding(Count(8), every=Count(4))), workers=2).open(
        pool=lambda workers, setup: VirtualPool(workers, setup, cost=second)
    )
    out: list[dict[str, int]] = []
    run.connect(0, out.append)
    for at in range(0, 60, rows):
        run.insert_batch(BATCH.slice(at, rows))
        if at in (4, 60 - rows):
            with pytest.raises(ValueError, match="too little") if at <= 4 else nullcontext():
                run.drain()
    wanted = [0 + 1 + 2 + 3, *(sum(range(at, at + 8)) for at in range(4, 53, 4))]
    assert wanted == [row["total"] for row in out]
