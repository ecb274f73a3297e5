"""Windows inside Spark: attach any operator to a DataFrame, streaming or static."""

from windowlib.spark.attach import Attached, attach
from windowlib.spark.session import session

__all__ = ["Attached", "attach", "session"]
