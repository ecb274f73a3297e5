"""The policies that configure a window (paper, sections 3.3 and 3.5): frozen values.

| policy | tumbling eviction | sliding eviction | sliding trigger |
| --- | --- | --- | --- |
| `Count(n)` | full at n tuples | keeps the newest n | every n tuples |
| `Delta(a, d)` | full when `new.a - oldest.a > d` | drops `t` with `new.a - t.a > d` | see below |
| `Time(p)` | every p | drops tuples older than p | every p |
| `Punct()` | at a punctuation | – | – |
| `Either(Count(n), Time(p))` | full at n tuples, or p after the first | – | – |
| `Event(a, d)` | the windows [k·d, (k+1)·d) of `a` | the last d of `a` | every d of `a` |

`Either` is written `Count(n) | Time(p)`.
A delta trigger fires when `new.a - last.a > d`, where `last` is the tuple that fired before.

A policy answers questions (`tuples`, `delta`, `event`, `tick`, `lapse`, `times`, `punctuated`);
engines, hosts and operators ask those instead of looking at its type.

>>> (Count(500) | Time("5s")).tuples, Time("5s").tick, Punct().tuples
(500, 5000000, None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal

from windowlib.durations import (
    Amount,
    Duration,
    amount_of,
    amount_text,
    as_duration,
    check_amounts,
    duration_text,
    micros,
    parse_duration,
    plain_amount,
    seconds_text,
    stable_amount,
)
from windowlib.errors import PolicyError, suggestion

Attribute = str | int | Callable[[Any], Any]
Selection = Literal["lru", "lfu", "oldest", "operator"]
SELECTIONS: tuple[Selection, ...] = ("lru", "lfu", "oldest", "operator")


def _check_size(owner: str, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int):
        msg = f"{owner}(size={size!r}): size must be a whole number, such as {owner}(10)."
        raise PolicyError(msg)
    if size < 0:
        raise PolicyError(f"{owner}(size={size}): size must not be negative.")


class _Policy:
    """The properties of a policy, so that other code need not test its type.

    The defaults are the answers of a policy that has nothing to do with the question.
    """

    __slots__ = ()
    kind: ClassVar[str]
    """The policy's name in the tables of `windowlib.spec.order`."""

    @property
    def tuples(self) -> int | None:
        """How many tuples it counts to; None if it does not count."""
        return None

    @property
    def delta(self) -> Delta | None:
        """The policy itself, if it compares the values of an attribute."""
        return None

    @property
    def event(self) -> Event | None:
        """The policy itself, if it is of event time."""
        return None

    @property
    def tick(self) -> int | None:
        """The microseconds from one tick of the clock to the next; None if it does not tick."""
        return None

    @property
    def lapse(self) -> int | None:
        """The microseconds a subwindow has from its first tuple on; None if that never ends."""
        return None

    @property
    def times(self) -> tuple[Time, ...]:
        """The parts of the policy that the clock moves."""
        return ()

    @property
    def punctuated(self) -> bool:
        """Whether punctuations in the stream close the window."""
        return False

    def __or__(self, other: Any) -> Either:
        return Either(self, other)  # type: ignore[arg-type]  # Either refuses all but two kinds

    def __ror__(self, other: Any) -> Either:
        return Either(other, self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Count(_Policy):
    """A number of tuples.

    `Count(0)` is legal: a tumbling window of size 0 ignores its input, a sliding one keeps
    nothing (a one-sided join), a trigger of 0 never fires.

    >>> str(Count(100))
    'count(100)'
    """

    kind: ClassVar[str] = "count"
    size: int

    def __post_init__(self) -> None:
        _check_size("Count", self.size)

    @property
    def tuples(self) -> int:
        """How many tuples it counts to."""
        return self.size

    def __str__(self) -> str:
        return f"count({self.size})"


@dataclass(frozen=True, slots=True)
class Delta(_Policy):
    """A distance between values of one attribute: strictly more than `threshold` counts.

    `attribute` is a mapping key, an attribute name, an index or a callable; its values may be
    int, float, Decimal, date or datetime. Values should not decrease: a smaller value never
    fires. A duration as text ("10s") is for datetime attributes.

    >>> Delta("ts", "10s").threshold
    datetime.timedelta(seconds=10)
    """

    kind: ClassVar[str] = "delta"
    attribute: Attribute
    threshold: int | float | Decimal | timedelta

    def __init__(self, attribute: Attribute, threshold: float | Decimal | Duration) -> None:
        check_attribute(attribute, "Delta({attribute!r}, ...)", 'Delta("ts", 10)')
        if isinstance(threshold, str):
            try:
                threshold = parse_duration(threshold)
            except PolicyError as error:
                raise PolicyError(f"Delta({attribute!r}, {threshold!r}): {error}") from None
        usable = isinstance(threshold, int | float | Decimal | timedelta)
        if isinstance(threshold, bool) or not usable or _not_a_number(threshold):
            msg = (
                f"Delta({attribute!r}, {threshold!r}): the threshold must be a number or a "
                f'duration, such as Delta("ts", 10) or Delta("ts", "10s").'
            )
            raise PolicyError(msg)
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "threshold", threshold)

    @property
    def delta(self) -> Delta:
        """The policy itself: it compares the values of an attribute."""
        return self

    @property
    def shown(self) -> str:
        """The policy as source text, for messages."""
        d = self.threshold
        text = f'"{duration_text(d)}"' if isinstance(d, timedelta) else repr(d)
        return f"Delta({self.attribute!r}, {text})"

    def exceeds(self, new: Any, old: Any) -> bool:
        """The delta test: never for smaller values, and strictly more than the threshold.

        >>> [Delta("x", 2).exceeds(new, 10) for new in (9, 12, 13)]
        [False, False, True]
        """
        return bool(new >= old and new - old > self.threshold)

    def __str__(self) -> str:
        d = self.threshold
        text = duration_text(d) if isinstance(d, timedelta) else str(d)
        return f"delta({attribute_text(self.attribute)}, {text})"


