"""A farm that decides where it works: the same rows wherever and whenever it moves."""
# ruff: noqa: SIM300 - asserts read expected first

import itertools
import random
import subprocess
import sys
import time
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.farms.farm_cases import (
    Spread,
    by_key,
    drawn_cases,
    made,
    operator_of,
    sent,
    stream,
    total_order,
)
from tests.helpers.examples import examples
from windowlib import Count, Operator, OperatorModel, Sliding, Time, Tumbling, replay
from windowlib.farms import KeyFarm, WindowFarm, adaptive, farm
from windowlib.farms.adaptive import AdaptiveFarm
from windowlib.farms.scheduler import Task
from windowlib.farms.virtual import VirtualPool
from windowlib.operators import Aggregate, agg


class Handler(Operator):
    """The tuples of a window, by a handler that gets them all."""

    model = OperatorModel(windows=[Tumbling, Sliding])

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit(k=key, held=[row["x"] for row in window[key]])

    before_flush = on_trigger


class Moving(AdaptiveFarm):
    """Moves whenever it can, after so many calls; its processes are virtual."""

    every = 3

    def insert(self, row: Any, port: int = 0) -> None:
        self._timed(1, self.current.insert, row, port)

    def insert_many(self, rows: Any, port: int = 0) -> None:
        for row in rows:
            self.insert(row, port)

    def _skip_timing(self) -> None:
        pass

    def _record_time(self, rows: int, seconds: float, *, waited: bool = False) -> None:
        self.rows += rows
        if (
            self._alone_reason is None
            and self.rows
            and self.rows // self.every > len(self.decisions)
        ):
            self._move()

    def _move(self) -> None:
        if self.place == "caller":
            self._alone_reason = self._move_to_farm()
            self._decide(
                "trial" if self._alone_reason is None else "caller", "as the test wants it"
            )
        elif self.place == "trial":
            pool = VirtualPool(self.workers, self.current.setup, cost=lambda *_: random.random())
            pool.waited = 0.0  # type: ignore[attr-defined]
            self.current.switch_pool(pool, self.workers)
            self._decide("workers", "as the test wants it")
        else:
            self._move_to_operator("as the test wants it")


def moving(chosen: Any, every: int) -> Any:
    """A farm that opens as one that moves."""

    def open_(start: Any = 0) -> Any:
        run = Moving(chosen, start)
        run.every = every
        opened.append(run)
        return run

    opened: list[Moving] = []
    chosen.__dict__["open"] = open_
    return chosen, opened


@given(drawn_cases, st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 80))
@example(case=("event early", False, "skyline", "windows of parts"), seed=0, every=1, size=2)
@settings(max_examples=examples(60))
def test_whenever_it_moves_the_rows_are_those_of_the_operator(case, seed, every, size):
    window, by, operator, kind = case
    op = operator_of(window, by, operator)
    chosen, _ = moving(made(kind, op, workers=2, chunk=3), every)
    items = stream(seed, size, clock=True, puncts="punct" in window)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a clock that nothing moves
        expected, found = sent(op, items), sent(chosen, items)
    if total_order(window, operator, kind):
        assert expected == found
    else:
        assert by_key(expected) == by_key(found)


