"""VWAP per symbol over the last 100 trades, after every 10: a ready-made operator.

The operator is a value; `replay` runs rows through it. What it keeps are ten partial results per
symbol, not the trades, and `explain` says so.
"""

from windowlib import Count, PartitionAge, Sliding, replay
from windowlib.operators import Aggregate, agg
from windowlib.samples import trades

vwap = Aggregate(
    Sliding(Count(100), every=Count(10), by="symbol", order_by="ts", forget=PartitionAge("1h")),
    vwap=agg.sum("notional") / agg.sum("qty"),
    high=agg.max("price"),
    largest=agg.top(1, "qty", by="qty"),
    n=agg.count(),
)


def main() -> None:
    rows = list(replay(vwap, trades(1000)))
    print(vwap.explain())
    print()
    print(f"{len(rows)} results; the last of each symbol:")
    for symbol, row in sorted({row["symbol"]: row for row in rows}.items()):
        print(f"{symbol:5} {row['n']} trades  VWAP {row['vwap']:.3f}  high {row['high']:.2f}")


if __name__ == "__main__":
    main()
