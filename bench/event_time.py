"""Windows of event time: what they cost beside `Delta` windows, beside polars, and in memory.

A sorted stream of 1,000,000 rows with 100 keys, one row every 18 ms; a mean by key and minute, in
Arrow batches of 65,536 rows.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench import time_joins
from bench.harness import Measure, alternate, at_least, at_most, ratio
from windowlib import (
    Delta,
    Event,
    EventTimeWindow,
    Operator,
    Punct,
    Session,
    Sliding,
    Tumbling,
    summarizers,
)
from windowlib.operators import Aggregate, Panes, Skyline, agg

ROWS = 1_000_000
BATCH = 1 << 16
STEP = 18_000
MINUTE = 60_000_000


def stream(disorder: int = 0) -> list[pa.RecordBatch]:
    """A stream in batches; `disorder` is how late rows come, at most, in microseconds."""
    rng = np.random.default_rng(7)
    ts = np.arange(ROWS) * STEP
    if disorder:
        ts = ts[np.argsort(ts + rng.integers(0, disorder, ROWS), kind="stable")]
    columns = {
        "ts": pa.array(ts, pa.timestamp("us")),
        "k": pa.array(rng.integers(0, 100, ROWS)),
        "x": pa.array(rng.normal(size=ROWS)),
    }
    found: list[pa.RecordBatch] = pa.table(columns).to_batches(BATCH)
    return found


def aggregated(window: Any, batches: list[pa.RecordBatch], **more: Any) -> Callable[[], int]:
    """A run of batches through an aggregation."""
    op = Aggregate(window, mean=agg.mean("x"), **more)

    def run() -> int:
        running, rows = op.open(), 0
        for batch in batches:
            rows += running.process_batch(batch).num_rows
        running.finish()
        return rows

    return run


def dynamic(batches: list[pa.RecordBatch], every: str, period: str) -> Callable[[], int]:
    """The same by polars, with all rows at once."""
    import polars

    frame = polars.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, polars.DataFrame)

    def run() -> int:
        windows = frame.group_by_dynamic("ts", every=every, period=period, group_by="k")
        return windows.agg(polars.col("x").mean()).height

    return run


def gaps(batches: list[pa.RecordBatch], gap: str) -> Callable[[], int]:
    """Sessions by polars, with all rows at once: a row after a longer gap starts one."""
    import polars

    frame = polars.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, polars.DataFrame)
    starts = polars.col("ts").diff().over("k").gt(polars.duration(seconds=int(gap[:-1])))

    def run() -> int:
        numbered = frame.sort("k", "ts").with_columns(s=starts.fill_null(True).cum_sum())
        return numbered.group_by("s", "k").agg(polars.col("x").mean()).height

    return run


def setup(run: Callable[[], Any]) -> Callable[[], Any]:
    """A run that needs no fresh state."""
    return run


def bytes_a_key(keys: int = 100_000) -> float:
    """What a key takes in an open window, beside the state of its functions: here a count."""
    window: Any = EventTimeWindow(Tumbling(Event("ts", 10), by="k"), summarizer=summarizers.count())
    rows = [{"ts": 1, "k": key} for key in range(keys)]
    tracemalloc.start()
    window.insert_many(rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / keys


def in_panes(rows: int = 200_000, rounds: int = 7) -> list[Measure]:
    """Chains behind `Panes`, and event-time windows, with disorder, beside the same in order."""
    rng = np.random.default_rng(1)
    ts = np.arange(rows) * 20
    columns = {"ts": ts, "x": rng.random(rows), "y": rng.random(rows), "z": rng.random(rows)}
    table = pa.table(columns)
    order = np.argsort(ts + rng.integers(0, 20_000, rows), kind="stable")
    sorted_, late = (each.to_batches(1 << 14) for each in (table, table.take(pa.array(order))))

    def made(operator: Callable[[Any], Operator]) -> dict[str, Callable[[], int]]:
        chain = Panes("ts", size=100_000, slack=20_000).then(operator(Tumbling(Punct())))
        window = Tumbling(Event("ts", 100_000), watermark=20_000)
        return {
            "order": fed(operator(Tumbling(Delta("ts", 99_999))), sorted_),
            "panes": fed(chain, late),
            "event": fed(operator(window), late),
        }

    found = []
    for name, operator in {
        "Aggregate": lambda window: Aggregate(window, mean=agg.mean("x"), high=agg.max("y")),
        "Skyline": lambda window: Skyline(window, "x", "y", "z"),
    }.items():
        runs = {way: partial(setup, each) for way, each in made(operator).items()}
        times = alternate(runs, rounds)
        for way, shown in (("panes", "Panes →"), ("event", "event-time windows,")):
            text = f"{shown} {name}, disorder, speed to the same in order"
            found.append(at_least(0.5, text, "order", way, times))
    return found


def fed(operator: Operator, batches: list[pa.RecordBatch]) -> Callable[[], int]:
    """A run of batches whose output is counted row by row, as behind another operator."""

    def run() -> int:
        rows: list[Any] = []
        running = operator.open()
        running.connect(0, rows.append)
        for batch in batches:
            running.insert_batch(batch)
        running.finish()
        return len(rows)

    return run


def run() -> list[Measure]:
    """Everything."""
    return [*in_process(), *on_spark()]


def in_process() -> list[Measure]:
    """All that needs no Spark."""
    batches, late = stream(), stream(disorder=5_000_000)
    minutes = Tumbling(Event("ts", "1min"), by="k")
    hops = Sliding(Event("ts", "1min"), every=Event("ts", "10s"), by="k")
    slack = Tumbling(Event("ts", "1min"), by="k", watermark="5s")
    runs = {
        "delta": aggregated(Tumbling(Delta("ts", "1min"), by="k"), batches),
        "event": aggregated(minutes, batches),
        "bounds": aggregated(minutes, batches, start=agg.window_start()),
        "disorder": aggregated(slack, late),
        "hops": aggregated(hops, batches),
        "polars": dynamic(batches, "1m", "1m"),
        "polars hops": dynamic(batches, "10s", "1m"),
        "sessions": aggregated(Session(Event("ts"), gap="5s", by="k"), batches),
        "polars sessions": gaps(batches, "5s"),
    }
    times = alternate({name: partial(setup, each) for name, each in runs.items()}, rounds=5)
    speed = f"{ROWS / min(times['event']) / 1e6:.1f} M rows/s"
    return [
        at_most(1.5, "tumbling mean by key, cost to Delta windows", "event", "delta", times),
        at_least(1, "the same, speed to polars group_by_dynamic", "polars", "event", times),
        Measure("the same with its bounds", ratio(times, "bounds", "event"), None, False, speed),
        at_most(None, "rows up to 5 s late, cost to sorted", "disorder", "event", times),
        at_least(None, "hops of 10 s, speed to polars", "polars hops", "hops", times),
        at_least(None, "sessions, speed to polars", "polars sessions", "sessions", times),
        Measure("bytes a key, 100,000 keys", bytes_a_key(), 200, False),
        *in_panes(),
        *time_joins.run(),
    ]


def on_spark() -> list[Measure]:
    """The same beside Spark's own windows."""
    from bench import event_time_spark

    return event_time_spark.run()


OPTIONS = {"--spark": on_spark, "--in-process": in_process}
