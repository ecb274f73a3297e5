"""Counters: the same numbers from every engine, and nothing changes by counting."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Operator,
    OperatorModel,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
)
from windowlib.columnar import handover
from windowlib.operators import Aggregate, Batch, Dedup, Join, Lookup, Sort, agg
from windowlib.runtime.counters import Counters, windows_of


class Sums(Operator):
    """Sums of columns, from tuples or from arrays."""

    content = "arrow"
    model = OperatorModel(windows=[Tumbling, Sliding], punctuation_out="generating")

    def before_flush(self, window, key):
        if window.size(key):
            self.emit(k=key, s=int(window.column("x", key).sum()))
        self.emit_punct()

    def on_trigger(self, window, key):
        self.before_flush(window, key)


class Picky(Sums):
    """Refuses a sum."""

    def before_flush(self, window, key):
        if int(window.column("x", key).sum()) == 9:
            raise ValueError("nine")
        self.emit_punct()


class After(Operator):
    model = OperatorModel(windows=[Tumbling])

    def after_flush(self, window, key):
        self.emit(key)


class Silent(Operator):
    model = OperatorModel(windows=[Tumbling, Sliding])


def counted(fired=0, evicted=0, partitions=0, partitions_evicted=0):
    return {
        "fired": fired,
        "evicted": evicted,
        "partitions": partitions,
        "partitions_evicted": partitions_evicted,
    }


def rows(keys):
    return [{"k": k, "x": n} for n, k in enumerate(keys)]


def batch(keys):
    return pa.RecordBatch.from_pylist(rows(keys))


def watched(operator):
    running = operator.open()
    return running, Counters(running)


@pytest.fixture
def eager(monkeypatch):
    """Batches of any size go to arrays, a few rows at a time."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "FIRST_SLICE_ROWS", 7)
    monkeypatch.setattr(handover, "SLICE_ROWS", 7)


# -- by hand --------------------------------------------------------------------------------------


def test_flushes_tuples_and_partitions_of_a_tumbling_window():
    running, counters = watched(Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("x")))
    assert counters.read() == counted()
    running.insert_many(rows("aabbbac"))
    assert counters.read() == counted(fired=2, evicted=4, partitions=3)
    running.insert_many(rows("ab"))
    assert counters.read() == counted(fired=4, evicted=8, partitions=1)


def test_triggers_of_a_sliding_window():
    running, counters = watched(Sums(Sliding(Count(3), every=Count(2), by="k")))
    running.insert_many(rows("aaaaab"))
    assert counters.read() == counted(fired=2, evicted=2, partitions=2)


def test_triggers_before_a_window_is_full_do_not_count_where_they_are_skipped():
    window = Sliding(Count(3), every=Count(1), by="k")
    skipping, emitting = (
        watched(Aggregate(window, s=agg.sum("x"), partial="skip")),
        watched(Aggregate(window, s=agg.sum("x"), partial="emit")),
    )
    for (running, counters), fired in ((skipping, 2), (emitting, 5)):
        running.insert_many(rows("aaaab"))
        assert counters.read() == counted(fired=fired, evicted=1, partitions=2)


def test_time_evicts_and_an_idle_clock_fires():
    window = Sliding(Time("10s"), every=Time("5s"), by="k")
    running, counters = watched(Aggregate(window, n=agg.count()))
    running.insert_many(rows("ab"))
    running.advance(5)
    assert counters.read() == counted(fired=2, partitions=2)
    running.advance(20)
    assert counters.read() == counted(fired=2 + 2 + 1 + 1, evicted=2)


def test_a_delta_partition_stays_after_its_flush():
    running, counters = watched(Batch(Delta("x", 2), by="k"))
    running.insert_many(rows("aaaaaa"))
    assert counters.read() == counted(fired=1, evicted=3, partitions=1)


def test_partitions_that_are_forgotten():
    window = Tumbling(Count(3), by="k", forget=PartitionCount(2))
    running, counters = watched(Sort("x", window=window))
    running.insert_many(rows("aabcd"))
    assert counters.read() == counted(evicted=3, partitions=2, partitions_evicted=2)


def test_a_handler_after_the_flush_counts_it():
    running, counters = watched(After(Tumbling(Count(2))))
    running.insert_many(rows("aaaaa"))
    assert counters.read() == counted(fired=2, evicted=4, partitions=1)


def test_without_a_handler_nothing_is_told_but_tuples_leave():
    running, counters = watched(Silent(Tumbling(Count(2))))
    running.insert_many(rows("aaaaa"))
    assert counters.read() == counted(evicted=4, partitions=1)


def test_punctuations_flush_what_is_there():
    running, counters = watched(Aggregate(Tumbling(Punct(), by="k"), n=agg.count()))
    running.insert_many(rows("aab"))
    running.punctuate()
    assert counters.read() == counted(fired=2, evicted=3)


def test_windows_that_hold_what_their_operator_says():
    running, counters = watched(Dedup("k", within=Count(2)))
    running.insert_many(rows("aabc"))
    assert counters.read() == counted(evicted=2, partitions=1)
    running, counters = watched(Sort("x", window=Sliding(Count(2), by="k")))
    running.insert_many(rows("aaab"))
    assert counters.read() == counted(evicted=1, partitions=2)


