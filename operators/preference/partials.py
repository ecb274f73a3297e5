"""Results of parts of a window, and how they make up that of the whole.

The parts may be cut anyhow: into stretches of time, or with every other row in another part. What
a part leaves out can be in no answer, and changes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from operators.preference.dimensions import Dimensions, check_added
from operators.preference.rules import Rule
from windowlib.errors import SchemaError
from windowlib.policies import attribute_text

if TYPE_CHECKING:
    from windowlib.columnar.dominance import Points


class Partial(NamedTuple):
    """What matters of a part of a window; plain Arrow, so that it can be sent elsewhere."""

    rows: Any
    """The rows that may be in the answer: a `pyarrow.RecordBatch`, in order of arrival."""
    arrivals: Any
    """The arrival number of each, as an Arrow array of int64."""
    factors: Any = None
    """Its dominance factor within the part, if the operator asks for factors."""

    def behind(self, other: Partial) -> Partial:
        """The same with arrival numbers behind those of another."""
        import pyarrow as pa

        numbers = other.arrivals.to_numpy()
        first = int(numbers[-1]) + 1 if len(numbers) else 0
        return self._replace(arrivals=pa.array(self.arrivals.to_numpy() + first))


class Partials:
    """The work of an operator on parts of a window; `operator.partials` makes it.

    >>> import pyarrow as pa
    >>> from operators import Skyline
    >>> from windowlib import Count, Tumbling
    >>> partials = Skyline(Tumbling(Count(4)), "price", "km").partials
    >>> one = partials.of(pa.record_batch({"price": [5, 9], "km": [2, 2]}), 0)
    >>> other = partials.of(pa.record_batch({"price": [4, 6], "km": [2, 1]}), 2)
    >>> partials.rows(partials.merge(one, other)).to_pylist()
    [{'price': 4, 'km': 2}, {'price': 6, 'km': 1}]
    """

    def __init__(
        self, owner: str, dimensions: Dimensions, rule: Rule, added: Mapping[str, str]
    ) -> None:
        self._owner, self._dimensions, self._rule, self._added = owner, dimensions, rule, added

    def of(self, rows: Any, first: int | Iterable[int] = 0) -> Partial:
        """The partial result of some rows.

        Args:
            rows: a `pyarrow.RecordBatch` or `Table`, or columns by name.
            first: the arrival number of the first row, if the others follow one by one; or that
                of each row, ascending.
        """
        import numpy as np
        import pyarrow as pa

        batch = as_batch(rows)
        check_added(self._owner, self._added, batch.schema.names)
        numbers = self._arrivals(first, batch.num_rows)
        points = self._points(batch)
        places = self._rule.survivors(points)
        factors = None
        if self._rule.factored:
            from windowlib.columnar.dominance import factors_within

            factors = pa.array(factors_within(points[:, places]))
        return Partial(batch.take(pa.array(places)), pa.array(np.take(numbers, places)), factors)

    def _arrivals(self, first: Any, rows: int) -> Any:
        import numpy as np

        if isinstance(first, int):
            return np.arange(first, first + rows, dtype=np.int64)
        numbers = np.array(list(first), np.int64)
        if len(numbers) != rows or (numbers[1:] <= numbers[:-1]).any():
            msg = (
                f"{self._owner}.partials.of(rows, first=...): {len(numbers)} arrival numbers for "
                f"{rows} rows. Give one per row, ascending, or that of the first row."
            )
            raise SchemaError(msg)
        return numbers

    def merge(self, one: Partial, other: Partial) -> Partial:
        """The partial result of the rows of both; which is the first makes no difference."""
        import numpy as np
        import pyarrow as pa

        numbers = np.concatenate([one.arrivals.to_numpy(), other.arrivals.to_numpy()])
        order = np.argsort(numbers, kind="stable")
        first = order < len(one.arrivals)
        both = pa.concat_batches([one.rows, other.rows]).take(pa.array(order))
        points = self._points(both)
        factors = None
        if self._rule.factored:
            known = np.concatenate([one.factors.to_numpy(), other.factors.to_numpy()])[order]
            factors = self._raised(points, first, known)
            places = np.flatnonzero(factors < len(self._dimensions))
            factors = pa.array(factors[places])
        else:
            places = self._rule.merged(points, first)
        return Partial(both.take(pa.array(places)), pa.array(numbers[order][places]), factors)

    def _raised(self, points: Points, first: Any, known: Any) -> Any:
        """Factors within each part, raised to those among all points."""
        import numpy as np

        from windowlib.columnar.dominance import factors

        found = known.copy()
        for part in (first, ~first):
            others = factors(points[:, part], points[:, ~part])
            found[part] = np.maximum(found[part], others)
        return found

    def rows(self, partial: Partial) -> Any:
        """The rows that the operator sends for a window of which this is the result."""
        import pyarrow as pa

        if not self._rule.factored:
            return partial.rows
        factors = partial.factors.to_numpy()
        places, more = self._rule.chosen(factors, len(self._dimensions))
        found = partial.rows.take(pa.array(places))
        for name, values in zip(self._added.values(), more, strict=True):
            found = found.append_column(name, pa.array(values))
        return found

    def _points(self, batch: Any) -> Points:
        from windowlib.columnar.decline import Decline

        dimensions = self._dimensions
        try:
            if dimensions.nan == "worst" or dimensions.complete(batch):
                return dimensions.of_columns(batch)
        except Decline:  # what only Python can read
            pass
        rows = batch.to_pylist()
        for row in rows:
            dimensions.check(row)
        return dimensions.points(rows)


def as_batch(rows: Any) -> Any:
    """Rows as one Arrow batch: a batch, a table, or columns by name."""
    import pyarrow as pa

    if isinstance(rows, pa.RecordBatch):
        return rows
    if isinstance(rows, pa.Table):
        empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
        return pa.concat_batches([empty, *rows.to_batches()])
    if isinstance(rows, Mapping):
        return pa.record_batch(dict(rows))
    msg = f"partials.of({attribute_text(type(rows))}): not columns. Pass an Arrow batch or a dict."
    raise SchemaError(msg)
