"""One operator, fed in every way there is: each must send the same rows and punctuations."""

from itertools import pairwise
from typing import Any

import pyarrow as pa

from windowlib.columnar import handover
from windowlib.operators.preference import preference_rules

END = "|"
"""Stands for a punctuation."""


class Fed:
    """A running operator, and all that it has sent."""

    def __init__(self, operator):
        self.operator, self.sent = operator, []
        self.open()

    def open(self):
        self.running = self.operator.open()
        self.running.connect(0, self.sent.append, lambda: self.sent.append(END))

    def restart(self, arrays):
        state = self.running.snapshot(arrays=arrays)
        self.open()
        self.running.restore(state)


def by_row(operator, rows):
    fed = Fed(operator)
    for row in rows:
        fed.running.insert(row)
    fed.running.finish()
    return fed.sent


def by_batch(operator, rows, cuts=(), schema=None, restarts: Any = None):
    """The rows in batches; after each, with `restarts`, a new operator goes on."""
    fed = Fed(operator)
    edges = [0, *sorted(cuts), len(rows)]
    for lo, hi in pairwise(edges):
        if hi > lo:
            fed.running.insert_batch(pa.RecordBatch.from_pylist(rows[lo:hi], schema=schema))
        if restarts is not None:
            fed.restart(restarts)
    fed.running.finish()
    return fed.sent


def by_table(operator, rows, cuts=(), schema=None):
    """What `process_batch` gives, which has no punctuations."""
    running = operator.open()
    found = []
    edges = [0, *sorted(cuts), len(rows)]
    for lo, hi in pairwise(edges):
        batch = pa.RecordBatch.from_pylist(rows[lo:hi], schema=schema)
        found += running.process_batch(batch).to_pylist()
    running.connect(0, found.append)
    running.finish()
    return found


def arrays_from_the_first_row_on(monkeypatch):
    """Small batches go into arrays, too, and windows that overlap share short slices."""
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(preference_rules, "SLICE", 2)
