"""Arrival times of whole batches: what `Times` reads from each row, as one array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HUGE = 1 << 61
"""Times and periods from here on are for Python's own integers."""

Stamps = npt.NDArray[np.int64]

_MICROS = {"s": 10**6, "ms": 10**3, "us": 1}
# Python has datetimes between these years, in whatever zone they are shown.
_EARLIEST = -62_100_000_000 * 10**6
_LATEST = 253_300_000_000 * 10**6


def read(batch: pa.RecordBatch, times: Any, now: int) -> Stamps:
    """When the rows arrive, in microseconds, up to the first that does not say or is too early.

    The first may arrive at `now`, and each of the others with the one before it, or later. A
    column that only Python can read gives none.

    >>> batch = pa.record_batch({"ts": [1.5, 2, 2, 1, 7]})
    >>> read(batch, "ts", now=0)
    array([1500000, 2000000, 2000000])
    """
    index = batch.schema.get_field_index(times) if isinstance(times, str) else -1
    found = None if index < 0 or abs(now) >= HUGE else _micros(batch.column(index))
    if found is None:
        return np.empty(0, np.int64)
    micros, sound = found
    sound[:1] &= micros[:1] >= now
    sound[1:] &= micros[1:] >= micros[:-1]
    return micros if sound.all() else micros[: int(sound.argmin())]


def stamps_of(column: Any) -> Stamps | None:
    """When rows arrive, in any order; None if one does not say, or only Python can read it."""
    found = _micros(column)
    return found[0] if found is not None and bool(found[1].all()) else None


def _micros(column: Any) -> tuple[Stamps, npt.NDArray[np.bool_]] | None:
    """Microseconds, and which of them are right; None for types that Python has to look at."""
    kind, types = column.type, pa.types
    if types.is_float32(kind) or types.is_float64(kind):
        return _rounded(column)
    if types.is_signed_integer(kind):
        unit, least, most = 10**6, -HUGE, HUGE
    elif (types.is_timestamp(kind) or types.is_duration(kind)) and kind.unit != "ns":
        unit, least, most = _MICROS[kind.unit], _EARLIEST, _LATEST
    else:
        return None
    sound = _there(column)
    values = column.cast(pa.int64()).fill_null(0).to_numpy()
    sound &= (values > least // unit) & (values < most // unit)
    return np.where(sound, values, 0) * np.int64(unit), sound


def _rounded(column: Any) -> tuple[Stamps, npt.NDArray[np.bool_]]:
    """Seconds as floats, rounded as Python rounds them: to even, after the multiplication."""
    sound = _there(column)
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        micros = np.rint(values * 1e6)
        sound &= np.abs(micros) < HUGE
    return np.where(sound, micros, 0).astype(np.int64), sound


def _there(column: Any) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found.copy()  # it may be a view that must not be written to


def spans_between_ticks(
    stamps: Stamps, tick: int, period: int, idle: int, most: int
) -> list[tuple[int, int]]:
    """The extents `[lo, hi)` of a batch between ticks that come long after the row before.

    Ticks come at `tick` and every `period` from then on, each before the rows of its instant. A
    tick that is more than `idle` after the row before it separates two extents; so does a tick
    that would be one more than `most` in an extent.

    >>> spans_between_ticks(np.array([1, 4, 5, 7, 9, 31]), 5, 4, idle=0, most=9)
    [(0, 2), (2, 4), (4, 5), (5, 6)]
    >>> spans_between_ticks(np.array([1, 4, 5, 7, 9, 31]), 5, 4, idle=4, most=9)
    [(0, 5), (5, 6)]
    """
    if tick > stamps[-1]:
        return [(0, len(stamps))]
    period = min(period, HUGE)
    passed = np.maximum((stamps - tick) // period + 1, 0)
    last = (passed - 1) * period + tick  # the tick before each row, if there is any
    cut = (np.diff(passed) > 0) & (last[1:] - stamps[:-1] > min(idle, HUGE))
    cut |= np.diff(passed // (most + 1)) > 0
    return list(pairwise([0, *(np.flatnonzero(cut) + 1).tolist(), len(stamps)]))
