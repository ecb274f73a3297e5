"""Graphs of operators that run in one process, with punctuations between them (paper, 3.4).

A graph is checked when it is built: names, ports, loops, and that every port that expects
punctuations gets them from exactly one stream that carries them. It is itself an operator.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from windowlib.durations import Instant
from windowlib.errors import ModelError, PunctuationError, suggestion
from windowlib.extensions import extension
from windowlib.runtime.arrival_order import (
    check_orders,
    keeps_order,
    order_at,
    stated_order,
    upstream,
)
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.runtime.splitting import Names
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import By, Order

Feed = str | Sequence[str]
Node = tuple[Any, ...]
"""An operator and, for each of its input ports, the name of a stream or a list of names."""


class Stream(NamedTuple):
    """An output port of a node, or an input of the graph, whose node is then None."""

    node: str | None
    port: int


class Graph(Operator):
    """Operators by name, each with the streams it reads.

    Rows go through the whole graph before the next row comes in. What no operator reads is an
    output of the graph, so nothing is lost.

    Args:
        inputs: the names of the streams that come from outside.
        outputs: the streams that go outside, the main one first; everything that no operator
            reads unless given. What is then neither read nor named is dropped.
        name: what messages and graphs call it.
        nodes: by name, an operator and what each of its input ports reads: a name, or a list of
            names whose streams are merged. `"name.port"` is another output than the first.

    >>> from windowlib import Count, Punct, Tumbling, replay
    >>> from windowlib.operators import Aggregate, Sort, agg
    >>> graph = Graph(
    ...     inputs=["trades"],
    ...     sorted=(Sort("price", window=Tumbling(Count(3))), "trades"),
    ...     range=(Aggregate(Tumbling(Punct()), low=agg.first("price")), "sorted"),
    ... )
    >>> list(replay(graph, [{"price": price} for price in (5, 3, 4)]))
    [{'low': 3}]
    """

    def __init__(
        self,
        *,
        inputs: str | Sequence[str],
        outputs: str | Sequence[str] | None = None,
        name: str | None = None,
        **nodes: Node,
    ) -> None:
        self.inputs = _streams("inputs", inputs, least=1)
        self.operators: dict[str, Operator] = {}
        self.feeds: dict[str, list[list[Stream]]] = {}
        for node, parts in nodes.items():
            self.operators[node] = _operator(node, parts)
        for node, parts in nodes.items():
            self.feeds[node] = self._connected(node, parts[1:])
        self._check_inputs()
        allow_depth(len(nodes))
        self.names = tuple(self._sorted())
        self.sinks = self._sinks(outputs)
        for node in self.names:
            self._check_punctuation(node)
        check_orders(self)
        self.model = self._model()
        super().__init__(name=name)

    # -- building ---------------------------------------------------------------------------------

    def _connected(self, node: str, feeds: Sequence[Feed]) -> list[list[Stream]]:
        ports = self.operators[node].model.inputs
        if len(feeds) != len(ports):
            names = ", ".join(port.name for port in ports)
            msg = (
                f"Graph({node}=...): {len(feeds)} streams for {len(ports)} input ports ({names}). "
                f"Name one stream per port, or a list of them to merge."
            )
            raise ModelError(msg)
        return [self._merged(node, [feed] if isinstance(feed, str) else feed) for feed in feeds]

    def _merged(self, node: str, feed: Sequence[str]) -> list[Stream]:
        if not isinstance(feed, list | tuple) or not feed:
            msg = (
                f"Graph({node}=...): {feed!r} is no stream. Name one stream per port, or a list of "
                f"them to merge."
            )
            raise ModelError(msg)
        return [self._stream(node, name) for name in feed]

    def _stream(self, reader: str, name: str) -> Stream:
        if name in self.inputs:
            return Stream(None, self.inputs.index(name))
        if name in self.operators:
            return Stream(name, self.operators[name].model.output(0, name))
        node, _, port = str(name).partition(".")
        if node not in self.operators:
            known = [*self.inputs, *self.operators]
            msg = (
                f"Graph({reader}=...): there is no stream {name!r}. Streams: {', '.join(known)}."
                f"{suggestion(name, known)}"
            )
            raise ModelError(msg)
        return Stream(node, self.operators[node].model.output(port, node))

    def _check_inputs(self) -> None:
        for name in self.inputs:
            if name in self.operators or self.inputs.count(name) > 1:
                msg = f"Graph(inputs={self.inputs}): {name!r} names two streams. Rename one."
                raise ModelError(msg)
        read = {stream for _, _, stream in self.edges()}
        for port, name in enumerate(self.inputs):
            if Stream(None, port) not in read:
                msg = f"Graph(inputs=[{name!r}]): no operator reads it. Drop it, or connect it."
                raise ModelError(msg)

    def edges(self) -> Iterator[tuple[str, int, Stream]]:
        """Which node reads which stream, at which of its ports."""
        for node, feeds in self.feeds.items():
            for port, streams in enumerate(feeds):
                for stream in streams:
                    yield node, port, stream

    def _sorted(self) -> list[str]:
        """The nodes, each after all that it reads from."""
        done: dict[str, None] = {}

        def visit(node: str, path: tuple[str, ...]) -> None:
            if node in path:
                loop = " -> ".join([*path[path.index(node) :], node])
                msg = (
                    f"Graph({node}=...): it reads its own output: {loop}. Rows would go round for "
                    f"ever. Break the loop."
                )
                raise ModelError(msg)
            for streams in self.feeds[node]:
                for stream in streams:
                    if stream.node is not None and stream.node not in done:
                        visit(stream.node, (*path, node))
            done[node] = None

        for node in self.operators:
            if node not in done:
                visit(node, ())
        return list(done)

    def _sinks(self, outputs: str | Sequence[str] | None) -> dict[str, Stream]:
        """The outputs by name: as given, or whatever no node reads, main ports first."""
        if outputs is not None:
            given = _streams("outputs", outputs, least=0)
            return {name: self._stream("outputs", name) for name in given}
        read = {stream for _, _, stream in self.edges()}
        found = {}
        for node in self.operators:
            for port, output in enumerate(self.operators[node].model.outputs):
                if Stream(node, port) not in read:
                    found[node if port == 0 else f"{node}.{output.name}"] = Stream(node, port)
        return dict(sorted(found.items(), key=lambda entry: entry[1].port > 0))

    # -- punctuation ------------------------------------------------------------------------------

    def _check_punctuation(self, node: str) -> None:
        operator = self.operators[node]
        for port, streams in enumerate(self.feeds[node]):
            if operator.model.inputs[port].expects(operator.windows[port]):
                self._need_punctuation(node, streams)

    def _need_punctuation(self, node: str, streams: list[Stream]) -> None:
        problem = self._unpunctuated(streams)
        if problem:
            reader = self._reader(node)
            msg = (
                f"{reader} reads {problem} It would grow without end. Window each stream, then "
                f"merge; or put a Punctor before it."
            )
            raise PunctuationError(msg)

    def _reader(self, node: str) -> str:
        operator = self.operators[node]
        spec = next((spec for spec in operator.windows if spec is not None), "")
        return f"{type(operator).__name__}({spec!r})" if spec else repr(node)

    def _unpunctuated(self, streams: list[Stream]) -> str:
        """Why these streams, merged into one port, carry no punctuation; nothing if they do."""
        if len(streams) > 1:
            names = " and ".join(repr(self._name(stream)) for stream in streams)
            return (
                f"the union of {names}, which carries no punctuation because the streams "
                f"were merged."
            )
        (stream,) = streams
        if stream.node is None:
            return ""  # the host's own
        output = self.operators[stream.node].model.outputs[stream.port]
        if output.punctuation == "generating":
            return ""
        if output.preserves is not None:
            before = self._unpunctuated(self.feeds[stream.node][output.preserves])
            return before and f"{self._name(stream)!r}, which preserves the punctuation of {before}"
        kind = type(self.operators[stream.node]).__name__
        return f"{self._name(stream)!r}, an output of {kind} that carries no punctuation."

    def _name(self, stream: Stream) -> str:
        if stream.node is None:
            return self.inputs[stream.port]
        port = self.operators[stream.node].model.outputs[stream.port].name
        return stream.node if stream.port == 0 else f"{stream.node}.{port}"

    def _origin(self, stream: Stream) -> int | None:
        """The graph input whose punctuations a stream carries; -1 for its own, None for none."""
        if stream.node is None:
            return stream.port
        output = self.operators[stream.node].model.outputs[stream.port]
        if output.preserves is None:
            return -1 if output.punctuation == "generating" else None
        feeds = self.feeds[stream.node][output.preserves]
        return self._origin(feeds[0]) if len(feeds) == 1 else None

    def _model(self) -> OperatorModel:
        expecting = set()
        for node, port, stream in self.edges():
            operator = self.operators[node]
            if operator.model.inputs[port].expects(operator.windows[port]):
                expecting.add(self._origin(stream))
        origins = [self._origin(stream) for stream in self.sinks.values()]
        modes: dict[bool, Any] = {True: "generating", False: "preserving"}
        return OperatorModel(
            ports_in=self.inputs,
            ports_out=list(self.sinks),
            punctuation_in=[
                "expecting" if port in expecting else "oblivious"
                for port in range(len(self.inputs))
            ],
            punctuation_out=["free" if o is None else modes[o < 0] for o in origins],
            preserves=origins,
        )

    # -- as an operator ---------------------------------------------------------------------------

    def _check_ports(self) -> None:
        """Whether every input is read was checked when the streams were connected."""

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The columns that the operators at an input read."""
        for node, number, stream in self.edges():
            if stream == Stream(None, port):
                yield from self.operators[node].reads(number)

    def schema(self, *columns: Any) -> Any:
        """The columns of the first output, if all operators on the way say theirs."""
        return next(iter(self.schemas(*columns)), None)

    def schemas(self, *columns: Any) -> tuple[Any, ...]:
        """The columns of every output, None where an operator on the way does not say its own."""
        found = {Stream(None, port): each for port, each in enumerate(columns)}
        for node in self.names:
            given = [_common([found.get(s) for s in streams]) for streams in self.feeds[node]]
            for port, each in enumerate(self.operators[node].schemas(*given)):
                found[Stream(node, port)] = each
        return tuple([found[stream] for stream in self.sinks.values()])

    def needs(self, port: int) -> tuple[str, ...] | None:
        """The columns that the operators at an input need."""
        return graph_needs(self, port)

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """The columns by which every operator can be split, if they reach it as they are.

        They have one name in all inputs. None for an input whose rows meet nothing anywhere.
        """
        return graph_splits(self, port)

    def passes(self, column: str, port: int) -> bool:
        """Whether all operators on the way to an output pass it."""
        return carries(self, list(self.sinks.values())[port], column)

    @property
    def order_by(self) -> By | None:
        """What the windows ask for that get the rows of the only input as they come."""
        return stated_order(self.order_of(0)) if len(self.inputs) == 1 else None

    def order_of(self, port: int) -> Order:
        """The order that is required by the windows which read an input directly."""
        found: Order = order_at(self, port)
        return found

    def natural_order(self, port: int) -> Order:
        """The same order, or event time where nothing else requires one."""
        found: Order = order_at(self, port, natural=True)
        return found

    def keeps_order(self, port: int) -> bool:
        """Whether all operators on the way to an output send rows on as they come."""
        return keeps_order(self, port)

    def describe(self) -> dict[str, str]:
        """The operators' descriptions, and what they read."""
        text = {"operator": "Graph", "inputs": ", ".join(self.inputs)}
        for node, operator in self.operators.items():
            text[node] = self.reads_text(node)
            text |= {f"{node}.{name}": value for name, value in operator.describe().items()}
        return text

    def reads_text(self, node: str) -> str:
        """What a node reads, in words."""
        feeds = [" + ".join(map(self._name, streams)) for streams in self.feeds[node]]
        return f"reads {', '.join(feeds)}"

    def open(self, start: Instant = 0) -> Running:
        """Start every operator, connected."""
        running: Running = extension("running_graph")(self, start)
        return running

    def __len__(self) -> int:
        return len(self.operators)

    def __getitem__(self, node: str) -> Operator:
        return self.operators[node]


