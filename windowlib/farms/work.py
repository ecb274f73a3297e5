"""What a worker does with windows that it is given: the function of an operator, and its parts.

There are three ways to a result, and the first that fits is taken:

| operator | way |
| --- | --- |
| reads columns (`content = "arrow"`) | its handler gets a view of the rows |
| names its functions, as `Aggregate` does | whole columns, all windows of a task at once |
| any other | a window is filled with the tuples, and its handler is called |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.failed import Failed
from windowlib.columnar.handlers import View
from windowlib.columnar.rows import Rows
from windowlib.columnar.whole import WholeWindows
from windowlib.dicts import rows_of
from windowlib.policies import Count, Time
from windowlib.running import Running
from windowlib.spec import Sliding, Spec, Tumbling

if TYPE_CHECKING:
    from windowlib.operator import Operator
    from windowlib.window import Window

Item = tuple[Any, ...]
"""What an operator sends: (port, row), or (port,) for a punctuation."""
MANY, AGES = 1 << 40, timedelta(days=1_000_000)
"""More than any window holds."""


class Given(NamedTuple):
    """A window that a worker is given: the rows `[lo, hi)` of a batch."""

    key: Any
    lo: int
    hi: int
    now: int


class Outputs:
    """What an operator sends while it works, in order."""

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
        """What has been sent since it was last asked."""
        found, self._items[:] = list(self._items), []
        return found


class Work:
    """An operator in a worker.

    >>> from operators import Aggregate, agg
    >>> from windowlib import Tumbling
    >>> work = Work(Aggregate(Tumbling(Count(3)), total=agg.sum("x")))
    >>> batch = pa.record_batch({"x": [1, 2, 3, 4]})
    >>> work.windows(batch, [Given(None, 0, 3, 0), Given(None, 1, 4, 0)])
    [[(0, {'total': 6}), (0,)], [(0, {'total': 9}), (0,)]]
    """

    def __init__(self, operator: Operator) -> None:
        self.definition = operator
        self.running = operator.open()
        self.operator = self.running.operator
        self.outputs = Outputs(self.running)
        (window,) = self.operator.containers
        assert window is not None
        self.window: Window[Any, Any] = window
        self._event = "on_trigger" if isinstance(window.spec, Sliding) else "before_flush"
        self._whole: dict[pa.Schema, WholeWindows | None] = {}

    # -- whole windows ----------------------------------------------------------------------------

    def windows(self, batch: pa.RecordBatch, given: Sequence[Given]) -> list[list[Item]]:
        """What the operator sends for each window; an exception has a note that says for which."""
        columnar = self.window._consumer is not None and batch.num_rows
        whole = self._engine(batch.schema) if columnar else None
        if whole is not None:
            return self._at_once(whole, batch, given)
        one = self._viewed if self._reads else self._filled
        return [one(batch, each) for each in given]

    @property
    def _reads(self) -> bool:
        """Whether handlers read columns."""
        return self.operator.content == "arrow" and self.window._factory is None

    def fills(self, schema: pa.Schema) -> bool:
        """Whether tuples of these columns go into windows one by one, so that they can early."""
        known = self.window._consumer is not None and self._engine(schema) is not None
        return not known and not self._reads

    def _engine(self, schema: pa.Schema) -> WholeWindows | None:
        if schema not in self._whole:
            try:
                self._whole[schema] = WholeWindows(self.window, schema.remove_metadata())
            except Decline:
                self._whole[schema] = None
        return self._whole[schema]

    def _at_once(
        self, whole: WholeWindows, batch: pa.RecordBatch, given: Sequence[Given]
    ) -> list[list[Item]]:
        lo = np.array([each.lo for each in given], np.intp)
        hi = np.array([each.hi for each in given], np.intp)
        consumer = self.window._consumer
        assert consumer is not None
        try:
            consumer(whole.firings(batch, lo, hi))
        except (Decline, Failed):  # one by one: then it is known whose result is whose
            self.outputs.take()
            return [self._filled(batch, each) for each in given]
        return _by_firing(self.outputs.take())

    def _viewed(self, batch: pa.RecordBatch, given: Given) -> list[Item]:
        handler = getattr(self.operator, self._event)
        (view,) = views(self.window, batch, [given])
        return self._called(given, handler, view)

    def _filled(self, batch: pa.RecordBatch, given: Given) -> list[Item]:
        filled = Filled(self)
        filled.add(batch.slice(given.lo, given.hi - given.lo))
        return filled.fire(given)

    def _called(self, given: Given, handler: Any, window: Any) -> list[Item]:
        self.window._now = given.now
        try:
            handler(window, given.key)
        except Exception as error:
            self.outputs.take()
            error.add_note(f"in {self.operator.name}, {self._event}, key {given.key!r}")
            raise
        return self.outputs.take()

    # -- parts ------------------------------------------------------------------------------------

    def parts(self, batch: pa.RecordBatch, given: Sequence[Given]) -> list[Any]:
        """The result of each slice, or of each part of a window."""
        seen = list(views(self.window, batch, given))
        return self.operator.parts_of(seen, [each.key for each in given])

    def merged(self, parts: Sequence[Any]) -> Any:
        """The result of parts together, in their order."""
        return self.operator.merge_all_parts(parts)

    def finish(self, key: Any, parts: Sequence[Any], now: int) -> list[Item]:
        """What the operator sends for a window that is made of parts."""
        if not parts:
            (items,) = self.windows(pa.record_batch({}), [Given(key, 0, 0, now)])
            return items

        def send(_: Any, key: Any) -> None:
            self.operator.emit_part(key, self.merged(parts))

        return self._called(Given(key, 0, 0, now), send, None)

    def again(self, batch: pa.RecordBatch, given: Given, whole: Any) -> list[Item]:
        """What the operator sends for a part of a window, once it knows the result of the whole."""
        (seen,) = views(self.window, batch, [given])
        return self._called(given, lambda _, key: self.operator.emit_again(seen, key, whole), None)

    def empty(self, now: int) -> list[Item]:
        """What the operator sends for a punctuation that closes nothing."""
        handler = self.operator.on_empty_punctuation
        return self._called(Given(None, 0, 0, now), lambda window, _: handler(window), self.window)


class Filled:
    """A window that tuples are put into, as many as there are; then its handler is called."""

    def __init__(self, work: Work) -> None:
        self._work, spec = work, work.window.spec
        self._operator = operator = work.definition._rebuilt()
        operator._outputs, operator._puncts = work.operator._outputs, work.operator._puncts
        summarizer = operator.summarizer(0)
        window: Any = operator.container(0)(_wide(spec), events=None, summarizer=summarizer)
        operator.containers = (window,)
        operator.on_open()
        self.window = window

    def add(self, batch: pa.RecordBatch) -> None:
        """More tuples."""
        self.window.insert_many(rows_of(batch))

    def fire(self, given: Given) -> list[Item]:
        """The handler is called."""
        self.window.spec = self._work.window.spec  # which its handler may look at
        self.window._now = given.now
        handler = getattr(self._operator, self._work._event)
        return self._work._called(given, handler, self.window)


def _wide(spec: Spec) -> Spec:
    """A window of the same kind that holds everything, and never fires by itself."""
    if isinstance(spec, Sliding):  # by time, because then it counts as full from the start
        return Sliding(Time(AGES), every=Count(MANY), by=spec.by)
    return Tumbling(Count(MANY), by=spec.by)


def _by_firing(items: list[Item]) -> list[list[Item]]:
    """What was sent, cut behind each punctuation."""
    found: list[list[Item]] = [[]]
    for item in items:
        found[-1].append(item)
        if len(item) == 1:
            found.append([])
    return found[:-1]


def views(
    window: Window[Any, Any], batch: pa.RecordBatch, given: Sequence[Given]
) -> Iterator[View]:
    """Some rows of a batch, as handlers see a window."""
    rows = Rows(batch.schema.names, [Column.of(column) for column in batch.columns], None)
    for each in given:
        found = View(window, rows)
        found._key, found._lo, found._hi = each.key, each.lo, each.hi
        yield found
