"""Snapshots: a window's state as plain data, with a format version and what wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from windowlib.attributes import one_key
from windowlib.errors import SchemaError, StateVersionError
from windowlib.window.subwindow import UNSET, Subwindow

if TYPE_CHECKING:
    from windowlib.window.container import WindowState

T = TypeVar("T")
VERSION = 2
ARRAYS = 1
"""The format of `arrays`, which stand in a snapshot in place of partitions."""
READERS: dict[int, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {VERSION: dict}
"""For each format that was ever released, what makes a snapshot of this one of it."""
ARRAY_READERS: dict[int, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {ARRAYS: dict}
"""The same for `arrays`."""
DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError)


def take(state: WindowState, arrays: bool = False) -> dict[str, Any]:
    """The state of a window; `arrays`: as arrays, if that is what it is in."""
    if arrays and state.in_arrays and (found := state.handover().dump()) is not None:
        dump = {"v": ARRAYS, **found}
        return {**head(state), "arrays": dump, "events": state.window.events.snapshot()}
    state.sync()
    pe, stamps = state.eviction, state.arrivals.by_subwindow()
    return {
        **head(state),
        "left": state.left,
        "parts": [dumped(state, s, stamps.get(s, ())) for s in state.subwindows.values()],
        "asleep": [dumped(state, s) for s in state.asleep.values()],
        "lru": None if pe is None else list(pe.lru),
        "events": state.window.events.snapshot(),
    }


def head(state: WindowState) -> dict[str, Any]:
    """The part of a snapshot that both formats share."""
    return {
        "v": VERSION,
        "fingerprint": state.spec.fingerprint,
        "spec": _description(state),
        "start": state.start,
        "now": state.now,
        "tick": state.tick,
    }


def put(state: WindowState, saved: Mapping[str, Any]) -> None:
    """Replace a window's state; nothing changes if the snapshot does not fit."""
    saved = checked(state, saved)
    if "arrays" in saved and (parts := _legacy_parts(state, saved)) is not None:
        saved = {name: value for name, value in saved.items() if name != "arrays"} | parts
    if "arrays" in saved:
        _put_arrays(state, saved)
    else:
        state.sync()
        _put_parts(state, saved)


def _legacy_parts(state: WindowState, saved: Mapping[str, Any]) -> dict[str, Any] | None:
    """The partitions that arrays of earlier releases hold, None if they are as they are now."""
    try:
        return state.handover().legacy_parts(saved)
    except DAMAGE as error:
        raise damaged(error) from error


def _put_arrays(state: WindowState, saved: Mapping[str, Any]) -> None:
    """Replace a window's state by one that is in arrays, and leave it there."""
    host = state.handover()
    try:
        clock = saved["start"], saved["now"], saved["tick"]
        engine = host.engine_of_snapshot(saved)
    except StateVersionError:
        raise
    except DAMAGE as error:
        raise damaged(error) from error
    if "events" in saved:
        state.window.events.restore(saved["events"])
    state.set_clock(*clock)
    state.asleep.clear()
    state.fill((), engine.left)
    if state.eviction is not None:
        state.eviction.refill(())
    host.resume(engine)


def damaged(error: Exception) -> StateVersionError:
    """The error of a snapshot that cannot be read."""
    msg = f"restore(state): the snapshot is damaged ({error!r}). Take it from snapshot() whole."
    return StateVersionError(msg)


def _put_parts(state: WindowState, saved: Mapping[str, Any]) -> None:
    """Replace a window's state by partitions."""
    try:
        check_parts(state, saved)
        known = [state.folded(each, saved["tick"]) for each in saved["parts"]]
        parts = [restored(state, part) for part in known]
        stamps = [part["stamps"] for part in known]
        asleep = [restored(state, part) for part in saved["asleep"]]
        clock, left = (saved["start"], saved["now"], saved["tick"]), saved["left"]
        named = {s.key: s for s in parts}
        used = () if state.eviction is None else saved["lru"]
        lru = [named[one_key(key)] for key in used]
    except StateVersionError:
        raise
    except DAMAGE as error:
        raise damaged(error) from error
    before = _contents(state)
    try:
        try:
            _fill(state, clock, parts, asleep, left, stamps, lru)
            state.check()
        except (AssertionError, *DAMAGE) as error:
            raise damaged(error) from error
        if "events" in saved:  # a running operator keeps its own state beside its windows'
            state.window.events.restore(saved["events"])
    except Exception:
        _fill(state, *before)
        raise


