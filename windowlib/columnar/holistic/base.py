"""Functions that need all values of a subwindow: what is carried of it, and when results come.

The values of an open subwindow are carried as they came, nulls left out. A subwindow that closes
is laid out whole, what was carried before what is new, and computed from that like any extent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.dumps import column_of, dumped, lengths, need, packed, unpacked
from windowlib.columnar.functions import Function
from windowlib.columnar.holistic.kept import kept
from windowlib.columnar.holistic.store import Ragged
from windowlib.columnar.kernels.base import Array, Result, Values
from windowlib.columnar.physical import check_movable
from windowlib.columnar.pieces import Pieces, Places
from windowlib.columnar.primitives import ranges
from windowlib.folds import State
from windowlib.policies import Attribute

FEW = 256
"""Lists up to this length are not looked through for values that are of no use."""


@dataclass(slots=True)
class Content:
    """Values without nulls, those of extents side by side."""

    columns: Values
    weights: Array | None = None
    """How many values each stands for, one if there is nothing here."""

    def take(self, places: Places) -> Content:
        """The values at some places."""
        weights = None if self.weights is None else self.weights[places]
        return Content(tuple(column.take(places) for column in self.columns), weights)


@dataclass(slots=True)
class Later:
    """What `fold` leaves for `commit`."""

    content: Content
    lo: Places
    hi: Places
    """The extents of new values that stay open."""
    goes_on: Array
    """Which of these go on with what is carried."""
    touched: Places
    """Partitions that carry nothing else from now on."""


class Holistic(Function):
    """Base: `results` computes, the rest carries.

    `judged` is the column whose nulls leave a row out. `weighted` functions carry how often a value
    came, beside it. `thins` says whether `thinned` can drop values that make no difference, which
    is done when a list outgrows its room: then it stays in proportion to what is of use.
    """

    judged: ClassVar[int] = 0
    weighted: ClassVar[bool] = False
    thins: ClassVar[bool] = False

    def __init__(
        self, fold: Any, attribute: Attribute | None, types: Sequence[pa.DataType]
    ) -> None:
        super().__init__(attribute)
        self.definition = fold
        self.types = tuple(types)
        if any(map(pa.types.is_union, types)):
            raise Decline(f"{fold.name} of a union, whose nulls are not seen")
        check_movable(pa.list_(types[0]))
        self.check()
        self.kept = [kept(kind, nullable=i != self.judged) for i, kind in enumerate(types)]
        dtypes = [dtype for each in self.kept for dtype in each.dtypes]
        self.store = Ragged([*dtypes, *[np.int64] * self.weighted])

    def check(self) -> None:
        """Decline types that the function has no columnar form for."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """The result for each extent."""
        raise NotImplementedError

    def states(self, content: Content, lo: Places, hi: Places) -> list[State]:
        """The state of the fold for each extent."""
        raise NotImplementedError

    def thinned(self, content: Content, lo: Places, hi: Places) -> tuple[Content, Places]:
        """The values of each extent that make a difference, side by side, and how many."""
        raise NotImplementedError

    def loaded(self, saved: Sequence[Any]) -> tuple[Content, Places]:
        """The values in what the fold's `save` gave, side by side, and how many of each."""
        raise NotImplementedError

    # -- one batch --------------------------------------------------------------------------------

    def over(self, values: Values, lo: Places, hi: Places) -> Result:
        """The result for each extent of places."""
        return self.results(*self._present(values, lo, hi))

    def fold(self, values: Values, pieces: Pieces) -> tuple[Result, Any]:
        """The results of the pieces that fire, and the new values of those that stay open."""
        content, lo, hi = self._present(values, pieces.starts, pieces.ends)
        later = self._later(content, lo, hi, pieces)
        before = np.full(len(lo) + len(pieces.bare), NOBODY)
        before[pieces.joins] = pieces.ids[pieces.joins]
        if len(pieces.bare):
            before[len(lo) :] = pieces.bare
            nothing = np.zeros(len(pieces.bare), np.intp)
            lo, hi = np.append(lo, nothing), np.append(hi, nothing)
        fires = pieces.fires
        return self.results(*self._joined(before[fires], content, lo[fires], hi[fires])), later

    def _present(self, values: Values, lo: Places, hi: Places) -> tuple[Content, Places, Places]:
        """The rows that are not left out, and the extents in them."""
        valid = values[self.judged].valid
        if valid is None:
            return Content(values), lo, hi
        number = np.zeros(len(valid) + 1, np.intp)
        np.cumsum(valid, out=number[1:])
        columns = [column.take(np.flatnonzero(valid)) for column in values]
        columns[self.judged] = Column(columns[self.judged].type, columns[self.judged].data)
        return Content(tuple(columns)), number[lo], number[hi]

    def _later(self, content: Content, lo: Places, hi: Places, pieces: Pieces) -> Later:
        joins = np.zeros(len(lo), bool)
        joins[pieces.joins] = True
        stays = pieces.stays
        return Later(content, lo[stays], hi[stays], joins[stays], pieces.ids)

    def _joined(
        self, before: Places, content: Content, lo: Places, hi: Places
    ) -> tuple[Content, Places, Places]:
        """Extents after what the partitions `before` carry; `NOBODY`: nothing comes before."""
        held = np.where(before == NOBODY, 0, self.store.lengths[before])
        if not held.any():
            return content, lo, hi
        carried = self._carried(before[held > 0])
        both = Content(
            tuple(map(_end_to_end, zip(carried.columns, content.columns, strict=True))),
            self._weights(carried, content),
        )
        total, new = int(held.sum()), hi - lo
        # Of each extent, first where it is carried and then where it is new.
        starts = np.stack([np.cumsum(held) - held, lo + total], axis=1).ravel()
        lengths = np.stack([held, new], axis=1).ravel()
        ends = np.cumsum(held + new)
        return both.take(ranges(starts, lengths)), ends - held - new, ends

    def _weights(self, carried: Content, content: Content) -> Array | None:
        if carried.weights is None or (carried.weights == 1).all():
            return content.weights
        new = np.ones(len(content.columns[0]), np.int64)
        return np.append(carried.weights, new if content.weights is None else content.weights)

    # -- what is carried --------------------------------------------------------------------------

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        self.store.grow(size)

    def commit(self, ids: Places, later: Any) -> None:
        """Carry what stays open, and nothing else of the partitions that had rows."""
        assert isinstance(later, Later)
        goes_on = ids[later.goes_on]
        lengths = self.store.lengths[goes_on]
        self.store.clear(later.touched)
        self.store.lengths[goes_on] = lengths
        lo, hi, content = later.lo, later.hi, later.content
        if self.thins:
            needed = self.store.lengths[ids] + hi - lo
            crowded = needed > np.maximum(self.store.rooms[ids], FEW)
            if crowded.any():
                joined = self._joined(ids[crowded], content, lo[crowded], hi[crowded])
                self._replace(ids[crowded], *self.thinned(*joined))
                ids, lo, hi = ids[~crowded], lo[~crowded], hi[~crowded]
        self._append(ids, content.take(ranges(lo, hi - lo)), hi - lo)
        self._pack()

    def forget(self, ids: Places) -> None:
        """These partitions carry nothing any more."""
        self.store.clear(ids)

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results for what some partitions carry."""
        return self.results(self._carried(ids), *self._extents(ids))

    def _carried(self, ids: Places) -> Content:
        """What some partitions carry, side by side."""
        planes = self.store.take(ids)
        weights = planes.pop() if self.weighted else None
        columns = []
        for each in self.kept:
            columns.append(each.get(planes[: len(each.dtypes)]))
            del planes[: len(each.dtypes)]
        return Content(tuple(columns), weights)

    def _extents(self, ids: Places) -> tuple[Places, Places]:
        lengths = self.store.lengths[ids]
        ends = np.cumsum(lengths)
        return ends - lengths, ends

    def _append(self, ids: Places, content: Content, lengths: Places) -> None:
        pairs = zip(self.kept, content.columns, strict=True)
        planes = [plane for each, column in pairs for plane in each.put(column)]
        if self.weighted:
            ones = np.ones(len(content.columns[0]), np.int64)
            planes.append(ones if content.weights is None else content.weights)
        self.store.append(ids, lengths, planes)

    def _replace(self, ids: Places, content: Content, lengths: Places) -> None:
        self.store.clear(ids)
        self._append(ids, content, lengths)

    def _pack(self) -> None:
        """Drop values from pools that no partition refers to."""
        first = 0
        for each in self.kept:
            if each.full():
                places = self.store.places(np.flatnonzero(self.store.lengths))
                each.pack(self.store.planes[first], places)
            first += len(each.dtypes)

    # -- hand-over --------------------------------------------------------------------------------

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The fold's saved states."""
        states = self.states(self._carried(ids), *self._extents(ids))
        definition = self.definition
        pairs = zip(states, sizes.tolist(), strict=True)
        return [definition.save(state if n else definition.empty) for state, n in pairs]

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Take over the fold's saved states."""
        self._replace(ids, *self.loaded(saved))

    def dump(self, ids: Places, held: Array) -> dict[str, Any]:
        """The values that some partitions carry, side by side."""
        content = self._carried(ids)
        return {
            "lengths": packed(self.store.lengths[ids]),
            "columns": [dumped(each) for each in content.columns],
            "weights": None if content.weights is None else packed(content.weights),
        }

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        sizes, columns, weights = lengths(state["lengths"], len(ids)), state["columns"], None
        total = int(sizes.sum())
        need(len(columns) == len(self.types), f"{len(columns)} columns")
        need(self.weighted or state["weights"] is None, "weights")
        if self.weighted:
            weights = unpacked(state["weights"], np.int64, total)
        pairs = zip(columns, self.types, strict=True)
        content = Content(tuple(column_of(each, kind, total) for each, kind in pairs), weights)
        self._replace(ids, content, sizes)

    def column(self, values: list[Any], which: int = 0) -> Column:
        """Python values as one of the function's columns; declined if that is not exact."""
        return Column.from_values(values, self.types[which])


NOBODY = -1


def _end_to_end(columns: tuple[Column, ...]) -> Column:
    return Column.concat(columns)
