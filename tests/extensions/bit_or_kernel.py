"""The kernel of `bit_or`: the same over arrays, loaded with the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.kernels.kernel import Kernel, Planes, Result, Values, masked
from windowlib.summaries.folds import Fold
from windowlib.window.consumer import Decline


class BitOrKernel(Kernel):
    """Planes: the bits of each run, and how many values it has."""

    dtypes = (np.int64, np.int64)
    used = 0
    """How often it has looked at a batch."""

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        super().__init__(fold, types)
        if not pa.types.is_signed_integer(types[0]):
            raise Decline(f"{fold.name} of {types[0]} needs Python values")

    def partial(self, values: Values, lo: Any, hi: Any) -> Planes:
        """The bits of each run of places."""
        type(self).used += 1
        (column,) = values
        known = np.ones(len(column), bool) if column.valid is None else column.valid
        bits = np.where(known, column.data, 0).astype(np.int64)
        return self._reduced(bits, lo, hi), np.array([known[a:b].sum() for a, b in _pairs(lo, hi)])

    def _reduced(self, bits: Any, lo: Any, hi: Any) -> Any:
        return np.array([np.bitwise_or.reduce(bits[a:b]) for a, b in _pairs(lo, hi)], np.int64)

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The bits of both."""
        return a[0] | b[0], a[1] + b[1]

    def combine(self, planes: Planes, lo: Any, hi: Any) -> Planes:
        """The bits of all runs of an extent."""
        counts = np.array([planes[1][a:b].sum() for a, b in _pairs(lo, hi)])
        return self._reduced(planes[0], lo, hi), counts

    def finish(self, planes: Planes, n: Any) -> Result:
        """The bits; null where there are no values."""
        return masked(planes[0], planes[1] > 0)

    def save(self, planes: Planes, n: Any) -> list[Any]:
        """As the fold saves its state: None for a place that is as it starts."""
        rows = zip(planes[0].tolist(), planes[1].tolist(), strict=True)
        return [[bits or None, count or None] for bits, count in rows]

    def load(self, saved: Sequence[Any], n: Any) -> Planes:
        """What `save` got."""
        rows = np.array([[place or 0 for place in each] for each in saved], np.int64)
        rows = rows.reshape(len(saved), 2)
        return rows[:, 0].copy(), rows[:, 1].copy()


def _pairs(lo: Any, hi: Any) -> list[tuple[int, int]]:
    return list(zip(lo.tolist(), hi.tolist(), strict=True))
