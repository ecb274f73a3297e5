"""What the columnar engine is made of: a handful of functions over arrays.

*Partition id*: a small integer that stands for a partition. *Layout*: the rows of a batch sorted
by partition, each partition in arrival order. *Place*: an index in the layout. *Extent*: the
places `[lo, hi)`.

Each function exists with numpy, and where that is much faster compiled by numba, which is used if
it is installed and the environment variable `WINDOWLIB_NUMBA` is not 0. It is loaded by the first
call, not by the import. Both give the same results; float sums may differ in the last digits.
"""

from __future__ import annotations

from windowlib.columnar.chains import chain, oldest_within
from windowlib.columnar.grouping import Array, Places, group, ranges
from windowlib.columnar.pairs import add_pairs, two_sums
from windowlib.columnar.reduce import largest, smallest, sums

__all__ = [
    "Array",
    "Places",
    "add_pairs",
    "chain",
    "group",
    "largest",
    "oldest_within",
    "ranges",
    "smallest",
    "sums",
    "two_sums",
]
