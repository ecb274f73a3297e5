"""Farms: the windows of an operator on several workers.

`farm` gives an operator the farm that fits it; `KeyFarm`, `WindowFarm`, `PaneFarm` and
`WindowPartition` are what there is. Below them `models` says to which windows a tuple belongs and
when that is known, `functions` what an operator's function allows, `choice` which farm follows from
both, and `mapping` which worker has which window.
"""

from windowlib.farms.choice import Choice, choose
from windowlib.farms.farm import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition, farm
from windowlib.farms.functions import kind_of
from windowlib.farms.mapping import RoundRobin, key_shift
from windowlib.farms.models import model_of

__all__ = [
    "Choice",
    "Farm",
    "KeyFarm",
    "PaneFarm",
    "RoundRobin",
    "WindowFarm",
    "WindowPartition",
    "choose",
    "farm",
    "key_shift",
    "kind_of",
    "model_of",
]
