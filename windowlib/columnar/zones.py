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
QUARTER = 900  # seconds; since 1972 clocks are put forward and back at full quarters of an hour
ALIGNED_SINCE = 2 * 366 * 86_400

Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=256)
def on_the_wall(kind: Any) -> bool:
    """Whether Python compares the values of a timestamp type as wall clocks.

    >>> on_the_wall(pa.timestamp("us", "Europe/Berlin")), on_the_wall(pa.timestamp("us", "UTC"))
    (True, False)
    """
    if not pa.types.is_timestamp(kind) or kind.tz is None or kind.tz in UTC:
        return False
    try:
        (value,) = pa.array([0], kind).to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise Decline(f"the time zone {kind.tz!r} is not known") from error
    # A fixed offset is as good as UTC, and other libraries' times compare as instants.
    return type(value).__module__ == "datetime" and isinstance(value.tzinfo, ZoneInfo)


def wall_clock(instants: Ints, kind: Any) -> Ints:
    """What the clocks of the type's zone show at these instants, in the same unit.

    Instants in the hour that a clock shows twice are declined: there is no way back.
    """
    if not len(instants):
        return instants
    low, high = int(instants.min()), int(instants.max())
    quarter = QUARTER * PER_SECOND[kind.unit]
    quarters = (high - low) // quarter + 2
    if quarters < len(instants) // 2 and low > ALIGNED_SINCE * PER_SECOND[kind.unit]:
        # The offset can only change at these few instants: where it does not, one does for all.
        grid = (low // quarter + np.arange(quarters)) * quarter
        offsets = _local(grid, kind) - grid
        if (offsets == offsets[0]).all() and _unambiguous(grid + offsets[0], grid, kind):
            shown: Ints = instants + offsets[0]
            return shown
    shown = _local(instants, kind)
    if not _unambiguous(shown, instants, kind):
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


def _unambiguous(shown: Ints, instants: Ints, kind: Any) -> bool:
    clocks = pa.array(shown).view(pa.timestamp(kind.unit))
    return all(
        np.array_equal(
            pc.assume_timezone(clocks, kind.tz, ambiguous=which).view(pa.int64()).to_numpy(),
            instants,
        )
        for which in ("earliest", "latest")
    )
