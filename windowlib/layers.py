"""Where the boxes and lines of a drawing go: layers from top to bottom, in cells of one character.

A box stands below all that it reads. A line that passes a layer gets a narrow box of its own there,
so that every line leads from one layer to the next. Between two layers, each stream has at most one
horizontal piece, its track.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

GAP = 3  # cells between two boxes of a layer
SWEEPS = 8
Kind = Literal["input", "node", "output", "pass"]


@dataclass(eq=False, slots=True)
class Box:
    """A box, the labels of its ports, and its place: x and y of its upper left corner."""

    kind: Kind
    lines: tuple[str, ...]
    ins: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    layer: int = 0
    x: int = 0
    y: int = 0
    nudged: dict[int, int] = field(default_factory=dict)

    @property
    def framed(self) -> bool:
        """Whether it has a border."""
        return self.kind == "node"

    @property
    def width(self) -> int:
        """Its columns: as many as its lines and the labels of its ports need."""
        if self.kind == "pass":
            return 1
        text = max(map(len, self.lines), default=0) + 4 * self.framed
        return max(text, _room(self.ins), _room(self.outs))

    @property
    def height(self) -> int:
        """Its rows."""
        return 0 if self.kind == "pass" else len(self.lines) + 2 * self.framed

    def enters(self, port: int) -> int:
        """The column in which a line reaches an input port."""
        return self.x + _offset(self.ins, port, self.width) + self.nudged.get(port, 0)

    def leaves(self, port: int) -> int:
        """The column in which a line leaves an output port."""
        return self.x + _offset(self.outs, port, self.width)


def _room(labels: Sequence[str]) -> int:
    """How wide a box must be for the labels of its ports, each to the right of its line."""
    if len(labels) < 2:
        return 2 * max((len(label) + 2 for label in labels if label), default=0)
    return sum(len(label) + 4 for label in labels) + 2


def _offset(labels: Sequence[str], port: int, width: int) -> int:
    if len(labels) < 2:
        return width // 2
    spare = width - _room(labels)
    before = sum(len(label) + 4 for label in labels[:port])
    return 2 + before + spare * (2 * port + 1) // (2 * len(labels))


class Edge(NamedTuple):
    """A stream from an output port to an input port."""

    source: Box
    out: int
    target: Box
    port: int


class Net(NamedTuple):
    """A stream between two layers: the column it comes from, and those it goes to."""

    source: Box
    out: int
    targets: tuple[tuple[Box, int], ...]
    track: int
    """The row of its horizontal piece, or of any piece if it goes straight down."""


@dataclass(slots=True)
class Layout:
    """Boxes with places, and lines between them; `width` and `height` of all."""

    boxes: list[Box]
    nets: list[Net]
    width: int
    height: int


def arrange(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Give every box a place, and every stream its lines."""
    _assign(boxes, edges)
    layers, short = _split(boxes, edges)
    _order(layers, short)
    _place(layers, short)
    found = [box for layer in layers for box in layer]
    nets, height = _route(layers, short)
    return Layout(found, nets, max(box.x + box.width for box in found), height)


def _assign(boxes: Sequence[Box], edges: Sequence[Edge]) -> None:
    """Layers by the longest way from an input; an input stands right above its first reader."""
    for _ in boxes:
        for edge in edges:
            edge.target.layer = max(edge.target.layer, edge.source.layer + 1)
    for box in boxes:
        if box.kind == "input":
            box.layer = min(edge.target.layer for edge in edges if edge.source is box) - 1


