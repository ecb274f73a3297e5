"""Slack: up to where a stream is complete, timestamp by timestamp and for whole arrays."""
# ruff: noqa: SIM300 - asserts read expected first

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.operators.disorder.disorder_oracle import SLACKS, TABLE, disordered, punctuations
from windowlib.errors import PolicyError
from windowlib.event_time.axis import Grid
from windowlib.operators import FixedSlack, KSlack, PidSlack, QuantileSlack

slacks = pytest.mark.parametrize("slack", SLACKS, ids=repr)


def one_by_one(slack, stamps):
    state = slack.start()
    return [state.observe(ts) for ts in stamps]


@pytest.mark.parametrize(
    ("delay", "ks", "marks", "late"),
    [
        (
            "new",
            [0, 0, 0, 4, 4, 4, 11, 11, 11, 11, 11, 11],
            [10, 12, 12, 12, 12, 12, 12, 12, 12, 19, 19, 20],
            [11, 9],
        ),
        (
            "arrival",
            [0, 0, 0, 1, 1, 1, 6, 6, 6, 6, 6, 8],
            [10, 12, 12, 14, 14, 14, 14, 14, 15, 24, 24, 24],
            [11, 13, 9, 22],
        ),
    ],
)
def test_k_slack_gives_the_table_of_twelve(delay, ks, marks, late):
    state = KSlack(delay).start()
    found = [(state.observe(ts), state.k, state.top) for ts in TABLE]
    assert marks == [mark for mark, _, _ in found]
    assert ks == [k for _, k, _ in found]
    assert [10, 12, 12, 15, 15, 15, 20, 20, 21, 30, 30, 31] == [top for _, _, top in found]
    assert late == [ts for ts, mark in zip(TABLE, marks, strict=True) if ts < mark]
    assert marks == KSlack(delay).start().observe_many(np.array(TABLE)).tolist()


@slacks
@pytest.mark.parametrize("step", [0, 1, 5])
def test_in_an_ordered_stream_no_row_is_late(slack, step):
    stamps = [step * n for n in range(500)]
    for marks in (one_by_one(slack, stamps), slack.start().observe_many(np.array(stamps))):
        assert not any(ts < mark for ts, mark in zip(stamps, marks, strict=True))


@slacks
@pytest.mark.parametrize("seed", range(4))
def test_the_punctuation_is_what_its_definition_says(slack, seed):
    stamps = disordered(150, seed)
    assert punctuations(slack, stamps) == one_by_one(slack, stamps)
    assert any(a < b for a, b in zip(stamps[1:], stamps, strict=False))  # or it says little


@slacks
@given(data=st.data())
@settings(max_examples=examples(25))
def test_arrays_of_any_length_give_the_same_as_single_timestamps(slack, data):
    number = data.draw(st.sampled_from([st.integers(-50, 50), st.integers(-50, 50).map(float)]))
    stamps = data.draw(st.lists(number, min_size=1, max_size=120))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stamps)), max_size=4)))
    state, alone = slack.start(), slack.start()
    found = []
    for low, high in zip([0, *cuts], [*cuts, len(stamps)], strict=True):
        found += state.observe_many(np.array(stamps[low:high])).tolist()
    assert [alone.observe(ts) for ts in stamps] == found
    assert alone.snapshot() == state.snapshot()


@slacks
@given(data=st.data())
@settings(max_examples=examples(25))
def test_the_points_that_are_passed_are_those_of_single_timestamps(slack, data):
    number = data.draw(st.sampled_from([st.integers(-50, 50), st.integers(-50, 50).map(float)]))
    pieces = data.draw(st.lists(st.lists(number, min_size=1, max_size=60), max_size=3))
    grid = Grid(data.draw(st.sampled_from([1, 7, 0.3, 1000])), data.draw(st.integers(-3, 3)))
    state, alone = slack.start(), slack.start()
    for stamps in pieces:
        if data.draw(st.booleans()):
            state.release()
            alone.release()
        ts = np.array(stamps)
        if not state.fits(ts):
            break
        at, points = state.observe_points(ts, grid)
        found = np.repeat(points, np.diff(at, append=len(ts)))
        assert [grid.index(alone.observe(each)) for each in stamps] == found.tolist()
        assert alone.snapshot() == state.snapshot()


@slacks
def test_arrays_and_single_timestamps_mix(slack):
    stamps = disordered(400, 9)
    state = slack.start()
    found = state.observe_many(np.array(stamps[:150])).tolist()
    found += [state.observe(ts) for ts in stamps[150:200]]
    found += state.observe_many(np.array(stamps[200:])).tolist()
    assert one_by_one(slack, stamps) == found
    assert {int} == {type(mark) for mark in found}


