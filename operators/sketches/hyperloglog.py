"""HyperLogLog: how many distinct values a stream has."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

from windowlib.operators.sketches.hashing import digest
from windowlib.operators.sketches.sketch import Sketch, require_whole


class HyperLogLog(Sketch):
    """Counts distinct values in 2 ** precision bytes.

    Up to 2 ** precision / 8 distinct values (512) it keeps their hashes, and the count is exact
    but for a collision of 64 bits. Then it keeps, for each of 2 ** precision classes of hashes,
    the longest run of leading zeros; the count has a standard error of 1.04 / √(2 ** precision),
    which is 1.6 % at the default. The order of values does not matter, and a merged sketch is the
    same as one that took all values itself. Values are equal as in `digest`.

    >>> a, b = HyperLogLog(), HyperLogLog()
    >>> for i in range(100):
    ...     a.add(i)
    >>> for i in range(50, 20_000):
    ...     b.add(float(i))
    >>> a.count(), b.count(), a.merge(b).count()
    (100, 19784, 19822)

    `add` costs one hash, `merge` and `count` O(2 ** precision).

    Flajolet et al., *HyperLogLog* (2007), with the estimator of Ertl, *New cardinality estimation
    algorithms for HyperLogLog sketches* (2017), which needs no tables against bias.
    """

    __slots__ = ("_hashes", "_mask", "_registers", "_width", "precision")
    parameters = ("precision",)

    def __init__(self, precision: int = 12) -> None:
        require_whole("HyperLogLog", "precision", precision, 4, 18, 12)
        self.precision = precision
        self._width = 64 - precision  # bits of a hash that do not choose the register
        self._mask = (1 << self._width) - 1
        self._hashes = array("Q")  # ascending, until there are too many
        self._registers = bytearray()

    def add(self, value: Any, /) -> None:
        """Count a value, once."""
        bits = digest(value)
        if self._registers:
            self._register(bits)
        else:
            self._remember(bits)

    def add_digests(self, digests: Any) -> None:
        """Count the values that a numpy array has the digests of: `add` for each, only faster."""
        limit = (1 << self.precision) // 4  # chunks of so many: often enough to see them spill
        for first in range(0, len(digests), limit):
            if self._registers:
                self._register_all(digests[first:])
                return
            self._remember_all(digests[first : first + limit])

    def count(self) -> int:
        """How many distinct values there were, about."""
        return round(_estimate(self._registers)) if self._registers else len(self._hashes)

    def merge(self, other: Self) -> Self:
        """A new sketch of both streams; neither changes."""
        self._require_alike(other)
        both = type(self)(self.precision)
        if self._registers and other._registers:
            both._registers = _larger(self._registers, other._registers)
        elif self._registers or other._registers:
            both._registers = (self._registers or other._registers)[:]
            for bits in self._hashes or other._hashes:
                both._register(bits)
        else:
            both._hashes = array("Q", sorted({*self._hashes, *other._hashes}))
            both._spill()
        return both

    def copy(self) -> Self:
        """A sketch of the same values that goes its own way."""
        other = type(self)(self.precision)
        other._hashes = self._hashes[:]
        other._registers = self._registers[:]
        return other

    def _register(self, bits: int) -> None:
        place = bits >> self._width
        zeros = self._width + 1 - (bits & self._mask).bit_length()
        if zeros > self._registers[place]:
            self._registers[place] = zeros

    def _remember(self, bits: int) -> None:
        hashes = self._hashes
        place = bisect_left(hashes, bits)
        if place == len(hashes) or hashes[place] != bits:
            hashes.insert(place, bits)
            self._spill()

    def _register_all(self, digests: Any) -> None:
        import numpy as np

        rest = digests & np.uint64(self._mask)
        # Without the bits that follow another one the highest stays, and a float is not rounded up.
        lengths = np.frexp((rest & ~(rest >> np.uint64(1))).astype(np.float64))[1]
        places = (digests >> np.uint64(self._width)).astype(np.intp)
        registers = np.frombuffer(self._registers, np.uint8)
        np.maximum.at(registers, places, (self._width + 1 - lengths).astype(np.uint8))

    def _remember_all(self, digests: Any) -> None:
        import numpy as np

        known = np.union1d(np.frombuffer(self._hashes, np.uint64), digests)
        size = 1 << self.precision
        if known.nbytes > size:
            self._hashes, self._registers = array("Q"), bytearray(size)
            self._register_all(known)
        else:
            self._hashes = array("Q", known.tobytes())

    def _spill(self) -> None:
        """Turn to registers once the hashes are more bytes than they."""
        hashes, size = self._hashes, 1 << self.precision
        if 8 * len(hashes) > size:
            self._hashes, self._registers = array("Q"), bytearray(size)
            for bits in hashes:
                self._register(bits)

    def _save(self) -> dict[str, Any]:
        return {"hashes": list(self._hashes), "registers": bytes(self._registers)}

    def _load(self, state: Mapping[str, Any]) -> None:
        hashes, registers = array("Q", state["hashes"]), bytearray(state["registers"])
        size = 1 << self.precision
        if len(registers) not in (0, size) or (registers and hashes) or 8 * len(hashes) > size:
            raise ValueError("the registers do not fit the precision")
        if max(registers, default=0) > self._width + 1:
            raise ValueError("a register is too large")
        if any(a >= b for a, b in pairwise(hashes)):
            raise ValueError("the hashes are not ascending")
        self._hashes, self._registers = hashes, registers

    def __repr__(self) -> str:
        return f"<{self._call()}: about {self.count()} distinct values>"


def _larger(a: bytearray, b: bytearray) -> bytearray:
    """The larger of each pair of registers, all pairs at once.

    A register stays below 128, so that in one long number the top bit of each byte is free to
    tell which of the two is larger. Ten times faster than one by one.
    """
    size = len(a)
    x, y = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    tops = int.from_bytes(b"\x80" * size, "little")
    larger = ((x | tops) - y) & tops
    mask = larger - (larger >> 7)
    return bytearray((y ^ ((x ^ y) & mask)).to_bytes(size, "little"))


def _estimate(registers: bytearray) -> float:
    """Ertl's improved raw estimator (algorithm 6 of the paper)."""
    size = len(registers)
    width = 65 - size.bit_length()
    total = size * _tau(1 - registers.count(width + 1) / size)
    for zeros in range(width, 0, -1):
        total = 0.5 * (total + registers.count(zeros))
    total += size * _sigma(registers.count(0) / size)
    return size * size / (2 * math.log(2) * total)


def _sigma(x: float) -> float:
    """Ertl's σ, x + Σ x ** (2 ** k) · 2 ** (k − 1), for the share of registers that are 0."""
    total, last, weight = x, -1.0, 1.0
    while total != last:
        x *= x
        last, total = total, total + x * weight
        weight += weight
    return total


def _tau(x: float) -> float:
    """Ertl's τ, (1 − x − Σ (1 − x ** (2 ** −k))² · 2 ** −k) / 3, for the share still to grow."""
    if x in (0.0, 1.0):
        return 0.0
    total, last, weight = 1 - x, -1.0, 1.0
    while total != last:
        x = math.sqrt(x)
        weight *= 0.5
        last, total = total, total - (1 - x) ** 2 * weight
    return total / 3
