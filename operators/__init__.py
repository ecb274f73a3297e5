"""Operators built on windowlib's containers."""

from operators.join import Join
from operators.lookup import Lookup

__all__ = ["Join", "Lookup"]
