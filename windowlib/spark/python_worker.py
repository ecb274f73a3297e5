"""The Python worker of the present task: Spark keeps it for many tasks, of many queries."""

from __future__ import annotations

import gc
import sys

from pyspark import TaskContext

_loaded = 0  # modules that garbage collections leave out


def run_of(nonce: str) -> str:
    """An identifier of the query run that the present task belongs to."""
    context = TaskContext.get()
    group = None if context is None else context.getLocalProperty("spark.jobGroup.id")
    return f"{nonce} {group or ''}"


def end_task() -> None:
    """Exclude what a task has loaded from later garbage collections.

    Spark collects garbage after every task, before the worker takes another one. That visits all
    objects: with numpy, Arrow and compiled loops, it takes about as long as to fold a million rows.
    Modules stay loaded, so their objects need no visit.
    """
    global _loaded
    if TaskContext.get() is not None and len(sys.modules) > _loaded:
        _loaded = len(sys.modules)
        gc.collect()  # what is garbage now would never be found again
        gc.freeze()
