"""Ready-made operators on windows: Aggregate, Join, Sort and their kin."""

from operators import agg
from operators.aggregate import Aggregate
from operators.batch import Batch
from operators.expressions import col
from operators.flow import Delay, Filter, Functor, Split, Union
from operators.join import Join
from operators.lookup import Lookup
from operators.pair import Barrier, Pair
from operators.punctor import Punctor

__all__ = [
    "Aggregate",
    "Barrier",
    "Batch",
    "Delay",
    "Filter",
    "Functor",
    "Join",
    "Lookup",
    "Pair",
    "Punctor",
    "Split",
    "Union",
    "agg",
    "col",
]