def _common(schemas: Sequence[Any]) -> Any:
    """The columns of merged streams; None if they differ, or if only the values tell a type."""
    first = schemas[0]
    if first is None or any(each != first for each in schemas):
        return None
    return None if any(str(field.type) == "null" for field in first) else first


def _streams(argument: str, names: str | Sequence[str], least: int) -> tuple[str, ...]:
    one = isinstance(names, str) or not isinstance(names, Iterable)
    found: tuple[Any, ...] = (names,) if one else tuple(names)
    if len(found) < least or not all(isinstance(name, str) and name for name in found):
        msg = (
            f'Graph({argument}={names!r}): not the names of streams. Write {argument}="a", or '
            f'{argument}=["a", "b"].'
        )
        raise ModelError(msg)
    return found


def _operator(node: str, parts: object) -> Operator:
    if isinstance(parts, tuple) and parts and isinstance(parts[0], Operator):
        return parts[0].as_node(node)
    msg = (
        f"Graph({node}={parts!r}): not a node. Write an operator and the streams it reads: "
        f'{node}=(operator, "stream").'
    )
    raise ModelError(msg)


def chain(operators: Sequence[Operator]) -> Graph:
    """Operators one after the other; those of an earlier chain are taken over one by one."""
    names: dict[str, Node] = {}
    before = "input"
    for operator in operators:
        if not isinstance(operator, Operator):
            raise ModelError(f"then({operator!r}): not an operator. Pass one, such as Sort(...).")
        for wanted, each in _links(operator):
            if len(each.model.inputs) != 1:
                msg = (
                    f"then({each.name}): it has {len(each.model.inputs)} inputs, and a chain has "
                    f"one. Connect it in a Graph."
                )
                raise ModelError(msg)
            name = _fresh(wanted, names)
            names[name] = (each, before)
            before = name
    return Graph(inputs="input", **names)  # type: ignore[arg-type]  # no node is called name