@slacks
def test_whole_numbers_and_others_mix(slack):
    stamps = [float(ts) for ts in disordered(60, 3)]
    whole = [int(ts) + 300 for ts in stamps]
    state = slack.start()
    found = state.observe_many(np.array(stamps)).tolist()
    found += state.observe_many(np.array(whole)).tolist()
    found += state.observe_many(np.array(stamps) + 600.5).tolist()
    last = [ts + 600.5 for ts in stamps]
    assert one_by_one(slack, [*stamps, *whole, *last]) == found


@slacks
def test_the_punctuation_never_goes_back(slack):
    marks = one_by_one(slack, disordered(2000, 5, spread=60))
    assert sorted(marks) == marks


@slacks
@pytest.mark.parametrize("cut", [0, 1, 10, 77, 150])
def test_a_saved_state_goes_on_as_it_was(slack, cut):
    stamps = disordered(150, 2)
    state, other = slack.start(), slack.start()
    found = [state.observe(ts) for ts in stamps[:cut]]
    other.restore(pickle.loads(pickle.dumps(state.snapshot())))
    found += [other.observe(ts) for ts in stamps[cut:]]
    assert one_by_one(slack, stamps) == found


@slacks
def test_after_a_release_nothing_before_the_greatest_timestamp_is_waited_for(slack):
    state = slack.start()
    state.release()
    assert state.punctuation is None
    for ts in TABLE:
        state.observe(ts)
    state.release()
    assert 31 == state.punctuation
    assert 31 == state.observe(5)
    assert [31, 31] == state.observe_many(np.array([5, 30])).tolist()


def test_no_timestamps_give_no_punctuations():
    assert 0 == len(KSlack().start().observe_many(np.array([], np.int64)))


def test_a_quantile_forgets_a_straggler_and_k_slack_does_not():
    stamps = [*range(100), 10, *range(100, 600)]
    assert 599 == one_by_one(QuantileSlack(drop=0, recent=100), stamps)[-1]
    assert 599 - 90 == one_by_one(KSlack(), stamps)[-1]


def test_a_controller_never_waits_for_more_than_all_or_less_than_nothing():
    wild = PidSlack(drop=0.5, every=3, gains=(50.0, 50.0, 50.0))
    parts = set()
    state = wild.start()
    for ts in disordered(600, 1):
        state.observe(ts)
        parts.add(state.part)
    assert {0.0, 1.0} <= parts
    assert all(0 <= part <= 1 for part in parts)


def test_a_controller_held_at_a_bound_comes_off_it_at_once():
    slack = PidSlack(drop=0.1, every=10, gains=(0.0, 0.5, 0.0))
    state = slack.start()
    for ts in range(5000):  # no row is late, and the part would go far below 0
        state.observe(ts)
    assert 0.0 == state.part
    for ts in [4000] * 10:
        state.observe(ts)
    assert pytest.approx(0.45) == state.part


@slacks
def test_a_strategy_is_a_value(slack):
    assert slack == eval(repr(slack)) == pickle.loads(pickle.dumps(slack))
    assert hash(slack) == hash(eval(repr(slack)))
    assert slack.describe()


def test_a_duration_is_as_good_as_a_timedelta():
    assert FixedSlack("1h30m") == FixedSlack("90m")
    assert 'FixedSlack("1h30m")' == repr(FixedSlack("90m"))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (FixedSlack, {"amount": "soon"}, '"soon" is not a duration'),
        (FixedSlack, {"amount": None}, "not a distance"),
        (FixedSlack, {"amount": True}, "not a distance"),
        (FixedSlack, {"amount": float("nan")}, "not a distance"),
        (FixedSlack, {"amount": float("inf")}, "not a distance"),
        (FixedSlack, {"amount": -1}, "must not be negative"),
        (FixedSlack, {"amount": "-1s"}, "must not be negative"),
        (KSlack, {"delay": "old"}, 'use "new" or "arrival"'),
        (QuantileSlack, {"drop": 1}, "not a share of rows"),
        (QuantileSlack, {"drop": -0.1}, "not a share of rows"),
        (QuantileSlack, {"recent": 0}, "recent=0.: not a number of rows"),
        (QuantileSlack, {"recent": 2.5}, "not a number of rows"),
        (PidSlack, {"drop": "1%"}, "not a share of rows"),
        (PidSlack, {"every": 0}, "every=0.: not a number of rows"),
        (PidSlack, {"gains": (1, 2)}, "not three gains"),
        (PidSlack, {"gains": (1, 2, -3)}, "not three gains"),
        (PidSlack, {"gains": 5}, "not three gains"),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused(kind, given, message):
    with pytest.raises(PolicyError, match=message):
        kind(**given)
