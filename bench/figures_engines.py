"""Figures 3 and 4 of the paper on windows: `Aggregate` against the same by hand, for each policy.

Figure 3 is the mean of tumbling windows, figure 4 a percentile of sliding ones. Rows come one a
second, so that count, delta and time make the same windows of n rows, whole or by key.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench import by_hand, charts
from bench.harness import Measure, Setup, alternate, at_most
from windowlib import Count, Delta, Operator, Sliding, Time, Tumbling
from windowlib.operators import Aggregate, agg

Row = tuple[int, int, float]
KEYS = 10
POLICIES: dict[str, Callable[[int], Count | Delta | Time]] = {
    "count": Count,
    "delta": lambda n: Delta(1, n),
    "time": lambda n: Time(f"{n}s"),
}


class Figure(NamedTuple):
    """What one figure measures, and how often."""

    file: str
    title: str
    operator: Callable[[Any, int | None], Operator]
    by_hand: Mapping[str, Callable[..., by_hand.Insert]]
    spare: int  # how much shorter than n rows a delta, or a time, of n rows is
    sizes: Sequence[int]
    rows: int
    rounds: int


def averages(policy: Any, by: int | None) -> Operator:
    return Aggregate(Tumbling(policy, by=by), value=agg.mean(2))


def percentiles(policy: Any, by: int | None) -> Operator:
    window = Sliding(policy, every=Count(1), by=by, partial="emit")
    return Aggregate(window, value=agg.quantile(2, 0.95, method="lower"))


FIGURES = (
    Figure(
        file="figure3",
        title="Mean of tumbling windows",
        operator=averages,
        by_hand=by_hand.MEANS,
        spare=0,
        sizes=(10, 32, 100, 316, 1_000),
        rows=60_000,
        rounds=3,
    ),
    Figure(
        file="figure4",
        title="95th percentile of sliding windows",
        operator=percentiles,
        by_hand=by_hand.PERCENTILES,
        spare=1,
        sizes=(10, 32, 100, 316, 1_000),
        rows=12_000,
        rounds=3,
    ),
)


def run() -> list[Measure]:
    return [measure for figure in FIGURES for measure in drawn(figure)]


def drawn(figure: Figure) -> list[Measure]:
    """Measure a figure; write the numbers and the picture."""
    measures: list[Measure] = []
    panels = {}
    for by, name in ((None, "one partition"), (0, f"{KEYS} partitions")):
        curves: dict[str, list[float]] = {}
        for policy in POLICIES:
            for n in figure.sizes:
                times = alternate(candidates(figure, policy, n, by), figure.rounds)
                for which, found in times.items():
                    nanos = statistics.median(found) / figure.rows * 1e9
                    curves.setdefault(f"{policy}{which}", []).append(round(nanos))
                line = f"{figure.title}, {policy}, {name}, {n:,} rows: Aggregate / by hand"
                measures.append(at_most(None, line, "", HAND, times))
        panels[f"{figure.title}, {name}"] = {"xs": list(figure.sizes), "found": curves}
    axes = {"x": "rows of a window", "y": "nanoseconds a row", "dashed": HAND}
    print(charts.written(figure.file, panels, axes))
    return measures


HAND = " by hand"


def stream(n: int) -> list[Row]:
    """A key, a time in seconds and a value."""
    rng = random.Random(7)
    return [(i % KEYS, i, rng.random()) for i in range(n)]


def candidates(figure: Figure, policy: str, n: int, by: int | None) -> dict[str, Setup]:
    """`Aggregate` and the same by hand, once both have given the same."""
    data = stream(figure.rows)
    span = n if policy == "count" or by is None else n * KEYS
    size = span if policy == "count" else span - (policy == "delta" or figure.spare)
    timed = policy == "time"
    op = figure.operator(POLICIES[policy](size), by)
    make = figure.by_hand[policy]

    def ours() -> Callable[[], list[Any]]:
        running, out = op.open(), list[Any]()
        running.connect(0, out.append)
        insert, advance = running.insert, running.advance

        def by_time() -> list[Any]:
            for row in data:
                advance(row[1])
                insert(row)
            return out

        def plain() -> list[Any]:
            for row in data:
                insert(row)
            return out

        return by_time if timed else plain

    def hand() -> Callable[[], list[Any]]:
        out: list[Any] = []
        insert = make(size, by, out.append)

        def plain() -> list[Any]:
            for row in data:
                insert(row)
            return out

        return plain

    check_same(ours()(), hand()())
    return {"": ours, HAND: hand}


def check_same(ours: list[Any], hand: list[Any]) -> None:
    """Refuse to time implementations that do not agree."""
    assert ours, "nothing came out"
    alike = map(math.isclose, (row["value"] for row in ours), hand)
    assert len(ours) == len(hand), "results are not as many as by hand"
    assert all(alike), "results differ from those by hand"
