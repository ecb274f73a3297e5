"""Checks before a query starts: of the session, the DataFrames, columns and order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkTypeError
from pyspark.sql.types import (
    DataType,
    DateType,
    NullType,
    NumericType,
    StructType,
    TimestampType,
)

from windowlib.errors import (
    ClockWarning,
    CutWarning,
    HostError,
    LateWarning,
    ModelError,
    OperatorError,
    OrderWarning,
    SchemaError,
    no_such_column,
)
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator
from windowlib.runtime.splitting import under_watermark
from windowlib.spark.plan import types
from windowlib.spark.plan.input_merge import input_orders, order_columns
from windowlib.spark.plan.watermark import (
    TIMESTAMPS,
    check_clock_type,
    event_column,
    event_window,
    marked_columns,
)
from windowlib.spark.versions import arrow_schema
from windowlib.spec.policies import PartitionAge
from windowlib.spec.specification import Spec

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CASE = "spark.sql.caseSensitive"
Keys = list[tuple[str, ...]]


def check_operator(operator: object) -> None:
    """Refuse what is no operator."""
    if not isinstance(operator, Operator):
        raise OperatorError(f"attach({operator!r}): not an operator. Pass an Operator object.")


def buckets(number: int | None) -> int | None:
    """A number of buckets, if one is given."""
    if number is not None and (
        isinstance(number, bool) or not isinstance(number, int) or number < 1
    ):
        raise ModelError(f"attach(buckets={number!r}): not a number of buckets. Use 1 or more.")
    return number


def names(argument: str, given: Any) -> tuple[str, ...]:
    """The names of columns in an argument: one, or several in a sequence; others are refused.

    >>> names("key", "k"), names("order_by", ["ts", "n"])
    (('k',), ('ts', 'n'))
    """
    found = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not found or not all(isinstance(name, str) for name in found):
        msg = (
            f"attach({argument}={given!r}): not the names of columns. Use text, as "
            f'{argument}="ts", or several in a list.'
        )
        raise ModelError(msg)
    return found


def frames(operator: Operator, given: Sequence[Any]) -> None:
    """Refuse anything but one DataFrame for each input, all streams or none."""
    inputs = [port.name for port in operator.model.inputs]
    if len(given) != len(inputs):
        names = ", ".join(inputs)
        msg = (
            f"{operator.name}(...): {len(given)} DataFrames for {len(inputs)} inputs ({names}). "
            f"Pass one for each: op({', '.join(f'{name}_df' for name in inputs)})."
        )
        raise OperatorError(msg)
    if len({frame.isStreaming for frame in given}) > 1:
        still = next(name for name, f in zip(inputs, given, strict=True) if not f.isStreaming)
        msg = (
            f"{operator.name}(...): {still!r} is a static DataFrame, another input is a stream. "
            f"Read both with readStream, or both with read."
        )
        raise HostError(msg)


def column_names(operator: Operator, given: Sequence[Any]) -> None:
    """Refuse columns that Spark cannot tell apart."""
    for port, frame in zip(operator.model.inputs, given, strict=True):
        exact = str(frame.sparkSession.conf.get(CASE, "false")).lower() == "true"
        met: dict[str, str] = {}
        for name in frame.columns:
            folded = name if exact else name.lower()
            if folded not in met:
                met[folded] = name
                continue
            other = met[folded]
            msg = f"{operator.name}(...): {port.name!r} has two columns {name!r}. Rename one."
            if other != name:
                msg = (
                    f"{operator.name}(...): the columns {other!r} and {name!r} of {port.name!r} "
                    f"are one to Spark. Rename one, or set "
                    f'spark.conf.set("{CASE}", True) before.'
                )
            raise SchemaError(msg)


def store_provider(spark: Any) -> None:
    """Refuse a state store that cannot hold window state; platforms have RocksDB of their own."""
    name = ROCKSDB.rpartition(".")[2]
    if not str(spark.conf.get(PROVIDER, "")).endswith(f".{name}"):
        msg = (
            f"Spark is using a state store that cannot hold window state. Before the first query, "
            f'run\n    spark.conf.set("{PROVIDER}",\n                   "{ROCKSDB}")'
        )
        raise HostError(msg)


def watermark(given: object, times: str | None) -> None:
    """Refuse a watermark without a column."""
    if given is not None and times is None:
        msg = (
            f"attach(watermark={given!r}): nothing says which column it follows. Name it, as "
            f'times="ts".'
        )
        raise HostError(msg)


def clock(given: object) -> None:
    """Refuse a clock that is no function."""
    if given is not None and not callable(given):
        msg = (
            f"attach(clock={given!r}): not a function. Use one that gives the time in seconds, "
            f"such as time.time."
        )
        raise ModelError(msg)


def time_column(given: object) -> str | None:
    """The column of `attach(times=...)`, if it names one."""
    if given is None or given is ... or isinstance(given, str):
        return given if isinstance(given, str) else None
    msg = f'attach(times={given!r}): not the name of a column. Use text, as times="ts".'
    raise ModelError(msg)


def times(column: str | None, clock: object, given: Sequence[Any], streaming: bool) -> None:
    """Refuse a second clock on a stream, and a column that an input lacks or that is no time."""
    if column is not None and clock is not None and streaming:
        msg = (
            f"attach(times={column!r}, clock=...): a stream has one clock. Drop `clock=`, or "
            f"`times=`."
        )
        raise HostError(msg)
    _check_there("times", order_columns(column), given)
    if column is not None and not streaming:
        for frame in given:
            check_clock_type(column, frame, (*TIMESTAMPS, DateType, NumericType))


def key(
    operator: Operator, given: tuple[str, ...] | None, sources: Sequence[Any], by_time: bool = False
) -> Keys | None:
    """The columns by which rows are split, for each input; None if one bucket must see all.

    Args:
        operator: the operator.
        given: what `attach` was told.
        sources: a DataFrame for each input.
        by_time: whether rows of other keys do not move the watermark of its windows of event time.
    """
    ports = range(len(operator.model.inputs))
    if given is not None:
        _check_there("key", given, sources)
        return [given for _ in ports]
    found = [
        under_watermark(operator, port) if by_time else operator.splits_by(port) for port in ports
    ]
    known = [columns for columns in found if columns]
    if len(known) < len(found) or len({len(columns) for columns in known}) != 1:
        return None
    return known


def _check_there(
    argument: str, names: Sequence[Any], sources: Sequence[Any], call: str = "attach({})"
) -> None:
    """Refuse columns of an argument that an input lacks."""
    for frame in sources:
        for name in names:
            if name not in frame.columns:
                owner = call.format(f"{argument}={name!r}")
                raise SchemaError(no_such_column(owner, name, frame.columns))


def comparable(
    operator: Operator, key: Keys | None, orders: Sequence[Any], sources: Sequence[Any]
) -> None:
    """Refuse maps as keys or in an order: Spark cannot tell which are equal, nor which is less."""
    for port, frame in enumerate(sources):
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
        read = [("key", name) for name in (key[port] if key else ())]
        read += [("order", name) for name in order_columns(orders[port])]
        for role, name in read:
            if "map<" in kinds.get(name, ""):
                msg = (
                    f"{operator.name}(...): the {role} {name!r} is {kinds[name]}, and Spark does "
                    f"not compare maps. Make an array of it before, as "
                    f"df.withColumn({name!r}, F.array_sort(F.map_entries({name!r})))."
                )
                raise SchemaError(msg)


def same_order(
    operator: Operator, orders: Sequence[Any], times: str | None, sources: Sequence[Any]
) -> None:
    """Refuse inputs that are ordered together by columns whose types do not compare."""
    for columns in zip(*input_orders(orders, times, apart=operator.waits), strict=False):
        pairs = zip(columns, sources, strict=True)
        kinds = [(name, source.schema[name].dataType) for name, source in pairs]
        if len({_compared_as(kind) for _, kind in kinds} - {NullType}) > 1:
            shown = " and ".join(f"{name!r} ({kind.simpleString()})" for name, kind in kinds)
            msg = (
                f"{operator.name}(...): its inputs are put in one order by {shown}, which do not "
                f"compare. Cast one of them before."
            )
            raise SchemaError(msg)


def _compared_as(kind: DataType) -> type[DataType]:
    """One type for all that Spark compares with each other."""
    if isinstance(kind, (DateType, *TIMESTAMPS)):
        return TimestampType
    return NumericType if isinstance(kind, NumericType) else type(kind)


def for_python(operator: Operator, sources: Sequence[Any], timezone: str) -> list[Any]:
    """The Arrow columns of the inputs; what Spark cannot hand over to Python is refused."""
    for frame in sources:
        for field in frame.schema:
            try:
                arrow_schema(StructType([field]), timezone)
            except PySparkTypeError as error:
                msg = (
                    f"{operator.name}(...): Spark has no way to hand the column {field.name!r} "
                    f"({field.dataType.simpleString()}) to Python. Cast it to another type before, "
                    f"or leave it out, as with df.drop({field.name!r})."
                )
                raise SchemaError(msg) from error
    return [arrow_schema(frame.schema, timezone) for frame in sources]


def output(owner: str, port: str, schema: Any) -> StructType:
    """Spark's columns of one output."""
    if schema is None:
        msg = (
            f"{owner}: nothing says the columns of its output {port!r}. Say them: output = "
            f'"symbol string, peak double" in its class, or attach(op, schema="...").'
        )
        raise SchemaError(msg)
    return types.spark_schema(schema, owner)


