"""Windows of event time on Spark: split by key, closed by Spark's watermark, as replay has them."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as fn

from tests.spark.stream_runs import Query, by_name, stream, unended, union, write
from windowlib import (
    Count,
    Event,
    Graph,
    KSlack,
    Landmark,
    LateWarning,
    Session,
    Sliding,
    Tumbling,
    replay,
)
from windowlib.errors import HostError
from windowlib.farms import PaneFarm
from windowlib.operators import Aggregate, Filter, agg
from windowlib.spark import attach

START = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "n": pa.int64(), "x": pa.float64()}
)
SLACK = timedelta(minutes=5)
OUT: dict[str, Any] = {
    "start": agg.window_start(),
    "end": agg.window_end(),
    "rows": agg.count(),
    "sum": agg.sum("n"),
    "high": agg.max("x"),
}
LISTED: dict[str, Any] = {**OUT, "all": agg.collect("n")}
SAID: dict[str, Any] = {"by": "k", "watermark": SLACK}


def rows(seed: int, size: int) -> list[dict[str, Any]]:
    """Rows with ties, that come up to the slack late; key c has none in the second half."""
    random_ = random.Random(seed)
    found = []
    at = 0
    for n in range(size):
        at += random_.choice((0, 0, 20, 40, 60, 400))
        stamp = START + timedelta(seconds=at)
        come = at + random_.choice((0, 0, 60, 299))
        key = random_.choice("abc" if n < size // 2 else "ab")
        found.append((come, {"ts": stamp, "k": key, "n": n, "x": random_.random()}))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def operators(**said: Any) -> dict[str, Aggregate]:
    """Each kind of window, with functions that are folded and with some that need rows."""
    hour, ten = Event("ts", "1h", offset="15min"), Event("ts", "20min")
    return {
        "tumbling": Aggregate(Tumbling(hour, **said), OUT),
        "listed": Aggregate(Tumbling(hour, **said), LISTED),
        "sliding": Aggregate(Sliding(Event("ts", "1h"), every=ten, **said), OUT),
        "session": Aggregate(Session(Event("ts"), gap="6min", **said), LISTED),
        "landmark": Aggregate(Landmark(hour, **said), OUT),
    }


def plain(made: Any) -> list[Any]:
    """Rows as Spark shows them, in an order of their own: ends and keys."""

    def seconds(value: Any) -> Any:
        if isinstance(value, str) and value[:2] == "20":
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=value.tzinfo or UTC).timestamp()
        return value

    shown = [{name: seconds(value) for name, value in dict(row).items()} for row in made]
    return sorted(shown, key=lambda row: (row["end"], row["k"], row["rows"], row["sum"]))


def frame(spark: Any, given: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame(pa.Table.from_pylist(given, SCHEMA))


def test_static_frames_close_all_windows_whatever_the_order(spark):
    given = rows(1, 120)
    mixed = random.Random(2).sample(given, len(given))
    made = {name: op(frame(spark, mixed)) for name, op in operators(by="k").items()}
    found = by_name(union(made).collect())
    in_order = sorted(given, key=lambda row: row["ts"])
    for name, op in operators(by="k").items():
        want = plain(replay(op, in_order))
        got = plain(found[name])
        for row in (*want, *got):  # ties come as tasks deliver them
            row["all"] = sorted(row.get("all") or ())
        assert want == got, name
        assert "2, as spark.sql.shuffle.partitions says" in attach(op).explain(frame(spark, mixed))


def spark_windows():
    """The same windows by Spark's own functions."""
    return {
        "tumbling": fn.window("ts", "1 hour", startTime="15 minutes"),
        "sliding": fn.window("ts", "1 hour", "20 minutes"),
        "session": fn.session_window("ts", "6 minutes"),
    }


