"""Which columnar engine does what a window does, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.columnar import primitives
from windowlib.columnar.aging import AgingEngine
from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine
from windowlib.columnar.firings import Firings
from windowlib.columnar.handlers import caller
from windowlib.columnar.kept import KeptEngine
from windowlib.columnar.sliced import SlicedEngine
from windowlib.columnar.sliding import SlidingEngine
from windowlib.columnar.stamps import HUGE
from windowlib.columnar.ticks import FIRING
from windowlib.columnar.tumbling import TumblingEngine
from windowlib.policies import Time
from windowlib.sliding import SlidingWindow
from windowlib.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.window import Window


def engine_for(window: Window[Any, Any], schema: pa.Schema) -> Engine:
    """A new engine for batches of this schema; `Decline` says why there is none."""
    _check_handlers(window)
    if isinstance(window, TumblingWindow):
        if window._factory is not None:
            return TumblingEngine(window, schema)
        kept: Engine = (window._keeper or KeptEngine)(window, schema)
        return kept
    assert isinstance(window, SlidingWindow)
    if window._slices is not None:
        return SlicedEngine(window, schema)
    ages = isinstance(window.spec.evict, Time)
    return AgingEngine(window, schema) if ages else SlidingEngine(window, schema)


def described(window: Window[Any, Any], schema: pa.Schema) -> str:
    """Which engine takes batches of a schema, and how or why, in a few words."""
    try:
        engine = engine_for(window, schema.remove_metadata())
    except Decline as reason:
        return f"event engine, row by row: {reason}"
    return f"columnar ({primitives.ENGINE}): {engine.way}"


def _check_handlers(window: Window[Any, Any]) -> None:
    if window._engine == "reference":
        raise Decline('engine="reference" takes tuples one by one')
    if "_clock" in window.__dict__:
        raise Decline("a clock of its own moves the window")
    if abs(window._now) >= HUGE:
        raise Decline("a clock beyond 64 bits")
    if window._consumer is None and window._on:
        _check_content(window)


def _check_content(window: Window[Any, Any]) -> None:
    """Handlers of one's own must ask for columns, and for nothing but flushes or triggers."""
    others = [name for name in window._on if name not in FIRING]
    if others:
        raise Decline(f"handlers see each tuple: {', '.join(others)}")
    if window.events.content != "arrow":
        raise Decline(f"{', '.join(window._on)}: content='tuples', so it reads tuples")
    if window._factory is not None:
        raise Decline("a summarizer beside content='arrow'")


def handlers_of(window: Window[Any, Any]) -> Callable[[Firings], None] | None:
    """What tells the window's own handlers of firings, if it has any."""
    name = "on_trigger" if isinstance(window, SlidingWindow) else "before_flush"
    handler = window._on.get(name)
    if window._consumer is not None or handler is None:
        return None
    return caller(window, handler)
