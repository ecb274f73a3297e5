"""Windows as rows of Spark's: one stage finds and sends firings, the next applies the function.

The first stage runs the window of the operator in buckets, with its state, order and time; what
fires is sent whole or as slices, packed as an Arrow stream. The task that gets it needs nothing
else.

Windows that fire together share slices, which are cut where one of them starts or ends. So this
works for all policies: the windows are known when they fire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from windowlib.attributes import one_key
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.farms.emitter import Emitter
from windowlib.farms.evaluator import BatchExtent, EventMoment, Item, Moment, WindowEvaluator
from windowlib.farms.round_robin import key_shift
from windowlib.farms.window_function import function_of
from windowlib.runtime.operator import Operator
from windowlib.runtime.splitting import names_in
from windowlib.spark.plan.output_rows import Unpack
from windowlib.spark.plan.query_plan import WINDOW, QueryPlan
from windowlib.spark.plan.shuffle import BYTES, ROWS
from windowlib.spark.plan.types import fitted
from windowlib.spark.python_worker import end_task
from windowlib.window.arrow import OutputRows, named_row
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.state_bytes import dump_state, load_state

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings

ID, WHAT, DATA, WORKER = "_id", "_what", "_data", "_worker"
LEAST = 256
"""The least rows of a share of slices, if there are so many: fewer are not worth a message."""


def binary(*names: str) -> StructType:
    """Columns of bytes."""
    return StructType([StructField(name, BinaryType(), True) for name in names])


SENT = binary(WHAT, DATA)
"""Windows with their tuples, or shares of slices; without a `WHAT`, a late row."""
SHARES = binary(ID, WHAT, DATA)
"""The results of shares; those of one group of windows have the same id."""


class SentFiring(NamedTuple):
    """A firing with its extent `[lo, hi)`: in a batch of rows, or in the slices of its group."""

    number: int
    lo: int
    hi: int
    now: int
    event_firing: tuple[Any, ...] | None = None
    """Of a window of event time: where it is on its axis, and how often it was sent."""

    @property
    def moment(self) -> Moment:
        """When it fired."""
        event = self.event_firing
        return self.now if event is None else EventMoment(self.now, tuple(event))


class SentShare(NamedTuple):
    """Slices of a partition that a task gets together: a share of what a group of windows needs."""

    key: Any
    group: int
    """The number of the first window of the group."""
    place: int
    places: int
    """How many shares the group has."""
    slices: list[tuple[int, int]]
    """The extent of each slice in the rows of the share."""
    firings: list[tuple[Any, ...]]
    """The windows of the group as extents of its slices; only the first share has them."""

    @property
    def id(self) -> bytes:
        """An identifier that all shares of a group have, and no others.

        Where a bucket has no rows, its clock fires the partition of None, which may be a key of
        another bucket. Such a window is empty, and always a single share.
        """
        return dump_state((self.key, self.group, self.places))


class FiringSender(Emitter):
    """The window of an operator: it sends what fires instead of results.

    Args:
        operator: whose window it is.
        batch: how many neighbouring windows of a key are sent together, so that the tuples which
            they share are sent once; 0: as many as there are for each task.
        pieces: into how many pieces a window is cut; 0: it is sent whole.
        numbered: whether windows are counted.
        shared: whether windows that fire together are sent as slices, each of them once.
        tasks: how many tasks get what is sent.
    """

    def __init__(
        self,
        operator: Operator,
        batch: int = 1,
        pieces: int = 0,
        numbered: bool = False,
        *,
        shared: bool = False,
        tasks: int = 1,
    ) -> None:
        super().__init__(*window_of(operator))
        self.operator, self.name = operator, operator.name
        self.batch, self.pieces, self.shared, self.tasks = batch, pieces, shared, tasks
        self.numbered = numbered or shared or pieces > 0

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        rows, now, held = firings.content, window.state.now, dict[Any, list[SentFiring]]()
        columns = pa.record_batch({name: rows[name].arrow() for name in rows})
        times = [now] * len(firings) if firings.times is None else firings.times.tolist()
        together = len(firings) if self.shared else self.batch or -(-len(firings) // self.tasks)
        extents = zip(firings.lo.tolist(), firings.hi.tolist(), times, strict=True)
        for key, (lo, hi, time) in zip(firings.python_keys(), extents, strict=True):
            mine = held.setdefault(one_key(key), [])
            mine.append(SentFiring(self._number(key), lo, hi, time))
            if len(mine) >= together:
                self._send(key, columns, held.pop(one_key(key)))
        for key, fired in held.items():
            self._send(key, columns, fired)

    def _record(self, window: Any, key: Any) -> None:
        rows, now = window.arrow(key), window.state.now
        said = window.firing(key) if isinstance(window, EventTimeWindow) else None
        self._send(key, rows, [SentFiring(self._number(key), 0, rows.num_rows, now, said)])

    def on_late(self, window: Any, tuple_: Any, key: Any) -> None:
        """Send a late row on."""
        self.emit({WHAT: None, DATA: dump_state(dict(named_row(tuple_)))})

    def _number(self, key: Any) -> int:
        return self._firing_number(one_key(key)) if self.numbered else 0

    def _send(self, key: Any, rows: pa.RecordBatch, fired: list[SentFiring]) -> None:
        if self.shared:
            # A partition with most of the rows is worth as many tasks as that takes.
            share = max(LEAST, -(-rows.num_rows // self.tasks))
            self._send_shares(key, rows, fired, shared_slices(fired, share), share)
        elif self.pieces:
            for each in fired:
                self._send_shares(key, rows, [each], _divided(each.lo, each.hi, self.pieces), 1)
        else:
            base, end = min(each.lo for each in fired), max(each.hi for each in fired)
            moved = [each._replace(lo=each.lo - base, hi=each.hi - base) for each in fired]
            what = dump_state((key, [tuple(each) for each in moved]))
            self.emit({WHAT: what, DATA: stream_bytes(rows.slice(base, end - base))})

    def _send_shares(
        self,
        key: Any,
        rows: pa.RecordBatch,
        fired: list[SentFiring],
        slices: list[tuple[int, int]],
        size: int,
    ) -> None:
        """Send slices, as many together as have about `size` rows, and which windows have them."""
        begins = {lo: at for at, (lo, _) in enumerate(slices)}
        ends = {hi: at for at, (_, hi) in enumerate(slices, 1)}
        firings = []
        for each in fired:
            some = each.lo < each.hi
            lo, hi = (begins[each.lo], ends[each.hi]) if some else (0, 0)
            firings.append(tuple(each._replace(lo=lo, hi=hi)))
        shares = list(_packed_slices(slices, size)) or [[]]
        for place, own in enumerate(shares):
            base, end = (own[0][0], own[-1][1]) if own else (0, 0)
            moved = [(lo - base, hi - base) for lo, hi in own]
            first = firings if place == 0 else []
            what = SentShare(key, fired[0].number, place, len(shares), moved, first)
            data = stream_bytes(rows.slice(base, end - base))
            self.emit({WHAT: dump_state(tuple(what)), DATA: data})

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the operator needs."""
        return self.operator.needs(port)

    def reads(self, port: int) -> Iterable[tuple[Any, str]]:
        """The columns that the operator reads."""
        return self.operator.reads(port)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep the operator's work apart."""
        return self.operator.splits_by(port)


