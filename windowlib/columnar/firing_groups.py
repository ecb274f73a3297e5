"""Groups inside firings: rows split by columns other than the partition key.

The rows of each firing are sorted by group, so that a group is a *run* of places, and every
function folds runs as it folds whole subwindows. Groups come in the order of their first tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.firings import Groups, concat_results, take_results
from windowlib.columnar.kernels.functions import Function
from windowlib.columnar.kernels.kernel import Values
from windowlib.columnar.primitives import Array, Places, group, ranges
from windowlib.window.consumer import Decline

CHUNK_GROUPS = 1 << 22
"""Groups of overlapping extents that are worked on at once: 32 MB for each array."""


@dataclass(slots=True)
class GroupExtents:
    """Places sorted by owner and group: a run for each group of an owner."""

    order: Places
    """Which place it was, for each place of the sorted layout."""
    starts: Places
    ends: Places
    owners: Places
    groups: Places

    @property
    def firsts(self) -> Places:
        """The first place of each run, before sorting."""
        return self.order[self.starts]

    def __len__(self) -> int:
        return len(self.starts)


def group_extents(owners: Places, codes: Array, groups: int) -> GroupExtents:
    """Split places by group; `owners` ascend, and `codes` are numbers below `groups`.

    >>> runs = group_extents(np.array([0, 0, 0, 1]), np.array([1, 0, 1, 1]), 2)
    >>> runs.order.tolist(), runs.starts.tolist(), runs.owners.tolist(), runs.groups.tolist()
    ([1, 0, 2, 3], [0, 1, 3], [0, 0, 1], [0, 1, 1])
    """
    bits = (groups - 1).bit_length() if groups else 0
    last = int(owners[-1]) if len(owners) else 0
    order, both, starts = group(owners << bits | codes, (last + 1) << bits)
    return GroupExtents(order, starts[:-1], starts[1:], both >> bits, both & ((1 << bits) - 1))


def group_keys(group_by: Any, type_of: Callable[[Any], pa.DataType]) -> PartitionKeys:
    """Numbers for the groups of a plan; `Decline` if they are not read from columns."""
    parts = group_by if isinstance(group_by, tuple) else (group_by,)
    if not all(isinstance(part, str) for part in parts):
        raise Decline("group_by= is no list of column names")
    for part in parts:
        type_of(part)
    return PartitionKeys(tuple(map(str, parts)), isinstance(group_by, tuple))


def over_groups(
    functions: Sequence[Function],
    keys: PartitionKeys,
    codes: Array,
    columns: Sequence[Values],
    lo: Places,
    hi: Places,
) -> Groups:
    """The groups of firings that are extents of a layout; none may contain another.

    Args:
        functions: the functions of the plan.
        keys: what gave the groups their numbers.
        codes: the number of the group at each place.
        columns: what each function reads, in the order of the layout.
        lo: where each firing starts.
        hi: where it ends.
    """
    shares = _GroupShares(codes, len(keys), lo, hi)
    taken = _ColumnsAt(shares.order)
    values = [taken.of(each) for each in columns]
    parts = [shares.between(a, b) for a, b in shares.chunks()]
    firings, starts, ends = (np.concatenate(each) for each in zip(*parts, strict=True))
    since = firings * len(codes) + shares.order[starts]
    order, _, _ = group(since, len(lo) * len(codes))
    folded = [
        concat_results([each.over(read, starts, ends) for _, starts, ends in parts])
        for each, read in zip(functions, values, strict=True)
    ]
    return Groups(
        np.bincount(firings, minlength=len(lo)),
        keys.arrow(shares.groups[starts[order]]),
        (ends - starts)[order],
        [take_results(each, order) for each in folded],
    )


class _GroupShares:
    """The rows of each group in each extent, as extents of the layout sorted by group.

    A place of a group is the first that an extent has of it if the extent starts at or before it,
    but behind the place that the group has before it, and ends behind it. Extents that start and
    end in the same order are neighbours, for which that is so.
    """

    def __init__(self, codes: Array, groups: int, lo: Places, hi: Places) -> None:
        some = np.flatnonzero(hi > lo)
        self._firings = some[np.lexsort((hi[some], lo[some]))]
        lo, self._hi = lo[self._firings], hi[self._firings]
        if (self._hi[1:] < self._hi[:-1]).any():
            raise Decline("windows that hold other windows")
        self.order, touched, starts = group(codes, groups)
        self.groups = np.repeat(touched, np.diff(starts))
        self._places = self.groups * (len(codes) + 1) + self.order  # ascending
        before = np.append(-1, self.order[:-1])[: len(codes)]
        before[starts[:-1][: len(touched)]] = -1
        begun = _up_to(lo, len(codes))
        self._last = begun[self.order + 1]
        self._first = np.maximum(begun[before + 1], _up_to(self._hi, len(codes))[self.order + 1])
        self._first = np.minimum(self._first, self._last)

    def chunks(self) -> list[tuple[int, int]]:
        """Extents to work on at once, from one to another."""
        size = len(self._firings)
        more = np.bincount(self._first, minlength=size + 1)
        less = np.bincount(self._last, minlength=size + 1)
        total = np.cumsum(np.cumsum(more - less)[:size])
        steps = np.arange(CHUNK_GROUPS, int(total[-1]) if size else 0, CHUNK_GROUPS)
        bounds = np.unique(np.concatenate(([0], total.searchsorted(steps, "right"), [size])))
        return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)) or [(0, 0)]

    def between(self, a: int, b: int) -> tuple[Places, Places, Places]:
        """Firing, start and end of the shares of some extents."""
        first = np.clip(self._first, a, b)
        counts = np.clip(self._last, a, b) - first
        extents = ranges(first, counts)
        starts = np.repeat(np.arange(len(self.order)), counts)
        wanted = self.groups[starts] * (len(self.order) + 1) + self._hi[extents]
        return self._firings[extents], starts, self._places.searchsorted(wanted)


def _up_to(bounds: Places, places: int) -> Places:
    """How many of the bounds are below each place, and all of them behind the last."""
    return np.append(0, np.cumsum(np.bincount(bounds, minlength=places)[:places]))


class _ColumnsAt:
    """Columns at some places, each taken once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: dict[int, Column] = {}

    def of(self, values: Values) -> Values:
        for column in values:
            if id(column) not in self._found:
                self._found[id(column)] = column.take(self._places)
        return tuple(self._found[id(column)] for column in values)
