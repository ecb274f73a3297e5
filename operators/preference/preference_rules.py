"""Preference rules: the points of a part that may be in the answer, and those that are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from windowlib.columnar.kernels.skyline import Factors, Parts, Places, Points


class PreferredPlaces(NamedTuple):
    """The places of the best points, ascending, and a value for each in every column added."""

    places: Places
    more: tuple[Any, ...] = ()


class PreferenceRule:
    """The points that no other point dominates: the skyline.

    `survivors` keeps whatever can be in the answer for more points than these, so parts can be
    worked on apart: the survivors of all points are those of the survivors of the parts.
    """

    factored = False
    """Whether the answer depends on dominance factors."""

    def survivors(self, points: Points) -> Places:
        """The places of the points that can be in the answer, ascending."""
        from windowlib.columnar.kernels.skyline import skyline

        return skyline(points)

    def merged_survivors(self, points: Points, part: Parts) -> Places:
        """The survivors of the survivors of several parts; `part` tells these apart."""
        from windowlib.columnar.kernels.skyline import skyline

        return skyline(points, part)

    def answer(self, points: Points) -> PreferredPlaces:
        """The answer for points of which none is left out."""
        places = self.survivors(points)
        if not self.factored:
            return PreferredPlaces(places)
        found = self.factors(points.take(places, axis=1))
        chosen, more = self.select(found, len(points))
        return PreferredPlaces(places[chosen], more)

    def factors(self, points: Points) -> Factors:
        """The dominance factors of survivors."""
        from windowlib.columnar.kernels.skyline import factors

        return factors(points)

    def merged_factors(self, points: Points, part: Parts, known: Factors) -> Factors:
        """The factors of survivors of several parts, given those within each part."""
        import numpy as np

        from windowlib.columnar.kernels.skyline import factors

        found = known.copy()
        for number in np.unique(part):
            own = part == number
            others = factors(points.compress(own, axis=1), points.compress(~own, axis=1))
            found[own] = np.maximum(found[own], others)
        return found

    def select(self, factors: Factors, dimensions: int) -> PreferredPlaces:
        """The survivors in the answer, given the factors of all of them."""
        raise NotImplementedError


class DominantRule(PreferenceRule):
    """The points that no other is better than in k dimensions."""

    factored = True

    def __init__(self, k: int) -> None:
        self.k = k

    def select(self, factors: Factors, dimensions: int) -> PreferredPlaces:
        """The survivors with a factor less than k."""
        return PreferredPlaces((factors < self.k).nonzero()[0])


class DeltaRule(PreferenceRule):
    """The delta points with the smallest factors, or all up to the factor that makes so many."""

    factored = True

    def __init__(self, delta: int, exact: bool) -> None:
        self.delta, self.exact = delta, exact

    def select(self, factors: Factors, dimensions: int) -> PreferredPlaces:
        """The survivors with the smallest factors, of equal ones the earlier; with factor and k."""
        import numpy as np

        found = np.arange(len(factors))
        k = dimensions
        if len(factors) >= self.delta:
            best = np.argsort(factors, kind="stable")[: self.delta]
            k = int(factors[best[-1]]) + 1
            found = np.sort(best) if self.exact else np.flatnonzero(factors < k)
        return PreferredPlaces(found, (factors[found], np.full(len(found), k, np.int64)))


class SmallestRule(PreferenceRule):
    """The k points with the smallest score."""

    def __init__(self, k: int) -> None:
        self.k = k

    def survivors(self, points: Points) -> Places:
        """The k smallest, of equal ones the earlier."""
        from windowlib.columnar.kernels.skyline import smallest

        return smallest(points[0], self.k)

    def merged_survivors(self, points: Points, part: Parts) -> Places:
        """The k smallest of all parts."""
        return self.survivors(points)


# -- many firings ---------------------------------------------------------------------------------


SLICE = 64
"""The fewest points of a slice: of fewer, too few can be left out."""


def answers(rule: PreferenceRule, points: Points, lo: Places, hi: Places) -> list[PreferredPlaces]:
    """The answer for each extent `[lo, hi)` of points, by places among all of them."""
    import numpy as np

    span = int(hi.max(initial=0) - lo.min(initial=points.shape[1]))
    shared = int((hi - lo).sum()) > 2 * max(span, SLICE)
    slices = _Slices(rule, points, np.unique(np.concatenate([lo, hi]))) if shared else None
    found = []
    for first, last in zip(lo.tolist(), hi.tolist(), strict=True):
        if slices is None:
            places, more = rule.answer(points[:, first:last])
            found.append(PreferredPlaces(places + first, more))
        else:
            there = slices.candidates(first, last)
            places, more = rule.answer(points[:, there])
            found.append(PreferredPlaces(there[places], more))
    return found


class _Slices:
    """The points from one edge of an extent to the next, and what survives of each."""

    def __init__(self, rule: PreferenceRule, points: Points, edges: Any) -> None:
        self._rule, self._points = rule, points
        self._edges = self._spaced(edges.tolist())
        self._known: dict[int, Places] = {}

    def _spaced(self, edges: list[int]) -> list[int]:
        """The edges without those that would make a slice too short."""
        kept = edges[:1]
        for edge in edges:
            if edge - kept[-1] >= SLICE:
                kept.append(edge)
        return kept

    def candidates(self, lo: int, hi: int) -> Places:
        """Places in an extent, with all that may be in its answer."""
        import numpy as np

        first, last = bisect_left(self._edges, lo), bisect_right(self._edges, hi) - 1
        if last <= first:
            return np.arange(lo, hi)
        inner = [self._survivors(number) for number in range(first, last)]
        head, tail = np.arange(lo, self._edges[first]), np.arange(self._edges[last], hi)
        return np.concatenate([head, *inner, tail])

    def _survivors(self, number: int) -> Places:
        found = self._known.get(number)
        if found is None:
            lo, hi = self._edges[number : number + 2]
            found = self._known[number] = self._rule.survivors(self._points[:, lo:hi]) + lo
        return found
