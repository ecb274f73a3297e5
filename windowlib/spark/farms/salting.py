"""Salts for hot panes: the rows of one pane spread over several tasks.

A shuffle sends all rows of a pane to one task. If a pane has most of the rows, that task determines
how long the micro-batch takes. With one more column to group by, a salt, the pane has several
tasks, whose partial results are merged. Their number is decided for every batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryListener

from windowlib.control import Adaptive, WorkerStats
from windowlib.control.pid import check_count
from windowlib.errors import FarmError
from windowlib.spark.deployment import ship
from windowlib.spark.plan.types import quoted

LARGEST = 10_000
"""The driver collects the sizes of so many groups of a batch, the largest ones."""


class Salting:
    """How many salts the panes of a micro-batch get, steered by how long the last ones took.

    A group, the rows of a pane and key in a batch, gets a salt for every `policy.threshold` rows.
    With `AdaptivePid` that falls while batches take longer than the rows of the next one take to
    come, and rises while there is time left. The answer is the same whatever the salts.

    Args:
        policy: an `Adaptive` or `AdaptivePid`.
        workers: the most salts a group gets; as many as the policy has workers unless given.

    >>> from windowlib.control import Adaptive
    >>> salting = Salting(Adaptive(workers=4, warmup=1))
    >>> salting.learn([100, 100, 100])
    [1, 1, 1]
    >>> [salting.sigma(rows) for rows in (100, 101, 250, 10_000)]
    [1, 2, 3, 4]
    """

    def __init__(self, policy: Adaptive, workers: int | None = None) -> None:
        if not isinstance(policy, Adaptive):
            msg = (
                f"Salting({type(policy).__name__}): it has no threshold to cut panes at. Use "
                f"Adaptive or AdaptivePid."
            )
            raise FarmError(msg)
        self.policy = policy
        self.workers = (
            policy.workers if workers is None else check_count("Salting(workers)", workers)
        )
        self._lock = threading.Lock()  # Spark tells of progress from a thread of its own
        self._batches, self._run_id, self._last_start = 0, "", 0.0

    def sigma(self, rows: int) -> int:
        """How many salts a group of so many rows gets: 1 unless it is hot."""
        return max(1, min(self.workers, ceil(rows / self.policy.threshold)))

    def learn(self, groups: Sequence[int]) -> list[int]:
        """Take the number of rows of the groups of a batch, and say how many salts each gets.

        The policy gives recent parts more weight; here all are of one moment, so it gets them in a
        mixed order, not by size.
        """
        with self._lock:
            self._batches += 1
            sigmas = [self.sigma(rows) for rows in groups]  # of what was known before this batch
            for rows, parts in zip(groups, sigmas, strict=True):
                sizes = [rows // parts + (i < rows % parts) for i in range(parts)]
                self.policy.closed(self._batches, sizes)
        return sigmas

    def observe(self, progress: Any) -> None:
        """Take the progress of a micro-batch, as an object or a dict, and move the threshold.

        A batch takes as long as its slowest task, so its rate is that of the busiest worker. Its
        rows came since the last batch that had any began: Spark's own `inputRowsPerSecond` counts
        from the last look for rows, which in a quiet stream was a moment ago.
        """
        part = progress.get if isinstance(progress, Mapping) else lambda n: getattr(progress, n)
        rows, run, began = part("numInputRows"), str(part("runId")), _seconds(part("timestamp"))
        busy = (part("durationMs") or {}).get("triggerExecution", 0) / 1000
        if not (rows and busy):
            return
        with self._lock:
            same, came = run == self._run_id, began - self._last_start
            self._run_id, self._last_start = run, began
            if same and came > 0:  # since when the rows of a first batch had come is unknown
                stats = [WorkerStats(rows / came * busy, rows, busy)]
                self.policy.sample(began, stats, interval=busy)

    def listener(self, query: str) -> StreamingQueryListener:
        """Passes on the progress of the query of that name: `spark.streams.addListener(...)`."""
        return _Listener(self, query)

    def salted(
        self, frame: Any, *by: str, name: str = "salt", spread: Sequence[str] | None = None
    ) -> Any:
        """The rows of a micro-batch with one more column: a salt, 0 in groups that are not hot.

        Rows are counted first, in one more pass over the batch: `persist()` it if it is costly.
        The salt is a hash of the row, so a task that runs again sends it to the same place.

        Args:
            frame: a static DataFrame, as `foreachBatch` gives it.
            by: what a group has in common: the columns of its key and pane.
            name: what the column is called.
            spread: the columns to hash; all but maps, which have no hash, unless given.
        """
        counts = frame.groupBy(*by).agg(f.count(f.lit(1)).alias(name))
        largest = counts.orderBy(f.desc(name)).limit(LARGEST).orderBy(f.xxhash64(*by)).toArrow()
        sigmas = self.learn(largest[name].to_pylist())
        if max(sigmas, default=1) == 1:
            return frame.withColumn(name, f.lit(0))
        # Keys stay in Arrow: as Python's values, two hours of a change to winter time are one.
        told = largest.set_column(len(by), name, pa.array(sigmas, pa.int64()))
        hot = frame.sparkSession.createDataFrame(told.filter(pc.field(name) > 1), counts.schema)
        same = reduce(
            Column.__and__, (_qualified("rows", n).eqNullSafe(_qualified("hot", n)) for n in by)
        )
        joined = frame.alias("rows").join(f.broadcast(hot.alias("hot")), same, "left")
        maps = {field.name for field in frame.schema if field.dataType.typeName() == "map"}
        hashed = f.xxhash64(
            *(_qualified("rows", n) for n in spread or frame.columns if n not in maps)
        )
        salt = f.coalesce(f.pmod(hashed, _qualified("hot", name)), f.lit(0)).cast("int")
        return joined.select(*(_qualified("rows", n) for n in frame.columns), salt.alias(name))


def _qualified(frame: str, name: str) -> Column:
    return f.col(f"{frame}.{quoted(name)}")


def _seconds(text: Any) -> float:
    """A time that Spark has written, in seconds."""
    return datetime.fromisoformat(text).timestamp()


class _Listener(StreamingQueryListener):
    """Passes the progress of one query to a Salting."""

    def __init__(self, salting: Salting, query: str) -> None:
        self._salting, self._query = salting, query

    # Spark's names, not ours.
    # ruff: noqa: N802
    def onQueryStarted(self, event: Any) -> None:
        """Nothing to tell yet."""

    def onQueryProgress(self, event: Any) -> None:
        """A micro-batch has been committed."""
        if event.progress.name == self._query:
            self._salting.observe(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to tell."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to tell."""


