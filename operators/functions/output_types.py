"""The Arrow types of the results of aggregate functions, from the types of their columns.

A rule takes the types of the columns, None where only the rows tell, and the options of the call;
it gives None where only the values tell. Types depend on types alone, so that all batches of an
output have the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

QUOTIENT_PLACES = 6
"""Decimal places that a quotient of decimals has more than its operands."""
WIDEST = 38
"""Digits of a decimal."""

Kinds = Sequence[Any]
Options = Mapping[str, Any]


def count_type(kinds: Kinds, options: Options) -> Any:
    """A whole number, of whatever columns."""
    import pyarrow as pa

    return pa.int64()


def counts_type(kinds: Kinds, options: Options) -> Any:
    """A list of whole numbers."""
    import pyarrow as pa

    return pa.list_(pa.int64())


def float_type(kinds: Kinds, options: Options) -> Any:
    """A float, of whatever columns."""
    import pyarrow as pa

    return pa.float64()


def column_type(kinds: Kinds, options: Options) -> Any:
    """The type of the first column."""
    return None if _unknown(kinds) else kinds[0]


def list_type(kinds: Kinds, options: Options) -> Any:
    """A list of values of the first column."""
    import pyarrow as pa

    return None if _unknown(kinds) else pa.list_(kinds[0])


def sum_type(kinds: Kinds, options: Options) -> Any:
    """The widest of its kind: int64, float64, a decimal of the same scale."""
    import pyarrow as pa

    kind = kinds[0]
    if kind is None:
        return None
    if pa.types.is_list(kind):
        return _list_of(sum_type([kind.value_type], options))
    if pa.types.is_decimal(kind):
        return decimal_of(kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if is_number(kind) else _duration(kind)


def quotient_type(kinds: Kinds, options: Options) -> Any:
    """A float, or a decimal with more places than its operands."""
    if _unknown(kinds):
        return None
    return quotient_of(kinds) if all(map(is_number, kinds)) else _duration(kinds[0])


def mean_type(kinds: Kinds, options: Options) -> Any:
    """A quotient; of lists a list of them."""
    import pyarrow as pa

    kind = kinds[0]
    if kind is not None and pa.types.is_list(kind):
        return _list_of(mean_type([kind.value_type], options))
    return quotient_type(kinds, options)


def quantile_type(kinds: Kinds, options: Options) -> Any:
    """The type of the column, or a quotient where something between two values is computed."""
    (kind,) = kinds
    if kind is None:
        return None
    computed = options.get("method") == "linear" and is_number(kind)
    return quotient_of([kind]) if computed else kind


# -- what rules are made of -----------------------------------------------------------------------


def is_number(kind: Any) -> bool:
    """Whether values of a type can be computed with."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def is_addable(kind: Any) -> bool:
    """Whether values of a type may add up: all but text, bytes, dates and times."""
    import pyarrow as pa

    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)
    return not (text or types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind))


def decimal_of(scale: int) -> Any:
    """The widest decimal with these places."""
    import pyarrow as pa

    return pa.decimal128(WIDEST, min(scale, WIDEST))


def quotient_of(kinds: Kinds) -> Any:
    """The type of a quotient of numbers."""
    import pyarrow as pa

    scales = [kind.scale for kind in kinds if pa.types.is_decimal(kind)]
    return decimal_of(max(scales) + QUOTIENT_PLACES) if scales else pa.float64()


def _unknown(kinds: Kinds) -> bool:
    return any(kind is None for kind in kinds)


def _duration(kind: Any) -> Any:
    """Durations add up, and nothing else that is no number."""
    import pyarrow as pa

    return kind if pa.types.is_duration(kind) else None


def _list_of(kind: Any) -> Any:
    import pyarrow as pa

    return None if kind is None else pa.list_(kind)
