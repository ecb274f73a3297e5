"""What the columnar engine is made of: a handful of functions over arrays.

*Partition id*: a small integer that stands for a partition. *Layout*: the rows of a batch sorted
by partition, each partition in arrival order. *Place*: an index in the layout. *Extent*: the
places `[lo, hi)`.

Most functions exist twice: with numpy, and compiled by numba. numba is taken if it is installed
and the environment variable `WINDOWLIB_NUMBA` is not 0; it is loaded by the first call, not by
the import. `ENGINE` says which one it is. Both give the same results; float sums may differ in
the last digits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from windowlib.columnar.primitives import delta_chains, dominance, grouping, reductions
from windowlib.columnar.primitives.grouping import NONE, Array, Places, counting, ranges
from windowlib.columnar.primitives.reductions import add_pairs

__all__ = [
    "ENGINE",
    "NONE",
    "Array",
    "Places",
    "add_pairs",
    "arrival_loops",
    "chain",
    "compiles",
    "counting",
    "dominance_counts",
    "gather",
    "group",
    "group_keys",
    "largest",
    "look_up",
    "oldest_within",
    "ranges",
    "skyline_places",
    "slide",
    "smallest",
    "sums",
    "two_sums",
    "use",
]


def _installed() -> str:
    if os.environ.get("WINDOWLIB_NUMBA") == "0" or find_spec("numba") is None:
        return "numpy"
    return "numba"


ENGINE = _installed()
"""Which engine computes: "numpy" or "numba"."""

# A batch makes and frees hundreds of arrays. glibc gives their memory back each time, and the next
# array is as slow as its pages are new, unless it has seen a larger block come and go: of such a
# size, and twice as much at the end of the heap, it keeps what is freed. 32 MB are the most that it
# learns from. The block itself is never touched, so it takes no memory.
np.empty(30 << 20, np.uint8)

_speed: ModuleType | None = None


@contextmanager
def use(engine: str) -> Iterator[None]:
    """Compute with "numpy" or "numba" inside of this context: for tests and benchmarks.

    >>> import numpy as np
    >>> with use("numpy"):
    ...     ranges(np.array([1]), np.array([3]))
    array([1, 2, 3])
    """
    global ENGINE
    if engine not in ("numpy", "numba"):
        raise ValueError(f"engine {engine!r}: it is 'numpy' or 'numba'.")
    before = ENGINE
    if engine == "numba":
        _load()
    ENGINE = engine
    try:
        yield
    finally:
        ENGINE = before


def _load() -> ModuleType:
    global _speed
    if _speed is None:
        _speed = import_module("windowlib.columnar.primitives.compiled")
    return _speed


def _engine(module: ModuleType) -> ModuleType:
    """The module that computes: this one, which does it with numpy, or `compiled`."""
    global ENGINE
    if ENGINE == "numpy":
        return module
    try:
        return _load()
    except (ImportError, RuntimeError):  # not for this numpy, or no place for what it compiles
        ENGINE = "numpy"
        return module


def compiles() -> bool:
    """Whether loops over single rows are fast, because numba compiles them."""
    return _engine(grouping) is not grouping


@cache
def arrival_loops() -> ModuleType:
    """The loops over rows that stay in order of arrival; for engines that compile."""
    return import_module("windowlib.columnar.primitives.arrivals")


def group(ids: Array, partitions: int) -> tuple[Places, Places, Places]:
    """The layout of a batch, from the partition id of each row, all in `range(partitions)`.

    Returns the row at each place, the ids that occur, ascending, and where in the layout each of
    them starts (with the end, so one more).

    >>> import numpy as np
    >>> order, touched, starts = group(np.array([7, 2, 7, 2, 7]), 8)
    >>> order.tolist(), touched.tolist(), starts.tolist()
    ([1, 3, 0, 2, 4], [2, 7], [0, 2, 5])
    """
    result: tuple[Places, Places, Places] = _engine(grouping).group(ids, partitions)
    return result


def group_keys(keys: Array, base: int, table: Array) -> tuple[Places, Places, Places] | None:
    """As `group`, from whole numbers and a table of their ids from `base` on, -1 for none.

    The ids that occur come in the order of the keys. None: not all keys have one, or it is faster
    to look them up first.

    >>> import numpy as np
    >>> with use("numpy"):
    ...     _, touched, starts = group_keys(np.arange(2000) % 3 + 7, 7, np.array([2, 0, 1]))
    >>> touched.tolist(), starts.tolist()
    ([2, 0, 1], [0, 667, 1334, 2000])
    """
    return None if compiles() else grouping.group_keys(keys, base, table)


def look_up(table: Array, base: int, values: Array) -> Array | None:
    """What a table has for whole numbers from `base` on; None unless there is something for all.

    >>> import numpy as np
    >>> look_up(np.array([3, -1, 4]), 10, np.array([12, 10])).tolist()
    [4, 3]
    >>> look_up(np.array([3, -1, 4]), 10, np.array([12, 11])) is None
    True
    """
    result: Array | None = _engine(grouping).look_up(table, base, values)
    return result


def gather(values: Array, order: Places) -> Array:
    """The values of a batch in the order of the layout: `values.take(order)`, faster.

    >>> import numpy as np
    >>> gather(np.array([1.5, 2.5, 3.5]), np.array([2, 0, 1])).tolist()
    [3.5, 1.5, 2.5]
    """
    result: Array = _engine(grouping).gather(values, order)
    return result


def sums(values: Array, lo: Array, hi: Array) -> Array:
    """The sum of each extent `[lo, hi)` of floats or 64 bit integers; 0 for an empty one.

    Integers are exact while each sum fits 64 bits. Floats are not compensated, but added in an
    order that keeps errors small, and nothing is subtracted: a large value leaves no trace in
    extents that it does not belong to.

    >>> import numpy as np
    >>> sums(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 2]), np.array([2, 3, 2])).tolist()
    [3.0, 6.0, 0.0]
    """
    result: Array = _engine(reductions).sums(values, lo, hi)
    return result


def largest(values: Array, lo: Array, hi: Array) -> Array:
    """The largest value of each extent; the lowest number there is for an empty one. No NaN.

    >>> import numpy as np
    >>> largest(np.array([1, 4, 2]), np.array([0, 2]), np.array([2, 3])).tolist()
    [4, 2]
    """
    result: Array = _engine(reductions).largest(values, lo, hi)
    return result


def smallest(values: Array, lo: Array, hi: Array) -> Array:
    """The smallest value of each extent; the highest number there is for an empty one. No NaN.

    >>> import numpy as np
    >>> smallest(np.array([1, 4, 2]), np.array([0, 2]), np.array([2, 3])).tolist()
    [1, 2]
    """
    result: Array = _engine(reductions).smallest(values, lo, hi)
    return result


def slide(op: np.ufunc, values: Array, length: int, before: Array | None = None) -> Array:
    """The largest or smallest (`np.maximum`, `np.minimum`) of each `length` values in a row.

    `before` come first, fewer than `length` of them.

    >>> slide(np.maximum, np.array([1, 5, 2, 3]), 2).tolist()
    [5, 5, 3]
    >>> slide(np.maximum, np.array([2, 3]), 2, before=np.array([5])).tolist()
    [5, 3]
    """
    result: Array = _engine(reductions).slide(op, values, length, before)
    return result


def two_sums(values: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The sum of each extent of floats as `high + low`, right to about 100 bits; `low` is small.

    If no value is negative, or none positive, nothing can cancel: `high` is the plain sum and
    `low` is 0. Infinities and NaN give what adding them gives, in the extents they belong to. If
    all values are finite, a sum is infinite only if the exact sum is too large for a float.

    >>> import numpy as np
    >>> high, low = two_sums(np.array([1e16, 1.0, -1e16]), np.array([0, 0]), np.array([3, 2]))
    >>> (high + low).tolist(), low.tolist()
    ([1.0, 1e+16], [0.0, 1.0])
    """
    result: tuple[Array, Array] = _engine(reductions).two_sums(values, lo, hi)
    return result


