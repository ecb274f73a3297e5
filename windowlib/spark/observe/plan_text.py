"""How an operator runs on Spark, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from windowlib.runtime.explain import explain as explain_operator
from windowlib.spark.plan import validation
from windowlib.spark.plan.folding import kept_rows
from windowlib.spark.plan.input_merge import time_order
from windowlib.spark.plan.query_plan import QueryPlan
from windowlib.spark.plan.spark_windows import kept_from_spark
from windowlib.spark.plan.types import PORT
from windowlib.spark.plan.watermark import event_column, event_window, own_reason
from windowlib.spec.specification import Spec

WIDTH = 96


def explain_plan(plan: QueryPlan) -> str:
    """The operator with the columns that it gets, and what Spark does for it."""
    lines = [line for topic, text in _topics(plan) for line in _wrapped(f"  {topic:<10} {text}")]
    kind = "a stream" if plan.streaming else "static DataFrames"
    return "\n".join(
        [explain_operator(plan.operator, *plan.inputs), "", f"on Spark     {kind}", *lines]
    )


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * 13, break_long_words=False)


def _topics(plan: QueryPlan) -> Iterator[tuple[str, str]]:
    inputs = [port.name for port in plan.operator.model.inputs]
    for number, (name, frame) in enumerate(zip(inputs, plan.frames, strict=True)):
        of = f"{name}: " if len(inputs) > 1 else ""
        yield "columns", f"{of}{_columns(plan, number, frame.columns)}"
    if plan.key:
        keys = "; ".join(", ".join(columns) for columns in plan.key)
        yield "key", f"{keys}: rows with equal values meet"
    if plan.options.by_spark:
        yield from _by_spark(plan)
        return
    yield "buckets", _buckets(plan)
    yield "state", _state(plan)
    for number, name in enumerate(inputs):
        yield "order", (f"{name}: " if len(inputs) > 1 else "") + _order(plan, number)
    if len(inputs) > 1:
        yield "inputs", _turns(plan, inputs)
    if (spec := event_window(plan.operator)) is not None:
        yield "watermark", _watermark(plan, spec)
    if plan.watermark is not None:
        kept = kept_rows(plan.bucket_spec())
        yield "shuffle", f"rows: {kept}" if kept else "partials of each key and slice, not rows"
        if not kept_from_spark(plan):
            yield "by Spark", "attach(op, by_spark=True) would leave the windows to Spark: faster"
    yield "clock", _clock(plan)
    yield "output", _output(plan)


def _by_spark(plan: QueryPlan) -> Iterator[tuple[str, str]]:
    """The lines about windows that are left to Spark."""
    if reason := kept_from_spark(plan):
        yield "by Spark", f"refused: {reason}"
        return
    yield "by Spark", "the windows, as groupBy(window, key) has them; Python gets closed ones alone"
    if plan.watermark is not None:
        yield "state", "Spark's own, one row for each key and window"
        yield "watermark", f"Spark's, of {plan.watermark.column}: {plan.watermark.text}"
        yield (
            "late rows",
            "dropped, and counted once for each key and window of a micro-batch; without by_spark= "
            "each row is",
        )
    yield "output", _output(plan)


def _columns(plan: QueryPlan, port: int, picked: Sequence[str]) -> str:
    if plan.operator.needs(port) is None:
        return f"all of them ({', '.join(picked)}): the operator takes whole rows"
    return f"{', '.join(picked)}: what the operator reads"


def _buckets(plan: QueryPlan) -> str:
    number, wanted = len(plan.buckets), plan.options.buckets
    if not plan.key:
        kept = any(plan.operator.splits_by(n) is not None for n in range(len(plan.inputs)))
        why = "rows may meet whatever their values" if kept else "it names no columns to split by"
        spec = event_window(plan.operator)
        if spec is not None and spec.by is not None and plan.options.key is None:
            fix = 'Wait for a fixed time, as watermark="5s"' if plan.streaming else "Drop order_by="
            fix = "Drop early=" if plan.streaming and spec.early is not None else fix
            return (
                "1: rows of all keys move the watermark, so one core takes them all. "
                f'{fix}, or say scope="key" in its Watermark'
            )
        return (
            f"1: {why}, so one core takes them all. Partition the window, as with by="
            f'"symbol" (partition_by= in a join), or attach(op, key="symbol")'
        )
    who = f"attach(buckets={wanted})" if wanted else "spark.sql.shuffle.partitions"
    fixed = "; a checkpoint keeps its own" if plan.streaming else ""
    return f"{number}, as {who} says{fixed}"


def _state(plan: QueryPlan) -> str:
    if not plan.streaming:
        return "none: Spark sorts the rows of a bucket, and one pass over them is all"
    return (
        "in RocksDB, for each bucket a snapshot of what its windows keep, and a log of the input "
        "since then; a new snapshot when the log is larger"
    )


def _order(plan: QueryPlan, port: int) -> str:
    said, found = plan.options.order_by, plan.orders[port]
    said = validation.order_said(plan.operator, port) if said is ... else said
    if found is not None and plan.options.times is not None:
        return ", ".join(map(str, time_order(plan.options.times, found)))
    if found is not None:
        return ", ".join(found) if isinstance(found, tuple) else str(found)
    if plan.options.times is not None:
        return f"{plan.options.times}, when rows arrive"
    if plan.watermark is not None:
        return "irrelevant: windows take rows by event time"
    fix = ': say attach(op, order_by="ts")' if said is ... else ""
    return f"as tasks deliver them{fix}"


def _turns(plan: QueryPlan, inputs: Sequence[str]) -> str:
    batch = "micro-batch" if plan.streaming else "bucket"
    if plan.operator.waits:
        return "input after input: it waits until all of them are complete"
    if all(order is not None for order in plan.orders):
        return f"merged by these columns within a {batch}, at equal values {inputs[0]} first"
    return f"within a {batch} all rows of {inputs[0]}, then those of {', then '.join(inputs[1:])}"


def _watermark(plan: QueryPlan, spec: Spec) -> str:
    if plan.watermark is not None and not plan.holds:
        return (
            f"Spark's, of {plan.watermark.column}: {plan.watermark.text}; it moves between "
            f"micro-batches, and closes windows of idle keys, too"
        )
    if plan.streaming and not plan.holds:
        return f"the window's own, moved by every row: {own_reason(spec, plan.frames[0])}"
    if plan.orders[0] == event_column(spec):
        return "not needed: rows are sorted by event time, so none is late"
    return "the window's own, moved by every row in the order above"


def _clock(plan: QueryPlan) -> str:
    timed, times = validation.timed(plan.operator), plan.options.times
    if not plan.streaming:
        if times is not None:
            return f"the column {times}"
        return 'nothing moves it: attach(op, times="ts")' if timed else "not used"
    if plan.watermark is not None and times is not None:
        return (
            f"event time, Spark's watermark of {times}: {plan.watermark.text}; rows wait until it "
            f"has passed them, and those that it has passed before are dropped as late"
        )
    if plan.options.clock is not None:
        return "the function of attach(clock=...)"
    if timed:
        return (
            "processing time; a timer is seen when a batch starts, so set "
            '.trigger(processingTime="1 second") to how late it may be; availableNow does not end '
            'without attach(op, times="ts")'
        )
    return (
        "that of the executors, for the age of partitions"
        if validation.aged(plan.operator)
        else "not used"
    )


def _output(plan: QueryPlan) -> str:
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in plan.output.struct)
    names = [name for name in plan.output.ports if name is not None]
    return f"{columns}; {PORT} is one of {', '.join(names)}" if names else columns
