"""SPL-style windows for Python and Spark.

Policies configure a window, a container fires its events in an exact order, and you write
handlers. Start with `Tumbling` and `Sliding`, `TumblingWindow` and `SlidingWindow`.
"""

from windowlib import summarizers
from windowlib.clock import WallClock
from windowlib.errors import (
    AccessError,
    ClockError,
    CopyError,
    DeltaOrderError,
    FarmError,
    FunctionError,
    HostError,
    ModelError,
    OperatorError,
    OrderWarning,
    PartitionError,
    PolicyError,
    PunctuationError,
    SchemaError,
    StateVersionError,
    WindowlibError,
    WindowlibWarning,
    WorkloadError,
)
from windowlib.events import WindowEvents
from windowlib.graph import Graph
from windowlib.marks import advance, punct, restart, to
from windowlib.model import OperatorModel
from windowlib.operator import Operator
from windowlib.policies import (
    Count,
    Delta,
    Either,
    PartitionAge,
    PartitionCount,
    Punct,
    Time,
    TupleCount,
)
from windowlib.replay import Replay, replay
from windowlib.running import Running
from windowlib.sliding import SlidingWindow
from windowlib.spec import KEY, Sliding, Tumbling
from windowlib.spl import parse
from windowlib.summarizers import Summarizer
from windowlib.trace import Trace, trace
from windowlib.tumbling import TumblingWindow
from windowlib.window import Window

__all__ = [
    "KEY",
    "AccessError",
    "ClockError",
    "CopyError",
    "Count",
    "Delta",
    "DeltaOrderError",
    "Either",
    "FarmError",
    "FunctionError",
    "Graph",
    "HostError",
    "ModelError",
    "Operator",
    "OperatorError",
    "OperatorModel",
    "OrderWarning",
    "PartitionAge",
    "PartitionCount",
    "PartitionError",
    "PolicyError",
    "Punct",
    "PunctuationError",
    "Replay",
    "Running",
    "SchemaError",
    "Sliding",
    "SlidingWindow",
    "StateVersionError",
    "Summarizer",
    "Time",
    "Trace",
    "Tumbling",
    "TumblingWindow",
    "TupleCount",
    "WallClock",
    "Window",
    "WindowEvents",
    "WindowlibError",
    "WindowlibWarning",
    "WorkloadError",
    "advance",
    "parse",
    "punct",
    "replay",
    "restart",
    "summarizers",
    "to",
    "trace",
]
__version__ = "0.1.0"
