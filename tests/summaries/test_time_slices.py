"""Windows that time evicts from and triggers keep slices of time, and nothing else can tell.

The oracles: the reference engine, which keeps tuples, and all tuples of the stream, of which those
with stamps in [tick - period, tick) are looked for anew at every tick.
"""
# ruff: noqa: SIM300 - asserts read expected first

import json
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.window.test_clock import HandClock
from windowlib import (
    AccessError,
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    SchemaError,
    Sliding,
    SlidingWindow,
    StateVersionError,
    Time,
    TupleCount,
    WindowEvents,
    dump_state,
    load_state,
    replay,
    summarizers,
)
from windowlib.columnar import handover
from windowlib.operators import Aggregate, agg

READY = {
    "n": summarizers.count(),
    "sum": summarizers.sum("x"),
    "low": summarizers.min("x"),
    "high": summarizers.max("x"),
    "mean": summarizers.mean("x"),
}


def seconds(length):
    return Time(timedelta(seconds=length))


class Reading(WindowEvents[Any, Any]):
    """Emits every window that is processed: its time, key, size and summary."""

    def on_trigger(self, window, key):
        value = window.summary(key).value()
        self.emit((window.now, key, window.size(key), value))


def made(spec, engine="generated", **more):
    return SlidingWindow(spec, events=Reading(), summarizer=READY, engine=engine, **more)


def value(values):
    """What the summaries of a window of these values are; nulls only count."""
    known = [x for x in values if x is not None]
    n = len(known)
    return {
        "n": len(values),
        "sum": sum(known) if n else None,
        "low": min(known, default=None),
        "high": max(known, default=None),
        "mean": float(Fraction(sum(known), n)) if n else None,
    }


def windows_by_hand(rows, period, beat, until):
    """All windows of rows (stamp, key, value), by looking for the tuples of each of them."""
    tick, found = beat, []
    while tick <= until:
        held: dict[Any, list[Any]] = {}
        order: dict[Any, int] = {}
        for number, (stamp, key, _) in enumerate(rows):
            if stamp < tick:  # a partition is born with the first tuple that finds it empty
                before = [s for s, k, _ in rows[:number] if k == key]
                if not before or stamp - before[-1] > period:
                    order[key] = number
        for stamp, key, x in rows:
            if tick - period <= stamp < tick:
                held.setdefault(key, []).append(x)
        for key in sorted(held, key=order.__getitem__):
            found.append((tick, key, len(held[key]), value(held[key])))
        if not held:
            found.append((tick, None, 0, value([])))
        tick += beat
    return found


# -- slices are brute force -----------------------------------------------------------------------

QUARTERS = st.sampled_from([0, 0, 0.25, 0.25, 0.5, 1, 1.75, 4])
VALUES = st.one_of(st.integers(-9, 9), st.none())
LENGTHS = st.sampled_from([0.25, 0.5, 0.75, 1, 1.25, 2, 2.5])


@st.composite
def stamped(draw, most=40):
    """Rows as (stamp, key, value), in order of time."""
    now, rows = 0.0, []
    for _ in range(draw(st.integers(1, most))):
        now += draw(QUARTERS)
        rows.append((now, draw(st.sampled_from("ab")), draw(VALUES)))
    return rows


@given(stamped(), LENGTHS, LENGTHS, QUARTERS)
@settings(max_examples=examples(150), deadline=None)
def test_every_window_is_that_of_the_tuples(rows, period, beat, rest):
    window = made(Sliding(seconds(period), every=seconds(beat), by="k"))
    assert " slices " in window.explain()
    for stamp, key, x in rows:
        window.advance(stamp)
        window.insert({"k": key, "x": x})
        window.state.check()
    until = rows[-1][0] + rest
    window.advance(until)
    assert windows_by_hand(rows, period, beat, until) == window.events.emitted


# -- slices are the reference engine --------------------------------------------------------------

FORGETS = st.sampled_from(
    [None, None, PartitionAge("1s"), PartitionAge("3s"), PartitionCount(1), PartitionCount(2)]
)
KEYS = st.sampled_from([True, 1, 1.0, Decimal(1), 0.0, -0.0, "b", None, float("nan")])


