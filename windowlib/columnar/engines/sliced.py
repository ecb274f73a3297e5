"""Sliding count windows over batches, as slices, whose partials make up the windows.

A period of `every` tuples is cut at most once (see `windowlib.summaries.slices`). Slices of a batch
are extents, like those of a tumbling window; the last few closed slices of each partition are
carried, beside the open one. A trigger is an extent over slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import checked_numbers, need
from windowlib.columnar.engines.engine import MOST, Engine
from windowlib.columnar.extents.layout import (
    Extents,
    Layout,
    count_slices,
    cut_slices,
    fired_in_order,
)
from windowlib.columnar.firings import Firings
from windowlib.columnar.inputs import Inputs, LayoutColumns
from windowlib.columnar.kernels.functions import AlgebraicFunction, functions_of
from windowlib.columnar.kernels.kernel import (
    PartialStore,
    Planes,
    Values,
    concat_planes,
    planes_at,
    repeated,
)
from windowlib.columnar.primitives import NONE, Places, arrival_loops, compiles, counting, ranges
from windowlib.summaries.slices import Slices
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns, SliceRows
    from windowlib.window.sliding import SlidingWindow


class SlicedEngine(Engine):
    """A sliding window that keeps slices in place of tuples."""

    way = "slices, side by side"
    form = "sliced"

    def __init__(self, window: SlidingWindow[Any, Any], schema: pa.Schema) -> None:
        # n: tuples in the open slice; closed: slices carried; second: after the cut of a period
        super().__init__(window, schema, n=0, closed=0, second=False)
        slices = window.state.slices
        assert isinstance(slices, Slices)
        self.every, self.tail, self.kept = slices.every, slices.tail, slices.kept
        self.window_size = slices.window
        self.functions: list[AlgebraicFunction] = []
        for each in functions_of(slices.plan, schema):
            if not isinstance(each, AlgebraicFunction):
                raise Decline("a function of slices that needs all values")
            each.limit(self.window_size)
            self.functions.append(each)
        self.counts = self.any_order = self.every < MOST and not self.tail
        # The newest slice is the last of a row.
        self.history = [PartialStore(each.kernel, self.kept) for each in self.functions]

    def step(self, usual: int) -> int:
        """How many rows to take at once; without partitions, first those that fill the window.

        With partitions more than usual, so that carried slices are moved less often.
        """
        if self.keys is not None:
            return max(super().step(usual), 2 * usual)
        left = self.window_size - int(self.ledger.taken[0])
        if left > 0:
            return left
        return usual * 4 if self.counts and compiles() else super().step(usual)

    # -- batches ----------------------------------------------------------------------------------

    def insert(self, batch: pa.RecordBatch) -> Firings:
        """All triggers of a batch; `commit` applies its changes."""
        if ready(self, batch):
            firings, self.pending = insert(self, batch)
            return firings
        inputs = Inputs(batch)
        if self._arrivals_pay(inputs, batch.num_rows):
            return self._insert_arrivals(batch, inputs)
        layout = self.layout(batch)
        extents = self._slices(layout)
        columns = LayoutColumns(inputs, layout.order)
        windows = SliceWindows(self, layout, extents)
        numbers = range(len(self.functions))
        folded = [self._fold(i, columns, extents, windows) for i in numbers]
        values = [value for value, *_ in folded]
        self.pending = (layout, extents, windows, folded)
        return Firings(self.keys, windows.ids, windows.sizes, values, windows.rows)

    def _arrivals_pay(self, inputs: Inputs, rows: int) -> bool:
        """Whether rows are processed in order of arrival, without a layout."""
        if not self.counts or not self.unsorted(rows):
            return False
        return all(each.takes_arrivals(inputs.read(each.attribute)) for each in self.functions)

    def _insert_arrivals(self, batch: pa.RecordBatch, inputs: Inputs) -> Firings:
        """All triggers of a batch that is processed in order of arrival."""
        runs, ledger = self.runs(batch, self.every, opens=False), self.ledger
        rows: SliceRows = arrival_loops().SliceRows(runs, self.kept, ledger.closed)
        arrived = rows.arrived(ledger.taken - ledger.n)
        which: Places | slice = slice(None)
        if self.partial:
            sizes = np.minimum(arrived, self.window_size)
        else:
            full = arrived >= self.window_size
            if not full.all():
                which = np.flatnonzero(full)
            sizes = repeated(self.window_size, len(arrived[which]))
        self.pending = found = ArrivedSlices(runs, rows, [], [])
        values = [self._arrived(i, inputs, found, which, sizes) for i in range(len(self.functions))]
        return Firings(self.keys, runs.owners[which], sizes, values, runs.rows[which])

    def _arrived(
        self, i: int, inputs: Inputs, found: ArrivedSlices, which: Places | slice, sizes: Places
    ) -> Any:
        """The values of one function."""
        each, history = self.functions[i], self.history[i]
        each.grow(self.ledger.size)
        history.grow(self.ledger.size)
        kernel, values = each.kernel, inputs.read(each.attribute)
        closed, later = kernel.arrived(values, found.runs, each.state.all_planes())
        windows = kernel.slid(closed, found.rows, history.places(closed))
        found.closed.append(closed)
        found.later.append(later)
        return kernel.finish(planes_at(windows, which), sizes)

    def _commit_arrivals(self, found: ArrivedSlices) -> None:
        """Commit a batch that was processed in order of arrival."""
        ledger, (runs, rows, closed, later) = self.ledger, found
        if self.keys is not None and np.count_nonzero(ledger.alive) < len(self.keys):
            ids = runs.partitions(slice(None))
            fresh = np.flatnonzero(~ledger.alive[ids])[::-1]
            ledger.born[ids[fresh]] = self.seen_rows + fresh  # the first of several stays
            ledger.alive[ids[fresh]] = True
        for i, (each, history) in enumerate(zip(self.functions, self.history, strict=True)):
            each.commit_arrivals(later[i])
            for plane, new in zip(history.places(closed[i]), closed[i], strict=True):
                if plane is not None:
                    rows.keep(new, plane)
        ledger.taken[:] += runs.held - ledger.n
        ledger.taken[rows.touched] += rows.fresh * self.every
        ledger.put(n=runs.held, closed=rows.carried)
        self.seen_rows += runs.size
        self.advance(self.until)

    def _slices(self, layout: Layout) -> Extents:
        """The slices of a batch as extents."""
        carried = self.ledger.n[layout.touched]
        if not self.tail:
            return count_slices(layout, carried, self.every)
        # Cut both after `every - tail` and after `every`: count from where the period began.
        first = self.every - self.tail
        begun = carried + np.where(self.ledger.second[layout.touched], first, 0)
        return cut_slices(layout, carried, begun, first, self.every)

    def _fold(
        self, i: int, columns: LayoutColumns, extents: Extents, windows: SliceWindows
    ) -> tuple[Any, Planes, Planes]:
        """The values of one function, its open slices, and its carried and new slices together."""
        each, history = self.functions[i], self.history[i]
        each.grow(self.ledger.size)
        history.grow(self.ledger.size)
        values = columns.read(each.attribute)
        planes = each.planes(values, extents)
        later = planes_at(planes, extents.stays)
        side = windows.side(history.take(windows.old), planes_at(planes, windows.closed))
        combined = planes_at(each.kernel.combine(side, windows.lo, windows.hi), windows.order)
        return each.kernel.finish(combined, windows.sizes), later, side

    def commit(self) -> None:
        """The batch has been taken: remember open slices and the newest closed ones."""
        if isinstance(self.pending, StreamedSlices):
            commit(self, self.pending)
            self.pending = None
            return
        if isinstance(self.pending, ArrivedSlices):
            self._commit_arrivals(self.pending)
            self.pending = None
            return
        layout, extents, windows, folded = self.pending
        ledger, touched = self.ledger, layout.touched
        open_ids = extents.ids[extents.stays]
        fresh = ~ledger.alive[touched]
        ledger.born[touched[fresh]] = self.seen_rows + layout.rows(layout.heads[fresh])
        ledger.alive[touched] = True
        for each, history, (_, later, side) in zip(
            self.functions, self.history, folded, strict=True
        ):
            history.put(windows.kept, planes_at(side, windows.newest))
            each.commit(open_ids, later, history)
        ledger.n[touched] = 0
        ledger.n[open_ids] = extents.sizes[extents.stays]
        ledger.taken[touched] += layout.lengths
        ledger.closed[touched] = windows.counts
        if self.tail:
            ledger.second[touched] ^= windows.fresh % 2 == 1
        self.used(layout)
        self.pending = None

    # -- hand-over --------------------------------------------------------------------------------

    def held(self) -> int:
        """Logical sizes."""
        taken = self.ledger.taken[self.ledger.alive]
        return int(np.minimum(taken, self.window_size).sum())

    def load(self, parts: list[dict[str, Any]]) -> None:
        """Load open and closed slices."""
        ids, ledger = self.adopted(parts), self.ledger
        if not parts:
            return
        rows = [part["summary"] for part in parts]
        n = np.array([part["n"] for part in parts], np.intp)
        ledger.n[ids] = n
        ledger.taken[ids] += n
        ledger.second[ids] = [not part["count"] for part in parts]
        ledger.closed[ids] = counts = np.array([len(row[0]) for row in rows], np.intp)
        if any(isinstance(slice_, str) for row in rows for slice_ in row[0]):
            raise Decline("slices that do not go together")
        places = ranges(ids * self.kept + self.kept - counts, counts)
        sizes = np.concatenate([self._sizes(part) for part in parts]) if len(places) else NONE
        for i, (each, history) in enumerate(zip(self.functions, self.history, strict=True)):
            each.grow(ledger.size)
            history.grow(ledger.size)
            some = n > 0
            saved = [row[2][1][i] for row, held in zip(rows, some, strict=True) if held]
            if saved:
                each.load(ids[some], saved, n[some])
            closed = [slice_[i] for row in rows for slice_ in row[0]]
            if closed:
                history.put(places, each.kernel.load(closed, sizes))

    def _sizes(self, part: dict[str, Any]) -> Places:
        """How many tuples each closed slice of a partition has, the newest last."""
        count = len(part["summary"][0])
        if not self.tail:
            return np.full(count, self.every)
        # The newest closed slice is the one before the cut if the one after it is open.
        second = np.arange(count)[::-1] % 2 == (0 if part["count"] else 1)
        return np.where(second, self.tail, self.every - self.tail)

    def parts(self, ids: Places) -> list[dict[str, Any]]:
        """Open and closed slices, in the form of snapshots."""
        ledger, parts = self.ledger, self.common(ids)
        n, counts = ledger.n[ids], ledger.closed[ids]
        places_ = ranges(ids * self.kept + self.kept - counts, counts)
        for part, size, second in zip(parts, n.tolist(), ledger.second[ids].tolist(), strict=True):
            part["n"], part["count"] = size, int(not second)
            part["full"] = part["taken"] >= self.window_size
            part["taken"] -= size
        shapes = zip(parts, counts.tolist(), strict=True)
        sizes = [self._sizes({"summary": [[0] * c], "count": part["count"]}) for part, c in shapes]
        flat = np.concatenate(sizes) if len(sizes) else NONE
        closed, opened = [], []
        for each, history in zip(self.functions, self.history, strict=True):
            closed.append(each.kernel.save(history.take(places_), flat))
            opened.append(iter(each.save(ids[n > 0], n[n > 0])))
        at = 0
        for part, count in zip(parts, counts.tolist(), strict=True):
            rows = [[saved[j] for saved in closed] for j in range(at, at + count)]
            at += count
            places = [next(saved) for saved in opened] if part["n"] else self._empty()
            part["summary"] = [rows, 0, [part["n"], places], True]
        return parts

    def _empty(self) -> list[Any]:
        plan = self.window.state.summarizer
        return [fold.save(fold.empty) for fold in plan.folds]  # type: ignore[union-attr]

    def dump_content(self, ids: Places) -> dict[str, Any]:
        """Open and closed slices of each function."""
        held, closed = self.ledger.n[ids] > 0, self.ledger.closed[ids]
        used = np.arange(self.kept) >= (self.kept - closed)[:, np.newaxis]
        pairs = zip(self.functions, self.history, strict=True)
        return {"slices": [each.dump(ids, held, (history, used)) for each, history in pairs]}

    def load_content(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Load open and closed slices."""
        given = state["slices"]
        need(len(given) == len(self.functions), f"{len(given)} functions")
        checked_numbers(self.ledger.closed[ids], len(ids), self.kept + 1)
        for each, history, dump in zip(self.functions, self.history, given, strict=True):
            each.grow(self.ledger.size)
            history.grow(self.ledger.size)
            each.load_dump(ids, dump, history)


