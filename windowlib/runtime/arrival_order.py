"""The order that windows require of the rows of one batch, anywhere in a graph.

Rows are put in order where they come in. A window behind other operators gets them in that order if
all of these send rows on as they come, with the columns that say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from windowlib.errors import ModelError
from windowlib.runtime.splitting import names_in

if TYPE_CHECKING:
    from windowlib.runtime.graph import Graph, Stream
    from windowlib.runtime.operator import Operator


def stated_order(order: Any) -> Any:
    """An order as columns; None if it is not stated, or irrelevant.

    >>> stated_order("ts"), stated_order(None), stated_order(...)
    ('ts', None, None)
    """
    return None if order is ... else order


def check_orders(graph: Graph) -> None:
    """Refuse windows whose order no order of the inputs can give."""
    asked: dict[int, tuple[Any, str]] = {}
    for node, order, streams in _asking(graph):
        if stated_order(order) is None:
            continue
        for stream in streams:
            blame = _in_the_way(graph, stream, order)
            if blame:
                _refuse(graph, node, order, blame)
            for port in _inputs(graph, stream):
                before, other = asked.setdefault(port, (order, node))
                if before != order:
                    name = graph.inputs[port]
                    msg = (
                        f"Graph(inputs={name!r}): {other!r} asks for its rows in order_by="
                        f"{before!r}, and {node!r} for order_by={order!r}. Give them one order, or "
                        f"an input each."
                    )
                    raise ModelError(msg)


def _refuse(graph: Graph, node: str, order: Any, blame: str) -> None:
    spec = next(s for s in graph.operators[node].windows if s is None or s.order_by == order)
    kind = type(graph.operators[node]).__name__
    first = order[0] if isinstance(order, tuple) else order
    msg = (
        f"{kind}({spec!r}): {blame}, so rows do not come in order_by={order!r}. Put Reorder("
        f"{first!r}, slack=...) or Sort before it, or say order_by=None if it is irrelevant there."
    )
    raise ModelError(msg)


def order_at(graph: Graph, port: int, *, natural: bool = False) -> Any:
    """The order required by the windows that get the rows of an input unchanged; `...`: not stated.

    Args:
        graph: the graph.
        port: the input.
        natural: whether operators on event time are asked, too; what a window says goes first.
    """
    found: list[Any] = []
    hints: list[tuple[Any, list[Stream]]] = []
    for node in graph.names:
        operator = graph.operators[node]
        for number, streams in enumerate(graph.feeds[node]):
            if any(_comes_as_is(graph, stream, port) for stream in streams):
                found.append(operator.order_of(number))
                hints.append((operator.natural_order(number), streams))
    orders = [order for order in found if stated_order(order) is not None]
    if orders or not natural:
        return orders[0] if orders else (... if ... in found else None)

    def blamed(hint: Any, streams: list[Stream]) -> bool:
        return any(_in_the_way(graph, stream, hint) for stream in streams)

    asked = (
        ... if stated_order(hint) is not None and blamed(hint, s) else hint for hint, s in hints
    )
    wanted = {order for order in asked if order is not None}
    return wanted.pop() if len(wanted) == 1 else (... if wanted else None)


def keeps_order(graph: Graph, port: int) -> bool:
    """Whether rows of an output come in the order of the input rows that they are made of."""
    return _kept(graph, list(graph.sinks.values())[port])


def _asking(graph: Graph) -> Iterator[tuple[str, Any, list[Stream]]]:
    """The nodes, with the order that each of their ports asks for, and what it reads."""
    for node in graph.names:
        for port, streams in enumerate(graph.feeds[node]):
            yield node, graph.operators[node].order_of(port), streams


def upstream(graph: Graph, stream: Stream) -> Iterator[Stream]:
    """A stream and all that it is made of, once each, what comes first in the graph last.

    Not by calls of calls: in a long chain these reach a limit of Python's that cannot be raised.
    """
    seen: set[Stream] = set()
    todo = [stream]
    while todo:
        each = todo.pop()
        if each in seen:
            continue
        seen.add(each)
        yield each
        if each.node is not None:
            todo += [before for feeds in graph.feeds[each.node] for before in feeds][::-1]


def _inputs(graph: Graph, stream: Stream) -> Iterator[int]:
    """The inputs of the graph that a stream is made of."""
    return (each.port for each in upstream(graph, stream) if each.node is None)


def _kept(graph: Graph, stream: Stream) -> bool:
    return all(
        each.node is None or graph.operators[each.node].keeps_order(each.port)
        for each in upstream(graph, stream)
    )


def _comes_as_is(graph: Graph, stream: Stream, port: int) -> bool:
    """Whether a stream has rows of an input of the graph, in the order in which they came."""
    return port in _inputs(graph, stream) and _kept(graph, stream)


def _in_the_way(graph: Graph, stream: Stream, order: Any) -> str:
    """Why a stream is not in order although the inputs are; "" if it is."""
    columns = names_in(order)
    for each in upstream(graph, stream):
        if each.node is None:
            continue
        operator: Operator = graph.operators[each.node]
        if not operator.keeps_order(each.port):
            return f"{each.node!r} before it sends rows in an order of its own"
        if columns is None:
            return f"{each.node!r} before it does not pass what it is read from as it comes"
        for column in columns:
            if not operator.passes(column, each.port):
                return f"{each.node!r} before it does not pass {column!r} as it comes"
    return ""
