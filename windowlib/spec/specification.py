"""Window specifications: what a window is, without its contents.

`Tumbling` and `Sliding`, and for event time `Session` and `Landmark`, are frozen, hashable,
picklable values. `repr` evals back; `str` is SPL
text, and `parse` in `windowlib.spec.spl` reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from decimal import Decimal
from types import EllipsisType
from typing import Any, ClassVar, Final, Literal, cast

from windowlib.durations import Amount, Duration, check_amounts, plain_amount, stable_amount
from windowlib.errors import PolicyError
from windowlib.event_time.slack import Slack
from windowlib.event_time.watermark import Watermark
from windowlib.extensions import extension
from windowlib.spec.event_time import (
    OPTIONS,
    Late,
    Since,
    check_event_size,
    check_hop,
    check_no_eviction,
    event_options,
    gap_of,
    option_words,
    since_of,
    since_text,
)
from windowlib.spec.pattern import Pattern, pattern
from windowlib.spec.policies import (
    Attribute,
    Count,
    Delta,
    Either,
    Event,
    PartitionAge,
    PartitionCount,
    PartitionEviction,
    Policy,
    Punct,
    Time,
    TupleCount,
    attribute_text,
    is_attribute,
)


class _Key:
    """The type of `KEY`; one value, the same after pickling."""

    def __repr__(self) -> str:
        return "KEY"

    def __reduce__(self) -> str:
        return "KEY"


KEY: Final = _Key()
"""`by=KEY`: partitioned, and the caller passes each tuple's key to `insert`."""

By = Attribute | tuple[Attribute, ...] | _Key
Order = By | EllipsisType | None
Partial = Literal["skip", "emit"]


def _check_by(by: By | Sequence[str] | None, spec: str) -> By | None:
    if isinstance(by, list | tuple):
        parts = tuple(cast("tuple[Attribute, ...]", by))
        if not parts or not all(map(is_attribute, parts)):
            msg = f'{spec}(by={by!r}): name the key columns, such as by="symbol" or by=("a", "b").'
            raise PolicyError(msg)
        return parts
    if by is None or by is KEY or callable(by):
        return cast("By | None", by)
    if isinstance(by, bool) or not isinstance(by, str | int):
        msg = (
            f"{spec}(by={by!r}): by must be a column name, an index, a tuple of those, a callable, "
            f"or KEY if you pass the key to insert."
        )
        raise PolicyError(msg)
    return by


def _check_order(order_by: Order | Sequence[str], spec: str) -> Order:
    if order_by is ...:
        return order_by
    if order_by is KEY:
        raise PolicyError(f'{spec}(order_by=KEY): name columns, such as order_by="ts".')
    try:
        return _check_by(order_by, spec)
    except PolicyError:
        msg = f'{spec}(order_by={order_by!r}): name columns, such as order_by="ts" or ("day", "n").'
        raise PolicyError(msg) from None


def _check_forget(forget: object, by: object, spec: str) -> None:
    if forget is None:
        return
    if isinstance(forget, list | tuple):
        msg = (
            f"{spec}(forget={forget!r}): only one partition eviction policy is possible. Keep one."
        )
        raise PolicyError(msg)
    if not isinstance(forget, PartitionCount | TupleCount | PartitionAge):
        msg = (
            f"{spec}(forget={forget!r}): not a partition eviction policy. Use PartitionCount, "
            f"TupleCount or PartitionAge."
        )
        raise PolicyError(msg)
    if by is None:
        msg = (
            f"{spec}(forget={forget!r}): partition eviction needs a partitioned window. "
            f"Add by=..., or drop `forget=`."
        )
        raise PolicyError(msg)


TUMBLING: tuple[type, ...] = (Count, Delta, Time, Punct, Either, Event)
SLIDING: tuple[type, ...] = (Count, Delta, Time, Event)
TRIGGERS: tuple[type, ...] = (Count, Delta, Time, Event)
"""The policies that close a tumbling window, that evict from a sliding one, and that trigger it."""


def _check_policy(policy: object, allowed: tuple[type, ...], where: str) -> None:
    if isinstance(policy, allowed):
        return
    names = ", ".join(p.__name__ for p in allowed)
    fix = f"Write Count({policy})." if type(policy) is int else f"Use one of {names}."
    raise PolicyError(f"{where}: {policy!r} is not a policy that fits here. {fix}")


