"""The state of aggregate functions over the open subwindows of a tumbling window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import (
    checked_count,
    checked_lengths,
    checked_numbers,
    need,
    packed,
    unpacked,
)
from windowlib.columnar.arrays.ledger import Ledger, Ragged
from windowlib.columnar.arrays.numbering import PairCodes
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.extents.layout import Extents, Layout
from windowlib.columnar.firing_groups import GroupExtents, group_extents
from windowlib.columnar.firings import Groups
from windowlib.columnar.inputs import Inputs, LayoutColumns
from windowlib.columnar.kernels.functions import Function
from windowlib.columnar.kernels.kernel import Result
from windowlib.columnar.primitives import NONE, Array, Places, group, ranges

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns

Found = tuple[list[Result], Groups | None]
"""What comes out for firings: the values of each function, or groups that have them."""


class Summaries:
    """One state of each function for every partition.

    `fold` and `carried` change nothing; `commit` and `drop` then make it so.
    """

    def __init__(self, functions: list[Function]) -> None:
        self.functions = functions
        self._later: list[Any] = []

    def grow(self, partitions: int) -> None:
        """Make room for at least that many partitions."""
        for each in self.functions:
            each.grow(partitions)

    def takes_arrivals(self, inputs: Inputs) -> bool:
        """Whether all functions can do without a layout."""
        return all(each.takes_arrivals(inputs.read(each.attribute)) for each in self.functions)

    def fold_arrivals(self, inputs: Inputs, runs: ArrivalRuns, sizes: Places) -> list[Result]:
        """The values of the runs that close among rows as they came, each of its size."""
        folded = [
            each.fold_arrivals(inputs.read(each.attribute), runs, sizes) for each in self.functions
        ]
        self._later = [later for _, later in folded]
        return [result for result, _ in folded]

    def commit_arrivals(self) -> None:
        """The rows have been taken: keep the state of runs that are open."""
        self.replace(self._later)
        self._later = []

    def fold(self, columns: LayoutColumns, layout: Layout, extents: Extents) -> Found:
        """The values of the extents that fire."""
        folded = [each.fold(columns.read(each.attribute), extents) for each in self.functions]
        self._later = [later for _, later in folded]
        return [result for result, _ in folded], None

    def takes_spread(self, inputs: Inputs) -> bool:
        """Whether all functions can add up rows by partition in any order."""
        return all(each.takes_spread(inputs.read(each.attribute)) for each in self.functions)

    def spread(self, inputs: Inputs, ids: Array, partitions: int) -> list[Any]:
        """The state of all partitions after folding rows with these partition numbers."""
        return [
            each.spread(inputs.read(each.attribute), ids, partitions) for each in self.functions
        ]

    def replace(self, state: list[Any]) -> None:
        """Replace the state by what `spread` returned."""
        for each, planes in zip(self.functions, state, strict=True):
            each.commit_arrivals(planes)

    def commit(self, extents: Extents) -> None:
        """The extents have been taken: keep the state of those that stay open."""
        ids = extents.ids[extents.stays]
        for each, later in zip(self.functions, self._later, strict=True):
            each.commit(ids, later)
        self._later = []

    def carried(self, ids: Places, sizes: Places) -> Found:
        """The values of the state that some partitions carry."""
        return [each.carried(ids, sizes) for each in self.functions], None

    def drop(self, ids: Places) -> None:
        """Drop the state of some partitions."""
        for each in self.functions:
            each.forget(ids)

    def load(self, ids: Places, sizes: Places, saved: list[Any]) -> None:
        """Restore saved summaries of some partitions, which hold tuples."""
        for i, each in enumerate(self.functions):
            each.load(ids, [places[i] for ((_, places),) in saved], sizes)

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The summaries of some partitions, in the form of snapshots."""
        saved = [each.save(ids, sizes) for each in self.functions]
        return [[[n, [places[i] for places in saved]]] for i, n in enumerate(sizes.tolist())]

    def dump(self, ids: Places) -> dict[str, Any]:
        """The state of some partitions as arrays; each of them has some."""
        held = np.ones(len(ids), bool)
        return {"functions": [each.dump(ids, held) for each in self.functions]}

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        given = state["functions"]
        need(len(given) == len(self.functions), f"{len(given)} functions")
        for each, dump in zip(self.functions, given, strict=True):
            each.load_dump(ids, dump)


