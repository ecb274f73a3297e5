"""Functions that need all values of a window: lists, distinct values, quantiles, the best few."""

from __future__ import annotations

from collections.abc import Callable

from windowlib.columnar.holistic.base import Holistic
from windowlib.columnar.holistic.distinct import (
    CollectedDistinct,
    CountedByDistinct,
    CountedDistinct,
    MostFrequent,
)
from windowlib.columnar.holistic.listed import Collected, NthValue
from windowlib.columnar.holistic.quantiles import Quantiles
from windowlib.columnar.holistic.ranked import AllBest, Best

HOLISTIC: dict[str, Callable[..., Holistic]] = {
    "collect": Collected,
    "nth": NthValue,
    "count_distinct": CountedDistinct,
    "collect_distinct": CollectedDistinct,
    "count_by_distinct": CountedByDistinct,
    "mode": MostFrequent,
    "quantile": Quantiles,
    "top": Best,
    "collect_arg": AllBest,
}
"""What `Fold.kernel` may name besides the kernels (`windowlib.columnar.kernels`)."""
