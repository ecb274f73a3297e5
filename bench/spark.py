"""Operators inside Spark, against Spark's own windows and against moving rows alone.

All queries read the same files, one file or several a micro-batch, into a sink that drops rows.
They run to the end in turn, A B C … C B A; of each query the median time of a micro-batch counts,
without the first ones, in which Java and Python start.
"""

from __future__ import annotations

import argparse
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
from windowlib.spark.session import BATCH_BYTES, FILE_MANAGER, UNLIMITED
from windowlib.spark.versions import file_manager

SIZE, SLIDE = 100, 10
FEW = 100
"""Rows of a micro-batch that costs what any does."""
PLAIN = {"pass": "64m", "pass large": "64m"}
"""Queries in a session as Spark is by itself, which gives a batch for Python so many bytes; all
others are in one of `windowlib.spark.session`."""
LOCAL = ("local pass", "local W1", "local few", "local nothing")
"""Queries in a session that knows that checkpoints are on a local disk."""
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
        self.first: Times = {}
        """Seconds of the first micro-batches of queries."""
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
                self.spark.conf.set(BATCH_BYTES, PLAIN.get(name, UNLIMITED))
                if name in LOCAL:
                    self.spark.conf.set(FILE_MANAGER, file_manager())
                else:
                    self.spark.conf.unset(FILE_MANAGER)
                first, *taken = self.seconds(files[name], queries[name])
                self.first.setdefault(name, []).append(first)
                steady = taken[self.scale.warm - 1 :][: self.scale.batches]
                times[name].append(statistics.median(steady))
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


class Nothing(Mean):
    """State that is never looked at."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        return iter(())


def nothing(rows: DataFrame) -> DataFrame:
    """State of as many groups as there are buckets, which does nothing."""
    grouped = rows.withColumn("bucket", fn.pmod("key", fn.lit(2))).groupBy("bucket")
    return grouped.transformWithState(Nothing(), "key long, mean double", "Append", "None")


def by_key(rows: DataFrame) -> DataFrame:
    """transformWithState, grouped by the key itself."""
    grouped = rows.groupBy("key")
    return grouped.transformWithState(Mean(), "key long, mean double", "Append", "None")


# -- the measures ---------------------------------------------------------------------------------


def _w1(rows: DataFrame) -> DataFrame:
    return rows.transform(tumbling())


def _w2(rows: DataFrame) -> DataFrame:
    return rows.transform(sliding())


QUERIES: dict[str, tuple[str, Query]] = {
    "pass": ("some", passed),
    "set pass": ("some", passed),
    "W1": ("some", _w1),
    "W2": ("some", _w2),
    "own tumbling": ("some", own_tumbling),
    "own sliding": ("some", own_sliding),
    "W6": ("many", _w1),
    "own many": ("many", own_tumbling),
    "pass large": ("large", passed),
    "set pass large": ("large", passed),
    "W1 large": ("large", _w1),
    "W2 large": ("large", _w2),
    "small": ("small", _w1),
    "by key": ("small", by_key),
    "few": ("few", _w1),
    "nothing": ("few", nothing),
    "local pass": ("some", passed),
    "local W1": ("some", _w1),
    "local few": ("few", _w1),
    "local nothing": ("few", nothing),
}
"""What is run, on which rows."""


class Line(NamedTuple):
    """Two queries and what to say of them: the speed of one by that of the other, or the time."""

    name: str
    of: str
    to: str
    target: float | None
    times: bool = False
    """Whether times are compared, of which less is better."""


LINES = (
    Line("W1 / pass-through, {rows}", "W1", "pass", 0.65),
    Line("W2 / pass-through, {rows}", "W2", "pass", 0.65),
    Line("W1 / pass-through, {large}", "W1 large", "pass large", 0.8),
    Line("W2 / pass-through, {large}", "W2 large", "pass large", 0.8),
    Line("W1 / pass-through of our settings, {rows}", "W1", "set pass", 0.65),
    Line("W2 / pass-through of our settings, {rows}", "W2", "set pass", 0.65),
    Line("W1 / pass-through of our settings, {large}", "W1 large", "set pass large", 0.8),
    Line("W2 / pass-through of our settings, {large}", "W2 large", "set pass large", 0.8),
    Line("W1 / Spark's tumbling window", "W1", "own tumbling", 0.75),
    Line("W2 / Spark's sliding window", "W2", "own sliding", 2.5),
    Line("W6 / Spark's tumbling window, {many} keys", "W6", "own many", 1.2),
    Line("W1 / transformWithState by key", "small", "by key", None),
    Line("W1 of few rows / transformWithState of nothing, time", "few", "nothing", 1.2, True),
    Line("W1 / pass-through, local checkpoints", "local W1", "local pass", 0.65),
    Line("W1, local checkpoints / others, time", "local W1", "W1", None, True),
    Line("W1 of few rows, local checkpoints / others, time", "local few", "few", None, True),
    Line("W1 of few rows, local checkpoints / nothing, time", "local few", "nothing", None, True),
    Line("W1 of few rows / nothing, all local, time", "local few", "local nothing", None, True),
)


def run(scale: Scale = FULL, words: Sequence[str] = ("/", "idle")) -> list[Measure]:
    """All measures of the Spark host, or the lines that have one of some words in their names."""
    lines = [line for line in LINES if any(word in line.name for word in words)]
    folder = Path(tempfile.mkdtemp(prefix="windowlib-bench-"))
    try:
        bench = Bench(scale, folder)
        idle = _idle(bench) if "idle" in words else ()
        return [*_moving(bench, lines), *idle]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def selected(arguments: Sequence[str]) -> list[Measure]:
    """The lines that arguments name: `--only W6,idle --rounds 2`."""
    parser = argparse.ArgumentParser(prog="python -m bench spark")
    parser.add_argument("--only", default="/,idle", help="words in the names of lines")
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    said = parser.parse_args(arguments)
    return run(FULL._replace(rounds=said.rounds), said.only.split(","))


def _moving(bench: Bench, lines: Sequence[Line]) -> Iterator[Measure]:
    scale = bench.scale
    sizes = {
        "some": (scale.rows, scale.keys),
        "many": (scale.rows, scale.many),
        "large": (4 * scale.rows, scale.keys),
        "small": (scale.by_key, scale.keys),
        "few": (FEW, scale.keys),
    }
    wanted = {name for line in lines for name in (line.of, line.to)}
    queries = {name: each for name, each in QUERIES.items() if name in wanted}
    paths: dict[str, Path] = {}
    for name in {size for size, _ in queries.values()}:
        batches = scale.warm + (2 if name == "large" else scale.batches)
        paths[name] = bench.files(name, [sizes[name]] * batches)
    files = {name: paths[size] for name, (size, _) in queries.items()}
    times = bench.alternate(files, {name: query for name, (_, query) in queries.items()})
    for name, seconds in times.items():
        print(f"{name:14} {statistics.median(seconds):.3f} s a micro-batch")
    said = {
        "rows": f"{scale.rows:,} rows a micro-batch",
        "large": f"{4 * scale.rows:,} rows a micro-batch",
        "many": f"{scale.many:,}",
    }
    for line in lines:
        found = ratio(times, line.of, line.to) if line.times else ratio(times, line.to, line.of)
        yield Measure(line.name.format(**said), found, line.target, not line.times)
    for name in ("W1", "own tumbling"):
        if name in bench.first:
            said_of = f"first micro-batch of {name} in a Java that runs already, seconds"
            yield Measure(said_of, statistics.median(bench.first[name]), None, False)


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
    yield Measure(f"time with {idle} / without", ratio(times, "idle", "alone"), 1.5, False)
