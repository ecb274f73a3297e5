"""Three operators of one's own with declared state: a filter, two inputs, and a timer.

`Keyed` state is saved, restored, split over workers and forgotten by the library, so each of them
runs in `replay`, in Arrow batches, in a farm and on Spark as it is.
"""

import statistics
from collections.abc import Iterator
from typing import Any

from windowlib import Count, Keyed, Operator, OperatorModel, Sliding, replay, to
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


class Correlation(Operator):
    """The correlation of the latest values of two inputs, whenever one of them moves."""

    model = OperatorModel(ports_in=["left", "right"])
    output = "symbol string, pairs long, corr double"
    state = Keyed(by="symbol", latest=[None, None], pairs=list)

    def __init__(self, size: int, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.size = size

    def on_tuple(self, row: Any, port: int) -> None:
        mine = self.state[row["symbol"]]
        mine.latest[port] = row["price"]
        if None not in mine.latest:
            mine.pairs = [*mine.pairs, tuple(mine.latest)][-self.size :]
            if all(len(set(side)) > 1 for side in zip(*mine.pairs, strict=True)):
                corr = statistics.correlation(*zip(*mine.pairs, strict=True))
                self.emit(symbol=row["symbol"], pairs=len(mine.pairs), corr=corr)


class Visits(Operator):
    """One row for each visit of a user: it ends when nothing has come for a while."""

    output = "user string, rows long, amount double, ended double"
    state = Keyed(by="user", rows=0, amount=0.0)

    def __init__(self, age: str, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.age = age

    def on_tuple(self, row: Any, port: int) -> None:
        mine = self.state[row["user"]]
        mine.rows, mine.amount = mine.rows + 1, mine.amount + row["amount"]
        self.set_timer(row["user"], after=self.age)

    def on_timer(self, user: str, now: float) -> None:
        mine = self.state.pop(user)
        self.emit(user=user, rows=mine.rows, amount=mine.amount, ended=now)


def clicks(number: int) -> Iterator[dict[str, Any]]:
    """Users who come back now and then; `ts` in seconds."""
    for i in range(number):
        user = ("ann", "bob", "eve")[i * i * i // 7 % 3]
        yield {"user": user, "amount": i % 7 / 2, "ts": float(7 * i + i % 5)}


def main() -> None:
    vwap = CleanVwap(Sliding(Count(50), every=Count(25), by="symbol"), width=0.005)
    rows = list(replay(vwap, trades(500)))
    print(f"{len(rows)} prices, {sum(row['rejected'] for row in rows)} trades rejected")

    sides = [to(("left", "right")[i % 2], trade) for i, trade in enumerate(trades(500))]
    rows = list(replay(Correlation(100), sides))
    print(f"{rows[-1]['symbol']}: {rows[-1]['pairs']} pairs, correlation {rows[-1]['corr']:.3f}")

    visits = list(replay(Visits("30s"), clicks(200), times="ts"))
    print(f"{len(visits)} visits; the longest had {max(row['rows'] for row in visits)} clicks")


if __name__ == "__main__":
    main()
