"""Arrow batches and rows: conversions, arrival times, and the interface that takes batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal, localcontext
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Protocol

from windowlib.attributes import Getter, brief, column_names, key_getter, one_key
from windowlib.durations import as_instant, instant_text
from windowlib.errors import ClockError, SchemaError, no_such_column, suggestion
from windowlib.event_time.watermark import source_getter, watermark_of
from windowlib.extensions import extension
from windowlib.spec.policies import Attribute


class Handover(Protocol):
    """The hand-over of some windows: where their state is, and how it moves.

    A window has a hand-over of its own, or shares that of an operator that takes the batches
    itself. `windowlib.columnar.handover` implements them.
    """

    reason: str
    """Why the last batch was not taken as columns."""
    cause: Callable[[int], None] | None
    """Called, if it is set, with the row of a batch that causes the next firing."""

    def engine_of(self, window: Any) -> Any:
        """The columnar engine with the state of a window; None: its subwindows have it."""

    def hand_back(self) -> None:
        """Move the state back to the subwindows."""

    def stopped(self, error: BaseException, doing: str) -> None:
        """Note that a change raised; an interrupt leaves the windows broken."""

    def due(self) -> int | None:
        """The next deadline, apart from ticks; None: there is none."""

    def advance(self, now: int, failures: list[Exception]) -> bool:
        """Move the clock; false: the event engine has the state."""

    def handlers_changed(self) -> None:
        """Note that the windows call other handlers from now on."""

    def plain_schema(self, window: Any) -> Any:
        """The schema of the rows of a window, without encodings; None: no batch has come."""

    def text(self, window: Any) -> str:
        """How the batches of a window are taken, for `explain`."""

    def dump(self) -> dict[str, Any] | None:
        """The arrays and the schema as plain data; None: the state is not in arrays."""

    def batch_state(self) -> dict[str, Any] | None:
        """The schema of batches and the pause after declined ones, as plain data."""

    def restore_batch_state(self, batch_state: Mapping[str, Any] | None) -> None:
        """Restore what `batch_state` returned; None: the initial state."""


class WindowHandover(Handover, Protocol):
    """The hand-over of one window, which inserts batches into it."""

    schema: Any
    """The schema of the batches that have come."""
    engine: Any
    """The columnar engine, while the state is in arrays."""

    def ages_at(self) -> int | None:
        """When the next partition reaches its maximum age."""

    @property
    def has_no_partition(self) -> bool:
        """Whether the state is in arrays, and there is no partition."""

    def insert(self, batch: Any) -> None:
        """Insert each row in order; all of them arrive now."""

    def insert_marked(
        self, batch: Any, marks: Any, insert: Callable[[Any], None]
    ) -> list[Exception]:
        """Insert each row in order, with punctuations before some; the failures of handlers."""

    def insert_timed(self, batch: Any, times: Attribute) -> list[Any]:
        """Advance to the time of each row and insert it; the rows whose times Python must read."""

    def insert_timed_rows(self, rows: Sequence[Any], times: Times) -> None:
        """Advance to the time of each row and insert it, where Python has to read the times."""

    def fire_all(
        self, otherwise: Callable[[list[Exception]], None], failures: list[Exception]
    ) -> bool:
        """Fire every partition; false: the event engine has to do it."""

    def legacy_parts(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The partitions of a snapshot with arrays of an earlier release; None: of this one."""

    def engine_of_snapshot(self, state: Mapping[str, Any]) -> Any:
        """A new engine with the arrays of a snapshot; the window does not use it yet."""

    def resume(self, engine: Any) -> None:
        """Use this engine, as if it had taken all batches so far."""


