"""`windowlib run --spark`: the same operator on DataFrames of a Spark in this process.

Files are static DataFrames. The rows of a socket are a stream of small files, until it ends.
Spark has a source for sockets, too, but it reports neither the end of the connection nor the order
of lines. Here the rows are read as without Spark, so that a bad line has the same message.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from windowlib.farms import Farm
from windowlib.runtime.operator import Operator
from windowlib.spark import attach, session
from windowlib.spark.plan.attach import frame_of, prepare_session
from windowlib.spark.plan.query_plan import ending_with, plan_query
from windowlib.spark.plan.streaming import end_stream
from windowlib.spark.plan.types import spark_schema
from windowlib.spark.versions import offset_of
from windowlib.tools.commands.input_files import UNPUNCTUATED, Input, order_columns
from windowlib.tools.commands.meter import Meter
from windowlib.tools.commands.output_files import output_of
from windowlib.tools.commands.usage import UsageError, muted_stderr, spark_failures

POLL, LIVE_POLL = 0.2, 0.05
"""Seconds between two polls of Spark's progress, with files and with a socket."""
TRIGGER = "200 milliseconds"


def run_on_spark(operator: Operator, inputs: list[Input], arguments: argparse.Namespace) -> int:
    """Run the operator; rows of one key are in order, those of different keys as Spark has them."""
    live = any(each.live for each in inputs)
    for each in inputs:
        if each.live:
            check_live(operator, each, arguments)
        if each.punctuated:
            raise UsageError(f"{each.name}: {UNPUNCTUATED}")
    # Spark may still be tidying up when all is done.
    place = tempfile.TemporaryDirectory(prefix="windowlib-", ignore_cleanup_errors=True)
    with muted_stderr() as err, place as folder:
        meter = Meter(err, quiet=arguments.quiet)
        with spark_failures():
            spark = session()
            spark.sparkContext.setLogLevel("OFF")
        run = run_live if live else _run_static
        run(spark, operator, inputs, arguments, Path(folder), meter)
        meter.end()
    return 0


def _run_static(
    spark: Any,
    operator: Operator,
    inputs: list[Input],
    arguments: argparse.Namespace,
    folder: Path,
    meter: Meter,
) -> None:
    order = order_columns(arguments.order_by)
    with spark_failures():
        placed = attach(
            operator,
            port=arguments.port,
            times=arguments.times,
            order_by=... if order is None else order,
        )
        table = _collect(spark, placed(*_frames(spark, inputs, folder)), meter)
    meter.update(sum(each.total for each in inputs), table.num_rows)
    out = output_of(operator, inputs, arguments, live=False)
    try:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                out.add(row)
    finally:
        out.close()


def _frames(spark: Any, inputs: list[Input], folder: Path) -> list[Any]:
    """The inputs as DataFrames, with the types that they have here."""
    import pyarrow.parquet as pq

    found = []
    for number, each in enumerate(inputs):
        path = str(folder / f"{number}.parquet")
        pq.write_table(each.table(), path)
        found.append(spark.read.parquet(path))
    return found


def _collect(spark: Any, frame: Any, meter: Meter) -> Any:
    """The rows of a DataFrame; meanwhile the meter shows Spark's progress."""
    done: list[Any] = []

    def collect() -> None:
        try:
            done.append(frame.toArrow())
        except Exception as error:
            done.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            meter.show(lambda: _progress_text(spark.sparkContext.statusTracker()))
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        raise
    (found,) = done
    if isinstance(found, Exception):
        raise found
    return found


def _progress_text(tracker: Any) -> str:
    """Spark's progress, in tasks."""
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    tasks = sum(info.numTasks for info in infos if info is not None)
    ready = sum(info.numCompletedTasks for info in infos if info is not None)
    return f"Spark: {ready} of {tasks} tasks" if tasks else "Spark: planning"


# -- a socket -------------------------------------------------------------------------------------


def check_live(operator: Operator, source: Input, arguments: argparse.Namespace) -> None:
    """Refuse what a stream on Spark cannot do."""
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
    """Run the operator until the connection ends, or Ctrl-C."""
    (source,) = inputs
    with spark_failures():
        query = LiveQuery(spark, operator, source.rows.schema, arguments.port, folder)
    out = output_of(operator, inputs, arguments, live=True)

    def write() -> None:
        for row in query.new_rows():
            meter.rows_out += 1
            out.add(row)

    try:
        with spark_failures():
            try:
                for rows in source.rows.batches():
                    query.take(rows)
                    write()
                    if rows:
                        meter.update(query.rows, meter.rows_out)
            except UsageError:
                query.wait_for_input()  # what came before a bad line counts
                raise
            query.end()
    finally:  # on Ctrl-C, too
        query.stop()
        meter.clear()
        meter.rows_in = query.rows
        try:
            write()
        finally:
            out.close()


class LiveQuery:
    """A query over rows that are passed in batches, whose output is read as it comes."""

    def __init__(
        self, spark: Any, operator: Operator, schema: Any, port: str | None, folder: Path
    ) -> None:
        self.schema, self.folder = schema, folder / "rows"
        self.rows = self.files = 0
        self._tables: SimpleQueue[Any] = SimpleQueue()
        for name in ("rows", "ends"):
            (folder / name).mkdir()
        stream = spark.readStream.schema(spark_schema(schema, "--schema"))
        stream = stream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete")
        # A file is one task, so it has one order; its rows arrive when they come.
        placed = attach(operator, port=port, order_by=None, times=None)
        frames = [stream.parquet(str(self.folder))]
        plan = plan_query(placed.operator, placed.options, frames)
        self.plan = ending_with(plan, folder / "ends")
        prepare_session(self.plan)
        writer = frame_of(self.plan).writeStream.foreachBatch(self._put_output)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        self.query = writer.trigger(processingTime=TRIGGER).start()

    def _put_output(self, frame: Any, number: int) -> None:
        self._tables.put(frame.toArrow())

    def take(self, rows: Sequence[Any]) -> None:
        """Pass rows to the query; raises if it has failed."""
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
        """End the input, and wait for all output."""
        self.wait_for_input()
        end_stream(self.plan)
        self.files += 1
        self.wait_for_input()

    def wait_for_input(self) -> None:
        """Wait until all input is processed; in Python, not in Java, so that Ctrl-C works."""
        while self._files_taken() < self.files:
            self._check()
            time.sleep(LIVE_POLL)

    def _files_taken(self) -> int:
        """How many files have been processed, with rows or the end."""
        progress = self.query.lastProgress
        sources = progress["sources"] if progress else []
        ends = [offset_of(source["endOffset"]) for source in sources]
        return sum(end["logOffset"] + 1 for end in ends if end is not None)

    def _check(self) -> None:
        if (failure := self.query.exception()) is not None:
            raise failure

    def new_rows(self) -> Iterator[Any]:
        """The output rows since the last call."""
        while True:
            try:
                table = self._tables.get_nowait()
            except Empty:
                return
            for batch in table.to_batches():
                yield from batch.to_pylist()

    def stop(self) -> None:
        """Stop the query, whatever it is doing."""
        self.query.stop()
