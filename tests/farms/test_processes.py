"""Farms with real worker processes: they run, wait, die, are replaced, and end."""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.farms.farm_cases import FARMS, AboveMean, Spread, Total, batches, made, sent, stream
from windowlib import Count, FarmError, Operator, OperatorModel, Sliding, Time, Tumbling, replay
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition, farm
from windowlib.farms.chunks import LOCK
from windowlib.farms.fork_server import ForkServer
from windowlib.farms.pool import FORKS
from windowlib.operators import Aggregate, Join, agg


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


ONE: dict[str, Any] = {"workers": 1, "when": "always"}
TWO: dict[str, Any] = {"workers": 2, "when": "always"}


def until(condition):
    """Wait for something that happens by itself, in another process."""
    for _ in range(6000):  # a minute, because the machine may be busy
        if condition():
            return True
        time.sleep(0.01)
    return False


def opened(farm_: Any) -> Any:
    run = farm_.open()
    rows: list[dict[str, Any]] = []
    run.connect(0, rows.append)
    return run, rows


def table(size, keys=7):
    rng = np.random.default_rng(3)
    return pa.table({"k": rng.integers(0, keys, size), "x": rng.integers(0, 100, size)})


# -- the same rows --


# They differ in what processes send each other: windows, tuples, parts, and farms of farms. Without
# processes, test_same_rows.py compares all kinds.
SENDING = ("agnostic", "active", "pane", "key", "windows of parts")


def each_kind(kind):
    return pytest.param(kind, marks=() if kind in SENDING else pytest.mark.long)


@pytest.mark.parametrize("kind", [each_kind(kind) for kind in FARMS])
def test_a_farm_of_processes_sends_what_the_operator_sends(kind):
    windows = [Sliding(Count(50), every=Count(20), by="k"), Sliding(Time("4s"), every=Count(30))]
    ops = [Aggregate(window, s=agg.sum("x"), hi=agg.max("x")) for window in windows]
    op, chosen = next((op, made(kind, op, **TWO)) for op in ops if made(kind, op))
    items = stream(1, 500, clock=True, puncts=False)
    assert sent(op, items) == sent(chosen, items)


@pytest.mark.parametrize("op", [Spread, Total, AboveMean])
def test_operators_of_ones_own_are_sent_to_workers(op):
    window = Tumbling(Count(40), by="k")
    items = stream(2, 400, clock=False, puncts=False)
    expected = sent(op(window), items)
    for kind in ("agnostic", "partition", "key"):
        if (chosen := made(kind, op(window), **TWO)) is not None:
            assert expected == sent(chosen, items)


def test_a_function_of_a_script_is_sent_along():
    scale = 3
    op = Aggregate(Tumbling(Count(10)), out=agg.custom(int, lambda s, x: s + scale * x, column="x"))
    rows = [{"x": x} for x in range(100)]
    assert list(replay(op, rows)) == list(replay(WindowFarm(op, **TWO), rows))


def test_a_join_is_split_by_its_keys():
    window = Sliding(Time("3s"), by="k")
    op = Join(left=window, right=window, on="k")
    rows = [{"k": i % 5, "x": i, "t": i / 10} for i in range(300)]
    left, right = rows[::2], [{"k": row["k"], "y": row["x"], "t": row["t"]} for row in rows[1::2]]
    expected = list(replay(op, left, right, merge="t", times="t"))
    found = list(replay(KeyFarm(op, **TWO), left, right, merge="t", times="t"))
    assert expected == found
    assert len(found) > 100


def test_a_graph_is_split_by_its_keys():
    graph = Aggregate(Tumbling(Count(4), by="k"), s=agg.sum("x")).then(
        Aggregate(Tumbling(Count(3), by="k"), s=agg.sum("s"))
    )
    items = stream(3, 500, clock=False, puncts=False)
    assert list(replay(graph, items)) == list(replay(farm(graph, **TWO), items))


