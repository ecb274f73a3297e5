"""Ready-made operators on windows: Aggregate, Join, Sort and their kin."""

from operators import agg
from operators.aggregate import Aggregate
from operators.batch import Batch
from operators.dedup import Dedup
from operators.expressions import col
from operators.flow import Delay, Filter, Functor, Split, Union
from operators.join import Join
from operators.lookup import Lookup
from operators.order import asc, desc
from operators.pair import Barrier, Pair
from operators.punctor import Punctor
from operators.sort import Sort

__all__ = [
    "Aggregate",
    "Barrier",
    "Batch",
    "Dedup",
    "Delay",
    "Filter",
    "Functor",
    "Join",
    "Lookup",
    "Pair",
    "Punctor",
    "Sort",
    "Split",
    "Union",
    "agg",
    "asc",
    "col",
    "desc",
]