WINDOWS = [
    Tumbling(Count(4), by="k"),
    Sliding(Count(5), every=Count(2), by="k"),
    Sliding(Count(5), every=Count(2), partial="emit"),
    Sliding(Time("4s"), every=Time("1s"), by="k"),
    Sliding(Time("4s"), every=Count(3)),
    Tumbling(Time("3s")),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_handler_moves_there_and_back(window, seed):
    op = Handler(window)
    chosen, opened = moving(WindowFarm(op, workers=3, chunk=2), every=4 + seed)
    items = stream(seed, 120, clock=True, puncts=False)
    assert sent(op, items) == sent(chosen, items)
    places = [decision.place for decision in opened[0].decisions]
    assert {"caller", "trial", "workers"} == set(places)
    assert places.count("caller") > 2


@pytest.mark.parametrize("window", [each for each in WINDOWS if each.by], ids=str)
def test_keys_move_with_their_windows(window):
    op = Handler(window)
    chosen, opened = moving(KeyFarm(op, workers=3, chunk=2), every=4)
    items = stream(5, 120, clock=window.timed, puncts=False)
    assert by_key(sent(op, items)) == by_key(sent(chosen, items))
    assert {"caller", "trial", "workers"} == {each.place for each in opened[0].decisions}


def test_a_state_is_for_every_place():
    op = Handler(Sliding(Count(5), every=Count(2), by="k"))
    items = [row for row in stream(2, 90, clock=False, puncts=False) if isinstance(row, dict)]
    expected = sent(op, items)
    for first in range(1, 30, 7):
        out: list[Any] = []
        chosen, _ = moving(WindowFarm(op, workers=2, chunk=2), first)
        before, after = chosen.open(), AdaptiveFarm(WindowFarm(op, workers=2))
        before.connect(0, lambda row, out=out: out.append(("out", row)))
        after.connect(0, lambda row, out=out: out.append(("out", row)))
        before.insert_many(items[:40])
        state = before.snapshot()
        after.restore(state)
        after.insert_many(items[40:])
        after.finish()
        before.close()
        assert [row for _, row in expected] == [row for _, row in out]


# -- what it decides --


def test_cheap_windows_stay_in_the_caller(monkeypatch):
    monkeypatch.setattr(adaptive, "EMITTER_COST", 1.0)
    op = Aggregate(Sliding(Count(100), every=Count(10)), high=agg.max("x"))
    with farm(op, workers=2).open() as run:
        run.insert_batch(pa.table({"x": range(50_000)}))
        assert "caller" == run.place
        assert "shares the work of its windows by itself" in run.explain()
    with WindowFarm(Handler(Tumbling(Count(50_000))), workers=2).open() as run:
        run._next_review = 0.0
        for _ in range(4):
            run.insert_batch(pa.table({"x": range(20_000)}))
        assert "caller" == run.place
        assert "less than a farm" in run.explain()


def busy(monkeypatch, work, parent):
    """A clock for farms whose windows and whose parents take as long as is said."""
    monkeypatch.setattr(AdaptiveFarm, "_costs", lambda self: (parent, work))


@pytest.mark.parametrize(
    ("alone", "work", "parent", "place"),
    [
        (100.0, 100.0, 5.0, "starting"),
        (100.0, 100.0, 90.0, "caller"),
        (6.0, 5.0, 10.0, "caller"),
        (10.0, 9.0, 8.0, "starting"),
        (10.0, 18.0, 4.0, "caller"),
    ],
)
def test_a_trial_compares_the_operator_with_the_farm(monkeypatch, alone, work, parent, place):
    busy(monkeypatch, work, parent)
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        assert run._move_to_farm() is None
        run._alone_cost = alone
        run._decide("trial", "to be tried")
        run._review_trial()
        assert place == run.place
        assert f"{work:.3g} µs" in run.decisions[-1].reason


class NotedPool:
    """Processes that never become ready, and note what happens to them."""

    ready, made = False, list[Any]()

    def __init__(self, workers, setup):
        self.closed = False
        self.made.append(self)

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("slow", "place", "pools"),
    [(0.0, "caller", 0), (2e-6, "caller", 0), (20e-6, "trial", 1)],
)
def test_slow_rows_are_looked_at_soon_and_workers_start_with_the_trial(
    monkeypatch, slow, place, pools
):
    monkeypatch.setattr(NotedPool, "made", [])
    monkeypatch.setattr(adaptive, "ProcessPool", NotedPool)
    monkeypatch.setattr(adaptive, "SPARE", 0.0)
    busy(monkeypatch, 9.0, 90.0)
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        run._record_time(100, 1.0)  # the first, which loads libraries
        run._record_time(100, 1e-6)
        run._record_time(100, 20e-6 * 100)  # a hiccup
        run._record_time(100, slow * 100)
        run.advance(1)  # the clock alone says nothing of rows
        assert (place, pools) == (run.place, len(NotedPool.made))
        if pools:
            run._interval.seconds = adaptive.TRIAL
            run._record_time(100, 1e-3)
            assert "caller" == run.place
            assert NotedPool.made[0].closed