def check_oracle(frame, found, top):
    """The windows up to a watermark are those of Spark's own functions."""
    mark = (top - SLACK).timestamp()
    for name, window in spark_windows().items():
        count, total = fn.count("*").alias("rows"), fn.sum("n").alias("sum")
        own = frame.groupBy("k", window.alias("w")).agg(count, total)
        made = plain(
            row.asDict() for row in own.selectExpr("k", "w.start", "w.end", "rows", "sum").collect()
        )
        over = [r for r in made if (r["end"] < mark if name == "session" else r["end"] <= mark)]
        names = ("k", "start", "end", "rows", "sum")
        assert over == [{n: row[n] for n in names} for row in plain(found[name])], name


def random_streams(many: int, seed: int) -> list[dict[str, Any]]:
    """Many streams as keys, with steps that end just before, at and after a gap or a window."""
    random_ = random.Random(seed)
    steps = [0, 1, 359, 360, 361, 1199, 1200, 1201, 3600]
    found = []
    for key in range(many):
        at = float(random_.choice((-7200, 0, 899, 900, 901)))
        for n in range(random_.randint(1, 40)):
            at += random_.choice(steps) + random_.choice((0, 0, 0.001, -0.001))
            stamp = START + timedelta(seconds=at)
            found.append({"ts": stamp, "k": f"{key:03}", "n": n, "x": random_.random()})
    return random_.sample(found, len(found))


def test_boundaries_are_those_of_spark_on_random_streams(spark):
    given = random_streams(120, 11)
    source = frame(spark, given).repartition(3).cache()
    ours = {name: op for name, op in operators(by="k").items() if name in spark_windows()}
    found = by_name(union({name: op(source) for name, op in ours.items()}).collect())
    top = max(row["ts"] for row in given) + timedelta(days=1)
    check_oracle(source, found, top)
    assert len(found["session"]) > 500


@pytest.mark.long
def test_streams_of_uneven_files_with_a_restart_are_as_in_replay(spark, tmp_path):
    given = rows(3, 160)
    cuts = [0, 3, 90, 91, 160]
    query = Query(tmp_path / "checkpoint")

    def run():
        source = stream(spark, tmp_path / "in")
        query.run(union({name: op(source) for name, op in operators(**SAID).items()}))

    for number, (lo, hi) in enumerate(itertools.pairwise(cuts)):
        write(tmp_path / "in", number, given[lo:hi], SCHEMA)
        if number in (1, 3):
            run()
    found = by_name(query.rows)
    for name, op in operators(**SAID).items():
        made = unended(op, [(None, [given])], [None])
        assert made
        want, got = plain(row for _, row in made), plain(found[name])
        assert want == got, name
    check_oracle(spark.read.parquet(str(tmp_path / "in")), found, max(r["ts"] for r in given))
    closed = {row["k"] for row in plain(found["tumbling"])[-2:]}
    assert closed <= {"a", "b"}  # the key that has no more rows was closed before
    assert len({row["k"] for row in found["tumbling"]}) == 3


def test_watermarks_of_the_dataframe_are_honoured(spark, tmp_path):
    write(tmp_path / "in", 0, rows(5, 8), SCHEMA)
    source = stream(spark, tmp_path / "in")
    hourly = Aggregate(Tumbling(Event("ts", "1h"), by="k", watermark=KSlack()), OUT)
    marked = source.withWatermark("ts", "10 minutes")
    shown = " ".join(attach(hourly).explain(marked).split())
    assert "Spark's, of ts: that of df.withWatermark, 10m" in shown
    assert "its slack looks at each row" in " ".join(attach(hourly).explain(source).split())
    with pytest.raises(HostError, match="is of another column than the windows, 'ts'"):
        hourly(source.withColumn("other", fn.col("ts")).withWatermark("other", "10 minutes"))


