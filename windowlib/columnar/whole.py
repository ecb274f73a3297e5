"""Functions over windows that are given as extents of rows: nothing is carried, nothing kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine
from windowlib.columnar.firings import Firings, spread
from windowlib.columnar.functions import functions_of
from windowlib.columnar.groups import group_keys, over_groups
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.pieces import Places
from windowlib.columnar.rows import Rows

if TYPE_CHECKING:
    from windowlib.window import Window


class WholeWindows(Engine):
    """What an operator is told of windows whose tuples are all there.

    It stands beside the engine of the window, and changes nothing in it.
    """

    way = "whole windows"
    form = "whole"

    def __init__(self, window: Window[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema)
        plan: Any = window._factory
        if window._keeper is not None:
            raise Decline("its operator keeps rows in a way of its own")
        each = getattr(plan, "each", plan)
        self.functions = [] if plan is None else functions_of(each, schema)
        self.groups = None if each is plan else group_keys(plan.group_by, self.type_of)

    def firings(self, batch: pa.RecordBatch, lo: Places, hi: Places) -> Firings:
        """The windows `[lo, hi)` of rows, as one who is told of firings gets them."""
        inputs, groups = Inputs(batch), None
        found: list[Any] = []
        some = hi > lo
        columns = [inputs.read(each.attribute) for each in self.functions]
        if self.groups is not None:
            codes = self.groups.encode([inputs.arrow(name) for name in self.groups.names])
            groups = over_groups(self.functions, self.groups, codes, columns, lo, hi)
        elif len(lo):
            found = [
                spread(each.over(values, lo[some], hi[some]), some)
                for each, values in zip(self.functions, columns, strict=True)
            ]
        ids, rows = self._ids(batch, lo, some), np.arange(len(lo))
        content = Rows(batch.schema.names, [Column.of(column) for column in batch.columns], None)
        return Firings(self.keys, ids, hi - lo, found, rows, groups, lo, hi, content)

    def _ids(self, batch: pa.RecordBatch, lo: Places, some: Any) -> Places:
        """The partitions, which the first rows tell; of an empty window nobody asks."""
        ids = np.zeros(len(lo), np.intp)
        if self.keys is not None and some.any():
            first = batch.take(pa.array(lo[some]))
            ids[some] = self.keys.encode([first.column(name) for name in self.keys.names])
        return ids
