"""How a consumer of firings says which row of the batch was at fault."""

from __future__ import annotations


class Failed(Exception):  # noqa: N818 - a message, not an error
    """Whoever was told of a firing raised; `row` of the batch had caused it."""

    def __init__(self, row: int, error: Exception) -> None:
        super().__init__(row, error)
        self.row, self.error = row, error
