"""The loops that numba compiles, each when it is first called; the results are kept on disk.

Extents may be empty. Indices are unsigned where it counts: a signed one might be negative and count
from the end, and looking after that keeps loops out of the vector registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from windowlib.columnar.primitives.grouping import Array, Places

Function = TypeVar("Function", bound=Callable[..., Any])

# Floats of so many values are added in vector registers, some 16 partial sums; the sums of such
# leaves are added with compensation.
LEAF = 256

# Values in a line of the cache. Touching each line in turn brings the values in before they are
# wanted in another order: 1.8 ns for a value instead of 2.4, in a batch of 64 k rows.
LINE = 8

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


def compiled(function: Function) -> Function:
    """Compile a loop."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def reordered(function: Function) -> Function:
    """Compile a loop that may add in any order."""
    return cast(Function, numba.njit(cache=True, nogil=True, fastmath={"reassoc"})(function))


@compiled
def count(ids: Array, low: int, ends: Places) -> int:
    """How many rows each id has, then where each id starts; returns how many ids occur."""
    for row in range(len(ids)):
        ends[np.uint64(ids[row] - low)] += 1
    touched = 0
    total = 0
    for index in range(len(ends)):
        size = ends[index]
        touched += size > 0
        ends[index] = total
        total += size
    return touched


@compiled
def place(ids: Array, low: int, ends: Places, order: Places) -> None:
    """Put each row in its place; what was an id's start becomes its end."""
    for row in range(len(ids)):
        index = np.uint64(ids[row] - low)
        end = ends[index]
        order[np.uint64(end)] = row
        ends[index] = end + 1


@compiled
def segments(ends: Places, low: int, touched: Places, starts: Places) -> None:
    """The ids that occur and where they start, from the end of each."""
    found = 0
    before = 0
    for index in range(len(ends)):
        if ends[index] > before:
            touched[found] = index + low
            starts[found] = before
            found += 1
            before = ends[index]
    starts[found] = before


@compiled
def shape(lo: Array, hi: Array) -> tuple[int, int, int, bool]:
    """How many places extents span, cover, have at most, and whether they ascend."""
    first, last, total, longest, ascends = lo[0], hi[0], 0, 0, True
    for index in range(len(lo)):
        begin, end = lo[index], hi[index]
        total += end - begin
        longest = max(longest, end - begin)
        first = min(first, begin)
        last = max(last, end)
        if index:
            ascends &= (begin >= lo[index - 1]) & (end >= hi[index - 1])
    return last - first, total, longest, ascends


@compiled
def look_up(table: Array, base: int, values: Array, found: Array) -> bool:
    """What a table has for each value; false if it has nothing for one of them."""
    size = np.uint64(len(table))
    for row in range(len(values)):
        slot = np.uint64(values[row] - base)
        if slot >= size or table[slot] < 0:
            return False
        found[row] = table[slot]
    return True


@compiled
def gather(values: Array, order: Places, result: Array) -> Any:
    """The values in another order."""
    touched = values[0]
    for index in range(0, len(values), LINE):
        touched += values[index]
    for index in range(len(order)):
        result[index] = values[np.uint64(order[index])]
    return touched


@reordered
def _leaf(values: Array, begin: int, end: int) -> Any:
    total = values[begin]
    for index in range(np.uint64(begin + 1), np.uint64(end)):
        total += values[index]
    return total


@compiled
def float_sums(values: Array, lo: Array, hi: Array, result: Array) -> None:
    """Sums of extents, each on its own."""
    for extent in range(len(lo)):
        begin, end = lo[extent], hi[extent]
        total = error = 0.0
        while begin < end:
            stop = min(begin + LEAF, end)
            term = _leaf(values, begin, stop)
            both = total + term
            if abs(total) >= abs(term):
                error += (total - both) + term
            else:
                error += (term - both) + total
            total = both
            begin = stop
        result[extent] = total + error if np.isfinite(total) else total


@compiled
def int_sums(values: Array, lo: Array, hi: Array, result: Array) -> None:
    """Sums of extents, each on its own."""
    for extent in range(len(lo)):
        if lo[extent] < hi[extent]:
            result[extent] = _leaf(values, lo[extent], hi[extent])
        else:
            result[extent] = 0