def test_no_worker_starts_because_rows_are_waited_for(monkeypatch):
    monkeypatch.setattr(NotedPool, "made", [])
    monkeypatch.setattr(adaptive, "ProcessPool", NotedPool)
    monkeypatch.setattr(adaptive, "SPARE", 0.0)
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def seldom():
        for x in range(5 * adaptive.LEAST):
            clock[0] += 0.001
            yield {"x": x, "k": 1}

    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        run.insert_many(seldom())
        assert "trial" in {decision.place for decision in run.decisions}
        assert [] == NotedPool.made


def test_nothing_is_decided_before_a_window_has_been_computed(monkeypatch):
    busy(monkeypatch, 0.0, 1.0)
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        assert run._move_to_farm() is None
        run._alone_cost = 100.0
        run._decide("trial", "to be tried")
        run._review_trial()
        assert "trial" == run.place
        run._interval.seconds, run._interval.rows = 1.0, 1000
        run._review_trial()
        assert "caller" == run.place
        assert "no window has fired in 1,000 rows of a trial" == run.decisions[-1].reason
        assert run._move_to_farm() is None
        run._decide("workers", "for the test")
        run.current.submit(Task("merged", ([[1], [2]],)))  # which nobody has answered
        run._review_workers()
        assert "workers" == run.place
        run.current.drain()
        run._review_workers()
        assert "caller" == run.place


def test_workers_that_no_longer_pay_are_left(monkeypatch):
    rows: list[Any] = []
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        run.connect(0, rows.append)
        run.insert_many([{"x": 1, "k": 1}] * 3)
        assert run._move_to_farm() is None
        run._decide("workers", "for the test")
        busy(monkeypatch, 50.0, 5.0)
        run._review_workers()
        assert "workers" == run.place
        busy(monkeypatch, 1.0, 5.0)
        run._review_workers()
        assert "caller" == run.place
        run.insert_many([{"x": 2, "k": 1}] * 3)
    assert [[1, 1], [1, 2], [2, 2]] == [row["held"] for row in rows]


def test_no_worker_is_tried_where_no_processor_is_free(monkeypatch, tmp_path):
    stat, busy = tmp_path / "stat", itertools.count(100, 10)

    def load(nice=0):
        stat.write_text(f"cpu  {next(busy)} {nice} 0 7 7 0 0 0 0 0\n")

    load()
    monkeypatch.setattr(adaptive, "STAT", stat)
    monkeypatch.setattr("os.nice", lambda by: 0)  # so that others can have a lower priority
    monkeypatch.setattr(adaptive, "EMITTER_COST", 0.0)
    monkeypatch.setattr(adaptive, "SAMPLE", 0.0)
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        run._next_review = 0.0
        for _ in range(20):
            load()
            run.insert_many([{"x": 1, "k": 1}] * 3)
        assert {"caller"} == {decision.place for decision in run.decisions}
        assert "processors are free, so workers would have none" in run.explain()
    processors = adaptive.Processors()
    assert processors.free == processors.all
    load(nice=10_000)  # which makes room
    processors.sample()
    assert processors.free == processors.all
    stat.write_text("not what it was")
    processors.sample()
    assert processors.free == processors.all


def test_what_cannot_move_says_why():
    with farm(Spread(Tumbling(Count(2))), workers=1).open() as run:
        assert "one worker is no faster" in run.explain()
    kept = Aggregate(Tumbling(Count(2)), total=agg.sum("x"))
    with farm(kept, workers=2).open() as run:
        assert run._alone_reason is not None
        run.insert({"x": 1})
        assert {"place": "caller", "workers": 0} == {
            name: run.counters()[name] for name in ("place", "workers")
        }


