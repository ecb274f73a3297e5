"""Windows of event time that are left to Spark's own aggregation: the same to the last bit."""

import itertools
import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.spark.stream_runs import Query, by_name, stream, union, write
from windowlib import Count, Event, Session, Tumbling, replay
from windowlib.errors import HostError
from windowlib.farms import WindowFarm
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach
from windowlib.spark.observe.metrics import Sums
from windowlib.spark.plan.attach import PlannedStream

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.string(),
        "n": pa.int64(),
        "x": pa.float64(),
        "f": pa.float32(),
        "i": pa.int32(),
    }
)
OUT: dict[str, Any] = {
    "start": agg.window_start(),
    "end": agg.window_end(),
    "rows": agg.count(),
    "values": agg.count("x"),
    "sum": agg.sum("i"),
    "large": agg.mean("n"),  # sums have more than 64 bits
    "mean": agg.mean("x"),
    "total": agg.sum("x"),
    "high": agg.max("x"),
    "low": agg.min("x"),
    "half": agg.mean("f"),
    "most": agg.max("f"),
    "first": agg.min("ts"),
}
ODD = [
    None,
    math.nan,
    0.0,
    -0.0,
    1e300,
    1e-300,
    1e16,
    -1e16,
    math.inf,
    2.0**-43,
    2.0**62,
    -(2.0**62),
]
LARGE = [None, 2**62, -(2**62), 2**63 - 1, -(2**63), 1]


def rows(seed: int, size: int, start: datetime) -> list[dict[str, Any]]:
    """Rows with ties and nulls that come up to five minutes late, with numbers of all sizes."""
    random_, at, found = random.Random(seed), start, []
    for n in range(size):
        at += timedelta(
            seconds=random_.choice((0, 0, 20, 40, 400)), microseconds=random_.choice((0, 1, 999))
        )
        plain = random_.gauss(0, 1e3) * 10 ** random_.randint(-8, 8)
        row = {
            "ts": at,
            "k": random_.choice(("a", "b", None)),
            "n": random_.choice(LARGE),
            "x": random_.choice(ODD) if random_.random() < 0.1 else plain,
            "f": random_.choice((None, random_.randint(0, 999) / 1024)),
            "i": random_.choice((None, n)),
        }
        found.append((at + timedelta(seconds=random_.choice((0, 0, 299))), row))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def hourly(**said: Any) -> Aggregate:
    return Aggregate(Tumbling(Event("ts", "1h", offset="15min"), by="k", **said), OUT)


def in_order(made: Any) -> list[str]:
    """Rows as text, which tells one NaN and one zero from another number."""
    return sorted(repr(dict(row)) for row in made)


@pytest.mark.long
def test_streams_with_a_restart_give_what_python_gives(spark, tmp_path):
    given = rows(3, 300, datetime(1970, 1, 1, 0, 20, tzinfo=UTC))
    ways = {
        "spark": attach(hourly(watermark="5min"), by_spark=True),
        "python": attach(hourly(watermark="5min", late="drop")),
    }
    query = Query(tmp_path / "checkpoint")
    for number, (lo, hi) in enumerate(itertools.pairwise([0, 3, 90, 91, 300])):
        write(tmp_path / "in", number, given[lo:hi], SCHEMA)
        if number in (1, 3):
            source = stream(spark, tmp_path / "in")
            query.run(union({name: way(source) for name, way in ways.items()}))
    found = by_name(query.rows)
    assert in_order(found["spark"]) == in_order(found["python"])
    assert len(found["spark"]) > 15


