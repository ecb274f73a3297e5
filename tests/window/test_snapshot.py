"""Snapshots: restored anywhere, at any point, a window goes on as if nothing had happened."""
# ruff: noqa: SIM300 - asserts read expected first

import copy
import json
import pickle
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.event_recorder import DataRow, Row, build, id_of, key_text, play, recorder, state
from tests.helpers.examples import examples
from tests.helpers.window_strategies import (
    SELECTORS,
    handlers,
    key_of,
    keys_with_nan,
    selectors,
    specs,
    streams,
)
from windowlib import (
    KEY,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    StateVersionError,
    Summarizer,
    Time,
    Tumbling,
    TupleCount,
    WindowEvents,
    summarizers,
)
from windowlib.window.events import HANDLERS

FIRST = SELECTORS["first"]
engines = st.sampled_from(["generated", "reference"])
thorough = settings(max_examples=examples(200))
quick = settings(max_examples=examples(60))
PLAIN = (dict, list, tuple, str, int, float, bool, type(None))


def pickled(snapshot):
    return pickle.loads(pickle.dumps(snapshot))


def jsoned(snapshot):
    return json.loads(json.dumps(snapshot))


def window_of(spec, engine="generated", names=HANDLERS, select=FIRST, **more):
    return build(spec, engine=engine, events=recorder(names, select=select, deep=True), **more)


def goes_on(spec, ops, cut, carry, engine, other, names, select, **more):
    """Play a stream in one go, and with a snapshot in between; both must end alike."""
    window = window_of(spec, engine, names, select, **more)
    play(window, ops[:cut], window.events.log)
    taken = carry(window.snapshot())
    window.events.log.clear()
    fresh = window_of(spec, other, names, select, **more)
    fresh.restore(taken)
    fresh._check()
    assert state(window) == state(fresh)
    play(window, ops[cut:], window.events.log)
    play(fresh, ops[cut:], fresh.events.log)
    assert window.events.log == fresh.events.log
    assert state(window) == state(fresh)
    return window, fresh


# -- going on -----------------------------------------------------------------------------------


@thorough
@given(specs(), streams(), st.integers(0, 40), engines, engines, handlers, selectors)
def test_a_restored_window_of_either_engine_fires_the_remaining_events(
    spec, ops, cut, engine, other, names, select
):
    window, fresh = goes_on(spec, ops, cut, pickled, engine, other, names, select)
    if engine == other:
        assert window.snapshot() == fresh.snapshot()


JSON_KEYS = st.sampled_from([None, KEY, "k", key_of])


@quick
@given(
    specs(by=JSON_KEYS),
    streams(form=st.just("dict")),
    st.integers(0, 40),
    engines,
    engines,
    handlers,
)
def test_a_snapshot_of_json_data_survives_json(spec, ops, cut, engine, other, names):
    window, fresh = goes_on(spec, ops, cut, jsoned, engine, other, names, FIRST)
    if engine == other:
        assert jsoned(window.snapshot()) == jsoned(fresh.snapshot())


@quick
@given(specs(by=st.just(KEY)), streams(keys=keys_with_nan), st.integers(0, 40), engines, handlers)
def test_nan_is_one_partition_on_both_sides_of_a_snapshot(spec, ops, cut, engine, names):
    goes_on(spec, ops, cut, pickled, engine, engine, names, FIRST)


@pytest.mark.parametrize("carry", [pickled, jsoned, copy.deepcopy])
@pytest.mark.parametrize("forget", [None, PartitionCount(5)])
def test_tuples_of_a_nan_key_join_their_partition_after_a_restore(forget, carry):
    window = build(Tumbling(Count(9), by=KEY, forget=forget))
    window.insert(1, float("nan"))
    window.restore(carry(window.snapshot()))
    window.insert(2, float("nan"))
    [key] = window.keys()
    assert [1, 2] == list(window[key])


@quick
@given(specs(), streams(), st.integers(0, 40), handlers, handlers)
def test_what_is_restored_does_not_depend_on_which_handlers_watched(spec, ops, cut, few, others):
    watched = window_of(spec, names=HANDLERS)
    play(watched, ops[:cut], watched.events.log)
    watched.events.log.clear()
    play(watched, ops[cut:], watched.events.log)
    before = window_of(spec, names=few | {"select_partitions"})
    play(before, ops[:cut], before.events.log)
    after = window_of(spec, names=others | {"select_partitions"})
    after.restore(before.snapshot())
    play(after, ops[cut:], after.events.log)
    told = [e for e in watched.events.log if e.event in {*others, "select_partitions", "error"}]
    assert told == after.events.log


