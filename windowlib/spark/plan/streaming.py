"""Streams: rows are packed by bucket, and each bucket is one call of Python a micro-batch.

Spark picks the columns that the operator reads and hashes its key; rows are packed
into one blob per bucket; after the shuffle the operator of the bucket takes whole columns, and the
rows that it makes are unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as fn

from windowlib.spark.bucket.held_rows import SPAN, read_times
from windowlib.spark.bucket.processor import METRICS, Processor
from windowlib.spark.plan.folding import Fold, kept_rows
from windowlib.spark.plan.query_plan import QueryPlan
from windowlib.spark.plan.shuffle import BUCKET, CHUNK, CHUNK_DDL, ENDED, SPANS, Pack, ToAll
from windowlib.spark.versions import takes_arrays, transform_with_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def streamed_frame(plan: QueryPlan) -> DataFrame:
    """The DataFrame of a plan for streams."""
    spec = plan.bucket_spec()
    mode = "EventTime" if spec.follows else "ProcessingTime" if spec.timed else "None"
    chunks = packed(plan).groupBy(BUCKET)
    arrays = plan.arrays() if takes_arrays(chunks) else None
    processor = Processor(spec, arrays)
    made = transform_with_state(chunks, processor, processor.output, mode)
    made = made.observe(plan.name, *[fn.sum(metric).alias(metric) for metric in METRICS])
    if arrays is not None:
        return arrays.rows(made)
    return made.mapInArrow(plan.unpack(), plan.output.struct)


def packed(plan: QueryPlan) -> DataFrame:
    """What goes to the buckets: the rows of all inputs, packed, and the end if there is one."""
    chunks = None
    for side, frame in enumerate(plan.bucketed()):
        names = plan.frames[side].columns
        spec, pack = plan.bucket_spec(), Pack(side, plan.numbers, plan.nonce, names)
        work: Any = pack
        if not kept_rows(spec):
            work = Fold(plan.operator, pack)
        elif spec.holds and spec.times is not None and (spec.timed or spec.aged):
            work = PackSpans(pack, spec.times)
        rows = frame.mapInArrow(work, CHUNK_DDL)
        chunks = rows if chunks is None else chunks.union(rows)
    assert chunks is not None  # every operator has an input
    if plan.ends is None:
        return chunks
    ends: DataFrame = plan.spark.readStream.schema(CHUNK_DDL).parquet(str(plan.ends))
    return chunks.union(ends.mapInArrow(ToAll(plan.numbers), CHUNK_DDL))


class PackSpans:
    """Packs the rows of a task, and tells every bucket of the times of its first and last row.

    So all buckets start their clocks with the first row of the whole stream, as one bucket would.
    """

    def __init__(self, pack: Pack, times: str) -> None:
        self.pack, self.times = pack, times

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Chunks of the rows, and one without rows for every bucket."""
        spans: list[int] = []

        def watched() -> Iterator[pa.RecordBatch]:
            for batch in self.pack.named(batches):
                if batch.num_rows:
                    stamps = read_times(batch, self.times)
                    spans.extend((int(stamps.min()), int(stamps.max())))
                yield batch

        yield from self.pack(watched())
        if spans:
            data = SPAN.pack(min(spans), max(spans))
            yield self.pack.rows([(bucket, SPANS, data) for bucket in self.pack.buckets])


def end_stream(plan: QueryPlan) -> None:
    """No more rows come than have been taken: each bucket finishes its windows.

    Spark's streams have no end. A source beside the rows of a plan made by `ending_with` says that
    there is one: a file with a chunk, which goes to every bucket.
    """
    assert plan.ends is not None
    chunk = {BUCKET: 0, "side": ENDED, "place": 0, "data": b""}
    table = pa.Table.from_pylist([chunk], CHUNK)
    hidden = plan.ends / ".end"
    pq.write_table(table, hidden)
    hidden.rename(plan.ends / "end.parquet")
