"""What comes out of an engine for a batch, and how it reaches those who are told.

Firings come in order, with the values of all functions of a plan. An operator consumes them as
columns; a handler is called for each of them, with a view of the rows that it fires for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.partition_keys import PartitionKeys
from windowlib.columnar.arrays.physical import gather
from windowlib.columnar.kernels.kernel import Result, none_empty, repeated
from windowlib.columnar.primitives import NONE, Places, ranges
from windowlib.errors import AccessError
from windowlib.spec.specification import Spec
from windowlib.window.arrow import no_column
from windowlib.window.consumer import Decline, FiringFailed

if TYPE_CHECKING:
    from windowlib.window.container import Window

FIRING = {"before_flush", "on_trigger"}
"""Events that a batch can tell of at once."""


@dataclass(slots=True)
class Groups:
    """The groups of all firings, those of one next to each other, in order of first tuples."""

    counts: Places
    """How many groups each firing has."""
    columns: list[pa.Array]
    """The key of each group: an array for each column."""
    sizes: Places
    """How many tuples each group has."""
    values: list[Result]
    """The values of each function of the plan, one a group."""


@dataclass(slots=True)
class Firings:
    """Flushes or triggers, in the order in which the event engine fires them."""

    keys: PartitionKeys | None
    """What partitions are called; None: there is only one."""
    ids: Places
    """The partition of each firing."""
    sizes: Places
    """How many tuples it has; 0: it fires, and is empty."""
    values: list[Any]
    """The values of each function of the plan: an Arrow array or a list, one a firing."""
    rows: Places
    """The row of the batch that fires it."""
    groups: Groups | None = None
    """Where a plan has groups: those of each firing, with the values; `values` is then empty."""
    lo: Places = field(default_factory=lambda: NONE)
    hi: Places = field(default_factory=lambda: NONE)
    content: Any = None
    """Where rows are kept: the extents of the firings, and the columns they are extents of."""
    times: Any = None
    """When each happens, in microseconds; None: now."""
    bounds: tuple[pa.Array, pa.Array] | None = None
    """Of windows of event time: where each starts, and where it ends."""

    def __len__(self) -> int:
        return len(self.ids)

    def behind(self, done: int) -> Firings:
        """All but the first few of event-time windows, with the numbers that they have here."""
        assert self.bounds is not None
        rest = slice(done, None)
        values = [each[rest] for each in self.values]
        made = Firings(self.keys, self.ids[rest], self.sizes[rest], values, self.rows[rest])
        made.bounds = self.bounds[0][rest], self.bounds[1][rest]
        made.lo, made.hi, made.content = self.lo[rest], self.hi[rest], self.content
        return made

    def python_keys(self) -> list[Any]:
        """The key of each firing, as handlers get it."""
        if self.keys is None:
            return [None] * len(self.ids)
        return self.keys.values(self.ids)


def results_in_order(values: Result, order: Places | slice) -> Result:
    """Results in another order; a slice of all is the one they are in."""
    return values if isinstance(order, slice) else take_results(values, order)


class Entries:
    """What rows are made of: an entry for each group of a firing.

    Without groups, a firing is one entry, or none if it is empty.
    """

    def __init__(self, firings: Firings) -> None:
        self.firings, groups = firings, firings.groups
        self._owners: Places | slice = slice(None)
        self.counts = repeated(1, len(firings))
        """How many entries each firing has."""
        if groups is not None or not none_empty(firings.sizes):
            whole = (firings.sizes > 0).astype(np.intp)
            self.counts = whole if groups is None else groups.counts
            self._owners = np.repeat(np.arange(len(firings)), self.counts)

    def __len__(self) -> int:
        plain = isinstance(self._owners, slice)
        return len(self.firings) if plain else len(self._owners)  # type: ignore[arg-type]

    def keys(self) -> list[pa.Array]:
        """The columns of the partition key, and of the group."""
        found: list[pa.Array] = []
        if self.firings.keys is not None:
            found += self.firings.keys.arrow(self.firings.ids[self._owners])
        if self.firings.groups is not None:
            found += self.firings.groups.columns
        return found

    def values(self, function: int) -> Result:
        """The values of one function of the plan."""
        if self.firings.groups is not None:
            return self.firings.groups.values[function]
        found = self.firings.values[function]
        return found if isinstance(self._owners, slice) else take_results(found, self._owners)

    def whole_sizes(self) -> pa.Array:
        """How many tuples the firing of each entry has."""
        return pa.array(self.firings.sizes[self._owners])

    def group_counts(self) -> pa.Array:
        """How many groups the firing of each entry has."""
        return pa.array(self.counts[self._owners])

    def group_sizes(self) -> pa.Array:
        """The sizes of all groups of the firing of each entry, a list for each."""
        groups = self.firings.groups
        sizes = self.firings.sizes[self._owners] if groups is None else groups.sizes
        lengths = self.counts[self._owners]
        first = (np.cumsum(self.counts) - self.counts)[self._owners]
        offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
        return pa.ListArray.from_arrays(offsets, pa.array(sizes[ranges(first, lengths)]))

    def window_starts(self) -> Result:
        """Where the window of event time of each entry starts."""
        return self._bound(0)

    def window_ends(self) -> Result:
        """Where the window of event time of each entry ends."""
        return self._bound(1)

    def _bound(self, which: int) -> Result:
        assert self.firings.bounds is not None
        found = self.firings.bounds[which]
        return found if isinstance(self._owners, slice) else take_results(found, self._owners)

    def revisions(self) -> pa.Array:
        """How often the window of each entry was sent before: never, in batches."""
        return pa.array(np.zeros(len(self), np.int64))

    def retractions(self) -> pa.Array:
        """Whether each entry takes back what was sent: none does, in batches."""
        return pa.array(np.zeros(len(self), bool))

    def counted(self, keep: npt.NDArray[np.bool_]) -> Places:
        """How many entries each firing has of those to keep."""
        if isinstance(self._owners, slice):
            return keep.astype(np.intp)
        found: Places = np.bincount(self._owners[keep], minlength=len(self.firings))
        return found


def scatter_results(values: Any, some: Any) -> Any:
    """The values of some firings among all of them, with nulls for the others.

    >>> scatter_results(pa.array([7, 8]), np.array([True, False, True])).to_pylist()
    [7, None, 8]
    """
    if some.all():
        return values
    places = np.cumsum(some) - 1
    if isinstance(values, list):
        listed = zip(places.tolist(), some.tolist(), strict=True)
        return [values[place] if there else None for place, there in listed]
    return gather(values, pa.array(places, mask=~some))


# Results of functions, Arrow arrays or lists: some of them, several together, and their truth.


def as_list(result: Result) -> list[Any]:
    """The results as Python values."""
    return result if isinstance(result, list) else result.to_pylist()


def take_results(result: Result, places: Places) -> Result:
    """The results at some places, in this order.

    >>> take_results(pa.array([3, 1, 2]), np.array([2, 0])).to_pylist()
    [2, 3]
    >>> take_results([3, 1, 2], np.array([1]))
    [1]
    """
    if isinstance(result, list):
        return [result[place] for place in places.tolist()]
    return gather(result, pa.array(places))


def concat_results(results: Sequence[Result]) -> Result:
    """Results one after the other: as an array if all are arrays of one type, or as a list."""
    if len(results) == 1:
        return results[0]
    arrays = [each for each in results if not isinstance(each, list)]
    if len(arrays) == len(results) and len({each.type for each in arrays}) == 1:
        return pa.concat_arrays(arrays)
    return [value for each in results for value in as_list(each)]


def truth(result: Result) -> npt.NDArray[np.bool_]:
    """Which results are true, as Python sees it; null is not.

    >>> truth(pa.array([True, False, None])), truth(["", "a", None])
    (array([ True, False, False]), array([False,  True, False]))
    """
    if not isinstance(result, list) and _plain(result.type):
        column = Column.of(result)
        true: npt.NDArray[np.bool_] = column.data != 0
        return true if column.valid is None else true & column.valid
    return np.array([bool(value) for value in as_list(result)], bool)


def _plain(kind: pa.DataType) -> bool:
    """Whether zero is false and every other value true; at a time of day, 0 is midnight."""
    types = pa.types
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))


def as_column(result: Result) -> Column:
    """The results as a column, to compute with."""
    if isinstance(result, list):
        raise Decline("values without an Arrow type")
    return Column.of(result)


# Handlers that read columns: they are called with a view of the rows they fire for.


class FiredRows:
    """The rows of one firing: an extent of those that the firings of a batch have in common.

    A view of it says what handlers may not ask for, which makes Python look up each of its
    attributes the slow way; what a handler reads for every firing is here.
    """

    __slots__ = ("_batch", "_whole", "hi", "key", "lo", "rows")

    def __init__(self, rows: Mapping[str, Column] | pa.RecordBatch) -> None:
        self.rows = rows
        self.key: Any = None
        self.lo = self.hi = 0
        self._whole: dict[str, Any] = {}
        self._batch = rows if isinstance(rows, pa.RecordBatch) else None

    def column(self, name: str, key: Any = None) -> Any:
        """The values of a column, as a numpy array that shares their memory if it can."""
        if key is not self.key:
            self.check(key)
        found = self._whole.get(name)
        if found is None:  # no handler for a KeyError, which a message about the name would show
            found = self._whole[name] = _shared(self.rows, name)
        if type(found) is np.ndarray:
            return found[self.lo : self.hi]
        return found.slice(self.lo, self.hi - self.lo).to_numpy(zero_copy_only=False)

    def arrow(self, key: Any = None) -> pa.RecordBatch:
        """The rows as an Arrow batch that shares their memory."""
        self.check(key)
        if self._batch is None:
            self._batch = pa.record_batch({name: each.arrow() for name, each in self.rows.items()})
        return self._batch.slice(self.lo, self.hi - self.lo)

    def check(self, key: Any) -> None:
        """Refuse any key but that of the firing."""
        if key is not self.key and key != self.key:
            msg = (
                f"window, key {key!r}: a handler with content='arrow' is called for "
                f"{self.key!r} and may read that partition only. Pass the key that it got, or say "
                f"content='tuples'."
            )
            raise AccessError(msg)


class FiringView:
    """One firing, as its handler sees the window: the partition that it was called for."""

    def __init__(self, window: Window[Any, Any], fired: FiredRows) -> None:
        self._window = window
        self.fired = fired
        """The rows; they become those of another firing when the handler is called for it."""
        self.column, self.arrow = fired.column, fired.arrow

    @property
    def spec(self) -> Spec:
        """The specification of the window."""
        return self._window.spec

    @property
    def port(self) -> int:
        """The input of its operator, by number."""
        return self._window.port

    @property
    def now(self) -> float:
        """The window's time in seconds."""
        return self._window.now

    def __getitem__(self, key: Any) -> list[Any]:
        found: list[Any] = self.arrow(key).to_pylist()
        return found

    def size(self, key: Any = None) -> int:
        """How many tuples it holds."""
        self.fired.check(key)
        return self.fired.hi - self.fired.lo

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # what Python itself asks for
            raise AttributeError(name)
        msg = (
            f"window.{name}: a handler with content='arrow' has column, arrow, size, spec, port "
            f"and now. Use these, or say content='tuples'."
        )
        raise AccessError(msg)


