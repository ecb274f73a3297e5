"""The engines: how a container's `insert` is carried out.

`generated` writes one insert function per configuration and is what runs; `reference` walks the
steps of Tables I and II one by one and is the definition that the other is tested against. Both
work on the same subwindows, so a snapshot of one goes on in the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from windowlib.spec.order import steps
from windowlib.window.engine.generated import generate
from windowlib.window.engine.reference import Reference

if TYPE_CHECKING:
    from windowlib.window.container import WindowState

Insert = Callable[..., None]


def build(state: WindowState, sample: Any) -> dict[str, Insert]:
    """`insert` and `insert_many` of a window, for tuples like `sample`, and perhaps `advance`."""
    if state.engine == "reference":
        reference = Reference(state)
        return {"insert": reference.insert, "insert_many": reference.insert_many}
    return generate(state, sample)


def batches(state: WindowState) -> str:
    """Where batches go, as far as any has come."""
    host = state.batches
    return "none so far" if host is None else host.text(state.window)


def explain(state: WindowState) -> str:
    """A few lines on what a window is and how it runs."""
    spec = state.spec
    order = ", ".join(step.name.lower() for step in steps(spec))
    clocked = "; ".join(f"{policy} runs on the clock" for policy in spec.times)
    handlers = ", ".join(state.handlers) or "none"
    why = state.why_tuples
    lines = [
        f"window    {spec}",
        f"insert    {order}" + (f"; {clocked}" if clocked else ""),
        f"keeps     {state.storage}" + (f"; no slices: {why}" if why else ""),
        f"engine    {state.engine}",
        f"batches   {batches(state)}",
        f"handlers  {handlers}",
        f"lock      {'one, for the clock' if state.lock else 'none needed'}",
    ]
    return "\n".join(lines)
