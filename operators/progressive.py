"""The window of a progressive sort: tuples wait in order until one of them has to go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from operators.contents import Content, Contents, Part
from operators.order import Order
from windowlib.subwindow import Subwindow

Entry = tuple[Any, ...]
"""A place in the order, the number of the arrival, the mark, and the tuple.

Entries are compared as they are. No two share a number, so that equal tuples stay in the order
they came, and neither the mark nor the tuple is ever compared.
"""


class Held(Content):
    """The tuples of one partition, smallest first."""

    __slots__ = ("_window", "ordered")

    def __init__(self, window: OrderedWindow) -> None:
        from sortedcontainers import SortedList

        super().__init__()
        self._window = window
        # Not a heap: adding compares an entry with both its neighbours before anything moves, so
        # one that does not compare is refused whole. A heap finds out later, half rearranged.
        self.ordered: Any = SortedList()

    def __len__(self) -> int:
        return len(self.ordered)

    def _arrivals(self) -> list[Entry]:
        return sorted(self.ordered, key=lambda entry: entry[-3])

    def __iter__(self) -> Iterator[Any]:
        return ([mark, row] for *_, mark, row in self._arrivals())

    def extend(self, saved: Iterable[Any]) -> None:
        """Take back what iterating gave."""
        for mark, row in saved:
            entry = self._window.entry(row, mark)
            self.ordered.add(entry)
            if self._window._delta is not None:
                self.watch(part_of(entry))

    def parts(self) -> list[Part]:
        """All of it, in the order of arrival."""
        return list(map(part_of, self._arrivals()))

    def rows(self) -> list[Any]:
        """The tuples in it, in the order of arrival."""
        return [entry[-1] for entry in self._arrivals()]


def part_of(entry: Entry) -> Part:
    """An entry as something that expires."""
    return entry[-2], entry[-3], entry


class OrderedWindow(Contents):
    """Sends every tuple on, in an order as good as the window is large.

    `Count(n)`: when a tuple comes to n others, the smallest of those goes. `Delta` and `Time`:
    when a tuple expires, all up to and including it go. O(log n) per tuple.
    """

    def __init__(self, *args: Any, order: Order, emit: Callable[[Any], None], **opts: Any) -> None:
        super().__init__(*args, **opts)
        self._order = order
        self._emit = emit
        self._read = order.place  # type: ignore[method-assign,assignment]

    def _content(self) -> Held:
        return Held(self)

    def entry(self, row: Any, mark: Any) -> Entry:
        """A tuple of a snapshot, in its place."""
        return (*self._order.place(row), next(self._numbers), mark, row)

    def _hold(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        held = s.data
        if self._delta is not None:
            while (part := self._too_far(s, mark)) is not None:
                self._expired(s, part)
        entry = (*what, next(self._numbers), mark, tuple_)
        try:
            held.ordered.add(entry)
        except TypeError as error:
            raise self._order.clash(tuple_, held.rows(), error) from error
        if self._indexed:
            self._note_in(s, part_of(entry))
        if self._most is not None and len(held.ordered) > self._most:
            self._send(s, int(held.ordered[0] is entry))  # the smallest of those that waited

    def _expired(self, s: Subwindow, part: Part) -> None:
        ordered = s.data.ordered
        while ordered and not part[2] < ordered[0]:
            self._send(s, 0)

    def _send(self, s: Subwindow, index: int) -> None:
        entry = s.data.ordered.pop(index)
        if self._indexed:
            self._note_out(s, entry[-3])
        self._emit(entry[-1])

    def drain(self) -> None:
        """Send everything on, in order, partition by partition."""
        with self.locked():
            for s in list(self._subs.values()):
                while len(s.data):
                    self._send(s, 0)
                self._drop(s)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the window's contents by those of a snapshot of the same specification."""
        known = self._order.snapshot()
        self._order.forget()  # the tuples of the snapshot compare with one another, no others
        try:
            super().restore(state)
        except Exception:
            self._order.restore(known)
            raise

    def _keeps(self) -> str:
        return "tuples in order"
