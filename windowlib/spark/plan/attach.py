"""`attach`: an operator with options, to be called on DataFrames; `register_view`: for SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windowlib.durations import Duration
from windowlib.errors import HostError, SchemaError
from windowlib.event_time.slack import Slack
from windowlib.event_time.watermark import Watermark, watermark_of
from windowlib.runtime.operator import Operator
from windowlib.spark.bucket.bucket import PARTITIONS
from windowlib.spark.deployment import check_server, is_connect, ship
from windowlib.spark.observe.plan_text import explain_plan
from windowlib.spark.plan import validation
from windowlib.spark.plan.query_plan import TIMEZONE, AttachOptions, QueryPlan, plan_query
from windowlib.spark.plan.spark_windows import aggregated_frame
from windowlib.spark.plan.static import static_frame
from windowlib.spark.plan.streaming import streamed_frame
from windowlib.spark.plan.types import unquoted
from windowlib.spark.versions import check_protobuf
from windowlib.spec.specification import Order

DEFAULTS = {TIMEZONE: "UTC", PARTITIONS: "200"}
"""What Spark does unless told otherwise, for when there is no session."""


def attach(
    operator: Operator,
    *,
    key: str | Sequence[str] | None = None,
    buckets: int | None = None,
    port: str | None = None,
    order_by: Order | Sequence[str] = ...,
    schema: str | StructType | None = None,
    times: str | EllipsisType | None = ...,
    watermark: Watermark | Slack | Duration | None = None,
    clock: Callable[[], float] | None = None,
    numbered: bool = False,
    by_spark: bool = False,
) -> Attached:
    """An operator with options for Spark.

    `df.transform(op)` is the same as `df.transform(attach(op))`.

    Args:
        operator: any operator, graph or farm.
        key: the columns whose values decide which rows go to the same bucket; what the operator
            itself says unless given. Each bucket then has windows of its own.
        buckets: into how many parts the keys are split; as many as Spark has shuffle partitions
            unless given. It stays so for the life of a checkpoint; `rescale_state` moves its state.
        port: the one output that is wanted, of an operator with several. Otherwise all of them
            come, with a column `_port` that tells them apart.
        order_by: the columns that order the rows of a micro-batch, in all inputs; what the windows
            say unless given. None if their order is irrelevant.
        schema: the columns of the output, as "symbol string, peak double", if the operator does
            not say them.
        times: the column with the time of a row, in seconds or as a timestamp, which is the clock
            of time policies and of `PartitionAge`. On a stream the clock is Spark's watermark of
            that column: rows wait until it has passed them, and are taken in the order of time.
            None: rows of a stream arrive when Spark takes them, which is what happens unless given.
        watermark: with `times`, how far the clock of a stream stays behind the greatest time so
            far, as "5s"; that of `df.withWatermark` if the stream has one, otherwise 0.
        clock: a function that gives the time in seconds, instead of Spark's clock; for tests.
        numbered: for farms that give windows away: whether rows get a column `_window`, which
            counts the windows of their key from 0, because tasks end in any order.
        by_spark: let Spark's own aggregation have the windows: tumbling ones of event time with
            counts, sums, means, minima and maxima, which come out the same. No row goes to Python.
            Late rows of a stream are dropped by Spark, which counts them once for each key and
            window of a micro-batch. What cannot be left to it is refused.
    """
    from windowlib.farms.farm import Farm

    validation.check_operator(operator)
    one = operator.operator if isinstance(operator, Farm) else operator
    order: Any = order_by
    if order_by is not ... and order_by is not None and not isinstance(order_by, str):
        order = validation.names("order_by", order_by)
    column = validation.time_column(times)
    validation.clock(clock)
    validation.watermark(watermark, column)
    options = AttachOptions(
        key=None if key is None else validation.names("key", key),
        buckets=validation.buckets(buckets),
        port=None if port is None else one.model.output(port, one.name),
        order_by=order,
        schema=schema,
        times=column,
        watermark=None if watermark is None else watermark_of(watermark, "attach(watermark=...)"),
        on_arrival=times is None,
        clock=clock,
        by_spark=by_spark,
    )
    if by_spark and isinstance(operator, Farm):
        msg = (
            f"attach({operator.name}, by_spark=True): a farm has workers for its windows. Attach "
            f"its operator, or leave by_spark= out."
        )
        raise HostError(msg)
    if numbered or isinstance(operator, Farm):
        from windowlib.spark.farms.farm_plan import AttachedFarm

        return AttachedFarm(operator, options, numbered=numbered)
    return Attached(operator, options)


class Attached:
    """An operator that can be called on DataFrames; made by `attach`."""

    def __init__(self, operator: Operator, options: AttachOptions) -> None:
        self.operator, self.options = operator, options

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The DataFrame of the operator's output."""
        plan = plan_query(self.operator, self.options, frames)
        validation.warn_clock(self.operator, self.options.has_clock, plan.streaming)
        validation.warn_order(self.operator, self.options.order_by, frames, plan.ordered_by_time)
        validation.warn_cuts(self.operator, self.options.order_by, frames, plan.ordered_by_time)
        validation.warn_late(self.operator, frames)
        prepare_session(plan)
        return frame_of(plan)

    def explain(self, *frames: DataFrame) -> str:
        """How the operator runs on these DataFrames, as text."""
        return explain_plan(plan_query(self.operator, self.options, frames))


