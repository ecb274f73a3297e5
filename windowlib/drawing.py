"""Drawings of operators and graphs: boxes from top to bottom, as text and as SVG.

>>> from windowlib import Count, Punct, Tumbling
>>> from windowlib.operators import Aggregate, Sort, agg
>>> graph = Sort("price", window=Tumbling(Count(3))).then(
...     Aggregate(Tumbling(Punct()), low=agg.first("price"))
... )
>>> print(text(graph))
         input
           │
           ▼
┌────────────────────┐
│ Sort               │
│ tumbling, count(3) │
└────────────────────┘
           │ P
           ▼ P
 ┌───────────────────┐
 │ Aggregate         │
 │ tumbling, punct() │
 └───────────────────┘
           │ P
           ▼
       Aggregate
<BLANKLINE>
P behind a line: it carries punctuations. P at an arrow: they are needed there.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from windowlib.graph import Graph, Stream
from windowlib.layers import Box, Edge, Layout, Net, arrange
from windowlib.operator import Operator
from windowlib.svg import FONT, INK, LANES, MUTED, label, tag
from windowlib.timeline import short

NOTE = "P behind a line: it carries punctuations. P at an arrow: they are needed there."
LONGEST = 60
ACROSS, DOWN, MARGIN = 7.4, 17, 20


class _Plan(NamedTuple):
    """What is drawn: a graph, or an operator as a graph of one node."""

    inputs: dict[str, bool]
    nodes: dict[str, Operator]
    feeds: dict[str, list[list[Stream]]]
    sinks: dict[str, Stream]
    punctuated: set[Stream]


def text(operator: Operator) -> str:
    """The drawing in lines of text."""
    layout = _layout(_plan(operator))
    drawn = "\n".join(_Canvas(layout).lines())
    return f"{drawn}\n\n{NOTE}" if _punctuated(layout) else drawn


def svg(operator: Operator) -> str:
    """The drawing as SVG text."""
    layout = _layout(_plan(operator))
    note = _punctuated(layout)
    wide = max(layout.width * ACROSS, 5.6 * len(NOTE) * note) + 2 * MARGIN
    high = layout.height * DOWN + 2 * MARGIN + 20 * note
    # The longest way around comes first, so that arrows and boxes lie on top.
    parts = [_line(net) for net in layout.nets]
    parts += [_arrows(net) for net in layout.nets]
    parts += [_box(box) for box in layout.boxes if box.kind != "pass"]
    if note:
        parts.append(label(MARGIN, high - 14, NOTE, 11, MUTED, text_anchor="start"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}" '
        f'width="{wide:g}" height="{high:g}" viewBox="0 0 {wide:g} {high:g}">\n'
        f"<title>{escape(short(operator.name, LONGEST))}</title>\n"
        f'<rect width="100%" height="100%" rx="6" fill="white"/>\n' + "\n".join(parts) + "\n</svg>"
    )


# -- what is drawn ------------------------------------------------------------------------------


def _plan(operator: Operator) -> _Plan:
    if isinstance(operator, Graph):
        feeds, sinks = operator.feeds, operator.sinks
        nodes = {name: operator.operators[name] for name in operator.names}
    else:
        model = operator.model
        nodes = {operator.name: operator}
        feeds = {operator.name: [[Stream(None, i)] for i in range(len(model.inputs))]}
        sinks = {port.name: Stream(operator.name, i) for i, port in enumerate(model.outputs)}
    ports = operator.model.inputs
    # A graph has no windows of its own, and what its inputs expect is settled.
    specs = operator.windows if len(operator.windows) == len(ports) else (None,) * len(ports)
    waiting = [port.expects(spec) for port, spec in zip(ports, specs, strict=True)]
    inputs = {port.name: waits for port, waits in zip(ports, waiting, strict=True)}
    streams = [Stream(name, i) for name in nodes for i in range(len(nodes[name].model.outputs))]
    punctuated = {each for each in streams if _carries(each, nodes, feeds, waiting)}
    return _Plan(inputs, nodes, feeds, sinks, punctuated)


def _carries(
    stream: Stream,
    nodes: dict[str, Operator],
    feeds: dict[str, list[list[Stream]]],
    waiting: list[bool],
) -> bool:
    """Whether punctuations are on a stream; on an input, if something waits for them."""
    if stream.node is None:
        return waiting[stream.port]
    output = nodes[stream.node].model.outputs[stream.port]
    if output.preserves is None:
        return output.punctuation == "generating"
    before = feeds[stream.node][output.preserves]
    return len(before) == 1 and _carries(before[0], nodes, feeds, waiting)


def _layout(plan: _Plan) -> Layout:
    boxes = {Stream(None, i): _input(*each) for i, each in enumerate(plan.inputs.items())}
    named = {name: _node(name, plan) for name in plan.nodes}
    edges = []
    for name, feeds in plan.feeds.items():
        for port, streams in enumerate(feeds):
            for node, out in streams:
                source = boxes[Stream(None, out)] if node is None else named[node]
                edges.append(Edge(source, out if node else 0, named[name], port))
    ends = []
    for name, (node, out) in plan.sinks.items():
        end = Box("output", (short(name, LONGEST),), ("",))
        source = boxes[Stream(None, out)] if node is None else named[node]
        edges.append(Edge(source, out if node else 0, end, 0))
        ends.append(end)
    return arrange([*boxes.values(), *named.values(), *ends], edges)


def _input(name: str, waits: bool) -> Box:
    return Box("input", (short(name, LONGEST),), outs=("P" * waits,))


def _node(name: str, plan: _Plan) -> Box:
    operator = plan.nodes[name]
    kind = type(operator).__name__
    title = kind if name == kind else f"{name}: {kind}"
    ports = operator.model.inputs
    lines = [short(title, LONGEST)]
    if isinstance(operator, Graph):
        lines.append(f"of {len(operator)} operators")
    several = len(ports) > 1
    for port, spec in zip(ports, operator.windows, strict=False):
        if spec is not None:
            lines.append(short(f"{port.name}: {spec}" if several else str(spec), LONGEST))
    ins = []
    for number, port in enumerate(ports):
        spec = operator.windows[number] if number < len(operator.windows) else None
        ins.append(_port(port.name if several else "", port.expects(spec)))
    outputs = operator.model.outputs
    outs = [
        _port(port.name if len(outputs) > 1 else "", Stream(name, number) in plan.punctuated)
        for number, port in enumerate(outputs)
    ]
    return Box("node", tuple(lines), tuple(ins), tuple(outs))


def _port(name: str, punctuated: bool) -> str:
    return " ".join([*([short(name, 24)] * bool(name)), *(["P"] * punctuated)])


def _punctuated(layout: Layout) -> bool:
    labels = [label for box in layout.boxes for label in (*box.ins, *box.outs)]
    return any(label.split(" ")[-1] == "P" for label in labels)


# -- as text ------------------------------------------------------------------------------------

UP, RIGHT, LOWER, LEFT = 1, 2, 4, 8
SIGNS = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"


class _Canvas:
    def __init__(self, layout: Layout) -> None:
        self.width = layout.width + 30  # labels of the last box may go beyond it
        self.ways = [[0] * self.width for _ in range(layout.height)]
        self.marks: dict[tuple[int, int], str] = {}
        for net in layout.nets:
            self._net(net)
        for box in layout.boxes:
            self._box(box)

    def lines(self) -> list[str]:
        return [
            "".join(self.marks.get((x, y), SIGNS[way]) for x, way in enumerate(row)).rstrip()
            for y, row in enumerate(self.ways)
        ]

    def _write(self, x: int, y: int, words: str) -> None:
        self.marks |= {(x + i, y): sign for i, sign in enumerate(words)}

    def _down(self, x: int, y: int, to: int) -> None:
        for row in range(y, to):
            self.ways[row][x] |= UP | LOWER

    def _net(self, net: Net) -> None:
        begin, bottom = net.source.leaves(net.out), net.source.y + net.source.height
        self._down(begin, bottom, net.track)
        ends = [(box.enters(port), box, port) for box, port in net.targets]
        self.ways[net.track][begin] |= UP
        for end, box, port in ends:
            for x in range(min(begin, end), max(begin, end)):
                self.ways[net.track][x] |= RIGHT
                self.ways[net.track][x + 1] |= LEFT
            self.ways[net.track][end] |= LOWER
            self._down(end, net.track + 1, box.y)
            if box.kind != "pass":
                self._write(end, box.y - 1, f"▼ {box.ins[port]}".rstrip())
        if net.source.kind != "pass" and net.source.outs[net.out]:
            self._write(begin + 2, bottom, net.source.outs[net.out])

    def _box(self, box: Box) -> None:
        if not box.framed:
            for i, words in enumerate(box.lines):
                self._write(box.x + (box.width - len(words)) // 2, box.y + i, words)
            return
        inner = box.width - 2
        self._write(box.x, box.y, f"┌{'─' * inner}┐")
        for i, words in enumerate(box.lines, 1):
            self._write(box.x, box.y + i, f"│ {words:<{inner - 1}}│")
        self._write(box.x, box.y + box.height - 1, f"└{'─' * inner}┘")


# -- as SVG -------------------------------------------------------------------------------------


def _x(column: float) -> float:
    return MARGIN + (column + 0.5) * ACROSS


def _y(row: float) -> float:
    return MARGIN + row * DOWN


def _line(net: Net) -> str:
    begin, bottom = net.source.leaves(net.out), net.source.y + net.source.height
    paths = []
    for box, port in net.targets:
        end, track = box.enters(port), _y(net.track + 0.5)
        turn = f"V{track:g}H{_x(end):g}" if end != begin else ""
        tip = _y(box.y) - 5 * (box.kind != "pass")
        paths.append(f"M{_x(begin):g} {_y(bottom):g}{turn}V{tip:g}")
    look = {"fill": "none", "stroke": MUTED, "stroke_width": 1.4, "stroke_linejoin": "round"}
    return tag("path", d="".join(paths), class_="stream", **look)


def _arrows(net: Net) -> str:
    found = []
    for box, port in net.targets:
        if box.kind != "pass":
            x, y = _x(box.enters(port)), _y(box.y)
            points = f"{x - 4:g},{y - 8:g} {x + 4:g},{y - 8:g} {x:g},{y:g}"
            found.append(tag("polygon", points=points, fill=MUTED, class_="arrow"))
            found.append(_side(x, y - 4, box.ins[port]))
    if net.source.kind != "pass":
        bottom = _y(net.source.y + net.source.height)
        found.append(_side(_x(net.source.leaves(net.out)), bottom + 12, net.source.outs[net.out]))
    return "".join(found)


def _side(x: float, y: float, words: str) -> str:
    return label(x + 8, y, words, 11, MUTED, text_anchor="start") if words else ""


def _box(box: Box) -> str:
    left, top = _x(box.x - 0.5), _y(box.y)
    wide, high = box.width * ACROSS, box.height * DOWN
    if not box.framed:
        middle = {"font_weight": "600", "class_": box.kind}
        return label(left + wide / 2, top + 13, box.lines[0], 12, LANES[0], **middle)
    place = {"x": f"{left:g}", "y": f"{top:g}", "width": f"{wide:g}", "height": f"{high:g}"}
    frame = tag("rect", **place, rx=6, fill="#eff4ff", stroke=LANES[0], class_="node")
    rows = [
        label(
            left + 2 * ACROSS,
            top + (i + 1.5) * DOWN + 4,
            words,
            12 if i == 0 else 11,
            INK if i == 0 else MUTED,
            text_anchor="start",
            font_weight="600" if i == 0 else None,
        )
        for i, words in enumerate(box.lines)
    ]
    return frame + "".join(rows)
