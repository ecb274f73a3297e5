"""One operator over the same tables on Spark: static DataFrames, and streams that end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.real_data.ways import Row, uneven
from tests.spark.stream_runs import Query, stream, write
from windowlib import Operator
from windowlib.spark import attach
from windowlib.spark.plan.attach import frame_of
from windowlib.spark.plan.query_plan import ending_with, plan_query
from windowlib.spark.plan.streaming import end_stream


def static(
    spark: Any, operator: Operator, *tables: pa.Table, folder: Path, **said: Any
) -> list[Row]:
    """Static DataFrames, of several files each; `said` is for `attach`."""
    frames = []
    for number, table in enumerate(tables):
        path = folder / f"static{number}"
        path.mkdir()
        for at, piece in enumerate(uneven(table, max(table.num_rows // 3, 1), 7)):
            pq.write_table(piece, path / f"{at:03}.parquet")
        frames.append(spark.read.parquet(str(path)))
    return [row.asDict() for row in attach(operator, **said)(*frames).collect()]


def streamed(
    spark: Any, operator: Operator, *tables: pa.Table, folder: Path, **said: Any
) -> list[Row]:
    """Streams of uneven files, stopped half-way, started again, and ended."""
    paths = [folder / f"stream{number}" for number in range(len(tables))]
    pieces = [
        list(enumerate(uneven(table, max(table.num_rows // 2, 1), 11 + number)))
        for number, table in enumerate(tables)
    ]
    (folder / "ends").mkdir()
    query = Query(folder / "checkpoint")
    for part in (slice(0, 2), slice(2, None)):
        for path, files in zip(paths, pieces, strict=True):
            for at, piece in files[part]:
                write(path, at, piece.to_pylist(), piece.schema)
        plan = _plan(spark, attach(operator, **said), paths, folder / "ends")
        query.run(frame_of(plan))
    end_stream(plan)
    query.run(frame_of(_plan(spark, attach(operator, **said), paths, folder / "ends")))
    return [row.asDict() for row in query.rows]


def _plan(spark: Any, placed: Any, paths: Sequence[Path], ends: Path) -> Any:
    frames = [stream(spark, path) for path in paths]
    return ending_with(plan_query(placed.operator, placed.options, frames), ends)
