"""Two streams that meet by their time: the same rows, however Spark cuts them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.stream_runs import write
from tests.spark.test_bucket import spec_of
from windowlib import Count, CutWarning, Sliding
from windowlib.operators import Join
from windowlib.spark import attach
from windowlib.spark.bucket.processor import Processor

LEFT = pa.schema({"ts": pa.int64(), "k": pa.string(), "a": pa.int64()})
RIGHT = pa.schema({"ts": pa.int64(), "k": pa.string(), "b": pa.int64()})
JOIN = Join(
    left=Sliding(Count(3), order_by=("ts", "a")),  # which decides among rows of one time
    right=Sliding(Count(2), order_by=("ts", "b")),
    on="k",
    partition_by="k",
)


class CrashError(Exception):
    pass


def sides(files=4, size=15):
    rng, found = random.Random(7), list[Any]()
    for name in ("a", "b"):
        ts, rows = 0, list[dict[str, Any]]()
        for n in range(files * size):
            ts += rng.randint(0, 2)
            rows.append({"ts": ts, "k": rng.choice("pqr"), name: n})
        found.append([rows[at : at + size] for at in range(0, len(rows), size)])
    end = max(side[-1][-1]["ts"] for side in found) + 1
    for side, name in zip(found, ("a", "b"), strict=True):  # so that the watermark passes all
        side.append([{"ts": end, "k": "end", name: -1}])
    return found


def run(spark, folder, checkpoint, cuts, crash=None):
    """The rows that come out, by micro-batch; `crash` stops it in one."""
    frames = [
        spark.readStream.schema(spark.read.parquet(str(folder / side)).schema)
        .option("maxFilesPerTrigger", cut)
        .parquet(str(folder / side))
        for side, cut in zip("lr", cuts, strict=True)
    ]
    made: dict[int, list[str]] = {}

    def take(batch, number):
        made[number] = [str(row) for row in batch.collect()]
        if number == crash:
            raise CrashError

    out = attach(JOIN, times="ts", watermark="0s")(*frames)
    writer = out.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except Exception:
        assert crash is not None
    return made


@pytest.mark.long
def test_a_join_by_time_gives_the_same_rows_however_its_inputs_are_cut(spark, tmp_path):
    for side, parts, schema in zip("lr", sides(), (LEFT, RIGHT), strict=True):
        for number, rows in enumerate(parts):
            write(tmp_path / side, number, rows, schema)
    alone = run(spark, tmp_path, tmp_path / "alone", (1, 1))
    killed = run(spark, tmp_path, tmp_path / "killed", (2, 1), crash=1)
    assert killed
    killed |= run(spark, tmp_path, tmp_path / "killed", (1, 3))
    wanted = Counter(row for rows in alone.values() for row in rows)
    assert wanted
    assert wanted == Counter(row for rows in killed.values() for row in rows)
    running, want = JOIN.open(), list[Any]()
    running.connect(0, want.append)
    tagged = [
        ((row["ts"], row.get("a", row.get("b")), port), port, row)
        for port, parts in enumerate(sides())
        for part in parts[:-1]
        for row in part
    ]
    for _, port, row in sorted(tagged, key=lambda each: each[0]):
        running.insert(row, port)
    assert len(want) == sum(wanted.values())


class Timers:
    """What sets and deletes timers."""

    def __init__(self) -> None:
        self.known: set[int] = set()

    def registerTimer(self, at: int) -> None:  # noqa: N802 - Spark's name
        self.known.add(at)

    def deleteTimer(self, at: int) -> None:  # noqa: N802
        self.known.remove(at)


def test_a_timer_that_was_told_too_early_is_set_again():
    processor = Processor(replace(spec_of(JOIN, LEFT, RIGHT), follows=1000))
    timers: Any = Timers()
    processor.handle = timers
    assert processor._timer(0, 15, None) == 15
    timers.known.remove(15)  # Spark tells of it, at a watermark of 15, and deletes it
    assert processor._timer(15, 15, 15) == 16
    assert {16} == timers.known
    assert processor._timer(16, 20, None) == 20
    assert {20} == timers.known


def test_a_join_that_depends_on_the_cuts_says_so(spark):
    rows = spark.readStream.format("rate").load()
    left, right = (rows.selectExpr(f"value as {name}", "value % 3 as k") for name in "ab")
    with pytest.warns(CutWarning, match=r'Say attach\(op, times="ts", watermark="5s"\)'):
        attach(JOIN, order_by="k")(left, right)
