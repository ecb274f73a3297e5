"""The plan of a query: one operator on some DataFrames, decided before anything runs.

A plan is a value. `plan_query` makes it from DataFrames and the options of `attach`; the stages of
a farm and a stream that ends are other plans, made of it by `with_output`, `numbered`,
`over_partials`, `for_each_worker` and `ending_with`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

import windowlib
from windowlib.event_time.watermark import Watermark
from windowlib.runtime.operator import Operator
from windowlib.spark.bucket.bucket import PARTITIONS, BucketSpec
from windowlib.spark.plan import types, validation
from windowlib.spark.plan.input_merge import order_columns
from windowlib.spark.plan.output_rows import OutputArrays, Unpack
from windowlib.spark.plan.shuffle import (
    BUCKET,
    BucketNumbers,
    bucket_column,
    common_types,
    hash_column,
)
from windowlib.spark.plan.types import quoted
from windowlib.spark.plan.watermark import StreamWatermark, clock_watermark, stream_watermark
from windowlib.spark.versions import arrow_schema
from windowlib.spec.specification import Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMEZONE = "spark.sql.session.timeZone"
WINDOW = "_window"
"""The column that says which window of its key a row comes from, counted from 0."""


@dataclass(frozen=True)
class AttachOptions:
    """The options of `attach`."""

    key: tuple[str, ...] | None = None
    buckets: int | None = None
    port: int | None = None
    """The index of the one output that is wanted; None: all of them."""
    order_by: Order = ...
    schema: str | StructType | None = None
    times: str | None = None
    """The column with the time of a row, which moves the clock."""
    watermark: Watermark | None = None
    """How far the clock of a stream stays behind the greatest time."""
    on_arrival: bool = False
    """Whether rows of a stream arrive when Spark takes them, by `times=None`."""
    clock: Callable[[], float] | None = None
    by_spark: bool = False
    """Whether Spark's own aggregation has the windows."""

    @property
    def has_clock(self) -> bool:
        """Whether an option sets the clock of the operator."""
        return self.on_arrival or self.times is not None or self.clock is not None


@dataclass(frozen=True)
class QueryOutput:
    """The columns of each output, as the operator makes them and as Spark gets them."""

    struct: StructType
    """The columns of the DataFrame."""
    arrow: pa.Schema
    """The same for Arrow."""
    ports: tuple[str | None, ...]
    """The value of `_port` for rows of each output; None if there is no such column."""
    operator_schemas: tuple[pa.Schema | None, ...]
    """The columns of each output as the operator makes them."""
    spark_schemas: tuple[pa.Schema | None, ...]
    """The columns of each output as Spark gets them; None if the query does not use it."""


