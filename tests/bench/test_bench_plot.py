"""Benchmarks as pictures: a bar from the target to what was measured."""
# ruff: noqa: SIM300 - asserts read expected first

from xml.etree import ElementTree

import pytest

from bench import harness, plot
from bench.__main__ import main
from bench.harness import Measure, report

SVG = "{http://www.w3.org/2000/svg}"
MEASURES = [
    Measure("<fast> & well", 3.0, 1.5, higher_is_better=True),
    Measure("slow", 4.0, 2.0, higher_is_better=False),
    Measure("small", 1.0, 2.0, higher_is_better=False),
    Measure("only reported", 7.0, None, higher_is_better=True),
]


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "OUT", tmp_path)
    return tmp_path


def bars(drawn, kind):
    return [each for each in drawn.iter(f"{SVG}rect") if each.get("class") == kind]


def test_a_benchmark_is_drawn_from_what_it_wrote(out, capsys):
    report("core", MEASURES)
    assert 0 == main(["plot", "core"])
    assert f"{out / 'core.svg'}\n" == capsys.readouterr().out[-len(f"{out / 'core.svg'}\n") :]
    drawn = ElementTree.parse(out / "core.svg").getroot()
    words = [each.text for each in drawn.iter(f"{SVG}text")]
    assert {m.name for m in MEASURES} <= set(words)
    assert {"3 (≥ 1.5)", "4 (≤ 2)", "1 (≤ 2)", "7"} <= set(words)
    assert 2 == len(bars(drawn, "met"))
    assert 1 == len(bars(drawn, "missed"))


def test_half_and_double_are_equally_long():
    rows = [
        {"name": n, "ratio": r, "target": 2.0, "higher_is_better": True}
        for n, r in (("a", 1), ("b", 4))
    ]
    drawn = ElementTree.fromstring(plot.picture("x", rows))
    (met,), (missed,) = bars(drawn, "met"), bars(drawn, "missed")
    assert met.get("width") == missed.get("width")
    assert float(missed.get("x", "nan")) < float(met.get("x", "nan"))


def test_less_is_more_where_lower_is_better():
    assert 2 == plot.beyond({"ratio": 1.0, "target": 2.0, "higher_is_better": False})
    assert 0.5 == plot.beyond({"ratio": 1.0, "target": 2.0, "higher_is_better": True})
    assert plot.beyond({"ratio": 1.0, "target": None, "higher_is_better": True}) is None


def test_nothing_measured_can_be_drawn():
    ElementTree.fromstring(plot.picture("x", []))


def test_a_benchmark_that_has_not_run_is_said(out, capsys):
    assert 2 == main(["plot", "core"])
    said = f"{out / 'core.json'} is not there. Run: python -m bench core\n"
    assert said == capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["plot"], ["plot", "nope"], ["nope"], ["plot", "plot"]])
def test_the_names_are_listed(arguments, capsys):
    assert 2 == main(arguments)
    assert "usage: python -m bench [plot] NAME" in capsys.readouterr().err
