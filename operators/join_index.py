"""The residents of one side of a join, and the indexes that find them.

A window holds the rows; a `Resident` says of a row what only the join knows. Finding those with
an equality key costs one lookup, and a row that comes or goes costs O(1), from anywhere in the
window: the residents of one key are a linked list from oldest to newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import attrgetter
from typing import Any

from operators.join_keys import Measure, Read
from windowlib.errors import SchemaError


class Resident:
    """A row on its way into a window, or in it: its key, its number, whether it has matched."""

    __slots__ = ("key", "matched", "next", "number", "prev", "row", "twins", "value")
    value: Any  # of the band's attribute, if there is a band

    def __init__(self, row: Any, key: Any) -> None:
        self.row = row
        self.key = key
        self.matched = False
        self.number = 0  # in order of arrival; 0 until it has entered
        self.twins: deque[Resident] | None = None  # the same object, inserted again
        self.next: Resident | None = None
        self.prev: Resident | None = None  # of the first of a key: the last


class Residents:
    """The residents of a side by equality key, oldest to newest."""

    def __init__(self, key: Read, owner: str) -> None:
        self._key = key
        self._owner = owner
        self._held: dict[int, Resident] = {}  # by identity of the row
        self._first: dict[Any, Resident] = {}  # of each key that is not null

    def arriving(self, row: Any) -> Resident:
        """A row that may become a resident."""
        return Resident(row, self._key(row))

    def candidates(self, probe: Resident) -> Iterable[Resident]:
        """The residents that a row of the other side may match, oldest to newest."""
        try:
            first = self._first.get(probe.key)
        except TypeError:
            raise SchemaError(_unusable(self._owner, probe.key)) from None
        return () if first is None else _chain(first)

    def add(self, resident: Resident) -> None:
        """The row has entered the window."""
        held = self._held.setdefault(id(resident.row), resident)
        if held is not resident:
            if held.twins is None:
                held.twins = deque()
            held.twins.append(resident)
        if resident.key is not None:
            self._link(resident)

    def remove(self, row: Any) -> Resident:
        """The row has left the window; of a row that was inserted twice, the older one."""
        resident = self._held.pop(id(row))
        if resident.twins:
            older = resident.twins.popleft()
            older.twins = resident.twins
            self._held[id(row)] = older
        if resident.key is not None:
            self._unlink(resident)
        return resident

    def hide(self, resident: Resident) -> None:
        """It stays, and no row of the other side finds it any more."""
        self._unlink(resident)
        resident.key = None

    def of(self, rows: Iterable[Any]) -> Iterator[Resident]:
        """The residents of rows that are given in the order in which they will leave."""
        twins: dict[int, Iterator[Resident]] = {}
        for row in rows:
            held = self._held[id(row)]
            if held.twins is None:
                yield held
            else:
                yield next(twins.setdefault(id(row), iter((held, *held.twins))))

    def clear(self) -> None:
        """Forget everybody."""
        self._held.clear()
        self._first.clear()

    def _link(self, resident: Resident) -> None:
        first = self._first.setdefault(resident.key, resident)
        last = first.prev
        if last is not None:
            last.next, resident.prev = resident, last
        first.prev = resident

    def _unlink(self, resident: Resident) -> None:
        first, older, newer = self._first[resident.key], resident.prev, resident.next
        if resident is first:
            if newer is None:
                del self._first[resident.key]
            else:
                self._first[resident.key] = newer
                newer.prev = older  # of the first, that is the last
        else:
            assert older is not None
            older.next = newer
            (first if newer is None else newer).prev = older
        resident.prev = resident.next = None  # no cycle, so it is freed at once


class BandResidents(Residents):
    """The residents of a side by equality key and, within it, sorted by a band's attribute."""

    def __init__(self, key: Read, owner: str, measure: Measure) -> None:
        super().__init__(key, owner)
        self._measure = measure
        self._limit: Any = measure.within.threshold
        self._sorted: dict[Any, Any] = {}  # lists of (value, number, resident), by key

    def arriving(self, row: Any) -> Resident:
        """A row that may become a resident."""
        resident = super().arriving(row)
        resident.value = self._measure(row)
        if resident.value is None:
            resident.key = None  # a distance from nothing is within no band
        return resident

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

    def clear(self) -> None:
        """Forget everybody."""
        super().clear()
        self._sorted.clear()

    def _link(self, resident: Resident) -> None:
        from sortedcontainers import SortedList  # type: ignore[import-untyped]

        near = self._sorted.get(resident.key)
        if near is None:
            near = self._sorted[resident.key] = SortedList()
        near.add((resident.value, resident.number, resident))

    def _unlink(self, resident: Resident) -> None:
        near = self._sorted[resident.key]
        near.remove((resident.value, resident.number, resident))
        if not near:
            del self._sorted[resident.key]


def _chain(resident: Resident | None) -> Iterator[Resident]:
    while resident is not None:
        yield resident
        resident = resident.next


def _unusable(owner: str, key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        try:
            hash(part)
        except TypeError:
            return (
                f"{owner}: the value {part!r} is a {type(part).__name__}, which cannot be looked "
                f"up. Join on a column of plain values, or on a callable that makes one of it."
            )
    raise AssertionError(key)
