"""Whole Arrow batches into a window; the arrays themselves are in `windowlib.columnar`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from windowlib.arrivals import Times
from windowlib.attributes import brief, column_names, key_getter
from windowlib.errors import AccessError, SchemaError, no_such_column, suggestion

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings
    from windowlib.columnar.host import Batches


class Batched:
    """The half of a window that takes batches, and knows where its state is."""

    _ahead = False  # whether the state is in arrays, and the subwindows are behind
    _batches: Batches | None = None
    _consumer: Callable[[Firings], None] | None = None  # is told of firings instead of handlers
    _guard: Callable[[Any], None] | None = None  # declines batches with rows that it may refuse
    _keeper: Callable[..., Any] | None = None  # makes the engine that keeps tuples
    _partial = True  # whether it is told of windows that have never been full, too
    _on: Mapping[str, Callable[..., Any]]

    def insert_batch(self, batch: Any, times: str | None = None) -> None:
        """Take the rows of an Arrow batch or table in order: `insert` for each, only faster.

        Rows count as dicts. Where array arithmetic gives exactly what inserting them one by one
        would give, whole columns are worked on at once; `explain()` says which.

        Args:
            batch: a `pyarrow.RecordBatch` or `pyarrow.Table`.
            times: the column that says when a row arrives, as seconds or timestamps: `advance` to
                that time comes before its `insert`. Without it all rows arrive now.

        >>> import pyarrow as pa
        >>> from windowlib import Count, TumblingWindow, summarizers
        >>> window = TumblingWindow(evict=Count(3), summarizer=summarizers.sum("x"))
        >>> window.insert_batch(pa.table({"x": [1, 2, 3, 4, 5]}))
        >>> window.size(), window.summary().value()
        (2, 9)
        """
        parts = record_batches(batch, "insert_batch", times)
        for part in parts:
            host = self._host()
            if times is None:
                host.insert(part)
            else:
                host.one_by_one(host.insert_timed(part, times), Times(times))

    def arrow(self, key: Any = None) -> Any:
        """The tuples of a partition as an Arrow batch; they must be rows with named columns.

        Columns have the types of the batches that came in, without dictionaries. Handlers with
        `content = "arrow"` get it without a copy where batches go in.
        """
        import pyarrow as pa

        rows = [_named(row) for row in self[key]]  # type: ignore[index]  # of Window
        schema = None if self._batches is None else self._batches.plain_schema()
        return pa.RecordBatch.from_pylist(rows, schema)

    def column(self, name: str, key: Any = None) -> Any:
        """The values of one column of a partition, as a numpy array."""
        found = self.arrow(key)
        if name not in found.schema.names:
            raise AccessError(no_column(name, found.schema.names))
        return found.column(name).to_numpy(zero_copy_only=False)

    def _host(self) -> Batches:
        if self._batches is None:
            from windowlib.columnar.host import Batches

            self._batches = Batches(self)  # type: ignore[arg-type]  # Window is the only subclass
        return self._batches

    def _settle(self) -> None:
        """Bring the subwindows up to date: somebody is going to look at them."""
        if self._ahead:
            assert self._batches is not None
            self._batches.settle()

    def _lead(self, ahead: bool) -> None:
        """Say where the state is; inserts of single tuples then find out by themselves."""
        self._ahead = ahead
        if ahead and "_clock" not in self.__dict__:
            for name in ("insert", "insert_many"):
                self.__dict__.pop(name, None)

    def _rehandled(self, handlers: Mapping[str, Callable[..., Any]]) -> None:
        """Call other handlers from now on."""
        self._on = handlers
        self._before_flush = handlers.get("before_flush")
        self._after_flush = handlers.get("after_flush")
        self._reset_insert()

    def _reset_insert(self) -> None:
        raise NotImplementedError


def no_column(name: str, names: Sequence[str]) -> str:
    """What to say of a column that is not there."""
    return no_such_column(f"column({name!r})", name, names)


def _named(row: Any) -> Mapping[str, Any]:
    """A row as a mapping."""
    if isinstance(row, Mapping):
        return row
    names = column_names(row)
    if not names:
        msg = f"the row {row!r} has no named columns. Use dicts, or rows of Arrow batches."
        raise SchemaError(msg)
    return {name: getattr(row, name) for name in names}


def record_batches(batch: Any, call: str, times: Any = None) -> list[Any]:
    """An Arrow batch or table as record batches that hold at least one row."""
    columns_of(batch, call, times)
    found = batch.to_batches() if hasattr(batch, "to_batches") else [batch]
    return [part for part in found if part.num_rows]


def columns_of(batch: Any, call: str, times: Any = None) -> Any:
    """The schema of an Arrow batch or table, if its rows can be told apart by column names."""
    if not hasattr(batch, "schema") or not hasattr(batch, "num_rows"):
        msg = f"{call}({type(batch).__name__}): not an Arrow batch. {_remedy(batch)}."
        raise SchemaError(msg)
    names = batch.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        msg = (
            f"{call}(batch): two columns are called {twice!r}. Rename or drop one of them, as with "
            f"batch.rename_columns([...])."
        )
        raise SchemaError(msg)
    if times is not None and not callable(times) and times not in names:
        raise SchemaError(no_such_column(f"times={times!r}", times, names))
    return batch.schema


def _remedy(batch: Any) -> str:
    """What to pass instead of something that is no Arrow batch."""
    if hasattr(batch, "read_next_batch") or hasattr(batch, "to_batches"):
        return "Pass the batches in it, one at a time"
    if hasattr(batch, "to_arrow"):
        return "Pass its to_arrow()"
    if hasattr(batch, "to_dict"):
        return "Pass pa.Table.from_pandas(df)"
    if hasattr(batch, "to_pylist"):
        return 'Name its values, as in pa.record_batch({"x": values})'
    return "Pass a pyarrow.RecordBatch or Table; rows go in with insert_many"


def in_order(batch: Any, by: Any) -> Any:
    """The rows of an Arrow batch or table ordered by columns: nulls first, NaN last, stable.

    >>> import pyarrow as pa
    >>> in_order(pa.table({"ts": [2, None, 1]}), "ts").to_pylist()
    [{'ts': None}, {'ts': 1}, {'ts': 2}]
    """
    import pyarrow as pa

    from windowlib.columnar.decline import Decline
    from windowlib.columnar.sorting import order_of

    names = by if isinstance(by, tuple) else (by,)
    try:
        order = order_of(batch, names)
        return batch if order is None else batch.take(pa.array(order))
    except Decline:  # values that only Python compares
        get = key_getter(names, f"order_by={by!r}")
        rows = batch.to_pylist()
        ranked = sorted(range(len(rows)), key=lambda i: ranks(get(rows[i])))
        return batch.take(pa.array(ranked, pa.int64()))


def ranks(values: Any) -> list[tuple[Any, ...]]:
    """What rows are ordered by: nulls first, NaN last."""
    return [(v is not None, v != v, v if v is not None and v == v else 0) for v in values]


def array_of(field: Any, values: list[Any]) -> Any:
    """Python values as an Arrow array of a field's type; of a null type, as they are."""
    import pyarrow as pa

    known = not pa.types.is_null(field.type)
    if known and pa.types.is_decimal(field.type):
        values = [_placed(value, field.type.scale) for value in values]
    try:
        return pa.array(values, field.type if known else None)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        kind = f"is {field.type}, and a value does not fit" if known else "has no single type"
        msg = (
            f"process_batch(...): the output column {field.name!r} {kind} ({reason}). Use "
            f"insert_batch, which sends rows, or a wider type for what the column is made of."
        )
        raise SchemaError(msg) from error