def test_only_what_happens_after_it_is_made_counts():
    running = Aggregate(Tumbling(Count(2), by="k"), n=agg.count()).open()
    running.insert_many(rows("aabbc"))
    counters = Counters(running)
    assert counters.read() == counted(partitions=1)
    running.insert_many(rows("c"))
    assert counters.read() == counted(fired=1, evicted=2)


def test_all_operators_of_a_graph_count():
    first = Aggregate(Tumbling(Count(2), by="k"), s=agg.sum("x"))
    second = Sort("s", window=Tumbling(Count(2)))
    running, counters = watched(first.then(second.then(Dedup("k", within=Count(1)))))
    running.insert_many(rows("aabbaab"))
    assert counters.read() == counted(fired=3 + 1, evicted=6 + 2 + 1, partitions=1 + 1 + 1)
    assert len(list(windows_of(running))) == 3


def test_both_sides_of_a_join_count():
    running, counters = watched(Join(left=Sliding(Count(2)), right=Sliding(Count(3)), on="k"))
    running.insert_many(rows("aaaa"))
    running.insert_many(rows("abab"), 1)
    assert counters.read() == counted(evicted=2 + 1, partitions=2)


def test_two_counters_count_each_for_itself():
    running = Sums(Tumbling(Count(2))).open()
    first = Counters(running)
    running.insert_many(rows("aa"))
    second = Counters(running)
    running.insert_many(rows("aa"))
    assert (first.read()["fired"], second.read()["fired"]) == (2, 1)


# -- restoring ------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 3, 40])
def test_after_restore_it_goes_on_from_the_new_state(length):
    operator = Aggregate(Tumbling(Count(2), by="k"), n=agg.count())
    other = operator.open()
    other.insert_many(rows("a" * length))
    running, counters = watched(operator)
    running.insert_many(rows("aabbb"))
    assert counters.read() == counted(fired=2, evicted=4, partitions=1)
    running.restore(other.snapshot())
    assert counters.read() == counted(fired=2, evicted=4, partitions=length % 2)
    running.insert_many(rows("cc"))
    assert counters.read() == counted(fired=3, evicted=6, partitions=length % 2)


# -- arrays ---------------------------------------------------------------------------------------

MANY = 1000

CASES = [
    Aggregate(Tumbling(Count(7), by="k"), s=agg.sum("x")),
    Aggregate(Tumbling(Delta("x", 50), by="k"), s=agg.sum("x")),
    Aggregate(Sliding(Count(10), every=Count(5), by="k"), s=agg.sum("x")),
    Aggregate(Sliding(Count(10), every=Count(3), by="k"), s=agg.sum("x"), partial="emit"),
    Aggregate(Sliding(Count(10), every=Count(3)), s=agg.median("x")),
    Aggregate(Sliding(Delta("x", 30), every=Count(3), by="k"), s=agg.sum("x")),
    Aggregate(Sliding(Time("30s"), every=Count(3), by="k"), s=agg.sum("x")),
    Aggregate(Tumbling(Count(7), by="k"), s=agg.sum("x"), group_by="x"),
    Sort("x", window=Tumbling(Count(7), by="k")),
    Sums(Tumbling(Count(7), by="k")),
    Sums(Sliding(Count(10), every=Count(4), by="k")),
]


@pytest.mark.parametrize("operator", CASES, ids=repr)
def test_arrays_give_the_same_counts_and_stay_arrays(operator):
    keys = [n * n % 23 % 5 for n in range(MANY)]
    running, counters = watched(operator)
    running.insert_many(rows(keys))
    expected = counters.read()
    assert expected["fired"] > 20
    ahead, of_arrays = watched(operator)
    ahead.insert_batch(batch(keys))
    (window,) = windows_of(ahead)
    assert window.state.in_arrays
    assert of_arrays.read() == expected
    assert window.state.in_arrays


def test_it_may_be_made_while_the_state_is_in_arrays():
    for operator in (CASES[0], CASES[2], CASES[-1]):
        running = operator.open()
        running.insert_batch(batch([n % 3 for n in range(MANY)]))
        (window,) = windows_of(running)
        assert window.state.in_arrays
        counters = Counters(running)
        assert counters.read() == counted(partitions=3)
        assert window.state.in_arrays
        other, late = operator.open(), batch([n % 3 for n in range(MANY)])
        other.insert_many(late.to_pylist())
        expected = Counters(other)
        other.insert_many(late.to_pylist())
        running.insert_batch(late)
        assert window.state.in_arrays
        assert counters.read() == expected.read()


NINE = Join(left=Sliding(Count(9)), right=Sliding(Count(5), by="k"), on="k")


