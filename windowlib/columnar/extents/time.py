"""Tumbling windows that time closes: the extents of a batch, and which row fires what.

Rows say when they arrive, and what is due by then happens before a row enters. So a extent may be
closed by a row of any partition, and a partition without new rows by the rows of others; such
partitions are in the layout, with no places.

    ticks at 10 and 20 | a at 3, 8, 12 and b at 21 | fires a [3, 8] and then a [12], before b is in
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windowlib.columnar.arrays.stamps import Stamps
from windowlib.columnar.extents.layout import Extents, Layout
from windowlib.columnar.primitives import Places

END = int(np.iinfo(np.intp).max)
"""No row of this batch."""


@dataclass(slots=True)
class CarriedSubwindows:
    """What the partitions of a layout have from before the batch."""

    sizes: Places
    """How many tuples are open."""
    first: Stamps
    """When the first of these tuples arrived."""
    born: Places
    """Where they are in storage."""
    rows: int
    """How many rows have come; those of the batch are born behind them."""


@dataclass(slots=True)
class Closings:
    """Extents, and when they are closed."""

    extents: Extents
    times: Stamps
    """When each firing happens."""
    opened: Stamps
    """When the first tuple arrived of each extent that stays open."""


@dataclass(slots=True)
class ExtentEnds:
    """How some extents end."""

    rows: Places
    """The row that closes each, END if none does."""
    times: Stamps


def with_partitions(layout: Layout, ids: Places) -> Layout:
    """The same layout with more partitions in it, which have no new rows.

    >>> layout = Layout(None, np.array([2, 7]), np.array([0, 2, 5]))
    >>> found = with_partitions(layout, np.array([1, 7]))
    >>> found.touched.tolist(), found.starts.tolist()
    ([1, 2, 7], [0, 0, 2, 5])
    """
    touched = np.union1d(layout.touched, ids)
    starts = layout.starts[np.searchsorted(layout.touched, touched)]
    return Layout(layout.order, touched, np.append(starts, layout.starts[-1]))


def at_ticks(layout: Layout, behind: Places) -> tuple[Places, Places, Places]:
    """Where each partition is at each tick: its number, the tick's, and the place of its next row.

    `behind` is the first row behind each tick.

    >>> layout = Layout(np.array([0, 3, 1, 2]), np.array([5, 6]), np.array([0, 2, 4]))
    >>> number, tick, places = at_ticks(layout, np.array([1, 3]))
    >>> number.tolist(), tick.tolist(), places.tolist()
    ([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 2, 4])
    """
    n, ticks = int(layout.starts[-1]), len(behind)
    partitions = np.arange(len(layout.touched))
    # Rows ascend in a partition, and so does this number in the whole layout.
    numbers = np.repeat(partitions, layout.lengths) * n + layout.rows(np.arange(n))
    number, tick = np.repeat(partitions, ticks), np.tile(np.arange(ticks), len(partitions))
    return number, tick, np.searchsorted(numbers, number * n + behind[tick])


def extents_by_ticks(
    layout: Layout, carried: CarriedSubwindows, arrivals: Stamps, passed: Places, times: Stamps
) -> Closings:
    """Extents that end at ticks, at `times`, for all partitions at once.

    `passed` says for each row how many ticks come before it. What comes behind the last row closes
    extents at a row that would follow it.
    """
    rows = layout.rows(np.arange(len(passed)))
    turns = passed[rows]
    starting = np.append(True, turns[1:] != turns[:-1])
    starting[layout.starts[:-1][layout.lengths > 0]] = True
    begins = np.flatnonzero(starting)
    turn = turns[begins]
    closing = np.append(np.searchsorted(passed, np.arange(1, len(times) + 1)), END)
    number = _partition(layout, begins)
    goes_on = (turn == 0) & (begins == layout.starts[number])
    ends = ExtentEnds(closing[turn], np.append(times, 0)[turn])
    tick = np.zeros(len(carried.sizes), np.intp)
    bare = ExtentEnds(closing[tick], times[tick])
    return _closings(layout, carried, begins, goes_on, ends, bare, arrivals[rows[begins]])


def extents_by_marks(
    layout: Layout, carried: CarriedSubwindows, marks: Places, now: int
) -> Closings:
    """Extents that end at punctuations, for all partitions at once.

    `marks` says before which row each of them comes; behind the last row, before the one that would
    follow it.
    """
    if layout.order is not None:
        passed = np.repeat(np.arange(len(marks) + 1), np.diff(marks, prepend=0, append=layout.size))
        times = np.full(len(marks), now)
        return extents_by_ticks(layout, carried, np.full(layout.size, now), passed, times)
    begins = np.append(0, marks[marks < layout.size])
    begins = begins[np.append(True, begins[1:] > begins[:-1])]
    following = np.searchsorted(marks, begins, "right")
    goes_on = (begins == 0) & (marks[0] > 0)
    ends = ExtentEnds(np.append(marks, END)[following], np.full(len(begins), now))
    bare = ExtentEnds(marks[:1], np.full(1, now))
    return _closings(layout, carried, begins, goes_on, ends, bare, np.full(len(begins), now))


def extents_by_lapse(
    layout: Layout, carried: CarriedSubwindows, arrivals: Stamps, size: int, lapse: int
) -> Closings:
    """Extents that end with their `size`-th tuple, or `lapse` after their first one arrived."""
    n, touched = len(arrivals), np.arange(len(layout.touched))
    rows = layout.rows(np.arange(n))
    due, heads = arrivals[rows] + lapse, layout.starts[:-1]
    owner = np.repeat(touched, layout.lengths)
    # The row that comes at the deadline of a extent that begins at a place, and the next place of
    # the same partition: rows ascend in it, and so does this number in the whole layout.
    late, number = np.searchsorted(arrivals, due), owner * n + rows
    follows = np.minimum(np.arange(n) + size, np.searchsorted(number, owner * n + late))
    old_due = carried.first + lapse
    old_late = np.searchsorted(arrivals, old_due)
    old_follows = np.searchsorted(number, touched * n + old_late)
    old = (carried.sizes > 0) & (old_follows > heads)
    old_follows = np.minimum(heads + size - carried.sizes, old_follows)
    begins = _chained(layout, np.where(old, old_follows, END), follows)
    of = _partition(layout, begins)
    goes_on = old[of] & (begins == heads[of])
    tuples = np.append(begins[1:], n) - begins + np.where(goes_on, carried.sizes[of], 0)
    last, full = np.append(begins[1:], n) - 1, tuples == size
    waits = np.where(goes_on, old_late[of], late[begins])
    closing = np.where(full, rows[last], np.where(waits < n, waits, END))
    moment = np.where(goes_on, old_due[of], due[begins])
    ends = ExtentEnds(closing, np.where(full, arrivals[rows[last]], moment))
    bare = ExtentEnds(old_late, old_due)
    opened = np.where(goes_on, carried.first[of], arrivals[rows[begins]])
    return _closings(layout, carried, begins, goes_on, ends, bare, opened)


def _chained(layout: Layout, second: Places, follows: Places) -> Places:
    """Where extents begin: a partition's first at its first place, each at what `follows` the last.

    `second` is where the second of each partition begins, END if `follows` says it.
    """
    begins: list[int] = []
    heads, nexts = layout.starts.tolist(), follows.tolist()
    for place, end, at in zip(heads, heads[1:], second.tolist(), strict=False):
        if place == end:
            continue
        begins.append(place)
        at = nexts[place] if at == END else at
        while at < end:
            begins.append(at)
            at = nexts[at]
    return np.array(begins, np.intp)


def _partition(layout: Layout, places: Places) -> Places:
    """The number of the partition that each place is in."""
    return np.searchsorted(layout.starts, places, "right") - 1


def _closings(
    layout: Layout,
    carried: CarriedSubwindows,
    begins: Places,
    goes_on: npt.NDArray[np.bool_],
    ends: ExtentEnds,
    bare: ExtentEnds,
    opened: Stamps,
) -> Closings:
    """Put together extents, and what is carried and ends without new rows, in order of firing.

    At one row, what is due goes first, in order of storage. Then the row enters, and may fill its
    own extent, which is not due and so younger than those.
    """
    number = _partition(layout, begins)
    goes_on = goes_on & (carried.sizes[number] > 0)
    joins, stays = np.flatnonzero(goes_on), np.flatnonzero(ends.rows == END)
    over = np.append(begins[1:], layout.starts[-1])
    sizes = over - begins
    sizes[joins] += carried.sizes[number[joins]]
    alone = carried.sizes > 0
    alone[number[joins]] = False
    closed, left = np.flatnonzero(ends.rows != END), np.flatnonzero(alone)
    born = np.where(goes_on, carried.born[number], carried.rows + layout.rows(begins))
    rows = np.append(ends.rows[closed], bare.rows[left])
    order = np.lexsort((np.append(born[closed], carried.born[left]), rows))
    extents = Extents(
        starts=begins,
        ends=over,
        number=number,
        ids=layout.touched[number],
        sizes=sizes,
        joins=joins,
        stays=stays,
        bare=layout.touched[left],
        bare_sizes=carried.sizes[left],
        fires=np.append(closed, len(begins) + np.arange(len(left)))[order],
        rows=rows[order],
    )
    times = np.append(ends.times[closed], bare.times[left])[order]
    return Closings(extents, times, opened[stays])
