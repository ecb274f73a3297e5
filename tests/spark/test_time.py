"""Time on Spark: what is due happens without input, in its order, and after downtime at once."""
# ruff: noqa: SIM300 - asserts read expected first

import time

import pytest

from tests.spark import cases
from tests.spark.cases import ALL, BY, OUT, Case
from tests.spark.stream_runs import FileClock, by_name, shaped, stream, unended, union
from tests.spark.stream_runs import write as write_rows
from tests.spark.test_same_answers import attached, check, rows_only
from windowlib import Count, Operator, OperatorModel, PartitionAge, Sliding, Time, Tumbling
from windowlib.farms import Farm, PaneFarm
from windowlib.operators import Aggregate, Delay, agg

pytestmark = pytest.mark.long  # a live query of many operators

SUMS = {"n": agg.count(), "s": agg.sum("x")}
ENDS = {"first": agg.first("n"), "last": agg.last("n"), "high": agg.arg_max("n", by="x")}
PATIENCE = 240
"""Seconds after which a query that has not said what it should is given up."""


class Slow(Operator):
    """A handler that takes longer than its period: the clock has moved on when it is done."""

    model = OperatorModel(windows=[Sliding])
    output = "n bigint, last bigint"

    def __init__(self, window, clock, until):
        super().__init__(window)
        self.clock, self.until = clock, until

    def on_trigger(self, window, key):
        self.emit(n=len(window[key]), last=max((t["ts"] for t in window[key]), default=None))
        if self.clock() < self.until:
            self.clock.set(self.until)


def timed_cases(clock):
    """Operators that time moves; the clock is for the one that takes its time."""
    return {
        "tumbling": Case(Aggregate(Tumbling(Time("10s"), **BY), OUT)),
        "sliding": Case(Aggregate(Sliding(Time("30s"), every=Time("10s"), **BY), OUT)),
        "panes": Case(
            PaneFarm(Aggregate(Sliding(Time("30s"), every=Time("10s"), **BY), SUMS), workers=2)
        ),
        "panes, ends": Case(
            PaneFarm(Aggregate(Sliding(Time("30s"), every=Time("10s"), **BY), ENDS), workers=2)
        ),
        "count or time": Case(Aggregate(Tumbling(Count(4) | Time("20s"), **BY), OUT)),
        "timers": Case(cases.Quiet(), orders=(None,)),
        "delay": Case(Delay(Time("15s")), key=None, orders=(None,)),
        "slow": Case(Slow(Sliding(Time("60s"), every=Time("10s"), **ALL), clock, 165), key=None),
        "age": Case(
            Aggregate(
                Tumbling(Count(90), **BY, forget=PartitionAge("15s")),
                OUT,
                evicted_partitions="emit",
            ),
            key=None,
            attach={"buckets": 1},
        ),
    }


FIRST, SECOND = cases.rows(3)[:40], cases.rows(3)[40:80]


class Live:
    """A query that runs until it has said enough.

    Rows stand under the number of their micro-batch: one that was stopped before Spark had noted
    its end comes again from the next query, and replaces what it gave before.
    """

    def __init__(self, frame, checkpoint):
        self.batches, self.empty = {}, 0
        writer = frame.writeStream.foreachBatch(self._take).trigger(
            processingTime="50 milliseconds"
        )
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def _take(self, batch, number):
        found = batch.collect()
        self.batches[number] = found
        self.empty += not found

    @property
    def rows(self):
        return in_order(self.batches)

    def until(self, done):
        """Wait for it, and stop in any case."""
        try:
            end = time.monotonic() + PATIENCE
            while not done(self) and time.monotonic() < end:
                self.query.awaitTermination(0.1)
        finally:
            self.query.stop()


def in_order(batches):
    """The rows of micro-batches, by their numbers."""
    return [row for number in sorted(batches) for row in batches[number]]


def alone(operator):
    """An operator without the farm around it."""
    return operator.operator if isinstance(operator, Farm) else operator


