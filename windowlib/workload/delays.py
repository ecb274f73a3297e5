"""Delays of tuples: the time between their timestamp and their arrival."""

from __future__ import annotations

from dataclasses import dataclass

from windowlib.errors import WorkloadError
from windowlib.workload.checks import Floats, generator, number, share, whole


@dataclass(frozen=True)
class Delays:
    """Delays in seconds, drawn for each tuple on its own. Use one of the four ways to make them.

    >>> Delays.uniform(0.1)
    Delays(kind='uniform', mean=0.1, stragglers=0.0, shortest=0.0, longest=0.0)
    >>> Delays.uniform(0.1).draw(3, seed=7).round(4).tolist()
    [0.1482, 0.1342, 0.0128]
    """

    kind: str
    mean: float
    stragglers: float = 0.0
    shortest: float = 0.0
    longest: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("constant", "uniform", "exponential"):
            msg = (
                f"Delays(kind={self.kind!r}): no such delays. Use Delays.constant, uniform, "
                f"exponential or heavy."
            )
            raise WorkloadError(msg)
        number("Delays(mean)", self.mean, strict=False)
        if self.stragglers:
            share("Delays(stragglers)", self.stragglers)
            number("Delays(shortest)", self.shortest, strict=False)
            number("Delays(longest)", self.longest, least=self.shortest, strict=False)

    @classmethod
    def constant(cls, delay: float) -> Delays:
        """Every tuple as late as any other, so that they stay in order."""
        return cls("constant", delay)

    @classmethod
    def uniform(cls, avg: float) -> Delays:
        """Anything from 0 to `2 * avg`, with the mean `avg`."""
        return cls("uniform", avg)

    @classmethod
    def exponential(cls, mean: float) -> Delays:
        """Mostly short, some long, with the mean `mean`."""
        return cls("exponential", mean)

    @classmethod
    def heavy(
        cls,
        mean: float = 0.03,
        *,
        stragglers: float = 0.0002,
        shortest: float = 2.0,
        longest: float = 20.0,
    ) -> Delays:
        """A heavy tail: exponential, but a share of `stragglers` comes far later."""
        return cls("exponential", mean, stragglers, shortest, longest)

    def draw(self, n: int, seed: int = 0) -> Floats:
        """The delays of `n` tuples, in the order of their timestamps."""
        draws = generator(seed, "delays")
        size = whole("n", n, least=0)
        if self.kind == "constant":
            found = draws.random(size) * 0.0 + self.mean
        elif self.kind == "uniform":
            found = draws.random(size) * (2 * self.mean)
        else:
            found = draws.standard_exponential(size) * self.mean
        if self.stragglers:
            picks = generator(seed, "stragglers")
            late = picks.random(size) < self.stragglers
            spread = self.longest - self.shortest
            found[late] = self.shortest + spread * picks.random(int(late.sum()))
        return found