def test_static_frames_give_what_replay_gives(spark):
    given = rows(4, 300, datetime(1969, 12, 31, 20, 10, tzinfo=UTC))
    mixed = random.Random(5).sample(given, len(given))
    frame = spark.createDataFrame(pa.Table.from_pylist(mixed, SCHEMA))
    way = attach(hourly(), by_spark=True)
    made = [row.asDict() for row in way(frame).collect()]
    for row in made:
        for name in ("start", "end", "first"):
            row[name] = row[name].replace(tzinfo=UTC)
    ordered = sorted(given, key=lambda row: row["ts"])
    assert in_order(made) == in_order(replay(hourly(), ordered))
    plain = {(row["k"], row["start"]): row["total"] for row in made}
    for (key, start), total in plain.items():  # and another oracle, where no number is beyond
        end = start + timedelta(hours=1)
        inside = [row["x"] for row in given if row["k"] == key and start <= row["ts"] < end]
        numbers = [x for x in inside if x is not None]
        if all(1e-9 <= abs(x) < 2.0**62 for x in numbers) and numbers:
            assert total == math.fsum(numbers)


def test_late_rows_are_dropped_and_counted_by_key_and_window(spark, tmp_path):
    start = datetime(2024, 1, 1, tzinfo=UTC)
    stamps = [[0, 10], [200], [201], [1, 2, 3], [400]]
    schema = pa.schema({"ts": SCHEMA.field("ts").type, "x": pa.float64()})
    for number, minutes in enumerate(stamps):
        batch = [{"ts": start + timedelta(minutes=m), "x": 1.0} for m in minutes]
        write(tmp_path / "in", number, batch, schema)
    hours = Tumbling(Event("ts", "1h"), late="drop")
    op = Aggregate(hours, n=agg.count(), start=agg.window_start())
    frame = attach(op, by_spark=True)(stream(spark, tmp_path / "in"))
    made: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: made.extend(batch.collect()))
    query = writer.trigger(availableNow=True).option("checkpointLocation", tmp_path / "at").start()
    query.awaitTermination()
    sums = Sums()
    for progress in query.recentProgress:
        sums.add(progress)
    totals = sums.totals()
    assert [row.n for row in made] == [2, 2]
    assert (totals.rows_in, totals.rows_out, totals.fired, totals.evicted) == (8, 2, 2, 4)
    assert totals.late == 1  # three rows of one window, in one micro-batch


STAMPED = StructType(
    [
        StructField("ts", TimestampType()),
        StructField("k", StringType()),
        StructField("x", DoubleType()),
        StructField("n", LongType()),
    ]
)
HOUR = Event("ts", "1h")


@pytest.mark.parametrize(
    ("operator", "said", "reason"),
    [
        (Aggregate(Session(Event("ts"), gap="1h"), n=agg.count()), {}, "no tumbling"),
        (Aggregate(Tumbling(Count(3)), n=agg.count()), {}, "it has no tumbling windows of event"),
        (
            Aggregate(Tumbling(HOUR, late="port"), n=agg.count()),
            {},
            "late='port' looks at each late row",
        ),
        (Aggregate(Tumbling(HOUR, by="k"), n=agg.count()), {"buckets": 2}, "buckets= is about"),
        (
            Aggregate(Tumbling(HOUR, by="k"), s=agg.std("x")),
            {},
            "of double is not the same in Spark",
        ),
        (Aggregate(Tumbling(HOUR), s=agg.collect("x")), {}, "a function that needs rows in order"),
        (Aggregate(Tumbling(HOUR, by="x"), n=agg.count()), {}, "other equal keys in x, double"),
        (Aggregate(Tumbling(Event("n", 10)), c=agg.count()), {}, "n is no column of timestamps"),
        (
            Aggregate(Tumbling(HOUR, early="1s"), n=agg.count()),
            {},
            "Spark's watermark does not close its windows",
        ),
    ],
)
def test_what_spark_would_do_otherwise_is_refused(operator, said, reason):
    shown = attach(operator, by_spark=True, **said).explain(PlannedStream(STAMPED))  # type: ignore[arg-type]
    assert "by Spark   refused: " in shown
    assert reason in " ".join(shown.split())
    if not said:
        assert "would leave the windows to Spark" not in operator.explain(STAMPED)