class ArrivedSlices(NamedTuple):
    """The changes of a batch that is processed in order of arrival."""

    runs: ArrivalRuns
    rows: SliceRows
    closed: list[Planes]
    """The slices of each function that close."""
    later: list[Planes]
    """Those that stay open."""


class SliceWindows:
    """The carried and new slices of the touched partitions, and the triggers as extents of them."""

    def __init__(self, engine: SlicedEngine, layout: Layout, extents: Extents) -> None:
        ledger, touched, width = engine.ledger, layout.touched, engine.kept
        self.closed = extents.fires  # in order of the layout, or in order of arrival
        number = extents.number[self.closed]
        carried = ledger.closed[touched]
        self.fresh = np.bincount(number, minlength=len(touched))
        both = carried + self.fresh
        ends = np.cumsum(both)
        begins = ends - both
        self.total = int(ends[-1])
        # Carried slices stand at the right end of their rows of history.
        self.old = ranges(touched * width + width - carried, carried)
        self._old_places = ranges(begins, carried)
        self.counts = np.minimum(both, width)
        self.newest = ranges(ends - self.counts, self.counts)
        self.kept = ranges(touched * width + width - self.counts, self.counts)
        self._new_places = ranges(begins + carried, self.fresh)
        self._triggers(engine, layout, extents, begins, number)

    def side(self, old: Planes, new: Planes) -> Planes:
        """The carried slices of each partition followed by its new ones."""
        return tuple(map(self._one_side, old, new))

    def _one_side(self, old: Any, new: Any) -> Any:
        if old is None and new is None:
            return None
        row = np.zeros(self.total, (old if new is None else new).dtype)
        if old is not None:
            row[self._old_places] = old
        if new is not None:
            row[self._new_places] = new
        return row

    def _triggers(
        self,
        engine: SlicedEngine,
        layout: Layout,
        extents: Extents,
        begins: Places,
        number: Places,
    ) -> None:
        """The triggers as extents of closed slices; those without a full window are left out."""
        touched = layout.touched
        before = engine.ledger.taken[touched] - layout.starts[:-1]
        arrived = before[number] + extents.ends[self.closed]  # how many tuples, at each slice
        fires = None
        if engine.tail:
            fires = arrived % engine.every == 0
        if not engine.partial:
            full = arrived >= engine.window_size
            fires = full if fires is None else fires & full
        which = np.arange(len(number)) if fires is None else np.flatnonzero(fires)
        self.hi = self._new_places[which] + 1
        self.lo = np.maximum(self.hi - engine.kept, begins[number[which]])
        rows = layout.rows(extents.ends[self.closed][which] - 1)
        self.order, self.rows = fired_in_order(rows, layout)
        which = which[self.order]
        self.ids = touched[number[which]]
        self.sizes = np.minimum(arrived[which], engine.window_size)


