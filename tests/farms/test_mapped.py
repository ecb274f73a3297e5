"""Windows that depend on other tuples: against their definitions, and against real windows."""
# ruff: noqa: SIM300 - asserts read expected first

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.farms import window_oracle as brute
from tests.farms.model_oracle import Extents, mapped
from tests.farms.window_oracle import members
from windowlib import (
    Count,
    Delta,
    Event,
    Landmark,
    Punct,
    Session,
    Sliding,
    Time,
    Tumbling,
    advance,
    punct,
    replay,
)
from windowlib.farms.models import (
    CountOrTime,
    CountWindows,
    DeltaTumbling,
    DeltaWindows,
    LandmarkWindows,
    PunctuationWindows,
    SessionWindows,
    SlideByTime,
    SlideByTuple,
    TimeWindows,
    Triggered,
    model_of,
)
from windowlib.operators import Aggregate, agg

SEEDS = pytest.mark.parametrize("seed", range(60))


def stream(rng, whole=True, low=0):
    """Values that do not go back, often equal."""
    draw = (lambda: rng.randint(low, 20)) if whole else (lambda: rng.uniform(low, 20))
    return sorted(draw() for _ in range(rng.randint(0, 16)))


# -- against the definitions --


@SEEDS
def test_slide_by_tuple_takes_what_is_not_too_old_for_the_trigger(seed):
    rng = random.Random(seed)
    times, slide = stream(rng, seed % 2 == 0, -20), rng.randint(1, 4)
    size = rng.randint(1, 9) if seed % 3 else rng.uniform(0.1, 9)
    for closed in (False, True):
        model = SlideByTuple(size, slide, closed=closed)
        assert brute.by_tuple(times, size, slide, closed) == members(mapped(model, times))


@SEEDS
def test_slide_by_time_takes_the_last_tuples_before_the_tick(seed):
    rng = random.Random(seed)
    times, size = stream(rng, seed % 2 == 0, -20), rng.randint(1, 5)
    slide, phase, until = rng.randint(1, 6), rng.randint(-3, 3), rng.randint(20, 30)
    truth = brute.by_time(times, size, slide, phase, until)
    assert truth == members(mapped(SlideByTime(size, slide, phase), times, until))
    full = [(w, held) for w, held in truth if len(held) == size]
    assert full == members(mapped(SlideByTime(size, slide, phase, partial=False), times, until))
    fresh = [each for k, each in enumerate(truth) if not k or each[1] != truth[k - 1][1]]
    once = mapped(SlideByTime(size, slide, phase, repeat=False), times, until)
    assert fresh == members(once)


@SEEDS
def test_delta_windows_hold_what_the_tuple_before_the_trigger_left(seed):
    rng = random.Random(seed)
    values = stream(rng, seed % 2 == 0)
    size, slide = rng.choice([(rng.randint(1, 9), rng.randint(0, 4)), (1.1, 0.3)])
    truth = brute.by_delta(values, size, slide)
    assert truth == members(mapped(DeltaWindows(size, slide), values))


@SEEDS
def test_tumbling_delta_windows_and_sessions_are_runs(seed):
    rng = random.Random(seed)
    values, limit = stream(rng, seed % 2 == 0, -20), rng.randint(1, 6)
    found = mapped(DeltaTumbling(limit), values)
    assert brute.tumbling_delta(values, limit) == members(found)
    assert max(len(found) - 1, 0) == found.closed
    assert brute.sessions(values, limit) == members(mapped(SessionWindows(limit), values))


@SEEDS
def test_landmark_windows_hold_all_from_the_start(seed):
    rng = random.Random(seed)
    values, slide, start = stream(rng, seed % 2 == 0, -5), rng.randint(1, 6), rng.randint(-3, 3)
    model = LandmarkWindows(slide, start)
    held = [
        (w, [i for i, x in enumerate(values) if start <= x < start + (w + 1) * slide])
        for w in range(30)
        if start + (w + 1) * slide <= 25
    ]
    assert held == members(mapped(model, values, until=25))
    for x in values:
        inside = [w for w in range(9) if model.extent(w)[0] <= x < model.extent(w)[1]]
        firsts = [w for w, _ in zip(model.windows(x), range(1), strict=False)]
        assert firsts == [model.first(x)] * (x >= start)
        assert inside == [w for w in range(9) if firsts and w >= firsts[0]]


