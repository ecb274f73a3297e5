"""The k-th smallest of many extents, against sorting each of them, with numpy and with numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.with_each_engine import engine  # noqa: F401 - a fixture for all tests here
from tests.helpers.examples import examples
from windowlib.columnar.arrays.columns import Column
from windowlib.columnar.kernels.order_statistics import smallest_from
from windowlib.columnar.kernels.ranked import RankedValues
from windowlib.columnar.primitives import sliding_pivots, sliding_ranks, wavelet
from windowlib.columnar.primitives.grouping import stable_argsort

NANS = np.array([np.nan, -np.nan])
KEYS = {
    "floats": lambda rng, n: rng.normal(size=n),
    "few floats": lambda rng, n: rng.integers(-3, 3, n) / 2,
    "NaN of both signs": lambda rng, n: np.where(rng.random(n) < 0.2, rng.choice(NANS, n), 1.5),
    "all sizes": lambda rng, n: rng.choice([-1, 1], n) * 2.0 ** rng.integers(-1070, 1020, n),
    "infinite": lambda rng, n: rng.choice([-np.inf, np.inf, -1.0, 1.0], n),
    "int64": lambda rng, n: rng.integers(-(2**63), 2**63 - 1, n),
    "int32": lambda rng, n: rng.permutation(n).astype(np.int32) - n // 2,
    "small, but for one": lambda rng, n: np.append(rng.integers(-5, 5, n), 2**62)[1:],
    "one number": lambda rng, n: np.full(n, 7),
    "some close": lambda rng, n: np.where(rng.random(n) < 0.04, 1e-12, 1.0) * rng.random(n) + 1,
}


def check(keys, lo, hi, first, count):
    found: dict[int, list[Any]] = {}
    for which, rows in smallest_from(keys, lo, hi, first, count):
        places = np.arange(len(lo))[which]
        found |= {int(at): row[: count[at]].tolist() for at, row in zip(places, rows, strict=True)}
    assert found.keys() == set(range(len(lo)))
    for at in found:
        own = np.sort(keys[lo[at] : hi[at]])[first[at] : first[at] + count[at]]
        np.testing.assert_array_equal(found[at], own)


def places_in(rng, lo, hi, most):
    """Where to look in each extent, and for how many keys."""
    first = rng.integers(0, hi - lo)
    return first, np.minimum(rng.integers(1, most + 1, len(lo)), hi - lo - first)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("length", [1, 30, 300])
def test_a_window_that_slides_by_one(name, length):
    rng = np.random.default_rng(length)
    keys = KEYS[name](rng, 1_000)
    lo = np.arange(len(keys) - length + 1)
    check(keys, lo, lo + length, *places_in(rng, lo, lo + length, 4))


@pytest.mark.parametrize("name", ["floats", "few floats", "int64"])
def test_windows_longer_than_a_block(name):
    rng = np.random.default_rng(1)
    keys = KEYS[name](rng, 40_000)
    lo = np.arange(0, len(keys) - 3_000, 7)
    hi = lo + 3_000
    check(keys, lo, hi, np.full(len(lo), 2_850), np.full(len(lo), 2))


def test_windows_longer_than_a_count_of_16_bits():
    rng = np.random.default_rng(2)
    keys = rng.integers(-(2**40), 2**40, 90_000)
    lo = np.sort(rng.integers(0, len(keys) - 40_000, 150))
    hi = lo + rng.integers(17_000, 40_000, len(lo))
    check(keys, lo, hi, *places_in(rng, lo, hi, 3))


@pytest.mark.parametrize("length", [3, 20, 64])
def test_extents_in_many_blocks(length, monkeypatch):
    monkeypatch.setattr(wavelet, "BLOCK", 100)
    rng = np.random.default_rng(length)
    keys = rng.normal(size=2_000)
    lo = np.repeat(np.arange(len(keys) - length), 14)
    hi = lo + rng.integers(1, length + 1, len(lo))
    mixed = rng.permutation(len(lo))
    check(keys, lo, hi, *places_in(rng, lo, hi, 6))
    lo, hi = lo[mixed], hi[mixed]
    check(keys, lo, hi, *places_in(rng, lo, hi, 2))


@settings(max_examples=examples(60))
@given(st.data())
def test_a_window_that_slides_from_key_to_key(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    length, windows = data.draw(st.integers(64, 130)), data.draw(st.integers(64, 700))
    keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))](rng, length + windows + 4)
    lo = np.arange(5, windows + 5)
    first = data.draw(st.sampled_from([0, length // 2, length - 2, length - 1]))
    count = data.draw(st.integers(1, min(2, length - first)))
    places = np.full(windows, first), np.full(windows, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliding_ranks, "SIZES", (32, 64, 256))
        assert sliding_ranks.slides(lo, lo + length, *places)
        check(keys, lo, lo + length, *places)


@pytest.mark.parametrize("length", [64, 1_000, sliding_ranks.LONGEST])
def test_a_window_that_slides_over_whole_blocks(length):
    rng = np.random.default_rng(length)
    keys = rng.normal(size=length + sliding_ranks.SIZES[-1] + 300)
    found = sliding_ranks.ranked(keys, length, length // 3, 2)
    for at in (0, 31, 32, *rng.integers(0, len(found), 60), len(found) - 1):
        own = np.sort(keys[at : at + length])[length // 3 :][:2]
        np.testing.assert_array_equal(found[at], own)


STEADY = {
    **KEYS,
    "rising": lambda rng, n: rng.normal(size=n) + np.arange(n) / n,
    "a random walk": lambda rng, n: np.cumsum(rng.normal(size=n)),
    "a step": lambda rng, n: rng.random(n) + (np.arange(n) >= n // 2),
    "one in a hundred": lambda rng, n: rng.random(n) + (rng.random(n) < 0.01),
    "mostly NaN": lambda rng, n: np.where(rng.random(n) < 0.97, np.nan, rng.normal(size=n)),
    "a step that many are left at": lambda rng, n: np.maximum(
        np.arange(n) >= n // 3, rng.random(n)
    ),
    "two infinities": lambda rng, n: np.where(
        rng.random(n) < 0.05, rng.choice([-np.inf, np.inf], n), rng.random(n)
    ),
    "NaN above": lambda rng, n: np.where(rng.random(n) < 0.02, np.nan, rng.normal(size=n)),
}


@settings(max_examples=examples(120))
@given(st.data())
def test_a_window_whose_keys_stay_about_as_large(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    length = data.draw(st.sampled_from([256, 300, 700]))
    first = length * data.draw(st.integers(0, 40)) // 1_000
    if data.draw(st.booleans()):
        first = length - 1 - first
    size = sliding_pivots.block_size(length, first)
    windows = data.draw(st.integers(sliding_ranks.SIZES[1], 12 * max(size, 100)))
    keys = STEADY[data.draw(st.sampled_from(sorted(STEADY)))](rng, length + windows - 1)
    count = data.draw(st.integers(1, min(2, length - first)))
    whatever = data.draw(st.booleans())  # is lost, the others are taken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliding_pivots, "AT_ONCE", data.draw(st.sampled_from([1, 1 << 11, 1 << 18])))
        patch.setattr(sliding_pivots, "PROBE", 1 if whatever else data.draw(st.integers(1, 8)))
        if whatever:
            patch.setattr(sliding_pivots, "RUN", 0)
        found = sliding_pivots.ranked(keys, length, first, count)
        lo = np.arange(windows)
        check(keys, lo, lo + length, np.full(windows, first), np.full(windows, count))
    assert len(found) == windows or not (size and whatever)
    rows = np.lib.stride_tricks.sliding_window_view(keys, length)[: len(found)]
    np.testing.assert_array_equal(found, np.sort(rows, axis=1)[:, first : first + count])


@pytest.mark.parametrize("share", [0, 0.01, 0.05, 0.95, 0.99])
@pytest.mark.parametrize("name", ["floats", "int64", "rising", "one in a hundred"])
def test_no_block_is_lost_whose_keys_stay_about_as_large(name, share, monkeypatch):
    keys = STEADY[name](np.random.default_rng(3), 9_000)
    place = int(share * 999)
    expected = sliding_ranks.ranked(keys, 1_000, place, 2)
    monkeypatch.delattr(sliding_ranks, "ranked")
    np.testing.assert_array_equal(sliding_pivots.ranked(keys, 1_000, place, 2), expected)


def test_from_where_keys_change_windows_are_left_to_others(monkeypatch):
    monkeypatch.setattr(sliding_pivots, "AT_ONCE", 1 << 14)
    monkeypatch.setattr(sliding_pivots, "PROBE", 1)
    rng, length, place = np.random.default_rng(5), 1_000, 950
    keys = np.append(rng.random(14_000), rng.integers(0, 3, 6_000))  # equal ones are too many
    windows = len(keys) - length + 1
    done = len(sliding_pivots.ranked(keys, length, place, 2))
    assert 0 < done < windows
    lo = np.arange(windows)
    check(keys, lo, lo + length, np.full(windows, place), np.full(windows, 2))
    pair = RankedValues(Column.of(pa.array(keys))).at(
        lo, lo + length, np.full(windows, place), np.full(windows, 2)
    )
    rows = np.lib.stride_tricks.sliding_window_view(keys, length)
    expected = np.sort(rows[done - 2 : done + 2], axis=1)[:, place : place + 2]
    np.testing.assert_array_equal(np.stack(pair, axis=1)[done - 2 : done + 2], expected)


def test_keys_that_change_places_too_often_have_no_blocks():
    sizes = [sliding_pivots.block_size(1_000, place) for place in (0, 100, 500, 999)]
    assert sizes == [375, 177, 0, 375]
    assert not sliding_pivots.block_size(200, 190)


def test_other_extents_are_no_window_that_slides_from_key_to_key():
    lo, ones = np.arange(300), np.ones(300, np.intp)
    assert sliding_ranks.slides(lo, lo + 100, ones, ones)
    assert not sliding_ranks.slides(lo, lo + 60, ones, ones)
    assert not sliding_ranks.slides(2 * lo, 2 * lo + 100, ones, ones)
    assert not sliding_ranks.slides(lo, np.maximum(lo + 100, 200), ones, ones)
    assert not sliding_ranks.slides(lo, lo + 100, lo % 2, ones)
    assert not sliding_ranks.slides(lo, lo + 100, ones, 1 + lo % 2)
    assert not sliding_ranks.slides(lo, lo + 100, ones, 3 * ones)


@settings(max_examples=examples(80))
@given(st.data())
def test_any_extents(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))](rng, data.draw(st.integers(1, 200)))
    size, extents = len(keys), data.draw(st.integers(1, 120))
    lo = rng.integers(0, size, extents)
    hi = np.minimum(lo + rng.integers(1, data.draw(st.integers(2, 150)), extents), size)
    if data.draw(st.booleans()):  # as a window slides, with jumps
        lo, hi = np.sort(lo), np.sort(hi)
    check(keys, lo, hi, *places_in(rng, lo, hi, data.draw(st.integers(1, 5))))


@settings(max_examples=examples(80))
@given(st.sampled_from(sorted(KEYS)), st.integers(0, 2_000), st.integers(0, 2**32 - 1))
def test_a_stable_order_of_any_keys(name, size, seed):
    rng = np.random.default_rng(seed)
    keys = KEYS[name](rng, size)
    assert stable_argsort(keys).tolist() == np.argsort(keys, kind="stable").tolist()
