"""Tumbling windows over batches whose handlers look at the rows: every flush is an extent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, Sorted
from windowlib.columnar.pieces import Pieces, Places
from windowlib.columnar.primitives import ranges
from windowlib.columnar.rows import Rows, RowsEngine
from windowlib.columnar.tumbling import TumblingEngine

if TYPE_CHECKING:
    from windowlib.tumbling import TumblingWindow


class KeptEngine(TumblingEngine, RowsEngine):
    """A tumbling window that keeps its tuples."""

    way = "extents of kept rows"
    form = "kept"

    def __init__(self, window: TumblingWindow[Any, Any], schema: pa.Schema) -> None:
        super().__init__(window, schema)
        self.keep(list(schema.names))

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All flushes of a batch; `commit` makes it so."""
        grouped = self.grouped(batch)
        pieces, references = self._pieces(grouped, Sorted(Inputs(batch), grouped.order))
        rows = self.rows(batch, grouped)
        lo, hi = self._extents(grouped.starts, grouped.touched, pieces, rows)
        self.pending = (grouped, pieces, references)
        self._rows, self._lo, self._hi = rows, lo, hi
        number = np.searchsorted(grouped.touched, pieces.bare)
        lo = np.append(lo, rows.base[number])[pieces.fires]
        hi = np.append(hi, rows.fresh[number])[pieces.fires]
        ids = pieces.fired_ids
        return Firings(self.keys, ids, hi - lo, [], pieces.rows, lo=lo, hi=hi, content=rows)

    def _extents(
        self, starts: Places, touched: Places, pieces: Pieces, rows: Rows
    ) -> tuple[Places, Places]:
        """The pieces in the layout that has the kept rows, too."""
        number = np.searchsorted(touched, pieces.ids)
        shift = (rows.fresh - starts[:-1])[number]
        lo = pieces.starts + shift
        lo[pieces.joins] = rows.base[number[pieces.joins]]
        return lo, pieces.ends + shift

    def commit(self) -> None:
        """The batch has been taken: keep the rows of open subwindows."""
        grouped, pieces, *_ = self.pending
        touched = grouped.touched
        lo, hi = self._lo[pieces.stays], self._hi[pieces.stays]
        kept = np.zeros(len(touched), np.intp)
        kept[np.searchsorted(touched, pieces.ids[pieces.stays])] = hi - lo
        self.hold(touched, self._rows, ranges(lo, hi - lo), kept)
        super().commit()

    def flush_all(self) -> Firings:
        """Flush every partition, in order of storage."""
        ids = self.stored()
        columns, lengths = self.store.take(ids)
        rows = Rows(self.names, columns, None)
        hi = np.cumsum(lengths)
        self.pending = ids
        causes = np.zeros(len(ids), np.intp)
        return Firings(self.keys, ids, lengths, [], causes, lo=hi - lengths, hi=hi, content=rows)

    def commit_flush(self) -> None:
        """All partitions have been flushed."""
        self.store.put(self.pending, self.store.none(), np.zeros(len(self.pending), np.intp))
        super().commit_flush()

    # -- hand-over --------------------------------------------------------------------------------

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Take over tuples and references."""
        sized = [{**part, "n": len(part["data"])} for part in parts]
        super().load(sized)
        self.load_rows(self.numbers, parts)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Tuples and references."""
        parts = super().parts(ids)
        self.save_rows(ids, parts)
        for part in parts:
            part["n"], part["summary"] = 0, None
        return parts