def test_rounding_does_not_decide_which_tuple_is_too_old():
    # 0.3 - 0.2 is less than 0.1 as floats, and 0.2 + 0.1 is more than 0.3.
    values = [0.1, 0.2, 0.3, 0.4]
    for size in (0.1, 0.2, 0.30000000000000004):
        assert brute.by_tuple(values, size, 1) == members(mapped(SlideByTuple(size, 1), values))
        assert brute.tumbling_delta(values, size) == members(mapped(DeltaTumbling(size), values))
        assert brute.by_delta(values, size, size) == members(
            mapped(DeltaWindows(size, size), values)
        )


def test_values_may_be_instants():
    times = np.array([0, 4, 9, 30], dtype="datetime64[s]")
    ten = timedelta(seconds=10)
    assert [(0, 0, 3), (1, 3, 4)] == list(mapped(DeltaTumbling(ten), times))
    for values in (times, times.tolist()):
        for partial in (True, False):
            found = mapped(DeltaWindows(ten, ten, partial=partial), values)
            assert [(0, 0, 3)] == list(found)


# -- worked examples --


def test_slide_by_tuple_by_hand():
    #  0 1 | 6 7 | 20 21      triggers at 1, 7 and 21
    found = mapped(SlideByTuple(5, 2), [0, 1, 6, 7, 20, 21])
    assert [(0, [0, 1]), (1, [2, 3]), (2, [4, 5])] == members(found)
    assert [0, 0, 1, 1, 2, 2] == [found.first(i) for i in range(6)]


def test_slide_by_tuple_may_lose_a_tuple():
    found = mapped(SlideByTuple(5, 2), [0, 1, 6, 20])
    assert [(0, [0, 1]), (1, [3])] == members(found)
    assert (None, None) == (found.first(2), found.last(2))


def test_a_trigger_whose_own_window_is_its_only_one_is_in_it():
    found = mapped(SlideByTuple(5, 2), [0, 1, 6, 20])
    assert (1, 1) == (found.first(3), found.last(3))


def test_tuples_that_come_after_the_trigger_at_the_same_instant_are_not_in_its_window():
    assert [(0, [0, 1])] == members(mapped(SlideByTuple(5, 2), [3, 3, 3]))


def test_a_delta_window_holds_tuples_that_are_far_from_its_trigger():
    # Measured from the trigger, 10, none of them would be recent.
    assert (1, [0, 1, 2, 3]) == members(mapped(DeltaWindows(5, 2), [0, 1, 2, 3, 10]))[-1]


def test_delta_windows_over_a_counter_are_count_windows():
    # sliding, count(n), count(m) is sliding, delta(id, n - 1), delta(id, m - 1)
    for size in range(1, 7):
        for slide in range(1, 7):
            ids = list(range(30))
            count = model_of(Sliding(Count(size), every=Count(slide)))
            found = mapped(DeltaWindows(size - 1, slide - 1, partial=False), ids)
            assert isinstance(count, CountWindows)
            ended = [count.extent(w) for w in range(30)]
            known = [(lo, hi) for lo, hi in ended if hi < 30]
            assert known == [(lo, hi) for _, lo, hi in found]


# -- against windows that run --


def micros(n):
    return Time(timedelta(microseconds=n))


def fired(spec, times, values, end):
    """What a real window holds at each firing that is not empty."""
    rows: list[Any] = []
    for i, (ts, value) in enumerate(zip(times, values, strict=True)):
        rows += [advance(ts / 1e6), {"i": i, "d": value}]
    found = replay(Aggregate(spec, held=agg.collect("i")), [*rows, advance(end / 1e6)])
    return [row["held"] for row in found]


END = 60


