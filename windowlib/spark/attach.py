"""Operators on Spark: DataFrames in, a DataFrame out.

The plan: Spark picks the columns that the operator needs and computes a bucket from its key;
rows are packed into one blob per bucket; after the shuffle each bucket is one call of Python, in
which the operator takes whole columns; what it makes is unpacked into rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from windowlib.operator import Operator
from windowlib.spark import checks, types
from windowlib.spark.batch import batch_plan
from windowlib.spark.buckets import bucket_column, common_kinds, spread
from windowlib.spark.packing import BUCKET, CHUNK_DDL, Pack, Unpack
from windowlib.spark.processor import METRICS, OUTPUT_DDL, Processor
from windowlib.spark.shipping import ship
from windowlib.spark.unit import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = str | Sequence[str]


def attach(
    operator: Operator,
    *,
    key: Key | None = None,
    buckets: int | None = None,
    port: str | None = None,
    schema: str | StructType | None = None,
    times: str | None = None,
    clock: Callable[[], float] | None = None,
) -> Attached:
    """An operator with what there is to say about its place on Spark.

    `df.transform(op)` is the same as `df.transform(attach(op))`.

    Args:
        operator: any operator or graph.
        key: the columns whose values decide which rows go to the same bucket; what the operator
            itself says unless given. Each bucket then has windows of its own.
        buckets: into how many parts the keys are split; as many as Spark has shuffle partitions
            unless given. It must stay as it is for the life of a checkpoint.
        port: the one output that is wanted, of an operator with several. Otherwise all of them
            come, with a column `_port` that tells them apart.
        schema: the columns of the output, as "symbol string, peak double", if the operator does
            not say them.
        times: the column that says when a row arrives, for static DataFrames; on a stream, that is
            when Spark takes it.
        clock: a function that gives the time in seconds, instead of Spark's clock; for tests.
    """
    return Attached(operator, key, buckets, port, schema, times, clock)


class Attached:
    """An operator that can be called on DataFrames; made by `attach`."""

    def __init__(
        self,
        operator: Operator,
        key: Key | None,
        buckets: int | None,
        port: str | None,
        schema: str | StructType | None,
        times: str | None,
        clock: Callable[[], float] | None,
    ) -> None:
        checks.is_operator(operator)
        self.operator, self.clock, self.times = operator, clock, times
        self.key = (key,) if isinstance(key, str) else None if key is None else tuple(key)
        self.buckets = checks.buckets(buckets)
        self.schema = schema
        self.port = None if port is None else operator.model.output(port, operator.name)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the operator's output."""
        plan = Plan(self, frames)
        checks.warn_order(self.operator, plan.orders, plan.streaming)
        ship(plan.spark)
        if not plan.streaming:
            return batch_plan(plan)
        checks.store_provider(plan.spark)
        return plan.streamed()

    def explain(self, *frames: DataFrame) -> str:
        """How the operator runs on these DataFrames, as text."""
        from windowlib.spark.explain import explain

        return explain(Plan(self, frames))


