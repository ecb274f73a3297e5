"""Extensions: what an upper layer offers to the layers below it, by name.

A window asks for the hand-over to arrays, an operator for its drawing or for Spark. None of them
imports what it asks for: `windowlib` registers where each thing is when it is imported, and the
module is loaded at its first use.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_PLACES: dict[str, str] = {}


def register(name: str, place: str) -> None:
    """Register an extension as "module:attribute". A later call replaces an earlier one.

    >>> register("square_root", "math:sqrt")
    >>> extension("square_root")(9)
    3.0
    """
    _PLACES[name] = place
    extension.cache_clear()


@cache
def extension(name: str) -> Any:
    """The extension of this name, loaded with its module."""
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def registered() -> dict[str, str]:
    """All extensions with their places, by name."""
    return dict(_PLACES)
