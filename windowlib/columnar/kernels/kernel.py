"""The base of kernels: state as planes, arrays with one value for each run of rows."""

from __future__ import annotations

from collections.abc import Sequence
from sys import byteorder
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import need, packed, unpacked, values_at
from windowlib.columnar.arrays.physical import KINDS, LIMIT, arrow, max_magnitude
from windowlib.columnar.arrays.value_pool import ValuePool
from windowlib.columnar.primitives import Array, Places, sums
from windowlib.summaries.folds import Fold
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.primitives.arrivals import ArrivalRuns, SliceRows

Plane = Array | None
"""One number for each run of rows; None: zero for all, which costs nothing."""
Planes = tuple[Any, ...]
Values = tuple[Column, ...]
Result = Any
"""What comes out for some firings: an Arrow array, or a list where Arrow has no exact type."""


class Kernel:
    """One aggregate function: state as planes, one place of each for a run of rows.

    `partial` makes the planes of runs, `merge` those of two runs in a row, `combine` those of
    several that stand side by side, and `finish` the results. `save` and `load` exchange them with
    the folds of the event engine, in the form of their snapshots.
    """

    dtypes: tuple[Any, ...] = ()
    mostly_zero: tuple[int, ...] = ()  # planes that may be None
    pool: ValuePool | None = None  # what holds the values, if the first plane numbers them
    overlaps = True  # whether it looks at fewer rows than the extents have, if they overlap
    most = 0  # how many rows a window has at most; 0: any number

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        self.fold, self.types = fold, tuple(types)

    @classmethod
    def for_types(cls, fold: Fold, types: Sequence[pa.DataType]) -> Kernel:
        """The kernel for columns of these types; `Decline` if there is none."""
        return cls(fold, types)

    def partial(self, values: Values, lo: Array, hi: Array) -> Planes:
        """The state of each run of places."""
        raise NotImplementedError

    def takes_spread(self, values: Values) -> bool:
        """Whether `spread` can do for these values what `partial` does."""
        return False

    def spread(self, values: Values, ids: Array, partitions: int) -> Planes:
        """The state of the rows of each partition, given a partition number for each row."""
        raise NotImplementedError

    def takes_arrivals(self, values: Values) -> bool:
        """Whether `arrived` can do for these values what `partial` does."""
        return False

    def arrived(self, values: Values, runs: ArrivalRuns, state: Planes) -> tuple[Planes, Planes]:
        """The state of the runs that close among rows in order of arrival, and of open ones.

        Args:
            values: of each row.
            runs: which rows are of one run.
            state: of the open run of each partition.
        """
        raise NotImplementedError

    def slid(self, closed: Planes, rows: SliceRows, carried: Planes) -> Planes:
        """The state of the windows that end with the slices that close.

        Args:
            closed: the state of these slices.
            rows: which of them are of one partition.
            carried: the state of those that partitions carry.
        """
        raise NotImplementedError

    def merge(self, a: Planes, b: Planes) -> Planes:
        """The state of two runs together, the earlier first."""
        raise NotImplementedError

    def combine(self, planes: Planes, lo: Array, hi: Array) -> Planes:
        """The state of the runs in each extent together; no extent is empty."""
        raise NotImplementedError

    def singles(self, values: Values) -> Planes:
        """The state of each row by itself."""
        places = np.arange(len(values[0]) if values else 0)
        return self.partial(values, places, places + 1)

    def slide(self, carried: Planes, planes: Planes, size: int, length: int) -> Planes:
        """The state of each `length` runs in a row, of `size` runs behind one less than a length.

        Args:
            carried: the state of the runs that come first.
            planes: the state of the others.
            size: how many others there are.
            length: how many runs go together.
        """
        lo = np.arange(size)
        return self.combine(concat_planes(carried, planes, length - 1, size), lo, lo + length)

    def finish(self, planes: Planes, n: Array) -> Result:
        """The results, of `n` tuples each."""
        raise NotImplementedError

    def save(self, planes: Planes, n: Array) -> list[Any]:
        """The states, as the fold's `save` returns them."""
        raise NotImplementedError

    def load(self, saved: Sequence[Any], n: Array) -> Planes:
        """The planes of states that `save` wrote; `Decline` if they do not fit these columns."""
        raise NotImplementedError


def masked(data: Array, valid: Array | None = None) -> pa.Array:
    """An Arrow array, null where `valid` is false."""
    if valid is None or valid.all():
        return arrow(data, None, KINDS[data.dtype]) if data.dtype in KINDS else pa.array(data)
    return pa.array(data, mask=~valid)


def column(kind: pa.DataType, data: Array, valid: Array | None = None) -> pa.Array:
    """An Arrow array of a type, from physical values."""
    if valid is not None and valid.all():
        valid = None
    return Column(kind, data, valid).arrow()


def nulls(valid: Array | None, lo: Array, hi: Array) -> Plane:
    """How many values of each run are null."""
    missing = nullity(valid)
    return None if missing is None else sums(missing, lo, hi)


def nullity(valid: Array | None) -> Array | None:
    """1 for each null; None: there is none."""
    return None if valid is None or valid.all() else (~valid).astype(np.int64)


def totals(plane: Plane, lo: Array, hi: Array) -> Plane:
    """The sum of a plane over each extent."""
    return None if plane is None else sums(plane, lo, hi)


