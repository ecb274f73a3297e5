"""The best rows of windows over a DataFrame are those of a replay."""

import random

import pyarrow as pa

from tests.spark.stream_runs import by_key, write
from windowlib import Count, Sliding, Tumbling, replay
from windowlib.operators import Skyline, SkylineUpdates, TopDelta, TopK, desc

SCHEMA = pa.schema(
    {"city": pa.string(), "n": pa.int64(), "price": pa.float64(), "stars": pa.int64()}
)


def offers(size):
    draw = random.Random(5)
    return [
        {
            "city": draw.choice(["Pisa", "Rome", "Turin"]),
            "n": n,
            "price": round(draw.uniform(40, 200), 0),
            "stars": draw.randint(1, 5),
        }
        for n in range(size)
    ]


def test_a_static_dataframe_has_the_best_rows_of_every_window(spark, tmp_path):
    rows = offers(1500)
    write(tmp_path / "offers", 0, rows, SCHEMA)
    frame = spark.read.parquet(str(tmp_path / "offers"))
    tumbling = Tumbling(Count(100), by="city", order_by="n")
    sliding = Sliding(Count(50), by="city", order_by="n")
    queries = [
        Skyline(tumbling, "price", desc("stars")),
        TopDelta(tumbling, "price", desc("stars"), delta=2),
        TopK(Sliding(Count(50), every=Count(20), by="city", order_by="n"), by="price", k=3),
        SkylineUpdates(sliding, "price", desc("stars")),
    ]
    for query in queries:
        want = by_key(replay(query, rows), "city")
        got = by_key([row.asDict() for row in frame.transform(query).collect()], "city")
        assert want == got
        assert {"Pisa", "Rome", "Turin"} == {city for _, city in want}
