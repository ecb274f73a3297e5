"""The axis of event time: timestamps of any kind as numbers, of rows and of whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from windowlib.attributes import Getter, brief
from windowlib.durations import MICROSECOND, duration_text, micros, parse_duration
from windowlib.errors import ModelError, PolicyError, SchemaError
from windowlib.policies import Attribute, check_attribute

EPOCH = datetime(1970, 1, 1)
EXACT = 2**53
"""Below it, a whole number is the same as a float."""
LARGEST = 2**62
"""Below it, the difference of two whole numbers fits 64 bits."""

Number = int | float
Amount = int | float | timedelta


def amount_of(value: object, owner: str, least: str) -> Amount:
    """A distance on the axis as a user writes it; `least` is "0", or "more" than that.

    >>> amount_of("5s", "FixedSlack('5s')", "0")
    datetime.timedelta(seconds=5)
    """
    found = value
    if isinstance(value, str):
        try:
            found = parse_duration(value)
        except PolicyError as error:
            raise PolicyError(f"{owner}: {error}") from None
    wrong = isinstance(found, bool) or not isinstance(found, int | float | timedelta)
    if wrong or (not isinstance(found, timedelta) and found - found != 0):  # type: ignore[operator]
        msg = f'{owner}: not a distance. Use a number, as 5, or a duration, as "5s".'
        raise PolicyError(msg)
    size: Any = found
    zero = timedelta(0) if isinstance(found, timedelta) else 0
    if size < zero or (least == "more" and size == zero):
        bound = "must not be negative" if least == "0" else "must be more than zero"
        raise PolicyError(f'{owner}: it {bound}. Use a number, as 5, or a duration, as "5s".')
    return size  # type: ignore[no-any-return]


def length(amount: Amount) -> Number:
    """An amount as a number: durations in microseconds, as timestamps are."""
    return micros(amount) if isinstance(amount, timedelta) else amount


def amount_text(amount: Amount) -> str:
    """An amount as one writes it."""
    return f'"{duration_text(amount)}"' if isinstance(amount, timedelta) else repr(amount)


class Axis:
    """Reads the timestamp of a row as a number; datetimes, dates and durations in microseconds.

    Which of the two a stream has is told by the amounts that the operator was given, or by the
    first row.

    >>> axis = Axis("ts", "Reorder('ts')", [])
    >>> axis.number({"ts": datetime(1970, 1, 1, 0, 0, 2)})
    2000000
    """

    def __init__(
        self, attribute: Attribute, owner: str, amounts: Sequence[tuple[str, Amount]]
    ) -> None:
        check_attribute(attribute, owner.replace("{", "{{").replace("}", "}}"), '"ts"')
        self.attribute, self.owner = attribute, owner
        self.get = Getter(attribute, owner)
        self._said = [(name, amount) for name, amount in amounts if amount]
        kinds = {isinstance(amount, timedelta) for _, amount in self._said}
        if len(kinds) > 1:
            shown = ", ".join(f"{name}={amount_text(amount)}" for name, amount in self._said)
            msg = (
                f"{owner}: {shown} mix durations and numbers. Use durations for datetimes, and "
                f"numbers for numbers."
            )
            raise ModelError(msg)
        self.whole = not any(isinstance(amount, float) for _, amount in self._said)
        self.timed: bool | None = next(iter(kinds), None)
        """Whether it has datetimes; None if that is not known yet."""

    def number(self, row: Any) -> Number:
        """The timestamp of a row."""
        value = self.get(row)
        kind = type(value)
        if kind is int or (kind is float and value - value == 0):
            found: Number = value
            timed = False
        elif (at := _instant(value)) is not None:
            found, timed = at, True
        elif (plain := _plain(value)) is not None:
            found, timed = plain, False
        else:
            msg = (
                f"{self.owner}: the value {value!r} of {brief(row)} has no place in time. Use "
                f"numbers or datetimes, and drop or fill other rows first."
            )
            raise SchemaError(msg)
        if timed is not self.timed:
            self._settle(timed, value)
        return found

    def _settle(self, timed: bool, value: Any) -> None:
        """The first row says what kind of stream it is; any other has to agree."""
        if self.timed is None:
            self.timed = timed
            return
        kind = type(value).__name__
        if self._said:
            name, amount = self._said[0]
            fix = "a number" if self.timed else 'a duration, as "5s"'
            msg = (
                f"{self.owner}: the value {value!r} is of type {kind}, and "
                f"{name}={amount_text(amount)} is no distance of those. Write {fix}."
            )
            raise SchemaError(msg)
        msg = (
            f"{self.owner}: the value {value!r} is of type {kind}, which does not mix with those "
            f"before it. Use one type for the whole stream."
        )
        raise SchemaError(msg)

    def array(self, batch: Any) -> Any:
        """The timestamps of an Arrow batch as a numpy array, None if rows must be read one by one.

        One by one they give the same numbers, or say what is wrong with one of them.
        """
        if not isinstance(self.attribute, str):
            return None
        index = batch.schema.get_field_index(self.attribute)
        read = None if index < 0 else _column(batch.column(index))
        if read is None:
            return None
        found, timed = read
        if self.timed is None:
            self.timed = timed
        largest = max(abs(int(found.max())), abs(int(found.min())))
        whole = found.dtype.kind == "i"
        fits = largest < (LARGEST if self.whole or not whole else EXACT)
        return found if timed is self.timed and fits else None

    def value(self, at: Number, row: Any) -> Any:
        """A place on the axis in the form that the timestamp of a row has."""
        value = self.get(row)
        now = _instant(value) if self.timed else None
        return at if now is None else value + (at - now) * MICROSECOND


def _instant(value: Any) -> int | None:
    """Microseconds since 1970, or of a duration; None for anything else."""
    if isinstance(value, datetime):
        if value != value:  # pandas has a datetime that is none
            return None
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return int((naive - EPOCH) // MICROSECOND)
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day) - EPOCH) // MICROSECOND
    return micros(value) if isinstance(value, timedelta) else None


def _plain(value: Any) -> Number | None:
    """Numbers of numpy as Python's."""
    if isinstance(value, bool):
        return None
    if hasattr(value, "__index__"):
        return int(value)
    return float(value) if isinstance(value, float) and value - value == 0 else None


UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _column(column: Any) -> tuple[Any, bool] | None:
    """A column as an array of numbers, and whether they are microseconds."""
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if column.null_count or not len(column):
        return None
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.to_numpy(zero_copy_only=False).astype(np.int64), False
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        found = column.to_numpy(zero_copy_only=False).astype(np.float64)
        return (found, False) if np.isfinite(found).all() else None
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        return days * (86_400 * 1_000_000), True
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _ticks(column.cast(pa.int64()).to_numpy(zero_copy_only=False), kind.unit)
    return None


def _ticks(ticks: Any, unit: str) -> tuple[Any, bool] | None:
    """Ticks of a unit as microseconds, unless they are too many."""
    if unit == "ns":
        return None  # which Python's datetimes cannot say, so rows are asked one by one
    most = LARGEST // UNITS[unit]
    if int(ticks.max()) >= most or int(ticks.min()) <= -most:
        return None
    return ticks * UNITS[unit], True
