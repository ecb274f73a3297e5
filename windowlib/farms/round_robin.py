"""Round-robin placement: which worker has which window, and which workers a tuple goes to.

Windows go round: window w of a key goes to worker `(shift + w) mod n`. The shift of a key keeps
the first windows of all keys from going to worker 0. Numbers of windows and points of the axis are
those of the whole stream everywhere, so the windows of one worker have the slide n times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from windowlib.errors import FarmError
from windowlib.farms.exact_axis import Array, spread
from windowlib.farms.models import RegularWindows
from windowlib.runtime.operator import stable_text


def key_shift(key: object, workers: int) -> int:
    """The worker of the first window of a key; the same in every process.

    Keys that are equal numbers have one shift, whatever their types.

    >>> key_shift("IBM", 4), key_shift(5, 4) == key_shift(5.0, 4), key_shift(None, 4)
    (3, True, 0)
    """
    return _key_number(key) % workers


def _key_number(key: object) -> int:
    if key is None or key != key:  # the hash of NaN is not the same in every process
        return 0
    if isinstance(key, tuple):
        return crc32(repr([_key_number(part) for part in key]).encode())
    if isinstance(key, int | float) or type(key).__name__ == "Decimal":
        return hash(key)
    return crc32(key if isinstance(key, bytes) else _key_text(key).encode())


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else stable_text(key)


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """The windows of a stream on `workers` workers, `batch` neighbours at a time.

    Everything takes numbers or arrays of them; `shift` may be one or one a row.

    >>> farm = RoundRobin(3)
    >>> [farm.owner(w, shift=1) for w in range(5)]
    [1, 2, 0, 1, 2]
    >>> farm.local(4), farm.window(1, worker=2, shift=1)
    (1, 4)
    """

    workers: int
    batch: int = 1

    def __post_init__(self) -> None:
        for name in ("workers", "batch"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                what = "workers" if name == "workers" else "windows"
                msg = f"RoundRobin({name}={value!r}): not a number of {what}. Use 1 or more."
                raise FarmError(msg)

    def owner(self, w: Any, shift: Any = 0) -> Any:
        """The worker that has a window."""
        return (shift + w // self.batch) % self.workers

    def local(self, w: Any) -> Any:
        """The number of a window among those of its worker."""
        rounds, rest = w // (self.batch * self.workers), w % self.batch
        return rounds * self.batch + rest

    def window(self, local: Any, worker: Any, shift: Any = 0) -> Any:
        """The number in the stream of a worker's window: `local` the other way round."""
        rounds, rest = local // self.batch, local % self.batch
        return (rounds * self.workers + (worker - shift) % self.workers) * self.batch + rest

    def private(self, model: RegularWindows, worker: int, shift: int = 0) -> RegularWindows:
        """The windows of one worker, as a model with the slide n times as long.

        Its window l is `window(l, worker, shift)` of the stream, with the same extent.

        >>> from windowlib.farms.models import CountWindows
        >>> RoundRobin(4).private(CountWindows(4, 2), worker=1)
        CountWindows(size=4, slide=8, phase=2, lowest=0)
        """
        if self.batch > 1:
            msg = (
                f"RoundRobin({self.workers}, batch={self.batch}).private(...): windows that go "
                f"round in batches have no one slide. Use batch=1, or window() for each of them."
            )
            raise FarmError(msg)
        begin = (worker - shift) % self.workers
        lowest = None if model.lowest is None else -((begin - model.lowest) // self.workers)
        phase = model.phase + begin * model.slide
        return replace(model, slide=model.slide * self.workers, phase=phase, lowest=lowest)

    def workers_of(self, model: RegularWindows, x: Any, shift: Any = 0) -> Any:
        """The workers that a tuple goes to, each once, in the order of their windows.

        Of an array of points: two arrays, with a row number and a worker for each copy.

        >>> from windowlib.farms.models import CountWindows
        >>> RoundRobin(4).workers_of(CountWindows(4, 2), 5), RoundRobin(2).workers_of(
        ...     CountWindows(4, 1), 5
        ... )
        ([1, 2], [0, 1])
        """
        one = not isinstance(x, np.ndarray)
        points: Array = _array(x) if one else x
        first, last = model.first(points), model.last(points)
        some = first <= last
        begin, end = first // self.batch, last // self.batch
        counts = np.where(some, np.minimum(end - begin + 1, self.workers), 0)
        rows, batches = spread(begin, counts)
        found = (batches + (shift[rows] if isinstance(shift, np.ndarray) else shift)) % self.workers
        return found.tolist() if one else (rows, found)

    def copies(self, model: RegularWindows) -> float:
        """How many workers a tuple goes to on average.

        >>> from windowlib.farms.models import CountWindows
        >>> [RoundRobin(9, batch).copies(CountWindows(4, 1)) for batch in (1, 2, 4)]
        [4.0, 2.5, 1.75]
        """
        slide = self.batch * model.slide
        reach = slide - model.slide + model.size if model.overlapping else self.batch * model.size
        return min(float(self.workers), float(reach / slide))


def _array(x: Any) -> Array:
    found: Array = np.empty(1, dtype=object)
    found[0] = x
    return found