def _check_slides(policy: object, where: str) -> None:
    if isinstance(policy, Either):
        msg = (
            f"{where}: a count or a time, whichever comes first, can only close tumbling windows. "
            f"Use Tumbling({policy!r}), or one of the two alone."
        )
        raise PolicyError(msg)


HINTS = ("order_by", "partial")
"""What a specification says to hosts and operators; a container alone does nothing with it."""


class _Spec:
    """The options that all kinds of windows share."""

    __slots__ = ()
    kind: ClassVar[str]
    evict: Policy
    by: By | None
    forget: PartitionEviction | None
    order_by: Order
    watermark: Watermark | None
    late: Late | None
    allowed: Amount | None
    retract: bool | None
    early: timedelta | None
    implied: ClassVar[tuple[str, ...]] = ()
    """Fields that follow from the others, and are not written down."""

    @property
    def event_time(self) -> bool:
        """Whether it is a window of event time, which a watermark closes."""
        return self.evict.event is not None

    @property
    def amounts(self) -> list[tuple[str, Amount]]:
        """The distances on the axis of event time among its options, by name."""
        return _amounts(self)

    @property
    def partitioned(self) -> bool:
        """Whether the window keeps a subwindow per key."""
        return self.by is not None

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Eviction policy, then the trigger policy if there is one."""
        return (self.evict,)

    @property
    def timed(self) -> bool:
        """Whether a policy runs on the clock, so that events can fire without an insert."""
        return bool(self.times) or self.early is not None

    @property
    def times(self) -> list[Time]:
        """The policies that run on the clock, also as a part of another."""
        return [time for policy in self.policies for time in policy.times]

    @property
    def deltas(self) -> list[Delta]:
        """The policies that compare values of an attribute, each once."""
        found = (policy.delta for policy in self.policies)
        return list(dict.fromkeys(delta for delta in found if delta is not None))

    @property
    def full_at(self) -> int | None:
        """How many tuples fill a subwindow, if a count decides that."""
        return self.evict.tuples

    @property
    def full_from_start(self) -> bool:
        """Whether a subwindow is full from its first tuple on, since only the clock empties it."""
        return self.evict.tick is not None

    @property
    def keeps_nothing(self) -> bool:
        """Whether no tuple ever stays: an eviction policy of `Count(0)`."""
        return self.evict.tuples == 0

    @property
    def punctuated(self) -> bool:
        """Whether punctuations in the stream close the window."""
        return self.evict.punctuated

    def describe(self) -> dict[str, str]:
        """The specification as names and values that are the same in every process."""
        text = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, field.name)
            if value not in (None, ...) or field.name not in (*HINTS, *OPTIONS):
                text[field.name] = _value_text(value)
        return text

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with anything that changes the window's meaning."""
        lines = "\n".join(f"{name}={value}" for name, value in self.describe().items())
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        parts = [self.kind, *map(str, self.policies), *self._words()]
        parts += ["partitioned"] * self.partitioned + [str(self.forget)] * (self.forget is not None)
        return ", ".join([*parts, *option_words(self)])

    def _words(self) -> list[str]:
        """The options of this kind of window, in SPL text."""
        return []

    def _repr_html_(self) -> str:
        return str(extension("spec_html")(self))

    def __repr__(self) -> str:
        shown = [repr(self.evict)]
        shown += [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)[1:]  # type: ignore[arg-type]
            if getattr(self, field.name) is not (... if field.name == "order_by" else None)
            and field.name not in self.implied
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _value_text(value: object) -> str:
    """A field's value as text: equal for equal values only, in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_value_text, value))})"
    if isinstance(value, Delta):
        return f"Delta({_value_text(value.attribute)}, {stable_amount(value.threshold)})"
    if isinstance(value, Event | Watermark):
        return value.stable_text
    if isinstance(value, date):
        return since_text(value)
    if isinstance(value, int | float | Decimal | timedelta):
        return stable_amount(value)
    if callable(value):
        return f"<{attribute_text(value)}>"
    return repr(value)


@dataclass(frozen=True, slots=True, repr=False)
class Tumbling(_Spec):
    """A window that fills up, is processed when full, and starts again empty.

    Args:
        evict: `Count`, `Delta`, `Time`, `Punct` or `Count(n) | Time(p)`: when the window is full;
            or `Event`, for windows of event time.
        by: the partition key: a column, several, a callable, or `KEY`; None for one partition.
        forget: `PartitionCount`, `TupleCount` or `PartitionAge`.
        order_by: the columns that order the rows of one batch, for hosts that take batches; None
            if their order is irrelevant, which is not the same as saying nothing (`...`).
        watermark: for event time: how long to wait for rows, as "5s", or a `Watermark`.
        late: for event time: "drop" late rows (unless given), send them to a "port", "error", or
            "update" what was sent.
        allowed: for late="update": how long a closed window is kept.
        retract: for late="update": whether what is corrected is taken back first.
        early: for event time: a period of the clock after which open windows are looked at.

    >>> Tumbling(Count(100), by="symbol")
    Tumbling(Count(size=100), by='symbol')
    >>> str(Tumbling(Punct()))
    'tumbling, punct()'
    """

    kind: ClassVar[str] = "tumbling"
    evict: Policy
    by: By | None
    forget: PartitionEviction | None
    order_by: Order
    watermark: Watermark | None
    late: Late | None
    allowed: Amount | None
    retract: bool | None
    early: timedelta | None

    def __class_getitem__(cls, wanted: object) -> Pattern:
        return pattern("tumbling", 1, wanted)

    def __init__(
        self,
        evict: Policy,
        *more: Policy,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        order_by: Order | Sequence[str] = ...,
        every: Policy | None = None,
        watermark: Watermark | Slack | Amount | str | None = None,
        late: Late | None = None,
        allowed: Amount | str | None = None,
        retract: bool | None = None,
        early: Duration | None = None,
    ) -> None:
        if more:
            msg = (
                f"Tumbling({evict!r}, {more[0]!r}): a tumbling window takes exactly one eviction "
                f"policy. Use Sliding({evict!r}, every={more[0]!r}) for an eviction and a trigger."
            )
            raise PolicyError(msg)
        if every is not None:
            msg = (
                f"Tumbling(..., every={every!r}): a tumbling window is processed when it is full, "
                f"so it has no trigger. Drop `every=`, or use Sliding({evict!r}, every={every!r})."
            )
            raise PolicyError(msg)
        _check_policy(evict, TUMBLING, "Tumbling(evict)")
        check_event_size("Tumbling", evict)
        check_no_eviction("Tumbling", evict, forget)
        options = dict(zip(OPTIONS, (watermark, late, allowed, retract, early), strict=True))
        _fill(self, "Tumbling", options, evict=evict, by=by, forget=forget, order_by=order_by)


@dataclass(frozen=True, slots=True, repr=False)
class Sliding(_Spec):
    """A window that keeps the most recent tuples and is processed at each trigger.

    Args:
        evict: `Count`, `Delta` or `Time`: which tuples are recent.
        every: the trigger: `Count`, `Delta` or `Time`; `Count(1)` unless given.
        by: the partition key: a column, several, a callable, or `KEY`; None for one partition.
        forget: `PartitionCount`, `TupleCount` or `PartitionAge`.
        order_by: the columns that order the rows of one batch, for hosts that take batches; None
            if their order is irrelevant, which is not the same as saying nothing (`...`).
        partial: "skip" or "emit": whether operators process a window that was never full yet.
        watermark: for event time: how long to wait for rows, as "5s", or a `Watermark`.
        late: for event time: "drop" late rows (unless given), send them to a "port", "error", or
            "update" what was sent.
        allowed: for late="update": how long a closed window is kept.
        retract: for late="update": whether what is corrected is taken back first.
        early: for event time: a period of the clock after which open windows are looked at.

    >>> Sliding(Count(100), every=Count(10), by="symbol")
    Sliding(Count(size=100), every=Count(size=10), by='symbol')
    >>> str(Sliding(Count(100), every=Count(10), by=KEY, forget=PartitionAge("1h")))
    'sliding, count(100), count(10), partitioned, partitionAge(3600)'
    """

    kind: ClassVar[str] = "sliding"
    evict: Policy
    every: Policy
    by: By | None
    forget: PartitionEviction | None
    order_by: Order
    partial: Partial | None
    watermark: Watermark | None
    late: Late | None
    allowed: Amount | None
    retract: bool | None
    early: timedelta | None

    def __class_getitem__(cls, wanted: object) -> Pattern:
        return pattern("sliding", 2, wanted)

    def __init__(
        self,
        evict: Policy,
        *more: Policy,
        every: Policy | None = None,
        by: By | Sequence[str] | None = None,
        forget: PartitionEviction | None = None,
        order_by: Order | Sequence[str] = ...,
        partial: Partial | None = None,
        watermark: Watermark | Slack | Amount | str | None = None,
        late: Late | None = None,
        allowed: Amount | str | None = None,
        retract: bool | None = None,
        early: Duration | None = None,
    ) -> None:
        if more:
            msg = (
                f"Sliding({evict!r}, {more[0]!r}): name the trigger. "
                f"Write Sliding({evict!r}, every={more[0]!r})."
            )
            raise PolicyError(msg)
        every = Count(1) if every is None else every
        if isinstance(evict, Punct):
            msg = (
                "Sliding(Punct()): punctuation can only close tumbling windows. "
                "Use Tumbling(Punct())."
            )
            raise PolicyError(msg)
        if isinstance(every, Punct):
            msg = (
                f"Sliding({evict!r}, every=Punct()): punctuation cannot trigger a sliding window. "
                f"Use Tumbling(Punct()), or a Count, Delta or Time trigger."
            )
            raise PolicyError(msg)
        _check_slides(evict, f"Sliding({evict!r})")
        _check_slides(every, f"Sliding({evict!r}, every={every!r})")
        _check_policy(evict, SLIDING, "Sliding(evict)")
        _check_policy(every, TRIGGERS, "Sliding(every)")
        check_hop(evict, every)
        check_no_eviction("Sliding", evict, forget)
        if evict.event is not None and partial is not None:
            msg = (
                f"Sliding({evict!r}, partial={partial!r}): event-time windows start at fixed "
                f"times, so none is partial. Drop `partial=`."
            )
            raise PolicyError(msg)
        if partial not in (None, "skip", "emit"):
            msg = (
                f'Sliding(partial={partial!r}): say "skip" (nothing before the window has been '
                f'full) or "emit".'
            )
            raise PolicyError(msg)
        options = dict(zip(OPTIONS, (watermark, late, allowed, retract, early), strict=True))
        given = {"evict": evict, "every": every, "by": by, "forget": forget, "order_by": order_by}
        _fill(self, "Sliding", options, **given, partial=partial)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Eviction policy, then trigger policy."""
        return (self.evict, self.every)

    @property
    def never_fires(self) -> bool:
        """Whether no tuple ever triggers it: a trigger of `Count(0)`."""
        return self.every.tuples == 0


