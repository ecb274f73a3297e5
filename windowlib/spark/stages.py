"""The stages of a farm on Spark: plans like that of the operator, with other rows in or out."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.types import LongType, StructField, StructType

from windowlib.batched import Made, _named
from windowlib.operator import Operator
from windowlib.spark import types
from windowlib.spark.attach import Plan
from windowlib.spark.batch import END, START
from windowlib.spark.packing import Unpack
from windowlib.spark.types import fitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.farms.work import Item

WINDOW = "_window"
"""The column that says which window of its key a row comes from, counted from 0."""


class Stage(Plan):
    """The plan of an operator that does a part of the work of another one.

    Args:
        plan: the plan of that other one, whose key, buckets, order and output it has, too.
        operator: what does a part of it.
        frame: the rows that it gets.
        farm: who asks for it: a checkpoint of another farm has other state.
    """

    def __init__(self, plan: Plan, operator: Operator, frame: DataFrame, farm: str) -> None:
        self.__dict__.update(plan.__dict__)
        self._whole, self._farm = plan, farm
        self.operator, self.frames = operator, [frame]
        self.inputs = (types.arrow_of(frame.schema, self.timezone),)
        self.nonce = uuid.uuid4().hex

    def timed_by(self, times: str) -> Stage:
        """The same with rows that have a time of their own, and when the first and last came."""
        self.attached = copy.copy(self.attached)
        self.attached.times, self.orders = times, (None,)
        return self

    def bounded(self, rows: DataFrame) -> DataFrame:
        """Rows with the times of the first and the last; those of parts have them already."""
        if START not in self.frames[0].columns:
            return super().bounded(rows)
        return rows.select("*", fn.col(f"_0.{START}"), fn.col(f"_0.{END}"))

    def sends(self, output: StructType) -> Stage:
        """The same with other columns of one output."""
        self.output, self.ports = output, [None]
        self.output_arrow = types.arrow_of(output, self.timezone)
        self.made = self.outputs = (self.output_arrow,)
        return self

    def about(self) -> dict[str, str]:
        """Whatever must not change as long as a checkpoint lives."""
        return {**self._whole.about(), "farm": self._farm}


def number(plan: Plan) -> None:
    """Let the rows of a plan have the number of their window."""
    field = pa.field(WINDOW, pa.int64())
    plan.made = tuple(None if each is None else each.append(field) for each in plan.made)
    plan.outputs = tuple(None if each is None else each.append(field) for each in plan.outputs)
    plan.output = StructType([*plan.output.fields, StructField(WINDOW, LongType(), True)])
    plan.output_arrow = types.arrow_of(plan.output, plan.timezone)


class Results:
    """Turns what an operator sends for windows into rows of Spark's."""

    def __init__(self, plan: Plan, numbered: bool) -> None:
        self.made, self.outputs, self.numbered = plan.made, plan.outputs, numbered
        self.unpack: Unpack = plan.unpack()

    def rows(self, sent: Iterable[tuple[int, list[Item]]]) -> Iterator[pa.RecordBatch]:
        """The rows of windows, which come with their numbers."""
        made = [Made() for _ in self.made]
        for number, items in sent:
            for port, *rows in items:
                for row in rows:  # none: it is a punctuation, which nobody here waits for
                    made[port].add(numbered_row(row, number) if self.numbered else row)
        for port, name in enumerate(self.unpack.ports):
            schema: Any = self.outputs[port]
            if schema is not None:
                batch = fitted(made[port].taken(self.made[port]), schema)
                yield from self.unpack.rows(name, pa.Table.from_batches([batch]))


def numbered_row(row: Any, number: int) -> dict[str, Any]:
    """A row with the number of its window."""
    return {**_named(row), WINDOW: number}
