"""What every engine remembers of its partitions, as arrays with one place for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from windowlib.columnar.dumps import at, need, packed, unpacked
from windowlib.columnar.kernels.base import Kernel, Planes
from windowlib.columnar.pieces import Places

Array = Any


class Ledger:
    """Arrays that grow with the number of partitions; a new place holds what it starts with."""

    def __init__(self, **starts: Any) -> None:
        self._starts = starts
        self.size = 0
        for name, start in starts.items():
            setattr(self, name, np.full(0, start, _dtype(start)))

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(name)  # only for names that are not set: tells mypy they are arrays

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        if size <= self.size:
            return
        room = max(size, 2 * self.size, 64)
        for name, start in self._starts.items():
            old = getattr(self, name)
            new = np.full((room, *old.shape[1:]), start, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self.size = room

    def set_dtype(self, name: str, dtype: Any) -> None:
        """Hold another kind of number under a name; before anything is in it."""
        setattr(self, name, getattr(self, name).astype(dtype))

    def dump(self, ids: Places) -> dict[str, Array]:
        """What some partitions have under each name."""
        return {name: packed(at(getattr(self, name), ids)) for name in self._starts}

    def load_dump(self, ids: Places, state: Mapping[str, Array]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        need(state.keys() == self._starts.keys(), f"it holds {', '.join(state)}")
        for name in self._starts:
            mine = getattr(self, name)
            mine[ids] = unpacked(state[name], mine.dtype, len(ids))


def _dtype(start: Any) -> Any:
    if isinstance(start, bool):
        return np.bool_
    return np.int64 if isinstance(start, int) else np.float64


class State:
    """The planes of one kernel, one place for each partition, or one row of places."""

    def __init__(self, kernel: Kernel, width: int = 0) -> None:
        shape = (0, width) if width else (0,)
        self.planes = [np.zeros(shape, dtype) for dtype in kernel.dtypes]
        # Planes that hold nothing but zeros so far, of those that need not be there.
        self._zero = [i in kernel.mostly_zero for i in range(len(kernel.dtypes))]

    def grow(self, size: int) -> None:
        """Make room for so many partitions."""
        for i, old in enumerate(self.planes):
            if len(old) < size:
                new = np.zeros((max(size, 2 * len(old), 64), *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                self.planes[i] = new

    def take(self, places: Places) -> Planes:
        """The planes at some places, which number partitions, or all places of all rows."""
        return tuple(
            None if zero else plane.reshape(-1)[places]
            for plane, zero in zip(self.planes, self._zero, strict=True)
        )

    def put(self, places: Places, planes: Planes) -> None:
        """Replace the planes at some places."""
        for i, new in enumerate(planes):
            if new is not None:
                self._zero[i] = False
                self.planes[i].reshape(-1)[places] = new
            elif not self._zero[i]:
                self.planes[i].reshape(-1)[places] = 0

    def dump(self, ids: Places) -> list[Array | None]:
        """The planes of some partitions; None: nothing but zeros."""
        pairs = zip(self.planes, self._zero, strict=True)
        return [None if zero else packed(at(plane, ids)) for plane, zero in pairs]

    def load_dump(self, ids: Places, planes: Sequence[Array | None]) -> None:
        """Take over what `dump` gave, for other numbers of the partitions."""
        need(len(planes) == len(self.planes), f"{len(planes)} planes")
        for i, (mine, given) in enumerate(zip(self.planes, planes, strict=True)):
            if given is None:
                need(self._zero[i], "a plane is missing")
                continue
            mine[ids] = unpacked(given, mine.dtype, len(ids), *mine.shape[1:])
            self._zero[i] = False
