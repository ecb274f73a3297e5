"""Workloads: streams with bursts, disorder and skew, the same every time for the same seed.

`Map2`, `Poisson` and `Steady` say when tuples arrive, `Delays` how late, `Points` and `Keys` what
they hold; `tuples` makes a table of these, `quotes` one of stock quotes. `dispersion_of` measures
how bursty a stream is.

The random numbers are those of numpy's PCG64, so a seed gives the same stream on every platform;
only a later numpy that draws in another way could change it.
"""

from windowlib.workload.arrivals import Arrivals, Map2, Poisson, Steady, dispersion_of
from windowlib.workload.delays import Delays
from windowlib.workload.points import Keys, Points
from windowlib.workload.streams import quotes, tuples

__all__ = [
    "Arrivals",
    "Delays",
    "Keys",
    "Map2",
    "Points",
    "Poisson",
    "Steady",
    "dispersion_of",
    "quotes",
    "tuples",
]