# -- windows, clocks and orders of operators ------------------------------------------------------


def specs(operator: Operator) -> list[Spec]:
    """All windows of an operator, or of the operators of a graph."""
    if isinstance(operator, Graph):
        return [spec for node in operator.operators.values() for spec in specs(node)]
    return [spec for spec in operator.windows if spec is not None]


def timed(operator: Operator) -> bool:
    """Whether an operator acts when time alone passes."""
    if isinstance(operator, Graph):
        return any(timed(node) for node in operator.operators.values())
    return operator.timed


def aged(operator: Operator) -> bool:
    """Whether an operator depends on the present time."""
    return any(isinstance(spec.forget, PartitionAge) for spec in specs(operator))


def orders(operator: Operator, given: Any = ..., sources: Sequence[Any] = ()) -> tuple[Any, ...]:
    """For each input, the columns that order its rows, or None."""
    if given is ...:
        found = [order_said(operator, port) for port in range(len(operator.model.inputs))]
        stated = tuple(None if order is ... else order for order in found)
        for order, frame in zip(stated, sources, strict=False):
            _check_there("order_by", order_columns(order), [frame], call="{}")
        return stated
    _check_there("order_by", order_columns(given), sources)
    return tuple(given for _ in sources)


def order_said(operator: Operator, port: int) -> Any:
    """The columns that order rows at an input of an operator; `...` if it says nothing."""
    return operator.natural_order(port)


