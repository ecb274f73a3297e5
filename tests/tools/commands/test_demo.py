"""`windowlib demo`: the question, the picture, the code, the answer, and that all agree."""
# ruff: noqa: SIM300 - asserts read expected first

import io
import os
import subprocess
import sys

import pytest

from windowlib.samples import trades
from windowlib.tools.command_line import main
from windowlib.tools.commands import demo


def test_the_demonstration_runs_from_question_to_answer():
    done = subprocess.run(
        [sys.executable, "-m", "windowlib", "demo"],
        env={**os.environ, "JAVA_HOME": "/none", "PATH": ""},  # there is no Java
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in done.stdout
    assert f"Question: {demo.QUESTION}" == lines[0]
    assert "  full                                                             *" in lines
    assert "    vwap = Aggregate(" in lines
    assert "  symbol  vwap       high  until" in lines
    assert "plain Python and columnar agree: 471/471 rows" == lines[-1]


def test_the_answer_is_that_of_a_plain_calculation():
    names: dict[str, list[dict[str, object]]] = {}
    exec(demo.CODE, names)
    last = {row["symbol"]: row for row in names["rows"]}
    for symbol, row in last.items():
        mine = [trade for trade in trades(demo.TRADES) if trade["symbol"] == symbol]
        window = mine[len(mine) // 10 * 10 - 100 : len(mine) // 10 * 10]
        value = sum(t["notional"] for t in window) / sum(t["qty"] for t in window)
        assert pytest.approx(value) == row["vwap"]
        assert (max(t["price"] for t in window), window[-1]["ts"]) == (row["high"], row["until"])


def test_a_row_that_differs_is_no_agreement(monkeypatch, capsys):
    honest = demo._columnar

    def wrong(vwap):
        first, *rest = honest(vwap)
        return [{**first, "vwap": 0.0}, *rest]

    monkeypatch.setattr(demo, "_columnar", wrong)
    assert 1 == main(["demo"])
    assert (
        "plain Python and columnar agree: 470/471 rows" == capsys.readouterr().out.split("\n")[-2]
    )


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([["A1", "B1", "A2"], ["A1", "A2", "B1"]], (3, 3)),
        ([["A1", "A2"], ["A2", "A1"]], (0, 2)),
        ([["A1", "A2"], ["A1"]], (1, 2)),
        ([["A1"], ["A1"], ["B1"]], (0, 2)),
        ([[], []], (0, 0)),
    ],
)
def test_agreement_counts_rows_in_their_order_by_symbol(results, expected):
    rows = [[{"symbol": text[0], "x": text[1]} for text in each] for each in results]
    assert expected == demo.agreement(rows)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("no_color", "bold"), [("", True), ("1", False)])
def test_titles_are_bold_on_a_terminal_unless_no_color_is_set(no_color, bold, monkeypatch):
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    assert 0 == main(["demo"])
    assert bold == ("\x1b[1m" in out.getvalue())


def test_without_java_the_demonstration_on_spark_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", "/none")
    assert 2 == main(["demo", "--spark"])
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert err.startswith("windowlib demo: Spark needs Java 17 or newer, and there is none")
