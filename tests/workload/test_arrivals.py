"""Arrivals have the rate and the burstiness that was asked for, and are the same every time."""
# ruff: noqa: SIM300 - asserts read expected first

import numpy as np
import pytest

from windowlib.workload import Map2, Poisson, Steady, dispersion_of

MANY = 5_000_000
PROCESSES = [Steady(rate=300), Poisson(rate=300), Map2(rate=300, dispersion=50)]
processes = pytest.mark.parametrize("process", PROCESSES, ids=lambda p: type(p).__name__)


SEEDS = range(4)


@pytest.fixture(scope="module", params=[100, 1000, 2500], ids="I={}".format)
def bursty(request):
    """A dispersion, and a stream of it for each seed."""
    process = Map2(rate=20_000, dispersion=request.param)
    return request.param, [process.arrivals(MANY, seed) for seed in SEEDS]


def test_bursts_keep_the_mean_rate(bursty):
    """The mean of all streams, because that of one is off by sqrt(I / n): 2.2 percent at 2500."""
    dispersion, streams = bursty
    rates = [MANY / arrivals[-1] / 20_000 for arrivals in streams]
    assert np.mean(rates) == pytest.approx(1, abs=0.02)
    assert np.abs(np.array(rates) - 1).max() < 3 * (dispersion / MANY) ** 0.5


def test_bursts_have_the_index_of_dispersion(bursty):
    dispersion, streams = bursty
    for arrivals in streams:
        assert dispersion_of(arrivals) == pytest.approx(dispersion, rel=0.2)


def test_panes_vary_as_the_index_of_dispersion_says(bursty):
    """In panes long enough, the coefficient of variation is sqrt(I / tuples of a pane)."""
    dispersion, streams = bursty
    tuples = 30 * dispersion
    panes = np.concatenate(
        [
            np.diff(np.searchsorted(arrivals, np.arange(0, arrivals[-1], tuples / 20_000)))
            for arrivals in streams
        ]
    )
    assert panes.std() / panes.mean() == pytest.approx((dispersion / tuples) ** 0.5, rel=0.15)


@pytest.mark.parametrize("seed", [1, 2])
def test_independent_arrivals_have_the_index_one(seed):
    arrivals = Poisson(rate=1000).arrivals(2_000_000, seed)
    assert dispersion_of(arrivals) == pytest.approx(1, abs=0.1)
    assert len(arrivals) / arrivals[-1] == pytest.approx(1000, rel=0.02)


def test_a_steady_pace_has_the_index_zero():
    arrivals = Steady(rate=8).arrivals(10_000)
    assert 0.0 == dispersion_of(arrivals)
    assert 1250.0 == arrivals[-1]


def test_the_probabilities_are_those_of_the_closed_form():
    bursts = Map2(rate=10, dispersion=1000)
    assert bursts.p_fs == pytest.approx(2 * 9 / (4 * 5 * 999))
    assert bursts.p_sf == pytest.approx(4 * bursts.p_fs)


@pytest.mark.parametrize(("dispersion", "factor"), [(30.0, 4.0), (200.0, 2.0), (60.0, 8.0)])
def test_the_probabilities_give_the_dispersion_back(dispersion, factor):
    """By the definition: SCV * (1 + 2 * the sum of all autocorrelations)."""
    bursts = Map2(rate=1, dispersion=dispersion, factor=factor)
    stay = 1 - bursts.p_fs - bursts.p_sf
    variance = (factor - 1) ** 2 / factor  # of the mean interval, between the two states
    scv = 1 + 2 * variance
    first = stay * variance / scv
    assert scv * (1 + 2 * first / (1 - stay)) == pytest.approx(dispersion)


def test_the_least_dispersion_of_a_factor_is_one_that_works():
    bursts = Map2(rate=1000, dispersion=4.6)
    assert 1.0 == pytest.approx(bursts.p_sf)
    assert dispersion_of(bursts.arrivals(2_000_000)) == pytest.approx(4.6, rel=0.1)


def test_bursts_come_in_two_speeds():
    """One fifth of the time is fast, and four fifths of the arrivals come in it."""
    arrivals = Map2(rate=1000, dispersion=20_000).arrivals(3_000_000, seed=4)
    counts = np.diff(np.searchsorted(arrivals, np.arange(0, arrivals[-1], 0.1)))
    fast = counts > 200
    assert counts[fast].mean() == pytest.approx(400, rel=0.05)
    assert counts[counts < 50].mean() == pytest.approx(25, rel=0.05)
    assert fast.mean() == pytest.approx(0.2, abs=0.06)
    assert counts[fast].sum() / counts.sum() == pytest.approx(0.8, abs=0.06)


@processes
def test_arrivals_go_forward_and_are_as_many_as_asked_for(process):
    arrivals = process.arrivals(200_000, seed=3)
    assert np.float64 == arrivals.dtype
    assert 200_000 == len(arrivals)
    assert 0 < arrivals[0]
    assert (np.diff(arrivals) > 0).all()
    assert 0 == len(process.arrivals(0))


@processes
@pytest.mark.parametrize("chunk", [999, 65_536, 150_000])
def test_the_size_of_chunks_changes_nothing(process, chunk):
    parts = list(process.stream(140_000, seed=5, chunk=chunk))
    assert [chunk] * (140_000 // chunk) == [len(part) for part in parts[: 140_000 // chunk]]
    assert process.arrivals(140_000, seed=5).tolist() == np.concatenate(parts).tolist()


def test_a_stay_longer_than_a_block_is_read_in_pieces():
    slow = Map2(rate=1000, dispersion=10_000_000)
    assert 1 / slow.p_fs > 1_000_000
    parts = slow.stream(300_000, chunk=70_000)
    assert slow.arrivals(300_000).tolist() == np.concatenate(list(parts)).tolist()


@processes
def test_a_stream_without_an_end_goes_on(process):
    endless = process.stream(seed=5, chunk=50_000)
    first = [next(endless) for _ in range(4)]
    assert process.arrivals(200_000, seed=5).tolist() == np.concatenate(first).tolist()


@pytest.mark.parametrize("process", PROCESSES[1:], ids=lambda p: type(p).__name__)
def test_seeds_differ(process):
    assert process.arrivals(10, seed=1).tolist() != process.arrivals(10, seed=2).tolist()
    assert process.arrivals(10, seed=1).tolist() == process.arrivals(10, seed=1).tolist()


def test_the_first_arrivals_of_a_seed_are_these_everywhere():
    bursts = Map2(rate=1000, dispersion=100).arrivals(4, seed=7)
    first = [0.0030425430032116, 0.0063729353395785, 0.0086535535171032, 0.0189392355223947]
    assert first == pytest.approx(bursts.tolist(), rel=1e-12)
