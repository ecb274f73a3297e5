"""Delta policies over values that do not decrease within a partition, with numpy.

All tests are made as `new - old > threshold`, in this form: with floats `new > old + threshold`
is another question. The test cannot go from true to false while `new` grows, so places can be
found by halving.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from windowlib.columnar.grouping import Array, Places, ranges

Test: TypeAlias = Callable[[Array, Array, Any], Array]

# What was measured, in ns: all partitions make a step together (its numpy calls, and what each
# partition adds), one partition makes a step alone, and a row is looked at where all rows are.
STEP = 120_000
STEP_EACH = 150
JUMP = 1_500
ROW = 50

# Rows looked at in one go, of all partitions together, and steps of one partition in one go.
ROWS = 1 << 15
JUMPS = 64


def chain(
    values: Array, starts: Array, ends: Array, reference: Array, known: Array, threshold: Any
) -> tuple[Places, Array]:
    """The places that fire a delta policy, ascending, and each partition's last reference.

    Partition u has the places `starts[u]` to `ends[u]`, where values do not decrease; partitions
    come in the order of their places. A place fires if its value minus the reference is greater
    than the threshold (which is not negative), and its value is the reference from then on.
    Without a known reference the first value becomes it, and does not fire.

    >>> places, reference = chain(
    ...     np.array([1, 4, 5, 9, 2, 9]), np.array([0, 4]), np.array([4, 6]),
    ...     np.array([0, 0]), np.array([False, True]), 3,
    ... )
    >>> places.tolist(), reference.tolist()
    ([2, 3, 5], [9, 9])
    """
    some = np.flatnonzero(starts < ends)
    last = reference.astype(values.dtype)
    if not len(some):
        return np.empty(0, np.int64), last
    begin, end = starts[some], ends[some]
    last[some] = np.where(known[some], last[some], values.take(begin))
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; neighbours across partitions
        leaps = _leaps(values, begin, end, last[some], threshold)
        runs = _Runs(values, threshold, [leaps])
        runs.start(begin, end, last[some], leaps)
        fired = runs.run()
    last[some] = _last_fired(values, fired, begin, end, last[some])
    return fired, last


def _leaps(values: Array, begin: Array, end: Array, reference: Array, threshold: Any) -> Places:
    """Places that fire whatever fired before: already the value before them is too far away."""
    first, stop = int(begin[0]), int(end[-1])
    near = values[first:stop]
    places: Places = np.flatnonzero(near[1:] - near[:-1] > threshold) + (first + 1)
    owner = begin.searchsorted(places, side="right") - 1
    inside = (places > begin.take(owner)) & (places < end.take(owner))
    # A reference beyond the values (they ran backwards before this batch) is farther than that.
    inside &= values.take(places - 1) >= reference.take(owner)
    return places[inside]


def _last_fired(values: Array, fired: Places, begin: Array, end: Array, reference: Array) -> Array:
    """The value at the last place that fired in each stretch; the reference where none did."""
    if not len(fired):
        return reference
    place = fired.take(fired.searchsorted(end) - 1, mode="clip")
    return np.where((place >= begin) & (place < end), values.take(place), reference)


class _Runs:
    """Stretches of places, each with its reference, that go their way to the next boundaries."""

    def __init__(self, values: Array, threshold: Any, fired: list[Places]) -> None:
        self.values = values
        self.threshold = threshold
        self.fired = fired
        self.width = 8  # of the search: about twice the distance of boundaries

    def start(self, begin: Array, end: Array, reference: Array, leaps: Places) -> None:
        """The partitions, cut where it is known that a place fires."""
        where = begin.searchsorted(leaps, side="right")
        self.place = np.insert(begin, where, leaps + 1)
        self.end = np.insert(end, begin.searchsorted(leaps, side="right") - 1, leaps)
        self.reference = np.insert(reference, where, self.values.take(leaps))

    def run(self) -> Places:
        """Take the cheapest way, as far as the distance of boundaries so far tells."""
        self.keep()
        gap = float("inf")
        while count := len(self.place):
            alone, together = JUMP, STEP / count + STEP_EACH
            if gap * ROW < min(alone, together):
                gap = self.look_at_all()
            else:
                gap = self.jump() if alone < together else self.step()
            self.keep()
        fired = np.concatenate(self.fired)
        fired.sort()
        return fired

    def keep(self) -> None:
        """Drop the runs in which nothing fires any more, as their last value tells."""
        some = np.flatnonzero(self.place < self.end)
        far = self.values.take(self.end[some] - 1) - self.reference[some] > self.threshold
        some = some[far]
        if len(some) < len(self.place):
            self.place, self.end = self.place[some], self.end[some]
            self.reference = self.reference[some]

    def next(self, place: Array, end: Array, reference: Array) -> Places:
        return _gallop(_not_yet, self.values, reference, self.threshold, place, end, self.width)

    def learn(self, gap: float) -> float:
        """Remember how far boundaries are apart."""
        self.width = 1 << max(2, int(min(gap, 1 << 30)).bit_length())
        return gap

    def step(self) -> float:
        """Every run goes to its next boundary; there is one, or it would have been dropped."""
        place = self.next(self.place, self.end, self.reference)
        self.fired.append(place)
        gap = float((place - self.place).mean()) + 1
        self.place = place + 1
        self.reference = self.values.take(place)
        return self.learn(gap)

    def jump(self) -> float:
        """Each run alone goes to some boundaries."""
        view, fired, rows = self.values.data, list[int](), 0
        for run, end in enumerate(self.end.tolist()):
            begin = place = int(self.place[run])
            reference = self.reference[run].item()
            for _ in range(JUMPS):
                place = _jump(view, place, end, reference, self.threshold)
                if place == end:
                    break
                fired.append(place)
                reference = view[place]
                place += 1
            rows += place - begin
            self.place[run], self.reference[run] = place, reference
        self.fired.append(np.array(fired, np.int64))
        return self.learn(rows / max(1, len(fired)))

    def look_at_all(self) -> float:
        """Find the next boundary of every row, then follow from one to the next."""
        share = max(1, ROWS // len(self.place))
        end = np.minimum(self.end, self.place + share)
        lengths = end - self.place
        rows = ranges(self.place, lengths)
        first = self.next(self.place, end, self.reference)
        after = self.next(rows + 1, np.repeat(end, lengths), self.values.take(rows))
        # Both counted as positions in `rows`.
        shift = np.cumsum(lengths) - lengths - self.place
        following = (after + np.repeat(shift, lengths)).tolist()
        fired = []
        for at, stop in zip((first + shift).tolist(), (end + shift).tolist(), strict=True):
            position = at
            while position < stop:
                fired.append(position)
                position = following[position]
        self.advance(end, rows.take(np.array(fired, np.int64)))
        return self.learn(len(rows) / max(1, len(fired)))

    def advance(self, end: Array, fired: Places) -> None:
        """All runs have come to `end`; the last that fired in each is its reference."""
        self.fired.append(fired)
        self.reference = _last_fired(self.values, fired, self.place, end, self.reference)
        self.place = end


def oldest_within(values: Array, lo: Array, hi: Array, newest: Array, threshold: Any) -> Places:
    """For each query the first place in `[lo, hi)` that is near enough to `newest`, or `hi`.

    Near enough is a value of which `newest - value > threshold` is not true. Values do not
    decrease in `[lo, hi)`.

    >>> values = np.array([1, 4, 6, 9])
    >>> oldest_within(values, np.array([0, 0, 2]), np.array([4, 3, 2]), np.array([9, 99, 9]), 5)
    array([1, 3, 2])
    """
    if not len(lo) or not len(values):
        return lo.astype(np.int64)
    with np.errstate(invalid="ignore"):
        return _search(_too_old, values, newest, threshold, lo, hi)


def _not_yet(value: Array, old: Array, threshold: Any) -> Array:
    return np.logical_not(value - old > threshold)


def _too_old(value: Array, new: Array, threshold: Any) -> Array:
    return np.greater(new - value, threshold)


def _search(
    test: Test, values: Array, given: Array, threshold: Any, lo: Array, hi: Array
) -> Places:
    """The first place of each `[lo, hi)` where the test, true so far, is false; hi if none is."""
    place = lo.astype(np.int64)
    last = hi - 1
    for exponent in reversed(range(int((hi - lo).max()).bit_length())):
        # Probes that overshoot look at the last place, which gives the same answer.
        probe = place + ((1 << exponent) - 1)
        np.minimum(probe, last, out=probe)
        place += test(values.take(probe), given, threshold).astype(np.int64) << exponent
        np.minimum(place, hi, out=place)
    return place


def _gallop(
    test: Test, values: Array, given: Array, threshold: Any, lo: Array, hi: Array, width: int
) -> Places:
    """`_search` that expects to find the place not far from lo."""
    near = np.minimum(lo + width, hi)
    place = _search(test, values, given, threshold, lo, near)
    more = np.flatnonzero((place == near) & (near < hi))
    if len(more):
        place[more] = _gallop(test, values, given[more], threshold, near[more], hi[more], 8 * width)
    return place


def _jump(view: memoryview, place: int, end: int, reference: Any, threshold: Any) -> int:
    """The next boundary of one run, or its end."""
    guess = bisect_right(view, reference + threshold, place, end)
    if (guess == end or view[guess] - reference > threshold) and (
        guess == place or not view[guess - 1] - reference > threshold
    ):
        return guess
    return bisect_left(
        range(end), True, place, end, key=lambda other: view[other] - reference > threshold
    )