# Tumbling windows with groups: the state of functions for each group of an open subwindow.


class GroupSummaries(Summaries):
    """One state of each function for every group of a subwindow.

    Extents are cut into runs, one for each group. To the functions a run is a extent, and the slot
    of its group what a partition is otherwise.
    """

    def __init__(
        self, functions: list[Function], keys: PartitionKeys, types: list[pa.DataType]
    ) -> None:
        super().__init__(functions)
        self.keys, self._types = keys, types
        self.slots = Slots(keys)
        self._pending: SlotExtents | None = None

    def grow(self, partitions: int) -> None:
        """Make room for at least that many partitions."""
        self.slots.members.grow(partitions)

    # -- batches ----------------------------------------------------------------------------------

    def takes_spread(self, inputs: Inputs) -> bool:
        """Groups are runs of a layout."""
        return False

    def takes_arrivals(self, inputs: Inputs) -> bool:
        """Groups are runs of a layout."""
        return False

    def fold(self, columns: LayoutColumns, layout: Layout, extents: Extents) -> Found:
        """The groups of the extents that fire."""
        runs = self._runs(columns, layout, extents)
        self._pending = found = SlotExtents(self.slots, runs, extents)
        super().grow(self.slots.size)
        places = runs.order if layout.order is None else layout.order[runs.order]
        values, _ = super().fold(LayoutColumns(columns.inputs, places), layout, found.parts)
        names = self.keys.arrow(found.groups)
        return [], Groups(found.counts, names, found.parts.fired_sizes, values)

    def _runs(self, columns: LayoutColumns, layout: Layout, extents: Extents) -> GroupExtents:
        """The places of each extent by group."""
        codes = self.keys.encode([columns.inputs.arrow(name) for name in self.keys.names])
        if layout.order is not None:
            codes = codes[layout.order]
        owners = np.repeat(np.arange(len(extents.starts)), extents.ends - extents.starts)
        return group_extents(owners, codes, len(self.keys))

    def commit(self, extents: Extents) -> None:
        """Commit the batch."""
        assert self._pending is not None
        super().commit(self._pending.parts)
        self._pending.commit()
        self._pending = None

    def carried(self, ids: Places, sizes: Places) -> Found:
        """The groups of the state that some partitions carry."""
        slots, counts = self.slots.groups_of(ids)
        n = self.slots.table.n[slots]
        values, _ = super().carried(slots, n)
        return [], Groups(counts, self.keys.arrow(self.slots.table.group[slots]), n, values)

    def drop(self, ids: Places) -> None:
        """Drop the state of some partitions."""
        slots, _ = self.slots.groups_of(ids)
        super().drop(slots)
        self.slots.close(ids, slots)

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, ids: Places, sizes: Places, saved: list[Any]) -> None:
        """Restore lists of groups and their snapshots."""
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
        slots, counts = self.slots.groups_of(ids)
        table = self.slots.table
        states = super().save(slots, table.n[slots])
        names = self.keys.values(table.group[slots])
        pairs = [[name, state] for name, (state,) in zip(names, states, strict=True)]
        ends = np.cumsum(counts)
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return [[pairs[a:b]] if b > a else None for a, b in bounds]

    def dump(self, ids: Places) -> dict[str, Any]:
        """The groups of some partitions, one partition after the other, and what they carry."""
        slots, counts = self.slots.groups_of(ids)
        table = self.slots.table
        kept, groups = np.unique(table.group[slots], return_inverse=True)
        return {
            "counts": packed(counts),
            "keys": self.keys.dump(kept),
            "groups": {"known": len(kept), "number": packed(groups), "n": packed(table.n[slots])},
            **super().dump(slots),
        }

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        counts, given = checked_lengths(state["counts"], len(ids)), state["groups"]
        total, known = int(counts.sum()), checked_count(given["known"], "groups")
        self.keys.load_dump(state["keys"], self._types, known)
        groups = checked_numbers(given["number"], total, known)
        partitions = np.repeat(ids, counts)
        slots = self.slots.offer(total)
        super().grow(self.slots.size)
        super().load_dump(slots, state)
        self.slots.take(slots, slots[:0])
        _, pairs = self.slots.find(partitions, groups)
        self.slots.open(slots, partitions, groups, pairs)
        self.slots.table.n[slots] = unpacked(given["n"], np.int64, total)


