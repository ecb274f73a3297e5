"""Timelines as pictures: well-formed, complete, and safe to put into a page."""
# ruff: noqa: SIM300 - asserts read expected first

from xml.etree import ElementTree

import pytest

from windowlib import trace
from windowlib.tools.svg import GONE, LANES, LINE
from windowlib.tools.tracing import punct

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*args, **kwargs):
    return ElementTree.fromstring(trace(*args, **kwargs).to_svg())


def of_class(picture, name):
    return [element for element in picture.iter() if element.get("class") == name]


def words(picture):
    return [element.text for element in picture.iter(f"{SVG}text")]


def circles(picture):
    """The fill of each tuple's circle, by its number."""
    found = [c for c in picture.iter(f"{SVG}circle") if c.get("r") == "12"]
    return [circle.get("fill") for circle in found]


@pytest.mark.parametrize(
    "spec",
    [
        "tumbling, count(4)",
        "tumbling, delta(ts, 10)",
        "tumbling, time(10)",
        "tumbling, punct(), partitioned",
        "sliding, count(4), count(2)",
        "sliding, delta(ts, 20), delta(ts, 10), partitioned",
        "sliding, time(10), time(5)",
        "sliding, count(3), count(2), partitioned, partitionCount(2)",
    ],
)
def test_a_picture_is_xml_with_a_bar_per_window(spec):
    seen = trace(spec)
    picture = ElementTree.fromstring(seen.to_svg())
    assert f"{SVG}svg" == picture.tag
    assert spec == picture.findtext(f"{SVG}title")
    assert spec in words(picture)
    groups = list(picture.iter(f"{SVG}g"))
    assert len(seen.windows) == len(groups)
    filled = [window for window in seen.windows if window.tuples]
    assert len(filled) == sum(len(of_class(group, "window")) for group in groups)


def test_every_tuple_is_a_numbered_circle_and_those_that_left_are_grey():
    picture = drawn("sliding, count(2), count(1)", range(4))
    assert {"1", "2", "3", "4"} <= set(words(picture))
    assert [GONE, GONE, LANES[0], LANES[0]] == circles(picture)


def test_a_bar_spans_its_tuples_and_has_a_dot_for_each():
    picture = drawn("tumbling, count(3)", range(3))
    (group,) = picture.iter(f"{SVG}g")
    (bar,) = of_class(group, "window")
    dots = [float(dot.get("cx", "nan")) for dot in group.iter(f"{SVG}circle")]
    begin = float(bar.get("x", "nan"))
    assert 3 == len(dots)
    assert begin < min(dots)
    assert max(dots) < begin + float(bar.get("width", "nan"))
    assert "flush: 1-3" == group.findtext(f"{SVG}title")


def test_overlapping_windows_are_stacked_and_separate_ones_share_a_row():
    def rows(spec):
        bars = [b for g in drawn(spec, range(8)).iter(f"{SVG}g") for b in of_class(g, "window")]
        return [bar.get("y") for bar in bars]

    assert 1 == len(set(rows("tumbling, count(2)")))
    assert 4 == len(set(rows("sliding, count(8), count(2)")))


def test_windows_before_initial_full_are_dashed():
    picture = drawn("sliding, count(4), count(2)", range(4))
    groups = list(picture.iter(f"{SVG}g"))
    dashes = [of_class(group, "window")[0].get("stroke-dasharray") for group in groups]
    assert ["3 2", None] == dashes
    assert "not full yet" in words(picture)


def test_a_window_processed_before_the_tuple_enters_has_its_sign_before_the_tuple():
    rows = [{"ts": ts} for ts in (0, 5, 20)]
    picture = drawn("tumbling, delta(ts, 10)", rows)
    (group,) = picture.iter(f"{SVG}g")
    (sign,) = of_class(group, "flush")
    axis = [float(c.get("cx", "nan")) for c in picture.iter(f"{SVG}circle") if c.get("r") == "12"]
    assert axis[1] < float(sign.get("x", "nan")) < axis[2]


def test_punctuations_and_ticks_are_vertical_lines():
    assert 2 == len(of_class(drawn("tumbling, punct()", [1, punct(), punct()]), "punct"))
    assert 2 == len(of_class(drawn("tumbling, time(2)", range(5)), "clock"))


def test_a_forgotten_partition_is_crossed_out_in_its_lane():
    rows = [{"k": key} for key in "AB"]
    picture = drawn("tumbling, count(9), partitioned, partitionCount(1)", rows, by="k")
    assert {"k = A", "k = B", "partition forgotten"} <= set(words(picture))
    on_axis, in_legend = of_class(picture, "forget")
    assert on_axis.get("d") != in_legend.get("d")


def test_the_legend_explains_only_what_is_there():
    texts = words(drawn("tumbling, count(2)", range(2)))
    assert "flush" in texts
    assert not {"trigger", "tick", "punctuation", "first time full", "evicts 1"} & set(texts)


def test_text_from_rows_is_escaped():
    rows = [{"k": "<b>&\x00"}]
    seen = trace("tumbling, count(1), partitioned", rows, by="k")
    assert "k = <b>&?" in words(ElementTree.fromstring(seen.to_svg()))


def test_a_notebook_shows_the_picture():
    seen = trace("tumbling, count(2)", range(4))
    assert seen.to_svg() in seen.to_html()
    assert seen.to_html() == seen._repr_html_()


def test_the_picture_is_as_wide_as_the_stream_is_long():
    widths = [float(drawn("tumbling, count(2)", range(n)).get("width", "nan")) for n in (2, 50)]
    assert 560 == widths[0]
    assert 2000 < widths[1] < 2200


def test_colours_repeat_after_the_last_lane():
    rows = [{"k": i} for i in range(len(LANES) + 1)]
    fills = circles(drawn("tumbling, count(9), partitioned", rows, by="k"))
    assert [*LANES, LANES[0]] == fills
    assert LINE not in fills
