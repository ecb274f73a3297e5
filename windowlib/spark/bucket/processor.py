"""The bucketed operator inside Spark's stateful processing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from windowlib.spark.bucket.bucket import (
    COUNTS,
    GAUGES,
    Bucket,
    BucketSpec,
    MicroBatch,
    MicroBatchResult,
)
from windowlib.spark.bucket.state_cache import STATE_CACHE, run_micro_batch
from windowlib.spark.bucket.state_store import StateStore
from windowlib.spark.plan.output_rows import OutputArrays
from windowlib.spark.plan.shuffle import HELLO, REGISTER, PackedRows
from windowlib.spark.python_worker import end_task, run_of

METRICS = (*COUNTS, *GAUGES)
COUNTED = [f"{name} long" for name in METRICS]
OUTPUT_DDL = ", ".join(["port int", "data binary", *COUNTED])
NO_COUNTS, NO_ROWS = dict.fromkeys(METRICS), {"port": None, "data": None}


class Processor(StatefulProcessor):
    """Runs one operator per bucket: one call a micro-batch, whatever the number of keys.

    Args:
        spec: the operator, and its columns.
        arrays: how the rows of its output become arrays; None: they stay Arrow streams.
    """

    def __init__(self, spec: BucketSpec, arrays: OutputArrays | None = None) -> None:
        self.spec, self.arrays = spec, arrays

    @property
    def output(self) -> str:
        """The columns that it makes: its counts, and the rows of its outputs."""
        return OUTPUT_DDL if self.arrays is None else ", ".join([*COUNTED, *self.arrays.columns])

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; this also runs on the driver."""
        self.handle, self.store = handle, StateStore(handle)

    # Spark's names, not ours: it calls some of them by keyword.
    # ruff: noqa: N802, N803
    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Rows have come for a bucket, or a greeting."""
        chunks = tuple(PackedRows(int(row.side), int(row.place), bytes(row.data)) for row in rows)
        if key[0] == REGISTER:
            return self._register()
        return self._serve(chunks, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Something is due in a bucket."""
        return self._serve((), timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """All buckets of the task are done."""
        end_task()

    def _register(self) -> Iterator[Row]:
        """Check the state of the bucket without rows, or make it."""
        head = self.store.read()
        if head is not None:
            head.check(self.spec)
            return iter(())
        bucket = Bucket(self.spec, 0)
        result = MicroBatchResult(bucket.nonce, (), {}, None, bucket.snapshot(), None)
        self.store.write(
            None, self.spec.about, result, run_of(self.spec.nonce), STATE_CACHE.address, 0
        )
        return iter(())

    def _serve(
        self, chunks: tuple[PackedRows, ...], timers: TimerValues, expired: int | None
    ) -> Iterator[Row]:
        spec, head = self.spec, self.store.read()
        if spec.follows:
            now = spec.reached(timers.getCurrentWatermarkInMs())
        else:
            now = spec.now(timers.getCurrentProcessingTimeInMs())
        if head is not None:
            head.check(spec)
        elif all(chunk.side == HELLO for chunk in chunks):
            return
        saved, logged = (0, 0) if head is None else (head.saved, head.logged)
        run = run_of(spec.nonce)
        fresh = head is None or head.run != run
        batch = MicroBatch(spec.nonce, chunks, now, saved, logged, fresh)
        result, home = run_micro_batch(spec, head, batch, self.store.load)
        due = None if result.due is None else self._wake(result.due, timers)
        timer = self._timer(0 if head is None else head.timer, due, expired)
        self.store.write(head, spec.about, result, run, home, timer)
        yield from self._rows(result)

    def _rows(self, result: MicroBatchResult) -> Iterator[Row]:
        """The counts of a micro-batch, and what it has made."""
        if self.arrays is None:
            yield Row(**NO_ROWS, **result.counts)
            for port, data in result.rows:
                yield Row(port=port, data=data, **NO_COUNTS)
        else:
            yield Row(**result.counts, **dict.fromkeys(self.arrays.names))
            for _, data in result.rows:
                for columns in self.arrays(data):
                    yield Row(**NO_COUNTS, **columns)

    def _wake(self, due: int, timers: TimerValues) -> int:
        """When to look again, in milliseconds: if the clock is not Spark's, at once."""
        if self.spec.follows:
            return self.spec.timer(due, timers.getCurrentWatermarkInMs())
        if self.spec.clock is not None:
            return timers.getCurrentProcessingTimeInMs() + 1
        return -(-due // 1000)

    def _timer(self, before: int, due: int | None, expired: int | None) -> int:
        """Wake up when something is due next; the timer that is set, 0 for none."""
        timer = due or 0 if self.spec.timed or self.spec.follows else 0
        if expired is not None and 0 < timer <= expired:
            timer = expired + 1  # Spark deletes the one that it tells of: it would never be told
        if timer != before:
            if before and before != expired:  # Spark itself deletes the one that is being told
                self.handle.deleteTimer(before)
            if timer:
                self.handle.registerTimer(timer)
        return timer
