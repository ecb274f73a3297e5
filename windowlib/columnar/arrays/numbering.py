"""Small numbers for values, the same number for the same value, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.arrays import physical
from windowlib.columnar.arrays.physical import Valid
from windowlib.columnar.primitives import look_up

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

LIMIT = 1 << 22  # the widest range of values that gets a table of its own: 16 MB
HEAD = 2048
GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2**64 over the golden ratio spreads what it multiplies


class IntegerCodes:
    """Numbers for int64 values and null.

    Values in a narrow range are looked up in a table, one slot per value; others by their hash.

    >>> numbers = IntegerCodes()
    >>> numbers.encode(np.array([30, 10, 30])), numbers.encode(np.array([20, 10]))
    (array([0, 1, 0], dtype=int32), array([2, 1], dtype=int32))
    """

    __slots__ = ("_base", "_hashed", "_known", "_limit", "_table", "count", "null")

    def __init__(self, limit: int = LIMIT) -> None:
        self.count = 0
        self._limit = limit  # of the range that gets a table
        self.null = -1  # the number of null, once it has appeared
        self._known: Ints = np.empty(16, np.int64)  # value by number; null has any
        self._base = 0  # the value of the table's first slot
        self._table: Ids | None = np.empty(0, np.int32) if limit else None  # -1 for no number
        self._hashed = HashTable()

    @property
    def values(self) -> Ints:
        """The value of each number."""
        return self._known[: self.count]

    @property
    def table(self) -> tuple[int, Ids] | None:
        """The first value of the table and the numbers in it, -1 for none; None: there is none."""
        return None if self._table is None else (self._base, self._table)

    def encode(self, data: Ints, valid: Valid = None) -> Ids:
        """The numbers of these values; new values get new ones."""
        if not len(data):
            return np.empty(0, np.int32)
        if valid is not None:
            return self._encode_nulls(data, valid)
        if not self.count and len(data) > 4 * HEAD:
            self.encode(data[:HEAD])  # so that most of the others have numbers already
        if self._table is not None:
            ids: Ids | None = look_up(self._table, self._base, data)
            if ids is not None:
                return ids
            if self._cover(int(data.min()), int(data.max())):
                return self._look_up(data - self._base if self._base else data)
            self._widen()
        return self._search(data)

    def _encode_nulls(self, data: Ints, valid: npt.NDArray[np.bool_]) -> Ids:
        first = int(valid.argmin())
        if valid[first]:
            return self.encode(data)
        if self.null < 0:  # it gets its number in its turn
            before = self.encode(data[:first])
            (self.null,) = self._admit(data[first : first + 1]).tolist()
            return np.concatenate([before, self._encode_nulls(data[first:], valid[first:])])
        if self._table is not None and self._base == 0 and _below(data, len(self._table)):
            ids = np.where(valid, self._table.take(data), np.int32(self.null))
            if ids.min() >= 0:
                return ids
        ids = np.full(len(data), self.null, np.int32)
        ids[valid] = self.encode(data[valid])
        return ids

    def _admit(self, values: Ints) -> Ids:
        """Numbers for values that have none yet."""
        start, self.count = self.count, self.count + len(values)
        if self.count > len(self._known):
            more = np.empty(2 * self.count, np.int64)
            more[:start] = self._known[:start]
            self._known = more
        self._known[start : self.count] = values
        return np.arange(start, self.count, dtype=np.int32)

    def _present(self) -> tuple[Ints, Ids]:
        """All values but null, and their numbers."""
        ids = np.arange(self.count, dtype=np.int32)
        here = ids != self.null
        return self.values[here], ids[here]

    # -- narrow: a table --

    def _cover(self, low: int, high: int) -> bool:
        """Make the table large enough for values from low to high, if it may be that large."""
        assert self._table is not None
        room = len(self._table)
        if self._base <= low and high < self._base + room:
            return True
        if room:
            low, high = min(low, self._base), max(high, self._base + room - 1)
        if low >= 0 and high < self._limit:
            low = 0
        if high - low >= self._limit:
            return False
        self._base = low
        self._table = np.full(1 << (high - low).bit_length(), -1, np.int32)
        values, ids = self._present()
        self._table[values - low] = ids
        return True

    def _look_up(self, slots: Ints) -> Ids:
        table = self._table
        assert table is not None
        ids: Ids = table.take(slots)
        if ids.min() >= 0:
            return ids
        rows = np.flatnonzero(ids < 0)
        wanted = slots[rows]
        # Of the rows with the same slot the first writes last, and finds itself there.
        order = np.arange(len(rows), dtype=np.int32)
        table[wanted[::-1]] = order[::-1]
        fresh = wanted[table[wanted] == order]
        table[fresh] = self._admit(fresh + self._base)
        ids[rows] = table[wanted]
        return ids

    # -- wide: hashes --

    def _widen(self) -> None:
        self._table = None
        self._hashed.add(*self._present())

    def _search(self, data: Ints) -> Ids:
        ids = self._hashed.find(data)
        if ids.min() < 0:
            rows = np.flatnonzero(ids < 0)
            encoded = pa.array(data[rows]).dictionary_encode()
            fresh = encoded.dictionary.to_numpy()
            numbers = self._admit(fresh)
            self._hashed.add(fresh, numbers)
            ids[rows] = numbers[encoded.indices.to_numpy()]
        return ids


def _below(data: Ints, limit: int) -> bool:
    """Whether all values are in range(limit): negative ones are huge without a sign."""
    return bool(data.view(np.uint64).max() < limit)


class HashTable:
    """A hash table of int64 values, searched and filled for whole arrays at once.

    >>> hashed = HashTable()
    >>> hashed.add(np.array([7, 10**15]), np.array([0, 1], np.int32))
    >>> hashed.find(np.array([10**15, 3, 7]))
    array([ 1, -1,  0], dtype=int32)
    """

    __slots__ = ("_count", "_ids", "_shift", "_values")

    def __init__(self) -> None:
        self._count = 0
        self._resize(8)

    def _resize(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._values = np.zeros(1 << bits, np.int64)
        self._ids = np.full(1 << bits, -1, np.int32)  # -1: the slot is free

    def _home(self, values: Ints) -> Ints:
        """The slot where the search for a value starts."""
        bits = values.view(np.uint64)
        mixed = bits >> np.uint64(32)
        mixed ^= bits
        mixed *= GOLDEN
        mixed >>= self._shift
        return mixed.view(np.int64)

    def find(self, values: Ints) -> Ids:
        """The numbers of these values, -1 for those that have none."""
        slots = self._home(values)
        ids: Ids = self._ids.take(slots)
        # A free slot ends the search, and so does the value; others go on to the next slot.
        rows = np.flatnonzero((self._values.take(slots) != values) & (ids >= 0))
        slots = slots[rows]
        while len(rows):
            slots = (slots + 1) & (len(self._ids) - 1)
            found = self._ids.take(slots)
            ids[rows] = found
            on = np.flatnonzero((self._values.take(slots) != values[rows]) & (found >= 0))
            rows, slots = rows[on], slots[on]
        return ids

    def add(self, values: Ints, ids: Ids) -> None:
        """Remember distinct values that are not there yet, and their numbers."""
        self._count += len(values)
        if 2 * self._count > len(self._ids):  # at most half full, so that searches are short
            old = self._ids >= 0
            values = np.concatenate([self._values[old], values])
            ids = np.concatenate([self._ids[old], ids])
            self._resize((3 * self._count).bit_length())
        slots = self._home(values)
        while len(values):
            free = np.flatnonzero(self._ids[slots] < 0)
            self._ids[slots[free]] = ids[free]  # of several for one slot, one stays
            placed = self._ids[slots] == ids
            self._values[slots[placed]] = values[placed]
            values, ids = values[~placed], ids[~placed]
            slots = (slots[~placed] + 1) & (len(self._ids) - 1)


class PairCodes:
    """Numbers for pairs of numbers.

    >>> pairs = PairCodes()
    >>> first, second = np.array([0, 0, 1], np.int32), np.array([0, 5, 0], np.int32)
    >>> pairs.encode(first, second, 6), pairs.split(np.array([1, 2]))
    (array([0, 1, 2], dtype=int32), (array([0, 1]), array([5, 0])))
    """

    __slots__ = ("_bits", "_numbers")

    def __init__(self) -> None:
        self._bits = 4  # of the second number
        self._numbers = IntegerCodes()

    def __len__(self) -> int:
        return self._numbers.count

    def encode(self, first: Ids, second: Ids, seconds: int) -> Ids:
        """The numbers of pairs, the second of them below `seconds`."""
        if seconds > 1 << self._bits:
            one, two = self.split(slice(None))
            self._bits = (2 * seconds).bit_length()
            self._numbers = IntegerCodes()
            self._numbers.encode(one << self._bits | two)  # all distinct: the same numbers
        return self._numbers.encode(first.astype(np.int64) << self._bits | second)

    def split(self, ids: Any) -> tuple[Ints, Ints]:
        """The pairs that have these numbers."""
        both = self._numbers.values[ids]
        return both >> self._bits, both & ((1 << self._bits) - 1)


# Small numbers for strings and bytes, without a Python object per value.
#
# A string is cut into words of eight bytes. Each word is an integer, which has a number; the number
# of what came before and that of the next word make a pair, which has a number again. So the last
# pair stands for the whole string.


WORDS = 5  # strings of more than 40 bytes go through a dict
DIRECT = 16  # bytes; up to here, cutting all rows is faster than to find the distinct ones first
KEEP = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


class TextCodes:
    """Numbers for the values of a string or binary type, and null.

    >>> texts = TextCodes(pa.string())
    >>> texts.encode(pa.array(["b", None, "a", "b"])), texts.values.to_pylist()
    (array([0, 1, 2, 0], dtype=int32), ['b', None, 'a'])
    """

    __slots__ = ("_arrays", "_heads", "_long", "_numbers", "_tails", "_type")

    def __init__(self, kind: Any) -> None:
        self._type = physical.VIEWS.get(kind, kind)
        self._arrays = [pa.nulls(0, self._type)]
        # Numbers of first words; of further words, and of pairs with what came before; of others.
        self._heads = IntegerCodes(limit=0)
        self._tails = [(IntegerCodes(limit=0), PairCodes()) for _ in range(WORDS - 1)]
        self._long: dict[bytes, int] = {}
        self._numbers = IntegerCodes()  # of all these numbers, in order of first appearance

    @property
    def count(self) -> int:
        """How many values there are."""
        return self._numbers.count

    @property
    def values(self) -> Any:
        """The value of each number."""
        if len(self._arrays) > 1:
            self._arrays = [pa.concat_arrays(self._arrays)]
        return self._arrays[0]

    def encode(self, array: Any) -> Ids:
        """The numbers of these values; new values get new ones."""
        if array.type != self._type:
            array = array.cast(self._type)
        if not len(array):
            return np.empty(0, np.int32)
        cut = _WordCutter(array)
        if cut.longest <= DIRECT:
            return self._encode(array, cut)
        encoded = array.dictionary_encode(null_encoding="encode")
        distinct = self._encode(encoded.dictionary, _WordCutter(encoded.dictionary))
        ids: Ids = distinct.take(encoded.indices.to_numpy())
        return ids

    def _encode(self, array: Any, cut: _WordCutter) -> Ids:
        before = self._numbers.count
        ids = self._numbers.encode(self._codes(array, cut), physical.validity(array))
        if self._numbers.count > before:
            rows = np.flatnonzero(ids >= before)
            first = np.empty(self._numbers.count - before, np.int64)
            first[ids[rows[::-1]] - before] = rows[::-1]  # the first writes last
            self._arrays.append(array.take(pa.array(first)))
        return ids

    def _codes(self, array: Any, cut: _WordCutter) -> Ints:
        """A number for each value: of its last pair, and how many words that is."""
        codes: Ints = self._heads.encode(cut.words(0)).astype(np.int64) * 8
        rows: Any = slice(None)
        for place in range(1, min(WORDS, -(-cut.longest // 8))):
            rows = np.flatnonzero(cut.lengths > 8 * place)
            words, pairs = self._tails[place - 1]
            following = words.encode(cut.words(place, rows))
            prefix = (codes[rows] >> 3).astype(np.int32)
            codes[rows] = pairs.encode(prefix, following, words.count).astype(np.int64) * 8 + place
        others = cut.others()
        if len(others):
            codes[others] = [
                self._other(value) for value in array.take(pa.array(others)).to_pylist()
            ]
        return codes

    def _other(self, value: Any) -> int:
        return 0 if value is None else self._long.setdefault(value, len(self._long)) * 8 + 7


class _WordCutter:
    """The bytes of an Arrow array of strings, ready to be cut into words."""

    __slots__ = ("_octets", "_starts", "_windows", "lengths", "longest")

    def __init__(self, array: Any) -> None:
        _, offsets, octets = array.buffers()
        wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)
        ends = ends[array.offset : array.offset + len(array) + 1]
        low, high = int(ends[0]), int(ends[-1])
        self._starts = ends[:-1] - low
        self.lengths: Any = np.diff(ends)
        self.longest = int(self.lengths.max())
        stored = np.empty(0, np.uint8) if octets is None else np.frombuffer(octets, np.uint8)
        if len(stored) < high + 8:  # the last word must not reach beyond the end
            stored = np.concatenate([stored[low:high], np.zeros(8, np.uint8)])
            low, high = 0, high - low
        self._octets = stored[low:high]
        # The word that starts at each byte: these overlap.
        around = stored[low : high + 8]
        self._windows = np.ndarray(len(around) - 7, "<u8", around, strides=(1,))

    def words(self, place: int, rows: Any = slice(None)) -> Ints:
        """The word at this place in each value, zeros after its end."""
        left = np.minimum(self.lengths[rows] - 8 * place, 8)
        words = self._windows[self._starts[rows] + 8 * place]
        words &= KEEP.take(left)
        found: Ints = words.view(np.int64)
        return found

    def others(self) -> npt.NDArray[np.intp]:
        """The rows whose words do not tell the value: too long, or with a zero byte at the end."""
        beyond = self.lengths > 8 * WORDS if self.longest > 8 * WORDS else None
        if (self._octets == 0).any():
            last = self._octets.take(self._starts + self.lengths - 1, mode="clip")
            ends = (last == 0) & (self.lengths > 0)
            beyond = ends if beyond is None else ends | beyond
        return np.empty(0, np.intp) if beyond is None else np.flatnonzero(beyond)
