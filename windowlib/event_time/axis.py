"""The axis of event time: timestamps of any kind as numbers, and windows on it by number.

Of rows and of whole columns, by the same rules. Datetimes, dates and durations are whole
microseconds; integers, decimals and floats are themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from windowlib.attributes import Getter, brief
from windowlib.durations import (
    MICROSECOND,
    Amount,
    Number,
    amount_text,
    check_amounts,
    length,
    micros,
)
from windowlib.errors import ModelError, SchemaError
from windowlib.spec.policies import Attribute, check_attribute

EPOCH = datetime(1970, 1, 1)
EXACT = 2**53
"""Below it, a whole number is the same as a float."""
LARGEST = 2**62
"""Below it, the difference of two whole numbers fits 64 bits."""
DAY = 86_400 * 1_000_000


# -- windows by number ----------------------------------------------------------------------------


class Grid:
    """Points at offset + k · size, each computed exactly and rounded once.

    A float stands for the decimal that it is written as: of size 0.2, point 3 is 0.6, although
    3 * 0.2 is more than that in floats.

    >>> grid = Grid(0.2)
    >>> grid.point(3), grid.index(0.6), grid.index(0.5999)
    (0.6, 3, 2)
    """

    __slots__ = ("origin", "scale", "step")

    def __init__(self, size: Amount, offset: Amount = 0) -> None:
        step, origin = _ratio(size), _ratio(offset)
        self.scale = max(step[1], origin[1])
        """What steps and points are divided by: a power of ten, 1 for whole numbers."""
        self.step = step[0] * (self.scale // step[1])
        self.origin = origin[0] * (self.scale // origin[1])

    def shifted(self, distance: Amount) -> Grid:
        """The same points, all of them further on by a distance."""
        number, scale = _ratio(distance)
        made = Grid.__new__(Grid)
        made.scale = max(scale, self.scale)
        made.step = self.step * (made.scale // self.scale)
        made.origin = self.origin * (made.scale // self.scale) + number * (made.scale // scale)
        return made

    def point(self, k: int) -> Number:
        """Point k: a whole number if size and offset are, else the nearest float."""
        found = self.origin + k * self.step
        return found if self.scale == 1 else found / self.scale

    def exact(self, k: int) -> Decimal:
        """Point k as a decimal, with all its digits."""
        found, places = self.origin + k * self.step, len(str(self.scale)) - 1
        return Decimal((found < 0, tuple(map(int, str(abs(found)))), -places))

    def index(self, ts: Number) -> int:
        """The last point that is not after a timestamp."""
        if type(ts) is int:
            return (ts * self.scale - self.origin) // self.step
        if isinstance(ts, Decimal):
            number, scale = ts.as_integer_ratio()
            return (number * self.scale - self.origin * scale) // (self.step * scale)
        k = int((ts * self.scale - self.origin) // self.step)
        while self.point(k) > ts:
            k -= 1
        while self.point(k + 1) <= ts:
            k += 1
        return k

    def points(self, ks: Any) -> Any:
        """`point` of an array of numbers, as an array."""
        import numpy as np

        if self._small(ks):
            found = ks * self.step + self.origin
            # Both are exact as floats, so the quotient is the nearest float.
            return found if self.scale == 1 else found / float(self.scale)
        return np.array([self.point(k) for k in ks.tolist()])

    def indexes(self, ts: Any) -> Any:
        """`index` of an array of timestamps, which are 64-bit integers or floats."""
        import numpy as np

        if ts.dtype.kind == "i":
            if self.scale == 1 and abs(self.origin) < LARGEST:
                return (ts - self.origin) // self.step
            return np.array([self.index(each) for each in ts.tolist()], np.int64)
        guess = np.floor((ts * self.scale - self.origin) / self.step).astype(np.int64)
        if self._small(guess) and self._small(guess + 1):
            # The guess is at most one off, because its error is much smaller than a step.
            guess -= self.points(guess) > ts
            guess += self.points(guess + 1) <= ts
            return guess
        known, place = np.unique(ts, return_inverse=True)
        return np.array([self.index(each) for each in known.tolist()], np.int64)[place]

    def edges(self, ks: Any, kind: str) -> Any:
        """The first timestamp of each point: `index` is less than k for those before point k's.

        Args:
            ks: the numbers of points, an array.
            kind: "i" for timestamps that are whole numbers, "f" for floats.
        """
        import numpy as np

        if kind == "f" or self.scale == 1:
            return self.points(ks)
        points = (self.origin + k * self.step for k in ks.tolist())
        return np.array([-(-point // self.scale) for point in points], np.int64)

    def runs(self, rising: Any) -> tuple[Any, Any]:
        """Where timestamps that never fall come to another point, from place 0 on; and to which."""
        import numpy as np

        low, high = self.index(rising[0].item()), self.index(rising[-1].item())
        if high - low > len(rising):  # more points than timestamps
            found = self.indexes(rising)
            at = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
            return at, found[at]
        later = np.arange(low + 1, high + 1)
        cuts = np.searchsorted(rising, self.edges(later, rising.dtype.kind))
        last = np.append(cuts[1:] != cuts[:-1], True)[: len(cuts)]  # of points at one place
        return np.append(0, cuts[last]), np.append(low, later[last])

    def behind(self, ts: Any, at: Any, ks: Any) -> Any:
        """Which timestamps are before a point: from each place in `at` on before that in `ks`."""
        import numpy as np

        edges = self.edges(ks, ts.dtype.kind)
        if not bool((np.minimum.reduceat(ts, at) < edges).any()):  # as it is most of the time
            return np.zeros(len(ts), bool)
        return ts < np.repeat(edges, np.diff(at, append=len(ts)))

    def _small(self, ks: Any) -> bool:
        """Whether these points fit 64 bits and are, before the division, exact as floats."""
        most = LARGEST if self.scale == 1 else EXACT
        if self.scale > 10**22 or not len(ks):
            return not len(ks)
        far = max(abs(int(ks.max())), abs(int(ks.min())))
        return far * self.step + abs(self.origin) < most


def _ratio(amount: Amount) -> tuple[int, int]:
    """An amount as a whole number over a power of ten."""
    size = length(amount)
    if isinstance(size, int):
        return size, 1
    sign, digits, exponent = Decimal(repr(size) if isinstance(size, float) else size).as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return (number * 10**exponent, 1) if exponent >= 0 else (number, 10**-exponent)


def later(ts: Number, distance: Number) -> Number:
    """A timestamp moved on by a distance, in numbers of its own kind: exactly, and rounded once.

    A float stands for the decimal that it is written as, although 0.7 + 0.1 is less than 0.8.

    >>> later(0.7, 0.1), later(7, 0.5), later(Decimal("0.7"), 0.1)
    (0.8, 7.5, Decimal('0.8'))
    """
    if type(ts) is int and type(distance) is int:
        return ts + distance
    if isinstance(ts, float) or (isinstance(distance, float) and isinstance(ts, int)):
        return float(_decimal(ts) + _decimal(distance))
    return ts + _decimal(distance) if isinstance(ts, Decimal) else ts + distance


def _decimal(number: Number) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


DIGITS = 9
"""Decimals of floats that are added as whole numbers."""


def later_many(ts: Any, distance: Number) -> Any:
    """`later` for an array of timestamps, which are 64-bit integers or floats."""
    import numpy as np

    if ts.dtype.kind == "i" and type(distance) is int:
        return ts + distance
    far = float(np.abs(ts).max(initial=0)) + abs(float(distance))
    for digits in range(DIGITS + 1):
        scale = 10**digits
        step = _decimal(distance) * scale
        if far * scale >= EXACT / 8 or step != int(step):
            continue
        whole = np.rint(ts * scale)
        if bool((whole / scale == ts).all()):  # whole numbers of such digits, all exact
            return (whole + int(step)) / scale
    return np.array([later(each, distance) for each in ts.tolist()], np.float64)


# -- timestamps -----------------------------------------------------------------------------------


class Axis:
    """Reads the timestamp of a row as a number; datetimes, dates and durations in microseconds.

    Which of the two a stream has follows from the amounts that the operator was given, or the
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
        check_amounts(owner, amounts, ModelError)
        self._amounts = [(name, amount) for name, amount in amounts if amount]
        kinds = {isinstance(amount, timedelta) for _, amount in self._amounts}
        self.whole = all(isinstance(amount, int | timedelta) for _, amount in self._amounts)
        self.timed: bool | None = next(iter(kinds), None)
        """Whether it has datetimes; None if that is not known yet."""
        self.form: type | None = None
        """Float or Decimal, as the first of them was; the two do not mix."""

    def number(self, row: Any) -> Number:
        """The timestamp of a row."""
        return self.place(self.get(row), row)

    def place(self, value: Any, row: Any) -> Number:
        """Where a timestamp is on the axis; the row is for messages."""
        kind = type(value)
        if kind is int or (kind is self.form and value - value == 0):
            found: Number = value
            timed = False
        elif (at := instant(value)) is not None:
            found, timed = at, True
        elif (plain := self._plain(value)) is not None:
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

    def _plain(self, value: Any) -> Number | None:
        """A number as one of Python's own; None for anything else."""
        if isinstance(value, bool):
            return None
        if hasattr(value, "__index__"):
            return int(value)
        form = next((form for form in (float, Decimal) if isinstance(value, form)), None)
        if form is None or value - value != 0:  # neither infinity nor NaN
            return None
        if self.form is None:
            self.form = form
        if form is not self.form:
            self._mixed(value)
        found: Number = form(value)
        return found

    def _settle(self, timed: bool, value: Any) -> None:
        """The first row says what kind of stream it is; any other has to agree."""
        if self.timed is None:
            self.timed = timed
            return
        if self._amounts:
            name, amount = self._amounts[0]
            fix = "a number" if self.timed else 'a duration, as "5s"'
            msg = (
                f"{self.owner}: the value {value!r} is of type {type(value).__name__}, and "
                f"{name}={amount_text(amount)} is no distance of those. Write {fix}."
            )
            raise SchemaError(msg)
        self._mixed(value)

    def _mixed(self, value: Any) -> None:
        msg = (
            f"{self.owner}: the value {value!r} is of type {type(value).__name__}, which does not "
            f"mix with those before it. Use one type for the whole stream."
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
        if found.dtype.kind == "f" and self.form is None:
            self.form = float
        largest = max(abs(int(found.max())), abs(int(found.min())))
        whole = found.dtype.kind == "i"
        fits = largest < (LARGEST if self.whole or not whole else EXACT)
        fits = fits and (whole or self.form is float)
        return found if timed is self.timed and fits else None

    def point(self, grid: Grid, k: int) -> Number:
        """A point of a grid, in the kind of numbers that the timestamps are."""
        return grid.exact(k) if self.form is Decimal else grid.point(k)

    def value(self, at: Number, row: Any) -> Any:
        """A place on the axis in the form that the timestamp of a row has."""
        return timestamp_like(at, self.get(row)) if self.timed else at


def timestamp_like(at: Number, value: Any) -> Any:
    """A place on the axis in the form of a timestamp: its zone, a date, a duration or a number.

    A date becomes a datetime where a day does not begin.

    >>> day = date(2013, 1, 1)
    >>> timestamp_like(86_400_000_000, day), timestamp_like(1_000_000, day)
    (datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 0, 0, 1))
    """
    if isinstance(value, timedelta):
        return at * MICROSECOND
    if isinstance(value, date):
        try:
            return _moment(at, value)
        except OverflowError:
            year = "10000" if at > 0 else "0"
            msg = (
                f"a window of event time reaches into the year {year}, which datetimes do not "
                f"have. Drop or fill timestamps such as {value!r} first."
            )
            raise SchemaError(msg) from None
    if isinstance(value, Decimal):
        return at if isinstance(at, Decimal) else Decimal(repr(at))
    return float(at) if isinstance(value, float) else at


def _moment(at: int, value: date) -> Any:
    """Microseconds since 1970 in the form of a datetime or a date."""
    moment = EPOCH + at * MICROSECOND
    if not isinstance(value, datetime):
        return moment if at % DAY else moment.date()
    if value.tzinfo is None:
        return moment
    return moment.replace(tzinfo=UTC).astimezone(value.tzinfo)


FIRST_MOMENT, LAST_MOMENT = ((each - EPOCH) // MICROSECOND for each in (datetime.min, datetime.max))
"""The microseconds that datetimes can say."""


def instant(value: Any) -> int | None:
    """Microseconds since 1970, or of a duration; None for anything else."""
    if isinstance(value, datetime):
        if value != value:  # pandas has a datetime that is none
            return None
        try:
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:  # in UTC it is in the year 0 or 10000
            return None
        return int((naive - EPOCH) // MICROSECOND)
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day) - EPOCH) // MICROSECOND
    return micros(value) if isinstance(value, timedelta) else None


UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def _column(column: Any) -> tuple[Any, bool] | None:
    """A column as an array of numbers, and whether they are microseconds."""
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if column.null_count or not len(column):
        return None
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), False
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        found = column.to_numpy(zero_copy_only=False).astype(np.float64)
        return (found, False) if np.isfinite(found).all() else None
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        return days * DAY, True
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
