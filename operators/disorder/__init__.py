"""Rows that come out of order: how long to wait for them, and how to put them in order."""

from operators.disorder.adaptive import PidSlack, QuantileSlack
from operators.disorder.panes import Panes
from operators.disorder.reorder import Reorder
from operators.disorder.slack import FixedSlack, KSlack, Slack

__all__ = [
    "FixedSlack",
    "KSlack",
    "Panes",
    "PidSlack",
    "QuantileSlack",
    "Reorder",
    "Slack",
]
