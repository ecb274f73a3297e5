"""The order of rows within extents: keys as integers, and all extents sorted at once.

A key column becomes int64 numbers in which direction, nulls and NaN have their place already.
Extents of about the same length are the rows of a matrix, and numpy sorts each row by itself: a
short extent costs what a short sort costs, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.physical import gather_rows
from windowlib.columnar.primitives.grouping import Places, ranges, rising
from windowlib.window.consumer import Decline

Ints = npt.NDArray[np.int64]

LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
MAX_RUNS = 64
"""Runs of rows in order up to which it pays to see whether they need only change places."""


def sort_key(column: Column, *, descending: bool, nulls_first: bool) -> Ints:
    """Integers that ascend where the rows of a column come in order.

    NaN is the largest number, and nulls come first or last in either direction.

    >>> import pyarrow as pa
    >>> column = Column.of(pa.array([1.5, None, float("nan"), -2.0]))
    >>> np.argsort(sort_key(column, descending=True, nulls_first=False)).tolist()
    [2, 0, 3, 1]
    """
    data = column.order_keys()
    found = rising(data) if data.dtype.kind == "f" else data
    if descending:
        found = ~found  # unlike -x, this has no number that is too large
    if column.valid is None:
        return found
    if (found <= LOWEST).any() or (found >= HIGHEST).any():
        found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return np.where(column.valid, found, LOWEST if nulls_first else HIGHEST)


def within(keys: Sequence[Ints], sizes: Places, limit: int | None = None) -> tuple[Places, Places]:
    """The places of rows in order, extent by extent, and how many each extent has.

    The extents follow each other from place 0 on and have `sizes`; of each, at most `limit` rows
    come. Rows with equal keys stay as they are. Of several keys the first says most.

    >>> places, lengths = within([np.array([3, 1, 2, 9, 8])], np.array([3, 2]), limit=2)
    >>> places.tolist(), lengths.tolist()
    ([1, 2, 4, 3], [2, 2])
    """
    starts = np.cumsum(sizes) - sizes
    lengths = sizes if limit is None else np.minimum(sizes, limit)
    if len(sizes) and (sizes == sizes[0]).all():  # as those of count windows are
        return _class(keys, starts, sizes, int(sizes[0]), lengths), lengths
    found = np.empty(int(lengths.sum()), np.int64)
    ends = np.cumsum(lengths)
    widths = _widths(sizes)
    for width in np.unique(widths):
        some = np.flatnonzero(widths == width)
        places = _class(keys, starts[some], sizes[some], int(width), lengths[some])
        found[ranges((ends - lengths)[some], lengths[some])] = places
    return found, lengths


def _widths(sizes: Places) -> Places:
    """The next power of two of each size, so that few matrices do for all, not half full each."""
    exponents = np.frexp(np.maximum(sizes - 1, 0))[1]
    return np.left_shift(1, exponents.astype(np.int64))


def _class(
    keys: Sequence[Ints], starts: Places, sizes: Places, width: int, lengths: Places
) -> Places:
    """The places in order of extents that fit the rows of a matrix."""
    columns = np.arange(width)
    at = starts[:, np.newaxis] + columns
    beyond = None if (sizes == width).all() else columns >= sizes[:, np.newaxis]
    tables = [_table(key, at, beyond) for key in keys]
    if len(tables) == 1:
        order = np.argsort(tables[0], axis=1, kind="stable")
    else:
        order = np.lexsort(tables[::-1], axis=1)
    order += starts[:, np.newaxis]
    found: Places = order[columns < lengths[:, np.newaxis]]
    return found


def _table(key: Ints, at: Places, beyond: npt.NDArray[np.bool_] | None) -> Ints:
    """A key as a matrix; behind the end of an extent it is as large as can be, and comes last."""
    if beyond is None:
        return key[at]
    table = key[np.minimum(at, len(key) - 1)]
    table[beyond] = HIGHEST  # after an equal one in the extent, because the order is stable
    return table


def sorted_rows(batch: Any, names: Sequence[Any]) -> Any:
    """An Arrow batch or table in the order of columns; None if only Python compares the values."""
    try:
        keys = _order_keys(batch, names)
    except Decline:
        return None
    cuts = _descents(keys)
    if not len(cuts):
        return batch
    if isinstance(batch, pa.Table) and (runs := _apart(keys, cuts)):
        return pa.concat_tables([batch.slice(lo, hi - lo) for lo, hi in runs])
    return gather_rows(batch, pa.array(np.lexsort(keys[::-1])))


def order_of(batch: Any, names: Sequence[Any]) -> Places | None:
    """The order of rows by some columns, nulls first and NaN last; None if they are in order.

    `Decline` if it takes Python to compare them.
    """
    keys = _order_keys(batch, names)
    return np.lexsort(keys[::-1]) if len(_descents(keys)) else None


def _order_keys(batch: Any, names: Sequence[Any]) -> list[Ints]:
    """Integers that ascend as rows in order do, for each column."""
    keys = []
    for name in names:
        if not isinstance(name, str) or batch.schema.get_field_index(name) < 0:
            raise Decline(f"{name!r} is no single column")
        column = Column.of(batch.column(name))
        keys.append(sort_key(column, descending=False, nulls_first=True))
    return keys


def _descents(keys: Sequence[Ints]) -> Places:
    """The rows that come after one which they belong before: this costs less than to sort."""
    first, *others = keys
    down = first[1:] < first[:-1]
    tied = first[1:] == first[:-1] if others else down
    for key in others:
        down |= tied & (key[1:] < key[:-1])
        tied &= key[1:] == key[:-1]
    return np.flatnonzero(down) + 1


def _apart(keys: Sequence[Ints], cuts: Places) -> list[tuple[int, int]]:
    """Runs of rows that only have to change places, as the chunks of tasks do; else none."""
    if len(cuts) >= MAX_RUNS:
        return []

    def at(row: int) -> tuple[int, ...]:
        return tuple([int(key[row]) for key in keys])

    bounds = pairwise([0, *cuts.tolist(), len(keys[0])])
    runs = sorted([(at(lo), lo, at(hi - 1), hi) for lo, hi in bounds])
    # Of rows that are equal, those of the earlier run come first.
    pairs = pairwise(runs)
    in_turn = all((last, lo) < (first, after) for (_, lo, last, _), (first, after, *_) in pairs)
    return [(lo, hi) for _, lo, _, hi in runs] if in_turn else []
