"""Slices that a policy cuts: only when they are large, and by how busy workers are."""
# ruff: noqa: SIM300 - asserts read expected first

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.farms_work import Burn, Price
from windowlib import Sliding, Time, replay
from windowlib.control import Adaptive, AdaptivePid
from windowlib.farms import PaneFarm
from windowlib.farms.pane_farm import INTERVAL, SLICES, SliceSplitter
from windowlib.farms.virtual import VirtualPool, simulate

QUIET, BURST = [100] * 10, [100] * 10 + [1000] + [100] * 10
ONE = Burn(Sliding(Time("2s"), every=Time("1s")))


class Loads(Adaptive):
    """Remembers what it is told of workers."""

    def sample(self, now, stats, interval=None):
        self.told = (now, [tuple(each) for each in stats], interval)


@given(st.lists(st.integers(1, 500), min_size=1), st.integers(1, 5), st.floats(0.1, 3))
def test_parts_make_up_the_slice_and_there_are_no_more_than_workers(sizes, workers, alpha):
    policy = AdaptivePid(workers, warmup=1)
    policy.pid.output = alpha
    splitter = SliceSplitter(policy)
    for size in sizes:
        threshold = policy.threshold
        found = splitter.cut(size)
        assert size == sum(found)
        assert all(found)
        assert len(found) <= workers
        assert (1 == len(found)) == (size <= threshold or workers == 1)
        if len(found) < workers:
            assert max(found) <= threshold
    assert len(sizes) == splitter.slices


def test_workers_are_looked_at_after_some_time_and_some_slices():
    policy = Loads(2)
    splitter = SliceSplitter(policy)
    splitter.look(100.0)
    for _ in range(SLICES):
        assert not hasattr(policy, "told")
        splitter.cut(80)
        splitter.look(100.0 + INTERVAL / 2)
    splitter.worked(0, 200, 0.1)
    splitter.worked(1, 100, 0.2)
    splitter.worked(1, 0, 0.05)
    splitter.look(100.0 + 2 * INTERVAL)
    # 400 came and 300 were done: the worker that does more is given more.
    stats = [(pytest.approx(800 / 3), 200, 0.1), (pytest.approx(400 / 3), 100, 0.25)]
    assert (100.0 + 2 * INTERVAL, stats, 2 * INTERVAL) == policy.told


def test_nothing_is_said_of_workers_while_nothing_is_done():
    policy = Loads(2)
    splitter = SliceSplitter(policy)
    splitter.look(0.0)
    for _ in range(SLICES):
        splitter.cut(10)
    splitter.look(1.0)
    assert (1.0, [(25.0, 0, 0.0)] * 2, 1.0) == policy.told


def parts_of(counts, policy, price=0.001, workers=2):
    """How many parts each slice has, a second each, in virtual time; the rows are checked."""
    farm = PaneFarm(ONE, workers=workers, parts=policy)
    arrivals = [
        (second + 0.5, pa.record_batch({"x": list(range(rows))}))
        for second, rows in enumerate([*counts, 1, 1])
    ]
    asked, send = [], VirtualPool.send

    def watched(self, worker, work, args, oldest):
        if work == "partials":
            asked.append(len(args[1]) and sum(given.hi - given.lo for given in args[1]))
        send(self, worker, work, args, oldest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VirtualPool, "send", watched)
        found = simulate(farm, arrivals, Price(price))
    items = [row for second, batch in arrivals for row in _timed(second, batch)]
    assert list(replay(ONE, items, times="at")) == found.rows
    return asked


def _timed(second, batch):
    return [{"at": second, **row} for row in batch.to_pylist()]


def test_a_quiet_stream_is_not_split():
    assert QUIET == parts_of(QUIET, Adaptive)[: len(QUIET)]


def test_a_burst_is_split_and_what_comes_after_it_is_not():
    found = parts_of(BURST, Adaptive)
    assert [100] * 10 + [500, 500] + [100] * 10 == found[: len(BURST) + 1]


def test_busy_workers_have_smaller_parts_and_idle_ones_larger():
    idle, busy = (
        parts_of(QUIET * 4, partial(AdaptivePid, warmup=3), price) for price in (0.001, 0.019)
    )
    assert QUIET * 4 == idle[:40]
    assert len(busy) > len(idle)


def test_each_run_has_a_policy_of_its_own():
    farm = PaneFarm(ONE, workers=3, parts=partial(Adaptive, warmup=2))
    assert farm.policy is not None
    one, other = farm.policy(farm.workers), farm.policy(farm.workers)
    assert one is not other
    assert (3, 2) == (one.workers, one.warmup)
