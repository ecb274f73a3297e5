"""One batch of a tumbling window with groups: which runs go on, fire and stay, in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from windowlib.columnar.groups import Runs
from windowlib.columnar.pieces import Pieces, Places
from windowlib.columnar.primitives import group
from windowlib.columnar.slots import Slots


class GroupRuns:
    """The runs of the pieces of a batch, as pieces of their own: the slot is their partition.

    A group that a closing subwindow carries, and that has no new row, is to the functions a
    subwindow that closes before a row enters it (`Pieces.bare`).
    """

    def __init__(self, slots: Slots, runs: Runs, pieces: Pieces) -> None:
        self._slots, self._runs, self._pieces = slots, runs, pieces
        self._firing = np.full(len(pieces.starts) + len(pieces.bare), -1, np.intp)
        self._firing[pieces.fires] = np.arange(len(pieces.fires))
        self._stays = _flags(pieces.stays, len(pieces.starts))[runs.owners]
        self._find()
        self._close()
        self.parts = self._parts()

    def _find(self) -> None:
        """The slots that runs go on with; all others are offered a free one."""
        runs, pieces = self._runs, self._pieces
        goes_on = _flags(pieces.joins, len(pieces.starts))[runs.owners]
        look = np.flatnonzero(goes_on | self._stays)
        self._pairs = np.full(len(runs), -1, np.intp)
        self.ids = np.full(len(runs), -1, np.intp)
        found, self._pairs[look] = self._slots.find(
            pieces.ids[runs.owners[look]], runs.groups[look]
        )
        self.ids[look] = np.where(goes_on[look], found, -1)
        self._joins, self._fresh = np.flatnonzero(self.ids >= 0), np.flatnonzero(self.ids < 0)
        self._offered = self._slots.offer(len(self._fresh))
        self.ids[self._fresh] = self._offered

    def _close(self) -> None:
        """The carried subwindows that close: with a piece that goes on with them, or bare."""
        pieces, firing = self._pieces, self._firing
        joins = pieces.joins[firing[pieces.joins] >= 0]
        self._closed = np.append(pieces.ids[joins], pieces.bare)
        self._closed_slots, lengths = self._slots.members.of(self._closed)
        firings = np.append(firing[joins], firing[len(pieces.starts) :])
        self._closed_firings = np.repeat(firings, lengths)
        begins = np.full(len(pieces.starts), -1, np.intp)
        begins[joins] = (np.cumsum(lengths) - lengths)[: len(joins)]
        # The run that goes on with each of these slots, and behind all runs the bare ones.
        begin = begins[self._runs.owners[self._joins]]
        runs, begin = self._joins[begin >= 0], begin[begin >= 0]
        self._closed_runs = np.full(len(self._closed_slots), -1, np.intp)
        self._closed_runs[begin + self._slots.table.seat[self.ids[runs]]] = runs
        bare = np.flatnonzero(self._closed_runs < 0)
        self._closed_runs[bare] = len(self._runs) + np.arange(len(bare))
        self._bare = self._closed_slots[bare]

    def _parts(self) -> Pieces:
        runs, pieces, table = self._runs, self._pieces, self._slots.table
        sizes = runs.ends - runs.starts
        sizes[self._joins] += table.n[self.ids[self._joins]]
        fires = self._fires()
        return Pieces(
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
            rows=np.repeat(pieces.rows, self.counts),
        )

    def _fires(self) -> Places:
        """What fires, firing by firing: carried groups as they came, then new ones likewise."""
        runs, closed = self._runs, self._closed_runs
        new = self._fresh[~self._stays[self._fresh]]
        firings = np.append(self._closed_firings, self._firing[runs.owners[new]])
        since = np.append(np.arange(len(closed)), len(closed) + runs.firsts[new])
        self.counts: Places = np.bincount(firings, minlength=len(self._pieces.fires))
        span = len(closed) + len(runs.order)
        order, _, _ = group(firings * span + since, len(self._pieces.fires) * span)
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
        partitions = self._pieces.ids[runs.owners[new]]
        slots.open(self.ids[new], partitions, runs.groups[new], self._pairs[new])
        parts = self.parts
        slots.table.n[parts.ids[parts.stays]] = parts.sizes[parts.stays]
        slots.tidy()


def _flags(places: Places, size: int) -> Any:
    found = np.zeros(size, bool)
    found[places] = True
    return found
