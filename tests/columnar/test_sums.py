"""Sums, largest and smallest values of extents, against sums of slices."""
# ruff: noqa: SIM300 - asserts read expected first

from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from math import fsum, inf, isfinite, nan
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.with_each_engine import engine  # noqa: F401 - a fixture for all tests here
from tests.helpers.examples import examples
from windowlib.columnar.primitives import add_pairs, largest, reductions, smallest, sums, two_sums

thorough = settings(max_examples=examples(80))
LOWEST, HIGHEST = -(2**63), 2**63 - 1

# The same extents by each of the ways there are with numpy, and with numba each extent on its own
# or all together. Each way is the cheapest for some shape; here it takes any.
WAYS: dict[str, dict[str, float]] = {
    "as it is": {},
    "pairs of slots": {"SLOT": 0.0, "COVERED": 0.0, "COPY": 0},
    "doubling": {"SLOT": 1e9, "COPY": 0, "ROUNDS": 0, "BLOCK": 7},
    "digits": {"SLOT": 1e9, "COPY": 0, "ROUNDS": 99},
    "copies": {"COPY": 10**9},
}
ALONE = {"ALONE": 0.0, "ALONE_UNEVEN": 0.0, "SUM": 0.0, "PICK": 0.0, "PAIR": 0.0}
TOGETHER = {"ALONE": 1e9, "ALONE_UNEVEN": 1e9}


@contextmanager
def by(way):
    """Compute in this way, whatever it costs."""
    with ExitStack() as changes:
        for name, value in WAYS[way].items():
            changes.enter_context(patch.object(reductions, name, value))
        if find_spec("numba") and way != "as it is":
            speed = import_module("windowlib.columnar.primitives.compiled")
            for name, value in (ALONE if way == "pairs of slots" else TOGETHER).items():
                changes.enter_context(patch.object(speed, name, value))
        yield


def extents(size):
    """Extents of `size` values in any order, or ascending, of any or of one length."""

    def within(drawn):
        reductions, form, length = drawn
        found = [(min(a, b), max(a, b)) for a, b in reductions]
        if form == "even":
            found = [(a, a + length) for a, _ in found if a + length <= size]
        if form == "ascending":
            los, his = (sorted(ends) for ends in zip(*found, strict=True)) if found else ([], [])
            found = list(zip(los, his, strict=True))
        if form == "tiles":
            cuts = sorted({a for pair in found for a in pair})
            found = list(pairwise(cuts))
        return found

    place = st.integers(0, size)
    forms = st.sampled_from(["any", "even", "ascending", "tiles"])
    reductions = st.lists(st.tuples(place, place), max_size=40)
    return st.tuples(reductions, forms, place).map(within)


@st.composite
def cases(draw, numbers):
    values = draw(st.lists(numbers, max_size=60))
    return values, draw(extents(len(values)))


def arrays(found):
    lo, hi = np.array(found, np.int64).reshape(-1, 2).T
    return lo.copy(), hi.copy()


def run(function, values, found, dtype):
    return function(np.array(values, dtype), *arrays(found))


small = st.integers(-1000, 1000)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290),
    st.integers(-1000, 1000).map(lambda n: n / 10),
    st.sampled_from([1e16, -1e16, 1.0, -1.0, 0.0, -0.0, 1e-300, 5e-324]),
)
ways = pytest.mark.parametrize("way", WAYS)


# -- against slices --


@ways
@thorough
@given(case=cases(small))
def test_integers_agree_with_slices(way, case):
    values, found = case
    with by(way):
        assert [sum(values[a:b]) for a, b in found] == run(sums, values, found, np.int64).tolist()
        expected = [max(values[a:b], default=LOWEST) for a, b in found]
        assert expected == run(largest, values, found, np.int64).tolist()
        expected = [min(values[a:b], default=HIGHEST) for a, b in found]
        assert expected == run(smallest, values, found, np.int64).tolist()


@ways
@thorough
@given(case=cases(floats))
def test_picked_floats_agree_with_slices(way, case):
    values, found = case
    with by(way):
        expected = [max(values[a:b], default=-inf) for a, b in found]
        assert expected == run(largest, values, found, np.float64).tolist()
        expected = [min(values[a:b], default=inf) for a, b in found]
        assert expected == run(smallest, values, found, np.float64).tolist()


@ways
@thorough
@given(case=cases(floats))
def test_float_sums_are_off_by_little_of_what_they_add(way, case):
    values, found = case
    with by(way):
        got = run(sums, values, found, np.float64).tolist()
    for (a, b), total in zip(found, got, strict=True):
        assert abs(total - fsum(values[a:b])) <= 1e-14 * fsum(map(abs, values[a:b]))


