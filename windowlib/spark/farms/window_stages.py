"""Windows as rows of Spark's: one stage finds and sends firings, the next applies the function.

The first stage runs the window of the operator in buckets, with its state, order and time; what
fires is sent whole, packed as an Arrow stream. The task that gets it needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from windowlib.attributes import one_key
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.farms.emitter import Emitter
from windowlib.farms.evaluator import BatchExtent, EventMoment, Item, Moment, WindowEvaluator
from windowlib.runtime.operator import Operator
from windowlib.spark.plan.output_rows import Unpack
from windowlib.spark.plan.query_plan import WINDOW, QueryPlan
from windowlib.spark.plan.shuffle import BYTES, ROWS
from windowlib.spark.plan.types import fitted
from windowlib.window.arrow import Made, named_row
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.state_bytes import dump_state, load_state

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings

ID, WHAT, DATA = "_id", "_what", "_data"


def binary(*names: str) -> StructType:
    """Columns of bytes."""
    return StructType([StructField(name, BinaryType(), True) for name in names])


SENT = binary(WHAT, DATA)
"""Windows with their tuples, or pieces of them."""
PIECES = binary(ID, WHAT)
"""The results of pieces; those of one window have the same id."""


class SentFiring(NamedTuple):
    """A firing with its extent `[lo, hi)` in a batch of rows; or a piece of it."""

    number: int
    lo: int
    hi: int
    now: int
    piece: int = 0
    pieces: int = 0
    said: tuple[Any, ...] | None = None
    """Of a window of event time: where it is on its axis, and how often it was sent."""

    @property
    def when(self) -> tuple[int, tuple[Any, ...] | None]:
        """When it fired, as plain data."""
        return self.now, self.said


def moment(when: Sequence[Any]) -> Moment:
    """When a window fired, from plain data."""
    now, said = when
    return now if said is None else EventMoment(now, tuple(said))


class FiringSender(Emitter):
    """The window of an operator: it sends what fires instead of results.

    Args:
        operator: whose window it is.
        batch: how many neighbouring windows of a key are sent together, so that the tuples which
            they share are sent once.
        pieces: into how many pieces a window is cut; 0: it is sent whole.
        numbered: whether windows are counted.
    """

    def __init__(
        self, operator: Operator, batch: int = 1, pieces: int = 0, numbered: bool = False
    ) -> None:
        super().__init__(*window_of(operator))
        self.operator, self.name = operator, operator.name
        self.batch, self.pieces, self.numbered = batch, pieces, numbered or pieces > 0

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        rows, now, held = firings.content, window.state.now, dict[Any, list[SentFiring]]()
        columns = pa.record_batch({name: rows[name].arrow() for name in rows})
        times = [now] * len(firings) if firings.times is None else firings.times.tolist()
        extents = zip(firings.lo.tolist(), firings.hi.tolist(), times, strict=True)
        for key, (lo, hi, time) in zip(firings.python_keys(), extents, strict=True):
            mine = held.setdefault(one_key(key), [])
            mine.append(SentFiring(self._number(key), lo, hi, time))
            if len(mine) >= self.batch:
                self._send(key, columns, held.pop(one_key(key)))
        for key, fired in held.items():
            self._send(key, columns, fired)

    def _read(self, window: Any, key: Any) -> None:
        rows, now = window.arrow(key), window.state.now
        said = window.firing(key) if isinstance(window, EventTimeWindow) else None
        self._send(key, rows, [SentFiring(self._number(key), 0, rows.num_rows, now, said=said)])

    def _number(self, key: Any) -> int:
        """How many windows of a key have fired before."""
        if not self.numbered:
            return 0
        found = self._numbers.get(one_key(key), 0)
        self._numbers[one_key(key)] = found + 1
        return found

    def _send(self, key: Any, rows: pa.RecordBatch, fired: list[SentFiring]) -> None:
        if self.pieces:
            for each in fired:
                for piece in _cut(each, self.pieces):
                    self._row(key, rows, [piece])
        else:
            self._row(key, rows, fired)

    def _row(self, key: Any, rows: pa.RecordBatch, fired: list[SentFiring]) -> None:
        base, end = min(each.lo for each in fired), max(each.hi for each in fired)
        moved = [each._replace(lo=each.lo - base, hi=each.hi - base) for each in fired]
        what = dump_state((key, [tuple(each) for each in moved]))
        self.emit({WHAT: what, DATA: stream_bytes(rows.slice(base, end - base))})

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the operator needs."""
        return self.operator.needs(port)

    def reads(self, port: int) -> Iterable[tuple[Any, str]]:
        """The columns that the operator reads."""
        return self.operator.reads(port)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep the operator's work apart."""
        return self.operator.splits_by(port)


def window_of(operator: Operator) -> tuple[Any, bool, bool]:
    """The window of an operator, and what it says of partial windows and of the end."""
    (window,) = operator.open().operator.containers
    assert window is not None
    return window.spec, window.state.consumer.partial, getattr(operator, "flush_at_end", False)


