"""Joining two streams: each trade with the quote that was valid when it happened.

A trade waits until the quotes are complete up to its time, so it is irrelevant which stream is
ahead. A trade without a quote goes to an output of its own.
"""

from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, AsOf, agg
from windowlib.samples import trades
from windowlib.workload import quotes

priced = AsOf(
    "ts",
    on="symbol",
    unmatched="port",
    select=lambda trade, quote: {
        "symbol": trade["symbol"],
        "qty": trade["qty"],
        "spread": round(quote["ask"] - quote["bid"], 2),
    },
)
per_symbol = Aggregate(
    Sliding(Count(50), every=Count(25), by="symbol"),
    spread=agg.mean("spread"),
    shares=agg.sum("qty"),
)


def main() -> None:
    deals = trades(400)
    stream = quotes(20_000, symbols=["AAPL", "MSFT", "IBM"], seed=2, start=deals[20]["ts"])
    joined = replay(priced, deals, stream.to_pylist())
    rows = list(joined)
    print(f"{len(rows)} trades have a quote, {len(joined.port('unmatched_left'))} came before any")
    for row in list(replay(per_symbol, rows))[-3:]:
        print(f"{row['symbol']:5} mean spread {row['spread']:.3f} of {row['shares']} shares")


if __name__ == "__main__":
    main()