def _picking(pick: Callable[[Any, Any], Any]) -> tuple[Callable[..., None], ...]:
    """The loops for `max` or `min`."""

    @compiled
    def alone(values: Array, lo: Array, hi: Array, result: Array, nothing: Any) -> None:
        """Each extent on its own, four values at a time, which need not wait for each other."""
        for extent in range(len(lo)):
            index, end = np.uint64(lo[extent]), np.uint64(hi[extent])
            a = b = c = d = nothing
            while index + FOUR <= end:
                a = pick(a, values[index])
                b = pick(b, values[index + ONE])
                c = pick(c, values[index + TWO])
                d = pick(d, values[index + THREE])
                index += FOUR
            while index < end:
                a = pick(a, values[index])
                index += ONE
            result[extent] = pick(pick(a, b), pick(c, d))

    @compiled
    def sliding(
        values: Array, lo: Array, hi: Array, result: Array, front: Array, nothing: Any
    ) -> None:
        """Ascending extents; `front` has room for the longest."""
        base = middle = grown = np.uint64(lo[0])
        back = nothing
        for extent in range(len(lo)):
            begin, end = np.uint64(lo[extent]), np.uint64(hi[extent])
            if begin == end:
                result[extent] = nothing
                continue
            if begin >= middle:
                back = nothing
                for offset in range(end - begin):
                    back = pick(back, values[end - ONE - offset])
                    front[end - ONE - offset - begin] = back
                base, middle, grown, back = begin, end, end, nothing
            while grown < end:
                back = pick(back, values[grown])
                grown += ONE
            result[extent] = pick(front[begin - base], back)

    @compiled
    def slide(values: Array, length: int, result: Array, fronts: Array) -> None:
        """An extent from every value on; `fronts` has two rows of this length."""
        front, other = fronts
        best = values[length - 1]
        for place in range(np.uint64(length)):
            at = np.uint64(length) - ONE - place
            best = pick(best, values[at])
            front[at] = best
        for begin in range(0, len(result), length):
            result[begin] = front[0]
            later, out = values[begin + length : begin + 2 * length], result[begin + 1 :]
            last, size = np.uint64(len(later) - 1), np.uint64(min(length - 1, len(out)))
            if not size:
                return
            # From here on, and from the next middle backwards, which need not wait for each other.
            back, best = later[0], later[last]
            for place in range(size):
                back = pick(back, later[place])
                best = pick(best, later[last - place])
                other[last - place] = best
                out[place] = pick(front[place + ONE], back)
            other[0] = pick(best, later[0])
            front, other = other, front

    return alone, sliding, slide


# Ascending extents that overlap much: the results of [begin, middle) for every begin are made at
# once, from the middle backwards; from the middle on, one result grows with the extents. An extent
# that starts behind the middle has its end as the next one. Every value is looked at twice.
largest, sliding_largest, slide_largest = _picking(max)
smallest, sliding_smallest, slide_smallest = _picking(min)


