"""The state of one partition, when its tuples came, and the view that handlers get of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

T = TypeVar("T")


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


class _NoKey:
    def __repr__(self) -> str:
        return "no key"


NO_KEY: Final = _NoKey()
"""What `insert` takes where the caller must pass a key."""
DEFAULT_KEY: Final = None
"""The partition of an unpartitioned window, and of an idle timed window when it fires."""


UNKNOWN: Final = float("-inf")
"""A time before all others."""

FIELDS: dict[str, Any] = {
    "count": 0,  # tuples since the last count trigger
    "data": (),  # the tuples, oldest first: a list (tumbling) or a deque (sliding)
    "front": (),  # slices: merged rows of the older ones, a stack
    "full": False,  # initial_full has been fired
    "n": 0,  # logical size where a summary stands for the tuples
    "newest": UNSET,  # delta attribute of the newest tuple
    "older": (),  # slices: rows of those that were put on the front stack together
    "recent": (),  # slices: rows of the newer ones
    # What distances are measured from. Delta: the oldest tuple (tumbling), the last to trigger
    # (sliding). Count or time: when the first tuple arrived.
    "ref": UNSET,
    "returning": False,  # has been in storage before, and time emptied it
    "rough": False,  # delta attribute has gone backwards in here
    "stamp": 0,  # time of the last insertion, for partition age
    "summary": None,  # a summarizer of the user's own
}
"""What a partition may remember, and what it means not to."""

ALWAYS = ("alive", "born", "key", "taken")
"""What every partition remembers."""


class Subwindow:
    """One incarnation of a partition: contents and everything its policies remember.

    A plain record that the engines and the containers write; users see it through the window. A
    window uses a subclass with slots for just the fields it needs (`subwindow_class`), because an
    insert is as fast as the record is small: it then stays in one or two cache lines. A field
    without a slot reads as its default.
    """

    fields: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:
        __slots__ = ()
    else:
        alive: bool  # False once the partition has left the window
        born: int  # creation number, which is the storage order
        key: Any
        taken: int  # tuples taken: all of them (sliding), those flushed so far (tumbling)
        count: int
        data: Any
        front: Any
        full: bool
        n: int
        newest: Any
        recent: Any
        ref: Any
        returning: bool
        rough: bool
        stamp: int
        older: Any
        summary: Any

        @staticmethod
        def made(key: Any) -> Subwindow:
            """A new one, without tuples."""
            raise NotImplementedError


for _name, _default in FIELDS.items():
    setattr(Subwindow, _name, _default)


def subwindow_class(
    fields: tuple[str, ...],
    start: tuple[Any, ...] = (),
    value: Callable[[Subwindow], Any] | None = None,
    *,
    first: Sequence[Sequence[str]] = (),
) -> type[Subwindow]:
    """A subwindow with slots for `fields`, and one for each place of summary state in `start`.

    Args:
        fields: what a partition has to remember.
        start: how the places of summary state start.
        value: becomes a method, so that the record itself is what `window.summary(key)` returns.
        first: slots that come first in memory, in groups of those that are used together.

    >>> subwindow_class(("data",)).fields
    ('data',)
    """
    if start or value is not None:
        return _made(fields, start, value, first)
    return _plain(fields)


@lru_cache(maxsize=128)
def _plain(fields: tuple[str, ...]) -> type[Subwindow]:
    """One class for all windows that have tuples and remember the same; made once."""
    return _made(fields, (), None, ())


def _made(
    fields: tuple[str, ...],
    start: tuple[Any, ...],
    value: Callable[[Subwindow], Any] | None,
    first: Sequence[Sequence[str]],
) -> type[Subwindow]:
    places = {place(i): value for i, value in enumerate(start)}
    counted = {name: FIELDS[name] for name in fields if name == "n"}
    starts = counted | places | {name: FIELDS[name] for name in fields}
    # Assignments in a row, written out: a partition may come and go with every few tuples. A
    # function that makes the record takes half the time of a class with an `__init__`.
    lines = ["def made(key):", "    s = new(cls)", "    s.key = key", "    s.alive = True"]
    lines += ["    s.born = s.taken = 0"]
    lines += [f"    s.{name} = {name}" for name in starts]
    scope: dict[str, Any] = {"new": object.__new__, **starts}
    exec("\n".join([*lines, "    return s"]), scope)
    # Slots of a base class come first in memory: what every insert touches, next to the header.
    # Those of one class are in the order of their names.
    left: list[str] = [*starts, *ALWAYS]
    base: type = Subwindow
    for group in first or [tuple(starts)]:
        base = type("Hot", (base,), {"__slots__": tuple(group)})
        left = [name for name in left if name not in group]
    body = {"__slots__": tuple(left), "fields": fields, "made": staticmethod(scope["made"])}
    if value is not None:
        body["value"] = value
    scope["cls"] = cls = type("Subwindow", (base,), body)
    return cls


def place(i: int) -> str:
    """The slot name of the i-th place of summary state."""
    return f"f{i}"


class Arrivals:
    """The tuples that time will evict, oldest first: the subwindow of each, and when it came.

    One queue for all partitions, which is read and written in order: a queue in each would have to
    come from memory for every tuple that leaves. Entries of a subwindow that is no longer alive
    stand for nothing.

    >>> arrivals = Arrivals()
    >>> s = subwindow_class(("data",)).made("a")
    >>> arrivals.add(s, 3)
    >>> arrivals.add(s, 5)
    >>> len(arrivals), arrivals.by_subwindow()[s]
    (2, [3, 5])
    """

    __slots__ = ("stamps", "subwindows")

    def __init__(self) -> None:
        self.subwindows: deque[Subwindow] = deque()
        self.stamps: deque[int] = deque()

    def __len__(self) -> int:
        return len(self.stamps)

    def add(self, s: Subwindow, stamp: int) -> None:
        """A tuple has come."""
        self.subwindows.append(s)
        self.stamps.append(stamp)

    def add_many(self, s: Subwindow, stamp: int, count: int) -> None:
        """So many tuples have come at once."""
        self.subwindows.extend(repeat(s, count))
        self.stamps.extend(repeat(stamp, count))

    def pop(self) -> Subwindow:
        """Take the oldest out."""
        self.stamps.popleft()
        return self.subwindows.popleft()

    def oldest(self) -> int | None:
        """When the oldest tuple came that is still there."""
        while self.stamps and not self.subwindows[0].alive:  # its partition was evicted
            self.pop()
        return self.stamps[0] if self.stamps else None

    def leaving(self) -> list[Subwindow]:
        """The subwindows of all that came when the oldest did, in the order in which they leave.

        That is storage order, and the order of the queue from now on.
        """
        stamp, first = self.oldest(), list[Subwindow]()
        assert stamp is not None
        while self.stamps and self.stamps[0] == stamp:
            first.append(self.pop())
        first = sorted((s for s in first if s.alive), key=attrgetter("born"))
        self.subwindows.extendleft(reversed(first))
        self.stamps.extendleft([stamp] * len(first))
        return first

    def by_subwindow(self) -> dict[Subwindow, list[int]]:
        """When the tuples of each subwindow came."""
        found: dict[Subwindow, list[int]] = {}
        for s, stamp in zip(self.subwindows, self.stamps, strict=True):
            found.setdefault(s, []).append(stamp)
        return found

    def fill(self, stamps: Mapping[Subwindow, Iterable[int]]) -> None:
        """Replace all by the tuples of some subwindows, which came at these times."""
        entries = [(stamp, s.born, s) for s, own in stamps.items() for stamp in own]
        entries.sort(key=itemgetter(0, 1))
        self.subwindows.clear()
        self.subwindows.extend(s for _, _, s in entries)
        self.stamps.clear()
        self.stamps.extend(stamp for stamp, _, _ in entries)


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
