"""Operators and graphs as Mermaid text, which documentation sites, wikis and editors draw.

>>> from windowlib import Count, Punct, Tumbling
>>> from windowlib.operators import Aggregate, Sort, agg
>>> graph = Sort("price", window=Tumbling(Count(3))).then(
...     Aggregate(Tumbling(Punct()), low=agg.first("price"))
... )
>>> print(flowchart(graph))
flowchart TD
    in0(["input"])
    op0["Sort<br/>tumbling, count(3)"]
    op1["Aggregate<br/>tumbling, punct()"]
    out0(["Aggregate"])
    in0 --> op0
    op0 ==>|"P"| op1
    op1 ==> out0
    %% A thick line carries punctuations. P: they are needed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from windowlib.runtime.graph import Graph, Stream
from windowlib.runtime.operator import Operator
from windowlib.tools.timeline import short

NOTE = "A thick line carries punctuations. P: they are needed there."
LONGEST = 60
# Signs that end a label, begin an entity, or are markup in it.
SPECIAL = {ord(sign): f"#{ord(sign)};" for sign in '"#&;<>`\\'}


class FlowGraph(NamedTuple):
    """The nodes and streams of a graph; an operator alone is a graph of one node."""

    operator: Operator
    nodes: dict[str, Operator]
    feeds: dict[str, list[list[Stream]]]
    sinks: dict[str, Stream]

    @property
    def punctuated_inputs(self) -> list[bool]:
        """Which inputs must carry punctuations, because their readers need them."""
        ports = self.operator.model.inputs
        # A graph has no windows of its own, and what its inputs expect is settled.
        windows = self.operator.windows
        specs = windows if len(windows) == len(ports) else (None,) * len(ports)
        return [port.expects(spec) for port, spec in zip(ports, specs, strict=True)]

    def punctuated(self, stream: Stream) -> bool:
        """Whether a stream carries punctuations."""
        if stream.node is None:
            return self.punctuated_inputs[stream.port]
        output = self.nodes[stream.node].model.outputs[stream.port]
        if output.preserves is None:
            return output.punctuation == "generating"
        before = self.feeds[stream.node][output.preserves]
        return len(before) == 1 and self.punctuated(before[0])


def flow_graph(operator: Operator) -> FlowGraph:
    """The nodes and streams of an operator."""
    if isinstance(operator, Graph):
        nodes = {name: operator.operators[name] for name in operator.names}
        return FlowGraph(operator, nodes, operator.feeds, operator.sinks)
    name, model = operator.name, operator.model
    feeds = {name: [[Stream(None, port)] for port in range(len(model.inputs))]}
    sinks = {port.name: Stream(name, number) for number, port in enumerate(model.outputs)}
    return FlowGraph(operator, {name: operator}, feeds, sinks)


def flowchart(operator: Operator) -> str:
    """The flowchart of an operator, from top to bottom."""
    drawn = flow_graph(operator)
    edges = list(_edges(drawn))
    lines = ["flowchart TD", *_boxes(drawn), *edges]
    if any("==>" in edge or '"P"' in edge for edge in edges):
        lines.append(f"%% {NOTE}")
    return "\n    ".join(lines)


def _boxes(drawn: FlowGraph) -> Iterator[str]:
    for number, port in enumerate(drawn.operator.model.inputs):
        yield f'in{number}(["{_text(port.name)}"])'
    for number, (name, operator) in enumerate(drawn.nodes.items()):
        lines = "<br/>".join(map(_text, node_lines(name, operator)))
        yield f'op{number}["{lines}"]'
    for number, name in enumerate(drawn.sinks):
        yield f'out{number}(["{_text(name)}"])'


def node_lines(name: str, operator: Operator) -> list[str]:
    """The lines in the box of an operator: its name and kind, and its windows."""
    kind = type(operator).__name__
    lines = [kind if name == kind else f"{name}: {kind}"]
    if isinstance(operator, Graph):
        lines.append(f"of {len(operator)} operators")
    ports = operator.model.inputs
    for port, spec in zip(ports, operator.windows, strict=False):
        if spec is not None:
            lines.append(f"{port.name}: {spec}" if len(ports) > 1 else str(spec))
    return lines


def _edges(drawn: FlowGraph) -> Iterator[str]:
    numbers = {name: number for number, name in enumerate(drawn.nodes)}
    for name, feeds in drawn.feeds.items():
        for port, streams in enumerate(feeds):
            for stream in streams:
                label = _label(drawn, stream, name, port)
                yield _edge(drawn, numbers, stream, f"op{numbers[name]}", label)
    for number, stream in enumerate(drawn.sinks.values()):
        yield _edge(drawn, numbers, stream, f"out{number}", _output(drawn, stream))


def _edge(drawn: FlowGraph, numbers: dict[str, int], stream: Stream, to: str, label: str) -> str:
    source = f"in{stream.port}" if stream.node is None else f"op{numbers[stream.node]}"
    line = "==>" if drawn.punctuated(stream) else "-->"
    return f'{source} {line}|"{label}"| {to}' if label else f"{source} {line} {to}"


def _label(drawn: FlowGraph, stream: Stream, name: str, port: int) -> str:
    """The ports of a stream, where there are several, and whether it needs punctuations."""
    operator = drawn.nodes[name]
    ports, windows = operator.model.inputs, operator.windows
    left = _output(drawn, stream)
    entered = _text(ports[port].name) if len(ports) > 1 else ""
    ways = f"{left} to {entered}" if left and entered else left or entered
    needed = ports[port].expects(windows[port] if port < len(windows) else None)
    return " ".join([*[ways] * bool(ways), *["P"] * needed])


def _output(drawn: FlowGraph, stream: Stream) -> str:
    """The name of the output that a stream leaves by, if there are several."""
    if stream.node is None:
        return ""
    outputs = drawn.nodes[stream.node].model.outputs
    return _text(outputs[stream.port].name) if len(outputs) > 1 else ""


def _text(text: str) -> str:
    return short(text, LONGEST).translate(SPECIAL)
