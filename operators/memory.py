"""The window of a Dedup: keys, each for as long as it is remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from operators.contents import Content, Contents, Part
from windowlib.subwindow import Subwindow

Emit = Callable[[Any], None]


class Recent(Content):
    """The keys of one partition, in the order they will be forgotten if marks go up."""

    __slots__ = ("_window", "entries")

    def __init__(self, window: Memory) -> None:
        super().__init__()
        self._window = window
        # By key: the number of the arrival, the mark, and the tuple that is held back, if any.
        self.entries: OrderedDict[Hashable, tuple[int, Any, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Any]:
        return ([key, mark, row] for key, (_, mark, row) in self.entries.items())

    def extend(self, saved: Iterable[Any]) -> None:
        """Take back what iterating gave."""
        for key, mark, row in saved:
            number = self._window.number()
            self.entries[key] = number, mark, row
            if self._window._delta is not None:
                self.watch((mark, number, key))

    def parts(self) -> list[Part]:
        """All of it, in the order of arrival."""
        return [(mark, number, key) for key, (number, mark, _) in self.entries.items()]

    def oldest(self) -> Part:
        """What was remembered first."""
        key, (number, mark, _) = next(iter(self.entries.items()))
        return mark, number, key

    def rows(self) -> list[Any]:
        """The tuples that are held back, in the order of arrival."""
        return [row for _, _, row in self.entries.values()]


class Memory(Contents):
    """Tells tuples whose key is remembered from others; one entry per key, O(1) per tuple.

    Delta attributes are kept in a heap, which makes that O(log n).

    Args:
        args: as for `SlidingWindow`.
        key: reads what makes tuples equal.
        hold: whether a tuple is held back until its key is forgotten, or goes on at once.
        renew: whether a repeated key is remembered anew.
        first: takes the tuples that go on.
        repeated: takes the others.
        opts: as for `SlidingWindow`.
    """

    def __init__(
        self,
        *args: Any,
        key: Callable[[Any], Hashable],
        hold: bool,
        renew: bool,
        first: Emit,
        repeated: Emit,
        **opts: Any,
    ) -> None:
        super().__init__(*args, **opts)
        self._holds, self._renews = hold, renew
        self._first, self._repeated = first, repeated
        self._read = key  # type: ignore[method-assign,assignment]

    def _content(self) -> Recent:
        return Recent(self)

    def number(self) -> int:
        """The next number of an arrival."""
        return next(self._numbers)

    def _hold(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        if self._delta is not None:
            while (part := self._too_far(s, mark)) is not None:
                self._expired(s, part)
        known = s.data.entries.get(what)
        if known is not None:
            self._repeat(s, what, mark, tuple_, known)
            return
        if self._most is not None and len(s.data) == self._most:
            self._expired(s, s.data.oldest())
        self._remember(s, what, mark, tuple_)
        if not self._holds:
            self._first(tuple_)

    def _remember(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        number = self.number()
        s.data.entries[what] = number, mark, tuple_ if self._holds else None
        if self._indexed:
            self._note_in(s, (mark, number, what))

    def _repeat(self, s: Subwindow, what: Any, mark: Any, tuple_: Any, known: Any) -> None:
        number, at, before = known
        if self._renews:
            del s.data.entries[what]
            if self._indexed:
                self._note_out(s, number)
            # A late tuple does not make its key expire earlier.
            self._remember(s, what, at if self._most is None and at > mark else mark, tuple_)
        elif self._holds:
            s.data.entries[what] = number, at, tuple_
        if self._pe is not None and not self._renews:
            self._pe.touch(s)
            self._pe.total -= 1  # it was used, and has not grown
        self._repeated(before if self._holds else tuple_)

    def _expired(self, s: Subwindow, part: Part) -> None:
        number, _, row = s.data.entries.pop(part[2])
        if self._indexed:
            self._note_out(s, number)
        if self._holds:
            self._first(row)

    def drain(self) -> None:
        """Forget everything; what is held back goes on, partition by partition."""
        with self.locked():
            for s in list(self._subs.values()):
                for part in s.data.parts():
                    self._expired(s, part)
                self._drop(s)

    def _keeps(self) -> str:
        return "keys and the tuples held back" if self._holds else "keys"
