"""The consumer of the firings of whole batches, and how a batch is declined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Consumer:
    """What an operator does with the firings of whole batches, in place of handler calls.

    It is given to the container when that is made. Rows that come one by one go to the handlers.

    Args:
        fired: takes all firings of a batch at once; None: the handlers are called for each.
        partial: whether it is told of windows that have never been full, too.
        guard: looks at a batch before it is taken, and declines one with rows it may refuse.
        engine: makes the columnar engine for windows that keep tuples, from window and schema.
    """

    fired: Callable[[Any], None] | None = None
    partial: bool = True
    guard: Callable[[Any], None] | None = None
    engine: Callable[..., Any] | None = None


class Decline(Exception):  # noqa: N818 - a refusal, not an error: the event engine takes over
    """A batch that array arithmetic cannot do exactly; the message says why."""


class FiringFailed(Exception):  # noqa: N818 - a message, not an error
    """A consumer raised for a firing; `row` is the row of the batch that caused the firing."""

    def __init__(self, row: int, error: Exception) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error
