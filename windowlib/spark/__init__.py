"""Windows inside Spark: attach any operator to a DataFrame, streaming or static."""

from windowlib.errors import HostError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    msg = (
        "windowlib.spark: PySpark is not installed, and operators run on DataFrames with it. "
        'Install it: pip install "windowlib[spark]".'
    )
    raise HostError(msg) from error

from windowlib.spark.attach import Attached, attach
from windowlib.spark.inspect import inspect_state
from windowlib.spark.metrics import Listener, Totals
from windowlib.spark.progress import progress
from windowlib.spark.router import split
from windowlib.spark.salting import Salting
from windowlib.spark.session import session

__all__ = [
    "Attached",
    "Listener",
    "Salting",
    "Totals",
    "attach",
    "inspect_state",
    "progress",
    "session",
    "split",
]
