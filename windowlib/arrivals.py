"""When a row arrives, where one of its columns says so."""

from __future__ import annotations

from typing import Any

from windowlib.attributes import Getter
from windowlib.durations import as_instant
from windowlib.errors import ClockError
from windowlib.policies import Attribute


class Times:
    """Reads arrival times from rows, in microseconds.

    >>> Times("ts")({"ts": 1.5})
    1500000
    """

    def __init__(self, times: Attribute) -> None:
        self.column = times
        self._get = Getter(times, f"times={times!r}")

    def __call__(self, row: Any) -> int:
        """When this row arrives."""
        value = self._get(row)
        try:
            return as_instant(value)
        except ClockError:
            msg = (
                f"{self._get.owner}: the value {value!r} is no point in time. Use a column with "
                f"seconds as numbers, or with datetimes."
            )
            raise ClockError(msg) from None