def _links(operator: Operator) -> Iterable[tuple[str, Operator]]:
    if isinstance(operator, Graph) and _is_chain(operator):
        return operator.operators.items()
    return [(operator.name, operator)]


def _is_chain(graph: Graph) -> bool:
    if graph.inputs != ("input",) or graph.sinks != graph._sinks(None):
        return False
    expected: list[Any] = [Stream(None, 0), *(Stream(node, 0) for node in graph.operators)]
    return all(
        feeds == [[stream]] for feeds, stream in zip(graph.feeds.values(), expected, strict=False)
    )


def _fresh(name: str, taken: Mapping[str, Any]) -> str:
    name = re.sub(r"\W", "_", name)  # a dot would name a port
    name = f"{name}_" if name in RESERVED else name
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


RESERVED = ("inputs", "outputs", "name", "input")


# -- how the work of a graph may be spread --------------------------------------------------------


def graph_needs(graph: Graph, port: int) -> Names | None:
    """The columns that the readers of an input need; None: whole rows."""
    entry = _entry(port)
    if entry in graph.sinks.values():
        return None
    found: dict[str, None] = {}
    for node, at, stream in graph.edges():
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
    shared = [_same_names(_with_punctuated_columns(graph, name)) for name in keeping]
    return tuple(
        column
        for column in shared[0]
        if all(column in names for names in shared) and _arrives(graph, column, keeping)
    )


