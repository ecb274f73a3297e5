"""Whether windows can measure by their columns, as far as the types of these tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from windowlib.errors import SchemaError
from windowlib.spec.policies import Attribute, Delta
from windowlib.spec.specification import Spec


def check_measures(spec: Spec, schema: Any) -> None:
    """Refuse columns that a policy finds no distance in, and distances of another kind.

    >>> import pyarrow as pa
    >>> from windowlib import Tumbling
    >>> check_measures(Tumbling(Delta("ts", 5)), pa.schema({"ts": pa.int64()}))
    >>> times = pa.schema({"ts": pa.timestamp("us")})
    >>> check_measures(Tumbling(Delta("ts", 5)), times)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    windowlib.errors.SchemaError: ...: the column 'ts' is timestamp[us], so distances ...
    """
    for shown, column, amounts in _measures(spec):
        place = schema.get_field_index(column) if isinstance(column, str) else -1
        if place < 0:
            continue
        kind = schema.field(place).type
        numbers, times = _is_number(kind), _is_time(kind)
        if not numbers and not times:
            if _says_nothing(kind):
                continue
            msg = (
                f"{shown}: the column {column!r} is {kind}, which has no distances. Use a column "
                f"of numbers, dates or timestamps, or cast it before."
            )
            raise SchemaError(msg)
        if any(isinstance(amount, timedelta) is not times for amount in amounts):
            fix = 'durations, such as "5s"' if times else "numbers, such as 5"
            msg = f"{shown}: the column {column!r} is {kind}, so distances must be {fix}."
            raise SchemaError(msg)


def _measures(spec: Spec) -> Iterator[tuple[str, Attribute, list[Any]]]:
    """What messages call it, the column and the distances of each policy that measures by one."""
    event = spec.evict.event
    if event is not None:
        yield repr(event), event.attribute, [amount for _, amount in spec.amounts]
    for policy in spec.policies:
        if isinstance(policy, Delta):
            yield policy.shown, policy.attribute, [policy.threshold]


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    of = pa.types
    return bool(of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind))


def _is_time(kind: Any) -> bool:
    import pyarrow as pa

    of = pa.types
    return bool(of.is_timestamp(kind) or of.is_date(kind) or of.is_duration(kind))


def _says_nothing(kind: Any) -> bool:
    """Whether values of a type may be of any kind, or count as numbers."""
    import pyarrow as pa

    of = pa.types
    encoded = of.is_dictionary(kind) or of.is_run_end_encoded(kind)
    return bool(
        of.is_null(kind) or of.is_boolean(kind) or encoded or isinstance(kind, pa.BaseExtensionType)
    )