def said(batches, clock):
    """What should have come out after some batches, by case."""
    return {
        name: rows_only(unended(alone(case.operator), batches, case.orders), case)
        for name, case in timed_cases(clock).items()
    }


def has(live, before, want):
    """Whether all has come out that should; `age` only looks when rows come."""
    found = by_name(in_order({**before, **live.batches}))
    return all(len(found.get(n, [])) >= len(rows) for n, rows in want.items() if n != "age")


@pytest.fixture(scope="module")
def story(spark, tmp_path_factory):
    """Rows at 100 s; idle until 165 s, as told by a slow handler; down until 200 s; more rows."""
    home = tmp_path_factory.mktemp("time")
    clock, aside = FileClock(str(home / "clock")), FileClock(str(home / "aside"))
    aside.set(1000)
    clock.set(100)
    columns = {}

    def started():
        source = stream(spark, home / "in")
        made = {
            name: attached(case, [source], clock=clock) for name, case in timed_cases(clock).items()
        }
        made["their clock"] = attached(
            Case(
                Aggregate(Tumbling(Time("1s"), order_by="ts"), n=agg.count()),
                attach={"times": None},
            ),
            [source],
        )
        columns.update({name: frame.columns for name, frame in made.items()})
        return Live(union(made), home / "checkpoint")

    write_rows(home / "in", 0, FIRST, cases.SCHEMA)
    idle = said([(100, [FIRST]), (165, [[]])], aside)
    moved: list[bool] = []
    first = started()

    def idle_long_enough(live):
        taken = any(p["numInputRows"] for p in live.query.recentProgress)
        if taken and live.empty and not moved:  # also a batch without rows has passed
            moved.append(True)
            clock.set(125)  # no row comes any more
        theirs = sum(row["n"] for row in by_name(live.rows).get("their clock", []))
        return bool(moved) and has(live, {}, idle) and theirs == len(FIRST)

    first.until(idle_long_enough)
    before = dict(first.batches)
    clock.set(200)
    write_rows(home / "in", 1, SECOND, cases.SCHEMA)
    second = started()
    whole = said([(100, [FIRST]), (165, [[]]), (200, [SECOND])], aside)
    second.until(lambda live: has(live, before, whole) and live.rows)
    rows = in_order({**before, **second.batches})
    return columns, first.rows, rows, whole, first.empty, clock


def test_idle_windows_fire_without_input(story):
    columns, before, *_ = story
    want = said([(100, [FIRST]), (165, [[]])], story[-1])
    by_case = timed_cases(story[-1])
    for name in ("tumbling", "sliding", "panes", "count or time", "timers", "delay"):
        check(by_case[name], shaped(want[name], columns[name]), by_name(before)[name])


@pytest.mark.parametrize("name", timed_cases(None))
def test_overdue_ticks_fire_at_once_in_order_and_before_rows(story, name):
    columns, _, rows, want, *_ = story
    found = by_name(rows)[name]
    check(timed_cases(story[-1])[name], shaped(want[name], columns[name]), found)


def test_a_handler_slower_than_its_period_misses_no_tick(story):
    _, before, *_ = story
    slow = by_name(before)["slow"]
    assert 6 == len(slow)  # at 110 and 120; then, when it is 165 at once, at 130 to 160
    assert {len(FIRST)} == {row["n"] for row in slow[:5]}


def test_batches_without_rows_change_nothing(story):
    *_, empty, _ = story
    assert empty > 0


def test_a_null_key_has_windows_of_its_own(story):
    _, before, *_ = story
    nulls = [row for row in FIRST if row["k"] is None]
    found = [row for row in by_name(before)["tumbling"] if row["k"] is None]
    assert len(nulls) == sum(row["n"] for row in found) > 0


def test_windows_on_the_clock_of_spark_fire_without_input(story):
    _, before, *_ = story
    theirs = by_name(before)["their clock"]
    assert len(FIRST) == sum(row["n"] for row in theirs)