def _entry(port: int) -> Stream:
    return Stream(None, port)


def _meeting(operator: Operator) -> list[bool]:
    """For each input, whether its rows meet others."""
    return [operator.splits_by(port) is not None for port in range(len(operator.model.inputs))]


def _with_punctuated_columns(graph: Graph, node: str) -> Operator:
    """A node with the columns in which its rows between two punctuations are equal."""
    operator, feeds = graph.operators[node], graph.feeds[node]
    alike = _punctuated_by(graph, feeds[0][0]) if len(feeds) == len(feeds[0]) == 1 else ()
    if alike:
        operator = operator.rebuilt()
        operator.punctuated_by = alike
    return operator


def _punctuated_by(graph: Graph, stream: Stream) -> Names:
    """The columns in which all rows of a stream between two punctuations are equal."""
    if stream.node is None:
        return ()
    operator = graph.operators[stream.node]
    if own := operator.punctuates_by(stream.port):
        return own
    output = operator.model.outputs[stream.port]
    if output.preserves is None or not operator.keeps_order(stream.port):
        return ()
    feeds = graph.feeds[stream.node][output.preserves]
    before = _punctuated_by(graph, feeds[0]) if len(feeds) == 1 else ()  # merged ones have none
    return tuple(column for column in before if operator.passes(column, stream.port))


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
        for node, port, read in graph.edges()
        if read == stream
    )


def _outputs(graph: Graph, node: str) -> Iterator[Stream]:
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
    return all(
        each.node is None or graph.operators[each.node].passes(column, each.port)
        for each in upstream(graph, stream)
    )


FRAMES = 16
"""Calls under way for each operator that a row goes through, at most; handlers may add to it."""


def allow_depth(operators: int) -> None:
    """Raise Python's limit for a long chain, if it is too low.

    What an operator sends is taken by the next one in the same call, so a long chain is a deep
    stack.
    """
    deepest = 1000 + FRAMES * operators
    if sys.getrecursionlimit() < deepest:
        sys.setrecursionlimit(deepest)
