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

from windowlib.spark.homes import HOMES, taken
from windowlib.spark.packing import HELLO, REGISTER, Chunk, run_of
from windowlib.spark.store import Store
from windowlib.spark.unit import COUNTS, GAUGES, Job, Outcome, Request, Unit

METRICS = (*COUNTS, *GAUGES)
OUTPUT_DDL = ", ".join(["port int", "data binary", *(f"{name} long" for name in METRICS)])
NO_COUNTS = dict.fromkeys(METRICS)


class Processor(StatefulProcessor):
    """Runs one operator per bucket: one call a micro-batch, whatever the number of keys."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; this also runs on the driver."""
        self.handle, self.store = handle, Store(handle)

    # Spark's names, not ours: it calls some of them by keyword.
    # ruff: noqa: N802, N803
    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Rows have come for a bucket, or a greeting."""
        chunks = tuple(Chunk(row.side, row.place, bytes(row.data)) for row in rows)
        if key[0] == REGISTER:
            return self._register()
        return self._serve(chunks, timerValues, None)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Something is due in a bucket."""
        return self._serve((), timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is open."""

    def _register(self) -> Iterator[Row]:
        """Check the state of the bucket without rows, or make it."""
        head = self.store.read()
        if head is not None:
            head.check(self.job)
            return iter(())
        unit = Unit(self.job, 0)
        outcome = Outcome(unit.nonce, (), {}, None, unit.snapshot(), None)
        self.store.write(None, self.job, outcome, run_of(self.job.nonce), HOMES.address, 0)
        return iter(())

    def _serve(
        self, chunks: tuple[Chunk, ...], timers: TimerValues, expired: int | None
    ) -> Iterator[Row]:
        job, head = self.job, self.store.read()
        now = job.now(timers.getCurrentProcessingTimeInMs())
        if head is not None:
            head.check(job)
        elif all(chunk.side == HELLO for chunk in chunks):
            return
        saved, logged = (0, 0) if head is None else (head.saved, head.logged)
        run = run_of(job.nonce)
        fresh = head is None or head.run != run
        request = Request(job.nonce, chunks, now, saved, logged, fresh)
        outcome, home = taken(job, head, request, self.store.load)
        due = None if outcome.due is None else self._wake(outcome.due, timers)
        timer = self._timer(0 if head is None else head.timer, due, expired)
        self.store.write(head, job, outcome, run, home, timer)
        yield Row(port=None, data=None, **outcome.counts)
        for port, data in outcome.rows:
            yield Row(port=port, data=data, **NO_COUNTS)

    def _wake(self, due: int, timers: TimerValues) -> int:
        """When to look again, in milliseconds: if the clock is not Spark's, at once."""
        if self.job.clock is not None:
            return timers.getCurrentProcessingTimeInMs() + 1
        return -(-due // 1000)

    def _timer(self, before: int, due: int | None, expired: int | None) -> int:
        """Wake up when something is due next; the timer that is set, 0 for none."""
        timer = due if self.job.timed and due is not None else 0
        if timer != before:
            if before and before != expired:  # Spark itself deletes the one that is being told
                self.handle.deleteTimer(before)
            if timer:
                self.handle.registerTimer(timer)
        return timer