@quick
@given(specs(), streams(), streams(), engines, handlers)
def test_a_restore_replaces_whatever_the_window_held(spec, ops, others, engine, names):
    window = window_of(spec, engine, names)
    play(window, ops, window.events.log)
    used = window_of(spec, engine, names)
    play(used, others, used.events.log)
    used.restore(window.snapshot())
    used._check()
    assert state(window) == state(used)
    assert window.snapshot() == used.snapshot()


@quick
@given(specs(), streams(), engines)
def test_a_window_can_go_back_to_its_own_snapshot(spec, ops, engine):
    window = window_of(spec, engine)
    taken = window.snapshot()
    first = list(play(window, ops, window.events.log))
    window.restore(taken)
    window.events.log.clear()
    assert first == play(window, ops, window.events.log)


def test_a_snapshot_remembers_time_and_the_next_tick():
    window = build(Tumbling(Time("10s")), start=100)
    window.advance(117)
    fresh = build(Tumbling(Time("10s")), events=recorder())
    fresh.restore(pickled(window.snapshot()))
    assert (117, 120) == (fresh.now, fresh.next_due)
    fresh.advance(119.5)
    assert [] == fresh.events.log
    fresh.advance(120)
    assert 2 == len(fresh.events.log)


def test_a_snapshot_remembers_the_deadlines():
    spec = Tumbling(Count(3) | Time("10s"), by=KEY)
    window = build(spec)
    for at, key in ((1, "b"), (4, "a"), (6, "b")):
        window.advance(at)
        window.insert(at, key)
    fresh = build(spec, events=recorder(["before_flush"]), engine="reference")
    fresh.restore(pickled(window.snapshot()))
    fresh._check()
    assert (6, 11) == (fresh.now, fresh.next_due)
    fresh.advance(13.5)
    assert 14 == fresh.next_due
    fresh.advance(14)
    assert ["b", "a"] == [entry.key for entry in fresh.events.log]


def test_a_snapshot_remembers_the_lru_order():
    spec = Tumbling(Punct(), by=KEY, forget=PartitionCount(2))
    window = build(spec)
    window.insert_many([1, 2, 3], ["a", "b", "a"])
    fresh = build(spec)
    fresh.restore(pickled(window.snapshot()))
    fresh.insert(4, "c")
    assert ["a", "c"] == list(fresh.keys())


def test_rows_of_another_form_may_follow_a_restore():
    spec = Sliding(Delta("age", 5), every=Count(1))
    window = build(spec)
    window.insert_many([Row(1, age=0), Row(2, age=4)])
    fresh = build(spec)
    fresh.restore(window.snapshot())
    fresh.insert({"id": 3, "age": 6})
    assert [2, 3] == [id_of(row) for row in fresh[None]]


# -- independence and plainness -----------------------------------------------------------------


@quick
@given(specs(), streams(), st.integers(0, 40), engines)
def test_a_snapshot_does_not_change_while_the_window_goes_on(spec, ops, cut, engine):
    window = window_of(spec, engine)
    play(window, ops[:cut], window.events.log)
    taken = window.snapshot()
    kept = copy.deepcopy(taken)
    play(window, ops[cut:], window.events.log)
    assert kept == taken


@quick
@given(specs(), streams(), st.integers(0, 40), engines)
def test_two_windows_restored_from_one_snapshot_do_not_share_anything(spec, ops, cut, engine):
    window = window_of(spec, engine)
    play(window, ops[:cut], window.events.log)
    taken = window.snapshot()
    kept = copy.deepcopy(taken)
    one, other = window_of(spec, engine), window_of(spec, engine)
    one.restore(taken)
    other.restore(taken)
    before = state(other)
    play(one, ops[cut:], one.events.log)
    assert before == state(other)
    assert kept == taken


def wreck(data):
    """Empty every container of a snapshot, from the inside out."""
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            if not (isinstance(value, dict) and "age" in value):  # a user's tuple
                wreck(value)
        data.clear()


@quick
@given(specs(), streams(), engines)
def test_a_window_does_not_change_when_its_snapshot_does(spec, ops, engine):
    window = window_of(spec, engine)
    play(window, ops, window.events.log)
    before = state(window)
    wreck(window.snapshot())
    assert before == state(window)
    window.state.check()
    taken = window.snapshot()
    window.restore(taken)
    wreck(taken)
    assert before == state(window)
    window.state.check()


def parts_of(data):
    yield data
    inner = data.values() if isinstance(data, dict) else data
    if isinstance(data, dict | list | tuple) and not isinstance(data, Row):
        for value in inner:
            yield from parts_of(value)


