"""A static DataFrame as one of the ways; loaded only where there is a session."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from windowlib.errors import OrderWarning
from windowlib.marks import Mark
from windowlib.testing.same import in_keys
from windowlib.testing.ways import FORGETS, Arrowed, LeftOut, Sent, Way, forgetful

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "Spark, a static DataFrame"
Grouped = Callable[[Sent], Sent]


def spark_way(spark: SparkSession, arrowed: Arrowed, expected: Sent) -> tuple[Way, Sent, Grouped]:
    """The way, what it should give, and how to put both in one order."""
    columns: dict[str, list[str]] = {}

    def run() -> Sent:
        found = _run(spark, arrowed)
        columns.update(found[1])
        return found[0]

    def grouped(sent: Sent) -> Sent:
        """Rows with the columns that Spark was told of, key by key."""
        shaped = [
            (port, {name: item.get(name) for name in columns[port]})
            for port, item in sent
            if not isinstance(item, Mark)
        ]
        return in_keys(arrowed.rows(), shaped)

    return Way(NAME, run), expected, grouped


def _run(spark: SparkSession, arrowed: Arrowed) -> tuple[Sent, dict[str, list[str]]]:
    """What comes out, and the columns of each output."""
    from windowlib.spark import attach

    stream = arrowed.stream
    _check(arrowed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderWarning)  # one partition, which has an order
        times: Any = stream.times
        frame = spark.createDataFrame(arrowed.tables[0]).coalesce(1)
        out = attach(stream.operator, times=times)(frame)
        rows = [row.asDict(recursive=True) for row in out.collect()]
    names = [port.name for port in stream.operator.model.outputs]
    data = [name for name in out.columns if name != "_port"]
    if "_port" not in out.columns:
        return [(names[0], row) for row in rows], dict.fromkeys(names, data)
    sent = [(row.pop("_port"), row) for row in rows]
    return sent, dict.fromkeys(names, data)


def _check(arrowed: Arrowed) -> None:
    stream = arrowed.stream
    if len(stream.operator.model.inputs) != 1:
        raise LeftOut("with several inputs, Spark takes their rows in an order of its own")
    if len(arrowed.ports) != len(stream.items):
        raise LeftOut("a DataFrame has no marks among its rows")
    if forgetful(stream.operator):
        raise LeftOut(FORGETS)
    if not arrowed.ports:
        raise LeftOut("there are no rows")
    if stream.times is not None and not isinstance(stream.times, str):
        raise LeftOut("Spark takes times from a column, and not from a function")