@st.composite
def runs(draw):
    """Steps: rows, pauses, refused rows, and windows that go on in another one."""
    steps: list[Any] = []
    now = 0.0
    for _ in range(draw(st.integers(1, 30))):
        now += draw(QUARTERS)
        kind = draw(st.sampled_from(["row"] * 6 + ["many", "advance", "bytes", "json", "odd"]))
        keys = draw(st.lists(KEYS, min_size=1, max_size=3 if kind == "many" else 1))
        rows = [{"k": key, "x": draw(VALUES)} for key in keys]
        steps.append((kind, now, rows))
    return steps


def moved(window, kind):
    """The same window after a restart."""
    state = window.snapshot()
    state = load_state(dump_state(state)) if kind == "bytes" else state
    if kind == "json":
        with suppress(TypeError):  # JSON has no Decimals for keys
            state = json.loads(json.dumps(state))
    other = made(window.spec)
    other.restore(state)
    other.events.emitted = window.events.emitted
    return other


def known(window):
    """All that can be seen of a window between two triggers but its sizes."""
    keys = list(window.keys())
    taken = [window.insertions(key) for key in keys]
    return [*map(repr, keys)], taken, window.seen, window.now


@given(runs(), LENGTHS, LENGTHS, FORGETS)
@settings(max_examples=examples(250), deadline=None)
def test_nothing_but_sizes_tells_slices_from_tuples(steps, period, beat, forget):
    spec = Sliding(seconds(period), every=seconds(beat), by="k", forget=forget)
    one, other = made(spec, "reference"), made(spec)
    for kind, now, rows in steps:
        for window in (one, other):
            window.advance(now)
        if kind == "odd" and forget is None:  # the reference engine refuses it at triggers
            with pytest.raises(SchemaError):
                other.insert({"k": rows[0]["k"], "x": object()})
        elif kind in ("row", "many"):
            for window in (one, other):
                window.insert_many(rows)
        elif kind != "advance":
            other = moved(other, kind)
        assert known(one) == known(other)
        assert all(one.size(key) <= other.size(key) for key in one)
        other.state.check()
    assert repr(one.events.emitted) == repr(other.events.emitted)


def test_equal_keys_are_told_as_the_key_that_a_partition_was_born_with():
    window = made(Sliding(seconds(2), every=seconds(1), by="k"))
    for stamp, key in ((0, True), (0.5, 1), (4, 1.0), (8, Decimal(1))):
        window.advance(stamp)
        window.insert({"k": key, "x": 1})
    window.advance(9)
    told = [key for _, key, size, _ in window.events.emitted if size]
    assert [True, True, True, True, True] == told
    assert {bool} == {type(key) for key in told}


# -- how much is kept -----------------------------------------------------------------------------


def slices(window, key=None):
    """How many slices a partition holds, closed ones and the open one."""
    (part,) = window.snapshot()["parts"]
    assert part["data"] == part["stamps"] == []
    closed, _, (opened, _), _ = part["summary"]
    return len(closed) + bool(opened)


def test_an_hour_every_minute_keeps_60_slices_and_not_36000_tuples():
    most = []
    op = Aggregate(Sliding(Time("1h"), every=Time("1min")), m=agg.mean("x"), n=agg.count())
    running, out = op.open(), list[Any]()
    running.connect(0, out.append)
    window = running.windows[0]
    for i in range(45_000):  # ten a second
        running.advance(i / 10)
        running.insert({"x": i % 7})
        if i % 600 == 599:
            most.append(slices(window))
    running.advance(4500)
    assert 60 == slices(window)
    assert 61 == max(most)  # with the one that is open
    assert not window.state.arrivals
    assert "keeps     60 slices per partition, for agg.mean" in window.explain()
    assert [{"n": 36_000}] * 15 == [{"n": row["n"]} for row in out[-15:]]


