"""Joining two streams: each trade with the quote that was valid when it happened.

Trades keep nothing (`Count(0)`), one quote is kept per symbol, and a trade without a quote goes to
an output of its own. Both streams come in order of time, so `merge="ts"` interleaves them.
"""

from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, Join, agg
from windowlib.samples import trades
from windowlib.workload import quotes

priced = Join(
    left=Sliding(Count(0)),
    right=Sliding(Count(1), by="symbol"),
    on="symbol",
    how="left",
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
    joined = replay(priced, deals, stream.to_pylist(), merge="ts")
    rows = list(joined)
    print(f"{len(rows)} trades have a quote, {len(joined.port('unmatched_left'))} came before any")
    for row in list(replay(per_symbol, rows))[-3:]:
        print(f"{row['symbol']:5} mean spread {row['spread']:.3f} of {row['shares']} shares")


if __name__ == "__main__":
    main()
