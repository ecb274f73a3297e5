"""How a join reads its rows: equality keys, and the attribute of a band."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import Any

from windowlib.attributes import NAN, Getter, one_key
from windowlib.engine.rules import check_delta
from windowlib.errors import SchemaError
from windowlib.policies import Attribute, Delta

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
