"""One bucket at work: a running operator, what a micro-batch does to it, and its state as bytes."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.columnar.engines.event_time import SlicePartials
from windowlib.errors import StateError, StateVersionError, WindowlibError
from windowlib.runtime.counters import Counters
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.spark.bucket.held_rows import SPAN, HeldRows
from windowlib.spark.plan.input_merge import merged_inputs
from windowlib.spark.plan.shuffle import (
    ENDED,
    FOLDED,
    HELLO,
    SPANS,
    BucketNumbers,
    PackedRows,
)
from windowlib.spark.plan.types import fitted
from windowlib.window.arrow import OutputRows
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.snapshot import first_change
from windowlib.window.state_bytes import dump_state, load_state

COUNTS = ("rows_in", "rows_out", "fired", "evicted", "late", "partitions_evicted", "loads")
"""What a micro-batch did, which adds up over buckets and batches."""
GAUGES = ("partitions", "state_bytes")
"""What there is, of which a bucket reports the change."""

ENTRY = 128
"""Bytes of a log entry without rows."""


@dataclass(frozen=True)
class BucketSpec:
    """What every bucket of a query runs: the operator, its columns, and its fingerprint."""

    operator: Operator
    inputs: tuple[pa.Schema, ...]
    outputs: tuple[pa.Schema | None, ...]
    """The columns that Spark gets of each output; None if it does not want it."""
    made: tuple[pa.Schema | None, ...]
    orders: tuple[Any, ...]
    fingerprint: Mapping[str, str]
    """What must not change as long as a checkpoint lives."""
    nonce: str
    timed: bool = False
    aged: bool = False
    times: str | None = None
    clock: Callable[[], float] | None = None
    follows: int = 0
    """How much a millisecond of Spark's watermark is on the axis of its windows; 0: they have their
    own."""
    holds: bool = False
    """Whether Spark's watermark is the clock, and rows wait until it has passed them."""
    description: Mapping[str, Any] = field(default_factory=dict)
    """A description of the query for readers of its state, as plain data."""
    numbers: BucketNumbers | None = None
    """How its buckets are numbered; None for one that is only read."""

    @cached_property
    def identity(self) -> dict[str, str]:
        """The fingerprint, and what decides the numbers of the buckets in the task at hand."""
        if self.numbers is None:
            return dict(self.fingerprint)
        buckets, partitions = len(self.numbers.here()), self.numbers.partitions
        return {**self.fingerprint, "buckets": str(buckets), PARTITIONS: str(partitions)}

    @cached_property
    def about(self) -> str:
        """The metadata of the state: the fingerprint, and the description of the query."""
        return json.dumps({"fingerprint": self.identity, **self.description})

    def now(self, processing_time: int) -> int | None:
        """The time of a micro-batch in microseconds; None if it is irrelevant."""
        if not (self.timed or self.aged):
            return None
        if self.clock is not None:
            return round(self.clock() * 1e6)
        return processing_time * 1000 if self.timed else time.time_ns() // 1000

    def reached(self, watermark: int) -> int | None:
        """Spark's watermark on the axis of the windows; None if it is not there yet."""
        return watermark * self.follows or None

    def timer(self, due: int, watermark: int) -> int:
        """The timer for a window that a watermark may close; both in milliseconds.

        Spark tells of timers that its watermark has passed, some versions of those that it has
        reached. One that is due already is of a session, which closes only when the watermark is
        past its end.
        """
        return max(-(-due // self.follows) - 1, watermark, 1)


@dataclass(frozen=True)
class MicroBatch:
    """What a micro-batch brings to a bucket."""

    query: str
    """The nonce of the query."""
    chunks: tuple[PackedRows, ...]
    now: int | None
    """The time, or the watermark that windows of event time follow."""
    saved: int
    logged: int
    fresh: bool
    """Whether this run of the query has not heard of the bucket before."""

    @property
    def size(self) -> int:
        """About how many bytes an entry of the log takes."""
        return ENTRY + sum(len(chunk.data) for chunk in self.chunks)

    @property
    def changes(self) -> bool:
        """Whether anything can happen: rows, or time."""
        return self.now is not None or any(chunk.side != HELLO for chunk in self.chunks)

    def entry(self, orders: Sequence[Any], before: str, after: str) -> bytes:
        """The entry of the log, between the nonces of the states before it and after it."""
        chunks = [tuple(chunk) for chunk in self.chunks]
        return dump_state((before, after, self.now, tuple(orders), chunks))


@dataclass(frozen=True)
class MicroBatchResult:
    """What a micro-batch made of a bucket: rows, counts, and what to write into the state store."""

    nonce: str
    rows: tuple[tuple[int, bytes], ...]
    counts: dict[str, int]
    due: int | None
    snapshot: bytes | None
    entry: bytes | None

    def plain(self) -> bool:
        """Whether it is what its types say, for one that comes from another process."""
        rows = all(type(port) is int and type(data) is bytes for port, data in self.rows)
        counts = all(type(each) is int for each in self.counts.values())
        blobs = all(type(each) in (bytes, type(None)) for each in (self.snapshot, self.entry))
        return rows and counts and blobs and type(self.nonce) is str


class Bucket:
    """The running operator of one bucket, its outputs and its counts.

    The state is written as a snapshot, or as a log of what came in since the last one. A log entry
    costs what the micro-batch costs; so a snapshot is due when the log has become larger than
    the last one was.
    """

    def __init__(self, spec: BucketSpec, start: int) -> None:
        self.spec, self.nonce = spec, ""
        self.names = [port.name for port in spec.operator.model.outputs]
        self.made = [OutputRows() for _ in self.names]
        self.held: HeldRows | None = None
        if spec.holds:
            assert spec.times is not None
            self.held = HeldRows(spec.times, len(spec.inputs))
        self.counted: dict[str, int] | None = None  # after the last micro-batch
        self.end: int | None = None  # when the clock stops, if that is known
        self.ended = False  # whether a stream has said so
        self._open(start)

    def _open(self, start: int) -> None:
        """Start the operator at a time, before the first row."""
        spec = self.spec
        self.running = running = spec.operator.open(start / 1e6)
        running.begin(start, spec.inputs)
        running.isolate_partition_ages()
        if spec.follows and not spec.holds:
            running.follow()
        running.collect(self.made)
        vars(self).pop("counters", None)  # those of one that never got a row

    @cached_property
    def counters(self) -> Counters:
        """Counts from the first micro-batch on; those of static DataFrames are never read."""
        return Counters(self.running)

    def step(self, batch: MicroBatch) -> MicroBatchResult:
        """Take what a micro-batch brings: first the time that has passed, then its rows."""
        before = self.counted or self.counters.read()
        late = 0 if self.held is None else self.held.late
        taken = self._take(batch.chunks, batch.now, self.spec.orders)
        rows = [(port, made) for port, made in self._drained() if made.num_rows]
        entry = snapshot = None
        old = size = batch.saved + batch.logged
        if batch.changes:
            last, self.nonce = self.nonce, uuid.uuid4().hex
            if batch.logged + batch.size > batch.saved:
                snapshot = self.snapshot()
            else:
                entry = batch.entry(self.spec.orders, last, self.nonce)
            size = len(snapshot) if snapshot is not None else old + len(entry or b"")
        self.counted = after = self.counters.read()
        counts = self._changes(before, after, rows)
        counts |= {"rows_in": taken, "state_bytes": size - old}
        if self.held is not None:
            counts["late"] += self.held.late - late
        if batch.fresh:  # then what there is counts whole, not what has changed
            counts |= {"partitions": after["partitions"], "state_bytes": size}
        blobs = tuple((port, stream_bytes(made)) for port, made in rows)
        return MicroBatchResult(self.nonce, blobs, counts, self._due(), snapshot, entry)

    def _due(self) -> int | None:
        """When to look again, on the clock or the axis that it follows."""
        if self.ended:
            return None
        if self.held is not None:
            known = [self.held.due(), self.running.due() if self.held.started else None]
            return min((at for at in known if at is not None), default=None)
        return self.running.closes() if self.spec.follows else self.running.due()

    def _take(self, chunks: Sequence[PackedRows], now: int | None, orders: Sequence[Any]) -> int:
        if self.held is not None:
            return self._hold(self.held, chunks, now, orders)
        running = self.running
        if now is not None and self.spec.follows:
            running.reach(now)
        elif now is not None:
            running.advance_micros(max(now, running.micros))
        taken = 0
        merge = not self.spec.operator.waits
        for port, table in merged_inputs(self._tables(chunks), orders, merge=merge):
            self._insert(table, port)
            taken += table.num_rows
        if folded := sorted(chunk for chunk in chunks if chunk.side == FOLDED):
            taken += absorb(running, [chunk.data for chunk in folded], self.spec.inputs[0])
        if any(chunk.side == ENDED for chunk in chunks):
            self.ended = True
            running.finish()
        return taken

    def _hold(
        self,
        held: HeldRows,
        chunks: Sequence[PackedRows],
        now: int | None,
        orders: Sequence[Any],
    ) -> int:
        """Take what the watermark has passed, and let the rows of a micro-batch wait for it."""
        held.mark = now if now is not None else held.mark
        self._release(held, orders)
        taken = 0
        for port, table in enumerate(self._tables(chunks)):
            if table is not None:
                held.add(table, port)
                taken += table.num_rows
        for chunk in chunks:
            if chunk.side == SPANS:
                held.widen(*SPAN.unpack(chunk.data))
        if any(chunk.side == ENDED for chunk in chunks):
            self.ended = True
            held.mark = None if held.last is None else held.last + 1
            self._release(held, orders, held.last)
            self.running.finish()
        return taken

    def _release(self, held: HeldRows, orders: Sequence[Any], until: int | None = None) -> None:
        """Let the operator take the rows that the watermark has passed, and move its clock."""
        if (start := held.starts()) is not None:
            self._open(start)
        if not held.started:
            return
        for port, table in held.passed(orders):
            self._insert(table, port)
        now = held.mark if until is None else until
        assert now is not None
        self.running.advance_micros(max(now, self.running.micros))

    def _tables(self, chunks: Sequence[PackedRows]) -> list[pa.Table | None]:
        """The rows of each input, in the order of tasks and of rows within a task."""
        found: list[pa.Table | None] = []
        for side in range(len(self.spec.inputs)):
            mine = sorted(c for c in chunks if c.side == side)
            tables = [stream_table(chunk.data) for chunk in mine]
            found.append(pa.concat_tables(tables) if tables else None)
        return found

    def fed(self, rows: pa.RecordBatch, port: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Take rows that are in order, and give what they made, by output."""
        self._insert(rows, port)
        return self._drained()

    def _insert(self, rows: Any, port: int) -> None:
        """Take rows that are in the order of the query, which may not be that of the window."""
        self.running.insert_ordered(rows, port, self.spec.times)

    def finished(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows that come out at the end of the input."""
        if self.end is not None:
            self.running.advance_micros(self.end)
        self.running.finish()
        return self._drained()

    def _drained(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows since the last time of each output that the query uses."""
        for port, made in enumerate(self.made):
            schema = self.spec.outputs[port]
            if schema is None:
                made.clear()
            else:
                yield port, fitted(made.taken(self.spec.made[port]), schema)

    def _changes(
        self,
        before: dict[str, int],
        after: dict[str, int],
        rows: Sequence[tuple[int, pa.RecordBatch]],
    ) -> dict[str, int]:
        """The counts of a micro-batch, and the changes of the gauges."""
        found = dict.fromkeys((*COUNTS, *GAUGES), 0)
        found |= {name: max(after[name] - before[name], 0) for name in after}
        found["partitions"] = after["partitions"] - before["partitions"]
        found["rows_out"] = sum(made.num_rows for _, made in rows)
        aside = sum(made.num_rows for port, made in rows if self.names[port] == "late")
        found["late"] = max(found["late"], aside)  # dropped ones are counted where they come
        return found

    def snapshot(self) -> bytes:
        """Everything it holds, with the nonce of this state."""
        held = None if self.held is None else self.held.snapshot()
        return dump_state((self.nonce, self.running.snapshot(arrays=True), held))

    @classmethod
    def restored(
        cls, spec: BucketSpec, nonce: str, snapshot: bytes, log: Sequence[bytes]
    ) -> Bucket:
        """A bucket as it was: its last snapshot, and what came in after that once more."""
        with _written_by_bucket():
            at, state, held = load_state(snapshot)
            entries = [load_state(entry) for entry in log]
            _ = [(before, after, now) for before, after, now, _, _ in entries]
        for before, after, *_ in entries:
            check_nonce(before, at)
            at = after
        check_nonce(nonce, at)
        bucket = cls(spec, 0)  # what there is belongs together
        bucket.nonce = nonce
        if bucket.held is not None:
            with _written_by_bucket():
                bucket.held.restore(held)
        bucket.running.restore(state)
        for _, _, now, orders, chunks in entries:
            bucket._take([PackedRows(*chunk) for chunk in chunks], now, orders)
        for made in bucket.made:
            made.clear()  # Spark has these rows already
        return bucket


@contextmanager
def _written_by_bucket() -> Iterator[None]:
    """Refuse state that has the right checksum, and is of another form."""
    try:
        yield
    except WindowlibError:
        raise
    except (TypeError, ValueError, KeyError, pa.ArrowException) as error:
        msg = (
            "the state in the checkpoint is none that a bucket has written. Restore the checkpoint "
            "from a copy, or use a new one."
        )
        raise StateError(msg) from error


def check_nonce(wanted: str, found: str) -> None:
    """Refuse a snapshot and a log that do not follow one another."""
    if wanted != found:
        msg = (
            f"the state in the checkpoint does not belong together: {wanted or 'the start'} is "
            f"wanted, and {found or 'the start'} is there. Restore the checkpoint from a copy, or "
            f"use a new one."
        )
        raise StateError(msg)


def absorb(running: Running, data: Sequence[bytes], schema: pa.Schema) -> int:
    """Let the window of event time take rows that were folded before the shuffle; how many."""
    parts = [SlicePartials(*load_state(each)) for each in data]
    (window,) = running.windows
    assert isinstance(window, EventTimeWindow)
    window.absorb(parts, schema)
    return sum(int(each.n.sum()) for each in parts)


PARTITIONS = "spark.sql.shuffle.partitions"


def check_fingerprint(was: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse state of another operator, other columns or other buckets, and say what changed."""
    if (name := first_change(was, now)) is not None:
        old = was.get(name)
        fix = {
            "buckets": f"say attach(op, buckets={old}), or move its state: windowlib state rescale",
            PARTITIONS: "move its state: windowlib state rescale",
        }.get(name, "build the query as it was")
        msg = (
            f"the checkpoint was written with {name}={old}; this query says "
            f"{name}={now.get(name)}. Use a new checkpoint, or {fix}."
        )
        raise StateVersionError(msg)
