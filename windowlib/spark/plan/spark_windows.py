"""Windows of event time that Spark aggregates itself, where it gives exactly the same rows.

`attach(op, by_spark=True)` leaves counts, sums, means and extremes of tumbling windows to Spark's
own aggregation: no row goes to Python, only closed windows, which the operator turns into rows.

Spark adds floats without compensation and loses digits that cancel; windows here do not. So a float
is split into whole numbers of 32 bits, which add up exactly in any order, and a rest below
2 ** -64. That rest, and floats of 2 ** 62 and more, are added as Spark adds them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windowlib.columnar.engines.event_time import EventTimeEngine, SlicePartials
from windowlib.columnar.kernels.kernel import Kernel
from windowlib.columnar.kernels.picks import MaxKernel, MinKernel
from windowlib.columnar.kernels.sums import (
    CountKernel,
    CountValuesKernel,
    MeanKernel,
    SumKernel,
)
from windowlib.errors import HostError
from windowlib.event_time.axis import Grid
from windowlib.spark.bucket.bucket import Bucket, BucketSpec
from windowlib.spark.bucket.processor import METRICS
from windowlib.spark.plan.folding import fold_engine, kept_rows
from windowlib.spark.plan.output_rows import Unpack
from windowlib.spark.plan.query_plan import QueryPlan
from windowlib.spark.plan.types import is_collated, quoted
from windowlib.spark.plan.watermark import DELAY, WHOLE, event_column, event_window
from windowlib.spark.python_worker import end_task
from windowlib.spec.specification import Session, Tumbling
from windowlib.window.consumer import Decline
from windowlib.window.event_time import EventTimeWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

END, START, SIZE, KEY = "_end", "_start", "_size", "_key"
BY_SPARK = ", by Spark"
"""The suffix of the metrics of windows that Spark aggregates."""
LIMBS = 4
LIMB = 32
UNIT = 64
"""Floats are taken apart into whole numbers of 2 ** -UNIT, in limbs of LIMB bits, and a rest."""
MOST = 2.0**62
"""Floats from here on do not fit the limbs."""
FLOATS = (FloatType, DoubleType)
PLAIN = (*WHOLE, StringType, BinaryType, BooleanType, DateType, TimestampType, DecimalType)
"""Keys that are equal for Spark where they are equal here, and come back as they were."""
ORDERED = (*WHOLE, *FLOATS, BooleanType, DateType, TimestampType, TimestampNTZType, DecimalType)


def kept_from_spark(plan: QueryPlan) -> str:
    """Why windows cannot be left to Spark's own aggregation; empty if they can."""
    spec = event_window(plan.operator)
    if spec is None or not isinstance(spec, Tumbling) or isinstance(spec, Session):
        return "it has no tumbling windows of event time"
    if plan.streaming and (plan.watermark is None or plan.holds):
        return "Spark's watermark does not close its windows"
    if spec.late not in (None, "drop"):
        return f"late={spec.late!r} looks at each late row"
    options = plan.options
    for name in ("key", "buckets", "port", "schema"):
        if getattr(options, name) is not None:
            return f"{name}= is about buckets"
    column, schema = event_column(spec), plan.frames[0].schema
    if column is None or not isinstance(schema[column].dataType, TimestampType):
        return f"{column} is no column of timestamps with a zone"
    for name in schema.names:
        if re.fullmatch(rf"{END}|{START}|{SIZE}|_\d+_\w+", name.lower()):
            return f"the groups of Spark have a column {name} of their own"
    if reason := kept_rows(replace(plan.bucket_spec(), follows=1)):
        return reason
    for name in (plan.key or [()])[0]:
        if not isinstance(schema[name].dataType, PLAIN) or is_collated(schema[name].dataType):
            return (
                f"Spark may see other equal keys in {name}, {schema[name].dataType.simpleString()}"
            )
    try:
        spark_functions(fold_engine(plan.operator, plan.inputs[0]), schema)
    except Decline as reason:
        return str(reason)
    return ""


