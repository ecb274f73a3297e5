"""The indexes of a join: which rows of one side may match a row of the other.

An index holds the residents of a window whose key is not null. One that comes or goes, from
anywhere in the window, costs O(1): the residents of a key are a linked list, oldest to newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import Any

from windowlib.attributes import NAN, Getter, one_key
from windowlib.errors import SchemaError
from windowlib.spec.policies import Attribute, Delta
from windowlib.window.engine.rules import check_delta


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
        self.next = self.prev = None


class ResidentIndex:
    """Residents by key."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.firsts: dict[Any, Resident] = {}
        """The oldest resident of each key; the others follow it."""

    def candidates(self, probe: Resident) -> Iterable[Resident]:
        """The residents that a row of the other side may match, oldest to newest."""
        try:
            first = self.firsts.get(probe.key)
        except TypeError:
            raise SchemaError(unhashable_key(self._owner, probe.key)) from None
        return () if first is None else _chain(first)

    def add(self, resident: Resident) -> None:
        """Append a resident, the newest of its key."""
        first = self.firsts.setdefault(resident.key, resident)
        if first is not resident:
            last = first.prev or first
            last.next, resident.prev, first.prev = resident, last, resident

    def remove(self, resident: Resident) -> None:
        """Remove a resident."""
        key, older, newer = resident.key, resident.prev, resident.next
        first = self.firsts[key]
        if first is resident:
            if newer is None:
                del self.firsts[key]
                return
            self.firsts[key] = newer
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
        """Forget all residents."""
        self.firsts.clear()

    def __iter__(self) -> Iterator[Resident]:
        for first in self.firsts.values():
            yield from _chain(first)


class BandIndex(ResidentIndex):
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
            raise SchemaError(unhashable_key(self._owner, probe.key)) from None
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
        """Insert a resident by its value."""
        from sortedcontainers import SortedList

        near = self._sorted.get(resident.key)
        if near is None:
            near = self._sorted[resident.key] = SortedList()
        near.add((resident.value, resident.number, resident))

    def remove(self, resident: Resident) -> None:
        """Remove a resident."""
        near = self._sorted[resident.key]
        near.remove((resident.value, resident.number, resident))
        if not near:
            del self._sorted[resident.key]

    def clear(self) -> None:
        """Forget all residents."""
        self._sorted.clear()

    def __iter__(self) -> Iterator[Resident]:
        return (entry[2] for near in self._sorted.values() for entry in near)


def _chain(resident: Resident | None) -> Iterator[Resident]:
    while resident is not None:
        yield resident
        resident = resident.next


def unhashable_key(owner: str, key: Any) -> str:
    """The message for a key that has no hash."""
    parts = key if isinstance(key, tuple) else (key,)
    part = next((part for part in parts if type(part).__hash__ is None), key)
    return (
        f"{owner}: the value {part!r} is a {type(part).__name__}, which cannot be looked up. Join "
        f"on a column of plain values, or on a callable that makes one of it."
    )


# -- attributes -----------------------------------------------------------------------------------


Read = Callable[[Any], Any]


def reader(attribute: Attribute, owner: str) -> Read:
    """Reads an attribute of rows of any form, as fast as their type allows; NaN is always `NAN`.

    >>> read = reader("ts", "on='ts'")
    >>> read({"ts": 7})
    7
    """
    if callable(attribute):
        return lambda row: one_key(attribute(row))
    get = Getter(attribute, owner)
    by_type: dict[type, Read] = {}

    def read(row: Any) -> Any:
        try:
            value = by_type[type(row)](row)
        except Exception:  # the first row of its type, or one that lacks the attribute
            value = get(row)
            if isinstance(attribute, int) or isinstance(row, Mapping):
                by_type[type(row)] = itemgetter(attribute)
            elif attribute.isidentifier():
                by_type[type(row)] = attrgetter(attribute)
        return value if value == value and type(value) is not tuple else one_key(value)

    return read


def key_reader(columns: tuple[Attribute, ...], owner: str) -> Read:
    """Reads the equality key of a row: None if a part of it is null; all NaN are one value.

    >>> key = key_reader(("a", "b"), "on=('a', 'b')")
    >>> key({"a": 1, "b": 2}), key({"a": 1, "b": None})
    ((1, 2), None)
    """
    reads = [reader(column, owner) for column in columns]
    if not reads:
        return lambda row: ()  # no equality asked for: all rows have the same key
    if len(reads) > 1:
        return lambda row: _composite([read(row) for read in reads])
    return reads[0]


def _composite(parts: list[Any]) -> tuple[Any, ...] | None:
    return None if any(part is None for part in parts) else tuple(parts)


class Measure:
    """Reads the attribute of a band; None where there is no value to measure from.

    >>> measure = Measure(Delta("ts", 10))
    >>> measure({"ts": 7}), measure({"ts": None})
    (7, None)
    """

    def __init__(self, within: Delta) -> None:
        self.within = within
        self._read = reader(within.attribute, f"within={within.shown}")
        self._known: dict[tuple[type, bool], Any] = {}  # a value of each kind that has come

    def __call__(self, row: Any) -> Any:
        """The value in `row`, if it has a distance from all values so far."""
        value = self._read(row)
        if value is None or value is NAN:
            return None
        if _kind(value) not in self._known:
            self._check(value, row)
            self._known[_kind(value)] = value
        return value

    def _check(self, value: Any, row: Any) -> None:
        check_delta(self.within, value, row)
        for known in self._known.values():
            try:
                _ = value - known <= self.within.threshold, value < known
            except TypeError:
                msg = (
                    f"within={self.within.shown}: the value {value!r} does not mix with {known!r} "
                    f"before it. Use one type for both inputs."
                )
                raise SchemaError(msg) from None

    @property
    def samples(self) -> list[Any]:
        """A value of each kind, for a snapshot."""
        return list(self._known.values())

    @samples.setter
    def samples(self, values: Iterable[Any]) -> None:
        self._known = {_kind(value): value for value in values}


def _kind(value: Any) -> tuple[type, bool]:
    return type(value), getattr(value, "tzinfo", None) is None
