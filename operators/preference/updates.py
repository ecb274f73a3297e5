"""SkylineUpdates: which rows enter the skyline of a sliding window, and which leave it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from windowlib.attributes import one_key
from windowlib.errors import ModelError
from windowlib.operators.arguments import as_dict, window_of
from windowlib.operators.base import each_partition, unchanged
from windowlib.operators.preference.dimensions import Dimensions, Nan, are_exact
from windowlib.operators.preference.preference import (
    ComparisonOperator,
    Dimension,
    check_names,
    check_window,
)
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import FunctionKind, Operator
from windowlib.spec.policies import Count, Delta, Time
from windowlib.spec.specification import By, Sliding, Spec
from windowlib.window.container import Window

if TYPE_CHECKING:
    from windowlib.columnar.kernels.skyline import Mask


class SkylineUpdates(ComparisonOperator):
    """Says how the skyline of a sliding window changes, with every row that comes or goes.

    Rows come out as they went in, with one more column: "+" for a row that enters the skyline,
    "-" for one that leaves it. At any time, those that have entered and not left are the skyline
    of what the window holds, full or not.

    A step is: a row comes in, after those have left for which it takes the place; or, with
    `Time`, a row is too old; or a partition is evicted. Each step sends first what leaves the
    skyline, then what enters it, both in order of arrival, and a punctuation. A step at which
    nothing comes in, and which changes nothing, sends nothing.

    Args:
        window: a `Sliding` window without `every=`: it fires with every row.
        dimensions: as for `Skyline`.
        by: the partition key, if the window does not name one.
        change: the name of the column with "+" or "-".
        nan: as for `Skyline`.
        name: what messages and graphs call it.

    >>> from windowlib.operators import SkylineUpdates
    >>> from windowlib import Count, Sliding, replay
    >>> rows = [{"x": 1, "y": 4}, {"x": 4, "y": 1}, {"x": 5, "y": 3}]
    >>> for row in replay(SkylineUpdates(Sliding(Count(2)), "x", "y"), rows):
    ...     print(row["change"], row["x"], row["y"])
    + 1 4
    + 4 1
    - 1 4
    """

    model = OperatorModel(
        windows=[Sliding[Count | Delta | Time, Count(1)]],  # type: ignore[misc]
        punctuation_out="generating",
    )
    function_kind: ClassVar[FunctionKind] = "neither"
    _numbers = False

    def __init__(
        self,
        window: Spec | str,
        *dimensions: Dimension,
        by: By | Sequence[str] | None = None,
        change: str = "change",
        nan: Nan = "error",
        name: str | None = None,
    ) -> None:
        spec = window_of("SkylineUpdates", "window", window, by)
        self.dimensions = Dimensions("SkylineUpdates", dimensions, nan)
        self.change, self._added = change, {"change": change}
        super().__init__(spec, name=name)
        check_window("SkylineUpdates", spec)
        check_names("SkylineUpdates", {"change": change})
        if isinstance(spec, Sliding) and spec.partial is not None:
            msg = (
                f"SkylineUpdates does not support Sliding(..., partial={spec.partial!r}): changes "
                f"come out from the first row on. Drop `partial=`."
            )
            raise ModelError(msg)
        # What the windows hold says all of it, so it is not part of the state: see `_current`.
        self._partitions: dict[Any, CurrentSkyline] = {}

    # -- as the framework asks --------------------------------------------------------------------

    def unsupported(self, spec: Spec) -> str:
        """Why it takes no other windows."""
        return "it says what changes with every row"

    def beyond_window(self) -> str:
        """The skyline before."""
        return "the skyline before" if unchanged(self) else Operator.beyond_window(self)

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave; the skylines are found again when they are asked for."""
        super().restore(state)
        self._partitions.clear()

    def notes(self) -> Iterable[tuple[str, str]]:
        """The preferred values, and the algorithm."""
        yield "best", str(self.dimensions)
        yield "method", "rows without a later one that dominates them, and how many dominate each"

    # -- at work ----------------------------------------------------------------------------------

    def _current(self, window: Window[Any, Any], key: Any) -> CurrentSkyline:
        """The skyline of a partition as it was last sent; after `restore`, computed again."""
        found = self._partitions.get(one_key(key))
        if found is None:
            fifo = window.spec.evict.delta is None
            found = self._partitions[one_key(key)] = CurrentSkyline(self.dimensions, fifo)
            for row in window[key]:
                found.insert(row)
            found.changes()
        return found

    def before_evict(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row leaves; if its time is over, no other comes in that would tell of it."""
        self._current(window, key).remove(tuple_)
        if window.spec.full_from_start:
            self._send_changes(key)

    def before_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row comes in, unless it does not compare; what had to leave for it is gone then."""
        current = self._current(window, key)
        try:
            self._check(tuple_)
        except Exception:
            self._send_changes(key)
            raise
        current.insert(tuple_)

    def after_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row has come in."""
        self._send_changes(key, always=True)

    def on_partitions_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        """All rows of a partition leave."""
        each_partition(window, keys, lambda key: self._forget(window, key))

    def _forget(self, window: Window[Any, Any], key: Any) -> None:
        current = self._current(window, key)
        current.clear()
        self._send_changes(key)

    def _send_changes(self, key: Any, always: bool = False) -> None:
        """Send what has changed since the last time."""
        current = self._partitions[one_key(key)]
        if not current:
            del self._partitions[one_key(key)]
        left, entered = current.changes()
        for sign, rows in (("-", left), ("+", entered)):
            for row in rows:
                self._outputs[0](as_dict(row, "SkylineUpdates") | {self.change: sign})
        if always or left or entered:
            self._puncts[0]()


# -- the current skyline --------------------------------------------------------------------------


ROOM = 64


class CurrentSkyline:
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
        self._candidates: list[int] = []  # numbers, ascending, of the columns of the arrays
        self._candidate_rows: dict[int, Any] = {}  # the kept rows
        self._points: Any = np.empty((len(dimensions), ROOM))
        self._dominators: Any = np.empty(ROOM, np.int64)
        self._entered: dict[int, Any] = {}
        self._left: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The rows that have left the skyline and that have entered it since the last call."""
        left = [self._left[number] for number in sorted(self._left)]
        entered = [self._entered[number] for number in sorted(self._entered)]
        self._left, self._entered = {}, {}
        return left, entered

    def _enter(self, number: int) -> None:
        """A row is on the skyline now."""
        self._entered[number] = self._candidate_rows[number]

    def _leave(self, number: int) -> None:
        """A row is no longer on the skyline; if it got there in this very step, it never was."""
        if number in self._entered:
            del self._entered[number]
        else:
            self._left[number] = self._candidate_rows[number]

    # -- changes of the window --------------------------------------------------------------------

    def insert(self, row: Any) -> None:
        """A row comes in."""
        import numpy as np

        number, self._next = self._next, self._next + 1
        self._rows.append((number, row))
        point = self._point(row)
        better, worse = self._dominance(point)
        size = len(self._candidates)
        above = int(np.count_nonzero(better))
        for place in np.flatnonzero(worse & (self._dominators[:size] == 0)).tolist():
            self._leave(self._candidates[place])
        if not self._fifo:
            self._dominators[:size] += worse
        elif worse.any():
            self._keep(~worse)
        self._append(number, row, point, above)
        if not above:
            self._enter(number)

    def remove(self, row: Any) -> None:
        """A row leaves: this very object, and the first if it came in several times."""
        place = next(i for i, (_, held) in enumerate(self._rows) if held is row)
        number, _ = self._rows[place]
        del self._rows[place]
        if number not in self._candidate_rows:
            return
        place = self._candidates.index(number)
        _, worse = self._dominance(self._points[:, place].copy())
        if not self._dominators[place]:
            self._leave(number)
        above = self._dominators[: len(self._candidates)]
        above -= worse
        for free in (worse & (above == 0)).nonzero()[0].tolist():
            self._enter(self._candidates[free])
        others = worse | True
        others[place] = False
        self._keep(others)

    def clear(self) -> None:
        """All rows leave."""
        for number, above in zip(self._candidates, self._dominators.tolist(), strict=False):
            if not above:
                self._leave(number)
        self._rows.clear()
        self._keep(self._dominators[: len(self._candidates)] < 0)

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
        if not are_exact(there) or not np.isfinite(np.array(there, np.float64)).all():
            return None
        signs = [-1.0 if each.key.descending else 1.0 for each in self._dimensions.all]
        triples = zip(values, missing, signs, strict=True)
        return np.array([np.inf if none else value * sign for value, none, sign in triples])

    def _as_objects(self) -> Any:
        """The coordinates of all kept rows as things that Python compares."""
        import numpy as np

        found = np.empty(self._points.shape, object)
        for i, each in enumerate(self._dimensions.all):
            for place, number in enumerate(self._candidates):
                found[i, place] = each.place(each.get(self._candidate_rows[number]))
        return found

    def _dominance(self, point: Any) -> tuple[Mask, Mask]:
        """Masks of the kept rows that dominate a point, and of those it dominates."""
        import numpy as np

        size = len(self._candidates)
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
        size = len(self._candidates)
        for place in (~mask).nonzero()[0].tolist():
            del self._candidate_rows[self._candidates[place]]
        places = mask.nonzero()[0]
        self._candidates = [self._candidates[place] for place in places.tolist()]
        self._points[:, : len(places)] = self._points[:, :size][:, mask]
        self._dominators[: len(places)] = self._dominators[:size][mask]

    def _append(self, number: int, row: Any, point: Any, above: int) -> None:
        import numpy as np

        size = len(self._candidates)
        if size == len(self._dominators):
            points = np.empty((len(self._points), 2 * size), self._points.dtype)
            points[:, :size] = self._points
            self._points = points
            self._dominators = np.append(self._dominators, np.zeros(size, np.int64))
        self._points[:, size], self._dominators[size] = point, above
        self._candidates.append(number)
        self._candidate_rows[number] = row
