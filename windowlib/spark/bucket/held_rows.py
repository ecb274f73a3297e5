"""Rows of a stream that wait for the clock of event time, which is Spark's watermark.

A row waits until the watermark has passed its time. Then all that have waited are taken in the
order of time, whichever micro-batches brought them, so a stream does what a sorted DataFrame does.
A row whose time the watermark has passed before it comes is late: it is dropped, and counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.columnar.arrays.stamps import Stamps, stamps_of
from windowlib.spark.plan.input_merge import merged_inputs, time_order
from windowlib.window.arrow import Times

SPAN = struct.Struct("<qq")
"""The times of the first and the last row of a task."""


class HeldRows:
    """The rows of each input of a bucket that the watermark has not passed yet.

    Args:
        times: the column with the time of a row.
        inputs: how many inputs there are.
    """

    def __init__(self, times: str, inputs: int) -> None:
        self.times = times
        self.pieces: list[list[tuple[pa.Table, Stamps]]] = [[] for _ in range(inputs)]
        """For each input its rows with their times, as they came."""
        self.mark: int | None = None
        """The watermark, in microseconds."""
        self.first: int | None = None
        self.last: int | None = None
        """The least and the greatest time of the whole stream, as far as it is known here."""
        self.started = False
        """Whether the clock of the bucket has started."""
        self.late = 0

    def add(self, table: pa.Table, port: int) -> None:
        """Let rows wait, but for those that are late."""
        stamps = read_times(table, self.times)
        if self.mark is not None and bool((late := stamps < self.mark).any()):
            self.late += int(late.sum())
            table, stamps = table.filter(pa.array(~late)), stamps[~late]
        if len(stamps):
            self.pieces[port].append((table, stamps))
            self.widen(int(stamps.min()), int(stamps.max()))

    def widen(self, first: int, last: int) -> None:
        """The stream has rows of these times; a late one counts as of where the watermark is."""
        if self.mark is not None:
            first, last = max(first, self.mark), max(last, self.mark)
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def starts(self) -> int | None:
        """When the clock starts, if it does so now: with the first row of the whole stream.

        That row is known once the watermark has passed it, as no other may come before it.
        """
        known = self.first is not None and self.mark is not None and self.first < self.mark
        if self.started or not known or not any(self.pieces):
            return None
        self.started = True
        return self.first

    def passed(self, orders: Sequence[Any]) -> Iterator[tuple[int, pa.Table]]:
        """Take the rows that the watermark has passed, in the order of time, with their inputs.

        Args:
            orders: for each input, the columns that order rows of one time, or None.
        """
        tables: list[pa.Table | None] = []
        for port, pieces in enumerate(self.pieces):
            taken: list[pa.Table] = []
            self.pieces[port] = []
            for table, stamps in pieces:
                over = np.ones(len(stamps), bool) if self.mark is None else stamps < self.mark
                if over.all():
                    taken.append(table)
                    continue
                if over.any():
                    taken.append(table.filter(pa.array(over)))
                    table, stamps = table.filter(pa.array(~over)), stamps[~over]
                self.pieces[port].append((table, stamps))
            tables.append(pa.concat_tables(taken) if taken else None)
        return merged_inputs(tables, [time_order(self.times, order) for order in orders])

    def due(self) -> int | None:
        """The least watermark that passes a row; None if none waits."""
        found = [int(stamps.min()) for pieces in self.pieces for _, stamps in pieces]
        return min(found) + 1 if found else None

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data."""
        rows = [
            stream_bytes(joined([table for table, _ in pieces])) if pieces else b""
            for pieces in self.pieces
        ]
        known = [self.mark, self.first, self.last, self.started, self.late]
        return {"rows": rows, "known": known}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        self.mark, self.first, self.last, self.started, self.late = state["known"]
        for port, data in enumerate(state["rows"]):
            self.pieces[port] = []
            if data:
                table = stream_table(data)
                self.pieces[port] = [(table, read_times(table, self.times))]


def joined(tables: Sequence[pa.Table]) -> pa.RecordBatch:
    """Rows of several tables in one batch."""
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
    return batch


def read_times(rows: Any, times: str) -> Stamps:
    """When rows arrive, in microseconds; a value that is no point in time is refused."""
    column = rows.column(times)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if (found := stamps_of(column)) is not None:
        return found
    read = Times(times)
    return np.array([read({times: value}) for value in column.to_pylist()], np.int64)
