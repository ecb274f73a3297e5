"""A graph on Spark: three operators that feed each other, fused into one stage with one state.

Quotes are put in order, cleaned of repetitions and averaged over the last 20 of each symbol. Inside
the graph punctuations travel, which no DataFrame could carry; outside it is one `transform`. The
rows are those of plain Python.
"""

from windowlib import Count, Graph, Sliding, replay
from windowlib.operators import Aggregate, Dedup, Reorder, agg
from windowlib.samples import trades
from windowlib.spark import session

graph = Graph(
    inputs=["trades"],
    ordered=(Reorder("ts", slack="2s", by="symbol"), "trades"),
    changes=(Dedup("price", within=Count(1), by="symbol"), "ordered"),
    means=(
        Aggregate(
            Sliding(Count(20), every=Count(5), by="symbol", order_by=None),
            mean=agg.mean("price"),
            spread=agg.max("price") - agg.min("price"),
        ),
        "changes",
    ),
)


def main() -> None:
    rows = trades(600)
    expected = list(replay(graph, rows))
    spark = session("local[2]")
    frame = spark.createDataFrame(rows).coalesce(1).transform(graph)
    found = [row.asDict() for row in frame.collect()]
    agree = sorted(map(str, expected)) == sorted(map(str, found))
    print(f"{len(found)} rows from Spark, {'the same' if agree else 'others'} in plain Python")
    for symbol, row in sorted({row["symbol"]: row for row in found}.items()):
        print(f"{symbol:5} mean {row['mean']:.2f}, spread {row['spread']:.2f}")
    spark.stop()


if __name__ == "__main__":
    main()
