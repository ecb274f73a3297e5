"""Operators built on windowlib's containers."""

from operators.batch import Batch
from operators.flow import Delay, Filter, Functor, Split, Union
from operators.pair import Barrier, Pair
from operators.punctor import Punctor

__all__ = ["Barrier", "Batch", "Delay", "Filter", "Functor", "Pair", "Punctor", "Split", "Union"]
