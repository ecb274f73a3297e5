"""Sort: tuples in order, batch by batch, or one by one within a sliding window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any

from windowlib.durations import duration_text
from windowlib.errors import ModelError
from windowlib.operators.arguments import window_of
from windowlib.operators.arrow_output import send_firings
from windowlib.operators.base import Partitioned, PassThrough, each_partition
from windowlib.operators.functions.call import Column
from windowlib.operators.sort.ordering import (
    VALUE,
    Nulls,
    Order,
    SortColumn,
    SortKey,
    descending,
    first_known,
    sort_keys,
)
from windowlib.operators.store_windows import Part, PartitionStore, StoreWindow
from windowlib.runtime.model import OperatorModel
from windowlib.spec.policies import Attribute, Count, Delta, Policy, Time
from windowlib.spec.specification import By, Sliding, Spec, Tumbling
from windowlib.window.consumer import Consumer
from windowlib.window.container import Window
from windowlib.window.engine.rules import reject_key
from windowlib.window.subwindow import NO_KEY, Subwindow
from windowlib.window.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings


class Sort(Partitioned, PassThrough):
    """Sorts tuples by one or more keys; equal tuples stay in the order they came.

    *Batch*, with a tumbling window: what the window holds when it is full comes out in order,
    followed by a punctuation. O(n log n) per batch.

    *Progressive*, with a sliding window: every tuple waits while the window holds it. `Count(n)`:
    when a tuple comes to n others, the smallest of those comes out. The output is in order if no
    tuple comes after more than n - 1 greater ones. `Delta` and `Time`: when a tuple expires, all
    up to and including it come out. O(log n) per tuple. At the end of the input the rest comes
    out, followed by the only punctuation.

    All tuples come out as they went in, those of evicted partitions before their partition goes
    (in batch mode with a punctuation of their own).

    Args:
        keys: columns, indexes or callables; `asc(key)` and `desc(key)` say more. The values of a
            key have to compare with one another; nulls come first in ascending and last in
            descending order, and NaN is the largest number.
        window: when to sort: any `Tumbling`, or a `Sliding` without `every=`.
        by: the partition key, if the window does not name it: every partition is sorted alone.
        limit: how many tuples of each batch come out, the smallest first.
        ascending: True or False for all keys or one per key, instead of `asc` and `desc`.
        nulls: "first" or "last", likewise.
        flush_at_end: whether batches that are not full come out at the end of the input. Those
            that wait for a punctuation always do, and so does the rest of a progressive sort.
        name: what messages and graphs call it.

    >>> from windowlib.operators import Sort, desc
    >>> from windowlib import Count, Sliding, Tumbling, replay
    >>> rows = [{"x": x} for x in (3, 2, 1, 4)]
    >>> [row["x"] for row in replay(Sort(desc("x"), window=Tumbling(Count(2))), rows)]
    [3, 2, 4, 1]
    >>> [row["x"] for row in replay(Sort("x", window=Sliding(Count(2))), rows)]
    [2, 1, 3, 4]
    """

    model = OperatorModel(
        windows=[Tumbling, Sliding[Count | Delta | Time, Count(1)]],  # type: ignore[misc]
        punctuation_in="window_bound",
        punctuation_out="generating",
    )

    def __init__(
        self,
        *keys: Column | SortKey,
        window: Spec | str,
        by: By | Sequence[str] | None = None,
        limit: int | None = None,
        ascending: bool | Sequence[bool] | None = None,
        nulls: Nulls | Sequence[Nulls] | None = None,
        flush_at_end: bool = False,
        name: str | None = None,
    ) -> None:
        spec = window_of("Sort", "window", window, by)
        self.order = Order(sort_keys("Sort", keys, ascending, nulls), "Sort")
        self.limit = limit
        self.flush_at_end = flush_at_end
        _check_window(spec)
        super().__init__(spec, name=name)
        self._check_options(spec)

    def _check_options(self, spec: Spec) -> None:
        limit, sliding = self.limit, isinstance(spec, Sliding)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise ModelError(f"Sort(limit={limit!r}): not a number of tuples. Use limit=10.")
        if limit is not None and limit < 1:
            raise ModelError(f"Sort(limit={limit}): nothing would come out. Use 1 or more.")
        if limit is not None and sliding:
            msg = (
                f"Sort(limit={limit}, window={spec!r}): a progressive sort lets every tuple out, "
                f"so there is no batch to limit. Drop `limit=`, or use a Tumbling window."
            )
            raise ModelError(msg)
        if not isinstance(self.flush_at_end, bool):
            raise ModelError(f"Sort(flush_at_end={self.flush_at_end!r}): say True or False.")
        if self.flush_at_end and sliding:
            msg = (
                f"Sort(flush_at_end=True, window={spec!r}): a progressive sort always lets out the "
                f"rest at the end. Drop `flush_at_end=`."
            )
            raise ModelError(msg)

    # -- as the framework asks --------------------------------------------------------------------

    def container(self, port: int) -> Callable[..., Window[Any, Any]]:
        """A sliding window that keeps its tuples in order, or a plain tumbling one."""
        if isinstance(self.windows[port], Sliding):
            return partial(OrderedWindow, order=self.order, emit=self._send)
        return super().container(port)

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The keys, besides what the window reads."""
        yield from super().reads(port)
        for column in self.order.columns:
            yield column.key.attribute, column.owner

    def notes(self) -> Iterable[tuple[str, str]]:
        """The order, and how it is made."""
        yield "order", str(self.order)
        if isinstance(self.windows[0], Sliding):
            yield "sort", "progressive: a heap, O(log n) per tuple"
        elif self.limit is None:
            yield "sort", "batch: sorted when full, stable"
        else:
            yield "sort", f"batch: the first {self.limit} when full, stable"

    def snapshot(self) -> Any:
        """The values that tell which others compare with them."""
        return self.order.snapshot()

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        self.order.restore(state)

    def regroup(
        self, states: Sequence[Mapping[str, Any]], mine: Callable[[int, Any], bool]
    ) -> Any:  # fmt: skip
        """The values that all others have to compare with, whatever their keys."""
        return first_known([state["state"] for state in states])

    # -- at work ----------------------------------------------------------------------------------

    def consumer(self, port: int) -> Consumer | None:
        """Whole batches are sorted as columns; a subclass may have handlers that want tuples."""
        if type(self) is not Sort or isinstance(self.windows[port], Sliding):
            return None
        return Consumer(self._on_firings, engine=self._engine)

    def _engine(self, window: TumblingWindow[Any, Any], schema: Any) -> Any:
        from windowlib.columnar.engines.ordered import OrderedEngine

        return OrderedEngine(window, schema, self.order.columns, self.limit)

    def _on_firings(self, firings: Firings) -> None:
        """Send what all flushes of a batch give, each with its punctuation."""
        content = firings.content
        send_firings(self, content.columns(), content.lengths, firings.rows)

    def _send(self, row: Any) -> None:
        self._outputs[0](row)

    def before_insert(self, window: Window[Any, Any], tuple_: Any, key: Any) -> None:
        """Refuse a tuple that does not compare with the others now, not when its batch is full."""
        self.order.place(tuple_)

    def before_flush(self, window: Window[Any, Any], key: Any) -> None:
        """A batch is full: send it, and a punctuation, which an idle timed window sends alone."""
        for row in self.order.sorted(window[key], self.limit):
            self._send(row)
        self.emit_punct()

    def on_empty_punctuation(self, window: Window[Any, Any]) -> None:
        """A punctuation without a batch."""
        self.emit_punct()

    def on_partitions_evicted(self, window: Window[Any, Any], keys: Sequence[Any]) -> None:
        """The rows of partitions are sent before the partitions are evicted."""
        each_partition(window, keys, lambda key: self._send_partition(window, key))

    def _send_partition(self, window: Window[Any, Any], key: Any) -> None:
        if isinstance(window, TumblingWindow):
            self.before_flush(window, key)
        else:
            for row in self.order.sorted(window[key]):
                self._send(row)

    def on_finish(self) -> None:
        """The rest comes out, of a progressive sort or if it was asked for."""
        (window,) = self.containers
        if isinstance(window, OrderedWindow):
            window.drain()
            self.emit_punct()
            return
        super().on_finish()  # closes a window that waits for a punctuation
        if self.flush_at_end and isinstance(window, TumblingWindow):
            window.state.sync()
            subs = dict(window.state.subwindows)
            each_partition(window, subs, lambda key: window.state.flush(subs[key]))


