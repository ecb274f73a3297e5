"""Arrival processes: bursts, random or steady arrivals; and how bursty a stream is.

Times are seconds since the start, as float64. A process is a value; what it gives depends on the
seed alone, not on the size of the chunks it is read in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from windowlib.errors import WorkloadError
from windowlib.workload.checks import Floats, generator, number, times, whole

BLOCK = 1 << 16
FEWEST = 100  # intervals: with fewer, the variance of their counts says little
SETTLED = 0.2  # a change this small, twice, is no change
BEGIN = 16  # arrivals an interval at first, so that a slow rise is not taken for none


class Arrivals(ABC):
    """A process that says when tuples arrive."""

    def arrivals(self, n: int, seed: int = 0) -> Floats:
        """The first `n` arrivals.

        >>> Steady(rate=4).arrivals(3).tolist()
        [0.25, 0.5, 0.75]
        """
        found = np.empty(whole("n", n, least=0))
        done = 0
        for chunk in self.stream(n, seed):
            found[done : done + len(chunk)] = chunk
            done += len(chunk)
        return found

    def stream(
        self, n: int | None = None, seed: int = 0, *, chunk: int = BLOCK
    ) -> Iterator[Floats]:
        """The arrivals in chunks of `chunk`; without `n` they do not end.

        >>> [part.tolist() for part in Steady(rate=4).stream(3, chunk=2)]
        [[0.25, 0.5], [0.75]]
        """
        left = None if n is None else whole("n", n, least=0)
        return _chunks(self._blocks(whole("seed", seed, least=0)), left, whole("chunk", chunk))

    @abstractmethod
    def _blocks(self, seed: int) -> Iterator[Floats]:
        """Arrivals without end, in blocks of any size."""


def _chunks(blocks: Iterator[Floats], left: int | None, chunk: int) -> Iterator[Floats]:
    held: list[Floats] = []
    size = 0
    while left is None or left > 0:
        wanted = chunk if left is None else min(chunk, left)
        while size < wanted:
            held.append(next(blocks))
            size += len(held[-1])
        joined = np.concatenate(held)
        yield joined[:wanted]
        held, size = [joined[wanted:]], size - wanted
        left = None if left is None else left - wanted


def _running(intervals: Iterator[Floats]) -> Iterator[Floats]:
    """Times from the intervals between them: the same sums however the blocks are cut."""
    now = 0.0
    for each in intervals:
        each[0] += now
        found = np.cumsum(each)
        now = float(found[-1])
        yield found


@dataclass(frozen=True)
class Steady(Arrivals):
    """One arrival every `1 / rate` seconds."""

    rate: float

    def __post_init__(self) -> None:
        number("Steady(rate)", self.rate)

    def _blocks(self, seed: int) -> Iterator[Floats]:
        for block in count():
            yield np.arange(block * BLOCK + 1, (block + 1) * BLOCK + 1) / self.rate


@dataclass(frozen=True)
class Poisson(Arrivals):
    """`rate` arrivals a second, independent of each other: the index of dispersion is 1.

    >>> Poisson(rate=2).arrivals(3, seed=1).round(6).tolist()
    [0.330629, 0.951475, 1.593198]
    """

    rate: float

    def __post_init__(self) -> None:
        number("Poisson(rate)", self.rate)

    def _blocks(self, seed: int) -> Iterator[Floats]:
        draws = generator(seed, "poisson")
        return _running(draws.standard_exponential(BLOCK) / self.rate for _ in count())


@dataclass(frozen=True)
class Map2(Arrivals):
    """Bursts: a Markovian arrival process with a fast and a slow state.

    Its mean is `rate` arrivals a second. In the fast state there are `factor` times as many, in
    the slow one `factor` times fewer; after each arrival the state changes with probability
    `p_fs` or `p_sf`. These follow from the index of `dispersion`, which is the variance of the
    number of arrivals in a long interval over its mean: 1 for independent arrivals, more for
    bursts. A burst has `1 / p_fs` arrivals on average.

    The mean of n arrivals is off by sqrt(dispersion / n) in one of three streams: a workload with a
    dispersion of 2,500 needs millions of arrivals to show its rate.

    >>> bursts = Map2(rate=1000, dispersion=100)
    >>> round(1 / bursts.p_fs), round(1 / bursts.p_sf)
    (110, 28)
    """

    rate: float
    dispersion: float
    factor: float = 4.0

    def __post_init__(self) -> None:
        number("Map2(rate)", self.rate)
        number("Map2(dispersion)", self.dispersion, least=1.0)
        number("Map2(factor)", self.factor, least=1.0)
        if self.p_sf > 1:
            least = 1 + 2 * (self.factor - 1) ** 2 / (self.factor + 1)
            msg = (
                f"Map2(dispersion={self.dispersion!r}): with factor={self.factor:g} the state "
                f"would have to change more than once an arrival. Use {least:g} or more, or a "
                f"smaller factor, or Poisson for 1."
            )
            raise WorkloadError(msg)

    @property
    def p_fs(self) -> float:
        """The probability to leave the fast state after an arrival."""
        f = self.factor
        return 2 * (f - 1) ** 2 / (f * (f + 1) * (self.dispersion - 1))

    @property
    def p_sf(self) -> float:
        """The probability to leave the slow state after an arrival."""
        # Rounded down to 1 where the dispersion is the least that the factor allows.
        found = self.factor * self.p_fs
        return 1.0 if 1 < found < 1 + 1e-12 else found

    def _blocks(self, seed: int) -> Iterator[Floats]:
        return _running(self._intervals(seed))

    def _intervals(self, seed: int) -> Iterator[Floats]:
        stays, draws = generator(seed, "map2 stays"), generator(seed, "map2 intervals")
        # Each: the mean interval of a state, and the probability to leave it.
        states = [(1 / (self.rate * self.factor), self.p_fs), (self.factor / self.rate, self.p_sf)]
        if stays.random() >= self.factor / (1 + self.factor):  # as it is in the long run
            states.reverse()
        pairs = max(1, int(BLOCK / (1 / self.p_fs + 1 / self.p_sf)))
        means = np.tile([mean for mean, _ in states], pairs)
        while True:
            lengths = np.stack([stays.geometric(p, pairs) for _, p in states], axis=1).ravel()
            if pairs > 1:
                yield np.repeat(means, lengths) * draws.standard_exponential(lengths.sum())
                continue
            for mean, length in zip(means, lengths.tolist(), strict=True):
                for begin in range(0, length, BLOCK):  # a stay may be longer than memory
                    yield mean * draws.standard_exponential(min(BLOCK, length - begin))


def dispersion_of(arrivals: Any) -> float:
    """The index of dispersion of a stream: variance over mean of the arrivals in an interval.

    The interval is doubled until the ratio has settled, or there are fewer than 100 intervals. It
    is 1 for independent arrivals, 0 for a steady pace, and more for bursts. A rate that drifts
    counts as burstiness, too: use a shorter piece of such a stream.

    >>> from windowlib.workload import Poisson
    >>> round(dispersion_of(Poisson(rate=50).arrivals(100_000)), 1)
    1.0
    """
    found = times("dispersion_of(arrivals)", arrivals, ordered=True)
    if len(found) < 2 * FEWEST or found[-1] == found[0]:
        msg = (
            f"dispersion_of(arrivals): {len(found)} arrivals in {_span(found):g} seconds are too "
            f"few to count. Use {2 * FEWEST} or more, at different times."
        )
        raise WorkloadError(msg)
    intervals = len(found) // max(1, min(BEGIN, len(found) // (2 * FEWEST)))
    edges = np.linspace(found[0], found[-1], intervals + 1)
    counts = np.diff(np.searchsorted(found, edges, side="left"))
    ratio, settled = _ratio(counts), 0
    while settled < 2 and len(counts) >= 2 * FEWEST:
        counts = counts[: len(counts) // 2 * 2].reshape(-1, 2).sum(axis=1)
        before, ratio = ratio, _ratio(counts)
        settled = settled + 1 if abs(ratio - before) < SETTLED * before else 0
    return ratio


def _ratio(counts: Any) -> float:
    return float(counts.var() / counts.mean())


def _span(found: Any) -> float:
    return float(found[-1] - found[0]) if len(found) else 0.0