def prepare_session(plan: QueryPlan) -> None:
    """Refuse a session that cannot run a plan, and send the package where it is needed."""
    if plan.streaming:
        validation.store_provider(plan.spark)
        check_server(plan.spark)
        if not is_connect(plan.spark):
            check_protobuf()
    ship(plan.spark)


def frame_of(plan: QueryPlan) -> DataFrame:
    """The DataFrame of a plan's output."""
    if plan.options.by_spark:
        return aggregated_frame(plan)
    return streamed_frame(plan) if plan.streaming else static_frame(plan)


def explain_on(operator: Operator, given: Sequence[Any]) -> str:
    """How an operator runs on DataFrames, or on streams with these schemas."""
    if all(hasattr(frame, "isStreaming") for frame in given):
        return attach(operator).explain(*given)
    return attach(operator).explain(*(PlannedStream(_schema_of(each)) for each in given))  # type: ignore[arg-type]


def _schema_of(given: Any) -> StructType:
    found = getattr(given, "schema", given)
    if not isinstance(found, StructType):
        msg = (
            f"explain({type(given).__name__}): not columns of Spark's. Pass a DataFrame or its "
            f"schema for each input."
        )
        raise SchemaError(msg)
    return found


class PlannedStream:
    """The columns of a stream that does not exist yet, with what a plan reads of a DataFrame."""

    isStreaming = True  # noqa: N815 - Spark's name

    def __init__(self, schema: StructType) -> None:
        self.schema, self.columns = schema, schema.names
        self.sparkSession: Any = SparkSession.getActiveSession() or self
        self.conf = DEFAULTS

    def select(self, names: Sequence[str]) -> PlannedStream:
        """Some of the columns, by their names in backticks."""
        return PlannedStream(StructType([self.schema[unquoted(name)] for name in names]))


def register_view(
    spark: SparkSession, name: str, operator: Operator | Attached, *sources: DataFrame | str
) -> DataFrame:
    """Let SQL select from what an operator makes of tables, views or DataFrames.

    The view is a stream if the sources are, so that a query over it is written with `writeStream`.
    It replaces a temporary view of the same name.

    Args:
        spark: the session in which the view is known.
        name: of the view.
        operator: any operator, or `attach(operator, ...)` with options.
        sources: a DataFrame, or the name of a table or view, for each input.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib.spark import session
    >>> spark = session("local[2]")
    >>> spark.range(6).createOrReplaceTempView("numbers")
    >>> pairs = Aggregate(Tumbling(Count(2), order_by="id"), total=agg.sum("id"))
    >>> view = register_view(spark, "pairs", pairs, "numbers")
    >>> [row.total for row in spark.sql("SELECT total FROM pairs WHERE total > 1").collect()]
    [5, 9]
    """
    if not isinstance(name, str) or not name:
        raise HostError(f"register_view(name={name!r}): not a name. Use text, such as 'vwap'.")
    for source in sources:
        if not isinstance(source, str) and not hasattr(source, "isStreaming"):
            msg = (
                f"register_view({name!r}): the source {source!r} is neither a DataFrame nor the "
                f"name of a table. Pass one of them for each input."
            )
            raise HostError(msg)
    frames = [spark.table(each) if isinstance(each, str) else each for each in sources]
    attached = operator if isinstance(operator, Attached) else attach(operator)
    made = attached(*frames)
    made.createOrReplaceTempView(name)
    return made
