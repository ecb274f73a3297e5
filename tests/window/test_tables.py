"""Tables I and II of the paper, cell by cell, and the corners of each policy.

The scripts are written by hand from the definition of the semantics;
`tests.helpers.event_recorder` says how to read them. Every one runs in both engines.
"""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pytest

from tests.helpers.event_recorder import build, dedent, played, recorder, state
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    PunctuationError,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    WindowEvents,
)


@pytest.fixture(params=["generated", "reference"])
def engine(request):
    return request.param


def by_age(threshold):
    return Delta("age", threshold)


def every(seconds):
    return Time(f"{seconds}s")


# -- one case per cell --------------------------------------------------------------------------

TUMBLING = {
    # 1 2 | 3
    "count": (
        Tumbling(Count(2)),
        """
        +1: insert 1
        +2: insert 2; flush [1 2]
        +3: insert 3
        """,
    ),
    #  0  10 | 11  5  21 | 22        delta = 10, measured from the oldest
    "delta": (
        Tumbling(by_age(10)),
        """
        +1 age=0: insert 1
        +2 age=10: insert 2
        +3 age=11: flush [1 2]; insert 3
        +4 age=5: insert 4
        +5 age=21: insert 5
        +6 age=22: flush [3 4 5]; insert 6
        """,
    ),
    "time": (
        Tumbling(every(10)),
        """
        +1: insert 1
        t=9:
        +2: insert 2
        t=10: flush [1 2]
        +3: insert 3
        t=35: flush [3]; flush []
        """,
    ),
    "punct": (
        Tumbling(Punct()),
        """
        punct: empty
        +1: insert 1
        other:
        +2: insert 2
        punct: flush [1 2]
        punct: empty
        +3: insert 3
        final: flush [3]
        """,
    ),
    # 1 2 | 3 ... | 4               two tuples, or 10 s after the first
    "either": (
        Tumbling(Count(2) | every(10)),
        """
        t=3:
        +1: insert 1
        t=12.999999:
        +2: insert 2; flush [1 2]
        t=15:
        +3: insert 3
        t=24.999999:
        t=25: flush [3]
        t=99:
        +4: insert 4
        """,
    ),
}

SLIDING = {
    "count, count": (
        Sliding(Count(2), every=Count(2)),
        """
        +1: insert 1
        +2: insert 2; full [1 2]; trigger [1 2]
        +3: evict 1; insert 3
        +4: evict 2; insert 4; trigger [3 4]
        """,
    ),
    "count, delta": (
        Sliding(Count(2), every=by_age(5)),
        """
        +1 age=0: insert 1
        +2 age=5: insert 2; full [1 2]
        +3 age=6: trigger [1 2]; evict 1; insert 3
        +4 age=11: evict 2; insert 4
        +5 age=2: evict 3; insert 5
        +6 age=12: trigger [4 5]; evict 4; insert 6    # from 6, although tuple 3 has left
        """,
    ),
    "count, time": (
        Sliding(Count(2), every=every(10)),
        """
        +1: insert 1
        +2: insert 2; full [1 2]
        t=10: trigger [1 2]
        +3: evict 1; insert 3
        t=30: trigger [2 3]; trigger [2 3]
        """,
    ),
    "delta, count": (
        Sliding(by_age(5), every=Count(2)),
        """
        +1 age=0: insert 1
        +2 age=5: insert 2; trigger [1 2]
        +3 age=6: full [1 2]; evict 1; insert 3
        +4 age=11: evict 2; insert 4; trigger [3 4]
        """,
    ),
    "delta, delta": (
        Sliding(by_age(5), every=by_age(3)),
        """
        +1 age=0: insert 1
        +2 age=3: insert 2
        +3 age=4: trigger [1 2]; insert 3
        +4 age=6: full [1 2 3]; evict 1; insert 4
        +5 age=8: trigger [2 3 4]; insert 5
        +6 age=20: trigger [2 3 4 5]; evict 2; evict 3; evict 4; evict 5; insert 6
        """,
    ),
    "delta, time": (
        Sliding(by_age(5), every=every(10)),
        """
        +1 age=0: insert 1
        +2 age=5: insert 2
        t=10: trigger [1 2]
        +3 age=6: full [1 2]; evict 1; insert 3
        t=20: trigger [2 3]
        """,
    ),
    "time, count": (
        Sliding(every(10), every=Count(2)),
        """
        +1: full []; insert 1
        t=4:
        +2: insert 2; trigger [1 2]
        t=10:
        t=10.5: evict 1
        +3: insert 3
        t=14.5: evict 2
        +4: insert 4; trigger [3 4]
        """,
    ),
    "time, delta": (
        Sliding(every(10), every=by_age(5)),
        """
        +1 age=0: full []; insert 1
        +2 age=5: insert 2
        +3 age=6: trigger [1 2]; insert 3
        t=11: evict 1; evict 2; evict 3
        +4 age=11: insert 4
        +5 age=12: trigger [4]; insert 5
        """,
    ),
    "time, time": (
        Sliding(every(10), every=every(4)),
        """
        +1: full []; insert 1
        t=4: trigger [1]
        +2: insert 2
        t=12: trigger [1 2]; evict 1; trigger [2]
        t=16: evict 2; trigger []
        """,
    ),
}


