"""Aggregate functions over extents of columns, one class for each kind of state.

`kernel(fold, types)` finds the one that computes what a fold of the event engine computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import Kernel
from windowlib.columnar.kernels.extremes import Largest, Smallest
from windowlib.columnar.kernels.moments import CovarianceKernel, Spread, VarianceKernel
from windowlib.columnar.kernels.picks import ArgPick, ExtremeCountKernel, FirstValue, LastValue
from windowlib.columnar.kernels.sums import Counting, CountingValues, Mean, Sum
from windowlib.columnar.kernels.weighted import WeightedMeanKernel
from windowlib.folds import Fold

KERNELS: dict[str, Callable[[Any, Sequence[Any]], Kernel]] = {
    "count": Counting,
    "count_values": CountingValues,
    "sum": Sum,
    "mean": Mean,
    "weighted_mean": WeightedMeanKernel,
    "variance": VarianceKernel,
    "std": Spread,
    "cov": CovarianceKernel,
    "corr": CovarianceKernel,
    "min": Smallest,
    "max": Largest,
    "first": FirstValue,
    "last": LastValue,
    "arg": ArgPick,
    "extreme_count": ExtremeCountKernel,
}
"""What `Fold.kernel` may name."""


def kernel(fold: Fold, types: Sequence[Any]) -> Kernel:
    """The kernel for a fold over columns of these Arrow types; `Decline` if there is none."""
    made = KERNELS.get(fold.kernel)
    if made is None:
        raise Decline(f"{fold.name} has no columnar form")
    return made(fold, types)
