"""Results of functions, Arrow arrays or lists: some of them, several together, and their truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowlib.columnar.columns import Column
from windowlib.columnar.decline import Decline
from windowlib.columnar.kernels.base import Result
from windowlib.columnar.physical import gather
from windowlib.columnar.pieces import Places


def as_list(result: Result) -> list[Any]:
    """The results as Python values."""
    return result if isinstance(result, list) else result.to_pylist()


def picked(result: Result, places: Places) -> Result:
    """The results at some places, in this order.

    >>> picked(pa.array([3, 1, 2]), np.array([2, 0])).to_pylist(), picked([3, 1, 2], np.array([1]))
    ([2, 3], [1])
    """
    if isinstance(result, list):
        return [result[place] for place in places.tolist()]
    return gather(result, pa.array(places))


def joined(results: Sequence[Result]) -> Result:
    """Results one after the other: as an array if all are arrays of one type, or as a list."""
    if len(results) == 1:
        return results[0]
    arrays = [each for each in results if not isinstance(each, list)]
    if len(arrays) == len(results) and len({each.type for each in arrays}) == 1:
        return pa.concat_arrays(arrays)
    return [value for each in results for value in as_list(each)]


def truth(result: Result) -> npt.NDArray[np.bool_]:
    """Which results are true, as Python sees it; null is not.

    >>> truth(pa.array([True, False, None])), truth(["", "a", None])
    (array([ True, False, False]), array([False,  True, False]))
    """
    if not isinstance(result, list) and _plain(result.type):
        column = Column.of(result)
        true: npt.NDArray[np.bool_] = column.data != 0
        return true if column.valid is None else true & column.valid
    return np.array([bool(value) for value in as_list(result)], bool)


def _plain(kind: pa.DataType) -> bool:
    """Whether zero is false and every other value true; at a time of day, 0 is midnight."""
    types = pa.types
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind))


def as_column(result: Result) -> Column:
    """The results as a column, to compute with."""
    if isinstance(result, list):
        raise Decline("values without an Arrow type")
    return Column.of(result)
