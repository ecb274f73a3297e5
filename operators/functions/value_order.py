"""The order of values, as Spark has it: NaN is the largest number."""

from __future__ import annotations

from typing import Any, Final

from windowlib.attributes import one_key
from windowlib.errors import SchemaError


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
"""Stands for a value that has not come yet, where None could be mistaken for a null."""


def greater(name: str, a: Any, b: Any) -> bool:
    """Whether `a` is greater than `b`."""
    if b != b:
        return False
    if a != a:
        return True
    try:
        return bool(a > b)
    except TypeError:
        msg = f"{name} of {a!r}: it cannot be compared with {b!r}. Use one type for the column."
        raise SchemaError(msg) from None


def comparable(a: Any, b: Any) -> bool:
    """Whether two values have an order."""
    try:
        _ = a < b
    except TypeError:
        return False
    return True


def one_nan(x: Any) -> Any:
    """All NaN as one object, so that a dict takes them for one."""
    return x if x == x and type(x) is not tuple else one_key(x)


def hashable(name: str, x: Any) -> Any:
    """The value as a key of a dict."""
    try:
        hash(x)
    except TypeError:
        msg = (
            f"{name} of {x!r}: a {type(x).__name__} cannot be told apart from others quickly. "
            f"Use a plain value, or a tuple of them."
        )
        raise SchemaError(msg) from None
    return one_nan(x)
