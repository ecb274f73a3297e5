"""Snapshots: a window's state as plain data, with a format version and what wrote it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.attributes import one_key
from windowlib.errors import StateVersionError
from windowlib.subwindow import UNSET, Subwindow

if TYPE_CHECKING:
    from windowlib.window import Window

VERSION = 2


def take(window: Window[Any, Any]) -> dict[str, Any]:
    """The state of a window."""
    pe = window._pe
    return {
        "v": VERSION,
        "fingerprint": window.spec.fingerprint,
        "spec": _description(window),
        "start": window._start,
        "now": window._now,
        "tick": window._tick,
        "left": window._left,
        "parts": [_part(window, s) for s in window._subs.values()],
        "asleep": [_part(window, s) for s in window._asleep.values()],
        "lru": None if pe is None else list(pe.lru),
        "events": window.events.snapshot(),
    }


def put(window: Window[Any, Any], state: Mapping[str, Any]) -> None:
    """Replace a window's state; nothing changes if the snapshot does not fit."""
    _check(window, state)
    try:
        parts = [_restored(window, part) for part in state["parts"]]
        asleep = [_restored(window, part) for part in state["asleep"]]
        clock, left = (state["start"], state["now"], state["tick"]), state["left"]
        named = {s.key: s for s in parts}
        used = () if window._pe is None else state["lru"]
        lru = [named[one_key(key)] for key in used]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        msg = f"restore(state): the snapshot is damaged ({error!r}). Take it from snapshot() whole."
        raise StateVersionError(msg) from error
    if "events" in state:  # a running operator keeps its own state beside its windows'
        window.events.restore(state["events"])  # the last thing that may fail
    window._start, window._now, window._tick = clock
    window._asleep.clear()
    window._asleep.update((s.key, s) for s in asleep)
    fill(window, parts, left)
    if window._pe is not None:
        window._pe.refill(lru)


def fill(window: Window[Any, Any], parts: Sequence[Subwindow], left: int) -> None:
    """Put subwindows into storage, in place of what is there."""
    window._left = left
    window._subs.clear()
    for s in parts:
        s.born = next(window._born)
        window._subs[s.key] = s
    arrivals = [(stamp, s.born, s) for s in parts for stamp in s.stamps]
    window._arrivals.clear()
    window._arrivals.extend(s for _, _, s in sorted(arrivals, key=lambda entry: entry[:2]))


def _description(window: Window[Any, Any]) -> dict[str, str]:
    return {**window.spec.describe(), "keeps": window._keeps()}


def _check(window: Window[Any, Any], state: Mapping[str, Any]) -> None:
    if not isinstance(state, Mapping) or not {"v", "spec"} <= set(state):
        raise StateVersionError("restore(state): this is not a snapshot of a window.")
    if state["v"] != VERSION:
        msg = (
            f"restore(state): the snapshot has format {state['v']!r}, this version reads "
            f"{VERSION}. Use the version that wrote it, or start afresh."
        )
        raise StateVersionError(msg)
    was, now = state["spec"], _description(window)
    if not isinstance(was, Mapping):
        raise StateVersionError("restore(state): this is not a snapshot of a window.")
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            msg = (
                f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
                f"window says {name}={now.get(name)}. Build the window as it was, or start afresh."
            )
            raise StateVersionError(msg)


def _part(window: Window[Any, Any], s: Subwindow) -> dict[str, Any]:
    part: dict[str, Any] = {"key": s.key, "taken": s.taken, "count": s.count, "stamp": s.stamp}
    part["ref"] = [] if s.ref is UNSET else [s.ref]
    part["newest"] = [] if s.newest is UNSET else [s.newest]
    part["full"], part["rough"], part["returning"] = window._was_full(s), s.rough, s.returning
    part["data"], part["stamps"] = list(s.data), list(s.stamps)
    part["n"], part["summary"] = s.n, window._save_summary(s)
    return part


def _restored(window: Window[Any, Any], part: Mapping[str, Any]) -> Subwindow:
    s = window._make(one_key(part["key"]))
    s.taken = part["taken"]
    for name in ("count", "stamp", "full", "rough", "returning", "n"):
        if name in s.fields:
            setattr(s, name, part[name])
    for name in ("ref", "newest"):
        if name in s.fields and part[name]:
            setattr(s, name, part[name][0])
    if part["data"]:
        s.data.extend(part["data"])
    if part["stamps"]:
        s.stamps = deque(part["stamps"])
    window._load_summary(s, part["summary"])
    return s
