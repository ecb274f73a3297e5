"""Farms on Spark against what one would do without them.

Where they pay: a function of one's own that takes its time, over windows of one key. Spark gives
all of that to one task. By hand, rows are numbered, copied to all their windows and grouped.

Panes against windows by explosion: the same sums, and what goes through the shuffle. The exploded
plan makes a row for every window that a tuple is in, and groups by key and window. The paned plan
makes partial sums of slices where the rows are, and brings only these together.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from bench.farms_work import SIZE, SLIDE, Burn, burn, turns_in
from bench.harness import Measure, ratio
from windowlib import Count, Sliding, Time
from windowlib.farms import PaneFarm, WindowFarm
from windowlib.farms.models import TimeWindows
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach, session

WINDOWS = TimeWindows(10_000, 1000)
"""Ten seconds every second, in milliseconds."""
Plan = Callable[[DataFrame], DataFrame]


class Scale(NamedTuple):
    """How much of everything; a test makes do with less."""

    rows: int = 1_000_000
    keys: int = 100
    rounds: int = 3
    memory: str = "2g"
    counted: tuple[tuple[float, int], ...] = ((5e-3, 60_000), (20e-3, 30_000), (50e-3, 20_000))
    """Seconds that a window by count takes, and how many rows there are then."""
    batches: int = 8
    """Micro-batches of a stream, with a fifth of the rows each, of the first two of these."""


FULL = Scale()


def run(scale: Scale = FULL) -> Iterator[Measure]:
    """Where farms pay, and B29."""
    folder = Path(tempfile.mkdtemp(prefix="windowlib-bench-"))
    spark = session("local[2]", spark__driver__memory=scale.memory)
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        for price, rows in scale.counted:
            yield from _paying(spark, str(folder / f"{price:g}"), price, rows, scale.rounds)
        for price, rows in scale.counted[:2]:
            yield from _streaming(spark, folder, price, rows // 5, scale)
        yield from _measured(spark, _written(folder / "timed", scale), scale)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _written(folder: Path, scale: Scale) -> str:
    """Rows in four files, in order of time: a hundred a second of every key."""
    folder.mkdir()
    rng = np.random.default_rng(29)
    at = np.arange(scale.rows) * 10 // scale.keys
    key, x = rng.integers(0, scale.keys, scale.rows), rng.integers(0, 1000, scale.rows)
    table = pa.table({"at": at, "key": key, "x": x})
    for part in range(4):
        lo, hi = part * scale.rows // 4, (part + 1) * scale.rows // 4
        pq.write_table(table.slice(lo, hi - lo), folder / f"{part}.parquet")
    return str(folder)


def _numbers(files: Path | str, number: int, rows: int) -> None:
    """A file of numbered rows, those of one micro-batch."""
    at = np.arange(number * rows, (number + 1) * rows)
    pq.write_table(pa.table({"at": at, "x": at % 1009}), f"{files}/{number:03}.parquet")


def _burning(turns: float) -> dict[str, Plan]:
    """The operator and its farms, where a tuple of a window takes so many turns."""
    op = Burn(Sliding(Count(SIZE), every=Count(SLIDE), order_by="at"), turns)
    columns = "key string, size long, total long"
    return {
        "operator": attach(op, schema=columns),
        "WindowFarm": attach(WindowFarm(op, workers=2), schema=columns),
        "WindowFarm, active": attach(WindowFarm(op, workers=2, active=True), schema=columns),
        "PaneFarm": attach(PaneFarm(op, workers=2), schema=columns),
    }


def _paying(
    spark: SparkSession, files: str, price: float, count: int, rounds: int
) -> Iterator[Measure]:  # fmt: skip
    """A function that takes long, over windows of one key."""
    Path(files).mkdir()
    _numbers(files, 0, count)
    turns = turns_in(price) / SIZE
    plans: dict[str, Plan] = {"by hand": lambda rows: by_hand(rows, turns), **_burning(turns)}
    found = {}
    for name, plan in plans.items():
        rows = plan(spark.read.parquet(files)).where(fn.col("size") == SIZE)  # the first are not
        found[name] = sorted(row.total for row in rows.collect())
    assert found["operator"], "no windows to compare"
    for name, totals in found.items():
        assert totals == found["operator"], f"{name} and the operator differ"
    walls, _ = _alternate(spark, plans, files, rounds)
    for name in ("WindowFarm", "WindowFarm, active", "PaneFarm"):
        what = f"own function, {price * 1e3:g} ms a window, one key"
        yield Measure(f"{what}: operator / {name}", ratio(walls, "operator", name), 1.3, True)
        yield Measure(f"{what}: by hand / {name}", ratio(walls, "by hand", name), 1, True)


def _streaming(
    spark: SparkSession, folder: Path, price: float, rows: int, scale: Scale
) -> Iterator[Measure]:  # fmt: skip
    """The same as a stream: all but the first two micro-batches, which start what they need."""
    files = folder / f"streamed, {price:g}"
    files.mkdir()
    for number in range(scale.batches):
        _numbers(files, number, rows)
    plans = _burning(turns_in(price) / SIZE)
    walls: dict[str, list[float]] = {name: [] for name in plans}
    for _ in range(scale.rounds):
        for name, plan in plans.items():
            source = spark.readStream.schema("at long, x long").option("maxFilesPerTrigger", 1)
            sink = plan(source.parquet(str(files))).writeStream.format("noop")
            checkpoint = tempfile.mkdtemp(dir=folder)
            query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            durations = [each["durationMs"] for each in query.recentProgress]
            took = [each["triggerExecution"] / 1e3 for each in durations if "addBatch" in each]
            walls[name].append(statistics.median(took[2:]))
    for name in plans:
        if name != "operator":
            what = f"stream, {price * 1e3:g} ms a window, later micro-batches: operator / {name}"
            yield Measure(what, ratio(walls, "operator", name), 1.3, True)


def by_hand(rows: DataFrame, turns: float) -> DataFrame:
    """The windows of rows that are numbered first: each is a group, with copies of its rows."""
    numbered = rows.withColumn("n", fn.row_number().over(Window.orderBy("at")) - 1)
    last = fn.floor(fn.col("n") / SLIDE)
    windows = fn.explode(fn.sequence(fn.greatest(last - SIZE // SLIDE + 1, fn.lit(0)), last))
    copies = numbered.select("x", windows.alias("window")).groupBy("window")

    def of(table: pa.Table) -> pa.Table:
        values = table.column("x").to_numpy()
        burn(int(turns * len(values)))
        made = pa.table({"size": [len(values)], "total": [int(values.sum())]})
        return made.slice(0, len(values) == SIZE)  # the last ones are not full

    found: DataFrame = copies.applyInArrow(of, "size long, total long")
    return found


def _alternate(
    spark: SparkSession, plans: dict[str, Plan], files: str, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds and bytes shuffled of each plan, in turn."""
    walls: dict[str, list[float]] = {name: [] for name in plans}
    moved: dict[str, list[float]] = {name: [] for name in plans}
    order = list(plans)
    for _ in range(rounds):
        for name in order:
            seconds, written = _timed(spark, plans[name](spark.read.parquet(files)))
            walls[name].append(seconds)
            moved[name].append(written)
        order.reverse()
    for name in plans:
        seconds, written = statistics.median(walls[name]), statistics.median(moved[name])
        print(f"{name}: {seconds:.2f} s, {written / 1e6:.2f} MB shuffled")
    return walls, moved


