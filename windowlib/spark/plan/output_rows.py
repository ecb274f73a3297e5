"""The rows that buckets have made, on their way into a DataFrame.

A bucket has them as Arrow streams. Where the columns are plain, it gives Spark an array for each,
and Spark takes the arrays apart itself. Otherwise a second stage of Python makes rows of the
streams, which costs one more process in every task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from windowlib.columnar.arrays.encoding import stream_table
from windowlib.spark.plan.types import PORT, fitted
from windowlib.spark.python_worker import end_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUT_ROWS = 1 << 16
"""Rows that go back to Spark at once."""
AS_THEY_ARE = (
    ByteType(), ShortType(), IntegerType(), LongType(), FloatType(), DoubleType(), StringType(),
)  # fmt: skip
AS_NUMBERS: dict[DataType, tuple[DataType, Callable[[Any], Any]]] = {
    TimestampType(): (LongType(), fn.timestamp_micros),
    DateType(): (IntegerType(), fn.date_from_unix_date),
}
"""Points in time travel as numbers, of which Spark makes what they were."""


class Unpack:
    """Turns the blobs of a bucket's outputs into rows."""

    def __init__(self, ports: Sequence[str | None], schema: pa.Schema) -> None:
        self.ports, self.schema = tuple(ports), schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows, in the order in which they were made."""
        for batch in batches:
            ports, blobs = (batch.column(name).to_pylist() for name in ("port", "data"))
            for port, data in zip(ports, blobs, strict=True):
                if data is not None:
                    yield from self.rows(self.ports[port], stream_table(data))
        end_task()

    def rows(self, port: str | None, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The rows of one output, a few at a time, named if there are several."""
        for part in table.to_batches(max_chunksize=OUT_ROWS):
            if port is not None:
                part = part.append_column(PORT, pa.array([port] * part.num_rows, pa.string()))
            yield fitted(part, self.schema)


class OutputArrays:
    """The rows of one output as arrays, one for each column.

    Args:
        struct: the columns of the output.
    """

    def __init__(self, struct: StructType) -> None:
        kinds = [AS_NUMBERS.get(field.dataType, (field.dataType, None))[0] for field in struct]
        self.struct, self.names = struct, [f"_{number}" for number in range(len(kinds))]
        pairs = zip(self.names, kinds, strict=True)
        self.columns = [f"{name} array<{kind.simpleString()}>" for name, kind in pairs]

    @staticmethod
    def fit(struct: StructType) -> bool:
        """Whether all columns of an output are of types that arrays hold as they are.

        >>> OutputArrays.fit(StructType().add("key", "string").add("at", "timestamp"))
        True
        """
        return all(field.dataType in (*AS_THEY_ARE, *AS_NUMBERS) for field in struct)

    def __call__(self, data: bytes) -> Iterator[dict[str, Any]]:
        """What a bucket has made, as arrays of so many rows at once."""
        for part in stream_table(data).to_batches(max_chunksize=OUT_ROWS):
            yield dict(zip(self.names, map(_values, part.columns), strict=True))

    def rows(self, frame: DataFrame) -> DataFrame:
        """A row for each place of the arrays of a DataFrame."""
        first, *others = self.names
        apart = frame.select(fn.posexplode(first).alias("_at", first), *others)
        values = [fn.col(first), *(fn.get(name, fn.col("_at")) for name in others)]
        return apart.select(
            [
                AS_NUMBERS.get(field.dataType, (None, _same))[1](value).alias(field.name)
                for field, value in zip(self.struct, values, strict=True)
            ]
        )


def _values(column: pa.Array) -> Any:
    """The values of a column, as numpy has them where it can tell all of them."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    plain = pa.types.is_primitive(column.type) and not column.null_count
    return column.to_numpy() if plain else column.to_pylist()


def _same(column: Any) -> Any:
    return column
