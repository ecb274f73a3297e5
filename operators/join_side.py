"""One side of a running join: its window, and who is in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from operators.join_checks import stores
from operators.join_index import Index, Resident
from operators.join_keys import Measure, Read
from windowlib.errors import StateVersionError
from windowlib.window import Window


class Side:
    """The window keeps the rows; a side knows the resident of each, by the row's identity."""

    def __init__(
        self,
        window: Window[Any, Any],
        key: Read,
        measure: Measure | None,
        index: Index,
        output: int | None,
    ) -> None:
        self.window = window
        self.index = index
        self.stores = stores(window.spec)
        self.outer = output is not None
        self.output = output or 0  # where its unmatched rows go
        self._key, self._measure = key, measure
        self._held: dict[int, Resident] = {}
        self._twins: dict[int, deque[Resident]] = {}  # of objects that were inserted again

    def arriving(self, row: Any) -> Resident:
        """A row that may become a resident."""
        resident = Resident(row, self._key(row))
        if self._measure is not None:
            resident.value = self._measure(row)
            if resident.value is None:
                resident.key = None  # what has no value is within no band
        return resident

    def enter(self, resident: Resident) -> None:
        """Its row is in the window."""
        place = id(resident.row)
        if self._held.setdefault(place, resident) is not resident:
            self._twins.setdefault(place, deque()).append(resident)
        if resident.key is not None:
            self.index.add(resident)

    def leave(self, row: Any) -> Resident:
        """A row has left the window; of an object that is there twice, the older."""
        place = id(row)
        resident = self._held.pop(place)
        if place in self._twins:
            self._held[place] = self._twins[place].popleft()
            if not self._twins[place]:
                del self._twins[place]
        if resident.key is not None:
            self.index.remove(resident)
        return resident

    def hide(self, resident: Resident) -> None:
        """It stays, and nobody has to find it any more."""
        self.index.remove(resident)
        resident.key = None

    def rows(self) -> Iterator[Any]:
        """All rows: partitions in storage order, oldest first."""
        for key in self.window.keys():  # noqa: SIM118 - it is no dict
            yield from self.window[key]

    def residents(self) -> Iterator[Resident]:
        """The same as residents."""
        met: dict[int, Iterator[Resident]] = {}
        for row in self.rows():
            place = id(row)
            if place not in self._twins:
                yield self._held[place]
                continue
            if place not in met:
                met[place] = iter((self._held[place], *self._twins[place]))
            yield next(met[place])

    def numbers(self) -> list[tuple[int, bool]]:
        """What a snapshot keeps of each resident: its number, and whether it has matched."""
        return [(resident.number, resident.matched) for resident in self.residents()]

    def readmit(self, numbers: Sequence[tuple[int, bool]], *, hide: bool) -> None:
        """Make residents of the rows of a restored window; `hide` those that have matched."""
        rows = list(self.rows())
        if len(rows) != len(numbers):
            msg = (
                f"restore(state): the snapshot is damaged ({len(rows)} rows, {len(numbers)} "
                f"residents). Take it from snapshot() whole."
            )
            raise StateVersionError(msg)
        back = [self.arriving(row) for row in rows]
        for resident, (number, matched) in zip(back, numbers, strict=True):
            resident.number, resident.matched = number, matched
            if matched and hide:
                resident.key = None
        for kept in (self._held, self._twins, self.index):
            kept.clear()
        for resident in sorted(back, key=attrgetter("number")):
            self.enter(resident)
