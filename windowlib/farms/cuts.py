"""Where the slices of a partition end, as its tuples come."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from windowlib.farms.emitter import Stretch
from windowlib.farms.slices import Slices

if TYPE_CHECKING:
    from windowlib.farms.windowed import RunningWindows

Part = tuple[int, int, int, bool]
"""Which slice, its tuples `[lo, hi)` among those that came, and whether it ends with them."""


class Cuts(Protocol):
    """Says which slices tuples belong to."""

    def cut(self, stretch: Stretch, run: RunningWindows) -> Iterator[Part]:
        """The slices of some tuples."""
        ...

    def ended(self, slice_: Any, run: RunningWindows) -> bool:
        """Whether no tuple can come to a slice any more."""
        ...


class ByCount:
    """Slices of the numbers of tuples: each ends with its last one."""

    def __init__(self, slices: Slices) -> None:
        self.slices = slices

    def cut(self, stretch: Stretch, run: RunningWindows) -> Iterator[Part]:
        """One slice after the other."""
        at, end = stretch.first, stretch.first + stretch.size
        number = self.slices.of(at)
        while at < end:
            _, last = self.slices.extent(number)
            stop = min(end, int(last))
            yield number, at, stop, stop == last
            at, number = stop, number + 1

    def ended(self, slice_: Any, run: RunningWindows) -> bool:
        """One that has not come to its end goes on."""
        return False


class ByTime:
    """Slices of the clock: each ends when its time is over."""

    def __init__(self, slices: Slices) -> None:
        self.slices = slices

    def cut(self, stretch: Stretch, run: RunningWindows) -> Iterator[Part]:
        """By when they came."""
        at, end = stretch.first, stretch.first + stretch.size
        if run.stamps is None:  # they came when the emitter was last told the time
            yield int(self.slices.of(run._told - run.start)), at, end, False
            return
        begin = stretch.at - run.base
        stamps = run.stamps[begin : begin + stretch.size] - run.start
        numbers = self.slices.of(stamps)
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for lo, hi in pairwise(cuts):
            if lo < hi:
                yield int(numbers[lo]), at + lo, at + hi, False

    def ended(self, slice_: Any, run: RunningWindows) -> bool:
        """Whether its time is over."""
        return slice_ is not None and bool(self.slices.extent(slice_)[1] <= run._now - run.start)
