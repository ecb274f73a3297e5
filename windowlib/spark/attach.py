"""Operators on Spark: DataFrames in, a DataFrame out.

The plan: Spark picks the columns that the operator needs and computes a bucket from its key;
rows are packed into one blob per bucket; after the shuffle each bucket is one call of Python, in
which the operator takes whole columns; what it makes is unpacked into rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from windowlib.operator import Operator
from windowlib.spark import checks, types
from windowlib.spark.batch import batch_plan, bounds
from windowlib.spark.buckets import bucket_column, common_kinds, spread
from windowlib.spark.merging import columns_in
from windowlib.spark.packing import BUCKET, CHUNK_DDL, Pack, Unpack
from windowlib.spark.processor import METRICS, OUTPUT_DDL, Processor
from windowlib.spark.shipping import check_server, ship
from windowlib.spark.unit import Job, dumped
from windowlib.spec import Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = str | Sequence[str]


def attach(
    operator: Operator,
    *,
    key: Key | None = None,
    buckets: int | None = None,
    port: str | None = None,
    order_by: Order | Sequence[str] = ...,
    schema: str | StructType | None = None,
    times: str | None = None,
    clock: Callable[[], float] | None = None,
    numbered: bool = False,
) -> Attached:
    """An operator with what there is to say about its place on Spark.

    `df.transform(op)` is the same as `df.transform(attach(op))`.

    Args:
        operator: any operator, graph or farm.
        key: the columns whose values decide which rows go to the same bucket; what the operator
            itself says unless given. Each bucket then has windows of its own.
        buckets: into how many parts the keys are split; as many as Spark has shuffle partitions
            unless given. It must stay as it is for the life of a checkpoint.
        port: the one output that is wanted, of an operator with several. Otherwise all of them
            come, with a column `_port` that tells them apart.
        order_by: the columns that order the rows of a micro-batch, in all inputs; what the windows
            say unless given. None if their order is of no matter.
        schema: the columns of the output, as "symbol string, peak double", if the operator does
            not say them.
        times: the column that says when a row arrives, for static DataFrames; on a stream, that is
            when Spark takes it.
        clock: a function that gives the time in seconds, instead of Spark's clock; for tests.
        numbered: for farms that give windows away: whether rows get a column `_window`, which
            counts the windows of their key from 0, because tasks end in any order.
    """
    from windowlib.farms.farm import Farm

    given = (key, buckets, port, order_by, schema, times, clock)
    if numbered or isinstance(operator, Farm):
        from windowlib.spark.farms import AttachedFarm

        return AttachedFarm(operator, *given, numbered=numbered)
    return Attached(operator, *given)


class Attached:
    """An operator that can be called on DataFrames; made by `attach`."""

    def __init__(
        self,
        operator: Operator,
        key: Key | None,
        buckets: int | None,
        port: str | None,
        order_by: Order | Sequence[str],
        schema: str | StructType | None,
        times: str | None,
        clock: Callable[[], float] | None,
    ) -> None:
        checks.is_operator(operator)
        self.operator, self.clock, self.times = operator, clock, times
        self.key = (key,) if isinstance(key, str) else None if key is None else tuple(key)
        self.buckets = checks.buckets(buckets)
        self.schema = schema
        self.order_by = tuple(order_by) if isinstance(order_by, list) else order_by
        self.port = None if port is None else operator.model.output(port, operator.name)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the operator's output."""
        plan = Plan(self, frames)
        checks.warn_order(self.operator, self.order_by, plan.streaming)
        plan.prepare()
        return plan.frame()

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
        self.orders = checks.orders(self.operator, attached.order_by, frames)
        self.key = checks.key(self.operator, attached.key, frames)
        self.frames = [self._projected(frame, at) for at, frame in enumerate(frames)]
        self.partitions = int(str(self.spark.conf.get("spark.sql.shuffle.partitions")))
        self.buckets = self._buckets()
        self.inputs = tuple(types.arrow_of(frame.schema, self.timezone) for frame in self.frames)
        for number, schema in enumerate(self.inputs):
            self.operator.check_types(schema, number)
        self.nonce = uuid.uuid4().hex
        self._outputs()

    def _projected(self, frame: DataFrame, port: int) -> DataFrame:
        """Only the columns that the operator reads, in the order of the input."""
        needed = self.operator.needs(port)
        if needed is None:
            return frame
        wanted: set[Any] = {*needed, *columns_in(self.orders[port]), self.attached.times}
        wanted |= {*(self.key[port] if self.key else ())}
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
        structs = list(found.values())
        self.output = structs[0] if len(structs) == 1 else types.together(
            [names[port] for port in ports], structs, owner
        )  # fmt: skip
        several = len(found) > 1
        # What rows of each output are called in `_port`; None if they are not told apart.
        self.ports = [name if several and n in found else None for n, name in enumerate(names)]
        self.made = tuple(made)
        self.output_arrow = types.arrow_of(self.output, self.timezone)
        self.outputs = tuple(
            types.arrow_of(found[port], self.timezone) if port in found else None
            for port in range(len(made))
        )

    def prepare(self) -> None:
        """Refuse a session that cannot run it, and send the package where it is needed."""
        if self.streaming:
            checks.store_provider(self.spark)
            check_server(self.spark)
        ship(self.spark)

    def frame(self) -> DataFrame:
        """The DataFrame of the output."""
        return self.streamed() if self.streaming else batch_plan(self)

    def job(self) -> Job:
        """What every bucket runs."""
        return Job(
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

    def chunks(self) -> DataFrame:
        """What goes to the buckets of a stream: the rows of all inputs, packed."""
        chunks = None
        for side, frame in enumerate(self.bucketed()):
            packed = frame.mapInArrow(Pack(side, self.buckets, self.nonce), CHUNK_DDL)
            chunks = packed if chunks is None else chunks.union(packed)
        assert chunks is not None  # every operator has an input
        return chunks

    def streamed(self) -> DataFrame:
        """The plan for a stream."""
        job = replace(self.job(), code=dumped(self.operator))
        mode = "ProcessingTime" if job.timed else "None"
        chunks = self.chunks().groupBy(BUCKET)
        made = chunks.transformWithState(Processor(job), OUTPUT_DDL, "Append", mode)
        name = f"windowlib {self.operator.name} {self.nonce[:8]}"
        made = made.observe(name, *[fn.sum(metric).alias(metric) for metric in METRICS])
        return made.mapInArrow(self.unpack(), self.output)

    def bounded(self, rows: DataFrame) -> DataFrame:
        """Rows of all inputs, with when the first row of all arrives, and the last."""
        assert self.attached.times is not None
        return rows.crossJoin(fn.broadcast(bounds(self.frames, self.attached.times)))

    def unpack(self) -> Unpack:
        """What turns the outputs of buckets into rows."""
        return Unpack(self.ports, self.output_arrow)
