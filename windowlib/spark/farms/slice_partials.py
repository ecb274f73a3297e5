"""Partials of slices as rows of Spark's: tasks compute them where the rows are, buckets merge them.

A slice is the time between two points where a window starts or ends, so all its tuples are in the
same windows. A partial of it then goes through the window like a tuple that came when
the slice began: the same windows fire, and hold the partials of the tuples that they would hold.

Counts, sums and extremes of slices are computed by Spark itself where its values are the same:
then no row goes to Python before the shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column
from pyspark.sql import functions as fn

from windowlib.attributes import one_key
from windowlib.columnar.arrays.partition_keys import AnyKeys
from windowlib.columnar.arrays.stamps import Stamps, stamps_of
from windowlib.columnar.primitives import Array, group
from windowlib.farms.emitter import Emitter
from windowlib.farms.evaluator import BatchExtent, WindowEvaluator
from windowlib.farms.models import Slicing
from windowlib.farms.window_function import NUMBER, ORDER, function_of
from windowlib.runtime.operator import Operator
from windowlib.spark.farms.window_stages import TwoStacks, numbered_row, window_of
from windowlib.spark.plan.shuffle import gathered
from windowlib.spark.plan.static import END, START
from windowlib.spark.plan.types import quoted
from windowlib.spark.python_worker import end_task
from windowlib.window.arrow import Times, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.columnar.firings import Firings

AT, PART, PLACE = "_at", "_part", "_place"
HELPERS = (START, END, PLACE)
"""Columns that the plan adds to rows, and the operator must not see."""
MICRO_BATCH = "streaming.sql.batchId"
"""The local property of a task that has the number of its micro-batch."""
SMALL = 1 << 40
"""Up to here, a number for each pair of key and slice fits easily."""


class SlicePartials:
    """Computes the partials of a task's rows: one for each key, and slice if rows have times.

    Args:
        operator: whose partials they are.
        by: the key of its window: a column, several, or none.
        slices: how time is cut; None: all rows of a task arrive at one time.
        times: the column that says when a row arrives.
        order: the columns that order the rows of a task, if these are not in order yet.
        placed: whether rows get their places in the order of all, for parts that are merged in any.
    """

    def __init__(
        self,
        operator: Operator,
        by: Any,
        slices: Slicing | None,
        times: str | None,
        order: Sequence[str] = (),
        placed: bool = False,
    ) -> None:
        self.operator, self.slices, self.times, self.order = operator, slices, times, tuple(order)
        self.placed = placed
        self.names = by if isinstance(by, tuple) else () if by is None else (by,)
        self.composite = isinstance(by, tuple)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The partials, with the columns of their key."""
        work = WindowEvaluator(self.operator)
        if self.placed:
            batches = self._with_positions(gathered(batches))
        else:
            batches = self._ordered(batches) if self.order else gathered(batches)
        for batch in batches:
            yield self._partials(work, batch)
        end_task()

    def _with_positions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches in order, each row with its place among all rows, of all micro-batches."""
        context = TaskContext.get()
        now = None if context is None else context.getLocalProperty(MICRO_BATCH)
        for batch in with_row_numbers(batches):
            ordered = in_order(batch, (*self.order, PLACE))
            columns = [_comparable(ordered.column(name)) for name in (*self.order, PLACE)]
            moment = pa.array(np.full(len(batch), int(now or 0)))
            names = list(map(str, range(len(columns) + 1)))
            place = pa.StructArray.from_arrays([moment, *columns], names)
            yield ordered.append_column(ORDER, place)

    def _ordered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows of a task as one batch, in their order."""
        if found := list(batches):
            yield in_order(pa.concat_batches(found), (*self.order, PLACE))

    def _partials(self, work: WindowEvaluator, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids, keys = self._keys(batch)
        start, at = 0, np.zeros(batch.num_rows, np.int64)
        if self.slices is not None:
            start, stamps = self._stamps(batch)
            at = self.slices.of(stamps - start)
        order, starts = _group_rows(ids, at)
        first = order[starts[:-1]]
        rows = batch.drop_columns([name for name in HELPERS if name in batch.schema.names])
        rows = rows.take(pa.array(order))
        if self.placed:
            rows = rows.append_column(NUMBER, pa.array(np.arange(len(rows))))
        extents = zip(ids[first].tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        given = [BatchExtent(keys[id], lo, hi, 0) for id, lo, hi in extents]
        found = [work.dump_part(part) for part in work.partials(rows, given)]
        columns = {name: batch.column(name).take(pa.array(first)) for name in self.columns}
        if self.slices is not None:
            begins = _slice_starts(self.slices, at[first])
            begins = np.maximum(begins, 0) + start  # the first slice may begin before the first row
            columns[AT] = pa.array(begins, pa.duration("us"))
        return pa.record_batch({**columns, PART: pa.array(found, pa.binary())})

    @property
    def columns(self) -> list[str]:
        """The columns that partials keep of the rows."""
        return list(dict.fromkeys((*self.names, *((START, END) if self.slices else ()))))

    def _keys(self, batch: pa.RecordBatch) -> tuple[Array, list[Any]]:
        """The key of each row as a number, and the keys by these numbers."""
        if not self.names:
            return np.zeros(batch.num_rows, np.int64), [None]
        keys = AnyKeys(self.names, self.composite)
        ids = keys.encode([batch.column(name) for name in self.names]).astype(np.int64)
        return ids, keys.values(range(len(keys)))

    def _stamps(self, batch: pa.RecordBatch) -> tuple[int, Stamps]:
        """The time of the first row of all, and the times of these rows."""
        assert self.times is not None
        (first,) = batch.slice(0, 1).select([START]).to_pylist()
        found = stamps_of(batch.column(self.times))
        if found is None:  # only Python can read them, or say what is wrong
            read, column = Times(self.times), batch.select([self.times])
            found = np.array([read(row) for row in column.to_pylist()], np.int64)
        return Times(START)(first), found


def with_row_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a task with their places among all, for the order of equal ones."""
    context = TaskContext.get()
    place = (0 if context is None else context.partitionId()) << 40
    for batch in batches:
        places = np.arange(place, place + batch.num_rows)
        yield batch.append_column(PLACE, pa.array(places))
        place += batch.num_rows
    end_task()


def _comparable(column: pa.Array) -> pa.Array:
    """A column as Python may compare it: it would compare times of a zone by their local time."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _group_rows(ids: Array, at: Array) -> tuple[Array, Array]:
    """The rows of each key and slice together, and where each of them starts, with the end."""
    low, width = int(at.min()), int(np.ptp(at)) + 1
    if width * (int(ids.max()) + 1) < SMALL:
        codes = ids * width + (at - low)
        if width * (int(ids.max()) + 1) <= 4 * len(ids):
            order, _, starts = group(codes, width * (int(ids.max()) + 1))
            return order, starts
        order = np.argsort(codes, kind="stable")
        changes = np.diff(codes[order]) != 0
    else:
        order = np.lexsort((at, ids))
        changes = (np.diff(ids[order]) != 0) | (np.diff(at[order]) != 0)
    return order, np.concatenate(([0], np.flatnonzero(changes) + 1, [len(order)]))


def _slice_starts(slices: Slicing, numbers: Array) -> Array:
    """The starts of slices, on the axis that starts with the first row."""
    distinct, places = np.unique(numbers, return_inverse=True)
    begins = [int(slices.extent(each)[0]) for each in distinct.tolist()]
    return np.array(begins, np.int64)[places]


class PartialMerger(Emitter):
    """The window of an operator over partials: it sends the rows of what fires.

    Args:
        operator: whose window it is.
        numbered: whether its rows say which window they are from.
    """

    def __init__(self, operator: Operator, numbered: bool = False) -> None:
        self.model = operator.model
        spec, partial, at_end = window_of(operator)
        super().__init__(replace(spec, order_by=None), partial, at_end)
        self.operator, self.name, self.numbered = operator, operator.name, numbered
        # A partial that several windows share must not be changed by a merge.
        self._shares_partials = function_of(operator).commutative

    def on_open(self) -> None:
        """Make the evaluator that merges partials."""
        super().on_open()
        self._evaluator = WindowEvaluator(self.operator)

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        parts = firings.content[PART].arrow()
        lo, hi, keys = firings.lo.tolist(), firings.hi.tolist(), firings.python_keys()
        times = [window.state.now] * len(keys) if firings.times is None else firings.times.tolist()
        if self._shares_partials:
            found = self._merged_once(parts, firings.ids.tolist(), lo, hi)
        else:
            found = ([self._evaluator.load_part(part.as_py()) for part in parts[a:b]]
                     for a, b in zip(lo, hi, strict=True))  # fmt: skip
        for key, own, now in zip(keys, found, times, strict=True):
            self._finish(key, own, now)

    def _merged_once(
        self, parts: pa.Array, ids: list[int], lo: list[int], hi: list[int]
    ) -> Iterator[list[Any]]:
        """The partials of each window merged; what windows of a partition share is merged once."""
        stacks: dict[int, TwoStacks] = {}
        for id, a, b in zip(ids, lo, hi, strict=True):
            if id not in stacks:
                stacks[id] = TwoStacks(
                    self._evaluator.operator.merge_parts,
                    lambda at: self._evaluator.load_part(parts[at].as_py()),
                )
            yield [stacks[id].merged(a, b)] if a < b else []

    def _record(self, window: Any, key: Any) -> None:
        parts = [self._evaluator.load_part(row[PART]) for row in window[key]]
        self._finish(key, parts, window.state.now)

    def _finish(self, key: Any, parts: Sequence[Any], now: int) -> None:
        number = self._firing_number(one_key(key)) if self.numbered else 0
        for port, *rows in self._evaluator.finish(key, parts, now):
            for row in rows:
                self._outputs[port](numbered_row(row, number) if self.numbered else row)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep the operator's work apart."""
        return self.operator.splits_by(port)


ANSI = "spark.sql.ansi.enabled"
WHOLE = ("tinyint", "smallint", "int", "bigint")
KEYS = (*WHOLE, "string", "boolean", "date")
ORDERED = (*WHOLE, "string", "date", "timestamp")
READS = {"sum": WHOLE, "min": ORDERED, "max": ORDERED}
"""The types whose values Spark and Python add up and compare alike; a count reads any."""
CLOCKS = (*WHOLE, "float", "double", "timestamp")


class NativeSlices:
    """The slices of one operator, computed by Spark's own functions; made by `native_slices`.

    Spark adds up before the shuffle. The operator takes one row for each key and slice, which comes
    when the slice began, as the partials of other functions do.
    """

    def __init__(self, found: Any, names: Sequence[str], slices: Slicing, times: str) -> None:
        self.functions, self.operator = found
        self.names, self.slices, self.times = tuple(names), slices, times

    def partials(self, rows: DataFrame) -> DataFrame:
        """A row for each key and slice of rows that have the times of the first and the last."""
        clock = rows.schema[self.times].dataType
        start = _micros(fn.col(START), clock)
        at = _micros(_required(fn.col(quoted(self.times)), self.times), clock)
        begin = (start + self._slice_start(at - start)).alias(AT)
        made = rows.groupBy(*(fn.col(quoted(name)) for name in self.names), begin).agg(
            *(_function(*read).alias(name) for name, read in self.functions.items()),
            fn.first(START).alias(START),
            fn.first(END).alias(END),
        )
        return made.withColumn(AT, fn.timestamp_micros(AT))

    def _slice_start(self, x: Column) -> Column:
        """The start of the slice of a point, but not before the first row."""
        slices = self.slices
        within = fn.pmod(x - fn.lit(int(slices.model.phase)), fn.lit(int(slices.period)))
        cut = fn.lit(0)
        for each in slices.cuts[1:]:
            cut = fn.when(within >= int(each), fn.lit(int(each))).otherwise(cut)
        return fn.greatest(x - within + cut, fn.lit(0).cast("long"))


def native_slices(
    operator: Operator, rows: DataFrame, names: Sequence[str], slices: Slicing, times: str
) -> NativeSlices | None:
    """How Spark computes the slices of an operator; None if only Python gives the same values.

    Args:
        operator: whose slices they are.
        rows: what it takes.
        names: the columns of the key of its window.
        slices: how time is cut.
        times: the column that says when a row arrives.
    """
    found = getattr(operator, "preaggregated", lambda: None)()
    exact = all(int(each) == each for each in (slices.model.phase, slices.period, *slices.cuts))
    if found is None or not exact or str(rows.sparkSession.conf.get(ANSI)) != "true":
        return None  # without ANSI, sums that are too large are wrong without a message
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    reads = [(function, kinds[column]) for function, column in found.functions.values() if column]
    plain = all(function == "count" or kind in READS[function] for function, kind in reads)
    keyed = all(kinds[name] in KEYS for name in names)
    if not (plain and keyed and kinds[times] in CLOCKS):
        return None
    return NativeSlices(found, names, slices, times)


def _function(name: str, column: str | None) -> Column:
    found: Column = getattr(fn, name)(fn.lit(1) if column is None else fn.col(quoted(column)))
    return found


def _required(column: Column, times: str) -> Column:
    """A column that fails where it is null, in the words that it is refused with elsewhere."""
    msg = (
        f"times={times!r}: the value None is no point in time. Use a column with seconds as "
        f"numbers, or with datetimes."
    )
    return fn.coalesce(column, fn.raise_error(fn.lit(msg)))


def _micros(column: Column, kind: Any) -> Column:
    """Microseconds, rounded as Python rounds them: to even, after the multiplication."""
    name = kind.simpleString()
    if name == "timestamp":
        return fn.unix_micros(column)
    if name in WHOLE:
        return column.cast("long") * fn.lit(1_000_000)
    return fn.rint(column.cast("double") * fn.lit(1e6)).cast("long")
