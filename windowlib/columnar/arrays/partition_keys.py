"""Partition keys as small numbers, found for whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.attributes import one_key
from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import need
from windowlib.columnar.arrays.numbering import Ids, IntegerCodes, PairCodes, TextCodes
from windowlib.columnar.primitives import Places, group_keys
from windowlib.window.consumer import Decline

Some = npt.NDArray[np.integer[Any]]

DENSE = 2  # slots of a table for each key up to which rows are sorted by slot

MINUS_ZERO = np.int64(-(1 << 63))  # the bits of -0.0


class PartitionKeys:
    """Numbers for partition keys: the same number for the same key for as long as the table lives.

    Keys are equal as in a dict over the Python values: all NaN are one key, None is one.

    >>> keys = PartitionKeys(("k",), several=False)
    >>> keys.encode([pa.array(["b", "a", "b"])]), keys.encode([pa.array(["a", None])])
    (array([0, 1, 0], dtype=int32), array([1, 2], dtype=int32))
    >>> keys.values([2, 0])
    [None, 'b']
    """

    __slots__ = ("_pairs", "_parts", "_python", "names", "several")

    def __init__(self, names: tuple[str, ...], several: bool) -> None:
        self.names = names
        self.several = several
        self._clear()

    def _clear(self) -> None:
        self._parts = [_Part(name) for name in self.names]
        # Two columns make a pair, that and a third another, and so on.
        self._pairs = [PairCodes() for _ in self.names[1:]]
        self._python: list[Any] = []  # keys as Python values, as far as someone asked

    def __len__(self) -> int:
        return len(self._pairs[-1]) if self._pairs else len(self._parts[0])

    def encode(self, columns: Sequence[Any]) -> Ids:
        """The numbers of the keys of a batch, one per row; new keys get new ones."""
        self._check([column.type for column in columns])
        if not self._pairs:
            return self._parts[0].encode(columns[0])
        first, *others = [
            part.encode(column) for part, column in zip(self._parts, columns, strict=True)
        ]
        for pairs, part, other in zip(self._pairs, self._parts[1:], others, strict=True):
            first = pairs.encode(first, other, len(part))
        return first

    def _check(self, types: Sequence[Any]) -> None:
        for part, kind in zip(self._parts, types, strict=True):
            part.check(kind)

    def table(self, columns: Sequence[Any]) -> tuple[npt.NDArray[np.int64], int, Ids] | None:
        """The keys of a batch as whole numbers, and a table of their numbers from a first key on.

        It may lack some. None: these keys are not that simple.
        """
        if self._pairs:
            return None
        self._parts[0].check(columns[0].type)
        return self._parts[0].table(columns[0])

    def group(self, columns: Sequence[Any]) -> tuple[Places, Places, Places] | None:
        """The rows of a batch by key, as `primitives.group_keys` has them, if that pays."""
        found = self.table(columns)
        if found is None or DENSE * len(self) < len(found[-1]):
            return None
        return group_keys(*found)

    def arrow(self, ids: Some | Sequence[int]) -> list[Any]:
        """The keys with these numbers: one Arrow array for each key column."""
        rest: Some = np.asarray(ids, np.int64)
        if not self._pairs:
            return [self._parts[0].arrow(rest)]
        found = []
        for pairs, part in zip(reversed(self._pairs), reversed(self._parts[1:]), strict=True):
            rest, last = pairs.split(rest)
            found.append(part.arrow(last))
        return [self._parts[0].arrow(rest), *reversed(found)]

    def values(self, ids: Some | Sequence[int]) -> list[Any]:
        """The keys with these numbers, as Python values."""
        known = self._python
        if len(known) < len(self):
            known += self._listed(np.arange(len(known), len(self)))
        return [known[i] for i in np.asarray(ids, np.int64).tolist()]

    def _listed(self, ids: Some) -> list[Any]:
        columns = [array.to_pylist() for array in self.arrow(ids)]
        return [
            one_key(key) for key in (zip(*columns, strict=True) if self.several else columns[0])
        ]

    def adopt(self, keys: Sequence[Any], types: Sequence[Any]) -> Ids:
        """The numbers of Python keys; declined unless they convert exactly to these types."""
        if not keys:
            self._check(types)
            return np.empty(0, np.int32)
        rows = keys if self.several else [(key,) for key in keys]
        if not all(type(row) is tuple and len(row) == len(self.names) for row in rows):
            raise Decline(f"keys that are not one value for each of {', '.join(self.names)}")
        columns = list(zip(*rows, strict=True))
        arrays = []
        for values, kind in zip(columns, types, strict=True):
            array = Column.from_values(list(values), kind).arrow()
            # A key shows as it was first spelled, which an equal one does not.
            if list(map(repr, values)) != list(map(repr, array.to_pylist())):
                raise Decline(f"keys that are not exact as {kind}")
            arrays.append(array)
        return self.encode(arrays)

    def compact(self, ids: Some | Sequence[int]) -> None:
        """Keep only the keys with these numbers; they get new ones, in this order from 0."""
        if len(self):
            kept = self.arrow(ids)
            self._clear()
            self.encode(kept)

    def dump(self, ids: Some | Sequence[int]) -> list[Any]:
        """The keys with these numbers, as Arrow arrays: one for each column."""
        return self.arrow(ids) if len(ids) else []

    def load_dump(self, columns: Sequence[Any], types: Sequence[Any], size: int) -> None:
        """Number so many keys of a dump in their order from 0; there are no others yet."""
        if not columns and not size:
            return
        kinds = [getattr(each, "type", None) for each in columns]
        need(kinds == list(types), "keys of other types")
        need(all(len(each) == size for each in columns), f"there are {size} partitions, not keys")
        need(np.array_equal(self.encode(columns), np.arange(size)), "a key is there twice")


class _Part:
    """Numbers for the values of one key column."""

    __slots__ = ("_came", "_dictionary", "_numbers", "_remap", "_unknown", "name", "type")

    def __init__(self, name: str) -> None:
        self.name = name
        self.type: Any = None  # of the first batch
        self._came: Any = None  # the type of the last batch, which has been checked
        self._numbers: IntegerCodes | TextCodes | _Objects = IntegerCodes()
        self._dictionary: Any = None  # the last one that came, and its values' numbers
        self._remap: Ids = np.empty(0, np.int32)
        self._unknown = 0  # how many of them have no number yet

    def __len__(self) -> int:
        return self._numbers.count

    def check(self, kind: Any) -> None:
        """Decline a type that cannot be a key, or is not the one that came first."""
        if kind == self._came:
            return
        came, kind = kind, physical.plain_type(kind)
        if self.type is None:
            if pa.types.is_nested(kind):
                raise Decline(f"key column {self.name!r} of type {kind}")
            self.type = kind
            if pa.types.is_floating(kind):
                self._numbers = IntegerCodes(limit=0)
            elif not physical.numeric(kind):
                self._numbers = _Objects(kind) if _family(kind) is None else TextCodes(kind)
        if kind != self.type and (_family(kind) is None or _family(kind) != _family(self.type)):
            raise Decline(f"key column {self.name!r} changed type from {self.type} to {kind}")
        self._came = came

    def encode(self, array: Any) -> Ids:
        """The numbers of the values, one per row."""
        if isinstance(array, pa.ChunkedArray):
            found = [self.encode(chunk) for chunk in array.chunks]
            return np.concatenate([np.empty(0, np.int32), *found])
        if isinstance(array, pa.ExtensionArray):
            return self.encode(array.storage)
        if pa.types.is_dictionary(array.type):
            return self._encode_dictionary(array)
        if isinstance(self._numbers, IntegerCodes):
            column = Column.of(array)
            if column.physical:
                return self._numbers.encode(self._bits(column), column.valid)
            known = self.arrow(np.arange(len(self)))  # decimals, and now one is beyond int64
            self._numbers = _Objects(self.type)
            self._numbers.encode(known)  # all distinct: the same numbers again
        try:
            return self._numbers.encode(physical.plain(array))
        except pa.ArrowNotImplementedError as error:
            raise Decline(f"key column {self.name!r} of type {self.type}") from error

    def table(self, array: Any) -> tuple[npt.NDArray[np.int64], int, Ids] | None:
        """The values as whole numbers, with the table of their numbers, if they have one."""
        table = self._numbers.table if isinstance(self._numbers, IntegerCodes) else None
        if table is None or array.type.id not in physical.WHOLE or array.null_count:
            return None
        return Column.of(array).data, *table

    def _bits(self, column: Column) -> npt.NDArray[np.int64]:
        """Integers that are equal where the values are."""
        data: npt.NDArray[Any] = column.data
        if data.dtype.kind != "f":
            return data
        nan = np.isnan(data)
        if nan.any():
            data = np.where(nan, np.nan, data)
        bits: npt.NDArray[np.int64] = data.view(np.int64)
        if (bits == MINUS_ZERO).any():
            raise Decline(f"key column {self.name!r} with -0.0, which shows as 0.0 or not")
        return bits

    def _encode_dictionary(self, array: Any) -> Ids:
        """Look up the numbers of the dictionary's values, found when first used."""
        dictionary = array.dictionary
        if self._dictionary is None or not _equal(self._dictionary, dictionary):
            self._dictionary = dictionary
            self._remap = np.full(len(dictionary) + 1, -1, np.int32)
            self._unknown = len(dictionary)
        entries, nulls = array.indices, array.indices.null_count
        if nulls:
            entries = entries.cast(pa.int64()).fill_null(len(dictionary))
        places = entries.to_numpy().astype(np.intp, copy=False)
        if self._unknown or (nulls and self._remap[-1] < 0):
            self._number(dictionary, places)
        ids: Ids = self._remap.take(places)
        return ids

    def _number(self, dictionary: Any, places: Some) -> None:
        """Number the values of a dictionary at some places that have no number yet."""
        rows = len(places)
        first = np.full(len(self._remap), rows)  # the first row of each value
        np.minimum.at(first, places, np.arange(rows))
        used = np.flatnonzero((first < rows) & (self._remap < 0))
        used = used[np.argsort(first[used])]
        if len(used):
            wanted = pa.array(used, mask=used == len(dictionary))
            self._remap[used] = self.encode(physical.gather(physical.plain(dictionary), wanted))
            self._unknown = int(np.count_nonzero(self._remap[:-1] < 0))

    def arrow(self, ids: Some) -> Any:
        """The values with these numbers."""
        numbers = self._numbers
        if not isinstance(numbers, IntegerCodes):
            return numbers.values.take(pa.array(ids)).cast(self.type)
        data: npt.NDArray[Any] = numbers.values[ids]
        valid = None if numbers.null < 0 else ids != numbers.null
        if pa.types.is_floating(self.type):
            data = data.view(np.float64)
        if valid is not None:
            data = np.where(valid, data, data.dtype.type(0))
        return Column(self.type, data, valid).arrow()


