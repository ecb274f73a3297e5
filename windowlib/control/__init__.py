"""Control: scheduling and feedback, without threads and without a clock.

`Pid`, `Relay` and `tune` control a number; `Utilisation` measures how busy workers are. A
`PanePolicy` splits panes among workers, a `WindowPolicy` assigns the tasks of windows to them.
Events and times are arguments, so farms, Spark and simulations use the same ones.
"""

from windowlib.control.pid import Gains, Pid, Relay, tune
from windowlib.control.scheduling import (
    Adaptive,
    AdaptivePid,
    PanePolicy,
    PaneRoundRobin,
    TupleRoundRobin,
    WindowFeedback,
    WindowPolicy,
    WindowRoundRobin,
    WindowTask,
)
from windowlib.control.utilisation import Utilisation, WorkerStats

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
