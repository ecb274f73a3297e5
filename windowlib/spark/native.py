"""Parts that Spark computes by itself: counts, sums and extremes of slices, without Python.

Spark adds up before a shuffle, and no row goes to Python. The operator then takes one row for each
key and slice, which comes when the slice began, as the parts of other functions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as fn

from windowlib.farms.models import Slices
from windowlib.operator import Operator
from windowlib.spark.batch import END, START
from windowlib.spark.paned import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSI = "spark.sql.ansi.enabled"
WHOLE = ("tinyint", "smallint", "int", "bigint")
KEYS = (*WHOLE, "string", "boolean", "date")
ORDERED = (*WHOLE, "string", "date", "timestamp")
READS = {"sum": WHOLE, "min": ORDERED, "max": ORDERED}
"""The types whose values Spark and Python add up and compare alike; a count reads any."""
CLOCKS = (*WHOLE, "float", "double", "timestamp")


class Native:
    """The slices of one operator, if Spark can compute them; made by `native`."""

    def __init__(self, found: Any, names: Sequence[str], slices: Slices, times: str) -> None:
        self.functions, self.operator = found
        self.names, self.slices, self.times = tuple(names), slices, times

    def parts(self, rows: DataFrame) -> DataFrame:
        """A row for each key and slice of rows that have the times of the first and the last."""
        clock = rows.schema[self.times].dataType
        start = _micros(fn.col(START), clock)
        at = _micros(_there(fn.col(f"`{self.times}`"), self.times), clock)
        begin = (start + self._begin(at - start)).alias(AT)
        made = rows.groupBy(*(fn.col(f"`{name}`") for name in self.names), begin).agg(
            *(_function(*read).alias(name) for name, read in self.functions.items()),
            fn.first(START).alias(START),
            fn.first(END).alias(END),
        )
        return made.withColumn(AT, fn.timestamp_micros(AT))

    def _begin(self, x: Column) -> Column:
        """Where the slice of a point begins, but not before the first row."""
        slices = self.slices
        within = fn.pmod(x - fn.lit(int(slices.model.phase)), fn.lit(int(slices.period)))
        cut = fn.lit(0)
        for each in slices.cuts[1:]:
            cut = fn.when(within >= int(each), fn.lit(int(each))).otherwise(cut)
        return fn.greatest(x - within + cut, fn.lit(0).cast("long"))


def native(
    operator: Operator, rows: DataFrame, names: Sequence[str], slices: Slices, times: str
) -> Native | None:
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
        return None  # without ANSI, sums that are too large are wrong, and nobody is told
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    reads = [(function, kinds[column]) for function, column in found.functions.values() if column]
    plain = all(function == "count" or kind in READS[function] for function, kind in reads)
    keyed = all(kinds[name] in KEYS for name in names)
    return (
        Native(found, names, slices, times) if plain and keyed and kinds[times] in CLOCKS else None
    )


def _function(name: str, column: str | None) -> Column:
    found: Column = getattr(fn, name)(fn.lit(1) if column is None else fn.col(f"`{column}`"))
    return found


def _there(column: Column, times: str) -> Column:
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