def _check_window(spec: Spec) -> None:
    """Refuse windows that sort nothing, with the reason, which the model does not know."""
    if spec.keeps_nothing:
        kind = type(spec).__name__
        msg = (
            f"Sort does not support {kind}(Count(0)): a window of size 0 keeps nothing to sort. "
            f"Use Count(1) or more."
        )
        raise ModelError(msg)
    if isinstance(spec, Sliding) and spec.partial is not None:
        msg = (
            f"Sort does not support Sliding(..., partial={spec.partial!r}): a progressive sort "
            f"lets tuples out one by one, full or not. Drop `partial=`."
        )
        raise ModelError(msg)
    if isinstance(spec, Sliding) and spec.every != Count(1):
        every = _policy_text(spec.every)
        msg = (
            f"Sort does not support Sliding(..., every={every}); progressive sort fires on every "
            f"tuple. Supported: any Tumbling window, or Sliding(...) without `every=`."
        )
        raise ModelError(msg)


def _policy_text(policy: Policy) -> str:
    if policy.delta is not None:
        return policy.delta.shown
    shown = [f'Time("{duration_text(time.period)}")' for time in policy.times]
    return shown[0] if shown else str(policy).capitalize()


# -- progressive sort -----------------------------------------------------------------------------


Entry = tuple[Any, ...]
"""A place in the order, the number of the arrival, the mark, and the tuple.

Entries are compared as they are. No two share a number, so that equal tuples stay in the order
they came, and neither the mark nor the tuple is ever compared.
"""


