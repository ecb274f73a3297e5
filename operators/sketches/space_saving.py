"""Heavy hitters: the most frequent values of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import chain, islice
from operator import eq, itemgetter
from typing import Any, Self

from windowlib.attributes import NAN
from windowlib.errors import ModelError, SchemaError
from windowlib.operators.sketches.sketch import Sketch, require_whole

_LARGEST = 1 << 20


class HeavyHitters(Sketch):
    """Counts values, and forgets the rarer half whenever there are more than `capacity`.

    Up to `capacity` distinct values every count is exact. Then a count is never too small, and
    too large by at most `error()`, which is at most count() / (capacity // 2 + 1): at the default
    0.4 % of all values. A value that occurs more often than that is never missing. Merging keeps
    these bounds. Values are equal as keys of a dict are, and all NaN are one.

    >>> sketch = HeavyHitters(2)
    >>> for word in "the cat and the dog and the bird".split():
    ...     sketch.add(word)
    >>> sketch.top()
    [('the', 3), ('and', 2)]

    `add` costs O(1), and O(log capacity) amortised for values not seen before.

    This is Space-Saving (Metwally et al., 2005) with evictions in bulk: a value that is new, or
    was forgotten, starts from the largest count forgotten. The bound holds because each rise of
    that count by 1 takes 1 from each of capacity // 2 + 1 others, as in *Mergeable Summaries*
    (Agarwal et al., 2012).
    """

    __slots__ = ("_count", "_counts", "_error", "capacity", "k")
    parameters = ("k", "capacity")

    def __init__(self, k: int, capacity: int | None = None) -> None:
        require_whole("HeavyHitters", "k", k, 1, _LARGEST // 2, 10)
        if capacity is None:
            capacity = min(max(512, 8 * k), _LARGEST)
        require_whole("HeavyHitters", "capacity", capacity, 2, _LARGEST, 512)
        if capacity < 2 * k:
            msg = (
                f"HeavyHitters(k={k}, capacity={capacity}): half of the values may be forgotten, "
                f"and fewer than {k} remain. Use capacity={2 * k} or more."
            )
            raise ModelError(msg)
        self.k, self.capacity = k, capacity
        self._counts: dict[Any, int] = {}  # by first appearance; never less than the error
        self._error = 0  # no value that is missing occurred more often
        self._count = 0

    def add(self, value: Any, /) -> None:
        """Count one occurrence of a value."""
        try:
            self._counts[value] += 1
        except KeyError:
            self._enter(value)
        except TypeError:
            msg = (
                f"{self._call()}.add({value!r}): a {type(value).__name__} cannot be a key. "
                "Use a value that can, such as a tuple in place of a list."
            )
            raise SchemaError(msg) from None
        self._count += 1

    def add_many(self, values: Sequence[Any]) -> None:
        """Take values of one type, none of them null: `add` for each, only faster."""
        rest = iter(values)
        # None is forgotten before as many have come as there is room for, if all of them are new.
        while some := list(islice(rest, self.capacity + 1 - len(self._counts))):
            if not self._enter_new(some):
                self._add_until_full(chain(some, rest))
        self._count += len(values)

    def _enter_new(self, some: list[Any]) -> bool:
        """Take as many values as there is room for; False, and nothing, unless all are new."""
        counts, start = self._counts, self._error + 1
        if not counts.keys().isdisjoint(some) or not all(map(eq, some, some)):  # or NaN
            return False
        fresh = dict.fromkeys(some, start)
        if len(fresh) < len(some):
            return False
        if len(counts) + len(fresh) <= self.capacity:
            counts.update(fresh)
            return True
        # New ones are the latest, so that they go first of those with the same count.
        kept = {value: count for value, count in counts.items() if count >= start}
        more = len(kept) + len(fresh) - self.capacity // 2
        if len(fresh) < more or more < 1:
            counts.update(fresh)
            self._forget()
            return True
        for _ in range(more):
            fresh.popitem()
        kept.update(fresh)
        self._counts, self._error = kept, start
        return True

    def _add_until_full(self, values: Iterable[Any]) -> None:
        """Take values up to the first that makes others be forgotten."""
        counts, start = self._counts, self._error + 1
        room = self.capacity
        for value in values:
            if value in counts:
                counts[value] += 1
                continue
            if value == value:
                counts[value] = start
            else:
                counts[NAN] = counts.get(NAN, self._error) + 1
            if len(counts) > room:
                self._forget()
                return

    def top(self, k: int | None = None) -> list[tuple[Any, int]]:
        """The most frequent values with their counts, largest first; ties by first appearance.

        `k` is that of the constructor if not given. There are fewer if there were fewer values.
        """
        if k is not None:
            require_whole("top", "k", k, 1, self.capacity // 2, self.k)
        return nlargest(self.k if k is None else k, self._counts.items(), key=itemgetter(1))

    def count(self) -> int:
        """How many values were added."""
        return self._count

    def error(self) -> int:
        """By how much a count may be too large; 0 while all are exact."""
        return self._error

    def merge(self, other: Self) -> Self:
        """A new sketch of both streams, this one first; neither changes."""
        self._require_alike(other)
        both = self.copy()
        mine, theirs = self._counts, other._counts
        # A value that one of them lacks may have occurred there as often as its error.
        both._counts = {
            value: mine.get(value, self._error) + theirs.get(value, other._error)
            for value in (*mine, *theirs)
        }
        both._error += other._error
        both._count += other._count
        both._forget()
        return both

    def copy(self) -> Self:
        """A sketch of the same values that goes its own way."""
        other = type(self)(self.k, self.capacity)
        other._counts = self._counts.copy()
        other._error, other._count = self._error, self._count
        return other

    def _enter(self, value: Any) -> None:
        if value != value:
            value = NAN
        self._counts[value] = self._counts.get(value, self._error) + 1
        self._forget()

    def _forget(self) -> None:
        """Keep the more frequent half if there are too many; the earlier one of equals."""
        counts = self._counts
        if len(counts) <= self.capacity:
            return
        half = self.capacity // 2
        ranked = sorted(counts.values(), reverse=True)
        bar, self._error = ranked[half - 1], ranked[half]
        kept = {value: count for value, count in counts.items() if count >= bar}
        latest = (value for value in reversed(list(kept)) if kept[value] == bar)
        for value in list(islice(latest, len(kept) - half)):
            del kept[value]
        self._counts = kept

    def _save(self) -> dict[str, Any]:
        counts = [[value, count] for value, count in self._counts.items()]
        return {"counts": counts, "error": self._error, "count": self._count}

    def _load(self, state: Mapping[str, Any]) -> None:
        counts = {value if value == value else NAN: count for value, count in state["counts"]}
        error, count = state["error"], state["count"]
        if len(counts) > self.capacity or min(counts.values(), default=error) < error:
            raise ValueError("the counts do not fit the capacity or the error")
        self._counts, self._error, self._count = counts, error, count

    def __repr__(self) -> str:
        return f"<{self._call()}: {self._count} values, {len(self._counts)} of them counted>"