# One batch of a tumbling window with groups: which runs go on, fire and stay, in which order.


class SlotExtents:
    """The runs of the extents of a batch, as extents of their own: the slot is their partition.

    A group that a closing subwindow carries, and that has no new row, is to the functions a
    subwindow that closes before a row enters it (`Extents.bare`).
    """

    def __init__(self, slots: Slots, runs: GroupExtents, extents: Extents) -> None:
        self._slots, self._runs, self._tiles = slots, runs, extents
        self._firing = np.full(len(extents.starts) + len(extents.bare), -1, np.intp)
        self._firing[extents.fires] = np.arange(len(extents.fires))
        self._stays = _flags(extents.stays, len(extents.starts))[runs.owners]
        self._find()
        self._close()
        self.parts = self._parts()

    def _find(self) -> None:
        """The slots that runs go on with; all others are offered a free one."""
        runs, extents = self._runs, self._tiles
        goes_on = _flags(extents.joins, len(extents.starts))[runs.owners]
        look = np.flatnonzero(goes_on | self._stays)
        self._pairs = np.full(len(runs), -1, np.intp)
        self.ids = np.full(len(runs), -1, np.intp)
        found, self._pairs[look] = self._slots.find(
            extents.ids[runs.owners[look]], runs.groups[look]
        )
        self.ids[look] = np.where(goes_on[look], found, -1)
        self._joins, self._fresh = np.flatnonzero(self.ids >= 0), np.flatnonzero(self.ids < 0)
        self._offered = self._slots.offer(len(self._fresh))
        self.ids[self._fresh] = self._offered

    def _close(self) -> None:
        """The carried subwindows that close: with a extent that goes on with them, or bare."""
        extents, firing = self._tiles, self._firing
        joins = extents.joins[firing[extents.joins] >= 0]
        self._closed = np.append(extents.ids[joins], extents.bare)
        self._closed_slots, lengths = self._slots.groups_of(self._closed)
        firings = np.append(firing[joins], firing[len(extents.starts) :])
        self._closed_firings = np.repeat(firings, lengths)
        begins = np.full(len(extents.starts), -1, np.intp)
        begins[joins] = (np.cumsum(lengths) - lengths)[: len(joins)]
        # The run that goes on with each of these slots, and behind all runs the bare ones.
        begin = begins[self._runs.owners[self._joins]]
        runs, begin = self._joins[begin >= 0], begin[begin >= 0]
        self._closed_runs = np.full(len(self._closed_slots), -1, np.intp)
        self._closed_runs[begin + self._slots.table.seat[self.ids[runs]]] = runs
        bare = np.flatnonzero(self._closed_runs < 0)
        self._closed_runs[bare] = len(self._runs) + np.arange(len(bare))
        self._bare = self._closed_slots[bare]

    def _parts(self) -> Extents:
        runs, extents, table = self._runs, self._tiles, self._slots.table
        sizes = runs.ends - runs.starts
        sizes[self._joins] += table.n[self.ids[self._joins]]
        fires = self._fires()
        return Extents(
            starts=runs.starts,
            ends=runs.ends,
            number=runs.owners,
            ids=self.ids,
            sizes=sizes,
            joins=self._joins,
            stays=np.flatnonzero(self._stays),
            bare=self._bare,
            bare_sizes=table.n[self._bare],
            fires=fires,
            rows=np.repeat(extents.rows, self.counts),
        )

    def _fires(self) -> Places:
        """What fires, firing by firing: carried groups as they came, then new ones likewise."""
        runs, closed = self._runs, self._closed_runs
        new = self._fresh[~self._stays[self._fresh]]
        firings = np.append(self._closed_firings, self._firing[runs.owners[new]])
        since = np.append(np.arange(len(closed)), len(closed) + runs.firsts[new])
        self.counts: Places = np.bincount(firings, minlength=len(self._tiles.fires))
        span = len(closed) + len(runs.order)
        order, _, _ = group(firings * span + since, len(self._tiles.fires) * span)
        found: Places = np.append(closed, new)[order]
        return found

    @property
    def groups(self) -> Places:
        """The group of everything that fires."""
        carried = self._slots.table.group[self._bare]
        found: Places = np.append(self._runs.groups, carried)[self.parts.fires]
        return found

    def commit(self) -> None:
        """The batch has been taken: free the slots of what closed, and keep what is open."""
        slots, runs, stays = self._slots, self._runs, self._stays[self._fresh]
        slots.take(self._offered, self._offered[~stays])
        slots.close(self._closed, self._closed_slots)
        new = self._fresh[stays]
        new = new[np.argsort(runs.firsts[new])]  # by partition, too
        partitions = self._tiles.ids[runs.owners[new]]
        slots.open(self.ids[new], partitions, runs.groups[new], self._pairs[new])
        parts = self.parts
        slots.table.n[parts.ids[parts.stays]] = parts.sizes[parts.stays]
        slots.tidy()


