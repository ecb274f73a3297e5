"""Count and time windows: closed forms against the definition, point by point."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.farms import window_oracle as brute
from windowlib.farms.models import CountWindows, RegularWindows, TimeWindows, spl_lowest, spl_phase

SIZES, SLIDES, POINTS = range(1, 13), range(1, 16), range(60)


def assigned(model, points):
    """What an array of points gives, point by point."""
    found: list[list[int]] = [[] for _ in points]
    for row, w in zip(*model.windows(np.array(points)), strict=True):
        found[row].append(int(w))
    return found


def checked(model, points):
    """How many points have other windows than the definition says, one by one and at once."""
    truth = [brute.windows(x, model.size, model.slide, model.phase, model.lowest) for x in points]
    single = [list(model.windows(x)) for x in points]
    return sum(a != b for a, b in zip(truth, single, strict=True)) + sum(
        a != b for a, b in zip(truth, assigned(model, points), strict=True)
    )


@pytest.mark.parametrize("size", SIZES)
def test_count_windows_are_those_of_the_definition(size):
    assert 0 == sum(checked(CountWindows(size, slide), POINTS) for slide in SLIDES)


@pytest.mark.parametrize("lowest", [None, 0], ids=["no lowest", "from 0"])
@pytest.mark.parametrize("size", SIZES)
def test_every_phase_gives_the_windows_of_the_definition(size, lowest):
    # Points from -24 to 59 in all windows that may hold one; counts of tuples from 0 on.
    points = np.arange(-24, 60)
    known = np.array(brute.WINDOWS)
    for slide in SLIDES:
        for phase in range(slide):
            truth = brute.table(points, size, slide, phase)
            truth = truth if lowest is None else truth & (known >= lowest)
            model = TimeWindows(size, slide, phase, lowest)
            rows, windows = model.windows(points)
            found = np.zeros_like(truth)
            found[rows, windows - known[0]] = True
            assert 0 == np.count_nonzero(truth != found)
            assert len(rows) == np.count_nonzero(truth)
            one_by_one = [(model.first(x), model.last(x)) for x in points.tolist()]
            at_once = zip(model.first(points).tolist(), model.last(points).tolist(), strict=True)
            assert list(at_once) == one_by_one
            counted = CountWindows(size, slide, phase, lowest)
            assert (points >= 0) @ truth.sum(1) == len(counted.windows(points[points >= 0])[0])


@pytest.mark.parametrize("size", SIZES)
def test_negative_ticks_have_windows_like_any_other(size):
    rng = random.Random(size)
    for slide in SLIDES:
        points = rng.sample(range(-30, 30), 12)
        for phase in (0, rng.randrange(-5, slide)):
            assert 0 == checked(TimeWindows(size, slide, phase), points)


@pytest.mark.parametrize("seed", range(8))
def test_real_timestamps_have_the_windows_of_the_definition(seed):
    rng = random.Random(seed)
    for _ in range(25):
        size, slide = rng.choice(SIZES), rng.choice(SLIDES)
        edges = [rng.randrange(-9, 10) for _ in range(4)]
        near = [np.nextafter(edge, edge + side) for edge in edges for side in (-1, 1)]
        points = [float(x) for x in (*near, *edges)] + [rng.uniform(-9, 30) for _ in range(8)]
        assert 0 == checked(TimeWindows(size, slide, rng.randrange(slide)), points)


@pytest.mark.parametrize("seed", range(8))
def test_sizes_slides_and_phases_may_be_real(seed):
    rng = random.Random(seed)
    for _ in range(12):
        make: Any = rng.choice([float, Fraction, lambda x: Decimal(str(round(x, 2)))])
        size, slide = make(rng.uniform(0.1, 5)), make(rng.uniform(0.3, 5))
        model = TimeWindows(size, slide, make(rng.uniform(-1, 1)))
        begins = [float(model.extent(w)[0]) for w in range(-2, 3)]
        assert 0 == checked(model, begins + [rng.uniform(-6, 9) for _ in range(6)])


def test_a_tenth_is_what_was_written():
    # 0.3 as a float is a little less than three tenths, and 0.1 a little more than one.
    assert range(2, 3) == TimeWindows(Fraction(1, 10), Fraction(1, 10)).windows(0.3)
    assert range(2, 3) == TimeWindows(0.1, 0.1).windows(0.3)
    assert range(3, 4) == TimeWindows(Decimal("0.1"), Decimal("0.1")).windows(Decimal("0.3"))
    assert range(3, 4) == TimeWindows(1, 1).windows(3)


@pytest.mark.parametrize(
    ("size", "slide", "x", "truth"),
    [(4, 1, 4, [1, 2, 3, 4]), (5, 2, 4, [0, 1, 2]), (5, 2, 6, [1, 2, 3]), (4, 2, 5.5, [1, 2])],
)
def test_points_on_a_boundary_belong_to_the_window_that_starts_there(size, slide, x, truth):
    # Published formulas lose the window that starts at x, or keep the one that ends there.
    assert truth == list(TimeWindows(size, slide).windows(x))
    assert truth == brute.windows(x, size, slide)


def test_a_real_timestamp_is_in_the_window_that_ends_after_it():
    # [2, 6) holds 5.5; the formula for whole ticks, ceil((t - size + 1) / slide), says 2.
    assert 1 == TimeWindows(4, 2).first(5.5)
    assert 1 == TimeWindows(4, 2).first(np.array([5.5]))[0]


def test_between_two_hopping_windows_there_is_none():
    # [0, 2)  [5, 7)  [10, 12)
    model = TimeWindows(2, 5)
    assert [[0], [0], [], [], [], [1], [1], []] == [list(model.windows(x)) for x in range(8)]
    assert not model.overlapping
    assert [2, 1] == [model.first(9), model.last(9)]


def test_no_window_is_before_the_lowest():
    assert [0] == list(CountWindows(4, 2).windows(1))
    assert [] == list(TimeWindows(4, 2, lowest=0).windows(-1))
    assert [-2, -1] == list(TimeWindows(4, 2).windows(-1))
    assert [0, 0] == TimeWindows(4, 2, lowest=0).first(np.array([-9, 1])).tolist()


def test_the_extent_of_a_window_holds_the_points_that_it_is_given_for():
    model = TimeWindows(5, 2, phase=-3)
    for w in range(-4, 5):
        lo, hi = model.extent(w)
        held = [x for x in range(-20, 20) if w in model.windows(x)]
        assert list(range(lo, hi)) == held
    lo, hi = model.extent(np.arange(-4, 5))
    assert [model.extent(w) for w in range(-4, 5)] == list(zip(lo, hi, strict=True))


def test_the_extents_of_an_array_of_windows_are_exact():
    lo, hi = TimeWindows(Fraction(1, 3), Fraction(1, 3)).extent(np.array([1, 3]))
    assert [Fraction(1, 3), 1] == lo.tolist()
    assert [Fraction(2, 3), Fraction(4, 3)] == hi.tolist()
    assert ([0, 3], [4, 8]) == tuple(
        each.tolist() for each in CountWindows(5, 4, phase=-1, lowest=0).extent(np.array([0, 1]))
    )


def test_a_window_is_complete_when_time_has_come_to_its_end():
    model = TimeWindows(4, 2)
    assert [-1, 0, 0, 1] == [model.complete(mark) for mark in (3, 4, 5, 6)]
    for mark in range(20):
        ended = [w for w in range(20) if model.extent(w)[1] <= mark]
        assert (ended or [-1])[-1] == max(model.complete(mark), -1)


# -- large numbers --

FAR = 1_760_000_000_000_000_000  # nanoseconds


def test_nanoseconds_are_exact():
    model = TimeWindows(10**9, 10**8, phase=7)
    points = [FAR, FAR + 6, FAR + 7, FAR + 8, -FAR + 6, -FAR + 7]
    for x, found in zip(points, assigned(model, points), strict=True):
        assert list(model.windows(x)) == found
        assert all(Fraction(lo) <= x < hi for lo, hi in map(model.extent, found))
        assert 10 == len(found)


@pytest.mark.parametrize(
    "points",
    [
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.array([1e300, -1e300, 0.5]),
        np.array([10**30, -(10**30)], dtype=object),
        np.array([0.1, 2**53 + 2.0]),
        np.array([], dtype=float),
        np.array([], dtype=int),
        np.array([3, -4], dtype=np.int8),
        np.array([2.5, -0.25], dtype=np.float32),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [TimeWindows(7, 3, 1), TimeWindows(0.7, 0.3, 0.1)], ids=str)
def test_arrays_of_any_numbers_give_what_each_number_gives(model, points):
    each = points.tolist()
    assert [model.first(x) for x in each] == model.first(points).tolist()
    assert [model.last(x) for x in each] == model.last(points).tolist()


def test_parameters_may_be_larger_than_64_bits():
    model = TimeWindows(2**70, 2**69)
    assert [model.first(5), model.last(5)] == [
        int(model.first(np.array([5]))[0]),
        int(model.last(np.array([5]))[0]),
    ]


def test_numpy_numbers_are_numbers():
    assert range(1, 3) == TimeWindows(np.int64(4), np.float64(2)).windows(np.int32(5))
    assert "TimeWindows(size=4, slide=2, phase=0, lowest=None)" == repr(
        TimeWindows(4.0, np.int8(2))
    )


# -- SPL --


def full_windows(size, slide, count):
    """What a window that keeps the newest `size` holds after every `slide` tuples, once full."""
    ends = range(slide, count + 1, slide)
    return [list(range(end - size, end)) for end in ends if end >= size]


def triggered(size, slide, count):
    """The same from the first trigger on, full or not."""
    return [list(range(max(end - size, 0), end)) for end in range(slide, count + 1, slide)]


def held(model, count):
    found = (model.extent(w) for w in range(model.lowest, count + 1))
    return [list(range(lo, hi)) for lo, hi in found if hi <= count]


@pytest.mark.parametrize("size", SIZES)
def test_windows_that_end_at_multiples_of_the_slide_are_a_phase(size):
    for slide in SLIDES:
        phase = spl_phase(size, slide)
        assert -(-size // slide) * slide - size == phase
        assert full_windows(size, slide, 40) == held(CountWindows(size, slide, phase), 40)
        early = CountWindows(size, slide, phase, lowest=spl_lowest(size, slide))
        assert triggered(size, slide, 40) == held(early, 40)
        assert 0 == checked(early, range(20))


def test_the_two_sorts_of_windows_are_the_same_if_the_slide_divides_the_size():
    same = [(w, s) for w in SIZES for s in SLIDES if spl_phase(w, s) == 0]
    assert [(w, s) for w in SIZES for s in SLIDES if w % s == 0] == same


def test_the_phases_of_the_worked_examples():
    assert [1, 2] == [spl_phase(5, 2), spl_phase(7, 3)]
    model = CountWindows(5, 2, spl_phase(5, 2))
    assert [(1, 6), (3, 8)] == [model.extent(0), model.extent(1)]


# -- values --


def test_models_are_values():
    model = CountWindows(5, 2, phase=1)
    assert model == pickle.loads(pickle.dumps(model))
    assert {model: 1}[CountWindows(5, 2, 1, 0)] == 1
    others: list[Any] = [TimeWindows(5, 2, 1, 0), CountWindows(5, 2)]
    assert model not in others
    assert isinstance(model, RegularWindows)
    assert "free" == model.context
