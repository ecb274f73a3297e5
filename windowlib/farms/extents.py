"""Windows as runs of tuples, for models whose windows are known once their tuples are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from windowlib.errors import FarmError
from windowlib.farms.axis import Array, spread


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Windows in order: window `ids[k]` holds the tuples `[lo[k], hi[k])` of those mapped.

    Neither `lo` nor `hi` ever goes down from one window to the next. The first `closed` of them
    are final; to the others, tuples that come later may be added.

    >>> extents = Extents(np.array([0, 1]), np.array([0, 2]), np.array([3, 4]), 2)
    >>> list(extents), extents.windows(2), extents.windows(3)
    ([(0, 0, 3), (1, 2, 4)], [0, 1], [1])
    """

    ids: Array
    lo: Array
    hi: Array
    closed: int

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.ids.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True)

    def windows(self, i: int) -> list[int]:
        """The windows that hold tuple `i`."""
        begin = np.searchsorted(self.hi, i, "right")
        found: list[int] = self.ids[begin : np.searchsorted(self.lo, i, "right")].tolist()
        return found

    def first(self, i: int) -> int | None:
        """The first window that holds tuple `i`, if any does."""
        return next(iter(self.windows(i)), None)

    def last(self, i: int) -> int | None:
        """The last window that holds tuple `i`, if any does."""
        return next(reversed(self.windows(i)), None)

    def assigned(self) -> tuple[Array, Array]:
        """For every tuple of every window: its number, and the window. Window by window."""
        places, tuples = spread(self.lo, self.hi - self.lo)
        return tuples, self.ids[places]

    def only(self, keep: Array) -> Extents:
        """Some of them."""
        closed = int(np.count_nonzero(keep[: self.closed]))
        return Extents(self.ids[keep], self.lo[keep], self.hi[keep], closed)


def runs(starts: Any, count: int) -> Extents:
    """Windows that follow one another without a gap, of which the last is open."""
    lo = np.asarray(starts, dtype=np.int64)
    hi = np.append(lo[1:], count) if len(lo) else lo
    return Extents(np.arange(len(lo)), lo, hi, max(len(lo) - 1, 0))


def in_order(values: Any, owner: str) -> Array:
    """Values as an array; they must not go back."""
    found: Array = np.asarray(values)
    wrong = np.flatnonzero(~(found[:-1] <= found[1:])) if len(found) else found
    if len(wrong):
        at = int(wrong[0])
        msg = (
            f"{owner}.mapped(values): value {at + 1} goes back from {found[at]} to "
            f"{found[at + 1]}, and its windows go by the order of the values. Sort them first."
        )
        raise FarmError(msg)
    return found


def steps(values: Array, threshold: Any) -> list[int]:
    """The tuples that are more than `threshold` past the last such tuple; the first is one.

    >>> steps(np.array([0, 1, 2, 3, 10]), 2)
    [0, 3, 4]
    """
    found: list[int] = []
    threshold, at = fitting(threshold, values), 0
    while at < len(values):
        found.append(at)
        reference = values[at]
        at = max(int(np.searchsorted(values, reference + threshold, "right")), at + 1)
        # The sum may have been rounded; the difference is what the policies compare.
        while at < len(values) and not values[at] - reference > threshold:
            at += 1
        while at - 1 > found[-1] and values[at - 1] - reference > threshold:
            at -= 1
    return found


def kept_from(values: Array, newest: Array, hi: Array, size: Any, *, closed: bool) -> Array:
    """For each window the first tuple before `hi` that is recent enough for its newest value.

    Recent is less than `size` behind, or at most that if `closed`.
    """
    lo: Array
    size = fitting(size, values)
    lo = np.minimum(np.searchsorted(values, newest - size, "left" if closed else "right"), hi)
    while bool((more := _recent(values, newest, lo - 1, size, closed) & (lo > 0)).any()):
        lo = lo - more
    while bool((fewer := ~_recent(values, newest, lo, size, closed) & (lo < hi)).any()):
        lo = lo + fewer
    return lo


def fitting(distance: Any, values: Array) -> Any:
    """A distance that can be compared with those of the values: of instants, as numpy's."""
    instants = values.dtype.kind == "M" and isinstance(distance, timedelta)
    return np.timedelta64(distance) if instants else distance


def _recent(values: Array, newest: Array, at: Array, size: Any, closed: bool) -> Array:
    away = newest - values[np.clip(at, 0, len(values) - 1)]
    found: Array = away <= size if closed else away < size
    return found
