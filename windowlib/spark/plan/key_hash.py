"""Spark's hash of a key in Python: it determines the bucket of the state of a key.

Spark hashes the keys of rows with `xxhash64`. State has keys and no rows, so moving it needs the
same hash of a key's values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windowlib.errors import HostError
from windowlib.spark.plan.types import is_collated

SEED = 42
MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
DAY0 = date(1970, 1, 1)
ZERO, ZERO_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def key_hash(values: Sequence[Any], kinds: Sequence[DataType]) -> int:
    """Spark's `xxhash64` of columns of these types.

    >>> key_hash(["IBM", 7], [StringType(), LongType()])
    5832641129068957678
    """
    seed = SEED
    for value, kind in zip(values, kinds, strict=True):
        if value is not None:
            seed = _hasher(kind)(value, seed)
    return seed - (1 << 64) if seed >> 63 else seed


def check_hashes(kinds: Sequence[DataType]) -> None:
    """Refuse types whose values have no hash here."""
    for kind in kinds:
        _hasher(kind)


def _hasher(kind: DataType) -> Callable[[Any, int], int]:
    if isinstance(kind, DecimalType):
        return lambda value, seed: _decimal(value, kind, seed)
    found = HASHES.get(type(kind))
    if found is None or is_collated(kind):
        msg = (
            f"the key has the type {kind.simpleString()}, and windowlib does not know its hash. "
            f"Keep the number of buckets, and change the shuffle partitions alone."
        )
        raise HostError(msg)
    return found


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & MASK


def _avalanche(h: int) -> int:
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def _int(value: int, seed: int) -> int:
    """Four bytes."""
    h = (seed + P5 + 4) & MASK
    h ^= (value & 0xFFFFFFFF) * P1 & MASK
    return _avalanche((_rotate(h, 23) * P2 + P3) & MASK)


def _long(value: int, seed: int) -> int:
    """Eight bytes."""
    h = (seed + P5 + 8) & MASK
    h ^= _round(value & MASK)
    return _avalanche((_rotate(h, 27) * P1 + P4) & MASK)


def _round(value: int) -> int:
    return _rotate(value * P2 & MASK, 31) * P1 & MASK


def _bytes(data: bytes, seed: int) -> int:
    size, at = len(data), 0
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at <= size - 32:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [
                _rotate((lane + word * P2) & MASK, 31) * P1 & MASK
                for lane, word in zip(lanes, words, strict=True)
            ]
            at += 32
        h = sum(_rotate(x, bits) for x, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            h = ((h ^ _round(lane)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + size) & MASK
    while at <= size - 8:
        (word,) = struct.unpack_from("<Q", data, at)
        h = (_rotate(h ^ _round(word), 27) * P1 + P4) & MASK
        at += 8
    if at <= size - 4:
        (word,) = struct.unpack_from("<I", data, at)
        h = (_rotate(h ^ word * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = _rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
    return _avalanche(h)


def _float(value: float, seed: int) -> int:
    if value != value:
        return _int(0x7FC00000, seed)
    return _int(struct.unpack("<I", struct.pack("<f", value + 0.0))[0], seed)


def _double(value: float, seed: int) -> int:
    if value != value:
        return _long(0x7FF8000000000000, seed)
    return _long(struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0], seed)


def _decimal(value: Decimal, kind: DecimalType, seed: int) -> int:
    unscaled = int(Decimal(value).scaleb(kind.scale))
    if kind.precision <= 18:
        return _long(unscaled, seed)
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return _bytes(unscaled.to_bytes(length, "big", signed=True), seed)


def _timestamp(value: datetime, seed: int) -> int:
    start = ZERO if value.tzinfo is None else ZERO_UTC
    return _long((value - start) // MICROSECOND, seed)


HASHES: dict[type[DataType], Callable[[Any, int], int]] = {
    BooleanType: lambda value, seed: _int(int(value), seed),
    ByteType: _int,
    ShortType: _int,
    IntegerType: _int,
    LongType: _long,
    FloatType: _float,
    DoubleType: _double,
    StringType: lambda value, seed: _bytes(value.encode(), seed),
    BinaryType: lambda value, seed: _bytes(bytes(value), seed),
    DateType: lambda value, seed: _int((value - DAY0).days, seed),
    TimestampType: _timestamp,
    TimestampNTZType: _timestamp,
}
"""The hash function of each type."""
