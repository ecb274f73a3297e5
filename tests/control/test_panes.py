"""Which worker gets which tuples of a pane: constructed cases, and runs in virtual time."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from math import inf, sqrt
from statistics import median

import pytest

from bench.simulated import Seen, run
from windowlib.control import (
    Adaptive,
    AdaptivePid,
    PaneRoundRobin,
    TupleRoundRobin,
    WorkerStats,
)
from windowlib.workload import Map2

POLICIES = [PaneRoundRobin, TupleRoundRobin, Adaptive, AdaptivePid]
policies = pytest.mark.parametrize("make", POLICIES, ids=lambda make: make.__name__)


def warm(policy, *sizes):
    """A policy that has seen panes of these sizes, which nobody split."""
    for pane, size in enumerate(sizes):
        policy.assign(-1 - pane, size, [0] * policy.workers)
        policy.closed(-1 - pane)
    policy._turn = 0
    return policy


def busy(worst, workers=2):
    """What workers did in a second, where the utilisation of all is this."""
    return [WorkerStats(worst * 1000, min(worst, 1) * 1000, min(worst, 1.0))] * workers


# -- what all have in common --


@policies
def test_every_tuple_goes_to_a_worker_and_partitions_count_them(make):
    draw, policy = random.Random(1), make(3)
    given: dict[int, dict[int, int]] = {}
    for step in range(400):
        pane, count = step // 10 + draw.randrange(3), draw.randrange(40)
        runs = policy.assign(pane, count, [draw.randrange(50) for _ in range(3)])
        assert count == sum(size for _, size in runs)
        assert all(0 <= worker < 3 and size > 0 for worker, size in runs)
        for worker, size in runs:
            own = given.setdefault(pane, {})
            own[worker] = own.get(worker, 0) + size
        assert given.get(pane, {}) == policy.partitions(pane)
        if step % 10 == 9 and step // 10 in given:
            assert given.pop(step // 10) == policy.closed(step // 10)
            assert {} == policy.partitions(step // 10)
        if step % 25 == 24:
            policy.sample(step, busy(draw.uniform(0.3, 1.5), 3), 1.0)


@policies
def test_no_tuples_make_no_partition(make):
    policy = make(2)
    assert [] == policy.assign(0, 0, [0, 0])
    assert {} == policy.partitions(0) == policy.closed(0)


@policies
def test_one_worker_gets_everything(make):
    policy = warm(make(1), *[10] * 6)
    assert [(0, 100)] == policy.assign(0, 100, [5])
    policy.sample(1.0, busy(2.0, 1), 1.0)
    assert [(0, 100)] == policy.assign(0, 100, [5])


# -- in turn --


def test_panes_go_round_in_the_order_of_their_first_tuple():
    policy = PaneRoundRobin(2)
    runs = [policy.assign(pane, 3, [9, 0]) for pane in (7, 5, 7, 6, 5)]
    assert [[(0, 3)], [(1, 3)], [(0, 3)], [(0, 3)], [(1, 3)]] == runs


def test_tuples_go_round_over_panes_and_batches():
    policy = TupleRoundRobin(3)
    assert [(0, 1), (1, 1)] == policy.assign(0, 2, [0, 0, 0])
    assert [(2, 1), (0, 1)] == policy.assign(1, 2, [0, 0, 0])
    assert {2: 1, 0: 1} == policy.partitions(1)


# -- by a threshold --


def test_no_pane_is_split_while_warming_up():
    policy = Adaptive(2)
    for pane in range(5):
        assert inf == policy.threshold
        assert 1 == len(policy.assign(pane, 1000, [0, 0]))
        policy.closed(pane)
    assert 1000 == policy.threshold


def test_panes_without_tuples_do_not_warm_up():
    policy = Adaptive(2)
    for pane in range(9):
        policy.closed(pane)
    assert inf == policy.threshold


def test_the_threshold_is_the_mean_plus_the_standard_deviation():
    """The first ten partitions count alike."""
    sizes = [100, 140, 60, 90, 110, 100]
    policy = warm(Adaptive(2), *sizes)
    mean = sum(sizes) / 6
    std = sqrt(sum((size - mean) ** 2 for size in sizes) / 6)
    assert policy.threshold == pytest.approx(mean + std)


def test_the_threshold_follows_what_is_recent():
    policy = warm(Adaptive(2, weight=0.1), *[1000] * 50, *[100] * 60)
    assert 100 <= policy.threshold < 110 + 90


def test_sizes_from_outside_count_instead_of_what_was_assigned():
    policy = Adaptive(4, warmup=1)
    policy.assign(0, 1000, [0] * 4)
    assert {0: 1000} == policy.closed(0, sizes=[30, 0, 30])
    assert 30 == policy.threshold


def test_a_pane_begins_with_the_worker_that_has_least_to_do():
    policy = warm(Adaptive(3), *[10] * 5)
    assert [(1, 4)] == policy.assign(0, 4, [5, 2, 9])


def test_of_equal_loads_workers_take_turns():
    policy = warm(Adaptive(3), *[10] * 5)
    assert [0, 1, 2, 0] == [policy.assign(pane, 1, [0, 0, 0])[0][0] for pane in range(4)]


def test_an_owner_keeps_the_pane_until_the_threshold_whatever_its_load():
    policy = warm(Adaptive(2), *[10] * 5)
    assert [(0, 4)] == policy.assign(0, 4, [0, 0])
    assert [(0, 6), (1, 2)] == policy.assign(0, 8, [99, 50])


def test_a_former_owner_goes_on_with_its_partition():
    """Worker 0 is at the threshold and 1, too; then each tuple goes where least waits."""
    policy = warm(Adaptive(2), *[10] * 5)
    assert [(0, 10), (1, 10)] == policy.assign(0, 20, [0, 5])
    assert [(0, 3)] == policy.assign(0, 3, [0, 5])
    assert {0: 13, 1: 10} == policy.partitions(0)


def test_runs_are_those_of_one_choice_for_each_tuple():
    """In one call or tuple by tuple, where the loads grow by what was given."""
    draw = random.Random(5)
    for _ in range(200):
        loads = [draw.randrange(30) for _ in range(3)]
        whole = warm(Adaptive(3), *[draw.randrange(1, 20) for _ in range(6)])
        single = Adaptive(3)
        single.__dict__.update({k: v for k, v in whole.__dict__.items() if not k.startswith("_o")})
        runs = [worker for worker, size in whole.assign(0, 80, list(loads)) for _ in range(size)]
        apart = []
        for _ in range(80):
            ((worker, _),) = single.assign(0, 1, loads)
            loads[worker] += 1
            apart.append(worker)
        assert apart == runs


# -- steered --


def test_alpha_rises_while_workers_could_do_more_and_falls_while_they_cannot():
    policy = warm(AdaptivePid(2), *[100] * 5)
    assert (1.0, 100.0) == (policy.alpha, policy.threshold)
    policy.sample(1.0, busy(0.5), 1.0)
    assert 1.2 == pytest.approx(policy.alpha), "a step at most"
    assert 120 == pytest.approx(policy.threshold)
    for now in (2.0, 3.0):
        policy.sample(now, busy(1.9), 1.0)
    assert policy.alpha < 1.2


def test_a_sample_counts_for_its_share_and_the_fallback_forgets_it():
    policy = AdaptivePid(2, gains=(1.0, 0.0, 0.0), step=9.0, smooth=0.25, patience=2)
    policy.sample(1.0, busy(0.9), 1.0)
    policy.sample(2.0, busy(1.7), 1.0)
    assert 0.8 == pytest.approx(policy.alpha), "the mean is 1.1: a quarter of the way"
    policy.sample(3.0, busy(1.7), 1.0)
    assert policy.fallback
    for now in (4.0, 5.0):
        policy.sample(now, busy(0.8), 1.0)
    assert not policy.fallback
    assert 0.01 + 0.1 == pytest.approx(policy.alpha), "a mean of the last sample alone"


def test_a_sample_that_is_busy_for_once_does_not_leave_workers_too_busy():
    # Workers are as busy as partitions are large, and twice as busy in one sample of ten. Moved by
    # each sample alone, alpha takes whole steps only: one down, and then up, which is no mean.
    def mean(**options):
        policy, seen = AdaptivePid(1, patience=1000, **options), []
        for now in range(1000):
            seen.append(0.5 * policy.alpha * (2.0 if now % 10 == 0 else 8 / 9))
            policy.sample(float(now), busy(seen[-1]), 1.0)
        return sum(seen[500:]) / 500

    assert 0.9 == pytest.approx(mean(), abs=0.05)
    assert mean(smooth=1.0, gains=(1.8, 0.0, 2.0)) > 0.97


def test_alpha_and_the_threshold_are_bounded():
    policy = warm(AdaptivePid(2, alphas=(0.5, 1.5), patience=1000), *[100] * 5)
    for now in range(20):
        policy.sample(now, busy(0.1), 1.0)
    assert (1.5, 150.0) == (policy.alpha, policy.threshold)
    for now in range(20, 40):
        policy.sample(now, busy(3.0), 1.0)
    assert (0.5, 50.0) == (policy.alpha, policy.threshold)
    small = warm(AdaptivePid(2, alphas=(0.001, 1.5), patience=1000), *[100] * 5)
    for now in range(40):
        small.sample(now, busy(3.0), 1.0)
    assert 1.0 == small.threshold


def test_the_worst_worker_is_steered_by_or_the_mean():
    """At a mean of 0.976 and a worst of 1.2, with a set point of 1.1."""
    stats = [WorkerStats(600, 500, 1.0), WorkerStats(400, 400, 0.6)]
    worst, weighted = (
        AdaptivePid(2, setpoint=1.1, on=on, gains=(1.0, 0.0, 0.0)) for on in ("worst", "weighted")
    )
    for policy in (worst, weighted):
        policy.sample(1.0, stats, 1.0)
    assert 0.9 == pytest.approx(worst.alpha)
    assert weighted.alpha == pytest.approx(1 + 1.1 - 0.976)


def test_too_busy_for_too_long_ends_in_turns():
    policy = warm(AdaptivePid(2, patience=3), *[100] * 5)
    for now, utilisation in enumerate((1.1, 1.1, 0.99, 1.1, 1.1)):
        policy.sample(now, busy(utilisation), 1.0)
    assert not policy.fallback
    policy.sample(5.0, busy(1.1), 1.0)
    assert policy.fallback
    assert 1.0 == policy.threshold
    assert [(0, 1), (1, 1), (0, 1)] == policy.assign(0, 3, [50, 0])


def test_turns_end_when_there_is_room_again():
    """Between the set point and 1 they stay: less splitting would be too busy again."""
    policy = warm(AdaptivePid(2, patience=2), *[100] * 5)
    for now, utilisation in enumerate((1.1, 1.1, 0.95, 0.95, 0.95, 0.8, 0.95, 0.8)):
        policy.sample(now, busy(utilisation), 1.0)
    assert policy.fallback
    policy.sample(9.0, busy(0.8), 1.0)
    assert not policy.fallback
    assert policy.alpha < 0.5, "with small partitions at first"


def test_a_pane_that_was_open_through_a_fallback_keeps_its_partitions():
    policy = warm(AdaptivePid(2, patience=1), *[10] * 5)
    policy.assign(0, 4, [0, 0])
    policy.sample(0.0, busy(1.5), 1.0)
    policy.assign(0, 4, [0, 0])
    assert 8 == sum(policy.partitions(0).values())
    assert 2 == len(policy.closed(0))


def test_the_interval_is_the_time_since_the_last_sample():
    given, told = AdaptivePid(2), AdaptivePid(2)
    given.sample(10.0, busy(0.5))
    assert 1.0 == given.alpha, "the first one only starts the clock"
    half = [each._replace(given=each.given / 2) for each in busy(0.5)]
    given.sample(10.5, half)
    told.sample(10.5, half, 0.5)
    assert given.utilisation == told.utilisation
    assert given.alpha == told.alpha


def test_a_sample_that_says_nothing_changes_nothing():
    policy = AdaptivePid(2)
    policy.sample(1.0, [WorkerStats(10, 0, 0.0)] * 2, 1.0)
    assert 1.0 == policy.alpha
    assert policy.utilisation is None


def test_a_worker_stuck_for_a_whole_interval_is_no_accident_for_the_controller():
    policy = AdaptivePid(2)
    policy.sample(1.0, [WorkerStats(10, 0, 1.0), WorkerStats(5, 0, 0.0)], 1.0)
    assert 0.8 == pytest.approx(policy.alpha)


# -- in virtual time --

COST = 0.33 * 0.05 / (500**1.6 / 1.6)  # two workers, tuples in turn, panes of 1000: 0.33


@pytest.fixture(scope="module")
def streams():
    """Several, because a policy has its good and its bad days."""
    return [Map2(rate=20_000, dispersion=600).arrivals(800_000, seed) for seed in range(4)]


def medians(make, streams, load):
    runs = [run(make(2), stream, load * COST) for stream in streams]
    return Seen(*(median(values) for values in zip(*runs, strict=True)))


@pytest.fixture(scope="module")
def light(streams):
    return {make: medians(make, streams, 1.0) for make in POLICIES}


@pytest.fixture(scope="module")
def heavy(streams):
    return {make: medians(make, streams, 1.8) for make in POLICIES}


def test_whole_panes_give_the_smallest_results_and_single_tuples_the_largest(light, heavy):
    for found in (light, heavy):
        low, high = found[PaneRoundRobin], found[TupleRoundRobin]
        assert (1, 2) == (low.split, high.split)
        assert high.size / low.size > 1.2
        for make in (Adaptive, AdaptivePid):
            assert low.size <= found[make].size <= high.size


def test_bursts_are_too_much_for_whole_panes_and_not_for_single_tuples(heavy):
    assert heavy[PaneRoundRobin].weighted > 1.1
    assert heavy[TupleRoundRobin].worst < 0.9


def test_under_much_load_the_steered_policy_splits_more_and_nobody_falls_behind(heavy):
    assert heavy[AdaptivePid].split > heavy[Adaptive].split
    assert heavy[AdaptivePid].worst < 1 < heavy[Adaptive].worst


def test_the_worst_worker_is_kept_at_the_set_point(heavy):
    assert heavy[AdaptivePid].worst == pytest.approx(0.9, abs=0.05)


def test_under_some_load_the_steered_policy_splits_less(light):
    assert light[AdaptivePid].worst < 1
    assert light[AdaptivePid].split < light[Adaptive].split
    assert light[AdaptivePid].size < light[Adaptive].size


def test_a_load_that_nothing_can_carry_is_split_as_far_as_it_goes(streams):
    for stream in streams:
        policy = AdaptivePid(2)
        found = run(policy, stream, 4.0 * COST)
        assert found.weighted > 1
        assert policy.fallback
        assert found.split > 1.9
