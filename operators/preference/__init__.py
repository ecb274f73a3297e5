"""The best rows of a window, in several dimensions at once or by a score."""

from windowlib.operators.preference.preference_partials import Partial, Partials
from windowlib.operators.preference.queries import KDominantSkyline, Skyline, TopDelta, TopK
from windowlib.operators.preference.updates import SkylineUpdates

__all__ = [
    "KDominantSkyline",
    "Partial",
    "Partials",
    "Skyline",
    "SkylineUpdates",
    "TopDelta",
    "TopK",
]
