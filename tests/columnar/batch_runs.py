"""Operators fed with batches in every way, and what they give."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from windowlib import Operator
from windowlib.runtime.running import Running

PUNCT = "punct"


class Fed:
    """A running operator whose outputs are written down, fed with rows or with batches of them."""

    def __init__(self, op: Operator, *, batches: bool) -> None:
        self.op, self.batches = op, batches
        self.out: list[tuple[int, str]] = []
        self.rows: list[Any] = []  # of the first output, as they came
        self.took = self.given = 0  # batches that went in as columns, of how many
        self.running = self._open()

    def _open(self) -> Running:
        running = self.op.open()
        for port in range(len(running.model.outputs)):
            running.connect(port, self._row(port), self._mark(port))
        return running

    def _row(self, port: int) -> Any:
        def send(row: Any) -> None:
            # As text: NaN does not equal itself, and 1 is not to be taken for 1.0 or True.
            self.out.append((port, repr(row)))
            if not port:
                self.rows.append(row)

        return send

    def _mark(self, port: int) -> Any:
        return lambda: self.out.append((port, PUNCT))

    def batch(self, table: pa.Table, port: int = 0) -> None:
        if not self.batches:
            self.running.insert_many(table.to_pylist(), port)
            return
        self.running.insert_batch(table, port)
        if table.num_rows:
            self.given += 1
            self.took += self.in_arrays

    @property
    def in_arrays(self) -> bool:
        return any(window.state.in_arrays for window in self.running._live)

    @property
    def reason(self) -> str:
        """Why the last batch did not go in as columns."""
        (window,) = self.running._live
        return window.state.handover().reason

    def restart(self) -> None:
        state = pickle.loads(pickle.dumps(self.running.snapshot()))
        self.running = self._open()
        self.running.restore(state)

    def step(self, what: str, value: Any, port: int = 0) -> None:
        if what == "batch":
            self.batch(value, port)
        elif what == "rows":
            for row in value.to_pylist():
                self.running.insert(row, port)
        elif what == "restart":
            self.restart()
        elif what == "punct":
            self.running.punctuate(port)
        elif what == "advance":
            self.running.advance(self.running.now + value.num_rows / 4)

    def end(self) -> None:
        self.running.finish()


def compared(op: Operator, steps: Iterable[tuple[Any, ...]], *, end: bool = True) -> Fed:
    """Both ways give the same, step by step, and end in the same state; the one with batches."""
    rows, columns = Fed(op, batches=False), Fed(op, batches=True)
    for step in steps:
        for fed in (rows, columns):
            fed.step(*step)
        assert rows.out == columns.out, step
    assert repr(rows.running.snapshot()) == repr(columns.running.snapshot())
    if end:
        rows.end()
        columns.end()
        assert rows.out == columns.out, "end"
    return columns
