"""Handlers: what an operator's author writes.

Overriding a handler is registering it. The container looks once, when it is built, which handlers
are overridden, and pays only for those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from windowlib.errors import PolicyError, SchemaError

if TYPE_CHECKING:
    from windowlib.window.container import Window

T = TypeVar("T")
K = TypeVar("K")

INSERT_EVENTS = ("before_insert", "after_insert")
EVICT_EVENTS = ("before_evict", "after_evict")
FLUSH_EVENTS = ("before_flush", "after_flush")
UNHEARD = (*EVICT_EVENTS, "on_initial_full")
"""What windows of event time do not have."""
PARTITION_EVENTS = ("on_partitions_evicted", "select_partitions")
HANDLERS = (
    *INSERT_EVENTS,
    *EVICT_EVENTS,
    *FLUSH_EVENTS,
    "on_trigger",
    "on_initial_full",
    *PARTITION_EVENTS,
    "on_empty_punctuation",
)


class WindowEvents(Generic[T, K]):
    """Base class of handlers; override what you need.

    A handler may read the window (`window[key]`, `window.keys()`, …) and must not insert into it.
    `emit` collects rows in `emitted`; a host that wants them elsewhere sets `sink`.

    >>> from windowlib import Count, SlidingWindow
    >>> class Range(WindowEvents[int, None]):
    ...     def on_trigger(self, window, key):
    ...         self.emit(low=min(window[key]), high=max(window[key]))
    >>> window = SlidingWindow(evict=Count(3), trigger=Count(2), events=Range())
    >>> window.insert_many([5, 1, 4, 9])
    >>> window.events.emitted
    [{'low': 1, 'high': 5}, {'low': 1, 'high': 9}]
    """

    content: ClassVar[Literal["tuples", "arrow"]] = "tuples"
    """What the handlers read: `window[key]`; or with "arrow" only `window.column(name, key)` and
    `window.arrow(key)` of the partition they are called for, so that batches need no tuples."""

    sink: Callable[[Any], None] | None = None
    hooks: ClassVar[tuple[str, ...]] = ()
    """Methods that look like handlers and are called by someone else than a window."""

    @property
    def emitted(self) -> list[Any]:
        """The rows handed out so far, unless they went to a `sink`."""
        # No __init__ makes the list, so that subclasses need not call it.
        return vars(self).setdefault("_emitted", [])  # type: ignore[no-any-return]

    @emitted.setter
    def emitted(self, rows: list[Any]) -> None:
        vars(self)["_emitted"] = rows

    def emit(self, row: Any = ..., /, **fields: Any) -> None:
        """Hand out a row: an object, or fields that become a dict."""
        if row is not ... and fields:
            shown = f"emit({row!r}, {', '.join(fields)}=...)"
            msg = f"{shown}: a row and fields at once. Give one of them."
            raise SchemaError(msg)
        made = fields if row is ... else row
        (self.emitted.append if self.sink is None else self.sink)(made)

    def before_insert(self, window: Window[T, K], tuple_: T, key: K) -> None:
        """`tuple_` is about to enter; the subwindow exists and does not have it yet."""

    def after_insert(self, window: Window[T, K], tuple_: T, key: K) -> None:
        """`tuple_` is the newest of its subwindow."""

    def before_evict(self, window: Window[T, K], tuple_: T, key: K) -> None:
        """`tuple_` is about to leave a sliding window and is still in it."""

    def after_evict(self, window: Window[T, K], tuple_: T, key: K) -> None:
        """`tuple_` has left a sliding window."""

    def before_flush(self, window: Window[T, K], key: K) -> None:
        """A tumbling subwindow is full: process it here, its tuples are all there."""

    def after_flush(self, window: Window[T, K], key: K) -> None:
        """A tumbling subwindow was emptied."""

    def on_trigger(self, window: Window[T, K], key: K) -> None:
        """A sliding subwindow is due: process it here."""

    def on_initial_full(self, window: Window[T, K], key: K) -> None:
        """A sliding subwindow is full for the first time since it exists."""

    def on_partitions_evicted(self, window: Window[T, K], keys: Sequence[K]) -> None:
        """These partitions are about to be forgotten; their tuples are still there."""

    def select_partitions(self, window: Window[T, K], keys: Sequence[K]) -> Iterable[K]:
        """Choose the partitions to forget, given all of them, least recently used first."""
        return ()

    def on_late(self, window: Window[T, K], tuple_: T, key: K) -> None:
        """`tuple_` came after its windows of event time were closed, and late="port" was said."""

    def on_empty_punctuation(self, window: Window[T, K]) -> None:
        """A punctuation came to a window that holds no partition."""

    def snapshot(self) -> Any:
        """The handler's own state as plain data, kept inside the window's snapshot."""
        return None

    def restore(self, state: Any) -> None:
        """Restore what `snapshot` returned."""


def misspelt(events: object) -> list[str]:
    """Methods that look like handlers, and that no window will ever call."""
    prefixes = ("before_", "after_", "on_", "select_")
    known = (*HANDLERS, "on_late", *getattr(events, "hooks", ()))
    return [
        name
        for name in dir(type(events))
        if name.startswith(prefixes) and name not in known and callable(getattr(events, name))
    ]


FLUSHED = ("before_flush", "after_flush")
TRIGGERED = ("on_trigger", "on_initial_full", "before_evict", "after_evict")


def never_called(on: Iterable[str], *, flushes: bool) -> list[tuple[str, str]]:
    """Handlers for the other kind of window, and what to override instead.

    A class with handlers of both kinds is written for both.

    >>> never_called(["on_trigger"], flushes=True), never_called(HANDLERS, flushes=True)
    ([('on_trigger', 'before_flush')], [])
    """
    known = set(on)
    called, others = (FLUSHED, TRIGGERED) if flushes else (TRIGGERED, FLUSHED)
    if known & set(called):
        return []
    return [(name, called[0]) for name in others if name in known]


def overridden(events: object) -> Mapping[str, Callable[..., Any]]:
    """The handlers that `events` overrides, bound, by name."""
    content = getattr(events, "content", "tuples")
    if content not in ("tuples", "arrow"):
        kind = type(events).__name__
        raise PolicyError(f'{kind}.content = {content!r}: say "tuples" (the default) or "arrow".')
    base = WindowEvents.__dict__
    return {
        name: getattr(events, name)
        for name in HANDLERS
        if getattr(type(events), name, None) is not base[name] or name in vars(events)
    }
