"""Targets: adaptive slack loses as many rows as it may, and so waits far less than K-slack."""

from functools import cache

import numpy as np
import pytest

from tests.operators.disorder.disorder_driver import Watched
from windowlib.operators import KSlack, Panes, PidSlack, QuantileSlack

PANE = 200_000  # microseconds


@cache
def trace(seconds=120, rate=5000, seed=1):
    """Timestamps and arrivals, in the order of arrival: short delays, and a few stragglers."""
    chance = np.random.default_rng(seed)
    size = seconds * rate
    ts = np.sort(chance.uniform(0, seconds * 1e6, size)).astype(np.int64)
    delay = chance.exponential(30e3, size)
    straggling = chance.random(size) < 0.0002
    delay[straggling] = chance.uniform(2e6, 20e6, straggling.sum())
    order = np.argsort(ts + delay, kind="stable")
    return ts[order], (ts + delay)[order]


def figures(slack):
    """The mean delay between the end of a pane and its closing, and the share of late rows."""
    ts, arrivals = trace()
    reached = slack.start().observe_many(ts)
    ends = np.arange(1, int(reached[-1]) // PANE + 1) * PANE
    closed = arrivals[np.searchsorted(reached, ends, side="left")]
    return float((closed - ends).mean()), float((ts < reached).mean())


@pytest.mark.parametrize(("kind", "share"), [(QuantileSlack, 0.05), (PidSlack, 0.5)])
@pytest.mark.parametrize("drop", [0.01, 0.02, 0.05])
def test_as_many_rows_are_late_as_may_be(kind, share, drop):
    delay, late = figures(kind(drop=drop))
    longest, few = figures(KSlack())
    assert abs(late - drop) <= 0.0025
    assert delay <= share * longest
    assert few < 0.0005


def test_the_wait_falls_as_more_rows_may_be_late():
    delays = [figures(QuantileSlack(drop=drop))[0] for drop in (0.001, 0.01, 0.02, 0.05)]
    assert sorted(delays, reverse=True) == delays


def test_panes_lose_fewer_rows_than_the_target_says():
    ts, _ = trace()
    watched = Watched(Panes(0, size=PANE, slack=QuantileSlack(drop=0.05)))
    watched.running.insert_many((int(each),) for each in ts[:50_000])
    assert 0 < watched.live.late_rows / 50_000 < 0.025


def test_open_panes_are_as_many_as_the_slack_is_long():
    ts, _ = trace()
    found = []
    for panes in (2, 5, 10, 20):
        watched = Watched(Panes(0, size=PANE, slack=panes * PANE))
        watched.running.insert_many((int(each),) for each in ts[:30_000])
        (lane,) = watched.live._buffers.values()
        found.append(len(lane.slices))
    assert all(panes <= n <= panes + 2 for panes, n in zip((2, 5, 10, 20), found, strict=True))
