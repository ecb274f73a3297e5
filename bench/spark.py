"""Operators inside Spark, against Spark's own windows and against moving rows alone.

All queries read the same files, one file or several a micro-batch, into a sink that drops rows.
They run to the end in turn, A B C … C B A; of each query the median time of a micro-batch counts,
without the first ones, in which Java and Python start.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from bench.harness import Measure, ratio
from windowlib import Count, Operator, Sliding, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.spark import session

SIZE, SLIDE = 100, 10
SCHEMA = "ts long, key long, value double"
Query = Callable[[DataFrame], DataFrame]
Times = dict[str, list[float]]


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 1_000_000
    """Rows of a micro-batch."""
    batches: int = 6
    warm: int = 2
    """Micro-batches of each query that do not count."""
    keys: int = 1_000
    many: int = 100_000
    """Keys of W6, and idle keys of G20."""
    by_key: int = 50_000
    """Rows of a micro-batch for the one that calls Python once a key."""
    touched: int = 50_000
    """Rows of a micro-batch of G20."""
    rounds: int = 3
    memory: str = "6g"


FULL = Scale()


class Bench:
    """A session, a folder for files and checkpoints, and a way to time queries."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale, self.folder = scale, folder
        self.spark: SparkSession = session("local[2]", spark__driver__memory=scale.memory)
        self.spark.sparkContext.setLogLevel("ERROR")

    def files(self, name: str, batches: Sequence[tuple[int, int]]) -> Path:
        """Parquet files, two a micro-batch, of so many rows with so many keys."""
        to = self.folder / name
        to.mkdir()
        rng, at = np.random.default_rng(7), 0
        for number, (rows, keys) in enumerate(batches):
            ts = np.arange(at, at + rows) * 1_000_000 // keys  # a key has a row a second
            key, value = rng.integers(0, keys, rows), rng.random(rows)
            table = pa.table({"ts": ts, "key": key, "value": value})
            for half in (0, 1):  # so that both cores have something to read
                part = table.slice(half * rows // 2, rows // 2)
                pq.write_table(part, to / f"{number:03}-{half}.parquet")
            at += rows
        return to

    def seconds(self, files: Path, query: Query) -> list[float]:
        """How long each micro-batch took."""
        source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2)
        checkpoint = tempfile.mkdtemp(dir=self.folder)
        sink = query(source.parquet(str(files))).writeStream.format("noop")
        running = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        running.awaitTermination()
        shutil.rmtree(checkpoint)
        durations = [progress["durationMs"] for progress in running.recentProgress]
        return [each["triggerExecution"] / 1e3 for each in durations if "addBatch" in each]

    def alternate(self, files: Mapping[str, Path], queries: Mapping[str, Query]) -> Times:
        """The median seconds of a micro-batch for each query, round by round."""
        times: Times = {name: [] for name in queries}
        order = list(queries)
        for _ in range(self.scale.rounds):
            for name in order:
                taken = self.seconds(files[name], queries[name])[self.scale.warm :]
                times[name].append(statistics.median(taken[: self.scale.batches]))
            order.reverse()
        return times


# -- the candidates -------------------------------------------------------------------------------


def tumbling() -> Operator:
    """W1, W6."""
    window = Tumbling(Count(SIZE), by="key", order_by="ts")
    return Aggregate(window, mean=agg.mean("value"))


def sliding() -> Operator:
    """W2."""
    window = Sliding(Count(SIZE), every=Count(SLIDE), by="key", order_by="ts")
    return Aggregate(window, mean=agg.mean("value"), high=agg.max("value"))


def passed(rows: DataFrame) -> DataFrame:
    """Every row to Python and back."""
    return rows.mapInArrow(_same, SCHEMA)


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def own_tumbling(rows: DataFrame) -> DataFrame:
    """Spark's window of as many seconds as ours has rows; a key has a row a second."""
    found: DataFrame = _own(rows, fn.window("at", f"{SIZE} seconds")).agg(fn.avg("value"))
    return found


def own_sliding(rows: DataFrame) -> DataFrame:
    """The same, sliding."""
    window = fn.window("at", f"{SIZE} seconds", f"{SLIDE} seconds")
    found: DataFrame = _own(rows, window).agg(fn.avg("value"), fn.max("value"))
    return found


def _own(rows: DataFrame, window: Any) -> Any:
    timed = rows.withColumn("at", fn.timestamp_micros("ts")).withWatermark("at", "1 second")
    return timed.groupBy(window, "key")


