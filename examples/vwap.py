"""VWAP per symbol over the last 100 trades, after every 10, without keeping a trade.

Shows ready-made summarizers on a sliding window. Both policies count, so the container keeps a
partial sum per 10 trades instead of the trades themselves; `explain` says so.
"""

from collections.abc import Mapping
from typing import Any

from windowlib import Count, Sliding, SlidingWindow, Window, WindowEvents, summarizers
from windowlib.samples import trades

Trade = Mapping[str, Any]


class Vwap(WindowEvents[Trade, str]):
    """Divides one sum by the other."""

    def on_trigger(self, window: Window[Trade, str], symbol: str) -> None:
        total = window.summary(symbol).value()
        vwap = total["notional"] / total["qty"]
        self.emit(symbol=symbol, trades=total["n"], vwap=vwap)


def main() -> None:
    window: SlidingWindow[Trade, str] = SlidingWindow(
        Sliding(Count(100), every=Count(10), by="symbol"),
        events=Vwap(),
        summarizer={
            "n": summarizers.count(),
            "qty": summarizers.sum("qty"),
            "notional": summarizers.sum("notional"),
        },
    )
    window.insert_many(trades(1000))

    print(window.explain())
    print()
    print(f"{len(window.events.emitted)} results; the last of each symbol:")
    last = {row["symbol"]: row for row in window.events.emitted}
    for symbol, row in sorted(last.items()):
        print(f"{symbol:5} {row['trades']:4} trades  VWAP {row['vwap']:.3f}")


if __name__ == "__main__":
    main()
