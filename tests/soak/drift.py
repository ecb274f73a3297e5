"""Sums that slide over adversarial floats for very long, against math.fsum of the window.

`python -m tests.soak.drift` does ten million slides; `tests/summaries/test_drift.py` does fewer.

A compensated sum of n values is off by no more than a rounding of the result, plus n² ε² of the sum
of magnitudes: for 1e16, 1, −1e16 that second part is nothing, while 1e300 is in the window it is
much, and after 1e300 has left it must be nothing again. That is what never drifting means.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from windowlib import Count, Delta, Sliding, Time
from windowlib.operators import Aggregate, agg
from windowlib.operators.expressions import Expr

NAN, INF, EPSILON = float("nan"), float("inf"), sys.float_info.epsilon
TOLERANCE = 1e-9
CHUNK = 1000


# -- what slides --------------------------------------------------------------------------------


def cancelling(rng: random.Random) -> Iterator[float]:
    """Large values that cancel, with small ones between them that must survive."""
    while True:
        yield from (1e16, 1.0, -1e16, rng.random(), 0.1, -0.1)


def wide(rng: random.Random) -> Iterator[float]:
    """Every magnitude from 1e-20 to 1e20, and pairs of 1e300 now and then."""
    while True:
        yield rng.choice((-1, 1)) * 10.0 ** rng.uniform(-20, 20)
        if rng.random() < 0.002:
            yield from (1e300, 1e-300, rng.random(), -1e300)


def odd(rng: random.Random) -> Iterator[float]:
    """Ordinary values, and rarely an infinity or a NaN."""
    while True:
        yield rng.gauss(1e6, 1)
        if rng.random() < 0.002:
            yield rng.choice((INF, -INF, NAN))


STREAMS: dict[str, Callable[[random.Random], Iterator[float]]] = {
    "cancelling": cancelling,
    "wide": wide,
    "odd": odd,
}
WINDOWS: dict[str, Callable[[int], Sliding]] = {
    "slices": lambda n: Sliding(Count(n)),
    "two stacks, count": lambda n: Sliding(Count(n), every=Delta(1, 0)),
    "two stacks, delta": lambda n: Sliding(Delta(1, n - 1), partial="emit"),
    "two stacks, time": lambda n: Sliding(Time(f"{n - 0.5}s"), every=Count(1)),
}


# -- what it must be ----------------------------------------------------------------------------


@dataclass
class Found:
    """How far the results were from the truth."""

    slides: int = 0
    strict: int = 0
    worst: float = 0.0

    def check(self, window: deque[float], got: float, part: int = 1) -> None:
        """Compare one result with the sum of a window, or its `part`-th part."""
        self.slides += 1
        strange = [x for x in window if x - x != 0]
        if strange:
            wanted = sum(strange)
            assert wanted == got or (wanted != wanted and got != got), (wanted, got)
            return
        exact = math.fsum(window) / part
        slack = 4 * (len(window) * EPSILON) ** 2 * math.fsum(map(abs, window)) / part
        assert abs(got - exact) <= TOLERANCE * abs(exact) + slack, (exact, got, list(window))
        if slack <= TOLERANCE * abs(exact):
            self.strict += 1
            self.worst = max(self.worst, abs(got - exact) / abs(exact))


def spread(window: deque[float]) -> float:
    """The variance, by two passes."""
    mean = math.fsum(window) / len(window)
    return math.fsum((x - mean) ** 2 for x in window) / (len(window) - 1)


# -- sliding ------------------------------------------------------------------------------------


def slide(
    stream: str, kind: str, size: int, slides: int, seed: int = 0, total: Expr | None = None
) -> Found:
    """Slide a window over a stream, and check sum and mean at every trigger, variances often.

    `total` is what computes the sum, `agg.sum` unless given.
    """
    spec = WINDOWS[kind](size)
    outputs = {
        "sum": agg.sum(0) if total is None else total,
        "mean": agg.mean(0),
        "var": agg.var(0),
    }
    running = Aggregate(spec, outputs).open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    values = STREAMS[stream](random.Random(seed))
    window: deque[float] = deque(maxlen=size)
    found, number = Found(), 0
    while found.slides < 2 * slides:
        chunk = list(islice(values, CHUNK))
        _feed(running, spec, chunk, number)
        number += len(chunk)
        _compare(found, window, chunk, rows, late=isinstance(spec.every, Delta))
        rows.clear()
    return found


def _feed(running: Any, spec: Sliding, chunk: list[float], number: int) -> None:
    numbered = [(x, number + i) for i, x in enumerate(chunk)]
    if not spec.timed:
        running.insert_many(numbered)
        return
    for row in numbered:  # one a second
        running.advance(row[1])
        running.insert(row)


def _compare(
    found: Found, window: deque[float], chunk: list[float], rows: list[Any], late: bool
) -> None:
    """Match results with windows, from the newest back: the first windows were not full."""
    results = iter(rows)
    missing = len(chunk) - len(rows)
    for i, x in enumerate(chunk):
        if not late:
            window.append(x)
        if i >= missing:
            row = next(results)
            found.check(window, row["sum"])
            found.check(window, row["mean"], len(window))
            if not i % 97 and len(window) > 1:
                _check_variance(window, row["var"])
        if late:
            window.append(x)


def _check_variance(window: deque[float], got: float) -> None:
    if any(x - x != 0 for x in window):
        assert got != got, got
        return
    largest = max(map(abs, window))
    if largest < 1e150:  # else its square is infinite
        allowed = TOLERANCE * spread(window) + 1e-13 * largest**2
        assert abs(got - spread(window)) <= allowed, (spread(window), got)


def main(slides: int = 10_000_000) -> None:
    """Ten million slides, spread over streams, windows and sizes."""
    cases = [(s, k, n) for s in STREAMS for k in WINDOWS for n in (3, 50, 200)]
    total = 0
    for stream, kind, size in cases:
        start = time.perf_counter()
        found = slide(stream, kind, size, slides // len(cases), seed=size)
        total += found.slides // 2
        seconds = time.perf_counter() - start
        print(
            f"{stream:<11} {kind:<18} size {size:<4} {found.slides // 2:>8,} slides, "
            f"worst {found.worst:.1e}, {found.strict / found.slides:6.1%} well-conditioned, "
            f"{seconds:5.1f} s",
            flush=True,
        )
    print(f"{total:,} slides; no well-conditioned sum off by more than {TOLERANCE:g},")
    print("no other by more than n² ε² of its magnitudes, and infinities and NaN as they should be")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
