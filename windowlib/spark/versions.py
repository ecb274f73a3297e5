"""Differences between the versions of Spark: the only module that checks the version.

| | 4.0 | 4.1 | 4.2 and newer |
| --- | --- | --- | --- |
| stateful processing in Python | pandas frames | rows | rows |
| protobuf | 5 or 6 | 6 or 7 | 6 or 7 |
| streams on Spark Connect | no | yes | yes |
| `to_arrow_schema` | has no time zone | has no time zone | takes one |
| Arrow times without a zone | become timestamps with one, unless asked | the same | stay |
| a type for times of day | no | yes | yes |
| where sources are, in the progress | as Python text | as Python text | as JSON |
| state is read before any stream ran | yes | not by itself | not by itself in 4.2 |
| package of checkpoints | `streaming` | `streaming.checkpointing` | the same |
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from windowlib.errors import HostError

OLDEST = "4.0"

try:
    import pyspark
except ImportError as error:
    msg = (
        "windowlib.spark: PySpark is not installed, and operators run on DataFrames with it. "
        'Install it: pip install "spl-windows[spark]".'
    )
    raise HostError(msg) from error

if int(pyspark.__version__.split(".")[0]) < int(OLDEST.split(".")[0]):
    msg = (
        f"windowlib.spark: this is PySpark {pyspark.__version__}, which has no stateful processing "
        f'in Python. Use Spark {OLDEST} or newer: pip install "spl-windows[spark]".'
    )
    raise HostError(msg)

# Only now: an older PySpark lacks some of these.
import pyarrow as pa  # noqa: E402
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema  # noqa: E402
from pyspark.sql.streaming.stateful_processor import StatefulProcessor  # noqa: E402
from pyspark.sql.types import DataType, StructType  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


PROTOBUF, OLD_PROTOBUF = "protobuf>=6.33.5,<8", "protobuf>=5.28.3,<7"
_TAKES_ZONE = "timezone" in inspect.signature(to_arrow_schema).parameters


def arrow_schema(schema: StructType, timezone: str) -> pa.Schema:
    """The Arrow columns in which Spark hands over rows, in the time zone of the session.

    >>> from pyspark.sql.types import StructField, StructType, TimestampType
    >>> arrow_schema(StructType([StructField("at", TimestampType())]), "Asia/Tokyo").field(0).type
    TimestampType(timestamp[us, tz=Asia/Tokyo])
    """
    if _TAKES_ZONE:
        found: pa.Schema = to_arrow_schema(schema, timezone=timezone)
        return found
    return pa.schema([_in_zone(field, timezone) for field in to_arrow_schema(schema)])


def _in_zone(field: pa.Field, timezone: str) -> pa.Field:
    return field.with_type(_type_in_zone(field.type, timezone))


def _type_in_zone(kind: pa.DataType, timezone: str) -> pa.DataType:
    """The type with all its timestamps that have a time zone in another one."""
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, timezone)
    if pa.types.is_list(kind):
        return pa.list_(_in_zone(kind.value_field, timezone))
    if pa.types.is_struct(kind):
        return pa.struct([_in_zone(field, timezone) for field in kind])
    if pa.types.is_map(kind):
        key, item = (_in_zone(field, timezone) for field in (kind.key_field, kind.item_field))
        return pa.map_(key, item, keys_sorted=kind.keys_sorted)
    return kind


def spark_type(kind: pa.DataType) -> DataType:
    """Spark's type for an Arrow type; times without a zone stay without."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def takes_arrays(grouped: Any) -> bool:
    """Whether a processor may make numpy arrays: not one that makes pandas frames."""
    return hasattr(grouped, "transformWithState")


