"""Lists of numbers, one for each partition, in one array."""

from __future__ import annotations

import numpy as np

from windowlib.columnar.ledger import Ledger
from windowlib.columnar.pieces import NONE, Places
from windowlib.columnar.primitives import ranges

SLACK = 1 << 16
"""Places that may lie idle before the lists are moved together."""


class Members:
    """Lists that grow at their end; a batch costs what it adds and reads, whatever is stored.

    A list that has no room left moves to the end of the array, with room for as many again.

    >>> members = Members()
    >>> members.grow(10)
    >>> members.append(np.array([3, 7]), np.array([2, 1]), np.array([30, 31, 70])).tolist()
    [0, 1, 0]
    >>> members.append(np.array([3]), np.array([1]), np.array([32])).tolist()
    [2]
    >>> numbers, lengths = members.of(np.array([7, 3]))
    >>> numbers.tolist(), lengths.tolist()
    ([70, 30, 31, 32], [1, 3])
    """

    def __init__(self) -> None:
        self._lists = Ledger(at=0, length=0, room=0)
        self._store = NONE
        self._end = self._room = 0  # of the array so far: its length, and what lists have of it

    def grow(self, partitions: int) -> None:
        """Make room for the lists of so many partitions."""
        self._lists.grow(partitions)

    def of(self, ids: Places) -> tuple[Places, Places]:
        """The lists of some partitions, one after the other, and their lengths."""
        lengths = self._lists.length[ids]
        return self._store[ranges(self._lists.at[ids], lengths)], lengths

    def append(self, ids: Places, counts: Places, numbers: Places) -> Places:
        """Add to the lists of different partitions; where in its list each number now is."""
        lists = self._lists
        before = lists.length[ids]
        need = before + counts
        small = need > lists.room[ids]
        self._move(ids[small], 2 * need[small])
        self._store[ranges(lists.at[ids] + before, counts)] = numbers
        lists.length[ids] = need
        return ranges(before, counts)

    def clear(self, ids: Places) -> None:
        """Empty the lists of some partitions."""
        lists = self._lists
        self._room -= int(lists.room[ids].sum())
        lists.length[ids] = lists.room[ids] = 0
        if self._end > 2 * self._room + SLACK:
            self._pack()

    def _move(self, ids: Places, room: Places) -> None:
        """Give lists more room, behind all others."""
        lists = self._lists
        end = self._end + int(room.sum())
        if end > len(self._store):
            store = np.empty(2 * end, np.intp)
            store[: self._end] = self._store[: self._end]
            self._store = store
        at = self._end + np.cumsum(room) - room
        lengths = lists.length[ids]
        self._store[ranges(at, lengths)] = self._store[ranges(lists.at[ids], lengths)]
        self._room += int(room.sum() - lists.room[ids].sum())
        lists.at[ids], lists.room[ids] = at, room
        self._end = end

    def _pack(self) -> None:
        """Move the lists together."""
        lists = self._lists
        ids = np.flatnonzero(lists.room)
        numbers, _ = self.of(ids)
        self._store, self._end, self._room = NONE, 0, 0
        lengths = lists.length[ids]
        lists.length[ids] = lists.room[ids] = 0
        self.append(ids, lengths, numbers)
