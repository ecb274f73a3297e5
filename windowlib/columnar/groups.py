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

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.functions import Function
from windowlib.columnar.kernels.base import Array, Result, Values
from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import group, ranges
from windowlib.columnar.results import joined, picked

OVERLAP = 64
"""Extents that hold each row more often than this, on average, are left to the event engine."""
AT_ONCE = 1 << 22
"""Places that are worked on at once, where extents overlap: 32 MB for each array."""


@dataclass(slots=True)
class Groups:
    """The groups of all firings, those of one next to each other, in order of first tuples."""

    counts: Places
    """How many groups each firing has."""
    columns: list[pa.Array]
    """The key of each group: an array for each column."""
    sizes: Places
    """How many tuples each group has."""
    values: list[Result]
    """The values of each function of the plan, one a group."""


@dataclass(slots=True)
class Runs:
    """Places sorted by owner and group: a run for each group of an owner."""

    order: Places
    """Which place it was, for each place of the sorted layout."""
    starts: Places
    ends: Places
    owners: Places
    groups: Places

    @property
    def firsts(self) -> Places:
        """The first place of each run, as it was."""
        return self.order[self.starts]

    def __len__(self) -> int:
        return len(self.starts)


def runs_of(owners: Places, codes: Array, groups: int) -> Runs:
    """Split places by group; `owners` ascend, and `codes` are numbers below `groups`.

    >>> runs = runs_of(np.array([0, 0, 0, 1]), np.array([1, 0, 1, 1]), 2)
    >>> runs.order.tolist(), runs.starts.tolist(), runs.owners.tolist(), runs.groups.tolist()
    ([1, 0, 2, 3], [0, 1, 3], [0, 0, 1], [0, 1, 1])
    """
    bits = (groups - 1).bit_length() if groups else 0
    last = int(owners[-1]) if len(owners) else 0
    order, both, starts = group(owners << bits | codes, (last + 1) << bits)
    return Runs(order, starts[:-1], starts[1:], both >> bits, both & ((1 << bits) - 1))


def group_keys(group_by: Any, type_of: Callable[[Any], pa.DataType]) -> Keys:
    """Numbers for the groups of a plan; `Decline` if they are not read from columns."""
    parts = group_by if isinstance(group_by, tuple) else (group_by,)
    if not all(isinstance(part, str) for part in parts):
        raise Decline(f"group_by={group_by!r} is no list of column names")
    for part in parts:
        type_of(part)
    return Keys(tuple(map(str, parts)), isinstance(group_by, tuple))


def over_groups(
    functions: Sequence[Function],
    keys: Keys,
    codes: Array,
    columns: Sequence[Values],
    lo: Places,
    hi: Places,
) -> Groups:
    """The groups of firings that are extents of a layout, which may overlap.

    Args:
        functions: the functions of the plan.
        keys: what gave the groups their numbers.
        codes: the number of the group at each place.
        columns: what each function reads, in the order of the layout.
        lo: where each firing starts.
        hi: where it ends.
    """
    ends = np.cumsum(hi - lo)
    total = int(ends[-1]) if len(ends) else 0
    if total > OVERLAP * len(codes):
        raise Decline("groups of windows that overlap too much")
    cuts = np.searchsorted(ends, np.arange(AT_ONCE, total, AT_ONCE), side="right")
    bounds = np.unique(np.concatenate(([0], cuts, [len(lo)])))
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    parts = [_some(functions, keys, codes, columns, lo[a:b], hi[a:b]) for a, b in pairs]
    parts = parts or [_some(functions, keys, codes, columns, lo, hi)]
    return Groups(
        np.concatenate([part.counts for part in parts]),
        [joined(each) for each in zip(*(part.columns for part in parts), strict=True)],
        np.concatenate([part.sizes for part in parts]),
        [joined(each) for each in zip(*(part.values for part in parts), strict=True)],
    )


def _some(
    functions: Sequence[Function],
    keys: Keys,
    codes: Array,
    columns: Sequence[Values],
    lo: Places,
    hi: Places,
) -> Groups:
    """The groups of some extents: a copy of each, side by side, and each copy split."""
    lengths = hi - lo
    places = ranges(lo, lengths)
    owners = np.repeat(np.arange(len(lo)), lengths)
    runs = runs_of(owners, codes[places], len(keys))
    places = places[runs.order]
    # Of the places of one extent, the sorted ones refer to the row they are a copy of.
    order = np.lexsort((places[runs.starts], runs.owners))
    taken = _Taken(places)
    return Groups(
        np.bincount(runs.owners, minlength=len(lo)),
        keys.arrow(runs.groups[order]),
        (runs.ends - runs.starts)[order],
        [
            picked(each.over(taken.of(values), runs.starts, runs.ends), order)
            for each, values in zip(functions, columns, strict=True)
        ],
    )


class _Taken:
    """Columns at some places, each taken once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: dict[int, Column] = {}

    def of(self, values: Values) -> Values:
        for column in values:
            if id(column) not in self._found:
                self._found[id(column)] = column.take(self._places)
        return tuple(self._found[id(column)] for column in values)