def _flags(places: Places, size: int) -> Any:
    found = np.zeros(size, bool)
    found[places] = True
    return found


# Numbers for the groups of open subwindows, by which functions keep their state.


MAX_IDLE_GROUPS = 1 << 16
"""Groups and pairs that may be numbered, and not open, before they are numbered anew."""


class Slots:
    """A *slot* for each group of an open subwindow; it is free again when the subwindow closes.

    `table` holds for each slot how many tuples its group has (0: the slot is free), the partition,
    the group, the number of both together, and which group of its subwindow it is.
    """

    def __init__(self, keys: PartitionKeys) -> None:
        self.keys = keys
        self.members = Ragged([np.intp])
        self.table = Ledger(n=0, partition=0, group=0, pair=0, seat=0)
        self._free = NONE  # a stack, of which `_spare` are there
        self._spare = 0
        self._pairs = PairCodes()
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

    def groups_of(self, partitions: Places) -> tuple[Places, Places]:
        """The slots of some open subwindows, in order of arrival, and how many each has."""
        (slots,) = self.members.take(partitions)
        return slots, self.members.lengths[partitions]

    def offer(self, count: int) -> Places:
        """That many free slots; they stay free until `take`."""
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
        """Mark the slots of the last `offer` as used, except for some."""
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
        owners = partitions[heads]
        table.seat[slots] = ranges(self.members.lengths[owners], counts)
        self.members.append(owners, counts, [slots])
        table.partition[slots], table.group[slots] = partitions, groups
        table.pair[slots] = pairs
        self._slot[pairs] = slots

    def close(self, partitions: Places, slots: Places) -> None:
        """Free the slots of subwindows that have closed."""
        self._slot[self.table.pair[slots]] = -1
        self.table.n[slots] = 0
        self._release(slots)
        self.members.clear(partitions)

    def tidy(self) -> None:
        """Drop groups without an open subwindow, once there are many."""
        in_use = self.size - self._spare
        if max(len(self._pairs), len(self.keys)) <= 2 * in_use + MAX_IDLE_GROUPS:
            return
        table, slots = self.table, np.flatnonzero(self.table.n)
        kept, again = np.unique(table.group[slots], return_inverse=True)
        self.keys.compact(kept)
        table.group[slots] = again
        self._pairs, self._slot = PairCodes(), NONE
        _, table.pair[slots] = self.find(table.partition[slots], table.group[slots])
        self._slot[table.pair[slots]] = slots
