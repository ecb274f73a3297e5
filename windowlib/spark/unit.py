"""One bucket at work: a running operator, what a micro-batch does to it, and its state as bytes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from windowlib.batched import Made
from windowlib.columnar.ipc import packed, unpacked
from windowlib.counters import Counters
from windowlib.errors import StateVersionError
from windowlib.operator import Operator
from windowlib.snapshot import first_change
from windowlib.spark.merging import in_turn
from windowlib.spark.packing import ENDED, HELLO, Chunk
from windowlib.spark.types import fitted

COUNTS = ("rows_in", "rows_out", "fired", "evicted", "late", "partitions_evicted", "loads")
"""What a micro-batch did, which adds up over buckets and batches."""
GAUGES = ("partitions", "state_bytes")
"""What there is, of which a bucket reports the change."""

ENTRY = 128
"""Bytes of a log entry without rows."""


@dataclass(frozen=True)
class Job:
    """What every bucket of a query runs: the operator, its columns, and who it is."""

    operator: Operator
    inputs: tuple[pa.Schema, ...]
    outputs: tuple[pa.Schema | None, ...]
    """The columns that Spark gets of each output; None if it does not want it."""
    made: tuple[pa.Schema | None, ...]
    orders: tuple[Any, ...]
    about: dict[str, str]
    nonce: str
    timed: bool = False
    aged: bool = False
    times: str | None = None
    clock: Callable[[], float] | None = None
    code: bytes = b""
    """The operator as bytes, for whoever looks at the state without the program."""

    def now(self, processing_time: int) -> int | None:
        """The time of a micro-batch in microseconds; None if it is of no matter."""
        if not (self.timed or self.aged):
            return None
        if self.clock is not None:
            return round(self.clock() * 1e6)
        return processing_time * 1000 if self.timed else time.time_ns() // 1000


@dataclass(frozen=True)
class Request:
    """What a micro-batch brings to a bucket."""

    job: str
    chunks: tuple[Chunk, ...]
    now: int | None
    saved: int
    logged: int
    fresh: bool
    """Whether this run of the query has not heard of the bucket before."""

    @property
    def size(self) -> int:
        """About how many bytes it would take to write it down."""
        return ENTRY + sum(len(chunk.data) for chunk in self.chunks)

    @property
    def changes(self) -> bool:
        """Whether anything can happen: rows, or time."""
        return self.now is not None or any(chunk.side != HELLO for chunk in self.chunks)


@dataclass(frozen=True)
class Outcome:
    """What a micro-batch made of a bucket: rows, counts, and what to write into the state store."""

    nonce: str
    rows: tuple[tuple[int, bytes], ...]
    counts: dict[str, int]
    due: int | None
    snapshot: bytes | None
    entry: bytes | None


class Unit:
    """A bucket's running operator.

    The state is written as a snapshot, or as a log of what came in since the last one. A log entry
    costs what the micro-batch costs; so a snapshot is due when the log has become larger than
    the last one was.
    """

    def __init__(self, job: Job, start: int) -> None:
        self.job, self.nonce = job, ""
        self.running = running = job.operator.open(start / 1e6)
        running._tell(start)
        running._schemas = list(job.inputs)
        self.made = [Made() for _ in running.model.outputs]
        for port, made in enumerate(self.made):
            running.connect(port, made.add)
        takes_columns(running, self.made)
        self.names = [port.name for port in running.model.outputs]
        self.counted: dict[str, int] | None = None  # after the last micro-batch
        self.end: int | None = None  # when the clock stops, if that is known
        self.ended = False  # whether a stream has said so

    @cached_property
    def counters(self) -> Counters:
        """Counts from the first micro-batch on; for static DataFrames nobody asks."""
        return Counters(self.running)

    # -- a micro-batch ----------------------------------------------------------------------------

    def step(self, request: Request) -> Outcome:
        """Take what a micro-batch brings: first the time that has passed, then its rows."""
        before = self.counted or self.counters.read()
        taken = self._take(request.chunks, request.now, self.job.orders)
        rows = [(port, made) for port, made in self._drained() if made.num_rows]
        entry = snapshot = None
        old = size = request.saved + request.logged
        if request.changes:
            if request.logged + request.size > request.saved:
                snapshot = self.snapshot()
            else:
                entry = dumped((request.now, self.job.orders, request.chunks))
            size = len(snapshot) if snapshot is not None else old + len(entry or b"")
            self.nonce = uuid.uuid4().hex
        self.counted = after = self.counters.read()
        counts = self._changes(before, after, rows)
        counts |= {"rows_in": taken, "state_bytes": size - old}
        if request.fresh:  # then what there is counts whole, not what has changed
            counts |= {"partitions": after["partitions"], "state_bytes": size}
        blobs = tuple((port, packed(made)) for port, made in rows)
        due = None if self.ended else self.running.due()
        return Outcome(self.nonce, blobs, counts, due, snapshot, entry)

    def _take(self, chunks: Sequence[Chunk], now: int | None, orders: Sequence[Any]) -> int:
        running = self.running
        if now is not None:
            running.advance_micros(max(now, running._now))
        taken = 0
        for port, table in in_turn(self._tables(chunks), orders):
            self._insert(table, port)
            taken += table.num_rows
        if any(chunk.side == ENDED for chunk in chunks):
            self.ended = True
            running.finish()
        return taken

    def _tables(self, chunks: Sequence[Chunk]) -> list[pa.Table | None]:
        """What came for each input, in the order of tasks and within them."""
        found: list[pa.Table | None] = []
        for side in range(len(self.job.inputs)):
            mine = sorted(c for c in chunks if c.side == side)
            tables = [unpacked(chunk.data) for chunk in mine]
            found.append(pa.concat_tables(tables) if tables else None)
        return found

    def fed(self, rows: pa.RecordBatch, port: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Take rows that are in order, and give what they made, by output."""
        self._insert(rows, port)
        return self._drained()

    def _insert(self, rows: Any, port: int) -> None:
        """Take rows that are in the order of the query, which may not be that of the window."""
        self.running._take_batch(rows, port, self.job.times, None)

    def finished(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The input has ended; what that makes."""
        if self.end is not None:
            self.running.advance_micros(self.end)
        self.running.finish()
        return self._drained()

    def _drained(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each output since the last time, without those that nobody wants."""
        for port, made in enumerate(self.made):
            schema = self.job.outputs[port]
            if schema is None:
                made.clear()
            else:
                yield port, fitted(made.taken(self.job.made[port]), schema)

    def _changes(
        self,
        before: dict[str, int],
        after: dict[str, int],
        rows: Sequence[tuple[int, pa.RecordBatch]],
    ) -> dict[str, int]:
        """What has happened in between, and the change in what there is."""
        found = dict.fromkeys((*COUNTS, *GAUGES), 0)
        found |= {name: max(after[name] - before[name], 0) for name in after}
        found["partitions"] = after["partitions"] - before["partitions"]
        found["rows_out"] = sum(made.num_rows for _, made in rows)
        aside = sum(made.num_rows for port, made in rows if self.names[port] == "late")
        found["late"] = max(found["late"], aside)  # dropped ones are counted where they come
        return found

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything it holds."""
        return dumped(self.running.snapshot(arrays=True))

    @classmethod
    def restored(cls, job: Job, nonce: str, snapshot: bytes, log: Sequence[bytes]) -> Unit:
        """A bucket as it was: its last snapshot, and what came in after that once more."""
        unit = cls(job, 0)
        unit.running.restore(cloudpickle.loads(snapshot))
        for entry in log:
            now, orders, chunks = cloudpickle.loads(entry)
            unit._take(chunks, now, orders)
        for made in unit.made:
            made.clear()  # of which Spark has been told
        unit.nonce = nonce
        return unit


def dumped(value: Any) -> bytes:
    """A value as bytes, also if its class lives in the user's script."""
    data: bytes = cloudpickle.dumps(value, protocol=5)  # type: ignore[no-untyped-call]
    return data


def takes_columns(running: Any, made: Sequence[Made]) -> None:
    """Let rows of the first output come as columns, if it is one operator that makes them."""
    nodes = getattr(running, "nodes", None)
    if nodes is None:
        if made:
            running.operator._many = made[0].add_columns
        return
    graph = running.operator
    for sink, to in zip(graph.sinks.values(), made, strict=True):
        readers = [stream for _, _, stream in graph._edges() if stream == sink]
        alone = not readers and list(graph.sinks.values()).count(sink) == 1
        if alone and sink.node is not None and sink.port == 0:
            takes_columns(nodes[sink.node], [to])


PARTITIONS = "spark.sql.shuffle.partitions"


def check_about(was: dict[str, str], now: dict[str, str]) -> None:
    """Refuse state of another operator, other columns or other buckets, and say what changed."""
    if (name := first_change(was, now)) is not None:
        old = was.get(name)
        fix = {
            "buckets": f"say attach(op, buckets={old}): state does not move between buckets",
            PARTITIONS: f'set spark.conf.set("{PARTITIONS}", {old}) before it starts',
        }.get(name, "build the query as it was")
        msg = (
            f"the checkpoint was written with {name}={old}; this query says "
            f"{name}={now.get(name)}. Use a new checkpoint, or {fix}."
        )
        raise StateVersionError(msg)
