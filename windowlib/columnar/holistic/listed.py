"""The values of a subwindow as they came: all of them, or the one at a place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar import physical
from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.holistic.base import Content, Holistic
from windowlib.columnar.kernels.base import Array, Result
from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges
from windowlib.folds import State

NONE = -1
"""The place of no value."""
MOST = 2**31 - 1
"""The most values that lists of the plain type hold together."""


def picked(values: Column, places: Places) -> Any:
    """The values at some places as an Arrow array, null for `NONE`.

    >>> picked(Column.of(pa.array(["a", "b"])), np.array([1, -1])).to_pylist()
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


def lists(values: Column, lengths: Places) -> Any:
    """Values in a row as an Arrow array of lists.

    >>> lists(Column.of(pa.array([1, 2, 3])), np.array([2, 0, 1])).to_pylist()
    [[1, 2], [], [3]]
    """
    wide = len(values) > MOST
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


def affordable(lengths: Places, values: int) -> None:
    """Leave lists of very many values to the event engine, which makes them one by one.

    As many as there are `values` are affordable: extents that do not overlap have no more.
    """
    if int(lengths.sum()) > max(MANY, values):
        raise Decline("lists of more values than are worth their memory")


MANY = 1 << 26


class Listed(Holistic):
    """Base of functions whose state is a list of the values."""

    def states(self, content: Content, lo: Places, hi: Places) -> list[State]:
        """The values, which lie side by side."""
        values = content.columns[0].arrow().to_pylist()
        return [(each,) for each in split(values, hi - lo)]

    def loaded(self, saved: Sequence[Any]) -> tuple[Content, Places]:
        """The values of all lists."""
        found = [values or [] for (values,) in saved]
        column = self.column(list(chain.from_iterable(found)))
        return Content((column,)), np.array(list(map(len, found)), np.intp)


class Collected(Listed):
    """All values, as lists."""

    overlaps = False

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """Lists of the values of each extent."""
        (values,) = content.columns
        lengths = hi - lo
        if len(lo) and np.array_equal(lo[1:], hi[:-1]):
            return lists(values.slice(int(lo[0]), int(hi[-1])), lengths)
        affordable(lengths, len(values))
        return lists(values.take(ranges(lo, lengths)), lengths)


class NthValue(Listed):
    """The value at a place, counted from the start or from the end."""

    def results(self, content: Content, lo: Places, hi: Places) -> Result:
        """The value there, null if there are too few."""
        k = self.definition.k
        return picked(content.columns[0], self._places(k, lo, hi))

    def _places(self, k: int, lo: Places, hi: Places) -> Array:
        longest = int((hi - lo).max(initial=0))
        if not -longest <= k < longest:
            return np.full(len(lo), NONE)
        places = lo + k if k >= 0 else hi + k
        return np.where((places >= lo) & (places < hi), places, NONE)