def parts(frame: Any, operator: Any, *by: str, order_by: str, salt: str = "salt") -> Any:
    """The partial result of every group of a salted frame: the columns `by`, and `part`.

    A task makes the partial result of a salt, another one merges those of a group. `part` is a
    `Partial` as bytes, which `operator.partials` loads, merges with those of later batches, and has
    the rows of.

    Args:
        frame: what `Salting.salted` gave.
        operator: a `Skyline` or another query with `partials`.
        by: the columns of the key and the pane.
        order_by: the column that numbers rows in their order of arrival.
        salt: what the column with the salt is called.
    """
    ship(frame.sparkSession)
    work = operator.partials

    def of(table: pa.Table) -> Any:
        ordered = table.sort_by(order_by)
        return work.dump(work.of(ordered.drop_columns([salt]), ordered[order_by].to_numpy()))

    def merged(table: pa.Table) -> Any:
        return work.dump(reduce(work.merge, map(work.load, table["part"].to_pylist())))

    schema = frame.select(*by).schema
    salted = frame.groupBy(*by, salt).applyInArrow(
        _group_function(of, by), schema.add("part", "binary")
    )
    return salted.groupBy(*by).applyInArrow(_group_function(merged, by), salted.schema)


def _group_function(made: Callable[[pa.Table], Any], by: Sequence[str]) -> Any:
    """A function of a group that gives the columns of its key, and a partial as bytes."""

    def group(table: pa.Table) -> pa.Table:
        keys = table.select(list(by)).slice(0, 1)
        part = pa.array([made(table)], pa.binary())
        return keys.append_column("part", part)

    return group
