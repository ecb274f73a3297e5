"""Which bucket a row belongs to, computed by Spark, and bucket numbers that spread evenly.

Spark sends a bucket to the shuffle partition `murmur3(bucket) mod partitions`. With the numbers
0, 1, 2... some partitions would get several buckets and others none, so other numbers are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from pyspark.sql import functions as fn
from pyspark.sql.types import DataType, NumericType

SEED = 42
LOW = 0xFFFFFFFF


def spread(buckets: int, partitions: int) -> list[int]:
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
    return [found[n % partitions][n // partitions] for n in range(buckets)]


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


def bucket_column(columns: Sequence[str], kinds: Sequence[DataType], buckets: Sequence[int]) -> Any:
    """A column with the bucket of each row: equal keys, equal buckets."""
    if len(buckets) == 1 or not columns:
        return fn.lit(buckets[0]).cast("int")
    keys = [fn.col(f"`{name}`").cast(kind) for name, kind in zip(columns, kinds, strict=True)]
    at = fn.pmod(fn.xxhash64(*keys), fn.lit(len(buckets))) + 1
    return fn.element_at(fn.array(*[fn.lit(bucket) for bucket in buckets]), at.cast("int")).cast(
        "int"
    )


def common_kinds(sides: Sequence[Sequence[DataType]]) -> list[Any]:
    """For each key column, the type in which all inputs are hashed.

    Numbers that are equal in Python are equal as doubles; any other types never meet.
    """
    found: list[Any] = []
    for kinds in zip(*sides, strict=True):
        same = all(kind == kinds[0] for kind in kinds)
        numbers = all(isinstance(kind, NumericType) for kind in kinds)
        found.append(kinds[0] if same or not numbers else "double")
    return found
