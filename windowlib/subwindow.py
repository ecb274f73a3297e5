"""The state of one partition, and the read-only view that handlers get of its tuples."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeVar, overload

T = TypeVar("T")


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


class Subwindow:
    """One incarnation of a partition: contents and everything its policies remember.

    A plain record. The engines (generated and reference) and the containers write it; users see
    it through the window.
    """

    __slots__ = (
        "alive",  # False once the partition has left the window
        "born",  # creation number, which is the storage order
        "count",  # tuples since the last count trigger
        "data",  # the tuples, oldest first: a list (tumbling) or a deque (sliding)
        "full",  # initial_full has been fired
        "key",
        "n",  # logical size where a summary stands for the tuples
        "newest",  # delta attribute of the newest tuple
        "ref",  # delta reference: the oldest tuple (tumbling), the last to trigger (sliding)
        "rough",  # delta attribute has gone backwards in here
        "stamp",  # time of the last insertion, for partition age
        "stamps",  # arrival times, aligned with data, for time eviction
        "summary",
        "taken",  # tuples taken: all of them (sliding), those flushed so far (tumbling)
    )

    def __init__(self, key: Any, born: int, data: list[Any] | deque[Any]) -> None:
        self.key = key
        self.born = born
        self.data = data
        self.alive = True
        self.count = self.taken = self.n = self.stamp = 0
        self.newest: Any = UNSET
        self.ref: Any = UNSET
        self.full = self.rough = False
        self.summary: Any = None
        self.stamps: deque[int] = _NO_STAMPS


# Shared by every subwindow without time eviction, and never written.
_NO_STAMPS: deque[int] = deque(maxlen=0)


@cache
def with_places(places: int) -> type[Subwindow]:
    """A subwindow class with `places` more slots, where ready-made summaries live."""
    slots = tuple(place(i) for i in range(places))
    return type("Subwindow", (Subwindow,), {"__slots__": slots})


def place(i: int) -> str:
    """The slot name of the i-th place of summary state."""
    return f"f{i}"


class Tuples(Sequence[T]):
    """The tuples of a subwindow, oldest first; a read-only view that costs no copy.

    It shows the subwindow as it is while a handler runs. A view of a tumbling subwindow stays as
    it was when the subwindow is flushed, so a handler may keep it.
    """

    __slots__ = ("_data",)

    def __init__(self, data: Sequence[T]) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[T]:
        return iter(self._data)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._data)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        """One tuple, or a list for a slice."""
        if isinstance(index, slice):
            return list(self._data)[index]
        return self._data[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tuples | list | tuple | deque):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Tuples({list(self._data)!r})"
