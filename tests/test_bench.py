# ruff: noqa: SIM300 - asserts read expected first
"""The benchmarks: they compare results before they time, and do without peers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench import accuracy, columnar, columnar_data, columnar_peers, harness, operators, peers
from bench.harness import Measure
from bench.peers import Candidate


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
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "1 1\n" == done.stdout