def aggregated_frame(plan: QueryPlan) -> DataFrame:
    """The DataFrame of a plan whose windows are left to Spark."""
    if reason := kept_from_spark(plan):
        msg = (
            f"attach({plan.operator.name}, by_spark=True): {reason}. Leave by_spark= out, and "
            f"Python has the windows."
        )
        raise HostError(msg)
    engine = fold_engine(plan.operator, plan.inputs[0])
    names = (plan.key or [()])[0]  # PySpark passes not all names to Python
    keys = [fn.col(quoted(name)).alias(f"{KEY}{n}") for n, name in enumerate(names)]
    grid = engine.config.starts
    frame = _with_ends(plan, str(engine.event_time_state.axis.attribute), grid)
    functions = spark_functions(engine, plan.frames[0].schema)
    for step in zip(*(each.steps() for each in functions), strict=True):
        if named := {name: column for columns in step for name, column in columns.items()}:
            frame = frame.withColumns(named)
    sums = {name: column.alias(name) for each in functions for name, column in each.sums()}
    known = [name for name in sums if name.endswith("_n")]
    if not known or any(type(each) is SparkFunction for each in functions):
        sums[SIZE] = fn.count(fn.lit(1)).alias(SIZE)
    grouped = frame.groupBy(END, *keys).agg(*sums.values())
    if SIZE not in sums:  # as many rows as values, and one if all of them are null
        grouped = grouped.withColumn(SIZE, fn.greatest(fn.lit(1).cast("long"), *known))
    made = grouped.withColumn(START, fn.unix_micros(END) - fn.lit(grid.step)).drop(END)
    if plan.streaming:
        made = made.observe(f"{plan.name}{BY_SPARK}", *_metrics())
    finish = WindowRows(replace(plan.bucket_spec(), follows=1), functions, plan.unpack())
    return made.mapInArrow(finish, plan.output.struct)


def _metrics() -> list[Any]:
    """The counts of windows that have closed, in the order of those of buckets."""
    rows, windows = fn.sum(SIZE), fn.count(fn.lit(1))
    known = {"rows_out": windows, "fired": windows, "evicted": rows}
    return [known.get(name, fn.sum(fn.lit(0))).alias(name) for name in METRICS]


def _with_ends(plan: QueryPlan, column: str, grid: Grid) -> DataFrame:
    """The rows with the end of their windows, a column that has the watermark.

    Spark closes what is not after its watermark: for a plain timestamp the same as for the end of a
    `window`. Groups of plain numbers cost Spark much less than those of a struct, as `window` is.
    """
    (frame,) = plan.frames
    name, metadata = plan.operator.name, None
    if plan.watermark is not None:
        metadata = {DELAY: frame.schema[column].metadata.get(DELAY, plan.watermark.delay)}
        frame = plan.watermark.with_watermark(frame)
    stamp = fn.col(quoted(column))
    null = (
        f"{name}: null in {column!r} has no place in time. Leave such rows out, as with "
        f"df.where(df.{column}.isNotNull())."
    )
    found = fn.coalesce(stamp, _raise(null))
    if plan.streaming:  # Spark's watermark starts in 1970, and what is before it is late
        early = (
            f"{name}: {column!r} is before 1970, where Spark's watermark starts. Leave by_spark= "
            f"out of attach, and Python has the windows."
        )
        found = fn.when(stamp < fn.timestamp_seconds(fn.lit(0)), _raise(early)).otherwise(found)
    at = fn.unix_micros(found)
    since = fn.pmod(at - fn.lit(grid.origin % grid.step), fn.lit(grid.step))
    end = fn.timestamp_micros(at - since + fn.lit(grid.step))
    return frame.withColumn(END, end.alias(END, **({"metadata": metadata} if metadata else {})))


def _raise(message: str) -> Any:
    return fn.raise_error(fn.lit(message)).cast("timestamp")


# -- functions ------------------------------------------------------------------------------------