class Times:
    """Reads arrival times from rows, in microseconds.

    >>> Times("ts")({"ts": 1.5})
    1500000
    """

    def __init__(self, times: Attribute) -> None:
        self.column = times
        self.get = Getter(times, f"times={times!r}")
        """Reads the value of the column."""

    def __call__(self, row: Any) -> int:
        """When this row arrives."""
        try:
            value = row[self.column] if type(row) is dict else self.get(row)
        except KeyError:
            value = self.get(row)  # which says what is missing
        try:
            return as_instant(value)
        except ClockError:
            msg = (
                f"{self.get.owner}: the value {value!r} is no point in time. Use a column with "
                f"seconds as numbers, or with datetimes."
            )
            raise ClockError(msg) from None

    def forward(self, at: int, now: int) -> int:
        """The time of a row; one before `now` is refused."""
        if at >= now:
            return at
        msg = (
            f"{self.get.owner}: time went back from {instant_text(now)} to {instant_text(at)}. "
            f"Sort the rows by it, or let them wait for one another with replay(..., "
            f'watermark="5s").'
        )
        raise ClockError(msg)


class WatermarkTimes(Times):
    """The clock of event time: reads the time of each row, and moves the watermark with it.

    >>> clock = WatermarkTimes("ts", "5s", "replay")
    >>> [(clock({"ts": ts}) / 1e6, clock.reached / 1e6) for ts in (10, 20, 17, 30)]
    [(10.0, 5.0), (20.0, 15.0), (17.0, 15.0), (30.0, 25.0)]
    """

    reached: int
    """Where the watermark is after the last row, in microseconds."""

    def __init__(self, times: Attribute, watermark: Any, call: str) -> None:
        super().__init__(times)
        owner = f"{call}(watermark={watermark!r})"
        spec = watermark_of(watermark, owner)
        if spec.scope == "key" or any(not isinstance(a, timedelta) for _, a in spec.amounts if a):
            msg = (
                f"{owner}: there is one clock, and it counts in seconds. Use durations, as "
                f'watermark="5s", and no scope="key".'
            )
            raise ClockError(msg)
        self._progress, self._source = spec.start(), source_getter(spec)

    def __call__(self, row: Any) -> int:
        """When this row arrives."""
        source = None if self._source is None else one_key(self._source(row))
        at = super().__call__(row)
        self.reached = self._progress.observe(at, source)
        return at


