"""336,776 flights against duckdb and polars: rows, batches, static and streaming DataFrames alike.

What is slow takes the flights of two weeks, what is fast the whole year.
"""
# ruff: noqa: SIM300 - asserts read expected first

from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.real_data import ways
from tests.real_data.flights import FLIGHTS, NULL_DELAYS, WEATHER, flights, query, weather
from windowlib import Count, Event, Session, Sliding, Tumbling
from windowlib.operators import Aggregate, AsOf, TopK, agg, desc

SAMPLE = 12_000


@cache
def sample() -> pa.Table:
    return flights().slice(0, SAMPLE)


def test_the_data_are_what_they_were():
    assert (FLIGHTS, NULL_DELAYS) == (flights().num_rows, flights()["delay"].null_count)
    assert WEATHER == weather().num_rows


# -- mean and max delay of the last 50 flights of a carrier, every 10 --

RECENT = Aggregate(
    Sliding(Count(50), every=Count(10), by="carrier", order_by="n"),
    n=agg.last("n"),
    mean=agg.mean("delay"),
    worst=agg.max("delay"),
)


def recent(flown: pa.Table) -> Any:
    return query(
        """
        SELECT carrier, n, mean, worst FROM (
            SELECT carrier, n, avg(delay) OVER w AS mean, max(delay) OVER w AS worst,
                row_number() OVER (PARTITION BY carrier ORDER BY n) AS k
            FROM flown
            WINDOW w AS (PARTITION BY carrier ORDER BY n ROWS BETWEEN 49 PRECEDING AND CURRENT ROW)
        ) WHERE k >= 50 AND k % 10 = 0
        """,
        flown=flown,
    )


def test_recent_delays_by_rows_and_in_batches():
    ways.same(recent(sample()), ways.by_rows(RECENT, sample()), "n")
    ways.same(recent(flights()), ways.by_batches(RECENT, flights()), "n")


# -- the weather when a flight was to leave --

SKY = AsOf(left_ts="scheduled", right_ts="hour", on="origin")


def skies(flown: pa.Table) -> Any:
    return query(
        """
        SELECT n, flown.origin AS origin, hour, temp, wind
        FROM flown ASOF LEFT JOIN sky ON flown.origin = sky.origin AND scheduled >= hour
        """,
        flown=flown,
        sky=weather(),
    )


def by_schedule(flown: pa.Table) -> pa.Table:
    return flown.sort_by([("scheduled", "ascending"), ("n", "ascending")])


@pytest.mark.long
def test_the_sky_by_rows_and_in_batches():
    few = weather().slice(0, 2_000)
    ways.same(skies(sample()), ways.by_rows(SKY, by_schedule(sample()), few), "n")
    ways.same(skies(flights()), ways.by_batches(SKY, by_schedule(flights()), weather()), "n")


@pytest.mark.long
def test_the_sky_is_that_of_polars():
    frames: list[Any] = [pl.from_arrow(t) for t in (by_schedule(flights()), weather())]
    theirs = frames[0].join_asof(
        frames[1], left_on="scheduled", right_on="hour", by="origin", check_sortedness=False
    )
    found = ways.by_batches(SKY, by_schedule(flights()), weather())
    ways.same(theirs.select("n", "hour", "temp").to_dicts(), found, "n")


@pytest.mark.parametrize("minutes", [0, 45])
def test_flights_that_come_as_they_are_over_wait_for_their_turn(minutes):
    """In the order of landing, too, the sky is that of departure, or the flight is late."""
    landed = flights().slice(0, 60_000).sort_by([("arr", "ascending"), ("n", "ascending")])
    join = AsOf(
        left_ts="dep", right_ts="hour", on="origin", slack=(f"{minutes}min", 0), late="port"
    )
    found: list[Any] = []
    late: list[Any] = []
    running = join.open()
    operator: Any = running.operator
    running.connect(0, found.append)
    running.connect("late_left", late.append)
    for flown, sky in zip(
        ways.uneven(landed, 9_000, 1), ways.uneven(weather(), 4_000, 2), strict=False
    ):
        running.insert_batch(sky, 1)
        running.insert_batch(flown, 0)
    running.finish()
    taken = operator.late_rows + len(found)
    assert len(late) == operator.late_rows
    wanted = {row["n"]: row for row in late}
    right = query(
        """
        SELECT n, hour FROM flown ASOF LEFT JOIN sky
        ON flown.origin = sky.origin AND dep >= hour
        """,
        flown=landed.slice(0, taken),
        sky=weather(),
    )
    ways.same([row for row in right if row["n"] not in wanted], found, "n")


# -- sessions of an aircraft: flights with no more than a day between them --

