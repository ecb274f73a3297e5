"""Counters of a running operator: firings, evicted tuples, partitions; they cost nothing if unused.

Firings are counted as they happen. All else is worked out when it is read, from what the windows
hold, wherever that is: state in arrays stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from windowlib.window.consumer import FiringFailed
from windowlib.window.event_time import EventTimeWindow

if TYPE_CHECKING:
    from windowlib.runtime.running import Running
    from windowlib.window.container import Window

FIRING = {"sliding": ("on_trigger",), "tumbling": ("before_flush", "after_flush")}
"""The handlers of firings by kind of window; the first of them that it has is counted."""


class Counters:
    """Counts what the windows of a running operator, or of all operators of a graph, do.

    It changes neither what they do nor which engine does it, and costs something per firing, not
    per row. It counts from when it is made. After `restore` it goes on from the new state; what
    left the windows between the last `read` and that is not known.

    Args:
        running: what `open()` gave.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.operators import Aggregate, agg
    >>> running = Aggregate(Tumbling(Count(2), by="k"), n=agg.count()).open()
    >>> counters = Counters(running)
    >>> running.insert_many([{"k": k} for k in "aabab"])
    >>> counters.read()
    {'fired': 2, 'evicted': 4, 'partitions': 1, 'partitions_evicted': 0}
    """

    def __init__(self, running: Running) -> None:
        self._windows = [WindowCounter(window) for window in windows_of(running)]
        self._late = [LateRows(operator) for operator in late_counting(running)]

    def read(self) -> dict[str, int]:
        """The counts by name.

        - fired: triggers and flushes that the operator has handled, also those of empty windows.
          A trigger of a window that was never full does not count where these are skipped, and a
          window whose operator handles neither triggers nor flushes has none.
        - evicted: tuples that came and are no longer held, for whatever reason.
        - partitions: how many there are now.
        - partitions_evicted: how many were evicted by `forget=`.
        - late: rows that came late, whatever became of them; only if an operator counts them.
        """
        found = [watched.read() for watched in self._windows]
        names = ("fired", "evicted", "partitions", "partitions_evicted")
        counts = {name: sum(counts[i] for counts in found) for i, name in enumerate(names)}
        return counts | ({"late": sum(each.read() for each in self._late)} if self._late else {})


def windows_of(running: Running) -> Iterator[Window[Any, Any]]:
    """The windows of a running operator, or of all operators of a graph."""
    nodes: dict[str, Running] = getattr(running, "nodes", {})
    for node in nodes.values():
        yield from windows_of(node)
    if not nodes:
        yield from running.windows


def late_counting(running: Running) -> Iterator[Any]:
    """The operators and windows at work that count rows which come late, as `late_rows`."""
    nodes: dict[str, Running] = getattr(running, "nodes", {})
    for node in nodes.values():
        yield from late_counting(node)
    if not nodes:
        counting = [running.operator, *running.windows]
        yield from (each for each in counting if hasattr(each, "late_rows"))


class LateRows:
    """The late rows of an operator or window since the counter was made."""

    def __init__(self, counting: Any) -> None:
        self._counting, self._known = counting, counting.late_rows
        self._count = 0

    def read(self) -> int:
        """How many there were."""
        now = self._counting.late_rows
        self._count += max(0, now - self._known)  # less, if an older state was restored
        self._known = now
        return self._count


class WindowCounter:
    """One window: its firings, and what had been evicted when it was last read."""

    def __init__(self, window: Window[Any, Any]) -> None:
        self._window = window
        self._fired = self._evicted = 0
        with window.locked():
            self._gone, self._restores = self._left()[0], window.state.restores
            self._removed = 0 if window.state.eviction is None else window.state.eviction.removed
            self._attach()

    # -- firings ----------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Count before the handler or the consumer of firings is called."""
        state = self._window.state
        state.intercept(self._consuming)
        event = next((name for name in FIRING[self._window.kind] if name in state.handlers), None)
        if event is None:
            return
        skips = event == "on_trigger" and not state.consumer.partial
        skips = skips and not state.spec.full_from_start
        handler = (self._full if skips else self._any)(state.handlers[event])
        state.handlers = {**state.handlers, event: handler}
        if state.batches is not None:
            state.batches.handlers_changed()

    def _any(self, handler: Callable[..., None]) -> Callable[..., None]:
        def call(window: Any, key: Any) -> None:  # named as handlers are, for notes of failures
            self._fired += 1
            handler(window, key)

        return call

    def _full(self, handler: Callable[..., None]) -> Callable[..., None]:
        def call(window: Any, key: Any) -> None:
            self._fired += window.full(key)
            handler(window, key)

        return call

    def _consuming(self, consumer: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(firings: Any) -> None:
            self._fired += len(firings)
            try:
                consumer(firings)
            except FiringFailed as failed:  # the event engine goes on behind the one that failed
                self._fired -= int((firings.rows > failed.row).sum())
                raise

        return call

    # -- what the window holds --------------------------------------------------------------------

    def read(self) -> tuple[int, int, int, int]:
        """Firings, evicted tuples, partitions and evicted partitions."""
        window = self._window
        with window.locked():
            gone, partitions = self._left()
            if window.state.restores != self._restores:
                self._restores, self._gone = window.state.restores, gone
            if gone > self._gone:
                self._evicted += gone - self._gone
                self._gone = gone
            removed = (
                0
                if window.state.eviction is None
                else window.state.eviction.removed - self._removed
            )
        return self._fired, self._evicted, partitions, removed

    def _left(self) -> tuple[int, int]:
        """How many tuples the window has evicted, and how many partitions it has."""
        window = self._window
        if isinstance(window, EventTimeWindow):
            rows, partitions = window.held()
            return window.seen - rows, partitions
        arrays: Any = None
        if window.state.in_arrays and window.state.batches is not None:
            arrays = window.state.batches.engine_of(window)
        if arrays is not None:
            return arrays.gone(), int(arrays.ledger.alive.sum())
        live = window.state.subwindows.values()
        seen = window.state.left + sum(
            map(window.state.arrived, [*live, *window.state.asleep.values()])
        )
        return seen - sum(map(window.state.size, live)), len(live)
