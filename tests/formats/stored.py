"""What the files of this folder hold: state after some rows, and how a stream goes on from it.

`python -m tests.formats.stored` writes the files of the present format that are missing. Those of
formats that were released stay as they are; a new format gets new files, beside the old ones.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from windowlib import (
    Count,
    Delta,
    Event,
    PartitionCount,
    Sliding,
    SlidingWindow,
    Time,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    dump_state,
)
from windowlib.columnar import handover
from windowlib.operators import Aggregate, Dedup, Join, Reorder, Skyline, Sort, agg
from windowlib.window.arrow import Times
from windowlib.window.snapshot import ARRAYS, VERSION

FOLDER = Path(__file__).parent
ROWS: list[dict[str, Any]] = [
    {"ts": n, "k": "abc"[n % 3], "x": (n * 7 % 11) / 2} for n in range(40)
]
CUT = 23
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64()})


class Told(WindowEvents[Any, Any]):
    """Notes what fires."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_trigger(self, window: Any, key: Any) -> None:
        self.told.append([key, [row["ts"] for row in window[key]]])

    def before_flush(self, window: Any, key: Any) -> None:
        self.on_trigger(window, key)


class Case(NamedTuple):
    """Something with state: makes it anew, feeds it rows, and says what came out since then."""

    make: Callable[[], Any]
    feed: Callable[[Any, int, int], list[Any]]


def _window(make: Callable[..., Any]) -> Case:
    def feed(window: Any, lo: int, hi: int) -> list[Any]:
        before = len(window.events.told)
        for row in ROWS[lo:hi]:
            window.advance(row["ts"] / 4)
            window.insert(row)
        found: list[Any] = window.events.told[before:]
        return found

    return Case(lambda: make(events=Told()), feed)


def _operator(operator: Any, *, batch: bool = False, timed: bool = False) -> Case:
    def feed(running: Any, lo: int, hi: int) -> list[Any]:
        found: list[Any] = []
        running.connect(0, found.append)
        times = "ts" if timed else None
        for port in range(len(running.model.inputs)):
            if batch:
                running.insert_batch(pa.RecordBatch.from_pylist(ROWS[lo:hi], SCHEMA), port, times)
            elif timed:
                running.insert_timed(ROWS[lo:hi], Times("ts"), port)
            else:
                running.insert_many(ROWS[lo:hi], port)
        return found

    return Case(operator.open, feed)


WINDOWS = {
    "tumbling": _window(lambda **more: TumblingWindow(Tumbling(Count(4), by="k"), **more)),
    "sliding": _window(
        lambda **more: SlidingWindow(Sliding(Delta("ts", 9), every=Count(2), by="k"), **more)
    ),
    "timed": _window(lambda **more: SlidingWindow(Sliding(Time("3s"), every=Time("1s")), **more)),
    "evicting": _window(
        lambda **more: SlidingWindow(
            Sliding(Count(3), every=Count(1), by="k", forget=PartitionCount(2)), **more
        )
    ),
}
MEANS = Aggregate(
    Sliding(Count(6), every=Count(2), by="k"), m=agg.mean("x"), q=agg.median("x"), n=agg.count()
)
TIMED = Aggregate(
    Sliding(Time("8s"), every=Time("3s"), by="k"),
    s=agg.sum("x"),
    m=agg.mean("x"),
    f=agg.first("ts"),
    n=agg.count(),
)
OPERATORS = {
    "aggregate": _operator(MEANS),
    "arrays": _operator(MEANS, batch=True),
    "timed_aggregate": _operator(TIMED, timed=True),
    "timed_arrays": _operator(TIMED, batch=True, timed=True),
    # The same since they are slices; the files of those two have tuples and rows.
    "timed_slices": _operator(TIMED, timed=True),
    "timed_slices_arrays": _operator(TIMED, batch=True, timed=True),
    "event_time": _operator(Aggregate(Tumbling(Event("ts", 10), by="k"), s=agg.sum("x"))),
    "sketch": _operator(Aggregate(Tumbling(Count(9)), n=agg.approx_count_distinct("x"))),
    "sort": _operator(Sort("x", window=Sliding(Count(5)))),
    "dedup": _operator(Dedup("x", within=Count(4))),
    "join": _operator(Join(left=Sliding(Count(4)), right=Sliding(Count(3)), on="k")),
    "skyline": _operator(Skyline(Tumbling(Count(6)), "x", "ts")),
    "graph": _operator(Sort("x", window=Tumbling(Count(4))).then(MEANS)),
    "reorder": _operator(Reorder("ts", slack=3)),
}


def main() -> None:
    """Write the files of this format that are not there."""
    from tests.formats import stored_buckets  # the only part that takes PySpark

    handover.MIN_ROWS = 1  # so that a few rows are in arrays
    version = f"{VERSION}-{ARRAYS}"
    for name, case in {**WINDOWS, **OPERATORS}.items():
        made = case.make()
        case.feed(made, 0, CUT)
        state = made.snapshot(arrays=name.endswith("arrays"))
        _write(f"{name}.{version}.state", dump_state(state))
    for name, data in stored_buckets.files().items():
        _write(name, data)


def _write(name: str, data: bytes) -> None:
    if not (FOLDER / name).exists():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