def _split(boxes: Sequence[Box], edges: Sequence[Edge]) -> tuple[list[list[Box]], list[Edge]]:
    """The layers, and edges that lead from one to the next, through narrow boxes."""
    layers: list[list[Box]] = [[] for _ in range(max(box.layer for box in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    passes: dict[tuple[int, int, int], Box] = {}
    short = {}
    for source, out, target, port in edges:
        at, leaving = source, out
        for layer in range(source.layer + 1, target.layer):
            name = (id(source), out, layer)
            if name not in passes:
                passes[name] = Box("pass", (), ("",), ("",), layer)
                layers[layer].append(passes[name])
            short[(id(at), leaving, id(passes[name]), 0)] = Edge(at, leaving, passes[name], 0)
            at, leaving = passes[name], 0
        short[(id(at), leaving, id(target), port)] = Edge(at, leaving, target, port)
    return layers, list(short.values())


# -- order within layers ------------------------------------------------------------------------


def _order(layers: list[list[Box]], edges: list[Edge]) -> None:
    """Sort each layer by where its neighbours stand, up and down; the fewest crossings win."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, edges)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            rank = _ranks(layers)
            wanted = {box: _wanted(box, edges, rank, down) for box in layer}
            layer.sort(key=lambda box: wanted[box])
        crossings = _crossings(layers, edges)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _ranks(layers: list[list[Box]]) -> dict[Box, int]:
    return {box: i for layer in layers for i, box in enumerate(layer)}


def _leaves(edge: Edge, rank: dict[Box, int]) -> float:
    return rank[edge.source] + edge.out / (len(edge.source.outs) + 1)


def _enters(edge: Edge, rank: dict[Box, int]) -> float:
    return rank[edge.target] + edge.port / (len(edge.target.ins) + 1)


def _wanted(box: Box, edges: list[Edge], rank: dict[Box, int], down: bool) -> float:
    if down:
        near = [_leaves(edge, rank) for edge in edges if edge.target is box]
    else:
        near = [_enters(edge, rank) for edge in edges if edge.source is box]
    return sum(near) / len(near) if near else rank[box]


def _crossings(layers: list[list[Box]], edges: list[Edge]) -> int:
    rank, found = _ranks(layers), 0
    for i, a in enumerate(edges):
        for b in edges[:i]:
            if a.source.layer == b.source.layer:
                apart = _leaves(a, rank) - _leaves(b, rank)
                found += apart * (_enters(a, rank) - _enters(b, rank)) < 0
    return found


# -- places -------------------------------------------------------------------------------------


def _place(layers: list[list[Box]], edges: list[Edge]) -> None:
    """Move boxes to below and above what they are connected with, as far as there is room."""
    for layer in layers:
        _apart(layer, [0] * len(layer))
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _apart(layer, [box.x + _pull(box, edges, sweep % 2 == 0) for box in layer])
    left = min(box.x for layer in layers for box in layer)
    for layer in layers:
        for box in layer:
            box.x -= left


def _pull(box: Box, edges: list[Edge], down: bool) -> int:
    """How far its neighbours above, or below, would have it move."""
    ways = [
        edge.source.leaves(edge.out) - edge.target.enters(edge.port)
        for edge in edges
        if (edge.target if down else edge.source) is box
    ]
    return round(sum(ways) / len(ways)) * (1 if down else -1) if ways else 0


def _apart(layer: list[Box], wanted: list[int]) -> None:
    """Places as near to those wanted as the boxes' widths allow, to both sides alike."""
    right, left = list(wanted), list(wanted)
    for i in range(1, len(layer)):
        right[i] = max(right[i], right[i - 1] + layer[i - 1].width + GAP)
    for i in range(len(layer) - 2, -1, -1):
        left[i] = min(left[i], left[i + 1] - GAP - layer[i].width)
    for box, a, b in zip(layer, right, left, strict=True):
        box.x = (a + b) // 2


# -- lines --------------------------------------------------------------------------------------


def _route(layers: list[list[Box]], edges: list[Edge]) -> tuple[list[Net], int]:
    """Rows for the layers, and tracks for the streams between them."""
    nets: list[Net] = []
    y = 0
    for number, layer in enumerate(layers):
        for box in layer:
            box.y = y
        y += max(box.height for box in layer)
        ways = _ways([edge for edge in edges if edge.source.layer == number])
        rows = _tracks(ways)
        nets += [Net(*way, y + 1 + row) for way, row in zip(ways, rows, strict=True)]
        bent = [row for way, row in zip(ways, rows, strict=True) if len(set(_span(way))) > 1]
        # One row for the labels of outputs, one for arrows and the labels of inputs.
        y += 2 + max(bent, default=-1) + 1 if ways else 0
    return nets, y


Way = tuple[Box, int, tuple[tuple[Box, int], ...]]


def _ways(edges: list[Edge]) -> list[Way]:
    found: dict[tuple[int, int], tuple[Box, int, list[tuple[Box, int]]]] = {}
    for source, out, target, port in edges:
        found.setdefault((id(source), out), (source, out, []))[2].append((target, port))
    ways = [(source, out, tuple(targets)) for source, out, targets in found.values()]
    return sorted(ways, key=_outward)


def _outward(way: Way) -> int:
    """Who goes left turns before those to the right of it, who goes right before those to the left.

    So lines with the same direction do not cross.
    """
    begin, ends = way[0].leaves(way[1]), _ends(way)
    return begin if sum(ends) / len(ends) < begin else -begin


def _ends(way: Way) -> set[int]:
    return {box.enters(port) for box, port in way[2]}


def _tracks(ways: list[Way]) -> list[int]:
    """The row of each stream: no two pieces lie on one another, nor two ends in one column."""
    for _ in range(len(ways) + 1):
        before = [_before(ways, i) for i in range(len(ways))]
        order = _sorted(before)
        stuck = [i for i in range(len(ways)) if i not in order]
        if not stuck:
            break
        order += stuck
        box, port = ways[stuck[0]][2][0]
        box.nudged[port] = box.nudged.get(port, 0) + 1
    rows: dict[int, int] = {}
    for i in order:
        taken = {rows[j] for j in rows if _overlap(ways[i], ways[j])}
        row = max((rows[j] + 1 for j in before[i] if j in rows), default=0)
        while row in taken:
            row += 1
        rows[i] = row
    return [rows[i] for i in range(len(ways))]


def _before(ways: list[Way], i: int) -> set[int]:
    """The streams that must have turned away before this one comes down in their column."""
    return {
        j
        for j, (source, out, _) in enumerate(ways)
        if j != i and source.leaves(out) in _ends(ways[i]) - _ends(ways[j])
    }


def _sorted(before: list[set[int]]) -> list[int]:
    order: list[int] = []
    ready = True
    while ready:
        ready = False
        for i, needs in enumerate(before):
            if i not in order and needs <= set(order):
                order.append(i)
                ready = True
    return order


def _overlap(a: Way, b: Way) -> bool:
    if len(_ends(a)) == 1 and _ends(a) == _ends(b):
        return False  # they are merged, and may be from here on
    (first, last), (begin, end) = (_span(way) for way in (a, b))
    straight = first == last or begin == end
    return not straight and first <= end + 1 and begin <= last + 1


def _span(way: Way) -> tuple[int, int]:
    columns = {way[0].leaves(way[1])} | _ends(way)
    return min(columns), max(columns)
