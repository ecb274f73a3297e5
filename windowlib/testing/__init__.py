"""A kit for testing operators: scripts, transcripts, one answer everywhere, and contracts.

Only `strategies` needs Hypothesis, and only the fixtures need pytest, which finds them by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowlib.runtime.marks import advance, punct, restart, to
    from windowlib.testing import strategies
    from windowlib.testing.contracts import OperatorContract, SummarizerContract
    from windowlib.testing.same_everywhere import assert_same_everywhere
    from windowlib.testing.scripts import Script, script
    from windowlib.testing.transcripts import assert_golden, transcript
    from windowlib.testing.window_matrix import configurations
    from windowlib.window.clock import HandClock

_MODULES = {
    "HandClock": "windowlib.window.clock",
    "OperatorContract": "windowlib.testing.contracts",
    "Script": "windowlib.testing.scripts",
    "SummarizerContract": "windowlib.testing.contracts",
    "advance": "windowlib.runtime.marks",
    "assert_golden": "windowlib.testing.transcripts",
    "assert_same_everywhere": "windowlib.testing.same_everywhere",
    "configurations": "windowlib.testing.window_matrix",
    "punct": "windowlib.runtime.marks",
    "restart": "windowlib.runtime.marks",
    "script": "windowlib.testing.scripts",
    "to": "windowlib.runtime.marks",
    "transcript": "windowlib.testing.transcripts",
}
__all__ = [
    "HandClock",
    "OperatorContract",
    "Script",
    "SummarizerContract",
    "advance",
    "assert_golden",
    "assert_same_everywhere",
    "configurations",
    "punct",
    "restart",
    "script",
    "strategies",
    "to",
    "transcript",
]


def __getattr__(name: str) -> Any:
    """Load a name on first use: pytest imports this package in every run, used or not."""
    if name == "strategies":
        return import_module("windowlib.testing.strategies")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
