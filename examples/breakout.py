"""A handler of your own: report trades that beat every price in their window.

Shows `before_insert`, which sees the window without the new tuple, `on_initial_full`, which says
when there is enough history, and `emit`.
"""

from collections.abc import Mapping
from typing import Any

from windowlib import Count, Sliding, SlidingWindow, Window, WindowEvents
from windowlib.samples import trades

Trade = Mapping[str, Any]


class Breakout(WindowEvents[Trade, str]):
    """Compares each trade with the 20 before it; silent until there are 20."""

    def __init__(self) -> None:
        self.ready: set[str] = set()

    def on_initial_full(self, window: Window[Trade, str], symbol: str) -> None:
        self.ready.add(symbol)

    def before_insert(self, window: Window[Trade, str], trade: Trade, symbol: str) -> None:
        if symbol not in self.ready:
            return
        high = max(t["price"] for t in window[symbol])
        if trade["price"] > high:
            self.emit(ts=trade["ts"], symbol=symbol, price=trade["price"], above=high)


def main() -> None:
    # The trigger is never used, so it never fires: Count(0).
    spec = Sliding(Count(20), every=Count(0), by="symbol")
    window: SlidingWindow[Trade, str] = SlidingWindow(spec, events=Breakout())
    window.insert_many(trades(500))

    found = window.events.emitted
    print(f"{len(found)} breakouts in {window.seen} trades; the last five:")
    for row in found[-5:]:
        line = f"{row['symbol']:5} {row['price']:8.2f}  above {row['above']:.2f}"
        print(f"{row['ts']:%H:%M:%S}  {line}")


if __name__ == "__main__":
    main()
