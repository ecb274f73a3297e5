"""The engines: how a container's `insert` is carried out.

`generated` writes one insert function per configuration and is what runs; `reference` walks the
steps of Tables I and II one by one and is the definition that the other is tested against. Both
work on the same subwindows, so a snapshot of one goes on in the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from windowlib.order import steps

if TYPE_CHECKING:
    from windowlib.window import Window

Insert = Callable[..., None]


def build(window: Window[Any, Any], sample: Any) -> tuple[Insert, Insert]:
    """`insert` and `insert_many` of a window, for tuples like `sample`."""
    if window._engine == "reference":
        from windowlib.engine.reference import Reference

        reference = Reference(window)
        return reference.insert, reference.insert_many
    from windowlib.engine.generated import generate

    return generate(window, sample)


def batches(window: Window[Any, Any]) -> str:
    """Where batches go, as far as any has come."""
    host = window._batches
    if host is None or host.schema is None:
        return "none so far"
    if host.engine is not None:
        return f"columnar: {host.engine.way}"
    return f"event engine, row by row: {host.reason}"


def explain(window: Window[Any, Any]) -> str:
    """A few lines on what a window is and how it runs."""
    spec = window.spec
    order = ", ".join(step.name.lower() for step in steps(spec))
    clocked = "; ".join(f"{policy} runs on the clock" for policy in spec.times)
    handlers = ", ".join(window._on) or "none"
    lines = [
        f"window    {spec}",
        f"insert    {order}" + (f"; {clocked}" if clocked else ""),
        f"keeps     {window._keeps()}",
        f"engine    {window._engine}",
        f"batches   {batches(window)}",
        f"handlers  {handlers}",
        f"lock      {'one, for the clock' if window._lock else 'none needed'}",
    ]
    return "\n".join(lines)
