"""How busy workers are, and that one of them can be too busy while the mean is not."""
# ruff: noqa: SIM300 - asserts read expected first

from math import inf

import pytest

from windowlib.control import Utilisation, WorkerStats


def utilisation(stats, interval=1.0):
    found = Utilisation.of(stats, interval)
    assert found is not None
    return found


SKEWED = [WorkerStats(600, 500, 1.0), WorkerStats(400, 400, 0.6)]


def test_a_worker_that_falls_behind_is_reported_although_the_mean_is_below_one():
    """A tuple costs 1.6 / 900 s, so worker 1 could have done 225 more in 0.4 s: 625."""
    found = utilisation(SKEWED, 1.0)
    assert found.workers == pytest.approx((600 / 500, 400 / 625))
    assert found.weighted == pytest.approx(0.6 * 1.2 + 0.4 * 0.64)
    assert 0.976 == round(found.weighted, 3)
    assert 1.2 == found.worst == found.control


def test_the_mean_is_never_more_than_the_worst():
    for given in range(0, 1001, 50):
        stats = [WorkerStats(given, 300, 0.9), WorkerStats(1000 - given, 200, 0.5)]
        found = utilisation(stats, 1.0)
        assert found.weighted <= found.worst + 1e-12


def test_the_unit_of_time_is_of_no_matter():
    slow = [each._replace(busy=each.busy * 60) for each in SKEWED]
    assert utilisation(slow, 60.0).workers == pytest.approx(utilisation(SKEWED, 1.0).workers)
    assert utilisation(slow, 60.0).weighted == pytest.approx(0.976)


def test_nothing_to_do_is_no_utilisation():
    assert Utilisation(0, 0, (0, 0)) == utilisation([WorkerStats(0, 5, 0.5)] * 2, 1.0)


def test_an_idle_worker_has_none_and_the_others_keep_theirs():
    found = utilisation([WorkerStats(500, 500, 0.5), WorkerStats(0, 0, 0.0)], 1.0)
    assert found.workers == pytest.approx((0.5, 0.0))
    assert 0.5 == pytest.approx(found.weighted)


def test_busy_all_the_time_and_nothing_done_is_without_bound():
    found = utilisation([WorkerStats(10, 0, 1.0), WorkerStats(0, 0, 0.0)], 1.0)
    assert (inf, 0.0) == found.workers
    assert inf == found.weighted == found.worst


def test_tuples_that_nobody_has_looked_at_say_nothing():
    assert Utilisation.of([WorkerStats(10, 0, 0.0)], 1.0) is None


def test_tuples_too_cheap_to_measure_are_no_load():
    assert 0.0 == utilisation([WorkerStats(10, 10, 0.0)], 1.0).worst


def test_more_work_than_time_is_no_idle_time():
    found = utilisation([WorkerStats(100, 80, 1.3)], 1.0)
    assert 100 / 80 == found.worst
