"""Ready-made operators on windows: Aggregate, Join, Sort and their kin."""

from operators import agg
from operators.aggregate import Aggregate
from operators.batch import Batch
from operators.dedup import Dedup
from operators.disorder import FixedSlack, KSlack, Panes, PidSlack, QuantileSlack, Reorder
from operators.expressions import col
from operators.flow import Delay, Filter, Functor, Split, Union
from operators.join import Join
from operators.lookup import Lookup
from operators.order import asc, desc
from operators.pair import Barrier, Pair
from operators.preference import KDominantSkyline, Skyline, SkylineUpdates, TopDelta, TopK
from operators.punctor import Punctor
from operators.sort import Sort

__all__ = [
    "Aggregate",
    "Barrier",
    "Batch",
    "Dedup",
    "Delay",
    "Filter",
    "FixedSlack",
    "Functor",
    "Join",
    "KDominantSkyline",
    "KSlack",
    "Lookup",
    "Pair",
    "Panes",
    "PidSlack",
    "Punctor",
    "QuantileSlack",
    "Reorder",
    "Skyline",
    "SkylineUpdates",
    "Sort",
    "Split",
    "TopDelta",
    "TopK",
    "Union",
    "agg",
    "asc",
    "col",
    "desc",
]
