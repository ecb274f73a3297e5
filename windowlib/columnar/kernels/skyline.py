"""Which points are best in several dimensions at once: skylines and dominance factors.

Points are float64 arrays of shape (dimensions, points), finite, and the smaller the better. A
point *dominates* another if it is nowhere greater and somewhere less. Equal points do not dominate
one another. The *factor* of a point is the largest number of dimensions in which some other point
is not greater, of those that are less in at least one: 0 if there is none, and all dimensions if
the point is dominated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowlib.columnar import primitives
from windowlib.columnar.primitives import dominance
from windowlib.columnar.primitives.dominance import Factors, Mask, Parts, Places

__all__ = [
    "Factors",
    "Mask",
    "Parts",
    "Places",
    "Points",
    "factors",
    "skyline",
    "smallest",
]

Points = npt.NDArray[np.float64]
Sums = npt.NDArray[np.float64]

MIN_POINTS = 64
"""Fewer points are not worth loading what is compiled for many."""
MIN_PART_POINTS = 256
"""Parts of fewer points are compared among themselves, too: fewer and longer looks are faster."""


def skyline(points: Points, part: Parts | None = None) -> Places:
    """The places of the points that no other dominates, ascending.

    Args:
        points: the points.
        part: if they are those of several skylines, of which one each is, counted from 0: points
            of the same one are not compared again.

    >>> skyline(np.array([[1.0, 2.0, 2.0, 3.0], [3.0, 2.0, 2.0, 3.0]]))
    array([0, 1, 2])
    >>> skyline(np.array([[1.0, 4.0, 2.0, 3.0], [5.0, 1.0, 2.0, 1.0]]), np.array([0, 0, 1, 1]))
    array([0, 2, 3])
    """
    if points.shape[1] < 2:
        return np.arange(points.shape[1])
    if len(points) == 1:
        return np.flatnonzero(points[0] == points[0].min())
    if part is not None and points.shape[1] < MIN_PART_POINTS * (int(part.max()) + 1):
        part = None
    sums = _sums(points)
    left = _hopeful(points, sums)
    points, sums, part = points.take(left, axis=1), sums[left], None if part is None else part[left]
    order, group = _by_sum(points, sums)
    if group is None:
        return np.sort(left[order[_front(points, order, part)]])
    heads = order[np.flatnonzero(np.diff(group, prepend=-1))]
    found = np.zeros(len(heads), bool)
    # Of equal points in several parts, that of any part will do: none of them beats it.
    found[_front(points, heads, part)] = True
    return np.sort(left[order[found[group]]])


def _sums(points: Points) -> Sums:
    """The sum of the coordinates of each point: not greater than that of one it dominates."""
    sums: Sums = points[0].copy()
    for more in points[1:]:  # one by one: rounding then keeps the order, which it need not else
        sums += more
    return sums


def _hopeful(points: Points, sums: Sums) -> Places:
    """The places of points that are not dominated by one with the least sum."""
    least = int(sums.argmin())
    found: Places = (dominance.less_somewhere(points, least) | (sums == sums[least])).nonzero()[0]
    return found


def _by_sum(points: Points, sums: Sums) -> tuple[Places, Places | None]:
    """An order in which no point comes after one that it dominates; and groups of equal points.

    The groups are numbers that ascend in this order; None if all points differ.
    """
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


def _front(points: Points, order: Places, part: Parts | None) -> Places:
    """Where in this order the skyline is; the points in it all differ."""
    points, part = points.take(order, axis=1), None if part is None else part[order]
    if len(order) >= MIN_POINTS:
        return primitives.skyline_places(points, part)
    return dominance.skyline_places(points, part)


def factors(points: Points, by: Points | None = None) -> Factors:
    """The factors of points of a skyline, which are the same among all points.

    A point that is less somewhere is dominated by, or on, the skyline, and what dominates
    it is not greater than the point in as many dimensions and less in one, too.

    Args:
        points: the points.
        by: what is less is looked for among these, of the same skyline; None: among the points.

    >>> factors(np.array([[1.0, 2.0, 9.0], [9.0, 2.0, 1.0], [1.0, 1.0, 1.0]]))
    array([2, 2, 2])
    """
    by = points if by is None else by
    if by.shape[1] >= MIN_POINTS:
        return primitives.dominance_counts(points, by)
    return dominance.dominance_counts(points, by)


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