def _contents(state: WindowState) -> tuple[Any, ...]:
    """What a window holds, for `_fill`."""
    parts, asleep = list(state.subwindows.values()), list(state.asleep.values())
    known = state.arrivals.by_subwindow()
    stamps = [known.get(s, []) for s in parts]
    lru = [] if state.eviction is None else list(state.eviction.lru.values())
    return (state.start, state.now, state.tick), parts, asleep, state.left, stamps, lru


def _fill(
    state: WindowState,
    clock: tuple[int, int, int | None],
    parts: Sequence[Subwindow],
    asleep: Sequence[Subwindow],
    left: int,
    stamps: Sequence[Sequence[int]],
    lru: Sequence[Subwindow],
) -> None:
    state.set_clock(*clock)
    state.asleep.clear()
    state.asleep.update((s.key, s) for s in asleep)
    state.fill(parts, left, stamps)
    if state.eviction is not None:
        state.eviction.refill(lru)


# -- what a snapshot must be like, whatever wrote it ----------------------------------------------

COUNTS = ("taken", "count", "n")
FLAGS = ("full", "rough", "returning")
PART = {"key", "stamp", "ref", "newest", "data", "stamps", "summary", *COUNTS, *FLAGS}


def check_parts(state: WindowState, saved: Mapping[str, Any]) -> None:
    """Refuse partitions that no window can have had; a change of a value may go unseen."""
    now = _whole("now", saved["now"])
    _need(_whole("start", saved["start"]) <= now, "the clock is before its start")
    if saved["tick"] is not None:
        _whole("tick", saved["tick"])
    _need(_whole("left", saved["left"]) >= 0, "a count below 0")
    keys = set()
    for part in (*saved["parts"], *saved["asleep"]):
        keys.add(saved_key(part["key"], "windows"))
        _check_part(state, part, now)
    _need(len(keys) == len(saved["parts"]) + len(saved["asleep"]), "a key occurs twice")
    _need(all(not part["data"] for part in saved["asleep"]), "a partition asleep has tuples")
    lru = saved["lru"]
    _need((lru is None) == (state.eviction is None), "partitions are evicted, or are not")
    _need(lru is None or len(set(map(one_key, lru))) == len(lru), "a key was used last twice")


def _check_part(state: WindowState, part: Mapping[str, Any], now: int) -> None:
    _need(set(part) == PART, f"a partition with {sorted(set(part) ^ PART)}, or without")
    for name in COUNTS:
        _need(_whole(name, part[name]) >= 0, f"{name} is below 0")
    for name in FLAGS:
        _need(type(part[name]) is bool, f"{name} is {part[name]!r}")
    for name in ("ref", "newest"):
        _need(len(part[name]) <= 1, f"{name} has {len(part[name])} values")
    data, stamps = part["data"], part["stamps"]
    _need(_whole("stamp", part["stamp"]) <= now, "a stamp is ahead of the clock")
    _need(not stamps or len(stamps) == len(data), f"{len(stamps)} stamps of {len(data)} tuples")
    for earlier, later in pairwise((*(_whole("stamp", each) for each in stamps), now)):
        _need(earlier <= later, "stamps go back")
    read = state.key_getter
    if read is not None and state.window.holds_tuples:
        key = one_key(part["key"])
        _need(all(_is_of(each, key, read) for each in data), f"a tuple is not of {key!r}")


def _is_of(tuple_: Any, key: Any, read: Callable[[Any], Any]) -> bool:
    """Whether a tuple has a key; one of columns need not, if no function reads its key column."""
    try:
        return [one_key(read(tuple_))] == [key]  # NaN is itself in lists
    except SchemaError:
        return True


