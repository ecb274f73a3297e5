"""Hypothesis strategies: any legal specification, streams for it, subsets of handlers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.helpers.event_recorder import Advance, DataRow, Insert, Many, Op, Punctuate, Row, Select
from windowlib import (
    KEY,
    Count,
    Delta,
    Either,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
)
from windowlib.window.events import HANDLERS

INFINITE = float("inf")


def age_of(row: Any) -> int:
    """A delta attribute as a callable."""
    value: int = row["age"] if isinstance(row, dict) else row.age
    return value


def key_of(row: Any) -> Any:
    """A partition key as a callable."""
    return row["k"] if isinstance(row, dict) else row.k


# -- specifications -----------------------------------------------------------------------------

counts = st.integers(0, 5).map(Count)
periods = st.sampled_from([0.25, 0.5, 1, 1.5, 2]).map(lambda s: Time(timedelta(seconds=s)))
batches = st.builds(Either, st.integers(1, 5).map(Count), periods)
ages = st.sampled_from([0, 0.25, 0.5, 1, 2]).map(lambda s: PartitionAge(timedelta(seconds=s)))
selections = st.sampled_from(["lru", "lfu", "oldest", "operator"])
partition_evictions = st.one_of(
    st.builds(PartitionCount, st.integers(0, 3), selections),
    st.builds(TupleCount, st.integers(0, 6), selections),
    ages,
)
partitionings = st.sampled_from([None, KEY, "k", ("k", "g"), key_of])


@st.composite
def deltas(draw: st.DrawFn, *, infinite: bool = False) -> Delta:
    """A delta policy on an int or a float attribute; thresholds may be zero or negative."""
    if infinite:
        return Delta("ts", draw(st.sampled_from([INFINITE, -INFINITE])))
    if draw(st.integers(0, 3)):
        attribute: Any = draw(st.sampled_from(["age", "age", age_of]))
        return Delta(attribute, draw(st.integers(-2, 6)))
    return Delta("ts", draw(st.integers(-2, 8)) / 2)


@st.composite
def specs(
    draw: st.DrawFn,
    *,
    kinds: tuple[str, ...] = ("tumbling", "sliding", "sliding"),
    timed: bool = True,
    infinite: bool = False,
    by: st.SearchStrategy[Any] = partitionings,
) -> Tumbling | Sliding:
    """Any legal specification: 5 tumbling and 9 sliding combinations, partitioned or not."""
    policies = [counts, deltas(infinite=infinite)] + [periods] * timed
    tumbling = draw(st.sampled_from(kinds)) == "tumbling"
    closing = [st.builds(Punct)] + [batches] * timed if tumbling else []
    evict = draw(st.one_of(*policies, *closing))
    key = draw(by)
    forget = None if key is None else draw(st.none() | partition_evictions)
    if tumbling:
        return Tumbling(evict, by=key, forget=forget)
    return Sliding(evict, every=draw(st.one_of(*policies)), by=key, forget=forget)


# -- streams ------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "a", "a", "b", "b", "c", None])
"""Few keys, so that partitions fill up; None is a key like any other."""

keys_with_nan = st.sampled_from(["a", "b", "nan", "nan", "nan"]).map(
    lambda key: float("nan") if key == "nan" else key  # a new object each time
)
forms = st.sampled_from(["named", "dict", "dataclass"])


def row(form: str, *values: Any) -> Any:
    """A row as a NamedTuple, a dict or a dataclass."""
    made = DataRow(*values)
    return {"named": Row(*values), "dict": asdict(made), "dataclass": made}[form]


@st.composite
def streams(
    draw: st.DrawFn,
    *,
    keys: st.SearchStrategy[Any] = keys,
    form: st.SearchStrategy[str] = forms,
    mixed: bool = False,
    max_size: int = 40,
) -> list[Op]:
    """Inputs of a window; delta attributes rise mostly, and go backwards sometimes.

    All rows of a stream have one form, unless `mixed`.
    """
    first = draw(form)
    up = st.sampled_from([0, 0, 1, 1, 1, 2, 3, 7])
    steps = draw(st.sampled_from([up, up, st.one_of(up, up, up, st.integers(-6, -1))]))
    number, age, ts = 0, draw(st.integers(-3, 3)), 0.0

    def insert() -> Insert:
        nonlocal number, age, ts
        number, age, ts = number + 1, age + draw(steps), ts + draw(steps) / 2
        key = draw(keys)
        values = (number, age, ts, key, number % 2)
        return Insert(row(draw(form) if mixed else first, *values), key)

    ops: list[Op] = []
    for _ in range(draw(st.integers(1, max_size))):
        what = draw(st.sampled_from(["insert"] * 6 + ["many", "advance", "advance", "punctuate"]))
        if what == "insert":
            ops.append(insert())
        elif what == "many":
            ops.append(Many(tuple(insert() for _ in range(draw(st.integers(0, 4))))))
        elif what == "advance":
            ops.append(Advance(draw(st.sampled_from([0, 0.25, 0.25, 0.5, 1, 1.25, 3]))))
        else:
            ops.append(Punctuate(draw(st.sampled_from(["window", "window", "final", "other"]))))
    return ops


# -- handlers -----------------------------------------------------------------------------------

handlers = st.one_of(
    st.just(frozenset(HANDLERS)),
    st.sets(st.sampled_from(HANDLERS)).map(frozenset),
    st.sampled_from(HANDLERS).map(lambda name: frozenset([name])),
    st.sampled_from(HANDLERS).map(lambda name: frozenset(HANDLERS) - {name}),
)
"""Which handlers are overridden: every choice makes another insert function."""

SELECTORS: dict[str, Select] = {
    "none": lambda window, keys: [],
    "first": lambda window, keys: [keys[0]],
    "last": lambda window, keys: [keys[-1]],
    "two": lambda window, keys: list(keys[:2]),
    "twice": lambda window, keys: [keys[0], keys[0]],
    "all": lambda window, keys: list(keys),
    "largest": lambda window, keys: [max(keys, key=window.size)],
}
selectors = st.sampled_from(sorted(SELECTORS)).map(SELECTORS.__getitem__)
