"""DataFrames of other libraries are rows, wherever Arrow tables are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from windowlib import Count, Delta, Event, Sliding, Tumbling, TumblingWindow, replay, to
from windowlib.errors import SchemaError
from windowlib.farms import KeyFarm
from windowlib.operators import Aggregate, Functor, Join, agg
from windowlib.samples import trades

ROWS = trades(120)
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SUMS = Aggregate(
    Sliding(Count(9), every=Count(4), by="symbol", order_by="ts"),
    qty=agg.sum("qty"),
    first=agg.first("symbol"),
    high=agg.max("price"),
)


def pandas_frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


def polars_frame(rows):
    return pytest.importorskip("polars").DataFrame(rows)


class Streamed:
    """Nothing but an Arrow stream, as of a library that nobody has heard of."""

    def __init__(self, rows):
        self.table = pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def duckdb_relation(rows):
    duckdb = pytest.importorskip("duckdb")
    table = pa.Table.from_pylist(rows)
    return duckdb.connect().from_arrow(table)


FRAMES = pytest.mark.parametrize("frame", [pandas_frame, polars_frame, Streamed, duckdb_relation])


@FRAMES
def test_replay_takes_a_frame_or_several(frame):
    want = list(replay(SUMS, ROWS))
    assert want
    assert list(replay(SUMS, frame(ROWS))) == want
    parts = [frame(ROWS[:50]), frame(ROWS[50:])]
    assert list(replay(SUMS, parts)) == want
    assert list(replay(SUMS, iter(parts))) == want
    by_time = Aggregate(Tumbling(Delta("ts", "5s"), by="symbol"), n=agg.count())
    assert list(replay(by_time, frame(ROWS), times="ts")) == list(replay(by_time, ROWS, times="ts"))


@FRAMES
def test_replay_merges_frames(frame):
    recent = Sliding(Count(3), by="symbol")
    join = Join(left=recent, right=recent, on="symbol", how="left")
    want = list(replay(join, ROWS[::2], ROWS[1::2], merge="ts"))
    assert want
    assert list(replay(join, frame(ROWS[::2]), frame(ROWS[1::2]), merge="ts")) == want
    tagged = [to("left", frame(ROWS[:10])), to("right", frame(ROWS[10:]))]
    rows = [*(to("left", row) for row in ROWS[:10]), *(to("right", row) for row in ROWS[10:])]
    assert list(replay(join, tagged)) == list(replay(join, rows))


@FRAMES
@pytest.mark.parametrize("operator", [SUMS, KeyFarm(SUMS, workers=2), SUMS.then(Functor(q="qty"))])
def test_running_operators_take_frames(frame, operator):
    want = list(replay(operator, ROWS))
    running = operator.open()
    made = running.process_batch(frame(ROWS)).to_pylist()
    running.finish()
    assert made
    assert made == want[: len(made)]
    assert "columnar" in SUMS.explain(frame(ROWS))


@FRAMES
def test_windows_take_frames(frame):
    window: TumblingWindow[Any, Any] = TumblingWindow(evict=Count(100))
    window.insert_batch(frame(ROWS))
    assert list(window[None]) == ROWS[100:]
    hours = Aggregate(Tumbling(Event("ts", "1s"), by="symbol"), n=agg.count())
    assert list(replay(hours, frame(ROWS))) == list(replay(hours, ROWS))


def test_pandas_missing_values_are_null_and_named_indices_columns():
    pd = pytest.importorskip("pandas")
    rows = Functor(lambda row: row)
    frame = pd.DataFrame({"x": [1.5, float("nan"), 3.0], "at": [FIRST, pd.NaT, FIRST]})
    want: list[dict[str, Any]] = [
        {"x": 1.5, "at": FIRST},
        {"x": None, "at": None},
        {"x": 3.0, "at": FIRST},
    ]
    assert list(replay(rows, frame)) == want
    assert list(replay(rows, frame[frame.x > 2])) == want[2:]
    assert list(replay(rows, frame.set_index("x"))) == want
    both = pd.MultiIndex.from_arrays([["a", "b", "c"], [1, 2, 3]], names=["k", None])
    assert [row["k"] for row in replay(rows, frame.set_index(both))] == ["a", "b", "c"]


def test_frames_that_are_no_rows_say_what_to_do():
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    with pytest.raises(SchemaError, match=r"a LazyFrame is no list of rows\. Pass its collect\(\)"):
        list(replay(SUMS, pl.DataFrame(ROWS).lazy()))
    with pytest.raises(SchemaError, match=r"insert_batch\(LazyFrame\): .* Pass its collect\(\)"):
        SUMS.open().insert_batch(pl.DataFrame(ROWS).lazy())
    mixed = pd.DataFrame({"x": [1, "a"]})
    with pytest.raises(SchemaError, match=r"replay\(DataFrame\): it cannot be an Arrow table"):
        list(replay(SUMS, mixed))
    with pytest.raises(SchemaError, match=r"process_batch\(Series\): it cannot be an Arrow table"):
        SUMS.open().process_batch(pl.Series([1, 2]))