def _need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(what)


def _whole(name: str, value: Any) -> int:
    _need(type(value) is int, f"{name} is {value!r}")
    return int(value)


def _description(state: WindowState) -> dict[str, str]:
    return {**state.spec.describe(), "keeps": state.storage}


def checked(state: WindowState, saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """A snapshot in this format; one of an unknown format or of another window is refused."""
    if not isinstance(saved, Mapping) or not {"v", "spec"} <= set(saved):
        raise StateVersionError("restore(state): this is not a snapshot of a window.")
    saved = reader("the snapshot has", saved["v"], READERS)(saved)
    if "arrays" in saved:
        arrays = saved["arrays"]
        if not isinstance(arrays, Mapping):
            raise StateVersionError("restore(state): this is not a snapshot of a window.")
        read = reader("the arrays of the snapshot have", arrays.get("v"), ARRAY_READERS)
        saved = {**saved, "arrays": read(arrays)}
    was, now = saved["spec"], _description(state)
    if not isinstance(was, Mapping):
        raise StateVersionError("restore(state): this is not a snapshot of a window.")
    if was.get("keeps") == state.legacy_storage is not None:
        was = {**was, "keeps": now["keeps"]}
    if (name := first_change(was, now)) is not None:
        msg = (
            f"restore(state): the snapshot was written with {name}={was.get(name)}; this "
            f"window says {name}={now.get(name)}. Build the window as it was, or start afresh."
        )
        raise StateVersionError(msg)
    return saved


def first_change(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first name under which two descriptions differ; None if they do not.

    >>> first_change({"kind": "sliding", "evict": 1}, {"kind": "sliding", "evict": 2})
    'evict'
    """
    return next((name for name in {**was, **now} if was.get(name) != now.get(name)), None)


def reader(what: str, found: Any, readers: Mapping[int, T]) -> T:
    """The reader of a format; an unknown format is refused."""
    if type(found) is int and found in readers:
        return readers[found]
    known = ", ".join(map(str, readers))
    msg = (
        f"restore(state): {what} format {found!r}, this version reads {known}. Use the version "
        f"that wrote it, or start afresh."
    )
    raise StateVersionError(msg)


def dumped(state: WindowState, s: Subwindow, stamps: Sequence[int] = ()) -> dict[str, Any]:
    """A subwindow as plain data; `stamps`: when its tuples came, where time evicts them."""
    summary = state.save_summary(s)  # which may close a slice
    part: dict[str, Any] = {"key": s.key, "taken": s.taken, "count": s.count, "stamp": s.stamp}
    part["ref"] = [] if s.ref is UNSET else [s.ref]
    part["newest"] = [] if s.newest is UNSET else [s.newest]
    part["full"], part["rough"], part["returning"] = state.was_full(s), s.rough, s.returning
    part["data"], part["stamps"] = list(s.data), list(stamps)
    part["n"], part["summary"] = s.n, summary
    return part


def saved_key(saved: Any, owners: str = "operators") -> Any:
    """A key of a snapshot of windows or operators; refuses a list, which JSON makes of a tuple."""
    if isinstance(saved, list):
        msg = (
            f"restore(state): the key {saved!r} is a list, as JSON makes of a tuple, and lists are "
            f"no keys. Write snapshots of {owners} with several key columns with dump_state."
        )
        raise StateVersionError(msg)
    return one_key(saved)


def restored(state: WindowState, part: Mapping[str, Any]) -> Subwindow:
    """The subwindow that `dumped` made plain data of; it is not in storage yet."""
    s = state.make(saved_key(part["key"], "windows"))
    s.taken = part["taken"]
    for name in ("count", "stamp", "full", "rough", "returning", "n"):
        if name in s.fields:
            setattr(s, name, part[name])
    for name in ("ref", "newest"):
        if name in s.fields and part[name]:
            setattr(s, name, part[name][0])
    if part["data"]:
        s.data.extend(part["data"])
    state.load_summary(s, part["summary"])
    return s