def _shared(rows: Mapping[str, Column] | pa.RecordBatch, name: str) -> Any:
    """A whole column as numpy, or as Arrow where nulls make its type depend on the slice."""
    names = rows.schema.names if isinstance(rows, pa.RecordBatch) else list(rows)
    if not names:  # of an idle window before the first row
        return np.empty(0)
    if name not in names:
        raise AccessError(no_column(name, names))
    array = rows[name] if isinstance(rows, pa.RecordBatch) else rows[name].arrow()
    return array if array.null_count else array.to_numpy(zero_copy_only=False)


def handler_consumer(
    window: Window[Any, Any], handler: Callable[..., None]
) -> Callable[[Firings], None]:
    """What tells a handler of all firings of a batch."""

    def call(firings: Firings) -> None:
        fired = FiredRows(firings.content)
        view = FiringView(window, fired)
        pairs = zip(
            firings.python_keys(),
            firings.lo.tolist(),
            firings.hi.tolist(),
            firings.rows.tolist(),
            strict=True,
        )
        times = None if firings.times is None else firings.times.tolist()
        cause = None if window.state.batches is None else window.state.batches.cause
        for at, (key, lo, hi, row) in enumerate(pairs):
            fired.key, fired.lo, fired.hi = key, lo, hi
            if times is not None:
                window.state.now = times[at]
            if cause is not None:
                cause(row)
            try:
                handler(view, key)
            except Exception as error:
                raise FiringFailed(row, error) from error

    return call