@pytest.mark.parametrize("join", [NINE, Lookup(on="k")], ids=repr)
def test_the_arrays_of_a_join_count(join):
    keys = [n % 4 for n in range(MANY)]
    running, counters = watched(join)
    ahead, of_arrays = watched(join)
    for port in (1, 0):
        running.insert_many(rows(keys), port)
        ahead.insert_batch(batch(keys), port)
    windows = list(windows_of(ahead))
    assert all(window.state.in_arrays for window in windows)
    assert of_arrays.read() == counters.read() != counted()
    assert all(window.state.in_arrays for window in windows)
    ahead.insert(rows("a")[0])
    assert not any(window.state.in_arrays for window in windows)


small = st.integers(0, 2)
streams = st.lists(st.tuples(small, small, st.integers(0, 3)), min_size=1, max_size=40)
SPECS: list[Tumbling | Sliding] = [
    Tumbling(Count(3), by="k"),
    Tumbling(Time("4s"), by="k"),
    Tumbling(Count(3) | Time("4s"), by="k"),
    Tumbling(Delta("n", 5), by="k"),
    Sliding(Count(3), every=Count(2), by="k"),
    Sliding(Count(3), every=Time("4s"), by="k"),
    Sliding(Time("5s"), every=Count(2), by="k"),
    Sliding(Time("5s"), every=Time("4s"), by="k"),
    Sliding(Delta("n", 5), every=Count(2), by="k"),
    Sliding(Delta("n", 5), every=Delta("n", 3), by="k"),
    Sliding(Delta("n", 5), every=Time("4s")),
    Sliding(Time("5s"), every=Time("2s")),
]
OPERATORS = [
    *(Aggregate(spec, s=agg.sum("x")) for spec in SPECS),
    *(Aggregate(spec, s=agg.collect("x")) for spec in SPECS),
    *(Sums(spec) for spec in SPECS),
]


class Marks:
    """A running operator with counters, which counts the punctuations that it sends."""

    def __init__(self, operator):
        self.running, self.counters = watched(operator)
        self.marks = 0
        self.running.connect(0, self.row, self.mark)

    def row(self, row):
        pass

    def mark(self):
        self.marks += 1


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@settings(max_examples=examples(15))
@given(stream=streams, cut=st.integers(0, 40))
def test_every_firing_is_counted_once_by_whichever_engine(operator, stream, cut):
    events, arrays = Marks(operator), Marks(operator)
    found: list[dict[str, Any]] = []
    now = 0
    for n, (k, x, seconds) in enumerate(stream):
        now += seconds
        found.append({"k": k, "x": x, "n": n, "at": now})
    for row in found:
        events.running.advance(row["at"])
        events.running.insert(row)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(handover, "MIN_ROWS", 1)
        patched.setattr(handover, "FIRST_SLICE_ROWS", 7)
        for part in (found[:cut], found[cut:]):
            if part:
                arrays.running.insert_batch(pa.RecordBatch.from_pylist(part), times="at")
    for each in (events, arrays):
        each.running.advance(now + 3)
    assert events.counters.read() == arrays.counters.read()
    assert events.counters.read()["fired"] == events.marks == arrays.marks


# -- nothing changes ------------------------------------------------------------------------------


def note_of(running, feed):
    with pytest.raises(ValueError, match="nine") as caught:
        feed(running)
    return caught.value.__notes__


@pytest.mark.parametrize("window", [Tumbling(Count(2)), Sliding(Count(2))], ids=repr)
def test_a_handler_that_fails_is_named_as_ever(window, eager):
    for feed in (
        lambda running: running.insert_many(rows("a" * 30)),
        lambda running: running.insert_batch(batch("a" * 30)),
    ):
        plain = Picky(window).open()
        running, counters = watched(Picky(window))
        assert note_of(running, feed) == note_of(plain, feed)
        assert running.snapshot() == plain.snapshot()
        assert counters.read()["fired"] == (3 if isinstance(window, Tumbling) else 6)


def test_a_failure_downstream_counts_the_firings_up_to_it(eager):
    def refuse(row):
        if row["s"] == 9:
            raise ValueError("nine")

    def feed_rows(running):
        running.insert_many(rows("a" * 30))

    def feed_batch(running):
        running.insert_batch(batch("a" * 30))

    counts = []
    for feed in (feed_rows, feed_batch):
        running, counters = watched(Aggregate(Tumbling(Count(2)), s=agg.sum("x")))
        running.connect(0, refuse)
        note_of(running, feed)
        counts.append(counters.read())
    assert counts == [counted(fired=3, evicted=6)] * 2


@pytest.mark.parametrize("operator", [*CASES, NINE], ids=repr)
def test_counting_changes_neither_the_output_nor_the_engine(operator):
    keys = [n % 3 for n in range(MANY)]
    said, sent, saved = [], [], []
    for counting in (False, True):
        running = operator.open()
        out: list[Any] = []
        running.connect(0, out.append)
        if counting:
            Counters(running)
        running.insert_many(rows(keys[:10]))
        running.insert_batch(batch(keys))
        said.append([window.explain() for window in windows_of(running)])
        sent.append(out)
        saved.append(running.snapshot())
    assert said[0] == said[1]
    assert sent[0] == sent[1]
    assert saved[0] == saved[1]
