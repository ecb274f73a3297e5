"""Operators built on windowlib's containers."""

from operators.dedup import Dedup
from operators.order import asc, desc
from operators.sort import Sort

__all__ = ["Dedup", "Sort", "asc", "desc"]
