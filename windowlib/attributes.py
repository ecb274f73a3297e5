"""How an attribute of a tuple is read: by mapping key, attribute name, index, or a callable.

A name means `t["ts"]` for mappings and `t.ts` for everything else; the first tuple decides which
form the generated code inlines, and any other tuple goes through `Getter`, which knows both.
"""

from __future__ import annotations

import keyword
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from windowlib.errors import SchemaError, suggestion
from windowlib.spec.policies import Attribute, attribute_text

NAN = float("nan")


def column_names(row: object) -> list[str]:
    """The names a tuple offers, for messages."""
    if isinstance(row, Mapping):
        return [str(name) for name in row]
    if is_dataclass(row):
        return [field.name for field in fields(row)]
    if named := getattr(row, "_fields", ()):
        return list(named)
    return [*_slots(type(row)), *vars_of(row)]  # type: ignore[arg-type]  # a class has a hash


@lru_cache(maxsize=256)
def _slots(kind: type) -> tuple[str, ...]:
    """The slots of a class and of those it inherits from, theirs first."""
    found: list[str] = []
    for base in reversed(kind.__mro__):
        slots = vars(base).get("__slots__", ())
        found += (slots,) if isinstance(slots, str) else slots
    return tuple(dict.fromkeys(name for name in found if not name.startswith("__")))


def vars_of(row: object) -> Iterable[str]:
    """Instance attributes, or nothing for objects without a dict."""
    return getattr(row, "__dict__", {})


class Getter:
    """Reads one attribute from tuples of any type, with the owner's name in error messages.

    >>> Getter("ts", 'Delta("ts", 10)')({"ts": 7})
    7
    """

    __slots__ = ("_call", "attribute", "owner")

    def __init__(self, attribute: Attribute, owner: str) -> None:
        self.attribute = attribute
        self.owner = owner
        self._call: Callable[[Any], Any] = self._named
        if isinstance(attribute, int):
            self._call = operator.itemgetter(attribute)
        elif callable(attribute):
            self._call = attribute

    def _named(self, row: Any) -> Any:
        return (
            row[self.attribute] if isinstance(row, Mapping) else getattr(row, str(self.attribute))
        )

    def __call__(self, row: Any) -> Any:
        """The attribute's value in `row`."""
        try:
            return self._call(row)
        except (KeyError, IndexError, AttributeError, TypeError) as error:
            if callable(self.attribute):  # the user's own code: keep its error as it is
                raise
            raise SchemaError(self._missing(row)) from error

    def _missing(self, row: object) -> str:
        names = column_names(row)
        listed = f" Columns: {', '.join(names)}." if names else ""
        return (
            f"{self.owner}: the tuple {brief(row)} has no {attribute_text(self.attribute)!r}."
            f"{listed}{suggestion(self.attribute, names)}"
        )

    def inline(self, variable: str, sample: object) -> str | None:
        """Source text that reads the attribute from `variable`; None for a callable without any."""
        if callable(self.attribute):
            own = getattr(self.attribute, "inline", None)
            return None if own is None else own(variable, sample)
        if isinstance(self.attribute, int) or isinstance(sample, Mapping):
            return f"{variable}[{self.attribute!r}]"
        plain = self.attribute.isidentifier() and not keyword.iskeyword(self.attribute)
        return f"{variable}.{self.attribute}" if plain else None


class Several:
    """Several attributes as one: reads a tuple of them.

    >>> Several(("x", "y"), "cov")({"x": 1, "y": 2})
    (1, 2)
    """

    def __init__(self, attributes: Iterable[Attribute], owner: str) -> None:
        self.attributes, self.owner = tuple(attributes), owner
        self._getters = [Getter(attribute, owner) for attribute in self.attributes]
        self.__qualname__ = ", ".join(map(attribute_text, self.attributes))

    def __reduce__(self) -> tuple[Any, ...]:
        return Several, (self.attributes, self.owner)

    def __call__(self, row: Any) -> tuple[Any, ...]:
        """The values, in order."""
        return tuple([get(row) for get in self._getters])

    def inline(self, variable: str, sample: object) -> str | None:
        """Source text of the tuple, if every part has one."""
        parts = [get.inline(variable, sample) for get in self._getters]
        return None if None in parts else f"({', '.join(map(str, parts))},)"


def brief(value: object) -> str:
    """A row, or several, for messages."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def one_key(key: Any) -> Any:
    """A key in which every NaN is the same object, so that a dict finds it again.

    >>> one_key((1, (2, float("nan")))) == one_key((1, (2, float("nan"))))
    True
    """
    if type(key) is tuple:
        return tuple([one_key(part) for part in key])
    return NAN if key != key else key


def key_getter(by: Attribute | tuple[Attribute, ...], owner: str) -> Callable[[Any], Any]:
    """Reads a partition key: one attribute, or several as a tuple."""
    if not isinstance(by, tuple):
        return Getter(by, owner)
    parts = [Getter(part, owner) for part in by]
    # All NaN are one key, here too; a tuple compares its parts by identity first.
    return lambda row: tuple(
        [v if (v := part(row)) == v and type(v) is not tuple else one_key(v) for part in parts]
    )
