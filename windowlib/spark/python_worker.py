"""The Python worker that runs the task at hand: Spark keeps it for many tasks, of many queries."""

from __future__ import annotations

import gc
import sys

from pyspark import TaskContext

_loaded = 0  # modules that garbage collections leave out


def run_of(nonce: str) -> str:
    """Which run of which query the task at hand belongs to."""
    context = TaskContext.get()
    group = None if context is None else context.getLocalProperty("spark.jobGroup.id")
    return f"{nonce} {group or ''}"


def end_task() -> None:
    """Keep what a task has loaded out of garbage collections from now on.

    Spark collects garbage after every task, and the worker takes no other one before that is done.
    It looks at all objects: with numpy, Arrow and compiled loops, that takes about as long as to
    fold a million rows. Modules stay for good, so it need not look at what they hold.
    """
    global _loaded
    if TaskContext.get() is not None and len(sys.modules) > _loaded:
        _loaded = len(sys.modules)
        gc.collect()  # what is garbage now would never be found again
        gc.freeze()