@dataclass(frozen=True, slots=True, repr=False)
class Session(Tumbling):
    """A tumbling window of event time that lasts as long as rows keep coming.

    It ends `gap` after its last row; a row at just that time is still of it, as in Spark.
    Each key has its own sessions. A row out of order may join two of them.

    Args:
        evict: the timestamp, as `Event("ts")`.
        gap: how long without a row ends a session: a duration for datetimes, or a number.
        by: the partition key, as for `Tumbling`; so are all the others.

    >>> str(Session(Event("ts"), gap="30min", by="user"))
    'session, event(ts), gap(30m), partitioned'
    """

    kind: ClassVar[str] = "session"
    gap: Amount

    def __class_getitem__(cls, wanted: object) -> Pattern:
        return pattern("session", 1, wanted)

    def __init__(
        self,
        evict: Event,
        *,
        gap: Amount | str,
        by: By | Sequence[str] | None = None,
        forget: None = None,
        order_by: Order | Sequence[str] = ...,
        watermark: Watermark | Slack | Amount | str | None = None,
        late: Late | None = None,
        allowed: Amount | str | None = None,
        retract: bool | None = None,
        early: Duration | None = None,
    ) -> None:
        length = gap_of(evict, gap)
        check_no_eviction("Session", evict, forget)
        options = dict(zip(OPTIONS, (watermark, late, allowed, retract, early), strict=True))
        given = {"evict": evict, "by": by, "forget": None, "order_by": order_by}
        _fill(self, "Session", options, **given, gap=length)
        if self.late == "update" and not self.retract:
            msg = (
                'Session(late="update"): a late row may join two sessions that were sent, which '
                "takes both back. Say retract=True, too."
            )
            raise PolicyError(msg)

    @property
    def amounts(self) -> list[tuple[str, Amount]]:
        """The distances on the axis of event time among its options, by name."""
        return [("gap", self.gap), *_amounts(self)]

    def _words(self) -> list[str]:
        return [f"gap({plain_amount(self.gap)})"]


