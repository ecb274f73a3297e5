"""Farms: the windows of an operator on several workers.

`farm` gives an operator the farm that fits it: a `KeyFarm`, `WindowFarm`, `PaneFarm` or
`WindowPartition`. `models` says to which windows a tuple belongs and when that is known,
`window_function` what an operator's function allows, `choice` which farm follows from both, and
`round_robin` which worker has which window.

A row crosses `emitter` (which window holds it, stored in `chunks`), a dispatch of `window_farm` or
`pane_farm` (how windows become tasks), `scheduler` (which worker), `pool` and `process` (to another
process), `worker` and `evaluator` (the operator's function), and the collector in `scheduler`.
"""

from windowlib.farms.choice import Choice, choose
from windowlib.farms.farm import Farm, KeyFarm, PaneFarm, WindowFarm, WindowPartition, farm
from windowlib.farms.figures import live
from windowlib.farms.models import model_of
from windowlib.farms.round_robin import RoundRobin, key_shift
from windowlib.farms.window_function import kind_of

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
    "live",
    "model_of",
]
