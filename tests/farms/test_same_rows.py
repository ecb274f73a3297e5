"""Every farm gives what the operator gives: row for row, whatever workers and delays."""

import random
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.farms.farm_cases import (
    FARMS,
    OPERATORS,
    WINDOWS,
    Total,
    batches,
    by_key,
    cases,
    drawn_cases,
    made,
    operator_of,
    sent,
    slowly,
    stream,
    total_order,
    unlucky,
)
from tests.helpers.examples import examples
from windowlib import (
    Count,
    Delta,
    Event,
    Landmark,
    Session,
    Sliding,
    Time,
    Tumbling,
    advance,
    replay,
    restart,
)
from windowlib.farms import PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.evaluator import ColumnResults
from windowlib.farms.pool import CallerPool
from windowlib.farms.running_farm import RunningFarm
from windowlib.farms.virtual import VirtualPool
from windowlib.farms.worker import StoredPartial
from windowlib.operators import Aggregate, Skyline, TopK, agg
from windowlib.window.arrow import BatchRows

NAMES = [
    " / ".join([window, "by k" if by else "one", op, kind]) for window, by, op, kind in cases()
]


def check(case, seed, *, size=60, **more):
    window, by, operator, kind = case
    rng = random.Random(seed)
    op = operator_of(window, by, operator)
    options = {
        "workers": rng.randint(1, 4),
        "chunk": rng.choice([1, 3, 10, 100, Time("2s")]),
        **more,
    }
    farm = made(kind, op, **options)
    items = stream(seed, size, clock=True, puncts="punct" in window)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a clock that nothing moves
        expected, found = sent(op, items), sent(slowly(farm, seed), items)
    if total_order(window, operator, kind):
        assert expected == found
    else:
        assert by_key(expected) == by_key(found)


def sample():
    """Every 5th of the cases, of which every 6th is in a quick run."""
    for number in range(0, len(NAMES), 5):
        marks = () if number % 6 == 0 else pytest.mark.long
        yield pytest.param(cases()[number], id=NAMES[number], marks=marks)


@pytest.mark.parametrize("case", list(sample()))
def test_a_farm_sends_what_the_operator_sends(case):
    check(case, seed=NAMES.index(" / ".join([case[0], "by k" if case[1] else "one", *case[2:]])))


@given(drawn_cases, st.integers(0, 10**6), st.data())
@settings(max_examples=examples(150))
def test_whatever_the_workers_the_batches_and_the_scheduling(case, seed, data):
    scheduling = data.draw(st.sampled_from(["on-demand", "round-robin"]))
    batch = data.draw(st.integers(1, 4))
    check(case, seed, size=data.draw(st.integers(0, 80)), scheduling=scheduling, batch=batch)


