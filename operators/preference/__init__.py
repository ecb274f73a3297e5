"""The best rows of a window, in several dimensions at once or by a score."""

from operators.preference.partials import Partial, Partials
from operators.preference.queries import KDominantSkyline, Skyline, TopDelta, TopK
from operators.preference.updates import SkylineUpdates

__all__ = [
    "KDominantSkyline",
    "Partial",
    "Partials",
    "Skyline",
    "SkylineUpdates",
    "TopDelta",
    "TopK",
]
