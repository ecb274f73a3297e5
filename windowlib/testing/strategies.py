"""Hypothesis strategies: specifications, streams of rows for them, cuts into batches.

Values shrink to small windows and short streams. All of them are ordinary strategies, so that
`st.data()`, `map` and `filter` do what they do elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Literal, TypeVar

from windowlib.errors import HostError, PolicyError
from windowlib.runtime.marks import advance, punct
from windowlib.spec.policies import (
    Count,
    Delta,
    Either,
    PartitionAge,
    PartitionCount,
    Punct,
    Time,
    TupleCount,
)
from windowlib.spec.specification import KEY, Sliding, Spec, Tumbling

try:
    from hypothesis import strategies as st
except ImportError as error:
    msg = (
        "windowlib.testing.strategies: Hypothesis is not installed, and makes the examples. "
        "Install it: pip install hypothesis."
    )
    raise HostError(msg) from error

T = TypeVar("T")
Kind = Literal["tumbling", "sliding"]
Policy = Literal["count", "delta", "time", "punct", "either"]
KINDS: tuple[Kind, ...] = ("tumbling", "sliding")
POLICIES: tuple[Policy, ...] = ("count", "delta", "time", "punct", "either")
TUMBLING_ONLY = {"punct", "either"}
SECONDS = (0.25, 0.5, 1, 1.5, 2)
GAPS = (0, 0, 0.25, 0.5, 1, 4)
"""How far apart neighbours are, in seconds: often not at all, sometimes more than a window."""


def _seconds(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _checked_choices(argument: str, given: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """The requested choices; unknown ones are refused."""
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if name not in known:
            msg = f"specs({argument}={given!r}): there is no {name!r}. Use {', '.join(known)}."
            raise PolicyError(msg)
    if not names:
        msg = f"specs({argument}={given!r}): nothing to choose from. Use {', '.join(known)}."
        raise PolicyError(msg)
    return names


# -- policies -------------------------------------------------------------------------------------


def counts(least: int = 1, most: int = 6) -> st.SearchStrategy[Count]:
    """`Count` of small sizes."""
    return st.integers(least, most).map(Count)


def deltas(column: str = "ts") -> st.SearchStrategy[Delta]:
    """`Delta` on a numeric column, with thresholds that a stream of `rows` goes beyond."""
    return st.sampled_from(SECONDS).map(lambda width: Delta(column, width))


def times() -> st.SearchStrategy[Time]:
    """`Time` of a quarter of a second to two seconds."""
    return st.sampled_from(SECONDS).map(lambda seconds: Time(_seconds(seconds)))


def forgets() -> st.SearchStrategy[PartitionCount | TupleCount | PartitionAge]:
    """Partition eviction: by number, by tuples, by age."""
    select = st.sampled_from(["lru", "lfu", "oldest"])
    return st.one_of(
        st.builds(PartitionCount, st.integers(1, 3), select),
        st.builds(TupleCount, st.integers(1, 6), select),
        st.sampled_from(SECONDS).map(lambda seconds: PartitionAge(_seconds(seconds))),
    )


def _policy(name: str, column: str) -> st.SearchStrategy[Any]:
    made: dict[str, st.SearchStrategy[Any]] = {
        "count": counts(),
        "delta": deltas(column),
        "time": times(),
        "punct": st.builds(Punct),
        "either": st.builds(Either, counts(), times()),
    }
    return made[name]


# -- specifications -------------------------------------------------------------------------------


@st.composite
def specs(  # noqa: D417 - Hypothesis gives the first argument
    draw: st.DrawFn,
    /,
    *,
    kinds: Kind | Sequence[Kind] = KINDS,
    policies: Policy | Sequence[Policy] = POLICIES,
    by: Any = ("k", None),
    forget: bool = False,
    column: str = "ts",
) -> Spec:
    """Specifications: tumbling and sliding, with all policies that go together.

    Args:
        kinds: "tumbling", "sliding", or both.
        policies: which of "count", "delta", "time", "punct" and "either" (a count or a time);
            the last two are for tumbling windows alone.
        by: the key, or several to choose from as a list or tuple; None is no partitions. A key of
            two columns is a tuple in that list: [("k", "g")].
        forget: whether partitions may be evicted.
        column: the column that deltas are of.
    """
    names = _checked_choices("policies", policies, POLICIES)
    kind = draw(st.sampled_from(_checked_choices("kinds", kinds, KINDS)))
    fitting = [name for name in names if kind == "tumbling" or name not in TUMBLING_ONLY]
    if not fitting:
        msg = (
            f"specs(policies={policies!r}): none of them is for sliding windows. Add one, such as "
            f'"count", or say kinds="tumbling".'
        )
        raise PolicyError(msg)
    policy = st.sampled_from(fitting).flatmap(lambda name: _policy(name, column))
    key = draw(st.sampled_from(list(by))) if isinstance(by, list | tuple) else by
    evicted = draw(st.none() | forgets()) if forget and key is not None else None
    if kind == "tumbling":
        return Tumbling(draw(policy), by=key, forget=evicted)
    return Sliding(draw(policy), every=draw(policy), by=key, forget=evicted)


# -- streams --------------------------------------------------------------------------------------


def _columns(spec: Spec) -> tuple[list[str], list[str]]:
    """The key columns and the delta columns of a specification, by name."""
    parts = spec.by if isinstance(spec.by, tuple) else (spec.by,)
    deltas_ = [policy.attribute for policy in spec.deltas]
    for part in (*parts, *deltas_):
        if part is KEY or not isinstance(part, str | None):
            shown = "KEY" if part is KEY else repr(part)
            msg = f"streams({spec!r}): {shown} is no column of a row. Use names of columns."
            raise PolicyError(msg)
    return [p for p in parts if isinstance(p, str)], [d for d in deltas_ if isinstance(d, str)]


@st.composite
def streams(  # noqa: D417
    draw: st.DrawFn,
    /,
    spec: Spec,
    *,
    values: dict[str, st.SearchStrategy[Any]] | None = None,
    keys: Iterable[Any] = ("a", "b", "c"),
    max_size: int = 30,
    clock: bool | None = None,
    puncts: bool | None = None,
) -> list[Any]:
    """Rows for a window of this specification, with time and punctuations among them.

    A row has the key columns, the delta columns and `ts`, which never fall and often stay, and the
    columns of `values`. Neighbours may be at one time, or further apart than a window is long.

    Args:
        spec: the specification.
        values: further columns, and what their values are; a small integer `x` unless given.
        keys: the values of key columns.
        max_size: how many rows there are at most.
        clock: whether `advance(...)` is among them; if the window has a time policy, unless given.
        puncts: whether `punct()` is; if punctuations close the window, unless given.
    """
    by, rising = _columns(spec)
    others = {"x": st.integers(-3, 9)} if values is None else values
    names, choices = dict.fromkeys(["ts", *rising]), list(keys)
    ticks = spec.timed if clock is None else clock
    closes = spec.punctuated if puncts is None else puncts
    items: list[Any] = []
    now, at = 0.0, dict.fromkeys(names, 0.0)
    for _ in range(draw(st.integers(0, max_size))):
        now += draw(st.sampled_from(GAPS))
        if ticks and draw(st.booleans()):
            items.append(advance(now))
        if closes and draw(st.integers(0, 3)) == 0:
            items.append(punct())
        at = {name: now if name == "ts" else at[name] + draw(st.sampled_from(GAPS)) for name in at}
        row = {name: draw(st.sampled_from(choices)) for name in by}
        items.append(row | at | {name: draw(value) for name, value in others.items()})
    return items


@st.composite
def cases(  # noqa: D417
    draw: st.DrawFn,
    /,
    specifications: st.SearchStrategy[Spec] | None = None,
    **more: Any,
) -> tuple[Spec, list[Any]]:
    """A specification and a stream for it.

    Args:
        specifications: which there are; all of `specs()` unless given.
        more: options of `streams`.
    """
    spec = draw(specs() if specifications is None else specifications)
    return spec, draw(streams(spec, **more))


# -- cuts -----------------------------------------------------------------------------------------


@st.composite
def cuts(  # noqa: D417
    draw: st.DrawFn, /, items: Sequence[T], *, empty: bool = False
) -> list[list[T]]:
    """A list cut into pieces, at any places.

    Args:
        items: the list.
        empty: whether pieces may be empty.
    """
    inner = range(0 if empty else 1, len(items) + (1 if empty else 0))
    if not len(items):
        return [[]] * draw(st.integers(0, 2)) if empty else []
    places = draw(st.lists(st.sampled_from(inner), unique=not empty)) if inner else []
    ends = [0, *sorted(places), len(items)]
    return [list(items[lo:hi]) for lo, hi in pairwise(ends)]
