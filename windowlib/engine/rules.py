"""Rules that both engines call, off the hot path."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from windowlib.durations import duration_text
from windowlib.errors import PartitionError, SchemaError, WindowlibError
from windowlib.policies import Delta
from windowlib.spec import KEY
from windowlib.subwindow import Subwindow

if TYPE_CHECKING:
    from windowlib.sliding import SlidingWindow
    from windowlib.window import Window


def check_delta(policy: Delta, value: Any, tuple_: Any) -> None:
    """Refuse a value that the delta test cannot work with, before anything has changed."""
    try:
        sound = value == value and not (value - value > policy.threshold > value - value)
    except TypeError:
        sound = False
    if sound:
        return
    text = f"Delta({policy.attribute!r}, {_threshold(policy)}): the value {value!r}"
    if value is None or (isinstance(value, float) and value != value):
        msg = f"{text} cannot be compared. Drop or fill such tuples before the window: {tuple_!r}"
    elif isinstance(value, date) and not isinstance(policy.threshold, timedelta):
        msg = (
            f"{text} is a {type(value).__name__}, so the threshold must be a duration. "
            f'Write Delta({policy.attribute!r}, "{policy.threshold}s").'
        )
    elif isinstance(policy.threshold, timedelta) and isinstance(value, int | float | Decimal):
        msg = (
            f"{text} is a {type(value).__name__}, so the threshold must be a number. "
            f"Write Delta({policy.attribute!r}, {policy.threshold.total_seconds():g})."
        )
    else:
        msg = (
            f"{text} is a {type(value).__name__}, which has no distance. "
            f"Use a number, a Decimal or a datetime."
        )
    raise SchemaError(msg)


def better_error(
    window: Window[Any, Any], error: Exception, tuple_: Any, key: Any
) -> Exception | None:
    """A clearer exception where the tuple or its key is to blame, found out only afterwards."""
    better: Exception | None = None
    try:
        hash(key)
        for policy, get in window._getters.items():
            check_delta(policy, get(tuple_), tuple_)
    except SchemaError as found:
        better = None if isinstance(error, WindowlibError) else found
    except TypeError:
        msg = (
            f"insert(key={key!r}): a {type(key).__name__} cannot be a partition key. "
            f"Use a plain value or a tuple of them."
        )
        better = PartitionError(msg)
    if better is not None:
        better.__cause__ = error
    return better


def _threshold(policy: Delta) -> str:
    d = policy.threshold
    return f'"{duration_text(d)}"' if isinstance(d, timedelta) else repr(d)


def evict_where(window: SlidingWindow[Any, Any], s: Subwindow, policy: Delta, new: Any) -> None:
    """Delta eviction over values in any order: oldest to newest, each that is too far goes."""
    get = window._getters[policy]
    for tuple_ in [t for t in s.data if policy.exceeds(new, get(t))]:
        window._evict_one(s, tuple_)
    values = [get(t) for t in s.data]
    s.rough = values != sorted(values)
    if values:
        s.newest = values[-1]


def any_where(window: SlidingWindow[Any, Any], s: Subwindow, policy: Delta, new: Any) -> bool:
    """Whether `evict_where` would evict anything."""
    get = window._getters[policy]
    return any(policy.exceeds(new, get(t)) for t in s.data)


def key_default(window: Window[Any, Any]) -> Any:
    """What `insert` takes for a key that is not given."""
    from windowlib.access import DEFAULT_KEY
    from windowlib.window import NO_KEY

    unpartitioned = window.spec.by is None
    return DEFAULT_KEY if unpartitioned or window._open_key else NO_KEY


def reject_key(window: Window[Any, Any], key: Any) -> NoReturn:
    """A key was passed to a window that finds its keys itself, or has none."""
    if window.spec.by is None:
        why, fix = "is not partitioned", "Drop key=, or build the window with by=KEY."
    else:
        why, fix = f"reads its key from by={window.spec.by!r}", "Drop key=, or use by=KEY."
    raise PartitionError(f"insert(key={key!r}): the window '{window.spec}' {why}. {fix}")


def pair(
    window: Window[Any, Any], tuples: Iterable[Any], keys: Iterable[Any] | None
) -> Iterable[tuple[Any, Any]]:
    """Tuples with the keys to insert them under; lengths are checked first where they are known."""
    if keys is None:
        default = key_default(window)
        return ((tuple_, default) for tuple_ in tuples)
    if window.spec.by is not KEY:
        reject_key(window, keys)
    if isinstance(tuples, Sized) and isinstance(keys, Sized) and len(tuples) != len(keys):
        msg = (
            f"insert_many(keys=...): {len(keys)} keys for {len(tuples)} tuples. "
            f"Give one key per tuple."
        )
        raise PartitionError(msg)
    return zip(tuples, keys, strict=True)
