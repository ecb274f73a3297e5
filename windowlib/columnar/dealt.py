"""Pieces of count windows without a layout: each row goes to the open piece of its partition.

Only with numba: numpy has no loop over rows, and sorts them by partition instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windowlib.columnar import primitives
from windowlib.columnar.pieces import NONE, Grouped, Pieces, Places

if TYPE_CHECKING:
    from windowlib.columnar.engine import Engine

PARTITIONS_PER_ROW = 4
"""All partitions are looked at. With more than so many for a row, it pays to sort the rows."""
MOST = 1 << 31
"""Windows that count up to less than this are dealt."""


class Dealt(Grouped):
    """A batch whose rows are places: of each partition its first and last, and how many."""

    def __init__(self, touched: Places, heads: Places, lasts: Places, lengths: Places) -> None:
        super().__init__(None, touched, NONE)
        self._heads, self._lasts, self._lengths = heads, lasts, lengths

    @property
    def lengths(self) -> Places:
        """How many rows each partition has."""
        return self._lengths

    @property
    def heads(self) -> Places:
        """The first row of each partition."""
        return self._heads

    @property
    def lasts(self) -> Places:
        """The last row of each partition."""
        return self._lasts

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self._lengths.sum())

    def numbers(self, ids: Places, partitions: int) -> Places:
        """Which of those that occur some partitions are, of so many that there are."""
        number = np.empty(partitions, np.intp)
        number[self.touched] = np.arange(len(self.touched))
        found: Places = number[ids]
        return found


def deals(engine: Engine, rows: int) -> bool:
    """Whether it pays to deal the rows of a batch, rather than to sort them."""
    return (
        engine.keys is not None
        and primitives.compiles()
        and engine.window.spec.forget is None
        and engine.ledger.size <= PARTITIONS_PER_ROW * rows
    )


def deal(engine: Engine, batch: pa.RecordBatch, size: int) -> tuple[Dealt, Pieces]:
    """The pieces of a batch that close with their `size`-th tuple, in order of their first rows."""
    from windowlib.columnar import dealing

    assert engine.keys is not None
    ids, rows = engine.numbered(engine.keys, batch), batch.num_rows
    held = engine.ledger.n
    partitions = np.empty((len(held), 4), np.int32)
    dealing.start(held, partitions)
    run, most = np.empty(rows, np.int32), min(rows, rows // size + 2 * len(held))
    owner, before, first, closed, causes = np.empty((5, most), np.intp)
    runs, fired = dealing.deal(ids, size, partitions, run, owner, before, first, closed, causes)
    now_held, last_run, heads, lasts = partitions.T.astype(np.intp)
    closes = np.bincount(owner[closed[:fired]], minlength=len(held))
    lengths = closes * size + now_held - held
    opened = np.flatnonzero(last_run >= 0)
    stays = last_run[opened]
    sizes = np.full(runs, size)
    sizes[stays] = now_held[opened]
    joins = np.flatnonzero(before[:runs])
    touched = np.flatnonzero(lasts >= 0)
    return Dealt(touched, heads[touched], lasts[touched], lengths[touched]), Pieces(
        starts=first[:runs],
        ends=NONE,
        number=NONE,
        ids=owner[:runs],
        sizes=sizes,
        joins=joins,
        stays=stays,
        bare=NONE,
        bare_sizes=NONE,
        fires=closed[:fired],
        rows=causes[:fired],
        runs=dealing.DealtRuns(run, runs, joins),
    )


def seats(number: Places, first: Places) -> Places:
    """A place for each of some numbers: those of one number follow each other from `first` on."""
    from windowlib.columnar import dealing

    places = np.empty(len(number), np.intp)
    dealing.seat(number, first.copy(), places)
    return places