@given(drawn_cases, st.integers(0, 10**6))
@settings(max_examples=examples(150))
def test_however_little_is_kept(case, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windowlib.farms.window_farm.ROOM", 4)
        patch.setattr("windowlib.farms.key_farm.SAVE", 3)
        check(case, seed, size=120)


@given(drawn_cases, st.integers(0, 10**6), st.data())
@settings(max_examples=examples(80))
def test_a_farm_that_is_saved_goes_on_where_it_was(case, seed, data):
    window, by, operator, kind = case
    op = operator_of(window, by, operator)
    farm = slowly(made(kind, op, workers=2, chunk=data.draw(st.sampled_from([1, 7, 50]))), seed)
    items = stream(seed, 50, clock=True, puncts="punct" in window)
    cut = data.draw(st.integers(0, len(items)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sent(op, items)
        found = sent(farm, [*items[:cut], restart(), *items[cut:]])
    if total_order(window, operator, kind):
        assert expected == found
    else:
        assert by_key(expected) == by_key(found)


@given(drawn_cases, st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([1, 3, 10]))
@settings(max_examples=examples(200))
def test_rows_survive_deaths_and_resizes(case, seed, workers, chunk):
    window, by, operator, kind = case
    op = operator_of(window, by, operator)
    farm, resized = unlucky(made(kind, op, workers=workers, chunk=chunk), seed)
    items = stream(seed, 60, clock=True, puncts="punct" in window)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr("windowlib.farms.key_farm.SAVE", 3)
        expected, found = sent(op, items), sent(farm, resized(items))
    if total_order(window, operator, kind):
        assert expected == found
    else:
        assert by_key(expected) == by_key(found)


GROWING = [
    case
    for case in cases()
    if case[0].startswith(("event session", "event landmark")) and "pane" in case[3]
]


@given(st.sampled_from(GROWING), st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=examples(100))
def test_slices_of_windows_that_grow_are_those_of_the_operator(case, seed, grain, merged):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windowlib.farms.pane_farm.GRAIN", grain)
        patch.setattr("windowlib.farms.pane_farm.MERGED", merged)
        patch.setattr("windowlib.farms.pane_farm.KEYS", 4)
        check(case, seed, size=120)


@pytest.mark.parametrize(
    ("window", "least"),
    [
        (Landmark(Event("at", 100), since=0, watermark=6, late="drop"), 30),
        (Session(Event("at"), gap=5, watermark=6, late="drop"), 1),
    ],
)
def test_each_tuple_of_windows_that_grow_is_computed_once(window, least):
    rng, op, tasks = random.Random(1), Total(window), list[Any]()
    items = [{"at": i // 3 + rng.randint(-3, 3) + 10, "x": i} for i in range(10_000)]

    class Watched(VirtualPool):
        def send(self, worker, work, args, oldest):
            tasks.append((work, args))
            super().send(worker, work, args, oldest)

    farm = PaneFarm(op, workers=2, chunk=500)
    with farm.open(pool=lambda n, setup: Watched(n, setup, cost=lambda *_: 1e-3)) as run:
        out = list[Any]()
        run.connect(0, out.append)
        run.insert_many(items)
        run.drain()
        before = sum(size(args) for work, args in tasks if work == "partials")
        run.finish()
    assert [row for _, row in sent(op, items)] == out
    assert len(out) >= least
    assert sum(size(args) for work, args in tasks if work == "partials") == len(items)
    assert before > 0.8 * len(items)  # also of a session that goes on
    assert max(len(args[1]) for work, args in tasks if work == "finish") < 25


@pytest.mark.parametrize("kind", [PaneFarm, WindowPartition])
def test_times_in_an_hour_that_clocks_show_twice(kind):
    start = datetime(2026, 10, 25, tzinfo=UTC)
    times = [start + timedelta(minutes=10 * n) for n in range(24)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "Europe/Rome")), "x": range(24)})
    op = Aggregate(Sliding(Count(8), every=Count(4)), high=agg.max("x"), last=agg.max("ts"))
    run, out = kind(op, workers=2, when="always").open(pool=CallerPool), list[Any]()
    run.connect(0, out.append)
    run.insert_batch(table)
    run.finish()
    assert list(replay(op, table)) == out


def size(args):
    """How many tuples a task of slices has."""
    return sum(extent.hi - extent.lo for extent in args[1])


@pytest.mark.parametrize(
    "window", ["event sliding", "event landmark", "event session", "count count"]
)
@pytest.mark.parametrize("kind", ["pane", "active", "agnostic"])
def test_a_farm_that_goes_back_forgets_what_it_has_seen_since(window, kind):
    op = operator_of(window, False, "columns")
    if made(kind, op) is None:
        pytest.skip("workers that own windows of event time")
    rows = stream(2, 60, clock=False, puncts=False)
    others = [{**row, "x": -row["x"]} for row in rows]
    out = list[Any]()
    with slowly(made(kind, op, workers=2, chunk=5), 1).open() as run:
        run.connect(0, out.append)
        run.insert_many(rows[:20])
        state = run.snapshot()
        run.insert_many(rows[20:])
        run.drain()
        run.restore(state)
        del out[:]
        run.insert_many(others[20:])
        run.finish()
    wanted = [row for _, row in sent(op, rows[:20] + others[20:])]
    assert out
    assert wanted[-len(out) :] == out


ACTIVE = ["tumbling time", "tumbling delta", "tumbling punct", "tumbling either", "time time"]


@pytest.mark.parametrize("window", [*ACTIVE, "count count"])
@pytest.mark.parametrize("operator", ["folded", "tuples"])
def test_active_workers_have_most_tuples_before_a_window_fires(window, operator):
    op, sends = operator_of(window, True, operator), list[Any]()
    workers: list[Any] = []

    class Watched(VirtualPool):
        def send(self, worker, work, args, oldest):
            workers[:] = self._workers
            sends.append((work, args))
            super().send(worker, work, args, oldest)

    farm = made("active", op, workers=2, chunk=1)
    assert farm is not None
    farm.__dict__["open"] = lambda start=0: type(farm).open(
        farm, start, pool=lambda n, setup: Watched(n, setup, cost=lambda *_: 0.1)
    )
    items = stream(4, 200, clock=True, puncts="punct" in window)
    items.append(advance(1000))
    assert sent(op, items) == sent(farm, items)
    closes = [args for work, args in sends if work == "close"]
    held = sum(extent.hi - extent.lo for *_, extent in closes)
    assert sum(max(0, taken) for _, taken, _, _ in closes) > 0.5 * held > 50
    still = [name for worker in workers for name in worker._open_windows]
    assert len(still) <= 4  # windows that never fired


def test_rows_that_waited_while_time_passed_belong_to_the_slice_of_when_they_came():
    op = operator_of("tumbling time", True, "columns")
    first, second, third, other, fourth, last = ({"k": k, "x": 1} for k in "aaabab")
    # The first two are given away at 7 s, when their window has ended, and are gone after it.
    before = [advance(4), first, second, advance(7), third, other]
    items = [*before, restart(), fourth, last, advance(13)]
    farm = made("pane", op, workers=2, chunk=100, batch=2)
    assert sent(op, items) == sent(slowly(farm, 0), items)


@pytest.mark.parametrize("kind", ["key", "agnostic", "pane"])
@pytest.mark.parametrize("window", ["count count", "tumbling time", "event keys"])
@pytest.mark.parametrize("operator", ["columns", "merged", "holistic"])
@pytest.mark.parametrize("workers", [1, 3])
def test_state_is_for_any_number_of_workers(window, kind, operator, workers):
    op = operator_of(window, True, operator)
    if made(kind, op) is None:
        pytest.skip("panes of a function that is not associative")
    items = [row for row in stream(5, 80, clock=False, puncts=False) if isinstance(row, dict)]
    found, want = list[Any](), list[Any]()
    running = op.open()
    running.connect(0, want.append)
    before, behind = (slowly(made(kind, op, workers=n), 1).open() for n in (2, workers))
    for run in (before, behind):
        run.connect(0, found.append)
    with before, behind:
        before.insert_many(items[:40])
        behind.restore(before.snapshot())
        behind.insert_many(items[40:])
        behind.advance(10)
        behind.finish()
    running.insert_many(items)
    running.advance(10)
    running.finish()
    assert len(want) >= (4 if operator == "columns" else 2)  # which sends rows of empty windows
    assert by_key([(0, row) for row in want]) == by_key([(0, row) for row in found])


@pytest.mark.parametrize("kind", ["agnostic", "pane", "partition"])
def test_windows_of_event_time_have_their_bounds_in_large_batches_too(kind):
    window = Tumbling(Event("at", 50), by="k", watermark=5, late="drop")
    op = Aggregate(window, {"from": agg.window_start(), "n": agg.count(), "last": agg.last("x")})
    items = stream(7, 3000, clock=False, puncts=False)
    found = sent(slowly(made(kind, op, workers=2, chunk=3000), 7), items)
    assert sent(op, items) == found


def test_a_farm_by_key_says_whether_its_order_is_that_of_the_operator():
    keyed = [case for case in cases() if case[3] == "key"]
    assert len(keyed) > 50
    for window, by, operator, kind in keyed:
        farm = made(kind, operator_of(window, by, operator))
        assert farm is not None
        choice = farm.choice
        assert choice.ordered == total_order(window, operator, kind), (window, operator)
        assert choice.ordered == ("worker by worker" not in choice.reason)


def test_several_rounds_are_gone_through():
    items = stream(3, 40, clock=False, puncts=False)
    rounds = {
        row["round"] for _, row in sent(operator_of("tumbling count", False, "rounds"), items)
    }
    assert {0, 1} <= rounds


@pytest.mark.parametrize("batches", [True, False])
def test_chunks_by_time_have_the_rows_of_a_stretch(batches):
    op = Aggregate(Sliding(Time("4s"), every=Time("2s")), m=agg.median("x"))
    times = [0.5, 1, 1.9, 2, 2.5, 5, 5.5, 7.9, 8]
    farm = slowly(made("agnostic", op, workers=2, chunk=Time("2s")), 1)
    with farm.open() as run:
        if batches:
            at = pa.array([int(1e6 * t) for t in times], pa.duration("us"))
            run.insert_batch(pa.record_batch({"at": at, "x": range(9)}), times="at")
        else:
            for i, now in enumerate(times):
                run.advance(now)
                run.insert({"x": i})
            run.advance(9)
            run.poll()
        assert [chunk.rows for chunk in run.chunks.chunks] == [3, 2, 2, 1, 1]


@given(drawn_cases, st.integers(0, 10**6))
@settings(max_examples=examples(60))
def test_however_small_the_parts_that_workers_hand_over_themselves(case, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windowlib.farms.worker.LARGE", 0)
        check(case, seed, size=80)


def test_large_parts_do_not_go_through_the_parent(monkeypatch):
    op = operator_of("count count", False, "columns")
    farm = made("pane", op, workers=2, chunk=50)
    items = stream(1, 40, clock=False, puncts=False)
    for large, stored in ((1 << 12, False), (0, True)):
        monkeypatch.setattr("windowlib.farms.worker.LARGE", large)
        with slowly(farm, 1).open() as run:
            out = list[Any]()
            run.connect(0, out.append)
            run.insert_many(items)
            run.drain()
            (slices,) = run.dispatch._slices.values()
            parts = [part for each in slices for part in each.partials]
            assert stored == any(isinstance(part, StoredPartial) for part in parts)
            files = list(Path(run.chunks.folder).glob("part-*"))
            assert len(files) == (len(parts) if stored else 0)
            ((_, kept),) = run.snapshot()["state"]["dispatch"]
            assert all(isinstance(part, list) for each in kept for part in each[4])
        assert [row for _, row in sent(op, items)] == out


COLUMNS = ["merged", "groups", "holistic", "some", "skyline", "top delta", "sort"]


@pytest.mark.parametrize("operator", COLUMNS)
@pytest.mark.parametrize("kind", ["agnostic", "pane", "partition", "active", "key"])
def test_batches_that_come_out_are_those_of_the_operator(operator, kind):
    op = operator_of("count count" if operator != "sort" else "tumbling count", True, operator)
    if made(kind, op) is None:
        pytest.skip("no such farm")
    given = batches(stream(11, 90, clock=False, puncts=False), 30)
    alone = op.open()
    with slowly(made(kind, op, workers=2), 3).open() as run:
        for batch in given:
            wanted, found = alone.process_batch(batch), run.process_batch(batch)
            assert wanted.equals(found), (wanted, found)


@pytest.mark.parametrize(
    ("operator", "kind", "columns"),
    [
        ("holistic", "agnostic", True),
        ("groups", "agnostic", True),
        ("skyline", "agnostic", True),
        ("skyline", "pane", True),
        ("some", "agnostic", True),
        ("tuples", "agnostic", False),
    ],
)
def test_results_cross_as_columns_if_they_are_wanted_so(operator, kind, columns, monkeypatch):
    op, seen = operator_of("count count", False, operator), list[bool]()
    deliver = RunningFarm.deliver

    def watched(run, number, items):
        seen.append(isinstance(items, BatchRows | ColumnResults))
        deliver(run, number, items)

    monkeypatch.setattr(RunningFarm, "deliver", watched)
    (batch,) = batches(stream(11, 60, clock=False, puncts=False), 60)
    with slowly(made(kind, op, workers=2), 3).open() as run:
        run.process_batch(batch)
        assert set(seen) == {columns}
        del seen[:]
        run.insert_batch(batch)
        run.drain()
        assert set(seen) == {False}
        del seen[:]
        run.connect(0, lambda row: None, lambda: None)  # punctuations are between rows
        run.process_batch(batch)
        assert set(seen) == {False}


def test_most_combinations_are_allowed_and_some_are_not():
    every = len(WINDOWS) * 2 * len(OPERATORS) * len(FARMS)
    assert every / 3 < len(cases()) < every


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("every", [Count(1), Count(2), Delta("ts", 3)], ids=str)
@pytest.mark.parametrize("farm", [WindowFarm, PaneFarm, WindowPartition])
def test_tuples_may_leave_from_the_middle_of_a_window(farm, every, by):
    rng, window = random.Random(3), Sliding(Delta("ts", 10), every=every, by=by)
    rows = [{"k": rng.choice("ab"), "ts": rng.randrange(60), "x": n} for n in range(80)]
    high = agg.sum("x") if farm is not WindowFarm else agg.collect("x")
    op = Aggregate(window, high=high, n=agg.count())
    with farm(op, workers=2, chunk=64, when="always").open(pool=CallerPool) as running:
        out: list[Any] = []
        running.connect(0, out.append)
        running.insert_batch(pa.RecordBatch.from_pylist(rows))
        running.finish()
    assert list(replay(op, rows)) == out


def test_nan_is_one_group_whichever_worker_had_it():
    op = Aggregate(Tumbling(Count(12)), group_by=("k", "x"), n=agg.count(), high=agg.max("x"))
    values = [float("nan"), 1.0, None, float("nan")]
    rows = [{"k": k % 2, "x": values[k % 4]} for k in range(48)]
    farm = WindowPartition(op, workers=3, parts=3, chunk=4)
    assert list(map(repr, replay(op, rows))) == [repr(row) for row in sent_rows(farm, rows)]


def sent_rows(farm, rows):
    """What comes out of workers that take and give bytes, as processes do."""
    return [row for _, row in sent(slowly(farm, 1), rows) if isinstance(row, dict)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array(["a", "b", None], pa.string_view()),
        pa.array([["a"], None, []], pa.list_(pa.string_view())),
        pa.array([{"a": "x"}, {"a": None}, None], pa.struct({"a": pa.string_view()})),
        pc.run_end_encode(pa.array([1, 1, None])),
        pa.array([1, 2, None], pa.uint64()),
    ],
    ids=lambda values: str(values.type),
)
def test_rows_and_batches_of_encoded_columns_are_in_one_window(values):
    op = Aggregate(Sliding(Count(7), every=Count(2)), of=agg.collect("x"))
    batch, out = pa.record_batch({"x": values}), list[Any]()
    rows = batch.to_pylist()
    with WindowFarm(op, workers=2, chunk=2, when="always").open(pool=CallerPool) as running:
        running.connect(0, out.append)
        for _ in range(4):
            running.insert_many(rows)
            running.insert_batch(batch)
        running.finish()
    assert list(map(repr, replay(op, 8 * rows))) == list(map(repr, out))


@pytest.mark.parametrize(
    "op",
    [TopK(Sliding(Count(6), every=Count(2)), by="ts", k=2), Skyline(Tumbling(Count(7)), "ts")],
    ids=repr,
)
@pytest.mark.parametrize("farm", [PaneFarm, WindowPartition])
def test_parts_of_preference_queries_may_have_columns_of_other_types(farm, op):
    batch = pa.record_batch(
        {"ts": pa.array([1, 2, 3, 9], pa.uint8()), "s": pa.array(list("abca")).dictionary_encode()}
    )
    out: list[Any] = []
    with farm(op, workers=2, chunk=3, when="always").open(pool=CallerPool) as running:
        running.connect(0, out.append)
        for _ in range(4):
            running.insert_batch(batch)
            running.insert_many(batch.to_pylist())
        running.finish()
    assert list(replay(op, 8 * batch.to_pylist())) == out
