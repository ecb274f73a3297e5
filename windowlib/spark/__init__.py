"""Windows inside Spark: attach any operator to a DataFrame, streaming or static.

Modules that only the driver needs are loaded on first use: every Python worker loads this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import windowlib.spark.versions  # noqa: F401 - first: it refuses a PySpark that is too old
from windowlib.spark.session import session  # a name that a module has, too

if TYPE_CHECKING:
    from windowlib.spark.farms.salting import Salting
    from windowlib.spark.observe.inspect import inspect_state
    from windowlib.spark.observe.metrics import Listener, Totals, progress
    from windowlib.spark.plan.attach import Attached, attach, register_view
    from windowlib.spark.plan.routing import split
    from windowlib.spark.rescale import migrate_state, rescale_state

MODULES = {
    "Attached": "plan.attach",
    "Listener": "observe.metrics",
    "Salting": "farms.salting",
    "Totals": "observe.metrics",
    "attach": "plan.attach",
    "inspect_state": "observe.inspect",
    "migrate_state": "rescale",
    "progress": "observe.metrics",
    "register_view": "plan.attach",
    "rescale_state": "rescale",
    "split": "plan.routing",
}
"""Where each name is."""

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


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name not in MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
        return found


def __dir__() -> list[str]:
    return __all__
