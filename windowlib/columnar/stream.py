"""Slices of a stream without partitions whose windows are all full: no layout, no extents.

The slices of a batch follow those that are carried, and every closed one ends a window, which is
the last `kept` of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.firings import Firings
from windowlib.columnar.functions import Partial
from windowlib.columnar.inputs import Inputs
from windowlib.columnar.kernels.base import Planes, Values, side_by_side, taken
from windowlib.columnar.ledger import State
from windowlib.columnar.pieces import Places

if TYPE_CHECKING:
    from windowlib.columnar.sliced import SlicedEngine

ONE = np.zeros(1, np.intp)
"""The only partition."""


@dataclass(slots=True)
class Streamed:
    """What a batch changes: the open slice, and the newest closed ones, of each function."""

    rows: int
    open_size: int
    later: list[Planes]
    newest: list[Planes]


def streams(engine: SlicedEngine) -> bool:
    """Whether there is one partition, whose windows are full from now on."""
    ledger = engine.ledger
    return (
        engine.keys is None
        and not engine.tail
        and engine.window.spec.forget is None
        and ledger.size > 0
        and bool(ledger.closed[0] == engine.kept)
    )


def insert(engine: SlicedEngine, batch: pa.RecordBatch) -> tuple[Firings, Streamed]:
    """All triggers of a batch, and what it changes."""
    inputs, every, size = Inputs(batch), engine.every, batch.num_rows
    carried = int(engine.ledger.n[0])
    rows = np.arange(every - carried - 1, size, every)  # those that end a slice
    closing, open_size = len(rows), (carried + size) % every
    sizes = np.broadcast_to(np.intp(engine.window_size), closing)
    found, streamed = [], Streamed(size, open_size, [], [])
    for each, history in zip(engine.functions, engine.history, strict=True):
        values = inputs.read(each.attribute)
        planes = _planes(each, values, rows, size, carried)
        closed = taken(planes, slice(0, closing))
        streamed.later.append(taken(planes, slice(closing, None)))
        side = side_by_side(_carried(history, engine.kept), closed, engine.kept, closing)
        # A window begins one slice after the window before it: the oldest carried one is in none.
        windows, size_ = taken(side, slice(1, None)), engine.kept + closing - 1
        combined = each.kernel.slide(windows, size_, engine.kept)
        found.append(each.kernel.finish(combined, sizes))
        streamed.newest.append(taken(side, slice(-engine.kept, None)))
    ids = np.broadcast_to(np.intp(0), closing)
    return Firings(None, ids, sizes, found, rows), streamed


def _planes(each: Partial, values: Values, rows: Places, size: int, carried: int) -> Planes:
    """The planes of the slices of a batch, which end with some rows; the last may be open."""
    if not carried and len(rows) == size:
        return each.kernel.singles(values)
    ends = rows + 1
    stops = ends if len(ends) and ends[-1] == size else np.append(ends, size)
    starts = np.append(0, stops[:-1])
    planes = each.kernel.partial(values, starts, stops)
    if not carried:
        return planes
    first = each.kernel.merge(each.state.take(ONE), taken(planes, slice(0, 1)))
    return side_by_side(first, taken(planes, slice(1, None)), 1, len(stops) - 1)


def _carried(history: State, kept: int) -> Planes:
    return history.take(np.arange(kept))


def commit(engine: SlicedEngine, streamed: Streamed) -> None:
    """The batch has been taken."""
    ledger = engine.ledger
    places = np.arange(engine.kept)
    for i, (each, history) in enumerate(zip(engine.functions, engine.history, strict=True)):
        history.put(places, streamed.newest[i])
        open_ids = ONE if streamed.open_size else ONE[:0]
        each.commit(open_ids, streamed.later[i], history)
    ledger.n[0] = streamed.open_size
    ledger.taken[0] += streamed.rows
    ledger.last[0] = engine.seen_rows + streamed.rows - 1
    engine.seen_rows += streamed.rows


def ready(engine: SlicedEngine, batch: Any) -> bool:
    """Whether a batch can be taken this way: it closes a slice."""
    return streams(engine) and int(engine.ledger.n[0]) + batch.num_rows >= engine.every