class SparkFunction:
    """The columns that Spark computes for one function, and the function's state from them.

    Args:
        number: that of the column; functions of one column share what Spark computes.
        name: the column that the function is of.
    """

    counts = True
    """Whether its state is a number of rows, which is saved as it is."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name

    @property
    def column(self) -> Any:
        """The column that it is of."""
        return fn.col(quoted(self.name))

    def column_name(self, part: str) -> str:
        """The name of a column of its own."""
        return f"_{self.number}_{part}"

    def steps(self) -> list[dict[str, Any]]:
        """Columns that are computed one after the other before rows are grouped."""
        return [{} for _ in range(2 * LIMBS + 1)]

    def sums(self) -> Iterator[tuple[str, Any]]:
        """The aggregates of a group, by name."""
        return iter(())

    def states(self, rows: Mapping[str, list[Any]]) -> list[Any]:
        """The state of the function for each window, as its fold saves it."""
        return [[] for _ in rows[SIZE]]


class SparkCount(SparkFunction):
    """How many values are not null."""

    def sums(self) -> Iterator[tuple[str, Any]]:
        """The number of values."""
        yield self.column_name("n"), fn.count(self.column)

    def states(self, rows: Mapping[str, list[Any]]) -> list[Any]:
        """The number of values."""
        return [[count] for count in rows[self.column_name("n")]]


class SparkMax(SparkFunction):
    """The largest value; Spark and windows agree on NaN and nulls."""

    counts = False
    part = "most"
    function: Callable[[Any], Any] = staticmethod(fn.max)

    def sums(self) -> Iterator[tuple[str, Any]]:
        """The value."""
        yield self.column_name(self.part), type(self).function(self.column)

    def states(self, rows: Mapping[str, list[Any]]) -> list[Any]:
        """The extreme value."""
        return [[best] for best in rows[self.column_name(self.part)]]


class SparkMin(SparkMax):
    """The smallest value."""

    part = "least"
    function = staticmethod(fn.min)


class SparkSum(SparkFunction):
    """Whole numbers in two halves, so that no sum leaves 64 bits."""

    counts = False

    def sums(self) -> Iterator[tuple[str, Any]]:
        """The number of values, and the sums of both halves."""
        yield self.column_name("n"), fn.count(self.column)
        number = self.column.cast("long")
        yield self.column_name("0"), fn.sum(fn.shiftright(number, LIMB))
        yield self.column_name("1"), fn.sum(number.bitwiseAND(fn.lit((1 << LIMB) - 1)))

    def states(self, rows: Mapping[str, list[Any]]) -> list[Any]:
        """Total, nulls and compensation."""
        parts = (rows[self.column_name(part)] for part in ("n", "0", "1"))
        return [
            [(high << LIMB) + low, size - n, 0] if n else [None, size, None]
            for size, n, high, low in zip(rows[SIZE], *parts, strict=True)
        ]


class SparkFloatSum(SparkFunction):
    """Floats in limbs, which add up exactly, and the rest of them by itself."""

    counts = False

    @property
    def limbs(self) -> list[str]:
        """The names of the limbs, the largest first."""
        return [self.column_name(str(limb)) for limb in range(LIMBS)]

    def steps(self) -> list[dict[str, Any]]:
        """The value if it fits limbs, and limb after limb of it, with what is left."""
        x, rest = self.column.cast("double"), self.column_name("fits")
        fits = fn.abs(x) < MOST  # which no NaN does
        found = [
            {rest: fn.when(fits, x).otherwise(0.0), self.column_name("odd"): fn.when(~fits, x)}
        ]
        for limb, name in enumerate(self.limbs):
            unit = 2.0 ** ((LIMBS - limb - 1) * LIMB - UNIT)
            # The nearest whole number of units, so that what is left has no more digits.
            whole, left = (
                fn.floor(fn.col(rest) * (1 / unit) + 0.5),
                self.column_name(f"rest_{limb}"),
            )
            found.append({name: whole})
            found.append({left: fn.col(rest) - fn.col(name).cast("double") * unit})
            rest = left
        return found

    def sums(self) -> Iterator[tuple[str, Any]]:
        """The number of values, the sums of limbs, and that of what is left."""
        yield self.column_name("n"), fn.count(self.column)
        for name in self.limbs:
            yield name, fn.sum(name)
        left = fn.col(self.column_name(f"rest_{LIMBS - 1}"))
        yield self.column_name("left"), fn.sum(fn.coalesce(fn.col(self.column_name("odd")), left))

    def states(self, rows: Mapping[str, list[Any]]) -> list[Any]:
        """Total, nulls and compensation."""
        limbs = zip(*(rows[name] for name in self.limbs), strict=True)
        parts = (rows[SIZE], rows[self.column_name("n")], rows[self.column_name("left")], limbs)
        return [
            _total(each, left, size - n) if n else [None, size, None]
            for size, n, left, each in zip(*parts, strict=True)
        ]


def _total(limbs: Sequence[int], left: float, nulls: int) -> list[Any]:
    """The sum of limbs and of what is left: total, nulls and compensation."""
    units = 0
    for limb in limbs:
        units = (units << LIMB) + limb
    high = units / (1 << UNIT)  # rounded once
    low = (units - int(math.ldexp(high, UNIT))) / (1 << UNIT)
    total = high + left
    if not math.isfinite(total):
        return [total, nulls, 0.0]
    larger, smaller = (high, left) if abs(high) >= abs(left) else (left, high)
    return [total, nulls, low + ((larger - total) + smaller)]


def spark_function(kernel: Kernel, name: Any, schema: Any) -> SparkFunction:
    """The Spark columns for a function; `Decline` if Spark cannot compute it."""
    kind = type(kernel)
    if kind is CountKernel:
        return SparkFunction(0, "")
    if not isinstance(name, str) or name not in schema.names:
        raise Decline("a function of something else than a column")
    number, of = schema.names.index(name), schema[name].dataType
    if kind is CountValuesKernel:
        return SparkCount(number, name)
    if kind in (MaxKernel, MinKernel) and isinstance(of, ORDERED):
        return (SparkMax if kind is MaxKernel else SparkMin)(number, name)
    if kind in (SumKernel, MeanKernel) and isinstance(of, (*WHOLE, *FLOATS)):
        return (SparkSum if isinstance(of, WHOLE) else SparkFloatSum)(number, name)
    raise Decline(f"{kernel.fold.name} of {of.simpleString()} is not the same in Spark")


def spark_functions(engine: EventTimeEngine, schema: Any) -> list[SparkFunction]:
    """The Spark columns for each function of a window; `Decline` if Spark cannot compute one."""
    pairs = zip(engine.kernels, engine.attributes, strict=True)
    return [spark_function(kernel, name, schema) for kernel, name in pairs]


class WindowRows:
    """Turns windows that Spark has aggregated into the rows of an operator.

    Args:
        spec: the operator, and its columns.
        functions: what Spark has computed.
        unpack: what sends rows to Spark.
    """

    def __init__(
        self, spec: BucketSpec, functions: Sequence[SparkFunction], unpack: Unpack
    ) -> None:
        self.spec, self.functions, self.unpack = spec, functions, unpack

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of closed windows."""
        for batch in batches:
            if batch.num_rows:
                bucket = Bucket(self.spec, 0)
                (window,) = bucket.running.windows
                assert isinstance(window, EventTimeWindow)
                self._fill(window, batch)
                for _, made in bucket.finished():
                    yield from self.unpack.rows(None, pa.Table.from_batches([made]))
        end_task()

    def _fill(self, window: EventTimeWindow[Any, Any], batch: pa.RecordBatch) -> None:
        """Fill a window with what Spark has computed."""
        (schema,) = self.spec.inputs
        engine = fold_engine(self.spec.operator, schema)
        grid, starts = engine.config.starts, batch.column(START).to_numpy()
        at, n = (starts - grid.origin) // grid.step, batch.column(SIZE).to_numpy()
        kind = schema.field(engine.event_time_state.axis.attribute).type
        sample = pa.array(starts[:1], kind)[0].as_py()
        names = [] if engine.keys is None else engine.keys.names
        keys = [batch.column(f"{KEY}{n}") for n in range(len(names))]
        saved = self._fold_states(engine.kernels, batch.to_pydict())
        try:
            planes = [x.load(each, n) for x, each in zip(engine.kernels, saved, strict=True)]
        except Decline:  # a sum of whole numbers has more than 64 bits
            numbers, load = at.tolist(), window.event_time_state.config.store.load
            ids = [None] * len(n)
            if engine.keys is not None:
                ids = engine.keys.values(engine.keys.encode(keys))
            states = enumerate(zip(n.tolist(), *saved, strict=True))
            made = (load([i, size, each]) for i, (size, *each) in states)
            contents = zip(ids, numbers, numbers, made, strict=True)
            window.event_time_state.absorb(contents, sample)
        else:
            born = np.arange(len(n))
            window.absorb([SlicePartials(at, at, n, born, planes, keys, sample)], schema)

    def _fold_states(
        self, kernels: Sequence[Kernel], rows: Mapping[str, list[Any]]
    ) -> list[list[Any]]:
        """The states of all functions for each window, as their folds save them."""
        found = []
        for kernel, function in zip(kernels, self.functions, strict=True):
            states = function.states(rows)
            found.append(states if function.counts else list(map(kernel.fold.as_saved, states)))
        return found
