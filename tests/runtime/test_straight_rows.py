"""Rows that go straight into a window's generated code: the same as one call after the other."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.examples import is_thorough
from tests.helpers.interrupts import instructions, interrupted
from windowlib import (
    AccessError,
    ClockError,
    Count,
    Delta,
    ModelError,
    Operator,
    OperatorModel,
    PartitionAge,
    PartitionCount,
    SchemaError,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
    advance,
    replay,
)
from windowlib.durations import as_instant
from windowlib.errors import BrokenStateError, OperatorError
from windowlib.operators import Aggregate, agg
from windowlib.runtime.running import Running
from windowlib.window.arrow import Times

SPECS: list[Any] = [
    Tumbling(Time("3s"), by="k"),
    Tumbling(Count(3), by="k"),
    Tumbling(Count(3) | Time("4s"), by="k"),
    Tumbling(Delta("x", 4), by="k"),
    Tumbling(Time("3s"), by="k", forget=PartitionAge("2s")),
    Sliding(Time("3s"), every=Count(2), by="k"),
    Sliding(Time("3s"), every=Time("2s"), by="k"),
    Sliding(Time("3s"), every=Delta("x", 2), by="k"),
    Sliding(Count(3), every=Time("2s"), by="k"),
    Sliding(Count(3), every=Count(2), by="k"),
    Sliding(Delta("x", 4), every=Count(2), by="k"),
    Sliding(Time("3s"), every=Count(1), by="k", forget=PartitionCount(2)),
    Sliding(Time("3s"), every=Count(1), by="k", forget=TupleCount(3)),
]


class Contents(Operator):
    """Sends what a window holds, and when."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    watched = False

    def before_flush(self, window, key):
        self._send(window, key)

    def on_trigger(self, window, key):
        self._send(window, key)

    def _send(self, window, key):
        sizes = {each: window.size(each) for each in window}
        self.emit(at=window.now, key=key, xs=[t["x"] for t in window[key]], sizes=sizes)


class Watched(Contents):
    """The same with a handler for tuples that leave."""

    def before_evict(self, window, tuple_, key):
        self.emit(at=window.now, left=tuple_["x"], key=key)


def rows_of(steps, form=float):
    """Rows of a key, a value and a time, each some halves of a second after the one before."""
    rows, now = [], 0
    for i, (key, wait) in enumerate(steps):
        now += wait
        rows.append({"k": key, "x": i, "ts": form(now / 2)})
    return rows


def told_one_by_one(op, rows):
    """Each row after a mark that moves the clock."""
    when = Times("ts")
    items: list[Any] = []
    for row in rows:
        items += [advance(timedelta(microseconds=when(row))), row]
    start = timedelta(microseconds=when(rows[0]))
    return list(replay(op, items, start=start))


FORMS = {
    "float": float,
    "int": int,
    "datetime": lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds),
    "timedelta": lambda seconds: timedelta(seconds=seconds),
}
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=30)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@given(steps=STEPS, form=st.sampled_from(list(FORMS)))
def test_rows_with_times_are_rows_between_which_the_clock_moves(spec, steps, form):
    rows = rows_of(steps, FORMS[form])
    makers: list[Any] = [Contents, partial(Aggregate, n=agg.count(), sum=agg.sum("x"))]
    makers += [Watched] if isinstance(spec, Sliding) else []
    for make in makers:
        op = make(spec)
        assert list(replay(op, rows, times="ts")) == told_one_by_one(op, rows)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@given(steps=STEPS)
def test_a_running_operator_is_in_the_same_state_after_it(spec, steps):
    rows = rows_of(steps)
    straight, slow = Contents(spec).open(), Contents(spec).open()
    straight.insert_timed(rows, Times("ts"))
    for row in rows:
        slow.advance(row["ts"])
        slow.insert(row, 0)
    assert straight.now == slow.now
    assert straight.snapshot() == slow.snapshot()
    assert straight.due() == slow.due()
    for window in straight.windows:
        window.state.check()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), True, None, "soon"])
@pytest.mark.parametrize("spec", [SPECS[0], SPECS[5]], ids=str)
def test_a_time_that_is_none_is_refused_wherever_it_comes(spec, bad):
    rows = rows_of([(0, 1)] * 5)
    rows[3]["ts"] = bad
    with pytest.raises(ClockError, match="is no point in time"):
        list(replay(Contents(spec), rows, times="ts"))
    window: Any = Contents(spec).open().windows[0]
    window.insert(rows[0])
    with pytest.raises(ClockError, match="not a point in time"):
        window.advance(bad)