@pytest.mark.parametrize("name", ["_End", "_0_n"])
def test_names_of_the_plan_itself_are_refused(name):
    columns = StructType([*STAMPED, StructField(name, LongType())])
    op = Aggregate(Tumbling(HOUR), n=agg.count(name))
    shown = " ".join(attach(op, by_spark=True).explain(PlannedStream(columns)).split())  # type: ignore[arg-type]
    assert f"refused: the groups of Spark have a column {name} of their own" in shown


def test_keys_that_a_collation_makes_equal_are_refused():
    columns = StructType([*STAMPED, StructField("c", StringType("UTF8_LCASE"))])
    op = Aggregate(Tumbling(HOUR, by="c"), n=agg.count())
    shown = " ".join(attach(op, by_spark=True).explain(PlannedStream(columns)).split())  # type: ignore[arg-type]
    assert "Spark may see other equal keys in c, string collate UTF8_LCASE" in shown


ODD_NAMES = {"ts": "a.`t`", "k": "key `k`.k", "x": "x.`x"}


@pytest.mark.parametrize(
    "moving",
    [pytest.param(False, id="static"), pytest.param(True, id="stream", marks=pytest.mark.long)],
)
def test_any_name_of_a_column_works(spark, tmp_path, moving):
    ts, k, x = ODD_NAMES.values()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    given = [{ts: start + timedelta(minutes=20 * n), k: "ab"[n % 2], x: 1.0 * n} for n in range(9)]
    kinds = {ts: SCHEMA.field("ts").type, k: pa.string(), x: pa.float64()}
    write(tmp_path / "in", 0, given, pa.schema(kinds))
    op = Aggregate(Tumbling(Event(ts, "1h"), by=k, watermark="0s"), total=agg.sum(x), n=agg.count())
    way = attach(op, by_spark=True)
    if not moving:
        made = [row.asDict() for row in way(spark.read.parquet(str(tmp_path / "in"))).collect()]
        assert in_order(made) == in_order(replay(op, given))
        return
    query = Query(tmp_path / "checkpoint")
    query.run(way(stream(spark, tmp_path / "in")).toDF("k", "total", "n"))
    closed = list(replay(op, given[:6]))
    found = [{k: row.k, "total": row.total, "n": row.n} for row in query.rows]
    assert in_order(found) == in_order(closed)


def test_the_plan_says_that_spark_has_the_windows():
    op = Aggregate(Tumbling(HOUR, by="k", watermark="5s"), n=agg.count(), mean=agg.mean("x"))
    shown = " ".join(attach(op, by_spark=True).explain(PlannedStream(STAMPED)).split())  # type: ignore[arg-type]
    assert "the windows, as groupBy(window, key) has them" in shown
    assert "state Spark's own, one row for each key and window" in shown
    assert "attach(op, by_spark=True) would leave the windows to Spark" in op.explain(STAMPED)


def test_refusals_name_the_fix(spark):
    frame = spark.createDataFrame(pa.table({"ts": pa.array([None, datetime(2024, 1, 1)])}))
    listed = Aggregate(Tumbling(HOUR), all=agg.collect("ts"))
    with pytest.raises(HostError, match="a function that needs rows in order"):
        attach(listed, by_spark=True)(frame)
    farm = WindowFarm(Aggregate(Tumbling(HOUR), n=agg.count()), workers=2)
    with pytest.raises(HostError, match="a farm has workers for its windows"):
        attach(farm, by_spark=True)
    frame = frame.selectExpr("cast(ts as timestamp) as ts")
    with pytest.raises(PySparkException, match="null in 'ts' has no place in time"):
        attach(Aggregate(Tumbling(HOUR), n=agg.count()), by_spark=True)(frame).collect()


def test_streams_before_1970_are_refused(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 3, datetime(1969, 1, 1, tzinfo=UTC)), SCHEMA)
    frame = attach(hourly(late="drop"), by_spark=True)(stream(spark, tmp_path / "in"))
    with pytest.raises(PySparkException, match="is before 1970, where Spark's watermark starts"):
        Query(tmp_path / "checkpoint").run(frame)
