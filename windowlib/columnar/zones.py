"""Time zones: which timestamps compare as wall clocks in Python, and those wall clocks.

Python compares and subtracts two times of the same zone by what the clock on the wall shows, not
by the instants. So does the event engine, and so must arrays.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.columnar.decline import Decline

UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"})
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY = 86_400  # seconds
REGULAR = range(1_096, 365 * 400)  # days since 1970: from 1973 no zone changes twice in a day

Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=256)
def on_the_wall(kind: Any) -> bool:
    """Whether Python compares the values of a timestamp type as wall clocks.

    It does so for zones of the standard library. Where pytz is installed, as by older pandas,
    pyarrow makes times of pytz, which compare as instants.

    >>> on_the_wall(pa.timestamp("us", "UTC")), on_the_wall(pa.timestamp("us"))
    (False, False)
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None or kind.tz in UTC:
        return False
    try:
        (value,) = pa.array([0], kind).to_pylist()
    except (pa.ArrowException, ValueError, LookupError) as error:
        raise Decline(f"the time zone {kind.tz!r} is not known") from error
    # A fixed offset is as good as UTC, and other libraries' times compare as instants.
    return type(value).__module__ == "datetime" and isinstance(value.tzinfo, ZoneInfo)


def wall_clock(instants: Ints, kind: Any) -> Ints:
    """What the clocks of the type's zone show at these instants, in the same unit.

    Instants in the hour that a clock shows twice are declined: there is no way back.
    """
    if not len(instants):
        return instants
    day = DAY * PER_SECOND[kind.unit]
    days = instants // day
    low, high = int(days.min()) - 1, int(days.max()) + 1
    if low not in REGULAR or high not in REGULAR:
        return _each(instants, kind)
    grid = np.arange(low, high + 2) * day
    offsets = _local(grid, kind) - grid
    changes = np.diff(offsets) != 0  # in the course of a day
    near = changes.copy()
    near[1:] |= changes[:-1]
    near[:-1] |= changes[1:]
    days -= low
    shown: Ints = instants + offsets[days]
    if near.any():
        rows = np.flatnonzero(near[days])
        shown[rows] = _each(instants[rows], kind)
    return shown


def _each(instants: Ints, kind: Any) -> Ints:
    """Wall clocks, looked up one by one."""
    shown = _local(instants, kind)
    clocks = pa.array(shown).view(pa.timestamp(kind.unit))
    for which in ("earliest", "latest"):
        back = pc.assume_timezone(clocks, kind.tz, ambiguous=which)
        if not np.array_equal(back.view(pa.int64()).to_numpy(), instants):
            raise Decline(f"times in an hour that the clocks of {kind.tz} show twice")
    return shown


def instants(shown: Any, kind: Any) -> Any:
    """The timestamps of a type with a zone at which its clocks show these times."""
    try:
        return pc.assume_timezone(shown, kind.tz)
    except pa.ArrowInvalid as error:
        raise Decline(f"a time that the clocks of {kind.tz} show twice or never") from error


def _local(instants: Ints, kind: Any) -> Ints:
    shown: Ints = pc.local_timestamp(pa.array(instants).view(kind)).view(pa.int64()).to_numpy()
    return shown