# Slices of a stream without partitions whose windows are all full: no layout, no extents.
#
# The slices of a batch follow those that are carried, and every closed one ends a window, which is
# the last `kept` of them.


ONE = np.zeros(1, np.intp)
"""The only partition."""


@dataclass(slots=True)
class StreamedSlices:
    """The changes of a batch: the open slice and the newest closed ones of each function."""

    rows: int
    open_size: int
    later: list[Planes]
    newest: list[Planes]


def streams(engine: SlicedEngine) -> bool:
    """Whether there is a single partition whose windows are full from now on."""
    ledger = engine.ledger
    return (
        engine.keys is None
        and not engine.tail
        and engine.window.spec.forget is None
        and ledger.size > 0
        and bool(ledger.closed[0] == engine.kept)
    )


def insert(engine: SlicedEngine, batch: pa.RecordBatch) -> tuple[Firings, StreamedSlices]:
    """All triggers of a batch, and its changes."""
    inputs, every, size = Inputs(batch), engine.every, batch.num_rows
    carried = int(engine.ledger.n[0])
    rows = counting(size)[every - carried - 1 :: every]  # those that end a slice
    closing, open_size = len(rows), (carried + size) % every
    sizes = repeated(engine.window_size, closing)
    found, streamed = [], StreamedSlices(size, open_size, [], [])
    for each, history in zip(engine.functions, engine.history, strict=True):
        values = inputs.read(each.attribute)
        planes = _planes(each, values, rows, size, carried)
        closed = planes_at(planes, slice(0, closing))
        streamed.later.append(planes_at(planes, slice(closing, None)))
        old = history.take(slice(0, engine.kept))
        # A window begins one slice after the window before it: the oldest carried one is in none.
        windows = each.kernel.slide(planes_at(old, slice(1, None)), closed, closing, engine.kept)
        found.append(each.kernel.finish(windows, sizes))
        streamed.newest.append(_newest(old, closed, engine.kept, closing))
    return Firings(None, repeated(0, closing), sizes, found, rows), streamed


