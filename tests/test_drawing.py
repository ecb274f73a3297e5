"""Drawings of graphs: everything is there, nothing lies on anything else, and names are safe."""
# ruff: noqa: SIM300 - asserts read expected first

from itertools import combinations
from typing import Any
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from operators import Aggregate, Filter, Functor, Join, Sort, Union, agg
from windowlib import Count, Graph, Punct, Sliding, Tumbling
from windowlib.drawing import NOTE
from windowlib.layers import Box, Edge, arrange

SVG = "{http://www.w3.org/2000/svg}"


def join():
    return Join(left=Sliding(Count(0)), right=Sliding(Count(9)), on="x")


def split():
    return Filter(bool, rejected="port")


def picture(operator):
    return ElementTree.fromstring(operator.to_svg())


def words(drawn):
    return [element.text for element in drawn.iter(f"{SVG}text")]


def of_class(drawn, name):
    return [element for element in drawn.iter() if element.get("class") == name]


def test_a_graph_is_drawn_from_top_to_bottom():
    graph = Graph(
        inputs=["queries", "readings"],
        matches=(join(), "queries", "readings"),
        nearest=(Aggregate(Tumbling(Punct()), n=agg.count()), "matches"),
    )
    expected = f"""\
   queries          readings
      │                 │
      ▼ left            ▼ right
┌────────────────────────────────────┐
│ matches: Join                      │
│ left: sliding, count(0), count(1)  │
│ right: sliding, count(9), count(1) │
└────────────────────────────────────┘
                   │ P
                   ▼ P
        ┌────────────────────┐
        │ nearest: Aggregate │
        │ tumbling, punct()  │
        └────────────────────┘
                   │ P
                   ▼
                nearest

{NOTE}"""
    assert expected == graph.to_text()


def test_streams_that_are_merged_meet_before_the_port():
    graph = Graph(inputs=["a", "b"], kept=(Filter(bool), ["a", "b"]))
    expected = """\
      a   b
      │   │
      └─┬─┘
        ▼
┌──────────────┐
│ kept: Filter │
└──────────────┘
        │
        ▼
      kept"""
    assert expected == graph.to_text()


def test_a_stream_with_two_readers_parts():
    graph = Graph(inputs="a", f=(Filter(bool), "a"), g=(Filter(bool), "a"))
    assert "┌───────┴───────┐" in graph.to_text()


def test_outputs_beside_the_first_are_named_at_their_line():
    assert "│ out  │ rejected" in Graph(inputs="a", f=(split(), "a")).to_text()


def test_crossed_outputs_cross_once():
    graph = Graph(inputs="a", s=(split(), "a"), j=(join(), "s.rejected", "s"))
    assert 1 == graph.to_text().count("┼")


def test_an_operator_alone_is_a_box_with_its_ports():
    text = Aggregate(Tumbling(Punct()), n=agg.count()).to_text()
    assert text.splitlines()[0].strip() == "in"
    assert "│ tumbling, punct() │" in text
    assert text.partition("\n\n")[0].splitlines()[-1].strip() == "out"


def test_a_graph_within_a_graph_is_one_box():
    inner = Sort("x", window=Tumbling(Count(2))).then(Filter(bool))
    text = Graph(inputs="a", part=(inner, "a")).to_text()
    assert "part: Graph" in text
    assert "of 2 operators" in text


def test_an_input_stands_right_above_its_first_reader():
    first = Functor(lambda t: t)
    graph = Graph(inputs=["a", "b"], f=(first, "a"), u=(Union(inputs=2), "f", "b"))
    rows = graph.to_text().splitlines()
    assert ["a"] == rows[0].split()
    assert "┌────────────┐   b" == rows[3]


def test_punctuation_is_marked_where_it_is_carried_and_where_it_is_needed():
    def marks(operator):
        return operator.to_text().partition("\n\n")[0].count("P")

    total = Aggregate(Tumbling(Punct()), n=agg.count())
    assert 3 == marks(total)  # the input carries it, the port needs it, the output has its own
    assert 4 == marks(Filter(bool).then(total))  # what comes in is preserved
    assert 0 == marks(Filter(bool))
    assert NOTE not in Filter(bool).to_text()


def test_the_picture_has_a_box_a_node_and_an_arrow_an_edge():
    graph = Graph(
        inputs=["a", "b"],
        s=(split(), "a"),
        j=(join(), "s", "b"),
        u=(Filter(bool), ["s.rejected", "a"]),
    )
    drawn = picture(graph)
    assert 3 == len(of_class(drawn, "node"))
    assert 2 == len(of_class(drawn, "input"))
    assert 2 == len(of_class(drawn, "output"))
    assert 5 + 2 == len(of_class(drawn, "arrow"))


def test_names_are_escaped():
    graph = Graph(inputs="<b>&\x00", **{"<i>": (Filter(bool), "<b>&\x00")})  # type: ignore[arg-type]
    found = words(picture(graph))
    assert {"<b>&?", "<i>: Filter", "<i>"} <= set(found)


def test_long_names_are_cut():
    graph = Graph(inputs="a" * 500, f=(Filter(bool), "a" * 500))
    assert max(map(len, graph.to_text().splitlines())) < 100


# -- any graph --


@st.composite
def graphs(draw):
    """Boxes in a row, each reading from some before it."""
    inputs = [Box("input", ("in",), outs=("",)) for _ in range(draw(st.integers(1, 3)))]
    boxes, edges = list(inputs), []
    for number in range(draw(st.integers(1, 8))):
        ports = draw(st.integers(1, 3))
        outs = ("", "late", "rejected")[: draw(st.integers(1, 3))]
        box = Box("node", (f"n{number}",), ("left",) * ports, outs)
        for port in range(ports):
            for source in draw(st.lists(st.sampled_from(boxes), min_size=1, max_size=2)):
                out = draw(st.integers(0, len(source.outs) - 1))
                edges.append(Edge(source, out, box, port))
        boxes.append(box)
    read = {id(edge.source) for edge in edges}
    return [box for box in boxes if box.kind == "node" or id(box) in read], edges


def verticals(layout):
    """The cells of vertical pieces: the streams above their tracks, and the ports below them."""
    found: dict[tuple[int, int], tuple[list[Any], set[Any]]] = {}
    for net in layout.nets:
        begin = net.source.leaves(net.out)
        for y in range(net.source.y + net.source.height, net.track):
            found.setdefault((begin, y), ([], set()))[0].append(net)
        for box, port in net.targets:
            for y in range(net.track + 1, box.y):
                found.setdefault((box.enters(port), y), ([], set()))[1].add((box, port))
    return found


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_boxes_stand_apart_and_no_line_goes_through_one(graph):
    layout = arrange(*graph)
    for a, b in combinations(layout.boxes, 2):
        assert a.layer != b.layer or a.x + a.width <= b.x or b.x + b.width <= a.x
    for x, y in verticals(layout):
        for box in layout.boxes:
            inside = box.x <= x < box.x + box.width and box.y <= y < box.y + box.height
            assert not inside


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_edge_leads_down_to_the_next_layer(graph):
    layout = arrange(*graph)
    for net in layout.nets:
        for box, _ in net.targets:
            assert net.source.layer + 1 == box.layer
            assert net.source.y + net.source.height <= net.track < box.y


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_no_two_streams_share_a_column(graph):
    for nets, ports in verticals(arrange(*graph)).values():
        assert len(nets) <= 1
        assert len(ports) <= 1
        assert not nets or ports <= set(nets[0].targets)
