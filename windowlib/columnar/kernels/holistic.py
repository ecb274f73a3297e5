"""Functions that need all values of a subwindow, which are carried from batch to batch.

The values of an open subwindow are carried as they came, nulls left out. A subwindow that closes
is laid out whole, what was carried before what is new, and computed from that like any extent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import (
    checked_lengths,
    dump_column,
    load_column,
    need,
    packed,
    unpacked,
)
from windowlib.columnar.arrays.ledger import Ragged
from windowlib.columnar.arrays.physical import check_movable
from windowlib.columnar.arrays.value_pool import planes_for
from windowlib.columnar.extents.layout import Extents
from windowlib.columnar.kernels.functions import Function
from windowlib.columnar.kernels.kernel import Result, Values
from windowlib.columnar.primitives import Array, Places, ranges
from windowlib.spec.policies import Attribute
from windowlib.summaries.folds import State
from windowlib.window.consumer import Decline

SHORT_LIST = 256
"""Lists up to this length are not looked through for values that are of no use."""


@dataclass(slots=True)
class PresentValues:
    """Values without nulls, extent by extent."""

    columns: Values
    weights: Array | None = None
    """How many values each stands for, one if there is nothing here."""

    def take(self, places: Places) -> PresentValues:
        """The values at some places."""
        weights = None if self.weights is None else self.weights[places]
        return PresentValues(tuple(column.take(places) for column in self.columns), weights)


@dataclass(slots=True)
class OpenValues:
    """The open values that `fold` leaves for `commit`."""

    content: PresentValues
    lo: Places
    hi: Places
    """The extents of new values that stay open."""
    goes_on: Array
    """Which of these go on with what is carried."""
    touched: Places
    """Partitions that carry nothing else from now on."""


class HolisticFunction(Function):
    """Base: `results` computes, the rest carries.

    `judged` is the column whose nulls leave a row out. `weighted` functions carry how often a value
    came, beside it. `thins` says whether `thinned` can drop values that make no difference, which
    is done when a list outgrows its room: then it stays in proportion to what is of use.
    """

    has_sort_key: ClassVar[int] = 0
    weighted: ClassVar[bool] = False
    prunes: ClassVar[bool] = False

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
        self.kept = [
            planes_for(kind, nullable=i != self.has_sort_key) for i, kind in enumerate(types)
        ]
        dtypes = [dtype for each in self.kept for dtype in each.dtypes]
        self.store = Ragged([*dtypes, *[np.int64] * self.weighted])

    def check(self) -> None:
        """Decline types that the function has no columnar form for."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """The result for each extent."""
        raise NotImplementedError

    def states(self, content: PresentValues, lo: Places, hi: Places) -> list[State]:
        """The state of the fold for each extent."""
        raise NotImplementedError

    def pruned(
        self, content: PresentValues, lo: Places, hi: Places
    ) -> tuple[PresentValues, Places]:
        """The values that can affect a result, extent by extent, and the count of each extent."""
        raise NotImplementedError

    def loaded(self, saved: Sequence[Any]) -> tuple[PresentValues, Places]:
        """The values in saved states of the fold, state by state, and their counts."""
        raise NotImplementedError

    # -- one batch --------------------------------------------------------------------------------

    def over(self, values: Values, lo: Places, hi: Places) -> Result:
        """The result for each extent of places."""
        return self.results(*self._present(values, lo, hi))

    def fold(self, values: Values, extents: Extents) -> tuple[Result, Any]:
        """The results of the extents that fire, and the new values of those that stay open."""
        content, lo, hi = self._present(values, extents.starts, extents.ends)
        later = self._later(content, lo, hi, extents)
        before = np.full(len(lo) + len(extents.bare), NO_PARTITION)
        before[extents.joins] = extents.ids[extents.joins]
        if len(extents.bare):
            before[len(lo) :] = extents.bare
            nothing = np.zeros(len(extents.bare), np.intp)
            lo, hi = np.append(lo, nothing), np.append(hi, nothing)
        fires = extents.fires
        return self.results(*self._joined(before[fires], content, lo[fires], hi[fires])), later

    def _present(
        self, values: Values, lo: Places, hi: Places
    ) -> tuple[PresentValues, Places, Places]:
        """The rows without nulls, and the extents of them."""
        valid = values[self.has_sort_key].valid
        if valid is None:
            return PresentValues(values), lo, hi
        number = np.zeros(len(valid) + 1, np.intp)
        np.cumsum(valid, out=number[1:])
        columns = [column.take(np.flatnonzero(valid)) for column in values]
        columns[self.has_sort_key] = Column(
            columns[self.has_sort_key].type, columns[self.has_sort_key].data
        )
        return PresentValues(tuple(columns)), number[lo], number[hi]

    def _later(
        self, content: PresentValues, lo: Places, hi: Places, extents: Extents
    ) -> OpenValues:
        joins = np.zeros(len(lo), bool)
        joins[extents.joins] = True
        stays = extents.stays
        return OpenValues(content, lo[stays], hi[stays], joins[stays], extents.ids)

    def _joined(
        self, before: Places, content: PresentValues, lo: Places, hi: Places
    ) -> tuple[PresentValues, Places, Places]:
        """Extents preceded by the values that partitions carry; `NO_PARTITION`: none."""
        held = np.where(before == NO_PARTITION, 0, self.store.lengths[before])
        if not held.any():
            return content, lo, hi
        carried = self._carried(before[held > 0])
        both = PresentValues(
            tuple(map(Column.concat, zip(carried.columns, content.columns, strict=True))),
            self._weights(carried, content),
        )
        total, new = int(held.sum()), hi - lo
        # Of each extent, first where it is carried and then where it is new.
        starts = np.stack([np.cumsum(held) - held, lo + total], axis=1).ravel()
        lengths = np.stack([held, new], axis=1).ravel()
        ends = np.cumsum(held + new)
        return both.take(ranges(starts, lengths)), ends - held - new, ends

    def _weights(self, carried: PresentValues, content: PresentValues) -> Array | None:
        if carried.weights is None or (carried.weights == 1).all():
            return content.weights
        new = np.ones(len(content.columns[0]), np.int64)
        return np.append(carried.weights, new if content.weights is None else content.weights)

    # -- what is carried --------------------------------------------------------------------------

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        self.store.grow(size)

    def commit(self, ids: Places, later: Any) -> None:
        """Replace the values of the partitions in the batch by those that stay open."""
        assert isinstance(later, OpenValues)
        goes_on = ids[later.goes_on]
        lengths = self.store.lengths[goes_on]
        self.store.clear(later.touched)
        self.store.lengths[goes_on] = lengths
        lo, hi, content = later.lo, later.hi, later.content
        if self.prunes:
            needed = self.store.lengths[ids] + hi - lo
            crowded = needed > np.maximum(self.store.rooms[ids], SHORT_LIST)
            if crowded.any():
                joined = self._joined(ids[crowded], content, lo[crowded], hi[crowded])
                self._replace(ids[crowded], *self.pruned(*joined))
                ids, lo, hi = ids[~crowded], lo[~crowded], hi[~crowded]
        self._append(ids, content.take(ranges(lo, hi - lo)), hi - lo)
        self._pack()

    def forget(self, ids: Places) -> None:
        """Drop the state of these partitions."""
        self.store.clear(ids)

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results of the state that some partitions carry."""
        return self.results(self._carried(ids), *self._extents(ids))

    def _carried(self, ids: Places) -> PresentValues:
        """The values that some partitions carry, partition by partition."""
        planes = self.store.take(ids)
        weights = planes.pop() if self.weighted else None
        columns = []
        for each in self.kept:
            columns.append(each.get(planes[: len(each.dtypes)]))
            del planes[: len(each.dtypes)]
        return PresentValues(tuple(columns), weights)

    def _extents(self, ids: Places) -> tuple[Places, Places]:
        lengths = self.store.lengths[ids]
        ends = np.cumsum(lengths)
        return ends - lengths, ends

    def _append(self, ids: Places, content: PresentValues, lengths: Places) -> None:
        pairs = zip(self.kept, content.columns, strict=True)
        planes = [plane for each, column in pairs for plane in each.put(column)]
        if self.weighted:
            ones = np.ones(len(content.columns[0]), np.int64)
            planes.append(ones if content.weights is None else content.weights)
        self.store.append(ids, lengths, planes)

    def _replace(self, ids: Places, content: PresentValues, lengths: Places) -> None:
        self.store.clear(ids)
        self._append(ids, content, lengths)

    def _pack(self) -> None:
        """Drop values that no partition refers to from pools."""
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
        """Restore the fold's saved states."""
        self._replace(ids, *self.loaded(saved))

    def dump(self, ids: Places, held: Array) -> dict[str, Any]:
        """The values that some partitions carry, partition by partition."""
        content = self._carried(ids)
        return {
            "lengths": packed(self.store.lengths[ids]),
            "columns": [dump_column(each) for each in content.columns],
            "weights": None if content.weights is None else packed(content.weights),
        }

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        sizes, columns, weights = (
            checked_lengths(state["lengths"], len(ids)),
            state["columns"],
            None,
        )
        total = int(sizes.sum())
        need(len(columns) == len(self.types), f"{len(columns)} columns")
        need(self.weighted or state["weights"] is None, "weights")
        if self.weighted:
            weights = unpacked(state["weights"], np.int64, total)
        pairs = zip(columns, self.types, strict=True)
        content = PresentValues(
            tuple(load_column(each, kind, total) for each, kind in pairs), weights
        )
        self._replace(ids, content, sizes)

    def column(self, values: list[Any], which: int = 0) -> Column:
        """Python values as one of the function's columns; declined if that is not exact."""
        return Column.from_values(values, self.types[which])


