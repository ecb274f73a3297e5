"""Arithmetic and comparison of columns, as Python has it for the values one by one.

A null operand gives null, and so does a division by zero. What Python would compute differently,
such as whole numbers beyond 64 bits, is declined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.physical import EXACT, LIMIT, VIEWS, max_magnitude
from windowlib.columnar.primitives import Array
from windowlib.window.consumer import Decline

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
TEXTS = (pa.string(), pa.large_string(), pa.string_view())


def binary(sign: str, left: Any, right: Any) -> Column:
    """`left sign right`, for each place."""
    if sign in ("==", "!=") and (text := _text_and_constant(left, right)) is not None:
        return _same_text(sign, *text)
    if sign in ("&", "|"):
        return _combined(sign, left, right)
    a, b = _numbers(left), _numbers(right)
    valid = _both(left, right)
    if sign in COMPARE:
        mixed = {_kind(a), _kind(b)} == {"i", "f"}
        if mixed and any(_kind(x) == "i" and _size(x) > EXACT for x in (a, b)):
            raise Decline("whole numbers that are no floats")
        return Column(pa.bool_(), COMPARE[sign](a, b).astype(np.int64), valid)
    if sign == "/":
        return _divided(a, b, valid)
    if sign not in ("+", "-", "*"):
        raise Decline(f"{sign} needs Python values")
    with np.errstate(over="ignore", invalid="ignore"):
        return _made({"+": np.add, "-": np.subtract, "*": np.multiply}[sign], sign, a, b, valid)


def negative(operand: Column) -> Column:
    """The other sign."""
    return binary("-", 0, operand) if _kind(_numbers(operand)) == "i" else _flipped(operand)


def where(condition: Column, operand: Any) -> Column:
    """The operand where a condition is true, null elsewhere."""
    true = _truths(condition)
    if not isinstance(operand, Column):
        operand = Column.of(pa.array([operand])).take(np.zeros(len(true), np.int64))
    found: Column = operand.take_or_null(np.where(true, np.arange(len(true)), -1))
    return found


def cast(operand: Column, kind: Any) -> Column:
    """A column of numbers as one of other numbers; what else there is needs Python values."""
    data, types = _numbers(operand), pa.types
    if types.is_float64(kind):
        return Column(kind, data.astype(np.float64), operand.valid)
    if not types.is_integer(kind):
        raise Decline(f"a cast to {kind} needs Python values")
    limit = 2.0 ** (kind.bit_width - 1)
    known = data if operand.valid is None else data[operand.valid]
    with np.errstate(invalid="ignore"):
        if not ((known > -limit) & (known < limit)).all():
            raise Decline(f"values that may be no {kind}")
        return Column(kind, data.astype(np.int64), operand.valid)


def _truths(column: Any) -> Array:
    """Where a condition is true."""
    if not isinstance(column, Column) or not pa.types.is_boolean(column.type):
        raise Decline("conditions that are not of booleans need Python values")
    true: Array = column.data != 0
    return true if column.valid is None else true & column.valid


def _combined(sign: str, left: Any, right: Any) -> Column:
    """Both conditions, or one of them, as in SQL."""
    true = [_truths(each) for each in (left, right)]
    false = [
        (each.data == 0) & (True if each.valid is None else each.valid) for each in (left, right)
    ]
    if sign == "&":
        holds, fails = true[0] & true[1], false[0] | false[1]
    else:
        holds, fails = true[0] | true[1], false[0] & false[1]
    known = None if left.valid is None and right.valid is None else holds | fails
    return Column(pa.bool_(), holds.astype(np.int64), known)


def _text_and_constant(left: Any, right: Any) -> tuple[Column, str] | None:
    """A column of text and a text that it is compared with."""
    column, constant = (right, left) if isinstance(left, str) else (left, right)
    if not isinstance(column, Column) or not isinstance(constant, str):
        return None
    return (column, constant) if column.type in TEXTS else None


def _same_text(sign: str, column: Column, constant: str) -> Column:
    data = column.data.cast(VIEWS.get(column.type, column.type))
    same = pc.equal(data, pa.scalar(constant, data.type)).fill_null(False)
    found = same.to_numpy(zero_copy_only=False) == (sign == "==")
    valid = column.valid
    return Column(pa.bool_(), _cleared(found.astype(np.int64), valid), valid)


def _flipped(operand: Column) -> Column:
    return Column(pa.float64(), -operand.data, operand.valid)


def _made(ufunc: Any, sign: str, a: Any, b: Any, valid: Array | None) -> Column:
    if "f" in (_kind(a), _kind(b)):
        for x in (a, b):
            if _kind(x) == "i" and _size(x) > EXACT:
                raise Decline("whole numbers that are no floats")
        return Column(pa.float64(), _cleared(ufunc(a, b, dtype=np.float64), valid), valid)
    largest = _size(a) * _size(b) if sign == "*" else _size(a) + _size(b)
    if largest >= LIMIT:
        raise Decline("whole numbers that might need more than 64 bits")
    return Column(pa.int64(), _cleared(ufunc(a, b, dtype=np.int64), valid), valid)


def _divided(a: Any, b: Any, valid: Array | None) -> Column:
    for x in (a, b):
        if _kind(x) == "i" and _size(x) > EXACT:
            raise Decline("a quotient of whole numbers that are no floats")
    zero = np.asarray(b) == 0
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.divide(a, np.where(zero, 1, b), dtype=np.float64)
    if zero.any():
        known = np.broadcast_to(~zero, found.shape)
        valid = known if valid is None else valid & known
    return Column(pa.float64(), _cleared(found, valid), valid)


def _cleared(data: Array, valid: Array | None) -> Array:
    """Null places hold 0, as everywhere."""
    return data if valid is None else np.where(valid, data, 0)


def _numbers(operand: Any) -> Any:
    if isinstance(operand, Column):
        kind, types = operand.type, pa.types
        plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not plain:
            raise Decline(f"arithmetic with {kind} needs Python values")
        return operand.data
    if not isinstance(operand, int | float) or (abs(operand) >= LIMIT and type(operand) is int):
        raise Decline(f"arithmetic with {operand!r} needs Python values")
    return int(operand) if isinstance(operand, bool) else operand


def _kind(x: Any) -> str:
    return "f" if np.asarray(x).dtype.kind == "f" else "i"


def _size(x: Any) -> int:
    """How large a whole number may be."""
    return abs(x) if isinstance(x, int) else max_magnitude(x)


def _both(left: Any, right: Any) -> Array | None:
    masks = [x.valid for x in (left, right) if isinstance(x, Column) and x.valid is not None]
    return np.logical_and.reduce(masks) if masks else None