def _newest(old: Planes, closed: Planes, kept: int, closing: int) -> Planes:
    """The newest of the carried slices and those that close."""
    if closing >= kept:
        return planes_at(closed, slice(closing - kept, None))
    return concat_planes(planes_at(old, slice(closing, None)), closed, kept - closing, closing)


def _planes(
    each: AlgebraicFunction, values: Values, rows: Places, size: int, carried: int
) -> Planes:
    """The planes of the slices of a batch, which end with some rows; the last may be open."""
    if not carried and len(rows) == size:
        return each.kernel.singles(values)
    ends = rows + 1
    stops = ends if len(ends) and ends[-1] == size else np.append(ends, size)
    starts = np.append(0, stops[:-1])
    planes = each.kernel.partial(values, starts, stops)
    if not carried:
        return planes
    first = each.kernel.merge(each.state.take(ONE), planes_at(planes, slice(0, 1)))
    return concat_planes(first, planes_at(planes, slice(1, None)), 1, len(stops) - 1)


def commit(engine: SlicedEngine, streamed: StreamedSlices) -> None:
    """Commit the batch."""
    ledger, places = engine.ledger, slice(0, engine.kept)
    for i, (each, history) in enumerate(zip(engine.functions, engine.history, strict=True)):
        history.put(places, streamed.newest[i])
        open_ids = ONE if streamed.open_size else ONE[:0]
        each.commit(open_ids, streamed.later[i], history)
    ledger.n[0] = streamed.open_size
    ledger.taken[0] += streamed.rows
    ledger.last[0] = engine.seen_rows + streamed.rows - 1
    engine.seen_rows += streamed.rows


def ready(engine: SlicedEngine, batch: Any) -> bool:
    """Whether a batch closes a slice, so that this code can take it."""
    return streams(engine) and int(engine.ledger.n[0]) + batch.num_rows >= engine.every
