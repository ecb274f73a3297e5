"""What is checked before a query starts: the session, the DataFrames, columns and order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import NumericType, StructType

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
from windowlib.spark.plan.input_merge import order_columns
from windowlib.spark.plan.watermark import event_column, event_window, marked_columns
from windowlib.spec.policies import PartitionAge
from windowlib.spec.specification import Spec

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CASE = "spark.sql.caseSensitive"
Keys = list[tuple[str, ...]]


def is_operator(operator: object) -> None:
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
    """Refuse a watermark that nothing follows."""
    if given is not None and times is None:
        msg = (
            f"attach(watermark={given!r}): nothing says which column it follows. Name it, as "
            f'times="ts".'
        )
        raise HostError(msg)


def times(column: str | None, clock: object, given: Sequence[Any], streaming: bool) -> None:
    """Refuse a second clock on a stream, or a column that an input lacks."""
    if column is not None and clock is not None and streaming:
        msg = (
            f"attach(times={column!r}, clock=...): a stream has one clock. Drop `clock=`, or "
            f"`times=`."
        )
        raise HostError(msg)
    _there("times", order_columns(column), given)


def key(
    operator: Operator, given: tuple[str, ...] | None, sources: Sequence[Any], led: bool = False
) -> Keys | None:
    """The columns by which rows are split, for each input; None if one bucket must see all.

    Args:
        operator: the operator.
        given: what `attach` was told.
        sources: a DataFrame for each input.
        led: whether rows of other keys do not move the watermark of its windows of event time.
    """
    ports = range(len(operator.model.inputs))
    if given is not None:
        _there("key", given, sources)
        return [given for _ in ports]
    found = [under_watermark(operator, port) if led else operator.splits_by(port) for port in ports]
    known = [columns for columns in found if columns]
    if len(known) < len(found) or len({len(columns) for columns in known}) != 1:
        return None
    return known


def _there(argument: str, names: Sequence[Any], sources: Sequence[Any]) -> None:
    """Refuse columns of an argument that an input lacks."""
    for frame in sources:
        for name in names:
            if name not in frame.columns:
                owner = f"attach({argument}={name!r})"
                raise SchemaError(no_such_column(owner, name, frame.columns))


def output(owner: str, port: str, schema: Any) -> StructType:
    """Spark's columns of one output."""
    if schema is None:
        msg = (
            f"{owner}: nothing says the columns of its output {port!r}. Say them: output = "
            f'"symbol string, peak double" in its class, or attach(op, schema="...").'
        )
        raise SchemaError(msg)
    return types.spark_of(schema, owner)


# -- what operators are made of -------------------------------------------------------------------


def specs(operator: Operator) -> list[Spec]:
    """All windows of an operator, or of the operators of a graph."""
    if isinstance(operator, Graph):
        return [spec for node in operator.operators.values() for spec in specs(node)]
    return [spec for spec in operator.windows if spec is not None]


def timed(operator: Operator) -> bool:
    """Whether time alone makes something happen in it."""
    if isinstance(operator, Graph):
        return any(timed(node) for node in operator.operators.values())
    return operator.timed


def aged(operator: Operator) -> bool:
    """Whether it asks what time it is."""
    return any(isinstance(spec.forget, PartitionAge) for spec in specs(operator))


def orders(operator: Operator, given: Any = ..., sources: Sequence[Any] = ()) -> tuple[Any, ...]:
    """For each input, the columns that order its rows, or None."""
    if given is ...:
        found = [order_said(operator, port) for port in range(len(operator.model.inputs))]
        return tuple(None if order is ... else order for order in found)
    _there("order_by", order_columns(given), sources)
    return tuple(given for _ in sources)


def order_said(operator: Operator, port: int) -> Any:
    """What an operator says about the order of rows at an input; `...` if it says nothing."""
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
    """Warn of what a clock does that never stops: a query goes on for ever, or depends on it."""
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


def warn_order(operator: Operator, given: Any, frames: Sequence[Any], led: bool = False) -> None:
    """Warn of rows that nothing puts in order, where it matters.

    Static DataFrames may have an order of their own, which windows take as it is; operators without
    a window that depend on order, such as a `Punctor`, are better told. Where the clock or Spark's
    watermark leads, the order in a micro-batch is irrelevant.

    Args:
        operator: the operator.
        given: what `attach` was told.
        frames: a DataFrame for each input.
        led: whether rows are taken by their time.
    """
    if led or given is not ...:
        return
    unsaid = [port for port, _ in enumerate(frames) if order_said(operator, port) is ...]
    windows, streaming = specs(operator), frames[0].isStreaming
    if windows and not streaming:
        unsaid = [port for port in unsaid if in_no_order(frames[port])]
    if not unsaid:
        return
    shown = repr(windows[0]) if windows else operator.name
    why = "rows of one batch arrive in shuffle order" if streaming else "files come in any order"
    msg = (
        f"{shown} has no order_by: {why}, so a rerun may "
        f'group them differently. Say attach(op, order_by="ts"), or order_by=None to accept it.'
    )
    warnings.warn(msg, OrderWarning, stacklevel=4)


def warn_cuts(operator: Operator, given: Any, frames: Sequence[Any], led: bool) -> None:
    """Warn of streams whose rows meet in an order that no column decides.

    `order_by` orders the rows of a micro-batch, and Spark cuts each stream into micro-batches by
    itself, after a restart differently than it would have done without.

    Args:
        operator: the operator.
        given: what `attach` was told about the order.
        frames: a DataFrame for each input.
        led: whether rows are taken by their time.
    """
    if led or given is None or operator.waits or len(frames) < 2 or not frames[0].isStreaming:
        return
    if not specs(operator):
        return  # nothing is evicted, so it is irrelevant which input is ahead
    msg = (
        f"{operator.name}: rows of its inputs meet as Spark cuts the streams into micro-batches, "
        f'and a restart may cut them differently. Say attach(op, times="ts", watermark="5s") '
        f"to take them by their time, or order_by=None to accept it."
    )
    warnings.warn(msg, CutWarning, stacklevel=4)


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
"""What rows go through in Spark without a change of their order."""


def in_no_order(frame: Any) -> bool:
    """Whether a static DataFrame is read from several files, and nothing has sorted it."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:  # a client of another process, which cannot look
        return False
    node = plan.queryExecution().analyzed()
    while node.nodeName() in PASSING:
        node = node.children().apply(0)
    return node.nodeName() != "Sort" and len(frame.inputFiles()) > 1
