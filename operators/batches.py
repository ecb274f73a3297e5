"""The rows of an aggregation from the firings of a whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from operators.compile import Outputs
from operators.expressions import Expr
from operators.making import Agg
from windowlib.batched import array_of

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings


class Made:
    """Rows as columns: each an Arrow array, or a list where Arrow has no exact type."""

    def __init__(self, columns: dict[str, Any], size: int, error: Exception | None = None) -> None:
        self.columns, self.size = columns, size
        self.error = error
        """Why there are not more rows: the next one has no value."""

    def head(self, size: int) -> Made:
        """The first rows."""
        columns = {name: column[:size] for name, column in self.columns.items()}
        return self if size == self.size else Made(columns, size)

    def arrow(self, schema: Any) -> Any:
        """The rows as an Arrow batch of these types; of a null type, as the values are."""
        import pyarrow as pa

        arrays = []
        for field, column in zip(schema, self.columns.values(), strict=True):
            arrays.append(as_array(field, column))
        fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as the event engine makes them; raises where one has no value."""
        names = list(self.columns)
        lists = [as_list(column) for column in self.columns.values()]
        for row in zip(*lists, strict=True):
            yield dict(zip(names, row, strict=True))
        if self.error is not None:
            raise self.error


def as_list(column: Any) -> list[Any]:
    """A column as Python values."""
    found: list[Any] = column if isinstance(column, list) else column.to_pylist()
    return found


def as_array(field: Any, column: Any) -> Any:
    """A column as an Arrow array of the type of a field."""
    import pyarrow as pa

    known = not pa.types.is_null(field.type)
    if isinstance(column, list):
        return array_of(field, column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(field.type) if known and column.type != field.type else column


def made(outputs: Outputs, firings: Firings) -> Made:
    """One row for each firing, up to the first that has no value."""
    columns: dict[str, Any] = {}
    if firings.keys is not None:
        columns |= zip(outputs.keys, firings.keys.arrow(firings.ids), strict=False)
    leaf = _leaves(outputs, firings)
    size, error = len(firings), None
    for name, expression in outputs.expressions.items():
        found = leaf(expression) if isinstance(expression, Agg) else _value(expression, leaf)
        if isinstance(found, Broken) and len(found.values) < size:
            size, error = len(found.values), found.error
        columns[name] = found.values if isinstance(found, Broken) else found
    if error is None:
        return Made(columns, size)
    return Made({name: column[:size] for name, column in columns.items()}, size, error)


class Broken:
    """The values of an expression up to a firing for which it has none, and why."""

    def __init__(self, values: list[Any], error: Exception) -> None:
        self.values, self.error = values, error


def _leaves(outputs: Outputs, firings: Firings) -> Callable[[Expr], Any]:
    """What gives the values of an aggregate for all firings."""
    import pyarrow as pa

    def leaf(aggregate: Expr) -> Any:
        place = outputs.place(aggregate)
        if place < len(firings.values):
            return firings.values[place]
        which = place - len(firings.values)
        if which == 0:
            return pa.array(firings.sizes)
        sizes = firings.sizes.tolist()
        return [1 for _ in sizes] if which == 1 else [[n] for n in sizes]

    return leaf


def _value(expression: Expr, leaf: Callable[[Expr], Any]) -> Any:
    """An expression of aggregates for all firings, at once if that is exact."""
    from windowlib.columnar.columns import Column
    from windowlib.columnar.decline import Decline

    def column(aggregate: Expr) -> Column:
        found = leaf(aggregate)
        if isinstance(found, list):
            raise Decline("values without an Arrow type")
        return Column.of(found)

    try:
        return expression.columnar(column).arrow()
    except Decline:
        return one_by_one(expression, leaf)


def one_by_one(expression: Expr, leaf: Callable[[Expr], Any]) -> list[Any] | Broken:
    """An expression of aggregates, firing by firing."""
    leaves = list(dict.fromkeys(expression.leaves()))
    lists = [as_list(leaf(each)) for each in leaves]
    found: list[Any] = []
    for row in zip(*lists, strict=True):
        values = dict(zip(leaves, row, strict=True))
        try:
            found.append(expression.evaluate(values.__getitem__))
        except Exception as error:
            return Broken(found, error)
    return found
