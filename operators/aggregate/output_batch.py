"""The rows of an aggregation from the firings of a whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from windowlib.operators.aggregate.output_columns import AggregateOutputs
from windowlib.operators.expressions import Expr
from windowlib.operators.functions.call import Agg
from windowlib.window.arrow import array_of
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.firings import Entries, Firings


class AggregateBatch:
    """Rows as columns: each an Arrow array, or a list where Arrow has no exact type.

    The rows of one firing are next to each other; `counts` says how many each has. If `passes` is
    not None, it is the user's condition, a function that has yet to see each row.
    """

    def __init__(self, columns: dict[str, Any], counts: Any, passes: Any, failure: Any) -> None:
        self.columns, self.counts, self.passes = columns, counts, passes
        self.failure: tuple[int, Exception] | None = failure
        """The first row that has no value, and the error; later rows are invalid."""

    @property
    def columns_only(self) -> bool:
        """Whether the columns are the rows: no condition or failure is left to check."""
        return self.passes is None and self.failure is None

    def head(self, firings: int) -> AggregateBatch:
        """The rows of the first firings."""
        counts = self.counts[:firings]
        size = int(counts.sum())
        columns = {name: column[:size] for name, column in self.columns.items()}
        return AggregateBatch(columns, counts, None, None)

    def arrow(self, schema: Any) -> Any:
        """The rows as an Arrow batch of these types; of a null type, as the values are."""
        import pyarrow as pa

        arrays, types = list(self.columns.values()), schema.types
        if [getattr(array, "type", None) for array in arrays] != types:
            arrays = list(map(as_array, schema, arrays))
        if [array.type for array in arrays] == types:
            return pa.RecordBatch.from_arrays(arrays, schema=schema)
        fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as the event engine makes them; raises where one has no value."""
        from windowlib.columnar.firings import as_list

        names = list(self.columns)
        lists = [as_list(column) for column in self.columns.values()]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True))
        if self.failure is None:
            yield from rows
        else:
            place, error = self.failure
            yield from islice(rows, place)
            raise error


def as_array(field: Any, column: Any) -> Any:
    """A column as an Arrow array of the type of a field."""
    import pyarrow as pa

    known = not pa.types.is_null(field.type)
    if isinstance(column, list):
        return array_of(field, column)
    if not known or column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException:  # a value that does not fit, which is said as of a row
        return array_of(field, column.to_pylist())


def aggregate_batch(outputs: AggregateOutputs, firings: Firings) -> AggregateBatch:
    """One row for each firing that is not empty, or for each of its groups."""
    from windowlib.columnar.firings import Entries

    return _BatchBuilder(outputs, Entries(firings)).batch()


class _BatchBuilder:
    """The columns of all rows, before and after the condition."""

    def __init__(self, outputs: AggregateOutputs, entries: Entries) -> None:
        self.outputs, self.entries = outputs, entries
        self.failure: tuple[int, Exception] | None = None

    def batch(self) -> AggregateBatch:
        outputs, entries = self.outputs, self.entries
        columns: dict[str, Any] = dict(zip(outputs.keys, entries.keys(), strict=True))
        for name, expression in outputs.expressions.items():
            columns[name] = self._expression_values(expression)
        if isinstance(outputs.having, Expr):
            return self._filtered(columns, self._expression_values(outputs.having))
        return AggregateBatch(columns, entries.counts, outputs.having, self.failure)

    def _filtered(self, columns: dict[str, Any], condition: Any) -> AggregateBatch:
        """The rows for which a condition is true."""
        from windowlib.columnar.firings import take_results, truth

        keep, failure = truth(condition), self.failure
        if failure is not None:
            place, error = failure
            failure = (int(keep[:place].sum()), error)
            keep[place] = True  # so that it is reached, and raises
        (places,) = keep.nonzero()
        kept = {name: take_results(column, places) for name, column in columns.items()}
        return AggregateBatch(kept, self.entries.counted(keep), None, failure)

    def _expression_values(self, expression: Expr) -> Any:
        """An expression of aggregates for all rows, at once if that is exact."""
        from windowlib.columnar.firings import as_column

        if isinstance(expression, Agg):
            return self._aggregate_values(expression)
        try:
            return expression.columnar(lambda leaf: as_column(self._aggregate_values(leaf))).arrow()
        except Decline:
            return self._row_values(expression)

    def _row_values(self, expression: Expr) -> list[Any]:
        """An expression of aggregates, row by row, up to the first that has no value."""
        from windowlib.columnar.firings import as_list

        leaves = list(dict.fromkeys(expression.leaves()))
        lists = [as_list(self._aggregate_values(each)) for each in leaves]
        found: list[Any] = [None] * len(self.entries)
        for i, row in enumerate(zip(*lists, strict=True)):
            values = dict(zip(leaves, row, strict=True))
            try:
                found[i] = expression.evaluate(values.__getitem__)
            except Exception as error:
                if self.failure is None or i < self.failure[0]:
                    self.failure = i, error
                break
        return found

    def _aggregate_values(self, aggregate: Expr) -> Any:
        """The values of an aggregate for all rows."""
        entries, summaries = self.entries, len(self.outputs.calls)
        place = self.outputs.places[aggregate]
        if place < summaries:
            return entries.values(place)
        assert isinstance(aggregate, Agg)
        assert aggregate.firing is not None
        return getattr(entries, aggregate.firing.column)()
