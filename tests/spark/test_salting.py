# ruff: noqa: SIM300 - asserts read expected first
"""Salts spread the rows of hot panes, and the answer does not depend on them."""

import random
import time
from collections import Counter
from math import inf
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from tests.operators.preference import preference_oracle as oracles
from tests.spark.stream_runs import stream, write
from windowlib import Count, FarmError, Tumbling
from windowlib.control import Adaptive, AdaptivePid, PaneRoundRobin
from windowlib.operators import Skyline
from windowlib.spark import Salting
from windowlib.spark.farms.salting import parts

QUERY = Skyline(Tumbling(Count(10)), "price", "km")


def progress(second, busy, name="offers", **more):
    """Of a micro-batch that began at a second of the hour, and took so many."""
    return {
        "name": name,
        "runId": UUID(int=7),
        "timestamp": f"2024-03-01T14:{second // 60:02}:{second % 60:02}.000Z",
        "numInputRows": 1000,
        "durationMs": {"triggerExecution": int(1000 * busy)},
        **more,
    }


def salting(**options):
    found = Salting(AdaptivePid(4, warmup=1, **options))
    found.learn([100] * 8)
    return found


def test_a_group_gets_a_salt_for_every_threshold_and_no_more_than_there_are_workers():
    found = salting()
    assert [1, 1, 2, 3, 4, 4] == [found.sigma(rows) for rows in (1, 100, 101, 300, 400, 10**9)]
    assert 2 == Salting(found.policy, workers=2).sigma(10**9)
    assert 1 == Salting(Adaptive(4)).sigma(10**9)  # nothing is known yet


def test_batches_that_take_too_long_get_more_salts_and_short_ones_fewer():
    found = salting(patience=9)
    before = found.policy.threshold
    found.observe(progress(0, busy=6))
    found.observe(progress(60, busy=40))
    assert before < (rested := found.policy.threshold)
    for second in (120, 180, 240, 300):
        found.observe(progress(second, busy=90))
    assert found.policy.threshold < before < rested
    assert 1.5 == found.policy.utilisation.worst


def test_a_stream_that_stays_behind_has_all_hot_rows_spread():
    found = salting(patience=3)
    for second in (0, 2, 4, 6):
        found.observe(progress(second, busy=3))
    assert [1, 2, 4] == [found.sigma(rows) for rows in (1, 2, 9)]


def test_what_spark_does_between_batches_is_no_load():
    found = salting()
    found.observe(progress(0, busy=1))
    found.observe(progress(58, busy=1, numInputRows=0))  # it looked, and nothing was there
    found.observe(progress(60, busy=6, inputRowsPerSecond=1e6))
    assert 0.1 == pytest.approx(found.policy.utilisation.worst)


@pytest.mark.parametrize(
    "unknown",
    [
        progress(60, busy=1, numInputRows=0),
        progress(60, busy=0),
        progress(60, busy=1, durationMs={}),
        progress(60, busy=1, runId=UUID(int=8)),  # the first batch since a restart
        progress(0, busy=1),
    ],
)
def test_a_batch_whose_rate_is_unknown_moves_nothing(unknown):
    found = salting()
    found.observe(progress(0, busy=1))
    found.observe(unknown)
    assert found.policy.utilisation is None


def test_a_listener_tells_of_its_query_only():
    found = salting()
    listener = found.listener("offers")
    for second, name in ((0, "offers"), (5, "others"), (10, "offers")):
        event = SimpleNamespace(progress=SimpleNamespace(**progress(second, busy=9, name=name)))
        for tell in (listener.onQueryStarted, listener.onQueryIdle, listener.onQueryProgress):
            tell(event)
        assert (second == 10) is (found.policy.utilisation is not None)
        listener.onQueryTerminated(event)
    assert 0.9 == pytest.approx(found.policy.utilisation.worst)


def test_a_policy_without_threshold_is_refused():
    with pytest.raises(FarmError, match=r"Salting\(PaneRoundRobin\): it has no threshold to cut"):
        Salting(PaneRoundRobin(2))  # type: ignore[arg-type]
    with pytest.raises(FarmError, match=r"Salting\(workers\)=0: not a number of them"):
        Salting(Adaptive(2), workers=0)


