"""Window specifications: what a window is, without its contents.

`Tumbling` and `Sliding` are frozen, hashable, picklable values. `repr` evals back; `str` is SPL
text, and `parse` in `windowlib.spl` reads it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from decimal import Decimal
from types import EllipsisType
from typing import ClassVar, Final, Literal, cast

from windowlib.durations import duration_text
from windowlib.errors import PolicyError
from windowlib.pattern import Pattern, pattern
from windowlib.policies import (
    Attribute,
    Count,
    Delta,
    Either,
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
    """What both window kinds share."""

    __slots__ = ()
    kind: ClassVar[str]
    evict: Policy
    by: By | None
    forget: PartitionEviction | None
    order_by: Order

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
        return bool(self.times)

    @property
    def times(self) -> list[Time]:
        """The policies that run on the clock, also as a part of another."""
        parts = [p.time if isinstance(p, Either) else p for p in self.policies]
        return [policy for policy in parts if isinstance(policy, Time)]

    def describe(self) -> dict[str, str]:
        """The specification as names and values that are the same in every process."""
        text = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, field.name)
            if value not in (None, ...) or field.name not in HINTS:
                text[field.name] = _value_text(value)
        return text

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with anything that changes the window's meaning."""
        lines = "\n".join(f"{name}={value}" for name, value in self.describe().items())
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        parts = [self.kind, *map(str, self.policies)]
        parts += ["partitioned"] * self.partitioned + [str(self.forget)] * (self.forget is not None)
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        from windowlib.notebook import spec_html

        return spec_html(cast("Spec", self))

    def __repr__(self) -> str:
        shown = [repr(self.evict)]
        shown += [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)[1:]  # type: ignore[arg-type]
            if getattr(self, field.name) is not (... if field.name == "order_by" else None)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _value_text(value: object) -> str:
    """A field's value: different for different values, the same for equal ones, in any process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_value_text, value))})"
    if isinstance(value, Delta):
        return f"Delta({_value_text(value.attribute)}, {_threshold_text(value.threshold)})"
    if callable(value):
        return f"<{attribute_text(value)}>"
    return repr(value)


def _threshold_text(value: float | Decimal | timedelta) -> str:
    """10, 10.0 and Decimal("10") are one threshold."""
    if isinstance(value, timedelta):
        return f'"{duration_text(value)}"'
    if isinstance(value, int) or (math.isfinite(value) and value == int(value)):
        return str(int(value))
    if isinstance(value, Decimal) and float(value) != value:
        return repr(value.normalize())
    return repr(float(value))


@dataclass(frozen=True, slots=True, repr=False)
class Tumbling(_Spec):
    """A window that fills up, is processed when full, and starts again empty.

    Args:
        evict: `Count`, `Delta`, `Time`, `Punct` or `Count(n) | Time(p)`: when the window is full.
        by: the partition key: a column, several, a callable, or `KEY`; None for one partition.
        forget: `PartitionCount`, `TupleCount` or `PartitionAge`.
        order_by: the columns that order the rows of one batch, for hosts that take batches; None
            if their order is of no matter, which is not the same as saying nothing (`...`).

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
        _check_policy(evict, (Count, Delta, Time, Punct, Either), "Tumbling(evict)")
        by = _check_by(by, "Tumbling")
        _check_forget(forget, by, "Tumbling")
        order_by = _check_order(order_by, "Tumbling")
        given = {"evict": evict, "by": by, "forget": forget, "order_by": order_by}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @property
    def full_at(self) -> int | None:
        """How many tuples fill a subwindow, if it is for a count to say."""
        count = self.evict.count if isinstance(self.evict, Either) else self.evict
        return count.size if isinstance(count, Count) else None


@dataclass(frozen=True, slots=True, repr=False)
class Sliding(_Spec):
    """A window that keeps the most recent tuples and is processed at each trigger.

    Args:
        evict: `Count`, `Delta` or `Time`: which tuples are recent.
        every: the trigger: `Count`, `Delta` or `Time`; `Count(1)` unless given.
        by: the partition key: a column, several, a callable, or `KEY`; None for one partition.
        forget: `PartitionCount`, `TupleCount` or `PartitionAge`.
        order_by: the columns that order the rows of one batch, for hosts that take batches; None
            if their order is of no matter, which is not the same as saying nothing (`...`).
        partial: "skip" or "emit": whether operators process a window that was never full yet.

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
        _check_policy(evict, (Count, Delta, Time), "Sliding(evict)")
        _check_policy(every, (Count, Delta, Time), "Sliding(every)")
        by = _check_by(by, "Sliding")
        _check_forget(forget, by, "Sliding")
        order_by = _check_order(order_by, "Sliding")
        if partial not in (None, "skip", "emit"):
            msg = (
                f'Sliding(partial={partial!r}): say "skip" (nothing before the window has been '
                f'full) or "emit".'
            )
            raise PolicyError(msg)
        given = {"evict": evict, "every": every, "by": by, "forget": forget}
        for name, value in {**given, "order_by": order_by, "partial": partial}.items():
            object.__setattr__(self, name, value)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Eviction policy, then trigger policy."""
        return (self.evict, self.every)


Spec = Tumbling | Sliding
