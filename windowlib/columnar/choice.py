"""Which columnar engine does what a window does, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.columnar.decline import Decline
from windowlib.columnar.engine import Engine
from windowlib.columnar.sliced import SlicedEngine
from windowlib.columnar.sliding import SlidingEngine
from windowlib.columnar.tumbling import TumblingEngine
from windowlib.sliding import SlidingWindow
from windowlib.tumbling import TumblingWindow

if TYPE_CHECKING:
    from windowlib.window import Window


def engine_for(window: Window[Any, Any], schema: pa.Schema) -> Engine:
    """A new engine for batches of this schema; `Decline` says why there is none."""
    _check_handlers(window)
    if isinstance(window, TumblingWindow):
        return TumblingEngine(window, schema)
    assert isinstance(window, SlidingWindow)
    if window._slices is not None:
        return SlicedEngine(window, schema)
    return SlidingEngine(window, schema)


def _check_handlers(window: Window[Any, Any]) -> None:
    if window._engine == "reference":
        raise Decline('engine="reference" takes tuples one by one')
    if "_clock" in window.__dict__:
        raise Decline("a clock of its own moves the window")
    if window._asleep or window._arrivals:
        raise Decline("partitions that time has emptied")
    if window._on and window._consumer is None:
        raise Decline(f"handlers read Python tuples: {', '.join(window._on)}")
