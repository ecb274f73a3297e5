"""What the pages say of sessions, as-of joins and row windows, against duckdb, ties included."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from windowlib import Count, Delta, Event, Session, Sliding, replay
from windowlib.operators import Aggregate, AsOf, agg


def stream(seed: int, rows: int, span: int) -> pa.Table:
    """Rows of three keys in the order of time, many of them at one time."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "n": np.arange(rows),
            "ts": np.sort(rng.integers(0, span, rows)),
            "k": [("a", "b", "c")[each] for each in rng.integers(0, 3, rows)],
            "x": rng.integers(0, 9, rows),
        }
    )


@pytest.fixture(params=[1, 2, 3])
def rows(request: Any) -> pa.Table:
    return stream(request.param, 400, 300)


def query(text: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(text).fetchall()


def test_a_session_of_a_key_ends_with_a_gap_of_that_key(rows):
    op = Aggregate(
        Session(Event("ts"), gap=4, by="k"), first=agg.window_start(), n=agg.count(), x=agg.sum("x")
    )
    expected = query(
        """
        WITH cut AS (SELECT *, ts - lag(ts) OVER w > 4 AS new FROM rows
                     WINDOW w AS (PARTITION BY k ORDER BY ts, n)),
             numbered AS (SELECT *, sum(coalesce(new, true)::INT) OVER
                          (PARTITION BY k ORDER BY ts, n) AS s FROM cut)
        SELECT k, min(ts), count(*), sum(x) FROM numbered GROUP BY k, s ORDER BY 1, 2
        """,
        rows=rows,
    )
    found = replay(op, rows.to_pylist())
    assert sorted(tuple(row.values()) for row in found) == expected
    assert len(expected) > 30


def test_as_of_is_at_or_before(rows):
    quotes = stream(9, 150, 300)
    latest = """
        SELECT t.n, q.x FROM rows t LEFT JOIN LATERAL (
            SELECT x FROM quotes q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC, q.n DESC
            LIMIT 1) q ON true ORDER BY 1
    """
    expected = query(latest, rows=rows, quotes=quotes)
    found = replay(AsOf("ts", on="k"), rows.to_pylist(), quotes.to_pylist())
    assert sorted((row["n"], row["x_right"]) for row in found) == expected


def test_rows_between(rows):
    window = Sliding(Count(5), by="k", order_by="ts", partial="emit")
    found = replay(Aggregate(window, n=agg.last("n"), s=agg.sum("x")), rows.to_pylist())
    expected = query(
        "SELECT k, n, sum(x) OVER (PARTITION BY k ORDER BY ts, n ROWS BETWEEN 4 PRECEDING AND "
        "CURRENT ROW) FROM rows ORDER BY n",
        rows=rows,
    )
    assert sorted((tuple(row.values()) for row in found), key=lambda row: row[1]) == expected


def test_range_between_gives_one_row_for_each_time_but_the_last(rows):
    window = Sliding(Delta("ts", 10), every=Delta("ts", 0), by="k", order_by="ts", partial="emit")
    found = replay(Aggregate(window, ts=agg.last("ts"), n=agg.count()), rows.to_pylist())
    expected = query(
        "SELECT DISTINCT k, ts, count(*) OVER w FROM rows WINDOW w AS (PARTITION BY k ORDER BY ts "
        "RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) QUALIFY ts < max(ts) OVER (PARTITION BY k) "
        "ORDER BY 1, 2",
        rows=rows,
    )
    assert sorted(tuple(row.values()) for row in found) == expected
    assert len(expected) > 100