def event_order(
    operator: Operator, orders: Sequence[Any], times: str | None, streaming: bool
) -> str | None:
    """The column of event time that orders a static DataFrame, if nothing else is said to."""
    spec = event_window(operator)
    if streaming or spec is None or times is not None:
        return None
    column = event_column(spec)
    return column if orders[0] in (None, column) else None


def warn_clock(operator: Operator, said: bool, streaming: bool) -> None:
    """Warn of Spark's processing time: a query may never end, or its rows depend on the clock."""
    if said or not streaming or not (timed(operator) or aged(operator)):
        return
    windows = [repr(spec) for spec in specs(operator) if spec.timed]
    windows += [repr(spec) for spec in specs(operator) if isinstance(spec.forget, PartitionAge)]
    shown = windows[0] if windows else operator.name  # which has timers of keys
    endless = "the query does not end with trigger(availableNow=True), and "
    msg = (
        f"{shown} runs on Spark's processing time: {endless if timed(operator) else ''}a backfill "
        f'gives other rows. Say attach(op, times="ts") to run on event time, or times=None to '
        f"accept it."
    )
    warnings.warn(msg, ClockWarning, stacklevel=4)


def warn_order(
    operator: Operator, given: Any, frames: Sequence[Any], by_time: bool = False
) -> None:
    """Warn of rows that nothing puts in order, where it matters.

    Static DataFrames may have an order of their own, which windows take as it is; operators without
    a window that depend on order, such as a `Punctor`, are better told. Where the clock or Spark's
    watermark leads, the order in a micro-batch is irrelevant.

    Args:
        operator: the operator.
        given: what `attach` was told.
        frames: a DataFrame for each input.
        by_time: whether rows are taken by their time.
    """
    if by_time or given is not ...:
        return
    unsaid = [port for port, _ in enumerate(frames) if order_said(operator, port) is ...]
    windows, streaming = specs(operator), frames[0].isStreaming
    if windows and not streaming:
        unsaid = [port for port in unsaid if why_unordered(frames[port])]
    if not unsaid:
        return
    shown = repr(windows[0]) if windows else operator.name
    why = "rows of one batch arrive in shuffle order"
    if not streaming:
        why = why_unordered(frames[unsaid[0]]) or "rows come in any order"
    msg = (
        f"{shown} has no order_by: {why}, so a rerun may "
        f'group them differently. Say attach(op, order_by="ts"), or order_by=None to accept it.'
    )
    warnings.warn(msg, OrderWarning, stacklevel=4)