def test_a_long_batch_is_cut_and_comes_out_whole():
    op = Handler(Tumbling(Count(7)))
    data = pa.table({"k": [0] * 20_000, "x": range(20_000)})
    with WindowFarm(op, workers=2).open() as run:
        run._piece_rows = 1000
        assert op.open().process_batch(data).equals(run.process_batch(data))
        assert 20_000 == run.rows


def test_an_iterator_that_fails_has_had_its_rows_taken():
    def rows():
        yield from ({"x": i, "k": 0} for i in range(5))
        raise ValueError("no more")

    out: list[Any] = []
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        run.connect(0, out.append)
        with pytest.raises(ValueError, match="no more"):
            run.insert_many(rows())
    assert [[0, 1], [2, 3]] == [row["held"] for row in out]


def test_workers_that_are_slower_than_the_operator_was_are_left(monkeypatch):
    busy(monkeypatch, 50.0, 5.0)
    with WindowFarm(Handler(Tumbling(Count(2))), workers=2).open() as run:
        assert run._move_to_farm() is None
        for alone, place in ((100.0, "workers"), (40.0, "caller")):
            run._decide("workers", "for the test")
            run._alone_cost, run._interval.rows, run._interval.seconds = alone, 1000, 0.06
            run._review_workers()
            assert place == run.place
        assert 8 * adaptive.FIRST_REVIEW == run._next_review  # so that the next attempt comes later


# -- other workers --


@pytest.mark.parametrize(("busy", "workers"), [(0.95, 3), (0.6, 2), (0.1, 2)])
def test_workers_follow_the_load_if_they_may(monkeypatch, busy, workers):
    monkeypatch.setattr(adaptive, "processor_count", lambda: 4)
    chosen = WindowFarm(Handler(Tumbling(Count(2))), workers="auto")
    assert (2, True) == (chosen.workers, chosen.follows_load)
    with chosen.open() as run:
        assert run._move_to_farm() is None
        run._decide("workers", "for the test")
        asked: list[int] = []
        monkeypatch.setattr(run.current, "resize", asked.append)
        run._started = time.perf_counter() - 1.0
        run.current.worked = busy * 2
        run._follow_load()
        assert (workers, [workers] * (workers != 2)) == (run.workers, asked)


def test_an_operator_of_a_script_works_in_other_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from windowlib import Count, Operator, OperatorModel, Tumbling, replay\n"
        "from windowlib.farms import WindowFarm\n"
        "class Sum(Operator):\n"
        "    model = OperatorModel(windows=[Tumbling])\n"
        "    def before_flush(self, window, key):\n"
        "        self.emit(total=sum(map(double, window[key])))\n"
        "double = lambda row: 2 * row['x']\n"
        "rows = [{'x': x} for x in range(6)]\n"
        "chosen = WindowFarm(Sum(Tumbling(Count(3))), workers=2, when='always')\n"
        "print([row['total'] for row in replay(chosen, rows)])\n"
    )
    blocked = "import sys; sys.modules['pyspark'] = None; import runpy; "
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked}runpy.run_path({str(script)!r}, run_name='__main__')"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "[6, 24]\n" == done.stdout


@pytest.mark.parametrize("kind", [WindowFarm, KeyFarm])
def test_a_farm_of_processes_changes_its_size_while_it_runs(kind):
    op = Handler(Sliding(Count(5), every=Count(2), by="k"))
    items = [row for row in stream(3, 400, clock=False, puncts=False) if isinstance(row, dict)]
    rows: list[Any] = []
    with kind(op, workers=1, chunk=20, when="always").open() as run:
        run.connect(0, rows.append)
        for at, workers in ((0, 2), (100, 3), (200, 1), (300, 2)):
            run.insert_many(items[at : at + 100])
            run.resize(workers)
            assert (workers, workers) == (run.workers, len(run.pool.pids))
        run.finish()
    assert list(replay(op, items)) == rows