def chain(
    values: Array, starts: Array, ends: Array, reference: Array, known: Array, threshold: Any
) -> tuple[Places, Array]:
    """The places that fire a delta policy, ascending, and each partition's last reference.

    Partition u has the places `starts[u]` to `ends[u]`, where values do not decrease; partitions
    come in the order of their places. A place fires if its value minus the reference is greater
    than the threshold (which is not negative), and its value is the reference from then on.
    Without a known reference the first value becomes it, and does not fire.

    >>> import numpy as np
    >>> places, reference = chain(
    ...     np.array([1, 4, 5, 9, 2, 9]), np.array([0, 4]), np.array([4, 6]),
    ...     np.array([0, 0]), np.array([False, True]), 3,
    ... )
    >>> places.tolist(), reference.tolist()
    ([2, 3, 5], [9, 9])
    """
    result: tuple[Places, Array] = _engine(delta_chains).chain(
        values, starts, ends, reference, known, threshold
    )
    return result


def oldest_within(values: Array, lo: Array, hi: Array, newest: Array, threshold: Any) -> Places:
    """For each query the first place in `[lo, hi)` that is near enough to `newest`, or `hi`.

    Near enough is a value of which `newest - value > threshold` is not true. Values do not
    decrease in `[lo, hi)`.

    >>> import numpy as np
    >>> values = np.array([1, 4, 6, 9])
    >>> oldest_within(values, np.array([0, 0, 2]), np.array([4, 3, 2]), np.array([9, 99, 9]), 5)
    array([1, 3, 2])
    """
    result: Places = _engine(delta_chains).oldest_within(values, lo, hi, newest, threshold)
    return result


def skyline_places(points: Array, part: Places | None = None) -> Places:
    """The places of points that none before is nowhere greater than, ascending.

    Points are columns of coordinates, all different. With `part`, which counts from 0, points of
    the same part are known not to beat one another.

    >>> import numpy as np
    >>> skyline_places(np.array([[1.0, 2.0, 0.0, 3.0], [1.0, 2.0, 4.0, 0.5]])).tolist()
    [0, 2, 3]
    """
    result: Places = _engine(dominance).skyline_places(points, part)
    return result


def dominance_counts(points: Array, by: Array) -> Array:
    """In how many dimensions a rival is at most not greater than each point, but not in all.

    >>> import numpy as np
    >>> dominance_counts(np.array([[5.0], [5.0]]), np.array([[5.0, 1.0], [5.0, 9.0]])).tolist()
    [1]
    """
    result: Array = _engine(dominance).dominance_counts(points, by)
    return result
