"""Approximate answers in bounded space: small sketches of long streams that can be merged.

| sketch | answers | exact while | then off by |
| --- | --- | --- | --- |
| `HyperLogLog` | how many distinct values | distinct values ≤ 512 | 1.6 % (standard error) |
| `QuantileSketch` | the value at a rank | values ≤ 512 | 1 % of the ranks |
| `HeavyHitters` | the most frequent values | distinct values ≤ 512 | 0.4 % of all values, at most |

The numbers are those of the default sizes. Nothing here is random: the same values in the same
order give the same state, in every process.
"""

from windowlib.operators.sketches.hyperloglog import HyperLogLog
from windowlib.operators.sketches.kll import QuantileSketch
from windowlib.operators.sketches.sketch import Sketch
from windowlib.operators.sketches.space_saving import HeavyHitters

__all__ = ["HeavyHitters", "HyperLogLog", "QuantileSketch", "Sketch"]
