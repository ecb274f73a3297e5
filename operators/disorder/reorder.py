"""Reorder: rows in the order of their timestamps, as soon as none before them is waited for."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from windowlib.durations import Amount, Duration, Number
from windowlib.event_time.slack import Slack, SlackState
from windowlib.extensions import extension
from windowlib.operators.arguments import Late
from windowlib.operators.disorder.disorder_operator import (
    BufferedRows,
    DisorderOperator,
    Entry,
    KeyBuffer,
)
from windowlib.runtime.running import collect_failures
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import By
from windowlib.window.arrow import OutputColumns, exact_array, rows_of
from windowlib.window.failure import raise_first


class ReorderBuffer(KeyBuffer):
    """The rows of one key that wait."""

    def __init__(self, key: Any, state: SlackState) -> None:
        super().__init__(key, state)
        self.held: list[Entry] = []
        """A heap."""


class Reorder(DisorderOperator):
    """Rows in the order of their timestamps; equal ones in the order in which they came.

    The slack says up to where the stream is complete, the punctuation P. A row waits until P has
    reached its timestamp, and then comes out behind all that are smaller. A row that is behind P
    when it comes is late. At the end of the input everything comes out. Window punctuations that
    come in end here.

    Args:
        ts: the timestamp: a column, an index or a callable. Its values are numbers or datetimes.
        slack: how long to wait: a duration or a number, or one of `FixedSlack`, `KSlack`,
            `QuantileSlack` and `PidSlack`.
        late: what becomes of a late row: "drop" it; send it to a "port" of its own, named late;
            or "error". `running.operator.late_rows` counts them.
        idle: after how long without a row everything that is held comes out, by the operator's
            clock. What then comes with an earlier timestamp is late.
        by: the key: each has a slack, an order and an idle time of its own.
        name: what messages and graphs call it.

    >>> from windowlib import replay
    >>> rows = [{"ts": ts} for ts in (3, 1, 2, 6, 4, 1, 9)]
    >>> result = replay(Reorder("ts", slack=2, late="port"), rows)
    >>> [row["ts"] for row in result], result.port("late")
    ([1, 2, 3, 4, 6, 9], [{'ts': 1}])
    """

    def __init__(
        self,
        ts: Attribute,
        *,
        slack: Slack | Amount | str,
        late: Late = "drop",
        idle: Duration | None = None,
        by: By | Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self._number = 0
        super().__init__(ts, slack, (), late, idle, by, name)

    def _new_buffer(self, key: Any) -> ReorderBuffer:
        return ReorderBuffer(key, self.slack.start())

    def _is_late(self, buffer: ReorderBuffer, ts: Number) -> bool:
        reached = buffer.state.punctuation
        return reached is not None and ts < reached

    def _observe_many(self, buffer: ReorderBuffer, ts: Any) -> tuple[Any, Any]:
        reached = buffer.state.observe_many(ts)  # the punctuation after each
        return reached, ts < reached

    def _admit(self, buffer: ReorderBuffer, ts: Number, row: Any) -> None:
        reached = buffer.state.observe(ts)
        self._number += 1
        heapq.heappush(buffer.held, (ts, self._number, row))
        if buffer.held[0][0] <= reached:
            failures: list[Exception] = []
            self._drain(buffer, failures)
            raise_first(failures)

    def _drain(self, buffer: ReorderBuffer, failures: list[Exception]) -> None:
        held, pop, send = buffer.held, heapq.heappop, self._send
        reached: Any = buffer.state.punctuation  # None only where nothing is held
        while held and held[0][0] <= reached:
            send(pop(held)[2], failures)

    # -- whole batches ----------------------------------------------------------------------------

    def _worthwhile(self, batch: Any) -> bool:
        # A batch visits all held rows, a single row only a few. Measured: arrays win while no more
        # rows are held than a batch has, and lose where there are eight times as many.
        held = sum(len(buffer.held) for buffer in self._buffers.values())
        return bool(4 * batch.num_rows >= held)

    def _admit_many(
        self, batch: Any, taken: Sequence[BufferedRows], failures: list[Exception]
    ) -> None:
        out, base = ReleasedRows(batch), self._number + 1
        self._number += batch.num_rows
        for each in taken:
            self._release_rows(each, out, base)
            if self.late == "port":
                late = each.at[each.late]
                out.add(late, late, each.ts[each.late], base, late=True)
        if self._many is not None and (columns := out.columns()) is not None:
            if columns[1]:
                with collect_failures(failures):
                    self._many(OutputColumns(*columns))
            send = out.late_rows()
        else:
            send = out.rows()
        for row, late in send:
            try:
                self._outputs[int(late)](row)
            except Exception as error:
                failures.append(error)

    def _release_rows(self, taken: BufferedRows, out: ReleasedRows, base: int) -> None:
        """Add the held and new rows that P has reached to `out`, and hold the others."""
        import numpy as np

        buffer, at, ts, reached, late = taken
        buffer.held.sort()  # still a heap
        old = bisect_right(buffer.held, reached[-1].item(), key=itemgetter(0))
        leaving, buffer.held = buffer.held[:old], buffer.held[old:]
        if leaving:
            stamps = np.array([entry[0] for entry in leaving], ts.dtype)
            cause = at[np.searchsorted(reached, stamps, side="left")]
            out.add_held(leaving, cause, stamps)
        going = ~late & (ts <= reached[-1])
        first = np.searchsorted(reached, ts[going], side="left")
        out.add(np.maximum(at[going], at[first]), at[going], ts[going], base)
        staying = np.flatnonzero(~late & ~going)
        if len(staying):
            places = at[staying]
            rows = rows_of(batch_rows(out.batch, places))
            entries = zip(ts[staying].tolist(), (base + places).tolist(), rows, strict=True)
            buffer.held.extend(entries)
            buffer.held.sort()

    # -- state ------------------------------------------------------------------------------------

    def _dump_buffer(self, buffer: ReorderBuffer) -> Any:
        return [[ts, row] for ts, _, row in sorted(buffer.held, key=itemgetter(0, 1))]

    def _load_buffer(self, buffer: ReorderBuffer, held: Any) -> None:
        buffer.held = [(ts, number, row) for number, (ts, row) in enumerate(held)]
        self._number = max(self._number, len(held))


def batch_rows(batch: Any, places: Any) -> Any:
    """The rows of a batch at these places."""
    import pyarrow as pa

    return extension("gather_rows")(batch, pa.array(places))


class ReleasedRows:
    """The rows that leave during a batch: of the batch, and those that were held before.

    They leave in the order of what lets them go, the row of the batch that is their cause; then of
    timestamps, then of arrival.
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self._held: list[Any] = []
        self._parts: list[tuple[Any, ...]] = []  # cause, timestamp, number, place, late

    def add(self, cause: Any, at: Any, ts: Any, base: int, late: bool = False) -> None:
        """Rows of the batch."""
        import numpy as np

        self._parts.append((cause, ts, base + at, at, np.full(len(at), late)))

    def add_held(self, entries: Sequence[Entry], cause: Any, ts: Any) -> None:
        """Rows that were held; their places are behind those of the batch."""
        import numpy as np

        numbers = np.array([number for _, number, _ in entries])
        first = self.batch.num_rows + len(self._held)
        places = np.arange(first, first + len(entries))
        self._held += [row for _, _, row in entries]
        self._parts.append((cause, ts, numbers, places, np.zeros(len(entries), bool)))

    def _order(self) -> tuple[Any, Any]:
        """Places, and which are late, in the order of leaving."""
        import numpy as np

        cause, ts, number, place, late = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.lexsort((number, ts, cause))
        return place[order], late[order]

    def rows(self) -> Sequence[tuple[Any, bool]]:
        """All rows, each with whether it is late."""
        places, late = self._order()
        every = [*rows_of(self.batch), *self._held]
        return [(every[p], bool(f)) for p, f in zip(places.tolist(), late.tolist(), strict=True)]

    def late_rows(self) -> Sequence[tuple[Any, bool]]:
        """The late rows."""
        places, late = self._order()
        return [(row, True) for row in rows_of(batch_rows(self.batch, places[late]))]

    def columns(self) -> tuple[dict[str, Any], int] | None:
        """The rows that are not late, as Arrow arrays by name; None if held rows do not fit."""
        import pyarrow as pa

        from windowlib.columnar.arrays.physical import gather

        places, late = self._order()
        places = places[~late]
        names = self.batch.schema.names
        if not all(type(row) is dict and list(row) == names for row in self._held):
            return None
        where = pa.array(places)
        found = {}
        for field, column in zip(self.batch.schema, self.batch.columns, strict=True):
            whole = column
            if self._held:
                try:
                    more = exact_array([row[field.name] for row in self._held], field.type)
                    whole = pa.concat_arrays([column, more])
                except (pa.ArrowException, OverflowError, TypeError, ValueError):
                    return None
            found[field.name] = gather(whole, where)
        return found, len(places)