@pytest.mark.parametrize("cell", TUMBLING)
def test_table_1(cell, engine):
    spec, script = TUMBLING[cell]
    assert dedent(script) == played(spec, script, engine=engine)


@pytest.mark.parametrize("cell", SLIDING)
def test_table_2(cell, engine):
    spec, script = SLIDING[cell]
    assert dedent(script) == played(spec, script, engine=engine)


# -- initial full -------------------------------------------------------------------------------


def test_a_count_window_is_full_in_the_insert_that_reaches_its_size_before_its_trigger(engine):
    script = """
    +1: insert 1; trigger [1]
    +2: insert 2; trigger [1 2]
    +3: insert 3; full [1 2 3]; trigger [1 2 3]
    +4: evict 1; insert 4; trigger [2 3 4]
    """
    assert dedent(script) == played(Sliding(Count(3)), script, engine=engine)


def test_a_count_window_of_one_is_full_with_its_first_tuple(engine):
    script = """
    +1: insert 1; full [1]; trigger [1]
    +2: evict 1; insert 2; trigger [2]
    """
    assert dedent(script) == played(Sliding(Count(1)), script, engine=engine)


def test_a_count_window_that_fills_up_is_full_after_partition_eviction(engine):
    spec = Sliding(Count(2), every=Count(2), by=KEY, forget=PartitionCount(1))
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2; forget a[1]
    +3 k=b: b insert 3; b full [2 3]; b trigger [2 3]
    +4 k=a: a insert 4; forget b[2 3]
    +5 k=a: a insert 5; a full [4 5]; a trigger [4 5]
    """
    assert dedent(script) == played(spec, script, engine=engine)
    spec = Sliding(Count(1), every=Count(1), by=KEY, forget=PartitionCount(1))
    script = """
    +1 k=a: a insert 1; a full [1]; a trigger [1]
    +2 k=b: b insert 2; forget a[1]; b full [2]; b trigger [2]
    """
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_delta_window_is_full_before_its_first_eviction_and_a_trigger_of_that_insert(engine):
    script = """
    +1 age=0: insert 1
    +2 age=6: full [1]; trigger [1]; evict 1; insert 2
    +3 age=12: trigger [2]; evict 2; insert 3
    """
    assert dedent(script) == played(Sliding(by_age(5), every=by_age(5)), script, engine=engine)


def test_a_delta_window_is_full_before_an_eviction_from_the_middle(engine):
    script = """
    +1 age=10: insert 1; trigger [1]
    +2 age=3: insert 2; trigger [1 2]
    +3 age=9: full [1 2]; evict 2; insert 3; trigger [1 3]
    +4 age=20: evict 1; evict 3; insert 4; trigger [4]
    """
    assert dedent(script) == played(Sliding(by_age(5)), script, engine=engine)


def test_a_time_window_is_full_once_per_partition_even_if_it_was_emptied(engine):
    script = """
    +1 k=a: a full []; a insert 1; a trigger [1]
    +2 k=b: b full []; b insert 2; b trigger [2]
    t=11: a evict 1; b evict 2
    +3 k=a: a insert 3; a trigger [3]
    """
    assert dedent(script) == played(Sliding(every(10), by=KEY), script, engine=engine)


def test_a_time_window_that_comes_back_with_a_delta_trigger_is_not_full_again(engine):
    script = """
    +1 age=0: full []; insert 1
    t=11: evict 1
    +2 age=9: trigger []; insert 2
    """
    assert dedent(script) == played(Sliding(every(10), every=by_age(5)), script, engine=engine)


# -- counts -------------------------------------------------------------------------------------


def test_a_tumbling_count_of_zero_ignores_its_input(engine):
    script = """
    +1:
    +2:
    """
    assert dedent(script) == played(Tumbling(Count(0)), script, engine=engine)


def test_a_tumbling_count_of_one_flushes_every_tuple(engine):
    script = """
    +1: insert 1; flush [1]
    +2: insert 2; flush [2]
    """
    assert dedent(script) == played(Tumbling(Count(1)), script, engine=engine)


def test_a_sliding_count_of_zero_keeps_nothing_and_still_counts_triggers(engine):
    script = """
    +1 k=a:
    +2 k=b:
    +3 k=a: a trigger []
    +4 k=b: b trigger []
    """
    spec = Sliding(Count(0), every=Count(2), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_sliding_count_of_zero_still_measures_a_delta_trigger(engine):
    script = """
    +1 age=0:
    +2 age=5:
    +3 age=6: trigger []
    +4 age=11:
    +5 age=12: trigger []
    """
    spec = Sliding(Count(0), every=by_age(5))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_sliding_count_of_zero_ticks_on_the_default_key(engine):
    script = """
    +1 k=a:
    t=10: - trigger []
    """
    spec = Sliding(Count(0), every=every(10), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_trigger_of_count_zero_never_fires(engine):
    script = """
    +1: insert 1
    +2: insert 2; full [1 2]
    +3: evict 1; insert 3
    """
    spec = Sliding(Count(2), every=Count(0))
    assert dedent(script) == played(spec, script, engine=engine)


def test_each_partition_counts_for_itself(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=b: b insert 2
    +3 k=a: a insert 3; a flush [1 3]
    +4 k=a: a insert 4
    +5 k=b: b insert 5; b flush [2 5]
    """
    assert dedent(script) == played(Tumbling(Count(2), by=KEY), script, engine=engine)


