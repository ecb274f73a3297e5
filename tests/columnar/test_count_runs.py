"""Rows dealt to runs as they come, against loops in plain Python."""
# ruff: noqa: SIM300 - asserts read expected first

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.helpers.examples import examples
from windowlib.columnar.primitives import compiled_loops
from windowlib.columnar.primitives.compiled_loops import FIRST, HELD, LAST, RUN, ScatteredReductions

thorough = settings(max_examples=examples(150))
PARTITIONS = 4


@thorough
@given(
    st.lists(st.integers(0, PARTITIONS - 1), max_size=30),
    st.integers(1, 4),
    st.lists(st.integers(0, 3), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_each_row_goes_to_the_open_run_of_its_partition(ids, size, carried):
    held = np.array(carried) % size
    partitions = np.empty((PARTITIONS, 4), np.int32)
    run = np.empty(len(ids), np.int32)
    owner, before, first, closed, rows = np.empty((5, len(ids)), np.intp)
    compiled_loops.start(held, partitions)
    runs, fired = compiled_loops.scatter(
        np.array(ids, np.int32), size, partitions, run, owner, before, first, closed, rows
    )

    counts, opened = held.tolist(), dict[int, int]()
    found, closings, expected = list[Any](), list[Any](), list[int]()
    for row, partition in enumerate(ids):
        if partition not in opened:
            opened[partition] = len(found)
            found.append((partition, counts[partition], row))
        expected.append(opened[partition])
        counts[partition] += 1
        if counts[partition] == size:
            counts[partition] = 0
            closings.append((opened.pop(partition), row))
    assert expected == run.tolist()
    assert found == list(
        zip(*(each[:runs].tolist() for each in (owner, before, first)), strict=True)
    )
    assert closings == list(zip(closed[:fired].tolist(), rows[:fired].tolist(), strict=True))
    for partition in range(PARTITIONS):
        mine = [row for row, each in enumerate(ids) if each == partition]
        assert counts[partition] == partitions[partition, HELD]
        assert opened.get(partition, -1) == partitions[partition, RUN]
        assert (mine[0] if mine else -1) == partitions[partition, FIRST]
        assert (mine[-1] if mine else -1) == partitions[partition, LAST]


@thorough
@given(st.lists(st.integers(0, 3), max_size=20))
def test_places_of_a_number_follow_each_other(numbers):
    places = np.empty(len(numbers), np.intp)
    compiled_loops.next_places(np.array(numbers, np.intp), np.array([0, 100, 200, 300]), places)
    expected = [100 * each + numbers[:index].count(each) for index, each in enumerate(numbers)]
    assert expected == places.tolist()


# -- values of runs -------------------------------------------------------------------------------

RUNS = 3
GOES_ON = 1
"""The run that goes on with what is carried."""


def dealt(run):
    return ScatteredReductions(np.array(run, np.int32), RUNS, np.array([GOES_ON]))


def pieces(run, values, carried):
    """The values of each run, with what is carried before those of one."""
    found: list[list[Any]] = [[] for _ in range(RUNS)]
    found[GOES_ON] += carried
    for index, value in zip(run, values, strict=True):
        found[index].append(value)
    return found


def drawn(values):
    return st.lists(st.tuples(st.integers(0, RUNS - 1), values), max_size=30)


@thorough
@given(drawn(st.integers(-(2**40), 2**40)), st.integers(-(2**40), 2**40))
def test_whole_numbers_of_a_run(rows, carried):
    run, values = [index for index, _ in rows], [value for _, value in rows]
    runs, data, before = dealt(run), np.array(values, np.int64), np.array([carried])
    expected = pieces(run, values, [carried])
    assert list(map(sum, expected)) == runs.sums(data, before).tolist()
    assert list(map(sum, pieces(run, values, []))) == runs.sums(data, None).tolist()
    assert [0, carried, 0] == runs.sums(None, before).tolist()
    assert runs.sums(None, None) is None
    info = np.iinfo(np.int64)
    largest = [max(each, default=info.min) for each in expected]
    assert largest == runs.largest(data, before).tolist()
    smallest = [min(each, default=info.max) for each in expected]
    assert smallest == runs.smallest(data, before).tolist()


TAME = st.floats(-1e6, 1e6)
LARGE = st.sampled_from([1e16, -1e16, 1e32, -1e32, 1e100, -1e100])


@thorough
@given(
    st.sampled_from([TAME, TAME | LARGE, st.floats(0, 1e20), st.floats(-1e20, 0)]).flatmap(drawn),
    TAME,
)
def test_sums_of_floats_are_pairs(rows, carried):
    run, values = [index for index, _ in rows], [value for _, value in rows]
    low = carried * 2.0**-60
    before = np.array([carried]), np.array([low])
    high, rest = dealt(run).two_sums(np.array(values, np.float64), *before)
    for mine, one, two in zip(pieces(run, values, [carried, low]), high, rest, strict=True):
        exact, size = sum(map(Fraction, mine)), sum(abs(Fraction(each)) for each in mine)
        assert abs(exact - Fraction(one) - Fraction(two)) <= size * Fraction(2) ** -95
        assert abs(two) <= abs(one) * 2.0**-52


def test_largest_and_smallest_floats():
    runs, values = dealt([0, 1, 0, 1]), np.array([1.5, -2.0, 0.5, np.inf])
    assert [1.5, np.inf, -np.inf] == runs.largest(values, np.array([9.0])).tolist()
    assert [0.5, -2.0, np.inf] == runs.smallest(values, np.array([-1.0])).tolist()


def test_sums_without_a_low_part():
    high, low = dealt([0, 1]).two_sums(np.array([1.0, 2.0]), np.array([3.0]), None)
    assert ([1.0, 5.0, 0.0], [0.0, 0.0, 0.0]) == (high.tolist(), low.tolist())
