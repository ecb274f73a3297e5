"""Snapshots that are split and merged by key, when the keys of an operator are redistributed.

A host that splits rows by key runs the same operator in several places. What each of them holds is
of its keys, so the snapshots of some places can be taken apart by key and put together for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from windowlib.attributes import one_key
from windowlib.errors import OperatorError
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator
from windowlib.runtime.operator_state import split
from windowlib.runtime.splitting import names_in

PARTITIONS = ("parts", "asleep")
"""Where the state of a window has its partitions: those that hold tuples, and those that did."""
Owner = Callable[[Operator, int, Any], int]
"""The place of a key of an operator, or of a node of a graph, at an input."""


def regrouped(
    operator: Operator, states: Sequence[Mapping[str, Any]], owner: Owner, places: int
) -> list[dict[str, Any]]:
    """The snapshots of an operator for other places.

    Args:
        operator: the operator.
        states: one or more of its snapshots, without arrays, each for other keys.
        owner: the place of a key at an input, of those that there are from now on.
        places: how many these are.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> totals = Aggregate(Tumbling(Count(2), by="k"), total=agg.sum("x"))
    >>> running = totals.open()
    >>> running.insert_many([{"k": 0, "x": 1}, {"k": 1, "x": 5}])
    >>> even, odd = regrouped(totals, [running.snapshot()], lambda op, port, key: key % 2, 2)
    >>> [part["key"] for part in odd["windows"][0]["parts"]]
    [1]
    """
    return [_place(operator, states, owner, place) for place in range(places)]


def _place(
    operator: Operator, states: Sequence[Mapping[str, Any]], owner: Owner, place: int
) -> dict[str, Any]:
    def mine(port: int, key: Any) -> bool:
        return owner(operator, port, one_key(key)) == place

    found = {**states[0], "now": max(state["now"] for state in states)}
    if isinstance(operator, Graph):
        found["state"] = {
            name: _place(node, [state["state"][name] for state in states], owner, place)
            for name, node in operator.operators.items()
        }
        return found
    found |= split(states, partial(mine, 0))
    windows = operator.open().windows
    found["windows"] = [
        _window(port, windows[at], [state["windows"][at] for state in states], mine, place == 0)
        for at, port in enumerate(windowed_ports(operator))
    ]
    found["state"] = operator.regroup(states, mine)
    return found


def windowed_ports(operator: Operator) -> list[int]:
    """The inputs that have a window."""
    return [port for port, spec in enumerate(operator.windows) if spec is not None]


def _window(
    port: int,
    window: Any,
    states: Sequence[Mapping[str, Any]],
    mine: Callable[[int, Any], bool],
    first: bool,
) -> dict[str, Any]:
    """The merged snapshot of a window for some keys; the first part has the counts of rows."""
    latest = max(states, key=lambda state: state["now"])
    found = {**states[0], **{name: latest[name] for name in ("start", "now", "tick")}}
    if "event_time" in found:
        events = [state["event_time"] for state in states]
        found["event_time"] = window.regrouped(events, partial(mine, port), first)
        return found
    for place in PARTITIONS:
        found[place] = [
            part for state in states for part in state[place] if mine(port, part["key"])
        ]
    if window.spec.evict.lapse is not None:  # storage order is the order in which they end
        found["parts"].sort(key=lambda part: part["ref"][0])
    found["lru"] = _used(states, found["parts"])
    found["left"] = sum(state["left"] for state in states) if first else 0
    return found


def _used(
    windows: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]
) -> list[Any] | None:  # fmt: skip
    """The keys of some partitions, least recently used first; None where no window cares."""
    if any(window["lru"] is None for window in windows):
        return None
    stamps = {one_key(part["key"]): part["stamp"] for part in parts}
    keys = (key for window in windows for key in window["lru"] if one_key(key) in stamps)
    return sorted(keys, key=lambda key: stamps[one_key(key)])


def check_regroups(operator: Operator, columns: Sequence[Sequence[str]]) -> None:
    """Refuse an operator whose state cannot be split by columns.

    Args:
        operator: the operator, or a graph of them.
        columns: for each input, the columns that say where a row goes.
    """
    if (why := why_not_by_key(operator, columns)) is not None:
        fix = "Keep the number of buckets, and change the shuffle partitions alone."
        raise OperatorError(f"{why}. {fix}")


def why_not_by_key(operator: Operator, columns: Sequence[Sequence[str]]) -> str | None:
    """Why the state of an operator cannot be split by columns; None if it can."""
    if isinstance(operator, Graph):
        nodes = operator.operators.values()
        whys = (why_not_by_key(node, node_columns(node, columns)) for node in nodes)
        return next((why for why in whys if why is not None), None)
    for port in windowed_ports(operator):
        by = names_in(operator.windows[port].by) or ()  # type: ignore[union-attr]
        if missing := [name for name in columns[port] if name not in by]:
            return (
                f"{operator.name}: its window of {operator.model.inputs[port].name!r} is not "
                f"partitioned by {missing[0]!r}, so what it holds cannot be told apart by that"
            )
    if operator.unkeyed_state or not operator.regroups:
        return (
            f"{operator.name}: it keeps more than its windows, and that cannot be told apart by key"
        )
    return None


def node_columns(node: Operator, columns: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """The columns of a graph's inputs at those of a node: they have one name everywhere."""
    return [columns[0]] * len(node.model.inputs)


def key_columns(
    operator: Operator, columns: Sequence[Sequence[str]], port: int, key: Any
) -> tuple[Any, ...]:
    """The values of some columns, from a key of an operator's state.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> pairs = Aggregate(Tumbling(Count(2), by=("src", "dst")), n=agg.count())
    >>> key_columns(pairs, [["dst"]], 0, ("a", "b"))
    ('b',)
    """
    spec = operator.windows[port] if operator.windows else None
    by: Any = None if spec is None else spec.by
    if spec is None:
        by = next(iter(operator.keyed_state.values())).by
        by = by[0] if len(by) == 1 else by
    names = by if isinstance(by, tuple) else (by,)
    values = key if isinstance(by, tuple) else (key,)
    return tuple(values[names.index(name)] for name in columns[port])
