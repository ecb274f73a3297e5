"""Values as whole numbers that compare like them, or that only tell them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from windowlib.columnar.columns import Column
from windowlib.columnar.kernels.base import Array
from windowlib.columnar.pieces import Places

SPREAD = 4
"""Whole numbers in a range of up to this many times as many numbers stand for themselves."""


def ordered(values: Column) -> Array:
    """Whole numbers in the order of the values: NaN above all, 0.0 and −0.0 equal.

    >>> import pyarrow as pa
    >>> column = Column.of(pa.array([float("nan"), -0.0, 2.0, 0.0, -1.0]))
    >>> np.argsort(ordered(column), kind="stable").tolist()
    [4, 1, 3, 2, 0]
    """
    keys = values.order_keys()
    if not values.floating:
        return keys
    keys = keys + 0.0
    keys[np.isnan(keys)] = np.nan
    bits = keys.view(np.int64)
    return np.where(bits < 0, LOWEST - bits, bits)


LOWEST = np.iinfo(np.int64).min


def numbered(values: Column) -> tuple[Array, int]:
    """Whole numbers from 0 on that are equal where the values are, and how many there may be.

    >>> import pyarrow as pa
    >>> numbered(Column.of(pa.array([7, 5, 7])))
    (array([2, 0, 2]), 3)
    """
    if values.physical and not values.floating and len(values):
        low, high = int(values.data.min()), int(values.data.max())
        if high - low < SPREAD * len(values):
            return values.data - low, high - low + 1
    codes, distinct = values.codes()
    return codes, len(distinct)


def stable(keys: Array) -> Places:
    """The places of keys in their order, equal ones in order of place.

    >>> stable(np.array([3, 9, 3, 1])).tolist()
    [3, 0, 2, 1]
    """
    order = np.argsort(keys)  # twice as fast as a stable sort, and mostly no two keys are equal
    ascending = keys[order]
    new = ascending[1:] != ascending[:-1]
    if new.all():
        return order
    bits = len(keys).bit_length()
    both = (np.append(0, np.cumsum(new)) << bits) | order
    both.sort()
    return both & ((1 << bits) - 1)


class Ranks:
    """Whole numbers, all different, in the order of some keys and of place among equal ones.

    >>> ranks = Ranks(np.array([5, 3, 5]))
    >>> np.argsort(ranks.numbers).tolist(), ranks.places(np.sort(ranks.numbers)).tolist()
    ([1, 0, 2], [1, 0, 2])
    """

    def __init__(self, keys: Array) -> None:
        bits = max(len(keys) - 1, 0).bit_length()
        low = int(keys.min()) if len(keys) else 0
        span = int(keys.max()) - low if len(keys) else 0
        self._mask: Any = None
        if span.bit_length() + bits < WORD:  # key and place fit one number
            self._mask = (1 << bits) - 1
            self.numbers = ((keys - low) << bits) | np.arange(len(keys))
            if span.bit_length() + bits < HALF:
                self.numbers = self.numbers.astype(np.int32)
            return
        self._order = stable(keys)
        self.numbers = np.empty(len(keys), np.int64 if bits >= HALF else np.int32)
        self.numbers[self._order] = np.arange(len(keys), dtype=self.numbers.dtype)

    def places(self, numbers: Array) -> Places:
        """The places that have these numbers."""
        if self._mask is None:
            return self._order[numbers]
        places: Places = (numbers & self._mask).astype(np.intp)
        return places


WORD, HALF = 63, 31