@dataclass(frozen=True)
class QueryPlan:
    """One operator on some DataFrames."""

    operator: Operator
    options: AttachOptions
    spark: Any
    streaming: bool
    timezone: str
    partitions: int
    """The shuffle partitions of the session."""
    frames: tuple[DataFrame, ...]
    """For each input, only the columns that the operator reads."""
    inputs: tuple[pa.Schema, ...]
    key: validation.Keys | None
    orders: tuple[Any, ...]
    times: str | None
    """The column with the time of a row, which moves the clock."""
    numbers: BucketNumbers
    """How the buckets are numbered."""
    output: QueryOutput
    fingerprint: Mapping[str, str]
    """The description that must not change during the life of a checkpoint."""
    nonce: str
    """Distinguishes the plan from all others, even equal ones."""
    watermark: StreamWatermark | None = None
    """Spark's watermark, if the windows of a stream follow it, or its clock."""
    copied: bool = False
    """Whether the last column of the key numbers copies of each row, which go to other buckets."""
    bounded: bool = False
    """Whether rows carry the times of the first and the last row of all."""
    ends: Path | None = None
    """The folder whose file says that the stream has ended."""

    @property
    def name(self) -> str:
        """The name of the query's metrics in Spark."""
        return f"windowlib {self.operator.name} {self.nonce[:8]}"

    @property
    def holds(self) -> bool:
        """Whether rows of a stream wait for the clock of event time."""
        return self.streaming and self.times is not None

    @property
    def ordered_by_time(self) -> bool:
        """Whether rows are taken by their time, so that their order is irrelevant otherwise."""
        return self.watermark is not None or self.times is not None

    def bucket_spec(self) -> BucketSpec:
        """The specification that every bucket runs."""
        return BucketSpec(
            operator=self.operator,
            inputs=self.inputs,
            outputs=self.output.spark_schemas,
            made=self.output.operator_schemas,
            orders=self.orders,
            fingerprint=self.fingerprint,
            nonce=self.nonce,
            timed=validation.timed(self.operator),
            aged=validation.aged(self.operator),
            times=self.times,
            clock=self.options.clock,
            follows=0 if self.watermark is None else self.watermark.unit,
            holds=self.holds,
            description=description(self.operator, self.orders) | self._hash_description(),
            numbers=self.numbers,
        )

    def _hashed_types(self) -> list[Any]:
        """The types in which the columns of the key are hashed."""
        pairs = zip(self.frames, self.key or (), strict=bool(self.key))
        return common_types([[frame.schema[n].dataType for n in key] for frame, key in pairs])

    def _hash_description(self) -> dict[str, Any]:
        """The columns and types whose hash chooses the bucket of a key."""
        kinds = [DoubleType() if kind == "double" else kind for kind in self._hashed_types()]
        types = StructType([StructField(str(n), kind) for n, kind in enumerate(kinds)])
        return {"key": self.key or [], "hashed": types.jsonValue()}

    @property
    def buckets(self) -> tuple[int, ...]:
        """The numbers of the buckets, unless a checkpoint has others."""
        return self.numbers.here()

    def bucketed(self) -> list[DataFrame]:
        """The inputs, each row with its bucket in front, or in a stream the hash of its key.

        The columns of a stream have numbers for names: PySpark passes not all names to Python.
        """
        keys = self.key or [()] * len(self.frames)
        pairs = list(zip(self.frames, keys, strict=True))
        hashed = self._hashed_types()
        marked = self.watermark
        if marked is not None:
            pairs = [(marked.with_watermark(frame), key) for frame, key in pairs]
        found = []
        for read, (frame, key) in zip(self.frames, pairs, strict=True):
            *parts, copy = (*key, "") if not self.copied else key
            first = hash_column([fn.col(quoted(name)) for name in parts], hashed[: len(parts)])
            if self.copied:  # of one key, no two meet while there are buckets that have none
                first = first.bitwiseXOR(fn.col(quoted(copy)).cast("long"))
            own = [fn.col(quoted(name)) for name in read.columns]
            if self.streaming:
                own = [column.alias(str(number)) for number, column in enumerate(own)]
            else:
                first = bucket_column(first, self.buckets)
            name = types.free_name(BUCKET, read.columns)
            found.append(frame.select(first.alias(name), *own))
        return found

    def unpack(self) -> Unpack:
        """A function that turns the outputs of buckets into rows."""
        return Unpack(self.output.ports, self.output.arrow)

    def arrays(self) -> OutputArrays | None:
        """Turns the only output of buckets into arrays; None if that needs `unpack`."""
        alone = sum(sent is not None for sent in self.output.spark_schemas) == 1
        plain = alone and OutputArrays.fit(self.output.struct)
        return OutputArrays(self.output.struct) if plain else None