def offers(number, size):
    """A burst: most are of one city and one pane; some have no city."""
    draw = random.Random(number)
    return [
        {
            "city": draw.choice(["Pisa"] * 8 + ["Rome", None]),
            "pane": draw.choice([1, 1, draw.randrange(5)]),
            "n": 1000 * number + n,
            "price": draw.randint(40, 200),
            "km": draw.randint(1, 50),
        }
        for n in range(size)
    ]


def skylines(rows):
    """The arrival numbers of the skyline of every city and pane, by definition."""
    groups: dict[tuple[str, int], list[dict[str, int]]] = {}
    for row in rows:
        groups.setdefault((row["city"], row["pane"]), []).append(row)
    return {
        key: [group[i]["n"] for i in oracles.skyline([(r["price"], r["km"]) for r in group])]
        for key, group in groups.items()
    }


class Job:
    """A query that adds the partial results of a micro-batch to those that there are, on disk."""

    def __init__(self, spark, folder, failing=None):
        self.spark, self.folder, self.failing = spark, folder, failing
        self.policy = AdaptivePid(4, warmup=1, patience=9, setpoint=0.001)
        self.found = Salting(self.policy)
        self.said, self.seen = [], []

    def run(self):
        listener = self.found.listener("offers")
        self.spark.streams.addListener(listener)
        writer = stream(self.spark, self.folder / "in").writeStream.foreachBatch(self.batch)
        writer = writer.option("checkpointLocation", f"{self.folder}/checkpoint")
        query = writer.queryName("offers").trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            self.heard()
            self.spark.streams.removeListener(listener)

    def heard(self):
        """Wait until the listener knows of the batch before."""
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def batch(self, frame, number):
        self.heard()
        self.said.append(self.policy.threshold)
        salted = self.found.salted(frame, "city", "pane").persist()
        self.seen.append([(row.city, row.pane, row.salt) for row in salted.collect()])
        made = parts(salted, QUERY, "city", "pane", order_by="n")
        made.write.mode("overwrite").parquet(f"{self.folder}/out/{number}")
        salted.unpersist()
        if number == self.failing:
            raise ValueError("after it was written")


@pytest.mark.long
def test_the_skyline_of_a_stream_does_not_depend_on_salts_nor_on_restarts(spark, tmp_path):
    batches = [offers(number, size) for number, size in enumerate((60, 120, 120))]
    schema = pa.Table.from_pylist(batches[0]).schema
    for number, rows in enumerate(batches):
        write(tmp_path / "in", number, rows, schema)
    first, second = Job(spark, tmp_path, failing=2), Job(spark, tmp_path)
    with pytest.raises(StreamingQueryException):
        first.run()
    second.run()

    got: dict[tuple[str, int], Any] = {}
    for city, pane, part in spark.read.parquet(f"{tmp_path}/out/*").collect():
        part, before = QUERY.partials.load(part), got.get((city, pane))
        got[city, pane] = part if before is None else QUERY.partials.merge(before, part)
    rows = {key: QUERY.partials.rows(part)["n"].to_pylist() for key, part in got.items()}
    assert skylines([row for rows in batches for row in rows]) == rows

    assert inf == first.said[0] == second.said[0]  # after a restart nothing is known, either
    assert inf > first.said[1] > first.said[2]
    assert first.policy.utilisation is not None
    assert {0} == {salt for job in (first, second) for *_, salt in job.seen[0]}
    for threshold, seen in zip(first.said, first.seen, strict=True):
        sizes = Counter(row[:2] for row in seen)
        assert all(salt < max(1, sizes[tuple(key)] / threshold) for *key, salt in seen)
    assert 3 == max(salt for *_, salt in first.seen[-1])


@pytest.fixture
def rome(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("rome")
def test_panes_of_the_hour_that_comes_twice_are_two(spark):
    # 02:30 on the night of the change to winter time, and an hour later again
    rows = [(when, n) for n in range(8) for when in (1729989000, 1729992600)]
    frame = spark.createDataFrame(rows, "at long, n long")
    frame = frame.selectExpr("timestamp_seconds(at) pane", "n")
    found = Salting(Adaptive(4, warmup=1))
    found.learn([4])
    salted = found.salted(frame, "pane").selectExpr("unix_seconds(pane)", "n", "salt").collect()
    assert sorted(rows) == sorted(row[:2] for row in salted)
    assert {0, 1} == {row.salt for row in salted}