def warn_cuts(operator: Operator, given: Any, frames: Sequence[Any], by_time: bool) -> None:
    """Warn of streams whose rows meet in an order that no column decides.

    `order_by` orders the rows of a micro-batch, and Spark cuts each stream into micro-batches by
    itself, after a restart differently than it would have done without.

    Args:
        operator: the operator.
        given: what `attach` was told about the order.
        frames: a DataFrame for each input.
        by_time: whether rows are taken by their time.
    """
    if by_time or given is None or operator.waits or len(frames) < 2 or not frames[0].isStreaming:
        return
    if not specs(operator):
        return  # nothing is evicted, so it is irrelevant which input is ahead
    msg = (
        f"{operator.name}: rows of its inputs meet as Spark cuts the streams into micro-batches, "
        f'and a restart may cut them differently. Say attach(op, times="ts", watermark="5s") '
        f"to take them by their time, or order_by=None to accept it."
    )
    warnings.warn(msg, CutWarning, stacklevel=4)


MARK = "EventTimeWatermark"
"""The node of Spark's plans that has a watermark."""
WAITING = ("Aggregate", "TransformWithState")
"""How nodes of Spark's plans begin that may keep rows until the watermark has passed them."""


def check_watermark_chain(operator: Operator, column: str, frames: Sequence[Any]) -> None:
    """Refuse to follow Spark's watermark after an operator that waits for it in the same query.

    The watermark of a query is the least of all that it has. One of rows that come only when it has
    moved would hold it back forever, and no row would come out.

    Args:
        operator: the operator.
        column: whose watermark it follows; it gets one where it has none.
        frames: the streams.
    """
    for frame in frames:
        plan = getattr(frame, "_jdf", None)
        if plan is None:  # a client of another process, which cannot look
            continue
        if _waits_below(plan.queryExecution().analyzed(), column not in marked_columns(frame)):
            msg = (
                f"{operator.name}(df): df comes from an operator that waits for the watermark, and "
                f"a query has one watermark, which would never move. Make one operator of both, as "
                f"first.then(second), or write the rows of the first, and read them in a query of "
                f"their own."
            )
            raise HostError(msg)


def _waits_below(node: Any, above: bool) -> bool:
    """Whether a node waits for a watermark below another one; `above`: whether there is one."""
    above = above or node.nodeName() == MARK
    return (above and _waits(node)) or any(_waits_below(each, above) for each in _children(node))


def _waits(node: Any) -> bool:
    name = node.nodeName()
    if not name.startswith(WAITING) or not _marked(node):
        return False
    return name == "Aggregate" or "EventTime" in node.timeMode().toString()


def _marked(node: Any) -> bool:
    return node.nodeName() == MARK or any(map(_marked, _children(node)))


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(at) for at in range(children.size())]


def warn_late(operator: Operator, frames: Sequence[Any]) -> None:
    """Warn of late rows that a stream drops, if nothing says how long to wait for them.

    In replay the first late row warns. A worker of Spark's would warn where nobody reads it.

    Args:
        operator: the operator.
        frames: a DataFrame for each input.
    """
    if not frames[0].isStreaming or any(map(marked_columns, frames)):
        return
    numbers = {f.name for f in frames[0].schema if isinstance(f.dataType, NumericType)}
    for spec in specs(operator):
        if spec.event_time and spec.watermark is None and spec.late is None:
            wait = "watermark=5" if event_column(spec) in numbers else 'watermark="5s"'
            msg = (
                f"{spec!r} has no watermark: rows that are behind those of earlier micro-batches "
                f'are dropped. Say how long to wait, as {wait}, or late="drop" to accept it.'
            )
            warnings.warn(msg, LateWarning, stacklevel=4)
            return


PASSING = ("Project", "Filter", "SubqueryAlias", "View")
"""Nodes of Spark's plans that keep the order of rows."""
SHUFFLING = ("Aggregate", "Distinct", "Deduplicate", "RepartitionByExpression")
"""Nodes of Spark's plans whose rows come in an order that may differ the next time."""


def why_unordered(frame: Any) -> str:
    """Why the rows of a static DataFrame have no order of their own; empty if they may have one."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:  # a client of another process, which cannot look
        return ""
    node = plan.queryExecution().analyzed()
    while node.nodeName() in PASSING:
        node = node.children().apply(0)
    name = node.nodeName()
    if name in SHUFFLING or (name == "Repartition" and node.shuffle()):
        return "rows come out of a shuffle in any order"
    several = name != "Sort" and len(frame.inputFiles()) > 1
    return "files come in any order" if several else ""
