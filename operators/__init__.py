"""Ready-made operators on windows: Aggregate, Join, Sort and their kin."""

from windowlib.operators import agg
from windowlib.operators.aggregate.aggregate import Aggregate
from windowlib.operators.barrier import Barrier, Pair
from windowlib.operators.batch import Batch
from windowlib.operators.dedup import Dedup
from windowlib.operators.disorder import FixedSlack, KSlack, Panes, PidSlack, QuantileSlack, Reorder
from windowlib.operators.expressions import col
from windowlib.operators.join.asof import AsOf
from windowlib.operators.join.interval import IntervalJoin
from windowlib.operators.join.join import Join
from windowlib.operators.join.lookup import Lookup
from windowlib.operators.preference import KDominantSkyline, Skyline, SkylineUpdates, TopDelta, TopK
from windowlib.operators.punctor import Punctor
from windowlib.operators.row_operators import Delay, Filter, Functor, Split, Union
from windowlib.operators.sort.ordering import asc, desc
from windowlib.operators.sort.sort import Sort

__all__ = [
    "Aggregate",
    "AsOf",
    "Barrier",
    "Batch",
    "Dedup",
    "Delay",
    "Filter",
    "FixedSlack",
    "Functor",
    "IntervalJoin",
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
