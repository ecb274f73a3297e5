"""Which farm an operator gets: the table cell by cell, and what is refused."""
# ruff: noqa: SIM300 - asserts read expected first

import pytest

from windowlib import (
    Count,
    Delta,
    FarmError,
    Operator,
    OperatorModel,
    Punct,
    Sliding,
    Time,
    Tumbling,
)
from windowlib.farms.choice import PATTERNS, best_pattern, choose, unsafe
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
    WindowModel,
)
from windowlib.farms.window_function import KINDS, WindowFunction
from windowlib.operators import Aggregate, Dedup, Filter, Join, agg

ASSOCIATIVE, INCREMENTAL, NEITHER = map(WindowFunction, KINDS)
OVERLAPPING: list[WindowModel] = [CountWindows(18, 5), TimeWindows(4, 2)]
ONE_TUPLE: list[WindowModel] = [CountWindows(18, 1)]
APART: list[WindowModel] = [
    *(CountWindows(4, 4), TimeWindows(4, 4), TimeWindows(2, 5), SessionWindows(3)),
    *(DeltaTumbling(3), CountOrTime(3, 5), PunctuationWindows()),
]
LANDMARK: list[WindowModel] = [LandmarkWindows(5)]
FORWARD: list[WindowModel] = [
    *(SlideByTuple(5, 2), SlideByTime(5, 2), DeltaWindows(5, 2)),
    Triggered("count", 5, "delta", 2),
]
TABLE = [
    (OVERLAPPING, ("pane", "window active", "window agnostic")),
    (ONE_TUPLE, ("window active", "window active", "window agnostic")),
    (APART, ("window partition", "window active", "window agnostic")),
    (LANDMARK, ("pane", "window active", None)),
    (FORWARD, ("window agnostic", None, "window agnostic")),
]
CELLS = [
    (model, function, pattern)
    for models, row in TABLE
    for model in models
    for function, pattern in zip((ASSOCIATIVE, INCREMENTAL, NEITHER), row, strict=True)
]


@pytest.mark.parametrize(
    ("model", "function", "pattern"), CELLS, ids=[f"{m}-{f.kind}" for m, f, _ in CELLS]
)
def test_a_cell_of_the_table(model, function, pattern):
    chosen = best_pattern(model, function)
    if pattern is None:
        assert unsafe(model, function, chosen) is not None
    else:
        assert (pattern, None) == (chosen, unsafe(model, function, chosen))


def allowed(model, function):
    windows = PATTERNS[1:]
    return [pattern for pattern in windows if unsafe(model, function, pattern) is None]


AGNOSTIC, ACTIVE, PANE, PARTITION = PATTERNS[1:]


@pytest.mark.parametrize("model", [*OVERLAPPING, *ONE_TUPLE, *APART], ids=str)
def test_windows_known_when_a_tuple_comes_allow_what_the_function_allows(model):
    assert [AGNOSTIC, ACTIVE, PANE, PARTITION] == allowed(model, ASSOCIATIVE)
    assert [AGNOSTIC, ACTIVE] == allowed(model, INCREMENTAL) == allowed(model, NEITHER)


@pytest.mark.parametrize("model", FORWARD, ids=str)
def test_windows_known_at_their_trigger_have_no_active_workers(model):
    assert [AGNOSTIC, PANE, PARTITION] == allowed(model, ASSOCIATIVE)
    assert [] == allowed(model, INCREMENTAL)
    assert [AGNOSTIC] == allowed(model, NEITHER)


def test_a_landmark_window_keeps_results_and_no_tuples():
    (model,) = LANDMARK
    assert [AGNOSTIC, ACTIVE, PANE, PARTITION] == allowed(model, ASSOCIATIVE)
    assert [AGNOSTIC, ACTIVE] == allowed(model, INCREMENTAL)
    assert [] == allowed(model, NEITHER)


# -- operators --

HIGH, ALL = agg.max("x"), agg.collect("x")
STEP = agg.custom(lambda: 0, lambda state, x: state + x, column="x")
SLIDE = Sliding(Count(18), every=Count(5))
FOR_TIME = Sliding(Time("5s"), every=Count(2))


def over(window, function=HIGH, **options):
    return Aggregate(window, out=function, **options)


@pytest.mark.parametrize(
    ("operator", "pattern"),
    [
        (over(SLIDE), "pane"),
        (over(SLIDE, STEP), "window active"),
        (over(SLIDE, ALL), "window agnostic"),
        (over(Sliding(Count(18))), "window active"),
        (over(Sliding(Time("5s"), every=Time("1s"))), "pane"),
        (over(Tumbling(Count(18))), "window partition"),
        (over(Tumbling(Time("5s"))), "window partition"),
        (over(Tumbling(Punct())), "window partition"),
        (over(Tumbling(Delta("ts", 5)), STEP), "window active"),
        (over(Tumbling(Count(5) | Time("1s")), ALL), "window agnostic"),
        (over(FOR_TIME), "window agnostic"),
        (over(FOR_TIME, ALL), "window agnostic"),
        (over(Sliding(Count(5), every=Delta("ts", 3)), ALL), "window agnostic"),
        (over(Sliding(Count(18), every=Count(5), by="k")), "key"),
        (over(Sliding(Time("5s"), every=Count(2), by=("k", "l")), STEP), "key"),
        (over(SLIDE, by="k", emit="changed"), "key"),
        (Filter(lambda row: True), "key"),
        (Join(left=Sliding(Count(5), by="id"), right=Sliding(Count(5), by="id"), on="id"), "key"),
    ],
    ids=repr,
)
def test_an_operator_gets_the_farm_of_its_window_and_function(operator, pattern):
    choice = choose(operator, 4)
    assert (pattern, 4) == (choice.pattern, choice.workers)
    assert choice.reason.endswith(".")
    assert choice == choose(operator, 4, pattern=pattern)