class _Objects:
    """Numbers for values of other types: a dict over the distinct ones."""

    __slots__ = ("_arrays", "_ids")

    def __init__(self, kind: Any) -> None:
        self._ids: dict[Any, int] = {}
        self._arrays: list[Any] = [pa.nulls(0, kind)]

    @property
    def count(self) -> int:
        return len(self._ids)

    @property
    def values(self) -> Any:
        """The value of each number."""
        if len(self._arrays) > 1:
            self._arrays = [pa.concat_arrays(self._arrays)]
        return self._arrays[0]

    def encode(self, array: Any) -> Ids:
        """The numbers of these values; new values get new ones."""
        encoded = array.dictionary_encode(null_encoding="encode")
        distinct, ids = encoded.dictionary, self._ids
        values = distinct.to_pylist()
        fresh = [place for place, value in enumerate(values) if value not in ids]
        if fresh:
            ids.update(zip((values[place] for place in fresh), count(len(ids)), strict=False))
            self._arrays.append(distinct.take(pa.array(fresh)))
        numbers = np.fromiter(map(ids.__getitem__, values), np.int32, len(values))
        found: Ids = numbers[encoded.indices.to_numpy()]
        return found


def _family(kind: Any) -> str | None:
    """What types with equal values have in common: text is text with offsets of any width."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return "text"
    if types.is_binary(kind) or types.is_large_binary(kind) or kind == pa.binary_view():
        return "bytes"
    return None


def same_if_equal(kind: pa.DataType) -> bool:
    """Whether keys of a type that are equal are the same, however they were written."""
    return pa.types.is_integer(kind) or _family(kind) is not None


def _equal(one: Any, other: Any) -> bool:
    """Whether two dictionaries are the same; the same memory needs no look."""
    if one is other:
        return True
    if one.type != other.type or len(one) != len(other):
        return False
    if _memory(one) == _memory(other):
        return True
    # For Arrow 0.0 equals -0.0, which is not to be overlooked.
    return not pa.types.is_floating(one.type) and bool(one.equals(other))


def _memory(array: Any) -> tuple[Any, ...]:
    return array.offset, *[buffer and buffer.address for buffer in array.buffers()]


# Partition keys as small numbers, also those that arrays cannot compare as Python does.


class AnyKeys:
    """Numbers for keys of any type, found for whole batches.

    Arrays are used for as long as they can: a key such as -0.0, which equals 0.0, or a column that
    changes its type is compared by Python, and so are all that come later. Numbers stay.

    >>> import pyarrow as pa
    >>> keys = AnyKeys(("k",), several=False)
    >>> keys.encode([pa.array([2, 1])]), keys.encode([pa.array([1.0, -0.0, 0.0])])
    (array([0, 1], dtype=int32), array([1, 2, 2], dtype=int32))
    >>> keys.values([1, 0])
    [1, 2]
    """

    def __init__(self, names: tuple[str, ...], several: bool) -> None:
        self.names, self.several = names, several
        self._table = PartitionKeys(names, several)
        self._numbers: dict[Any, int] | None = None
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._table) if self._numbers is None else len(self._values)

    def encode(self, columns: Sequence[Any]) -> Ids:
        """The numbers of the keys of a batch, one per row; new keys get new ones."""
        if self._numbers is None:
            try:
                return self._table.encode(columns)
            except Decline:
                self._settle(self._table.values(range(len(self._table))))
        lists = [column.to_pylist() for column in columns]
        rows = zip(*lists, strict=True) if self.several else lists[0]
        return np.array([self._number(row) for row in rows], np.int32)

    def _settle(self, values: list[Any]) -> None:
        """Go on with a dict."""
        self._values = values
        self._numbers = {value: number for number, value in enumerate(values)}

    def _number(self, row: Any) -> int:
        assert self._numbers is not None
        key = one_key(row)
        try:
            found = self._numbers.setdefault(key, len(self._values))
        except TypeError:  # what a dict cannot hold, the operator will refuse
            return self._number(None)
        if found == len(self._values):
            self._values.append(key)
        return found

    def values(self, ids: Some | Sequence[int]) -> list[Any]:
        """The keys with these numbers, as Python values."""
        if self._numbers is None:
            return self._table.values(ids)
        return [self._values[number] for number in ids]

    def load(self, values: Sequence[Any], types: Sequence[Any]) -> None:
        """Number these keys from 0; there are no others yet."""
        try:
            self._table.adopt(values, types)
        except Decline:
            self._settle([one_key(value) for value in values])
