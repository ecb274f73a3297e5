"""Which rows of a batch belong to one subwindow of a tumbling window, and which subwindows close.

The layout holds the new rows partition by partition, each in order of arrival. Subwindows cut it
into *pieces*, which tile it. The first piece of a partition may go on with what the partition
carries from earlier batches; the last may stay open.

    partition a, Count(3), carries 2 |  a1 | a2 a3 a4 | a5      pieces [0,1) [1,4) [4,5)
    fires                               a1        a4            in order of the rows that do it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from windowlib.columnar.grouping import stable_order

Places = npt.NDArray[np.intp]


class Runs(Protocol):
    """The rows of runs that are not side by side; some runs go on from what is carried."""

    def sums(self, values: Any, before: Any) -> Any:
        """The sums of whole numbers; None is 0 for all."""

    def two_sums(self, values: Any, high: Any, low: Any) -> Any:
        """The sums of floats as pairs, as `primitives.two_sums` has them."""

    def largest(self, values: Any, before: Any) -> Any:
        """The largest values."""

    def smallest(self, values: Any, before: Any) -> Any:
        """The smallest values."""


@dataclass(slots=True)
class Pieces:
    """Runs of places that tile the layout, one or more for each partition in it."""

    starts: Places
    ends: Places
    number: Places
    """Which of the touched partitions each piece is of."""
    ids: Places
    """The partition of each piece."""
    sizes: Places
    """How many tuples its subwindow has with it, carried ones included."""
    joins: Places
    """Pieces that go on with a carried subwindow."""
    stays: Places
    """Pieces that are open at the end of the batch: at most one for each partition."""
    bare: Places
    """Partitions whose carried subwindow closes before a new row enters it."""
    bare_sizes: Places
    fires: Places
    """Closed subwindows in order of firing: pieces by number, then those of `bare`."""
    rows: Places
    """The row of the batch that fires each of them."""
    runs: Runs | None = None
    """Where rows lie as they came: those of each piece, which has a start and no end."""

    @property
    def fired_ids(self) -> Places:
        """The partition of each firing."""
        return self._both(self.ids, self.bare)

    @property
    def fired_sizes(self) -> Places:
        """How many tuples each firing has."""
        return self._both(self.sizes, self.bare_sizes)

    def _both(self, pieces: Places, bare: Places) -> Places:
        together = np.concatenate((pieces, bare)) if len(bare) else pieces
        fired: Places = together[self.fires]
        return fired


@dataclass(slots=True)
class Grouped:
    """A batch sorted by partition."""

    order: Places | None
    """The row at each place; None: rows are places already."""
    touched: Places
    """The partitions in it, ascending."""
    starts: Places
    """Where each begins, and the end of the last."""

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
        """How many rows there are."""
        return int(self.starts[-1])


def by_count(grouped: Grouped, carried: Places, size: int) -> Pieces:
    """Pieces of a window that closes with its `size`-th tuple; `carried` by touched partition."""
    return _fired(slices_of(grouped, carried, size), grouped, last=True)


def slices_of(grouped: Grouped, carried: Places, size: int) -> Pieces:
    """Pieces that close with their `size`-th tuple, in order of the layout."""
    starts, lengths = grouped.starts, grouped.lengths
    closing = (carried + lengths) // size
    rest = (carried + lengths) - closing * size
    pieces = closing + (rest > 0)
    first = np.zeros(len(pieces) + 1, np.intp)
    np.cumsum(pieces, out=first[1:])
    number = np.repeat(np.arange(len(pieces)), pieces)
    begins = (starts[:-1] - carried - first[:-1] * size)[number] + np.arange(first[-1]) * size
    begins[first[:-1]] = starts[:-1]
    ends = np.append(begins[1:], starts[-1])
    sizes = ends - begins
    joins = first[:-1][carried > 0]
    sizes[joins] += carried[carried > 0]
    stays = (first[1:] - 1)[rest > 0]
    closed = np.ones(len(begins), bool)
    closed[stays] = False
    return Pieces(
        starts=begins,
        ends=ends,
        number=number,
        ids=grouped.touched[number],
        sizes=sizes,
        joins=joins,
        stays=stays,
        bare=NONE,
        bare_sizes=NONE,
        fires=np.flatnonzero(closed),
        rows=NONE,
    )


def by_slices(grouped: Grouped, carried: Places, begun: Places, first: int, every: int) -> Pieces:
    """Pieces of periods of `every` tuples that are cut again after their first `first`.

    `begun` is how many tuples of its period each partition has, `carried` how many of them are in
    the open piece.
    """
    starts, lengths = grouped.starts, grouped.lengths
    after = begun + lengths
    # Ends of pieces so far, counted from the start of the period that was open.
    closing = _ends(after, first, every) - _ends(begun, first, every)
    total = np.zeros(len(closing) + 1, np.intp)
    np.cumsum(closing, out=total[1:])
    number = np.arange(total[-1]) + np.repeat(_ends(begun, first, every) - total[:-1], closing)
    ends = number // 2 * every + np.where(number % 2 == 0, first, every)
    cuts = np.repeat(starts[:-1] - begun, closing) + ends
    return _cut_after(grouped, carried, cuts, closing)


def _ends(tuples: Places, first: int, every: int) -> Places:
    """How many pieces have ended after so many tuples of cut periods."""
    ended: Places = 2 * (tuples // every) + (tuples % every >= first)
    return ended


def _cut_after(grouped: Grouped, carried: Places, cuts: Places, closing: Places) -> Pieces:
    """Pieces that end with the row before each of `cuts`, `closing` of them in each partition."""
    starts = grouped.starts
    last = np.cumsum(closing) - 1
    some = closing > 0
    rest = np.ones(len(closing), bool)
    rest[some] = cuts[last[some]] < starts[1:][some]
    pieces = closing + rest
    number = np.repeat(np.arange(len(pieces)), pieces)
    first = np.cumsum(pieces) - pieces
    ends = np.empty(int(pieces.sum()), np.intp)
    closed = np.ones(len(ends), bool)
    stays = (first + pieces - 1)[rest]
    closed[stays] = False
    ends[closed], ends[stays] = cuts, starts[1:][rest]
    begins = np.append(0, ends[:-1])
    sizes = ends - begins
    joins = first[carried > 0]
    sizes[joins] += carried[carried > 0]
    return Pieces(
        starts=begins,
        ends=ends,
        number=number,
        ids=grouped.touched[number],
        sizes=sizes,
        joins=joins,
        stays=stays,
        bare=NONE,
        bare_sizes=NONE,
        fires=np.flatnonzero(closed),
        rows=NONE,
    )


def by_cuts(grouped: Grouped, carried: Places, cuts: Places) -> Pieces:
    """Pieces that end before each of the places `cuts`, which fires what came before it.

    A cut at the first place of a partition closes what it carries.
    """
    heads = grouped.starts[:-1]
    begins = np.union1d(heads, cuts)
    ends = np.append(begins[1:], grouped.starts[-1])
    first = np.searchsorted(begins, heads)
    pieces = np.diff(np.append(first, len(begins)))
    number = np.repeat(np.arange(len(pieces)), pieces)
    at_head = np.isin(heads, cuts)
    bare = at_head & (carried > 0)
    goes_on = ~at_head & (carried > 0)
    sizes = ends - begins
    joins = first[goes_on]
    sizes[joins] += carried[goes_on]
    stays = first + pieces - 1
    closed = np.ones(len(begins), bool)
    closed[stays] = False
    fires = np.append(np.flatnonzero(closed), len(begins) + np.arange(bare.sum()))
    return _fired(
        Pieces(
            starts=begins,
            ends=ends,
            number=number,
            ids=grouped.touched[number],
            sizes=sizes,
            joins=joins,
            stays=stays,
            bare=grouped.touched[bare],
            bare_sizes=carried[bare],
            fires=fires,
            rows=heads[bare],
        ),
        grouped,
        last=False,
    )


def whole(grouped: Grouped, carried: Places) -> Pieces:
    """Pieces of a window that nothing in the batch closes."""
    return by_cuts(grouped, carried, NONE)


NONE: Places = np.empty(0, np.intp)


def _fired(pieces: Pieces, grouped: Grouped, *, last: bool) -> Pieces:
    """Put firings in order of the rows that cause them: the last of a piece, or the next."""
    closed = pieces.fires[pieces.fires < len(pieces.starts)]
    places = np.append(pieces.ends[closed] - last, pieces.rows)
    rows = grouped.rows(places)
    if grouped.order is None and not len(pieces.bare):  # in order already
        pieces.rows = rows
        return pieces
    order = stable_order(rows, grouped.size)
    pieces.fires, pieces.rows = pieces.fires[order], rows[order]
    return pieces


def fired_in_order(rows: Places, grouped: Grouped) -> tuple[Places | slice, Places]:
    """The order of firings, which is that of the rows that cause them, and these rows."""
    if grouped.order is None:
        return slice(None), rows
    order = stable_order(rows, len(grouped.order))
    return order, rows[order]
