"""Partition eviction, case by case, and partition keys of every sort.

The scripts are written by hand; `tests.helpers.event_recorder` says how to read them.
`forget a[1 2]` is the partition eviction event with the contents that are still there,
`select a[1] b[2]` the question to an operator's own selection.
"""
# ruff: noqa: SIM300 - asserts read expected first

import gc
import pickle
import sys
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.event_recorder import (
    Insert,
    Many,
    Row,
    apply,
    build,
    dedent,
    play,
    played,
    recorder,
    state,
)
from tests.helpers.examples import examples
from tests.helpers.window_strategies import handlers, keys_with_nan, selectors, specs, streams
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    PartitionError,
    Punct,
    Sliding,
    Summarizer,
    Time,
    Tumbling,
    TumblingWindow,
    TupleCount,
    WindowEvents,
    WindowlibWarning,
)


@pytest.fixture(params=["generated", "reference"])
def engine(request):
    return request.param


def unbounded(forget):
    """A window that never flushes by itself, so that only partition eviction is seen."""
    return Tumbling(Punct(), by=KEY, forget=forget)


# -- partition count ----------------------------------------------------------------------------


def test_partition_count_evicts_the_least_recently_used_right_after_the_insert(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3
    +4 k=c: c insert 4; forget b[2]
    +5 k=b: b insert 5; forget a[1 3]
    +6 k=c: c insert 6
    """
    assert dedent(script) == played(unbounded(PartitionCount(2)), script, engine=engine)


def test_only_tuple_insertions_count_as_use(engine):
    """A trigger of a partition, or reading it, does not save it."""
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    t=10: a trigger [1]; b trigger [2]
    +3 k=c: c insert 3; forget a[1]
    """
    spec = Sliding(Count(5), every=Time("10s"), by=KEY, forget=PartitionCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


def test_lfu_evicts_the_partition_with_fewest_insertions_ties_to_the_least_recent(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=c: c insert 3
    +4 k=a: a insert 4
    +5 k=b: b insert 5
    +6 k=d: d insert 6; forget c[3]
    +7 k=e: e insert 7; forget d[6]
    """
    spec = unbounded(PartitionCount(3, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_lfu_ties_go_to_the_least_recently_used_and_not_to_the_oldest(engine):
    #  two insertions each; created a, b, c and last used c, b, a
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=c: c insert 3
    +4 k=c: c insert 4
    +5 k=b: b insert 5
    +6 k=a: a insert 6; forget c[3 4]
    """
    spec = unbounded(TupleCount(5, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_lfu_counts_insertions_and_not_what_is_held(engine):
    #  a took 3 and holds 1; b took 2 and holds 1
    script = """
    +1 k=a: a insert 1; a full [1]; a trigger [1]
    +2 k=a: a evict 1; a insert 2; a trigger [2]
    +3 k=b: b insert 3; b full [3]; b trigger [3]
    +4 k=a: a evict 2; a insert 4; a trigger [4]
    +5 k=b: b evict 3; b insert 5; b trigger [5]
    +6 k=c: c insert 6; forget c[6]; c trigger []
    """
    spec = Sliding(Count(1), by=KEY, forget=PartitionCount(2, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_lfu_counts_anew_for_a_partition_that_was_flushed_away(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=a: a insert 3; a flush [1 2 3]
    +4 k=a: a insert 4
    +5 k=b: b insert 5
    +6 k=b: b insert 6
    +7 k=c: c insert 7; forget a[4]
    """
    spec = Tumbling(Count(3), by=KEY, forget=PartitionCount(2, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_lfu_goes_on_counting_for_a_partition_that_outlives_its_flush(engine):
    script = """
    +1 k=a age=0: a insert 1
    +2 k=a age=9: a flush [1]; a insert 2
    +3 k=b age=0: b insert 3
    +4 k=c age=0: c insert 4; forget b[3]
    """
    spec = Tumbling(Delta("age", 5), by=KEY, forget=PartitionCount(2, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_oldest_evicts_the_partition_that_was_created_first_however_busy(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3
    +4 k=c: c insert 4; forget a[1 3]
    +5 k=a: a insert 5; forget b[2]
    """
    spec = unbounded(PartitionCount(2, select="oldest"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_partition_count_of_zero_evicts_every_partition_with_its_tuple(engine):
    script = """
    +1 k=a: a insert 1; forget a[1]
    +2 k=a: a insert 2; forget a[2]
    """
    assert dedent(script) == played(unbounded(PartitionCount(0)), script, engine=engine)


def test_a_flushed_partition_leaves_the_lru_list(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3; a flush [1 3]
    +4 k=c: c insert 4
    +5 k=d: d insert 5; forget b[2]
    """
    spec = Tumbling(Count(2), by=KEY, forget=PartitionCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_delta_flush_leaves_the_partition_in_its_place(engine):
    script = """
    +1 k=a age=0: a insert 1
    +2 k=b age=0: b insert 2
    +3 k=a age=6: a flush [1]; a insert 3
    +4 k=c age=0: c insert 4; forget b[2]
    """
    spec = Tumbling(Delta("age", 5), by=KEY, forget=PartitionCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_partition_that_time_emptied_is_no_live_partition(engine):
    script = """
    +1 k=a: a full []; a insert 1
    t=6:
    +2 k=b: b full []; b insert 2
    t=11: a evict 1
    +3 k=c: c full []; c insert 3
    +4 k=d: d full []; d insert 4; forget b[2]
    """
    spec = Sliding(Time("10s"), every=Count(9), by=KEY, forget=PartitionCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


# -- tuple count --------------------------------------------------------------------------------


def test_tuple_count_evicts_whole_partitions(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=b: b insert 3
    +4 k=b: b insert 4; forget a[1 2]
    +5 k=c: c insert 5
    +6 k=c: c insert 6; forget b[3 4]
    """
    assert dedent(script) == played(unbounded(TupleCount(3)), script, engine=engine)


def test_tuple_count_with_a_single_partition_evicts_it_new_tuple_included(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=a: a insert 3; forget a[1 2 3]
    +4 k=a: a insert 4
    """
    assert dedent(script) == played(unbounded(TupleCount(2)), script, engine=engine)


def test_a_tuple_count_of_zero_evicts_every_partition_with_its_tuple(engine):
    script = """
    +1 k=a: a insert 1; forget a[1]
    +2 k=b: b insert 2; forget b[2]
    """
    assert dedent(script) == played(unbounded(TupleCount(0)), script, engine=engine)


def test_lfu_and_oldest_evict_as_many_partitions_as_the_tuples_need(engine):
    #  d's second tuple makes 5 of 4: one tuple must go, and c is used least
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=c: c insert 3
    +4 k=d: d insert 4
    +5 k=d: d insert 5; forget c[3]
    """
    spec = unbounded(TupleCount(4, select="lfu"))
    assert dedent(script) == played(spec, script, engine=engine)
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=c: c insert 3
    +4 k=a: a insert 4
    +5 k=d: d insert 5; forget a[1 2 4]
    """
    spec = unbounded(TupleCount(4, select="oldest"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_evicted_tuples_no_longer_count(engine):
    script = """
    +1 k=a: a insert 1; a full [1]; a trigger [1]
    +2 k=a: a evict 1; a insert 2; a trigger [2]
    +3 k=a: a evict 2; a insert 3; a trigger [3]
    +4 k=b: b insert 4; b full [4]; b trigger [4]
    +5 k=c: c insert 5; forget a[3]; c full [5]; c trigger [5]
    """
    spec = Sliding(Count(1), by=KEY, forget=TupleCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


class Stumbling(WindowEvents[Any, Any]):
    """Records partition evictions; its before_insert fails on negative tuples."""

    def before_insert(self, window, tuple_, key):
        if tuple_[1] < 0:
            raise ValueError("not this one")

    def on_partitions_evicted(self, window, keys):
        self.emit([(key, [t[0] for t in window[key]]) for key in keys])


def test_leading_empty_partitions_go_along_with_the_first_that_has_tuples(engine):
    """A flush whose insert then fails leaves an empty partition behind."""
    events = Stumbling()
    spec = Tumbling(Delta(0, 5), by=KEY, forget=TupleCount(2))
    window = build(spec, events=events, engine=engine)
    for key in "ab":
        window.insert((0, 0), key)
        with pytest.raises(ValueError, match="not this one"):
            window.insert((9, -1), key)
    window.state.check()
    assert [("a", 0), ("b", 0)] == [(key, window.size(key)) for key in window]
    window.insert((1, 0), "c")
    window.insert((2, 0), "d")
    window.insert((3, 0), "d")
    assert [[("a", []), ("b", []), ("c", [1])]] == events.emitted
    assert ["d"] == list(window.keys())
    window.state.check()


# -- age ----------------------------------------------------------------------------------------


def test_age_evicts_before_anything_else_of_an_insert(engine):
    script = """
    +1 k=a: a insert 1
    t=11:
    +2 k=b: forget a[1]; b insert 2
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_a_partition_of_just_that_age_stays(engine):
    script = """
    +1 k=a: a insert 1
    t=10:
    +2 k=b: b insert 2
    t=10.000001:
    +3 k=b: forget a[1]; b insert 3
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_a_partition_of_just_that_age_is_swept_along_with_an_older_one(engine):
    script = """
    +1 k=a: a insert 1
    t=1:
    +2 k=b: b insert 2
    t=2:
    +3 k=c: c insert 3
    t=11:
    +4 k=d: forget a[1] b[2]; d insert 4
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_an_insertion_makes_a_partition_young_again(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    t=9:
    +3 k=a: a insert 3
    t=11:
    +4 k=c: forget b[2]; c insert 4
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_an_insert_into_a_partition_that_is_too_old_starts_it_afresh(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    t=11:
    +3 k=a: forget a[1 2]; a insert 3
    +4 k=a: a insert 4
    +5 k=a: a insert 5; a full [3 4 5]; a trigger [3 4 5]
    """
    spec = Sliding(Count(3), every=Count(3), by=KEY, forget=PartitionAge("10s"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_age_is_checked_at_a_punctuation_before_the_flush(engine):
    script = """
    +1 k=a: a insert 1
    t=5:
    +2 k=b: b insert 2
    t=11:
    punct: forget a[1]; b flush [2]
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_a_punctuation_whose_age_check_empties_the_window_fires_nothing_more(engine):
    script = """
    +1 k=a: a insert 1
    t=11:
    punct: forget a[1]
    punct: empty
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_an_ignored_punctuation_checks_no_age(engine):
    script = """
    +1 k=a: a insert 1
    t=11:
    other:
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)


def test_age_is_checked_at_ticks(engine):
    script = """
    +1 k=a: a insert 1
    t=7: a trigger [1]
    +2 k=b: b insert 2
    t=14: forget a[1]; b trigger [2]
    t=21: forget b[2]; - trigger []
    """
    spec = Sliding(Count(5), every=Time("7s"), by=KEY, forget=PartitionAge("10s"))
    assert dedent(script) == played(spec, script, engine=engine)
    script = """
    +1 k=a: a insert 1
    t=6: forget a[1]; - flush []
    """
    tumbling = Tumbling(Time("6s"), by=KEY, forget=PartitionAge("5s"))
    assert dedent(script) == played(tumbling, script, engine=engine)


def test_time_evicts_nothing_more_of_an_evicted_partition(engine):
    """Nor of the one that comes under its key later."""
    script = """
    +1 k=a: a full []; a insert 1
    t=2:
    +2 k=b: b full []; b insert 2; forget a[1]
    t=4:
    +3 k=a: a full []; a insert 3; forget b[2]
    t=13:
    t=15: a evict 3
    """
    spec = Sliding(Time("10s"), every=Count(9), by=KEY, forget=PartitionCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_age_alone_never_acts(engine):
    script = """
    +1 k=a: a insert 1
    t=1000:
    """
    assert dedent(script) == played(unbounded(PartitionAge("10s")), script, engine=engine)
    spec = Sliding(Count(5), by=KEY, forget=PartitionAge("10s"))
    assert build(spec, engine=engine).next_due is None


def test_an_age_of_zero_keeps_partitions_of_the_same_instant(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    t=0.5:
    +3 k=b: forget a[1] b[2]; b insert 3
    """
    assert dedent(script) == played(unbounded(PartitionAge("0s")), script, engine=engine)


def test_time_eviction_itself_checks_no_age(engine):
    script = """
    +1 k=a: a full []; a insert 1
    t=6: a evict 1
    """
    spec = Sliding(Time("5s"), every=Count(9), by=KEY, forget=PartitionAge("1s"))
    assert dedent(script) == played(spec, script, engine=engine)


# -- the operator's own selection ---------------------------------------------------------------


def test_the_operator_is_asked_with_the_least_recently_used_first(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3
    +4 k=c: c insert 4; select b[2] a[1 3] c[4]; forget a[1 3]
    """
    spec = unbounded(PartitionCount(2, select="operator"))
    choice = {"select": lambda window, keys: [keys[1]], "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_all_partitions_an_operator_marks_go_in_one_event_in_its_order(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=c: c insert 3; select a[1] b[2] c[3]; forget c[3] a[1]
    """
    spec = unbounded(PartitionCount(2, select="operator"))
    choice = {"select": lambda window, keys: [keys[2], keys[0]], "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_an_operator_that_marks_nothing_gets_one_round_of_lru(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=c: c insert 3; select a[1] b[2] c[3]; forget a[1]
    """
    spec = unbounded(PartitionCount(2, select="operator"))
    choice = {"select": lambda window, keys: [], "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_the_second_round_is_lru_and_is_an_event_of_its_own(engine):
    """Marking an empty partition ends no need, so the least recently used one goes as well."""
    spec = Tumbling(Delta(0, 5), by=KEY, forget=TupleCount(2, select="operator"))
    kind = type("Marking", (Stumbling,), {"select_partitions": lambda self, window, keys: ["a"]})
    events = kind()
    window = build(spec, events=events, engine=engine)
    window.insert((0, 0), "a")
    with pytest.raises(ValueError, match="not this one"):
        window.insert((9, -1), "a")
    for number, key in enumerate("bcd", 1):
        window.insert((number, 0), key)
    assert [[("a", [])], [("b", [1])]] == events.emitted
    assert ["c", "d"] == list(window.keys())


def test_there_is_never_a_third_round(engine):
    """An insert makes need for one more tuple; a restored window with a lower limit needs more."""
    held = build(unbounded(None), engine=engine)
    held.insert_many([1, 2, 3, 4, 5], "abcde")
    taken = held.snapshot()
    events = recorder(["on_partitions_evicted"])
    window = build(unbounded(TupleCount(1)), events=events, engine=engine)
    taken |= {name: window.snapshot()[name] for name in ("spec", "fingerprint")}
    taken["lru"] = list("abcde")
    window.restore(taken)
    window.insert(6, "f")
    assert [(("a", (1,)),), (("b", (2,)),)] == [entry.contents for entry in events.log]
    assert list("cdef") == list(window.keys())


def test_a_partition_marked_twice_is_listed_twice_and_evicted_once(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2; select a[1] b[2]; forget a[1] a[1]
    +3 k=b: b insert 3
    """
    spec = unbounded(PartitionCount(1, select="operator"))
    choice = {"select": lambda window, keys: [keys[0], keys[0]], "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_an_operator_may_mark_all_partitions_with_a_generator(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2; select a[1] b[2]; forget a[1] b[2]
    +3 k=b: b insert 3
    """
    spec = unbounded(PartitionCount(1, select="operator"))
    choice = {"select": lambda window, keys: (key for key in keys), "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_the_operator_is_not_asked_without_need(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3
    """
    spec = unbounded(PartitionCount(2, select="operator"))
    choice = {"select": lambda window, keys: list(keys), "engine": engine}
    assert dedent(script) == played(spec, script, **choice)


def test_marking_an_unknown_partition_is_an_error_that_names_it(engine):
    events = recorder(["select_partitions"], select=lambda window, keys: ["nobody"])
    spec = unbounded(PartitionCount(1, select="operator"))
    window = build(spec, events=events, engine=engine)
    window.insert(1, "a")
    with pytest.raises(PartitionError, match=r"'nobody'.*no partition"):
        window.insert(2, "b")
    assert ["a", "b"] == list(window.keys())
    window.state.check()


def test_without_a_selection_handler_nothing_is_ever_evicted(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=c: c insert 3
    """
    for forget in (PartitionCount(1, select="operator"), TupleCount(1, select="operator")):
        assert dedent(script) == played(unbounded(forget), script, engine=engine)


@pytest.mark.parametrize("forget", [PartitionCount(1, "operator"), TupleCount(1, "operator")])
def test_a_missing_selection_handler_is_warned_of(forget, engine):
    with pytest.warns(WindowlibWarning, match="no select_partitions handler"):
        TumblingWindow(unbounded(forget), engine=engine)


@pytest.mark.parametrize(
    "forget",
    [PartitionCount(1), PartitionCount(1, "lfu"), TupleCount(1, "oldest"), PartitionAge("1s")],
    ids=str,
)
def test_a_selection_that_needs_no_handler_is_not_warned_of(forget, engine):
    TumblingWindow(unbounded(forget), engine=engine)  # warnings are errors here


# -- what goes with a partition, and what does not ----------------------------------------------


def test_partition_eviction_fires_no_evict_and_no_flush(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2
    +3 k=b: b insert 3; forget a[1 2]
    """
    forget = PartitionCount(1)
    tumbling = Tumbling(Count(3), by=KEY, forget=forget)
    for spec in (tumbling, Sliding(Count(3), every=Count(9), by=KEY, forget=forget)):
        assert dedent(script) == played(spec, script, engine=engine)


def test_partition_eviction_closes_no_summarizer(engine):
    calls = []

    class Told(Summarizer[Any]):
        def open(self, key):
            self.key = key
            calls.append(f"open {key}")

        def insert(self, tuple_):
            calls.append(f"insert {self.key}")

        def close(self):
            calls.append(f"close {self.key}")

    spec = Tumbling(Count(2), by=KEY, forget=PartitionCount(1))
    window = build(spec, summarizer=Told, engine=engine)
    window.insert_many([1, 2, 3, 4], "abbb")
    expected = ["open a", "insert a", "open b", "insert b"]  # here a goes
    assert [*expected, "insert b", "close b", "open b", "insert b"] == calls


def test_tuple_count_uses_the_logical_sizes_of_summaries(engine):
    class Nothing(Summarizer[Any]):
        def insert(self, tuple_):
            pass

    spec = Tumbling(Count(9), by=KEY, forget=TupleCount(3))
    window = build(spec, summarizer=Nothing, engine=engine)
    window.insert_many([1, 2, 3, 4], "aabb")
    assert {"b": 2} == {key: window.size(key) for key in window}
    window.state.check()


def test_an_evicted_partition_starts_afresh_in_all_it_remembers(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2; a full [1 2]
    +3 k=b: b insert 3; forget a[1 2]
    +4 k=a: a insert 4; forget b[3]
    +5 k=a: a insert 5; a full [4 5]
    +6 k=a: a evict 4; a insert 6; a trigger [5 6]
    """
    spec = Sliding(Count(2), every=Count(3), by=KEY, forget=PartitionCount(1))
    assert dedent(script) == played(spec, script, engine=engine)
    script = """
    +1 k=a age=0: a insert 1
    +2 k=b age=0: b insert 2; forget a[1]
    +3 k=a age=9: a insert 3; forget b[2]
    +4 k=a age=14: a insert 4
    +5 k=a age=15: a trigger [3 4]; a insert 5
    """
    spec = Sliding(Count(9), every=Delta("age", 5), by=KEY, forget=PartitionCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_time_window_forgets_the_arrival_times_of_an_evicted_partition(engine):
    script = """
    +1 k=a: a full []; a insert 1
    t=4:
    +2 k=b: b full []; b insert 2; forget a[1]
    t=8:
    +3 k=a: a full []; a insert 3; forget b[2]
    t=15:
    t=19: a evict 3
    """
    spec = Sliding(Time("10s"), every=Count(9), by=KEY, forget=PartitionCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_after_evicting_its_own_partition_a_count_trigger_starts_at_one(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2; a trigger [1 2]
    +3 k=a: a insert 3; forget a[1 2 3]
    +4 k=a: a insert 4; a trigger [4]
    +5 k=a: a insert 5
    """
    spec = Sliding(Count(9), every=Count(2), by=KEY, forget=TupleCount(2))
    assert dedent(script) == played(spec, script, engine=engine)


def test_after_evicting_its_own_partition_a_trigger_of_one_fires_on_nothing(engine):
    script = """
    +1 k=a: a insert 1; a trigger [1]
    +2 k=a: a insert 2; forget a[1 2]; a trigger []
    +3 k=a: a insert 3; a trigger [3]
    """
    spec = Sliding(Count(9), every=Count(1), by=KEY, forget=TupleCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_after_evicting_its_own_partition_the_delta_reference_is_gone(engine):
    script = """
    +1 k=a age=0: a insert 1
    +2 k=a age=1: a insert 2; forget a[1 2]
    +3 k=a age=9: a insert 3
    """
    spec = Sliding(Count(9), every=Delta("age", 5), by=KEY, forget=TupleCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_after_evicting_its_own_partition_a_tumbling_count_does_not_flush(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2; forget a[1 2]
    +3 k=a: a insert 3
    """
    spec = Tumbling(Count(2), by=KEY, forget=TupleCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_after_evicting_its_own_partition_initial_full_does_not_fire(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2; forget a[1 2]
    +3 k=a: a insert 3
    """
    spec = Sliding(Count(2), every=Count(9), by=KEY, forget=TupleCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_seen_counts_the_tuples_that_partitions_took_along(engine):
    window = build(unbounded(PartitionCount(1)), engine=engine)
    window.insert_many(range(6), "aabbcc")
    assert (2, 6) == (len(window), window.seen)


# -- keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        [None, "None", 0, ""],
        [("a", 1), ("a", 2), ("b", 1), ()],
        [Decimal(1), Decimal(2), frozenset("a"), b"a"],
        [-1, -2, 10**30, 0.5],
    ],
    ids=["nothings", "tuples", "objects", "numbers"],
)
def test_any_hashable_key_is_a_partition_of_its_own(keys, engine):
    window = build(unbounded(PartitionCount(9)), engine=engine)
    for number, key in enumerate([*keys, *keys]):
        window.insert(number, key)
    expected = {key: [i, i + len(keys)] for i, key in enumerate(keys)}
    assert expected == {key: list(window[key]) for key in window}
    assert keys == list(window.keys())


def test_equal_keys_of_different_types_are_one_partition_as_in_a_dict(engine):
    window = build(unbounded(PartitionCount(9)), engine=engine)
    window.insert_many([1, 2, 3], [1, 1.0, True])
    assert [1, 2, 3] == list(window[1])
    assert 1 == len(list(window.keys()))


def test_none_is_a_key_of_a_column_like_any_other(engine):
    window = build(Tumbling(Count(9), by="k"), engine=engine)
    window.insert_many([Row(1, k=None), Row(2, k="a"), Row(3, k=None)])
    assert [None, "a"] == list(window.keys())
    assert [1, 3] == [row.id for row in window[None]]


def test_several_columns_make_a_tuple_of_a_key(engine):
    window = build(Tumbling(Count(9), by=("k", "g")), engine=engine)
    window.insert_many([Row(1, k="a", g=0), Row(2, k="a", g=1), Row(3, k="a", g=0)])
    assert {("a", 0): 2, ("a", 1): 1} == {key: window.size(key) for key in window}


def test_a_callable_makes_the_key(engine):
    window = build(Tumbling(Count(9), by=lambda row: row % 3), engine=engine)
    window.insert_many(range(7))
    assert {0: [0, 3, 6], 1: [1, 4], 2: [2, 5]} == {key: list(window[key]) for key in window}


NAN_SPECS = [
    Tumbling(Count(2), by=KEY),
    Tumbling(Delta("age", 5), by=KEY),
    Tumbling(Punct(), by=KEY, forget=TupleCount(2)),
    Sliding(Count(2), every=Count(2), by=KEY),
    Sliding(Count(0), every=Count(2), by=KEY),
    Sliding(Count(0), every=Delta("age", 5), by=KEY),
    Sliding(Count(2), every=Delta("age", 5), by=KEY),
    Sliding(Delta("age", 5), every=Count(1), by=KEY),
    Sliding(Count(9), every=Count(3), by=KEY, forget=TupleCount(1)),
    Sliding(Time("1s"), every=Count(2), by=KEY, forget=PartitionCount(1)),
]


def renamed(op):
    """The same input with an ordinary key in place of NaN."""
    if isinstance(op, Many):
        return Many(tuple(map(renamed, op.inserts)))
    if isinstance(op, Insert) and op.key != op.key:
        return Insert(op.row, "NaN")
    return op


def same_as_renamed(spec, ops, engine, names=None, select=None):
    more = {} if names is None else {"handlers": names}
    odd, plain = recorder(select=select, **more), recorder(select=select, **more)
    window = build(spec, events=odd, engine=engine)
    other = build(spec, events=plain, engine=engine)
    for op in ops:
        apply(window, op, odd.log)
        apply(other, renamed(op), plain.log)
        window.state.check()
        assert plain.log == odd.log
        assert state(other) == state(window)


@pytest.mark.parametrize("spec", NAN_SPECS, ids=str)
def test_all_nan_are_one_partition(spec, engine):
    ages = (10, 3, 8, 9, 14, 2, 20, 20)
    ops = [Insert(Row(i, age), float("nan")) for i, age in enumerate(ages)]
    same_as_renamed(spec, ops, engine)


@settings(max_examples=examples(150))
@given(
    specs(by=st.just(KEY)),
    streams(keys=keys_with_nan),
    st.sampled_from(["generated", "reference"]),
    handlers,
    selectors,
)
def test_nan_behaves_like_any_other_key(spec, ops, engine, names, select):
    same_as_renamed(spec, ops, engine, names, select)


@pytest.mark.parametrize("nan", [float("nan"), Decimal("nan")], ids=["float", "decimal"])
def test_a_nan_partition_is_read_with_any_nan(nan, engine):
    window = build(Tumbling(Count(9), by=KEY), engine=engine)
    window.insert(1, float("nan"))
    window.insert(2, nan)
    assert [1, 2] == list(window[nan])
    assert 2 == window.size(nan) == window.insertions(nan)
    assert nan in window
    assert (1, 2) == (window.oldest(nan), window.newest(nan))


def test_a_key_that_the_caller_forgot_is_an_error_even_if_nothing_is_kept(engine):
    for evict in (Count(2), Count(0)):
        window = build(Sliding(evict, every=Count(2), by=KEY), engine=engine)
        with pytest.raises(PartitionError, match="key="):
            window.insert(1)


# -- cost ---------------------------------------------------------------------------------------


class Counted(OrderedDict[Any, Any]):
    """An LRU list that counts how many entries are looked at when it is walked."""

    walked = 0

    def __iter__(self):
        for key in super().__iter__():
            Counted.walked += 1
            yield key

    def keys(self):
        return list(self)

    def values(self):
        return (self[key] for key in self)

    def items(self):
        return ((key, self[key]) for key in self)


def work(forget, partitions, spec=Tumbling):
    """Lines run and LRU entries looked at by one insert that evicts, among many partitions."""
    window = build(spec(Count(9), by=KEY, forget=forget(partitions)))
    window.state.eviction.lru = Counted()
    for key in range(partitions):
        window.insert(key, key)
    lines = 0

    def count(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return count

    Counted.walked = 0
    before, held = sys.gettrace(), len(list(window.keys()))
    gc.disable()  # a collection here would count the lines of other tests' finalizers
    sys.settrace(count)
    try:
        window.insert("new", "new")
    finally:
        sys.settrace(before)
        gc.enable()
    assert 0 not in window
    assert held == len(list(window.keys()))
    return lines, Counted.walked


@pytest.mark.parametrize("forget", [PartitionCount, TupleCount])
@pytest.mark.parametrize("spec", [Tumbling, Sliding])
def test_lru_eviction_does_the_same_work_however_many_partitions_there_are(spec, forget):
    few, many = work(forget, 10, spec), work(forget, 5000, spec)
    assert few == many
    assert many[1] <= 3


def test_age_looks_at_no_more_partitions_than_it_evicts():
    window = build(unbounded(PartitionAge("10s")))
    window.state.eviction.lru = Counted()
    for key in range(2000):
        window.insert(key, key)
    window.advance(5)
    Counted.walked = 0
    window.insert("new", "new")
    assert Counted.walked <= 1
    window.advance(10.5)
    window.insert("newer", "newer")
    assert ["new", "newer"] == list(window.keys())


def test_a_window_without_partition_eviction_keeps_no_lru_list():
    window = build(Tumbling(Count(9), by=KEY))
    assert window.state.eviction is None


@settings(max_examples=examples(100))
@given(
    st.integers(0, 4),
    st.sampled_from([PartitionCount, TupleCount]),
    st.sampled_from(["lru", "lfu", "oldest"]),
    streams(),
)
def test_the_limit_holds_after_every_insert(limit, forget, select, ops):
    window = build(unbounded(forget(limit, select)), events=recorder())
    play(window, ops, window.events.log)
    held = len(list(window.keys())) if forget is PartitionCount else len(window)
    assert held <= limit


def test_a_partition_that_time_has_emptied_counts_insertions_afresh(engine):
    spec = Sliding(Time("1s"), every=Count(5), by=KEY)
    window = build(spec, engine=engine)
    window.insert(1, "a")
    window.insert(2, "a")
    window.advance(3)
    window.insert(3, "a")
    assert (1, 3) == (window.insertions("a"), window.seen)
    window.state.check()


def test_nan_in_a_key_of_several_columns_is_one_partition(engine):
    window = build(Tumbling(Count(9), by=("k", "g")), engine=engine)
    for _ in range(2):
        window.insert({"k": float("nan"), "g": 1})
    assert [2] == [window.size(key) for key in window]


def test_nan_inside_a_key_is_one_partition_also_after_a_restore(engine):
    spec = Sliding(Count(9), every=Count(3), by=lambda t: (t, (1, float("nan"))))
    window = build(spec, engine=engine)
    window.insert("a")
    window.insert("a")
    other = build(spec, engine=engine)
    other.restore(pickle.loads(pickle.dumps(window.snapshot())))
    other.insert("a")
    assert [3] == [other.size(key) for key in other]
    assert ["a"] * 3 == list(other["a", (1, float("nan"))])
