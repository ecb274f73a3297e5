"""The kernels give what the definitions say, for any points."""
# ruff: noqa: SIM300 - asserts read expected first

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.preference import preference_oracle as oracles
from windowlib.columnar import primitives
from windowlib.columnar.kernels import skyline
from windowlib.columnar.primitives import dominance as rivals

FEW = st.sampled_from([0.0, 1.0, 2.0, 3.0])
ENGINES = [
    "numpy",
    pytest.param(
        "numba",
        marks=pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed"),
    ),
]
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


def divided(points, part):
    """Those points of each part that are on its skyline: where they are, and of which part."""
    there = [np.flatnonzero(part == each) for each in np.unique(part)]
    there = [places[skyline.skyline(points.take(places, axis=1))] for places in there]
    found = np.sort(np.concatenate([np.arange(0), *there]))
    return found, np.unique(part[found], return_inverse=True)[1]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """Both ways to compute, for the smallest clouds, too."""
    monkeypatch.setattr(skyline, "MIN_POINTS", 2)
    monkeypatch.setattr(skyline, "MIN_PART_POINTS", 1)
    with primitives.use(request.param):
        yield


several = settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@several
@given(clouds())
def test_a_skyline_is_what_no_point_dominates(engine, points):
    assert oracles.skyline(tuples(points)) == skyline.skyline(points).tolist()


@several
@given(clouds(ANY))
def test_floats_of_any_size_have_a_skyline(engine, points):
    with np.errstate(over="ignore"):
        assert oracles.skyline(tuples(points)) == skyline.skyline(points).tolist()


def test_a_point_that_differs_by_less_than_its_sum_can_show_is_dominated(engine):
    points = np.array([[1e17, 1e17], [2.0, 1.0]])
    assert [1] == skyline.skyline(points).tolist()
    assert [1] == skyline.skyline(points, np.array([0, 1])).tolist()


@pytest.mark.parametrize("dimensions", [1, 2, 4, 7])
@pytest.mark.parametrize("values", [3, 40, 1_000_000])
def test_a_skyline_over_many_blocks(engine, dimensions, values):
    points = cloud(dimensions, dimensions, 700, values)
    want = oracles.skyline(tuples(points))
    assert want == skyline.skyline(points).tolist()
    for parts in (2, 5):
        places, part = divided(points, np.arange(700) % parts)
        found = skyline.skyline(points.take(places, axis=1), part)
        assert want == places[found].tolist(), "and of those of its parts"


def test_a_skyline_of_all_points_over_many_blocks(engine):
    line = np.arange(1000.0)
    points = np.stack([line, line[::-1]])
    assert list(range(1000)) == skyline.skyline(points).tolist()


@pytest.mark.parametrize(("size", "kind"), [(2, "f"), (600, "u"), (65_535, "u"), (65_536, "f")])
def test_ranks_are_short_and_compare_as_coordinates_do(size, kind):
    points = cloud(size, 2, size, size) / 7 - 3
    ranks = rivals._ranks(points)
    assert kind == ranks.dtype.kind
    for row, short in zip(points, ranks, strict=True):
        order = np.argsort(row)
        assert (np.diff(row[order]) > 0).tolist() == (
            np.diff(short[order].astype(float)) > 0
        ).tolist()
        assert (np.diff(short[order].astype(float)) >= 0).all()


@several
@given(clouds())
def test_the_factors_of_a_skyline_need_the_skyline_alone(engine, points):
    places = skyline.skyline(points)
    want = [oracles.factor(tuples(points)[i], tuples(points)) for i in places.tolist()]
    assert want == skyline.factors(points[:, places]).tolist()


@several
@given(clouds(), st.data())
def test_factors_are_the_largest_of_those_by_each_part_of_the_skyline(engine, points, data):
    places = skyline.skyline(points)
    front = points.take(places, axis=1)
    side = np.array([data.draw(st.booleans()) for _ in places], bool)
    ones, others = (skyline.factors(front, front.compress(some, axis=1)) for some in (side, ~side))
    assert skyline.factors(front).tolist() == np.maximum(ones, others).tolist()


def test_factors_over_many_blocks(engine):
    points = cloud(8, 4, 3000, 10**6)
    points[3] = 3 * 10**6 - points[:3].sum(axis=0)  # all of them are on the skyline
    points = points[:, :600]
    want = [oracles.factor(p, tuples(points)) for p in tuples(points)]
    assert want == skyline.factors(points).tolist()


def test_factors_in_more_dimensions_than_a_byte_counts(engine):
    points = np.zeros((300, 3))
    points[0] = [0.0, 1.0, 1.0]
    points[1] = [1.0, 0.0, 0.0]
    assert [299, 299, 299] == skyline.factors(points).tolist()


@several
@given(clouds(), st.data())
def test_skylines_of_parts_make_up_that_of_all_points(engine, points, data):
    drawn = [data.draw(st.integers(0, 2)) for _ in range(points.shape[1])]
    places, part = divided(points, np.array(drawn, np.intp))
    found = skyline.skyline(points.take(places, axis=1), part)
    assert oracles.skyline(tuples(points)) == places[found].tolist()


@settings(max_examples=examples(60))
@given(st.lists(FEW, max_size=30), st.integers(1, 12))
def test_the_smallest_come_first_of_equal_ones(scores, k):
    found = skyline.smallest(np.array(scores, np.float64), k)
    assert oracles.top_k(scores, k) == found.tolist()
