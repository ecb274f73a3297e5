"""`windowlib run --spark`: the same operator on DataFrames of a Spark in this process."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from windowlib.commands.inputs import Input
from windowlib.commands.meter import Meter
from windowlib.commands.sockets import UNPUNCTUATED
from windowlib.commands.usage import UsageError
from windowlib.errors import WindowlibError
from windowlib.operator import Operator

LOOK = 0.2
"""Seconds between two looks at what Spark does."""
LONGEST = 400
RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


def run_on_spark(operator: Operator, inputs: list[Input], arguments: argparse.Namespace) -> int:
    """Run it; rows of one key come in their order, those of others where Spark has them."""
    from windowlib.commands.live import check_live, run_live

    live = any(each.live for each in inputs)
    for each in inputs:
        if each.live:
            check_live(operator, each, arguments)
        if each.punctuated:
            raise UsageError(f"{each.name}: {UNPUNCTUATED}")
    # Spark may still be tidying up when all is done.
    place = tempfile.TemporaryDirectory(prefix="windowlib-", ignore_cleanup_errors=True)
    with quiet() as err, place as folder:
        meter = Meter(err, quiet=arguments.quiet)
        with failures():
            from windowlib.spark import session

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
    from windowlib.commands.run import opened, order_of

    order = order_of(arguments)
    with failures():
        from windowlib.spark import attach

        placed = attach(
            operator,
            port=arguments.port,
            times=arguments.times,
            order_by=... if order is None else order,
        )
        table = _collected(spark, placed(*_frames(spark, inputs, folder)), meter)
    meter.update(sum(each.total for each in inputs), table.num_rows)
    out = opened(operator, inputs, arguments, live=False)
    try:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                out.add(row)
    finally:
        out.close()


def _frames(spark: Any, inputs: list[Input], folder: Path) -> list[Any]:
    """The inputs as Spark sees them, with the types that they have here."""
    import pyarrow.parquet as pq

    found = []
    for number, each in enumerate(inputs):
        path = str(folder / f"{number}.parquet")
        pq.write_table(each.table(), path)
        found.append(spark.read.parquet(path))
    return found


def _collected(spark: Any, frame: Any, meter: Meter) -> Any:
    """The rows of a DataFrame, while the meter shows what Spark does."""
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
            thread.join(LOOK)
            meter.say(lambda: _stages(spark.sparkContext.statusTracker()))
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        raise
    (found,) = done
    if isinstance(found, Exception):
        raise found
    return found


def _stages(tracker: Any) -> str:
    """What Spark is at."""
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    tasks = sum(info.numTasks for info in infos if info is not None)
    ready = sum(info.numCompletedTasks for info in infos if info is not None)
    return f"Spark: {ready} of {tasks} tasks" if tasks else "Spark: planning"


# -- what Spark says ------------------------------------------------------------------------------


@contextlib.contextmanager
def quiet() -> Iterator[TextIO]:
    """Send what Java and its children write on stderr away; our own stderr is what is yielded."""
    sys.stderr.flush()
    try:
        number = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # not a file, as in a notebook: nothing to send
        yield sys.stderr
        return
    ours = os.dup(number)
    with open(os.devnull, "wb") as away, os.fdopen(ours, "w", closefd=False) as err:
        os.dup2(away.fileno(), number)
        try:
            yield err
        finally:
            err.flush()
            os.dup2(ours, number)
    os.close(ours)


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn what Spark raises into one line."""
    try:
        yield
    except (WindowlibError, UsageError, OSError):
        raise
    except Exception as error:
        raise UsageError(f"Spark: {said(str(error))}") from None


def said(text: str) -> str:
    r"""The line that matters of what Spark says: the last exception, or the first line.

    >>> said("Job aborted\nTraceback:\n  File x\nwindowlib.errors.SchemaError: no such column.\n")
    'SchemaError: no such column.'
    """
    found = RAISED.findall(text)
    line = ": ".join(found[-1]) if found else text.strip().partition("\n")[0]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
