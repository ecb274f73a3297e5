"""Queries that die and start again from their checkpoint, as if nothing had happened."""
# ruff: noqa: SIM300 - asserts read expected first

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as fn

from tests.spark import job
from tests.spark import killed_job as killing
from windowlib import Count, Operator, OperatorModel, Sliding, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach
from windowlib.spark.session import FILE_MANAGER
from windowlib.spark.versions import file_manager

# -- the whole program dies -----------------------------------------------------------------------


@pytest.mark.long
def test_a_program_that_is_killed_again_and_again_writes_the_same_rows(tmp_path):
    job.write_input(tmp_path)
    for number, (name, stage) in enumerate(zip(job.operators(), job.STAGES, strict=True)):
        with killing.started(tmp_path, "--die", f"{name}:{number}:{stage}") as process:
            assert killing.ends(process) == -9, killing.log_of(tmp_path)
    killing.killed_somewhere(tmp_path, random.Random(1))
    with killing.started(tmp_path) as process:
        assert killing.ends(process) == 0, killing.log_of(tmp_path)
    killing.check(tmp_path)


@pytest.mark.long
def test_a_program_that_is_killed_may_say_that_its_checkpoints_are_local_or_not(tmp_path):
    job.write_input(tmp_path)
    for number, (name, stage) in enumerate(zip(job.operators(), job.STAGES, strict=True)):
        said = ["--local"] if number % 2 == 0 else []
        with killing.started(tmp_path, "--die", f"{name}:{number}:{stage}", *said) as process:
            assert killing.ends(process) == -9, killing.log_of(tmp_path)
    killing.killed_somewhere(tmp_path, random.Random(2), "--local")
    with killing.started(tmp_path, "--local") as process:
        assert killing.ends(process) == 0, killing.log_of(tmp_path)
    killing.check(tmp_path)


def test_a_micro_batch_that_runs_once_more_replaces_what_it_left_on_a_local_disk(spark, tmp_path):
    query = Query(spark, tmp_path)
    rows = [{"ts": at, "k": "abc"[at % 3], "v": at} for at in range(50)]
    operator = totals(slide())
    # What suits local disks, and what suits HDFS: each after itself, and after the other.
    for number, local in enumerate((True, True, False, False, True)):
        query.add(rows[10 * number : 10 * number + 10])
        if not local:
            spark.conf.unset(FILE_MANAGER)
        try:
            query.run(operator)
            for path in (tmp_path / "checkpoint" / "commits").glob(f"*{number}*"):
                path.unlink()  # as if it had been killed when its state was there
            query.run(operator)
        finally:
            spark.conf.set(FILE_MANAGER, file_manager())  # as in the session of all tests
    assert job.by_key(query.written()) == job.by_key(alone(operator, rows))


