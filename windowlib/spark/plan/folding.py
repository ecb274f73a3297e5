"""Folding of event-time rows before the shuffle: partials of keys and slices move, not rows.

Each task folds its rows as the windows would, and sends its partials at its end, as Spark does for
its own aggregations. It needs functions for which the order of rows is irrelevant, and a watermark
that rows do not move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from windowlib.columnar.engines.event_sessions import event_time_engine
from windowlib.columnar.engines.event_time import EventTimeEngine
from windowlib.runtime.operator import Operator
from windowlib.spark.bucket.bucket import BucketSpec
from windowlib.spark.plan.shuffle import FOLDED, Pack, gathered
from windowlib.spark.python_worker import end_task
from windowlib.window.consumer import Decline
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.state_bytes import dump_state


def kept_rows(spec: BucketSpec) -> str:
    """Why rows have to cross the shuffle; empty if their partials suffice."""
    if not spec.follows:
        return "the windows have a watermark of their own"
    if spec.holds:
        return "they wait until the clock has passed them"
    (window,) = spec.operator.windows
    if window is None or window.late not in (None, "drop"):
        return "late rows are looked at one by one"
    if not spec.operator.inserts_directly:
        return "the operator looks at each row"
    try:
        fold_engine(spec.operator, spec.inputs[0])
    except Decline as reason:
        return str(reason)
    return ""


def fold_engine(operator: Operator, schema: pa.Schema) -> EventTimeEngine:
    """An engine that folds rows with these columns as the windows of an operator do."""
    (window,) = operator.open().windows
    assert isinstance(window, EventTimeWindow)
    window.follow()
    engine = event_time_engine(window, schema.remove_metadata())
    engine.sends = True
    return engine


class Fold:
    """Folds the rows of a task, which carry the hash of their key in the first column.

    Args:
        operator: one with a window of event time.
        pack: what sends rows that cannot be folded, and chunks.
    """

    def __init__(self, operator: Operator, pack: Pack) -> None:
        self.operator, self.pack = operator, pack

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Chunks of partials, and of rows where there are some that cannot be folded."""
        yield from self.pack.greetings()
        engine: EventTimeEngine | None = None
        places: list[np.ndarray] = []
        for part in gathered(self.pack.named(batches)):
            rows = part.select(range(1, part.num_columns))
            engine = engine or fold_engine(self.operator, rows.schema)
            try:
                engine.insert(rows)
            except Decline:
                yield self.pack.chunks(part)
                continue
            engine.commit()
            places.append(self.pack.places(part))
        if engine is not None and places:
            yield self.pack.rows(list(self._chunks(engine, np.concatenate(places))))
        end_task()

    def _chunks(
        self, engine: EventTimeEngine, places: np.ndarray
    ) -> Iterator[tuple[int, int, bytes]]:
        """The partials for each bucket; that of a key is where its first row was for."""
        partials = engine.partials()
        owners = places[partials.born]
        for place in np.unique(owners).tolist():
            own = partials.take(np.flatnonzero(owners == place))
            yield self.pack.buckets[place], FOLDED, dump_state(tuple(own))