# -- deltas -------------------------------------------------------------------------------------


def test_a_threshold_of_zero_means_strictly_greater(engine):
    script = """
    +1 age=3: insert 1
    +2 age=3: insert 2
    +3 age=4: flush [1 2]; insert 3
    +4 age=3: insert 4
    +5 age=4: insert 5
    """
    assert dedent(script) == played(Tumbling(by_age(0)), script, engine=engine)
    script = """
    +1 age=3: insert 1; trigger [1]
    +2 age=3: insert 2; trigger [1 2]
    +3 age=4: full [1 2]; evict 1; evict 2; insert 3; trigger [3]
    """
    assert dedent(script) == played(Sliding(by_age(0)), script, engine=engine)


def test_a_negative_threshold_fires_for_equal_values_and_never_for_smaller_ones(engine):
    script = """
    +1 age=0: insert 1
    +2 age=0: flush [1]; insert 2
    +3 age=-1: insert 3
    """
    assert dedent(script) == played(Tumbling(by_age(-5)), script, engine=engine)
    script = """
    +1 age=0: insert 1; trigger [1]
    +2 age=0: full [1]; evict 1; insert 2; trigger [2]
    +3 age=-1: insert 3; trigger [2 3]
    """
    assert dedent(script) == played(Sliding(by_age(-5)), script, engine=engine)


def test_a_negative_trigger_threshold_fires_for_the_first_tuple_which_equals_itself(engine):
    script = """
    +1 age=0: trigger []; insert 1
    +2 age=0: trigger [1]; insert 2; full [1 2]
    +3 age=-1: evict 1; insert 3
    """
    assert dedent(script) == played(Sliding(Count(2), every=by_age(-5)), script, engine=engine)


