"""Panes: windows of event time, filled in any order, that come out whole and in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from windowlib.durations import Amount, Duration, Number, amount_of, amount_text, length
from windowlib.errors import ModelError
from windowlib.event_time.axis import DAY, Grid
from windowlib.event_time.slack import Slack, SlackState
from windowlib.extensions import extension
from windowlib.operators.arguments import Late, as_dict
from windowlib.operators.arrow_output import (
    decoded_type,
    pass_through_schema,
    schema_with,
)
from windowlib.operators.base import unchanged
from windowlib.operators.disorder.disorder_operator import (
    BufferedRows,
    DisorderOperator,
    Entry,
    KeyBuffer,
)
from windowlib.runtime.model import OperatorModel
from windowlib.runtime.running import collect_failures
from windowlib.runtime.splitting import names_in
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import By
from windowlib.window.arrow import OutputColumns, rows_of
from windowlib.window.consumer import Decline
from windowlib.window.failure import raise_first

EMPTY = 1000
"""How many empty windows in a row come out, unless given."""
ARRIVAL = itemgetter(0, 1)
MOST = 32
"""Rows that wait for each row of a batch, from which on moving them costs more than it gains."""
FEW_HELD = 4
"""The same for rows that came one by one, and have to become columns first."""


class OpenPanes(KeyBuffer):
    """The windows of one key that are not closed."""

    def __init__(self, key: Any, state: SlackState, number: int) -> None:
        super().__init__(key, state)
        self.number = number
        """Of the buffer, from 0 on."""
        self.slices: dict[int, list[Entry]] = {}
        """Rows by the last window that they belong to."""
        self.bound: int | None = None
        """The first window that is not closed; None before the first row."""
        self.begun = False
        """Whether a window has come out, so that empty ones behind it count."""
        self.punctuation: Number | None = None
        """The punctuation up to which windows are closed."""


class Panes(DisorderOperator):
    """Windows over timestamps: all rows of a window together, then a window punctuation.

    A row goes straight to its window, in whatever order rows come. The slack says up to where the
    stream is complete, the punctuation P; a window closes when P reaches its end, and then comes
    out, after all earlier ones. So `Tumbling(Punct())` behind it is a window of event time, for
    any operator. Rows of one window come in the order of their timestamps, equal ones as they came.

    A row is late if all its windows are closed; that P is past its timestamp does not matter. At
    the end of the input all windows come out. Window punctuations that come in end here.

    An empty window between others is a punctuation alone. There are at most `empty` in a row, and
    none before the first row: after a gap of years not every second of it comes out.

    Args:
        ts: the timestamp: a column, an index or a callable. Its values are numbers or datetimes.
        size: how long a window is: a duration for datetimes, a number for numbers.
        slack: how long to wait: a duration or a number, or one of `FixedSlack`, `KSlack`,
            `QuantileSlack` and `PidSlack`.
        every: how far apart windows begin, up to `size`, which it is unless given. Less than that
            makes windows overlap, and a row comes out once for each of its windows.
        offset: where a window begins; all others follow from it. Unless given, at 0 or 1970-01-01.
        start: the name of a column to add to each row: where the window begins.
        empty: how many empty windows in a row give a punctuation; 0 for none.
        late: what becomes of a late row: "drop" it; send it to a "port" of its own, named late;
            or "error". `running.operator.late_rows` counts them.
        idle: after how long without a row all windows with rows close, by the operator's clock.
        by: the key: each has a slack, windows and an idle time of its own.
        name: what messages and graphs call it.

    >>> from windowlib.operators import Aggregate, agg
    >>> from windowlib import Punct, Tumbling, replay
    >>> panes = Panes("ts", size=10, slack=5, start="from")
    >>> sums = Aggregate(Tumbling(Punct()), {"from": agg.first("from")}, n=agg.count())
    >>> rows = [{"ts": ts} for ts in (1, 12, 7, 13, 26, 9, 40)]
    >>> list(replay(panes.then(sums), rows))
    [{'from': 0, 'n': 2}, {'from': 10, 'n': 2}, {'from': 20, 'n': 1}, {'from': 40, 'n': 1}]
    """

    model = OperatorModel(punctuation_out="generating")

    def __init__(
        self,
        ts: Attribute,
        *,
        size: Amount | str,
        slack: Slack | Amount | str,
        every: Amount | str | None = None,
        offset: Amount | str = 0,
        start: str | None = None,
        empty: int = EMPTY,
        late: Late = "drop",
        idle: Duration | None = None,
        by: By | Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        owner = f"Panes({ts!r}, "
        self.size = amount_of(size, f"{owner}size={size!r})", "more")
        step = size if every is None else every
        self.every = amount_of(step, f"{owner}every={step!r})", "more")
        self.offset = amount_of(offset, f"{owner}offset={offset!r})", "0")
        _check_options(owner, start, empty)
        self.start, self.empty, self._number = start, empty, 0
        self._columns: Any = None  # has the rows of open windows while they come in batches
        amounts = [("size", self.size), ("every", self.every), ("offset", self.offset)]
        super().__init__(ts, slack, amounts, late, idle, by, name)
        self._starts = Grid(self.every, self.offset)
        self._ends = self._starts.shifted(self.size)
        if length(self.every) > length(self.size):
            msg = (
                f"{owner}size={amount_text(self.size)}, every={amount_text(self.every)}): rows "
                f"between two windows would be lost. Use an `every` up to the size."
            )
            raise ModelError(msg)

    def punctuates_by(self, port: int) -> tuple[str, ...]:
        """By its key: a punctuation follows the rows of one window of one key."""
        return names_in(self.by) or () if port == 0 and unchanged(self) else ()

    # -- windows by number ------------------------------------------------------------------------

    def _last_window(self, ts: Any) -> Any:
        """The last window that a timestamp, or each of an array, belongs to."""
        return _grid_index(self._starts, ts)

    def _first_window(self, ts: Any) -> Any:
        """The first window that a timestamp belongs to; for P, the first that is open."""
        return _grid_index(self._ends, ts) + 1

    # -- late or not ------------------------------------------------------------------------------

    def _new_buffer(self, key: Any) -> OpenPanes:
        return OpenPanes(key, self.slack.start(), len(self._buffers))

    def _is_late(self, buffer: OpenPanes, ts: Number) -> bool:
        return buffer.bound is not None and bool(self._last_window(ts) < buffer.bound)

    def _observe_many(self, buffer: OpenPanes, ts: Any) -> tuple[Any, Any]:
        """From which rows on another window is the first open one, and which; late rows."""
        at, closed = buffer.state.observe_points(ts, self._ends)
        bounds = closed + 1
        if buffer.bound is not None and bounds[0] < buffer.bound:  # windows have closed for no row
            bounds = bounds.clip(buffer.bound)
        return (at, bounds), self._starts.behind(ts, at, bounds)

    # -- at work ----------------------------------------------------------------------------------

    def _admit(self, buffer: OpenPanes, ts: Number, row: Any) -> None:
        reached = buffer.state.observe(ts)
        failures: list[Exception] = []
        self._add_row(buffer, int(self._last_window(ts)), ts, row)
        self._advance(buffer, reached, failures)
        raise_first(failures)

    def _add_row(self, buffer: OpenPanes, window: int, ts: Number, row: Any) -> None:
        self._number += 1
        buffer.slices.setdefault(window, []).append((ts, self._number, row))

    def _advance(self, buffer: OpenPanes, reached: Number, failures: list[Exception]) -> None:
        if buffer.punctuation is None or reached > buffer.punctuation:
            buffer.punctuation = reached
            self._close(buffer, int(self._first_window(reached)), failures)

    # -- whole batches ----------------------------------------------------------------------------

    def _worthwhile(self, batch: Any) -> bool:
        """Whether the columns of open windows can take a batch."""
        columns = self._columns
        if columns is not None and columns.schema == batch.schema.remove_metadata():
            return bool(columns.size <= MOST * batch.num_rows)
        self._settle()
        entries = self._entries()
        kind = self._start_type(batch.schema)
        if len(entries) > FEW_HELD * batch.num_rows or not self._starts_fit(kind):
            return False
        schema = batch.schema.remove_metadata()
        grids, keyed = (self._starts, self._ends), self.by is not None
        folded = self.folded_columns if self.start is None else None
        made = extension("pane_columns")(schema, *grids, self.empty, keyed, folded)
        try:
            made.load(entries)
        except Decline:
            return False
        self._lead(made)
        return True

    def _starts_fit(self, kind: Any) -> bool:
        """Whether all starts of windows have one type: not those within the days of dates."""
        import pyarrow as pa

        days = self._starts.step % DAY == 0 and self._starts.origin % DAY == 0
        return self.start is None or days or not pa.types.is_date(kind)

    def _entries(self) -> list[tuple[OpenPanes, int, int, Number, int, Any]]:
        """Lane, first and last window, timestamp, number and row of what came row by row.

        They are in the order of arrival.
        """
        found = [
            (buffer, max(int(self._first_window(ts)), buffer.bound), last, ts, number, row)
            for buffer in self._buffers.values()
            for last, entries in buffer.slices.items()
            for ts, number, row in entries
        ]
        return sorted(found, key=itemgetter(4))

    def _settle(self) -> None:
        """Move the rows of open windows from columns back to their buffers."""
        columns, self._columns = self._columns, None
        if columns is None:
            return
        buffers = {buffer.number: buffer for buffer in self._buffers.values()}
        for number, (buffer, last, ts, row) in enumerate(columns.entries()):
            buffers[buffer].slices.setdefault(last, []).append((ts, number, row))

    def _admit_many(
        self, batch: Any, taken: Sequence[BufferedRows], failures: list[Exception]
    ) -> None:
        assert self._columns is not None
        self._number += batch.num_rows
        released = self._columns.take(batch, taken)
        late: list[int] = []
        if self.late == "port":
            late = sorted(place for each in taken for place in each.at[each.late].tolist())
        self._release(released, batch, late, failures)

    def _release(
        self, released: Any, batch: Any, late: list[int], failures: list[Exception]
    ) -> None:
        """Send windows that have closed, and late rows, in the order of what let them go."""
        many = self._many
        if many is not None:
            if released is not None:
                with collect_failures(failures):
                    many(OutputColumns.of(self._with_starts(released), released.marks))
            released = None
        aside = rows_of(extension("gather_rows")(batch, late)) if late else []
        if released is None:
            for row in aside:
                self._send_late(row, failures)
            return
        rows = rows_of(self._with_starts(released))
        at = done = 0
        for mark, cause in zip(released.marks.tolist(), released.causes.tolist(), strict=True):
            while done < len(late) and late[done] < cause:
                self._send_late(aside[done], failures)
                done += 1
            for row in rows[at:mark]:
                self._send(row, failures)
            at = mark
            self._send_punct(failures)
        for row in aside[done:]:
            self._send_late(row, failures)

    def _with_starts(self, released: Any) -> Any:
        """The rows that come out, with where their windows begin if a column says it."""
        if self.start is None:
            return released.batch
        batch, schema = released.batch, released.batch.schema
        starts = released.start_column(self._starts, schema.field(self.axis.attribute).type)
        place = schema.get_field_index(self.start)
        if place < 0:
            return batch.append_column(self.start, starts)
        return batch.set_column(place, self.start, starts)

    def _send_late(self, row: Any, failures: list[Exception]) -> None:
        with collect_failures(failures):
            self._outputs[1](row)

    # -- closing ----------------------------------------------------------------------------------

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Take a row, and send what may go."""
        if self._columns is not None:
            self._settle()
        super().on_tuple(tuple_, port)

    def on_finish(self) -> None:
        """All windows come out, key by key."""
        if self._columns is None:
            super().on_finish()
            return
        failures: list[Exception] = []
        buffers = list(self._buffers.values())
        for buffer in buffers:
            buffer.state.release()
        self._release(self._columns.let_out(buffers), None, [], failures)
        raise_first(failures)

    def _drain(self, buffer: OpenPanes, failures: list[Exception]) -> None:
        if self._columns is not None:
            self._release(self._columns.let_out([buffer]), None, [], failures)
        elif buffer.slices:
            self._close(buffer, max(buffer.slices) + 1, failures)

    def _close(self, buffer: OpenPanes, bound: int, failures: list[Exception]) -> None:
        """Send all windows before `bound` that have not been sent."""
        # The first row is in no window that ends before P, so there is nothing to send yet.
        at = bound if buffer.bound is None else buffer.bound
        while at < bound:
            target = min(bound, max(at, self._earliest_window(buffer))) if buffer.slices else bound
            for _ in range(min(target - at, self.empty) if buffer.begun else 0):
                self._send_punct(failures)
            if target == bound:
                break
            for row in self._window_rows(buffer, target):
                self._send(row, failures)
            self._send_punct(failures)
            buffer.slices.pop(target, None)
            buffer.begun, at = True, target + 1
        buffer.bound = max(bound, at)

    def _send_punct(self, failures: list[Exception]) -> None:
        with collect_failures(failures):
            self._puncts[0]()

    def _earliest_window(self, buffer: OpenPanes) -> int:
        """The first window of the earliest row."""
        ts, _, _ = min(buffer.slices[min(buffer.slices)], key=ARRIVAL)
        return int(self._first_window(ts))

    def _window_rows(self, buffer: OpenPanes, window: int) -> Iterator[Any]:
        """The rows of a window, in order."""
        for last in sorted(buffer.slices):
            entries = buffer.slices[last]
            entries.sort(key=ARRIVAL)  # nearly in order, if an earlier window had them
            for ts, _, row in entries:
                if self._first_window(ts) > window:
                    return
                yield row if self.start is None else self._with_start(row, window)

    def _with_start(self, row: Any, window: int) -> dict[str, Any]:
        made = as_dict(row, self._owner)
        made[str(self.start)] = self.axis.value(self._starts.point(window), row)
        return made

    # -- state ------------------------------------------------------------------------------------

    def snapshot(self) -> Any:
        """The buffers with their rows, whichever form these have."""
        columns = self._columns
        self._settle()
        state = super().snapshot()
        if columns is not None:
            self._lead(columns)
        return state

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
        super().restore(state)
        self._columns = None
        for number, buffer in enumerate(self._buffers.values()):
            buffer.number = number

    def _lead(self, columns: Any) -> None:
        """The rows of open windows are in columns from now on."""
        for buffer in self._buffers.values():
            buffer.slices = {}
        self._columns = columns

    # -- as the framework asks --------------------------------------------------------------------

    def schema(self, *columns: Any) -> Any:
        """The columns of the input, and where the window begins."""
        found = pass_through_schema(*columns)
        if found is None or self.start is None:
            return found
        fields = [(field.name, field.type) for field in found if field.name != self.start]
        return schema_with([*fields, (self.start, self._start_type(columns[0]))])

    def _start_type(self, schema: Any) -> Any:
        import pyarrow as pa

        name = self.axis.attribute
        index = schema.get_field_index(name) if isinstance(name, str) else -1
        kind = pa.null() if index < 0 else decoded_type(schema.field(index).type)
        if pa.types.is_timestamp(kind):  # windows may begin between two seconds
            return kind if kind.unit == "ns" else pa.timestamp("us", kind.tz)
        if pa.types.is_duration(kind):
            return pa.duration("us")
        if pa.types.is_integer(kind):
            return pa.int64() if self._starts.scale == 1 else pa.float64()
        return pa.float64() if pa.types.is_floating(kind) else kind

    def passes(self, column: str, port: int) -> bool:
        """All but where the window begins; late rows stay as they are."""
        return unchanged(self) and (port == 1 or column != self.start)

    def notes(self) -> Iterable[tuple[str, str]]:
        """The windows, besides what is waited for."""
        overlap = "" if self.every == self.size else f", one every {amount_text(self.every)}"
        yield "panes", f"{amount_text(self.size)} of {self.axis.attribute!r}{overlap}"
        yield from super().notes()

    def _dump_buffer(self, buffer: OpenPanes) -> Any:
        rows = [
            [last, [[ts, row] for ts, _, row in sorted(entries, key=ARRIVAL)]]
            for last, entries in buffer.slices.items()
        ]
        return [rows, buffer.bound, buffer.begun, buffer.punctuation]

    def _load_buffer(self, buffer: OpenPanes, held: Any) -> None:
        rows, buffer.bound, buffer.begun, buffer.punctuation = held
        for last, entries in rows:
            for ts, row in entries:
                self._add_row(buffer, last, ts, row)


def _grid_index(grid: Grid, ts: Any) -> Any:
    """The last point of a grid that is not after a timestamp, or after each of an array."""
    return grid.indexes(ts) if hasattr(ts, "dtype") else grid.index(ts)


def _check_options(owner: str, start: object, empty: object) -> None:
    if start is not None and (not isinstance(start, str) or not start):
        raise ModelError(f'{owner}start={start!r}): not a name. Name a column, as start="from".')
    if isinstance(empty, bool) or not isinstance(empty, int) or empty < 0:
        msg = f"{owner}empty={empty!r}): not a number of windows. Use 0 or more, as empty=1000."
        raise ModelError(msg)