def test_batches_go_in_and_come_out():
    op = Aggregate(Sliding(Count(100), every=Count(30)), s=agg.sum("x"))
    data = table(5000)
    expected = op.open().process_batch(data)
    with PaneFarm(op, **TWO).open() as run:
        assert expected.equals(run.process_batch(data))


def test_rows_come_in_the_order_that_the_window_asks_for():
    op = Aggregate(Tumbling(Count(3), order_by="x"), xs=agg.collect("x"))
    data = pa.table({"x": [5, 1, 4, 2, 3, 0]})
    with WindowFarm(op, **ONE).open() as run:
        assert op.open().process_batch(data).equals(run.process_batch(data))


# -- waiting --


class Slow(Operator):
    """Takes a while."""

    model = OperatorModel(windows=[Tumbling])
    content = "arrow"

    def before_flush(self, window, key):
        time.sleep(0.02)
        self.emit(n=window.size(key))


def test_rows_wait_when_workers_have_too_much_to_do():
    chosen = WindowFarm(Slow(Tumbling(Count(10))), workers=1, chunk=10, when="always")
    run, rows = opened(chosen)
    most = 0
    for batch in batches(stream(4, 300, clock=False, puncts=False), 10):
        run.insert_batch(batch)
        most = max(most, len(run.scheduler))
    assert most <= chosen.limit
    run.finish()
    assert [row["n"] for row in rows] == [10] * 30


def test_large_tasks_and_large_answers_do_not_wait_for_each_other():
    class Heavy(Total):
        def part_of(self, window, key):
            return b"".join(bytes([x]) * 300_000 for x in window.column("x", key))

        def emit_part(self, key, part):
            self.emit(first=part[0], size=len(part))

    run, rows = opened(PaneFarm(Heavy(Sliding(Count(3), every=Count(1))), **TWO))
    for at in range(0, 60, 20):
        run.insert_batch(pa.record_batch({"x": np.arange(at, at + 20)}))
    run.finish()
    assert [{"first": at, "size": 900_000} for at in range(58)] == rows[2:]


def test_what_is_done_comes_out_when_somebody_asks():
    run, rows = opened(WindowFarm(Aggregate(Tumbling(Count(2)), s=agg.sum("x")), **ONE))
    run.insert_many([{"x": 1}, {"x": 2}])
    assert until(lambda: run.poll() or rows)
    assert rows == [{"s": 3}]
    run.close()


def test_chunks_are_given_up_behind_the_oldest_window(monkeypatch):
    monkeypatch.setattr("windowlib.farms.window_farm.ROOM", 2000)
    op = Aggregate(Sliding(Count(500), every=Count(100)), s=agg.sum("x"))
    chosen, data = PaneFarm(op, workers=1, chunk=100, when="always"), table(20_000)
    run, rows = opened(chosen)
    most = 0
    for at in range(0, 20_000, 100):
        run.insert_batch(data.slice(at, 100))
        most = max(most, run.chunks.rows)
        files = set(os.listdir(run.chunks.folder)) - {LOCK}
        assert len(files) == len(run.chunks.chunks)
    run.finish()
    assert most <= 5000
    assert list(replay(op, data)) == rows


def test_an_idle_partition_does_not_keep_chunks(monkeypatch):
    monkeypatch.setattr("windowlib.farms.window_farm.ROOM", 1000)
    op = Aggregate(Sliding(Count(20), every=Count(20), by="k"), s=agg.sum("x"), a=agg.first("x"))
    rows = [{"k": 9, "x": 1}] * 15 + [{"k": i % 3, "x": i} for i in range(20_000)]
    rows += [{"k": 9, "x": 5}] * 5
    chosen = WindowFarm(op, workers=1, chunk=200, when="always")
    run, out = opened(chosen)
    most = 0
    for at in range(0, len(rows), 200):
        run.insert_many(rows[at : at + 200])
        most = max(most, run.chunks.rows)
    run.finish()
    assert most < 4000
    assert list(replay(op, rows)) == out


# -- start --