@quick
@given(specs(), streams(), engines)
def test_a_snapshot_is_plain_data_around_the_tuples(spec, ops, engine):
    window = window_of(spec, engine)
    play(window, ops, window.events.log)
    kinds = {type(part) for part in parts_of(window.snapshot())}
    assert set() == kinds - {*PLAIN, Row, DataRow}


@pytest.mark.parametrize(
    "spec", [Tumbling(Delta("age", 5)), Sliding(Count(3), every=Count(2))], ids=str
)
def test_a_snapshot_of_ready_made_summaries_is_plain_data(spec):
    window = build(spec, summarizer=READY)
    window.insert_many([Row(i, i, i / 2) for i in range(10)])
    assert set() == {type(part) for part in parts_of(window.snapshot())} - set(PLAIN)


# -- what does not fit --------------------------------------------------------------------------

SPEC = Sliding(Count(3), every=Count(2), by="k", forget=PartitionCount(4))


def filled(spec=SPEC, **more):
    window = build(spec, **more)
    window.insert_many([Row(1, k="a"), Row(2, k="b"), Row(3, k="a")])
    return window


def refused(window, taken, match):
    """Restore must fail with these words and leave the window as it was."""
    before, snapshot = state(window), window.snapshot()
    with pytest.raises(StateVersionError, match=match):
        window.restore(taken)
    assert before == state(window)
    assert snapshot == window.snapshot()
    window.state.check()