@pytest.mark.parametrize("threshold", [float("inf"), float("-inf")])
def test_smaller_values_never_fire_whatever_the_threshold(threshold, engine):
    script = """
    +1 ts=9: insert 1
    +2 ts=8: insert 2
    +3 ts=7: insert 3
    """
    policy = Delta("ts", threshold)
    for spec in (Tumbling(policy), Sliding(policy, every=Count(0))):
        assert dedent(script) == played(spec, script, engine=engine)


def test_tumbling_delta_measures_from_the_oldest_and_not_from_the_smallest(engine):
    script = """
    +1 age=10: insert 1
    +2 age=0: insert 2
    +3 age=15: insert 3
    +4 age=16: flush [1 2 3]; insert 4
    """
    assert dedent(script) == played(Tumbling(by_age(5)), script, engine=engine)


def test_with_decreasing_values_a_tuple_leaves_from_the_middle(engine):
    script = """
    +1 age=10: insert 1; trigger [1]
    +2 age=3: insert 2; trigger [1 2]
    +3 age=8: insert 3; trigger [1 2 3]
    +4 age=9: full [1 2 3]; evict 2; insert 4; trigger [1 3 4]
    +5 age=14: evict 3; insert 5; trigger [1 4 5]
    """
    assert dedent(script) == played(Sliding(by_age(5)), script, engine=engine)


def test_the_trigger_reference_moves_only_when_a_trigger_fires(engine):
    script = """
    +1 age=0: insert 1
    +2 age=-9: insert 2
    +3 age=5: insert 3
    +4 age=6: trigger [1 2 3]; insert 4
    +5 age=11: insert 5
    """
    assert dedent(script) == played(Sliding(Count(9), every=by_age(5)), script, engine=engine)


def test_eviction_and_trigger_may_measure_different_attributes(engine):
    script = """
    +1 age=0 ts=0: insert 1
    +2 age=6 ts=1: full [1]; evict 1; insert 2
    +3 age=7 ts=1.5: trigger [2]; insert 3
    """
    spec = Sliding(by_age(5), every=Delta("ts", 1.25))
    assert dedent(script) == played(spec, script, engine=engine)


def test_one_policy_object_may_serve_as_eviction_and_trigger(engine):
    script = """
    +1 age=0: insert 1
    +2 age=6: full [1]; trigger [1]; evict 1; insert 2
    """
    policy = by_age(5)
    assert dedent(script) == played(Sliding(policy, every=policy), script, engine=engine)


# -- time ---------------------------------------------------------------------------------------


def test_a_tuple_leaves_when_it_is_strictly_older_than_the_period(engine):
    script = """
    t=1:
    +1: full []; insert 1; trigger [1]
    t=11:
    t=11.000001: evict 1
    """
    assert dedent(script) == played(Sliding(every(10)), script, engine=engine)


def test_an_insert_never_evicts_from_a_time_window(engine):
    script = """
    +1: full []; insert 1; trigger [1]
    t=10:
    +2: insert 2; trigger [1 2]
    """
    assert dedent(script) == played(Sliding(every(10)), script, engine=engine)


def test_time_evicts_oldest_first_and_partition_by_partition_in_storage_order(engine):
    script = """
    +1 k=b: b full []; b insert 1; b trigger [1]
    +2 k=a: a full []; a insert 2; a trigger [2]
    +3 k=b: b insert 3; b trigger [1 3]
    t=5:
    +4 k=b: b insert 4; b trigger [1 3 4]
    t=20: b evict 1; b evict 3; a evict 2; b evict 4
    """
    assert dedent(script) == played(Sliding(every(10), by=KEY), script, engine=engine)


