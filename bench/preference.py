"""Preference queries, disorder and control: what they cost, and what policies do with bursts.

`--virtual` runs what is measured in virtual time: the same figures on every machine. `--real` runs
what is timed.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import (
    preference_disorder,
    preference_farm,
    preference_panes,
    preference_parts,
    preference_real,
)
from bench.harness import Measure


def run() -> list[Measure]:
    """Everything."""
    return [measure for part in OPTIONS.values() for measure in part()]


def virtual() -> list[Measure]:
    """In virtual time."""
    return [
        *preference_parts.measured(),
        *preference_panes.measured(),
        *preference_farm.virtual(),
        *preference_disorder.measured(),
    ]


def real() -> list[Measure]:
    """By the clock: in one process, and with two workers."""
    return [*preference_real.measured(), *preference_farm.real()]


OPTIONS: dict[str, Callable[[], list[Measure]]] = {"--virtual": virtual, "--real": real}
