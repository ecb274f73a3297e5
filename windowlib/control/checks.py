"""What the arguments of controllers and policies have to be."""

from __future__ import annotations

from math import isfinite
from typing import Any

from windowlib.errors import FarmError


def finite(name: str, value: Any, *, least: float | None = None, strict: bool = False) -> float:
    """A finite number, no less than `least`, or above it."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if fits and least is not None:
        fits = value > least if strict else value >= least
    if not fits:
        above = "" if least is None else f" {'more than' if strict else 'no less than'} {least:g}"
        msg = f"{name}={value!r}: not a number that fits. Use a finite one{above}."
        raise FarmError(msg)
    return float(value)


def counted(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, no less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{name}={value!r}: not a number of them. Use {least} or more."
        raise FarmError(msg)
    return value


def bounds(name: str, low: float, high: float) -> tuple[float, float]:
    """Two finite numbers in order."""
    finite(f"{name}[0]", low)
    finite(f"{name}[1]", high)
    if low >= high:
        msg = f"{name}=({low!r}, {high!r}): nothing lies between. Put the lower bound first."
        raise FarmError(msg)
    return float(low), float(high)


def clamp(value: float, low: float, high: float) -> float:
    """The nearest number within the bounds.

    >>> clamp(1.5, 0, 1), clamp(0.5, 0, 1)
    (1, 0.5)
    """
    return min(max(value, low), high)
