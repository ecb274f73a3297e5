"""The kernels give what the definitions say, for any points."""
# ruff: noqa: SIM300 - asserts read expected first

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.preference import oracles
from windowlib.columnar import dominance

FEW = st.sampled_from([0.0, 1.0, 2.0, 3.0])
ANY = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def clouds(draw, values=FEW, most=40):
    """Points with many ties and duplicates, as an array of shape (dimensions, points)."""
    dimensions = draw(st.integers(1, 5))
    size = draw(st.integers(0, most))
    rows = st.lists(values, min_size=dimensions, max_size=dimensions)
    drawn = draw(st.lists(rows, min_size=size, max_size=size))
    return np.array(drawn, np.float64).reshape(size, dimensions).T.copy()


def tuples(points):
    return [tuple(point) for point in points.T.tolist()]


def cloud(seed, dimensions, size, values):
    """Larger clouds than Hypothesis likes, in several blocks."""
    return np.random.default_rng(seed).integers(0, values, (dimensions, size)).astype(float)


@settings(max_examples=100, deadline=None)
@given(clouds())
def test_a_skyline_is_what_no_point_dominates(points):
    assert oracles.skyline(tuples(points)) == dominance.skyline(points).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds(ANY))
def test_floats_of_any_size_have_a_skyline(points):
    with np.errstate(over="ignore"):
        assert oracles.skyline(tuples(points)) == dominance.skyline(points).tolist()


def test_a_point_that_differs_by_less_than_its_sum_can_show_is_dominated():
    points = np.array([[1e17, 1e17], [2.0, 1.0]])
    assert [1] == dominance.skyline(points).tolist()


@pytest.mark.parametrize("dimensions", [1, 2, 4, 7])
@pytest.mark.parametrize("values", [3, 40, 1_000_000])
def test_a_skyline_over_many_blocks(dimensions, values):
    points = cloud(dimensions, dimensions, 900, values)
    assert oracles.skyline(tuples(points)) == dominance.skyline(points).tolist()


def test_a_skyline_of_all_points_over_many_blocks():
    line = np.arange(1000.0)
    points = np.stack([line, line[::-1]])
    assert list(range(1000)) == dominance.skyline(points).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_factors_are_the_largest_k_that_dominates(points):
    want = [oracles.factor(p, tuples(points)) for p in tuples(points)]
    assert want == dominance.factors(points, points).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_the_factors_of_a_skyline_need_the_skyline_alone(points):
    places = dominance.skyline(points)
    want = [oracles.factor(tuples(points)[i], tuples(points)) for i in places.tolist()]
    assert want == dominance.factors_within(points[:, places]).tolist()


def test_factors_over_many_blocks():
    points = cloud(7, 4, 600, 50)
    places = dominance.skyline(cloud(8, 4, 3000, 10**6))
    front = cloud(8, 4, 3000, 10**6)[:, places]
    want = [oracles.factor(p, tuples(points)) for p in tuples(points)]
    assert want == dominance.factors(points, points).tolist()
    assert dominance.factors(front, front).tolist() == dominance.factors_within(front).tolist()


def test_factors_in_more_dimensions_than_a_byte_counts():
    points = np.zeros((300, 3))
    points[0] = [0.0, 1.0, 1.0]
    points[1] = [0.0, -1.0, 0.0]
    assert [299, 299, 300] == dominance.factors(points, points).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds(), st.data())
def test_two_skylines_make_up_that_of_all_points(points, data):
    side = np.array([data.draw(st.booleans()) for _ in range(points.shape[1])], bool)
    ones, others = np.flatnonzero(side), np.flatnonzero(~side)
    ones = ones[dominance.skyline(points[:, ones])]
    others = others[dominance.skyline(points[:, others])]
    left, right = dominance.merged(points[:, ones], points[:, others])
    found = sorted([*ones[left].tolist(), *others[right].tolist()])
    assert oracles.skyline(tuples(points)) == found


def test_a_merge_over_many_blocks():
    points = cloud(3, 3, 2000, 10**6)
    halves = [np.arange(0, 2000, 2), np.arange(1, 2000, 2)]
    ones, others = (half[dominance.skyline(points[:, half])] for half in halves)
    left, right = dominance.merged(points[:, ones], points[:, others])
    found = sorted([*ones[left].tolist(), *others[right].tolist()])
    assert dominance.skyline(points).tolist() == found


@settings(max_examples=60, deadline=None)
@given(st.lists(FEW, max_size=30), st.integers(1, 12))
def test_the_smallest_come_first_of_equal_ones(scores, k):
    found = dominance.smallest(np.array(scores, np.float64), k)
    assert oracles.top_k(scores, k) == found.tolist()
