"""The table of farms and windows: what is taken, what is refused, and why.

`python -m docs.refusals` writes it into `docs/farms.md`; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from windowlib import (
    Count,
    Delta,
    Either,
    Event,
    FarmError,
    Landmark,
    Operator,
    Punct,
    Session,
    Sliding,
    Time,
    Tumbling,
    Watermark,
)
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition
from windowlib.operators import Aggregate, agg

PAGE = Path(__file__).parent / "farms.md"
BEGIN, END = "<!-- refusals -->", "<!-- end of refusals -->"


def step(state: int, x: int) -> int:
    """A function that is computed tuple by tuple."""
    return (state * 31 + x) % 1009


FUNCTIONS: dict[str, Any] = {
    "a": agg.max("x"),
    "i": agg.custom(int, step, column="x"),
    "n": agg.median("x"),
}
"""An associative function, one that is incremental, and one that is neither."""

WINDOWS: dict[str, Any] = {
    "tumbling, count": Tumbling(Count(4), by="k"),
    "tumbling, time": Tumbling(Time("3s"), by="k"),
    "tumbling, delta": Tumbling(Delta("ts", 4), by="k"),
    "tumbling, punctuation": Tumbling(Punct(), by="k"),
    "tumbling, count or time": Tumbling(Either(Count(4), Time("3s")), by="k"),
    "sliding, count by count": Sliding(Count(5), every=Count(2), by="k"),
    "sliding, time by time": Sliding(Time("5s"), every=Time("2s"), by="k"),
    "sliding, time by count": Sliding(Time("4s"), every=Count(3), by="k"),
    "sliding, count by time": Sliding(Count(4), every=Time("3s"), by="k"),
    "sliding, delta by delta": Sliding(Delta("ts", 6), every=Delta("ts", 2), by="k"),
    "tumbling, event": Tumbling(Event("ts", 5), by="k", watermark=2, late="drop"),
    "the same, a watermark for each key": Tumbling(
        Event("ts", 5), by="k", watermark=Watermark(2, scope="key"), late="drop"
    ),
    "sliding, event by event": Sliding(
        Event("ts", 6), every=Event("ts", 4), by="k", watermark=2, late="drop"
    ),
    "session, event": Session(Event("ts"), gap=2, by="k", watermark=2, late="drop"),
    "landmark, event": Landmark(Event("ts", 4), since=0, by="k", watermark=2, late="drop"),
}

FARMS: dict[str, Callable[[Operator], Any]] = {
    "`KeyFarm`": lambda op: KeyFarm(op, workers=2),
    "`WindowFarm`": lambda op: WindowFarm(op, workers=2),
    "active": lambda op: WindowFarm(op, workers=2, active=True),
    "`PaneFarm`": lambda op: PaneFarm(op, workers=2),
    "`WindowPartition`": lambda op: WindowPartition(op, workers=2),
}


def in_process(farm: Any) -> None:
    """What a farm in one process takes is decided when it is made."""


def on_stream(farm: Any) -> None:
    """What a farm on a stream of Spark's takes is decided when it is planned."""
    from pyspark.sql.types import LongType, StringType, StructType

    from windowlib.spark import attach
    from windowlib.spark.plan.attach import PlannedStream

    columns = StructType().add("k", StringType()).add("ts", LongType()).add("x", LongType())
    attach(farm, schema="k string, out double").explain(PlannedStream(columns))  # type: ignore[arg-type]


HOSTS: dict[str, Callable[[Any], None]] = {
    "in process": in_process,
    "on a stream of Spark's": on_stream,
}


def cell(window: Any, make: Any, host: Callable[[Any], None], refused: list[str]) -> str:
    """Which kinds of functions a farm takes of a window; the reasons for the others are added."""
    taken = ""
    for kind, function in FUNCTIONS.items():
        try:
            host(make(Aggregate(window, name="op", out=function)))
            taken += kind
        except FarmError as error:
            refused.append(_reason(str(error)))
    return taken or "-"


def _reason(message: str) -> str:
    """A message without the names of the example."""
    text = re.sub(r"^(\w+)\(op\)", r"\1", message)
    return re.sub(r"agg\.\w+\([^,]*?\)(?=( |\.))|agg\.custom\(.*?\)(?= is)", "the function", text)


def lines() -> Iterator[str]:
    """A table for each host, and below them the reasons."""
    reasons: list[str] = []
    for where, host in HOSTS.items():
        yield f"| {where} | " + " | ".join(FARMS) + " |"
        yield "| --- |" + " --- |" * len(FARMS)
        for name, window in WINDOWS.items():
            cells = [cell(window, make, host, reasons) for make in FARMS.values()]
            yield f"| {name} | " + " | ".join(cells) + " |"
        yield ""
    yield "What is refused, and why:"
    yield ""
    for reason in sorted(set(reasons)):
        yield f"- {reason}"


def table() -> str:
    """The block of the page."""
    return "\n".join([BEGIN, "", *lines(), "", END])


def on_page() -> str:
    """The block as it is on the page."""
    text = PAGE.read_text()
    return text[text.index(BEGIN) : text.index(END) + len(END)]


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().replace(on_page(), table()))