def added(a: Plane, b: Plane) -> Plane:
    """Two planes together."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def dense_plane(plane: Plane, like: Array, dtype: Any = np.int64) -> Array:
    """A plane as an array, which it may already be."""
    return np.zeros(len(like), dtype) if plane is None else plane


def some(nulls: Plane, n: Array) -> Array | None:
    """Which runs of `n` rows have a value; None: all."""
    if nulls is None and none_empty(n):
        return None
    known: Array = n > dense_plane(nulls, n)
    return known


def repeated(number: int, length: int) -> Places:
    """An array that repeats one number without a copy; read-only.

    >>> repeated(7, 3).tolist()
    [7, 7, 7]
    """
    bits = number.to_bytes(np.intp().itemsize, byteorder)  # which is read-only
    return np.ndarray((length,), np.intp, bits, strides=(0,))


def none_empty(n: Array) -> bool:
    """Whether all sizes are above 0; one that is repeated without a copy is looked at once."""
    if n.strides == (0,):
        return not len(n) or bool(n[0])
    return bool(n.all())


def planes_at(planes: Planes, places: Any) -> Planes:
    """Some places of all planes."""
    return tuple([None if plane is None else plane[places] for plane in planes])


def concat_planes(a: Planes, b: Planes, *lengths: int) -> Planes:
    """The places of some runs, and behind them those of others; `lengths` says how many each."""
    found: list[Plane] = []
    for x, y in zip(a, b, strict=True):
        if x is None and y is None:
            found.append(None)
            continue
        kind = (y if x is None else x).dtype
        both = [np.zeros(n, kind) if p is None else p for p, n in zip((x, y), lengths, strict=True)]
        found.append(np.concatenate(both))
    return tuple(found)


def planes_with(planes: Planes, places: Array, new: Planes, size: int) -> Planes:
    """The planes with other numbers at some places."""
    found: list[Plane] = []
    for plane, other in zip(planes, new, strict=True):
        if plane is None and other is not None:
            plane = np.zeros(size, other.dtype)
        if plane is not None:
            plane[places] = 0 if other is None else other
        found.append(plane)
    return tuple(found)


def check_bounded(data: Plane, times: int) -> None:
    """Decline whole numbers whose sum might exceed 64 bits."""
    if data is not None and max_magnitude(data) * max(times, 1) >= LIMIT:
        raise Decline("a sum of whole numbers might need more than 64 bits")


def physical(name: str, kind: pa.DataType) -> None:
    """Decline types that have no physical values."""
    if not (is_number(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind)):
        raise Decline(f"{name} of {kind} needs Python values")


def data_of(values: Column) -> Array:
    """The physical values of a column; decimals may have none, if they are too large."""
    if not values.physical:
        raise Decline(f"values of {values.type} beyond 64 bits")
    data: Array = values.data
    return data


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a number: whole, float or decimal. Null counts, having no values."""
    types = pa.types
    whole_or_float = types.is_integer(kind) or types.is_floating(kind)
    return bool(whole_or_float or types.is_decimal128(kind) or types.is_null(kind))


def plain_places(fold: Fold, saved: Sequence[Any]) -> list[list[Any]]:
    """The places of plain values in saved states; lists are for the event engine."""
    plain = [fold.from_saved(each) for each in saved]
    if any(each is None for each in plain):
        raise Decline(f"{fold.name} of lists so far")
    return [each for each in plain if each is not None]


class PartialStore:
    """The planes of one kernel, one place for each partition, or one row of places."""

    def __init__(self, kernel: Kernel, width: int = 0) -> None:
        shape = (0, width) if width else (0,)
        self.planes = [np.zeros(shape, dtype) for dtype in kernel.dtypes]
        # Planes that hold nothing but zeros so far, of those that need not be there.
        self._zero = [i in kernel.mostly_zero for i in range(len(kernel.dtypes))]

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        for i, old in enumerate(self.planes):
            if len(old) < size:
                new = np.zeros((max(size, 2 * len(old), 64), *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                self.planes[i] = new

    def take(self, places: Places | slice) -> Planes:
        """The planes at some places, which number partitions, or all places of all rows."""
        return tuple(
            None if zero else plane.reshape(-1)[places]
            for plane, zero in zip(self.planes, self._zero, strict=True)
        )

    def all_planes(self) -> Planes:
        """The planes of all partitions, not to be changed."""
        pairs = zip(self.planes, self._zero, strict=True)
        return tuple([None if zero else plane for plane, zero in pairs])

    def replace(self, planes: Planes) -> None:
        """Replace the planes of all partitions; None: a plane of zeros stays one."""
        for i, new in enumerate(planes):
            if new is not None:
                self.planes[i], self._zero[i] = new, False

    def places(self, beside: Planes) -> Planes:
        """All places of all rows, one after the other; None where neither they nor others count."""
        found: list[Plane] = []
        for i, (plane, other) in enumerate(zip(self.planes, beside, strict=True)):
            self._zero[i] = self._zero[i] and other is None
            found.append(None if self._zero[i] else plane.reshape(-1))
        return tuple(found)

    def put(self, places: Places | slice, planes: Planes) -> None:
        """Replace the planes at some places."""
        for i, new in enumerate(planes):
            if self._zero[i] and (new is None or not new.any()):
                continue
            self._zero[i] = False
            self.planes[i].reshape(-1)[places] = 0 if new is None else new

    def dump(self, ids: Places) -> list[Array | None]:
        """The planes of some partitions; None: nothing but zeros."""
        pairs = zip(self.planes, self._zero, strict=True)
        return [None if zero else packed(values_at(plane, ids)) for plane, zero in pairs]

    def load_dump(self, ids: Places, planes: Sequence[Array | None]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        need(len(planes) == len(self.planes), f"{len(planes)} planes")
        for i, (mine, given) in enumerate(zip(self.planes, planes, strict=True)):
            if given is None:
                need(self._zero[i], "a plane is missing")
                continue
            mine[ids] = unpacked(given, mine.dtype, len(ids), *mine.shape[1:])
            self._zero[i] = False