def dict_rows(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The rows of columns that are equally long, of which there must be at least one.

    >>> list(dict_rows({"x": [1, 2], "y": ["a", "b"]}))
    [{'x': 1, 'y': 'a'}, {'x': 2, 'y': 'b'}]
    """
    return _maker(tuple(columns))(*columns.values())


@lru_cache(maxsize=64)
def _maker(names: tuple[str, ...]) -> Callable[..., Iterator[dict[str, Any]]]:
    """A dict display takes a quarter of the time of dict(zip(names, row))."""
    values = [f"v{i}" for i in range(len(names))]
    lists = ", ".join(f"l{i}" for i in range(len(names)))
    shown = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    source = f"lambda {lists}: ({{{shown}}} for {', '.join(values)}, in zip({lists}, strict=True))"
    made: Callable[..., Iterator[dict[str, Any]]] = eval(source)
    return made


def rows_of(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow batch: what its `to_pylist` gives, only faster."""
    names = batch.schema.names
    if not names or len(set(names)) < len(names):
        found: list[dict[str, Any]] = batch.to_pylist()
        return found
    return list(dict_rows({name: batch.column(name).to_pylist() for name in names}))


def no_column(name: str, names: Sequence[str]) -> str:
    """What to say of a column that is not there."""
    return no_such_column(f"column({name!r})", name, names)


def named_row(row: Any) -> Mapping[str, Any]:
    """A row as a mapping."""
    if isinstance(row, Mapping):
        return row
    names = column_names(row)
    if not names:
        msg = f"the row {row!r} has no named columns. Use dicts, or rows of Arrow batches."
        raise SchemaError(msg)
    return {name: getattr(row, name) for name in names}


def is_batch(item: Any) -> bool:
    """Whether rows come in it: an Arrow batch or table, or a DataFrame that can be one."""
    return hasattr(item, "to_pylist") or _is_frame(item)


def _is_frame(item: Any) -> bool:
    """Whether it is a DataFrame of another library; a reader is a source of batches instead."""
    return hasattr(item, "__arrow_c_stream__") and not (
        hasattr(item, "to_pylist") or hasattr(item, "read_next_batch")
    )


def as_arrow(frame: Any, call: str) -> Any:
    """A DataFrame of pandas, polars or another library with Arrow streams as an Arrow table.

    Anything else stays as it is. An index of pandas with a name becomes a column; one without is
    left out.

    >>> import pandas as pd
    >>> as_arrow(pd.DataFrame({"x": [1, 2]}, index=[7, 9]), "replay").to_pylist()
    [{'x': 1}, {'x': 2}]
    """
    if not _is_frame(frame):
        return frame
    import pyarrow as pa

    try:
        if not hasattr(frame, "reset_index"):
            return pa.table(frame)
        named = [name for name in frame.index.names if name is not None]
        flat = frame.reset_index(named) if named else frame
        return pa.Table.from_pandas(flat, preserve_index=False).replace_schema_metadata()
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        msg = (
            f"{call}({type(frame).__name__}): it cannot be an Arrow table ({reason}). Give each "
            f"column a name and values of one type, as with df.astype({{...}})."
        )
        raise SchemaError(msg) from error


def record_batches(batch: Any, call: str, times: Any = None) -> list[Any]:
    """An Arrow batch or table, or a DataFrame, as record batches that hold at least one row."""
    table = as_arrow(batch, call)
    columns_of(table, call, times)
    return chunks_of(table)


def chunks_of(batch: Any) -> list[Any]:
    """The record batches of what `columns_of` has checked, without those that hold no row."""
    found = batch.to_batches() if hasattr(batch, "to_batches") else [batch]
    return [part for part in found if part.num_rows]


def columns_of(batch: Any, call: str, times: Any = None) -> Any:
    """The schema of an Arrow batch or table, if its rows can be told apart by column names."""
    if not hasattr(batch, "num_rows") or not hasattr(batch, "schema"):
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
    if hasattr(batch, "collect"):
        return "Pass its collect()"
    if hasattr(batch, "to_pylist"):
        return 'Name its values, as in pa.record_batch({"x": values})'
    return "Pass an Arrow table or a DataFrame; rows go in with insert_many"


def in_order(batch: Any, by: Any) -> Any:
    """The rows of an Arrow batch or table ordered by columns: nulls first, NaN last, stable.

    >>> import pyarrow as pa
    >>> in_order(pa.table({"ts": [2, None, 1]}), "ts").to_pylist()
    [{'ts': None}, {'ts': 1}, {'ts': 2}]
    """
    import pyarrow as pa

    names = by if isinstance(by, tuple) else (by,)
    if (found := extension("sorted_rows")(batch, names)) is not None:
        return found
    get = key_getter(names, f"order_by={by!r}")
    rows = batch.to_pylist()
    order = sorted(range(len(rows)), key=lambda i: ranks(get(rows[i])))
    return extension("gather_rows")(batch, pa.array(order, pa.int64()))


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
        return exact_array(values, field.type if known else None)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if not known and (wide := wide_integers(values)) is not None:
            return wide
        reason = str(error).splitlines()[0].rstrip(".")
        kind = f"is {field.type}, and a value does not fit" if known else "has no single type"
        msg = (
            f"process_batch(...): the output column {field.name!r} {kind} ({reason}). Use "
            f"insert_batch, which sends rows, or a wider type for what the column is made of."
        )
        raise SchemaError(msg) from error


def exact_array(values: Sequence[Any], kind: Any = None) -> Any:
    """Python values as an Arrow array, of a type or of one that they share.

    `pyarrow.array` makes 1 of 1.5 in a column of whole numbers, and 40 microseconds of 40.0 in one
    of times. Such values are refused here, as others are that do not fit.

    >>> import pyarrow as pa
    >>> exact_array([2.0, None], pa.int64()).to_pylist()
    [2, None]
    >>> exact_array([[1, 1.5]], pa.list_(pa.int64()))
    Traceback (most recent call last):
    ValueError: 1.5 is no int64
    """
    import pyarrow as pa

    made = pa.array(values, kind)
    if kind is not None:
        _check_whole(values, kind)
    return made


def exact_batch(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Rows as an Arrow batch of exactly these columns; what a row lacks is null."""
    import pyarrow as pa

    arrays = [exact_array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_whole(values: Sequence[Any], kind: Any) -> None:
    """Refuse numbers that a type of whole numbers or times would cut off, in nested values, too."""
    import pyarrow as pa

    temporal = pa.types.is_temporal(kind)
    if temporal or pa.types.is_integer(kind):
        doubtful = set(filter(_may_be_cut, set(map(type, values))))
        for value in values if doubtful else ():
            if type(value) in doubtful and (temporal or value != int(value)):
                msg = f"{value!r} is no {kind}"
                raise ValueError(msg)
    elif _has_whole(kind):
        for inner, each in _inner(values, kind):
            _check_whole(each, inner)


def _may_be_cut(kind: type) -> bool:
    """Whether values of a class are numbers that need not be whole."""
    return issubclass(kind, Real | Decimal) and not issubclass(kind, Integral)


def _has_whole(kind: Any) -> bool:
    """Whether there are whole numbers or times somewhere in a nested type."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_has_whole(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _inner(values: Sequence[Any], kind: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The types in a nested one, with the values that are of each."""
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if pa.types.is_struct(kind):
        names = kind.names
        rows = [
            row if isinstance(row, Mapping) else dict(zip(names, row, strict=False))
            for row in known
        ]
        for field in kind:
            yield field.type, [row.get(field.name) for row in rows]
    elif pa.types.is_map(kind):
        pairs = [
            pair for each in known for pair in (each.items() if hasattr(each, "items") else each)
        ]
        yield kind.key_type, [key for key, _ in pairs]
        yield kind.item_type, [value for _, value in pairs]
    else:
        yield kind.value_type, [value for each in known for value in each]


def wide_integers(values: Sequence[Any]) -> Any:
    """Whole numbers beyond 63 bits as an Arrow array: uint64, or decimals without places.

    None if there are others among them, or more than 76 digits.

    >>> wide_integers([2**63, None]).type, wide_integers([2**63, -1]).type, wide_integers([0.5])
    (DataType(uint64), Decimal128Type(decimal128(38, 0)), None)
    """
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if not known or any(isinstance(x, bool) or not isinstance(x, int) for x in known):
        return None
    if min(known) >= 0 and max(known) < 1 << 64:
        return pa.array(values, pa.uint64())
    digits = max(len(str(abs(x))) for x in (min(known), max(known)))
    if digits > 76:
        return None
    kind = pa.decimal128(38) if digits <= 38 else pa.decimal256(76)
    return pa.array([None if x is None else Decimal(x) for x in values], kind)


def content_of(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Rows as an Arrow batch, of these columns if they are known; else of those of the first row.

    Whole numbers that do not fit the type of their column make it as wide as they are.
    """
    import pyarrow as pa

    if schema is None:
        kinds = dict.fromkeys(rows[0] if rows else ())
    else:
        kinds = dict(zip(schema.names, schema.types, strict=True))
    arrays = [
        _content_column(name, [row.get(name) for row in rows], kind) for name, kind in kinds.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, list(kinds))


def _content_column(name: str, values: list[Any], kind: Any) -> Any:
    """The values of one column, of its type if they fit."""
    import pyarrow as pa

    try:
        return exact_array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if (wide := wide_integers(values)) is not None:
            return wide
        reason = str(error).splitlines()[0].rstrip(".")
        what = "has no single type" if kind is None else f"is {kind}, and a value does not fit"
        msg = (
            f"window.arrow(...): the column {name!r} {what} ({reason}). Use one type for the "
            f"column, or read the tuples: window[key]."
        )
        raise SchemaError(msg) from error


def _placed(value: Any, places: int) -> Any:
    """A decimal rounded to as many places as its column has; anything else as it is."""
    if isinstance(value, Decimal) and value.is_finite():
        with localcontext(prec=76):
            return round(value, places)
    return value


def fitting_row(
    row: Any, names: frozenset[str], call: str = "process_batch(...)"
) -> Mapping[str, Any]:
    """A row as a mapping that has none but these columns; `call` is what messages start with."""
    found = row if type(row) is dict else named_row(row)
    if not found.keys() <= names:
        name = next(name for name in found if name not in names)
        msg = (
            f"{call}: the row {brief(row)} has a column {name!r}, which the output has "
            f"not. Columns: {', '.join(sorted(names))}.{suggestion(name, names)}"
        )
        raise SchemaError(msg)
    return found


def batch_of(rows: Sequence[Any], schema: Any) -> Any:
    """Rows of the event engine as an Arrow batch of these columns; what a row lacks is null."""
    import pyarrow as pa

    names = frozenset(schema.names)
    named = [fitting_row(row, names) for row in rows]
    arrays = [array_of(field, [row.get(field.name) for row in named]) for field in schema]
    fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class OutputRows:
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
        last = self._parts[-1] if self._parts else None
        if not (isinstance(last, BatchRows) and last.goes_on(columns)):
            self._parts.append(columns)

    def clear(self) -> None:
        """None is left."""
        self._parts.clear()

    def taken(self, schema: Any) -> Any:
        """All of them; none is left."""
        import pyarrow as pa

        parts, self._parts = self._parts, []
        if schema is None:  # then there are none but rows, which may differ in their columns
            names = dict.fromkeys(name for part in parts for row in part for name in named_row(row))
            schema = pa.schema([pa.field(name, pa.null()) for name in names])
        found = [
            batch_of(part, schema) if isinstance(part, list) else part.arrow(schema)
            for part in parts
        ]
        return joined(found) if found else batch_of((), schema)


class OutputColumns:
    """Rows as Arrow arrays by name, on their way out of an operator."""

    def __init__(
        self, arrays: dict[str, Any], size: int, marks: Any = None, counts: Any = None
    ) -> None:
        self._arrays, self._size = arrays, size
        self.marks = () if marks is None else marks
        """Before which row each window punctuation comes."""
        self.counts = counts
        """How many rows each firing has, if they come of firings."""

    @classmethod
    def of(cls, batch: Any, marks: Any = None) -> OutputColumns:
        """The rows of a batch, with punctuations between them."""
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        return cls(arrays, batch.num_rows, marks)

    def batch(self) -> Any:
        """The rows as a batch."""
        import pyarrow as pa

        return pa.RecordBatch.from_arrays(list(self._arrays.values()), list(self._arrays))

    def arrow(self, schema: Any) -> Any:
        """The rows as a batch of these columns; one that they do not have is null."""
        import pyarrow as pa

        arrays = [self._array(field) for field in schema]
        fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _array(self, field: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        found = self._arrays.get(field.name)
        if found is None:
            return pa.nulls(self._size, field.type)
        if pa.types.is_run_end_encoded(found.type):  # which Arrow does not cast
            found = pc.run_end_decode(found)
        same = found.type == field.type or pa.types.is_null(field.type)
        return found if same else found.cast(field.type)


class BatchRows:
    """The rows `[lo, hi)` of a batch, on their way out of an operator."""

    def __init__(self, batch: Any, lo: int, hi: int) -> None:
        self._batch, self._lo, self._hi = batch, lo, hi

    def goes_on(self, other: Any) -> bool:
        """Take the rows behind these, if others are that."""
        fits = isinstance(other, BatchRows) and other._batch is self._batch
        if fits := fits and other._lo == self._hi:
            self._hi = other._hi
        return fits

    def arrow(self, schema: Any) -> Any:
        """The rows as a batch of these columns."""
        return OutputColumns.of(self._batch.slice(self._lo, self._hi - self._lo)).arrow(schema)


def _unencoded(batch: Any) -> Any:
    """A batch of types that Arrow brings together with others."""
    import pyarrow as pa

    arrays = [_signed(extension("unencoded")(column)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _signed(array: Any) -> Any:
    """Whole numbers of either sign; as decimals, where they are too large for that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_uint64(array.type):
        return array
    large = (pc.max(array).as_py() or 0) >= 2**63
    return array.cast(pa.decimal128(38) if large else pa.int64())


def joined(batches: Sequence[Any]) -> Any:
    """Batches as one; where only the values told the types, in a type that fits all of them."""
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    if all(batch.schema == batches[0].schema for batch in batches):
        return pa.concat_batches(batches)
    tables = [pa.Table.from_batches([_unencoded(batch)]) for batch in batches]
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    columns = [column.combine_chunks() for column in whole.columns]
    return pa.RecordBatch.from_arrays(columns, schema=whole.schema)