@ways
@thorough
@given(case=cases(floats))
def test_pairs_are_right_where_sums_cancel(way, case):
    values, found = case
    with by(way):
        high, low = run(two_sums, values, found, np.float64)
    for (a, b), total, rest in zip(found, high.tolist(), low.tolist(), strict=True):
        exact, size = fsum(values[a:b]), fsum(map(abs, values[a:b]))
        one_sign = min(values, default=0) >= 0 or max(values, default=0) <= 0
        assert abs(total + rest - exact) <= 1e-12 * abs(exact) + 1e-28 * size
        assert rest == 0 or not one_sign
        assert abs(rest) <= 1e-15 * abs(total)


@ways
@thorough
@given(case=cases(st.sampled_from([1.0, -2.5, 1e16, inf, -inf, nan])))
def test_infinities_and_nan_stay_in_their_extents(way, case):
    values, found = case
    with by(way):
        plain = run(sums, values, found, np.float64)
        high, low = run(two_sums, values, found, np.float64)
    for (a, b), *totals, rest in zip(found, plain, high, low, strict=True):
        odd = sum(x for x in values[a:b] if not isfinite(x))
        for total in totals:
            assert str(float(odd)) == str(float(total)) if odd != 0 else isfinite(total)
        assert rest == 0 or odd == 0


# -- the corners --


def test_no_extents_have_no_results():
    none = np.empty(0, np.int64)
    for values in (np.empty(0), np.arange(3.0), np.arange(3)):
        for function in (sums, largest, smallest):
            result = function(values, none, none)
            assert (0, values.dtype) == (len(result), result.dtype)
    high, low = two_sums(np.array([1.0, -1.0]), none, none)
    assert 0 == len(high) == len(low)


def test_empty_extents_of_no_values():
    zero = np.zeros(2, np.int64)
    assert [0.0, 0.0] == sums(np.empty(0), zero, zero).tolist()
    assert [-inf, -inf] == largest(np.empty(0), zero, zero).tolist()
    assert [HIGHEST, HIGHEST] == smallest(np.empty(0, np.int64), zero, zero).tolist()
    assert [[0.0, 0.0], [0.0, 0.0]] == [s.tolist() for s in two_sums(np.empty(0), zero, zero)]


def test_extents_at_the_end_of_the_values_have_the_last_one_once():
    values, lo, hi = np.array([1, 2, 4, 8]), np.array([3, 2, 0, 3, 1]), np.array([4, 4, 4, 4, 3])
    for dtype in (np.int64, np.float64):
        with by("pairs of slots"):
            assert [8, 12, 15, 8, 6] == sums(values.astype(dtype), lo, hi).tolist()
            assert [8, 8, 8, 8, 4] == largest(values.astype(dtype), lo, hi).tolist()


def test_running_sums_of_integers_may_overflow_where_no_extent_does():
    values = np.array([HIGHEST - 5, 3] * 50)
    lo = np.arange(99)
    assert [HIGHEST - 2] * 99 == sums(values, lo, lo + 2).tolist()
    assert [2 - HIGHEST] * 99 == sums(-values, lo, lo + 2).tolist()


def test_the_limits_of_integers_are_numbers_like_others():
    values = np.array([HIGHEST, LOWEST, 0], np.int64)
    lo, hi = np.array([0, 1, 1, 2]), np.array([1, 2, 3, 3])
    assert [HIGHEST, LOWEST, 0, 0] == largest(values, lo, hi).tolist()
    assert [HIGHEST, LOWEST, LOWEST, 0] == smallest(values, lo, hi).tolist()


def test_values_may_be_read_only():
    values = np.array([1.0, -2.0, 4.0])
    values.flags.writeable = False
    lo, hi = np.array([0, 1]), np.array([2, 3])
    assert [-1.0, 2.0] == sums(values, lo, hi).tolist()
    assert [1.0, 4.0] == largest(values, lo, hi).tolist()
    assert [-1.0, 2.0] == two_sums(values, lo, hi)[0].tolist()


# -- accuracy --

SIZE = 20_000
RNG = np.random.default_rng(4)


def spikes(every):
    values = RNG.random(SIZE)
    values[::every] = 1e16
    return values


DATA = {
    "uniform": RNG.random(SIZE),
    "one spike at the start": spikes(SIZE),
    "a spike every 5,000": spikes(5000),
    "lognormal": RNG.lognormal(0, 8, SIZE),
    "huge, then tiny": np.where(np.arange(SIZE) < 100, 1e300, 1e-3),
}


