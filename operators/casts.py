"""Values as other types: what `.cast` of an expression does with one value."""

from __future__ import annotations

import ctypes
import math
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

from windowlib.errors import ModelError, SchemaError
from windowlib.runtime.schema_text import schema_of

TRUTHS = {"true": True, "false": False}
KINDS = "tinyint, smallint, int, bigint, float, double, decimal(10, 2), string or boolean"


def cast_type(kind: str, owner: str) -> Any:
    """The Arrow type for a type in Spark's words, if values can become it."""
    import pyarrow as pa

    try:
        found = schema_of(f"x {kind}", owner).field(0).type
    except SchemaError:
        found = None
    types = pa.types
    known = found is not None and any(
        test(found)
        for test in (
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_string,
            types.is_boolean,
        )
    )
    if not known:
        raise ModelError(f"{owner}({kind!r}): not a type to cast to. Use {KINDS}.")
    return found


def cast_value(value: Any, kind: Any, owner: str) -> Any:
    """A value as one of an Arrow type.

    >>> import pyarrow as pa
    >>> [cast_value(x, pa.int32(), "x") for x in (7.9, -7.9, "12", True, Decimal("1e2"))]
    [7, -7, 12, 1, 100]
    """
    import pyarrow as pa

    try:
        if pa.types.is_integer(kind):
            return _whole(value, kind.bit_width)
        if pa.types.is_floating(kind):
            return _floating(value, kind.bit_width)
        if pa.types.is_decimal(kind):
            return _decimal(value, kind.precision, kind.scale)
        return _truth(value) if pa.types.is_boolean(kind) else _text(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        msg = (
            f"{owner}: {value!r} is no {kind} ({error}). Filter such rows before, or cast to a "
            f"type that holds them."
        )
        raise SchemaError(msg) from error


def _whole(value: Any, bits: int) -> int:
    found = int(value.strip()) if isinstance(value, str) else math.trunc(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"it does not fit into {bits} bits")
    return found


def _floating(value: Any, bits: int) -> float:
    if isinstance(value, bytes | date):
        raise TypeError(f"a {type(value).__name__} is no number")
    found = float(value)
    return found if bits == 64 else ctypes.c_float(found).value


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    exact = repr(value) if isinstance(value, float) else value
    with localcontext(prec=precision):
        try:
            return Decimal(exact).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        except InvalidOperation:
            raise ValueError(f"it has no {precision} digits, {scale} of them places") from None


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        if value.strip().lower() not in TRUTHS:
            raise ValueError("text is true or false")
        return TRUTHS[value.strip().lower()]
    if isinstance(value, bytes | date):
        raise TypeError(f"a {type(value).__name__} is neither true nor false")
    return bool(value != 0)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime | date):
        return str(value)
    if not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} has no text of its own")
    return str(value)
