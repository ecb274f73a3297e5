"""Online regression over quotes: every window is fitted anew, on several workers.

For each symbol, and after every 500 quotes of it, a damped trend `a + b * exp(-c * t)` is fitted to
the last 2,000 by Levenberg–Marquardt. The fit needs the whole window, so windows are given away as
they are: any free worker takes the next one, and the fits come out in the order of the stream.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windowlib import Count, Operator, OperatorModel, Sliding, replay
from windowlib.farms import WindowFarm
from windowlib.workload import quotes

Floats = NDArray[np.float64]
STEPS = 30


def fitted(t: Floats, y: Floats) -> tuple[Floats, float]:
    """The parameters a, b, c that fit best, and the error that is left."""
    at, damping = np.array([y.mean(), y[0] - y[-1], 1.0]), 1e-3
    error, slopes = _at(at, t, y)
    for _ in range(STEPS):
        normal = slopes.T @ slopes
        step = np.linalg.solve(
            normal + damping * np.diag(normal.diagonal() + 1e-9), slopes.T @ error
        )
        trial, new_slopes = _at(at + step, t, y)
        if trial @ trial < error @ error:  # better: go there, and trust the slopes more
            at, error, slopes, damping = at + step, trial, new_slopes, damping / 3
        else:
            damping *= 5
    return at, float(np.sqrt(error @ error / len(t)))


def _at(at: Floats, t: Floats, y: Floats) -> tuple[Floats, Floats]:
    """What is left of y, and how the curve changes with each parameter."""
    a, b, c = at
    decay = np.exp(-np.clip(c * t, -30, 30))
    return y - (a + b * decay), np.stack([np.ones_like(t), decay, -b * t * decay], axis=1)


class Trend(Operator):
    """The fit of a window, and what it says the price tends to."""

    model = OperatorModel(windows=[Sliding])
    content = "arrow"
    output = "symbol string, level double, rate double, error double"

    def on_trigger(self, window: Any, key: Any) -> None:
        middle = (window.column("bid", key) + window.column("ask", key)) / 2
        (level, _, rate), error = fitted(np.linspace(0.0, 1.0, len(middle)), middle)
        self.emit(symbol=key, level=level, rate=rate, error=error)


trend = Trend(Sliding(Count(2000), every=Count(500), by="symbol"))


def main() -> None:
    stream = quotes(20_000, symbols=["IBM", "MSFT", "ORCL"], seed=4)
    rows = list(replay(WindowFarm(trend, workers=2), stream))
    same = "the same as" if rows == list(replay(trend, stream)) else "other than"
    print(f"{len(rows)} fits on 2 workers, {same} on one; the last:")
    for symbol, row in sorted({row["symbol"]: row for row in rows}.items()):
        print(f"{symbol:5} tends to {row['level']:.2f}, off by {row['error']:.2f}")


if __name__ == "__main__":
    main()
