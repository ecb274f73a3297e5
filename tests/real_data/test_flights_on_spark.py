"""The flights of two weeks on Spark, static and streaming, against duckdb."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.real_data import spark_ways
from tests.real_data.flights import flights, weather
from tests.real_data.test_flights import (
    RECENT,
    SESSIONS,
    SKY,
    WORST,
    by_schedule,
    delays,
    hourly,
    hours,
    keyed,
    landed,
    recent,
    sample,
    sessions,
    skies,
    worst,
)
from tests.real_data.ways import same
from windowlib import Time, Tumbling, replay
from windowlib.operators import Aggregate, agg


def on_spark(spark, way, operator, *tables, folder, **said):
    return {"static": spark_ways.static, "streamed": spark_ways.streamed}[way](
        spark, operator, *tables, folder=folder, **said
    )


WAYS = ["static", pytest.param("streamed", marks=pytest.mark.long)]
SPARK = pytest.mark.parametrize("way", WAYS)


@SPARK
def test_recent_delays_on_spark(spark, way, tmp_path):
    same(recent(sample()), on_spark(spark, way, RECENT, sample(), folder=tmp_path), "n")


@SPARK
def test_the_sky_on_spark(spark, way, tmp_path):
    few = weather().slice(0, 2_000)
    found = on_spark(spark, way, SKY, by_schedule(sample()), few, folder=tmp_path)
    same(skies(sample()), found, "n")


@SPARK
@pytest.mark.parametrize("name", ["sessions", "hours", "worst"])
def test_event_time_on_spark(spark, way, name, tmp_path):
    known = sample().filter(pc.is_valid(sample()["delay"]))
    operator, wanted, names = {
        "sessions": (SESSIONS, sessions(sample()), ("tailnum", "begin")),
        "hours": (hours("error", "24h"), hourly(sample()), ("origin", "begin")),
        "worst": (WORST, worst(known), ()),
    }[name]
    source = known if name == "worst" else landed(sample()) if name == "hours" else sample()
    found = on_spark(spark, way, operator, source, folder=tmp_path)
    if name == "worst":
        assert delays(wanted) == delays(found)
    else:
        same(keyed(wanted, *names), keyed(found, *names), "id")


@pytest.mark.long
def test_every_flight_of_a_stream_is_in_an_hour_or_late(spark, tmp_path):
    came = landed(sample())
    found = spark_ways.streamed(spark, hours("port", "30min"), came, folder=tmp_path)
    rows = [row for row in found if row["_port"] == "out"]
    late = {row["n"] for row in found if row["_port"] == "late"}
    assert came.num_rows == sum(row["left"] for row in rows) + len(late)
    kept = pa.array([n not in late for n in came["n"].to_pylist()])
    wanted = keyed(hourly(came.filter(kept)), "origin", "begin")
    same(wanted, keyed(rows, "origin", "begin"), "id")


# -- an hour of the clock, which is the departure of flights that come as they land --

CLOCKED = Aggregate(
    Tumbling(Time("1h"), by="origin", order_by=("dep", "n")),
    left=agg.count(),
    first=agg.first("n"),
    last=agg.last("n"),
)


@SPARK
def test_the_clock_of_departures(spark, way, tmp_path):
    said = {"times": "dep", **({"watermark": "24h"} if way == "streamed" else {})}
    found = on_spark(spark, way, CLOCKED, landed(sample()), folder=tmp_path, **said)
    in_order = sample().sort_by([("dep", "ascending"), ("n", "ascending")])
    wanted = list(replay(CLOCKED, in_order, times="dep"))
    same(wanted, found, "first")
    assert sum(row["left"] for row in wanted) > 0.99 * in_order.num_rows


@pytest.mark.long
def test_a_year_on_spark(spark, tmp_path):
    """All flights, as a static DataFrame of several files."""
    wanted = keyed(sessions(flights()), "tailnum", "begin")
    found = spark_ways.static(spark, SESSIONS, flights(), folder=tmp_path)
    assert len(wanted) == len(found) == 172_773
    same(wanted, keyed(found, "tailnum", "begin"), "id")
