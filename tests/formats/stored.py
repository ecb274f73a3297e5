"""What the files of this folder hold: state after some rows, and how a stream goes on from it.

`python -m tests.formats.stored` writes the files of the present format that are missing. Those of
formats that were released stay as they are; a new format gets new files, beside the old ones.
"""

from __future__ import annotations

import json
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
from windowlib.columnar.arrays.encoding import compact, stream_bytes
from windowlib.operators import Aggregate, Dedup, Join, Reorder, Skyline, Sort, agg
from windowlib.spark.bucket.bucket import Bucket, BucketSpec, MicroBatch
from windowlib.spark.bucket.state_store import FORMAT, StateHead
from windowlib.spark.plan.shuffle import PackedRows
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
                running.insert_timed(ROWS[lo:hi], lambda row: int(row["ts"]) * 1_000_000, port)
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


def spec() -> BucketSpec:
    """What a bucket of `MEANS` runs on Spark."""
    made = MEANS.schemas(SCHEMA)
    return BucketSpec(
        operator=MEANS,
        inputs=(SCHEMA,),
        outputs=made,
        made=made,
        orders=(None,),
        fingerprint=MEANS.describe(),
        nonce="run",
    )


def micro_batch(lo: int, hi: int, saved: int, logged: int) -> MicroBatch:
    """Some of the rows, as they come to a bucket."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(pa.RecordBatch.from_pylist(ROWS[lo:hi], SCHEMA))
    chunk = PackedRows(0, 0, sink.getvalue().to_pybytes())
    return MicroBatch("run", (chunk,), None, saved, logged, False)


def bucket_files() -> dict[str, bytes]:
    """The state of a bucket as the state store has it: a head, a snapshot, and a log."""
    bucket = Bucket(spec(), 0)
    snapshot = bucket.step(micro_batch(0, CUT - 6, 0, 0)).snapshot
    assert snapshot is not None
    found = {"snapshot": snapshot}
    saved = 1 << 20  # so that what follows is logged
    for number, lo in enumerate((CUT - 6, CUT - 3)):
        entry = bucket.step(micro_batch(lo, lo + 3, saved, 0)).entry
        assert entry is not None
        found[f"entry{number}"] = entry
    head = StateHead(FORMAT, 3, bucket.nonce, "run", "", spec().about, 0, 0, 0, 0, 2, None)
    found["head"] = json.dumps(vars(head.sealed())).encode()
    return found


def chunk() -> pa.RecordBatch:
    """Rows that cross the shuffle in few bytes, and stand in the log so."""
    n = range(400)
    return pa.record_batch(
        {
            "ts": pa.array([10**15 + 7 * i for i in n], pa.timestamp("us", "UTC")),
            "k": pa.array(["abc"[i % 3] for i in n]),
            "i": pa.array([None if i % 9 == 0 else i * 37 % 251 - 10**12 for i in n]),
            "x": pa.array([i / 3 for i in n]),
        }
    )


def main() -> None:
    """Write the files of this format that are not there."""
    handover.WORTH = 1  # so that a few rows are in arrays
    version = f"{VERSION}-{ARRAYS}"
    for name, case in {**WINDOWS, **OPERATORS}.items():
        made = case.make()
        case.feed(made, 0, CUT)
        state = made.snapshot(arrays=name.endswith("arrays"))
        _write(f"{name}.{version}.state", dump_state(state))
    _write(f"chunk.{FORMAT}.stream", stream_bytes(compact(chunk())))
    for name, data in bucket_files().items():
        _write(f"bucket.{FORMAT}.{name}", data)


def _write(name: str, data: bytes) -> None:
    if not (FOLDER / name).exists():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
