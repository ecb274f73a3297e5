"""Checks of the arguments of workloads, and their random numbers."""

from __future__ import annotations

from math import isfinite
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from windowlib.errors import WorkloadError

Floats = NDArray[np.float64]


def generator(seed: int, use: str) -> np.random.Generator:
    """Random numbers for one use of a seed, independent of those for every other use.

    So another choice of delays leaves the points of a stream as they were.

    >>> int(generator(7, "points").integers(1000)), int(generator(7, "delays").integers(1000))
    (116, 376)
    """
    whole("seed", seed, least=0)
    words = np.random.SeedSequence([seed, crc32(use.encode())])
    return np.random.Generator(np.random.PCG64(words))


def number(name: str, value: object, *, least: float = 0.0, strict: bool = True) -> float:
    """A finite number above `least`, or no less than it."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not fits or value < least or (strict and value == least):  # type: ignore[operator]
        bound = "more than" if strict else "no less than"
        msg = f"{name}={value!r}: not a number that fits. Use {bound} {least:g}."
        raise WorkloadError(msg)
    return float(value)  # type: ignore[arg-type]


def whole(name: str, value: object, *, least: int = 1) -> int:
    """A whole number, no less than `least`."""
    counts = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not counts or value < least:  # type: ignore[operator]
        msg = f"{name}={value!r}: not a whole number that fits. Use {least} or more."
        raise WorkloadError(msg)
    return int(value)  # type: ignore[call-overload,no-any-return]


def share(name: str, value: object) -> float:
    """A share of the whole: more than 0, at most 1."""
    found = number(name, value)
    if found > 1:
        msg = f"{name}={value!r}: not a share of the whole. Use 0 to 1, such as 0.16."
        raise WorkloadError(msg)
    return found


def times(name: str, values: object, *, ordered: bool = False) -> Floats:
    """Times in seconds, one after another if need be."""
    found: Floats = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        msg = f"{name}: not a row of times. Use a flat array of finite numbers, in seconds."
        raise WorkloadError(msg)
    back = np.flatnonzero(found[1:] < found[:-1]) if ordered else found[:0]
    if len(back):
        at = int(back[0]) + 1
        msg = f"{name}: time {at} goes back from {found[at - 1]:g} to {found[at]:g}. Sort it first."
        raise WorkloadError(msg)
    return found