@dataclass(frozen=True, slots=True)
class Time(_Policy):
    """A period of the clock that moves the window; arrival times, not a timestamp attribute.

    >>> str(Time("500ms"))
    'time(0.5)'
    """

    kind: ClassVar[str] = "time"
    period: timedelta

    def __init__(self, period: Duration) -> None:
        length = as_duration(period, argument="Time")
        if length <= timedelta(0):
            shown = duration_text(length)
            raise PolicyError(f'Time("{shown}"): the period must be longer than zero.')
        object.__setattr__(self, "period", length)

    @property
    def micros(self) -> int:
        """The period as whole microseconds."""
        return micros(self.period)

    @property
    def tick(self) -> int:
        """The microseconds from one tick of the clock to the next."""
        return self.micros

    @property
    def times(self) -> tuple[Time, ...]:
        """The policy itself: it is moved by the clock."""
        return (self,)

    def __str__(self) -> str:
        return f"time({seconds_text(self.period)})"


@dataclass(frozen=True, slots=True)
class Punct(_Policy):
    """Window punctuations in the stream close the (tumbling) window.

    >>> str(Punct())
    'punct()'
    """

    kind: ClassVar[str] = "punct"

    @property
    def punctuated(self) -> bool:
        """Whether punctuations in the stream close the window: they do."""
        return True

    def __str__(self) -> str:
        return "punct()"


@dataclass(frozen=True, slots=True, repr=False)
class Either(_Policy):
    """A number of tuples, or a time after the first of them, whichever comes first.

    Written with `|`, in any order. It closes tumbling windows: batches that neither grow too large
    nor wait too long.

    >>> Count(500) | Time("5s")
    Count(size=500) | Time(period=datetime.timedelta(seconds=5))
    >>> str(Time("5s") | Count(500))
    'count(500) | time(5)'
    """

    kind: ClassVar[str] = "either"
    count: Count
    time: Time

    def __init__(self, count: Count, time: Time) -> None:
        if isinstance(count, Time) and isinstance(time, Count):
            count, time = time, count
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "time", time)
        if not (isinstance(self.count, Count) and isinstance(self.time, Time)):
            msg = f'{self!r}: only a Count and a Time go together. Write Count(500) | Time("5s").'
            raise PolicyError(msg)
        if not self.count.size:
            msg = f"{self!r}: no batch has 0 tuples. Use Count(1) or more, or {self.time!r} alone."
            raise PolicyError(msg)

    @property
    def tuples(self) -> int:
        """How many tuples it counts to, if its time is not over before."""
        return self.count.size

    @property
    def lapse(self) -> int:
        """The microseconds a subwindow has from its first tuple on."""
        return self.time.micros

    @property
    def times(self) -> tuple[Time, ...]:
        """The part of the policy that the clock moves."""
        return (self.time,)

    def __repr__(self) -> str:
        return f"{self.count!r} | {self.time!r}"

    def __str__(self) -> str:
        return f"{self.count} | {self.time}"


