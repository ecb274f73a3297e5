"""How a consumer of firings says which row of the batch was at fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Failed(Exception):  # noqa: N818 - a message, not an error
    """Whoever was told of a firing raised; `row` of the batch had caused it."""

    def __init__(self, row: int, error: Exception) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error


def failure_of(tell: Callable[[Any], None], firings: Any) -> Failed | None:
    """Tell of firings; what failed, if anything did.

    Whoever raises the error again does so outside of an `except`, so that the error is not said to
    have come up while this one was handled, which has it as its cause.
    """
    try:
        tell(firings)
    except Failed as failed:
        return failed
    return None
