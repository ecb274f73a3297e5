"""Parts as rows of Spark's: tasks compute parts of slices where the rows are, then they are merged.

A slice is a stretch of time between two places where a window starts or ends, so all its tuples
are in the same windows. A part of it then goes through the window like a tuple that came when
the slice began: the same windows fire, and hold the parts of the tuples that they would hold.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.arrivals import Times
from windowlib.attributes import one_key
from windowlib.columnar.primitives import Array, group
from windowlib.columnar.stamps import Stamps, stamps_of
from windowlib.farms.emitter import Emitter
from windowlib.farms.functions import function_of
from windowlib.farms.keys import AnyKeys
from windowlib.farms.models import Slices
from windowlib.farms.work import Given, Work
from windowlib.operator import Operator
from windowlib.spark.batch import END, START
from windowlib.spark.given import window_of
from windowlib.spark.packing import gathered
from windowlib.spark.stages import numbered_row

if TYPE_CHECKING:
    from windowlib.columnar.firings import Firings

AT, PART = "_at", "_part"
SMALL = 1 << 40
"""Up to here, a number for each pair of key and slice fits easily."""


class Slice:
    """Computes the parts of a task's rows: one for each key, and slice if rows have times.

    Args:
        operator: whose parts they are.
        by: the key of its window: a column, several, or none.
        slices: how time is cut; None: all rows of a task arrive at one time.
        times: the column that says when a row arrives.
    """

    def __init__(
        self, operator: Operator, by: Any, slices: Slices | None, times: str | None
    ) -> None:
        self.operator, self.slices, self.times = operator, slices, times
        self.names = by if isinstance(by, tuple) else () if by is None else (by,)
        self.several = isinstance(by, tuple)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parts, with the columns of their key."""
        work = Work(self.operator)
        for batch in gathered(batches):
            yield self._parts(work, batch)

    def _parts(self, work: Work, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids, keys = self._keys(batch)
        start, at = 0, np.zeros(batch.num_rows, np.int64)
        if self.slices is not None:
            start, stamps = self._stamps(batch)
            at = self.slices.of(stamps - start)
        order, starts = _grouped(ids, at)
        first = order[starts[:-1]]
        rows = batch.take(pa.array(order))
        extents = zip(ids[first].tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        given = [Given(keys[id], lo, hi, 0) for id, lo, hi in extents]
        found = [pickle.dumps(part, protocol=5) for part in work.parts(rows, given)]
        columns = {name: batch.column(name).take(pa.array(first)) for name in self.columns}
        if self.slices is not None:
            begins = _begins(self.slices, at[first])
            begins = np.maximum(begins, 0) + start  # the first slice may begin before the first row
            columns[AT] = pa.array(begins, pa.duration("us"))
        return pa.record_batch({**columns, PART: pa.array(found, pa.binary())})

    @property
    def columns(self) -> list[str]:
        """The columns that parts keep of the rows."""
        return list(dict.fromkeys((*self.names, *((START, END) if self.slices else ()))))

    def _keys(self, batch: pa.RecordBatch) -> tuple[Array, list[Any]]:
        """The key of each row as a number, and what the numbers stand for."""
        if not self.names:
            return np.zeros(batch.num_rows, np.int64), [None]
        keys = AnyKeys(self.names, self.several)
        ids = keys.encode([batch.column(name) for name in self.names]).astype(np.int64)
        return ids, keys.values(range(len(keys)))

    def _stamps(self, batch: pa.RecordBatch) -> tuple[int, Stamps]:
        """When the first row of all came, and when these did."""
        assert self.times is not None
        (first,) = batch.slice(0, 1).select([START]).to_pylist()
        found = stamps_of(batch.column(self.times))
        if found is None:  # only Python can read them, or say what is wrong
            read, column = Times(self.times), batch.select([self.times])
            found = np.array([read(row) for row in column.to_pylist()], np.int64)
        return Times(START)(first), found


def _grouped(ids: Array, at: Array) -> tuple[Array, Array]:
    """The rows of each key and slice together, and where each of them starts, with the end."""
    low, width = int(at.min()), int(np.ptp(at)) + 1
    if width * (int(ids.max()) + 1) < SMALL:
        codes = ids * width + (at - low)
        if width * (int(ids.max()) + 1) <= 4 * len(ids):
            order, _, starts = group(codes, width * (int(ids.max()) + 1))
            return order, starts
        order = np.argsort(codes, kind="stable")
        changes = np.diff(codes[order]) != 0
    else:
        order = np.lexsort((at, ids))
        changes = (np.diff(ids[order]) != 0) | (np.diff(at[order]) != 0)
    return order, np.concatenate(([0], np.flatnonzero(changes) + 1, [len(order)]))


def _begins(slices: Slices, numbers: Array) -> Array:
    """Where slices begin, on the axis that starts with the first row."""
    distinct, places = np.unique(numbers, return_inverse=True)
    begins = [int(slices.extent(each)[0]) for each in distinct.tolist()]
    return np.array(begins, np.int64)[places]


class Merger(Emitter):
    """The window of an operator over parts: it sends the rows of what fires.

    Args:
        operator: whose window it is.
        numbered: whether its rows say which window they are from.
    """

    def __init__(self, operator: Operator, numbered: bool = False) -> None:
        self.model = operator.model
        spec, partial, at_end = window_of(operator)
        super().__init__(replace(spec, order_by=None), partial, at_end)
        self.operator, self.name, self.numbered = operator, operator.name, numbered
        # What is computed once must not be changed by those who merge it.
        self._shares = function_of(operator).commutative

    def on_open(self) -> None:
        """A place to merge parts at."""
        super().on_open()
        self._work = Work(self.operator)

    def _consume(self, firings: Firings) -> None:
        (window,) = self.containers
        assert window is not None
        parts = firings.content[PART].arrow()
        lo, hi, keys = firings.lo.tolist(), firings.hi.tolist(), firings.python_keys()
        times = [window._now] * len(keys) if firings.times is None else firings.times.tolist()
        if self._shares:
            found = self._shared(parts, firings.ids.tolist(), lo, hi)
        else:
            found = ([pickle.loads(part.as_py()) for part in parts[a:b]]
                     for a, b in zip(lo, hi, strict=True))  # fmt: skip
        for key, own, now in zip(keys, found, times, strict=True):
            self._finish(key, own, now)

    def _shared(
        self, parts: pa.Array, ids: list[int], lo: list[int], hi: list[int]
    ) -> Iterator[list[Any]]:
        """The parts of each window merged, with what windows of a partition share merged once."""
        stacks: dict[int, Stacks] = {}
        for id, a, b in zip(ids, lo, hi, strict=True):
            if id not in stacks:
                stacks[id] = Stacks(
                    self._work.operator.merge_parts, lambda at: pickle.loads(parts[at].as_py())
                )
            yield [stacks[id].merged(a, b)] if a < b else []

    def _read(self, window: Any, key: Any) -> None:
        self._finish(key, [pickle.loads(row[PART]) for row in window[key]], window._now)

    def _finish(self, key: Any, parts: Sequence[Any], now: int) -> None:
        number = self._number(key) if self.numbered else 0
        for port, *rows in self._work.finish(key, parts, now):
            for row in rows:
                self._outputs[port](numbered_row(row, number) if self.numbered else row)

    def _number(self, key: Any) -> int:
        """How many windows of a key have fired before."""
        found = self._numbers.get(one_key(key), 0)
        self._numbers[one_key(key)] = found + 1
        return found

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns that keep the operator's work apart."""
        return self.operator.splits_by(port)


class Stacks:
    """The merged values of places `[lo, hi)`, both of which only go forward: in two stacks.

    >>> stacks = Stacks(lambda a, b: a + b, "abcdefg".__getitem__)
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
        """What is left of the back becomes the front."""
        found: list[Any] = []
        for value in reversed(self._recent[leaving:]):
            found.append(self._merge(value, found[-1]) if found else value)
        self._front, self._recent, self._back = found, [], None
