"""Snapshots: a window's state as plain data, with a format version and what wrote it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.attributes import one_key
from windowlib.errors import StateVersionError
from windowlib.subwindow import UNSET, Subwindow

if TYPE_CHECKING:
    from windowlib.columnar.engine import Engine
    from windowlib.window import Window

VERSION = 2
ARRAYS = 1
"""The format of `arrays`, which stand in a snapshot in place of partitions."""
DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError)


def take(window: Window[Any, Any], arrays: bool = False) -> dict[str, Any]:
    """The state of a window; `arrays`: as arrays, if that is what it is in."""
    if arrays and window._ahead and (found := window._host().dump()) is not None:
        dump = {"v": ARRAYS, **found}
        return {**_head(window), "arrays": dump, "events": window.events.snapshot()}
    window._settle()
    pe = window._pe
    return {
        **_head(window),
        "left": window._left,
        "parts": [_part(window, s) for s in window._subs.values()],
        "asleep": [_part(window, s) for s in window._asleep.values()],
        "lru": None if pe is None else list(pe.lru),
        "events": window.events.snapshot(),
    }


def _head(window: Window[Any, Any]) -> dict[str, Any]:
    """What is the same in every form."""
    return {
        "v": VERSION,
        "fingerprint": window.spec.fingerprint,
        "spec": _description(window),
        "start": window._start,
        "now": window._now,
        "tick": window._tick,
    }


def put(window: Window[Any, Any], state: Mapping[str, Any]) -> None:
    """Replace a window's state; nothing changes if the snapshot does not fit."""
    _check(window, state)
    if "arrays" in state:
        _put_arrays(window, state)
    else:
        window._settle()
        _put_parts(window, state)


def _put_arrays(window: Window[Any, Any], state: Mapping[str, Any]) -> None:
    """Replace a window's state by one that is in arrays, and leave it there."""
    host = window._host()
    try:
        clock = state["start"], state["now"], state["tick"]
        engine: Engine = host.loaded(state)
    except StateVersionError:
        raise
    except DAMAGE as error:
        raise _damaged(error) from error
    if "events" in state:
        window.events.restore(state["events"])
    window._start, window._now, window._tick = clock
    window._asleep.clear()
    fill(window, (), engine.left)
    if window._pe is not None:
        window._pe.refill(())
    host.resume(engine)


def _damaged(error: Exception) -> StateVersionError:
    msg = f"restore(state): the snapshot is damaged ({error!r}). Take it from snapshot() whole."
    return StateVersionError(msg)


def _put_parts(window: Window[Any, Any], state: Mapping[str, Any]) -> None:
    """Replace a window's state by partitions."""
    try:
        parts = [_restored(window, part) for part in state["parts"]]
        asleep = [_restored(window, part) for part in state["asleep"]]
        clock, left = (state["start"], state["now"], state["tick"]), state["left"]
        named = {s.key: s for s in parts}
        used = () if window._pe is None else state["lru"]
        lru = [named[one_key(key)] for key in used]
    except DAMAGE as error:
        raise _damaged(error) from error
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
    check_format("the snapshot has", state["v"], VERSION)
    if "arrays" in state:
        if not isinstance(state["arrays"], Mapping):
            raise StateVersionError("restore(state): this is not a snapshot of a window.")
        check_format("the arrays of the snapshot have", state["arrays"].get("v"), ARRAYS)
    was, now = state["spec"], _description(window)
    if not isinstance(was, Mapping):
        raise StateVersionError("restore(state): this is not a snapshot of a window.")
    if (name := first_change(was, now)) is not None:
        msg = (
            f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
            f"window says {name}={now.get(name)}. Build the window as it was, or start afresh."
        )
        raise StateVersionError(msg)


def first_change(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first name under which two descriptions differ; None if they do not.

    >>> first_change({"kind": "sliding", "evict": 1}, {"kind": "sliding", "evict": 2})
    'evict'
    """
    return next((name for name in {**was, **now} if was.get(name) != now.get(name)), None)


def check_format(what: str, found: Any, known: int) -> None:
    """Refuse another format than the known one."""
    if found != known:
        msg = (
            f"restore(state): {what} format {found!r}, this version reads {known}. Use the version "
            f"that wrote it, or start afresh."
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