def _measured(spark: SparkSession, files: str, scale: Scale) -> Iterator[Measure]:
    plans: dict[str, Plan] = {
        "exploded": exploded,
        "exploded in Python": exploded_in_python,
        "paned": paned,
    }
    found = {name: _rows(plan(spark.read.parquet(files))) for name, plan in plans.items()}
    assert found["paned"], "no windows to compare"
    for name, rows in found.items():
        assert rows == found["paned"], f"B29: {name} and paned differ"
    plans["PaneFarm"] = farmed
    alone = attach(SUMS, times="seconds")(_seconds(spark.read.parquet(files)))
    both = (sorted(map(tuple, f.collect())) for f in (alone, farmed(spark.read.parquet(files))))
    assert next(both) == next(both), "B29: PaneFarm and the operator differ"
    walls, moved = _alternate(spark, plans, files, scale.rounds)
    for name in ("exploded", "exploded in Python"):
        for ours in ("paned", "PaneFarm"):
            label = f"B29 size / slide = 10: {name} / {ours}"
            yield Measure(f"{label}, wall time", ratio(walls, name, ours), 2, True)
            yield Measure(f"{label}, bytes shuffled", ratio(moved, name, ours), 5, True)


def _rows(frame: DataFrame) -> set[tuple[int, int, int]]:
    return {(row.key, row.window, row.total) for row in frame.collect()}