def transform_with_state(
    grouped: Any, processor: StatefulProcessor, output: str, mode: str
) -> DataFrame:
    """The rows that a processor makes of the chunks of each bucket.

    Args:
        grouped: the chunks, grouped by bucket.
        processor: what each bucket runs.
        output: the columns that it makes.
        mode: "ProcessingTime" or "EventTime" if it sets timers, otherwise "None".
    """
    if hasattr(grouped, "transformWithState"):
        rows: DataFrame = grouped.transformWithState(processor, output, "Append", mode)
        return rows
    if not hasattr(grouped, "transformWithStateInPandas"):
        msg = (
            f"a stream on Spark Connect needs Spark 4.1 or newer; the client of "
            f"{pyspark.__version__} has no stateful processing. Use a newer one, or a session "
            f"without Connect."
        )
        raise HostError(msg)
    in_pandas = PandasProcessor(processor, [part.split()[0] for part in output.split(", ")])
    frames: DataFrame = grouped.transformWithStateInPandas(in_pandas, output, "Append", mode)
    return frames


class PandasProcessor(StatefulProcessor):
    """A processor for Spark 4.0, which hands rows over as pandas frames."""

    def __init__(self, processor: StatefulProcessor, columns: list[str]) -> None:
        self.processor, self.columns = processor, columns

    def init(self, handle: Any) -> None:
        """Name the state."""
        self.processor.init(handle)

    # Spark's names, not ours: it calls some of them by keyword.
    # ruff: noqa: N802, N803
    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """Process rows for a bucket, or a greeting."""
        plain = (row for frame in rows for row in frame.itertuples(index=False))
        return self._frames(self.processor.handleInputRows(key, plain, timerValues))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Process a timer of a bucket."""
        return self._frames(self.processor.handleExpiredTimer(key, timerValues, expiredTimerInfo))

    def close(self) -> None:
        """Nothing is open."""
        self.processor.close()

    def _frames(self, rows: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd

        for row in rows:  # one at a time: a row holds all that an output has made
            values = [[row[name] for name in self.columns]]
            yield pd.DataFrame(values, columns=self.columns, dtype=object)


def check_protobuf() -> None:
    """Refuse a protobuf with which Spark's stateful processing does not start.

    What Spark has generated with protobuf runs with that version and the next, not with older ones.
    A warning of protobuf about the next one is Spark's own affair.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("pyspark.sql.streaming.proto.StateMessage_pb2")
    except Exception as error:
        wanted = OLD_PROTOBUF if pyspark.__version__.startswith("4.0.") else PROTOBUF
        msg = (
            f"a stream needs protobuf, which Spark {pyspark.__version__} cannot use as it is here. "
            f'Install one that it can: pip install "{wanted}".'
        )
        raise HostError(msg) from error


def file_manager() -> str:
    """Spark's class that writes checkpoints through a file system whose renames replace files."""
    package = "streaming" if pyspark.__version__.startswith("4.0.") else "streaming.checkpointing"
    return f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"


def state_reader(spark: SparkSession) -> DataFrameReader:
    """A reader of state variables in a checkpoint.

    Spark 4.1 and 4.2 look for the coordinator of state stores while they read, which only the
    manager of streams starts.
    """
    _ = spark.streams.active
    return spark.read.format("statestore")


def offset_of(text: str | None) -> Any:
    """The offset of a source in the progress of a query: JSON, or Python text in older versions.

    >>> offset_of('{"logOffset": 3}'), offset_of("{'logOffset': 3}"), offset_of("None")
    ({'logOffset': 3}, {'logOffset': 3}, None)
    """
    try:
        return json.loads(text or "null")
    except json.JSONDecodeError:  # the text of a Python dict
        return ast.literal_eval(str(text))


def observed_values(row: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    """The observed metrics of a micro-batch by name, from a row, a dict, or what Connect makes.

    Spark Connect has them as JSON: the values in a list, in the order in which they were observed.

    >>> observed_values({"values": [7, None], "schema": []}, ("rows_in", "rows_out"))
    {'rows_in': 7, 'rows_out': None}
    """
    values = row.asDict() if hasattr(row, "asDict") else dict(row)
    if isinstance(listed := values.get("values"), list):
        return dict(zip(names, listed, strict=True))
    return values
