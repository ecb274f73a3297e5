"""What the tests on Spark share: rows as files, streams over them, and a clock in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from windowlib import Operator

Rows = Sequence[Mapping[str, Any]]


def write(folder: Path, number: int, rows: Rows, schema: pa.Schema) -> None:
    """Rows as one file, which a stream takes in the order of numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden, path = folder / f".{number}", folder / f"{number:04}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema), hidden)
    os.utime(hidden, (number + 1, number + 1))
    hidden.rename(path)


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder as a stream, one a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return files.parquet(str(folder))


@dataclass(frozen=True)
class FileClock:
    """A clock that stands still until a test moves it; every process reads the same file."""

    path: str

    def __call__(self) -> float:
        return float(Path(self.path).read_text())

    def set(self, seconds: float) -> None:
        """Move it; nobody ever sees half of a number."""
        draft = f"{self.path}.new"
        Path(draft).write_text(str(seconds))
        os.replace(draft, self.path)


# -- several operators in one query ---------------------------------------------------------------


def named(name: str, frame: DataFrame) -> DataFrame:
    """Rows as text, so that outputs with any columns go into one DataFrame."""
    text = fn.to_json(fn.struct("*"), {"ignoreNullFields": "false"})
    return frame.select(fn.lit(name).alias("name"), text.alias("row"))


def union(frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of several DataFrames, each with its name."""
    whole = None
    for name, frame in frames.items():
        part = named(name, frame)
        whole = part if whole is None else whole.union(part)
    assert whole is not None
    return whole


def grouped(names: Iterable[str], size: int = 8) -> list[list[str]]:
    """A few names at a time: Spark takes long to plan a large union, and longer to run it."""
    found = list(names)
    return [found[at : at + size] for at in range(0, len(found), size)]


def by_name(rows: Iterable[Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of a `union`, in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(json.loads(row.row))
    return found


def by_key(
    rows: Iterable[Mapping[str, Any]], key: str | tuple[str, ...] | None
) -> dict[tuple[Any, ...], list[Any]]:
    """Rows by their output and the values of columns, in their order."""
    names = () if key is None else (key,) if isinstance(key, str) else key
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        found.setdefault((row.get("_port"), *(row.get(n) for n in names)), []).append(row)
    return found


def shaped(items: Iterable[tuple[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Ports and rows as Spark shows them: with these columns, and none of the rest."""
    made = [{**row, "_port": port} for port, row in items]
    return [{name: row.get(name) for name in columns} for row in made]


@dataclass
class Batch:
    """What one micro-batch did: how many rows it took, and what came out."""

    number: int
    taken: int
    rows: list[Any]


class Query:
    """A stream that runs until its files are used up, and may be run again from its checkpoint.

    Not for operators that wait for the clock: for them Spark goes on without rows.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.batches: dict[int, Batch] = {}

    def run(self, frame: DataFrame) -> None:
        """Take all files that are there."""

        def take(batch: DataFrame, number: int) -> None:
            self.batches[number] = Batch(number, 0, batch.collect())

        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        query.awaitTermination()
        for progress in query.recentProgress:
            if (batch := self.batches.get(progress["batchId"])) is not None:
                batch.taken = max(batch.taken, progress["numInputRows"])

    @property
    def rows(self) -> list[Any]:
        """All that came out."""
        return [row for number in sorted(self.batches) for row in self.batches[number].rows]


# -- what should come out -------------------------------------------------------------------------


def merged(inputs: Sequence[Rows], orders: Sequence[str | None]) -> Iterator[tuple[int, Any]]:
    """Rows of several inputs in their turn: by their columns, or input after input."""
    tagged = [(port, row) for port, rows in enumerate(inputs) for row in rows]
    if all(order is not None for order in orders):
        tagged.sort(key=lambda each: (each[1][str(orders[each[0]])], each[0]))
    return iter(tagged)


def unended(
    operator: Operator,
    batches: Iterable[tuple[float | None, Sequence[Rows]]],
    orders: Sequence[str | None] = ("ts",),
) -> list[tuple[str, Any]]:
    """Output ports and rows of an input that goes on: for each batch the time, and the rows."""
    made: list[tuple[str, Any]] = []
    running: Any = None
    for now, inputs in batches:
        if running is None:
            running = operator.open(now or 0)
            for port in operator.model.outputs:
                running.connect(port.name, lambda row, name=port.name: made.append((name, row)))
        if now is not None:
            running.advance(now)
        for side, row in merged(inputs, orders):
            running.insert(row, side)
    return made