def _placed(value: Any, places: int) -> Any:
    """A decimal rounded to as many places as its column has; anything else as it is."""
    if isinstance(value, Decimal) and value.is_finite():
        with localcontext(prec=76):
            return round(value, places)
    return value


def _fitting(row: Any, names: frozenset[str]) -> Mapping[str, Any]:
    """A row as a mapping that has none but these columns."""
    found = row if type(row) is dict else _named(row)
    if not found.keys() <= names:
        name = next(name for name in found if name not in names)
        msg = (
            f"process_batch(...): the row {brief(row)} has a column {name!r}, which the output has "
            f"not. Columns: {', '.join(sorted(names))}.{suggestion(name, names)}"
        )
        raise SchemaError(msg)
    return found


def batch_of(rows: Sequence[Any], schema: Any) -> Any:
    """Rows of the event engine as an Arrow batch of these columns; what a row lacks is null."""
    import pyarrow as pa

    names = frozenset(schema.names)
    named = [_fitting(row, names) for row in rows]
    arrays = [array_of(field, [row.get(field.name) for row in named]) for field in schema]
    fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class Made:
    """Rows that wait to be taken as one Arrow batch, in the order in which they were made."""

    def __init__(self) -> None:
        self._parts: list[Any] = []  # lists of rows, or many rows as columns

    def add(self, row: Any) -> None:
        """One row more."""
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].append(row)

    def add_columns(self, columns: Any) -> None:
        """Many rows more, which know how to become Arrow (`columns.arrow(schema)`)."""
        self._parts.append(columns)

    def clear(self) -> None:
        """None is left."""
        self._parts.clear()

    def taken(self, schema: Any) -> Any:
        """All of them; none is left."""
        import pyarrow as pa

        parts, self._parts = self._parts, []
        if schema is None:  # then there are none but rows, which may differ in their columns
            names = dict.fromkeys(name for part in parts for row in part for name in _named(row))
            schema = pa.schema([pa.field(name, pa.null()) for name in names])
        found = [
            batch_of(part, schema) if isinstance(part, list) else part.arrow(schema)
            for part in parts
        ]
        return joined(found) if found else batch_of((), schema)


def joined(batches: Sequence[Any]) -> Any:
    """Batches as one; where only the values told the types, in a type that fits all of them."""
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    if all(batch.schema == batches[0].schema for batch in batches):
        return pa.concat_batches(batches)
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    columns = [column.combine_chunks() for column in whole.columns]
    return pa.RecordBatch.from_arrays(columns, schema=whole.schema)