def test_a_farm_by_key_names_the_columns():
    assert ("k", "l") == choose(over(Tumbling(Count(5), by=("k", "l"))), 2).columns
    assert () == choose(Filter(lambda row: True), 2).columns


def test_only_associative_functions_of_windows_known_late_are_merged_from_partial_results():
    assert choose(over(FOR_TIME), 2).partials
    assert not choose(over(FOR_TIME, ALL), 2).partials
    assert not choose(over(FOR_TIME), 2, pattern="window partition").partials
    assert not choose(over(SLIDE), 2, pattern="window agnostic").partials


def test_a_heavy_key_makes_a_farm_by_key_the_second_choice():
    keyed = over(Sliding(Count(18), every=Count(5), by="k"))
    assert ["key", "key", "pane"] == [
        choose(keyed, 4, heaviest=share).pattern for share in (0, 0.25, 0.3)
    ]


def test_a_heavy_key_is_borne_where_nothing_else_would_be_right():
    by_row = over(Sliding(Count(18), every=Count(5), by="k"), emit="changed")
    assert "key" == choose(by_row, 4, heaviest=1).pattern
    assert (
        "key"
        == choose(over(Sliding(Time("5s"), every=Count(2), by="k"), STEP), 4, heaviest=1).pattern
    )


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_keyed_associative_operator_may_have_any_farm(pattern):
    keyed = over(Sliding(Count(18), every=Count(5), by="k"))
    assert pattern == choose(keyed, 4, pattern=pattern).pattern


def test_a_choice_reads_as_a_sentence():
    assert "key, 1 worker: rows never meet, so any worker may take any of them." == str(
        choose(Filter(lambda row: True), 1)
    )
    assert (
        "window agnostic, 2 workers: a window is known only when it is triggered; then any free "
        "worker merges the results of its slices."
    ) == str(choose(over(FOR_TIME), 2))


class Spread(Operator):
    model = OperatorModel(windows=[Tumbling, Sliding])

    def on_trigger(self, window, key): ...


class Merged(Spread):
    function_kind = "associative"

    def part_of(self, window, key): ...


def test_an_operator_of_ones_own_gets_whole_windows_unless_it_says_more():
    assert "window agnostic" == choose(Spread(SLIDE), 2).pattern
    assert "pane" == choose(Merged(SLIDE), 2).pattern


# -- what is refused --


def refused(operator, **options):
    with pytest.raises(FarmError) as caught:
        choose(operator, 2, **options)
    return str(caught.value)


def test_panes_of_a_function_that_cannot_be_merged_are_refused():
    vwap = Aggregate(SLIDE, name="vwap", rows=agg.collect())
    assert (
        "PaneFarm(vwap): agg.collect() is not associative, so panes cannot be combined. "
        "Use KeyFarm or WindowFarm."
    ) == refused(vwap, pattern="pane")


def test_the_function_that_is_in_the_way_is_named():
    mixed = Aggregate(SLIDE, a=HIGH, b=agg.median("x"))
    assert 'agg.median("x") is not associative' in refused(mixed, pattern="window partition")


def test_active_workers_for_windows_known_at_their_trigger_are_refused():
    assert "cannot be sent to their workers when it comes" in refused(
        over(FOR_TIME), pattern="window active"
    )


def test_the_cell_that_nothing_fills_is_refused_with_the_ways_out():
    said = refused(over(FOR_TIME, STEP))
    assert said.startswith("WindowFarm(Aggregate): agg.custom(")
    for way in ("merge", 'function_kind = "neither"', "KeyFarm"):
        assert way in said


@pytest.mark.parametrize("pattern", PATTERNS[1:])
def test_rows_that_depend_on_more_than_a_window_cannot_be_given_away(pattern):
    said = refused(over(SLIDE, emit="changed"), pattern=pattern)
    assert 'its rows depend on the row before (emit="changed")' in said


def test_operators_without_one_window_have_none_to_give_away():
    join = Join(left=Sliding(Count(5)), right=Sliding(Count(5)), on="id")
    assert "its rows depend on 2 windows at once" in refused(join)
    assert "it has no window" in refused(Filter(lambda row: True), pattern="pane")


def test_a_farm_by_key_needs_a_key():
    assert "no column keeps its rows apart" in refused(over(SLIDE), pattern="key")
    assert "its rows depend on what" in refused(Dedup("id", within=Count(9)))
