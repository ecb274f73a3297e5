"""An operator with two inputs and state of each key: how two streams move together."""

import statistics
from typing import Any

from windowlib import Keyed, Operator, OperatorModel, replay, to
from windowlib.samples import trades


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


def main() -> None:
    sides = [to(("left", "right")[i % 2], trade) for i, trade in enumerate(trades(500))]
    rows = list(replay(Correlation(100), sides))
    print(f"{rows[-1]['symbol']}: {rows[-1]['pairs']} pairs, correlation {rows[-1]['corr']:.3f}")


if __name__ == "__main__":
    main()
