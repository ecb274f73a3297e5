"""What crosses Spark's shuffle: rows packed by bucket, one row of Spark's for thousands of ours.

A chunk is an Arrow stream in one binary value, with the bucket it is for, the input it belongs to,
and a number that says where it came in its task. Rows of one task so keep their order.

Spark hashes the key of a row, the hash chooses its bucket, and Spark sends a bucket to the shuffle
partition `murmur3(bucket) mod partitions`. With the numbers 0, 1, 2... some partitions would get
several buckets and others none, so the buckets have other numbers, which spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as fn
from pyspark.sql.types import DataType, NumericType

from windowlib.columnar.arrays.encoding import compact, write_stream
from windowlib.spark.python_worker import end_task, run_of

BUCKET = "_bucket"
CHUNK = pa.schema(
    {BUCKET: pa.int32(), "side": pa.int32(), "place": pa.int64(), "data": pa.binary()}
)
CHUNK_DDL = f"{BUCKET} int, side int, place long, data binary"
ROWS = 1 << 18
"""Rows that are packed at once."""
BYTES = 1 << 25
"""Bytes that are packed at once, where rows are large."""
HELLO = -1
"""The side of a chunk without rows: it only asks a bucket to show itself."""
ENDED = -2
"""The side of a chunk without rows: the input has ended."""
FOLDED = -3
"""The side of a chunk that holds partials of rows instead of the rows."""
SPANS = -4
"""The side of a chunk without rows: the times of the first and the last row of a task."""
REGISTER = -1
"""The bucket that never gets rows. It has state from the first micro-batch on, so a query that has
other buckets than before, none of which has state, still meets what the checkpoint was for."""
SEED = 42
"""That of Spark's hash partitioning."""
LOW = 0xFFFFFFFF
PINNED = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""Where tasks of a stream find the shuffle partitions of its state: in newer versions of Spark, and
in older ones."""

_greeted: set[str] = set()


class PackedRows(NamedTuple):
    """Rows of one input for one bucket, as an Arrow stream."""

    side: int
    place: int
    data: bytes


@dataclass(frozen=True)
class BucketNumbers:
    """The numbers of a query's buckets, spread over the shuffle partitions of its state.

    A checkpoint keeps the shuffle partitions that it was begun with, whatever the session says
    later. So the tasks of a stream ask what their own run has.
    """

    planned: int
    """The shuffle partitions of the session; those of a stream that begins."""
    wanted: int | None = None
    """How many buckets there are; None: as many as shuffle partitions."""
    least: int = 1
    """How many there are at least, if nothing says how many."""

    @property
    def partitions(self) -> int:
        """The shuffle partitions of the state."""
        context = TaskContext.get()
        if context is None:
            return self.planned
        said = (context.getLocalProperty(name) for name in PINNED)
        return next((int(number) for number in said if number is not None), self.planned)

    def here(self) -> tuple[int, ...]:
        """The numbers of the buckets, for the task at hand."""
        partitions = self.partitions
        return spread(self.wanted or max(self.least, partitions), partitions)


class Pack:
    """Packs the rows of one input, which carry the hash of their key in the first column.

    The first time that it runs in a process it also greets every bucket: so all of them check at
    the start of a query that their state fits it, not only those that get rows.
    """

    def __init__(
        self, side: int, numbers: BucketNumbers, nonce: str, names: Sequence[str] | None = None
    ) -> None:
        self.side, self.numbers, self.nonce, self.columns = side, numbers, nonce, names

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Chunks of the rows, in their order."""
        yield from self.greetings()
        for part in gathered(self.named(batches)):
            yield self.chunks(part)
        end_task()

    def named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows with the names of their columns, which come without: Spark takes not all of them."""
        for batch in batches:
            columns = self.columns
            yield batch if columns is None else batch.rename_columns([BUCKET, *columns])

    def greetings(self) -> Iterator[pa.RecordBatch]:
        """What comes before the rows of a task."""
        context = TaskContext.get()
        self.place = (context.partitionId() if context is not None else 0) << 32
        self.buckets = self.numbers.here()
        if self._is_first():
            everyone = (REGISTER, *self.buckets)
            yield self.rows([(bucket, HELLO, b"") for bucket in everyone])

    def chunks(self, part: pa.RecordBatch) -> pa.RecordBatch:
        """Rows, packed by bucket: all chunks are written into one piece of memory."""
        sink, buckets, ends = pa.BufferOutputStream(), [], [0]
        for bucket, rows in self._split(part):
            write_stream(compact(rows), sink)
            buckets.append(bucket)
            ends.append(sink.tell())
        places = [None, pa.py_buffer(np.array(ends, np.int32)), sink.getvalue()]
        data = pa.Array.from_buffers(pa.binary(), len(buckets), places)
        return self._numbered(buckets, [self.side] * len(buckets), data)

    def _is_first(self) -> bool:
        run = run_of(self.nonce)
        first = run not in _greeted
        _greeted.add(run)
        return first

    def rows(self, found: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
        """Chunks as rows of Spark's: for each its bucket, its side and its data."""
        buckets, sides, data = zip(*found, strict=True) if found else ((), (), ())
        return self._numbered(buckets, sides, pa.array(data, pa.binary()))

    def _numbered(
        self, buckets: Sequence[int], sides: Sequence[int], data: pa.Array
    ) -> pa.RecordBatch:
        """Chunks with their places in the task."""
        places = range(self.place, self.place + len(buckets))
        self.place += len(buckets)
        numbers = zip((buckets, sides, places), CHUNK, strict=False)
        columns = [pa.array(values, field.type) for values, field in numbers]
        return pa.RecordBatch.from_arrays([*columns, data], schema=CHUNK)

    def _split(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        places = self.places(rows)
        rows = rows.select(range(1, rows.num_columns))
        counts = np.bincount(places, minlength=len(self.buckets))
        if counts.max() < len(places):  # small numbers are sorted in linear time
            rows = rows.take(pa.array(np.argsort(places, kind="stable")))
        ends = np.cumsum(counts)
        for bucket, size, end in zip(self.buckets, counts.tolist(), ends.tolist(), strict=True):
            if size:
                yield bucket, rows.slice(end - size, size)

    def places(self, rows: pa.RecordBatch) -> np.ndarray:
        """Which of the buckets each row is for."""
        buckets = len(self.buckets)
        if buckets == 1:
            return np.zeros(rows.num_rows, np.uint8)
        return place_of(rows.column(0).to_numpy(), buckets)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer, larger batches."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield pa.concat_batches(waiting)


class ToAll:
    """Sends a chunk to every bucket of a query, whatever bucket it names."""

    def __init__(self, numbers: BucketNumbers) -> None:
        self.numbers = numbers

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each chunk, one a bucket."""
        buckets = self.numbers.here()
        for batch in batches:
            for chunk in batch.to_pylist():
                rows = [{**chunk, BUCKET: bucket} for bucket in buckets]
                yield pa.RecordBatch.from_pylist(rows, CHUNK)


def place_of(hashes: np.ndarray, buckets: int) -> np.ndarray:
    """Which of so many buckets rows with these hashes are for."""
    places: np.ndarray = hashes - hashes // buckets * buckets  # a good deal faster than `%`
    return places.astype(np.min_scalar_type(buckets))


@cache
def spread(buckets: int, partitions: int) -> tuple[int, ...]:
    """Numbers of buckets, the n-th of which goes to the shuffle partition n mod partitions.

    >>> [partition_of(bucket, 4) for bucket in spread(6, 4)]
    [0, 1, 2, 3, 0, 1]
    """
    found: list[list[int]] = [[] for _ in range(partitions)]
    wanted = [len(range(at, buckets, partitions)) for at in range(partitions)]
    missing = buckets
    for number in count():
        at = partition_of(number, partitions)
        if len(found[at]) < wanted[at]:
            found[at].append(number)
            missing -= 1
            if not missing:
                break
    return tuple([found[n % partitions][n // partitions] for n in range(buckets)])


def partition_of(bucket: int, partitions: int) -> int:
    """The shuffle partition of a bucket.

    >>> partition_of(1, 200)
    43
    """
    return _signed(_murmur3(bucket)) % partitions


def _murmur3(value: int) -> int:
    """Spark's hash of an int: Murmur3, 32 bits."""
    k = value & LOW
    k = _rotated(k * 0xCC9E2D51 & LOW, 15) * 0x1B873593 & LOW
    h = (_rotated(SEED ^ k, 13) * 5 + 0xE6546B64) & LOW
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & LOW
    h = (h ^ h >> 13) * 0xC2B2AE35 & LOW
    return h ^ h >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & LOW


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def hash_column(columns: Sequence[Any], kinds: Sequence[DataType | str]) -> Any:
    """A column with the hash of each row's key: equal keys, equal hashes."""
    if not columns:
        return fn.lit(0).cast("long")
    return fn.xxhash64(*[key.cast(kind) for key, kind in zip(columns, kinds, strict=True)])


def bucket_column(hashed: Any, buckets: Sequence[int]) -> Any:
    """A column with the bucket of each row of a static DataFrame, from its hash."""
    if len(buckets) == 1:
        return fn.lit(buckets[0]).cast("int")
    at = (fn.pmod(hashed, fn.lit(len(buckets))) + 1).cast("int")
    return fn.element_at(fn.array(*[fn.lit(bucket) for bucket in buckets]), at).cast("int")


def common_types(sides: Sequence[Sequence[DataType]]) -> list[Any]:
    """For each key column, the type in which all inputs are hashed.

    Numbers that are equal in Python are equal as doubles; any other types never meet.
    """
    found: list[Any] = []
    for kinds in zip(*sides, strict=True):
        same = all(kind == kinds[0] for kind in kinds)
        numbers = all(isinstance(kind, NumericType) for kind in kinds)
        found.append(kinds[0] if same or not numbers else "double")
    return found