NO_PARTITION = -1


# The values of a subwindow as they came: all of them, or the one at a place.


NONE = -1
"""The place of no value."""
MAX_LIST_VALUES = 2**31 - 1
"""The most values that lists of the plain type hold together."""


def take_or_null(values: Column, places: Places) -> Any:
    """The values at some places as an Arrow array, null for `NONE`.

    >>> take_or_null(Column.of(pa.array(["a", "b"])), np.array([1, -1])).to_pylist()
    ['b', None]
    """
    known = places != NONE
    if known.all():
        return values.take(places).arrow()
    if not known.any():
        return pa.nulls(len(places), values.type)
    if not values.physical:
        return physical.gather(values.data, pa.array(places, mask=~known))
    found = values.take(np.where(known, places, 0))
    valid = known if found.valid is None else known & found.valid
    return Column(values.type, found.data, valid).arrow()


def list_array(values: Column, lengths: Places) -> Any:
    """Values in a row as an Arrow array of lists.

    >>> list_array(Column.of(pa.array([1, 2, 3])), np.array([2, 0, 1])).to_pylist()
    [[1, 2], [], [3]]
    """
    wide = len(values) > MAX_LIST_VALUES
    offsets = np.zeros(len(lengths) + 1, np.int64 if wide else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    made = pa.LargeListArray if wide else pa.ListArray
    return made.from_arrays(pa.array(offsets), values.arrow())


def split(values: list[Any], lengths: Places) -> list[list[Any]]:
    """Values in a row as Python lists.

    >>> split([1, 2, 3], np.array([2, 0, 1]))
    [[1, 2], [], [3]]
    """
    ends = np.cumsum(lengths)
    pairs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [values[lo:hi] for lo, hi in pairs]


def check_affordable(lengths: Places, values: int) -> None:
    """Decline lists of very many values, which the event engine makes one by one.

    As many as there are `values` are affordable: extents that do not overlap have no more.
    """
    if int(lengths.sum()) > max(MAX_VALUES, values):
        raise Decline("lists of more values than are worth their memory")


MAX_VALUES = 1 << 26


class ListFunction(HolisticFunction):
    """Base of functions whose state is a list of the values."""

    def states(self, content: PresentValues, lo: Places, hi: Places) -> list[State]:
        """The values, which lie side by side."""
        values = content.columns[0].arrow().to_pylist()
        return [(each,) for each in split(values, hi - lo)]

    def loaded(self, saved: Sequence[Any]) -> tuple[PresentValues, Places]:
        """The values of all lists."""
        found = [values or [] for (values,) in saved]
        column = self.column(list(chain.from_iterable(found)))
        return PresentValues((column,)), np.array(list(map(len, found)), np.intp)


class CollectFunction(ListFunction):
    """All values, as lists."""

    overlaps = False

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """Lists of the values of each extent."""
        (values,) = content.columns
        lengths = hi - lo
        if len(lo) and np.array_equal(lo[1:], hi[:-1]):
            return list_array(values.slice(int(lo[0]), int(hi[-1])), lengths)
        check_affordable(lengths, len(values))
        return list_array(values.take(ranges(lo, lengths)), lengths)


class NthFunction(ListFunction):
    """The value at a place, counted from the start or from the end."""

    def results(self, content: PresentValues, lo: Places, hi: Places) -> Result:
        """The value there, null if there are too few."""
        k = self.definition.k
        return take_or_null(content.columns[0], self._places(k, lo, hi))

    def _places(self, k: int, lo: Places, hi: Places) -> Array:
        longest = int((hi - lo).max(initial=0))
        if not -longest <= k < longest:
            return np.full(len(lo), NONE)
        places = lo + k if k >= 0 else hi + k
        return np.where((places >= lo) & (places < hi), places, NONE)
