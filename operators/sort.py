"""Sort: tuples in order, batch by batch, or one by one as good as a sliding window allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from operators.order import Key, Nulls, Order, sort_keys
from operators.passing import Passing, send_firings
from operators.progressive import OrderedWindow
from operators.splitting import Partitioned
from operators.windows import each_partition, window_of
from windowlib.durations import duration_text
from windowlib.errors import ModelError
from windowlib.model import OperatorModel
from windowlib.policies import Attribute, Count, Delta, Policy, Time
from windowlib.spec import By, Sliding, Spec, Tumbling
from windowlib.tumbling import TumblingWindow
from windowlib.window import Window

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings


class Sort(Partitioned, Passing):
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

    >>> from operators import Sort, desc
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
        *keys: Attribute | Key,
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
            yield "sort", "progressive: a sorted list, O(log n) per tuple"
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

    # -- at work ----------------------------------------------------------------------------------

    def on_open(self) -> None:
        """Whole batches are sorted as columns; a subclass may have handlers that want tuples."""
        (window,) = self.containers
        if type(self) is Sort and isinstance(window, TumblingWindow):
            window._keeper, window._consumer = self._engine, self._fired

    def _engine(self, window: TumblingWindow[Any, Any], schema: Any) -> Any:
        from windowlib.columnar.ordered import OrderedEngine

        return OrderedEngine(window, schema, self.order.columns, self.limit)

    def _fired(self, firings: Firings) -> None:
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
        """What the partitions hold comes out before they go."""
        each_partition(window, keys, lambda key: self._let_out(window, key))

    def _let_out(self, window: Window[Any, Any], key: Any) -> None:
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
            window._settle()
            subs = dict(window._subs)
            each_partition(window, subs, lambda key: window._flush(subs[key]))


def _check_window(spec: Spec) -> None:
    """Refuse windows that sort nothing; with other words than the model, which knows no reason."""
    if isinstance(spec.evict, Count) and not spec.evict.size:
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
        msg = (
            f"Sort does not support Sliding(..., every={_shown(spec.every)}); progressive sort "
            f"fires on every tuple. Supported: any Tumbling window, or Sliding(...) without "
            f"`every=`."
        )
        raise ModelError(msg)


def _shown(policy: Policy) -> str:
    if isinstance(policy, Time):
        return f'Time("{duration_text(policy.period)}")'
    return policy.shown if isinstance(policy, Delta) else str(policy).capitalize()
