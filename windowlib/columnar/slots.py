"""Numbers for the groups of open subwindows, by which functions keep their state."""

from __future__ import annotations

import numpy as np

from windowlib.columnar.kernels.base import Array
from windowlib.columnar.keys import Keys
from windowlib.columnar.ledger import Ledger
from windowlib.columnar.members import Members
from windowlib.columnar.numbering import Pairs
from windowlib.columnar.pieces import NONE, Places

IDLE = 1 << 16
"""Groups and pairs that may be numbered, and not open, before they are numbered anew."""


class Slots:
    """A *slot* for each group of an open subwindow; it is free again when the subwindow closes.

    `table` holds for each slot how many tuples its group has (0: the slot is free), the partition,
    the group, the number of both together, and which group of its subwindow it is.
    """

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.members = Members()
        self.table = Ledger(n=0, partition=0, group=0, pair=0, seat=0)
        self._free = NONE  # a stack, of which `_spare` are there
        self._spare = 0
        self._pairs = Pairs()
        self._slot = NONE  # by number of partition and group together; -1: not open

    @property
    def size(self) -> int:
        """How many slots there are, free or not."""
        return self.table.size

    def find(self, partitions: Places, groups: Array) -> tuple[Places, Places]:
        """The slots of groups, -1 for those that are not open, and the numbers of the pairs."""
        pairs = self._pairs.encode(partitions, groups, len(self.keys))  # type: ignore[arg-type]  # wider
        if len(self._slot) < len(self._pairs):
            more = np.full(2 * len(self._pairs), -1, np.intp)
            more[: len(self._slot)] = self._slot
            self._slot = more
        return self._slot[pairs], pairs.astype(np.intp)

    def offer(self, count: int) -> Places:
        """So many slots that are free; they stay so until `take`."""
        if self._spare < count:
            before = self.size
            self.table.grow(before + count - self._spare)
            more = np.empty(self.size, np.intp)
            fresh = self.size - before
            more[:fresh] = np.arange(self.size - 1, before - 1, -1)  # the lowest go first
            more[fresh : fresh + self._spare] = self._free[: self._spare]
            self._free, self._spare = more, self._spare + fresh
        return self._free[self._spare - count : self._spare].copy()

    def take(self, offered: Places, unused: Places) -> None:
        """The slots that `offer` gave last are in use, but for some of them."""
        self._spare -= len(offered)
        self._release(unused)

    def _release(self, slots: Places) -> None:
        self._free[self._spare : self._spare + len(slots)] = slots
        self._spare += len(slots)

    def open(self, slots: Places, partitions: Places, groups: Places, pairs: Places) -> None:
        """New groups of open subwindows, by partition, and each partition's in order of arrival."""
        table = self.table
        heads = np.flatnonzero(np.append(True, partitions[1:] != partitions[:-1])[: len(slots)])
        counts = np.diff(np.append(heads, len(slots)))
        table.seat[slots] = self.members.append(partitions[heads], counts, slots)
        table.partition[slots], table.group[slots] = partitions, groups
        table.pair[slots] = pairs
        self._slot[pairs] = slots

    def close(self, partitions: Places, slots: Places) -> None:
        """The subwindows of partitions are closed, which had these slots."""
        self._slot[self.table.pair[slots]] = -1
        self.table.n[slots] = 0
        self._release(slots)
        self.members.clear(partitions)

    def tidy(self) -> None:
        """Forget groups that are in no open subwindow, once there are many of them."""
        in_use = self.size - self._spare
        if max(len(self._pairs), len(self.keys)) <= 2 * in_use + IDLE:
            return
        table, slots = self.table, np.flatnonzero(self.table.n)
        kept, again = np.unique(table.group[slots], return_inverse=True)
        self.keys.compact(kept)
        table.group[slots] = again
        self._pairs, self._slot = Pairs(), NONE
        _, table.pair[slots] = self.find(table.partition[slots], table.group[slots])
        self._slot[table.pair[slots]] = slots
