"""Patterns of windows: `Tumbling[Count]`, `Sliding[Count, Time]`, as operator models write them."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType, UnionType
from typing import Any, get_args

from windowlib.errors import PolicyError
from windowlib.spec.policies import Policy

Wanted = type[Any] | UnionType | Policy | EllipsisType


@dataclass(frozen=True, slots=True)
class Pattern:
    """The windows of one kind whose policies are of certain types, or equal to certain values.

    >>> from windowlib import Count, Delta, Sliding, Tumbling
    >>> Sliding[Count | Delta, Count(1)].matches(Sliding(Delta("ts", 5)))
    True
    >>> Tumbling[Count].matches(Sliding(Count(5)))
    False
    """

    kind: str
    wanted: tuple[Wanted, ...]

    def matches(self, spec: Any) -> bool:
        """Whether a specification is of this pattern; `...` stands for any policy."""
        return spec.kind == self.kind and all(
            _fits(policy, wanted)
            for policy, wanted in zip(spec.policies, self.wanted, strict=False)
        )

    def __str__(self) -> str:
        parts = ", ".join(map(_text, self.wanted))
        return f"{self.kind.title()}[{parts}]"

    __repr__ = __str__


def pattern(kind: str, most: int, wanted: object) -> Pattern:
    """What `Tumbling[...]` and `Sliding[...]` mean; `most` is how many policies the kind has."""
    parts = wanted if isinstance(wanted, tuple) else (wanted,)
    if not 1 <= len(parts) <= most or not all(map(_usable, parts)):
        shown = ", ".join(map(_text, parts))
        msg = (
            f"{kind.title()}[{shown}]: a pattern names policies, by type or by value, such as "
            f"Tumbling[Count] or Sliding[Count | Delta, Count(1)]."
        )
        raise PolicyError(msg)
    return Pattern(kind, parts)


def _usable(wanted: object) -> bool:
    kinds = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    return wanted is ... or all(k in get_args(Policy) or isinstance(k, Policy) for k in kinds)


def _fits(policy: Policy, wanted: Wanted) -> bool:
    if isinstance(wanted, EllipsisType):
        return True
    if isinstance(wanted, type | UnionType):
        return isinstance(policy, wanted)
    return policy == wanted


def _text(wanted: object) -> str:
    if wanted is ...:
        return "..."
    if isinstance(wanted, UnionType):
        return " | ".join(map(_text, get_args(wanted)))
    return wanted.__name__ if isinstance(wanted, type) else repr(wanted)