SESSIONS = Aggregate(
    Session(Event("dep"), gap="24h", by="tailnum"),
    begin=agg.window_start(),
    last=agg.max("dep"),
    flown=agg.count(),
)


def sessions(flown: pa.Table) -> Any:
    return query(
        """
        SELECT tailnum, min(dep) AS begin, max(dep) AS last, count(*) AS flown FROM (
            SELECT tailnum, dep, count(*) FILTER (before IS NULL OR dep - before > INTERVAL 24 HOUR)
                OVER (PARTITION BY tailnum ORDER BY dep, n) AS session
            FROM (
                SELECT tailnum, dep, n,
                    lag(dep) OVER (PARTITION BY tailnum ORDER BY dep, n) AS before FROM flown
            )
        ) GROUP BY tailnum, session
        """,
        flown=flown,
    )


def keyed(rows: Any, *names: str) -> list[Any]:
    """Rows with one column that tells them apart."""
    return [{**row, "id": tuple(str(row[name]) for name in names)} for row in rows]


def test_sessions_by_rows_and_in_batches():
    wanted = keyed(sessions(sample()), "tailnum", "begin")
    ways.same(wanted, keyed(ways.by_rows(SESSIONS, sample()), "tailnum", "begin"), "id")
    wanted = keyed(sessions(flights()), "tailnum", "begin")
    assert 172_773 == len(wanted)
    ways.same(wanted, keyed(ways.by_batches(SESSIONS, flights()), "tailnum", "begin"), "id")


# -- hours of departure at an airport, of flights that come in the order of landing --


def hours(late: str, slack: str) -> Aggregate:
    window = Tumbling(Event("dep", "1h"), by="origin", watermark=slack, late=late)  # type: ignore[arg-type]
    return Aggregate(
        window,
        begin=agg.window_start(),
        left=agg.count(),
        mean=agg.mean("delay"),
        worst=agg.max("delay"),
    )


def hourly(flown: pa.Table) -> Any:
    return query(
        """
        SELECT origin, time_bucket(INTERVAL 1 HOUR, dep) AS begin, count(*) AS left,
            avg(delay) AS mean, max(delay) AS worst
        FROM flown GROUP BY ALL
        """,
        flown=flown,
    )


def landed(flown: pa.Table) -> pa.Table:
    return flown.sort_by([("arr", "ascending"), ("n", "ascending")])


def test_hours_of_flights_in_the_order_of_landing():
    patient = hours("error", "24h")
    wanted = keyed(hourly(sample()), "origin", "begin")
    found = ways.by_rows(patient, landed(sample()))
    ways.same(wanted, keyed(found, "origin", "begin"), "id")
    found = ways.by_batches(patient, landed(flights()))
    ways.same(keyed(hourly(flights()), "origin", "begin"), keyed(found, "origin", "begin"), "id")


def test_every_flight_is_in_an_hour_or_late():
    running = hours("port", "30min").open()
    rows: list[Any] = []
    late: list[Any] = []
    running.connect(0, rows.append)
    running.connect("late", late.append)
    for piece in ways.uneven(landed(flights()), 30_000, 3):
        running.insert_batch(piece)
    running.finish()
    assert FLIGHTS == sum(row["left"] for row in rows) + len(late)
    gone = pa.table({"n": [row["n"] for row in late]})
    kept = query("SELECT * FROM flown ANTI JOIN gone USING (n)", flown=flights(), gone=gone)
    assert 0 < len(late) < FLIGHTS
    wanted = keyed(hourly(pa.Table.from_pylist(kept, flights().schema)), "origin", "begin")
    ways.same(wanted, keyed(rows, "origin", "begin"), "id")


# -- the three longest delays of an hour at an airport --

WORST = TopK(Tumbling(Event("dep", "1h"), by="origin"), by=desc("delay"), k=3)


def worst(flown: pa.Table) -> Any:
    return query(
        """
        SELECT origin, delay FROM flown WHERE delay IS NOT NULL
        QUALIFY row_number() OVER (
            PARTITION BY origin, time_bucket(INTERVAL 1 HOUR, dep) ORDER BY delay DESC, n
        ) <= 3
        """,
        flown=flown,
    )


def delays(rows: Any) -> list[Any]:
    return sorted((row["origin"], row["delay"]) for row in rows)


def test_the_longest_delays_by_rows_and_in_batches():
    some = sample().filter(pc.is_valid(sample()["delay"]))
    assert delays(worst(some)) == delays(ways.by_rows(WORST, some))
    every = flights().filter(pc.is_valid(flights()["delay"]))
    assert delays(worst(every)) == delays(ways.by_batches(WORST, every))
