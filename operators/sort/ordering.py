"""The order of tuples: by keys, each ascending or descending, with nulls first or last.

Nulls and NaN have a place in every order, as in Spark: nulls are smaller than all values unless
`nulls` says otherwise, and NaN is the largest number.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from heapq import nsmallest
from typing import Any, Literal, NamedTuple

from windowlib.attributes import Getter
from windowlib.errors import ModelError, SchemaError, suggestion
from windowlib.operators.expressions import row_attribute
from windowlib.operators.functions.call import Column
from windowlib.operators.functions.value_order import comparable
from windowlib.spec.policies import Attribute, attribute_text, is_attribute
from windowlib.window.subwindow import UNSET

Nulls = Literal["first", "last"]
Place = tuple[Any, ...]
"""What a tuple is ordered by: a rank and a value per key, which compare as they are."""

FIRST, NAN_FIRST, VALUE, NAN_LAST, LAST = range(5)


class SortKey(NamedTuple):
    """One sort key; `asc` and `desc` make them."""

    attribute: Attribute
    descending: bool
    nulls: Nulls

    def __repr__(self) -> str:
        usual = self.nulls == ("last" if self.descending else "first")
        more = "" if usual else f", nulls={self.nulls!r}"
        return f"{'desc' if self.descending else 'asc'}({self.attribute!r}{more})"


def asc(attribute: Column, nulls: Nulls | None = None) -> SortKey:
    """A key in ascending order; nulls come first unless you say `nulls="last"`.

    >>> asc("ts", nulls="last")
    asc('ts', nulls='last')
    """
    return _key("asc", attribute, False, nulls)


def desc(attribute: Column, nulls: Nulls | None = None) -> SortKey:
    """A key in descending order; nulls come last unless you say `nulls="first"`.

    >>> desc("price")
    desc('price')
    """
    return _key("desc", attribute, True, nulls)


def _key(owner: str, attribute: Any, descending: bool, nulls: Any) -> SortKey:
    attribute = row_attribute(attribute)
    if not is_attribute(attribute):
        msg = f'{owner}({attribute!r}): not a key. Name a column, as {owner}("ts"), or a callable.'
        raise ModelError(msg)
    if nulls not in (None, "first", "last"):
        known = suggestion(nulls, ["first", "last"])
        msg = f'{owner}({attribute!r}, nulls={nulls!r}): say "first" or "last".{known}'
        raise ModelError(msg)
    return SortKey(attribute, descending, nulls or ("last" if descending else "first"))


def sort_keys(
    owner: str,
    keys: Sequence[Any],
    ascending: bool | Sequence[bool] | None = None,
    nulls: Nulls | Sequence[Nulls] | None = None,
) -> list[SortKey]:
    """Keys as users write them: names, indexes, callables, `asc` and `desc`, and two lists.

    >>> sort_keys("Sort", ["symbol", "price"], ascending=[True, False])
    [asc('symbol'), desc('price')]
    """
    if not keys:
        raise ModelError(f'{owner}(): nothing to sort by. Name at least one key, as {owner}("ts").')
    up = _per_key(owner, "ascending", ascending, len(keys))
    where = _per_key(owner, "nulls", nulls, len(keys))
    for each in up:
        if not isinstance(each, bool | None):
            msg = f"{owner}(ascending={ascending!r}): say True or False, or one of them per key."
            raise ModelError(msg)
    found = []
    for key, rises, place in zip(keys, up, where, strict=True):
        if not isinstance(key, SortKey):
            found.append(_key("desc" if rises is False else "asc", key, rises is False, place))
        elif rises is None and place is None:
            found.append(key)
        else:
            given = "ascending" if place is None else "nulls"
            msg = (
                f"{owner}({key!r}, {given}=...): this key says itself how it is ordered. Drop "
                f"`{given}=`, or name the column alone."
            )
            raise ModelError(msg)
    return found


def _per_key(owner: str, argument: str, given: Any, keys: int) -> list[Any]:
    """One value per key: as given, or the same for all."""
    if not isinstance(given, list | tuple):
        return [given] * keys
    if len(given) != keys:
        noun = "key" if keys == 1 else "keys"
        msg = (
            f"{owner}({argument}={given!r}): {len(given)} for {keys} {noun}. Give one per key, or "
            f"one for all."
        )
        raise ModelError(msg)
    return list(given)


class Descending:
    """A value that compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        return bool(_original(other) < self.value)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value < _original(other))

    def __eq__(self, other: object) -> bool:
        return bool(_original(other) == self.value)

    __hash__ = None  # type: ignore[assignment]


def descending(value: Any) -> Any:
    """A key that compares in reverse: the negative number, where that is exact."""
    return -value if type(value) in (int, float) else Descending(value)


def _original(other: Any) -> Any:
    return other.value if type(other) is Descending else -other


NUMBERS: frozenset[type] = frozenset((int, float, bool))
SAFE_TYPES: dict[type, frozenset[type]] = {
    kind: frozenset((kind,)) for kind in (str, bytes, date, timedelta, Decimal)
}
SAFE_TYPES |= dict.fromkeys(NUMBERS, NUMBERS)
"""Types whose values compare with all values of these types, whatever they are."""