@dataclass(frozen=True, slots=True, repr=False)
class Event(_Policy):
    """A stretch of event time: when things happened, as an attribute says, in whatever order.

    Windows are half-open, [start, end). Start k is offset + k · size, computed exactly and rounded
    once; a tuple belongs to the last start that is not after it. A float stands for the decimal
    that it is written as. Durations are for datetimes and dates, numbers for numbers; datetimes
    with a zone are compared in UTC, those without count as UTC.

    Args:
        attribute: the timestamp: a mapping key, an attribute name, an index or a callable.
        size: how long: a duration such as "1h", or a number; left out for sessions.
        offset: where a window starts; all others follow from it. Unless given, at 0 or 1970-01-01.

    >>> Event("ts", "1h", offset="15min")
    Event('ts', "1h", offset="15m")
    >>> str(Event("ts", 0.5))
    'event(ts, 0.5)'
    """

    kind: ClassVar[str] = "event"
    attribute: Attribute
    size: Amount | None
    offset: Amount

    def __init__(
        self, attribute: Attribute, size: Amount | str | None = None, *, offset: Amount | str = 0
    ) -> None:
        check_attribute(attribute, "Event({attribute!r}, ...)", 'Event("ts", "1h")')
        owner = f"Event({attribute!r}, "
        length = None if size is None else amount_of(size, f"{owner}{size!r})", "more")
        place = amount_of(offset, f"{owner}offset={offset!r})", "any")
        if length is not None:
            check_amounts(f"{owner}...)", [("size", length), ("offset", place)], PolicyError)
        for name, value in {"attribute": attribute, "size": length, "offset": place}.items():
            object.__setattr__(self, name, value)

    @property
    def event(self) -> Event:
        """The policy itself: it is of event time."""
        return self

    @property
    def stable_text(self) -> str:
        """The policy as text that is the same in every process, and for equal amounts."""
        name = repr(self.attribute)
        if callable(self.attribute):
            name = f"<{attribute_text(self.attribute)}>"
        return self._call(name, stable_amount)

    def _call(self, attribute: str, text: Callable[[Amount], str]) -> str:
        parts = [attribute] + ([] if self.size is None else [text(self.size)])
        parts += [f"offset={text(self.offset)}"] if self.offset else []
        return f"Event({', '.join(parts)})"

    def __repr__(self) -> str:
        return self._call(repr(self.attribute), amount_text)

    def __str__(self) -> str:
        parts = [attribute_text(self.attribute)]
        parts += [] if self.size is None else [plain_amount(self.size)]
        parts += [plain_amount(self.offset)] if self.offset else []
        return f"event({', '.join(parts)})"


def _check_selection(owner: str, select: str) -> None:
    if select not in SELECTIONS:
        msg = (
            f"{owner}(select={select!r}): unknown selection; use one of "
            f"{', '.join(SELECTIONS)}.{suggestion(select, SELECTIONS)}"
        )
        raise PolicyError(msg)


def _with_selection(name: str, size: int, select: str) -> str:
    return f"{name}({size})" if select == "lru" else f"{name}({size}, {select})"


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """At most `size` partitions; `select` says which go: lru, lfu, oldest or operator.

    With "operator" your `select_partitions` handler chooses.

    >>> str(PartitionCount(1000))
    'partitionCount(1000)'
    """

    kind: ClassVar[str] = "partition_count"
    size: int
    select: Selection = "lru"

    def __post_init__(self) -> None:
        _check_size("PartitionCount", self.size)
        _check_selection("PartitionCount", self.select)

    def __str__(self) -> str:
        return _with_selection("partitionCount", self.size, self.select)


@dataclass(frozen=True, slots=True)
class TupleCount:
    """At most `size` tuples over all partitions; whole partitions go, as `select` says.

    >>> str(TupleCount(5000, select="lfu"))
    'tupleCount(5000, lfu)'
    """

    kind: ClassVar[str] = "tuple_count"
    size: int
    select: Selection = "lru"

    def __post_init__(self) -> None:
        _check_size("TupleCount", self.size)
        _check_selection("TupleCount", self.select)

    def __str__(self) -> str:
        return _with_selection("tupleCount", self.size, self.select)


@dataclass(frozen=True, slots=True)
class PartitionAge:
    """Partitions without an insertion for longer than `age` go, the longest idle first.

    It has no timer of its own: it is checked at inserts, punctuations, ticks and deadlines.

    >>> str(PartitionAge("1h"))
    'partitionAge(3600)'
    """

    kind: ClassVar[str] = "partition_age"
    age: timedelta

    def __init__(self, age: Duration) -> None:
        length = as_duration(age, argument="PartitionAge")
        if length < timedelta(0):
            shown = duration_text(length)
            raise PolicyError(f'PartitionAge("{shown}"): age must not be negative.')
        object.__setattr__(self, "age", length)

    @property
    def micros(self) -> int:
        """The age as whole microseconds."""
        return micros(self.age)

    def __str__(self) -> str:
        return f"partitionAge({seconds_text(self.age)})"


Policy = Count | Delta | Time | Punct | Either | Event
PartitionEviction = PartitionCount | TupleCount | PartitionAge


def _not_a_number(value: Any) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)


def is_attribute(value: object) -> bool:
    """Whether it can name an attribute: a name, an index or a callable."""
    return not isinstance(value, bool) and (isinstance(value, str | int) or callable(value))


def check_attribute(attribute: object, owner: str, sample: str) -> None:
    """Refuse what cannot name an attribute; `owner` may show it as `{attribute!r}`."""
    if not is_attribute(attribute):
        msg = (
            f"{owner.format(attribute=attribute)}: the attribute must be a name, an index or a "
            f"callable, such as {sample}."
        )
        raise PolicyError(msg)


def attribute_text(attribute: object) -> str:
    """An attribute as text that is the same in every process: its name, or a callable's path.

    >>> attribute_text("ts"), attribute_text(abs)
    ('ts', 'builtins.abs')
    """
    if isinstance(attribute, str | int):
        return str(attribute)
    module = getattr(attribute, "__module__", type(attribute).__module__)
    return f"{module}.{getattr(attribute, '__qualname__', type(attribute).__qualname__)}"
