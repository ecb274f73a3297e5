"""State between an operator that runs alone and a farm of it: the same windows, stored elsewhere.

A running operator keeps the tuples of its windows; the emitter of a farm keeps their row numbers,
and the tuples are in chunks. Policies remember the same things in both, so a snapshot of the one
becomes a snapshot of the other when tuples and numbers change places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from windowlib.attributes import one_key
from windowlib.columnar.primitives import Array
from windowlib.farms.emitter import AT, INDEX, StoredExtent
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator
from windowlib.runtime.operator_state import keys_of
from windowlib.runtime.regrouping import PARTITIONS, windowed_ports


def holds_tuples(state: Mapping[str, Any]) -> bool:
    """Whether the snapshot of an operator says which tuples its only window holds."""
    windows = state["windows"]
    return len(windows) == 1 and windows[0]["spec"]["keeps"].startswith("tuples")


def described_as(state: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a window, with the description that the snapshot of another has."""
    told = {name: other[name] for name in ("spec", "fingerprint", "events") if name in other}
    return {**state, **told}


class StoredWindow(NamedTuple):
    """The tuples of a window as a farm stores them, and what its emitter has to know."""

    rows: list[Any]
    """The tuples, those of one partition next to each other; their numbers are 0, 1, …."""
    extents: list[StoredExtent]
    """Where the tuples of each partition are."""
    stamps: Array
    """When they arrived, where the window depends on it; else the time of the snapshot."""
    window: dict[str, Any]
    """The state of the emitter's window."""
    counts: dict[Any, int]
    """How many tuples of each partition have come."""


def stored_window(state: Mapping[str, Any], empty: Mapping[str, Any], marks: Any) -> StoredWindow:
    """The state of an operator's window for a farm.

    Args:
        state: the snapshot of the operator's window, with tuples.
        empty: a snapshot of the emitter's window before any tuple, for what describes it.
        marks: gives the columns of a tuple for the emitter.
    """
    stored = StoredWindow([], [], np.empty(0, np.int64), described_as(state, empty), {})
    tumbling = state["spec"]["kind"] == "tumbling"
    stamps: list[int] = []
    for place in PARTITIONS:
        stored.window[place] = [
            _number_partition(part, stored, stamps, marks, tumbling, state["now"])
            for part in state[place]
        ]
    return stored._replace(stamps=np.array(stamps, np.int64))


def _number_partition(
    part: Mapping[str, Any],
    stored: StoredWindow,
    stamps: list[int],
    marks: Any,
    tumbling: bool,
    now: int,
) -> dict[str, Any]:
    """A partition with row numbers in place of its tuples."""
    rows, at = list(part["data"]), len(stored.rows)
    first = part["taken"] if tumbling else part["taken"] - len(rows)
    stored.rows.extend(rows)
    stamps.extend(part["stamps"] or [now] * len(rows))
    stored.counts[one_key(part["key"])] = first + len(rows)
    if rows:
        stored.extents.append(StoredExtent(one_key(part["key"]), first, at, len(rows)))
    data = [{**marks(row), AT: at + i, INDEX: first + i} for i, row in enumerate(rows)]
    return {**part, "data": data, "n": 0, "summary": None}


def tuple_window(
    state: Mapping[str, Any], empty: Mapping[str, Any], rows: Mapping[int, Any]
) -> dict[str, Any]:
    """The state of an emitter's window for the operator alone.

    Args:
        state: the snapshot of the emitter's window.
        empty: a snapshot of the operator's window before any tuple, for what describes it.
        rows: the tuple of each row number.
    """
    found = described_as(state, empty)
    for place in PARTITIONS:
        found[place] = [
            {**part, "data": [rows[mark[AT]] for mark in part["data"]]} for part in state[place]
        ]
    return found


def key_sizes(
    operator: Operator, state: Mapping[str, Any], place: Callable[[Operator, int, Any], Any]
) -> Counter[Any]:
    """About how many tuples an operator holds of each key of a farm.

    Args:
        operator: the operator, or a graph.
        state: its snapshot.
        place: the farm's key for a key of an operator, or of a node, at an input.
    """
    sizes: Counter[Any] = Counter()
    if isinstance(operator, Graph):
        for name, node in operator.operators.items():
            sizes.update(key_sizes(node, state["state"][name], place))
        return sizes
    for port, window in zip(windowed_ports(operator), state["windows"], strict=True):
        for key, _, _ in window["event_time"]["lanes"] if "event_time" in window else ():
            sizes[place(operator, port, one_key(key))] += 1
        for part in (*window.get("parts", ()), *window.get("asleep", ())):
            sizes[place(operator, port, one_key(part["key"]))] += 1 + len(part["data"])
    sizes.update(place(operator, 0, one_key(key)) for key in keys_of(state))
    return sizes
