"""How every benchmark here measures: alternately, in CPU time, as ratios.

Candidates run in turn, A B C … C B A …, so that a slow moment of the machine hits all of them. A
ratio is the median of the per-round ratios to the first candidate (the floor). Absolute times on
a shared machine mean little, same-run ratios do.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

OUT = Path(__file__).parent / "out"

Setup = Callable[[], Callable[[], Any]]
"""Builds fresh state and returns the function to time."""


class Measure(NamedTuple):
    name: str
    ratio: float
    target: float | None
    """What it has to reach; None: it is only reported."""
    higher_is_better: bool
    note: str = ""

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.ratio >= self.target if self.higher_is_better else self.ratio <= self.target


def alternate(candidates: Mapping[str, Setup], rounds: int = 15) -> dict[str, list[float]]:
    """CPU seconds of each candidate, round by round, in alternating order."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates)
    for _ in range(rounds):
        for name in order:
            timed = candidates[name]()
            gc.collect()
            gc.disable()
            start = time.process_time()
            timed()
            times[name].append(time.process_time() - start)
            gc.enable()
        order.reverse()
    return times


def ratio(times: Mapping[str, list[float]], name: str, to: str) -> float:
    """Median over the rounds of one candidate's time by another's."""
    pairs = zip(times[name], times[to], strict=True)
    return statistics.median(a / b for a, b in pairs)


def at_least(
    target: float | None, name: str, candidate: str, to: str, times: Mapping[str, list[float]]
) -> Measure:
    return Measure(name, ratio(times, candidate, to), target, higher_is_better=True)


def at_most(
    target: float | None, name: str, candidate: str, to: str, times: Mapping[str, list[float]]
) -> Measure:
    return Measure(name, ratio(times, candidate, to), target, higher_is_better=False)


def report(name: str, measures: list[Measure]) -> None:
    """Print a table and write bench/out/NAME.json."""
    width = max(len(m.name) for m in measures)
    print(f"{'measure':{width}}   ratio  target")
    for m in measures:
        sign = "≥" if m.higher_is_better else "≤"
        verdict = "met" if m.met else "MISSED"
        wanted = "" if m.target is None else f"{sign} {m.target:<5g} {verdict:6}"
        shown = f"{m.ratio:.2f}" if m.ratio >= 0.005 or not m.ratio else f"{m.ratio:.0e}"
        print(f"{m.name:{width}}  {shown:>6}  {wanted:14}  {m.note}".rstrip())
    OUT.mkdir(exist_ok=True)
    rows = [
        {
            "name": m.name,
            "ratio": float(f"{m.ratio:.5g}"),
            "target": m.target,
            "higher_is_better": m.higher_is_better,
        }
        for m in measures
    ]
    (OUT / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")