def known(model: Any, spec, times, values):
    """What the model of a window says to the same tuples."""
    axis = {"count": values, "delta": values, "time": times}
    if isinstance(model, CountWindows | TimeWindows):
        points = range(len(times)) if isinstance(model, CountWindows) else times
        end = len(times) if isinstance(model, CountWindows) else END
        windows = [w for w in range(model.lowest or 0, 80) if model.extent(w)[1] <= end]
        return [[i for i, x in enumerate(points) if w in model.windows(x)] for w in windows]
    if isinstance(model, SlideByTime):
        found = mapped(model, times, until=END)
    elif isinstance(model, CountOrTime):
        found = mapped(model, times)
    elif isinstance(model, Triggered) and model.trigger == "time":
        found = mapped(model, axis[model.evict], triggers=times, until=END)
    elif isinstance(model, Triggered):
        found = mapped(model, axis[model.evict], triggers=values)
    else:
        found = mapped(model, axis[spec.evict.kind])
    held = [held for _, held in members(found)]
    return held[: found.closed] if isinstance(model, DeltaTumbling) else held


POLICIES = {"count": Count, "time": micros, "delta": lambda n: Delta("d", n)}


@pytest.mark.parametrize("partial", ["skip", "emit"])
@pytest.mark.parametrize("trigger", POLICIES)
@pytest.mark.parametrize("evict", POLICIES)
def test_a_sliding_window_holds_what_its_model_says(evict, trigger, partial):
    for seed in range(40):
        rng = random.Random(seed)
        times, values = stream(rng), stream(rng)
        values = (values + times)[: len(times)] if len(values) >= len(times) else times
        size, slide = rng.randint(1, 6), rng.randint(1, 6)
        spec = Sliding(POLICIES[evict](size), every=POLICIES[trigger](slide), partial=partial)
        truth = fired(spec, times, values, END)
        found = known(model_of(spec), spec, times, values)
        assert truth == [held for held in found if held], (spec, times, values)


@pytest.mark.parametrize("evict", [*POLICIES, "either"])
def test_a_tumbling_window_holds_what_its_model_says(evict):
    for seed in range(40):
        rng = random.Random(seed)
        times = stream(rng)
        either = Count(rng.randint(1, 4)) | micros(rng.randint(1, 6))
        policy = either if evict == "either" else POLICIES[evict](rng.randint(1, 6))
        spec = Tumbling(policy)
        truth = fired(spec, times, times, END)
        found = known(model_of(spec), spec, times, times)
        assert truth == [held for held in found if held], (spec, times)


def test_punctuations_end_the_windows_that_their_model_says():
    rows: list[Any] = [{"i": 0}, {"i": 1}, punct(), punct(), {"i": 2}, punct(), {"i": 3}]
    spec = Tumbling(Punct())
    truth = [row["held"] for row in replay(Aggregate(spec, held=agg.collect("i")), rows)]
    model = model_of(spec)
    assert isinstance(model, PunctuationWindows)
    found = mapped(model, 4, [2, 2, 3])
    assert truth == [held for _, held in members(found) if held]
    assert [[0, 1], [], [2], [3]] == [held for _, held in members(found)]
    assert 3 == found.closed
    assert 3 == mapped(model, 3, [2, 2, 3]).closed == len(mapped(model, 3, [2, 2, 3]))


# -- what a model says of itself --


