"""A contract is kept by operators that are right, and every test of it finds what it is for."""

import pytest
from hypothesis import strategies as st

from tests.testing import broken_operators as broken
from tests.testing.broken_operators import ROWS, tumbling
from windowlib import Count, Sliding, Time, Tumbling
from windowlib.operators import Aggregate, agg
from windowlib.testing import OperatorContract, SummarizerContract, strategies

WINDOW = Sliding(Count(3), every=Count(2), by="k")


class TestSpread(OperatorContract):
    operator = tumbling(broken.Spread)
    rows = ROWS


class TestAggregateOnDrawnStreams(OperatorContract):
    operator = Aggregate(WINDOW, n=agg.count(), total=agg.sum("x"))
    rows = strategies.streams(WINDOW, max_size=10)
    examples = 4
    silent = True  # a short stream may make nothing


class TestOneThatFollowsTheClock(OperatorContract):
    operator = Aggregate(Tumbling(Time("3s"), by="k"), n=agg.count())
    rows = ROWS
    times = "ts"


class TestTotal(SummarizerContract):
    summarizer = broken.Total
    tuples = st.lists(st.integers())


MISTAKES = {
    "test_it_is_the_same_everywhere": (broken.Numbered, "is not the same everywhere"),
    "test_a_snapshot_may_be_taken_anywhere": (broken.Numbered, "restarted before item"),
    "test_it_is_a_value": (broken.Other, "pickled and read again, it is another one"),
    "test_its_description_is_stable": (broken.Addressed, "a copy describes itself otherwise"),
    "test_its_rows_are_as_its_schema_says": (broken.Undeclared, r"has \['more'\]"),
    "test_a_failure_leaves_a_state_to_go_on_from": (broken.Stuck, "restored after a failure"),
    "test_it_leaves_its_rows_alone": (broken.Changing, "it changes its input"),
    "test_two_of_it_share_nothing": (broken.Shared, "beside another one"),
    "test_it_explains_itself": (broken.Dumb, "does not name it"),
    "test_something_comes_out": (broken.Silent, "nothing ever comes out"),
}


def contract(kind, base=OperatorContract, **more):
    return type("TestMine", (base,), {"operator": tumbling(kind), "rows": ROWS, **more})()


def fresh():
    return [dict(row) for row in ROWS]


@pytest.mark.parametrize(("test", "case"), MISTAKES.items(), ids=list(MISTAKES))
def test_each_test_finds_its_mistake(test, case):
    kind, message = case
    with pytest.raises(AssertionError, match=message):
        getattr(contract(kind, rows=fresh()), test)()


@pytest.mark.parametrize(
    ("kind", "test", "message"),
    [
        (broken.Unstable, "test_its_description_is_stable", "has an address"),
        (broken.Textless, "test_its_description_is_stable", "is no text: 1"),
        (broken.Mistyped, "test_its_rows_are_as_its_schema_says", "has no int64 in 'spread'"),
    ],
)
def test_a_test_may_find_several_mistakes(kind, test, message):
    with pytest.raises(AssertionError, match=message):
        getattr(contract(kind), test)()


def test_an_operator_that_cannot_be_pickled_is_found():
    made = Aggregate(Tumbling(Count(2), by=lambda row: row["k"]), n=agg.count())
    with pytest.raises(AssertionError, match="it cannot be pickled"):
        contract(broken.Spread, operator=made).test_it_is_a_value()


def test_every_test_of_the_contract_is_shown_to_fail():
    tests = {name for name in vars(OperatorContract) if name.startswith("test_")}
    assert tests == set(MISTAKES)


def test_one_that_sends_nothing_may_say_so():
    contract(broken.Silent, silent=True).test_something_comes_out()


SUMMARIZERS = {
    "test_open_starts_afresh": (broken.NeverOpened, "opened again"),
    "test_reading_the_value_changes_nothing": (broken.ReadOnce, "read after every tuple"),
    "test_a_snapshot_may_be_taken_anywhere": (broken.Unsaved, "restored after 1 tuples"),
    "test_two_of_it_share_nothing": (broken.Common, "beside another one"),
}


@pytest.mark.parametrize(("test", "case"), SUMMARIZERS.items(), ids=list(SUMMARIZERS))
def test_each_test_of_summarizers_finds_its_mistake(test, case):
    kind, message = case
    made = type("TestMine", (SummarizerContract,), {"summarizer": kind, "tuples": [3, 1, 4]})()
    with pytest.raises(AssertionError, match=message):
        getattr(made, test)()


def test_every_test_of_summarizers_is_shown_to_fail():
    tests = {name for name in vars(SummarizerContract) if name.startswith("test_")}
    assert tests == set(SUMMARIZERS)
