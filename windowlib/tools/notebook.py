"""Specifications and operators as HTML for notebooks, without scripts.

Text has no colour of its own, so that it is legible on dark and light pages; pictures have a white
background.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from windowlib.errors import WindowlibError
from windowlib.runtime.graph import Graph
from windowlib.runtime.operator import Operator, stable_text
from windowlib.spec.order import steps
from windowlib.spec.policies import Count
from windowlib.spec.specification import Sliding, Spec, Tumbling
from windowlib.tools.listing import CELL
from windowlib.tools.mermaid import flowchart, node_lines
from windowlib.tools.timeline import short
from windowlib.tools.tracing import trace

if TYPE_CHECKING:
    from windowlib.runtime.model import InputPort, OutputPort

LARGEST = 10  # tuples of a window that can be told apart in a small picture
LONGEST = 100


def spec_html(spec: Spec) -> str:
    """A window on a generated stream; large counts are drawn smaller.

    >>> spec_html(Tumbling(Count(3)))[:5]
    '<div>'
    """
    head = f"<div><code>{escape(repr(spec))}</code></div>"
    small = scaled_down(spec)
    try:
        picture = trace(small).to_html()
    except WindowlibError:  # no rows can be generated for a callable
        return head
    scaled = "" if small == spec else f"<div>{escape(f'drawn as {small}')}</div>"
    return f"<div>{head}{scaled}{picture}</div>"


def scaled_down(spec: Spec) -> Spec:
    """A window with all counts divided by one number, if they are too large to draw.

    >>> scaled_down(Sliding(Count(100), every=Count(20)))
    Sliding(Count(size=10), every=Count(size=2))
    >>> scaled_down(Sliding(Count(100), every=Count(7)))
    Sliding(Count(size=100), every=Count(size=7))
    """
    sizes = [policy.size for policy in spec.policies if isinstance(policy, Count)]
    if len(sizes) < len(spec.policies) or spec.forget is not None or max(sizes) <= LARGEST:
        return spec
    least = -(-max(sizes) // LARGEST)
    by = next((k for k in range(least, max(sizes) + 1) if not any(n % k for n in sizes)), 1)
    if isinstance(spec, Sliding):
        return replace(spec, evict=Count(sizes[0] // by), every=Count(sizes[1] // by))
    return replace(spec, evict=Count(sizes[0] // by))


def operator_html(operator: Operator) -> str:
    """A table of ports, windows and parameters; of a graph, its operators and its flowchart."""
    kind = type(operator).__name__
    title = kind if operator.name == kind else f"{operator.name}: {kind}"
    head = f"<div><b>{escape(short(title, LONGEST))}</b></div>"
    facts = _nodes(operator) if isinstance(operator, Graph) else _facts(operator)
    rows = "".join(_row(*each) for each in facts)
    body = f'<table style="border-collapse:collapse">{rows}</table>'
    return f"<div>{head}{body}{_mermaid(operator) if isinstance(operator, Graph) else ''}</div>"


def waiting_html(operator: Operator) -> str:
    """A replay whose input may not have come yet."""
    name = escape(short(operator.name, LONGEST))
    return (
        f"<div>rows of <b>{name}</b>, computed when they are read; see <code>table()</code></div>"
    )


def _row(topic: str, text: str) -> str:
    return (
        f'<tr><td style="{CELL};text-align:left">{escape(topic)}</td>'
        f'<td style="{CELL};text-align:left">{escape(short(text, LONGEST))}</td></tr>'
    )


def _nodes(graph: Graph) -> Iterator[tuple[str, str]]:
    yield "inputs", ", ".join(graph.inputs)
    for name in graph.names:
        title, *windows = node_lines(name, graph.operators[name])
        yield title, "; ".join([graph.reads_text(name), *windows])
    yield "outputs", ", ".join(graph.sinks)


def _mermaid(graph: Graph) -> str:
    """The flowchart as text, folded: a notebook runs no script to draw it."""
    text = escape(flowchart(graph))
    return f"<details><summary>as Mermaid text</summary><pre>{text}</pre></details>"


def _facts(operator: Operator) -> Iterator[tuple[str, str]]:
    model = operator.model
    for number, port in enumerate(model.inputs):
        spec = operator.windows[number] if number < len(operator.windows) else None
        yield from _input(port, spec)
    for name, value in operator._parameters().items():
        if name != "name" and not isinstance(value, Tumbling | Sliding):
            yield name, stable_text(value)
    for output in model.outputs:
        yield f"output {output.name}", _output(output, model.inputs)


def _input(port: InputPort, spec: Spec | None) -> Iterator[tuple[str, str]]:
    mode = "expects punctuation" if port.expects(spec) else "ignores punctuation"
    yield f"input {port.name}", mode
    if spec is not None:
        key = "" if spec.by is None else f", by {stable_text(spec.by)}"
        yield "window", f"{spec}{key}"
        yield "at each tuple", ", ".join(step.name.lower() for step in steps(spec))


def _output(port: OutputPort, inputs: tuple[InputPort, ...]) -> str:
    if port.preserves is not None:
        return f"the punctuation of input {inputs[port.preserves].name}"
    return "punctuation of its own" if port.punctuation == "generating" else "no punctuation"