def test_a_row_without_its_time_and_time_that_goes_back_are_refused():
    rows = rows_of([(0, 1)] * 5)
    with pytest.raises(SchemaError, match="times='ts'"):
        list(replay(Contents(SPECS[0]), [*rows, {"k": 1, "x": 1}], times="ts"))
    with pytest.raises(ClockError, match=r"time went back from 2\.5"):
        list(replay(Contents(SPECS[0]), [*rows, {"k": 1, "x": 1, "ts": 1.0}], times="ts"))


class Fails(Contents):
    def on_trigger(self, window, key):
        if window.newest(key)["x"] == 7:
            raise ValueError("seven")


def test_the_clock_is_where_the_row_was_that_failed():
    rows = rows_of([(0, 1)] * 12)
    running = Fails(SPECS[5]).open()
    with pytest.raises(ValueError, match="seven") as caught:
        running.insert_timed(rows, Times("ts"))
    assert any("tuple 8" in note for note in caught.value.__notes__)
    assert running.now == rows[7]["ts"]
    running.insert_timed(rows[8:], Times("ts"))
    assert running.windows[0].seen == 12


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[5], SPECS[6]], ids=str)
def test_an_interrupt_breaks_it_or_leaves_the_rows_before_it(spec):
    rows = rows_of([(i % 2, 1) for i in range(8)])

    def opened():
        made = Contents(spec).open()
        made.insert(rows[0])
        return made

    def states():
        for n in range(1, len(rows) + 1):
            whole = opened()
            whole.insert_timed(rows[1:n], Times("ts"))
            yield whole.snapshot()["windows"]
            if n < len(rows):
                whole.advance(rows[n]["ts"])
                yield whole.snapshot()["windows"]

    sound = list(states())
    change = partial(opened().insert_timed, rows[1:], Times("ts"))
    total = instructions(change)
    found = set()
    for nth in range(1, total, max(1, total // (150 if is_thorough() else 25))):
        running = opened()
        assert interrupted(nth, partial(running.insert_timed, rows[1:], Times("ts")))
        try:
            state = running.snapshot()["windows"]
        except BrokenStateError:
            found.add("broken")
            continue
        assert state in sound
        found.add("sound")
    assert "sound" in found


# -- single rows ----------------------------------------------------------------------------------

TOTAL = Aggregate(Tumbling(Count(3), by="k"), total=agg.sum("x"))
ROWS = [{"k": i % 2, "x": i} for i in range(12)]


def opened(op, first=ROWS[0]):
    """A running operator that has taken a row, its `insert` from then on, and its output."""
    running, out = op.open(), list[Any]()
    running.connect(0, out.append)
    running.insert(first)
    return running, running.insert, out


def test_insert_and_that_of_the_window_are_one_function():
    running, insert, out = opened(TOTAL)
    assert vars(running)["insert"] is insert
    for row in ROWS[1:]:
        insert(row)
    assert out == list(replay(TOTAL, ROWS))
    assert running.windows[0].seen == len(ROWS)


def test_a_function_that_was_taken_before_the_end_knows_of_the_end():
    running, insert, _ = opened(TOTAL)
    running.finish()
    with pytest.raises(OperatorError, match="its input has ended"):
        insert(ROWS[1])
    assert running.windows[0].seen == 1


def test_it_finds_the_state_that_batches_and_snapshots_have_left():
    running, insert, _ = opened(TOTAL)
    running.insert_batch(pa.RecordBatch.from_pylist(ROWS[1:7] * 100))
    assert running.windows[0].state.in_arrays
    insert(ROWS[7])
    other, _, _ = opened(TOTAL)
    other.insert_many(ROWS[1:7] * 100)
    other.insert(ROWS[7])
    assert running.snapshot() == other.snapshot()
    other.restore(opened(TOTAL)[0].snapshot())
    running.restore(other.snapshot())
    insert(ROWS[1])
    assert running.windows[0].seen == 2


def test_it_calls_the_handlers_that_were_put_in_place_of_others():
    running, insert, _ = opened(TOTAL)
    state, fired = running.windows[0].state, []
    state.handlers = {"before_flush": lambda window, key: fired.append(key)}
    for row in ROWS[1:]:
        insert(row)
    assert fired == [0, 1, 0, 1]


def test_it_refuses_other_ports_and_handlers_that_call_it():
    class Again(Contents):
        again: Any = None

        def before_flush(self, window, key):
            self.again({"k": 9, "x": 0})

    running, insert, _ = opened(Again(Tumbling(Count(2), by="k")))
    running.operator.again = insert
    insert(ROWS[1])
    with pytest.raises(AccessError, match="called by a handler of this window"):
        insert(ROWS[2])
    with pytest.raises(ModelError, match="has no input 1"):
        insert(ROWS[3], 1)
    assert set(running.windows[0]) == {1}


def test_a_row_that_is_refused_is_said_as_before():
    def last(row):
        return row["x"][-1]

    spec = Tumbling(Count(9), by=last)
    running, insert, _ = opened(Contents(spec), {"x": [1]})
    with pytest.raises(IndexError) as caught:
        insert({"x": []})
    fresh = Contents(spec).open()
    fresh.insert({"x": [1]}, 0)
    with pytest.raises(IndexError) as expected:
        type(fresh).insert(fresh, {"x": []})
    assert caught.value.__notes__ == expected.value.__notes__
    insert({"x": [1]})
    assert running.windows[0].seen == 2


# -- the clock, moved by hand ---------------------------------------------------------------------


def general(running, now):
    """`advance` by way of the method that looks at all windows and timers."""
    Running.advance_micros(running, as_instant(now))


@pytest.mark.parametrize("spec", SPECS, ids=str)
@given(steps=STEPS, form=st.sampled_from(list(FORMS)))
def test_advance_by_hand_is_that_of_all_windows_and_timers(spec, steps, form):
    rows = rows_of(steps, FORMS[form])
    makers: list[Any] = [Contents, partial(Aggregate, n=agg.count(), sum=agg.sum("x"))]
    makers += [Watched] if isinstance(spec, Sliding) else []
    for make in makers:
        found = []
        for way in ("attribute", "taken early", "general"):
            running, out = make(spec).open(start=rows[0]["ts"]), list[Any]()
            running.connect(0, out.append)
            early = running.advance
            for row in rows:
                if way == "general":
                    general(running, row["ts"])
                else:
                    (running.advance if way == "attribute" else early)(row["ts"])
                assert running.micros == running.windows[0].state.now
                running.insert(row)
            found.append((out, running.now, running.due(), running.snapshot()))
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[1], SPECS[5], SPECS[6], SPECS[8]], ids=str)
def test_advance_and_that_of_the_window_are_one_function(spec):
    running, _, _ = opened(Contents(spec))
    assert "advance" in vars(running)
    running.advance(1)
    assert running.now == running.windows[0].now == 1


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[5]], ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), True, None, "soon", -1, 1.5])
def test_times_are_refused_in_the_same_words(spec, bad):
    running, _, _ = opened(Contents(spec))
    fresh = Contents(spec).open()
    for each in (running, fresh):
        each.advance(2)
    with pytest.raises(ClockError) as expected:
        fresh.advance(bad)
    with pytest.raises(ClockError) as caught:
        running.advance(bad)
    assert str(caught.value) == str(expected.value)
    assert running.now == 2


