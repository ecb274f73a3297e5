"""Equality of values in tests, and the first difference of two lists as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

Same = Callable[[Any, Any], bool]
WIDEST = 400
"""How much of a value a message shows."""


def equal(expected: Any, got: Any) -> bool:
    """Whether a value is the expected one: by `==`, and NaN equals NaN.

    >>> equal({"x": 1}, {"x": 1.0}), equal([float("nan")], [float("nan")]), equal(1, "1")
    (True, True, False)
    """
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(equal(expected[k], got[k]) for k in expected)
    if isinstance(expected, list | tuple) and type(expected) is type(got):
        return len(expected) == len(got) and all(map(equal, expected, got))
    return bool(expected == got) or _both_nan(expected, got)


def within_tolerance(tolerance: float) -> Same:
    """A function that compares two values: the same types, and floats within a tolerance.

    Floats may differ by `tolerance` of their size, or by `tolerance` itself near zero.

    >>> same = within_tolerance(1e-9)
    >>> same({"x": 0.1 + 0.2}, {"x": 0.3}), same(1, 1.0), same(1, True), same([None], [None])
    (True, False, False, True)
    """

    def same(a: Any, b: Any) -> bool:
        if type(a) is not type(b):
            return False
        if isinstance(a, float):
            close = math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
            return close or _both_nan(a, b)
        if isinstance(a, Mapping):
            return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
        if isinstance(a, list | tuple):
            return len(a) == len(b) and all(map(same, a, b))
        if is_dataclass(a):
            return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
        return bool(a == b) or repr(a) == repr(b)

    return same


def _both_nan(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, float) and a != a and b != b


def first_difference(expected: Sequence[Any], got: Sequence[Any], same: Same) -> int | None:
    """The first index at which two lists differ; None if they are the same."""
    for at, (a, b) in enumerate(zip(expected, got, strict=False)):
        if not same(a, b):
            return at
    return None if len(expected) == len(got) else min(len(expected), len(got))


def item_text(item: Any) -> str:
    """A value as text that is the same in every run, and not too long."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(item))
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 4]} ..."


def item_at(items: Sequence[Any], place: int) -> str:
    """The item at a place, as text."""
    return item_text(items[place]) if place < len(items) else "nothing"
