"""Extents in the order in which a window slides over the layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windowlib.columnar.pieces import Places
from windowlib.columnar.primitives import ranges

AT_ONCE = 1 << 22
"""About how many values are copied at a time."""


def forward(lo: Places, hi: Places) -> Places:
    """An order of extents in which starts ascend, and ends where starts are equal."""
    if (lo[1:] >= lo[:-1]).all() and (hi[1:] >= hi[:-1]).all():
        return np.arange(len(lo))
    return np.lexsort((hi, lo))


def portions(counts: Places, most: int) -> Iterator[slice]:
    """Runs of extents that have about `most` values together.

    >>> list(portions(np.array([3, 3, 9, 1]), 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + most, "right")), start + 1)
        yield slice(start, end)
        start = end


@dataclass(slots=True)
class Forward:
    """Extents whose starts and ends both ascend, over places of their own; none is empty."""

    which: Places
    """Their numbers among all extents."""
    places: Places | slice
    """The places that theirs stand for."""
    lo: Places
    hi: Places


def forwards(lo: Places, hi: Places) -> Iterator[Forward]:
    """All extents that are not empty: at once if a window slides like that, else copied out.

    >>> [each] = forwards(np.array([5, 9, 3]), np.array([9, 9, 6]))
    >>> each.which.tolist(), each.places, each.lo.tolist(), each.hi.tolist()
    ([2, 0], slice(3, 9, None), [0, 2], [3, 6])
    """
    which = np.flatnonzero(hi > lo)
    if not len(which):
        return
    which = which[forward(lo[which], hi[which])]
    lo, hi = lo[which], hi[which]
    if (hi[1:] >= hi[:-1]).all():
        first, last = int(lo[0]), int(hi[-1])
        yield Forward(which, slice(first, last), lo - first, hi - first)
        return
    lengths = hi - lo
    for part in portions(lengths, AT_ONCE):
        ends = np.cumsum(lengths[part])
        places = ranges(lo[part], lengths[part])
        yield Forward(which[part], places, ends - lengths[part], ends)