@compiled
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The sum rounded, and what rounding took away."""
    high = a + b
    other = high - a
    return high, (a - (high - other)) + (b - other)


@compiled
def settled(total: float, errors: float, least: float) -> tuple[float, float]:
    """A sum, its errors and their errors as a pair; a sum that is not finite has none."""
    if not np.isfinite(total):
        return total, 0.0
    high, low = two_sum(total, errors)
    low += least
    total = high + low
    return total, low - (total - high)


# Sums carry their errors along, and the errors of those: where large values cancel, the errors are
# what is left, and they may cancel too.


@compiled
def pairs(values: Array, lo: Array, hi: Array, high: Array, low: Array) -> None:
    """Sums of extents as pairs, each on its own."""
    for extent in range(len(lo)):
        total = errors = least = 0.0
        for index in range(np.uint64(lo[extent]), np.uint64(hi[extent])):
            total, error = two_sum(total, values[index])
            errors, error = two_sum(errors, error)
            least += error
        high[extent], low[extent] = settled(total, errors, least)


@compiled
def sliding_pairs(
    values: Array, lo: Array, hi: Array, high: Array, low: Array, front: Array
) -> None:
    """Sums of ascending extents as pairs; `front` has three rows as long as the longest."""
    base = middle = grown = np.uint64(lo[0])
    total = errors = least = 0.0
    for extent in range(len(lo)):
        begin, end = np.uint64(lo[extent]), np.uint64(hi[extent])
        if begin == end:
            high[extent] = low[extent] = 0.0
            continue
        if begin >= middle:
            total = errors = least = 0.0
            for offset in range(end - begin):
                index = end - ONE - offset
                total, error = two_sum(total, values[index])
                errors, error = two_sum(errors, error)
                least += error
                front[0, index - begin] = total
                front[1, index - begin] = errors
                front[2, index - begin] = least
            base, middle, grown = begin, end, end
            total = errors = least = 0.0
        while grown < end:
            total, error = two_sum(total, values[grown])
            errors, error = two_sum(errors, error)
            least += error
            grown += ONE
        both, error = two_sum(front[0, begin - base], total)
        lower, rest = two_sum(front[1, begin - base], errors)
        lower, error = two_sum(lower, error)
        rest += error + front[2, begin - base] + least
        high[extent], low[extent] = settled(both, lower, rest)


@compiled
def chain(
    values: Array,
    starts: Array,
    ends: Array,
    known: Array,
    threshold: Any,
    reference: Array,
    places: Places,
) -> int:
    """Follow each partition from one boundary to the next; returns how many places fired."""
    fired = 0
    for partition in range(len(starts)):
        place, end = starts[partition], ends[partition]
        if place == end:
            continue
        old = reference[partition] if known[partition] else values[place]
        while place < end:
            if values[place] - old > threshold:
                old = values[place]
                places[fired] = place
                fired += 1
                place += 1
                continue
            # Leap while nothing fires, then come back by halving: nothing does below `place`.
            step = 1
            while place + step < end and not values[place + step] - old > threshold:
                place += step
                step *= 2
            stop = min(place + step, end)
            place += 1
            while place < stop:
                half = (place + stop) >> 1
                if values[half] - old > threshold:
                    stop = half
                else:
                    place = half + 1
        reference[partition] = old
    return fired


@compiled
def oldest_within(
    values: Array, lo: Array, hi: Array, newest: Array, threshold: Any, places: Places
) -> None:
    """Halve for each query, from where the one before ended if that is no detour."""
    hint = 0
    for query in range(len(lo)):
        begin, end, new = lo[query], hi[query], newest[query]
        if begin < hint <= end and new - values[hint - 1] > threshold:
            begin = hint
            step = 1
            while begin + step <= end and new - values[begin + step - 1] > threshold:
                begin += step
                step *= 2
            end = min(begin + step, end)
        while begin < end:
            half = (begin + end) >> 1
            if new - values[half] > threshold:
                begin = half + 1
            else:
                end = half
        hint = places[query] = begin


# Loops over points and their rivals.
#
# Rivals are kept in blocks of shape (dimensions, LANES): the same coordinate of so many rivals
# fills vector registers, and one look at a block says whether any of them can still win.


LANES = 64
STRONG = 4


@compiled
def skyline_places(
    points: Array, part: Places, starts: Places, among: bool, blocks: Array, places: Places
) -> int:
    """Where the points of a front are; returns how many these are.

    `starts` says which block is the first of each part; there is room for all points. Points of
    one part are compared with each other only `among` themselves.
    """
    dimensions, size = points.shape
    known = np.zeros(len(starts), np.int64)
    point = np.empty(dimensions)
    found = 0
    for at in range(size):
        if _hopeless(points, at, places[: min(found, STRONG)]):
            continue
        for k in range(dimensions):
            point[k] = points[k, at]
        own, beaten = part[at], False
        for number in range(len(starts)):
            if among or number != own:
                first = starts[number]
                last = first + (known[number] + LANES - 1) // LANES
                beaten = beaten or _beaten(point, blocks, first, last)
        if beaten:
            continue
        block, lane = blocks[starts[own] + known[own] // LANES], known[own] % LANES
        if not lane:
            block[:] = np.inf  # beats no point
        for k in range(dimensions):
            block[k, lane] = point[k]
        known[own] += 1
        places[found] = at
        found += 1
    return found


@compiled
def _hopeless(points: Array, at: int, strong: Places) -> bool:
    """Whether one of the strongest points is nowhere greater: that is so for most, so ask first."""
    for rival in strong:
        k = 0
        while k < len(points) and points[k, rival] <= points[k, at]:
            k += 1
        if k == len(points):
            return True
    return False


@compiled
def _beaten(point: Array, blocks: Array, first: int, last: int) -> bool:
    """Whether a rival in these blocks is nowhere greater than a point."""
    wins = np.empty(LANES, np.uint8)
    for number in range(first, last):
        block = blocks[number]
        for lane in range(LANES):
            wins[lane] = 1
        anyone = np.uint8(1)
        for k in range(len(point)):
            value = point[k]
            anyone = np.uint8(0)
            for lane in range(LANES):
                wins[lane] &= block[k, lane] <= value
                anyone |= wins[lane]
            if not anyone:
                break
        if anyone:
            return True
    return False


@compiled
def dominance_counts(points: Array, blocks: Array, found: Array) -> None:
    """In how many dimensions a rival is at most not greater than a point, but not in all."""
    dimensions, size = points.shape
    counts = np.empty(LANES, np.int64)
    point = np.empty(dimensions)
    for at in range(size):
        for k in range(dimensions):
            point[k] = points[k, at]
        best = 0
        for number in range(len(blocks)):
            block = blocks[number]
            for lane in range(LANES):
                counts[lane] = 0
            for k in range(dimensions):
                value = point[k]
                for lane in range(LANES):
                    counts[lane] += block[k, lane] <= value
            for lane in range(LANES):
                best = max(best, counts[lane] * (counts[lane] < dimensions))
            if best == dimensions - 1:
                break
        found[at] = best
