"""The values of tuples: points in several dimensions, and keys, some more frequent than others.

Points lie in the unit cube, and small values are good ones. A correlated point is good or bad in
all dimensions at once, so few points are best. An anticorrelated point pays for a good value in
one dimension with a bad one in another, so most are best in some way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windowlib.errors import WorkloadError
from windowlib.workload.checks import Floats, generator, number, share, whole

BLOCK = 1 << 14
# Of 10,000 points about 0.05, 2 and 20 percent are undominated in 4 dimensions, as is usual.
SPREAD, THICKNESS = 0.1, 0.035
KINDS = ("correlated", "independent", "anticorrelated")


@dataclass(frozen=True)
class Points:
    """Points in `dims` dimensions: `correlated`, `independent` or `anticorrelated`.

    >>> Points.independent(3).draw(2, seed=7).round(3).tolist()
    [[0.555, 0.94, 0.265], [0.761, 0.419, 0.74]]
    """

    kind: str
    dims: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            msg = f"Points(kind={self.kind!r}): no such points. Use one of {', '.join(KINDS)}."
            raise WorkloadError(msg)
        whole("Points(dims)", self.dims)

    @classmethod
    def correlated(cls, dims: int) -> Points:
        """Points near the diagonal: what is good in one dimension is good in the others."""
        return cls("correlated", dims)

    @classmethod
    def independent(cls, dims: int) -> Points:
        """Points anywhere in the cube, each as likely."""
        return cls("independent", dims)

    @classmethod
    def anticorrelated(cls, dims: int) -> Points:
        """Points near the plane through the middle: good in one dimension, bad in another."""
        return cls("anticorrelated", dims)

    def draw(self, n: int, seed: int = 0) -> Floats:
        """`n` points, a row each."""
        draws = generator(seed, f"points {self.kind}")
        size = whole("n", n, least=0)
        if self.kind == "independent":
            return draws.random((size, self.dims))
        found = np.empty((size, self.dims))
        done, blocks = 0, self._blocks(draws)
        while done < size:
            block = next(blocks)[: size - done]
            found[done : done + len(block)] = block
            done += len(block)
        return found

    def _blocks(self, draws: np.random.Generator) -> Iterator[Floats]:
        """Points that fell into the cube; those beside it are drawn anew."""
        while True:
            if self.kind == "correlated":
                # The mean of some uniform numbers: most points in the middle of the diagonal.
                level = draws.random((BLOCK, self.dims)).mean(axis=1)
            else:
                level = draws.normal(0.5, THICKNESS, BLOCK)
            room = np.minimum(level, 1 - level)[:, None]
            if self.kind == "correlated":
                moves = draws.normal(0.0, 1.0, (BLOCK, self.dims)) * (SPREAD * room)
            else:
                moves = draws.uniform(-1.0, 1.0, (BLOCK, self.dims)) * room
            # What one dimension gains the next one loses, so the sum stays.
            found = level[:, None] + (moves - np.roll(moves, 1, axis=1) if self.dims > 1 else 0.0)
            yield found[((found >= 0) & (found < 1)).all(axis=1)]


@dataclass(frozen=True)
class Keys:
    """Keys 0 to `count - 1`, of which 0 comes most often. Use one of the three ways to make them.

    >>> Keys.heaviest(1000, 0.16).shares[:2].round(5).tolist()
    [0.16, 0.00084]
    >>> Keys.zipf(3, exponent=1).shares.round(3).tolist()
    [0.545, 0.273, 0.182]
    """

    count: int
    exponent: float = 0.0
    p_max: float | None = None

    def __post_init__(self) -> None:
        whole("Keys(count)", self.count)
        number("Keys(exponent)", self.exponent, strict=False)
        if self.p_max is not None and share("Keys(p_max)", self.p_max) < 1 / self.count:
            msg = (
                f"Keys(p_max={self.p_max!r}): less than the share of each of {self.count} keys. "
                f"Use {1 / self.count:g} or more."
            )
            raise WorkloadError(msg)

    @classmethod
    def uniform(cls, count: int) -> Keys:
        """All keys equally often."""
        return cls(count)

    @classmethod
    def zipf(cls, count: int, exponent: float = 1.0) -> Keys:
        """Key k in proportion to `1 / (k + 1) ** exponent`."""
        return cls(count, exponent)

    @classmethod
    def heaviest(cls, count: int, p_max: float) -> Keys:
        """Key 0 with the share `p_max` of the tuples, the others equally often."""
        return cls(count, p_max=p_max)

    @property
    def shares(self) -> Floats:
        """The share of the tuples that each key has."""
        if self.p_max is not None:
            others = (1 - self.p_max) / max(1, self.count - 1)
            return np.array([self.p_max] + [others] * (self.count - 1))
        weights = np.arange(1, self.count + 1, dtype=np.float64) ** -self.exponent
        return np.asarray(weights / weights.sum())

    def draw(self, n: int, seed: int = 0) -> NDArray[np.int64]:
        """The keys of `n` tuples."""
        bounds = np.cumsum(self.shares)[:-1]
        draws = generator(seed, "keys").random(whole("n", n, least=0))
        return np.searchsorted(bounds, draws, side="right").astype(np.int64)