@pytest.mark.parametrize(
    ("model", "context", "overlapping"),
    [
        (CountWindows(4, 2), "free", True),
        (TimeWindows(4, 4), "free", False),
        (TimeWindows(2, 5), "free", False),
        (SessionWindows(3), "backward", False),
        (LandmarkWindows(3), "backward", True),
        (DeltaTumbling(3), "backward", False),
        (CountOrTime(3, 5), "backward", False),
        (PunctuationWindows(), "backward", False),
        (SlideByTuple(4, 2), "forward", True),
        (SlideByTime(4, 2), "forward", True),
        (DeltaWindows(4, 2), "forward", True),
        (Triggered("count", 4, "delta", 2), "forward", True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_states_its_context(model, context, overlapping):
    assert (context, overlapping) == (model.context, model.overlapping)


def test_the_context_of_a_model_is_what_later_tuples_change():
    # Whatever comes, the windows of those that came before stay if nothing looks ahead.
    times = [0, 1, 3, 7, 8, 9, 15, 16]
    for model in (SessionWindows(2), DeltaTumbling(4), CountOrTime(3, 4)):
        for n in range(1, 8):
            early, late = mapped(model, times[:n]), mapped(model, times)
            assert [early.windows(i) for i in range(n)] == [late.windows(i) for i in range(n)]
    ahead = [mapped(SlideByTuple(6, 2), times[:n]).windows(1) for n in (2, 4, 8)]
    assert [[0], [0], [0]] == ahead
    assert [[], [0, 1], [0, 1]] == [
        mapped(SlideByTuple(8, 2), times[:n]).windows(0) for n in (1, 4, 8)
    ]


@pytest.mark.parametrize("model", [SessionWindows(2), DeltaTumbling(2), CountOrTime(2, 2)])
def test_no_tuples_have_no_windows(model):
    found = mapped(model, [])
    assert (0, 0, []) == (len(found), found.closed, list(found))


def test_the_last_window_is_open_unless_it_is_full():
    assert (2, 1) == (len(found := mapped(CountOrTime(3, 50), range(5))), found.closed)
    assert (2, 2) == (len(found := mapped(CountOrTime(3, 50), range(6))), found.closed)


# -- extents --


def test_extents_list_every_tuple_of_every_window():
    found = mapped(SlideByTuple(5, 2, closed=True), [0, 1, 3, 4, 5, 6])
    tuples, windows = found.assigned()
    truth = [(i, w) for w, held in members(found) for i in held]
    assert truth == list(zip(tuples.tolist(), windows.tolist(), strict=True))
    for i in range(6):
        assert [w for j, w in truth if i == j] == found.windows(i)


def test_some_extents_keep_their_numbers():
    found = Extents(np.arange(3), np.array([0, 1, 2]), np.array([2, 3, 4]), 2)
    assert [(0, 0, 2), (2, 2, 4)] == list(found.only(np.array([True, False, True])))
    assert 1 == found.only(np.array([True, False, True])).closed


# -- how many windows a tuple may be in --


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 12), st.integers(1, 5))
def test_what_is_bounded_stays_below_its_bound(rises, size, slide):
    values = np.cumsum(np.array(rises, np.int64))
    models = [DeltaWindows(size, slide), Triggered("count", size + 1, "delta", slide)]
    for model in models:
        assert "FCB" == model.semantics
        count = isinstance(model, Triggered)
        extents = mapped(model, np.arange(len(values)), values) if count else mapped(model, values)
        held = [len(extents.windows(i)) for i in range(len(values))]
        assert max(held, default=0) <= (model.most or 0)


@pytest.mark.parametrize(
    ("spec", "semantics"),
    [
        (Sliding(Count(5), every=Count(2)), "CF"),
        (Sliding(Time("5s"), every=Time("2s")), "CF"),
        (Tumbling(Delta("ts", 4)), "FCF"),
        (Session(Event("ts"), gap=2, watermark=1, late="drop"), "FCF"),
        (Landmark(Event("ts", 4), since=0, watermark=1, late="drop"), "FCF"),
        (Sliding(Delta("ts", 6), every=Delta("ts", 2)), "FCB"),
        (Sliding(Count(4), every=Delta("ts", 2)), "FCB"),
        (Sliding(Delta("ts", 6), every=Delta("x", 2)), "FCU"),
        (Sliding(Delta("ts", 6), every=Delta("ts", 0)), "FCU"),
        (Sliding(Time("5s"), every=Count(2)), "FCU"),
        (Sliding(Count(5), every=Time("2s")), "FCU"),
        (Sliding(Delta("ts", 5), every=Count(2)), "FCU"),
    ],
    ids=str,
)
def test_windows_have_their_class_of_the_papers(spec, semantics):
    assert semantics == model_of(spec).semantics
