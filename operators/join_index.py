"""The indexes of a join: who of one side may match a row of the other.

An index holds the residents of a window whose key is not null. One that comes or goes, from
anywhere in the window, costs O(1): the residents of a key are a linked list, oldest to newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import attrgetter
from typing import Any

from windowlib.errors import SchemaError
from windowlib.policies import Delta


class Resident:
    """A row on its way into a window, or in it: its key, its number, whether it has matched."""

    __slots__ = ("key", "matched", "next", "number", "prev", "row", "value")
    value: Any  # of the band's attribute, if there is a band
    next: Resident | None  # of its key, as is `prev`
    prev: Resident | None  # of the first of several: the last

    def __init__(self, row: Any, key: Any) -> None:
        self.row = row
        self.key = key  # None: no row of the other side finds it
        self.matched = False
        self.number = 0  # in order of arrival; 0 until it has entered


class Index:
    """Residents by key."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._first: dict[Any, Resident] = {}

    def candidates(self, probe: Resident) -> Iterable[Resident]:
        """The residents that a row of the other side may match, oldest to newest."""
        try:
            first = self._first.get(probe.key)
        except TypeError:
            raise SchemaError(_unusable(self._owner, probe.key)) from None
        return () if first is None else _chain(first)

    def add(self, resident: Resident) -> None:
        """It is the newest of its key."""
        resident.next = resident.prev = None
        first = self._first.setdefault(resident.key, resident)
        if first is not resident:
            last = first.prev or first
            last.next, resident.prev, first.prev = resident, last, resident

    def remove(self, resident: Resident) -> None:
        """It is not there any more."""
        key, older, newer = resident.key, resident.prev, resident.next
        first = self._first[key]
        if first is resident:
            if newer is None:
                del self._first[key]
                return
            self._first[key] = newer
            newer.prev = None if older is newer else older  # which is the last
        else:
            assert older is not None
            older.next = newer
            if newer is not None:
                newer.prev = older
            else:
                first.prev = None if older is first else older
        resident.next = resident.prev = None

    def clear(self) -> None:
        """Nobody is there any more."""
        self._first.clear()

    def __iter__(self) -> Iterator[Resident]:
        for first in self._first.values():
            yield from _chain(first)


class BandIndex(Index):
    """Residents by key and, within it, sorted by the attribute of a band."""

    def __init__(self, owner: str, within: Delta) -> None:
        super().__init__(owner)
        self._limit: Any = within.threshold
        self._sorted: dict[Any, Any] = {}  # by key, lists of (value, number, resident)

    def candidates(self, probe: Resident) -> Iterable[Resident]:
        """The residents within the band of a row, oldest to newest."""
        try:
            near = self._sorted.get(probe.key)
        except TypeError:
            raise SchemaError(_unusable(self._owner, probe.key)) from None
        if near is None:
            return ()
        value, limit, at = probe.value, self._limit, (probe.value,)
        # Outwards from the value, so that each distance is computed as it is defined: bounds such
        # as value + limit may round to the wrong side, or overflow.
        below = takewhile(lambda e: value - e[0] <= limit, near.irange(None, at, reverse=True))
        above = takewhile(lambda e: e[0] - value <= limit, near.irange(at, None))
        found = [entry[2] for part in (below, above) for entry in part]
        found.sort(key=attrgetter("number"))
        return found

    def add(self, resident: Resident) -> None:
        """It is there from now on."""
        from sortedcontainers import SortedList

        near = self._sorted.get(resident.key)
        if near is None:
            near = self._sorted[resident.key] = SortedList()
        near.add((resident.value, resident.number, resident))

    def remove(self, resident: Resident) -> None:
        """It is not there any more."""
        near = self._sorted[resident.key]
        near.remove((resident.value, resident.number, resident))
        if not near:
            del self._sorted[resident.key]

    def clear(self) -> None:
        """Nobody is there any more."""
        self._sorted.clear()

    def __iter__(self) -> Iterator[Resident]:
        return (entry[2] for near in self._sorted.values() for entry in near)


def _chain(resident: Resident | None) -> Iterator[Resident]:
    while resident is not None:
        yield resident
        resident = resident.next


def _unusable(owner: str, key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    part = next((part for part in parts if type(part).__hash__ is None), key)
    return (
        f"{owner}: the value {part!r} is a {type(part).__name__}, which cannot be looked up. Join "
        f"on a column of plain values, or on a callable that makes one of it."
    )
