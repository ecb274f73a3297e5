# ruff: noqa: SIM300 - asserts read expected first
"""The benchmarks: they compare results before they time, and do without peers."""

import json
import sys

import pytest

from bench import harness, operators, peers
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
