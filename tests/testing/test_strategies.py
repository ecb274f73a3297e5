"""The strategies make all there is to make, and nothing that a window refuses."""
# ruff: noqa: SIM300 - asserts read expected first

from itertools import pairwise

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from windowlib import Delta, Either, Punct, Sliding, Time, Tumbling, replay
from windowlib.operators import Aggregate, agg
from windowlib.runtime.marks import Mark
from windowlib.testing import assert_same_everywhere, strategies

quick = settings(database=None, max_examples=500)


def rows_of(items):
    return [item for item in items if not isinstance(item, Mark)]


@pytest.mark.parametrize("policy", strategies.POLICIES)
def test_every_policy_is_made_for_tumbling_windows(policy):
    kind = {"either": Either, "punct": Punct, "time": Time, "delta": Delta}.get(policy)
    wanted = strategies.specs(kinds="tumbling")
    assert find(wanted, lambda s: kind is None or isinstance(s.evict, kind), settings=quick)


def test_every_pair_of_policies_is_made_for_sliding_windows():
    wanted = strategies.specs(kinds="sliding", policies=("delta", "time"), by=None)
    for evict in (Delta, Time):
        for every in (Delta, Time):

            def pair(spec, evict=evict, every=every):
                return isinstance(spec.evict, evict) and isinstance(spec.every, every)

            assert find(wanted, pair, settings=quick)


@given(strategies.specs(kinds="sliding", policies="count", by=[("k", "g")]))
@settings(max_examples=20)
def test_a_choice_is_kept_to(spec):
    assert isinstance(spec, Sliding)
    assert ("k", "g") == spec.by
    assert spec.forget is None


def test_partitions_are_evicted_if_that_is_asked_for():
    wanted = strategies.specs(forget=True)
    assert find(wanted, lambda spec: spec.forget is not None, settings=quick).by == "k"


@given(strategies.cases(strategies.specs(by=["k", None])))
@settings(max_examples=50)
def test_a_stream_has_the_columns_of_its_window_and_never_goes_back(case):
    spec, items = case
    rows = rows_of(items)
    assert all({"ts", "x"} <= set(row) for row in rows)
    assert all(("k" in row) == (spec.by == "k") for row in rows)
    assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows)
    assert spec.timed or not any(isinstance(i, Mark) and i.at is not None for i in items)


def test_streams_have_ties_gaps_time_and_punctuations():
    spec = Tumbling(Punct())
    wanted = strategies.streams(spec, clock=True, max_size=4)

    def steps(items):
        times = [row["ts"] for row in rows_of(items)]
        return {b - a for a, b in pairwise(times)}

    assert find(wanted, lambda items: 0 in steps(items), settings=quick)
    assert find(wanted, lambda items: any(s >= 4 for s in steps(items)), settings=quick)
    assert find(wanted, lambda items: any(i == Mark() for i in items), settings=quick)
    assert find(
        wanted, lambda items: any(isinstance(i, Mark) and i.at for i in items), settings=quick
    )


@given(strategies.streams(Tumbling(Punct()), values={"y": st.just(1.5)}, keys="z", puncts=False))
@settings(max_examples=20)
def test_columns_may_be_given(items):
    assert all({"ts": row["ts"], "y": 1.5} == row for row in items)


@given(st.lists(st.integers(), max_size=8), st.booleans(), st.data())
@settings(max_examples=50)
def test_cuts_are_the_list_in_pieces(items, empty, data):
    pieces = data.draw(strategies.cuts(items, empty=empty))
    assert items == [item for piece in pieces for item in piece]
    assert empty or all(pieces)


@given(strategies.specs(policies=("count", "delta")), st.data())
@settings(max_examples=20)
def test_an_aggregate_takes_pieces_as_it_takes_the_whole(spec, data):
    op = Aggregate(spec, n=agg.count(), total=agg.sum("x"))
    rows = data.draw(strategies.streams(spec))
    pieces = data.draw(strategies.cuts(rows))
    found: list[object] = []
    running = op.open()
    running.connect(0, found.append)
    for piece in pieces:
        running.insert_many(piece)
    running.finish()
    assert list(replay(op, rows)) == found


@given(strategies.cases(strategies.specs(forget=True), max_size=12))
@settings(max_examples=10)
@pytest.mark.filterwarnings("ignore::windowlib.WindowlibWarning")
def test_an_aggregate_is_the_same_everywhere(case):
    spec, items = case
    op = Aggregate(spec, n=agg.count(), total=agg.sum("x"), mean=agg.mean("x"))
    assert_same_everywhere(op, items)