def plan_query(
    operator: Operator, options: AttachOptions, frames: Sequence[DataFrame]
) -> QueryPlan:
    """The plan of an operator on DataFrames; what does not fit is refused."""
    validation.frames(operator, frames)
    validation.column_names(operator, frames)
    spark: Any = frames[0].sparkSession
    streaming, timezone = frames[0].isStreaming, str(spark.conf.get(TIMEZONE))
    for number, frame in enumerate(frames):
        operator.check_columns(frame.columns, number)
    validation.times(options.times, options.clock, frames, streaming)
    watermark = _query_watermark(operator, options, frames) if streaming else None
    orders = validation.orders(operator, options.order_by, frames)
    by_event_time = validation.event_order(operator, orders, options.times, streaming)
    orders = orders if by_event_time is None else (by_event_time,)
    by_time = by_event_time is not None or (watermark is not None and options.times is None)
    key = validation.key(operator, options.key, frames, by_time)
    read = tuple(
        _projected(operator, frame, port, (*order_columns(orders[port]), options.times), key)
        for port, frame in enumerate(frames)
    )
    partitions = shuffle_partitions(spark)
    numbers = BucketNumbers(partitions, options.buckets if key else 1)
    inputs = tuple(validation.for_python(operator, read, timezone))
    for number, schema in enumerate(inputs):
        operator.check_types(schema, number)
    validation.comparable(operator, key, orders, read)
    validation.same_order(operator, orders, options.times, read)
    return QueryPlan(
        operator=operator,
        options=options,
        spark=spark,
        streaming=streaming,
        timezone=timezone,
        partitions=partitions,
        frames=read,
        inputs=inputs,
        key=key,
        orders=orders,
        times=options.times,
        numbers=numbers,
        output=_output_columns(operator, options, inputs, timezone),
        fingerprint=_fingerprint(operator, read, key)
        | _clock_fingerprint(watermark, options.times if streaming else None),
        nonce=uuid.uuid4().hex,
        watermark=watermark,
    )


def _query_watermark(
    operator: Operator, options: AttachOptions, frames: Sequence[DataFrame]
) -> StreamWatermark | None:
    """The watermark of Spark's that is the clock of streams, or that windows follow, if any."""
    if options.times is not None:
        found: StreamWatermark | None = clock_watermark(
            operator, options.times, options.watermark, frames
        )
    else:
        found = stream_watermark(operator, frames[0])
    if found is not None:
        validation.check_watermark_chain(operator, found.column, frames)
    return found


def _clock_fingerprint(watermark: StreamWatermark | None, times: str | None) -> dict[str, str]:
    """The part of the fingerprint that describes the clock of a stream."""
    found = {} if watermark is None else {"watermark": "Spark's"}
    return found if times is None else {**found, "times": times}


def shuffle_partitions(spark: Any) -> int:
    """The number of shuffle partitions of a session."""
    return int(str(spark.conf.get(PARTITIONS)))


def _projected(
    operator: Operator,
    frame: DataFrame,
    port: int,
    columns: Sequence[Any],
    key: validation.Keys | None,
) -> DataFrame:
    """Only the columns that the operator and these arguments read, in the order of the input."""
    needed = operator.needs(port)
    if needed is None:
        return frame
    wanted: set[Any] = {*needed, *columns, *(key[port] if key else ())}
    names = [name for name in frame.columns if name in wanted] or frame.columns[:1]
    return frame.select([quoted(name) for name in names])


def _output_columns(
    operator: Operator, options: AttachOptions, inputs: Sequence[pa.Schema], timezone: str
) -> QueryOutput:
    owner = type(operator).__name__
    made = list(operator.schemas(*inputs))
    if options.schema is not None:
        made[options.port or 0] = types.declared_schema(options.schema, "attach(op, schema=...)")
    wanted = range(len(made)) if options.port is None else [options.port]
    names = [port.name for port in operator.model.outputs]
    structs = {port: validation.output(owner, names[port], made[port]) for port in wanted}
    several = len(structs) > 1
    struct = next(iter(structs.values()))
    if several:
        outputs = {names[port]: own for port, own in structs.items()}
        struct = types.combined_outputs(outputs, owner)
    return QueryOutput(
        struct=struct,
        arrow=arrow_schema(struct, timezone),
        ports=tuple(name if several and n in structs else None for n, name in enumerate(names)),
        operator_schemas=tuple(made),
        spark_schemas=tuple(
            arrow_schema(structs[port], timezone) if port in structs else None
            for port in range(len(made))
        ),
    )


def _fingerprint(
    operator: Operator,
    frames: Sequence[DataFrame],
    key: validation.Keys | None,
) -> dict[str, str]:
    found = operator.describe()
    for port, frame in zip(operator.model.inputs, frames, strict=True):
        columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
        found[f"columns of {port.name}"] = ", ".join(columns)
    found["key"] = "; ".join(", ".join(columns) for columns in key or ())
    return found


