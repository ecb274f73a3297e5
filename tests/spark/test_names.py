"""Columns with names that mean something to Spark, or to the host."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from tests.spark.stream_runs import Query, stream, write
from windowlib import Count, Event, SchemaError, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach

NAMES = ["_bucket", "_Watermark", "odd `tick`", "a.b", "_side", "side", "_place", "_key0", "_0"]
SCHEMA = pa.schema([("ts", pa.int64()), *((name, pa.int64()) for name in NAMES)])
ROWS = [{"ts": at, **{name: at % (n + 2) for n, name in enumerate(NAMES)}} for at in range(12)]


def operators():
    for at, name in enumerate(NAMES):
        other = NAMES[at - 1]
        yield (
            f"{name} as the key",
            Aggregate(Tumbling(Count(2), by=name, order_by=("ts", other)), total=agg.sum(other)),
        )


def wanted(by, value):
    """Sums of every two rows of a key."""
    open_rows, found = dict[int, list[int]](), list[tuple[int, int]]()
    for row in ROWS:
        held = open_rows.setdefault(row[by], [])
        held.append(row[value])
        if len(held) == 2:
            found.append((row[by], sum(held)))
            held.clear()
    return sorted(found)


@pytest.mark.parametrize(
    "moving",
    [pytest.param(False, id="static"), pytest.param(True, id="stream", marks=pytest.mark.long)],
)
def test_any_name_of_a_column_works(spark, tmp_path, moving):
    write(tmp_path / "rows", 0, ROWS, SCHEMA)
    still = spark.read.parquet(str(tmp_path / "rows"))
    frames = {}
    for at, (_, op) in enumerate(operators()):
        made = op(stream(spark, tmp_path / "rows") if moving else still)
        frames[at] = made.toDF("k", "total").selectExpr(f"{at} as at", "k", "total")
    whole = reduce(DataFrame.union, frames.values())
    if moving:
        query = Query(tmp_path / "checkpoint")
        query.run(whole)
        found = query.rows
    else:
        found = whole.collect()
    for at, name in enumerate(NAMES):
        got = sorted((row.k, row.total) for row in found if row.at == at)
        assert wanted(name, NAMES[at - 1]) == got, name


def test_a_watermark_leaves_columns_alone(spark, tmp_path):
    write(tmp_path / "rows", 0, ROWS, SCHEMA)
    op = Aggregate(Tumbling(Event("ts", 5), by="_Watermark", late="drop"), total=agg.sum("_bucket"))
    query = Query(tmp_path / "checkpoint")
    query.run(op(stream(spark, tmp_path / "rows")))
    want: dict[tuple[int, int], int] = {}
    for row in ROWS[:10]:
        place = row["_Watermark"], row["ts"] // 5
        want[place] = want.get(place, 0) + row["_bucket"]
    assert sorted((k, total) for (k, _), total in want.items()) == sorted(
        (row["_Watermark"], row.total) for row in query.rows
    )


@pytest.mark.parametrize("read", ["read", "readStream"])
def test_columns_that_differ_in_case_only_are_refused(spark, tmp_path, read):
    schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    write(tmp_path / "rows", 0, [{"ts": 0, "n": 2}, {"ts": 1, "n": 3}], schema)
    op = attach(Aggregate(Tumbling(Count(2), by="k"), total=agg.sum("K")), order_by="ts")
    case = "spark.sql.caseSensitive"

    def frame():
        rows = getattr(spark, read).schema("ts long, n long").parquet(str(tmp_path / "rows"))
        return rows.selectExpr("ts", "1 as k", "n as K")

    with pytest.raises(SchemaError, match=r"columns 'k' and 'K' of 'in' are one to Spark\. Ren"):
        op(frame())
    spark.conf.set(case, True)
    try:
        if read == "read":
            assert [tuple(row) for row in op(frame()).collect()] == [(1, 5)]
        else:
            query = Query(tmp_path / "checkpoint")
            query.run(op(frame()))
            assert [tuple(row) for row in query.rows] == [(1, 5)]
    finally:
        spark.conf.unset(case)
    twice = spark.range(3).selectExpr("id as ts", "id as k", "id as k")
    with pytest.raises(SchemaError, match=r"'in' has two columns 'k'\. Rename one"):
        op(twice)
