"""A replay in steps, which records all output with its times: the base of the testing kit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from windowlib.durations import Instant
from windowlib.runtime.marks import punct
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import Replay, is_row_item
from windowlib.runtime.running import Running
from windowlib.spec.policies import Attribute
from windowlib.window.state_bytes import written_and_read

Opener = Callable[[Instant], Running]


class OutputEvent(NamedTuple):
    """An item of the output: its time, its port, and the row, or `punct()`."""

    at: int
    port: str
    item: Any


class SteppedReplay(Replay):
    """A replay whose input is given a little at a time.

    Args:
        operator: an operator or a graph.
        times: the column that says when a row arrives.
        start: where the clock starts, as for `replay`.
        opener: what starts it, instead of its own `open`.
        arrays: whether a restart saves what batches left in arrays as arrays.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        times: Attribute | None = None,
        start: Instant | None = None,
        opener: Opener | None = None,
        arrays: bool = False,
    ) -> None:
        super().__init__(operator, (), times, start)
        self.events: list[OutputEvent] = []
        """All that has come out."""
        self.running: Running | None = None
        self._opener = operator.open if opener is None else opener
        self._arrays = arrays
        self._before_start: list[Any] = []

    def take(self, items: Iterable[Any]) -> list[OutputEvent]:
        """Insert rows one by one, and marks; returns the output."""
        return self._run(list(items), self._take_items)

    def take_many(self, items: Iterable[Any]) -> list[OutputEvent]:
        """Insert rows together, as `replay` of a list does, without marks; returns the output."""
        return self._run(list(items), self._take_rows)

    def take_batch(self, batch: Any, port: int = 0) -> list[OutputEvent]:
        """Insert the rows of an Arrow batch at an input port; returns the output."""
        return self._run([batch], lambda items: self._take_batches(items, port))

    def finish(self, *, warn: bool = False) -> list[OutputEvent]:
        """End the input; returns the output."""
        seen = len(self.events)
        self._run([], self._take_items, now=True)
        assert self.running is not None
        if warn:
            self._warn(self.running)
        self.running.finish()
        return self.events[seen:]

    def close(self) -> None:
        """Release what it holds outside this process, if anything."""
        close = getattr(self.running, "close", None)
        if close is not None:
            close()

    @property
    def now(self) -> int:
        """The time of the clock, in microseconds."""
        return 0 if self.running is None else self.running.micros

    # -- how ----------------------------------------------------------------------------------

    def _run(
        self, items: list[Any], take: Callable[[list[Any]], None], *, now: bool = False
    ) -> list[OutputEvent]:
        seen = len(self.events)
        if self.running is None:
            known = self._times is None or self._start is not None or any(map(is_row_item, items))
            if not known and not now:  # the first row determines the start of the clock
                self._before_start += items
                return []
            held, self._before_start = self._before_start, []
            self.running = self._opened([*held, *items])
            self._take_items(held)
        take(items)
        return self.events[seen:]

    def _take_items(self, items: list[Any]) -> None:
        for item in items:
            assert self.running is not None
            if is_row_item(item):
                self._take_one(self.running, item)
            else:
                self.running = self._take(self.running, [item])

    def _take_rows(self, items: list[Any]) -> None:
        assert self.running is not None
        if items:
            self.running = self._take(self.running, items)

    def _take_batches(self, items: list[Any], port: int) -> None:
        assert self.running is not None
        for batch in items:
            if len(self.running.model.inputs) == 1:
                self.running = self._take_batch(self.running, batch)
                continue
            self._moved = self._moved or self._times is not None
            column = None if self._times is None else self._times.column
            self.running.insert_batch(batch, port, times=column)  # type: ignore[arg-type]

    # -- overrides ------------------------------------------------------------------------------

    def _open(self, start: Instant) -> Running:
        return self._opener(start)

    def _connected(self, running: Running) -> Running:
        for name in self._names:
            running.connect(name, *self._listeners(running, name))
        return running

    def _listeners(
        self, running: Running, name: str
    ) -> tuple[Callable[[Any], None], Callable[[], None]]:
        mark = punct()

        def row(item: Any) -> None:
            self.events.append(OutputEvent(running.micros, name, item))

        return row, lambda: row(mark)

    def _restarted(self, running: Running) -> Running:
        if not self._arrays:
            return super()._restarted(running)
        state = written_and_read(running.snapshot(arrays=True))
        fresh = self._connected(self._open(running.now))
        fresh.restore(state)
        return fresh
