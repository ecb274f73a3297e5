"""What an operator is and how it runs, as text."""

from __future__ import annotations

from collections.abc import Iterator

from windowlib.graph import Graph
from windowlib.operator import Operator
from windowlib.order import steps
from windowlib.running import Running


def explain(operator: Operator) -> str:
    """A few lines: the operator, its ports, its windows, and what it says of itself."""
    if isinstance(operator, Graph):
        return "\n".join(_graph(operator))
    return "\n".join(_operator(operator))


def _operator(operator: Operator) -> Iterator[str]:
    running = operator.open()
    yield f"operator     {operator.name}"
    yield from _ports(running)
    yield from (f"{topic:<12} {text}" for topic, text in running.operator.notes())


def _ports(running: Running) -> Iterator[str]:
    op = running.operator
    for port, container in zip(op.model.inputs, op.containers, strict=True):
        spec = None if container is None else container.spec
        mode = "expects punctuation" if port.expects(spec) else "ignores punctuation"
        yield f"input        {port.name}: {mode}"
        if container is not None:
            order = ", ".join(step.name.lower() for step in steps(container.spec))
            yield f"  window     {container.spec}"
            yield f"  insert     {order}"
            yield f"  keeps      {container._keeps()}"
            yield f"  engine     {container._engine}"
    for output in op.model.outputs:
        from_port = None if output.preserves is None else op.model.inputs[output.preserves].name
        modes = {
            "free": "no punctuation",
            "generating": "punctuation of its own",
            "preserving": f"the punctuation of input {from_port}",
        }
        yield f"output       {output.name}: {modes[output.punctuation]}"


def _graph(graph: Graph) -> Iterator[str]:
    yield f"graph        {graph.name}"
    yield f"inputs       {', '.join(graph.inputs)}"
    yield f"outputs      {', '.join(graph.sinks)}"
    for node in graph.names:
        yield ""
        yield f"{node} {graph.reads_text(node)}"
        yield from (f"  {line}" for line in explain(graph.operators[node]).splitlines())
