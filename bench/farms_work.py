"""What the benchmarks of farms have in common: a heavy function, its price, and streams."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib import Operator, OperatorModel, Sliding, Tumbling
from windowlib.farms import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.farms.virtual import SimulationReport
from windowlib.workload import Keys

T_G, T_H = 1.5e-3, 20e-6
"""Seconds that a pane takes, and that it takes to make a window of panes."""
SIZE, SLIDE = 1000, 200
PATTERNS: dict[str, type[Farm]] = {
    "WF": WindowFarm,
    "KP": KeyFarm,
    "WP": WindowPartition,
    "PF": PaneFarm,
}


class Burn(Operator):
    """The sum of a window, which takes as many turns of a loop for each tuple as one likes."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    content = "arrow"
    function_kind = "associative"

    def __init__(self, window: Any, turns: float = 0.0) -> None:
        self.turns = turns
        super().__init__(window)

    def on_trigger(self, window: Any, key: Any) -> None:
        self.emit_part(key, self.part_of(window, key))

    before_flush = on_trigger

    def part_of(self, window: Any, key: Any) -> tuple[int, int]:
        values = window.column("x", key)
        burn(int(self.turns * len(values)))
        return len(values), int(values.sum())

    def merge_parts(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]

    def emit_part(self, key: Any, part: tuple[int, int] | None) -> None:
        size, total = part or (0, 0)
        self.emit(key=key, size=size, total=total)


def light(op: Burn) -> Burn:
    """The same without the burning, for the results."""
    (window,) = op.windows
    return Burn(window)


def burn(turns: int) -> int:
    """Work that takes its time in the processor."""
    found = 1
    for _ in range(turns):
        found = (found * 69_069 + 1) & 0xFFFFFFFF
    return found


def turns_in(seconds: float) -> float:
    """How many turns take so long: the fastest of several tries."""
    tries = []
    for _ in range(7):
        start = time.process_time()
        burn(100_000)
        tries.append(time.process_time() - start)
    return seconds / min(tries) * 100_000


@dataclass(frozen=True)
class Price:
    """How long tasks take in virtual time.

    Args:
        row: seconds for each tuple of a window or of a part of one.
        window: seconds for each window beside that.
        share: in how many windows a tuple is, for workers that have whole keys. These compute
            windows when they come to an end; on average that is as much for each tuple.
    """

    row: float
    window: float = 0.0
    share: float = 1.0
    slide: float = 1.0

    def __call__(self, work: str, args: Any) -> float:
        """The seconds that a task takes."""
        return float(self._seconds(work, args))

    def _seconds(self, work: str, args: Any) -> Any:
        if work == "rows":
            each = self.row * self.share + self.window / self.slide
            return each * _rows(args[0])
        if work == "windows":
            _, starts, ends, _ = args[1]
            return self.row * (sum(ends) - sum(starts)) + self.window * len(ends)
        if work == "partials":
            rows = sum(given.hi - given.lo for given in args[1])
            return self.row * rows + self.window * len(args[2])
        if work == "take":
            return self.row * _rows(args[1])
        if work == "close":
            return self.row * (_rows(args[2]) - args[1]) + self.window
        return self.window if work == "finish" and len(args) > 1 else 0.0


def _rows(pieces: Any) -> int:
    """How many rows pieces have; an empty window has columns in their place."""
    return 0 if isinstance(pieces, pa.Schema) else sum(hi - lo for _, lo, hi in pieces)


def keyed(rows: int, keys: Keys, seed: int = 0) -> pa.RecordBatch:
    """Tuples with keys and whole numbers."""
    return pa.record_batch({"key": keys.draw(rows, seed), "x": np.arange(rows) % 1009})


def plain(rows: int) -> pa.RecordBatch:
    """Tuples with whole numbers."""
    return pa.record_batch({"x": np.arange(rows) % 1009})


def cut(batch: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    """A batch in pieces of so many rows."""
    return [batch.slice(at, size) for at in range(0, batch.num_rows, size)]


def expected(
    operator: Operator,
    batches: Iterable[pa.RecordBatch],
    *,
    times: str | None = None,
    until: float | None = None,
) -> list[Any]:
    """What the operator alone sends, if the clock goes on to `until`."""
    out: list[Any] = []
    running = operator.open()
    running.connect(0, out.append)
    for batch in batches:
        running.insert_batch(batch, times=times)
    if until is not None:
        running.advance(until)
    running.finish()
    return out


def same(name: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Refuse to go on with results that are not those of the operator alone."""
    assert len(wanted), f"{name}: no results to compare"
    assert list(found) == list(wanted), f"{name}: other results than the operator's"


def latency(report: SimulationReport, due: Sequence[float]) -> float:
    """How long after it could be known a row came out, on average of the last rows."""
    times = [time for time, port, row in report.out if port == 0 and row is not None]
    return float(np.mean(np.array(times[-len(due) :]) - np.array(due)))
