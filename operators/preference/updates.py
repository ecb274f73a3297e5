"""SkylineUpdates: which rows enter the skyline of a sliding window, and which leave it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from operators.columns import as_dict
from operators.preference.base import Comparing
from operators.preference.checks import check_names, check_window
from operators.preference.current import Current
from operators.preference.dimensions import Dimensions, Nan
from operators.preference.queries import Dimension
from operators.splitting import unchanged
from operators.windows import each_partition, window_of
from windowlib.attributes import one_key
from windowlib.errors import ModelError
from windowlib.hosted import FunctionKind
from windowlib.model import OperatorModel
from windowlib.operator import Operator
from windowlib.policies import Count, Delta, Time
from windowlib.spec import By, Sliding, Spec
from windowlib.window import Window


class SkylineUpdates(Comparing):
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

    >>> from operators import SkylineUpdates
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
        self._partitions: dict[Any, Current] = {}

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
        """What is best, and how changes are found."""
        yield "best", str(self.dimensions)
        yield "method", "rows without a later one that dominates them, and how many dominate each"

    # -- at work ----------------------------------------------------------------------------------

    def _current(self, window: Window[Any, Any], key: Any) -> Current:
        """The skyline of a partition as it has been told; after `restore`, found again."""
        found = self._partitions.get(one_key(key))
        if found is None:
            fifo = not isinstance(window.spec.evict, Delta)
            found = self._partitions[one_key(key)] = Current(self.dimensions, fifo)
            for row in window[key]:
                found.insert(row)
            found.changes()
        return found

    def before_evict(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row leaves; if its time is over, no other comes in that would tell of it."""
        self._current(window, key).remove(tuple_)
        if isinstance(window.spec.evict, Time):
            self._tell(key)

    def before_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row comes in, unless it does not compare; what had to leave for it is gone then."""
        current = self._current(window, key)
        try:
            self._check(tuple_)
        except Exception:
            self._tell(key)
            raise
        current.insert(tuple_)

    def after_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """A row has come in."""
        self._tell(key, always=True)

    def on_partitions_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        """All rows of a partition leave."""
        each_partition(window, keys, lambda key: self._forget(window, key))

    def _forget(self, window: Window[Any, Any], key: Any) -> None:
        current = self._current(window, key)
        current.clear()
        self._tell(key)

    def _tell(self, key: Any, always: bool = False) -> None:
        """Send what has changed since the last time."""
        current = self._partitions[one_key(key)]
        if not current:
            del self._partitions[one_key(key)]
        gone, come = current.changes()
        for sign, rows in (("-", gone), ("+", come)):
            for row in rows:
                self._outputs[0](as_dict(row, "SkylineUpdates") | {self.change: sign})
        if always or gone or come:
            self._puncts[0]()
