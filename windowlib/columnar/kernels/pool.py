"""Values that state refers to by number: of any Arrow type, and of rows that are long gone."""

from __future__ import annotations

import numpy as np

from windowlib.columnar.columns import Column
from windowlib.columnar.kernels.base import Array

NOTHING = -1
"""The number of no value."""


class Pool:
    """Columns of values in a row; what is no longer referred to goes when it is packed."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self.size = 0

    def add(self, values: Column) -> int:
        """Take in a column; the number of its first value."""
        base = self.size
        self._columns.append(values)
        self.size += len(values)
        return base

    def clear(self) -> None:
        """Forget all values."""
        self._columns, self.size = [], 0

    def take(self, numbers: Array) -> Column:
        """The values with these numbers; any value for `NOTHING`."""
        return self._whole().take(np.maximum(numbers, 0))

    def pack(self, numbers: Array) -> Array:
        """Keep only these, and give their new numbers."""
        renumbered, kept = self.packed(numbers)
        self._columns = [] if kept is None else [kept]
        self.size = 0 if kept is None else len(kept)
        return renumbered

    def packed(self, numbers: Array) -> tuple[Array, Column | None]:
        """What these would be numbered if there were no others, and these values, if any."""
        known = numbers >= 0
        kept, again = np.unique(numbers[known], return_inverse=True)
        renumbered = np.full(len(numbers), NOTHING, np.int64)
        renumbered[known] = again
        return renumbered, self._whole().take(kept) if self._columns else None

    def _whole(self) -> Column:
        if len(self._columns) > 1:
            self._columns = [Column.concat(self._columns)]
        return self._columns[0]
