"""Plots show the numbers that they were given, at their places."""
# ruff: noqa: SIM300 - asserts read expected first

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from bench import charts
from bench.charts import BOTTOM, HEIGHT, LEFT, POINTS, RIGHT, TOP, WIDTH, ticks
from windowlib.errors import WorkloadError
from windowlib.workload import Delays, Map2, Poisson, tuples

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text):
    found = ElementTree.fromstring(text)
    assert f"{SVG}svg" == found.tag
    return found


def texts(picture):
    return [each.text for each in picture.iter(f"{SVG}text")]


def curve(picture, number=0):
    line = [p for p in picture.iter(f"{SVG}polyline") if p.get("class") == "curve"][number]
    return np.array([[float(v) for v in point.split(",")] for point in line.get("points").split()])


def rects(picture):
    return [r for r in picture.iter(f"{SVG}rect") if r.get("class") == "bar"]


def inside(points):
    x, y = points.T
    return LEFT <= x.min() <= x.max() <= WIDTH - RIGHT and TOP <= y.min() <= y.max()


def test_arrivals_are_counted_in_each_interval():
    picture = parsed(charts.arrivals([0.1, 0.2, 0.3, 1.5, 3.9], every=1, title="Five"))
    points = curve(picture)
    assert inside(points)
    zero = HEIGHT - BOTTOM
    heights = (zero - points[:, 1]).round(1)
    assert heights[::2].tolist() == heights[1::2].tolist(), "a flat step for each interval"
    assert (heights[::2] / heights[2]).round(2).tolist() == [3, 1, 0, 1]
    said = texts(picture)
    assert {"Five", "seconds", "tuples in 1 s"} <= set(said)


def test_many_intervals_are_drawn_with_few_points_and_keep_their_peaks():
    arrivals = Map2(rate=1000, dispersion=100).arrivals(300_000)
    counts = np.histogram(arrivals, np.arange(0, arrivals[-1] + 0.01, 0.01))[0]
    assert len(counts) > 4 * POINTS
    points = curve(parsed(charts.arrivals(arrivals, every=0.01)))
    assert len(points) <= POINTS + 2
    top = HEIGHT - BOTTOM - points[:, 1].min()
    assert top == pytest.approx((HEIGHT - BOTTOM - TOP) / 1.05, abs=0.2), "the highest is there"


def test_the_latest_tuples_are_always_shown():
    table = tuples(Poisson(rate=1000).arrivals(100_000), Delays.heavy(stragglers=0.0001), seed=1)
    ts, arrival = table["ts"].to_numpy(), table["arrival"].to_numpy()
    assert (arrival - ts).max() > 10
    picture = parsed(charts.delay(ts, arrival))
    (path,) = [p for p in picture.iter(f"{SVG}path") if p.get("class") == "dots"]
    dots = [dot.split("h")[0].split() for dot in path.get("d").split("M")[1:]]
    assert len(dots) <= 1.2 * POINTS
    top = HEIGHT - BOTTOM - min(float(y) for _, y in dots)
    assert top == pytest.approx((HEIGHT - BOTTOM - TOP) / 1.05, abs=0.2)
    assert {"seconds", "seconds late"} <= set(texts(picture))


def test_utilisation_has_a_curve_for_each_name_and_a_set_point():
    text = charts.utilisation([0, 1, 2], {"AS": [1, 2, 1], "AS_PID": [1, 0.5, 1]}, setpoint=0.5)
    picture = parsed(text)
    assert ["AS", "AS_PID"] == [t for t in texts(picture) if t and t.startswith("AS")]
    assert "set point 0.5" in texts(picture)
    (level,) = [each for each in picture.iter(f"{SVG}line") if each.get("class") == "level"]
    assert float(level.get("y1")) == pytest.approx(curve(picture, 1)[1, 1], abs=0.06)
    assert inside(curve(picture, 0))


def test_bars_are_as_high_as_their_values():
    picture = parsed(charts.bars({"a": 1.0, "b": 2.0, "c": 0.0}, unit="s", title="T", level=1.0))
    heights = [float(r.get("height")) for r in rects(picture)]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert 0.0 == heights[2]
    assert {"a", "b", "c", "s", "T"} <= set(texts(picture))
    (level,) = [each for each in picture.iter(f"{SVG}line") if each.get("class") == "level"]
    assert float(level.get("y1")) == pytest.approx(float(rects(picture)[0].get("y")), abs=0.06)


def test_bars_in_groups_do_not_overlap_and_have_a_legend():
    groups = {"PB": {"n=2": 1, "n=4": 2}, "TB": {"n=2": 3, "n=4": 1}}
    picture = parsed(charts.bars(groups, unit="s", title="T"))
    edges = [(float(r.get("x")), float(r.get("x")) + float(r.get("width"))) for r in rects(picture)]
    assert 4 == len(edges)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(edges))
    fills = [r.get("fill") for r in rects(picture)]
    assert fills[:2] == fills[2:]
    assert 2 == len(set(fills))
    assert ["n=2", "n=4"] == [t for t in texts(picture) if t and t.startswith("n=")]


def test_a_plot_of_nothing_is_a_frame():
    for text in (
        charts.arrivals([]),
        charts.delay([], []),
        charts.utilisation([], {}),
        charts.bars({}, unit="s", title="T"),
    ):
        assert parsed(text).find(f"{SVG}title") is not None


def test_text_is_escaped():
    assert "a < b & c" in texts(parsed(charts.bars({"x": 1}, unit="s", title="a < b & c")))


@pytest.mark.parametrize("high", [0.0013, 0.37, 1, 7.2, 96, 12_345, 3e9])
def test_ticks_are_round_and_few(high):
    found = ticks(0, high)
    assert 3 <= len(found) <= 8
    steps = {round(b - a, 9) for a, b in itertools.pairwise(found)}
    assert 1 == len(steps)
    assert 0 == found[0]
    assert found[-1] <= high


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: charts.delay([1.0], [1.0, 2.0]),
            "ts and arrival: 1 and 2 times. Give one of each for a tuple.",
        ),
        (
            lambda: charts.utilisation([1.0], {"AS": [1.0, 2.0]}),
            "AS: 2 values at 1 times. Give one for each time.",
        ),
    ],
)
def test_a_chart_of_times_that_do_not_match_is_refused(draw, message):
    with pytest.raises(WorkloadError) as caught:
        draw()
    assert message == str(caught.value)
