"""Rows that come out of order: how long to wait for them, and how to put them in order."""

from windowlib.event_time.slack import FixedSlack, KSlack, PidSlack, QuantileSlack, Slack
from windowlib.operators.disorder.panes import Panes
from windowlib.operators.disorder.reorder import Reorder

__all__ = [
    "FixedSlack",
    "KSlack",
    "Panes",
    "PidSlack",
    "QuantileSlack",
    "Reorder",
    "Slack",
]
