"""What an operator is and how it runs, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from windowlib.errors import SchemaError
from windowlib.extensions import extension
from windowlib.runtime.graph import Graph, Stream
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.spec.order import steps
from windowlib.window.arrow import as_arrow
from windowlib.window.container import Window
from windowlib.window.event_time import EventTimeWindow


def explain(operator: Operator, *batches: Any) -> str:
    """A few lines: the operator, its ports, its windows, and what it says of itself."""
    if any(type(batch).__module__.startswith("pyspark.") for batch in batches):
        return str(extension("explain_on_spark")(operator, batches))
    if isinstance(operator, Graph):
        return "\n".join(_graph(operator, batches))
    return "\n".join(_operator(operator, batches))


def _operator(operator: Operator, batches: Sequence[Any]) -> Iterator[str]:
    running = operator.open()
    yield f"operator     {operator.name}"
    yield from _ports(running, batches)
    yield from (f"{topic:<12} {text}" for topic, text in running.operator.notes())


def _schema(batch: Any) -> Any:
    """The schema of batches like this one, which may itself be it."""
    batch = as_arrow(batch, "explain")
    found = getattr(batch, "schema", batch)
    if not hasattr(found, "remove_metadata"):
        msg = (
            f"explain({type(batch).__name__}): nothing says the types of columns. Pass an Arrow "
            f"batch, a table or a schema, or a DataFrame."
        )
        raise SchemaError(msg)
    return found


def _batches(running: Running, port: int, container: Window[Any, Any], schema: Any) -> str:
    """Which engine takes batches of these columns."""
    running.operator.check_columns(schema.names, port)
    if running._direct[port] is None:
        return "event engine, row by row: the operator looks at each row first"
    return str(extension("describe_batches")(container, schema))


def _its_own_way(operator: Operator) -> bool:
    """Whether it takes batches itself, and says so in its notes."""
    return type(operator)._take is not Operator._take


def _ports(running: Running, batches: Sequence[Any]) -> Iterator[str]:
    op = running.operator
    schemas = [None if batch is None else _schema(batch) for batch in batches]
    schemas += [None] * (len(op.model.inputs) - len(schemas))
    for number, (port, container) in enumerate(zip(op.model.inputs, op.containers, strict=True)):
        spec = None if container is None else container.spec
        mode = "expects punctuation" if port.expects(spec) else "ignores punctuation"
        yield f"input        {port.name}: {mode}"
        if container is not None:
            order = ", ".join(step.name.lower() for step in steps(container.spec))
            yield f"  window     {container.spec}"
            yield f"  insert     {order}"
            yield f"  keeps      {container.state.storage}"
            if isinstance(container, EventTimeWindow):
                yield from (f"  {topic:<10} {text}" for topic, text in container.notes())
            yield f"  engine     {container.state.engine}"
            if schemas[number] is not None and not _its_own_way(op):
                yield f"  batches    {_batches(running, number, container, schemas[number])}"
    for output in op.model.outputs:
        from_port = None if output.preserves is None else op.model.inputs[output.preserves].name
        modes = {
            "free": "no punctuation",
            "generating": "punctuation of its own",
            "preserving": f"the punctuation of input {from_port}",
        }
        yield f"output       {output.name}: {modes[output.punctuation]}"


def _graph(graph: Graph, batches: Sequence[Any]) -> Iterator[str]:
    yield f"graph        {graph.name}"
    yield f"inputs       {', '.join(graph.inputs)}"
    yield f"outputs      {', '.join(graph.sinks)}"
    for node in graph.names:
        yield ""
        yield f"{node} {graph.reads_text(node)}"
        known = {Stream(None, port): batch for port, batch in enumerate(batches)}
        feeds = graph.feeds[node]
        given = [known.get(feed[0]) if len(feed) == 1 else None for feed in feeds]
        yield from (f"  {line}" for line in explain(graph.operators[node], *given).splitlines())
