"""Facts of a firing itself: the numbers of its tuples and groups, and its place in event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windowlib.operators.functions.call import Agg
from windowlib.operators.functions.output_types import count_type, counts_type
from windowlib.summaries.aggregate_function import OutputType

__all__ = [
    "count_all",
    "count_by_group",
    "count_groups",
    "retracts",
    "revision",
    "window_end",
    "window_start",
]


@dataclass(frozen=True, slots=True)
class FiringFunction:
    """A fact of a whole firing, for which no tuple is read: declared once."""

    name: str
    output_type: OutputType
    alone: str
    """Source text of its value without groups: of `n`, how many tuples there are."""
    grouped: str
    """Source text of its value where groups have `sizes`, a list."""
    column: str
    """The method of `windowlib.columnar.firings.Entries` that gives it for all firings."""

    def aggregate(self) -> Agg:
        """It, as an output."""
        return Agg(f"agg.{self.name}()", firing=self)


COUNT_ALL = FiringFunction("count_all", count_type, "n", "n", "whole_sizes")
COUNT_GROUPS = FiringFunction("count_groups", count_type, "1", "len(sizes)", "group_counts")
# The sizes of the groups are one list for all rows of a firing: each row gets its own.
COUNT_BY_GROUP = FiringFunction("count_by_group", counts_type, "[n]", "[*sizes]", "group_sizes")


def count_all() -> Agg:
    """How many tuples the whole subwindow has, whatever the group."""
    return COUNT_ALL.aggregate()


def count_groups() -> Agg:
    """How many groups the subwindow has."""
    return COUNT_GROUPS.aggregate()


def count_by_group() -> Agg:
    """How many tuples each group of the subwindow has, as a list in the order of the groups."""
    return COUNT_BY_GROUP.aggregate()


# -- of a window of event time --------------------------------------------------------------------


def _bound_type(kinds: Any, options: Any) -> None:
    """The type of the timestamps, which only the window knows."""
    return


def _flag_type(kinds: Any, options: Any) -> Any:
    import pyarrow as pa

    return pa.bool_()


# Their texts read what `AggregateOutputs.bind_window` has noted of the window that fires.
WINDOW_START = FiringFunction("window_start", _bound_type, "at[0]", "at[0]", "window_starts")
WINDOW_END = FiringFunction("window_end", _bound_type, "at[1]", "at[1]", "window_ends")
REVISION = FiringFunction("revision", count_type, "at[2]", "at[2]", "revisions")
RETRACTS = FiringFunction("retracts", _flag_type, "at[3]", "at[3]", "retractions")
BOUNDS = (WINDOW_START, WINDOW_END)
OF_EVENT_TIME = (*BOUNDS, REVISION, RETRACTS)
"""Those that only windows of event time have."""


def window_start() -> Agg:
    """The start of the window of event time, in the form of its timestamps."""
    return WINDOW_START.aggregate()


def window_end() -> Agg:
    """The end of the window of event time, in the form of its timestamps."""
    return WINDOW_END.aggregate()


def revision() -> Agg:
    """How often the same window of event time was sent before: 0 for the first time."""
    return REVISION.aggregate()


def retracts() -> Agg:
    """Whether the row takes back one that was sent, with `retract=True`."""
    return RETRACTS.aggregate()
