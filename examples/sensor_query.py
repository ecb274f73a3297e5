"""SensorQuery: for each query, the nearest of the sensor readings that match it.

A join finds the matches. How many there are is not known beforehand, so the join puts a window
punctuation after each set of them, and the aggregate has a punctuation window: one set, one window.
"""

import random

from windowlib import Count, Graph, Punct, Sliding, Tumbling, replay, to
from windowlib.operators import Aggregate, Join, agg

AREAS = ("north", "south", "east", "west")


def stream(n: int = 400, seed: int = 7) -> list[object]:
    """Readings of twenty sensors, and now and then a query."""
    draw = random.Random(seed)
    rows: list[object] = []
    for number in range(n):
        area = draw.choice(AREAS)
        if number % 40 == 39:
            wanted = round(draw.uniform(18, 26), 1)
            rows.append(to("queries", {"query": number // 40, "area": area, "wanted": wanted}))
        else:
            value = round(draw.gauss(22, 3), 1)
            sensor = f"s{draw.randrange(20):02}"
            rows.append(to("readings", {"sensor": sensor, "area": area, "value": value}))
    return rows


query = Graph(
    inputs=["queries", "readings"],
    matches=(
        Join(
            left=Sliding(Count(0)),  # a query is looked up and not kept
            right=Sliding(Count(10), by="area"),  # the last ten readings of each area
            on="area",
        ),
        "queries",
        "readings",
    ),
    nearest=(
        Aggregate(
            Tumbling(Punct()),
            query=agg.first("query"),
            area=agg.first("area"),
            wanted=agg.first("wanted"),
            sensor=agg.arg_min("sensor", by=lambda match: abs(match["value"] - match["wanted"])),
            value=agg.arg_min("value", by=lambda match: abs(match["value"] - match["wanted"])),
            of=agg.count(),
        ),
        "matches",
    ),
)


def main() -> None:
    for row in replay(query, stream()):
        found = f"{row['sensor']} reads {row['value']}, the nearest of {row['of']}"
        print(f"query {row['query']}: {row['area']:5} wanted {row['wanted']}: {found}")


if __name__ == "__main__":
    main()
