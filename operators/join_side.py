"""One side of a running join: its window, and the residents in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from operators.join_checks import stores
from operators.join_index import Resident, Residents
from windowlib.errors import StateVersionError
from windowlib.window import Window


class Side:
    """What a running join knows of one of its inputs."""

    __slots__ = ("outer", "output", "residents", "stores", "window")

    def __init__(self, window: Window[Any, Any], residents: Residents, output: int | None) -> None:
        self.window = window
        self.residents = residents
        self.stores = stores(window.spec)
        self.outer = output is not None
        self.output = output or 0  # where its unmatched rows go

    def rows(self) -> Iterator[Any]:
        """All rows: partitions in storage order, oldest first."""
        for key in self.window.keys():  # noqa: SIM118 - it is no dict
            yield from self.window[key]

    def stored(self) -> Iterator[Resident]:
        """The same as residents."""
        return self.residents.of(self.rows())

    def numbers(self) -> list[tuple[int, bool]]:
        """What a snapshot keeps of each resident: its number, and whether it has matched."""
        return [(resident.number, resident.matched) for resident in self.stored()]

    def readmit(self, numbers: Sequence[tuple[int, bool]], *, hide: bool) -> None:
        """Make residents of the rows of a restored window; `hide` those that have matched."""
        rows = list(self.rows())
        if len(rows) != len(numbers):
            msg = (
                f"restore(state): the snapshot is damaged ({len(rows)} rows, {len(numbers)} "
                f"residents). Take it from snapshot() whole."
            )
            raise StateVersionError(msg)
        back = []
        for row, (number, matched) in zip(rows, numbers, strict=True):
            resident = self.residents.arriving(row)
            resident.number, resident.matched = number, matched
            if matched and hide:
                resident.key = None
            back.append(resident)
        self.residents.clear()
        for resident in sorted(back, key=attrgetter("number")):
            self.residents.add(resident)
