"""Figures of the papers, from our own measurements: `python -m bench figures NAME`.

Each name measures, writes its pictures into bench/out, and returns what was measured.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import figures_engines, figures_farms
from bench.harness import Measure


def run() -> list[Measure]:
    """Everything."""
    return [measure for figure in OPTIONS.values() for measure in figure()]


OPTIONS: dict[str, Callable[[], list[Measure]]] = {
    "engines": figures_engines.run,
    "farms": figures_farms.run,
}