class Draws(Operator):
    """A number that nobody else draws, and who drew it."""

    model = OperatorModel(windows=[Tumbling])

    def before_flush(self, window, key):
        time.sleep(0.01)
        self.emit(pid=os.getpid(), drawn=(random.random(), float(np.random.random())))


def test_workers_are_forks_that_draw_numbers_of_their_own():
    run, rows = opened(WindowFarm(Draws(Tumbling(Count(1))), **TWO))
    pids = run.pool.pids
    run.insert_many([{"x": x} for x in range(12)])
    run.finish()
    assert set(pids) == {row["pid"] for row in rows}
    assert len({row["drawn"] for row in rows}) == 12


@pytest.mark.skipif(not FORKS, reason="workers start afresh here")
def test_a_server_of_forks_that_was_killed_is_replaced():
    server = ForkServer.shared()
    assert server is ForkServer.shared()
    server._process.kill()
    server._process.wait()
    assert server.end(0, 1.0) is None
    op = Aggregate(Tumbling(Count(2)), m=agg.median("x"))
    run, rows = opened(WindowFarm(op, **TWO))
    run.insert_many([{"x": x} for x in range(8)])
    run.finish()
    assert len(rows) == 4
    assert server is not ForkServer.shared()


# -- other systems --

LIKE_MACOS = """
import multiprocessing, os, pathlib, sys
del os.sched_getaffinity
from windowlib.farms import adaptive, chunks, pool
pool.FORKS = False
chunks.SHARED = adaptive.STAT = pathlib.Path("/none")
multiprocessing.set_start_method("spawn")
"""
LIKE_WINDOWS = """
import os, select, sys
sys.modules["fcntl"] = None
del select.poll
"""
PROGRAM = """
from windowlib import Count, FarmError, Tumbling, replay
from windowlib.farms import KeyFarm, WindowFarm, farm
from windowlib.operators import Aggregate, agg
op = Aggregate(Tumbling(Count(2), by="k"), middle=agg.median("x"))
rows = [{"k": x % 3, "x": x} for x in range(30)]
try:
    for chosen in (WindowFarm(op, workers=2, when="always"), KeyFarm(op, workers=2, when="always")):
        print(list(replay(chosen, rows)) == list(replay(op, rows)))
except FarmError as error:
    print(error)
    running = farm(op, workers=2).open()
    running.insert_many(rows)
    print(running.explain().splitlines()[1])
"""


def printed(program):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_system_without_shared_memory_whose_processes_start_afresh(tmp_path):
    assert printed(LIKE_MACOS + PROGRAM) == "True\nTrue\n"


def test_a_system_without_worker_processes_says_so_and_works_in_the_caller():
    why = "worker processes inherit a connection, which this system does not allow"
    assert printed(LIKE_WINDOWS + PROGRAM).splitlines() == [
        f'farm(..., when="always"): {why}. Leave out when=, or use a Unix system or WSL.',
        f"caller       {why} (row 0)",
    ]


# -- death --


# Each starts processes and loses some. Windows that are given away and those made of parts differ
# in what a dead worker had; the other kinds of farm are left to the long run.
DYING = ("active", "pane")


def each_death(kind):
    return pytest.param(kind, marks=() if kind in DYING else pytest.mark.long)


@pytest.mark.parametrize("kind", [each_death(kind) for kind in FARMS])
def test_what_a_dead_worker_had_is_done_again(kind):
    windows = [Sliding(Count(50), every=Count(20), by="k"), Sliding(Time("4s"), every=Count(30))]
    ops = [Aggregate(window, s=agg.sum("x"), h=agg.first("x")) for window in windows]
    op, chosen = next(
        (op, made(kind, op, workers=2, chunk=50, when="always")) for op in ops if made(kind, op)
    )
    data = stream(5, 1200, clock=False, puncts=False)
    run, rows = opened(chosen)
    for number, batch in enumerate(batches(data, 100)):
        run.insert_batch(batch)
        if number in (3, 4, 8):
            os.kill(run.pool.pids[number % 2], signal.SIGKILL)
    run.finish()
    alone, expected = opened(op)
    alone.insert_many(data)
    assert expected == rows
    assert 1 <= run.deaths <= 3  # a death that nobody notices has cost nothing


