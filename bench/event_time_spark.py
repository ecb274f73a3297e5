"""Windows of event time on Spark, against Spark's own with the same watermark.

The streams are those of `bench.spark`: a key has a row a second, micro-batches are of one size.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from bench.harness import Measure, ratio
from bench.spark import Bench, Query, Scale
from windowlib import Event, Session, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach

FULL = Scale(rows=4_000_000, batches=3, warm=2, rounds=3)
SLACK = "5 minutes"
MEAN: dict[str, Any] = {"mean": agg.mean("value"), "high": agg.max("value")}


def stamped(rows: DataFrame) -> DataFrame:
    """The stream with a timestamp and a watermark of it."""
    at = fn.timestamp_micros("ts").alias("at")
    return rows.select(at, "key", "value").withWatermark("at", SLACK)


def hours() -> Aggregate:
    """Mean and maximum of an hour by key."""
    return Aggregate(Tumbling(Event("at", "1h"), by="key"), MEAN)


def hourly(rows: DataFrame) -> DataFrame:
    """The windows left to Spark."""
    return stamped(rows).transform(attach(hours(), by_spark=True))


def folded(rows: DataFrame) -> DataFrame:
    """The same with all rows folded in Python, before the shuffle."""
    return stamped(rows).transform(hours())


def sessions(rows: DataFrame) -> DataFrame:
    """Mean and maximum of a session by key; one has 150 rows on average."""
    return stamped(rows).transform(Aggregate(Session(Event("at"), gap="5s", by="key"), MEAN))


def own_hourly(rows: DataFrame) -> DataFrame:
    """The same by Spark."""
    return _own(rows, fn.window("at", "1 hour"))


def own_sessions(rows: DataFrame) -> DataFrame:
    """The same by Spark."""
    return _own(rows, fn.session_window("at", "5 seconds"))


def _own(rows: DataFrame, window: Any) -> DataFrame:
    grouped = stamped(rows).groupBy(window, "key")
    return grouped.agg(fn.avg("value").alias("mean"), fn.max("value").alias("high"))


QUERIES: dict[str, Query] = {
    "hourly": hourly,
    "own hourly": own_hourly,
    "folded": folded,
    "sessions": sessions,
    "own sessions": own_sessions,
}


def run(scale: Scale = FULL) -> list[Measure]:
    """Hourly windows and sessions by key."""
    folder = Path(tempfile.mkdtemp(prefix="windowlib-bench-"))
    try:
        return list(_measures(Bench(scale, folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measures(bench: Bench) -> Iterator[Measure]:
    scale = bench.scale
    files = bench.files("rows", [(scale.rows, scale.keys)] * (scale.warm + scale.batches))
    times = bench.alternate(dict.fromkeys(QUERIES, files), QUERIES)
    for name, seconds in times.items():
        print(f"{name:14} {statistics.median(seconds):.3f} s a micro-batch")
    rows = f"{scale.rows:,} rows a micro-batch"
    speed = ratio(times, "own hourly", "hourly")
    yield Measure(f"on Spark, hourly mean and max / Spark's own, {rows}", speed, 0.9, True)
    speed = ratio(times, "own hourly", "folded")
    yield Measure("the same, rows folded in Python, each late row counted", speed, None, True)
    speed = ratio(times, "own sessions", "sessions")
    yield Measure("on Spark, sessions / session_window", speed, 1, True)
