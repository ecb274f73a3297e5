"""The Arrow columns of rows that operators send on as they are, or put together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from windowlib.runtime.operator import Operator
from windowlib.runtime.running import nowhere
from windowlib.spec.policies import Attribute
from windowlib.window.arrow import OutputColumns, dict_rows
from windowlib.window.consumer import FiringFailed


def pass_through_schema(*schemas: Any) -> Any:
    """The columns of rows that come from one of these inputs; None if none of them is known.

    A column that two inputs have with different types has the type null: its values tell.

    >>> import pyarrow as pa
    >>> one, two = pa.schema({"x": pa.int64(), "y": pa.int8()}), pa.schema({"x": pa.string()})
    >>> pass_through_schema(one, None, two)
    x: null
    y: int8
    """
    known = [schema for schema in schemas if schema is not None]
    if not known:
        return None
    return schema_with(
        (field.name, decoded_type(field.type)) for schema in known for field in schema
    )


def schema_with(columns: Iterable[tuple[str, Any]]) -> Any:
    """A schema of names and types, None for a type that only the values tell."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, kind in columns:
        kind = pa.null() if kind is None else kind
        found[name] = (
            kind if found.setdefault(name, kind) == kind else common_type(found[name], kind)
        )
    return pa.schema(found)


def common_type(one: Any, other: Any) -> Any:
    """A type that holds the values of two exactly; null if only the values tell.

    >>> import pyarrow as pa
    >>> common_type(pa.int8(), pa.int32()), common_type(pa.int8(), pa.string())
    (DataType(int64), DataType(null))
    """
    import pyarrow as pa

    for family, widest in ((pa.types.is_integer, pa.int64()), (pa.types.is_floating, pa.float64())):
        if family(one) and family(other) and pa.uint64() not in (one, other):
            return widest
    text = (pa.string(), pa.large_string())
    return text[1] if one in text and other in text else pa.null()


def type_of(attribute: Attribute | None, schema: Any) -> Any:
    """The type of a column, None if only the rows tell."""
    index = schema.get_field_index(attribute) if isinstance(attribute, str) else -1
    return None if index < 0 else decoded_type(schema.field(index).type)


def decoded_type(kind: Any) -> Any:
    """A type without its encoding.

    >>> import pyarrow as pa
    >>> decoded_type(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    import pyarrow as pa

    encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return decoded_type(kind.storage_type)
    return decoded_type(kind.value_type) if encoded else kind


def send_firings(operator: Operator, columns: dict[str, Any], lengths: Any, causes: Any) -> None:
    """Send the rows of all firings of a batch, each firing's with its punctuation.

    Args:
        operator: who sends them.
        columns: the rows as Arrow arrays by name, firing after firing.
        lengths: how many rows each firing has, as a numpy array.
        causes: the row of the batch that caused each firing.
    """

    row, punct = operator._outputs[0], operator._puncts[0]
    if operator._many is not None and punct is nowhere:
        operator._many(OutputColumns(columns, int(lengths.sum()), counts=lengths))
        return
    rows = dict_rows({name: array.to_pylist() for name, array in columns.items()})
    for length, cause in zip(lengths.tolist(), causes.tolist(), strict=True):
        try:
            for found in islice(rows, length):
                row(found)
            punct()
        except Exception as error:
            raise FiringFailed(cause, error) from error
