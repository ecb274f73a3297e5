"""A pool of values of any Arrow type, which state refers to by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.primitives import Array, Places
from windowlib.window.consumer import Decline

NOTHING = -1
"""The number of no value."""


class ValuePool:
    """A pool of values by number; packing drops those that are no longer referred to."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self.size = 0

    def add(self, values: Column) -> int:
        """Add a column; returns the number of its first value."""
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
        """Keep only these values; returns their new numbers."""
        renumbered, kept = self.packed(numbers)
        self._columns = [] if kept is None else [kept]
        self.size = 0 if kept is None else len(kept)
        return renumbered

    def packed(self, numbers: Array) -> tuple[Array, Column | None]:
        """The numbers that these values would have alone, and the values, if any."""
        known = numbers >= 0
        kept, again = np.unique(numbers[known], return_inverse=True)
        renumbered = np.full(len(numbers), NOTHING, np.int64)
        renumbered[known] = again
        return renumbered, self._whole().take(kept) if self._columns else None

    def _whole(self) -> Column:
        if len(self._columns) > 1:
            self._columns = [Column.concat(self._columns)]
        return self._columns[0]


MIN_POOL_TO_PACK = 1 << 12
"""A pool that never held more values than this is not packed."""


class ColumnPlanes:
    """The representation of a column's values as planes of numbers."""

    dtypes: tuple[Any, ...]

    def put(self, values: Column) -> tuple[Array, ...]:
        """Add values; returns the planes that represent them."""
        raise NotImplementedError

    def get(self, planes: Sequence[Array]) -> Column:
        """The values that planes represent."""
        raise NotImplementedError

    def full(self) -> bool:
        """Whether the pool should be packed."""
        return False

    def pack(self, plane: Array, places: Places) -> None:
        """Keep only the values of a plane at these places, and renumber them in place."""


def planes_for(kind: pa.DataType, *, nullable: bool) -> ColumnPlanes:
    """The representation of values of a type; `nullable`: whether there are nulls."""
    # Decimals have numbers in one batch and none in the next.
    numbers = Column.of(pa.array([], kind)).physical and not pa.types.is_decimal128(kind)
    return NumberPlanes(kind, nullable) if numbers else PooledPlanes(kind)


class NumberPlanes(ColumnPlanes):
    """Values that are numbers, and which of them are there."""

    def __init__(self, kind: pa.DataType, nullable: bool) -> None:
        self.kind = kind
        dtype = np.float64 if pa.types.is_floating(kind) else np.int64
        self.dtypes = (dtype, np.bool_) if nullable else (dtype,)

    def put(self, values: Column) -> tuple[Array, ...]:
        """The numbers themselves."""
        if len(self.dtypes) == 1:
            return (values.data,)
        there = np.ones(len(values), bool) if values.valid is None else values.valid
        return values.data, there

    def get(self, planes: Sequence[Array]) -> Column:
        """A column of the numbers."""
        there = planes[1] if len(planes) > 1 and not planes[1].all() else None
        return Column(self.kind, planes[0], there)


class PooledPlanes(ColumnPlanes):
    """Values of any type in a pool; the plane holds their numbers in it."""

    dtypes = (np.int64,)

    def __init__(self, kind: pa.DataType) -> None:
        self.pool = ChunkedPool(kind)
        self._enough = MIN_POOL_TO_PACK

    def put(self, values: Column) -> tuple[Array, ...]:
        """The numbers that the values get."""
        base = self.pool.add(values)
        return (np.arange(base, base + len(values)),)

    def get(self, planes: Sequence[Array]) -> Column:
        """The values with these numbers."""
        return self.pool.take(planes[0])

    def full(self) -> bool:
        """Whether the pool holds twice what was referred to when it was packed."""
        return self.pool.size > self._enough

    def pack(self, plane: Array, places: Places) -> None:
        """Make a new pool if half of the old one is of no use."""
        self._enough = max(MIN_POOL_TO_PACK, 2 * len(places))
        if self.full():
            values = self.pool.take(plane[places])
            self.pool = ChunkedPool(values.type)
            plane[places] = self.put(values)[0]


class ChunkedPool:
    """Columns of one type in a row, their values numbered through.

    Of two neighbours the first is more than twice as long, so that there are few, and a value is
    copied a few times at most.

    >>> chunks = ChunkedPool(pa.string())
    >>> chunks.add(Column.of(pa.array(["a", "b", "c"]))), chunks.add(Column.of(pa.array(["d"])))
    (0, 3)
    >>> chunks.take(np.array([3, 0])).arrow().to_pylist()
    ['d', 'a']
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._columns = [Column.of(pa.array([], kind))]
        self._bases = [0]
        self.size = 0
        try:
            both = pa.concat_arrays([pa.nulls(1, kind), pa.nulls(1, kind)])
            Column.of(both).take(np.array([1, 0]))
        except pa.ArrowException as error:
            raise Decline(f"values of {kind} cannot be put together") from error

    def add(self, values: Column) -> int:
        """Add a column; returns the number of its first value."""
        base = self.size
        self.size += len(values)
        start, parts = base, [values]
        length = len(values)
        while self._columns and len(self._columns[-1]) <= 2 * length:
            parts.append(self._columns.pop())
            start = self._bases.pop()
            length += len(parts[-1])
        self._columns.append(Column.concat(parts[::-1]))
        self._bases.append(start)
        return base

    def take(self, numbers: Array) -> Column:
        """The values with these numbers."""
        if len(self._columns) == 1:
            return self._columns[0].take(numbers)
        which = np.searchsorted(self._bases, numbers, "right") - 1
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(len(self._columns) + 1))
        parts = [
            column.take(numbers[order[edges[i] : edges[i + 1]]] - base)
            for i, (column, base) in enumerate(zip(self._columns, self._bases, strict=True))
        ]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return Column.concat(parts).take(back)
