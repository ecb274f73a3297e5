"""Small numbers for values, the same number for the same value, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.physical import Valid

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

LIMIT = 1 << 22  # the widest range of values that gets a table: 16 MB


class Numbers:
    """Numbers for int64 values and null.

    Values in a narrow range are looked up in a table, one slot per value; others are made distinct
    first, and those searched for in sorted arrays.

    >>> numbers = Numbers()
    >>> numbers.encode(np.array([30, 10, 30]), None), numbers.encode(np.array([20, 10]), None)
    (array([0, 1, 0], dtype=int32), array([2, 1], dtype=int32))
    """

    __slots__ = ("_base", "_known", "_sorted", "_table", "count", "null")

    def __init__(self, *, wide: bool = False) -> None:
        self.count = 0
        self.null = -1  # the number of null, once it has appeared
        self._known: Ints = np.empty(16, np.int64)  # value by number; null has any
        self._base = 0  # the value of the table's first slot
        # Number by slot, -1 for none; the last slot is null's.
        self._table: Ids | None = None if wide else np.full(1, -1, np.int32)
        self._sorted: list[tuple[Ints, Ids]] = []

    @property
    def values(self) -> Ints:
        """The value of each number."""
        return self._known[: self.count]

    def encode(self, data: Ints, valid: Valid) -> Ids:
        """The numbers of these values; new values get new ones."""
        if not len(data):
            return np.empty(0, np.int32)
        if self._table is not None:
            slots = self._slots(data, valid)
            if slots is not None:
                return self._look_up(slots)
            self._widen()
        encoded = pa.array(data, mask=None if valid is None else ~valid).dictionary_encode(
            null_encoding="encode"
        )
        found: Ids = self._search(encoded.dictionary)[encoded.indices.to_numpy()]
        return found

    # -- narrow: a table --

    def _slots(self, data: Ints, valid: Valid) -> Ints | None:
        """Where in the table the values are; None: their range is too wide for one."""
        table = self._table
        assert table is not None
        if valid is None:
            # Negative values are huge without a sign: one look finds both ends.
            if self._base == 0 and data.view(np.uint64).max() < len(table) - 1:
                return data
            present = data
        else:
            present = data[valid]
        if len(present) and not self._cover(int(present.min()), int(present.max())):
            return None
        slots = data if self._base == 0 else data - self._base
        if valid is not None:
            assert self._table is not None
            slots = np.where(valid, slots, len(self._table) - 1)
        return slots

    def _cover(self, low: int, high: int) -> bool:
        """Make the table large enough for values from low to high, if it may be that large."""
        assert self._table is not None
        room = len(self._table) - 1
        if self._base <= low and high < self._base + room:
            return True
        if room:
            low, high = min(low, self._base), max(high, self._base + room - 1)
        if low >= 0 and high < LIMIT:
            low = 0
        if high - low >= LIMIT:
            return False
        self._base = low
        self._table = np.full((1 << (high - low).bit_length()) + 1, -1, np.int32)
        numbers = np.arange(self.count, dtype=np.int32)
        present = numbers != self.null
        self._table[self.values[present] - low] = numbers[present]
        self._table[-1] = self.null
        return True

    def _look_up(self, slots: Ints) -> Ids:
        table = self._table
        assert table is not None
        ids: Ids = table[slots]
        if ids.min() >= 0:
            return ids
        rows = np.flatnonzero(ids < 0)
        wanted = slots[rows]
        # Of the rows with the same slot the first writes last, and finds itself there.
        order = np.arange(len(rows), dtype=np.int32)
        table[wanted[::-1]] = order[::-1]
        fresh = wanted[table[wanted] == order]
        null = len(table) - 1
        table[fresh] = self._admit(fresh + self._base, fresh == null)
        ids[rows] = table[wanted]
        return ids

    def _admit(self, values: Ints, nulls: npt.NDArray[np.bool_]) -> Ids:
        """Numbers for values that have none yet."""
        start, self.count = self.count, self.count + len(values)
        if self.count > len(self._known):
            more = np.empty(2 * self.count, np.int64)
            more[:start] = self._known[:start]
            self._known = more
        self._known[start : self.count] = values
        ids = np.arange(start, self.count, dtype=np.int32)
        if nulls.any():
            self.null = start + int(nulls.argmax())
        return ids

    # -- wide: sorted arrays --

    def _widen(self) -> None:
        self._table = None
        ids = np.arange(self.count, dtype=np.int32)
        present = ids != self.null
        self._add(self.values[present], ids[present])

    def _search(self, distinct: Any) -> Ids:
        """The numbers of distinct values, at most one of them null."""
        values, nulls = distinct.fill_null(0).to_numpy(), _nulls(distinct)
        ids = np.full(len(values), -1, np.int32)
        for known, numbers in self._sorted:
            places = known.searchsorted(values)
            places[places == len(known)] = 0
            hits = known[places] == values
            ids[hits] = numbers[places[hits]]
        ids[nulls] = self.null
        fresh = ids < 0
        if fresh.any():
            ids[fresh] = self._admit(values[fresh], nulls[fresh])
            fresh &= ~nulls
            self._add(values[fresh], ids[fresh])
        return ids

    def _add(self, values: Ints, ids: Ids) -> None:
        """Remember numbers: arrays of like sizes are merged, so that there are only a few."""
        while self._sorted and len(self._sorted[-1][0]) <= 2 * len(values):
            known, numbers = self._sorted.pop()
            values, ids = np.concatenate([known, values]), np.concatenate([numbers, ids])
        if len(values):
            order = values.argsort()
            self._sorted.append((values[order], ids[order]))


def _nulls(array: Any) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found


class Pairs:
    """Numbers for pairs of numbers.

    >>> pairs = Pairs()
    >>> first, second = np.array([0, 0, 1], np.int32), np.array([0, 5, 0], np.int32)
    >>> pairs.encode(first, second, 6), pairs.split(np.array([1, 2]))
    (array([0, 1, 2], dtype=int32), (array([0, 1]), array([5, 0])))
    """

    __slots__ = ("_bits", "_numbers")

    def __init__(self) -> None:
        self._bits = 4  # of the second number
        self._numbers = Numbers()

    def __len__(self) -> int:
        return self._numbers.count

    def encode(self, first: Ids, second: Ids, seconds: int) -> Ids:
        """The numbers of pairs, the second of them below `seconds`."""
        if seconds > 1 << self._bits:
            one, two = self.split(slice(None))
            self._bits = (2 * seconds).bit_length()
            self._numbers = Numbers()
            self._numbers.encode(one << self._bits | two, None)  # all distinct: the same numbers
        return self._numbers.encode(first.astype(np.int64) << self._bits | second, None)

    def split(self, ids: Any) -> tuple[Ints, Ints]:
        """The pairs that have these numbers."""
        both = self._numbers.values[ids]
        return both >> self._bits, both & ((1 << self._bits) - 1)