@dataclass(frozen=True, slots=True, repr=False)
class Landmark(Sliding):
    """A window of event time that starts at a point and only grows, looked at every so often.

    It fires at the end of each stretch in which a key had rows. What it keeps grows with it, unless
    the functions of the operator are kept as summaries.

    Args:
        evict: the timestamp and how often the window is looked at, as `Event("ts", "1h")`.
        since: where it starts: a datetime, text such as "2013-01-01", or a number; a row before
            that is late. None: with the first row.
        by: the partition key, as for `Sliding`; so are all the others.

    >>> str(Landmark(Event("ts", "1h"), since="2013-01-01"))
    'landmark, event(ts, 1h), since(2013-01-01T00:00:00)'
    """

    kind: ClassVar[str] = "landmark"
    implied: ClassVar[tuple[str, ...]] = ("every",)
    since: Since | None

    def __class_getitem__(cls, wanted: object) -> Pattern:
        return pattern("landmark", 1, wanted)

    def __init__(
        self,
        evict: Event,
        *,
        since: Since | str | None = None,
        every: Event | None = None,
        by: By | Sequence[str] | None = None,
        forget: None = None,
        order_by: Order | Sequence[str] = ...,
        partial: None = None,
        watermark: Watermark | Slack | Amount | str | None = None,
        late: Late | None = None,
        allowed: Amount | str | None = None,
        retract: bool | None = None,
        early: Duration | None = None,
    ) -> None:
        begins = since_of(evict, since)
        if every is not None and every != evict:
            msg = (
                f"Landmark({evict!r}, every={every!r}): the Event says how often the window is "
                f"looked at. Drop `every=`."
            )
            raise PolicyError(msg)
        if partial is not None:
            msg = f"Landmark(partial={partial!r}): it is never full. Drop `partial=`."
            raise PolicyError(msg)
        check_no_eviction(
            "Landmark", evict, forget, "a landmark window keeps every key since it began"
        )
        options = dict(zip(OPTIONS, (watermark, late, allowed, retract, early), strict=True))
        given = {"evict": evict, "every": evict, "by": by, "forget": None, "order_by": order_by}
        _fill(self, "Landmark", options, **given, partial=None, since=begins)
        if self.late == "update":
            msg = (
                'Landmark(late="update"): a late row would correct every window after it. Use '
                'late="port", or allow more slack.'
            )
            raise PolicyError(msg)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The only policy."""
        return (self.evict,)

    def _words(self) -> list[str]:
        return [] if self.since is None else [f"since({since_text(self.since)})"]


def _fill(spec: Tumbling | Sliding, kind: str, options: Mapping[str, Any], **given: Any) -> None:
    """Set the fields of a frozen specification, once those that all kinds have are checked."""
    given["by"] = _check_by(given["by"], kind)
    _check_forget(given["forget"], given["by"], kind)
    given["order_by"] = _check_order(given["order_by"], kind)
    for name, value in {**given, **event_options(kind, given["evict"], options)}.items():
        object.__setattr__(spec, name, value)
    if spec.event_time:
        check_amounts(f"{type(spec).__name__}({spec.evict!r}, ...)", spec.amounts, PolicyError)


def _amounts(spec: Any) -> list[tuple[str, Amount]]:
    """The distances of a specification that every kind may have."""
    event = spec.evict.event
    found = [] if event is None else [("size", event.size), ("offset", event.offset)]
    said = [(name, amount) for name, amount in [*found, ("allowed", spec.allowed)] if amount]
    return said + ([] if spec.watermark is None else spec.watermark.amounts)


Spec = Tumbling | Sliding
"""A window: also a `Session`, which is tumbling, and a `Landmark`, which is sliding."""
