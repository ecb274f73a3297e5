"""Windows inside Spark: attach any operator to a DataFrame, streaming or static."""

import windowlib.spark.versions  # noqa: F401 - first: it refuses a PySpark that is too old
from windowlib.spark.farms.salting import Salting
from windowlib.spark.observe.inspect import inspect_state
from windowlib.spark.observe.metrics import Listener, Totals
from windowlib.spark.observe.progress import progress
from windowlib.spark.plan.attach import attach, register_view
from windowlib.spark.plan.attached import Attached
from windowlib.spark.plan.routing import split
from windowlib.spark.rescale import migrate_state, rescale_state
from windowlib.spark.session import session

__all__ = [
    "Attached",
    "Listener",
    "Salting",
    "Totals",
    "attach",
    "inspect_state",
    "migrate_state",
    "progress",
    "register_view",
    "rescale_state",
    "session",
    "split",
]
