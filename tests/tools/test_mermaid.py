"""Flowcharts of operators and graphs: every operator and stream is there, and names are safe."""
# ruff: noqa: SIM300 - asserts read expected first

import re

from windowlib import Count, Graph, Punct, Sliding, Tumbling
from windowlib.operators import Aggregate, Filter, Join, Sort, agg
from windowlib.tools.mermaid import NOTE

BOX = re.compile(r'(in|op|out)\d+(\(\["[^"]*"\]\)|\["[^"]*"\])')
EDGE = re.compile(r'(in|op)\d+ (-->|==>)(\|"[^"]*"\|)? (op|out)\d+')


def join():
    return Join(left=Sliding(Count(0)), right=Sliding(Count(9)), on="x")


def split():
    return Filter(bool, rejected="port")


def chart(operator):
    """The lines of a flowchart, each of which is a box or an edge."""
    head, *lines = operator.to_mermaid().splitlines()
    assert "flowchart TD" == head
    found = [line.removeprefix("    ") for line in lines]
    assert [] == [line for line in found if not line.startswith("%%") and not is_known(line)]
    return found


def is_known(line):
    return BOX.fullmatch(line) or EDGE.fullmatch(line)


def edges(operator):
    return [line for line in chart(operator) if EDGE.fullmatch(line)]


def test_a_graph_shows_inputs_operators_and_outputs_and_then_streams():
    graph = Graph(
        inputs=["queries", "readings"],
        matches=(join(), "queries", "readings"),
        nearest=(Aggregate(Tumbling(Punct()), n=agg.count()), "matches"),
    )
    expected = [
        'in0(["queries"])',
        'in1(["readings"])',
        'op0["matches: Join<br/>left: sliding, count(0), count(1)'
        '<br/>right: sliding, count(9), count(1)"]',
        'op1["nearest: Aggregate<br/>tumbling, punct()"]',
        'out0(["nearest"])',
        'in0 -->|"left"| op0',
        'in1 -->|"right"| op0',
        'op0 ==>|"P"| op1',
        "op1 ==> out0",
        f"%% {NOTE}",
    ]
    assert expected == chart(graph)


def test_streams_that_are_merged_both_lead_to_the_port():
    graph = Graph(inputs=["a", "b"], kept=(Filter(bool), ["a", "b"]))
    assert ["in0 --> op0", "in1 --> op0", "op0 --> out0"] == edges(graph)


def test_a_stream_with_two_readers_leads_to_both():
    graph = Graph(inputs="a", f=(Filter(bool), "a"), g=(Filter(bool), "a"))
    assert ["in0 --> op0", "in0 --> op1"] == edges(graph)[:2]


def test_outputs_beside_the_first_are_named_at_their_line():
    found = edges(Graph(inputs="a", f=(split(), "a")))
    assert ['op0 -->|"out"| out0', 'op0 -->|"rejected"| out1'] == found[1:]


def test_a_line_says_where_it_leaves_and_where_it_enters():
    graph = Graph(inputs="a", s=(split(), "a"), j=(join(), "s.rejected", "s"))
    found = edges(graph)
    assert ['op0 -->|"rejected to left"| op1', 'op0 -->|"out to right"| op1'] == found[1:3]


def test_an_operator_alone_is_a_box_with_its_ports():
    found = chart(Aggregate(Tumbling(Punct()), n=agg.count()))
    assert 'in0(["in"])' == found[0]
    assert 'op0["Aggregate<br/>tumbling, punct()"]' == found[1]
    assert 'out0(["out"])' == found[2]


def test_a_graph_within_a_graph_is_one_box():
    inner = Sort("x", window=Tumbling(Count(2))).then(Filter(bool))
    assert 'op0["part: Graph<br/>of 2 operators"]' in chart(Graph(inputs="a", part=(inner, "a")))


def test_punctuation_is_marked_where_it_is_carried_and_where_it_is_needed():
    total = Aggregate(Tumbling(Punct()), n=agg.count())
    assert ['in0 ==>|"P"| op0', "op0 ==> out0"] == edges(total)
    # What comes in is preserved.
    chain = Filter(bool).then(total)
    assert ["==>", '==>|"P"|', "==>"] == [line.split(" ")[1] for line in edges(chain)]
    assert ["in0 --> op0", "op0 --> out0"] == edges(Filter(bool))
    assert NOTE not in Filter(bool).to_mermaid()


def test_names_are_escaped():
    name = '<b>&"\x00'
    graph = Graph(inputs=name, **{'i"];#x': (Filter(bool), name)})  # type: ignore[arg-type]
    found = chart(graph)
    assert 'in0(["#60;b#62;#38;#34;?"])' == found[0]
    assert 'op0["i#34;]#59;#35;x: Filter"]' == found[1]


def test_long_names_are_cut():
    graph = Graph(inputs="a" * 500, f=(Filter(bool), "a" * 500))
    assert max(map(len, graph.to_mermaid().splitlines())) < 100