def _cut(fired: SentFiring, pieces: int) -> Iterator[SentFiring]:
    """The pieces of a window, of about the same size; an empty one is whole.

    >>> [(each.lo, each.hi, each.pieces) for each in _cut(SentFiring(0, 10, 15, 0), 2)]
    [(10, 12, 2), (12, 15, 2)]
    """
    size = fired.hi - fired.lo
    pieces = min(pieces, size)
    if not pieces:
        yield fired
    for at in range(pieces):
        lo, hi = fired.lo + size * at // pieces, fired.lo + size * (at + 1) // pieces
        yield fired._replace(lo=lo, hi=hi, piece=at, pieces=pieces)


class ResultRows:
    """Turns what an operator sends for windows into rows of Spark's."""

    def __init__(self, plan: QueryPlan, numbered: bool) -> None:
        self.made, self.sent, self.numbered = plan.output.made, plan.output.sent, numbered
        self.unpack: Unpack = plan.unpack()

    def rows(self, results: Iterable[tuple[int, list[Item]]]) -> Iterator[pa.RecordBatch]:
        """The rows of windows, which come with their numbers."""
        made = [Made() for _ in self.made]
        for number, items in results:
            for port, *rows in items:
                for row in rows:  # none: it is a punctuation, which stays in the process
                    made[port].add(numbered_row(row, number) if self.numbered else row)
        for port, name in enumerate(self.unpack.ports):
            schema: Any = self.sent[port]
            if schema is not None:
                batch = fitted(made[port].taken(self.made[port]), schema)
                yield from self.unpack.rows(name, pa.Table.from_batches([batch]))


def numbered_row(row: Any, number: int) -> dict[str, Any]:
    """A row with the number of its window."""
    return {**named_row(row), WINDOW: number}


SentBatch = tuple[pa.RecordBatch, list[Any], list[SentFiring]]
"""Rows, and the windows in them with their keys."""


def sent_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[SentBatch]:
    """What was sent: as many windows at once as make a batch of a good size."""
    found: list[pa.RecordBatch] = []
    keys: list[Any] = []
    windows: list[SentFiring] = []
    rows = size = 0
    for what, data in _values(batches, WHAT, DATA):
        key, fired = load_state(what)
        keys += [key] * len(fired)
        for number, lo, hi, *others in fired:
            windows.append(SentFiring(number, lo + rows, hi + rows, *others))
        table = stream_table(data).combine_chunks()
        found += [fitted(part, schema) for part in table.to_batches()]
        rows, size = rows + table.num_rows, size + len(data)
        if rows >= ROWS or size >= BYTES:
            yield _joined(found, schema), keys, windows
            found, keys, windows, rows, size = [], [], [], 0, 0
    if windows:
        yield _joined(found, schema), keys, windows


def _values(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else schema.empty_table().to_batches()[0]


class ApplyFunction:
    """Applies the function of an operator to windows; rows come out."""

    def __init__(self, operator: Operator, schema: pa.Schema, results: ResultRows) -> None:
        self.operator, self.schema, self.results = operator, schema, results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the windows that a task gets."""
        work = WindowEvaluator(self.operator)
        for rows, keys, windows in sent_batches(batches, self.schema):
            sent = work.windows(rows, _given(keys, windows))
            numbers = [each.number for each in windows]
            yield from self.results.rows(zip(numbers, sent, strict=True))


class ComputePartials:
    """Computes the partials of pieces of windows."""

    def __init__(self, operator: Operator, schema: pa.Schema) -> None:
        self.operator, self.schema = operator, schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the pieces that a task gets."""
        work = WindowEvaluator(self.operator)
        for rows, keys, windows in sent_batches(batches, self.schema):
            some = [at for at, each in enumerate(windows) if each.pieces]
            given = _given(keys, windows)
            parts = work.partials(rows, [given[at] for at in some]) if some else []
            found = dict(zip(some, parts, strict=True))
            ids, whats = [], []
            for at, (key, each) in enumerate(zip(keys, windows, strict=True)):
                ids.append(dump_state((key, each.number)))
                part = work.part_bytes(found[at]) if at in found else None
                what = (key, each.number, each.piece, each.pieces, each.when, part)
                whats.append(dump_state(what))
            kind = pa.binary()
            yield pa.record_batch({ID: pa.array(ids, kind), WHAT: pa.array(whats, kind)})


class MergePartials:
    """Merges the partials of each window, in their order, once all of them are there."""

    def __init__(self, operator: Operator, results: ResultRows) -> None:
        self.operator, self.results = operator, results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the windows that a task gets."""
        work, waiting = WindowEvaluator(self.operator), dict[bytes, dict[int, Any]]()
        for batch in batches:
            yield from self.results.rows(self._merged(work, batch, waiting))

    def _merged(
        self, work: WindowEvaluator, batch: pa.RecordBatch, waiting: dict[bytes, dict[int, Any]]
    ) -> Iterator[tuple[int, list[Item]]]:
        for id, what in _values([batch], ID, WHAT):
            key, number, piece, pieces, when, part = load_state(what)
            now = moment(when)
            if not pieces:
                yield number, work.finish(key, [], now)
                continue
            mine = waiting.setdefault(id, {})
            mine[piece] = work.part_from(part)
            if len(mine) == pieces:
                parts = waiting.pop(id)
                yield number, work.finish(key, [parts[at] for at in range(pieces)], now)


def _given(keys: list[Any], windows: list[SentFiring]) -> list[BatchExtent]:
    pairs = zip(keys, windows, strict=True)
    return [BatchExtent(key, each.lo, each.hi, moment(each.when)) for key, each in pairs]
