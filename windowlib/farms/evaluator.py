"""The function of an operator, evaluated for windows and slices of a batch: what a worker does.

There are four ways to a result, and the first that fits is taken:

| operator | way |
| --- | --- |
| has a window of event time | its window is shown the tuples, and its handlers are called |
| reads columns (`content = "arrow"`) | its handler gets a view of the rows |
| names its functions, as `Aggregate` does | whole columns, all windows of a task at once |
| any other | a window is filled with the tuples, and its handler is called |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.columnar.arrays.physical import plain
from windowlib.columnar.engines.row_engine import WholeWindows
from windowlib.columnar.firings import FiredRows, FiringView
from windowlib.errors import FarmError, StateError
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.spec.policies import Count, Time
from windowlib.spec.specification import Sliding, Spec, Tumbling
from windowlib.window.arrow import BatchRows, rows_of
from windowlib.window.consumer import Decline, FiringFailed
from windowlib.window.event_time import FIRING, EventTimeWindow
from windowlib.window.state_bytes import dump_state, load_state

if TYPE_CHECKING:
    from windowlib.window.container import Window

Item = tuple[Any, ...]
"""What an operator sends: (port, row), or (port,) for a punctuation."""
UNBOUNDED_COUNT, UNBOUNDED_TIME = 1 << 40, timedelta(days=1_000_000)
"""More than any window holds."""


class EventMoment(NamedTuple):
    """When a window of event time fired: on the clock, and as `EventTimeWindow.firing`."""

    now: int
    firing: tuple[Any, Any, int, bool, Any]


Moment = int | EventMoment
"""When a window fired, in microseconds; one of event time has a place on its axis, too."""


class BatchExtent(NamedTuple):
    """The rows `[lo, hi)` of a batch that make a window or a slice, its key, and when it fired."""

    key: Any
    lo: int
    hi: int
    now: Moment


class ColumnResults(NamedTuple):
    """The rows of several windows as one Arrow stream, and the number of rows of each."""

    data: bytes
    counts: list[int]

    @classmethod
    def of(cls, batch: pa.RecordBatch, counts: Sequence[int]) -> ColumnResults:
        """The rows of a batch, those of each window next to each other."""
        return cls(stream_bytes(batch), list(counts))

    def windows(self) -> Iterator[BatchRows]:
        """The rows of each window."""
        (batch,) = stream_table(self.data).to_batches() or [pa.record_batch({})]
        for hi, size in zip(accumulate(self.counts), self.counts, strict=True):
            yield BatchRows(batch, hi - size, hi)


class SentItems:
    """The rows and punctuations that an operator sends, in order."""

    def __init__(self, running: Running) -> None:
        self._items: list[Item] = []
        for port in range(len(running.model.outputs)):
            running.connect(port, *self._writers(port))

    def _writers(self, port: int) -> Any:
        mark = (port,)
        return (
            lambda row: self._items.append((port, row)),
            lambda: self._items.append(mark),
        )

    def take(self) -> list[Item]:
        """The items since the last call."""
        found, self._items[:] = list(self._items), []
        return found


class WindowEvaluator:
    """The function of an operator, for windows whose rows are given.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Tumbling
    >>> evaluator = WindowEvaluator(Aggregate(Tumbling(Count(3)), total=agg.sum("x")))
    >>> batch = pa.record_batch({"x": [1, 2, 3, 4]})
    >>> evaluator.windows(batch, [BatchExtent(None, 0, 3, 0), BatchExtent(None, 1, 4, 0)])
    [[(0, {'total': 6}), (0,)], [(0, {'total': 9}), (0,)]]
    """

    def __init__(self, operator: Operator) -> None:
        self.definition = operator
        self.running = operator.open()
        self.operator = self.running.operator
        self.outputs = SentItems(self.running)
        (window,) = self.operator.containers
        assert window is not None
        self.window: Window[Any, Any] = window
        self.event = "on_trigger" if isinstance(window.spec, Sliding) else "before_flush"
        self._engines: dict[pa.Schema, WholeWindows | None] = {}
        self._row_by_row: set[pa.Schema] = set()  # of which there are no columns to send
        self._spare_windows: list[FilledWindow] = []

    # -- whole windows ----------------------------------------------------------------------------

    def windows(self, batch: pa.RecordBatch, extents: Sequence[BatchExtent]) -> list[list[Item]]:
        """The items that the operator sends for each window; errors name the window in a note."""
        if isinstance(self.window, EventTimeWindow):
            rows = list(rows_of(batch))
            return [self._evaluate_event_time(each, rows[each.lo : each.hi]) for each in extents]
        if (whole := self._batch_engine(batch)) is not None:
            return self._evaluate_batch(whole, batch, extents)
        if self._reads_columns:
            return [self._evaluate_view(batch, each) for each in extents]
        return self._evaluate_filled(batch, extents)

    def columns(
        self, batch: pa.RecordBatch, extents: Sequence[BatchExtent]
    ) -> ColumnResults | None:
        """The rows for all windows as columns, without punctuations; None if it sends rows."""
        if isinstance(self.window, EventTimeWindow) or batch.schema in self._row_by_row:
            return None
        whole, schema = self._batch_engine(batch), self.operator.schema(batch.schema)
        if whole is None or schema is None:
            return None
        sent: list[Any] = []
        try:
            with self.running.sending_columns(sent.append):
                self._consume(whole, batch, extents)
        except (Decline, FiringFailed):
            sent.clear()
        if self.outputs.take() or len(sent) != 1:
            self._row_by_row.add(batch.schema)
            return None
        return ColumnResults.of(sent[0].arrow(schema), sent[0].counts.tolist())

    @property
    def _reads_columns(self) -> bool:
        """Whether handlers read columns."""
        return self.operator.content == "arrow" and self.window.state.summarizer is None

    def fills_windows(self, schema: pa.Schema) -> bool:
        """Whether tuples of these columns are folded one by one, so that they can be early."""
        known = self.window.state.consumer.fired is not None and self._engine(schema) is not None
        return not known and not self._reads_columns

    def _engine(self, schema: pa.Schema) -> WholeWindows | None:
        if schema not in self._engines:
            try:
                self._engines[schema] = WholeWindows(self.window, schema.remove_metadata())
            except Decline:
                self._engines[schema] = None
        return self._engines[schema]

    def _batch_engine(self, batch: pa.RecordBatch) -> WholeWindows | None:
        """The engine that computes all windows of a batch at once, if there is one."""
        columnar = self.window.state.consumer.fired is not None and batch.num_rows
        return self._engine(batch.schema) if columnar else None

    def _consume(
        self, whole: WholeWindows, batch: pa.RecordBatch, extents: Sequence[BatchExtent]
    ) -> None:
        lo = np.array([each.lo for each in extents], np.intp)
        hi = np.array([each.hi for each in extents], np.intp)
        consumer = self.window.state.consumer.fired
        assert consumer is not None
        consumer(whole.firings(batch, lo, hi))

    def _evaluate_batch(
        self, whole: WholeWindows, batch: pa.RecordBatch, extents: Sequence[BatchExtent]
    ) -> list[list[Item]]:
        try:
            self._consume(whole, batch, extents)
        except (Decline, FiringFailed):  # one by one: then it is known whose result is whose
            self.outputs.take()
            return self._evaluate_filled(batch, extents)
        return _split_firings(self.outputs.take())

    def _evaluate_view(self, batch: pa.RecordBatch, extent: BatchExtent) -> list[Item]:
        handler = getattr(self.operator, self.event)
        (view,) = views(self.window, batch, [extent])
        return self.call_handler(extent, handler, view)

    def _evaluate_filled(
        self, batch: pa.RecordBatch, extents: Sequence[BatchExtent]
    ) -> list[list[Item]]:
        rows, found = list(rows_of(batch)), []
        for each in extents:
            window = self.empty_window()
            window.add(rows[each.lo : each.hi])
            found.append(window.fire(each))
        return found

    def empty_window(self) -> FilledWindow:
        """An empty window to fill: one that has fired before, because a new one costs more."""
        spare = self._spare_windows
        return spare.pop() if spare else FilledWindow(self, spare)

    def _evaluate_event_time(self, extent: BatchExtent, rows: Sequence[Any]) -> list[Item]:
        """The items that a window of event time sends."""

        def process(window: Any, key: Any) -> None:
            for name in FIRING[window.kind]:
                getattr(self.operator, name)(window, key)

        return self.call_handler(extent, process, self.window, rows)

    def call_handler(
        self, extent: BatchExtent, handler: Any, window: Any, rows: Sequence[Any] = ()
    ) -> list[Item]:
        """The items that a handler sends; errors name the window in a note."""
        moment = extent.now
        during: AbstractContextManager[None] = nullcontext()
        if isinstance(moment, EventMoment):
            assert isinstance(self.window, EventTimeWindow)
            during, moment = self.window.replayed(extent.key, moment.firing, rows), moment.now
        self.window.state.now = moment
        try:
            with during:
                handler(window, extent.key)
        except Exception as error:
            self.outputs.take()
            error.add_note(f"in {self.operator.name}, {self.event}, key {extent.key!r}")
            raise
        return self.outputs.take()

    # -- partials ---------------------------------------------------------------------------------

    def partials(self, batch: pa.RecordBatch, extents: Sequence[BatchExtent]) -> list[Any]:
        """The partial of each slice, or of each part of a window."""
        seen = list(views(self.window, batch, extents))
        return self.operator.parts_of(seen, [each.key for each in extents])

    def dump_part(self, part: Any) -> bytes:
        """A partial as bytes, for another process."""
        try:
            return dump_state(self.operator.save_part(part))
        except StateError as error:
            msg = (
                f"{self.operator.name}.part_of(...): {error} Or override save_part and load_part, "
                f"which make plain data of what part_of returns, and the other way."
            )
            raise FarmError(msg) from error

    def load_part(self, data: bytes) -> Any:
        """The partial that `dump_part` wrote."""
        return self.operator.load_part(load_state(data))

    def merged(self, partials: Sequence[Any]) -> Any:
        """The partials merged, in their order."""
        return self.operator.merge_all_parts(partials)

    def finish(self, key: Any, partials: Sequence[Any], now: Moment) -> list[Item]:
        """The items that the operator sends for a window made of partials."""
        if not partials:
            (items,) = self.windows(pa.record_batch({}), [BatchExtent(key, 0, 0, now)])
            return items

        def send(_: Any, key: Any) -> None:
            self.operator.emit_part(key, self.merged(partials))

        return self.call_handler(BatchExtent(key, 0, 0, now), send, None)

    def finish_columns(
        self, key: Any, partials: Sequence[Any], now: Moment
    ) -> list[Item] | ColumnResults:
        """`finish`, as columns without punctuations if the operator sends columns."""
        sent: list[Any] = []
        with self.running.sending_columns(sent.append):
            items = self.finish(key, partials, now)
        if not sent:
            return items
        (batch,) = (each.batch() for each in sent)
        return ColumnResults.of(batch, [batch.num_rows])

    def emit_again(self, batch: pa.RecordBatch, extent: BatchExtent, whole: Any) -> list[Item]:
        """The items for a part of a window, given the result of the whole window."""
        items, part = self.emit_round(batch, extent, whole)
        if part is not None:
            msg = (
                f"{self.operator.name}.emit_again(...): it returned a part for another round, and "
                f"here there is one alone. Use WindowPartition in process, or return None."
            )
            raise FarmError(msg)
        return items

    def emit_round(
        self, batch: pa.RecordBatch, extent: BatchExtent, whole: Any
    ) -> tuple[list[Item], Any]:
        """`emit_again`, and the part for another round; None if there is no other round."""
        (seen,) = views(self.window, batch, [extent])
        parts: list[Any] = []

        def act(_: Any, key: Any) -> None:
            parts.append(self.operator.emit_again(seen, key, whole))

        return self.call_handler(extent, act, None), parts[0]

    def empty(self, now: int) -> list[Item]:
        """The items that the operator sends for a punctuation that closes nothing."""
        handler = self.operator.on_empty_punctuation
        return self.call_handler(
            BatchExtent(None, 0, 0, now), lambda window, _: handler(window), self.window
        )


class FilledWindow:
    """A window that is filled with tuples without firing, until its handler is called."""

    def __init__(self, evaluator: WindowEvaluator, blank: list[FilledWindow]) -> None:
        self._spare_windows = blank
        self._evaluator, spec = evaluator, evaluator.window.spec
        self._operator = operator = evaluator.definition.rebuilt()
        operator._outputs, operator._puncts = (
            evaluator.operator._outputs,
            evaluator.operator._puncts,
        )
        summarizer, self._unbounded = operator.summarizer(0), _unbounded(spec)
        self._folds = summarizer is not None
        window: Any = operator.container(0)(self._unbounded, events=None, summarizer=summarizer)
        operator.containers = (window,)
        operator.on_open()
        self.window = window
        self._handler = getattr(operator, evaluator.event)

    def add(self, rows: Sequence[Any]) -> None:
        """Add tuples: the first makes the partition; without a fold, others are only stored."""
        if self._folds or len(rows) < 2:
            self.window.insert_many(rows)
            return
        self.window.insert(rows[0])
        ((_, s),) = self.window.state.subwindows.items()
        s.data.extend(rows[1:])
        if isinstance(self._unbounded, Sliding):
            s.taken += len(rows) - 1
            self.window.state.arrivals.add_many(s, self.window.state.now, len(rows) - 1)

    def fire(self, extent: BatchExtent) -> list[Item]:
        """Call the handler, and empty the window."""
        state = self.window.state
        state.now = extent.now
        self.window.spec = self._evaluator.window.spec  # which its handler may read
        try:
            return self._evaluator.call_handler(extent, self._handler, self.window)
        finally:
            state.asleep.clear()
            state.fill((), 0)
            self.window.spec = self._unbounded
            self._spare_windows.append(self)


def _unbounded(spec: Spec) -> Spec:
    """A window of the same kind that holds everything, and never fires by itself."""
    if isinstance(spec, Sliding):  # by time, because then it counts as full from the start
        return Sliding(Time(UNBOUNDED_TIME), every=Count(UNBOUNDED_COUNT), by=spec.by)
    return Tumbling(Count(UNBOUNDED_COUNT), by=spec.by)


def _split_firings(items: list[Item]) -> list[list[Item]]:
    """Items in groups that end with a punctuation each."""
    found: list[list[Item]] = [[]]
    for item in items:
        found[-1].append(item)
        if len(item) == 1:
            found.append([])
    return found[:-1]


def views(
    window: Window[Any, Any], batch: pa.RecordBatch, extents: Sequence[BatchExtent]
) -> Iterator[FiringView]:
    """Extents of a batch as handlers see a window."""
    rows = pa.RecordBatch.from_arrays(list(map(plain, batch.columns)), batch.schema.names)
    for each in extents:
        fired = FiredRows(rows)
        fired.key, fired.lo, fired.hi = each.key, each.lo, each.hi
        yield FiringView(window, fired)