def _timed(spark: SparkSession, frame: DataFrame) -> tuple[float, float]:
    """Seconds, and bytes that were written for the shuffle."""
    before, start = _shuffled(spark), time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, _shuffled(spark) - before


def _shuffled(spark: SparkSession) -> int:
    """Bytes that all stages so far have written for shuffles."""
    context: Any = spark.sparkContext
    inner, none = context._jsc.sc(), context._gateway.new_array(context._jvm.double, 0)
    inner.listenerBus().waitUntilEmpty()
    stages = inner.statusStore().stageList(None, False, False, none, None)
    return sum(int(stages.apply(i).shuffleWriteBytes()) for i in range(stages.size()))


# -- the plans ------------------------------------------------------------------------------------


def exploded(rows: DataFrame) -> DataFrame:
    """Spark's own functions: it sums by key and window before the shuffle, too."""
    found: DataFrame = _by_window(rows).agg(fn.sum("x").alias("total"))
    return found


def exploded_in_python(rows: DataFrame) -> DataFrame:
    """A function of one's own over each window, which gets its rows."""
    columns = "key long, window long, total long"
    found: DataFrame = _by_window(rows).applyInArrow(_window_sum, columns)
    return found


def _by_window(rows: DataFrame) -> Any:
    last = fn.floor(fn.col("at") / WINDOWS.slide)
    count = WINDOWS.size // WINDOWS.slide
    windows = fn.explode(fn.sequence(last - (count - 1), last))
    return rows.select("key", "x", windows.alias("window")).groupBy("key", "window")


def _window_sum(key: Any, table: pa.Table) -> pa.Table:
    number, window = key
    total = table.column("x").to_numpy().sum()
    return pa.table({"key": [number.as_py()], "window": [window.as_py()], "total": [int(total)]})


SUMS = Aggregate(
    Sliding(Time("10s"), every=Time("1s"), by="key", order_by=None), total=agg.sum("x")
)


def farmed(rows: DataFrame) -> DataFrame:
    """The operator as a farm: the same plan, for any function that can be merged."""
    return attach(PaneFarm(SUMS, workers=2), times="seconds")(_seconds(rows))


def _seconds(rows: DataFrame) -> DataFrame:
    return rows.withColumn("seconds", fn.col("at") / 1000)


def paned(rows: DataFrame) -> DataFrame:
    """By hand: sums of slices where rows are, one shuffle by key, windows of slices."""
    slices = rows.mapInArrow(_slice_sums, "key long, slice long, total long")
    return slices.groupBy("key").applyInArrow(_window_sums, "key long, window long, total long")


def _slice_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Partial sums, a row for each key and slice of a task."""
    slices, found = WINDOWS.panes(), []
    for batch in batches:
        numbers = slices.of(batch.column("at").to_numpy())
        table = pa.table({"key": batch.column("key"), "slice": numbers, "x": batch.column("x")})
        found.append(table.group_by(["key", "slice"]).aggregate([("x", "sum")]))
    if found:
        both = pa.concat_tables(found).group_by(["key", "slice"]).aggregate([("x_sum", "sum")])
        yield from both.rename_columns(["key", "slice", "total"]).to_batches()


def _window_sums(key: Any, table: pa.Table) -> pa.Table:
    """The windows of one key; those that reach beyond the first or last slice, too."""
    table = table.group_by("slice").aggregate([("total", "sum")]).sort_by("slice")
    rows, windows = WINDOWS.panes().windows_of_pane(table.column("slice").to_numpy())
    totals = table.column("total_sum").to_numpy()[rows]
    found, which = np.unique(windows, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, which, totals)
    keys = np.full(len(found), key[0].as_py())
    return pa.table({"key": keys, "window": found, "total": sums})
