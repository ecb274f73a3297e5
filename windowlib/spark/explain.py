"""How an operator runs on Spark, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windowlib.errors import SchemaError
from windowlib.explain import explain as explain_operator
from windowlib.operator import Operator
from windowlib.spark import checks
from windowlib.spark.types import PORT

if TYPE_CHECKING:
    from windowlib.spark.attach import Plan

WIDTH = 96
DEFAULTS = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "200"}
"""What Spark does unless told otherwise, for when there is no session."""


def explain(plan: Plan) -> str:
    """The operator with the columns that it gets, and what Spark does for it."""
    lines = [line for topic, text in _topics(plan) for line in _wrapped(f"  {topic:<10} {text}")]
    kind = "a stream" if plan.streaming else "static DataFrames"
    return "\n".join(
        [explain_operator(plan.operator, *plan.inputs), "", f"on Spark     {kind}", *lines]
    )


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * 13, break_long_words=False)


def explain_on(operator: Operator, given: Sequence[Any]) -> str:
    """The same from DataFrames, or from the schemas of streams."""
    from windowlib.spark.attach import attach

    if all(hasattr(frame, "isStreaming") for frame in given):
        return attach(operator).explain(*given)
    return attach(operator).explain(*(Shape(_struct(each)) for each in given))  # type: ignore[arg-type]


def _struct(given: Any) -> StructType:
    found = getattr(given, "schema", given)
    if not isinstance(found, StructType):
        msg = (
            f"explain({type(given).__name__}): not columns of Spark's. Pass a DataFrame or its "
            f"schema for each input."
        )
        raise SchemaError(msg)
    return found


class Shape:
    """The columns of a stream that is not there yet; what a plan asks of a DataFrame."""

    isStreaming = True  # noqa: N815 - Spark's name

    def __init__(self, schema: StructType) -> None:
        self.schema, self.columns = schema, schema.names
        self.sparkSession: Any = SparkSession.getActiveSession() or self
        self.conf = DEFAULTS

    def select(self, names: Sequence[str]) -> Shape:
        """Some of the columns, by their names in backticks."""
        return Shape(StructType([self.schema[name.strip("`")] for name in names]))


# -- the lines ------------------------------------------------------------------------------------


def _topics(plan: Plan) -> Iterator[tuple[str, str]]:
    inputs = [port.name for port in plan.operator.model.inputs]
    for number, (name, frame) in enumerate(zip(inputs, plan.frames, strict=True)):
        of = f"{name}: " if len(inputs) > 1 else ""
        yield "columns", f"{of}{_columns(plan, number, frame.columns)}"
    if plan.key:
        keys = "; ".join(", ".join(columns) for columns in plan.key)
        yield "key", f"{keys}: rows with equal values meet"
    yield "buckets", _buckets(plan)
    yield "state", _state(plan)
    for number, name in enumerate(inputs):
        yield "order", (f"{name}: " if len(inputs) > 1 else "") + _order(plan, number)
    if len(inputs) > 1:
        yield "inputs", _turns(plan, inputs)
    yield "clock", _clock(plan)
    yield "output", _output(plan)


def _columns(plan: Plan, port: int, picked: Sequence[str]) -> str:
    if plan.operator.needs(port) is None:
        return f"all of them ({', '.join(picked)}): the operator takes whole rows"
    return f"{', '.join(picked)}: what the operator reads"


def _buckets(plan: Plan) -> str:
    number, wanted = len(plan.buckets), plan.attached.buckets
    if not plan.key:
        kept = any(plan.operator.splits_by(n) is not None for n in range(len(plan.inputs)))
        why = "rows may meet whatever their values" if kept else "it names no columns to split by"
        return (
            f"1: {why}, so one core takes them all. Partition the window, as with by="
            f'"symbol" (partition_by= in a join), or attach(op, key="symbol")'
        )
    who = f"attach(buckets={wanted})" if wanted else "spark.sql.shuffle.partitions"
    fixed = "; it must stay so for the life of a checkpoint" if plan.streaming else ""
    return f"{number}, as {who} says{fixed}"


def _state(plan: Plan) -> str:
    if not plan.streaming:
        return "none: Spark sorts the rows of a bucket, and one pass over them is all"
    return (
        "in RocksDB, for each bucket a snapshot of what its windows keep, and a log of the input "
        "since then; a new snapshot when the log is larger"
    )


def _order(plan: Plan, port: int) -> str:
    said, found = checks._order(plan.operator, port), plan.orders[port]
    if found is not None:
        return ", ".join(found) if isinstance(found, tuple) else str(found)
    if not plan.streaming and plan.attached.times is not None:
        return f"{plan.attached.times}, when rows arrive"
    fix = ': add order_by="ts" to its window' if said is ... else ""
    return f"as tasks deliver them{fix}"


def _turns(plan: Plan, inputs: Sequence[str]) -> str:
    batch = "micro-batch" if plan.streaming else "bucket"
    if all(order is not None for order in plan.orders):
        return f"merged by these columns within a {batch}, at equal values {inputs[0]} first"
    return f"within a {batch} all rows of {inputs[0]}, then those of {', then '.join(inputs[1:])}"


def _clock(plan: Plan) -> str:
    timed, times = checks.timed(plan.operator), plan.attached.times
    if not plan.streaming:
        if times is not None:
            return f"the column {times}"
        return 'nothing moves it: attach(op, times="ts")' if timed else "not used"
    if plan.attached.clock is not None:
        return "the function of attach(clock=...)"
    if timed:
        return (
            "processing time; a timer is seen when a batch starts, so set "
            '.trigger(processingTime="1 second") to how late it may be'
        )
    return (
        "that of the executors, for the age of partitions"
        if checks.aged(plan.operator)
        else "not used"
    )


def _output(plan: Plan) -> str:
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in plan.output)
    names = [name for name in plan.ports if name is not None]
    return f"{columns}; {PORT} is one of {', '.join(names)}" if names else columns
