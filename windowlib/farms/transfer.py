"""State between an operator that runs alone and a farm of it: the same windows, stored elsewhere.

A running operator keeps the tuples of its windows; the emitter of a farm keeps their row numbers,
and the tuples are in chunks. Policies remember the same things in both, so a snapshot of the one
becomes a snapshot of the other when tuples and numbers change places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from windowlib.attributes import one_key
from windowlib.columnar.primitives import Array
from windowlib.farms.emitter import AT, INDEX, StoredExtent
from windowlib.runtime.operator import Operator
from windowlib.runtime.own_state import keys_of, split

PARTITIONS = ("parts", "asleep")
"""Where the state of a window has its partitions: those that hold tuples, and those that did."""


def movable(state: Mapping[str, Any]) -> bool:
    """Whether the snapshot of an operator says which tuples its only window holds."""
    windows = state["windows"]
    return len(windows) == 1 and windows[0]["spec"]["keeps"].startswith("tuples")


def returnable(operator: Operator) -> bool:
    """Whether all that an operator keeps is of keys: in its windows, or declared as such."""
    return type(operator).snapshot is Operator.snapshot and not operator.unkeyed_state


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
    """When they arrived, where the window goes by that; else the time of the snapshot."""
    window: dict[str, Any]
    """The state of the emitter's window."""
    counts: dict[Any, int]
    """How many tuples of each partition have come."""


def stored_window(state: Mapping[str, Any], empty: Mapping[str, Any], marks: Any) -> StoredWindow:
    """The state of an operator's window for a farm.

    Args:
        state: the snapshot of the operator's window, with tuples.
        empty: a snapshot of the emitter's window before any tuple, for what describes it.
        marks: gives the columns of a tuple that the emitter looks at.
    """
    stored = StoredWindow([], [], np.empty(0, np.int64), described_as(state, empty), {})
    tumbling = state["spec"]["kind"] == "tumbling"
    stamps: list[int] = []
    for place in PARTITIONS:
        stored.window[place] = [
            _numbered(part, stored, stamps, marks, tumbling, state["now"]) for part in state[place]
        ]
    return stored._replace(stamps=np.array(stamps, np.int64))


def _numbered(
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


def split_states(
    states: Sequence[Mapping[str, Any]], owner: Any, workers: int
) -> list[dict[str, Any]]:
    """The snapshots of operators with keys, for another number of workers.

    Args:
        states: one or more snapshots of the same operator, each for other keys.
        owner: the worker of a key.
        workers: how many there are from now on.
    """
    first = states[0]
    found = [
        {**first, "windows": [dict(each) for each in first["windows"]]} for _ in range(workers)
    ]
    for worker, state in enumerate(found):
        state |= split(states, partial(_owns, owner, worker))
        for number, window in enumerate(state["windows"]):
            own = [each["windows"][number] for each in states]
            window["now"] = max(each["now"] for each in own)
            if "event_time" in window:
                window["event_time"] = _lanes(own, owner, worker)
                continue
            for place in PARTITIONS:
                parts = _partitions(own, place)
                window[place] = [p for p in parts if owner(one_key(p["key"])) == worker]
            window["lru"] = _used(own, owner, worker)
            window["left"] = sum(each["left"] for each in own) if not worker else 0
    return found


def key_sizes(state: Mapping[str, Any]) -> Counter[Any]:
    """The keys that an operator holds, and about how much of each."""
    sizes: Counter[Any] = Counter()
    for window in state["windows"]:
        for key, _, _ in window["event_time"]["lanes"] if "event_time" in window else ():
            sizes[one_key(key)] += 1
        for part in (*window.get("parts", ()), *window.get("asleep", ())):
            sizes[one_key(part["key"])] += 1 + len(part["data"])
    sizes.update(keys_of(state))
    return sizes


def _lanes(windows: Sequence[Mapping[str, Any]], owner: Any, worker: int) -> dict[str, Any]:
    """The keys of one worker in windows of event time that have a watermark for each key."""
    states = [window["event_time"] for window in windows]
    return {
        "lanes": [
            lane for state in states for lane in state["lanes"] if owner(one_key(lane[0])) == worker
        ],
        "next": max(state["next"] for state in states),
        "taken": 0 if worker else sum(state["taken"] for state in states),
        "late": 0 if worker else sum(state["late"] for state in states),
        "axis": next((s["axis"] for s in states if s["axis"][2] is not None), states[0]["axis"]),
    }


def _owns(owner: Any, worker: int, key: Any) -> bool:
    return bool(owner(key) == worker)


def _partitions(windows: Sequence[Mapping[str, Any]], place: str) -> Iterator[Mapping[str, Any]]:
    for window in windows:
        yield from window[place]


def _used(windows: Sequence[Mapping[str, Any]], owner: Any, worker: int) -> list[Any] | None:
    """The keys of one worker, least recently used first; None where no window cares."""
    if any(window["lru"] is None for window in windows):
        return None
    return [key for window in windows for key in window["lru"] if owner(one_key(key)) == worker]
