"""A farm at work, live: a line on a terminal that is written over, or a cell of a notebook."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from windowlib.farms.figures import FarmFigures
from windowlib.tools.commands.meter import is_terminal


def live(running: Any, every: float = 1.0, out: TextIO | None = None) -> None:
    """Show the figures of a running farm while it works.

    There are no threads: the figures change in the calls that put rows in or wait for results.

    Args:
        running: what `open` of a farm gave.
        every: seconds between two looks.
        out: where to write; the cell of a notebook, or else standard error.

    >>> from windowlib import Count, Tumbling
    >>> from windowlib.farms import WindowFarm
    >>> from windowlib.operators import Aggregate, agg
    >>> with WindowFarm(Aggregate(Tumbling(Count(2)), s=agg.sum("x")), workers=2).open() as running:
    ...     live(running, every=0.5)
    ...     running.insert_many([{"x": 1}, {"x": 2}])
    """
    cell = _cell() if out is None else None
    running.observe(Line(out or sys.stderr) if cell is None else cell, every)


class Line:
    """Figures on a terminal: each line takes the place of the one before."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._over = out, is_terminal(out)

    def __call__(self, figures: FarmFigures) -> None:
        """Write them."""
        self._out.write(f"\r\x1b[K{figures}" if self._over else f"{figures}\n")
        self._out.flush()


def _cell() -> Any:
    """What shows figures in the cell of a notebook; None if there is no notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    if "IPKernelApp" not in getattr(get_ipython(), "config", {}):
        return None
    handle = display(FarmFigures("caller"), display_id=True)
    return handle.update
