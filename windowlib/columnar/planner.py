"""The planner: which columnar engine implements a window, or why none does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.columnar import primitives
from windowlib.columnar.arrays.stamps import HUGE
from windowlib.columnar.engines.engine import Engine
from windowlib.columnar.engines.event_sessions import event_time_engine
from windowlib.columnar.engines.sliced import SlicedEngine
from windowlib.columnar.engines.sliding import AgingEngine, SlidingEngine
from windowlib.columnar.engines.time_sliced import TimeSlicedEngine
from windowlib.columnar.engines.tumbling import TumblingEngine, TumblingRowsEngine
from windowlib.columnar.firings import FIRING, Firings, handler_consumer
from windowlib.summaries.time_slices import TimeSlices
from windowlib.window.consumer import Decline
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.sliding import SlidingWindow
from windowlib.window.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.window.container import Window


def engine_for(window: Window[Any, Any], schema: pa.Schema) -> Engine:
    """A new engine for batches of this schema; `Decline` says why there is none."""
    _check_handlers(window)
    if isinstance(window, TumblingWindow):
        if window.state.summarizer is not None:
            return TumblingEngine(window, schema)
        kept: Engine = (window.state.consumer.engine or TumblingRowsEngine)(window, schema)
        return kept
    assert isinstance(window, SlidingWindow)
    if isinstance(window.state.slices, TimeSlices):
        return TimeSlicedEngine(window, schema)
    if window.state.slices is not None:
        return SlicedEngine(window, schema)
    ages = window.spec.evict.tick is not None
    return AgingEngine(window, schema) if ages else SlidingEngine(window, schema)


def describe(window: Window[Any, Any], schema: pa.Schema) -> str:
    """The engine that takes batches of a schema, for `explain`."""
    try:
        schema = schema.remove_metadata()
        if isinstance(window, EventTimeWindow):
            way = event_time_engine(window, schema).way
        else:
            way = engine_for(window, schema).way
    except Decline as reason:
        return f"event engine, row by row: {reason}"
    return f"columnar ({primitives.ENGINE}): {way}"


def _check_handlers(window: Window[Any, Any]) -> None:
    if window.state.engine == "reference":
        raise Decline('engine="reference" takes tuples one by one')
    if window.state.driver is not None:
        raise Decline("a clock of its own moves the window")
    if abs(window.state.now) >= HUGE:
        raise Decline("a clock beyond 64 bits")
    if window.state.consumer.fired is None and window.state.handlers:
        _check_content(window)


def _check_content(window: Window[Any, Any]) -> None:
    """A user's handlers must ask for columns, and for nothing but flushes or triggers."""
    others = [name for name in window.state.handlers if name not in FIRING]
    if others:
        raise Decline(f"handlers see each tuple: {', '.join(others)}")
    if window.events.content != "arrow":
        raise Decline(f"{', '.join(window.state.handlers)}: content='tuples', so it reads tuples")
    if window.state.summarizer is not None:
        raise Decline("a summarizer beside content='arrow'")


def handlers_of(window: Window[Any, Any]) -> Callable[[Firings], None] | None:
    """The consumer that calls the window's own handlers, if it has any."""
    name = "on_trigger" if isinstance(window, SlidingWindow) else "before_flush"
    handler = window.state.handlers.get(name)
    if window.state.consumer.fired is not None or handler is None:
        return None
    return handler_consumer(window, handler)
