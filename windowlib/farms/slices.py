"""Slices: pieces of the axis that windows are made of, so that windows can share their results.

Panes all have one length, the greatest common divisor of size and slide. Pairs are cut only where a
window starts or ends: at most two a slide, however small the divisor is.

    size 5, slide 2     0 . 1 . 2 . 3 . 4 . 5 . 6 . 7
    panes               |   |   |   |   |   |   |   |     5 a window, 2 a slide
    pairs               |   |   |   |   |   |   |   |     the same here
    size 18, slide 5    panes of 1: 18 a window;  pairs of 3 and 2: 7 a window

Seen from the slices, windows are again windows: `per_window` slices, one every `per_slide`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from windowlib.farms.axis import Exact, exact, floors
from windowlib.farms.regular import Regular, TimeWindows


@dataclass(frozen=True, slots=True)
class Slices:
    """How the windows of a model are cut.

    Slice numbers start with 0 at the start of window 0, and are negative before it.

    Args:
        model: the windows.
        per_window: how many slices make up a window.
        per_slide: how many slices a slide has.
        period: the length after which the cuts are the same again.
        cuts: where the slices of one period begin, counted from its start; the first is 0.
    """

    model: Regular
    per_window: int
    per_slide: int
    period: Exact
    cuts: tuple[Exact, ...] = (0,)
    _windows: TimeWindows = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        windows = TimeWindows(self.per_window, self.per_slide, lowest=self.model.lowest)
        object.__setattr__(self, "_windows", windows)

    def of(self, x: Any) -> Any:
        """The slice that holds a point, or each of an array of points."""
        # The n-th cuts of all periods are a grid of their own: count those before the point.
        found = [floors(x, self.model.phase + cut, self.period) + 1 for cut in self.cuts]
        return sum(found[1:], found[0]) - 1

    def extent(self, p: int) -> tuple[Exact, Exact]:
        """The interval `[lo, hi)` of a slice."""
        return self._cut(p), self._cut(p + 1)

    def _cut(self, p: int) -> Exact:
        periods, number = divmod(p, len(self.cuts))
        begin: Exact = self.model.phase + periods * self.period + self.cuts[number]
        return begin

    def panes_of(self, w: Any) -> Any:
        """The slices of a window, as a range; of an array of windows, a row of slices each."""
        if isinstance(w, np.ndarray):
            return w[:, None] * self.per_slide + np.arange(self.per_window)
        return range(w * self.per_slide, w * self.per_slide + self.per_window)

    def windows_of_pane(self, p: Any) -> Any:
        """The windows that a slice is part of, as a range; none for a gap between windows.

        Of an array of slices: two arrays, with a row number and a window for each.
        """
        return self._windows.windows(p)


def panes(model: Regular) -> Slices:
    """Slices of equal length.

    >>> from windowlib.farms.models import CountWindows
    >>> cut = panes(CountWindows(5, 2))
    >>> cut.per_window, cut.per_slide, cut.panes_of(1), cut.windows_of_pane(4)
    (5, 2, range(2, 7), range(0, 3))
    """
    scale = lcm(*(Fraction(each).denominator for each in (model.size, model.slide)))
    size, slide = int(model.size * scale), int(model.slide * scale)
    common = gcd(size, slide)
    return Slices(
        model, size // common, slide // common, exact(Fraction(common, scale), "panes(width")
    )


def pairs(model: Regular) -> Slices:
    """Slices between the places where windows start or end.

    >>> from windowlib.farms.models import CountWindows
    >>> cut = pairs(CountWindows(18, 5))
    >>> cut.per_window, [cut.extent(p) for p in (0, 1, 2)]
    (7, [(0, 3), (3, 5), (5, 8)])
    """
    slides, rest = divmod(model.size, model.slide)
    if not rest:
        return Slices(model, int(slides), 1, model.slide)
    return Slices(model, 2 * int(slides) + 1, 2, model.slide, (0, rest))
