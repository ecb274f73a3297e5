"""Figures of a farm at work: how busy its workers are, what waits, and how long results take.

A meter notes when results are asked for and when they come out; the time is that of the pool, so
figures of a simulation are in virtual time. `FarmFigures` is what it says at one moment, as a line
for a terminal and as a table for a notebook; `live` shows them while the farm works.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, TextIO

LATENCIES = 512
"""The last results whose latencies are remembered."""


@dataclass(frozen=True, slots=True)
class FarmFigures:
    """How a farm does at one moment.

    Args:
        place: where it works: "caller", "trial", "starting" or "workers".
        busy: the share of its time that each worker worked since the figures before.
        under_way: tasks that workers have.
        queue: tasks that wait until a worker has room.
        due: results that have been asked for and have not come out.
        rows: rows that are buffered.
        bytes: how much memory these take.
        rate: results that came out in a second, since the figures before.
        latency: seconds from when a window fires until its rows come out: the median, and what 99 %
            of the last results stay below; None before there is any.

    >>> held = {"under_way": 4, "queue": 2, "due": 130, "rows": 64_000, "bytes": 1_200_000}
    >>> print(FarmFigures("workers", (0.9, 0.75), **held, rate=5100, latency=(0.008, 0.02)))
    workers: 90% 75% busy, 4 tasks and 2 in the queue, 130 results due, 64,000 rows in 1.2 MB, \
5,100 results/s after 8 ms (99%: 20 ms)
    """

    place: str
    busy: tuple[float, ...] = ()
    under_way: int = 0
    queue: int = 0
    due: int = 0
    rows: int = 0
    bytes: int = 0
    rate: float = 0.0
    latency: tuple[float, float] | None = None

    def _topics(self) -> Iterator[tuple[str, str]]:
        """The figures as text, by topic."""
        if self.busy:
            yield "busy", " ".join(f"{share:.0%}" for share in self.busy) + " busy"
            yield "tasks", f"{self.under_way} tasks and {self.queue} in the queue"
            yield "due", f"{self.due:,} results due"
            yield "buffered", f"{self.rows:,} rows in {self.bytes / 1e6:.2g} MB"
        if self.latency is not None:
            median, high = map(_duration_text, self.latency)
            yield "results", f"{self.rate:,.0f} results/s after {median} (99%: {high})"

    def __str__(self) -> str:
        said = ", ".join(text for _, text in self._topics())
        return f"{self.place}: {said}" if said else self.place

    def _repr_html_(self) -> str:
        rows = [("place", self.place), *self._topics()]
        cells = "".join(f"<tr><th>{a}</th><td>{escape(b)}</td></tr>" for a, b in rows)
        return f"<table>{cells}</table>"


def _duration_text(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:,.1f} s"


FigureObserver = Callable[[FarmFigures], None]
"""A function that is called with the figures of a farm while it works."""


class FarmMeter:
    """Notes when results are asked for, when they come out, and how long workers work.

    >>> meter = FarmMeter(workers=2, now=0.0)
    >>> meter.requested(10, now=1.0)                # results up to number 10, the first of all
    >>> meter.worked(0, 2.0)
    >>> meter.delivered(10, now=4.0)
    >>> figures = meter.read("workers", now=4.0)
    >>> figures.busy, figures.rate, figures.latency
    ((0.5, 0.0), 2.5, (3.0, 3.0))
    """

    def __init__(self, workers: int, now: float) -> None:
        self._requested: deque[tuple[int, float]] = deque()  # results up to a number, and when
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._out = 0
        self.resized(workers, now)

    def resized(self, workers: int, now: float) -> None:
        """Start a new interval with this number of workers."""
        self._busy, self._since, self._before = [0.0] * workers, now, self._out

    def requested(self, end: int, now: float) -> None:
        """Results up to this number have been requested."""
        self._requested.append((end, now))

    def delivered(self, out: int, now: float) -> None:
        """Results up to this number have come out."""
        while self._requested and self._requested[0][0] <= out:
            self._latencies.append(now - self._requested.popleft()[1])
        self._out = out

    def worked(self, worker: int, seconds: float) -> None:
        """Add to the time that a worker has worked."""
        self._busy[worker] += seconds

    def read(self, place: str, now: float, **held: int) -> FarmFigures:
        """The figures since the last call; `held` are the present numbers of tasks and rows."""
        elapsed = max(now - self._since, 1e-9)
        busy = tuple(min(1.0, each / elapsed) for each in self._busy)
        rate = (self._out - self._before) / elapsed
        self.resized(len(busy), now)
        known = sorted(self._latencies)
        latency = (known[len(known) // 2], known[99 * len(known) // 100]) if known else None
        return FarmFigures(place, busy, rate=rate, latency=latency, **held)


def live(running: Any, every: float = 1.0, out: TextIO | None = None) -> None:
    """Show the figures of a running farm while it works.

    There are no threads: the figures change in the calls that put rows in or wait for results.

    Args:
        running: what `open` of a farm gave.
        every: seconds between two looks.
        out: where to write; the cell of a notebook, or else standard error.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.farms import WindowFarm, live
    >>> from windowlib.operators import Aggregate, agg
    >>> with WindowFarm(Aggregate(Tumbling(Count(2)), s=agg.sum("x")), workers=2).open() as running:
    ...     live(running, every=0.5)
    ...     running.insert_many([{"x": 1}, {"x": 2}])
    """
    cell = _notebook_cell() if out is None else None
    running.observe(TerminalLine(out or sys.stderr) if cell is None else cell, every)


class TerminalLine:
    """Figures on a terminal: each line takes the place of the one before."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._over = out, out.isatty()

    def __call__(self, figures: FarmFigures) -> None:
        """Write the figures."""
        self._out.write(f"\r\x1b[K{figures}" if self._over else f"{figures}\n")
        self._out.flush()


def _notebook_cell() -> Any:
    """A function that shows figures in the cell of a notebook; None if there is no notebook."""
    shell, shows = sys.modules.get("IPython"), sys.modules.get("IPython.display")
    if shell is None or shows is None:
        return None
    if "IPKernelApp" not in getattr(shell.get_ipython(), "config", {}):
        return None
    return shows.display(FarmFigures("caller"), display_id=True).update