class SortStore(PartitionStore):
    """The tuples of one partition, the smallest at hand.

    They are a heap as long as their types say that all of them compare. A heap finds out late,
    half rearranged, that two do not. A sorted list compares an entry with both its neighbours
    before anything moves, so that one which does not compare is refused whole.
    """

    __slots__ = ("_window", "entries", "heap")

    def __init__(self, window: OrderedWindow) -> None:
        super().__init__()
        self._window = window
        self.heap: list[Entry] | None = []
        self.entries: Any = self.heap  # or a sorted list in place of the heap

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry, *, mixed: bool) -> None:
        """Take an entry; `mixed`: whether it may turn out not to compare with another."""
        if mixed and self.heap is not None:
            from sortedcontainers import SortedList

            self.entries, self.heap = SortedList(self.heap), None
        if self.heap is None:
            self.entries.add(entry)
        else:
            heappush(self.heap, entry)

    def replace(self, entry: Entry, *, mixed: bool) -> Entry:
        """Take an entry; the smallest of the others, which goes."""
        if self.heap is not None and not mixed:
            return heapreplace(self.heap, entry)
        self.add(entry, mixed=True)
        found: Entry = self.entries.pop(int(self.entries[0] is entry))
        return found

    def pop(self) -> Entry:
        """Take the smallest out."""
        if self.heap is not None:
            return heappop(self.heap)
        found: Entry = self.entries.pop(0)
        return found

    def _arrivals(self) -> list[Entry]:
        return sorted(self.entries, key=lambda entry: entry[-3])

    def __iter__(self) -> Iterator[Any]:
        return ([mark, row] for *_, mark, row in self._arrivals())

    def extend(self, saved: Iterable[Any]) -> None:
        """Take back what iterating gave."""
        for mark, row in saved:
            entry, mixed = self._window.entry(row, mark)
            self.add(entry, mixed=mixed)
            if self._window.spec.evict.delta is not None:
                self.watch(part_of(entry))

    def parts(self) -> list[Part]:
        """All rows, in the order of arrival."""
        return list(map(part_of, self._arrivals()))

    def rows(self) -> list[Any]:
        """The tuples in it, in the order of arrival."""
        return [entry[-1] for entry in self._arrivals()]