def test_tuples_of_one_instant_leave_in_storage_order_and_not_as_they_came(engine):
    script = """
    +1 k=a: a full []; a insert 1
    +2 k=b: b full []; b insert 2
    t=5:
    +3 k=b: b insert 3
    +4 k=a: a insert 4
    t=12: a evict 1; b evict 2
    t=16: a evict 4; b evict 3
    """
    spec = Sliding(every(10), every=Count(9), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_tuple_is_still_there_in_the_tick_at_the_end_of_its_time(engine):
    script = """
    +1: full []; insert 1
    t=20: trigger [1]; evict 1; trigger []
    """
    spec = Sliding(every(10), every=every(10))
    assert dedent(script) == played(spec, script, engine=engine)


def test_an_emptied_partition_leaves_storage_and_keeps_its_trigger_count(engine):
    script = """
    +1 k=a: a full []; a insert 1
    +2 k=a: a insert 2
    t=11: a evict 1; a evict 2
    +3 k=b: b full []; b insert 3
    +4 k=a: a insert 4; a trigger [4]
    """
    spec = Sliding(every(10), every=Count(3), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_an_emptied_partition_comes_back_at_the_end_of_the_storage_order(engine):
    script = """
    +1 k=a: a full []; a insert 1
    t=6:
    +2 k=b: b full []; b insert 2
    t=8: a trigger [1]; b trigger [2]
    t=11: a evict 1
    +3 k=a: a insert 3
    t=16: b trigger [2]; a trigger [3]
    """
    spec = Sliding(every(10), every=every(8), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_an_emptied_partition_keeps_its_delta_reference(engine):
    script = """
    +1 k=a age=0: a full []; a insert 1
    t=11: a evict 1
    +2 k=a age=5: a insert 2
    t=22: a evict 2
    +3 k=a age=6: a trigger []; a insert 3
    """
    spec = Sliding(every(10), every=by_age(5), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_ticks_come_at_whole_periods_from_the_start_whenever_tuples_come(engine):
    script = """
    t=7:
    +1: insert 1
    t=9.999999:
    t=10: flush [1]
    """
    assert dedent(script) == played(Tumbling(every(10)), script, engine=engine)


def test_a_tick_flushes_every_partition_in_storage_order(engine):
    script = """
    +1 k=b: b insert 1
    +2 k=a: a insert 2
    +3 k=b: b insert 3
    t=10: b flush [1 3]; a flush [2]
    """
    assert dedent(script) == played(Tumbling(every(10), by=KEY), script, engine=engine)


def test_an_idle_window_ticks_on_the_default_key(engine):
    script = """
    t=10: - flush []
    +1 k=a: a insert 1
    t=30: a flush [1]; - flush []
    """
    assert dedent(script) == played(Tumbling(every(10), by=KEY), script, engine=engine)
    script = """
    t=10: - trigger []
    +1 k=a: a insert 1
    t=20: a trigger [1]
    """
    spec = Sliding(Count(2), every=every(10), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_an_idle_tick_leaves_no_partition_behind(engine):
    for spec in (Tumbling(every(10), by=KEY), Sliding(Count(2), every=every(10), by=KEY)):
        window = build(spec, events=recorder(), engine=engine)
        window.advance(35)
        assert [] == list(window.keys())
        window.state.check()


def test_time_starts_where_the_window_is_told_to(engine):
    events = recorder()
    window = build(Tumbling(every(10)), events=events, engine=engine, start=100)
    window.advance(109)
    assert [] == events.log
    window.advance(110)
    assert ["before_flush", "after_flush"] == [entry.event for entry in events.log]


# -- count or time ------------------------------------------------------------------------------


def test_each_partition_has_its_own_deadline_and_they_come_in_order(engine):
    script = """
    +1 k=b: b insert 1
    t=1:
    +2 k=a: a insert 2
    +3 k=c: c insert 3
    t=4:
    +4 k=b: b insert 4                             # the first tuple counts, not the last
    t=9:
    t=30: b flush [1 4]; a flush [2]; c flush [3]
    """
    spec = Tumbling(Count(3) | every(10), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_handlers_at_deadlines_see_the_time_of_each(engine):
    class Look(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            self.emit((key, window.now))

    window = build(Tumbling(Count(9) | every(10), by=KEY), events=Look(), engine=engine)
    assert window.next_due is None
    for at, key in enumerate("bac"):
        window.advance(at)
        window.insert(key, key)
        assert 10 == window.next_due
    window.advance(11)
    assert 12 == window.next_due
    window.advance(99)
    assert window.next_due is None
    assert [("b", 10), ("a", 11), ("c", 12)] == window.events.emitted


def test_a_batch_that_filled_up_leaves_no_deadline_behind(engine):
    script = """
    +1 k=a: a insert 1
    t=1:
    +2 k=b: b insert 2
    t=6:
    +3 k=a: a insert 3; a flush [1 3]
    t=7:
    +4 k=a: a insert 4
    t=10:
    t=11: b flush [2]
    t=16:
    t=17: a flush [4]
    """
    spec = Tumbling(Count(2) | every(10), by=KEY)
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_tuple_at_the_instant_of_a_deadline_opens_the_next_batch(engine):
    script = """
    +1: insert 1
    t=10: flush [1]
    +2: insert 2
    t=19.5:
    t=20: flush [2]
    """
    assert dedent(script) == played(Tumbling(every(10) | Count(2)), script, engine=engine)


def test_a_batch_of_one_needs_no_time(engine):
    script = """
    +1: insert 1; flush [1]
    +2: insert 2; flush [2]
    t=20:
    """
    assert dedent(script) == played(Tumbling(Count(1) | every(10)), script, engine=engine)


def test_a_partition_that_was_evicted_has_no_deadline(engine):
    script = """
    +1 k=a: a insert 1
    t=1:
    +2 k=b: b insert 2; forget a[1]
    t=2:
    +3 k=a: a insert 3; forget b[2]
    t=11.5:
    t=12: a flush [3]
    """
    spec = Tumbling(Count(9) | every(10), by=KEY, forget=PartitionCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_an_insert_that_evicts_its_own_full_partition_does_not_flush_it(engine):
    script = """
    +1 k=a: a insert 1
    +2 k=a: a insert 2; forget a[1 2]
    t=20:
    """
    spec = Tumbling(Count(2) | every(10), by=KEY, forget=TupleCount(1))
    assert dedent(script) == played(spec, script, engine=engine)


def test_partition_age_is_checked_before_a_deadline(engine):
    script = """
    +1 k=a: a insert 1
    t=1:
    +2 k=b: b insert 2
    t=4:
    +3 k=a: a insert 3
    t=6:
    +4 k=a: a insert 4
    t=10: forget b[2]; a flush [1 3 4]
    +5 k=c: c insert 5
    t=20: forget c[5]                              # its own age is over, so it is not flushed
    """
    spec = Tumbling(Count(9) | every(10), by=KEY, forget=PartitionAge("5s"))
    assert dedent(script) == played(spec, script, engine=engine)


def test_a_deadline_that_fails_does_not_cost_the_others_theirs(engine):
    class Fail(WindowEvents[Any, Any]):
        def before_flush(self, window, key):
            self.emit((key, list(window[key])))
            if key != "b":
                raise ValueError(key)

    window = build(Tumbling(Count(9) | every(10), by=KEY), events=Fail(), engine=engine)
    window.insert_many([1, 2, 3, 4], "abca")
    with pytest.raises(ValueError, match="a") as caught:
        window.advance(10)
    assert [("a", [1, 4]), ("b", [2]), ("c", [3])] == window.events.emitted
    assert [] == list(window.keys())
    note = "in before_flush of Fail, partition 'a', time 10, in TumblingWindow"
    assert f"{note} 'tumbling, count(9) | time(10), partitioned'" == caught.value.__notes__[0]
    assert "and 1 more failure after it" == caught.value.__notes__[1]
    window.state.check()


def test_the_next_deadline_is_found_at_once_however_many_partitions_have_left():
    #  a plain dict would walk over all that have left before it, again and again
    window = build(Tumbling(Count(9) | every(10), by=KEY))
    for number in range(20_000):
        window.advance(number / 10_000)
        window.insert(number, number)
    window.advance(11)
    assert 9_999 == len(window)
    assert 10_001 == next(iter(window))


# -- punctuations -------------------------------------------------------------------------------


def test_a_punctuation_flushes_every_partition_in_storage_order_and_forgets_them(engine):
    script = """
    +1 k=b: b insert 1
    +2 k=a: a insert 2
    punct: b flush [1]; a flush [2]
    punct: empty
    +3 k=a: a insert 3
    +4 k=b: b insert 4
    final: a flush [3]; b flush [4]
    """
    assert dedent(script) == played(Tumbling(Punct(), by=KEY), script, engine=engine)


def test_an_other_punctuation_is_ignored_by_a_full_and_by_an_empty_window(engine):
    script = """
    other:
    +1: insert 1
    other:
    punct: flush [1]
    """
    assert dedent(script) == played(Tumbling(Punct()), script, engine=engine)


OTHERS = [spec for spec, _ in [*TUMBLING.values(), *SLIDING.values()] if spec != Tumbling(Punct())]


@pytest.mark.parametrize("spec", OTHERS, ids=str)
def test_a_punctuation_that_no_policy_takes_is_an_error_and_changes_nothing(spec, engine):
    events = recorder()
    window = build(spec, events=events, engine=engine)
    window.insert_many([{"age": 0, "id": 1}, {"age": 1, "id": 2}, {"age": 2, "id": 3}])
    before, fired = state(window), list(events.log)
    for mark in ("window", "final"):
        with pytest.raises(PunctuationError, match=r"takes no punctuation"):
            window.punctuate(mark)
    assert before == state(window)
    assert fired == events.log
    window.insert({"age": 3, "id": 4})
    assert len(fired) < len(events.log)


# -- what handlers see --------------------------------------------------------------------------


def test_the_partition_is_there_and_empty_before_its_first_insert(engine):
    class Look(WindowEvents[Any, Any]):
        def before_insert(self, window, tuple_, key):
            self.emit((key in window, list(window[key])))

    events = Look()
    for spec in (Tumbling(Count(3), by=KEY), Sliding(Count(3), by=KEY), Tumbling(Punct(), by=KEY)):
        build(spec, events=events, engine=engine).insert("x", "a")
    assert [(True, [])] * 3 == events.emitted


def test_a_delta_trigger_before_the_insert_sees_an_empty_partition(engine):
    class Look(WindowEvents[Any, Any]):
        def on_trigger(self, window, key):
            self.emit((key in window, list(window[key])))

    events = Look()
    window = build(Sliding(every(10), every=Delta(0, 5), by=KEY), events=events, engine=engine)
    window.insert((0,), "a")
    window.advance(11)
    window.insert((6,), "a")
    assert [(True, [])] == events.emitted


def test_after_a_flush_the_partition_is_still_there_and_empty(engine):
    class Look(WindowEvents[Any, Any]):
        def after_flush(self, window, key):
            self.emit((key in window, list(window[key])))

    events = Look()
    window = build(Tumbling(Count(2), by=KEY), events=events, engine=engine)
    window.insert_many([1, 2], ["a", "a"])
    assert "a" not in window
    window = build(Tumbling(Delta(0, 5), by=KEY), events=events, engine=engine)
    window.insert_many([(1,), (9,)], ["a", "a"])
    window = build(Tumbling(Punct(), by=KEY), events=events, engine=engine)
    window.insert(1, "a")
    window.punctuate()
    assert "a" not in window
    assert [(True, [])] * 3 == events.emitted


@pytest.mark.parametrize("others", [[], ["before_evict"], ["after_evict"], ["on_trigger"]])
def test_before_insert_sees_the_window_after_eviction_whoever_else_watches(others, engine):
    #  count(2):  [1] [1 2] -> 1 leaves -> [2] is what tuple 3 finds
    events = recorder(["before_insert", *others])
    build(Sliding(Count(2)), events=events, engine=engine).insert_many([1, 2, 3])
    seen = [entry.contents for entry in events.log if entry.event == "before_insert"]
    assert [(), (1,), (2,)] == seen


@pytest.mark.parametrize("others", [[], ["before_evict"], ["on_initial_full"]])
def test_before_insert_sees_a_delta_window_after_eviction(others, engine):
    events = recorder(["before_insert", *others])
    window = build(Sliding(Delta(0, 5)), events=events, engine=engine)
    window.insert_many([(0,), (5,), (6,)])
    seen = [entry.contents for entry in events.log if entry.event == "before_insert"]
    assert [(), ((0,),), ((5,),)] == seen


def test_what_is_too_old_goes_before_a_trigger_of_the_same_microsecond(engine):
    #  4.999999        5.0        tick at 10: the first is 5.000001 s old, the second exactly 5 s
    log: list[list[int]] = []

    class Seen(WindowEvents[int, None]):
        def on_trigger(self, window, key):
            log.append(list(window[key]))

    spec = Sliding(Time("5s"), every=Time("10s"))
    window = build(spec, events=Seen(), engine=engine)
    window.advance(4.999999)
    window.insert(1)
    window.advance(5)
    window.insert(2)
    window.advance(10)
    assert [[2]] == log
