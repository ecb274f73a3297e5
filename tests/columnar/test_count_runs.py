"""Rows that go to runs as they come, and windows over slices, against loops in plain Python."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.helpers.examples import examples
from windowlib.columnar.primitives.arrivals import ArrivalRuns, SliceRows, put, signs

thorough = settings(max_examples=examples(150))
PARTITIONS = 4
TABLE = np.array([2, 1, 0, -1, 3], np.int32)


class Runs:
    """Which rows are in which run, by a loop over rows."""

    def __init__(self, ids, size, held):
        self.held, self.closings, self.first = list(held), list[Any](), list[int]()
        opened = [[("carried", partition)] if n else [] for partition, n in enumerate(held)]
        for row, partition in enumerate(ids):
            if not opened[partition]:
                self.first.append(row)
            opened[partition].append(("row", row))
            self.held[partition] += 1
            if self.held[partition] == size:
                self.closings.append((partition, row, opened[partition]))
                opened[partition], self.held[partition] = [], 0
        self.opened = opened

    def members(self, values, carried):
        """The values of the runs that close, and of those that are open."""
        kinds = {"carried": carried, "row": values}
        closed = [[kinds[kind][at] for kind, at in run] for *_, run in self.closings]
        return closed, [[kinds[kind][at] for kind, at in run] for run in self.opened]


def drawn(values):
    """Partitions and values of rows; the size of runs; how far open ones are, and their state."""

    def four(of):
        return st.lists(of, min_size=PARTITIONS, max_size=PARTITIONS)

    return st.tuples(
        st.lists(st.tuples(st.integers(0, PARTITIONS - 1), values), max_size=30),
        st.integers(1, 4),
        four(st.integers(0, 3)),
        four(values),
    )


def keyed(ids):
    """Keys from 10 on whose partitions these are, and the table that says so."""
    return np.array([12 - i if i < 3 else 14 for i in ids], np.int64), 10, TABLE


def dealt(rows, size, held, dtype=np.int64, opens=True):
    ids, values = [i for i, _ in rows], [value for _, value in rows]
    held = [n % size for n in held]
    keys, base, table = keyed(ids)
    runs = ArrivalRuns(keys, base, table, np.array(held, np.intp), size, opens=opens)
    return runs, Runs(ids, size, held), np.array(values, dtype), values


@thorough
@given(drawn(st.integers(0, 9)))
def test_each_row_goes_to_the_open_run_of_its_partition(case):
    rows, size, held, _ = case
    runs, expected, _, _ = dealt(rows, size, held)
    assert expected.held == runs.held.tolist()
    assert expected.first == runs.first.tolist()
    assert [row for _, row, _ in expected.closings] == runs.rows.tolist()
    assert [owner for owner, _, _ in expected.closings] == runs.owners.tolist()
    assert [partition for partition, _ in rows] == runs.partitions(slice(None)).tolist()
    runs, *_ = dealt(rows, size, held, opens=False)
    assert [row for _, row, _ in expected.closings] == runs.rows.tolist()
    assert not len(runs.first)


@thorough
@given(drawn(st.integers(0, 9)))
def test_each_row_has_a_place_in_its_run(case):
    rows, size, held, _ = case
    runs, expected, _, _ = dealt(rows, size, held)
    full = [(run, size) for *_, run in expected.closings]
    wanted = {}
    for number, (run, filled) in enumerate(
        [*full, *zip(expected.opened, expected.held, strict=True)]
    ):
        mine = [row for kind, row in run if kind == "row"]
        for place, row in enumerate(mine, number * size + filled - len(mine)):
            wanted[row] = place
    assert [wanted[row] for row in range(len(rows))] == runs.places().tolist()


@thorough
@given(st.integers(1, 9), st.lists(st.integers(-20, 20), unique=True), st.integers(-9, 9))
def test_values_without_a_place_go_to_the_last(size, places, first):
    into = np.full(size, -1.0)
    put(np.arange(len(places)) + 0.5, np.array(places, np.intp), first, into)
    there = {place - first: row + 0.5 for row, place in enumerate(places)}
    assert [there.get(place, -1.0) for place in range(size - 1)] == into[:-1].tolist()


@pytest.mark.parametrize("key", [9, 13, 15, -(2**63), 2**63 - 1])
def test_a_key_that_is_not_in_the_table(key):
    held = np.zeros(PARTITIONS, np.intp)
    assert ArrivalRuns(np.array([10, 14]), 10, TABLE, held, 2, opens=True).complete
    assert not ArrivalRuns(np.array([10, key, 14]), 10, TABLE, held, 2, opens=True).complete


@thorough
@given(drawn(st.integers(-(2**40), 2**40)))
def test_whole_numbers_of_a_run(case):
    rows, size, held, carried = case
    runs, expected, data, values = dealt(rows, size, held)
    before = np.array(carried, np.int64)
    closed, opened = expected.members(values, carried)
    info = np.iinfo(np.int64)
    found = runs.sums(data, before)
    assert [list(map(sum, part)) for part in (closed, opened)] == [f.tolist() for f in found]
    found = runs.largest(data, before)
    wanted = [[max(each, default=info.min) for each in part] for part in (closed, opened)]
    assert wanted == [f.tolist() for f in found]
    found = runs.smallest(data, before)
    wanted = [[min(each, default=info.max) for each in part] for part in (closed, opened)]
    assert wanted == [f.tolist() for f in found]
    assert runs.sums(None, None) == (None, None)
    bare = [list(map(sum, part)) for part in expected.members(values, [0] * PARTITIONS)]
    assert bare == [f.tolist() for f in runs.sums(data, None)]
    kept = [list(map(sum, part)) for part in expected.members([0] * len(values), carried)]
    assert kept == [f.tolist() for f in runs.sums(None, before)]


TAME = st.floats(-1e6, 1e6)
LARGE = st.sampled_from([1e16, -1e16, 1e32, -1e32, 1e100, -1e100])


@thorough
@given(
    st.sampled_from([TAME, TAME | LARGE, st.floats(0, 1e20), st.floats(-1e20, 0)]).flatmap(drawn),
    st.booleans(),
)
def test_sums_of_floats_are_pairs(case, pairs):
    rows, size, held, carried = case
    runs, expected, data, values = dealt(rows, size, held, np.float64)
    low = [each * 2.0**-60 if pairs else 0.0 for each in carried]
    before = np.array(carried), np.array(low) if pairs else None
    exact = [Fraction(a) + Fraction(b) for a, b in zip(carried, low, strict=True)]
    members = expected.members([Fraction(each) for each in values], exact)
    tame, sign = signs(data)
    assert tame
    assert {0: np.signbit(data).any() or not len(data), 1: True, -1: np.signbit(data).all()}[sign]
    found = runs.two_sums(data, *before, one_sign=sign != 0)
    for mine, (high, rest) in zip(members, found, strict=True):
        check_pairs(mine, high, rest)


def check_pairs(mine, high, low):
    assert len(mine) == len(high) == len(low)
    for numbers, one, two in zip(mine, high.tolist(), low.tolist(), strict=True):
        size = sum(map(abs, numbers))
        assert abs(sum(numbers) - Fraction(one) - Fraction(two)) <= size * Fraction(2) ** -95
        assert abs(two) <= abs(one) * 2.0**-52


@thorough
@given(st.sampled_from([st.floats(0, 1e20), st.floats(-1e20, 0)]).flatmap(drawn))
def test_floats_that_need_no_pairs_are_added_in_order_of_arrival(case):
    rows, size, held, carried = case
    runs, expected, data, values = dealt(rows, size, held, np.float64)
    members = expected.members(values, carried)
    found = runs.sums(data, np.array(carried))
    assert [list(map(added, part)) for part in members] == [f.tolist() for f in found]


def added(floats):
    """A sum straight from left to right, which the built-in `sum` is only before Python 3.12."""
    total = 0.0
    for each in floats:
        total += each
    return total


@pytest.mark.parametrize("one_sign", [True, False])
def test_a_sum_that_is_infinite_stays_so(one_sign):
    rows = [(0, 1.5), (1, 2.0), (0, 0.5), (1, 1.0), (2, 4.0)]
    runs, _, values, _ = dealt(rows, 3, [1, 1, 1, 0], np.float64)
    state = np.array([np.inf, 9.0, -np.inf, np.nan])
    found = runs.two_sums(values, state, None, one_sign=one_sign)
    (high, low), (later, rest) = [[part.tolist() for part in pair] for pair in found]
    assert ([np.inf, 12.0], [0.0, 0.0]) == (high, low)
    assert ([0.0, 0.0, -np.inf, 0.0], [0.0] * 4) == (later, rest)


def test_largest_and_smallest_floats():
    rows = [(0, 1.5), (1, -2.0), (0, 0.5), (1, np.inf)]
    runs, _, values, _ = dealt(rows, 3, [0, 1, 0, 2], np.float64)
    state = np.array([7.0, 9.0, 7.0, 8.0])  # of those that hold nothing, it counts for nothing
    closed, opened = runs.largest(values, state)
    assert ([np.inf], [1.5, -np.inf, -np.inf, 8.0]) == (closed.tolist(), opened.tolist())
    closed, opened = runs.smallest(values, state)
    assert ([-2.0], [0.5, np.inf, np.inf, 8.0]) == (closed.tolist(), opened.tolist())


# -- slices ---------------------------------------------------------------------------------------


def slice_rows(owners, kept, held):
    """Slices of two rows that close, and how many slices partitions carry."""
    rows = [owner for owner in owners for _ in range(2)]
    keys, base, table = keyed(rows)
    runs = ArrivalRuns(keys, base, table, np.zeros(PARTITIONS, np.intp), 2, opens=False)
    return SliceRows(runs, kept, np.array(held, np.intp))


def sliding(owners, kept, held, carried, new):
    """The slices of the window that ends with each new one, and of each partition at the end."""
    last = [carried[(p + 1) * kept - held[p] : (p + 1) * kept] for p in range(PARTITIONS)]
    found = []
    for owner, each in zip(owners, new, strict=True):
        last[owner] = [*last[owner], each][-kept:]
        found.append(last[owner])
    return found, last


@st.composite
def slice_cases(draw, values):
    kept = draw(st.integers(1, 4))
    slices = draw(st.lists(st.tuples(st.integers(0, PARTITIONS - 1), values), max_size=25))
    held = [draw(st.integers(0, kept)) for _ in range(PARTITIONS)]
    size = PARTITIONS * kept
    carried = draw(st.lists(values, min_size=size, max_size=size))
    return [owner for owner, _ in slices], [value for _, value in slices], kept, held, carried


@thorough
@given(slice_cases(st.integers(-(2**40), 2**40)))
def test_windows_over_slices_of_whole_numbers(case):
    owners, new, kept, held, carried = case
    rows, before, data = slice_rows(owners, kept, held), np.array(carried), np.array(new, np.int64)
    windows, last = sliding(owners, kept, held, carried, new)
    assert list(map(sum, windows)) == rows.sums(data, before).tolist()
    assert list(map(max, windows)) == rows.largest(data, before).tolist()
    assert list(map(min, windows)) == rows.smallest(data, before).tolist()
    zeros, _ = sliding(owners, kept, held, carried, [0] * len(new))
    assert list(map(sum, zeros)) == rows.sums(None, before).tolist()
    assert rows.sums(None, None) is None
    assert carried == before.tolist()
    assert list(map(len, last)) == rows.carried.tolist()
    counts = [owners[: at + 1].count(owner) for at, owner in enumerate(owners)]
    assert [7 + 2 * count for count in counts] == rows.arrived(np.full(PARTITIONS, 7)).tolist()
    rows.keep(data, before)
    ends = range(kept, len(carried) + 1, kept)
    after = [before[end - len(mine) : end].tolist() for end, mine in zip(ends, last, strict=True)]
    assert last == after


@thorough
@given(st.sampled_from([TAME, TAME | LARGE, st.floats(0, 1e20)]).flatmap(slice_cases))
def test_windows_over_slices_of_floats(case):
    owners, new, kept, held, carried = case
    exact = [Fraction(each) + Fraction(each * 2.0**-60) for each in (*carried, *new)]
    windows, _ = sliding(owners, kept, held, exact[: len(carried)], exact[len(carried) :])
    pairs = [(np.array(each, np.float64), np.array(each) * 2.0**-60) for each in (new, carried)]
    one, two = slice_rows(owners, kept, held).two_sums(*pairs)
    assert len(windows) == len(one) == len(two)
    for window, a, b in zip(windows, one.tolist(), two.tolist(), strict=True):
        size = sum(map(abs, window))
        cancels = len({each > 0 for each in window if each}) == 2
        error = Fraction(2) ** (-95 if cancels else -48)
        assert abs(sum(window) - Fraction(a) - Fraction(b)) <= size * error
        assert abs(b) <= abs(a) * 2.0**-52


@thorough
@given(slice_cases(st.floats(0, 1e20)))
def test_windows_over_slices_of_floats_that_need_no_pairs(case):
    owners, new, kept, held, carried = case
    windows, _ = sliding(owners, kept, held, carried, new)
    found = slice_rows(owners, kept, held).sums(np.array(new, np.float64), np.array(carried))
    for window, total in zip(windows, found.tolist(), strict=True):
        exact = sum(map(Fraction, window))
        assert abs(exact - Fraction(total)) <= exact * Fraction(2) ** -48
