# ruff: noqa: SIM300 - asserts read expected first
"""The benchmarks: they compare results before they time, and do without peers."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
import pytest

from bench import (
    __main__ as command,
)
from bench import (
    accuracy,
    columnar,
    columnar_data,
    columnar_peers,
    event_time,
    farms,
    farms_balance,
    farms_kernels,
    farms_pay,
    farms_real,
    farms_virtual,
    farms_work,
    figures_farms,
    harness,
    operators,
    peers,
    preference_disorder,
    preference_farm,
    preference_panes,
    preference_parts,
    preference_real,
    simulated,
    sketches,
    time_joins,
)
from bench.harness import Measure
from bench.peers import Candidate
from windowlib import Count, Sliding
from windowlib.columnar.kernels.skyline import skyline
from windowlib.control import WindowRoundRobin, WindowTask
from windowlib.farms import WindowFarm
from windowlib.operators import KSlack
from windowlib.workload import Delays


def gives(*rows):
    return Candidate(lambda: lambda: list(rows), lambda row: row)


def test_results_that_agree_but_for_order_of_keys_and_last_digits_are_timed():
    operators.check_same(
        {"one": gives(("a", 0.3), ("b", 1.0)), "other": gives(("b", 1.0), ("a", 0.1 + 0.2))}
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (gives(("a", 1.0), ("a", 2.5)), "one and other differ for key a"),
        (gives(("a", 2.0), ("a", 1.0)), "one and other differ for key a"),
        (gives(("a", 1.0)), "one and other differ for key a"),
        (gives(("b", 1.0), ("b", 2.0)), "one and other have results of different keys"),
    ],
)
def test_results_that_differ_are_not_timed(other, message):
    with pytest.raises(AssertionError, match=message):
        operators.check_same({"one": gives(("a", 1.0), ("a", 2.0)), "other": other})


def test_a_peer_that_is_not_installed_is_left_out_and_said_so(monkeypatch, capsys, tmp_path):
    for name in ("bytewax", "quixstreams"):
        monkeypatch.setitem(sys.modules, name, None)
        for module in [m for m in sys.modules if m.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, module)
    assert {} == peers.candidates([("a", 0.0, 1.0)], str(tmp_path))
    text = "{} is not installed, and left out. To compare: pip install -e '.[bench]'\n"
    assert text.format("bytewax") + text.format("quixstreams") == capsys.readouterr().out


def test_all_of_ours_agree():
    data = operators.rows()
    found = operators.ours(data)
    for workload in operators.ROUNDS:
        operators.check_same({n: c for n, c in found.items() if n.startswith(workload)})


def test_a_measure_without_target_is_reported_only(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(harness, "OUT", tmp_path)
    harness.report("some", [Measure("a", 2.0, None, True), Measure("b", 2.0, 3, True)])
    lines = capsys.readouterr().out.splitlines()
    assert ["a    2.00", "b    2.00  ≥ 3     MISSED"] == lines[1:]
    assert [None, 3] == [row["target"] for row in json.loads((tmp_path / "some.json").read_text())]


def test_a_measure_that_is_tiny_keeps_its_digits(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(harness, "OUT", tmp_path)
    harness.report("some", [Measure("a", 4.25e-14, 1e-13, False)])
    assert "a   4e-14  ≤ 1e-13 met" == capsys.readouterr().out.splitlines()[1]
    assert [4.25e-14] == [row["ratio"] for row in json.loads((tmp_path / "some.json").read_text())]


# -- columnar --

COLUMNAR_PEERS = ("polars", "duckdb", "pandas")
SMALL = columnar_data.Scale(
    rows=12_000, keys=20, many=200, large=1_000, sums=3 * columnar_data.LONG, rounds=1
)
GROWTH = [f"{goal} {engine}" for goal in ("G13", "G15", "G16") for engine in ("numpy", "numba")]


def results(**columns):
    table = pa.table(columns)
    return columnar_data.Candidate(lambda: lambda: table, columnar_data.windows)


def test_columns_that_agree_but_for_order_of_keys_and_last_digits_are_timed():
    columnar_data.check_same(
        {
            "in order of firing": results(key=[2, 1, 2], mean=[0.3, 1.0, 5.0]),
            "numbered": results(key=[1, 2, 2], w=[0, 7, 3], mean=[1.0, 5.0, 0.1 + 0.2]),
            "string keys": results(key=["1", "2", "2"], mean=[1.0, 0.3, 5.0]),
        }
    )


@pytest.mark.parametrize(
    "other",
    [
        results(key=[1, 1], mean=[1.0, 2.000001]),
        results(key=[1, 1], mean=[2.0, 1.0]),
        results(key=[1, 2], mean=[1.0, 2.0]),
        results(key=[1], mean=[1.0]),
        results(key=[1, 1], max=[1.0, 2.0]),
    ],
)
def test_columns_that_differ_are_not_timed(other):
    with pytest.raises(AssertionError, match="one and other differ"):
        columnar_data.check_same({"one": results(key=[1, 1], mean=[1.0, 2.0]), "other": other})


def test_a_workload_without_results_is_not_timed():
    nothing = results(key=pa.array([], pa.int64()), mean=pa.array([], pa.float64()))
    with pytest.raises(AssertionError, match="one gives nothing"):
        columnar_data.check_same({"one": nothing, "other": nothing})


def test_another_query_must_give_about_as_many_windows():
    one, several = results(mean=[1.0, 2.0]), results(mean=[5.0, 6.0, 7.0])
    columnar_data.check_similar({"one": one, "other": several})
    with pytest.raises(AssertionError, match="one has 2 windows, other 4"):
        columnar_data.check_similar({"one": one, "other": results(mean=[1.0] * 4)})


def test_batches_are_the_rows_in_order_with_buffers_of_their_own():
    table = pa.table({"key": ["a", "b", "c"], "value": [1.0, 2.0, 3.0]})
    found = columnar_data.batches(table, 2)
    assert [2, 1] == [len(batch) for batch in found]
    assert table == pa.Table.from_batches(found)
    assert all(column.offset == 0 for batch in found for column in batch.columns)


@pytest.mark.long
def test_without_peers_the_rest_is_measured_and_what_is_missing_said(monkeypatch, capsys):
    for name in COLUMNAR_PEERS:
        monkeypatch.setitem(sys.modules, name, None)
    found = {f"{m.name.split()[0]} {m.name.split()[-1]}" for m in columnar.measured(SMALL)}
    said = capsys.readouterr().out
    assert {name for name in GROWTH if name.split()[1] in columnar.engines()} <= found
    for name in COLUMNAR_PEERS:
        assert f"{name} is not installed, and left out." in said
    for wanted in columnar.WANTED:
        assert f"left out: {wanted.name}\n" in said


@pytest.mark.long
def test_every_target_of_the_columnar_engine_is_measured_against_results_that_agree():
    for name in COLUMNAR_PEERS:
        pytest.importorskip(name)
    found = {measure.name: measure for measure in columnar.measured(SMALL)}
    engines = columnar.engines()
    wanted = [w.name for w in columnar.WANTED if w.ours.split()[1] in engines]
    assert set(wanted) <= set(found)
    assert all(measure.ratio > 0 for name, measure in found.items() if "G13" not in name)
    reported = {name for name, measure in found.items() if measure.target is None}
    for way in columnar_peers.candidates(columnar_data.data(SMALL)):
        known = any(way in w.peers for w in columnar.WANTED)
        assert known or any(way.partition(" ")[2] in name for name in reported)


def test_a_running_sum_is_found_to_be_off():
    def running(data, slide):
        total = np.cumsum(np.concatenate(([0.0], data)))
        return (total[columnar_data.LONG :] - total[: -columnar_data.LONG])[::slide]

    def worst(name, sums):
        data = accuracy.data_sets(3 * columnar_data.LONG)[name]
        return accuracy.worst(data, accuracy.exact(data), sums)

    assert worst("one 1e16, which has left", running) > 0.1
    assert worst("uniform", running) < 1e-12
    assert worst("uniform", lambda data, slide: running(data, slide) * (1 + 1e-9)) > 1e-10


def test_peers_have_one_thread():
    pytest.importorskip("polars")
    code = "from bench import columnar; columnar.pin(); import polars, pyarrow;"
    code += "print(polars.thread_pool_size(), pyarrow.cpu_count())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert "1 1\n" == done.stdout


# -- farms --

FEW = farms_virtual.Scale(
    keys=40, rows_a_key=500, workers=(1, 3), windows=20, rate=500, seconds=4.0
)
BALANCE = farms_balance.Scale(rows=500, panes=20, tuples=20, seeds=1, orders=20)
KERNELS = farms_kernels.Scale(rows=500, sizes=(100,), bucketed=400, sliced=400, rounds=1)


def rows_of(measures):
    """The rows of the list of experiments that were measured, such as B7."""
    found = list(measures)
    assert all(np.isfinite(measure.ratio) for measure in found)
    return {measure.name.split()[0] for measure in found}


PAY = farms_pay.Scale(windows=40, costs=(1e-5,), rows=20_000, skylines=2, overhead=400, rounds=1)


@pytest.mark.long
def test_farms_are_compared_with_the_operator_and_with_a_pool(monkeypatch):
    monkeypatch.setattr(farms_pay, "OTHERS", {})
    monkeypatch.setattr(farms_pay, "CHUNKS", (16, None))
    found = list(farms_pay.run(PAY))
    for rows in ("handler", "Aggregate, ", "Aggregate by key", "skyline"):
        names = [measure.name.rpartition(": ")[2] for measure in found if rows in measure.name]
        first = ["the first farm of a program / pool"] if rows == "handler" else []
        assert ["farm / plain", "farm / pool", *first] == names
    assert "bytes a buffered row" == found[-1].name
    assert all(measure.ratio > 0 for measure in found)


@pytest.mark.long
@pytest.mark.parametrize("name", farms_pay.OTHERS)
def test_other_libraries_give_the_same_rows(name):
    pytest.importorskip(name)
    windows = [[1, 2], [3]]
    found = farms_pay.OTHERS[name](lambda: windows, partial(farms_pay.computed, turns=1))
    assert [{"total": 3}, {"total": 3}] == found


def test_figures_of_farms_are_drawn_from_what_was_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "OUT", tmp_path)
    few = figures_farms.Scale(48_000, 40, (1, 3), windows=8, seconds=2.0, real=False)
    found = list(figures_farms.draw(few))
    drawn = sorted(tmp_path.glob("figures_farms_*.svg"))
    assert 8 == len(drawn)
    assert all("</svg>" in picture.read_text() for picture in drawn)
    assert {"workers", "keys", "latency", "size", "slide", "batch"} <= {
        measure.name.split(",")[0] for measure in found
    }


def test_farms_are_measured_in_virtual_time_against_results_that_agree():
    assert {"B2", "4", "B3", "B4", "B5", "B6", "B11", "B12"} == rows_of(farms_virtual.run(FEW))


def test_what_virtual_time_measures_does_not_depend_on_the_machine():
    assert list(farms_virtual.panes(FEW)) == list(farms_virtual.panes(FEW))


def test_copies_balance_and_order_are_measured():
    found = list(farms_balance.run(BALANCE))
    assert {"B7", "B8", "B9", "B28"} == rows_of(found)
    assert [0, 0] == [measure.ratio for measure in found if measure.name.startswith("B28")]


@pytest.mark.long
def test_kernels_are_timed_after_they_agree():
    assert {"B26", "B27"} == rows_of(farms_kernels.run(KERNELS))


def test_the_kernels_by_hand_are_right():
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
    for size in (1, 2, 3, 8):
        windows = [values[i : i + size] for i in range(len(values) - size + 1)]
        assert [max(window) for window in windows] == farms_kernels.two_stacks(values, size)
        assert [sum(window) for window in windows] == farms_kernels.subtract_on_evict(values, size)


def test_results_of_a_farm_that_differ_are_not_measured():
    with pytest.raises(AssertionError, match="B2: other results than the operator's"):
        farms_work.same("B2", [1, 2], [2, 1])
    with pytest.raises(AssertionError, match="B2: no results to compare"):
        farms_work.same("B2", [], [])


def test_a_farm_of_processes_is_timed_and_gives_the_rows_of_the_operator():
    op = farms_work.Burn(Sliding(Count(10), every=Count(5)), turns=1.0)
    batch = farms_work.plain(100)
    variants = {"WF": farms_real.variant(WindowFarm(op, workers=1), batch)}
    wanted = {"WF": farms_work.expected(farms_work.light(op), [batch])}
    (took,) = farms_real.in_turn("B2", variants, wanted, rounds=1)["WF"]
    assert took.seconds > 0
    assert took.worked >= 0
    with pytest.raises(AssertionError, match="B2 WF: other results than the operator's"):
        farms_real.in_turn("B2", variants, {"WF": wanted["WF"][:-1]}, rounds=1)


def test_the_lines_of_spark_are_of_queries_that_there_are():
    spark = pytest.importorskip("bench.spark")
    named = {name for line in spark.LINES for name in (line.of, line.to)}
    assert named == set(spark.QUERIES)
    assert set(spark.PLAIN) <= named


def test_a_part_of_a_benchmark_can_be_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(harness, "OUT", tmp_path)
    monkeypatch.setitem(farms.OPTIONS, "--virtual", lambda: [Measure("B2", 1.0, 0.95, True)])
    assert 0 == command.main(["farms", "--virtual"])
    assert "B2" in (tmp_path / "farms_virtual.json").read_text()
    assert 2 == command.main(["farms", "--other"])
    assert "has the options --pay, --virtual, --kernels, --real, --spark" in capsys.readouterr().err
    assert 2 == command.main(["core", "--virtual"])
    assert "core has no options, and not --virtual" in capsys.readouterr().err
    assert 2 == command.main([])
    assert "with NAME one of" in capsys.readouterr().err


# -- sketches --


def test_sketches_are_timed_once_they_have_the_state_of_single_rows(monkeypatch):
    monkeypatch.setattr(sketches, "BATCH", 300)
    few = sketches.Scale(rows=2_000, window=800, compared=2_000, rounds=1)
    found = {measure.name: measure for measure in sketches.measured(few)}
    targets = [each.target for name, each in found.items() if name.startswith("approx")]
    assert [200] * len(sketches.CASES) == targets
    assert all(measure.ratio > 0 for measure in found.values())


# -- preference --

FEW_PANES = preference_panes.Scale(workers=(2,), seconds=6.0, seeds=1)
SHORT = preference_disorder.Scale(
    rate=1000, seconds=8.0, delays=(0.01, 0.1), panes=(0.1,), arrivals=20_000, seeds=1, looks=4
)
PARTS = preference_parts.Scale(size=200, windows=2, workers=(2,))
TIMED = preference_real.Scale((20,), (20,), dims=(2, 3), length=2, windows=2, rounds=1)


def test_policies_slack_and_parts_are_measured_in_virtual_time():
    virtual = {f"B{n}" for n in (14, *range(15, 23), 24, 25)}
    found = [
        *preference_panes.measured(FEW_PANES),
        *preference_disorder.measured(SHORT),
        *preference_parts.measured(PARTS),
    ]
    assert virtual == rows_of(found)
    assert all(measure.met for measure in found if measure.name.startswith(("B18", "B20")))


def test_policies_and_parts_are_the_same_every_time():
    few = FEW_PANES._replace(seconds=3.0)
    assert list(preference_panes.measured(few)) == list(preference_panes.measured(few))
    assert list(preference_parts.measured(PARTS)) == list(preference_parts.measured(PARTS))


@pytest.mark.long
def test_policies_in_a_farm_are_measured_after_its_rows_agree():
    few = preference_farm.Scale(tuples=20, panes=60, workers=(2,), seeds=1, dims=2)
    found = list(preference_farm.virtual(few))
    assert {"B15"} == rows_of(found)
    assert found == list(preference_farm.virtual(few))


def test_a_policy_in_a_farm_of_processes_is_told_how_busy_they_are():
    op = preference_farm.query(0.05, dims=2)
    arrivals = preference_farm.stream("high", 20, 12, 0.05, dims=2, seed=0)
    rows, seen = preference_farm._paced("steered", op, arrivals)
    assert preference_farm.rows_of(op, arrivals) == rows
    assert seen.worst > 0
    assert seen.split >= 1


@pytest.mark.long
def test_preference_queries_are_timed_after_they_agree():
    assert {"B13", "B23"} == rows_of(list(preference_real.measured(TIMED)))


def test_latencies_of_panes_are_those_of_a_buffer_that_is_watched():
    scale = SHORT._replace(seconds=2.0)
    stream = preference_disorder.Stream.of(scale, Delays.uniform(0.05), 2, dispersion=30.0)
    slack, buffer = KSlack().start(), list[int]()
    done, out = dict[int, tuple[int, int]](), dict[int, int]()
    for ts, arrival in zip(stream.ts.tolist(), stream.arrival.tolist(), strict=True):
        reached = slack.observe(ts)
        if ts >= reached:
            first = done.get(ts // 100_000, (arrival, 0))[0]
            done[ts // 100_000] = first, arrival
            buffer.append(ts)
        for old in [old for old in buffer if old <= reached]:
            buffer.remove(old)
            out[old // 100_000] = arrival
    complete = [pane for pane in done if pane < int(reached) // 100_000 - 1]
    as_they_come = mean(done[pane][1] - done[pane][0] for pane in complete) / 1e6
    in_order = mean(out[pane] - done[pane][0] for pane in complete) / 1e6
    found = preference_disorder.latencies(stream, 100_000)
    assert (as_they_come, in_order) == pytest.approx(found)
    assert as_they_come < in_order


def test_windows_are_sent_on_in_order_whoever_is_done_first():
    tasks = [(0.0, WindowTask(0, 0, True)), (0.0, WindowTask(1, 1, True))]
    found = simulated.merge(WindowRoundRobin(2), tasks, np.array([5.0, 1.0]))
    assert (5.0 + 5.0) / 2 == found


def test_pairs_of_points_are_counted_while_they_are_compared():
    points = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    # All with the first one, twice, and the second, which beat none; then all with all.
    assert 3 + 3 + 3 + 9 == preference_parts.counted(lambda: skyline(points))
    assert 0 == preference_parts.counted(lambda: None)


def test_joins_in_time_give_what_duckdb_gives_before_they_are_timed(monkeypatch):
    monkeypatch.setattr(time_joins, "TRADES", 4_000)
    monkeypatch.setattr(time_joins, "QUOTES", 400)
    monkeypatch.setattr(time_joins, "BATCH", 1_000)
    measures = time_joins.run(rounds=1)
    assert [0.3, None] == [measure.target for measure in measures]
    assert all(measure.ratio > 0 for measure in measures)


def test_panes_are_measured_beside_windows_in_order():
    measures = event_time.in_panes(rows=20_000, rounds=1)
    assert 4 == len(measures)
    assert all(measure.target == 0.5 and measure.ratio > 0 for measure in measures)