class Plan:
    """One operator on some DataFrames: all that is decided before anything runs."""

    def __init__(self, attached: Attached, frames: Sequence[DataFrame]) -> None:
        self.attached, self.operator = attached, attached.operator
        checks.frames(self.operator, frames)
        self.spark: Any = frames[0].sparkSession
        self.streaming = frames[0].isStreaming
        self.timezone = str(self.spark.conf.get("spark.sql.session.timeZone"))
        for number, frame in enumerate(frames):
            self.operator.check_columns(frame.columns, number)
        checks.times(attached.times, frames, self.streaming)
        self.orders = checks.orders(self.operator)
        self.key = checks.key(self.operator, attached.key, frames)
        self.frames = [self._projected(frame, at) for at, frame in enumerate(frames)]
        self.partitions = int(str(self.spark.conf.get("spark.sql.shuffle.partitions")))
        self.buckets = self._buckets()
        self.inputs = tuple(types.arrow_of(frame.schema, self.timezone) for frame in self.frames)
        self.nonce = uuid.uuid4().hex
        self._outputs()

    def _projected(self, frame: DataFrame, port: int) -> DataFrame:
        """Only the columns that the operator reads, in the order of the input."""
        needed = self.operator.needs(port)
        if needed is None:
            return frame
        order = self.orders[port]
        wanted: set[Any] = {*needed, *(self.key[port] if self.key else ())}
        wanted |= {*(order if isinstance(order, tuple) else (order,)), self.attached.times}
        names = [name for name in frame.columns if name in wanted] or frame.columns[:1]
        return frame.select([f"`{name}`" for name in names])

    def _buckets(self) -> list[int]:
        wanted = self.attached.buckets or self.partitions
        return spread(wanted if self.key else 1, self.partitions)

    def _outputs(self) -> None:
        """The columns of each output, as the operator makes them, and as Spark gets them."""
        operator, attached = self.operator, self.attached
        owner = type(operator).__name__
        made = list(operator.schemas(*self.inputs))
        if attached.schema is not None:
            made[attached.port or 0] = types.declared(attached.schema, "attach(op, schema=...)")
        ports = range(len(made)) if attached.port is None else [attached.port]
        names = [port.name for port in operator.model.outputs]
        found = {port: checks.output(owner, names[port], made[port]) for port in ports}
        self.ports: list[str | None] = [names[port] if len(found) > 1 else None for port in found]
        self.wanted = list(found)
        structs = list(found.values())
        self.output = structs[0] if len(structs) == 1 else types.together(
            [names[port] for port in ports], structs, owner
        )  # fmt: skip
        self.made = tuple(made)
        self.output_arrow = types.arrow_of(self.output, self.timezone)
        self.outputs = tuple(
            types.arrow_of(found[port], self.timezone) if port in found else None
            for port in range(len(made))
        )

    def job(self) -> Job:
        """What every bucket runs."""
        job = Job(
            operator=self.operator,
            inputs=self.inputs,
            outputs=self.outputs,
            made=self.made,
            orders=self.orders,
            about=self.about(),
            nonce=self.nonce,
            timed=checks.timed(self.operator),
            aged=checks.aged(self.operator),
            times=self.attached.times,
            clock=self.attached.clock,
        )
        assert job.code  # worked out here, once, and sent along
        return job

    def about(self) -> dict[str, str]:
        """Whatever must not change as long as a checkpoint lives."""
        found = self.operator.describe()
        for port, frame in zip(self.operator.model.inputs, self.frames, strict=True):
            columns = [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
            found[f"columns of {port.name}"] = ", ".join(columns)
        found["key"] = "; ".join(", ".join(columns) for columns in self.key or ())
        found["buckets"] = str(len(self.buckets))
        found["spark.sql.shuffle.partitions"] = str(self.partitions)  # the buckets' numbers
        return found

    def kinds(self) -> list[Any]:
        """The types in which the columns of the key are hashed."""
        if not self.key:
            return []
        pairs = zip(self.frames, self.key, strict=True)
        return common_kinds([[frame.schema[name].dataType for name in key] for frame, key in pairs])

    def bucketed(self) -> list[DataFrame]:
        """The inputs, each row with its bucket in front."""
        kinds, keys = self.kinds(), self.key or [()] * len(self.frames)
        return [
            frame.select(bucket_column(key, kinds, self.buckets).alias(BUCKET), "*")
            for frame, key in zip(self.frames, keys, strict=True)
        ]

    def streamed(self) -> DataFrame:
        """The plan for a stream."""
        chunks = None
        for side, frame in enumerate(self.bucketed()):
            packed = frame.mapInArrow(Pack(side, self.buckets, self.nonce), CHUNK_DDL)
            chunks = packed if chunks is None else chunks.union(packed)
        assert chunks is not None  # every operator has an input
        job = self.job()
        mode = "ProcessingTime" if job.timed else "None"
        made = chunks.groupBy(BUCKET).transformWithState(Processor(job), OUTPUT_DDL, "Append", mode)
        name = f"windowlib {self.operator.name} {self.nonce[:8]}"
        made = made.observe(name, *[fn.sum(metric).alias(metric) for metric in METRICS])
        return made.mapInArrow(self.unpack(), self.output)

    def unpack(self) -> Unpack:
        """What turns the outputs of buckets into rows."""
        names: list[str | None] = [None] * len(self.made)
        for port, name in zip(self.wanted, self.ports, strict=True):
            names[port] = name
        return Unpack(names, self.output_arrow)
