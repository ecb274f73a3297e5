"""A quantile sketch: the value at a rank of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from numbers import Real
from operator import itemgetter
from typing import Any, NoReturn, Self

from windowlib.attributes import NAN
from windowlib.errors import ModelError, SchemaError
from windowlib.operators.functions.value_order import comparable
from windowlib.operators.sketches.sketch import Sketch, require_whole

# No level is smaller: tiny ones would save little space and be emptied all the time.
_SMALLEST = 32
_64_BITS = (1 << 64) - 1


class QuantileSketch(Sketch):
    """Keeps a sample of O(size) values that stand for all of a stream, by their order.

    Takes whatever can be ordered: numbers, datetimes, strings; results are values that were
    added. Up to `size` values it keeps all of them and is exact. Then the rank of a result is off
    by a share of all values, at any q and in any order of input: the standard deviation is below
    1.3 / size, and 5 / size is practically never exceeded (0.25 % and 1 % at the default). The
    smallest and the largest value are exact. Merging keeps these bounds. NaN is larger than
    everything, and null is no value.

    >>> sketch = QuantileSketch()
    >>> for x in range(1, 100_001):
    ...     sketch.add(x)
    >>> [sketch.quantile(q) for q in (0, 0.5, 0.99, 1)]
    [1, 49972, 98996, 100000]

    `add` costs O(log size) amortised; the sample is at most 3 · size + 32 · log2(count / size).

    Karnin, Lang, Liberty, *Optimal Quantile Approximation in Streams* (2016). Values at level h
    stand for 2 ** h each. A level that is too large is sorted, and every other value moves up.
    Whether the odd or the even ones move is decided by a coin in the paper, here by a fixed
    sequence that looks like one.
    """

    __slots__ = ("_compactions", "_high", "_levels", "_low", "_nans", "_room", "size")
    parameters = ("size",)

    def __init__(self, size: int = 512) -> None:
        require_whole("QuantileSketch", "size", size, 8, 1 << 20, 512)
        self.size = size
        self._levels: list[list[Any]] = [[]]
        self._compactions = [0]  # so far, by level
        self._room = size  # for the lowest level, until the whole is too large
        self._low: Any = None
        self._high: Any = None
        self._nans = 0

    def add(self, x: Any, /) -> None:
        """Take one more value."""
        if x != x:
            self._nans += 1
            return
        try:
            if x < self._low:
                self._low = x
            elif self._high < x:
                self._high = x
        except TypeError:
            self._begin(x)
        lowest = self._levels[0]
        lowest.append(x)
        if len(lowest) > self._room:
            self._compress(-1)

    def add_many(self, values: Sequence[Any]) -> None:
        """Take values of one type, none of them null: `add` for each, only faster."""
        some = [x for x in values if x == x]
        if some:
            self.add_between(some, min(some), max(some))
        self._nans += len(values) - len(some)

    def add_between(self, some: list[Any], low: Any, high: Any) -> None:
        """`add_many` without NaN, where the first of the smallest and of the largest are known."""
        self._include(low, high)
        first, lowest = 0, self._levels[0]
        while first < len(some):
            last = first + self._room + 1 - len(lowest)
            lowest += some[first:last]
            first = last
            if len(lowest) > self._room:
                self._compress(-1)

    def count(self) -> int:
        """How many values were added."""
        return sum(len(level) << h for h, level in enumerate(self._levels)) + self._nans

    def quantile(self, q: float) -> Any:
        """The smallest value that at least a share of `q` of all values does not exceed, about.

        None if there are no values. The share is what is written: 0.07 of 100 values are 7.

        >>> sketch = QuantileSketch()
        >>> for x in "bdac":
        ...     sketch.add(x)
        >>> sketch.quantile(0.5), sketch.quantile(0.51)
        ('b', 'c')
        """
        share, count = _share(q), self.count()
        if not count:
            return None
        rank = max(1, -(-share.numerator * count // share.denominator))
        if rank > count - self._nans:
            return NAN
        if rank == count - self._nans:
            return self._high
        return self._low if rank == 1 else self._at(rank)

    def merge(self, other: Self) -> Self:
        """A new sketch of both streams; neither changes."""
        self._require_alike(other)
        both = self.copy()
        if other._low is not None:
            both._include(other._low, other._high)
        pairs = zip_longest(self._levels, other._levels, fillvalue=())
        both._levels = [[*a, *b] for a, b in pairs]
        counts = zip_longest(self._compactions, other._compactions, fillvalue=0)
        both._compactions = [a + b for a, b in counts]
        both._nans += other._nans
        both._compress(both._spare())
        return both

    def copy(self) -> Self:
        """A sketch of the same values that goes its own way."""
        other = type(self)(self.size)
        other._levels = [level[:] for level in self._levels]
        other._compactions = self._compactions[:]
        other._room = self._room
        other._low, other._high, other._nans = self._low, self._high, self._nans
        return other

    def _begin(self, x: Any) -> None:
        """Take the first value, or refuse one that has no order with the others."""
        if self._low is not None:
            other = self._high if comparable(x, self._low) else self._low
            self._refuse(x, f"it cannot be compared with {other!r}")
        if not comparable(x, x):
            self._refuse(x, f"a {type(x).__name__} has no order")
        self._low = self._high = x

    def _include(self, low: Any, high: Any) -> None:
        if self._low is None:
            self._low, self._high = low, high
            return
        try:
            self._low, self._high = (
                low if low < self._low else self._low,
                high if self._high < high else self._high,
            )
        except TypeError:
            lows, highs = (low, self._low), (high, self._high)
            x, other = highs if comparable(*lows) else lows
            self._refuse(x, f"it cannot be compared with {other!r}")

    def _refuse(self, x: Any, why: str) -> NoReturn:
        msg = (
            f"{self._call()}.add({x!r}): {why}. Add values of one ordered type, such as numbers "
            "or datetimes, and skip nulls."
        )
        raise SchemaError(msg)

    def _at(self, rank: int) -> Any:
        """The value at a rank, 1 for the smallest, when each stands for all that it replaced."""
        weighted = [(x, 1 << h) for h, level in enumerate(self._levels) for x in level]
        self._sort(weighted, itemgetter(0))
        for x, weight in weighted:
            rank -= weight
            if rank <= 0:
                return x
        raise AssertionError("rank beyond the values")

    def _compress(self, spare: int) -> None:
        """Halve levels, the lowest first, until the sample has its size again.

        Args:
            spare: how many values the sample may still take; below 0: how many are too many.
        """
        levels = self._levels
        capacities = _capacities(self.size, len(levels))
        while spare < 0:
            h = 0
            while len(levels[h]) <= capacities[h]:
                h += 1
            spare += self._compact(h)
            if len(levels) > len(capacities):
                capacities = _capacities(self.size, len(levels))
                spare = self._spare()
        self._room = len(levels[0]) + spare

    def _spare(self) -> int:
        """How many values the sample may still take."""
        levels = self._levels
        return sum(_capacities(self.size, len(levels))) - sum(map(len, levels))

    def _compact(self, h: int) -> int:
        """Sort a level and move every other value up, to stand for two; how many are gone."""
        level = self._levels[h]
        self._sort(level)
        if h + 1 == len(self._levels):
            self._levels.append([])
            self._compactions.append(0)
        pairs = len(level) & ~1  # of an odd number, the last one stays
        offset = _coin(h, self._compactions[h])
        self._levels[h + 1].extend(level[offset:pairs:2])
        del level[:pairs]
        self._compactions[h] += 1
        return pairs // 2

    def _sort(self, values: list[Any], key: Callable[[Any], Any] | None = None) -> None:
        try:
            values.sort(key=key)
        except TypeError as error:  # tuples may have an order with the extremes, but not all
            msg = f"{self._call()}: the values cannot be ordered ({error}). Add one type only."
            raise SchemaError(msg) from error

    def _save(self) -> dict[str, Any]:
        return {
            "levels": [level[:] for level in self._levels],
            "compactions": self._compactions[:],
            "low": self._low,
            "high": self._high,
            "nans": self._nans,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        levels, compactions = [list(level) for level in state["levels"]], list(state["compactions"])
        if not levels or len(levels) != len(compactions):
            raise ValueError("the levels do not fit their counts of compactions")
        if any(levels) == (state["low"] is None):
            raise ValueError("the smallest value does not fit the levels")
        self._levels, self._compactions = levels, compactions
        self._low, self._high, self._nans = state["low"], state["high"], state["nans"]
        self._compress(self._spare())

    def __repr__(self) -> str:
        return f"<{self._call()}: {self.count()} values, from {self._low!r} to {self._high!r}>"


def _share(q: float) -> Fraction:
    try:
        share = Fraction(str(q)) if isinstance(q, Real | Decimal) else None
    except ValueError:  # NaN, an infinity, or a bool
        share = None
    if share is None or not 0 <= share <= 1:
        msg = f"quantile(q={q!r}): q must be a share from 0 to 1, such as 0.5 for the median."
        raise ModelError(msg)
    return share


@lru_cache(maxsize=256)
def _capacities(size: int, levels: int) -> tuple[int, ...]:
    """How much each level may hold: the top one `size`, each below two thirds of the next."""
    smallest = min(size, _SMALLEST)
    shrunk = (size * 2**depth // 3**depth for depth in range(levels - 1, -1, -1))
    return tuple(max(smallest, capacity) for capacity in shrunk)


@lru_cache(maxsize=4096)
def _coin(level: int, times: int) -> int:
    """0 or 1 for each compaction of a level; of two in a row, the second is the other.

    To alternate alone, with the same start at every level of every sketch, would add up the errors
    of merged sketches instead of cancelling them. The bits come from splitmix64.
    """
    x = ((times >> 1) * 64 + level + 1) * 0x9E3779B97F4A7C15 & _64_BITS
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _64_BITS
    return (x >> 63) ^ (times & 1)
