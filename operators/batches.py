"""The rows of an aggregation from the firings of a whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from operators.compile import Outputs
from operators.expressions import Expr
from operators.making import Agg

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings


class Made:
    """Rows as columns: each an Arrow array, or a list where Arrow has no exact type.

    The rows of one firing are next to each other; `counts` says how many each has. Of a condition
    that is a function, `passes`, they have yet to be asked.
    """

    def __init__(self, columns: dict[str, Any], counts: Any, passes: Any, failure: Any) -> None:
        self.columns, self.counts, self.passes = columns, counts, passes
        self.failure: tuple[int, Exception] | None = failure
        """A row that has no value, and why; there are no rows behind it."""

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as the event engine makes them, as far as they can be made."""
        from windowlib.columnar.results import as_list

        names = list(self.columns)
        lists = [as_list(column) for column in self.columns.values()]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True))
        if self.failure is None:
            yield from rows
        else:
            place, error = self.failure
            yield from islice(rows, place)
            raise error


def made(outputs: Outputs, firings: Firings) -> Made:
    """One row for each firing that is not empty, or for each of its groups."""
    return _Making(outputs, firings).made()


class _Making:
    """The columns of all rows, before and after the condition."""

    def __init__(self, outputs: Outputs, firings: Firings) -> None:
        import numpy as np

        self.outputs, self.firings = outputs, firings
        self.counts = firings.counts
        self.owners = np.repeat(np.arange(len(firings)), self.counts)
        self.failure: tuple[int, Exception] | None = None

    def made(self) -> Made:
        outputs, firings = self.outputs, self.firings
        keys: list[Any] = []
        if firings.keys is not None:
            keys += firings.keys.arrow(firings.ids[self.owners])
        if firings.groups is not None:
            keys += firings.groups.columns
        columns = dict(zip(outputs.keys, keys, strict=True))
        for name, expression in outputs.expressions.items():
            columns[name] = self._value(expression)
        if isinstance(outputs.having, Expr):
            return self._filtered(columns, self._value(outputs.having))
        return Made(columns, self.counts, outputs.having, self.failure)

    def _filtered(self, columns: dict[str, Any], condition: Any) -> Made:
        """The rows for which a condition is true."""
        import numpy as np

        from windowlib.columnar.results import picked, truth

        keep, failure = truth(condition), self.failure
        if failure is not None:
            place, error = failure
            failure = (int(np.count_nonzero(keep[:place])), error)
            keep[place] = True  # it is reached, and raises
        places = np.flatnonzero(keep)
        counts = np.bincount(self.owners[places], minlength=len(self.firings))
        kept = {name: picked(column, places) for name, column in columns.items()}
        return Made(kept, counts, None, failure)

    def _value(self, expression: Expr) -> Any:
        """An expression of aggregates for all rows, at once if that is exact."""
        from windowlib.columnar.columns import Column
        from windowlib.columnar.decline import Decline

        if isinstance(expression, Agg):
            return self._leaf(expression)

        def column(aggregate: Expr) -> Column:
            found = self._leaf(aggregate)
            if isinstance(found, list):
                raise Decline("values without an Arrow type")
            return Column.of(found)

        try:
            return expression.columnar(column).arrow()
        except Decline:
            return self._one_by_one(expression)

    def _one_by_one(self, expression: Expr) -> list[Any]:
        """An expression of aggregates, row by row, up to the first that has no value."""
        from windowlib.columnar.results import as_list

        leaves = list(dict.fromkeys(expression.leaves()))
        lists = [as_list(self._leaf(each)) for each in leaves]
        found: list[Any] = [None] * len(self.owners)
        for i, row in enumerate(zip(*lists, strict=True)):
            values = dict(zip(leaves, row, strict=True))
            try:
                found[i] = expression.evaluate(values.__getitem__)
            except Exception as error:
                if self.failure is None or i < self.failure[0]:
                    self.failure = i, error
                break
        return found

    def _leaf(self, aggregate: Expr) -> Any:
        """The values of an aggregate for all rows."""
        import pyarrow as pa

        place, summaries = self.outputs.place(aggregate), len(self.outputs.recipes)
        if place < summaries:
            return self.firings.results(place, self.owners)
        whole: list[Callable[[], Any]] = [
            lambda: pa.array(self.firings.sizes[self.owners]),
            lambda: pa.array(self.counts[self.owners]),
            self._sizes,
        ]
        return whole[place - summaries]()

    def _sizes(self) -> Any:
        """The sizes of all groups of its firing, for each row."""
        import numpy as np
        import pyarrow as pa

        from windowlib.columnar.primitives import ranges

        groups = self.firings.groups
        sizes = self.firings.sizes[self.owners] if groups is None else groups.sizes
        lengths = self.counts[self.owners]
        first = (np.cumsum(self.counts) - self.counts)[self.owners]
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, pa.array(sizes[ranges(first, lengths)]))
