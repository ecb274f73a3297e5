"""The estimate of the index of dispersion, on streams whose index is known."""

import numpy as np
import pytest

from windowlib.workload import Map2, Poisson, dispersion_of


def test_arrivals_in_groups_have_the_size_of_the_group():
    """Groups of k at independent times: the variance is k * k times as large, the mean k times."""
    groups = np.repeat(Poisson(rate=10).arrivals(100_000, seed=2), 7)
    assert dispersion_of(groups) == pytest.approx(7, rel=0.1)


def test_it_does_not_depend_on_the_unit_of_time():
    arrivals = Map2(rate=100, dispersion=40).arrivals(400_000)
    assert dispersion_of(arrivals) == pytest.approx(dispersion_of(arrivals * 1024 + 5), rel=0.01)


def test_a_weak_contrast_is_found_too():
    """At first its ratio rises by less than a fifth a step, which is not yet the end."""
    arrivals = Map2(rate=1000, dispersion=20, factor=1.3).arrivals(4_000_000, seed=1)
    assert dispersion_of(arrivals) == pytest.approx(20, rel=0.2)


def test_a_delay_of_many_bursts_makes_arrivals_less_bursty():
    arrivals = Map2(rate=1000, dispersion=100).arrivals(500_000)
    shuffled = np.sort(arrivals + np.random.default_rng(1).uniform(0, 60, len(arrivals)))
    inner = shuffled[50_000:-50_000]
    assert dispersion_of(inner) < 20 < 80 < dispersion_of(arrivals)


def test_a_drift_of_the_rate_counts_as_bursts():
    """The reason to measure short pieces: each is even, and the whole is not."""
    arrivals = np.sqrt(Poisson(rate=100).arrivals(200_000))
    assert dispersion_of(arrivals) > 20
    piece = arrivals[100_000:102_000]
    assert dispersion_of(piece) == pytest.approx(1, abs=0.35)


def test_a_few_hundred_arrivals_are_enough_for_a_guess():
    assert 0.5 < dispersion_of(Poisson(rate=3).arrivals(200, seed=1)) < 2


@pytest.mark.parametrize("dispersion", [100, 1000])
def test_it_goes_on_until_the_ratio_has_settled_twice(dispersion):
    """The ratio nears its limit from below; after one small change it is still a tenth short."""
    process = Map2(rate=20_000, dispersion=dispersion)
    found = [dispersion_of(process.arrivals(5_000_000, seed)) for seed in range(4)]
    assert np.mean(found) == pytest.approx(dispersion, rel=0.075)
