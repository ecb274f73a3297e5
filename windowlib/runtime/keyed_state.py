"""State that an operator declares, and the library keeps: by key, or once.

The author says what there is and how it starts. It is saved with the operator, restored, split
over workers and buckets by its keys, and forgotten together with the partition of its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from uuid import UUID

from windowlib.attributes import one_key
from windowlib.errors import FieldError, OperatorError, StateVersionError, suggestion
from windowlib.window.snapshot import saved_key

if TYPE_CHECKING:
    from windowlib.runtime.operator import Operator

S = TypeVar("S", bound="Declaration")

ATOMS = frozenset(
    {bool, int, float, complex, str, bytes, type(None)}
    | {date, datetime, time, timedelta, Decimal, UUID}
)
PLAIN = "numbers, text, bytes, dates and times, None, and lists, tuples, dicts and sets of them"


def plain(value: Any, owner: str) -> Any:
    """A copy of a value that consists of plain data; anything else is refused.

    Args:
        value: what to copy.
        owner: where it is, for the message.

    >>> plain({"seen": [1, 2.5]}, "Trend.state")
    {'seen': [1, 2.5]}
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind in (list, tuple, set, frozenset):
        return kind([plain(each, owner) for each in value])
    if kind is dict:
        return {plain(name, owner): plain(each, owner) for name, each in value.items()}
    msg = f"{owner}: a {kind.__name__} is no plain data, and cannot be saved. Keep {PLAIN}."
    raise OperatorError(msg)


class Record:
    """The fields of one key, as attributes; each declaration has a subclass with slots for them."""

    __slots__ = ()
    shown = "state"
    """The name in messages."""
    fields: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> NoReturn:
        known = ", ".join(self.fields)
        msg = f"{self.shown} has no field {name!r}. Fields: {known}.{suggestion(name, self.fields)}"
        raise FieldError(msg)

    def __repr__(self) -> str:
        return f"({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"


class Declaration:
    """What `Keyed` and `Unkeyed` have in common: fields, and what each of them starts with."""

    name = "state"
    owner = "Operator"

    def __init__(self, fields: Mapping[str, Any]) -> None:
        kind = type(self).__name__
        if not fields:
            raise OperatorError(f"{kind}(): no fields. Name some, as {kind}(count=0, seen=list).")
        self.starts = dict(fields)
        for name, start in fields.items():
            if name.startswith("_"):
                msg = f"{kind}({name}=...): a name of a field begins with a letter. Rename it."
                raise OperatorError(msg)
            shown = start.__name__ if isinstance(start, type) else repr(start)
            _begun(start, f"{kind}({name}={shown})")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.owner = name, owner.__name__

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "record"}

    @cached_property
    def record(self) -> type[Record]:
        """The class of its records."""
        names = tuple(self.starts)
        body = {"__slots__": names, "fields": names, "shown": self.shown}
        return type(f"{self.owner}_{self.name}", (Record,), body)

    @property
    def shown(self) -> str:
        """The name in messages."""
        return f"{self.owner}.{self.name}"

    def new(self) -> Any:
        """A record at its start."""
        made = self.record()
        for name, start in self.starts.items():
            setattr(made, name, _begun(start, self.shown))
        return made

    def saved(self, record: Any) -> dict[str, Any]:
        """The fields of a record as plain data."""
        return {name: plain(getattr(record, name), f"{self.shown}.{name}") for name in self.starts}

    def loaded(self, fields: Mapping[str, Any]) -> Any:
        """A record of saved fields; one that was not there when they were saved is at its start."""
        unknown = [name for name in fields if name not in self.starts]
        if unknown:
            msg = (
                f"restore(state): the snapshot has the field {unknown[0]!r} of {self.shown}, which "
                f"is not declared. Declare it, or start afresh."
            )
            raise StateVersionError(msg)
        made = self.new()
        for name, value in fields.items():
            setattr(made, name, plain(value, f"{self.shown}.{name}"))
        return made

    def __get__(self, operator: Operator | None, kind: type) -> Any:
        if operator is None:
            return self
        # A running operator has what is kept as an attribute of its own, which is found first.
        msg = f"{self.shown}: the operator is not running. Use replay(op, rows), or op.open()."
        raise OperatorError(msg)


