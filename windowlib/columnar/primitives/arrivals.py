"""Runs of rows that stay in order of arrival, compiled: nothing is sorted and nothing moved.

A *run* is the rows of one subwindow, or of one slice. A row goes to the open run of its partition,
which closes with its last row. A first loop gives each row the number of its run; then each
function goes over the rows once, with the state of all runs beside each other. No loop
waits for the outcome of a comparison that the processor cannot foresee.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windowlib.columnar.primitives import reductions
from windowlib.columnar.primitives.compiled import group
from windowlib.columnar.primitives.compiled_loops import compiled, settled, two_sum
from windowlib.columnar.primitives.grouping import Array, Places

Pair = tuple[Array, Array]
NOTHING = np.empty(0)
"""In place of low parts that are all 0."""
ONE = np.uint64(1)

# Floats without their sign are in the order of their bits; infinities and NaN are above all others.
MAGNITUDE = np.uint64((1 << 63) - 1)
HUGE = int(np.float64(reductions.HUGE).view(np.uint64))

# The open run of a partition: how many rows it has in the high half, its number in the low one.
HALF = 32
ROW = np.int64(1 << HALF)

# Runs of so many rows or more close so rarely that the processor may guess that none does.
FORESEEN = 48


class ArrivalRuns:
    """The runs of a batch that close with their last row, in the order in which they do.

    Methods take the state of all open runs, a number for each partition. They give the state of
    the runs that close, and that of those that are open afterwards, and change nothing. None in
    place of numbers is 0 for all.

    Args:
        keys: a whole number for each row.
        base: the lowest that is in the table.
        table: the partition of each from there on, -1 for none.
        held: how many rows the open run of each partition has.
        length: with how many it closes, below 2**31.
        opens: whether the rows that open a run are of interest.
    """

    def __init__(
        self, keys: Array, base: int, table: Array, held: Places, length: int, *, opens: bool
    ) -> None:
        self._keys, self._base, self._table, self._before = keys, base, table, held
        self.size, self.length = len(keys), length
        """How many rows there are, and how many a run has."""
        rows, partitions = len(keys), len(held)
        self._run = np.empty(rows, np.int32)
        most = min(rows, rows // length + partitions) + 1
        closing, opening = np.empty(most, np.intp), np.empty(most if opens else 1, np.intp)
        self.held, self._open = np.empty(partitions, np.intp), np.empty(partitions, np.intp)
        """How many rows the open run of each partition has after the batch."""
        loop = count if length >= FORESEEN else count_blindly
        closed, opened = loop(
            keys,
            base,
            table,
            held,
            length,
            self._run,
            closing,
            opening,
            opens,
            self._open,
            self.held,
        )
        self.complete = closed >= 0
        """Whether all keys are in the table; otherwise there is nothing else here."""
        if not self.complete:
            return
        self.rows: Places = closing[:closed]
        """The rows that close a run."""
        self.first: Places = opening[:opened]
        """The rows that open one."""
        self.owners, self._closed = np.empty(closed, np.intp), np.empty(closed, np.intp)
        """The partition of each run that closes."""
        _note(keys, base, table, self._run, self.rows, self._closed, self.owners)

    def partitions(self, rows: Any) -> Places:
        """The partitions of some rows."""
        found: Places = self._table[self._keys[rows] - self._base].astype(np.intp)
        return found

    def open_since(self, born: Places, before: int) -> None:
        """Note which row opened the open run of each partition, after so many rows before."""
        _open_since(self._keys, self._base, self._table, self.first, before, born)

    def places(self) -> Places:
        """A place for each row, in order within its run.

        Every run has `length` places: first those that close, one after the other, then the open
        ones by partition. What a run held before has its first places.
        """
        heads = np.empty(len(self._before) + len(self._closed), np.intp)
        places = np.empty(self.size, np.intp)
        _place(self._run, self._before, self._closed, self._open, self.length, heads, places)
        return places

    def sums(self, values: Array | None, state: Array | None) -> tuple[Any, Any]:
        """The sums of whole numbers, or of floats that need no pairs."""
        if values is None:
            return (None, None) if state is None else self._folded(_sums, 0, state[:0], state)
        return self._folded(_sums, 0, values, values[:0] if state is None else state)

    def two_sums(
        self, values: Array, high: Array, low: Array | None, *, one_sign: bool
    ) -> tuple[Pair, Pair]:
        """The sums of floats as pairs; `signs` says which values can be added."""
        runs = len(self._before) + len(self.rows)
        sums = np.empty((runs, 2))
        _begin_pairs(high, NOTHING if low is None else low, self._before, sums)
        if one_sign:
            _one_sign(values, self._run, sums)
        else:
            _any_sign(values, self._run, sums, np.zeros(runs))
        return _apart(sums, self._closed), _apart(sums, self._open)

    def largest(self, values: Array, state: Array) -> Pair:
        """The largest values."""
        return self._folded(_largest, reductions.limits(values)[0], values, state)

    def smallest(self, values: Array, state: Array) -> Pair:
        """The smallest values."""
        return self._folded(_smallest, reductions.limits(values)[1], values, state)

    def _folded(self, loop: Callable[..., None], nothing: Any, values: Array, state: Array) -> Pair:
        before, closed, dtype = self._before, self._closed, values.dtype
        runs = np.empty(len(before) + len(closed), dtype)
        ended, later = np.empty(len(closed), dtype), np.empty(len(before), dtype)
        loop(
            values,
            self._run,
            state,
            before,
            dtype.type(nothing),
            runs,
            closed,
            self._open,
            ended,
            later,
        )
        return ended, later


def signs(values: Array) -> tuple[bool, int]:
    """Whether all floats are below `reductions.HUGE`, and no NaN; their sign, 0 for both."""
    largest, some, every = _bits(values.view(np.uint64))
    return bool(largest < HUGE), 1 - int(some >> 63) - int(every >> 63)


@compiled
def _bits(bits: Array) -> tuple[Any, Any, Any]:
    """The largest without its sign, the bits that some have, and those that all have."""
    largest, some, every = np.uint64(0), np.uint64(0), ~np.uint64(0)
    for row in range(len(bits)):
        largest = max(largest, bits[row] & MAGNITUDE)
        some |= bits[row]
        every &= bits[row]
    return largest, some, every


def _counting(foreseen: bool) -> Callable[..., tuple[Any, Any]]:
    """The loop that gives rows to runs, with or without a branch at each row."""

    @compiled
    def counted(
        keys: Array,
        base: int,
        table: Array,
        held: Places,
        length: int,
        run: Array,
        closing: Places,
        opening: Places,
        opens: bool,
        state: Places,
        after: Places,
    ) -> tuple[Any, Any]:
        """Give each row to the open run of its partition, which closes with its last row.

        Runs that close are replaced by new ones, which are numbered as they come. Fills in the run
        of each row, the rows that close runs, those that open them if asked to, and for each
        partition which run is open and how many rows it has `after` all; returns how many close
        and open, or -1 if a key is not in the table.
        """
        for at in range(len(held)):
            state[at] = (held[at] << HALF) | at
        full, fresh, slots = np.int64(length) << HALF, np.int64(len(held)), np.uint64(len(table))
        closed, opened = np.uint64(0), 0
        for row in range(len(keys)):
            slot = np.uint64(keys[row] - base)
            if slot >= slots or table[slot] < 0:
                return -1, 0
            partition = np.uint64(table[slot])
            mine = state[partition]
            run[row] = np.int32(mine)
            if opens and mine < ROW:
                opening[opened] = row
                opened += 1
            mine += ROW
            if foreseen:
                if mine >= full:
                    closing[closed] = row
                    closed += ONE
                    mine = fresh
                    fresh += np.int64(1)
                state[partition] = mine
            else:
                closes = mine >= full
                closing[closed] = row  # stays if it closes a run, and is overwritten otherwise
                closed += np.uint64(closes)
                state[partition] = fresh if closes else mine
                fresh += np.int64(closes)
        for at in range(len(held)):
            after[at] = state[at] >> HALF
            state[at] &= ROW - 1
        return np.int64(closed), opened

    return counted


count, count_blindly = _counting(True), _counting(False)


@compiled
def _open_since(
    keys: Array, base: int, table: Array, first: Places, before: int, born: Places
) -> None:
    for index in range(len(first)):
        row = first[index]
        born[table[keys[row] - base]] = before + row


@compiled
def _note(
    keys: Array, base: int, table: Array, run: Array, rows: Places, closed: Places, owners: Places
) -> None:
    """The runs of rows that close one, and their partitions."""
    for index in range(len(rows)):
        row = np.uint64(rows[index])
        closed[index] = run[row]
        owners[index] = table[np.uint64(keys[row] - base)]


@compiled
def _place(
    run: Array,
    held: Places,
    closed: Places,
    opened: Places,
    length: int,
    heads: Places,
    places: Places,
) -> None:
    """The place of each row: the next one of its run, of which `heads` is to have the first."""
    first = 0
    for part in (closed, opened):
        for index in range(len(part)):
            mine = part[index]
            heads[mine] = first + (held[mine] if mine < len(held) else 0)
            first += length
    for row in range(len(run)):
        mine = np.uint64(run[row])
        places[row] = heads[mine]
        heads[mine] += 1


@compiled
def put(values: Array, places: Places, first: int, into: Array) -> None:
    """Put values in their places, of which `first` is the first; if they have none, in the last."""
    last = np.uint64(len(into) - 1)
    for row in range(len(values)):
        place = np.uint64(places[row] - first)
        into[place if place < last else last] = values[row]


def _run_folding(fold: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """The loop for `max`, `min` or a sum."""

    @compiled
    def folded(
        values: Array,
        run: Array,
        state: Array,
        held: Places,
        nothing: Any,
        runs: Array,
        closed: Places,
        opened: Places,
        ended: Array,
        later: Array,
    ) -> None:
        """The state of runs that close, and of those that are open; no values are nothing each."""
        for index in range(len(held)):
            runs[index] = state[index] if len(state) and held[index] else nothing
        runs[len(held) :] = nothing
        for row in range(len(values)):
            mine = np.uint64(run[row])
            runs[mine] = fold(runs[mine], values[row])
        for index in range(len(closed)):
            ended[index] = runs[np.uint64(closed[index])]
        for index in range(len(opened)):
            later[index] = runs[np.uint64(opened[index])]

    return folded


@compiled
def _added(a: Any, b: Any) -> Any:
    return a + b


_sums = _run_folding(_added)
_largest, _smallest = _run_folding(max), _run_folding(min)


# As in `compiled_loops.pairs`, sums carry their errors along, and where signs differ, the errors of
# those.


@compiled
def _begin_pairs(high: Array, low: Array, held: Places, sums: Array) -> None:
    for index in range(len(held)):
        sums[index, 0] = high[index] if held[index] else 0.0
        sums[index, 1] = low[index] if held[index] and len(low) else 0.0
    sums[len(held) :] = 0.0


@compiled
def _one_sign(values: Array, run: Array, sums: Array) -> None:
    for row in range(len(values)):
        mine = np.uint64(run[row])
        sums[mine, 0], error = two_sum(sums[mine, 0], values[row])
        sums[mine, 1] += error
    for index in range(len(sums)):
        total, errors = sums[index, 0], sums[index, 1]
        both = total + errors
        if np.isfinite(both):  # errors are small beside their sum
            sums[index, 0], sums[index, 1] = both, errors - (both - total)
        else:
            sums[index, 1] = 0.0


@compiled
def _any_sign(values: Array, run: Array, sums: Array, least: Array) -> None:
    for row in range(len(values)):
        mine = np.uint64(run[row])
        sums[mine, 0], error = two_sum(sums[mine, 0], values[row])
        sums[mine, 1], error = two_sum(sums[mine, 1], error)
        least[mine] += error
    for index in range(len(sums)):
        sums[index, 0], sums[index, 1] = settled(sums[index, 0], sums[index, 1], least[index])


def _apart(sums: Array, places: Places) -> Pair:
    """The sums at some places, and their errors."""
    found = np.empty(len(places)), np.empty(len(places))
    _split(sums, places, *found)
    return found


@compiled
def _split(sums: Array, places: Places, high: Array, low: Array) -> None:
    for index in range(len(places)):
        place = np.uint64(places[index])
        high[index], low[index] = sums[place, 0], sums[place, 1]


# Slices of sliding windows: those of a partition in a row, the carried ones first.


class SliceRows:
    """The slices that a batch closes, behind those that partitions carry, and windows over them.

    A partition carries up to `kept` slices, in a row of so many places, the newest at the end. A
    window is the last `kept` slices of a partition, or all if it has fewer; one ends with each
    slice that closes. Methods take the slices that close, as `ArrivalRuns` has them, and the
    carried ones, row after row.

    Args:
        runs: the slices of the batch.
        kept: how many slices a window has.
        carried: how many slices each partition carries.
    """

    def __init__(self, runs: ArrivalRuns, kept: int, carried: Places) -> None:
        self.kept, self._size = kept, runs.length
        order, self.touched, starts = group(runs.owners, len(carried))
        """The partitions in which a slice closes."""
        self._shape: tuple[Any, ...] = order, self.touched, starts, carried, kept
        self.carried: Places = carried.copy()
        """How many slices each partition carries after the batch."""
        self.fresh: Places = np.diff(starts)
        """How many slices close in each partition where any does."""
        self.carried[self.touched] = np.minimum(carried[self.touched] + self.fresh, kept)

    def arrived(self, taken: Places) -> Places:
        """How many tuples its partition has had with each slice; `taken`: in those before."""
        order, touched, starts, *_ = self._shape
        found = np.empty(len(order), np.intp)
        _arrived(order, touched, starts, self._size, taken, found)
        return found

    def sums(self, closed: Array | None, carried: Array | None) -> Array | None:
        """The sums of whole numbers over each window, or of floats that need no pairs."""
        return None if carried is None else self._over(_row_sums, closed, carried, 0)

    def two_sums(self, closed: Pair, carried: Pair) -> Pair:
        """The sums of floats over each window, as pairs."""
        found = np.empty(len(closed[0])), np.empty(len(closed[0]))
        front = np.zeros((3, self.kept + 1))
        args = *closed, *self._shape, *carried, front, *found
        _row_pairs(*args)
        return found

    def largest(self, closed: Array, carried: Array) -> Array:
        """The largest values of each window."""
        return self._over(_row_largest, closed, carried, reductions.limits(closed)[0])

    def smallest(self, closed: Array, carried: Array) -> Array:
        """The smallest values of each window."""
        return self._over(_row_smallest, closed, carried, reductions.limits(closed)[1])

    def _over(
        self, loop: Callable[..., None], closed: Array | None, carried: Array, nothing: Any
    ) -> Array:
        new = self._new(closed, carried)
        front, found = np.full(self.kept + 1, nothing, carried.dtype), np.empty_like(new)
        loop(new, *self._shape, carried, front, found)
        return found

    def keep(self, closed: Array | None, carried: Array) -> None:
        """Carry the newest slices from now on."""
        order, touched, starts, *_ = self._shape
        _keep(self._new(closed, carried), order, touched, starts, self.kept, carried)

    def _new(self, closed: Array | None, carried: Array) -> Array:
        return np.zeros(len(self._shape[0]), carried.dtype) if closed is None else closed


@compiled
def _arrived(
    order: Places, touched: Places, starts: Places, size: int, taken: Places, found: Places
) -> None:
    for index in range(len(touched)):
        total = taken[touched[index]]
        for at in range(starts[index], starts[index + 1]):
            total += size
            found[order[at]] = total


@compiled
def _keep(
    closed: Array, order: Places, touched: Places, starts: Places, kept: int, carried: Array
) -> None:
    for index in range(len(touched)):
        begin, end = touched[index] * kept, (touched[index] + 1) * kept
        fresh = min(starts[index + 1] - starts[index], kept)
        for place in range(begin, end - fresh):
            carried[place] = carried[place + fresh]
        at = starts[index + 1] - fresh
        for place in range(end - fresh, end):
            carried[place] = closed[order[at]]
            at += 1


# The slices of a row are taken in blocks as long as a window. A window is the end of one block and
# the start of the next, or one whole block: `front` has the results of all ends of the block
# before, and one result grows with the block. So every slice is looked at twice.


def _row_folding(fold: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """The loop for `max`, `min` or a sum."""

    @compiled
    def folded(
        closed: Array,
        order: Places,
        touched: Places,
        starts: Places,
        held: Places,
        kept: int,
        carried: Array,
        front: Array,
        found: Array,
    ) -> None:
        nothing = front[kept]
        for index in range(len(touched)):
            partition = touched[index]
            end, best = (partition + 1) * kept, nothing
            for place in range(kept - 1, 0, -1):
                if kept - place <= held[partition]:
                    best = fold(best, carried[end - kept + place])
                front[place] = best
            place, best = 1, nothing
            for at in range(starts[index], starts[index + 1]):
                slice_ = np.uint64(order[at])
                best = fold(best, closed[slice_])
                found[slice_] = fold(best, front[place])
                place += 1
                if place > kept:
                    best = nothing
                    for back in range(kept - 1):
                        best = fold(best, closed[np.uint64(order[at - back])])
                        front[kept - 1 - back] = best
                    place, best = 1, nothing

    return folded


_row_sums = _row_folding(_added)
_row_largest, _row_smallest = _row_folding(max), _row_folding(min)


@compiled
def _with(
    total: float, errors: float, least: float, high: float, low: float, exact: bool
) -> tuple[float, float, float]:
    """A sum with its errors and a pair more; plain sums do where nothing can cancel."""
    if not exact:
        return total + high, errors + low, 0.0
    total, error = two_sum(total, high)
    errors, rest = two_sum(errors, error)
    errors, more = two_sum(errors, low)
    return total, errors, least + rest + more


@compiled
def _row_pairs(
    closed_high: Array,
    closed_low: Array,
    order: Places,
    touched: Places,
    starts: Places,
    held: Places,
    kept: int,
    carried_high: Array,
    carried_low: Array,
    front: Array,
    high: Array,
    low: Array,
) -> None:
    for index in range(len(touched)):
        partition = touched[index]
        end = (partition + 1) * kept
        above = below = False
        for at in range(starts[index], starts[index + 1]):
            above |= closed_high[np.uint64(order[at])] > 0
            below |= closed_high[np.uint64(order[at])] < 0
        for place in range(end - held[partition], end):
            above |= carried_high[place] > 0
            below |= carried_high[place] < 0
        exact = above and below
        total = errors = least = 0.0
        for place in range(kept - 1, 0, -1):
            if kept - place <= held[partition]:
                there = end - kept + place
                total, errors, least = _with(
                    total, errors, least, carried_high[there], carried_low[there], exact
                )
            front[0, place], front[1, place], front[2, place] = total, errors, least
        place = 1
        total = errors = least = 0.0
        for at in range(starts[index], starts[index + 1]):
            slice_ = np.uint64(order[at])
            total, errors, least = _with(
                total, errors, least, closed_high[slice_], closed_low[slice_], exact
            )
            both, lower, rest = _with(total, errors, least, front[0, place], front[1, place], exact)
            high[slice_], low[slice_] = settled(both, lower, rest + front[2, place])
            place += 1
            if place > kept:
                total = errors = least = 0.0
                for back in range(kept - 1):
                    slice_ = np.uint64(order[at - back])
                    total, errors, least = _with(
                        total, errors, least, closed_high[slice_], closed_low[slice_], exact
                    )
                    there = kept - 1 - back
                    front[0, there], front[1, there], front[2, there] = total, errors, least
                place = 1
                total = errors = least = 0.0
