"""`windowlib run --spark` on a socket: what comes is a stream of small files, until it ends.

Spark has a source for sockets, too: it tells neither when the other side ends, nor in which order
lines came. Here the rows are read as without Spark, so that a bad line is the same mistake.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from windowlib.commands.inputs import Input
from windowlib.commands.meter import Meter
from windowlib.commands.usage import UsageError
from windowlib.operator import Operator

LOOK = 0.05
"""Seconds between two looks at what Spark does."""
TRIGGER = "200 milliseconds"


def check_live(operator: Operator, source: Input, arguments: argparse.Namespace) -> None:
    """Refuse what a stream on Spark cannot do."""
    from windowlib.farms.farm import Farm

    if source.rows.schema is None:
        msg = f"{source.name}: Spark asks for the columns before the first row comes."
        raise UsageError(f'{msg} Say them: --schema "symbol string, price double".')
    if arguments.times is not None:
        msg = "--times: on Spark, rows of a socket arrive when they come."
        raise UsageError(f"{msg} Leave out --times, or --spark.")
    if isinstance(operator, Farm):
        msg = f"{source.name}: a farm on Spark does not end with a socket."
        raise UsageError(f"{msg} Give its operator, or leave out --spark.")


def run_live(
    spark: Any,
    operator: Operator,
    inputs: list[Input],
    arguments: argparse.Namespace,
    folder: Path,
    meter: Meter,
) -> None:
    """Run it until the other side ends, or Ctrl-C."""
    from windowlib.commands.on_spark import failures
    from windowlib.commands.run import opened

    (source,) = inputs
    with failures():
        query = Query(spark, operator, source.rows.schema, arguments.port, folder)
    out = opened(operator, inputs, arguments, live=True)

    def write() -> None:
        for row in query.made():
            meter.made += 1
            out.add(row)

    try:
        with failures():
            try:
                for rows in source.rows.pieces():
                    query.take(rows)
                    write()
                    if rows:
                        meter.update(query.rows, meter.made)
            except UsageError:
                query.settle()  # what came before a bad line is somebody's
                raise
            query.end()
    finally:  # on Ctrl-C, too
        query.stop()
        meter.clear()
        meter.taken = query.rows
        try:
            write()
        finally:
            out.close()


class Query:
    """A query over rows that it is given, some at a time, and whose output is asked for."""

    def __init__(
        self, spark: Any, operator: Operator, schema: Any, port: str | None, folder: Path
    ) -> None:
        from windowlib.spark.attach import attach
        from windowlib.spark.ending import Ending
        from windowlib.spark.types import spark_of

        self.schema, self.folder = schema, folder / "rows"
        self.rows = self.files = 0
        self._made: SimpleQueue[Any] = SimpleQueue()
        for name in ("rows", "ends"):
            (folder / name).mkdir()
        stream = spark.readStream.schema(spark_of(schema, "--schema"))
        stream = stream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete")
        placed = attach(operator, port=port, order_by=None)  # a file is one task, so one order
        self.plan = Ending(placed, [stream.parquet(str(self.folder))], folder / "ends")
        self.plan.prepare()
        writer = self.plan.frame().writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        self.query = writer.trigger(processingTime=TRIGGER).start()

    def _keep(self, frame: Any, number: int) -> None:
        self._made.put(frame.toArrow())

    def take(self, rows: Sequence[Any]) -> None:
        """Give it rows; whether it has failed is seen here."""
        self._check()
        if not rows:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.rows, self.files = self.rows + len(rows), self.files + 1
        hidden = self.folder / f".{self.files}"
        pq.write_table(pa.Table.from_pylist(list(rows), self.schema), hidden)
        os.utime(hidden, (self.files, self.files))  # Spark takes the oldest first
        hidden.rename(self.folder / f"{self.files}.parquet")

    def end(self) -> None:
        """No more rows come; wait for all that comes out."""
        self.settle()
        self.plan.end()
        self.files += 1
        self.settle()

    def settle(self) -> None:
        """Wait until all that it was given is in; not in Java, so that Ctrl-C gets through."""
        while self._taken() < self.files:
            self._check()
            time.sleep(LOOK)

    def _taken(self) -> int:
        """How many files are in, of rows and of the end."""
        progress = self.query.lastProgress
        sources = progress["sources"] if progress else []
        ends = [json.loads(source["endOffset"] or "null") for source in sources]
        return sum(end["logOffset"] + 1 for end in ends if end is not None)

    def _check(self) -> None:
        if (failure := self.query.exception()) is not None:
            raise failure

    def made(self) -> Iterator[Any]:
        """The rows that have come out since the last time."""
        while True:
            try:
                table = self._made.get_nowait()
            except Empty:
                return
            for batch in table.to_batches():
                yield from batch.to_pylist()

    def stop(self) -> None:
        """Let go of it, whatever it is at."""
        self.query.stop()
