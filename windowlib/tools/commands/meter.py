"""The progress of a command: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

WIDTH = 24
REDRAW_SECONDS = 0.1
"""Seconds between two pictures of the bar."""
LINE_SECONDS = 5.0
"""Seconds between two lines where there is no terminal."""


def is_terminal(out: TextIO) -> bool:
    """Whether output goes to a terminal, where a line can be rewritten."""
    return bool(getattr(out, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def colours(out: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether to use more than plain text: on a terminal, unless NO_COLOR is set."""
    return is_terminal(out) and not environment.get("NO_COLOR")


class Meter:
    """Shows how much of the input is in, and how much has come out.

    >>> meter = Meter(sys.stdout, total=2000)
    >>> meter.update(500, 12)
    >>> meter.text()
    '[######..................]  25%  500 of 2,000 rows in, 12 out'
    """

    def __init__(self, out: TextIO, total: int | None = None, *, quiet: bool = False) -> None:
        self.out, self.total = out, total
        self.rows_in = self.rows_out = 0
        self.bar = is_terminal(out) and not quiet
        self.quiet = quiet
        self._shown = time.monotonic()
        self._drawn = False

    def update(self, rows_in: int, rows_out: int) -> None:
        """Set the numbers of input and output rows, and show them."""
        self.rows_in, self.rows_out = rows_in, rows_out
        self.show(self.text)

    def show(self, text: Callable[[], str]) -> None:
        """Show a text, unless the last one was shown just before."""
        now = time.monotonic()
        if self.quiet or now - self._shown < (REDRAW_SECONDS if self.bar else LINE_SECONDS):
            return
        self._shown = now
        self.clear()
        self.out.write(text() if self.bar else f"{text()}\n")
        self.out.flush()
        self._drawn = self.bar

    def text(self) -> str:
        """The bar, or without a known end the figures alone."""
        if not self.total:
            return f"{self.rows_in:,} rows in, {self.rows_out:,} out"
        part = min(1.0, self.rows_in / self.total)
        full = round(part * WIDTH)
        bar = f"[{'#' * full}{'.' * (WIDTH - full)}] {part:4.0%}"
        return f"{bar}  {self.rows_in:,} of {self.total:,} rows in, {self.rows_out:,} out"

    def clear(self) -> None:
        """Remove the bar from the terminal, before other output."""
        if self._drawn:
            self.out.write("\r\x1b[K")
            self._drawn = False

    def end(self, more: str = "") -> None:
        """The last figures, as a line that stays."""
        self.clear()
        if not self.quiet:
            self.out.write(f"{self.rows_in:,} rows in, {self.rows_out:,} rows out{more}\n")
            self.out.flush()


def terminal_width() -> int:
    """How wide the terminal is, up to 100 columns; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, 100) if sys.stdout.isatty() else 80