def test_an_advance_that_was_taken_before_knows_of_the_end_snapshots_and_batches():
    op = Aggregate(Tumbling(Time("3s"), by="k"), total=agg.sum("x"))
    running, insert, out = opened(op)
    advance = running.advance
    saved = running.snapshot()
    advance(2)
    running.restore(saved)
    assert running.now == 0
    advance(1)
    assert (running.now, running.windows[0].now) == (1, 1)
    running.insert_batch(pa.RecordBatch.from_pylist(ROWS * 100))
    assert running.windows[0].state.in_arrays
    advance(3)
    assert sorted(row["total"] for row in out) == [3000, 3600]
    insert(ROWS[1])
    running.finish()
    advance(9)
    assert running.now == 9
    assert len(out) == 2


def test_operators_with_more_on_the_clock_go_the_general_way():
    class Wakes(Contents):
        def on_advance(self):
            self.emit(woken=True)

    class Timed(Contents):
        def on_timer(self, key, at):
            self.emit(at=at)

    for op in (Wakes(SPECS[0]), Timed(SPECS[0])):
        assert "advance" not in vars(opened(op)[0])


@pytest.mark.search
@pytest.mark.parametrize("spec", [SPECS[0], SPECS[5], SPECS[6]], ids=str)
def test_an_interrupt_in_advance_breaks_it_or_leaves_it_as_before_or_after(spec):
    def prepared():
        running, insert, _ = opened(Contents(spec))
        insert(ROWS[1])
        running.advance(1.5)
        insert(ROWS[2])
        insert(ROWS[3])
        return running

    before, after = prepared(), prepared()
    after.advance(3.5)
    sound = [each.snapshot()["windows"] for each in (before, after)]
    total = instructions(partial(prepared().advance, 3.5))
    for nth in range(1, total, 1 if is_thorough() else 7):
        running = prepared()
        if not interrupted(nth, partial(running.advance, 3.5)):
            continue
        try:
            assert running.snapshot()["windows"] in sound
        except BrokenStateError:
            with pytest.raises(BrokenStateError):
                running.advance(9)
