"""Ready-made operators on windows: Aggregate, Join, Sort and their kin."""

from operators import agg
from operators.aggregate import Aggregate
from operators.expressions import col

__all__ = ["Aggregate", "agg", "col"]
