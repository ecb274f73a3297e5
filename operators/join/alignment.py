"""Alignments: the right rows that match a left row by time, for single rows and whole columns.

The right rows of a key are sorted by timestamp, at equal ones by arrival. An alignment says where
in that order the matches of a timestamp are, up to where the right input must be complete before
they are final, and which rows no later timestamp can need.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowlib.columnar.engines.time_join import RightIndex, RightProgress

Number = int | float
Entry = tuple[Number, int, Any]
"""A timestamp, the number of the arrival, and the row."""
Due = tuple[Number, int]
"""A timestamp that the right watermark must reach (0), or pass (1)."""
NEVER: Due = (math.inf, 0)
"""At the end of the right input."""


def upto(entries: Sequence[Any], ts: Number, *, equal: bool) -> int:
    """How many entries come before a timestamp; those at it, too, if `equal`.

    >>> upto([(1, 0, "a"), (3, 1, "b"), (3, 2, "c")], 3, equal=False)
    1
    """
    return bisect_left(entries, (ts, math.inf) if equal else (ts,))


@dataclass(frozen=True, slots=True)
class Alignment:
    """The rule of one join in time."""

    @property
    def fixed(self) -> bool:
        """Whether the timestamp alone says when its matches are final."""
        return True

    def due(self, ts: Number) -> Due:
        """The right watermark from which on the matches may be final."""
        raise NotImplementedError

    def final(self, ts: Number, entries: Sequence[Entry]) -> Due:
        """When the matches are final, given the right rows so far; `due` if that is fixed."""
        return self.due(ts)

    def hopeless(self, ts: Number) -> Due:
        """When a row with a null key, which matches nothing, is released."""
        return self.due(ts)

    def match_range(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The extent `[lo, hi)` of the matches in the entries."""
        raise NotImplementedError

    def first_needed(self, ts: Number, entries: Sequence[Entry]) -> int:
        """The first entry that this timestamp, or a later one, may still need."""
        raise NotImplementedError

    # -- the same for arrays ----------------------------------------------------------------------

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """`match_range` for each timestamp and key."""
        raise NotImplementedError

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """With which row of the batch the matches of each timestamp become final."""
        raise NotImplementedError

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """`first_needed` for each timestamp and key."""
        raise NotImplementedError

    def describe(self) -> str:
        """The rule in words, for `explain`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Backward(Alignment):
    """The last row at or before a timestamp; `strict`: before it."""

    strict: bool
    tolerance: Number | None

    def due(self, ts: Number) -> Due:
        """The right watermark from which on the matches may be final."""
        return ts, int(not self.strict)

    def match_range(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The extent of the matches."""
        at = upto(entries, ts, equal=not self.strict)
        there = at > 0 and (self.tolerance is None or entries[at - 1][0] >= ts - self.tolerance)
        return (at - 1, at) if there else (at, at)

    def first_needed(self, ts: Number, entries: Sequence[Entry]) -> int:
        """The first entry that may be needed."""
        last = max(upto(entries, ts, equal=not self.strict) - 1, 0)
        if self.tolerance is None:
            return last
        return max(last, upto(entries, ts - self.tolerance, equal=False))

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """The extents of the matches."""
        at = index.upto(keys, ts, equal=not self.strict)
        there = at > index.starts(keys)
        if self.tolerance is not None:
            there &= index.at(at - 1) >= ts - self.tolerance
        return at - there, at

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """The rows of the batch with which the matches become final."""
        return arrivals.when(ts, over=not self.strict)

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first entry that may be needed."""
        import numpy as np

        last = np.maximum(index.upto(keys, ts, equal=not self.strict) - 1, index.starts(keys))
        if self.tolerance is None:
            return last
        return np.maximum(last, index.upto(keys, ts - self.tolerance, equal=False))

    def describe(self) -> str:
        """The rule in words, for `explain`."""
        return "the last right row " + ("before" if self.strict else "at or before")


@dataclass(frozen=True, slots=True)
class LookingAhead(Alignment):
    """Base of alignments whose match may be later than the timestamp."""

    strict: bool
    tolerance: Number | None

    @property
    def fixed(self) -> bool:
        """No: it depends on the right rows."""
        return False

    def hopeless(self, ts: Number) -> Due:
        """When nothing within the tolerance can come any more."""
        return ts + (self.tolerance or 0), 1

    def _limited(self, known: Due, ts: Number) -> Due:
        """When the match is final: no later than all within the tolerance have come."""
        return known if self.tolerance is None else min(known, (ts + self.tolerance, 1))

    def _limited_many(self, known: Any, ts: Any, keys: Any, arrivals: RightProgress) -> Any:
        import numpy as np

        limit = keys < 0 if self.tolerance is None else np.ones(len(ts), bool)
        over = arrivals.when(ts + (self.tolerance or 0), over=True)
        return np.minimum(known, np.where(limit, over, arrivals.never))


@dataclass(frozen=True, slots=True)
class Forward(LookingAhead):
    """The first row at or after a timestamp; `strict`: after it."""

    def due(self, ts: Number) -> Due:
        """The right watermark from which on the matches may be final."""
        return ts, 0

    def final(self, ts: Number, entries: Sequence[Entry]) -> Due:
        """When the best so far is the best of all."""
        at = upto(entries, ts, equal=self.strict)
        known = (entries[at][0], 0) if at < len(entries) else NEVER
        return self._limited(known, ts)

    def match_range(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The extent of the matches."""
        at = upto(entries, ts, equal=self.strict)
        there = at < len(entries) and (
            self.tolerance is None or entries[at][0] <= ts + self.tolerance
        )
        return at, at + there

    def first_needed(self, ts: Number, entries: Sequence[Entry]) -> int:
        """The first entry that may be needed."""
        return upto(entries, ts, equal=self.strict)

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """The extents of the matches."""
        at = index.upto(keys, ts, equal=self.strict)
        there = at < index.ends(keys)
        if self.tolerance is not None:
            there &= index.at(at) <= ts + self.tolerance
        return at, at + there

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """The rows of the batch with which the matches become final."""
        import numpy as np

        at = index.upto(keys, ts, equal=self.strict)
        known = np.where(at < index.ends(keys), arrivals.of(at, index), arrivals.never)
        return self._limited_many(known, ts, keys, arrivals)

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first entry that may be needed."""
        return index.upto(keys, ts, equal=self.strict)

    def describe(self) -> str:
        """The rule in words, for `explain`."""
        return "the first right row " + ("after" if self.strict else "at or after")


@dataclass(frozen=True, slots=True)
class Nearest(LookingAhead):
    """The nearest row; of two that are equally near, the one before; `strict`: none at it."""

    def due(self, ts: Number) -> Due:
        """The right watermark from which on the matches may be final."""
        return ts, 1

    def _sides(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The last entry before, and the first after; -1 and the end if there are none."""
        before = upto(entries, ts, equal=not self.strict) - 1
        return before, upto(entries, ts, equal=True)

    def final(self, ts: Number, entries: Sequence[Entry]) -> Due:
        """When the best so far is the best of all."""
        before, after = self._sides(ts, entries)
        known = (entries[after][0], 0) if after < len(entries) else NEVER
        if before >= 0:  # what comes behind this place is farther away, also if it was rounded
            known = min(known, (ts + (ts - entries[before][0]), 1))
        return self._limited(known, ts)

    def match_range(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The extent of the matches."""
        before, after = self._sides(ts, entries)
        near = self.tolerance
        low = before >= 0 and (near is None or entries[before][0] >= ts - near)
        high = after < len(entries) and (near is None or entries[after][0] <= ts + near)
        if low and high:
            high = entries[after][0] - ts < ts - entries[before][0]
        at = after if high else before + (not low)
        return at, at + (low or high)

    def first_needed(self, ts: Number, entries: Sequence[Entry]) -> int:
        """The first entry that may be needed."""
        return Backward(self.strict, self.tolerance).first_needed(ts, entries)

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """The extents of the matches."""
        import numpy as np

        before = index.upto(keys, ts, equal=not self.strict) - 1
        after = index.upto(keys, ts, equal=True)
        low, high = before >= index.starts(keys), after < index.ends(keys)
        lows, highs = index.at(before), index.at(after)
        if self.tolerance is not None:
            low &= lows >= ts - self.tolerance
            high &= highs <= ts + self.tolerance
        high &= ~low | (highs - ts < ts - lows)
        at = np.where(high, after, before + ~low)
        return at, at + (low | high)

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """The rows of the batch with which the matches become final."""
        import numpy as np

        before = index.upto(keys, ts, equal=not self.strict) - 1
        after = index.upto(keys, ts, equal=True)
        known = np.where(after < index.ends(keys), arrivals.of(after, index), arrivals.never)
        low = before >= index.starts(keys)
        far = arrivals.when(np.where(low, ts + (ts - index.at(before)), ts), over=True)
        known = np.where(low, np.minimum(known, far), known)
        known = self._limited_many(known, ts, keys, arrivals)
        return np.maximum(known, arrivals.when(ts, over=True))

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first entry that may be needed."""
        return Backward(self.strict, self.tolerance).first_needed_many(ts, keys, index)

    def describe(self) -> str:
        """The rule in words, for `explain`."""
        return "the nearest right row" + (" at another time" if self.strict else "")


@dataclass(frozen=True, slots=True)
class Interval(Alignment):
    """All rows from `before` before a timestamp to `after` after it, both ends included."""

    before: Number
    after: Number

    def due(self, ts: Number) -> Due:
        """The right watermark from which on the matches may be final."""
        return ts + self.after, 1

    def match_range(self, ts: Number, entries: Sequence[Entry]) -> tuple[int, int]:
        """The extent of the matches."""
        lo = upto(entries, ts - self.before, equal=False)
        return lo, max(lo, upto(entries, ts + self.after, equal=True))

    def first_needed(self, ts: Number, entries: Sequence[Entry]) -> int:
        """The first entry that may be needed."""
        return upto(entries, ts - self.before, equal=False)

    def match_ranges(self, ts: Any, keys: Any, index: RightIndex) -> tuple[Any, Any]:
        """The extents of the matches."""
        import numpy as np

        lo = index.upto(keys, ts - self.before, equal=False)
        return lo, np.maximum(lo, index.upto(keys, ts + self.after, equal=True))

    def final_many(self, ts: Any, keys: Any, index: RightIndex, arrivals: RightProgress) -> Any:
        """The rows of the batch with which the matches become final."""
        return arrivals.when(ts + self.after, over=True)

    def first_needed_many(self, ts: Any, keys: Any, index: RightIndex) -> Any:
        """The first entry that may be needed."""
        return index.upto(keys, ts - self.before, equal=False)

    def describe(self) -> str:
        """The rule in words, for `explain`."""
        return "all right rows within the interval"