class SortColumn:
    """Reads one key of a tuple as a rank and a value."""

    __slots__ = ("_name", "_nan", "_null", "get", "key", "known", "mixed", "owner", "safe_types")

    def __init__(self, key: SortKey, owner: str) -> None:
        self.key = key
        self.owner = f"{owner}({key!r})" if key.descending else f"{owner}({key.attribute!r})"
        self.get = Getter(key.attribute, self.owner)
        self._name = key.attribute if isinstance(key.attribute, str) else UNSET
        self._null = (FIRST if key.nulls == "first" else LAST, 0)
        self._nan = (NAN_FIRST if key.descending else NAN_LAST, 0)
        self.forget()

    def forget(self, known: Any = UNSET) -> None:
        """Start afresh: the next value, or this one, says what others have to compare with."""
        self.known = known
        self.mixed = False  # whether two values may turn out not to compare
        self.safe_types: frozenset[type] = frozenset()  # types that need no look at `known`
        if known is not UNSET:
            self._begin(known)

    def __call__(self, row: Any) -> tuple[int, Any]:
        """The place of a tuple by this key; refuses a value that does not compare."""
        plain = type(row) is dict and self._name in row  # the common form, read without a call
        value = row[self._name] if plain else self.get(row)
        if value is None:
            return self._null
        if value != value:
            return self._nan
        if type(value) not in self.safe_types:
            self._compare(value)
        return VALUE, descending(value) if self.key.descending else value

    def _begin(self, value: Any) -> None:
        self.known = value
        self.safe_types = SAFE_TYPES.get(type(value), self.safe_types)
        self.mixed = not self.safe_types and type(value) is not datetime

    def _compare(self, value: Any) -> None:
        """Refuse a value that does not compare with the first one."""
        known = self.known
        if known is UNSET:
            self._begin(value)
            return
        try:
            _ = value < known
        except TypeError as error:
            raise self.clash(value, known) from error
        if type(value) is not datetime or type(known) is not datetime:
            self.mixed, self.safe_types = True, frozenset()

    def clash(self, value: Any, other: Any) -> SchemaError:
        """The error for two values that do not compare."""
        msg = (
            f"{self.owner}: the values {value!r} and {other!r} do not compare. Use one type for "
            f"the whole stream, or sort by a callable."
        )
        return SchemaError(msg)


def _ordered(value: Any, other: Any) -> bool:
    """Whether two values have an order; a null has one with every value."""
    return value is None or other is None or comparable(value, other)


class Order:
    """An order of tuples, as a function that gives each its place.

    The values of a key have to compare with one another over the whole stream; a tuple with
    another type is refused before it goes anywhere.

    >>> order = Order(sort_keys("Sort", [desc("x")]), "Sort")
    >>> [row["x"] for row in order.sorted([{"x": 1}, {"x": None}, {"x": float("nan")}, {"x": 2}])]
    [nan, 2, 1, None]
    """

    def __init__(self, keys: Sequence[SortKey], owner: str) -> None:
        self.columns = [SortColumn(key, owner) for key in keys]
        self.place: Callable[[Any], Place] = self._composite_place
        if len(self.columns) == 1:
            self.place = self.columns[0]

    @property
    def mixed(self) -> bool:
        """Whether places may turn out not to compare, though each compares with the first."""
        return any(column.mixed for column in self.columns)

    def _composite_place(self, row: Any) -> Place:
        place: Place = ()
        for column in self.columns:
            place += column(row)
        return place

    def sorted(self, rows: Sequence[Any], limit: int | None = None) -> list[Any]:
        """The tuples in order, or the first of them; equal ones stay in the order they came."""
        places = [self.place(row) for row in rows]
        numbers = range(len(places))
        try:
            if limit is None:
                found = sorted(numbers, key=places.__getitem__)
            else:
                found = nsmallest(limit, numbers, key=places.__getitem__)
        except TypeError as error:
            raise self._comparison_error(rows, places, error) from error
        return [rows[i] for i in found]

    def _comparison_error(
        self, rows: Sequence[Any], places: list[Place], error: Exception
    ) -> Exception:
        """The first tuple that does not compare with those before it."""
        placed: list[Place] = []
        for number, place in enumerate(places):
            try:
                insort(placed, place)
            except TypeError:
                clash = self.clash(rows[number], rows[:number], error)
                return SchemaError(
                    f"{clash} None of the {len(rows)} tuples of this batch comes out."
                )
        return error

    def clash(self, row: Any, others: Iterable[Any], error: Exception) -> Exception:
        """Why a tuple does not compare with one of the others; else the error it came with."""
        before = list(others)
        for column in self.columns:
            value = column.get(row)
            for known in map(column.get, before):
                if not _ordered(value, known):
                    return column.clash(value, known)
        return error

    def __repr__(self) -> str:
        return f"Order({', '.join(repr(column.key) for column in self.columns)})"

    def __str__(self) -> str:
        parts = []
        for column in self.columns:
            direction = "descending" if column.key.descending else "ascending"
            name = attribute_text(column.key.attribute)
            parts.append(f"{name} {direction}, nulls {column.key.nulls}")
        return "; ".join(parts)

    # -- state: without it, what is refused would depend on restarts ------------------------------

    def snapshot(self) -> list[list[Any]]:
        """The values that all others have to compare with."""
        return [[] if column.known is UNSET else [column.known] for column in self.columns]

    def restore(self, state: Iterable[list[Any]]) -> None:
        """Take back what `snapshot` gave."""
        for column, known in zip(self.columns, state, strict=True):
            column.forget(*known)

    def forget(self) -> None:
        """Start afresh: the next values say what others have to compare with."""
        self.restore([[]] * len(self.columns))


def first_known(states: Sequence[Sequence[list[Any]]]) -> list[list[Any]]:
    """For each column the first value that snapshots know.

    >>> first_known([[[], [1.5]], [["a"], [2.5]]])
    [['a'], [1.5]]
    """
    return [next((known for known in each if known), []) for each in zip(*states, strict=True)]