class ActiveWindows(Emitter):
    """The windows of an operator that one worker has: one in n of each partition.

    Every worker gets a copy of every row, and keeps the window by itself. It computes those that
    are its own when they fire, so that no window is sent.

    Args:
        operator: whose windows they are.
        workers: how many there are.
        numbered: whether rows say which window they are from.
    """

    def __init__(self, operator: Operator, workers: int, numbered: bool = False) -> None:
        self.model = operator.model
        spec, partial, at_end = window_of(operator)
        self._names = tuple(map(str, names_in(spec.by) or ()))
        self._composite = isinstance(spec.by, tuple)
        super().__init__(replace(spec, by=(*self._names, WORKER)), partial, at_end)
        self.operator, self.name = operator, operator.name
        self.workers, self.numbered = workers, numbered

    def on_open(self) -> None:
        """Make the evaluator that computes windows."""
        super().on_open()
        self._evaluator = WindowEvaluator(self.operator)

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        rows, now = firings.content, window.state.now
        columns = {name: rows[name].arrow() for name in rows if name != WORKER}
        times = [now] * len(firings) if firings.times is None else firings.times.tolist()
        extents = zip(firings.lo.tolist(), firings.hi.tolist(), times, strict=True)
        owned = [
            (number, BatchExtent(key, *extent))
            for shared, extent in zip(firings.python_keys(), extents, strict=True)
            for key, number in self._owned(shared)
        ]
        self._compute(pa.record_batch(columns), owned)

    def _record(self, window: Any, key: Any) -> None:
        for own, number in self._owned(key):
            rows = window.arrow(key)
            rows = rows.drop_columns([WORKER]) if WORKER in rows.schema.names else rows
            extent = BatchExtent(own, 0, rows.num_rows, window.state.now)
            self._compute(rows, [(number, extent)])

    def _owned(self, shared: tuple[Any, ...] | None) -> Iterator[tuple[Any, int]]:
        """The key and number of a window that fires, if it is one of this worker."""
        if shared is None:  # the clock of a bucket without rows has ticked, and that is no window
            return
        *parts, worker = shared
        key = tuple(parts) if self._composite else parts[0] if parts else None
        number = self._firing_number(one_key(shared))
        if (key_shift(key, self.workers) + number) % self.workers == worker:
            yield key, number

    def _compute(self, rows: pa.RecordBatch, owned: Sequence[tuple[int, BatchExtent]]) -> None:
        found = self._evaluator.windows(rows, [extent for _, extent in owned]) if owned else []
        for (number, _), items in zip(owned, found, strict=True):
            for port, *sent in items:
                for row in sent:
                    self._outputs[port](numbered_row(row, number) if self.numbered else row)


