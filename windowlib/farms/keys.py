"""Partition keys as small numbers, also those that arrays cannot compare as Python does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windowlib.attributes import one_key
from windowlib.columnar.decline import Decline
from windowlib.columnar.keys import Keys, Some
from windowlib.columnar.numbering import Ids


class AnyKeys:
    """Numbers for keys of any type, found for whole batches.

    Arrays are used for as long as they can: a key such as -0.0, which equals 0.0, or a column that
    changes its type is compared by Python, and so are all that come later. Numbers stay.

    >>> import pyarrow as pa
    >>> keys = AnyKeys(("k",), several=False)
    >>> keys.encode([pa.array([2, 1])]), keys.encode([pa.array([1.0, -0.0, 0.0])])
    (array([0, 1], dtype=int32), array([1, 2, 2], dtype=int32))
    >>> keys.values([1, 0])
    [1, 2]
    """

    def __init__(self, names: tuple[str, ...], several: bool) -> None:
        self.names, self.several = names, several
        self._table = Keys(names, several)
        self._numbers: dict[Any, int] | None = None
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._table) if self._numbers is None else len(self._values)

    def encode(self, columns: Sequence[Any]) -> Ids:
        """The numbers of the keys of a batch, one per row; new keys get new ones."""
        if self._numbers is None:
            try:
                return self._table.encode(columns)
            except Decline:
                self._settle(self._table.values(range(len(self._table))))
        lists = [column.to_pylist() for column in columns]
        rows = zip(*lists, strict=True) if self.several else lists[0]
        return np.array([self._number(row) for row in rows], np.int32)

    def _settle(self, values: list[Any]) -> None:
        """Go on with a dict."""
        self._values = values
        self._numbers = {value: number for number, value in enumerate(values)}

    def _number(self, row: Any) -> int:
        assert self._numbers is not None
        key = one_key(row)
        try:
            found = self._numbers.setdefault(key, len(self._values))
        except TypeError:  # what a dict cannot hold, the operator will refuse
            return self._number(None)
        if found == len(self._values):
            self._values.append(key)
        return found

    def values(self, ids: Some | Sequence[int]) -> list[Any]:
        """The keys with these numbers, as Python values."""
        if self._numbers is None:
            return self._table.values(ids)
        return [self._values[number] for number in ids]

    def load(self, values: Sequence[Any], types: Sequence[Any]) -> None:
        """Number these keys from 0; there are no others yet."""
        try:
            self._table.adopt(values, types)
        except Decline:
            self._settle([one_key(value) for value in values])
