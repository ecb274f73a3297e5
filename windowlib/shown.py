"""What operators and replays show of themselves; the drawing is loaded when somebody looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from windowlib.marks import Mark

if TYPE_CHECKING:
    from windowlib.listing import Listing
    from windowlib.operator import Operator

ROWS = 10


class Drawn:
    """The pictures of an operator: a box with its streams; a graph has a box for each operator."""

    def to_text(self: Operator) -> str:  # type: ignore[misc]
        """The drawing in lines of text."""
        from windowlib.drawing import text

        return text(self)

    def to_svg(self: Operator) -> str:  # type: ignore[misc]
        """The drawing as a picture."""
        from windowlib.drawing import svg

        return svg(self)

    def to_html(self: Operator) -> str:  # type: ignore[misc]
        """Windows, ports and parameters for a page or a notebook; a graph with its drawing.

        It is made of what the operator says without running, so nothing is opened.
        """
        from windowlib.notebook import operator_html

        return operator_html(self)

    def _repr_html_(self: Operator) -> str:  # type: ignore[misc]
        return self.to_html()


class Ahead(Iterator[Any]):
    """An iterator that can be looked into without taking anything from it.

    >>> numbers = Ahead(iter([1, 2, 3]))
    >>> numbers.look(), next(numbers), list(numbers)
    (True, 1, [2, 3])
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        self.waiting: deque[Any] = deque()
        """What has been looked at and not been taken."""
        self.failure: Exception | None = None
        """What the source raised when it was looked into; taken after all that waits."""

    def __next__(self) -> Any:
        if self.waiting:
            return self.waiting.popleft()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return next(self._source)

    def look(self) -> bool:
        """Wait for one more; whether there was one."""
        if self.failure is not None:
            return False
        try:
            self.waiting.append(next(self._source))
        except StopIteration:
            return False
        except Exception as error:  # whoever iterates is to get it
            self.failure = error
            return False
        return True


class Tabled:
    """The rows to come of a replay as a table."""

    operator: Operator
    _items: Ahead
    _names: list[str]
    _kept: dict[str, list[Any]]
    _bounded = False

    def table(self, n: int = ROWS) -> Listing:
        """The next `n` rows of the first output as a table, to print or to show in a notebook.

        It computes as many rows as it shows. They stay there to be iterated over.

        >>> from windowlib import Count, Tumbling, replay
        >>> from windowlib.operators import Aggregate, agg
        >>> totals = Aggregate(Tumbling(Count(2)), n=agg.count(), total=agg.sum("x"))
        >>> found = replay(totals, [{"x": 1}, {"x": 2.5}, {"x": 30}, {"x": 4}])
        >>> print(found.table())
        n  total
        -  -----
        2    3.5
        2     34
        2 rows
        >>> list(found)
        [{'n': 2, 'total': 3.5}, {'n': 2, 'total': 34}]
        """
        from windowlib.listing import Listing

        rows = self._coming()
        while len(rows) < n and self._items.look():
            rows = self._coming()
        return Listing(rows[:n], more=len(rows) >= n, failure=self._items.failure)

    def _coming(self) -> list[Any]:
        """The rows of the first output that are there."""
        if not self._names:
            return []
        main = self._names[0]
        ahead = [i for port, i in self._items.waiting if port == main and not isinstance(i, Mark)]
        return [*self._kept[main], *ahead]

    def _repr_html_(self) -> str:
        """A table if the input is at hand; a source that may have to wait is not asked."""
        from windowlib.notebook import waiting_html

        return self.table().to_html() if self._bounded else waiting_html(self.operator)
