"""A 64-bit hash that is the same for equal values in every process.

The builtin `hash` differs between processes for strings and takes numbers for the same that are
2 ** 61 − 1 apart, so values are written as bytes, equal ones alike, and the bytes hashed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from struct import Struct
from typing import Any

from windowlib.errors import SchemaError

_EPOCH, _UTC_EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FLOATS = 2**53  # every whole number up to here is a float
# A fraction p / q is told by p · q⁻¹ modulo a prime, which never needs the digits of 1E+999999.
# Below 2 ** 520 a whole number is its own remainder.
_PRIME = 2**521 - 1
_PRIME_BYTES = 66

_float = Struct(">cd").pack
_long = Struct(">cq").pack


def digest(value: Any) -> int:
    """64 bits of hash, the same for equal values and in every process.

    Takes str, bytes, bool, int, float, Decimal, date, datetime, timedelta, and tuples of these.
    Equal means `==`, with two exceptions: NaN is equal to NaN, and datetimes with a time zone
    are equal if they are the same instant.

    >>> digest(1) == digest(1.0) == digest(True)
    True
    >>> digest("1") == digest(1)
    False
    >>> digest("windowlib")
    11874454386466703503
    """
    if value is None:
        msg = "HyperLogLog.add(None): a null is no value to count. Skip nulls."
        raise SchemaError(msg)
    return int.from_bytes(blake2b(encode(value), digest_size=8).digest(), "big")


def encode(value: Any) -> bytes:
    """A value as bytes: different ones for different values, the same for equal ones."""
    encoder = _ENCODERS.get(type(value))
    return _inherited(value) if encoder is None else encoder(value)


def _inherited(value: Any) -> bytes:
    """Encode a subclass, such as a named tuple, like what it extends."""
    for base in type(value).__mro__[1:]:
        if base in _ENCODERS:
            return _ENCODERS[base](value)
    msg = (
        f"HyperLogLog.add({value!r}): a {type(value).__name__} cannot be hashed the same in every "
        "process. Use a str, bytes, number, date, datetime, timedelta or a tuple of these, "
        "such as str(value)."
    )
    raise SchemaError(msg)


def _of_str(value: str) -> bytes:
    return b"s" + value.encode("utf-8", "surrogatepass")


def _of_bytes(value: bytes) -> bytes:
    return b"b" + value


def _of_int(value: int) -> bytes:
    if -_FLOATS <= value <= _FLOATS:
        return _float(b"f", value)
    try:
        near = float(value)
    except OverflowError:
        near = 0.0
    return _float(b"f", near) if near == value else _of_fraction(value)


def _of_float(value: float) -> bytes:
    return _float(b"f", value + 0.0) if value == value else b"n"  # -0.0 + 0.0 is 0.0


def _of_decimal(value: Decimal) -> bytes:
    if value.is_nan():
        return b"n"
    near = float(value)
    # Decimal against Decimal: a comparison with a float would leave a flag in the context.
    if Decimal.from_float(near) == value:
        return _of_float(near)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # infinities are floats
    whole = int(Decimal((sign, digits, 0)))
    return _of_fraction(whole * pow(10, exponent, _PRIME))


def _of_fraction(remainder: int) -> bytes:
    return b"i" + (remainder % _PRIME).to_bytes(_PRIME_BYTES, "big")


def _of_date(value: date) -> bytes:
    return _long(b"d", value.toordinal())


def _of_datetime(value: datetime) -> bytes:
    if value.utcoffset() is None:
        return _long(b"l", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
    return _long(b"u", (value - _UTC_EPOCH) // _MICROSECOND)


def _of_timedelta(value: timedelta) -> bytes:
    return b"t" + str(value // _MICROSECOND).encode()  # may exceed 64 bits


def _of_tuple(value: tuple[Any, ...]) -> bytes:
    parts = [b"-" if each is None else encode(each) for each in value]
    return b"(" + b"".join(b"%d:%b" % (len(part), part) for part in parts)


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    str: _of_str,
    bytes: _of_bytes,
    bool: _of_int,
    int: _of_int,
    float: _of_float,
    Decimal: _of_decimal,
    date: _of_date,
    datetime: _of_datetime,
    timedelta: _of_timedelta,
    tuple: _of_tuple,
}
