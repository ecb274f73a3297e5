# ruff: noqa: SIM300 - asserts read expected first
"""The figures of the papers, drawn from a small measurement."""

from xml.etree import ElementTree

import pytest

from bench import charts, figures, figures_engines, harness
from bench.__main__ import main

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def small(tmp_path, monkeypatch):
    few = [f._replace(sizes=(4, 10), rows=400, rounds=1) for f in figures_engines.FIGURES]
    monkeypatch.setattr(figures_engines, "FIGURES", few)
    monkeypatch.setattr(figures_engines, "KEYS", 10)
    monkeypatch.setattr(harness, "OUT", tmp_path)
    return tmp_path


def drawn(path):
    return ElementTree.parse(path).getroot()


def of_class(picture, kind):
    return [each for each in picture.iter() if each.get("class") == kind]


@pytest.mark.long
def test_the_figures_of_engines_have_a_curve_for_each_policy_and_the_same_by_hand(small, capsys):
    assert 0 == main(["figures", "engines"])
    said = capsys.readouterr().out
    for name in ("figure3.svg", "figure4.svg"):
        assert str(small / name) in said
        picture = drawn(small / name)
        lines = of_class(picture, "curve")
        assert 2 * 3 * 2 == len(lines), "two panels, three policies, with the library and by hand"
        assert 6 == sum(each.get("stroke-dasharray") is not None for each in lines)
        assert {2} == {len(each.get("points").split()) for each in lines}, "a point for each size"
        words = {each.text for each in picture.iter(f"{SVG}text")}
        assert {"count", "delta", "time", "time by hand", "nanoseconds a row"} <= words
    assert 2 * 2 * 3 * 2 == (small / "figures_engines.json").read_text().count("by hand")


def test_results_that_differ_from_those_by_hand_are_not_timed():
    figures_engines.check_same([{"value": 0.3}], [0.1 + 0.2])
    for other in ([0.4], [0.3, 0.3]):
        with pytest.raises(AssertionError, match="by hand"):
            figures_engines.check_same([{"value": 0.3}], other)
    with pytest.raises(AssertionError, match="nothing came out"):
        figures_engines.check_same([], [])


def test_all_figures_are_drawn_without_a_name(monkeypatch):
    measure = harness.Measure("x", 1.0, None, True)
    monkeypatch.setattr(figures, "OPTIONS", {"one": lambda: [measure], "other": lambda: [measure]})
    assert [measure, measure] == figures.run()


def test_equal_factors_are_equally_far_apart_on_axes_of_logarithms():
    ys = {"a": (10.0, 100.0, 1000.0), "a by hand": (10.0, 10.0, 10.0)}
    look = {"x": "rows", "y": "ns", "title": "t", "dashed": " by hand"}
    picture = ElementTree.fromstring(charts.curves((10, 100, 1000), ys, **look))
    rising, flat = (
        [tuple(map(float, point.split(","))) for point in each.get("points").split()]
        for each in of_class(picture, "curve")
    )
    (x0, y0), (x1, y1), (x2, y2) = rising
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y0 > y1
    assert {y0} == {y for _, y in flat}
