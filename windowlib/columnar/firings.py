"""What comes out of an engine for a batch: firings in order, with the values of all functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.keys import Keys
from windowlib.columnar.pieces import NONE, Places


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
    groups: Any = None
    """Where a plan has groups: what splits each firing (`windowlib.columnar.grouping`)."""
    lo: Places = field(default_factory=lambda: NONE)
    hi: Places = field(default_factory=lambda: NONE)
    content: Any = None
    """Where rows are kept: the extents of the firings, and the columns they are extents of."""

    def __len__(self) -> int:
        return len(self.ids)

    def python_keys(self) -> list[Any]:
        """The key of each firing, as handlers get it."""
        if self.keys is None:
            return [None] * len(self.ids)
        distinct, places = np.unique(self.ids, return_inverse=True)
        named = self.keys.values(distinct)
        return [named[i] for i in places.tolist()]


def reordered(values: Any, order: Places | slice) -> Any:
    """Results in another order; a slice of all is the one they are in."""
    if isinstance(order, slice):
        return values
    if isinstance(values, list):
        return [values[i] for i in order.tolist()]
    return values.take(pa.array(order))
