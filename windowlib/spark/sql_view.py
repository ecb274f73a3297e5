"""Windowed streams for SQL: the output of an operator as a temporary view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.errors import HostError
from windowlib.runtime.operator import Operator
from windowlib.spark.plan.attach import attach
from windowlib.spark.plan.attached import Attached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
