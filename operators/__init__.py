"""Operators built on windowlib's containers."""

from operators.order import asc, desc
from operators.sort import Sort

__all__ = ["Sort", "asc", "desc"]