def part_of(entry: Entry) -> Part:
    """An entry as something that expires."""
    return entry[-2], entry[-3], entry


class OrderedWindow(StoreWindow):
    """Sends every tuple on, in an order as good as the window is large.

    `Count(n)`: when a tuple comes to n others, the smallest of those goes. `Delta` and `Time`:
    when a tuple expires, all up to and including it go. O(log n) per tuple.
    """

    def __init__(self, *args: Any, order: Order, emit: Callable[[Any], None], **opts: Any) -> None:
        super().__init__(*args, **opts)
        self._order = order
        self._emit = emit
        self._read = order.place  # type: ignore[method-assign,assignment]

    def _specialised(self, sample: Any) -> dict[str, Callable[..., None]]:
        general = super()._specialised(sample)
        column, *others = self._order.columns
        by = self.spec.by
        named = isinstance(column.key.attribute, str) and (by is None or isinstance(by, str))
        if self._indexed or others or not named:
            return general
        return self._count_inserts(general["insert"], column)

    def _count_inserts(
        self, general: Callable[..., None], column: SortColumn
    ) -> dict[str, Callable[..., None]]:
        """Fast inserts of a count window with one key; unusual rows go to the general insert."""
        emit, subs, most, numbers = self._emit, self._subs, self._most, self._numbers
        name, falls, by = column.key.attribute, column.key.descending, self.spec.by

        def insert(t: Any, /, key: Any = NO_KEY) -> None:
            heap = None
            if type(t) is dict and key is NO_KEY:
                try:
                    value = t[name]
                    # Of a type that compares with all the others, and not NaN.
                    if type(value) in column.safe_types and value == value:
                        s = subs[None if by is None else t[by]]
                        heap = s.data.heap
                except (KeyError, TypeError):
                    heap = None
            if heap is None:
                general(t, key)
                return
            try:
                entry = VALUE, descending(value) if falls else value, next(numbers), self._now, t
                if len(heap) == most:
                    emit(heapreplace(heap, entry)[-1])
                else:
                    heappush(heap, entry)
                s.taken += 1
            except BaseException as error:
                self._failed_at(t, error)
                raise

        def insert_many(tuples: Iterable[Any], keys: Iterable[Any] | None = None) -> None:
            if keys is not None:
                reject_key(self.state, "insert(key=...)")
            for t in tuples:
                insert(t)

        return {"insert": insert, "insert_many": insert_many}

    def _content(self) -> SortStore:
        return SortStore(self)

    def entry(self, row: Any, mark: Any) -> tuple[Entry, bool]:
        """A tuple of a snapshot, in its place; whether it may turn out not to compare."""
        place = self._order.place(row)
        return (*place, next(self._numbers), mark, row), self._order.mixed

    def _store(self, s: Subwindow, what: Any, mark: Any, tuple_: Any) -> None:
        held = s.data
        if self._delta is not None:
            while (part := self._next_expired(s, mark)) is not None:
                self._expire_part(s, part)
        entry = (*what, next(self._numbers), mark, tuple_)
        leaving, mixed = None, self._order.mixed
        try:
            if len(held.entries) == self._most:
                leaving = held.replace(entry, mixed=mixed)
            else:
                held.add(entry, mixed=mixed)
        except TypeError as error:
            raise self._order.clash(tuple_, held.rows(), error) from error
        if self._indexed:
            self._index_part(s, part_of(entry))
        if leaving is not None:
            self._send_entry(s, leaving)

    def _expire_part(self, s: Subwindow, part: Part) -> None:
        held = s.data
        while held.entries and not part[2] < held.entries[0]:
            self._send_entry(s, held.pop())

    def _send_entry(self, s: Subwindow, entry: Entry) -> None:
        """Send what has left a partition."""
        if self._indexed:
            self._unindex_part(s, entry[-3])
        self._emit(entry[-1])

    def drain(self) -> None:
        """Send everything on, in order, partition by partition."""
        with self.locked():
            for s in list(self._subs.values()):
                while len(s.data):
                    self._send_entry(s, s.data.pop())
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
