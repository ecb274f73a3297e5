"""Approximate functions: a sketch for each open subwindow, which takes values by the column.

The sketches are those of the event engine, and have the same state as if the values had come one
by one: their digests are computed for a whole column, or they take values in bulk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.arrays.encoding import need
from windowlib.columnar.extents.layout import Extents
from windowlib.columnar.kernels.functions import Function
from windowlib.columnar.kernels.kernel import Result, Values, is_number
from windowlib.columnar.primitives import Array, Places, compiles
from windowlib.errors import SchemaError
from windowlib.spec.policies import Attribute
from windowlib.window.consumer import Decline

EXACT = 2**53
"""Whole numbers up to here are floats."""
FEW_STRINGS = 64
"""Strings up to this many are compared in Python."""


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_plain(column: Column) -> bool:
    """Whether the data are the values: whole numbers of 64 bits, or floats."""
    known = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return bool(known and column.physical and column.data.dtype in (np.int64, np.float64))


class SketchFunction(Function):
    """Base: a sketch of each extent; a subclass says how values are read, added and reported."""

    overlaps = False  # every extent has a sketch of its own

    def __init__(
        self, fold: Any, attribute: Attribute | None, types: Sequence[pa.DataType]
    ) -> None:
        super().__init__(attribute)
        self.definition = fold
        (kind,) = types
        known = is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
        if not known and not is_text(kind):
            raise Decline(f"{fold.name} of {kind} takes values one by one")
        self.sketches: dict[int, Any] = {}  # by partition

    def read(self, column: Column) -> Any:
        """What sketches take of a column without nulls: its values, as Python has them."""
        if is_plain(column):
            return column.data.tolist()
        array = column.arrow()
        if is_text(column.type):  # twice as fast as `to_pylist`, and the same
            return array.to_numpy(zero_copy_only=False).tolist()
        return array.to_pylist()

    def add(self, sketch: Any, values: Any) -> None:
        """Add what was read, in place."""
        sketch.add_many(values)

    def results(self, sketches: Sequence[Any]) -> Result:
        """The results of sketches."""
        return [self.definition.result(sketch) for sketch in sketches]

    # -- one batch --------------------------------------------------------------------------------

    def over(self, values: Values, lo: Places, hi: Places) -> Result:
        """A sketch of each extent."""
        before = [None] * len(lo)
        return self.results(self._sketched(before, values[0], lo, hi))

    def fold(self, values: Values, extents: Extents) -> tuple[Result, Any]:
        """The results of the extents that fire, and the sketches of those that stay open."""
        before: list[Any] = [None] * len(extents.starts)
        for number in extents.joins.tolist():
            before[number] = self._of(int(extents.ids[number]))
        found = self._sketched(before, values[0], extents.starts, extents.ends)
        later = [found[number] for number in extents.stays.tolist()]
        found += [self._of(number) for number in extents.bare.tolist()]
        results = self.results([found[number] for number in extents.fires.tolist()])
        return results, (extents.ids, later)

    def _sketched(self, before: list[Any], column: Column, lo: Places, hi: Places) -> list[Any]:
        """The sketch of each extent, after what is there before it, which stays as it is."""
        if column.valid is not None:
            number = np.zeros(len(column) + 1, np.intp)
            np.cumsum(column.valid, out=number[1:])
            column = column.take(np.flatnonzero(column.valid))
            column, lo, hi = Column(column.type, column.data), number[lo], number[hi]
        try:
            return self._fed(before, self.read(column), lo, hi)
        except SchemaError as error:
            raise Decline("a value is refused, and one by one they say which") from error

    def _fed(self, before: list[Any], values: Any, lo: Places, hi: Places) -> list[Any]:
        found = []
        for sketch, first, last in zip(before, lo.tolist(), hi.tolist(), strict=True):
            new = self.definition.make() if sketch is None else sketch.copy()
            self.add(new, values[first:last])
            found.append(new)
        return found

    def commit(self, ids: Places, later: Any) -> None:
        """Keep the sketches that stay open, and no other of the partitions that had rows."""
        touched, sketches = later
        self.forget(touched)
        self.sketches.update(zip(ids.tolist(), sketches, strict=True))

    def grow(self, size: int) -> None:
        """Partitions need no room before they have a sketch."""

    def forget(self, ids: Places) -> None:
        """Drop the state of these partitions."""
        for number in ids.tolist():
            self.sketches.pop(number, None)

    def carried(self, ids: Places, sizes: Places) -> Result:
        """The results of the state that some partitions carry."""
        return self.results([self._of(number) for number in ids.tolist()])

    def _of(self, number: int) -> Any:
        found = self.sketches.get(number)
        return self.definition.make() if found is None else found

    # -- hand-over --------------------------------------------------------------------------------

    def save(self, ids: Places, sizes: Places) -> list[Any]:
        """The fold's saved states."""
        definition, pairs = self.definition, zip(ids.tolist(), sizes.tolist(), strict=True)
        return [
            definition.save((self._of(number), None) if n else definition.empty)
            for number, n in pairs
        ]

    def load(self, ids: Places, saved: Sequence[Any], sizes: Places) -> None:
        """Restore the fold's saved states."""
        for number, state in zip(ids.tolist(), saved, strict=True):
            sketch, _ = self.definition.load(state)
            if sketch is None:
                self.sketches.pop(number, None)
            else:
                self.sketches[number] = sketch

    def dump(self, ids: Places, held: Array) -> dict[str, Any]:
        """The sketches as plain data; None where there is none."""
        found = zip(ids.tolist(), held.tolist(), strict=True)
        return {
            "sketches": [
                self.definition.save((self.sketches.get(number) if there else None, None))
                for number, there in found
            ]
        }

    def load_dump(self, ids: Places, state: Mapping[str, Any]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        need(len(state["sketches"]) == len(ids), f"{len(state['sketches'])} sketches")
        self.load(ids, state["sketches"], ids)


class TopSketchFunction(SketchFunction):
    """The most frequent values."""


class TextValues:
    """Text as Python has it, and as Arrow has it, which finds the first and the last faster.

    Both have the same order: that of code points is that of their bytes in UTF-8.
    """

    __slots__ = ("array", "strings")

    def __init__(self, strings: list[str], array: Any) -> None:
        self.strings, self.array = strings, array

    def __getitem__(self, part: slice) -> TextValues:
        return TextValues(self.strings[part], self.array[part])

    def __len__(self) -> int:
        return len(self.strings)


class QuantileSketchFunction(SketchFunction):
    """A value of about the right rank; of floats and whole numbers as arrays of them."""

    def read(self, column: Column) -> Any:
        """An array, where that holds the very values."""
        if is_plain(column):
            return column.data
        values = super().read(column)
        return TextValues(values, column.arrow()) if is_text(column.type) else values

    def add(self, sketch: Any, values: Any) -> None:
        """Arrays find NaN, the smallest and the largest faster."""
        if isinstance(values, TextValues):
            self._add_text(sketch, values)
            return
        if isinstance(values, list) or not len(values):
            sketch.add_many(values)
            return
        low, high = values[np.argmin(values)].item(), values[np.argmax(values)].item()
        if low == low:
            sketch.add_between(values.tolist(), low, high)
        else:  # NaN counts as the smallest here
            sketch.add_many(values.tolist())

    def _add_text(self, sketch: Any, values: TextValues) -> None:
        if len(values) < FEW_STRINGS:
            sketch.add_many(values.strings)
            return
        found = pc.min_max(values.array)
        sketch.add_between(values.strings, found["min"].as_py(), found["max"].as_py())


class CountSketchFunction(SketchFunction):
    """About how many distinct values, from the digests of a whole column."""

    def read(self, column: Column) -> Array:
        """The digest of each value."""
        if compiles() and len(column):
            if is_text(column.type):
                return self._texts(column.arrow())
            if is_plain(column):
                return self._floats(column.data) if column.floating else self._whole(column.data)
        return self._each(column.arrow())

    def add(self, sketch: Any, values: Any) -> None:
        """Add digests."""
        sketch.add_digests(values)

    def results(self, sketches: Sequence[Any]) -> Result:
        """Whole numbers."""
        return pa.array(super().results(sketches), pa.int64())

    def _each(self, array: Any) -> Array:
        """The digest of each distinct value, as the event engine has it."""
        coded = array.dictionary_encode()
        digest = self.definition.digest
        known = np.array([digest(value) for value in coded.dictionary.to_pylist()], np.uint64)
        found: Array = known[coded.indices.to_numpy()]
        return found

    def _floats(self, data: Array) -> Array:
        from windowlib.columnar.primitives.blake2b import tagged

        found = tagged(b"f", data + 0.0)  # -0.0 is 0.0
        strange = np.isnan(data)
        if strange.any():
            found[strange] = self.definition.digest(float("nan"))
        return found

    def _whole(self, data: Array) -> Array:
        from windowlib.columnar.primitives.blake2b import tagged

        found = tagged(b"f", data.astype(np.float64))
        large = np.flatnonzero((data > EXACT) | (data < -EXACT))
        if len(large):
            found[large] = self._each(pa.array(data[large]))
        return found

    def _texts(self, array: Any) -> Array:
        from windowlib.columnar.primitives.blake2b import BLOCK, texts

        wide = np.int64 if pa.types.is_large_string(array.type) else np.int32
        _, places, data = array.buffers()
        offsets = np.frombuffer(places, wide)[array.offset : array.offset + len(array) + 1]
        if int(np.diff(offsets).max()) >= BLOCK:
            return self._each(array)
        letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return texts(b"s", letters, offsets.astype(np.int64))
