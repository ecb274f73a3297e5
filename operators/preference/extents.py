"""The answers of many firings at once: what windows have in common is looked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from operators.preference.rules import Answer, Rule

if TYPE_CHECKING:
    from windowlib.columnar.dominance import Places, Points

SLICE = 64
"""The fewest points of a slice: of fewer, too few can be left out."""


def answers(rule: Rule, points: Points, lo: Places, hi: Places) -> list[Answer]:
    """The answer for each extent `[lo, hi)` of points, by places among all of them."""
    import numpy as np

    span = int(hi.max(initial=0) - lo.min(initial=points.shape[1]))
    shared = int((hi - lo).sum()) > 2 * max(span, SLICE)
    slices = _Slices(rule, points, np.unique(np.concatenate([lo, hi]))) if shared else None
    found = []
    for first, last in zip(lo.tolist(), hi.tolist(), strict=True):
        if slices is None:
            places, more = rule.answer(points[:, first:last])
            found.append(Answer(places + first, more))
        else:
            there = slices.candidates(first, last)
            places, more = rule.answer(points[:, there])
            found.append(Answer(there[places], more))
    return found


class _Slices:
    """Stretches of points from one edge of an extent to another, and what survives of each."""

    def __init__(self, rule: Rule, points: Points, edges: Any) -> None:
        self._rule, self._points = rule, points
        self._edges = self._apart(edges.tolist())
        self._known: dict[int, Places] = {}

    def _apart(self, edges: list[int]) -> list[int]:
        """The edges without those that would make a slice too short."""
        kept = edges[:1]
        for edge in edges:
            if edge - kept[-1] >= SLICE:
                kept.append(edge)
        return kept

    def candidates(self, lo: int, hi: int) -> Places:
        """Places in an extent, with all that may be in its answer."""
        from bisect import bisect_left, bisect_right

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
