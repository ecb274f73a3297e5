"""How the work of an operator may be spread over several places, by the columns of its rows.

Rows that differ in the columns of `Operator.splits_by` never meet, so each place may have a
running operator of its own. Whatever is not known to be so is kept in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from windowlib.events import HANDLERS
from windowlib.policies import Punct

if TYPE_CHECKING:
    from windowlib.graph import Graph, Stream
    from windowlib.operator import Operator

Names = tuple[str, ...]

WORK = (*HANDLERS, "on_tuple", "on_punctuation", "on_advance", "on_finish", "forward")
STATE = ("snapshot", "summarizer", "container")


def names_in(by: Any) -> Names | None:
    """The columns of a key, once each; None if something in it is no name.

    >>> names_in("symbol"), names_in(("src", "dst")), names_in(("src", 1)), names_in(None)
    (('symbol',), ('src', 'dst'), None, ())
    """
    parts = by if isinstance(by, tuple) else () if by is None else (by,)
    return tuple(dict.fromkeys(parts)) if all(isinstance(part, str) for part in parts) else None


def works_as(operator: Operator, kind: type[Operator]) -> bool:
    """Whether an operator of a subclass does its work as `kind` does, with nothing changed."""
    own = type(operator)
    return all(getattr(own, name) is getattr(kind, name) for name in (*WORK, *STATE))


def punctuated(operator: Operator) -> bool:
    """Whether punctuations, which are of the whole stream, change what it holds."""
    ports = zip(operator.model.inputs, operator.windows, strict=True)
    return any(
        port.expects(spec) or (spec is not None and isinstance(spec.evict, Punct))
        for port, spec in ports
    )


def by_window(operator: Operator) -> Names:
    """The columns that partition the only window; none if it has other work than that."""
    spec = operator.windows[0] if len(operator.windows) == 1 else None
    if spec is None or punctuated(operator):
        return ()
    return names_in(spec.by) or ()


def by_default(operator: Operator) -> Names:
    """The same for a class of which nothing is known but what it overrides."""
    from windowlib.operator import Operator

    own = ("snapshot", "container", "on_punctuation")  # may keep something across partitions
    plain = all(getattr(type(operator), name) is getattr(Operator, name) for name in own)
    return by_window(operator) if operator._plain and plain else ()


FIRINGS = ("before_flush", "on_trigger", "on_empty_punctuation")
"""What a class may do and still depend on the window that fires alone."""


def beyond_window(operator: Operator) -> str:
    """What the rows of a class of which nothing is known depend on beside the window that fires."""
    from windowlib.operator import Operator

    for name in (*WORK, "snapshot", "container"):
        if name not in FIRINGS and getattr(type(operator), name) is not getattr(Operator, name):
            return f"what {name} does"
    evicts = any(spec is not None and spec.forget is not None for spec in operator.windows)
    return "which partitions are evicted" if evicts else ""


# -- graphs ---------------------------------------------------------------------------------------


def graph_needs(graph: Graph, port: int) -> Names | None:
    """The columns that the readers of an input need; None: whole rows."""
    entry = _entry(port)
    if entry in graph.sinks.values():
        return None
    found: dict[str, None] = {}
    for node, at, stream in graph._edges():
        if stream == entry:
            needed = graph.operators[node].needs(at)
            if needed is None:
                return None
            found |= dict.fromkeys(needed)
    return tuple(found)


def graph_splits(graph: Graph, port: int) -> Names | None:
    """The columns by which every node can be split, and which reach it as they are."""
    keeping = [name for name in graph.names if any(_meeting(graph.operators[name]))]
    if not _reaches(graph, _entry(port), set(keeping)):
        return None
    shared = [_same_names(graph.operators[name]) for name in keeping]
    return tuple(
        column
        for column in shared[0]
        if all(column in names for names in shared) and _arrives(graph, column, keeping)
    )


def _entry(port: int) -> Stream:
    from windowlib.graph import Stream

    return Stream(None, port)


def _meeting(operator: Operator) -> list[bool]:
    """For each input, whether its rows meet others."""
    return [operator.splits_by(port) is not None for port in range(len(operator.model.inputs))]


def _same_names(operator: Operator) -> Iterable[str]:
    """The columns that split an operator and have one name at all inputs where rows meet."""
    keys = [operator.splits_by(port) for port in range(len(operator.model.inputs))]
    met = [key for key in keys if key is not None]
    return [names[0] for names in zip(*met, strict=False) if len(set(names)) == 1]


def _reaches(graph: Graph, stream: Stream, nodes: set[str]) -> bool:
    """Whether rows of a stream, or what is made of them, come to where rows meet."""
    return any(
        (node in nodes and _meeting(graph.operators[node])[port])
        or any(_reaches(graph, output, nodes) for output in _outputs(graph, node))
        for node, port, read in graph._edges()
        if read == stream
    )


def _outputs(graph: Graph, node: str) -> Iterator[Stream]:
    from windowlib.graph import Stream

    return (Stream(node, port) for port in range(len(graph.operators[node].model.outputs)))


def _arrives(graph: Graph, column: str, nodes: Iterable[str]) -> bool:
    """Whether a column of the inputs comes to these nodes, wherever rows meet, as it is."""
    return all(
        carries(graph, stream, column)
        for node in nodes
        for meeting, feeds in zip(_meeting(graph.operators[node]), graph.feeds[node], strict=True)
        if meeting
        for stream in feeds
    )


def carries(graph: Graph, stream: Stream, column: str) -> bool:
    """Whether the rows of a stream have a column as the rows of the inputs had it."""
    if stream.node is None:
        return True
    return graph.operators[stream.node].passes(column, stream.port) and all(
        carries(graph, each, column) for feeds in graph.feeds[stream.node] for each in feeds
    )
