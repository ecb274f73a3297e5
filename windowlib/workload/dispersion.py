"""How bursty a stream is: the index of dispersion, from its arrivals."""

from __future__ import annotations

from typing import Any

import numpy as np

from windowlib.errors import WorkloadError
from windowlib.workload.checks import times

FEWEST = 100  # intervals: with fewer, the variance of their counts says little
SETTLED = 0.2  # a change this small, twice, is no change
BEGIN = 16  # arrivals an interval at first, so that a slow rise is not taken for none


def dispersion_of(arrivals: Any) -> float:
    """The index of dispersion of a stream: variance over mean of the arrivals in an interval.

    The interval is doubled until the ratio has settled, or there are fewer than 100 intervals. It
    is 1 for independent arrivals, 0 for a steady pace, and more for bursts. A rate that drifts
    counts as burstiness, too: use a shorter piece of such a stream.

    >>> from windowlib.workload import Poisson
    >>> round(dispersion_of(Poisson(rate=50).arrivals(100_000)), 1)
    1.0
    """
    found = times("dispersion_of(arrivals)", arrivals, ordered=True)
    if len(found) < 2 * FEWEST or found[-1] == found[0]:
        msg = (
            f"dispersion_of(arrivals): {len(found)} arrivals in {_span(found):g} seconds are too "
            f"few to count. Use {2 * FEWEST} or more, at different times."
        )
        raise WorkloadError(msg)
    intervals = len(found) // max(1, min(BEGIN, len(found) // (2 * FEWEST)))
    edges = np.linspace(found[0], found[-1], intervals + 1)
    counts = np.diff(np.searchsorted(found, edges, side="left"))
    ratio, settled = _ratio(counts), 0
    while settled < 2 and len(counts) >= 2 * FEWEST:
        counts = counts[: len(counts) // 2 * 2].reshape(-1, 2).sum(axis=1)
        before, ratio = ratio, _ratio(counts)
        settled = settled + 1 if abs(ratio - before) < SETTLED * before else 0
    return ratio


def _ratio(counts: Any) -> float:
    return float(counts.var() / counts.mean())


def _span(found: Any) -> float:
    return float(found[-1] - found[0]) if len(found) else 0.0