def _begun(start: Any, owner: str) -> Any:
    """What a field starts with: a value of its own each time."""
    return plain(start() if callable(start) else start, owner)


class Keyed(Declaration):
    """State of each key, declared as an attribute of an operator's class.

    `self.state[key]` has the fields of a key as attributes; a key that is new gets them as they
    were declared. They are forgotten when the partition of the key is evicted, or when its last
    window of event time closes.

    Args:
        by: the columns of the key, for an operator that reads rows in `on_tuple`; without it the
            key is that of its windows.
        fields: what each field starts with: a value, or a function that makes one, such as `list`.

    >>> from windowlib import Count, Operator, OperatorModel, Tumbling, replay
    >>> class Rise(Operator):
    ...     model = OperatorModel(windows=[Tumbling])
    ...     state = Keyed(before=0)
    ...     def before_flush(self, window, key):
    ...         total, mine = sum(t["x"] for t in window[key]), self.state[key]
    ...         self.emit(k=key, rise=total - mine.before)
    ...         mine.before = total
    >>> list(replay(Rise(Tumbling(Count(1), by="k")), [{"k": "a", "x": x} for x in (1, 4, 9)]))
    [{'k': 'a', 'rise': 1}, {'k': 'a', 'rise': 3}, {'k': 'a', 'rise': 5}]
    """

    def __init__(self, *, by: str | Iterable[str] | None = None, **fields: Any) -> None:
        super().__init__(fields)
        names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
        if not all(isinstance(name, str) and name for name in names) or (by is not None) > len(
            names
        ):
            msg = f'Keyed(by={by!r}): not the names of columns. Use by="symbol".'
            raise OperatorError(msg)
        self.by: tuple[str, ...] = names

    def open(self) -> KeyedRecords:
        """What a running operator keeps."""
        return KeyedRecords(self)


class Unkeyed(Declaration):
    """State of the whole operator, declared as an attribute of its class.

    `self.total.count` reads and writes a field. An operator that has any is not split by key.

    Args:
        fields: what each field starts with: a value, or a function that makes one, such as `list`.

    >>> from windowlib import Operator, OperatorModel, replay
    >>> class Numbered(Operator):
    ...     seen = Unkeyed(rows=0)
    ...     def on_tuple(self, row, port):
    ...         self.seen.rows += 1
    ...         self.emit(n=self.seen.rows, **row)
    >>> list(replay(Numbered(), [{"x": "a"}, {"x": "b"}]))
    [{'n': 1, 'x': 'a'}, {'n': 2, 'x': 'b'}]
    """

    def __init__(self, **fields: Any) -> None:
        super().__init__(fields)


class KeyedRecords(dict[Any, Any]):
    """The records of a running operator by key; a key that is new gets a record."""

    def __init__(self, declaration: Keyed) -> None:
        super().__init__()
        self.declaration = declaration

    def __missing__(self, key: Any) -> Any:
        key = one_key(key)  # all NaN are one key
        if key not in self:
            self[key] = self.declaration.new()
        return self[key]

    def drop(self, key: Any) -> None:
        """Forget a key."""
        self.pop(one_key(key), None)

    def save(self) -> list[list[Any]]:
        """The state as plain data."""
        saved, where = self.declaration.saved, f"{self.declaration.shown}[key]"
        return [[plain(key, where), saved(record)] for key, record in self.items()]

    def load(self, entries: Iterable[Any]) -> None:
        """Restore what `save` returned."""
        found = {saved_key(key): self.declaration.loaded(fields) for key, fields in entries}
        self.clear()
        self.update(found)


def declarations(kind: type, of: type[S]) -> Mapping[str, S]:
    """What a class declares, by name; a subclass may declare it anew, or not at all."""
    sought: type = of  # mypy takes a type[S] for something that has no hash
    return _declarations(kind, sought)


@lru_cache(maxsize=256)
def _declarations(kind: type, of: type) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        found.update(vars(base))
    return MappingProxyType({name: each for name, each in found.items() if isinstance(each, of)})
