"""G13: how far sliding sums are off, on data that ruins running sums.

The error is that of the worst window, by the sum of the absolute values in the window, against
`math.fsum`, which is exact but for the last rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.columnar_data import LONG, batches
from windowlib import Count, Sliding
from windowlib.operators import Aggregate, agg

BATCH = 4 * LONG
SLIDES = (1, 10)  # a window at every row, and windows made of slices

Floats = npt.NDArray[np.float64]


def data_sets(rows: int) -> dict[str, Floats]:
    rng = np.random.default_rng(7)

    def uniform(*, spikes: slice | None = None, height: float = 1e16) -> Floats:
        found = rng.random(rows)
        if spikes is not None:
            found[spikes] = height
        return found

    tiny = np.full(rows, 1e-3)
    tiny[0] = 1e300
    return {
        "uniform": uniform(),
        "one 1e16, which has left": uniform(spikes=slice(10, 11)),
        "1e16 every 5 windows": uniform(spikes=slice(10, None, 5 * LONG)),
        "lognormal, sigma 8": rng.lognormal(sigma=8, size=rows),
        "1e300, then 1e-3": tiny,
    }


class Exact(NamedTuple):
    """What the windows add up to, one window for every row from the first full one on."""

    sums: Floats
    sizes: Floats
    """The sums of the absolute values, by which errors are judged."""


def exact(data: Floats) -> Exact:
    values = data.tolist()
    contents = [values[end - LONG : end] for end in range(LONG, len(values) + 1)]
    sums = [math.fsum(content) for content in contents]
    sizes = [math.fsum(map(abs, content)) for content in contents]
    return Exact(np.array(sums), np.array(sizes))


def worst(data: Floats, expected: Exact, sums: Callable[[Floats, int], Floats]) -> float:
    """The largest error of any window, for each way to slide."""
    return max(
        float(np.max(np.abs(sums(data, slide) - expected.sums[::slide]) / expected.sizes[::slide]))
        for slide in SLIDES
    )


def aggregated(data: Floats, slide: int) -> Floats:
    window = Sliding(Count(LONG), every=Count(slide))
    running = Aggregate(window, sum=agg.sum("value")).open()
    rows = pa.table({"value": data})
    out = [running.process_batch(batch) for batch in batches(rows, BATCH)]
    found: Floats = pa.Table.from_batches(out).column("sum").to_numpy()
    return found
