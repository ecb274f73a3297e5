"""The column types of Spark and Arrow, and the schema of an operator's rows as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StringType, StructField, StructType

from windowlib.errors import SchemaError
from windowlib.runtime.schema_text import schema_of
from windowlib.spark.versions import arrow_schema, spark_type

PORT = "_port"
"""The column that says which output a row comes from, where there are several."""
PORTS = "windowlib.ports"
"""The metadata of that column that has the columns of each output."""

WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.timestamp("us"),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
"""Types that Spark does not have, with those that hold the same values."""


def spark_schema(schema: pa.Schema, owner: str) -> StructType:
    """Spark's columns for rows of an operator, all nullable.

    >>> import pyarrow as pa
    >>> spark_schema(pa.schema({"n": pa.uint8()}), "Aggregate").simpleString()
    'struct<n:smallint>'
    """
    return StructType([_field(field, owner) for field in schema])


def _field(field: pa.Field, owner: str) -> StructField:
    if pa.types.is_null(field.type):
        msg = (
            f"{owner}: only the values tell the type of the output column {field.name!r}. Say it: "
            f'attach(op, schema="{field.name} double, ..."), or output = "..." in the operator\'s '
            f"class."
        )
        raise SchemaError(msg)
    try:
        return StructField(field.name, spark_type(spark_like(field.type)), True)
    except Exception as error:
        msg = (
            f"{owner}: Spark has no type for the output column {field.name!r} ({field.type}). "
            f"Compute a column of another type."
        )
        raise SchemaError(msg) from error


def spark_like(kind: pa.DataType) -> pa.DataType:
    """The Arrow type that Spark uses for such values."""
    if kind in WIDER:
        return WIDER[kind]
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return spark_like(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time32(kind) or pa.types.is_time64(kind):
        return pa.time64("ns")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(spark_like(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, spark_like(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(spark_like(kind.key_type), spark_like(kind.item_type))
    return kind


def is_collated(kind: DataType) -> bool:
    """Whether Spark compares texts by rules of their own, so that different ones may be equal."""
    return isinstance(kind, StringType) and kind != StringType()


def declared_schema(schema: str | StructType, argument: str) -> pa.Schema:
    """An output schema that the user wrote."""
    if isinstance(schema, StructType):
        return arrow_schema(schema, "UTC")
    return schema_of(schema, argument)


def combined_outputs(outputs: Mapping[str, StructType], owner: str) -> StructType:
    """The columns of all outputs in one DataFrame, and the one that tells them apart."""
    columns = {name: schema.names for name, schema in outputs.items()}
    said = {PORTS: json.dumps(columns)}
    fields: dict[str, StructField] = {PORT: StructField(PORT, StringType(), True, said)}
    for name, schema in outputs.items():
        for field in schema:
            known = fields.setdefault(field.name, field)
            if known.dataType != field.dataType:
                msg = (
                    f"{owner}: the output {name!r} has the column {field.name!r} as "
                    f"{field.dataType.simpleString()}, another output as "
                    f"{known.dataType.simpleString()}, and one DataFrame cannot hold both. Attach "
                    f"one output at a time: attach(op, port={name!r})."
                )
                raise SchemaError(msg)
    return StructType(list(fields.values()))


def fitted(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with exactly these columns; what it lacks is null."""
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(_cast(batch.column(at), field))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: Any, field: pa.Field) -> Any:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0].rstrip(".")
        msg = (
            f"the output column {field.name!r} was announced as {field.type}, and a value does not "
            f'fit ({reason}). Say a wider type: attach(op, schema="{field.name} ...").'
        )
        raise SchemaError(msg) from error


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever is in it.

    >>> quoted("a.b"), quoted("odd `name`")
    ('`a.b`', '`odd ``name```')
    """
    return f"`{name.replace('`', '``')}`"


def unquoted(name: str) -> str:
    """The name in a result of `quoted`."""
    return name[1:-1].replace("``", "`")


def free_name(wanted: str, columns: Iterable[str]) -> str:
    """A name that no column has, whatever its case.

    >>> free_name("_bucket", ["x", "_Bucket"])
    '_bucket_'
    """
    taken = {name.lower() for name in columns}
    while wanted.lower() in taken:
        wanted += "_"
    return wanted