def shapes():
    lo = np.arange(SIZE - 999)
    yield "windows of 1000", lo, lo + 1000
    yield "windows of 1000 every 500", lo[::500], lo[::500] + 1000
    yield "uneven windows", lo, np.minimum(SIZE, lo + RNG.integers(1, 2000, len(lo)))
    yield "ascending uneven windows", lo, lo + np.sort(RNG.integers(1, 999, len(lo)))
    tiles = np.arange(0, SIZE, 1000)
    yield "tiles", tiles, tiles + 1000
    yield "all", np.array([0]), np.array([SIZE])


SHAPES = {name: (lo, hi) for name, lo, hi in shapes()}
data = pytest.mark.parametrize("name", DATA)
shaped = pytest.mark.parametrize("shape", SHAPES)


@data
@shaped
def test_adversarial_sums_are_off_by_1e_13_of_what_they_add_at_most(name, shape):
    values, (lo, hi) = DATA[name], SHAPES[shape]
    some = np.unique(np.linspace(0, len(lo) - 1, 60).astype(np.int64))
    for sign in (1.0, np.where(np.arange(SIZE) % 3 == 0, -1.0, 1.0)):
        signed = values * sign
        plain, (high, low) = sums(signed, lo, hi), two_sums(signed, lo, hi)
        for extent in some.tolist():
            part = signed[lo[extent] : hi[extent]]
            exact, size = fsum(part), fsum(np.abs(part))
            assert abs(plain[extent] - exact) <= 1e-13 * size
            assert abs(high[extent] + low[extent] - exact) <= 1e-13 * abs(exact) + 1e-28 * size


@shaped
def test_what_cancels_leaves_what_is_left(shape):
    """Steps up and down of 1e16 around small numbers: plain sums would be off by whole numbers."""
    lo, hi = SHAPES[shape]
    values = RNG.normal(0, 1, SIZE)
    values[::4] += 1e16 * np.where(np.arange(SIZE // 4) % 2, 1.0, -1.0)
    high, low = two_sums(values, lo, hi)
    exact = np.array([fsum(values[a:b]) for a, b in zip(lo[:3000], hi[:3000], strict=True)])
    np.testing.assert_allclose((high + low)[:3000], exact, rtol=1e-12)


def test_a_huge_value_elsewhere_costs_no_digits():
    values = np.array([1e300, 1e16, 1.0, -1e16, -1e300, 1e-300, -3e-301, 1e308])
    high, low = two_sums(values, np.array([1, 5, 0, 7]), np.array([4, 7, 5, 8]))
    total = (high + low).tolist()
    assert [1.0, 7e-301] == pytest.approx(total[:2], rel=1e-15)
    assert 1e308 == total[3]


def test_sums_that_fit_do_not_overflow_on_the_way():
    big = 1.5e308
    values = np.array([big, -big, big, big, -big, -big])
    high, low = two_sums(values, np.array([0, 2, 1, 2, 0]), np.array([3, 5, 6, 4, 6]))
    assert [big, big, -big, inf, 0.0] == high.tolist()
    assert [0.0] * 5 == low.tolist()


# -- pairs --


@thorough
@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=20))
def test_pairs_add_up(numbers):
    a, b = (np.array(column) for column in zip(*numbers, strict=True))
    nothing = np.zeros(len(a))
    high, low = add_pairs(a, nothing, b, nothing)
    back_high, back_low = add_pairs(high, low, -b, nothing)
    assert (a + b).tolist() == high.tolist()
    assert a.tolist() == (back_high + back_low).tolist()


def test_pairs_that_are_not_finite_have_no_low_part():
    a = np.array([inf, inf, nan, 1e308, 1.0])
    b = np.array([1.0, -inf, 1.0, 1e308, -inf])
    high, low = add_pairs(a, np.array([0.0, 0.0, 0.0, 1e291, 1e-17]), b, np.zeros(5))
    assert ["inf", "nan", "nan", "inf", "-inf"] == [str(x) for x in high.tolist()]
    assert [0.0] * 5 == low.tolist()


def test_low_parts_keep_their_digits_where_high_parts_cancel():
    tiny = 2.0**-60
    one, sixteen = np.array([1.0]), np.array([1e16])
    high, low = add_pairs(sixteen, one, -sixteen, np.array([tiny]))
    assert ([1.0], [tiny]) == (high.tolist(), low.tolist())


def test_pairs_are_added_in_blocks():
    size = 2 * reductions.BLOCK + 1
    ones, small = np.full(size, 1e16), np.arange(size, dtype=float)
    high, low = add_pairs(ones, np.zeros(size), small, np.zeros(size))
    assert (small % 2 == low % 2).all()
    assert ((high - 1e16) + low == small).all()
