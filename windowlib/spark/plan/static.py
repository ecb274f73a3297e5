"""Static DataFrames: Spark sorts the rows of each bucket, which are then read in one pass.

Rows come in order from Spark's own sort, which spills to disk if it must, and the windows of a
bucket end with its last row, so no state is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from windowlib.errors import WindowlibWarning
from windowlib.spark.bucket.bucket import Bucket, BucketSpec
from windowlib.spark.plan.input_merge import input_orders
from windowlib.spark.plan.output_rows import Unpack
from windowlib.spark.plan.query_plan import QueryPlan
from windowlib.spark.plan.shuffle import BUCKET, gathered
from windowlib.spark.plan.types import quoted
from windowlib.spark.python_worker import end_task
from windowlib.window.arrow import Times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIDE, PLACE, START, END = "_side", "_place", "_start", "_end"


def static_frame(plan: QueryPlan) -> DataFrame:
    """The DataFrame of a plan for DataFrames that do not stream."""
    spec = plan.bucket_spec()
    if spec.timed and spec.times is None:
        msg = (
            f"{plan.operator.name}: it has a time policy, and nothing moves the clock of a static "
            f'DataFrame. Pass attach(op, times="ts").'
        )
        warnings.warn(msg, WindowlibWarning, stacklevel=3)
    rows, order = _union(plan)
    if spec.times is not None:
        rows = _with_bounds(plan, rows, spec.times)
    whole = rows.repartition(1 if len(plan.buckets) == 1 else plan.partitions, BUCKET)
    whole = whole.sortWithinPartitions(BUCKET, *order)
    return whole.mapInArrow(SortedBuckets(spec, plan.unpack()), plan.output.struct)


def _with_bounds(plan: QueryPlan, rows: DataFrame, times: str) -> DataFrame:
    """Rows of all inputs, with the arrival times of the first and the last row of all."""
    if plan.bounded:
        return rows.select("*", fn.col(f"_0.{START}"), fn.col(f"_0.{END}"))
    return rows.crossJoin(fn.broadcast(time_bounds(plan.frames, times)))


def _union(plan: QueryPlan) -> tuple[DataFrame, list[Any]]:
    """The rows of all inputs in one DataFrame, and the columns that order them."""
    found = None
    apart = plan.operator.waits  # then the last input comes first, whole
    orders = input_orders(plan.orders, plan.times, apart=apart)
    keys: list[str] = []
    for side, (frame, own) in enumerate(zip(plan.bucketed(), orders, strict=True)):
        keys = [f"_key{at}" for at in range(len(own))]
        bucket, *names = frame.columns
        columns = [fn.col(quoted(name)) for name in names]
        tagged = frame.select(
            fn.col(bucket).alias(BUCKET),
            fn.lit(side).alias(SIDE),
            fn.monotonically_increasing_id().alias(PLACE),
            *[fn.col(quoted(name)).alias(key) for name, key in zip(own, keys, strict=True)],
            fn.struct(*columns).alias(f"_{side}"),
        )
        found = tagged if found is None else found.unionByName(tagged, allowMissingColumns=True)
    assert found is not None
    return found, [fn.desc(SIDE), *keys, PLACE] if apart else [*keys, SIDE, PLACE]


def time_bounds(frames: Sequence[DataFrame], times: str) -> DataFrame:
    """The arrival times of the first and the last row of all inputs."""
    found = None
    for frame in frames:
        column = frame.select(fn.col(quoted(times)).alias("at"))
        found = column if found is None else found.union(column)
    assert found is not None
    return found.agg(fn.min("at").alias(START), fn.max("at").alias(END))


class SortedBuckets:
    """Runs the buckets of one task, one after the other."""

    def __init__(self, spec: BucketSpec, unpack: Unpack) -> None:
        self.spec, self.unpack = spec, unpack

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that the operator makes."""
        bucket, current = None, None
        for batch in gathered(batches):
            for number, side, rows in _runs(batch):
                if bucket is None or number != current:
                    if bucket is not None:
                        yield from self._rows(bucket.finished())
                    bucket, current = self._bucket(batch), number
                yield from self._rows(bucket.fed(rows, side))
        if bucket is not None:
            yield from self._rows(bucket.finished())
        end_task()

    def _bucket(self, batch: pa.RecordBatch) -> Bucket:
        if self.spec.times is None:
            return Bucket(self.spec, 0)
        (ends,) = batch.slice(0, 1).select([START, END]).to_pylist()
        opened = Bucket(self.spec, Times(START)(ends))
        opened.end = Times(END)(ends)
        return opened

    def _rows(self, made: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        for port, batch in made:
            yield from self.unpack.rows(self.unpack.ports[port], pa.Table.from_batches([batch]))


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Rows that follow each other in one bucket and one input."""
    buckets, sides = (batch.column(name).to_numpy() for name in (BUCKET, SIDE))
    changes = (np.diff(buckets) != 0) | (np.diff(sides) != 0)
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
    for lo, hi in pairwise(cuts):
        rows = batch.column(f"_{sides[lo]}").slice(lo, hi - lo)
        yield int(buckets[lo]), int(sides[lo]), pa.RecordBatch.from_struct_array(rows)
