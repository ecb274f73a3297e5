"""The skyline of a window that rows enter and leave one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from operators.preference.dimensions import Dimensions, exact

if TYPE_CHECKING:
    from windowlib.columnar.dominance import Mask

ROOM = 64


class Current:
    """The rows of one partition, of which some are on the skyline.

    Kept are the rows that may still get there, each with the number of kept rows that dominate
    it. Where rows leave in the order in which they came, one that a later row dominates never
    gets there: it is dropped at once. Whatever it dominates goes with it, so no count changes.

    Args:
        dimensions: how rows compare.
        fifo: whether rows leave in the order in which they came.
    """

    def __init__(self, dimensions: Dimensions, fifo: bool) -> None:
        import numpy as np

        self._dimensions, self._fifo = dimensions, fifo
        self._rows: deque[tuple[int, Any]] = deque()  # all that the window holds, numbered
        self._next = 0
        self._kept: list[int] = []  # numbers, ascending, of the columns of the arrays
        self._held: dict[int, Any] = {}  # the kept rows
        self._points: Any = np.empty((len(dimensions), ROOM))
        self._above: Any = np.empty(ROOM, np.int64)
        self._entered: dict[int, Any] = {}
        self._left: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The rows that have left the skyline and that have entered it since the last call."""
        gone = [self._left[number] for number in sorted(self._left)]
        come = [self._entered[number] for number in sorted(self._entered)]
        self._left, self._entered = {}, {}
        return gone, come

    def _on(self, number: int) -> None:
        """A row is on the skyline now."""
        self._entered[number] = self._held[number]

    def _off(self, number: int) -> None:
        """A row is no longer on the skyline; if it got there in this very step, it never was."""
        if number in self._entered:
            del self._entered[number]
        else:
            self._left[number] = self._held[number]

    # -- changes of the window --------------------------------------------------------------------

    def insert(self, row: Any) -> None:
        """A row comes in."""
        import numpy as np

        number, self._next = self._next, self._next + 1
        self._rows.append((number, row))
        point = self._point(row)
        better, worse = self._compared(point)
        size = len(self._kept)
        above = int(np.count_nonzero(better))
        for place in np.flatnonzero(worse & (self._above[:size] == 0)).tolist():
            self._off(self._kept[place])
        if not self._fifo:
            self._above[:size] += worse
        elif worse.any():
            self._keep(~worse)
        self._append(number, row, point, above)
        if not above:
            self._on(number)

    def remove(self, row: Any) -> None:
        """A row leaves: this very object, and the first if it came in several times."""
        place = next(i for i, (_, held) in enumerate(self._rows) if held is row)
        number, _ = self._rows[place]
        del self._rows[place]
        if number not in self._held:
            return
        place = self._kept.index(number)
        _, worse = self._compared(self._points[:, place].copy())
        if not self._above[place]:
            self._off(number)
        above = self._above[: len(self._kept)]
        above -= worse
        for free in (worse & (above == 0)).nonzero()[0].tolist():
            self._on(self._kept[free])
        others = worse | True
        others[place] = False
        self._keep(others)

    def clear(self) -> None:
        """All rows leave."""
        for number, above in zip(self._kept, self._above.tolist(), strict=False):
            if not above:
                self._off(number)
        self._rows.clear()
        self._keep(self._above[: len(self._kept)] < 0)

    # -- arrays -----------------------------------------------------------------------------------

    def _point(self, row: Any) -> Any:
        """The coordinates of a row, in numbers for as long as they are exact."""
        import numpy as np

        values = [each.get(row) for each in self._dimensions.all]
        if self._points.dtype == np.float64:
            if (point := self._numbers(values)) is not None:
                return point
            self._points = self._as_objects()
        point = np.empty(len(values), object)
        for i, (each, value) in enumerate(zip(self._dimensions.all, values, strict=True)):
            point[i] = each.place(value)
        return point

    def _numbers(self, values: Sequence[Any]) -> Any:
        """Floats that compare as the values do, NaN and null as infinity; None if there are none.

        An infinite value is not among them, because NaN is worse.
        """
        import numpy as np

        missing = [value is None or value != value for value in values]
        there = [value for value, none in zip(values, missing, strict=True) if not none]
        if not exact(there) or not np.isfinite(np.array(there, np.float64)).all():
            return None
        signs = [-1.0 if each.key.descending else 1.0 for each in self._dimensions.all]
        triples = zip(values, missing, signs, strict=True)
        return np.array([np.inf if none else value * sign for value, none, sign in triples])

    def _as_objects(self) -> Any:
        """The coordinates of all kept rows as things that Python compares."""
        import numpy as np

        found = np.empty(self._points.shape, object)
        for i, each in enumerate(self._dimensions.all):
            for place, number in enumerate(self._kept):
                found[i, place] = each.place(each.get(self._held[number]))
        return found

    def _compared(self, point: Any) -> tuple[Mask, Mask]:
        """Which kept rows dominate a point, and which it dominates."""
        import numpy as np

        size = len(self._kept)
        less, greater = np.zeros(size, bool), np.zeros(size, bool)
        for row, value in zip(self._points[:, :size], point, strict=True):
            if self._points.dtype == np.float64:
                less |= row < value
                greater |= row > value
            else:
                less |= np.array([each < value for each in row], bool)
                greater |= np.array([value < each for each in row], bool)
        return less & ~greater, greater & ~less

    def _keep(self, mask: Mask) -> None:
        """Drop the other rows."""
        size = len(self._kept)
        for place in (~mask).nonzero()[0].tolist():
            del self._held[self._kept[place]]
        places = mask.nonzero()[0]
        self._kept = [self._kept[place] for place in places.tolist()]
        self._points[:, : len(places)] = self._points[:, :size][:, mask]
        self._above[: len(places)] = self._above[:size][mask]

    def _append(self, number: int, row: Any, point: Any, above: int) -> None:
        import numpy as np

        size = len(self._kept)
        if size == len(self._above):
            points = np.empty((len(self._points), 2 * size), self._points.dtype)
            points[:, :size] = self._points
            self._points = points
            self._above = np.append(self._above, np.zeros(size, np.int64))
        self._points[:, size], self._above[size] = point, above
        self._kept.append(number)
        self._held[number] = row
