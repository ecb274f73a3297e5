"""Durations and instants: what users write, and the microseconds the engine counts in.

The engine keeps time as whole microseconds, so that adding periods a million times is exact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from windowlib.errors import ClockError, PolicyError

MICROSECOND = timedelta(microseconds=1)

UNITS = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|min|s|m|h|d)\s*")
_SIGN = re.compile(r"\s*-")

Duration = timedelta | str
Instant = float | int | datetime | timedelta
Number = Any
"""A timestamp or a distance as a number: int, float or Decimal, one of them in all of a stream."""
Amount = int | float | Decimal | timedelta
"""A distance between two timestamps: a number for numbers, a duration for datetimes."""


def parse_duration(text: str) -> timedelta:
    """Read a duration such as "10s", "500ms" or "1h30m".

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    sign = _SIGN.match(text)
    start = end = sign.end() if sign else 0
    total = 0
    while end < len(text) and (part := _PART.match(text, end)):
        # Through Decimal, because 0.1 s is 100,000 microseconds and not one less.
        total += int(Decimal(part[1]) * micros(UNITS[part[2]]))
        end = part.end()
    if end == start or end < len(text):
        msg = f'"{text}" is not a duration. Write a number and a unit: "10s", "500ms", "1h30m".'
        raise PolicyError(msg)
    try:
        return (-total if sign else total) * MICROSECOND
    except OverflowError:
        longest = timedelta.max.days
        raise PolicyError(f'"{text}" is too long. The longest is {longest} days.') from None


def as_duration(value: Duration, *, argument: str) -> timedelta:
    """Turn what a user wrote into a timedelta; bare numbers are refused as ambiguous."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except PolicyError as error:
            raise PolicyError(f"{argument}({value!r}): {error}") from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        msg = (
            f"{argument}({value}): a bare number is ambiguous. "
            f'Write {argument}("{value}s") or {argument}(timedelta(seconds={value})).'
        )
        raise PolicyError(msg)
    msg = f'{argument}({value!r}): not a duration. Write {argument}("10s") or pass a timedelta.'
    raise PolicyError(msg)


def micros(duration: timedelta) -> int:
    """A duration as whole microseconds."""
    return duration // MICROSECOND


def seconds_text(duration: timedelta) -> str:
    """A duration as SPL writes it, in seconds: 10, 0.5.

    >>> seconds_text(timedelta(milliseconds=500))
    '0.5'
    """
    value = Decimal(micros(duration)) / 1_000_000
    return f"{value.normalize():f}"


def duration_text(duration: timedelta) -> str:
    """A duration in the form `parse_duration` reads: "1h30m", "10s", "1.5s".

    >>> duration_text(timedelta(minutes=90))
    '1h30m'
    """
    whole, rest = divmod(abs(micros(duration)), 60_000_000)
    hours, minutes = divmod(whole, 60)
    parts = ["-"] * (duration < timedelta(0))
    parts += [f"{hours}h"] * bool(hours) + [f"{minutes}m"] * bool(minutes)
    if rest or not whole:
        parts.append(f"{seconds_text(rest * MICROSECOND)}s")
    return "".join(parts)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_instant(value: Instant, *, argument: str = "advance") -> int:
    """A point in time as microseconds: seconds as a number or a timedelta, or a datetime (UTC).

    >>> as_instant(1.5)
    1500000
    """
    if (type(value) is float or type(value) is int) and value - value == 0:  # nearly always
        return round(value * 1_000_000)
    if isinstance(value, datetime):
        return micros((value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH)
    if isinstance(value, timedelta):
        return micros(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
        msg = (
            f"{argument}({value!r}): not a point in time. Pass seconds as a number, or a datetime, "
            f"or a timedelta."
        )
        raise ClockError(msg)
    return round(value * 1_000_000)


def instant_text(at: int) -> str:
    """A point in time for messages, exact and without trailing zeros."""
    return seconds_text(at * MICROSECOND) if abs(at) < 10**18 else f"{at / 1e6:g}"


# -- distances on the axis of event time ----------------------------------------------------------


def amount_of(value: object, owner: str, least: str) -> Amount:
    """A distance on the axis from a user's argument; `least` is "0", "more" than 0, or "any".

    >>> amount_of("5s", "FixedSlack('5s')", "0")
    datetime.timedelta(seconds=5)
    """
    found = value
    if isinstance(value, str):
        try:
            found = parse_duration(value)
        except PolicyError as error:
            raise PolicyError(f"{owner}: {error}") from None
    wrong = isinstance(found, bool) or not isinstance(found, int | float | Decimal | timedelta)
    if wrong or (not isinstance(found, timedelta) and found - found != 0):  # type: ignore[operator]
        msg = f'{owner}: not a distance. Use a number, as 5, or a duration, as "5s".'
        raise PolicyError(msg)
    size: Any = found
    zero = timedelta(0) if isinstance(found, timedelta) else 0
    if least != "any" and (size < zero or (least == "more" and size == zero)):
        bound = "must not be negative" if least == "0" else "must be more than zero"
        raise PolicyError(f'{owner}: it {bound}. Use a number, as 5, or a duration, as "5s".')
    return size  # type: ignore[no-any-return]


def length(amount: Amount) -> Number:
    """An amount as a number: durations in microseconds, as timestamps are."""
    return micros(amount) if isinstance(amount, timedelta) else amount


def amount_text(amount: Amount) -> str:
    """An amount as source text."""
    return f'"{duration_text(amount)}"' if isinstance(amount, timedelta) else repr(amount)


def plain_amount(amount: Amount) -> str:
    """An amount as SPL text has it: 1h30m, 10, 0.5."""
    return duration_text(amount) if isinstance(amount, timedelta) else str(amount)


def stable_amount(amount: Amount) -> str:
    """An amount as text that is the same for equal ones: 10, 10.0 and Decimal("10") are one."""
    if isinstance(amount, timedelta):
        return amount_text(amount)
    if isinstance(amount, int) or (math.isfinite(amount) and amount == int(amount)):
        return str(int(amount))
    if isinstance(amount, Decimal) and float(amount) != amount:
        return repr(amount.normalize())
    return repr(float(amount))


def check_amounts(
    owner: str, amounts: Sequence[tuple[str, Amount]], error: type[Exception]
) -> None:
    """Refuse a mix of durations and numbers; 0 fits both."""
    given = [(name, amount) for name, amount in amounts if amount]
    if len({isinstance(amount, timedelta) for _, amount in given}) > 1:
        shown = ", ".join(f"{name}={amount_text(amount)}" for name, amount in given)
        msg = (
            f"{owner}: {shown} mix durations and numbers. Use durations for datetimes, and "
            f"numbers for numbers."
        )
        raise error(msg)