def test_workers_that_send_their_state_go_on_from_there(monkeypatch):
    monkeypatch.setattr("windowlib.farms.key_farm.SAVE", 3)
    op = Aggregate(Sliding(Count(50), every=Count(20), by="k"), s=agg.sum("x"))
    data = stream(6, 1500, clock=False, puncts=False)
    run, rows = opened(KeyFarm(op, workers=2, chunk=50, when="always"))
    for number, batch in enumerate(batches(data, 50)):
        run.insert_batch(batch)
        if number == 20:
            run.drain()
            assert any(state is not None for state in run._saved_states)
            assert run.chunks.rows < 1050 == run.chunks.end
            for pid in run.pool.pids:
                os.kill(pid, signal.SIGKILL)
    run.finish()
    assert list(replay(op, data)) == rows


class Deadly(Operator):
    """Kills the process that computes it, at a certain row."""

    model = OperatorModel(windows=[Tumbling])

    def before_flush(self, window, key):
        if any(row["x"] == 13 for row in window[key]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.emit(n=window.size(key))


def test_a_window_that_kills_workers_is_named():
    run, _ = opened(WindowFarm(Deadly(Tumbling(Count(5))), **TWO))
    run.insert_many([{"x": x} for x in range(30)])
    with pytest.raises(FarmError, match=r"Deadly: 3 workers died in a row \(exit code -9\) with"):
        run.drain()
    assert not any(map(running, run.pool.pids))


# -- failures --


class Picky(Operator):
    """Raises for some windows."""

    model = OperatorModel(windows=[Tumbling, Sliding])

    def before_flush(self, window, key):
        values = [row["x"] for row in window[key]]
        if 13 in values:
            raise ValueError("thirteen")
        self.emit(k=key, s=sum(values))


@pytest.mark.parametrize("kind", ["agnostic", "active", "key"])
def test_a_window_that_fails_costs_no_other(kind):
    chosen = made(kind, Picky(Tumbling(Count(5), by="k")), workers=2, chunk=5, when="always")
    run, rows = opened(chosen)
    run.insert_batch(pa.table({"k": [0] * 14, "x": range(14)}))
    run.insert({"k": 0, "x": 14})
    with pytest.raises(ValueError, match="thirteen") as caught:
        run.drain()
    assert any("Picky" in note for note in caught.value.__notes__)
    run.insert_many([{"k": 0, "x": x} for x in range(15, 40)])
    run.finish()
    found = [row["s"] for row in rows]
    assert found[:2] == [10, 35]
    assert [sum(range(at, at + 5)) for at in range(20, 40, 5)][-3:] == found[-3:]


def test_a_part_that_fails_fails_its_windows():
    class Broken(Total):
        def part_of(self, window, key):
            if 13 in (found := super().part_of(window, key)):
                raise ValueError("thirteen")
            return found

    for chosen in (PaneFarm, WindowPartition):
        run, rows = opened(chosen(Broken(Tumbling(Count(5))), **TWO))
        run.insert_many([{"x": x} for x in range(30)])
        with pytest.raises(ValueError, match="thirteen"):
            run.drain()
        assert [row["xs"][0] for row in rows] == [0, 5, 15, 20, 25]
        run.close()


def test_what_cannot_be_pickled_is_said_as_text():
    class OddError(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    class Raises(Slow):
        def before_flush(self, window, key):
            raise OddError(1, 2)

    run, _ = opened(WindowFarm(Raises(Tumbling(Count(1))), **ONE))
    with pytest.raises(RuntimeError, match="OddError: 1 and 2"):
        run.process_batch(pa.record_batch({"x": [1]}))
    run.close()


def test_a_row_that_is_refused_leaves_those_before_it():
    from windowlib import Delta

    op = Aggregate(Tumbling(Delta("x", 10)), n=agg.count(), hi=agg.max("x"))
    rows = [{"x": 1}, {"x": 5}, {"x": None}, {"x": 20}]
    for target in (op, WindowFarm(op, **ONE)):
        run, out = opened(target)
        with pytest.raises(Exception, match="x"):
            run.insert_batch(pa.Table.from_pylist(rows))
        run.insert_many([{"x": 7}, {"x": 20}, {"x": 40}])
        run.finish()
        assert out == [{"n": 3, "hi": 7}, {"n": 1, "hi": 20}]


def test_a_time_that_goes_back_is_refused_and_the_rows_before_it_are_taken():
    op = Aggregate(Tumbling(Time("2s")), n=agg.count())
    data = pa.table({"t": [0.5, 1.0, 3.0, 2.0, 9.0]})
    outs = []
    for target in (
        op,
        WindowFarm(op, **ONE),
        KeyFarm(_keyed(op), **ONE),
    ):
        run, out = opened(target)
        batch = data.append_column("k", pa.array([1] * 5)) if isinstance(target, KeyFarm) else data
        with pytest.raises(Exception, match="back"):
            run.insert_batch(batch, times="t")
        run.advance(20)
        run.finish()
        outs.append([row["n"] for row in out])
    assert [2, 1] == outs[0] == outs[1] == outs[2]


def _keyed(op):
    return Aggregate(Tumbling(Time("2s"), by="k"), n=agg.count())


def test_rows_that_arrow_cannot_hold_are_refused():
    run, _ = opened(WindowFarm(Slow(Tumbling(Count(2))), **ONE))
    run.insert_many([{"x": 1}, {"x": object()}])
    with pytest.raises(ValueError, match=r"Slow.insert_many\(rows\): a farm takes rows that Arrow"):
        run.drain()
    run.close()


def test_a_snapshot_of_windows_is_for_any_number_of_workers():
    op = Aggregate(Sliding(Count(4), every=Count(2)), s=agg.sum("x"))
    rows = [{"x": x} for x in range(21)]
    with (
        WindowFarm(op, **ONE).open() as one,
        WindowFarm(op, workers=3, when="always").open() as two,
    ):
        out: list[Any] = []
        one.connect(0, out.append)
        two.connect(0, out.append)
        one.insert_many(rows[:9])
        two.restore(one.snapshot())
        two.insert_many(rows[9:])
        two.finish()
    assert list(replay(op, rows)) == out


# -- the end --


def test_workers_end_with_the_input():
    run, _ = opened(WindowFarm(Slow(Tumbling(Count(2))), **TWO))
    pids, folder = run.pool.pids, run.chunks.folder
    assert all(map(running, pids))
    run.finish()
    assert not any(map(running, pids))
    assert not os.path.exists(folder)


def test_workers_end_with_the_last_reference():
    run, _ = opened(WindowFarm(Slow(Tumbling(Count(2))), **ONE))
    (pid,), folder = run.pool.pids, run.chunks.folder
    del run
    gc.collect()
    assert until(lambda: not running(pid))
    assert not os.path.exists(folder)


def test_workers_end_when_their_program_is_killed():
    code = (
        "from windowlib.operators import Aggregate, agg\n"
        "from windowlib import Count, Tumbling\n"
        "from windowlib.farms import WindowFarm\n"
        "op = Aggregate(Tumbling(Count(2)), n=agg.count())\n"
        "run = WindowFarm(op, workers=2, when='always').open()\n"
        "print(*run.pool.pids, flush=True)\n"
        "input()\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert all(map(running, pids))
    program.kill()
    program.communicate()
    assert until(lambda: not any(map(running, pids)))


def test_a_partition_farm_may_have_windows_beside_each_other():
    op = Total(Tumbling(Count(60)))
    items = stream(8, 600, clock=False, puncts=False)
    assert sent(op, items) == sent(WindowPartition(op, workers=2, parts=3), items)
