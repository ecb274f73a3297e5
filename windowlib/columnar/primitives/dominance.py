"""Points compared with others, in blocks of pairs; see `kernels.skyline` for the words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[Any]
Places = npt.NDArray[np.intp]
Parts = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Factors = npt.NDArray[np.int64]

BLOCK = 256
"""Points that are compared at once: with as many others, the pairs fit the cache."""
FIRST = 16
"""How many of the best points a block is compared with first, which removes most of it."""
MANY = 0.25
"""The share of points on the skyline from which on the first look removes too few to pay."""
STRONG = 8
"""At most so many points are compared with all others, one by one, before the rest."""
WORTH = 0.125
"""The share of points that such a point has to remove, or no other is tried."""
RANKED = 512
"""From so many points on, comparing short ranks saves more than ranking takes."""


def skyline_places(points: Points, part: Parts | None = None) -> Places:
    """As `primitives.skyline_places`."""
    left = _pruned(points)
    rest = _ranks(points.take(left, axis=1))
    return left[_by_blocks(rest, None if part is None else part[left])]


def _pruned(points: Points) -> Places:
    """The places that are left by the strongest points, which are the first of those left."""
    left = np.arange(points.shape[1])
    for number in range(STRONG):
        if len(left) <= number:
            break
        keep = less_somewhere(points, number)
        keep[: number + 1] = True
        kept = keep.nonzero()[0]
        left, points = left[kept], points.take(kept, axis=1)
        # What the first removes may be gone already, as in `dominance`.
        if number and len(keep) - len(kept) < WORTH * len(keep):
            break
    return left


def less_somewhere(points: Points, place: int) -> Mask:
    """Which points are less than the one at a place, in any dimension."""
    found: Mask = points[0] < points[0, place]
    for values in points[1:]:
        found |= values < values[place]
    return found


def _by_blocks(points: Points, part: Parts | None) -> Places:
    """The front, block by block, each compared with what is known of it from those before."""
    size = points.shape[1]
    labels = np.zeros(size, np.intp) if part is None else part
    best = [points[:, :0] for _ in range(labels.max(initial=-1) + 1)]
    places: list[Places] = []
    known = 0
    for start in range(0, size, BLOCK):
        here = np.arange(start, min(start + BLOCK, size))
        first = FIRST if known < MANY * start else BLOCK
        for number, rivals in enumerate(best):
            own = None if part is None else labels[here] == number
            here = here[_left(points.take(here, axis=1), rivals, first, own)]
        block = points.take(here, axis=1)
        among = _nowhere_greater(block, block)
        np.fill_diagonal(among, False)
        here = here[~among.any(axis=0)]
        for number, rivals in enumerate(best):
            added = points.take(here[labels[here] == number], axis=1)
            best[number] = np.concatenate([rivals, added], axis=1)
        places.append(here)
        known += len(here)
    return np.concatenate(places) if places else np.arange(0)


def _ranks(points: Points) -> Points:
    """Short numbers that compare as the coordinates do, which is faster; if that pays."""
    if not RANKED <= points.shape[1] <= np.iinfo(np.uint16).max:
        return points
    found = np.empty(points.shape, np.uint16)
    for values, ranks in zip(points, found, strict=True):
        order = np.argsort(values, kind="stable")
        placed = values[order]
        ranks[order] = np.append(0, np.cumsum(placed[1:] != placed[:-1]))
    return found


def _left(block: Points, rivals: Points, first: int, own: Mask | None) -> Mask:
    """Which points of a block are left by the rivals; their own points are not compared."""
    keep = np.ones(block.shape[1], bool)
    left = np.arange(block.shape[1]) if own is None else np.flatnonzero(~own)
    block = block if own is None else block.take(left, axis=1)
    for lo, hi in _chunks(rivals.shape[1], first):
        if not len(left):
            break
        unbeaten = ~_nowhere_greater(rivals[:, lo:hi], block).any(axis=0)
        if not unbeaten.all():
            keep[left[~unbeaten]] = False
            left, block = left[unbeaten], block.compress(unbeaten, axis=1)
    return keep


def _chunks(size: int, first: int) -> Iterator[tuple[int, int]]:
    """Ranges up to `size`, the first one shorter."""
    lo, step = 0, first
    while lo < size:
        yield lo, min(lo + step, size)
        lo, step = lo + step, BLOCK


def _nowhere_greater(ones: Points, others: Points) -> Mask:
    """For each of the ones and each of the others, whether the one is nowhere greater."""
    found: Mask = ones[0][:, None] <= others[0]
    for one, other in zip(ones[1:], others[1:], strict=True):
        found &= one[:, None] <= other
    return found


def dominance_counts(points: Points, by: Points) -> Factors:
    """As `primitives.dominance_counts`."""
    dimensions, size = points.shape
    both = _ranks(np.concatenate([points, by], axis=1))
    points, by = both[:, :size], both[:, size:]
    found = np.zeros(size, np.int64)
    for start in range(0, size, BLOCK):
        left = np.arange(start, min(start + BLOCK, size))
        for lo, hi in _chunks(by.shape[1], BLOCK):
            counts = _not_greater(by[:, lo:hi], points.take(left, axis=1))
            counts[counts == dimensions] = 0  # equal, as none dominates another
            found[left] = np.maximum(found[left], counts.max(axis=0))
            left = left[found[left] < dimensions - 1]
            if not len(left):
                break
    return found


def _not_greater(ones: Points, others: Points) -> npt.NDArray[Any]:
    """For each of the ones and each of the others, in how many dimensions it is not greater."""
    kind = np.uint8 if len(ones) < 256 else np.uint16
    counts = np.zeros((ones.shape[1], others.shape[1]), kind)
    for one, other in zip(ones, others, strict=True):
        counts += (one[:, None] <= other).view(np.uint8)
    return counts