def description(operator: Operator, orders: Sequence[Any]) -> dict[str, Any]:
    """A description of the query for readers of its state, as plain data."""
    kind = type(operator)
    return {
        "windowlib": windowlib.__version__,
        "operator": f"{kind.__module__}.{kind.__qualname__}",
        "name": operator.name,
        "text": repr(operator),
        "inputs": [port.name for port in operator.model.inputs],
        "windows": [None if spec is None else str(spec) for spec in operator.windows],
        "outputs": [port.name for port in operator.model.outputs],
        "order": [order_columns(each) for each in orders],
    }


def ending_with(plan: QueryPlan, folder: Path) -> QueryPlan:
    """The plan of a stream that ends when `end_stream` is called on it.

    Args:
        plan: the plan of the stream.
        folder: an empty folder that all workers can read.
    """
    return replace(plan, ends=folder)


def numbered(plan: QueryPlan) -> QueryPlan:
    """A plan whose rows have the number of their window."""
    field, output = pa.field(WINDOW, pa.int64()), plan.output
    struct = StructType([*output.struct.fields, StructField(WINDOW, LongType(), True)])
    columns = QueryOutput(
        struct=struct,
        arrow=arrow_schema(struct, plan.timezone),
        ports=output.ports,
        operator_schemas=tuple(
            None if each is None else each.append(field) for each in output.operator_schemas
        ),
        spark_schemas=tuple(
            None if each is None else each.append(field) for each in output.spark_schemas
        ),
    )
    return replace(plan, output=columns)


def with_output(plan: QueryPlan, operator: Operator, struct: StructType, farm: str) -> QueryPlan:
    """The stage of a farm that takes the rows of a plan, and makes other ones of them.

    Args:
        plan: the plan of the farm's operator.
        operator: what the stage runs.
        struct: the columns of its first output; the others are not used.
        farm: which farm it is: a checkpoint of another farm has other state.
    """
    arrow = arrow_schema(struct, plan.timezone)
    unused = (None,) * (len(operator.model.outputs) - 1)
    columns = QueryOutput(struct, arrow, (None, *unused), (arrow, *unused), (arrow, *unused))
    return replace(_stage(plan, operator, plan.frames[0], farm), output=columns)


def over_partials(
    plan: QueryPlan, operator: Operator, partials: DataFrame, farm: str, times: str | None
) -> QueryPlan:
    """The stage of a farm that takes partials of slices, and makes the rows of a plan of them.

    Args:
        plan: the plan of the farm's operator.
        operator: what the stage runs.
        partials: a row for each key and slice, in any order.
        farm: which farm it is: a checkpoint of another farm has other state.
        times: the column that says when a slice begins; rows then carry their bounds.
    """
    stage = _stage(plan, operator, partials, farm)
    return replace(stage, orders=(None,), times=times, bounded=times is not None)


def for_each_worker(
    plan: QueryPlan, operator: Operator, farm: str, column: str, workers: int, buckets: int
) -> QueryPlan:
    """The stage of a farm that gives every worker a copy of each row.

    Args:
        plan: the plan of the farm's operator.
        operator: what each worker runs.
        farm: which farm it is: a checkpoint of another farm has other state.
        column: says whose copy a row is.
        workers: how many there are.
        buckets: into how many parts keys and workers are split at least.
    """
    numbers = fn.explode(fn.sequence(fn.lit(0), fn.lit(workers - 1)))
    copies = plan.frames[0].select("*", numbers.alias(column))
    stage = _stage(plan, operator, copies, f"{farm}, {workers} active workers in turn")
    return replace(
        stage,
        key=[(*(plan.key or [()])[0], column)],
        copied=True,
        numbers=BucketNumbers(plan.partitions, plan.options.buckets, buckets),
    )


def _stage(plan: QueryPlan, operator: Operator, frame: DataFrame, farm: str) -> QueryPlan:
    return replace(
        plan,
        operator=operator,
        frames=(frame,),
        inputs=(arrow_schema(frame.schema, plan.timezone),),
        fingerprint={**plan.fingerprint, "farm": farm},
        nonce=uuid.uuid4().hex,
    )
