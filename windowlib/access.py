"""Reading a window: what handlers, and code that holds `locked()`, may ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator, KeysView
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Generic, TypeVar

from windowlib.attributes import one_key
from windowlib.batched import Batched
from windowlib.errors import AccessError
from windowlib.subwindow import Subwindow, Tuples

T = TypeVar("T")
K = TypeVar("K")

DEFAULT_KEY: Final = None
"""The partition of an unpartitioned window, and of an idle timed window when it fires."""


class Access(Batched, Generic[T, K]):
    """The reading half of a window."""

    spec: Any
    _subs: dict[Any, Subwindow]
    _asleep: dict[Any, Subwindow]
    _left: int
    _restores = 0  # how often its state was replaced
    _now: int
    _lock: threading.RLock | None

    @property
    def now(self) -> float:
        """The window's time in seconds: where `advance` left it, or the action being run."""
        return self._now / 1e6

    @property
    def next_due(self) -> float | None:
        """When the window next has to act by itself, in seconds, or None."""
        due = self._due()
        return None if due is None else due / 1e6

    def locked(self) -> AbstractContextManager[object]:
        """Hold the window still while code outside handlers reads it; free without time policies.

        >>> from windowlib import SlidingWindow
        >>> window = SlidingWindow("sliding, time(10), count(1)")
        >>> with window.locked():
        ...     list(window.keys())
        []
        """
        return nullcontext() if self._lock is None else self._lock

    def keys(self) -> KeysView[K]:
        """The partitions in storage order (order of creation)."""
        self._settle()
        return self._subs.keys()

    def __iter__(self) -> Iterator[K]:
        self._settle()
        return iter(self._subs)

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def _find(self, key: object) -> Subwindow | None:
        if self._ahead:
            self._settle()
        s = self._subs.get(key)
        # NaN equals nothing, itself included; all NaN are one partition.
        return self._subs.get(one_key(key)) if s is None else s

    def __getitem__(self, key: Any) -> Tuples[T]:
        """The tuples of a partition, oldest first; a partition that is not there is empty."""
        s = self._find(key)
        if s is None:
            return Tuples(())
        if self._summarises():
            msg = (
                f"window[{key!r}]: a summarizer stands for the tuples, so they are not kept. "
                f"Use window.summary(key), or build the window without summarizer=."
            )
            raise AccessError(msg)
        return Tuples(s.data)

    def __len__(self) -> int:
        self._settle()
        return sum(map(self._size, self._subs.values()))

    def size(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples a partition holds, kept or summarised."""
        s = self._find(key)
        return 0 if s is None else self._size(s)

    def oldest(self, key: Any = DEFAULT_KEY) -> T:
        """The oldest tuple of a partition."""
        return self._end(key, 0)

    def newest(self, key: Any = DEFAULT_KEY) -> T:
        """The newest tuple of a partition."""
        return self._end(key, -1)

    def _end(self, key: Any, index: int) -> T:
        tuples = self[key]
        if not tuples:
            msg = f"partition {key!r} holds no tuple. Ask window.size(key) first."
            raise AccessError(msg)
        return tuples[index]

    def full(self, key: Any = DEFAULT_KEY) -> bool:
        """Whether a sliding partition has been full since it was created; never for tumbling."""
        return False

    def insertions(self, key: Any = DEFAULT_KEY) -> int:
        """How many tuples a partition has taken since it was created."""
        s = self._find(key)
        return 0 if s is None else self._arrived(s)

    @property
    def seen(self) -> int:
        """How many tuples the window has taken."""
        self._settle()
        live = [*self._subs.values(), *self._asleep.values()]
        return self._left + sum(map(self._arrived, live))

    def summary(self, key: Any = DEFAULT_KEY) -> Any:
        """The summarizer of a partition; `.value()` reads it."""
        msg = f"summary({key!r}): this window has no summarizer. Build it with summarizer=..."
        raise AccessError(msg)

    def __repr__(self) -> str:
        shown = f"{len(self.keys())} partitions" if self.spec.partitioned else f"{len(self)} tuples"
        return f"<{type(self).__name__} '{self.spec}', {shown}>"

    # -- what each kind of window does its own way ------------------------------------------------

    def _size(self, s: Subwindow) -> int:
        """How many tuples a subwindow stands for."""
        raise NotImplementedError

    def _arrived(self, s: Subwindow) -> int:
        """Tuples that entered this incarnation."""
        raise NotImplementedError

    def _due(self) -> int | None:
        """When something has to happen next, in microseconds, or None."""
        raise NotImplementedError

    def _wakes(self) -> int | None:
        """When next something happens that can be seen, in microseconds, or None."""
        return self._due()

    def _summarises(self) -> bool:
        """Whether summaries stand for the tuples, which are then not kept."""
        raise NotImplementedError
