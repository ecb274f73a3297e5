"""Control: who gets what, decided without threads and without a clock.

`Pid`, `Relay` and `tune` steer a number; `Utilisation` says how busy workers are. A `PanePolicy`
splits panes among workers, a `WindowPolicy` hands the tasks of windows to them. Each is told what
happened, and when, so farms, Spark and simulations use the same ones.
"""

from windowlib.control.pane_policies import (
    Adaptive,
    AdaptivePid,
    PanePolicy,
    PaneRoundRobin,
    TupleRoundRobin,
)
from windowlib.control.pid import Gains, Pid, Relay, tune
from windowlib.control.utilisation import Utilisation, WorkerStats
from windowlib.control.window_policies import (
    WindowFeedback,
    WindowPolicy,
    WindowRoundRobin,
    WindowTask,
)

__all__ = [
    "Adaptive",
    "AdaptivePid",
    "Gains",
    "PanePolicy",
    "PaneRoundRobin",
    "Pid",
    "Relay",
    "TupleRoundRobin",
    "Utilisation",
    "WindowFeedback",
    "WindowPolicy",
    "WindowRoundRobin",
    "WindowTask",
    "WorkerStats",
    "tune",
]
