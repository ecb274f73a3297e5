"""A column of a batch: numbers that arrays can compute with, or the Arrow array where none fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.numbering import IntegerCodes
from windowlib.columnar.arrays.physical import Valid
from windowlib.columnar.primitives import gather
from windowlib.window.consumer import Decline

Places = npt.NDArray[np.integer[Any]]

MANY = 4
"""Of so many values, one that is taken makes it worth while to go over all of them before."""


class Column:
    """Values of one Arrow type, with nulls: int64 or float64 numbers where the type has them.

    `type` is the Arrow type that the values came from and go back to, without an encoding: the
    value type of dictionaries and runs, the storage type of extensions. `data` are the values:
    scaled integers for decimals, counts of the unit for dates and times, wall clocks for
    timestamps of a zone with summer time (Python compares and subtracts these), 0 for nulls; or
    the Arrow array itself for types without numbers and for decimals beyond int64. `valid` says
    which values are there; None: all.

    >>> column = Column.of(pa.array([3, None, 4], pa.int8()))
    >>> column.data, column.valid
    (array([3, 0, 4]), array([ True, False,  True]))
    >>> column.take(np.array([2, 1])).arrow().to_pylist()
    [4, None]
    """

    __slots__ = ("data", "physical", "type", "valid")

    def __init__(self, type: Any, data: Any, valid: Valid = None) -> None:
        self.type = type
        self.data = data
        self.valid = valid
        self.physical = isinstance(data, np.ndarray)
        """Whether the data are numbers."""

    def __repr__(self) -> str:
        return f"Column({self.type}, {len(self)} values, {self.nulls} nulls)"

    @classmethod
    def of(cls, array: Any) -> Column:
        """The column of an Arrow array, chunked or not; a view of it where possible."""
        if array.type.id in physical.WHOLE and isinstance(array, pa.Array) and not array.null_count:
            return cls(array.type, physical.numbers(array, None))
        array = physical.plain(array)
        valid = physical.validity(array)
        found = physical.numbers(array, valid)
        return cls(array.type, array if found is None else found, valid)

    @classmethod
    def from_values(cls, values: list[Any], type: Any) -> Column:
        """The column of Python values; declined unless all of them convert exactly.

        >>> Column.from_values([1.5, None, 2.5], pa.float64()).data
        array([1.5, 0. , 2.5])
        """
        kind = physical.plain_type(type)
        try:
            array = pa.array(values, kind)
            back = array.to_pylist()
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise Decline(f"values that are no {kind}") from error
        if not all(map(_same, values, back)):
            raise Decline(f"values that are not exact as {kind}")
        return cls.of(array)

    @classmethod
    def concat(cls, columns: Sequence[Column]) -> Column:
        """The values of several columns of one type, one after the other."""
        first = columns[0]
        for other in columns:
            if other.type != first.type:
                raise Decline(f"a column changed type from {first.type} to {other.type}")
        if len(columns) == 1:
            return first
        valid = None
        if any(column.valid is not None for column in columns):
            valid = np.concatenate([column.validity() for column in columns])
        if all(column.physical for column in columns):
            return cls(first.type, np.concatenate([column.data for column in columns]), valid)
        return cls(first.type, pa.concat_arrays([column.arrow() for column in columns]), valid)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def floating(self) -> bool:
        """Whether the data are floats."""
        return self.physical and self.data.dtype.kind == "f"

    @property
    def nulls(self) -> int:
        """How many values are missing."""
        return 0 if self.valid is None else len(self) - int(np.count_nonzero(self.valid))

    def validity(self) -> npt.NDArray[np.bool_]:
        """Which values are there."""
        return np.ones(len(self), bool) if self.valid is None else self.valid

    def take(self, places: Places) -> Column:
        """The values at these places, in this order."""
        valid = None if self.valid is None else self.valid[places]
        if self.physical:
            return Column(self.type, self.data.take(places, mode="clip"), valid)
        return Column(self.type, physical.gather(self.data, pa.array(places)), valid)

    def gathered(self, places: npt.NDArray[np.intp]) -> Column:
        """The same, faster where many of the values are taken that are not in the cache."""
        if not self.physical or len(self) > MANY * len(places):
            return self.take(places)
        valid = None if self.valid is None else self.valid[places]
        return Column(self.type, gather(self.data, places), valid)

    def take_or_null(self, places: Places) -> Column:
        """The values at these places, null for places below 0."""
        missing = places < 0
        if not missing.any():
            return self.take(places)
        if not self.physical:
            data = physical.gather(self.data, pa.array(places, mask=missing))
            return Column(self.type, data, physical.validity(data))
        if not len(self):
            return Column(self.type, np.zeros(len(places), self.data.dtype), ~missing)
        found = self.take(np.where(missing, 0, places))
        valid = found.validity() & ~missing
        return Column(self.type, np.where(valid, found.data, found.data.dtype.type(0)), valid)

    def slice(self, lo: int, hi: int) -> Column:
        """The values at places lo to hi, hi excluded; a view."""
        valid = None if self.valid is None else self.valid[lo:hi]
        data = self.data[lo:hi] if self.physical else self.data.slice(lo, max(hi - lo, 0))
        return Column(self.type, data, valid)

    def with_values(self, data: npt.NDArray[Any], valid: Valid = None, type: Any = None) -> Column:
        """A column of new numbers of the same type, or of another."""
        return Column(self.type if type is None else type, data, valid)

    def arrow(self) -> Any:
        """The Arrow array of these values."""
        return physical.arrow(self.data, self.valid, self.type) if self.physical else self.data

    def order_keys(self) -> npt.NDArray[Any]:
        """Numbers that compare like the values; anything where there is none.

        >>> Column.of(pa.array(["b", "a", None, "b"])).order_keys()[[0, 1, 3]]
        array([1, 0, 1])
        """
        if self.physical:
            data: npt.NDArray[Any] = self.data
            return data
        codes, distinct = self.codes()
        try:
            order = pc.array_sort_indices(_sortable(distinct.data)).to_numpy()
        except pa.ArrowNotImplementedError as error:
            raise Decline(f"{self.type} has no order") from error
        ranks = np.empty(len(order) + 1, np.int64)
        ranks[order] = np.arange(len(order))
        ranks[-1] = 0  # where the nulls, code -1, look
        return ranks[codes]

    def codes(self) -> tuple[npt.NDArray[np.int64], Column]:
        """A number for each distinct value, in order of first appearance, -1 for null; and them.

        >>> codes, distinct = Column.of(pa.array([7.5, None, 0.0, 7.5, -0.0])).codes()
        >>> codes, distinct.arrow().to_pylist()
        (array([ 0, -1,  1,  0,  1]), [7.5, 0.0])
        """
        if not self.physical:
            return self._encoded()
        data: npt.NDArray[Any] = self.data
        limit = max(1024, 4 * len(data))  # a table of many more slots than rows does not pay
        if self.floating:
            data = data + 0.0  # one spelling of zero, and below of NaN
            data[np.isnan(data)] = np.nan
            data, limit = data.view(np.int64), 0
        numbers = IntegerCodes(limit)
        codes = np.full(len(data), -1, np.int64)
        if self.valid is None:
            codes[:] = numbers.encode(data)
        else:
            codes[self.valid] = numbers.encode(data[self.valid])
        distinct = self.with_values(numbers.values.view(self.data.dtype))
        if self.floating:
            distinct.data[distinct.data == 0] = self.data[self.validity() & (self.data == 0)][:1]
        return codes, distinct

    def _encoded(self) -> tuple[npt.NDArray[np.int64], Column]:
        try:
            encoded = _sortable(self.data).dictionary_encode()
        except pa.ArrowNotImplementedError as error:
            raise Decline(f"values of {self.type} cannot be told apart") from error
        codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        return codes, Column(self.type, encoded.dictionary.cast(self.type))


def _sortable(array: Any) -> Any:
    """The same values in a type that Arrow sorts and encodes."""
    stand_in = physical.VIEWS.get(array.type)
    return array if stand_in is None else array.cast(stand_in)


def _same(value: Any, back: Any) -> bool:
    """Whether a value came back from Arrow as it went."""
    if type(value) is not type(back):  # 1 among floats stays 1 where it is picked
        return False
    if isinstance(value, dict):
        return list(value) == list(back) and all(map(_same, value.values(), back.values()))
    if isinstance(value, list | tuple):
        return len(value) == len(back) and all(map(_same, value, back))
    if getattr(value, "tzinfo", None) != getattr(back, "tzinfo", None):
        return False
    return bool(value == back or (value != value and back != back))


# Tuples of the event engine as columns, where they come back as they went in.


def exact_columns(
    tuples: Sequence[Any], names: Sequence[str], type_of: Callable[[str], Any]
) -> list[Column]:
    """The columns of rows that have these and no others, and no value that a type would change.

    1 is as good as 1.0 where values are compared; a row that comes out again must not show it.
    """
    listed = list(names)
    for tuple_ in tuples:
        if type(tuple_) is not dict or list(tuple_) != listed:
            raise Decline("tuples that are no rows of these columns")
    columns = []
    for name in names:
        values = [tuple_[name] for tuple_ in tuples]
        column = Column.from_values(values, type_of(name))
        if repr(values) != repr(column.arrow().to_pylist()):
            raise Decline("values that these columns would change")
        columns.append(column)
    return columns
