"""What comes out of an engine for a batch: firings in order, with the values of all functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windowlib.columnar.groups import Groups
from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import NONE, Places
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
    """Where a plan has groups: those of each firing, with the values, of which there are none."""
    lo: Places = field(default_factory=lambda: NONE)
    hi: Places = field(default_factory=lambda: NONE)
    content: Any = None
    """Where rows are kept: the extents of the firings, and the columns they are extents of."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> Places:
        """How many results each firing has: one a group, or one; none if it is empty."""
        return (self.sizes > 0).astype(np.intp) if self.groups is None else self.groups.counts

    def results(self, place: int, owners: Places) -> Any:
        """The values of a function for all results, whose firings are `owners`."""
        if self.groups is not None:
            return self.groups.values[place]
        whole = len(owners) == len(self)
        return self.values[place] if whole else picked(self.values[place], owners)

    def python_keys(self) -> list[Any]:
        """The key of each firing, as handlers get it."""
        if self.keys is None:
            return [None] * len(self.ids)
        distinct, places = np.unique(self.ids, return_inverse=True)
        named = self.keys.values(distinct)
        return [named[i] for i in places.tolist()]