class Mean(StatefulProcessor):
    """W1 with Spark's own means: state by key, a call of Python for each."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("state", "n int, total double")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        n, total = self.state.get() or (0, 0.0)
        for row in rows:
            n, total = n + 1, total + row.value
            if n == SIZE:
                yield Row(key=key[0], mean=total / n)
                n, total = 0, 0.0
        self.state.update((n, total))

    def close(self) -> None:
        pass


def by_key(rows: DataFrame) -> DataFrame:
    """transformWithState, grouped by the key itself."""
    grouped = rows.groupBy("key")
    return grouped.transformWithState(Mean(), "key long, mean double", "Append", "None")


# -- the measures ---------------------------------------------------------------------------------


def run(scale: Scale = FULL) -> list[Measure]:
    """All measures of the Spark host."""
    folder = Path(tempfile.mkdtemp(prefix="windowlib-bench-"))
    try:
        bench = Bench(scale, folder)
        return [*_moving(bench), *_idle(bench)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _moving(bench: Bench) -> Iterator[Measure]:
    scale = bench.scale
    all_batches = scale.warm + scale.batches
    few = bench.files("few", [(scale.rows, scale.keys)] * all_batches)
    many = bench.files("many", [(scale.rows, scale.many)] * all_batches)
    large = bench.files("large", [(4 * scale.rows, scale.keys)] * (scale.warm + 2))
    small = bench.files("small", [(scale.by_key, scale.keys)] * all_batches)
    w1, w2 = (lambda rows: rows.transform(tumbling())), (lambda rows: rows.transform(sliding()))
    queries: dict[str, tuple[Path, Query]] = {
        "pass": (few, passed),
        "W1": (few, w1),
        "W2": (few, w2),
        "own tumbling": (few, own_tumbling),
        "own sliding": (few, own_sliding),
        "W6": (many, w1),
        "own many": (many, own_tumbling),
        "pass large": (large, passed),
        "W1 large": (large, w1),
        "W2 large": (large, w2),
        "small": (small, w1),
        "by key": (small, by_key),
    }
    files = {name: path for name, (path, _) in queries.items()}
    times = bench.alternate(files, {name: query for name, (_, query) in queries.items()})
    for name, seconds in times.items():
        print(f"{name:14} {statistics.median(seconds):.3f} s a micro-batch")

    def speed(of: str, to: str) -> float:
        return ratio(times, to, of)

    rows = f"{scale.rows:,} rows a micro-batch"
    yield Measure(f"G18 W1 / pass-through, {rows}", speed("W1", "pass"), 0.8, True)
    yield Measure(f"G18 W2 / pass-through, {rows}", speed("W2", "pass"), 0.8, True)
    rows = f"{4 * scale.rows:,} rows a micro-batch"
    yield Measure(f"W1 / pass-through, {rows}", speed("W1 large", "pass large"), None, True)
    yield Measure(f"W2 / pass-through, {rows}", speed("W2 large", "pass large"), None, True)
    yield Measure("G19 W2 / Spark's sliding window", speed("W2", "own sliding"), 2, True)
    yield Measure("G19 W6 / Spark's tumbling window", speed("W6", "own many"), 1, True)
    yield Measure("W1 / Spark's tumbling window", speed("W1", "own tumbling"), None, True)
    yield Measure("W1 / transformWithState by key", speed("small", "by key"), None, True)


def _idle(bench: Bench) -> Iterator[Measure]:
    """Micro-batches that touch few keys, after one that has left many behind, or not."""
    scale = bench.scale
    batches = [(scale.touched, scale.keys)] * (scale.warm + scale.batches)
    full = [(scale.rows, scale.many)] * -(-scale.many * SIZE // scale.rows)
    files = {"alone": bench.files("alone", batches), "idle": bench.files("idle", full + batches)}
    times: Times = {name: [] for name in files}
    for _ in range(scale.rounds):
        for name, path in files.items():
            taken = bench.seconds(path, lambda rows: rows.transform(sliding()))
            times[name].append(statistics.median(taken[-scale.batches :]))
    for name, seconds in times.items():
        print(f"{name:14} {statistics.median(seconds):.3f} s a micro-batch")
    idle = f"{scale.many:,} idle keys"
    yield Measure(f"G20 with {idle} / without", ratio(times, "idle", "alone"), 1.5, False)
