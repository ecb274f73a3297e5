"""Windows of event time against duckdb and polars, on streams with disorder and ties."""
# mypy: disable-error-code="arg-type,assignment"

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from windowlib import Event, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, agg

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

WAIT = "30s"


def stream(seed):
    """Five thousand rows, half a second apart, that come up to half a minute late."""
    rng = np.random.default_rng(seed)
    at = np.arange(5_000) * 500_000 + 1_356_998_400_000_000
    at = at[np.argsort(at + rng.integers(0, 30_000_000, 5_000), kind="stable")]
    at = at // 1_000_000 * 1_000_000  # ties
    columns = {
        "ts": pa.array(at, pa.timestamp("us")),
        "k": pa.array(rng.choice(list("abc"), 5_000)),
        "x": pa.array(rng.integers(0, 1_000, 5_000)),
    }
    return pa.table(columns)


def ours(rows, size, every, batches):
    options = {"by": "k", "watermark": WAIT, "late": "error"}
    window = Tumbling(Event("ts", size), **options)
    if every != size:
        window = Sliding(Event("ts", size), every=Event("ts", every), **options)
    op = Aggregate(
        window, start=agg.window_start(), n=agg.count(), total=agg.sum("x"), top=agg.max("x")
    )
    found = replay(op, rows if batches else rows.to_pylist())
    return sorted((row["start"], row["k"], row["n"], row["total"], row["top"]) for row in found)


BATCHES = pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])


@BATCHES
@pytest.mark.parametrize("seed", [1, 2])
def test_tumbling_windows_are_time_buckets_of_duckdb(seed, batches):
    rows = stream(seed)
    query = """
        select time_bucket(interval '1 minute', ts, timestamp '1970-01-01') as start,
               k, count(*), sum(x)::bigint, max(x)
        from rows group by all order by all
    """
    assert duckdb.sql(query).fetchall() == ours(rows, "1min", "1min", batches)


@BATCHES
@pytest.mark.parametrize(("size", "every"), [("1min", "10s"), ("1min", "25s"), ("90s", "1min")])
def test_hopping_windows_are_those_of_polars(size, every, batches):
    rows = stream(3)
    short = {"1min": "1m", "10s": "10s", "25s": "25s", "90s": "90s"}
    frame = polars.from_arrow(rows).sort("ts")
    windows = frame.group_by_dynamic(
        "ts", every=short[every], period=short[size], group_by="k", start_by="window"
    )
    found = windows.agg(
        polars.len().alias("n"), polars.col("x").sum().alias("s"), polars.col("x").max().alias("m")
    )
    expected = [(row["ts"], row["k"], row["n"], row["s"], row["m"]) for row in found.to_dicts()]
    got = ours(rows, size, every, batches)
    first = min(expected)[0]
    assert isinstance(first, datetime)
    # Where polars starts with the first window that has a row, we have all that a row is in.
    assert sorted(expected) == [row for row in got if row[0] >= first]


@BATCHES
def test_hopping_windows_are_those_of_a_join_in_duckdb(batches):
    rows = stream(4)
    query = """
        select w.start, k, count(*), sum(x)::bigint, max(x)
        from rows, (select unnest(range(timestamp '2012-12-31 23:55:00',
                                        timestamp '2013-01-01 01:00:00',
                                        interval '20 seconds')) as start) w
        where ts >= w.start and ts < w.start + interval '1 minute'
        group by all order by all
    """
    assert duckdb.sql(query).fetchall() == ours(rows, "1min", "20s", batches)