CHANGES = {
    r"evict=Count\(size=3\).*evict=Count\(size=4\)": Sliding(
        Count(4), every=Count(2), by="k", forget=PartitionCount(4)
    ),
    r"evict=Count\(size=3\).*evict=Delta\('age', 3\)": Sliding(
        Delta("age", 3), every=Count(2), by="k", forget=PartitionCount(4)
    ),
    r"every=Count\(size=2\).*every=Count\(size=1\)": Sliding(
        Count(3), every=Count(1), by="k", forget=PartitionCount(4)
    ),
    r"by='k'.*by='g'": Sliding(Count(3), every=Count(2), by="g", forget=PartitionCount(4)),
    r"forget=PartitionCount\(size=4.*forget=None": Sliding(Count(3), every=Count(2), by="k"),
    r"forget=PartitionCount\(size=4.*forget=TupleCount": Sliding(
        Count(3), every=Count(2), by="k", forget=TupleCount(4)
    ),
    r"forget=.*lru.*forget=.*lfu": Sliding(
        Count(3), every=Count(2), by="k", forget=PartitionCount(4, "lfu")
    ),
    r"kind=sliding.*kind=tumbling": Tumbling(Count(3), by="k", forget=PartitionCount(4)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_of_another_specification_is_refused_and_names_what_changed(change):
    refused(filled(CHANGES[change]), filled().snapshot(), change)


def test_seconds_and_a_number_are_different_thresholds():
    window = build(Tumbling(Delta("age", 5)))
    refused(window, build(Tumbling(Delta("age", "5s"))).snapshot(), r"evict=.*evict=")


def test_a_snapshot_of_another_summarizer_is_refused_and_names_both():
    spec = Tumbling(Count(3))
    taken = build(spec, summarizer=summarizers.sum("age")).snapshot()
    window = build(spec, summarizer=summarizers.max("age"))
    refused(window, taken, r"keeps=.*sum\('age'\).*keeps=.*max\('age'\)")
    refused(build(spec), taken, r"keeps=.*sum\('age'\).*keeps=tuples")


def test_slices_are_refused_where_tuples_are_kept():
    spec = Sliding(Count(4), every=Count(2))
    slices = build(spec, summarizer=summarizers.sum("age")).snapshot()
    tuples = build(spec, summarizer=summarizers.sum("age"), engine="reference")
    refused(tuples, slices, r"keeps=.*slices.*keeps=tuples")


@pytest.mark.parametrize("version", [0, 1, 3, "2", None])
def test_a_snapshot_of_another_format_is_refused_and_names_both_versions(version):
    taken = {**filled().snapshot(), "v": version}
    refused(filled(), taken, rf"format {version!r}.*reads 2")


@pytest.mark.parametrize("garbage", [None, 7, "snapshot", [], {}, {"parts": []}, b""], ids=repr)
def test_what_is_no_snapshot_is_refused(garbage):
    refused(filled(), garbage, r"not a snapshot")


NEEDED = set(filled().snapshot()) - {"v", "fingerprint", "events"}


@pytest.mark.parametrize("missing", sorted(NEEDED))
def test_a_snapshot_that_lacks_something_is_refused(missing):
    taken = filled().snapshot()
    del taken[missing]
    refused(filled(), taken, "restore")


WRONG: dict[str, Any] = {
    "spec": None,
    "parts": None,
    "parts of nothing": [{}],
    "asleep": [7],
    "lru": ["nobody"],
    "lru of nothing": None,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_snapshot_is_refused(name):
    taken = {**filled().snapshot(), name.partition(" ")[0]: WRONG[name]}
    refused(filled(), taken, "restore")


# -- handlers' own state ------------------------------------------------------------------------


class Counting(WindowEvents[Any, Any]):
    """Numbers its triggers, across restarts."""

    def __init__(self):
        self.fired = 0

    def on_trigger(self, window, key):
        self.fired += 1
        self.emit(self.fired)

    def snapshot(self):
        return {"fired": self.fired}

    def restore(self, state):
        self.fired = state["fired"]


def test_handlers_carry_their_own_state():
    window = build(Sliding(Count(2)), events=Counting())
    window.insert_many("ab")
    fresh = build(Sliding(Count(2)), events=Counting())
    fresh.restore(jsoned(window.snapshot()))
    fresh.insert("c")
    assert [3] == fresh.events.emitted


def test_a_handler_without_state_of_its_own_is_restored_to_nothing():
    class Told(WindowEvents[Any, Any]):
        def restore(self, state):
            self.emit(("restored", state))

    window = build(Sliding(Count(2)), events=Told())
    window.restore(window.snapshot())
    assert [("restored", None)] == window.events.emitted


def test_a_refused_snapshot_does_not_reach_the_handlers():
    window = build(Sliding(Count(2)), events=Counting())
    refused(window, build(Sliding(Count(3)), events=Counting()).snapshot(), "evict")
    assert 0 == window.events.fired


# -- summarizers --------------------------------------------------------------------------------

READY = {
    "n": summarizers.count(),
    "sum": summarizers.sum("age"),
    "mean": summarizers.mean("age"),
    "spread": summarizers.variance("age"),
    "low": summarizers.min("age"),
    "high": summarizers.max("age"),
}


class Listed(Summarizer[Any]):
    """A list and a number, which the default snapshot must carry."""

    def open(self, key):
        self.calls, self.n = [f"open {key_text(key)}"], 0

    def insert(self, tuple_):
        self.calls.append(f"insert {id_of(tuple_)}")
        self.n += 1

    def value(self):
        return (self.n, *self.calls)


class Slotted(Summarizer[Any]):
    """State in slots and in the instance's dict."""

    __slots__ = ("last", "total")

    def open(self, key):
        self.total, self.last, self.key = 0, None, key

    def insert(self, tuple_):
        self.total, self.last = self.total + 1, id_of(tuple_)

    def value(self):
        return (self.key, self.total, self.last)


class Reading(WindowEvents[Any, Any]):
    """Emits the summary of every window that is processed."""

    def before_flush(self, window, key):
        self.emit((key, window.summary(key).value(), window.size(key)))

    on_trigger = before_flush


@thorough
@given(
    specs(kinds=("tumbling",), by=st.sampled_from([None, KEY])),
    streams(form=st.just("named")),
    st.integers(0, 40),
    engines,
    engines,
    st.sampled_from([Listed, Slotted, READY, READY["low"]]),
)
def test_tumbling_summaries_go_on_after_a_restore(spec, ops, cut, engine, other, summarizer):
    window = build(spec, engine=engine, events=Reading(), summarizer=summarizer)
    play(window, ops[:cut], [])
    fresh = build(spec, engine=other, events=Reading(), summarizer=summarizer)
    taken = window.snapshot()
    kept = pickle.dumps(taken)
    fresh.restore(pickle.loads(kept))
    fresh._check()
    before = len(window.events.emitted)
    play(window, ops[cut:], [])
    assert pickle.loads(kept) == taken
    play(fresh, ops[cut:], [])
    assert window.events.emitted[before:] == fresh.events.emitted
    if engine == other:
        assert window.snapshot() == fresh.snapshot()


VALUES = [3, None, 5, 2, None, None, None, 9, 1, 4, None, 8, 7, 7, None, None, 2, 6]
KINDS: dict[str, Any] = {
    "ints": VALUES,
    "floats without nulls": [(x or 0) / 4 for x in VALUES],
    "decimals": [None if x is None else Decimal(x) / 4 for x in VALUES],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4, 5))])
def test_slices_go_on_after_a_restore_at_any_point(n, kind):
    """Windows that overlap, that do not divide evenly, and that hop over tuples (m > n)."""
    for m in range(1, 7):
        restored_anywhere(Sliding(Count(n), every=Count(m)), kind)