def window_of(operator: Operator) -> tuple[Any, bool, bool]:
    """The window of an operator, and what it says of partial windows and of the end."""
    (window,) = operator.open().operator.containers
    assert window is not None
    return window.spec, window.state.consumer.partial, getattr(operator, "flush_at_end", False)


def shared_slices(fired: Sequence[SentFiring], largest: int) -> list[tuple[int, int]]:
    """The slices that windows are made of: no window starts or ends within one.

    Rows between two windows belong to none; what is larger than `largest` rows is cut.

    >>> windows = [SentFiring(0, 0, 4, 0), SentFiring(1, 2, 6, 0), SentFiring(2, 9, 14, 0)]
    >>> shared_slices(windows, 4)
    [(0, 2), (2, 4), (4, 6), (9, 11), (11, 14)]
    """
    extents = np.array([(each.lo, each.hi) for each in fired if each.lo < each.hi], np.int64)
    if not len(extents):
        return []
    edges, places = np.unique(extents, return_inverse=True)
    places = places.reshape(extents.shape)
    opened = np.bincount(places[:, 0], minlength=len(edges))
    closed = np.bincount(places[:, 1], minlength=len(edges))
    inside = np.cumsum(opened - closed)[:-1] > 0
    found = zip(edges[:-1][inside].tolist(), edges[1:][inside].tolist(), strict=True)
    return [part for lo, hi in found for part in _divided(lo, hi, -(-(hi - lo) // largest))]


def _divided(lo: int, hi: int, pieces: int) -> list[tuple[int, int]]:
    """An extent in pieces of about the same size, none of which is empty.

    >>> _divided(10, 15, 2), _divided(10, 12, 3), _divided(4, 4, 2)
    ([(10, 12), (12, 15)], [(10, 11), (11, 12)], [])
    """
    size = hi - lo
    pieces = min(pieces, size)
    return [(lo + size * n // pieces, lo + size * (n + 1) // pieces) for n in range(pieces)]


def _packed_slices(slices: Sequence[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    """Neighbouring slices together, until there are `size` rows."""
    own: list[tuple[int, int]] = []
    for slice_ in slices:
        own.append(slice_)
        if slice_[1] - own[0][0] >= size:
            yield own
            own = []
    if own:
        yield own


class ResultRows:
    """Turns what an operator sends for windows into rows of Spark's."""

    def __init__(self, plan: QueryPlan, numbered: bool) -> None:
        self.made, self.sent, self.numbered = (
            plan.output.operator_schemas,
            plan.output.spark_schemas,
            numbered,
        )
        self.unpack: Unpack = plan.unpack()
        names = [port.name for port in plan.operator.model.outputs]
        self.late = names.index("late") if "late" in names else 0

    def rows(self, results: Iterable[tuple[int | None, list[Item]]]) -> Iterator[pa.RecordBatch]:
        """The rows of windows, which come with their numbers."""
        for port, batch in self.batches(results):
            yield from self.unpacked(port, pa.Table.from_batches([batch]))

    def batches(
        self, results: Iterable[tuple[int | None, list[Item]]]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each output that is wanted."""
        made = [OutputRows() for _ in self.made]
        for number, items in results:
            for port, *rows in items:
                for row in rows:  # none: it is a punctuation, which stays in the process
                    made[port].add(numbered_row(row, number) if self.numbered else row)
        for port, schema in enumerate(self.sent):
            if schema is not None:
                yield port, fitted(made[port].taken(self.made[port]), schema)

    def unpacked(self, port: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of an output as Spark gets them."""
        return self.unpack.rows(self.unpack.ports[port], rows)

    def late_rows(self, found: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """Rows that came late."""
        return self.rows([(None, [(self.late, load_state(row))]) for row in found])


def numbered_row(row: Any, number: int | None) -> dict[str, Any]:
    """A row with the number of its window."""
    return {**named_row(row), WINDOW: number}


def without_late_rows(
    batches: Iterable[pa.RecordBatch], mark: str, late: list[bytes]
) -> Iterator[pa.RecordBatch]:
    """The rows of windows; late rows, which have no `mark`, go to the list `late`."""
    for batch in batches:
        marks = batch.column(mark)
        if marks.null_count:
            late += batch.filter(marks.is_null()).column(batch.num_columns - 1).to_pylist()
            batch = batch.filter(marks.is_valid())
        yield batch


class SentBatch(NamedTuple):
    """Several sent rows as one batch: their descriptions, and where the tuples of each begin."""

    rows: pa.RecordBatch
    descriptions: list[Any]
    begins: list[int]


def sent_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[SentBatch]:
    """Sent rows in batches of about `ROWS` rows or `BYTES` bytes."""
    found: list[pa.RecordBatch] = []
    said: list[Any] = []
    begins: list[int] = []
    rows = size = 0
    for what, data in _column_values(batches, WHAT, DATA):
        said.append(load_state(what))
        begins.append(rows)
        table = stream_table(data).combine_chunks()
        found += [fitted(part, schema) for part in table.to_batches()]
        rows, size = rows + table.num_rows, size + len(data)
        if rows >= ROWS or size >= BYTES:
            yield SentBatch(_one_batch(found, schema), said, begins)
            found, said, begins, rows, size = [], [], [], 0, 0
    if said:
        yield SentBatch(_one_batch(found, schema), said, begins)


def _column_values(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _one_batch(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)


def _shares_batch(found: Iterable[tuple[bytes | None, ...]]) -> pa.RecordBatch:
    columns = list(zip(*found, strict=True)) or [()] * len(SHARES)
    arrays = [pa.array(column, pa.binary()) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=SHARES.names)


class ApplyFunction:
    """Applies the function of an operator to windows; rows come out."""

    def __init__(self, operator: Operator, schema: pa.Schema, results: ResultRows) -> None:
        self.operator, self.schema, self.results = operator, schema, results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the windows that a task gets."""
        work, late = WindowEvaluator(self.operator), list[bytes]()
        for sent in sent_batches(without_late_rows(batches, WHAT, late), self.schema):
            numbers, extents = [], []
            for (key, fired), base in zip(sent.descriptions, sent.begins, strict=True):
                for each in (SentFiring(*each) for each in fired):
                    numbers.append(each.number)
                    lo, hi = each.lo + base, each.hi + base
                    extents.append(BatchExtent(key, lo, hi, each.moment))
            found = work.windows(sent.rows, extents)
            yield from self.results.rows(zip(numbers, found, strict=True))
        yield from self.results.late_rows(late)
        end_task()


class ComputePartials:
    """Computes the partials of slices.

    Args:
        operator: whose partials they are.
        schema: the columns of the rows.
        keeps: whether the rows go on with them, for a second pass.
    """

    def __init__(self, operator: Operator, schema: pa.Schema, keeps: bool = False) -> None:
        self.operator, self.schema, self.keeps = operator, schema, keeps

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The partials of the shares that a task gets, and late rows as they are."""
        work, late = WindowEvaluator(self.operator), list[bytes]()
        for sent in sent_batches(without_late_rows(batches, WHAT, late), self.schema):
            shares = [SentShare(*each) for each in sent.descriptions]
            extents = [
                BatchExtent(share.key, lo + base, hi + base, 0)
                for share, base in zip(shares, sent.begins, strict=True)
                for lo, hi in share.slices
            ]
            parts = iter(work.partials(sent.rows, extents) if extents else [])
            ends = [*sent.begins[1:], sent.rows.num_rows]
            found = []
            for share, lo, hi in zip(shares, sent.begins, ends, strict=True):
                own = [work.dump_part(next(parts)) for _ in share.slices]
                data = stream_bytes(sent.rows.slice(lo, hi - lo)) if self.keeps else None
                found.append((share.id, dump_state((tuple(share), own)), data))
            yield _shares_batch(found)
        if late:
            yield _shares_batch([(None, None, row) for row in late])
        end_task()


class GroupedShares:
    """The shares of groups of windows, until all of a group are there."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[int, Any]] = {}

    def add(self, id: bytes, place: int, places: int, share: Any) -> list[Any] | None:
        """All shares of a group in their order, if this is the last to come."""
        mine = self._waiting.setdefault(id, {})
        mine[place] = share
        if len(mine) < places:
            return None
        del self._waiting[id]
        return [mine[at] for at in range(places)]


class MergePartials:
    """Merges the partials of each window, in their order, once all of its group are there."""

    def __init__(self, operator: Operator, results: ResultRows) -> None:
        self.operator, self.results = operator, results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the windows that a task gets."""
        work, groups, late = WindowEvaluator(self.operator), GroupedShares(), list[bytes]()
        for batch in without_late_rows(batches, ID, late):
            yield from self.results.rows(self._merged(work, batch, groups))
        yield from self.results.late_rows(late)
        end_task()

    def _merged(
        self, work: WindowEvaluator, batch: pa.RecordBatch, groups: GroupedShares
    ) -> Iterator[tuple[int, list[Item]]]:
        # A partial that several windows share must not be changed by a merge.
        shares = function_of(self.operator).commutative
        for id, what in _column_values([batch], ID, WHAT):
            said, own = load_state(what)
            share = SentShare(*said)
            if (whole := groups.add(id, share.place, share.places, (share, own))) is None:
                continue
            parts = [part for _, some in whole for part in some]
            firings = [SentFiring(*each) for each in whole[0][0].firings]
            stacks = TwoStacks(
                work.operator.merge_parts,
                lambda at, parts=parts: work.load_part(parts[at]),  # type: ignore[misc]
            )
            for each in firings:
                if shares and each.lo < each.hi:
                    found = [stacks.merged(each.lo, each.hi)]
                else:
                    found = [work.load_part(part) for part in parts[each.lo : each.hi]]
                yield each.number, work.finish(share.key, found, each.moment)


class TwoStacks:
    """The merged values of places `[lo, hi)`, both of which only go forward: in two stacks.

    >>> stacks = TwoStacks(lambda a, b: a + b, "abcdefg".__getitem__)
    >>> stacks.merged(0, 3), stacks.merged(1, 4), stacks.merged(2, 4), stacks.merged(5, 7)
    ('abc', 'bcd', 'cd', 'fg')
    """

    def __init__(self, merge: Callable[[Any, Any], Any], load: Callable[[int], Any]) -> None:
        self._merge, self._load = merge, load
        self._lo = self._hi = 0
        self._front: list[Any] = []  # of each place: what is there up to the end of the front
        self._back: Any = None
        self._recent: list[Any] = []  # what the back is merged of

    def merged(self, lo: int, hi: int) -> Any:
        """The value of a range that is not empty."""
        if lo >= self._hi:
            self._lo = self._hi = lo
            self._front, self._recent, self._back = [], [], None
        for at in range(self._hi, hi):
            value = self._load(at)
            self._back = self._merge(self._back, value) if self._recent else value
            self._recent.append(value)
        self._hi = hi
        leaving = lo - self._lo
        if leaving >= len(self._front) and self._recent and leaving:
            self._flip(leaving - len(self._front))
        elif leaving:
            del self._front[len(self._front) - leaving :]
        self._lo = lo
        if not self._front:
            return self._back
        return self._merge(self._front[-1], self._back) if self._recent else self._front[-1]

    def _flip(self, leaving: int) -> None:
        """Move the rest of the back to the front."""
        found: list[Any] = []
        for value in reversed(self._recent[leaving:]):
            found.append(self._merge(value, found[-1]) if found else value)
        self._front, self._recent, self._back = found, [], None


# -- a second pass over the tuples -----------------------------------------------------------------


class ReturnWhole:
    """Merges the partials of each window, and sends the result back to all its parts."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The shares of the windows that a task gets, each with the result of the whole."""
        work, groups = WindowEvaluator(self.operator), GroupedShares()
        for batch in batches:
            found: list[tuple[bytes | None, ...]] = []
            for id, what, data in _column_values([batch], ID, WHAT, DATA):
                if id is None:
                    found.append((None, None, data))
                    continue
                said, own = load_state(what)
                share = SentShare(*said)
                waiting = (share, own, data)
                if (all_of := groups.add(id, share.place, share.places, waiting)) is not None:
                    found += self._with_whole(work, id, all_of)
            yield _shares_batch(found)
        end_task()

    def _with_whole(
        self, work: WindowEvaluator, id: bytes, shares: list[Any]
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        parts = [work.load_part(part) for _, own, _ in shares for part in own]
        whole = work.dump_part(work.merged(parts)) if parts else None
        (firing,) = shares[0][0].firings  # windows that are read twice are sent one by one
        for share, _, data in shares:
            yield id, dump_state((tuple(share), firing, whole)), data


class RereadRows:
    """Sends the rows of parts of windows, given the result of the whole."""

    def __init__(self, operator: Operator, schema: pa.Schema, results: ResultRows) -> None:
        self.operator, self.schema, self.results = operator, schema, results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the shares that a task gets, packed."""
        work = WindowEvaluator(self.operator)
        for batch in batches:
            yield _shares_batch(
                [self._reread(work, *row) for row in _column_values([batch], *SHARES.names)]
            )
        end_task()

    def _reread(
        self, work: WindowEvaluator, id: bytes | None, what: bytes, data: bytes
    ) -> tuple[bytes | None, ...]:
        if id is None:
            return None, None, data
        said, firing, whole = load_state(what)
        share, fired = SentShare(*said), SentFiring(*firing)
        if whole is None:
            items = work.finish(share.key, [], fired.moment)
        else:
            rows = fitted(stream_table(data).combine_chunks().to_batches()[0], self.schema)
            part, items = work.load_part(whole), []
            for lo, hi in share.slices:
                items += work.emit_again(rows, BatchExtent(share.key, lo, hi, fired.moment), part)
        found = self.results.batches([(fired.number, items)])
        packed = [(port, stream_bytes(batch)) for port, batch in found if batch.num_rows]
        return id, dump_state((share.place, share.places)), dump_state(packed)


class CollectRows:
    """Puts the rows of the parts of a window in order."""

    def __init__(self, results: ResultRows) -> None:
        self.results = results

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the windows that a task gets."""
        groups, late = GroupedShares(), list[bytes]()
        for id, what, data in _column_values(without_late_rows(batches, ID, late), *SHARES.names):
            place, places = load_state(what)
            for packed in groups.add(id, place, places, data) or ():
                for port, rows in load_state(packed):
                    yield from self.results.unpacked(port, stream_table(rows))
        yield from self.results.late_rows(late)
        end_task()
