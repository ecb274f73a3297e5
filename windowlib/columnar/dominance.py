"""Which points are best in several dimensions at once: skylines and dominance factors.

Points are float64 arrays of shape (dimensions, points), finite, and the smaller the better. A
point *dominates* another if it is nowhere greater and somewhere less. Equal points do not dominate
one another. The *factor* of a point is the largest number of dimensions in which some other point
is not greater, of those that are less in at least one: 0 if there is none, and all dimensions if
the point is dominated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Factors = npt.NDArray[np.int64]

BLOCK = 256
"""Points that are compared at once: with as many others, the pairs fit the cache."""
FIRST = 16
"""How many of the best points a block is compared with first, which removes most of it."""
MANY = 0.25
"""The share of points on the skyline from which on the first look removes too few to pay."""


def skyline(points: Points) -> Places:
    """The places of the points that no other dominates, ascending.

    >>> skyline(np.array([[1.0, 2.0, 2.0, 3.0], [3.0, 2.0, 2.0, 3.0]]))
    array([0, 1, 2])
    """
    if points.shape[1] < 2:
        return np.arange(points.shape[1])
    if len(points) == 1:
        return np.flatnonzero(points[0] == points[0].min())
    order, group = _by_sum(points)
    if group is None:
        return np.sort(order[_front(points[:, order])])
    heads = order[np.flatnonzero(np.diff(group, prepend=-1))]
    found = np.zeros(len(heads), bool)
    found[_front(points[:, heads])] = True
    return np.sort(order[found[group]])


def _by_sum(points: Points) -> tuple[Places, Places | None]:
    """An order in which no point comes after one that it dominates; and groups of equal points.

    The groups are numbers that ascend in this order; None if all points differ.
    """
    sums = points[0].copy()
    for more in points[1:]:  # one by one: rounding then keeps the order, which it need not else
        sums += more
    order = np.argsort(sums, kind="stable")
    placed = sums[order]
    if (placed[1:] > placed[:-1]).all():
        return order, None
    # Sums may be equal though one dominates the other: what is less somewhere comes first then.
    order = np.lexsort((*points[::-1], sums))
    placed = points[:, order]
    fresh = (placed[:, 1:] != placed[:, :-1]).any(axis=0)
    if fresh.all():
        return order, None
    return order, np.append(0, np.cumsum(fresh))


def _front(points: Points) -> Places:
    """The skyline of points that all differ, none after one that it dominates."""
    size = points.shape[1]
    best, places, known = np.empty_like(points), np.empty(size, np.intp), 0
    for start in range(0, size, BLOCK):
        here = np.arange(start, min(start + BLOCK, size))
        eager = known < MANY * start
        here = here[_left(points[:, here], best[:, :known], FIRST if eager else BLOCK)]
        block = points[:, here]
        among = _nowhere_greater(block, block)
        np.fill_diagonal(among, False)
        here = here[~among.any(axis=0)]
        best[:, known : known + len(here)] = points[:, here]
        places[known : known + len(here)] = here
        known += len(here)
    return places[:known]


def _left(block: Points, best: Points, first: int) -> Places:
    """The places in a block that none of the best points is nowhere greater than."""
    left = np.arange(block.shape[1])
    for lo, hi in _chunks(best.shape[1], first):
        keep = ~_nowhere_greater(best[:, lo:hi], block).any(axis=0)
        if not keep.all():
            left, block = left[keep], block[:, keep]
            if not len(left):
                break
    return left


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


def dominated(points: Points, by: Points) -> Mask:
    """Which of the points are dominated by any of the others.

    >>> dominated(np.array([[1.0, 5.0], [5.0, 5.0]]), np.array([[1.0], [5.0]]))
    array([False,  True])
    """
    found = np.zeros(points.shape[1], bool)
    for start in range(0, points.shape[1], BLOCK):
        block = points[:, start : start + BLOCK]
        left = np.arange(block.shape[1])
        for lo, hi in _chunks(by.shape[1], BLOCK):
            rivals, rest = by[:, lo:hi], block[:, left]
            beaten = (_nowhere_greater(rivals, rest) & ~_nowhere_greater(rest, rivals).T).any(0)
            found[start + left[beaten]] = True
            left = left[~beaten]
    return found


def merged(ones: Points, others: Points) -> tuple[Places, Places]:
    """What is left of two skylines in that of all their points; none beats one of its own.

    >>> merged(np.array([[1.0, 4.0], [5.0, 1.0]]), np.array([[2.0, 3.0], [2.0, 1.0]]))
    (array([0]), array([0, 1]))
    """
    return np.flatnonzero(~dominated(ones, others)), np.flatnonzero(~dominated(others, ones))


def factors(points: Points, by: Points) -> Factors:
    """The factor of each of the points, among the others.

    >>> factors(np.array([[5.0], [5.0]]), np.array([[1.0, 9.0], [5.0, 4.0]]))
    array([2])
    """
    found = np.zeros(points.shape[1], np.int64)
    for start in range(0, points.shape[1], BLOCK):
        block = points[:, start : start + BLOCK]
        for lo, hi in _chunks(by.shape[1], BLOCK):
            most = _counts(block, by[:, lo:hi]).max(axis=0)
            np.maximum(found[start : start + BLOCK], most, out=found[start : start + BLOCK])
    return found


def _counts(points: Points, by: Points) -> npt.NDArray[Any]:
    """In how many dimensions each rival is not greater than each point; 0 if it is nowhere less."""
    counts, never = _not_greater(points, by), np.ones((by.shape[1], points.shape[1]), bool)
    for rival, point in zip(by, points, strict=True):
        never &= rival[:, None] >= point
    counts[never] = 0
    return counts


def factors_within(points: Points) -> Factors:
    """The factors of the points of a skyline, which are the same among all points.

    Whoever is less than a point somewhere is dominated by, or on, the skyline, and what dominates
    it is not greater than the point in as many dimensions and less in one, too.

    >>> factors_within(np.array([[1.0, 2.0, 9.0], [9.0, 2.0, 1.0], [1.0, 1.0, 1.0]]))
    array([2, 2, 2])
    """
    found = np.zeros(points.shape[1], np.int64)
    for start in range(0, points.shape[1], BLOCK):
        block = points[:, start : start + BLOCK]
        for lo, hi in _chunks(points.shape[1], BLOCK):
            counts = _not_greater(block, points[:, lo:hi])
            counts[counts == len(points)] = 0  # equal, as none dominates another
            most = counts.max(axis=0)
            np.maximum(found[start : start + BLOCK], most, out=found[start : start + BLOCK])
    return found


def _not_greater(points: Points, by: Points) -> npt.NDArray[Any]:
    """In how many dimensions each rival is not greater than each point."""
    kind = np.uint8 if len(points) < 256 else np.uint16
    counts = np.zeros((by.shape[1], points.shape[1]), kind)
    for rival, point in zip(by, points, strict=True):
        counts += (rival[:, None] <= point).view(np.uint8)
    return counts


def smallest(score: npt.NDArray[np.float64], k: int) -> Places:
    """The places of the k smallest, of equal ones those that come first; ascending.

    >>> smallest(np.array([2.0, 1.0, 2.0, 0.0]), 3)
    array([0, 1, 3])
    """
    if len(score) <= k:
        return np.arange(len(score))
    limit = np.partition(score, k - 1)[k - 1]
    sure = np.flatnonzero(score < limit)
    return np.sort(np.append(sure, np.flatnonzero(score == limit)[: k - len(sure)]))
