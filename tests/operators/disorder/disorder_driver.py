"""What the tests of operators on disorder share: everything that comes out, in order."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from windowlib import Operator

MARK = ("out", "punctuation")
Items = list[tuple[str, Any]]


class Watched:
    """A running operator, and what came out of all its ports."""

    def __init__(self, operator: Operator, start: float = 0) -> None:
        self.operator, self.items = operator, list[tuple[str, Any]]()
        self.running = operator.open(start)
        self._connect()

    def _connect(self) -> None:
        for port in self.operator.model.outputs:
            self.running.connect(
                port.name, partial(self._add, port.name), lambda: self.items.append(MARK)
            )

    def _add(self, port: str, row: Any) -> None:
        self.items.append((port, row))

    def restart(self) -> None:
        """Go on from a snapshot, in another running operator."""
        state = pickle.loads(pickle.dumps(self.running.snapshot()))
        self.running = self.operator.open(self.running.now)
        self.running.restore(state)
        self._connect()

    def give(self, rows: Sequence[Any], whole: bool) -> None:
        """Insert rows, one by one or as a batch."""
        if whole:
            self.running.insert_batch(pa.Table.from_pylist(list(rows)))
        else:
            self.running.insert_many(rows)

    @property
    def live(self) -> Any:
        """The operator at work."""
        return self.running.operator

    def taken(self) -> Items:
        """What came out since the last time."""
        found, self.items[:] = list(self.items), []
        return found


def rows_for(stamps: Sequence[Any], keys: Sequence[Any] = ("a",)) -> list[dict[str, Any]]:
    """Rows with these timestamps, numbered, with keys in turn."""
    return [{"ts": ts, "n": n, "k": keys[n % len(keys)]} for n, ts in enumerate(stamps)]


def by_row(operator: Operator, rows: Sequence[Any], restarts: bool = False) -> Items:
    """Everything, if rows come one by one."""
    watched = Watched(operator)
    for row in rows:
        if restarts:
            watched.restart()
        watched.running.insert(row)
    watched.running.finish()
    return watched.items


def by_batch(
    operator: Operator, rows: Sequence[Any], cuts: Sequence[int], restarts: bool = False
) -> Items:
    """Everything, if rows come in batches that are cut at these places."""
    watched = Watched(operator)
    for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        if restarts:
            watched.restart()
        watched.running.insert_batch(pa.Table.from_pylist(list(rows[low:high])))
    watched.running.finish()
    return watched.items


def numbers(items: Items, port: str = "out") -> list[int]:
    """The numbers of the rows of a port."""
    return [row["n"] for name, row in items if name == port and (name, row) != MARK]


def panes_in(items: Items) -> list[list[int]]:
    """The numbers of the rows before each punctuation."""
    found: list[list[int]] = [[]]
    for name, row in items:
        if (name, row) == MARK:
            found.append([])
        elif name == "out":
            found[-1].append(row["n"])
    assert not found[-1], "rows without a punctuation behind them"
    return found[:-1]
