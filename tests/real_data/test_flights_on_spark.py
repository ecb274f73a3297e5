"""The flights of two weeks on Spark, static and streaming, against duckdb."""

import pyarrow.compute as pc
import pytest

from tests.real_data import spark_ways
from tests.real_data.flights import weather
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


def on_spark(spark, way, operator, *tables, folder):
    return {"static": spark_ways.static, "streamed": spark_ways.streamed}[way](
        spark, operator, *tables, folder=folder
    )


SPARK = pytest.mark.parametrize("way", ["static", "streamed"])


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
