"""State by partition: arrays with one value, or one list, for each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from windowlib.columnar.arrays.encoding import need, packed, unpacked, values_at
from windowlib.columnar.primitives import Array, Places, ranges


class Ledger:
    """Named arrays with one value for each partition; new partitions get initial values."""

    def __init__(self, **starts: Any) -> None:
        self._starts = starts
        self.size = 0
        for name, start in starts.items():
            setattr(self, name, np.full(0, start, _dtype(start)))

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(name)  # only for names that are not set: tells mypy they are arrays

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        if size <= self.size:
            return
        room = max(size, 2 * self.size, 64)
        for name, start in self._starts.items():
            old = getattr(self, name)
            new = np.full((room, *old.shape[1:]), start, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self.size = room

    def put(self, **arrays: Array) -> None:
        """Replace some of the arrays."""
        for name, array in arrays.items():
            setattr(self, name, array)

    def set_dtype(self, name: str, dtype: Any) -> None:
        """Set the type of an array that is still empty."""
        setattr(self, name, getattr(self, name).astype(dtype))

    def dump(self, ids: Places) -> dict[str, Array]:
        """The values of some partitions, by name."""
        return {name: packed(values_at(getattr(self, name), ids)) for name in self._starts}

    def load_dump(self, ids: Places, state: Mapping[str, Array]) -> None:
        """Restore what `dump` returned, under other partition numbers."""
        need(state.keys() == self._starts.keys(), f"it holds {', '.join(state)}")
        for name in self._starts:
            mine = getattr(self, name)
            mine[ids] = unpacked(state[name], mine.dtype, len(ids))


def _dtype(start: Any) -> Any:
    if isinstance(start, bool):
        return np.bool_
    return np.int64 if isinstance(start, int) else np.float64


ROOM = 4
"""The least room that a list gets."""
CAPACITY = 1 << 10
"""The least that a buffer has."""


class Ragged:
    """A list for each partition, as places in one or more planes that are written side by side.

    A list has room to grow. One that outgrows it moves to the end of the planes and gets half as
    much again, so that a value is copied a few times at most. When the planes are full, all lists
    move together and the gaps that they left are gone.

    >>> lists = Ragged([np.int64])
    >>> lists.grow(3)
    >>> lists.append(np.array([2, 0]), np.array([1, 2]), [np.array([7, 8, 9])])
    >>> lists.append(np.array([2]), np.array([1]), [np.array([10])])
    >>> lists.take(np.array([0, 1, 2]))[0].tolist(), lists.lengths[:3].tolist()
    ([8, 9, 7, 10], [2, 0, 2])
    """

    def __init__(self, dtypes: Sequence[Any]) -> None:
        self.planes: list[Array] = [np.empty(0, dtype) for dtype in dtypes]
        self.starts: Places = np.zeros(0, np.intp)
        self.lengths: Places = np.zeros(0, np.intp)
        self.rooms: Places = np.zeros(0, np.intp)
        self.end = 0

    def grow(self, size: int) -> None:
        """Make room for at least that many partitions."""
        have = len(self.starts)
        if have >= size:
            return
        more = max(size, 2 * have, 64) - have
        for name in ("starts", "lengths", "rooms"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(more, np.intp)))

    def places(self, ids: Places) -> Places:
        """Where the lists of some partitions are, one list after the other."""
        return ranges(self.starts[ids], self.lengths[ids])

    def take(self, ids: Places) -> list[Array]:
        """The lists of some partitions, one after the other."""
        places = self.places(ids)
        return [plane[places] for plane in self.planes]

    def clear(self, ids: Places) -> None:
        """Empty the lists of some partitions; their room stays."""
        self.lengths[ids] = 0

    def append(self, ids: Places, lengths: Places, planes: Sequence[Array]) -> None:
        """Add to the lists of different partitions so many values each, which come in a row."""
        needed = self.lengths[ids] + lengths
        short = needed > self.rooms[ids]
        if self.end + int(_room(needed[short]).sum()) > len(self.planes[0]):
            self._pack(int(_room(needed).sum()))
            short = needed > self.rooms[ids]
        self._move(ids[short], needed[short])
        places = ranges(self.starts[ids] + self.lengths[ids], lengths)
        for plane, values in zip(self.planes, planes, strict=True):
            plane[places] = values
        self.lengths[ids] = needed

    def _move(self, ids: Places, needed: Places) -> None:
        """Bring lists to the end of the planes, where there is room for what they need and more."""
        rooms = _room(needed)
        starts = self.end + np.cumsum(rooms) - rooms
        old, new = self.places(ids), ranges(starts, self.lengths[ids])
        for plane in self.planes:
            plane[new] = plane[old]
        self.starts[ids], self.rooms[ids] = starts, rooms
        self.end += int(rooms.sum())

    def _pack(self, more: int) -> None:
        """Compact the lists, with room for `more` values and as many again."""
        some = np.flatnonzero(self.lengths)
        rooms = np.minimum(self.rooms[some], _room(self.lengths[some]))
        end = int(rooms.sum())
        starts = np.cumsum(rooms) - rooms
        old, new = self.places(some), ranges(starts, self.lengths[some])
        for i, plane in enumerate(self.planes):
            self.planes[i] = np.empty(max(2 * (end + more), CAPACITY), plane.dtype)
            self.planes[i][new] = plane[old]
        self.rooms[:] = 0
        self.starts[some], self.rooms[some] = starts, rooms
        self.end = end


def _room(lengths: Places) -> Places:
    room: Places = lengths + lengths // 2 + ROOM
    return room