@pytest.mark.parametrize(
    ("period", "beat", "kept"), [(60, 1, 60), (5, 2, 5), (7, 3, 5), (2, 2, 1), (2, 5, 1), (4, 3, 3)]
)
def test_explain_says_how_many_slices_make_a_window(period, beat, kept):
    window = made(Sliding(seconds(period), every=seconds(beat)))
    assert f"keeps     {kept} slices per partition" in window.explain()
    for i in range(40 * period):
        window.advance(i / 4)
        window.insert({"x": i})
    window.advance(100 * beat * period)
    assert kept >= max(size for *_, size, _ in window.events.emitted) / 4 / beat


def test_slices_that_a_handler_does_not_read_leave_all_the_same():
    class Quiet(WindowEvents[Any, Any]):
        def on_trigger(self, window, key):
            if window.now == 1000:
                self.emit(window.summary(key).value())

    spec = Sliding(seconds(5), every=seconds(2))
    window = SlidingWindow(spec, events=Quiet(), summarizer=READY["n"])
    most = 0
    for i in range(4000):
        window.advance(i / 4)
        window.insert({"x": i})
        if i % 50 == 0:
            most = max(most, slices(window))
    window.advance(1000)
    assert [20] == window.events.emitted
    assert 3 * 5 + 2 >= most  # those of three windows, at most


WHOLE: dict[str, Any] = {
    "on_initial_full": ({"on_initial_full": lambda self, window, key: None}, {}),
    "after_insert": ({"after_insert": lambda self, window, tuple_, key: None}, {}),
    "without on_trigger": ({"on_trigger": WindowEvents.on_trigger}, {}),
    "counts them": ({}, {"forget": TupleCount(9), "by": "k"}),
}


@pytest.mark.parametrize("why", WHOLE)
def test_tuples_are_kept_where_somebody_could_tell(why):
    handlers, more = WHOLE[why]
    events = type("Own", (Reading,), handlers)()
    spec = Sliding(seconds(2), every=seconds(1), **more)
    window = SlidingWindow(spec, events=events, summarizer=READY["sum"])
    assert f"keeps     tuples, read by summarizers.sum('x'); no slices: {why}" in (
        window.explain().replace(str(more.get("forget")) + " ", "")
    ).replace("without on_trigger, ", "without on_trigger ")


def test_sketches_and_functions_of_all_values_keep_tuples():
    for function in (agg.median("x"), agg.approx_count_distinct("x"), agg.collect("x")):
        running = Aggregate(Sliding(Time("2s"), every=Time("1s")), m=function).open()
        reason = "a function whose results do not merge, or are large"
        assert f"no slices: {reason}" in running.windows[0].explain()


@pytest.mark.parametrize("every", [Count(3), Delta("x", 2)], ids=str)
def test_other_triggers_of_a_time_window_keep_tuples(every):
    running = Aggregate(Sliding(Time("2s"), every=every), s=agg.sum("x")).open()
    reason = f"a window of time(2) at {every} may begin at any tuple"
    assert f"no slices: {reason}" in running.windows[0].explain()


# -- access, clocks and odd values ----------------------------------------------------------------


def test_a_summary_is_read_at_ticks_and_refused_between_them():
    window = made(Sliding(seconds(2), every=seconds(1)))
    window.insert({"x": 3})
    with pytest.raises(AccessError, match="make up a window only while a trigger runs"):
        window.summary()
    window.advance(1)
    assert 3 == window.summary().value()["sum"]
    window.insert({"x": 4})
    with pytest.raises(AccessError):
        window.summary()
    assert 2 == window.size()
    with pytest.raises(AccessError, match="a summarizer stands for the tuples"):
        window[None]


def test_a_partition_leaves_when_its_newest_tuple_is_too_old():
    window = made(Sliding(seconds(2), every=seconds(5), by="k"))
    window.insert({"k": "a", "x": 1})
    window.advance(1)
    window.insert({"k": "b", "x": 1})
    assert 2.000001 == window.next_due
    window.insert({"k": "a", "x": 1})
    assert 3.000001 == window.next_due
    window.advance(3)
    assert ["a", "b"] == list(window)
    window.advance(3.000001)
    assert [] == list(window)
    assert 5 == window.next_due
    assert 3 == window.seen


