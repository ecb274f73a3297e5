"""Streams that end: their windows then finish as those of a table do.

Spark's streams have no end. Here a source beside the rows says that there is one: a file with a
chunk for every bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.spark.attach import Attached, Plan
from windowlib.spark.packing import BUCKET, CHUNK, CHUNK_DDL, ENDED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Ending(Plan):
    """The plan of a stream that ends when `end` is called.

    Args:
        attached: what `attach` gave.
        frames: a stream for each input.
        folder: an empty folder that all workers can read.
    """

    def __init__(self, attached: Attached, frames: Sequence[DataFrame], folder: Path) -> None:
        super().__init__(attached, frames)
        self.folder = folder

    def chunks(self) -> DataFrame:
        """The rows of all inputs, packed, and the end."""
        ends = self.spark.readStream.schema(CHUNK_DDL).parquet(str(self.folder))
        return super().chunks().union(ends)

    def end(self) -> None:
        """No more rows come than have been taken; each bucket sends what that makes."""
        chunk = {"side": ENDED, "place": 0, "data": b""}
        table = pa.Table.from_pylist([{BUCKET: bucket, **chunk} for bucket in self.buckets], CHUNK)
        hidden = self.folder / ".end"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / "end.parquet")
