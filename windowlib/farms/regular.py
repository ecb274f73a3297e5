"""Windows of one length at one distance: count and time, tumbling, sliding and hopping.

Window w covers `[phase + w * slide, phase + w * slide + size)` of the axis, which is the index of
a tuple (count) or its timestamp (time). From a point x back to its windows:

    last(x)  = floor((x - phase) / slide)
    first(x) = floor((x - phase - size) / slide) + 1, and `lowest` if that is more

Where first is behind last, the point lies between two windows (hopping, slide > size).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from windowlib.farms.axis import Array, Exact, exact, floors, length, spread, whole

if TYPE_CHECKING:
    from windowlib.farms.slices import Slices

Context = Literal["free", "backward", "forward"]


class WindowModel:
    """How tuples belong to windows, and what has to be known to say so.

    `context` is what decides to which windows a tuple belongs: the tuple alone ("free"), also
    those before it ("backward"), or those behind it ("forward"). With the first two a tuple can
    be sent to its windows when it comes; with the last only once their triggers have come.
    """

    __slots__ = ()
    context: ClassVar[Context]

    @property
    def overlapping(self) -> bool:
        """Whether a tuple may be in several windows."""
        return False


@dataclass(frozen=True, slots=True)
class Regular(WindowModel):
    """Windows of a size at a slide; the base of `CountWindows` and `TimeWindows`."""

    context: ClassVar[Context] = "free"
    size: Any
    slide: Any
    phase: Any = 0
    lowest: int | None = None

    def __post_init__(self) -> None:
        kind = type(self).__name__
        self._keep(
            size=length(self.size, f"{kind}(size"),
            slide=length(self.slide, f"{kind}(slide"),
            phase=exact(self.phase, f"{kind}(phase"),
            lowest=None if self.lowest is None else whole(self.lowest, f"{kind}(lowest"),
        )

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def overlapping(self) -> bool:
        """Whether a tuple may be in several windows."""
        return bool(self.size > self.slide)

    def first(self, x: Any) -> Any:
        """The first window that holds a point; behind `last` if none does."""
        found = floors(x, self.phase + self.size, self.slide) + 1
        if self.lowest is None:
            return found
        return np.maximum(found, self.lowest) if _many(x) else max(found, self.lowest)

    def last(self, x: Any) -> Any:
        """The last window that holds a point; before `first` if none does."""
        return floors(x, self.phase, self.slide)

    def windows(self, x: Any) -> Any:
        """The windows that hold a point, as a range.

        Of an array of points: two arrays, with a row number and a window for each that holds it.
        """
        first, last = self.first(x), self.last(x)
        return spread(first, last - first + 1) if _many(x) else range(first, last + 1)

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The interval `[lo, hi)` of a window, or of each of an array."""
        begin = self.phase + _times(w, self.slide)
        return begin, begin + self.size

    def complete(self, mark: Any) -> Any:
        """The last window that ends at or before `mark`, which may be none that there is.

        Nothing is added to it once time has come to `mark`, or so many tuples have come.
        """
        return floors(mark, self.phase + self.size, self.slide)

    def panes(self) -> Slices:
        """Slices of equal length, the greatest that divides size and slide."""
        from windowlib.farms.slices import panes

        return panes(self)

    def pairs(self) -> Slices:
        """Slices cut where a window starts or ends: at most two a slide."""
        from windowlib.farms.slices import pairs

        return pairs(self)


@dataclass(frozen=True, slots=True)
class TimeWindows(Regular):
    """Windows of `size` ticks, one every `slide` ticks; window 0 starts at `phase`.

    Numbers are exact, whole or not: 0.1 is what the float is, so write tenths as `Fraction(1, 10)`
    or count in tenths. An axis of time has no start, so by default there are windows before
    window 0, with negative numbers; `lowest` says which is the first that there is.

    >>> model = TimeWindows(4, 2)
    >>> model.windows(5.5), model.extent(1)
    (range(1, 3), (2, 6))
    >>> list(TimeWindows(4, 2).windows(-1)), list(TimeWindows(2, 5).windows(3))
    ([-2, -1], [])
    """


@dataclass(frozen=True, slots=True)
class CountWindows(Regular):
    """Windows of `size` tuples, one every `slide` tuples; window 0 starts with tuple `phase`.

    Tuples have the indexes 0, 1, …. With a `lowest` below 0 the first windows reach back before
    tuple 0 and are cut off there: the partial windows of SPL.

    >>> spl = CountWindows(5, 2, phase=spl_phase(5, 2), lowest=-2)
    >>> [spl.extent(w) for w in (-2, -1, 0, 1)]
    [(0, 2), (0, 4), (1, 6), (3, 8)]
    >>> spl.windows(0), spl.windows(4)
    (range(-2, 0), range(0, 2))
    """

    lowest: int | None = 0

    def __post_init__(self) -> None:
        Regular.__post_init__(self)
        for name in ("size", "slide", "phase"):
            whole(getattr(self, name), f"CountWindows({name}")

    def extent(self, w: Any) -> tuple[Any, Any]:
        """The indexes `[lo, hi)` of a window, or of each of an array; none is below 0."""
        begin, end = Regular.extent(self, w)
        return (np.maximum(begin, 0) if _many(w) else max(begin, 0)), end


def spl_phase(size: Any, slide: Any) -> Any:
    """The phase of SPL's windows, which end at multiples of the slide and do not start there.

    >>> spl_phase(5, 2), spl_phase(7, 3), spl_phase(6, 3), spl_phase(2, 5)
    (1, 2, 0, 3)
    """
    size, slide = length(size, "spl_phase(size"), length(slide, "spl_phase(slide")
    return -size % slide


def spl_lowest(size: Any, slide: Any) -> int:
    """The first window of SPL that fires, full or not: the one that ends after one slide.

    >>> spl_lowest(5, 2), spl_lowest(4, 4)
    (-2, 0)
    """
    return 1 + int(-size // slide)


def _many(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def _times(w: Any, slide: Exact) -> Any:
    if isinstance(w, np.ndarray) and isinstance(slide, Fraction):
        product: Array = w.astype(object) * slide
        return product
    return w * slide
