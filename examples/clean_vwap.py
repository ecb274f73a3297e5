"""An operator with state of each key: a volume-weighted price that leaves out far-off trades.

`Keyed` state is saved, restored, split over workers and forgotten by the library, so the operator
runs in `replay`, in Arrow batches, in a farm and on Spark as it is.
"""

from typing import Any

from windowlib import Count, Keyed, Operator, OperatorModel, Sliding, replay
from windowlib.samples import trades


class CleanVwap(Operator):
    """The volume-weighted price of each window, without trades far from the one before."""

    model = OperatorModel(windows=[Sliding])
    output = "symbol string, vwap double, rejected long"
    state = Keyed(vwap=None)

    def __init__(self, window: Sliding, *, width: float = 0.01, name: str | None = None) -> None:
        super().__init__(window, name=name)
        self.width = width

    def on_trigger(self, window: Any, symbol: str) -> None:
        mine = self.state[symbol]
        known = mine.vwap
        near = [t for t in window[symbol] if not known or abs(t["price"] / known - 1) <= self.width]
        if near:
            mine.vwap = sum(t["notional"] for t in near) / sum(t["qty"] for t in near)
        self.emit(symbol=symbol, vwap=mine.vwap, rejected=window.size(symbol) - len(near))


def main() -> None:
    vwap = CleanVwap(Sliding(Count(50), every=Count(25), by="symbol"), width=0.005)
    rows = list(replay(vwap, trades(500)))
    print(f"{len(rows)} prices, {sum(row['rejected'] for row in rows)} trades rejected")


if __name__ == "__main__":
    main()
