"""Delta policies over values that do not decrease within a partition, with numpy.

All tests are made as `new - old > threshold`, in this form: with floats `new > old + threshold`
is another question. The test cannot go from true to false while `new` grows, so places can be
found by halving.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from math import floor, inf, nextafter
from typing import Any, TypeAlias

import numpy as np

from windowlib.columnar.primitives.grouping import Array, Places, ranges

Test: TypeAlias = Callable[[Array, Array, Any], Array]

# What was measured, in ns: all partitions make a step together (its numpy calls, and what each
# partition adds), one partition makes a step alone, and a row is looked at where all rows are.
STEP = 120_000
STEP_EACH = 150
JUMP = 1_100
ROW = 60

# Rows looked at in one go, of all partitions together, and steps of one partition in one go.
ROWS = 1 << 15
JUMPS = 64

# Sorting a place takes as long as going over this many rows.
TICKED = 32

# So many partitions search together, if they fire with one row in so many, and the one that fires
# most not more often than so many times the mean.
TOGETHER, SPARSE, UNEVEN = 64, 4, 3

# So many partitions look at their next rows in lockstep, if boundaries are at most so far apart.
LOCKSTEP, REACH = 512, 64

# Numbers up to here can be added up without a thought of 64 bits.
FAR = 2**61

# What a run starts with: a place that fires for certain, a partition, or what is no partition's.
LEAP, BEGIN, GAP = 1, 2, 3


def chain(
    values: Array, starts: Array, ends: Array, reference: Array, known: Array, threshold: Any
) -> tuple[Places, Array]:
    """See `primitives.chain`."""
    threshold = exact(threshold, values)
    some = np.flatnonzero(starts < ends)
    last = reference.astype(values.dtype)
    if not len(some):
        return np.empty(0, np.int64), last
    begin, end = starts[some], ends[some]
    old = np.where(known[some], last[some], values.take(begin))
    apart = _apart(values, begin, end, threshold) if values.dtype.kind == "i" else 0
    if apart:
        fired = _Axis(values, begin, end, threshold, apart).chain(old)
    else:
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; between partitions
            runs = _Runs(values, threshold)
            runs.start(begin, end, old)
            fired = runs.run()
    last[some] = _last_fired(values, fired, begin, end, old)
    return fired, last


def _apart(values: Array, begin: Array, end: Array, threshold: Any) -> int:
    """How many rows boundaries are apart, if partitions of whole numbers can share an axis.

    0 unless they are many, and fire about as often, and not with most rows.
    """
    if len(begin) < TOGETHER:
        return 0
    first, last = values.take(begin), values.take(end - 1)
    low, high = int(first.min()), int(last.max())
    if max(-low, high, len(begin) * (high - low + threshold + 2)) >= FAR:
        return 0
    steps = (last - first) // (threshold + 1) + 1  # at most
    most, total, rows = int(steps.max()), int(steps.sum()), int((end - begin).sum())
    alike = SPARSE * total <= rows and most * len(begin) <= UNEVEN * total
    return max(1, rows // total) if alike else 0


class _Axis:
    """Partitions end to end on one axis, farther apart than the threshold, and so ascending.

    Whole numbers are exact there, so that all partitions find their next place in one search.
    """

    def __init__(self, values: Array, begin: Array, end: Array, threshold: Any, apart: int) -> None:
        self.begin, self.end, self.threshold = begin, end, threshold
        self.low, self.high = int(values.take(begin).min()), int(values.take(end - 1).max())
        far = self.high - self.low + threshold + 2
        self.shift = np.arange(len(begin)) * far - self.low
        reach = 1 << (apart + apart // 2).bit_length()
        self.reach = reach if reach <= REACH and len(begin) >= LOCKSTEP else 0
        first, stop, following = begin[0], end[-1], np.append(begin[1:], end[-1])
        self.axis = np.empty(stop - first + self.reach, np.int64)
        own = self.axis[: stop - first]
        np.add(np.repeat(self.shift, following - begin), values[first:stop], out=own)
        self.axis[len(own) :] = np.iinfo(np.int64).max  # so that every look finds something
        gaps = following - end
        if gaps.any():  # what is no partition's is beyond the one before it
            own[ranges(end - first, gaps)] = np.repeat(self.shift + (self.low + far - 1), gaps)

    def chain(self, reference: Array) -> Places:
        """The boundaries of all partitions, ascending."""
        # A reference that is farther away gives the same answer, and might be too far to compute.
        nearest = np.clip(reference, self.low - self.threshold - 1, self.high)
        sought = nearest + self.threshold + self.shift
        first, size = self.begin[0], len(self.begin)
        place, own, which = self.begin - first, self.end - first, np.arange(size)
        steps: list[Places] = []
        while len(sought):
            place = self.next(place, sought)
            found = place < own
            if not found.all():
                place, own, which = place[found], own[found], which[found]
            step = np.full(size, -1)
            step[which] = place
            steps.append(step)
            sought = self.axis.take(place)
            sought += self.threshold
            place = place + 1
        table = np.stack(steps, axis=1).ravel()
        fired: Places = table[table >= 0] + first
        return fired

    def next(self, place: Places, sought: Array) -> Places:
        """The first place of each partition, from one on, whose value is above what is sought.

        Most are near: some probes together take half the time of a search among all values.
        """
        half = self.reach // 2
        if not half or len(place) < LOCKSTEP:
            return self.axis.searchsorted(sought, "right")
        while half:
            place = place + (self.axis.take(place + (half - 1)) <= sought) * half
            half //= 2
        farther = np.flatnonzero(self.axis.take(place) <= sought)
        if len(farther):
            place[farther] = self.axis.searchsorted(sought[farther], "right")
        return place


def _ascending(fired: list[Places], rows: int) -> Places:
    """All places that fired among so many rows: sorted, or ticked off where they are many."""
    places = np.concatenate(fired)
    if not len(places) or TICKED * len(places) < rows:
        places.sort()
        return places
    first = int(places.min())
    ticks = np.zeros(int(places.max()) - first + 1, np.bool_)
    ticks[places - first] = True
    return np.flatnonzero(ticks) + first


def _last_fired(values: Array, fired: Places, begin: Array, end: Array, reference: Array) -> Array:
    """The value at the last place that fired in each stretch; the reference where none did."""
    if not len(fired):
        return reference
    place = fired.take(fired.searchsorted(end) - 1, mode="clip")
    return np.where((place >= begin) & (place < end), values.take(place), reference)


class _Runs:
    """Stretches of places, each with its reference, that go their way to the next boundaries."""

    def __init__(self, values: Array, threshold: Any) -> None:
        self.values = values
        self.threshold = threshold
        self.fired: list[Places] = []
        self.width = 8  # of the search: about twice the distance of boundaries

    def start(self, begin: Array, end: Array, reference: Array) -> None:
        """The partitions, cut at leaps: places that fire whatever fired before them.

        Already the value before a leap is too far away. What comes after it is a run of its own.
        """
        first, stop = int(begin[0]), int(end[-1])
        self.rows = stop - first
        near = self.values[first:stop]
        kinds = np.zeros(len(near), np.int8)
        np.greater(near[1:] - near[:-1], self.threshold, out=kinds[1:], casting="unsafe")
        self.clear(kinds, begin, end, reference)
        kinds[end[:-1] - first] = GAP
        kinds[begin - first] = BEGIN
        heads = np.flatnonzero(kinds)
        kinds = kinds.take(heads)
        heads += first
        leap = kinds == LEAP
        self.fired.append(heads[leap])
        self.reference = self.values.take(heads)
        self.reference[kinds == BEGIN] = reference
        self.place = heads + leap
        self.end = np.append(heads[1:], stop)
        self.keep(np.flatnonzero((kinds != GAP) & (self.place < self.end)))

    def clear(self, kinds: Array, begin: Array, end: Array, reference: Array) -> None:
        """Take back leaps between partitions, and those that are not farther than a reference.

        A reference can be beyond the first values, if values ran backwards before this batch.
        """
        gaps = begin[1:] - end[:-1]
        if gaps.any():
            kinds[ranges(end[:-1], gaps) - begin[0]] = 0
        ahead = np.flatnonzero(reference > self.values.take(begin))
        if len(ahead):
            lengths = (end - begin)[ahead] - 1
            places = ranges(begin[ahead] + 1, lengths)
            near = self.values.take(places - 1) < np.repeat(reference[ahead], lengths)
            kinds[places[near] - begin[0]] = 0

    def run(self) -> Places:
        """Take the cheapest way, as far as the distance of boundaries so far tells."""
        gap = inf
        while count := len(self.place):
            alone, together = JUMP, STEP / count + STEP_EACH
            if gap * ROW < min(alone, together):
                gap = self.look_at_all()
            else:
                gap = self.jump() if alone < together else self.step()
            self.keep(np.flatnonzero(self.place < self.end))
        return _ascending(self.fired, self.rows)

    def keep(self, some: Places) -> None:
        """Keep these runs, without those where nothing fires any more, as the last value tells."""
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
    """See `primitives.oldest_within`."""
    if not len(lo) or not len(values):
        return lo.astype(np.int64)
    with np.errstate(invalid="ignore"):
        return _search(_too_old, values, newest, exact(threshold, values), lo, hi)


def exact(threshold: Any, values: Array) -> Any:
    """The threshold in the type of the values, with the same answers for all of them.

    A difference of integers is greater than 2.5 if it is greater than 2. A float that is not
    equal to the threshold must be below it.
    """
    if values.dtype.kind == "f":
        near = float(threshold)
        return near if near <= threshold else nextafter(near, -inf)
    limit = np.iinfo(np.int64).max
    return limit if threshold >= limit else floor(threshold)


def _not_yet(value: Array, old: Array, threshold: Any) -> Array:
    answer: Array = ~(value - old > threshold)
    return answer


def _too_old(value: Array, new: Array, threshold: Any) -> Array:
    answer: Array = new - value > threshold
    return answer


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
