"""Small numbers for strings and bytes, without a Python object per value.

A string is cut into words of eight bytes. Each word is an integer, which has a number; the number
of what came before and that of the next word make a pair, which has a number again. So the last
pair stands for the whole string.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar import physical
from windowlib.columnar.numbering import Ids, Ints, Numbers, Pairs

WORDS = 5  # strings of more than 40 bytes go through a dict
DIRECT = 16  # bytes; up to here, cutting all rows is faster than to find the distinct ones first
KEEP = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


class Texts:
    """Numbers for the values of a string or binary type, and null.

    >>> texts = Texts(pa.string())
    >>> texts.encode(pa.array(["b", None, "a", "b"])), texts.values.to_pylist()
    (array([0, 1, 2, 0], dtype=int32), ['b', None, 'a'])
    """

    __slots__ = ("_arrays", "_heads", "_long", "_numbers", "_tails", "_type")

    def __init__(self, kind: Any) -> None:
        self._type = physical.VIEWS.get(kind, kind)
        self._arrays = [pa.nulls(0, self._type)]
        # Numbers of first words; of further words, and of pairs with what came before; of others.
        self._heads = Numbers(limit=0)
        self._tails = [(Numbers(limit=0), Pairs()) for _ in range(WORDS - 1)]
        self._long: dict[bytes, int] = {}
        self._numbers = Numbers()  # of all these numbers, in order of first appearance

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
        cut = _Cut(array)
        if cut.longest <= DIRECT:
            return self._encode(array, cut)
        encoded = array.dictionary_encode(null_encoding="encode")
        distinct = self._encode(encoded.dictionary, _Cut(encoded.dictionary))
        ids: Ids = distinct.take(encoded.indices.to_numpy())
        return ids

    def _encode(self, array: Any, cut: _Cut) -> Ids:
        before = self._numbers.count
        ids = self._numbers.encode(self._codes(array, cut), physical.validity(array))
        if self._numbers.count > before:
            rows = np.flatnonzero(ids >= before)
            first = np.empty(self._numbers.count - before, np.int64)
            first[ids[rows[::-1]] - before] = rows[::-1]  # the first writes last
            self._arrays.append(array.take(pa.array(first)))
        return ids

    def _codes(self, array: Any, cut: _Cut) -> Ints:
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


class _Cut:
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
