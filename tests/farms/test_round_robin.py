"""Who has which window, and where a tuple goes: against counting it out."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import subprocess
import sys
from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from windowlib.farms.models import CountWindows, TimeWindows
from windowlib.farms.round_robin import RoundRobin, key_shift

MODELS = [
    model
    for size in (1, 2, 4, 5, 7)
    for slide in (1, 2, 3, 6)
    for model in (
        CountWindows(size, slide),
        CountWindows(size, slide, phase=1),
        TimeWindows(size, slide, phase=-2),
    )
]
FARMS = [(n, shift) for n in (1, 2, 3, 5) for shift in (0, 1, 4)]
WINDOWS = range(-20, 60)


def points(model):
    return range(30) if isinstance(model, CountWindows) else range(-12, 25)


# -- windows and workers --


def test_neighbouring_windows_go_to_neighbouring_workers():
    assert [0, 1, 2, 0, 1] == [RoundRobin(3).owner(w) for w in range(5)]
    assert [2, 0, 1, 2, 0] == [RoundRobin(3).owner(w, shift=2) for w in range(5)]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_every_window_has_one_worker_and_one_number_there(batch):
    for n, shift in FARMS:
        farm = RoundRobin(n, batch)
        for j in range(n):
            owned = [w for w in WINDOWS if farm.owner(w, shift) == j]
            local = [farm.local(w) for w in owned]
            assert owned == [farm.window(each, j, shift) for each in local]
            assert list(range(local[0], local[0] + len(local))) == local


def test_numbers_of_windows_may_be_arrays():
    farm, windows = RoundRobin(3, batch=2), np.arange(-9, 20)
    shifts = np.arange(len(windows)) % 4
    owners, local = farm.owner(windows, shifts), farm.local(windows)
    rows = list(zip(windows.tolist(), shifts.tolist(), strict=True))
    assert [farm.owner(w, shift) for w, shift in rows] == owners.tolist()
    assert [farm.local(w) for w, _ in rows] == local.tolist()
    assert windows.tolist() == farm.window(local, owners, shifts).tolist()


def test_batches_keep_neighbours_together():
    assert [0, 0, 0, 1, 1, 1, 0] == [RoundRobin(2, batch=3).owner(w) for w in range(7)]


# -- private windows --


@pytest.mark.parametrize(("n", "shift"), FARMS)
def test_the_windows_of_a_worker_have_their_extents_and_numbers_of_the_stream(n, shift):
    farm = RoundRobin(n)
    for model in MODELS:
        for j in range(n):
            private = farm.private(model, j, shift)
            assert type(model) is type(private)
            assert private.slide == model.slide * n
            for local in range(-3, 6):
                assert model.extent(farm.window(local, j, shift)) == private.extent(local)


@pytest.mark.parametrize(("n", "shift"), FARMS)
def test_the_private_windows_of_a_tuple_are_those_of_its_windows_that_the_worker_has(n, shift):
    farm = RoundRobin(n)
    for model in MODELS:
        for j in range(n):
            private = farm.private(model, j, shift)
            for x in points(model):
                owned = [w for w in model.windows(x) if farm.owner(w, shift) == j]
                assert owned == [farm.window(each, j, shift) for each in private.windows(x)]


def test_the_slide_of_a_worker_is_not_cut_to_the_size():
    # Worker 0 of 4 has [0, 4) and [8, 12): its slide is 8, though windows have 4.
    private = RoundRobin(4).private(CountWindows(4, 2), 0)
    assert (8, [(0, 4), (8, 12)]) == (private.slide, [private.extent(0), private.extent(1)])
    assert not private.overlapping


def test_partial_windows_have_workers_too():
    model = CountWindows(5, 2, phase=1, lowest=-2)
    farm = RoundRobin(2)
    held = [farm.window(each, j) for j in range(2) for each in farm.private(model, j).windows(0)]
    assert [-2, -1] == sorted(held)


def test_fractions_stay_exact_at_the_workers():
    model = TimeWindows(Fraction(1, 2), Fraction(1, 3), Fraction(1, 7))
    private = RoundRobin(3).private(model, 2)
    assert (1, Fraction(17, 21)) == (private.slide, private.phase)


# -- routing --


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize(("n", "shift"), FARMS)
def test_a_tuple_goes_to_the_workers_of_its_windows_and_to_no_other(n, shift, batch):
    farm = RoundRobin(n, batch)
    for model in MODELS:
        axis = points(model)
        rows, workers = farm.workers_of(model, np.array(axis), shift)
        at_once = [workers[rows == row].tolist() for row in range(len(axis))]
        for x, found in zip(axis, at_once, strict=True):
            truth = list(dict.fromkeys(farm.owner(w, shift) for w in model.windows(x)))
            assert truth == found
            assert truth == farm.workers_of(model, x, shift)


def test_each_row_may_have_the_shift_of_its_key():
    farm, model = RoundRobin(4), CountWindows(3, 2)
    axis, shifts = np.arange(20), np.arange(20) % 5
    rows, workers = farm.workers_of(model, axis, shifts)
    truth = [(x, worker) for x in range(20) for worker in farm.workers_of(model, x, int(shifts[x]))]
    assert truth == list(zip(rows.tolist(), workers.tolist(), strict=True))


def test_a_tuple_between_two_windows_goes_nowhere():
    assert [] == RoundRobin(3).workers_of(TimeWindows(2, 5), 3)
    assert [] == RoundRobin(3, batch=4).workers_of(TimeWindows(2, 5), 3)


def test_a_tuple_of_many_windows_goes_to_everyone_once():
    assert [0, 1, 2] == sorted(RoundRobin(3).workers_of(CountWindows(100, 1), 500))


def test_a_real_timestamp_finds_its_workers():
    assert [1, 2] == RoundRobin(4).workers_of(TimeWindows(4, 2), 5.5)
    assert [1, 2] == RoundRobin(4).workers_of(TimeWindows(4, 2), np.array([5.5]))[1].tolist()


@pytest.mark.parametrize("batch", [1, 2, 4, 16])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
def test_the_copies_of_a_tuple_are_counted_right(n, batch):
    for size, slide in ((4, 1), (10, 4), (6, 6), (2, 5), (7, 3)):
        model, farm = TimeWindows(size, slide), RoundRobin(n, batch)
        period = slide * batch * n
        rows, _ = farm.workers_of(model, np.arange(period))
        assert len(rows) / period == pytest.approx(farm.copies(model), rel=1e-12)


def test_batches_save_copies():
    copies = [RoundRobin(9, batch).copies(CountWindows(4, 1)) for batch in (1, 2, 4)]
    assert [4, 2.5, 1.75] == copies


# -- the shift of a key --

KEYS = ["IBM", "", b"x", 7, -7, 2.5, None, ("a", 1), ("a", None), date(2026, 1, 2), Decimal("1.5")]


def test_the_shift_of_a_key_is_the_same_in_every_process():
    code = (
        "from datetime import date\nfrom decimal import Decimal\n"
        "from windowlib.farms.round_robin import key_shift\n"
        f"keys = {KEYS!r}\n".replace("datetime.date", "date")
        + "print([key_shift(key, 1000) for key in keys])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert {f"{[key_shift(key, 1000) for key in KEYS]}\n"} == said


def test_keys_that_are_one_partition_have_one_shift():
    assert key_shift(5, 97) == key_shift(5.0, 97) == key_shift(Decimal(5), 97)
    assert key_shift((1, 2), 97) == key_shift((1.0, 2), 97)
    assert key_shift(float("nan"), 97) == key_shift(float("nan"), 97)


def test_the_first_windows_of_many_keys_do_not_go_to_one_worker():
    shifts = Counter(key_shift(f"key {n}", 4) for n in range(1000))
    assert {0, 1, 2, 3} == set(shifts)
    assert max(shifts.values()) < 320