def test_a_wall_clock_moves_slices_that_were_there_before():
    now = [100.0]
    window = made(Sliding(seconds(2), every=seconds(1)))
    window.insert({"x": 5})
    with HandClock(now=lambda: now[0]) as clock:
        clock.attach(window)
        window.insert({"x": 6})
        now[0] = 101.0
        clock.poll()
        now[0] = 104.0
        clock.poll()
    sizes = [(at, size) for at, _, size, _ in window.events.emitted]
    assert [(101.0, 2), (102.0, 2), (103.0, 0), (104.0, 0)] == sizes


def test_slices_that_do_not_mix_are_refused_when_they_are_read_and_forgotten_with_their_time():
    window = made(Sliding(seconds(2), every=seconds(1)))
    window.insert({"x": Decimal(1)})
    window.advance(1)
    window.insert({"x": 2.5})
    with pytest.raises(SchemaError):
        window.advance(2)
    again = made(window.spec)
    again.restore(load_state(dump_state(window.snapshot())))
    again.insert({"x": 3.5})
    again.advance(3)
    assert {"n": 2, "sum": 6.0} == {
        name: again.events.emitted[-1][3][name] for name in ("n", "sum")
    }


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60), st.integers(0, 59))
@settings(max_examples=examples(60), deadline=None)
@example([1e16, 1.0, -1e16, 0.1] * 5, 9)
def test_a_restart_changes_no_bit_of_a_sum_of_floats(values, cut):
    spec = Sliding(seconds(3), every=seconds(1))
    one, other = made(spec), made(spec)
    for i, x in enumerate(values):
        for window in (one, other):
            window.advance(i / 4)
            window.insert({"x": x})
        if i == cut:
            other = moved(other, "bytes")
    for window in (one, other):
        window.advance(len(values) / 4 + 4)
    assert repr(one.events.emitted[cut // 4 + 1 :]) == repr(other.events.emitted[cut // 4 + 1 :])


# -- snapshots ------------------------------------------------------------------------------------


def test_a_snapshot_that_has_tuples_goes_on_with_slices():
    spec = Sliding(seconds(5), every=seconds(2), by="k")
    kept: Any = SlidingWindow(spec, summarizer=READY)  # no handler, so that tuples are kept
    sliced, uninterrupted = made(spec), made(spec)
    rows = [(i * 0.7, {"k": "ab"[i % 3 > 1], "x": i}) for i in range(60)]
    for stamp, row in rows[:31]:
        for window in (kept, uninterrupted):
            window.advance(stamp)
            window.insert(row)
    saved = kept.snapshot()
    assert saved["parts"][0]["data"]
    sliced.restore(saved)
    sliced.state.check()
    before = len(uninterrupted.events.emitted)
    for stamp, row in rows[31:]:
        for window in (sliced, uninterrupted):
            window.advance(stamp)
            window.insert(row)
    assert uninterrupted.events.emitted[before:] == sliced.events.emitted
    with pytest.raises(StateVersionError, match="keeps="):
        SlidingWindow(spec, summarizer=READY).restore(sliced.snapshot())


@pytest.mark.parametrize("damage", ["order", "size", "newest", "none", "text"])
def test_damaged_slices_are_refused_and_change_nothing(damage):
    window = made(Sliding(seconds(5), every=seconds(1)))
    for i in range(12):
        window.advance(i / 2)
        window.insert({"x": i})
    state = json.loads(json.dumps(window.snapshot()))
    closed = state["parts"][0]["summary"][0]
    if damage == "order":
        closed.reverse()
    elif damage == "size":
        closed[0][1] = 0
    elif damage == "none":
        state["parts"][0]["newest"] = []
    else:
        state["parts"][0]["newest"] = ["word"] if damage == "text" else [0]
    other = made(window.spec)
    other.insert({"x": 1})
    before = other.snapshot()
    with pytest.raises(StateVersionError, match="damaged"):
        other.restore(state)
    assert before == other.snapshot()


# -- batches --------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Any] = {
    "n": agg.count(),
    "s": agg.sum("x"),
    "v": agg.var("x"),
    "first": agg.first("k"),
    "last": agg.last("x"),
    "top": agg.arg_max("k", by="x"),
}
SCHEMA = pa.schema({"ts": pa.float64(), "k": pa.string(), "x": pa.int64()})


@pytest.fixture
def eager(monkeypatch):
    """Batches go to arrays however short they are."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(handover, "MIN_ROWS_PER_TICK", 0)


@pytest.mark.parametrize("cut", [5, 100])
@pytest.mark.parametrize(("period", "beat"), [(3, 1), (5, 2), (1, 4)])
@pytest.mark.parametrize("form", ["parts", "arrays"])
def test_batches_keep_slices_and_give_the_same_rows(eager, cut, period, beat, form):
    op = Aggregate(Sliding(seconds(period), every=seconds(beat), by="k"), **FUNCTIONS)
    rows = [
        {"ts": i * 0.3 + 9 * (i > 150), "k": "abc"[i * i % 3], "x": i * 7 % 11} for i in range(300)
    ]
    single = list(replay(op, rows, times="ts"))
    running, out = op.open(), list[Any]()
    for lo in range(0, len(rows), cut):
        running.connect(0, out.append)
        part = pa.RecordBatch.from_pylist(rows[lo : lo + cut], SCHEMA)
        running.insert_batch(part, times="ts")
        window = running.windows[0]
        assert window.state.in_arrays
        assert "columnar: slices of time, side by side" in window.explain()
        if lo % 3 == 0:
            state = load_state(dump_state(running.snapshot(arrays=form == "arrays")))
            running = op.open()
            running.restore(state)
    assert single == out


def test_a_dump_of_slices_is_small(eager):
    op = Aggregate(Sliding(Time("1h"), every=Time("1min")), m=agg.mean("x"), n=agg.count())
    running = op.open()
    table = pa.table({"ts": [i / 10 for i in range(40_000)], "x": [i % 7 for i in range(40_000)]})
    running.insert_batch(table, times="ts")
    (window,) = running.snapshot(arrays=True)["windows"]
    assert "time_sliced" == window["arrays"]["form"]
    assert 60 <= window["arrays"]["content"]["slices"]["size"] <= 62
    assert 8_000 > len(dump_state(window))


@pytest.mark.parametrize("damage", ["order", "functions", "missing", "ids"])
def test_damaged_arrays_of_slices_are_refused(eager, damage):
    op = Aggregate(Sliding(seconds(3), every=seconds(1), by="k"), s=agg.sum("x"))
    running = op.open()
    rows = [{"ts": i / 4, "k": "ab"[i % 2], "x": i} for i in range(40)]
    running.insert_batch(pa.RecordBatch.from_pylist(rows, SCHEMA), times="ts")
    state = running.snapshot(arrays=True)
    saved = state["windows"][0]["arrays"]["content"]["slices"]
    if damage == "order":
        saved["ends"] = saved["ends"][::-1].copy()
    elif damage == "functions":
        saved["functions"] = []
    elif damage == "missing":
        saved["functions"][0]["planes"][0] = None
    else:
        saved["ids"] = saved["ids"] + 5
    with pytest.raises(StateVersionError, match="damaged"):
        op.open().restore(state)


def test_slices_that_64_bits_cannot_number_are_for_the_event_engine(eager):
    """A window of a thousand years, with rows at both ends of it, and many keys."""
    op = Aggregate(Sliding(Time("365000d"), every=Time("36500d"), by="k"), n=agg.count())
    stamps = [*range(200), *(3.1536e10 + i for i in range(200))]
    rows = [{"ts": float(ts), "k": f"k{i % 200}"} for i, ts in enumerate(stamps)]
    wanted = list(replay(op, rows, times="ts"))
    running, out = op.open(), list[Any]()
    running.connect(0, out.append)
    schema, told = pa.schema({"ts": pa.float64(), "k": pa.string()}), 0
    for lo in range(0, 400, 130):
        part = pa.RecordBatch.from_pylist(rows[lo : lo + 130], schema)
        running.insert_batch(part, times="ts")
        told += "too many partitions for such a period" in running.windows[0].explain()
        running.snapshot(arrays=True)
    assert wanted == out
    assert 10 * 200 == len(out)
    assert told