def test_a_query_that_was_killed_before_its_first_micro_batch_starts_again(spark, tmp_path):
    query = Query(spark, tmp_path)
    query.add([{"ts": at, "k": "a", "v": at} for at in range(4)])
    offsets = tmp_path / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.5d3f.tmp").write_text("v1\n{")  # what Spark was writing when it was killed
    query.run(Aggregate(Tumbling(Count(2), order_by="ts"), total=agg.sum("v")))
    assert [{"total": 1}, {"total": 5}] == query.written()


# -- the program comes back changed ---------------------------------------------------------------


class Query:
    """A query over the files of a directory, which can be run again and again, also changed."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self.spark, self.directory, self.files = spark, directory, 0
        self.batches: dict[int, list[Any]] = {}
        (directory / "in").mkdir()

    def add(self, rows: list[dict[str, Any]]) -> None:
        """One more file of input."""
        self.files += 1
        path = self.directory / "in" / f"{self.files}.parquet"
        table = pa.Table.from_pylist(rows)
        at = table.schema.get_field_index("v")
        table = table.set_column(at, "v", table.column(at).cast(pa.int32()))  # read as long, too
        pq.write_table(table, path)
        os.utime(path, (self.files, self.files))

    def run(self, operator: Any, schema: str = job.SCHEMA) -> None:
        """Take all files that there are."""
        stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        made = stream.parquet(str(self.directory / "in")).transform(operator)
        writer = made.writeStream.foreachBatch(self._write).trigger(availableNow=True)
        checkpoint = str(self.directory / "checkpoint")
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()

    def refused(self, operator: Any, schema: str = job.SCHEMA) -> str:
        """What it says when it fails."""
        with pytest.raises(StreamingQueryException) as caught:
            self.run(operator, schema)
        return str(caught.value)

    def _write(self, frame: Any, batch: int) -> None:
        self.batches[batch] = [row.asDict() for row in frame.collect()]

    def written(self) -> list[Any]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]


def alone(operator: Operator, rows: list[dict[str, Any]]) -> list[Any]:
    """What an operator makes of rows without Spark."""
    made = list[Any]()
    running = operator.open()
    running.connect(0, made.append)
    running.insert_many(rows)
    return made


def keys_of_buckets(spark: Any, buckets: int) -> dict[int, str]:
    """For each bucket, by its place, a key that belongs there."""
    names = spark.range(100).select(fn.concat(fn.lit("k"), "id").alias("k"))
    placed = names.select("k", fn.pmod(fn.xxhash64("k"), fn.lit(buckets)).alias("at"))
    return {row["at"]: row["k"] for row in placed.collect()}


def totals(window: Any, **more: Any) -> Aggregate:
    return Aggregate(window, at=agg.last("ts"), total=agg.sum("v"), **more)


def slide(size: int = 4, by: str = "k") -> Sliding:
    return Sliding(Count(size), every=Count(2), by=by, order_by="ts")


@pytest.mark.long
def test_a_changed_query_is_refused_by_name_and_the_old_one_goes_on(spark, tmp_path):
    query, place = Query(spark, tmp_path), keys_of_buckets(spark, 4)
    # Only the last bucket has state, and the next rows are for the first one.
    rows: list[dict[str, Any]]
    rows = [{"ts": at, "k": place[3], "j": place[3], "v": at % 5} for at in range(9)]
    later = [{"ts": at, "k": place[0], "j": place[0], "v": at % 7} for at in range(9, 20)]
    schema = "ts long, k string, j string, v int"
    same = attach(totals(slide()), buckets=4)
    query.add(rows)
    query.run(same, schema)
    query.add(later)
    said = query.refused(attach(totals(slide(5)), buckets=4), schema)
    assert (
        "StateVersionError: the checkpoint was written with window.evict=Count(size=4); this query "
        "says window.evict=Count(size=5). Use a new checkpoint, or build the query as it was."
    ) in said
    said = query.refused(attach(totals(slide(), n=agg.count()), buckets=4), schema)
    assert "the checkpoint was written with functions=" in said
    said = query.refused(attach(totals(slide(by="j")), buckets=4), schema)
    assert "written with window.by='k'; this query says window.by='j'" in said
    said = query.refused(attach(totals(slide()), buckets=2), schema)
    assert "written with buckets=4; this query says buckets=2" in said
    said = query.refused(attach(totals(slide()), buckets=4), schema.replace("v int", "v long"))
    assert "columns of in=ts bigint, k string, v int; this query says" in said
    query.add([row | {"ts": row["ts"] + 20} for row in rows])
    query.run(same, schema)
    every = [*rows, *later, *(row | {"ts": row["ts"] + 20} for row in rows)]
    assert query.written() == alone(totals(slide()), every)


# -- a row that a handler cannot take -------------------------------------------------------------


class Ratios(Operator):
    """For each window, the quotient of its last and its first value."""

    model = OperatorModel(windows=[Tumbling])
    output = "k string, at long, ratio double"

    def before_flush(self, window, key):
        first, *_, last = window[key]
        self.emit(k=key, at=last["ts"], ratio=last["v"] / first["v"])


class CarefulRatios(Ratios):
    """The same, mended."""

    def before_flush(self, window, key):
        first, *_, last = window[key]
        self.emit(k=key, at=last["ts"], ratio=last["v"] / first["v"] if first["v"] else None)

    def describe(self):
        """It goes on with what the other has left."""
        return super().describe() | {"operator": "Ratios"}


def test_a_row_that_fails_is_named_and_a_mended_operator_loses_nothing(spark, tmp_path):
    query = Query(spark, tmp_path)
    rows = [{"ts": at, "k": "ab"[at % 2], "v": 40 - at} for at in range(60)]
    parts = [rows[:25], rows[25:50], rows[50:]]
    window = Tumbling(Count(5), by="k", order_by="ts")
    for part in parts:
        query.add(part)
    said = query.refused(Ratios(window))
    assert "ZeroDivisionError: division by zero" in said
    assert "in before_flush of Ratios, partition 'a', tuple 25, in TumblingWindow" in said
    query.run(CarefulRatios(window))
    assert job.by_key(query.written()) == job.by_key(alone(CarefulRatios(window), rows))
