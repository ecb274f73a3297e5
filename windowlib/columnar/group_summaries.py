"""Tumbling windows with groups: the state of functions for each group of an open subwindow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.dumps import lengths, numbers, packed, unpacked, whole
from windowlib.columnar.functions import Function
from windowlib.columnar.group_runs import GroupRuns
from windowlib.columnar.groups import Groups, Runs, runs_of
from windowlib.columnar.inputs import Inputs, Sorted
from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import Grouped, Pieces, Places
from windowlib.columnar.slots import Slots
from windowlib.columnar.summaries import Found, Summaries


class GroupSummaries(Summaries):
    """One state of each function for every group of a subwindow.

    Pieces are cut into runs, one for each group. To the functions a run is a piece, and the slot
    of its group what a partition is otherwise.
    """

    def __init__(self, functions: list[Function], keys: Keys, types: list[pa.DataType]) -> None:
        super().__init__(functions)
        self.keys, self._types = keys, types
        self.slots = Slots(keys)
        self._pending: GroupRuns | None = None

    def grow(self, partitions: int) -> None:
        """Make room for so many partitions."""
        self.slots.members.grow(partitions)

    # -- batches ----------------------------------------------------------------------------------

    def deal(self, inputs: Inputs) -> bool:
        """Groups are runs of a layout."""
        return False

    def fold(self, columns: Sorted, grouped: Grouped, pieces: Pieces) -> Found:
        """The groups of the pieces that fire."""
        runs = self._runs(columns, grouped, pieces)
        self._pending = found = GroupRuns(self.slots, runs, pieces)
        super().grow(self.slots.size)
        places = runs.order if grouped.order is None else grouped.order[runs.order]
        values, _ = super().fold(Sorted(columns.inputs, places), grouped, found.parts)
        names = self.keys.arrow(found.groups)
        return [], Groups(found.counts, names, found.parts.fired_sizes, values)

    def _runs(self, columns: Sorted, grouped: Grouped, pieces: Pieces) -> Runs:
        """The places of each piece by group."""
        codes = self.keys.encode([columns.inputs.arrow(name) for name in self.keys.names])
        if grouped.order is not None:
            codes = codes[grouped.order]
        owners = np.repeat(np.arange(len(pieces.starts)), pieces.ends - pieces.starts)
        return runs_of(owners, codes, len(self.keys))

    def commit(self, pieces: Pieces) -> None:
        """The batch has been taken."""
        assert self._pending is not None
        super().commit(self._pending.parts)
        self._pending.commit()
        self._pending = None

    def carried(self, ids: Places, sizes: Places) -> Found:
        """The groups of what some partitions carry."""
        slots, counts = self.slots.members.of(ids)
        n = self.slots.table.n[slots]
        values, _ = super().carried(slots, n)
        return [], Groups(counts, self.keys.arrow(self.slots.table.group[slots]), n, values)

    def drop(self, ids: Places) -> None:
        """Some partitions carry nothing any more."""
        slots, _ = self.slots.members.of(ids)
        super().drop(slots)
        self.slots.close(ids, slots)

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, ids: Places, sizes: Places, saved: list[Any]) -> None:
        """Take over lists of groups and their snapshots."""
        flat = [each for (groups,) in saved for each in groups]
        groups = self.keys.adopt([group for group, _ in flat], self._types).astype(np.intp)
        partitions = np.repeat(ids, np.array([len(groups) for (groups,) in saved], np.intp))
        slots = self.slots.offer(len(flat))
        super().grow(self.slots.size)
        n = np.array([n for _, (n, _) in flat], np.intp)
        super().load(slots, n, [[state] for _, state in flat])
        self.slots.take(slots, slots[:0])
        _, pairs = self.slots.find(partitions, groups)
        self.slots.open(slots, partitions, groups, pairs)
        self.slots.table.n[slots] = n

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """Lists of groups and their snapshots."""
        slots, counts = self.slots.members.of(ids)
        table = self.slots.table
        states = super().save(slots, table.n[slots])
        names = self.keys.values(table.group[slots])
        pairs = [[name, state] for name, (state,) in zip(names, states, strict=True)]
        ends = np.cumsum(counts)
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return [[pairs[a:b]] if b > a else None for a, b in bounds]

    def dump(self, ids: Places) -> dict[str, Any]:
        """The groups of some partitions, one partition after the other, and what they carry."""
        slots, counts = self.slots.members.of(ids)
        table = self.slots.table
        kept, groups = np.unique(table.group[slots], return_inverse=True)
        return {
            "counts": packed(counts),
            "keys": self.keys.dump(kept),
            "groups": {"known": len(kept), "number": packed(groups), "n": packed(table.n[slots])},
            **super().dump(slots),
        }

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        counts, given = lengths(state["counts"], len(ids)), state["groups"]
        total, known = int(counts.sum()), whole(given["known"], "groups")
        self.keys.load_dump(state["keys"], self._types, known)
        groups = numbers(given["number"], total, known)
        partitions = np.repeat(ids, counts)
        slots = self.slots.offer(total)
        super().grow(self.slots.size)
        super().load_dump(slots, state)
        self.slots.take(slots, slots[:0])
        _, pairs = self.slots.find(partitions, groups)
        self.slots.open(slots, partitions, groups, pairs)
        self.slots.table.n[slots] = unpacked(given["n"], np.int64, total)