@pytest.mark.long
def test_the_end_of_a_window_that_is_just_reached_closes_it(spark, tmp_path):
    """With timestamps that have no zone, dates and whole numbers; late rows have their output."""
    hours = [datetime(2024, 1, 1, hour) for hour in (0, 1, 2, 1)]
    parts = [datetime(2024, 1, 1, microsecond=100_000 * h.hour) for h in hours]
    kinds: dict[str, Any] = {
        "timestamp_ntz": (pa.timestamp("us"), "1h", hours),
        "parts of a second": (pa.timestamp("us"), "100ms", parts),
        "int": (pa.int32(), 1, [10, 11, 12, 11]),
        "date": (pa.date32(), "1d", [datetime(2024, 1, h.hour + 1).date() for h in hours]),
    }
    for name, (kind, size, stamps) in kinds.items():
        folder = tmp_path / name
        schema = pa.schema({"ts": kind, "n": pa.int64()})
        for number, stamp in enumerate(stamps):
            write(folder / "in", number, [{"ts": stamp, "n": number}], schema)
        op = Aggregate(Tumbling(Event("ts", size), late="port"), start=agg.window_start())
        query = Query(folder / "checkpoint")
        query.run(op(stream(spark, folder / "in")))
        assert [row["start"] for row in query.rows if row["_port"] == "out"] == stamps[:2], name
        assert [row["ts"] for row in query.rows if row["_port"] == "late"] == stamps[3:], name


def test_what_follows_the_watermark_comes_first_in_its_query(spark, tmp_path):
    """A watermark of rows that wait for the watermark would hold it back for ever."""
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()})
    start = datetime(2024, 1, 1, tzinfo=UTC)
    stamps = [{"ts": start + timedelta(seconds=n), "n": n} for n in range(60)]
    for number in range(3):
        write(tmp_path / "in", number, stamps[20 * number : 20 * number + 20], schema)
    source = stream(spark, tmp_path / "in")
    out = {"ts": agg.window_start(), "n": agg.sum("n")}
    tens, twenties = (
        Aggregate(Tumbling(Event("ts", size), watermark="0s"), out) for size in ("10s", "20s")
    )
    count = Aggregate(Tumbling(Count(5), order_by="ts"), ts=agg.max("ts"), n=agg.sum("n"))
    marked = source.withWatermark("ts", "0 seconds")
    by_spark = marked.groupBy(fn.window("ts", "10 seconds")).agg(fn.sum("n"))
    for before in (
        tens(source),
        tens(source).where("n > 3").withWatermark("ts", "1 second"),
        attach(tens, by_spark=True)(source),
        attach(count, times="ts")(source),
        by_spark.selectExpr("window.start AS ts", "`sum(n)` AS n"),
    ):
        with pytest.raises(HostError, match=r"one watermark, which would never move.*\.then"):
            twenties(before)
    one_mark = marked.groupBy("ts").agg(fn.sum("n").alias("n"))
    for before in (count(source), one_mark):
        assert twenties(before).isStreaming
    query = Query(tmp_path / "checkpoint")
    query.run(tens.then(twenties)(source))
    assert [row["n"] for row in query.rows] == [190, 590]


def test_a_stream_that_nothing_waits_for_warns_before_it_starts(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 5), SCHEMA)
    source = stream(spark, tmp_path / "in")
    for op in operators(by="k").values():
        with pytest.warns(LateWarning, match=r'as watermark="5s", or late="drop"'):
            op(source)
    numbers = Aggregate(Tumbling(Event("n", 10), by="k"), OUT)
    with pytest.warns(LateWarning, match=r"as watermark=5, or"):
        attach(PaneFarm(numbers, workers=2))(source)
    with pytest.warns(LateWarning):
        Graph(inputs="a", f=(Filter(lambda row: row["n"]), "a"), g=(numbers, "f"))(source)
    # Here a warning would be an error.
    for said in ({"watermark": 0}, {"late": "drop"}):
        for op in operators(by="k", **said).values():
            op(source)
    hourly = operators(by="k")["tumbling"]
    hourly(source.withWatermark("ts", "5 minutes"))
    hourly(spark.createDataFrame([], source.schema))
