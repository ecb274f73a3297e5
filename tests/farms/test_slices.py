"""Panes and pairs: windows are whole slices, and slices know their windows."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from fractions import Fraction
from itertools import pairwise
from math import gcd

import numpy as np
import pytest

from windowlib.farms.models import CountWindows, TimeWindows

CUTS = pytest.mark.parametrize("cut", ["panes", "pairs"])
MODELS = [TimeWindows(size, slide) for size in range(1, 13) for slide in range(1, 16)]


@CUTS
def test_the_slices_of_a_window_are_its_extent(cut):
    for model in MODELS:
        slices = getattr(model, cut)()
        for w in (-2, 0, 3):
            edges = [slices.extent(p) for p in slices.panes_of(w)]
            assert model.extent(w) == (edges[0][0], edges[-1][1])
            assert all(a[1] == b[0] for a, b in pairwise(edges))


@CUTS
def test_a_point_is_in_the_slice_whose_extent_holds_it(cut):
    for model in MODELS:
        slices = getattr(model, cut)()
        points = np.arange(-10, 30)
        for x, p in zip(points.tolist(), slices.of(points).tolist(), strict=True):
            assert p == slices.of(x)
            lo, hi = slices.extent(p)
            assert lo <= x < hi


@CUTS
def test_the_windows_of_a_slice_are_those_of_every_point_in_it(cut):
    for model in MODELS:
        slices = getattr(model, cut)()
        for x in range(-10, 30):
            assert list(model.windows(x)) == list(slices.windows_of_pane(slices.of(x)))


@CUTS
def test_windows_and_slices_know_each_other(cut):
    for size, slide in ((5, 2), (18, 5), (4, 4), (2, 5), (6, 3)):
        slices = getattr(CountWindows(size, slide), cut)()
        for p in range(40):
            truth = [w for w in range(40) if p in slices.panes_of(w)]
            assert truth == list(slices.windows_of_pane(p))
        rows, windows = slices.windows_of_pane(np.arange(9))
        pairs = [(p, w) for p in range(9) for w in slices.windows_of_pane(p)]
        assert pairs == list(zip(rows.tolist(), windows.tolist(), strict=True))


@CUTS
def test_many_windows_have_their_slices_in_rows(cut):
    slices = getattr(TimeWindows(7, 3), cut)()
    rows = slices.panes_of(np.array([-1, 0, 4]))
    assert [list(slices.panes_of(w)) for w in (-1, 0, 4)] == rows.tolist()


def test_panes_have_one_length():
    for model in MODELS:
        common = gcd(model.size, model.slide)
        slices = model.panes()
        assert {common} == {hi - lo for lo, hi in map(slices.extent, range(-5, 20))}
        counts = (model.size // common, model.slide // common)
        assert counts == (slices.per_window, slices.per_slide)


def test_pairs_are_cut_where_a_window_starts_or_ends_and_nowhere_else():
    for model in MODELS:
        edges = {edge for w in range(-30, 40) for edge in model.extent(w)}
        slices = model.pairs()
        begin = slices.of(-20)
        cuts = {slices.extent(p)[0] for p in range(begin + 1, begin + 20)}
        assert {e for e in edges if min(cuts) <= e <= max(cuts)} == cuts


@pytest.mark.parametrize(
    ("size", "slide", "panes", "pairs"),
    [(18, 5, 18, 7), (60, 7, 60, 17), (1000, 200, 5, 5), (5, 2, 5, 5), (4, 4, 1, 1), (2, 5, 2, 1)],
)
def test_how_many_slices_make_up_a_window(size, slide, panes, pairs):
    model = TimeWindows(size, slide)
    assert (panes, pairs) == (model.panes().per_window, model.pairs().per_window)
    assert model.pairs().per_slide <= 2


def test_a_point_on_the_boundary_of_a_pane_is_in_the_later_one():
    slices = TimeWindows(6, 2).panes()
    assert [0, 0, 1, 1, 2] == [slices.of(x) for x in range(5)]
    assert [-1, 0, 0] == slices.of(np.array([-0.5, 0, 1.75])).tolist()


def test_a_gap_between_hopping_windows_is_a_slice_of_no_window():
    slices = TimeWindows(2, 5).pairs()
    assert [(0, 2), (2, 5), (5, 7)] == [slices.extent(p) for p in range(3)]
    assert [[0], [], [1]] == [list(slices.windows_of_pane(p)) for p in range(3)]


def test_no_window_before_the_lowest_wants_a_slice():
    assert [0] == list(CountWindows(4, 2).pairs().windows_of_pane(0))
    assert [-1, 0] == list(TimeWindows(4, 2).pairs().windows_of_pane(0))


def test_slices_of_fractions_are_exact():
    rng = random.Random(1)
    for _ in range(40):
        size, slide = (Fraction(rng.randrange(1, 40), rng.randrange(1, 9)) for _ in range(2))
        model = TimeWindows(size, slide, Fraction(rng.randrange(5), 7))
        for slices in (model.panes(), model.pairs()):
            for w in (-1, 0, 2):
                own = slices.panes_of(w)
                assert model.extent(w) == (slices.extent(own[0])[0], slices.extent(own[-1])[1])
                assert w in slices.windows_of_pane(own[0])


def test_small_panes_of_a_long_slide_take_no_room():
    slices = TimeWindows(10**12 + 1, 10**9).panes()
    assert (10**12 + 1, 10**9) == (slices.per_window, slices.per_slide)
    assert (5, 6) == slices.extent(slices.of(5))
