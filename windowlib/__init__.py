"""SPL-style windows for Python and Spark.

Policies configure a window, a container fires its events in an exact order, and you write
handlers. Start with `Tumbling` and `Sliding`, `TumblingWindow` and `SlidingWindow`.
"""

from windowlib import moved
from windowlib.errors import (
    AccessError,
    BrokenStateError,
    ClockError,
    ClockWarning,
    CopyError,
    CutWarning,
    DeltaOrderError,
    FarmError,
    FieldError,
    FunctionError,
    HostError,
    LateWarning,
    ModelError,
    OperatorError,
    OrderWarning,
    PartitionError,
    PolicyError,
    PunctuationError,
    SchemaError,
    StateError,
    StateVersionError,
    WindowlibError,
    WindowlibWarning,
    WorkloadError,
)
from windowlib.event_time.slack import FixedSlack, KSlack, PidSlack, QuantileSlack
from windowlib.event_time.watermark import Watermark
from windowlib.extensions import register
from windowlib.runtime.graph import Graph
from windowlib.runtime.keyed_state import Keyed, Unkeyed
from windowlib.runtime.marks import advance, punct, restart, to
from windowlib.runtime.model import OperatorModel, Parameter
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import Replay, replay
from windowlib.runtime.running import Running
from windowlib.spec.policies import (
    Count,
    Delta,
    Either,
    Event,
    PartitionAge,
    PartitionCount,
    Punct,
    Time,
    TupleCount,
)
from windowlib.spec.specification import KEY, Landmark, Session, Sliding, Tumbling
from windowlib.spec.spl import parse
from windowlib.summaries import summarizers
from windowlib.summaries.summarizers import Summarizer
from windowlib.tools.tracing import Trace, trace
from windowlib.window.clock import WallClock
from windowlib.window.container import Window
from windowlib.window.event_time import EventTimeWindow
from windowlib.window.events import WindowEvents
from windowlib.window.sliding import SlidingWindow
from windowlib.window.state_bytes import dump_state, load_state
from windowlib.window.tumbling import TumblingWindow

__all__ = [
    "KEY",
    "AccessError",
    "BrokenStateError",
    "ClockError",
    "ClockWarning",
    "CopyError",
    "Count",
    "CutWarning",
    "Delta",
    "DeltaOrderError",
    "Either",
    "Event",
    "EventTimeWindow",
    "FarmError",
    "FieldError",
    "FixedSlack",
    "FunctionError",
    "Graph",
    "HostError",
    "KSlack",
    "Keyed",
    "Landmark",
    "LateWarning",
    "ModelError",
    "Operator",
    "OperatorError",
    "OperatorModel",
    "OrderWarning",
    "Parameter",
    "PartitionAge",
    "PartitionCount",
    "PartitionError",
    "PidSlack",
    "PolicyError",
    "Punct",
    "PunctuationError",
    "QuantileSlack",
    "Replay",
    "Running",
    "SchemaError",
    "Session",
    "Sliding",
    "SlidingWindow",
    "StateError",
    "StateVersionError",
    "Summarizer",
    "Time",
    "Trace",
    "Tumbling",
    "TumblingWindow",
    "TupleCount",
    "Unkeyed",
    "WallClock",
    "Watermark",
    "Window",
    "WindowEvents",
    "WindowlibError",
    "WindowlibWarning",
    "WorkloadError",
    "advance",
    "dump_state",
    "load_state",
    "parse",
    "punct",
    "replay",
    "restart",
    "summarizers",
    "to",
    "trace",
]
# What upper rooms offer to lower ones: loaded when first asked for, see `windowlib.extensions`.
register("handover", "windowlib.columnar.handover:ColumnarWindowHandover")
register("event_time_handover", "windowlib.columnar.handover:EventTimeHandover")
register("pane_columns", "windowlib.columnar.engines.open_panes:PaneColumns")
register("describe_batches", "windowlib.columnar.planner:describe")
register("chain", "windowlib.runtime.graph:chain")
register("running_graph", "windowlib.runtime.running_graph:RunningGraph")
register("explain", "windowlib.runtime.explain:explain")
register("explain_on_spark", "windowlib.spark.plan.attach:explain_on")
register("translated_column", "windowlib.operators.expressions:from_spark")
register("spark_attach", "windowlib.spark.plan.attach:attach")
register("operator_from", "windowlib.tools.commands.call_text:operator_from")
register("flowchart", "windowlib.tools.mermaid:flowchart")
register("listing", "windowlib.tools.listing:Listing")
register("operator_html", "windowlib.tools.notebook:operator_html")
register("spec_html", "windowlib.tools.notebook:spec_html")
register("waiting_html", "windowlib.tools.notebook:waiting_html")
register("gather_rows", "windowlib.columnar.arrays.physical:gather_rows")
register("unencoded", "windowlib.columnar.arrays.physical:unencoded")
register("sorted_rows", "windowlib.columnar.arrays.sorting:sorted_rows")
moved.install()
__version__ = "0.1.0"