def restored_anywhere(spec, kind):
    rows = [Row(i, x) for i, x in enumerate(KINDS[kind])]
    whole = build(spec, events=Reading(), summarizer=READY)
    whole.insert_many(rows)
    window = build(spec, events=Reading(), summarizer=READY)
    assert "slices" in window.explain()
    for cut, row in enumerate(rows):
        fresh = build(spec, events=Reading(), summarizer=READY)
        fresh.restore(pickled(window.snapshot()))
        fresh.insert_many(rows[cut:])
        assert whole.events.emitted[cut // spec.every.size :] == fresh.events.emitted, (spec, cut)
        assert whole.snapshot() == fresh.snapshot(), (spec, cut)
        window.insert(row)


@pytest.mark.parametrize("carry", [pickled, jsoned, copy.deepcopy])
@pytest.mark.parametrize("spec", [Tumbling(Count(2)), Sliding(Count(2), every=Count(2))], ids=str)
@pytest.mark.parametrize("name", ["min", "max"])
def test_a_summary_of_nothing_but_nulls_is_none_after_a_restore(name, spec, carry):
    window = build(spec, events=Reading(), summarizer=getattr(summarizers, name)(0))
    window.insert([None])
    window.restore(carry(window.snapshot()))
    window.insert([None])
    assert [(None, None, 2)] == window.events.emitted


@pytest.mark.parametrize("value", ["word", timedelta(seconds=1), Decimal(1), float("inf"), 10**400])
@pytest.mark.parametrize("spec", [Tumbling(Count(2)), Sliding(Count(2), every=Count(2))], ids=str)
@pytest.mark.parametrize("name", ["min", "max"])
def test_the_first_value_after_a_restore_may_be_of_any_type(name, spec, value):
    window = build(spec, events=Reading(), summarizer=getattr(summarizers, name)(0))
    window.insert([None])
    window.restore(pickled(window.snapshot()))
    window.insert([value])
    assert [(None, value, 2)] == window.events.emitted


def test_slices_of_words_go_on_after_a_restore():
    window = build(Sliding(Count(2)), events=Reading(), summarizer=summarizers.max(0))
    window.insert(["b"])
    window.restore(pickled(window.snapshot()))
    window.insert(["a"])
    assert [(None, "b", 1), (None, "b", 2)] == window.events.emitted


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_a_restore_opens_no_summarizer(engine):
    opened = []

    class Opening(Summarizer[Any]):
        def open(self, key):
            opened.append(key)

        def insert(self, tuple_):
            pass

    window = build(Tumbling(Count(3), by=KEY), summarizer=Opening, engine=engine)
    window.insert(1, "a")
    window.restore(pickled(window.snapshot()))
    window.insert(2, "a")
    assert ["a"] == opened


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("summarizer", [Listed, Slotted])
def test_a_snapshot_does_not_change_with_the_summarizer_it_was_taken_from(summarizer, engine):
    window = build(Tumbling(Count(9)), summarizer=summarizer, engine=engine)
    window.insert(1)
    taken = window.snapshot()
    kept = copy.deepcopy(taken)
    window.insert(2)
    assert kept == taken


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_two_windows_restored_from_one_snapshot_do_not_share_a_summarizers_state(engine):
    def made():
        return build(Tumbling(Count(9)), summarizer=Listed, engine=engine)

    window, one, other = made(), made(), made()
    window.insert(1)
    taken = window.snapshot()
    one.restore(taken)
    other.restore(taken)
    one.insert(2)
    assert (1, "open None", "insert 1") == other.summary().value()
    assert (2, "open None", "insert 1", "insert 2") == one.summary().value()


@pytest.mark.parametrize("forget", [None, PartitionAge("2s"), PartitionCount(2)], ids=str)
def test_slices_of_partitions_go_on_after_a_restore(forget):
    spec = Sliding(Count(3), every=Count(2), by="k", forget=forget)
    rows = [Row(i, i * i % 7, k="abcab"[i % 5]) for i in range(40)]
    whole = build(spec, events=Reading(), summarizer=READY)
    cut = build(spec, events=Reading(), summarizer=READY)
    assert "slices" in cut.explain()
    told = []
    for i, row in enumerate(rows):
        for window in (whole, cut):
            window.advance(i / 3)
            window.insert(row)
        told += cut.events.emitted
        taken = pickled(cut.snapshot())
        cut = build(spec, events=Reading(), summarizer=READY)
        cut.restore(taken)
        cut._check()
    assert whole.events.emitted == told
