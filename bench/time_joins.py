"""Joins in time against duckdb, over the same tables: 500,000 trades and 50,000 quotes of 100 keys.

Ours takes batches of 65,536 rows of both inputs in turn, as a stream brings them; duckdb has the
whole tables. Both give Arrow. Times are CPU seconds, so a second core of duckdb's counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench.harness import Measure, alternate, at_least
from windowlib import Operator
from windowlib.operators import AsOf, IntervalJoin

TRADES, QUOTES, KEYS = 500_000, 50_000, 100
BATCH = 1 << 16
SPAN = 3_600_000_000
AS_OF = (
    "SELECT t.*, q.bid, q.ts AS ts_right FROM trades t ASOF LEFT JOIN quotes q "
    "ON t.k = q.k AND t.ts >= q.ts"
)
RANGE = (
    "SELECT t.*, q.bid, q.ts AS ts_right FROM trades t JOIN quotes q "
    "ON t.k = q.k AND q.ts BETWEEN t.ts - INTERVAL 10 SECOND AND t.ts"
)


def tables() -> tuple[pa.Table, pa.Table]:
    """Trades and quotes in the order of time."""
    rng = np.random.default_rng(11)

    def side(size: int, name: str) -> pa.Table:
        return pa.table(
            {
                "ts": pa.array(np.sort(rng.integers(0, SPAN, size)), pa.timestamp("us")),
                "k": rng.integers(0, KEYS, size),
                name: rng.normal(size=size),
            }
        )

    return side(TRADES, "price"), side(QUOTES, "bid")


def ours(join: Operator, trades: pa.Table, quotes: pa.Table) -> Callable[[], int]:
    """A run over batches of both inputs in turn; how many rows came out."""
    lefts, rights = trades.to_batches(BATCH), quotes.to_batches(BATCH * QUOTES // TRADES)

    def run() -> int:
        running, rows = join.open(), 0
        for left, right in zip(lefts, rights, strict=False):
            rows += running.process_batch(right, 1).num_rows
            rows += running.process_batch(left, 0).num_rows
        rest: list[Any] = []
        running.connect(0, rest.append)
        running.finish()
        return rows + len(rest)

    return run


def theirs(query: str, trades: pa.Table, quotes: pa.Table) -> Callable[[], int]:
    """The same by duckdb."""
    import duckdb

    connection = duckdb.connect()
    connection.register("trades", trades)
    connection.register("quotes", quotes)

    def run() -> int:
        found: Any = connection.sql(query)
        rows: int = found.to_arrow_table().num_rows
        return rows

    return run


def fresh(run: Callable[[], int]) -> Callable[[], int]:
    """A run that needs no state from before."""
    return run


def run(rounds: int = 7) -> list[Measure]:
    """Everything."""
    trades, quotes = tables()
    close = IntervalJoin("ts", before="10s", after="0s", on="k")
    runs = {
        "as of": ours(AsOf("ts", on="k"), trades, quotes),
        "duckdb as of": theirs(AS_OF, trades, quotes),
        "interval": ours(close, trades, quotes),
        "duckdb range": theirs(RANGE, trades, quotes),
    }
    assert runs["as of"]() == runs["duckdb as of"]()
    assert runs["interval"]() == runs["duckdb range"]()
    times = alternate({name: partial(fresh, each) for name, each in runs.items()}, rounds)
    return [
        at_least(0.3, "as-of join, speed to duckdb's ASOF JOIN", "duckdb as of", "as of", times),
        at_least(None, "interval join, speed to a range join", "duckdb range", "interval", times),
    ]
