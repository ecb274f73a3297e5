"""Which rows of a batch belong to one subwindow of a tumbling window, and which subwindows close.

The layout holds the new rows partition by partition, each in order of arrival. Subwindows cut it
into *extents*, which tile it. The first extent of a partition may go on with what the partition
carries from earlier batches; the last may stay open.

    partition a, Count(3), carries 2 |  a1 | a2 a3 a4 | a5      extents [0,1) [1,4) [4,5)
    fires                               a1        a4            in order of the rows that do it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowlib.columnar.primitives import NONE, Places
from windowlib.columnar.primitives.grouping import stable_order


@dataclass(slots=True)
class Extents:
    """Runs of places that tile the layout, one or more for each partition in it."""

    starts: Places
    ends: Places
    number: Places
    """Which of the touched partitions each extent is of."""
    ids: Places
    """The partition of each extent."""
    sizes: Places
    """How many tuples its subwindow has with it, carried ones included."""
    joins: Places
    """Extents that go on with a carried subwindow."""
    stays: Places
    """Extents that are open at the end of the batch: at most one for each partition."""
    bare: Places
    """Partitions whose carried subwindow closes before a new row enters it."""
    bare_sizes: Places
    fires: Places
    """Closed subwindows in order of firing: extents by number, then those of `bare`."""
    rows: Places
    """The row of the batch that fires each of them."""
    _fired_sizes: Places | None = None

    @property
    def fired_ids(self) -> Places:
        """The partition of each firing."""
        return self._both(self.ids, self.bare)

    @property
    def fired_sizes(self) -> Places:
        """How many tuples each firing has; worked out once."""
        if self._fired_sizes is None:
            self._fired_sizes = self._both(self.sizes, self.bare_sizes)
        return self._fired_sizes

    def _both(self, extents: Places, bare: Places) -> Places:
        together = np.concatenate((extents, bare)) if len(bare) else extents
        fired: Places = together[self.fires]
        return fired


@dataclass(slots=True)
class Layout:
    """A batch sorted by partition, or some rows of one."""

    order: Places | None
    """The row at each place; None: rows are places already."""
    touched: Places
    """The partitions in it, ascending unless the engine takes any order."""
    starts: Places
    """Where each begins, and the end of the last."""
    whole: int = -1
    """How many rows the batch has; -1: all are here."""

    def rows(self, places: Places) -> Places:
        """The rows at some places."""
        return places if self.order is None else self.order[places]

    @property
    def lengths(self) -> Places:
        """How many rows each partition has."""
        return np.diff(self.starts)

    @property
    def heads(self) -> Places:
        """The place of the first row of each partition."""
        return self.starts[:-1]

    @property
    def lasts(self) -> Places:
        """The place of the last row of each partition."""
        return self.starts[1:] - 1

    @property
    def size(self) -> int:
        """How many rows the batch has."""
        return int(self.starts[-1]) if self.whole < 0 else self.whole


def extents_by_count(layout: Layout, carried: Places, size: int) -> Extents:
    """Extents of a window that closes with its `size`-th tuple; `carried` by touched partition."""
    extents = count_slices(layout, carried, size)
    order, extents.rows = fired_in_order(layout.rows(extents.ends[extents.fires] - 1), layout)
    extents.fires = extents.fires[order]
    return extents


def count_slices(layout: Layout, carried: Places, size: int) -> Extents:
    """Extents that close with their `size`-th tuple, in order of the layout."""
    heads, stops = layout.heads, layout.starts[1:]
    filled = stops - heads
    filled += carried
    closing = filled // size
    rest = filled - closing * size
    opened = rest > 0
    counts = closing + opened
    last = np.cumsum(counts)
    first = last - counts
    total = int(last[-1]) if len(last) else 0
    bounds = np.empty(total + 1, np.intp)  # where extents begin, and the last one ends
    bounds[-1] = layout.starts[-1]
    begins = bounds[:-1]
    np.multiply(np.arange(total), size, out=begins)
    begins += np.repeat(heads - carried - first * size, counts)
    begins[first] = heads
    stays = last[opened] - 1
    sizes, closed = np.full(total, size), np.ones(total, bool)
    sizes[stays], closed[stays] = rest[opened], False
    number = np.repeat(np.arange(len(counts)), counts)
    return Extents(
        starts=begins,
        ends=bounds[1:],
        number=number,
        ids=layout.touched[number],
        sizes=sizes,
        joins=first[carried > 0],
        stays=stays,
        bare=NONE,
        bare_sizes=NONE,
        fires=np.flatnonzero(closed),
        rows=NONE,
    )


def cut_slices(layout: Layout, carried: Places, begun: Places, first: int, every: int) -> Extents:
    """Extents of periods of `every` tuples that are cut again after their first `first`.

    `begun` is how many tuples of its period each partition has, `carried` how many of them are in
    the open extent.
    """
    starts, lengths = layout.starts, layout.lengths
    after = begun + lengths
    # Ends of extents so far, counted from the start of the period that was open.
    closing = _ends(after, first, every) - _ends(begun, first, every)
    total = np.zeros(len(closing) + 1, np.intp)
    np.cumsum(closing, out=total[1:])
    number = np.arange(total[-1]) + np.repeat(_ends(begun, first, every) - total[:-1], closing)
    ends = number // 2 * every + np.where(number % 2 == 0, first, every)
    cuts = np.repeat(starts[:-1] - begun, closing) + ends
    return _cut_after(layout, carried, cuts, closing)


def _ends(tuples: Places, first: int, every: int) -> Places:
    """How many extents have ended after so many tuples of cut periods."""
    ended: Places = 2 * (tuples // every) + (tuples % every >= first)
    return ended


def _cut_after(layout: Layout, carried: Places, cuts: Places, closing: Places) -> Extents:
    """Extents that end with the row before each of `cuts`, `closing` of them in each partition."""
    starts = layout.starts
    last = np.cumsum(closing) - 1
    some = closing > 0
    rest = np.ones(len(closing), bool)
    rest[some] = cuts[last[some]] < starts[1:][some]
    extents = closing + rest
    number = np.repeat(np.arange(len(extents)), extents)
    first = np.cumsum(extents) - extents
    ends = np.empty(int(extents.sum()), np.intp)
    closed = np.ones(len(ends), bool)
    stays = (first + extents - 1)[rest]
    closed[stays] = False
    ends[closed], ends[stays] = cuts, starts[1:][rest]
    begins = np.append(0, ends[:-1])
    sizes = ends - begins
    joins = first[carried > 0]
    sizes[joins] += carried[carried > 0]
    return Extents(
        starts=begins,
        ends=ends,
        number=number,
        ids=layout.touched[number],
        sizes=sizes,
        joins=joins,
        stays=stays,
        bare=NONE,
        bare_sizes=NONE,
        fires=np.flatnonzero(closed),
        rows=NONE,
    )


def extents_by_cuts(layout: Layout, carried: Places, cuts: Places) -> Extents:
    """Extents that end before each of the places `cuts`, which fires what came before it.

    A cut at the first place of a partition closes what it carries.
    """
    heads = layout.starts[:-1]
    begins = np.union1d(heads, cuts)
    ends = np.append(begins[1:], layout.starts[-1])
    first = np.searchsorted(begins, heads)
    extents = np.diff(np.append(first, len(begins)))
    number = np.repeat(np.arange(len(extents)), extents)
    at_head = np.isin(heads, cuts)
    bare = at_head & (carried > 0)
    goes_on = ~at_head & (carried > 0)
    sizes = ends - begins
    joins = first[goes_on]
    sizes[joins] += carried[goes_on]
    stays = first + extents - 1
    closed = np.ones(len(begins), bool)
    closed[stays] = False
    fires = np.append(np.flatnonzero(closed), len(begins) + np.arange(bare.sum()))
    return _fired(
        Extents(
            starts=begins,
            ends=ends,
            number=number,
            ids=layout.touched[number],
            sizes=sizes,
            joins=joins,
            stays=stays,
            bare=layout.touched[bare],
            bare_sizes=carried[bare],
            fires=fires,
            rows=heads[bare],
        ),
        layout,
    )


def open_extents(layout: Layout, carried: Places) -> Extents:
    """Extents of a window that nothing in the batch closes."""
    return extents_by_cuts(layout, carried, NONE)


def _fired(extents: Extents, layout: Layout) -> Extents:
    """Put firings in order of the rows that cause them: the next after an extent."""
    closed = extents.fires[extents.fires < len(extents.starts)]
    places = np.append(extents.ends[closed], extents.rows)
    rows = layout.rows(places)
    if layout.order is None and not len(extents.bare):  # in order already
        extents.rows = rows
        return extents
    order = stable_order(rows, layout.size)
    extents.fires, extents.rows = extents.fires[order], rows[order]
    return extents


def fired_in_order(rows: Places, layout: Layout) -> tuple[Places | slice, Places]:
    """The order of firings, which is that of the rows that cause them, and these rows."""
    if layout.order is None:
        return slice(None), rows
    order = stable_order(rows, layout.size)
    return order, rows[order]
