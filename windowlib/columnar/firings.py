"""What comes out of an engine for a batch: firings in order, with the values of all functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.groups import Groups
from windowlib.columnar.kernels.base import Result, none_empty
from windowlib.columnar.keys import Keys
from windowlib.columnar.physical import gather
from windowlib.columnar.pieces import NONE, Places
from windowlib.columnar.primitives import ranges
from windowlib.columnar.results import picked


@dataclass(slots=True)
class Firings:
    """Flushes or triggers, in the order in which the event engine fires them."""

    keys: Keys | None
    """What partitions are called; None: there is only one."""
    ids: Places
    """The partition of each firing."""
    sizes: Places
    """How many tuples it has; 0: it fires, and is empty."""
    values: list[Any]
    """The values of each function of the plan: an Arrow array or a list, one a firing."""
    rows: Places
    """The row of the batch that fires it."""
    groups: Groups | None = None
    """Where a plan has groups: those of each firing, with the values; `values` is then empty."""
    lo: Places = field(default_factory=lambda: NONE)
    hi: Places = field(default_factory=lambda: NONE)
    content: Any = None
    """Where rows are kept: the extents of the firings, and the columns they are extents of."""
    times: Any = None
    """When each happens, in microseconds; None: now."""

    def __len__(self) -> int:
        return len(self.ids)

    def python_keys(self) -> list[Any]:
        """The key of each firing, as handlers get it."""
        if self.keys is None:
            return [None] * len(self.ids)
        distinct, places = np.unique(self.ids, return_inverse=True)
        named = self.keys.values(distinct)
        return [named[i] for i in places.tolist()]


def reordered(values: Result, order: Places | slice) -> Result:
    """Results in another order; a slice of all is the one they are in."""
    return values if isinstance(order, slice) else picked(values, order)


class Entries:
    """What rows are made of: an entry for each group of a firing.

    Without groups, a firing is one entry, or none if it is empty.
    """

    def __init__(self, firings: Firings) -> None:
        self.firings, groups = firings, firings.groups
        self._owners: Places | slice = slice(None)
        self.counts = np.broadcast_to(np.intp(1), len(firings))
        """How many entries each firing has."""
        if groups is not None or not none_empty(firings.sizes):
            whole = (firings.sizes > 0).astype(np.intp)
            self.counts = whole if groups is None else groups.counts
            self._owners = np.repeat(np.arange(len(firings)), self.counts)

    def __len__(self) -> int:
        plain = isinstance(self._owners, slice)
        return len(self.firings) if plain else len(self._owners)  # type: ignore[arg-type]

    def keys(self) -> list[pa.Array]:
        """The columns of the partition key, and of the group."""
        found: list[pa.Array] = []
        if self.firings.keys is not None:
            found += self.firings.keys.arrow(self.firings.ids[self._owners])
        if self.firings.groups is not None:
            found += self.firings.groups.columns
        return found

    def values(self, function: int) -> Result:
        """The values of one function of the plan."""
        if self.firings.groups is not None:
            return self.firings.groups.values[function]
        found = self.firings.values[function]
        return found if isinstance(self._owners, slice) else picked(found, self._owners)

    def whole_sizes(self) -> pa.Array:
        """How many tuples the firing of each entry has."""
        return pa.array(self.firings.sizes[self._owners])

    def group_counts(self) -> pa.Array:
        """How many groups the firing of each entry has."""
        return pa.array(self.counts[self._owners])

    def group_sizes(self) -> pa.Array:
        """The sizes of all groups of the firing of each entry, a list for each."""
        groups = self.firings.groups
        sizes = self.firings.sizes[self._owners] if groups is None else groups.sizes
        lengths = self.counts[self._owners]
        first = (np.cumsum(self.counts) - self.counts)[self._owners]
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, pa.array(sizes[ranges(first, lengths)]))

    def counted(self, keep: npt.NDArray[np.bool_]) -> Places:
        """How many entries each firing has of those to keep."""
        if isinstance(self._owners, slice):
            return keep.astype(np.intp)
        found: Places = np.bincount(self._owners[keep], minlength=len(self.firings))
        return found


def spread(values: Any, some: Any) -> Any:
    """The values of some firings among all of them, with nulls for the others.

    >>> spread(pa.array([7, 8]), np.array([True, False, True])).to_pylist()
    [7, None, 8]
    """
    if some.all():
        return values
    places = np.cumsum(some) - 1
    if isinstance(values, list):
        listed = zip(places.tolist(), some.tolist(), strict=True)
        return [values[place] if there else None for place, there in listed]
    return gather(values, pa.array(places, mask=~some))
