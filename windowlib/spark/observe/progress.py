"""A query's figures while it runs, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from windowlib.errors import ModelError
from windowlib.spark.observe.metrics import Sums, Totals

LOOK = 0.5
"""Seconds between two looks at most: Spark keeps 100 batches, and makes fewer in that time."""
WIDTH = 79


def progress(query: Any, every: float = 1.0, out: TextIO | None = None) -> Totals:
    """Show what the operators of a query do, until it ends or Ctrl-C; the totals.

    In a terminal it is a block that stays in its place, in a notebook a table, and elsewhere
    one line whenever something has changed. It starts with the batches that Spark still knows,
    which are the last 100; a `Listener` has seen them all.

    Ctrl-C ends the watching, not the query. If the query has failed, its exception is raised after
    the last figures.

    Args:
        query: what `start()` gave.
        every: seconds between two views.
        out: where to write; `sys.stdout` unless given.
    """
    if isinstance(every, bool) or not isinstance(every, int | float) or not every > 0:
        raise ModelError(f"progress(every={every!r}): not a time. Use seconds, more than 0.")
    view = ProgressView(sys.stdout if out is None else out, plain=out is not None)
    sums, failure = Sums(), None
    try:
        alive, shown = True, float("-inf")
        while alive:
            alive = query.isActive  # asked first, so that the last look comes after the end
            look(query, sums)
            if not alive or time.monotonic() - shown >= every:
                view.show(sums.totals())
                shown = time.monotonic()
            if alive:
                time.sleep(min(every, LOOK))
        failure = query.exception()
    except KeyboardInterrupt:
        look(query, sums)
        view.show(sums.totals())
    view.end()
    if failure is not None:
        raise failure
    return sums.totals()


def look(query: Any, sums: Sums) -> None:
    """Add what is new among the batches that Spark still knows."""
    for each in query.recentProgress:
        sums.add(each)


class ProgressView:
    """Where totals are shown: again in the same place, or line by line."""

    def __init__(self, out: TextIO, *, plain: bool) -> None:
        self.out, self.last = out, ""
        self.height = 0
        self.update: Callable[[Totals], None] | None = None if plain else notebook()
        self.block = self.update is None and bool(getattr(out, "isatty", lambda: False)())

    def show(self, totals: Totals) -> None:
        """Show totals, if they have changed."""
        text = "\n".join(totals.lines()) if self.block else totals.line()
        if text == self.last or (not self.block and not totals.batches):
            return
        self.last = text
        if self.update is not None:
            self.update(totals)
            return
        back = f"\x1b[{self.height}A" if self.height else ""  # up to the first line
        lines = [
            f"{line[:WIDTH]}{chr(27) + '[K' if self.block else ''}" for line in text.split("\n")
        ]
        self.out.write(back + "\n".join(lines) + "\n")
        self.out.flush()
        self.height = len(lines) if self.block else 0

    def end(self) -> None:
        """Nothing comes after this."""
        self.out.flush()


def notebook() -> Callable[[Totals], None] | None:
    """What shows totals in a notebook's cell, each time in place of the last; None elsewhere."""
    shell = sys.modules.get("IPython")  # in a notebook, somebody has imported it
    kernel = None if shell is None else getattr(shell.get_ipython(), "kernel", None)
    if shell is None or kernel is None:
        return None
    handle: Any = None

    def update(totals: Totals) -> None:
        nonlocal handle
        if handle is None:
            handle = shell.display.display(totals, display_id=True)
        else:
            handle.update(totals)

    return update
