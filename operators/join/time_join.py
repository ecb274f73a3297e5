"""Joins in time: two inputs matched by their timestamps, once both are complete up to there.

What comes out is what the sorted tables would give, whichever input is ahead. Each input has a
watermark; a left row waits until the left one has reached it, and the right one has come so far
that no right row can change its matches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from windowlib.attributes import brief
from windowlib.durations import Amount, Number
from windowlib.errors import DeltaOrderError, ModelError, SchemaError
from windowlib.event_time.axis import Axis
from windowlib.event_time.slack import Slack
from windowlib.extensions import extension
from windowlib.operators.arguments import Columns, Late, slack_of
from windowlib.operators.arrow_output import pass_through_schema
from windowlib.operators.base import unchanged
from windowlib.operators.join.alignment import Alignment, Due, Entry, upto
from windowlib.operators.join.index import key_reader, unhashable_key
from windowlib.operators.join.join_operator import (
    JoinOperator,
    PairFunction,
    Unmatched,
    check_choice,
)
from windowlib.runtime.model import OperatorModel
from windowlib.spec.policies import Attribute, is_attribute
from windowlib.window.arrow import OutputColumns, dict_rows
from windowlib.window.consumer import Decline
from windowlib.window.failure import raise_first

if TYPE_CHECKING:
    from windowlib.columnar.engines.time_join import JoinedPairs, TimeJoinEngine

TimeHow = Literal["left", "inner", "semi", "anti"]
Slacks = Slack | Amount | str | Sequence[Any]
FEW = 256
"""Fewer rows than this are not worth moving the state to arrays."""
SPARE = 64


class PendingRow:
    """A left row whose matches are not final yet."""

    __slots__ = ("due", "key", "number", "row", "ts")

    def __init__(self, ts: Number, number: int, key: Any, row: Any) -> None:
        self.ts, self.number, self.key, self.row = ts, number, key, row
        self.due: Due | None = None  # while it is among those that wait for right rows of its key


class TimeJoin(JoinOperator):
    """The base of joins that wait until both inputs are complete."""

    model = OperatorModel(ports_in=JoinOperator.ports, ports_out=["matches"])
    waits = True

    def __init__(
        self,
        alignment: Alignment,
        amounts: Sequence[tuple[str, Amount]],
        ts: Attribute | None,
        left_ts: Attribute | None,
        right_ts: Attribute | None,
        on: Columns | None,
        left_on: Columns | None,
        right_on: Columns | None,
        how: TimeHow,
        slack: Slacks,
        late: Late,
        suffixes: Sequence[str],
        unmatched: Unmatched,
        select: PairFunction | None,
        name: str | None,
    ) -> None:
        kind = type(self).__name__
        check_choice(kind, "how", how, TimeHow)
        check_choice(kind, "late", late, Late)
        self._set_join(how, (on, left_on, right_on), suffixes, unmatched, select)
        self.alignment, self.late = alignment, late
        self.late_rows = 0
        """How many rows of both inputs came late so far, dropped or not."""
        stamps = _stamps(kind, ts, left_ts, right_ts)
        self.slacks = _slacks(kind, slack)
        owners = [f"{kind}({stamp!r})" for stamp in stamps]
        said = [*(each for one in self.slacks for each in one.amounts), *amounts]
        both = zip(stamps, owners, strict=True)
        self.axes = [Axis(stamp, owner, said) for stamp, owner in both]
        self.model = self._model()
        super().__init__(name=name)

    def _model(self) -> OperatorModel:
        aside = ["unmatched_left"] if self._diverts_unmatched else []
        aside += ["late_left", "late_right"] if self.late == "port" else []
        return OperatorModel(ports_in=self.ports, ports_out=["matches", *aside])

    def reads(self, port: int) -> Iterable[tuple[Attribute, str]]:
        """The timestamp and the key."""
        yield self.axes[port].attribute, self.axes[port].owner
        for column in self._keys.columns[port]:
            yield column, self._keys.owners[port]

    def splits_by(self, port: int) -> tuple[str, ...] | None:
        """By the columns of `on`.

        Not if a row without a match has columns that are called as the other side says.
        """
        if not unchanged(self):
            return super().splits_by(port)
        plain = self._left_rows_only or self._diverts_unmatched or self._select is not None
        if self.how == "left" and self._suffixes[0] and not plain:
            return ()
        pairs = dict.fromkeys(zip(*self._keys.columns, strict=True))
        named = [pair for pair in pairs if all(isinstance(part, str) for part in pair)]
        return tuple(str(pair[port]) for pair in named)

    def natural_order(self, port: int) -> Any:
        """By its timestamp, so that rows which come in no order are not late for no reason."""
        attribute = self.axes[port].attribute
        return attribute if isinstance(attribute, str) else ...

    # -- running ----------------------------------------------------------------------------------

    def on_open(self) -> None:
        """Start without rows."""
        super().on_open()
        self._states = [slack.start() for slack in self.slacks]
        self._ended = [False, False]
        self._numbers = [0, 0]
        self._read = [key_reader(*each) for each in zip(*self._keys, strict=True)]
        self._heap: list[tuple[Number, int, PendingRow]] = []  # until their due time
        self._waiting: dict[Any, list[tuple[Number, int, PendingRow]]] = {}  # for right rows
        self._dues: list[tuple[Due, Number, int, PendingRow]] = []  # when those are final
        self._right_rows: dict[Any, list[Entry]] = {}  # right rows by key
        self._right_count = self._needed_count = 0  # how many, and how many the last clean-up left
        self._engine: TimeJoinEngine | None = None
        self._schemas: list[Any] = [None, None]  # of the last batch of each side
        self._row_by_row = self._rows_reason()

    def watermark(self, port: int) -> Number | None:
        """Up to where an input is complete; None before its first row."""
        return math.inf if self._ended[port] else self._states[port].punctuation

    def on_tuple(self, tuple_: Any, port: int) -> None:
        """Take a row, and send the left rows whose matches are final."""
        self._settle()
        if self._joined_rows is not None:
            names = self._joined_rows.names[port]
            if type(tuple_) is not dict or tuple_.keys() != names:
                self._joined_rows.note(tuple_, port)
        ts, key = self._stamp(tuple_, port), self._key(tuple_, port)
        if ts is None:  # it has no place in time, and so no match
            if port == 0:
                self._send([(tuple_, [])])
            return
        reached = self.watermark(port)
        if reached is not None and ts < reached:
            if self.late == "error":
                self._refuse(tuple_, port)
            self._states[port].observe(ts)
            self._divert_late(tuple_, port)
            return
        self._states[port].observe(ts)
        self._numbers[port] += 1
        number = self._numbers[port]
        if port == 0:
            heapq.heappush(self._heap, (ts, number, PendingRow(ts, number, key, tuple_)))
        elif key is not None:
            self._add_right(key, (ts, number, tuple_))
        self._release()

    def _stamp(self, row: Any, port: int) -> Number | None:
        axis = self.axes[port]
        value = axis.get(row)
        if value is None or value != value:
            return None
        found = axis.place(value, row)
        other = self.axes[1 - port]
        if other.timed is not axis.timed or other.form is not axis.form:  # one kind for both
            other.timed, other.form = axis.timed, axis.form
        return found

    def _key(self, row: Any, port: int) -> Any:
        key = self._read[port](row)
        try:
            hash(key)
        except TypeError:
            raise SchemaError(unhashable_key(self._keys.owners[port], key)) from None
        return key

    def _divert_late(self, row: Any, port: int) -> None:
        self.late_rows += 1
        if self.late == "port":
            self._outputs[self._late_output(port)](row)

    def _late_output(self, port: int) -> int:
        return 1 + self._diverts_unmatched + port

    def _refuse(self, row: Any, port: int) -> NoReturn:
        axis = self.axes[port]
        shown = axis.value(self._states[port].punctuation, row)
        msg = (
            f"{axis.owner}: the row {brief(row)} is late, the {self.ports[port]} input is complete "
            f'up to {shown}. Allow more slack, or pass late="port" to divert such rows.'
        )
        raise DeltaOrderError(msg)

    def on_input_end(self, port: int) -> None:
        """End an input: its watermark is at the end of time."""
        self._ended[port] = True
        if self._engine is not None:
            marks = self.watermark(0), self.watermark(1)
            self._send_released(self._engine.finish(marks))
        else:
            self._release()

    # -- left rows --------------------------------------------------------------------------------

    def _release(self) -> None:
        """Send the left rows whose matches are final, in the order of their timestamps."""
        left, right = self.watermark(0), self.watermark(1)
        if left is None or right is None:
            return
        heap, rule, passed, out = self._heap, self.alignment, (right, 0), []
        while heap and heap[0][0] <= left and rule.due(heap[0][0]) <= passed:
            row = heapq.heappop(heap)[2]
            if rule.fixed or self._final(row) <= passed:
                out.append(row)
            else:
                self._wait(row)
        dues = self._dues
        while dues and dues[0][0] <= passed:
            due, _, _, row = heapq.heappop(dues)
            if row.due == due:  # otherwise a right row has made it earlier
                row.due = None
                out.append(row)
                self._leave(row)
        if out:
            out.sort(key=attrgetter("ts", "number"))
            self._send([(row.row, self._matches(row)) for row in out])

    def _final(self, row: PendingRow) -> Due:
        if row.key is None:
            return self.alignment.hopeless(row.ts)
        return self.alignment.final(row.ts, self._right_rows.get(row.key, ()))

    def _matches(self, row: PendingRow) -> list[Any]:
        entries = () if row.key is None else self._right_rows.get(row.key, ())
        if not entries:
            return []
        lo, hi = self.alignment.match_range(row.ts, entries)
        return [entry[2] for entry in entries[lo:hi]]

    def _wait(self, row: PendingRow) -> None:
        """Wait for right rows of its key."""
        row.due = self._final(row)
        heapq.heappush(self._dues, (row.due, row.ts, row.number, row))
        self._waiting.setdefault(row.key, []).append((row.ts, row.number, row))

    def _leave(self, row: PendingRow) -> None:
        """End the wait of a row; rows of one key leave in order."""
        waiting = self._waiting[row.key]
        del waiting[upto(waiting, row.ts, equal=False)]
        if not waiting:
            del self._waiting[row.key]

    # -- right rows -------------------------------------------------------------------------------

    def _add_right(self, key: Any, entry: Entry) -> None:
        entries = self._right_rows.setdefault(key, [])
        at = upto(entries, entry[0], equal=True)
        entries.insert(at, entry)
        self._right_count += 1
        waiting = self._waiting.get(key)
        if waiting is not None:  # for those behind the entry before, this is the first
            after = upto(waiting, entries[at - 1][0], equal=False) if at else 0
            for _, _, row in waiting[after:]:
                due = self.alignment.final(row.ts, entries)
                if row.due is not None and due < row.due:
                    row.due = due
                    heapq.heappush(self._dues, (due, row.ts, row.number, row))
        if self._right_count > 2 * self._needed_count + SPARE:
            self._forget()

    def _forget(self) -> None:
        """Drop right rows that no left row can need, now or later."""
        left = self.watermark(0)
        if left is not None:
            floor = min(left, self._heap[0][0]) if self._heap else left
            for key, entries in list(self._right_rows.items()):
                waiting = self._waiting.get(key)
                first = min(floor, waiting[0][0]) if waiting else floor
                del entries[: self.alignment.first_needed(first, entries)]
                if not entries:
                    del self._right_rows[key]
        self._right_count = self._needed_count = sum(map(len, self._right_rows.values()))

    # -- output -----------------------------------------------------------------------------------

    def _send(self, rows: Iterable[tuple[Any, Sequence[Any]]]) -> None:
        """Send left rows with their matches; after a failure the others are still sent."""
        failures: list[Exception] = []
        for left, matches in rows:
            for output, row in self._output_rows(left, matches, failures):
                try:
                    self._outputs[output](row)
                except Exception as error:
                    failures.append(error)
        raise_first(failures)

    def _output_rows(
        self, left: Any, matches: Sequence[Any], failures: list[Exception]
    ) -> Iterator[tuple[int, Any]]:
        """The rows that a left row gives, and where they go."""
        if self._left_rows_only:
            if (self.how == "semi") == bool(matches):
                yield 0, left
            return
        if not matches and self.how == "inner":
            return
        if not matches and self._diverts_unmatched:
            yield 1, left
            return
        assert self._combine is not None
        for right in matches or (None,):
            try:
                row = self._combine(left, right)
            except Exception as error:  # of select=
                failures.append(error)
                continue
            yield 0, row

    def _aside(self, port: int, columns: Sequence[Any]) -> Any:
        name = self.model.outputs[port].name
        return pass_through_schema(columns[name == "late_right"])

    # -- whole batches ----------------------------------------------------------------------------

    def _rows_reason(self) -> str:
        """Why columns are never taken; empty if they may be."""
        if not unchanged(self):
            return f"{type(self).__name__} is a subclass with work of its own"
        if self._select is not None:
            return "select= reads each row in Python"
        attributes = [axis.attribute for axis in self.axes]
        for attribute in (*attributes, *(each for side in self._keys.columns for each in side)):
            if not isinstance(attribute, str):
                return "a timestamp or a key is read from each row in Python"
        return ""

    def _take(self, batch: Any, port: int, insert: Callable[..., None]) -> Any:
        """Take the rows of an Arrow batch as columns, if it can; the rows that are left."""

        held = len(self._heap) + len(self._dues) + self._right_count
        pays = self._engine is not None or 4 * batch.num_rows >= held
        if self._row_by_row or batch.num_rows < FEW or not pays:
            return batch
        try:
            self._take_columns(batch, port)
        except Decline:
            return batch
        return batch.slice(0, 0)

    def _take_columns(self, batch: Any, port: int) -> None:
        from windowlib.columnar.engines.time_join import ArrivingBatch, plain_batch

        axis, state = self.axes[port], self._states[port]
        batch = plain_batch(batch)
        self._schemas[port] = batch.schema
        ts = axis.array(batch)
        if ts is None or not state.fits(ts):
            raise Decline("timestamps that are read one by one")
        self.axes[1 - port].timed, self.axes[1 - port].form = axis.timed, axis.form
        engine = self._ready(port, ts)
        engine.encoded(port, batch)  # which may decline
        before = state.snapshot()
        reached = state.observe_many(ts)
        late = ts < reached
        if self.late == "error" and late.any():
            state.restore(before)
            raise Decline("a row is late, and one by one they say which")
        first = self._numbers[port] + 1
        self._numbers[port] += batch.num_rows
        self.late_rows += int(late.sum())
        coming = ArrivingBatch(port, batch, ts, reached, late, first)
        marks = self.watermark(0), self.watermark(1)
        self._send_released(engine.insert(coming, marks), coming)

    def _ready(self, port: int, ts: Any) -> TimeJoinEngine:
        """The engine, with the state in it."""
        from windowlib.columnar.engines.equi_join import JoinKeys
        from windowlib.columnar.engines.time_join import TimeJoinEngine

        schema = self._schemas[port]
        self._note_columns(schema.names, port)
        engine = self._engine
        if engine is None:
            keys: Any = self._keys.columns
            engine = TimeJoinEngine(JoinKeys(keys), self.alignment)
        engine.check(port, schema, ts.dtype)
        if self._engine is None:
            for side, columns in enumerate(self._schemas):
                engine.adopt(side, columns, self._entries(side))
            self._clear()
            self._engine = engine
        return engine

    def _send_released(self, released: JoinedPairs, coming: Any = None) -> None:
        """Send what a batch releases: as columns if a reader takes these, or row by row."""
        import numpy as np

        there = released.right >= 0
        late = np.flatnonzero(coming.late) if coming is not None and self.late == "port" else ()
        if self._left_rows_only:
            released = released.filter((there == (self.how == "semi")) & released.firsts())
        elif self.how == "inner":
            released = released.filter(there)
        aside = self._diverts_unmatched and not there.all()
        if self._many is not None and not aside and not len(late):
            if len(released):
                self._many(OutputColumns(self._columns(released), len(released)))
            return
        self._send_rows(released, coming, late)

    def _columns(self, released: JoinedPairs) -> dict[str, Any]:
        """The output rows as Arrow arrays by name."""
        left, right = released.left_rows(), released.right_rows()
        known = list(left.schema.names)
        if self._joined_rows is None:
            return dict(zip(known, left.columns, strict=True))
        found = {}
        for rows, plan in zip((left, right), self._joined_rows.plans, strict=True):
            names = () if rows is None else rows.schema.names
            for column, name in plan:
                there = column in names
                found[name] = rows.column(column) if there else _null_column(len(released))
        return {name: found[name] for name in self._joined_rows.order(known)}

    def _send_rows(self, released: JoinedPairs, coming: Any, late: Any) -> None:
        """Send row by row, with the rows of other outputs in their places."""
        outputs = list(self._output_items(released)) if len(released) else []
        if len(late):
            place = self._late_output(coming.port)
            rows = extension("gather_rows")(coming.rows, late).to_pylist()
            outputs += [(c, place, row) for c, row in zip(late.tolist(), rows, strict=True)]
            outputs.sort(key=itemgetter(0))
        failures: list[Exception] = []
        for _, output, row in outputs:
            try:
                self._outputs[output](row)
            except Exception as error:
                failures.append(error)
        raise_first(failures)

    def _output_items(self, released: JoinedPairs) -> Iterator[tuple[int, int, Any]]:
        """The rows of a batch: the cause of each, the output, and the row."""
        causes = released.causes.tolist()
        rows = dict_rows({name: a.to_pylist() for name, a in self._columns(released).items()})
        if not self._diverts_unmatched:
            yield from ((cause, 0, row) for cause, row in zip(causes, rows, strict=True))
            return
        plain, there = released.left_rows().to_pylist(), (released.right >= 0).tolist()
        for cause, row, left, found in zip(causes, rows, plain, there, strict=True):
            yield (cause, 0, row) if found else (cause, 1, left)

    def _settle(self) -> None:
        """Bring the state back from the arrays."""
        engine = self._engine
        if engine is not None:
            self._engine = None
            self._fill(engine.entries(0), engine.entries(1))

    # -- state ------------------------------------------------------------------------------------

    def _entries(self, port: int) -> list[Entry]:
        """The rows of a side in the order of arrival."""
        if self._engine is not None:
            return self._engine.entries(port)
        if port == 1:
            found = [entry for entries in self._right_rows.values() for entry in entries]
        else:
            waiting = [row for *_, row in self._heap]
            waiting += [row for rows in self._waiting.values() for *_, row in rows]
            found = [(row.ts, row.number, row.row) for row in waiting]
        return sorted(found, key=itemgetter(1))

    def _clear(self) -> None:
        for held in (self._heap, self._waiting, self._dues, self._right_rows):
            held.clear()
        self._right_count = self._needed_count = 0

    def _fill(self, left: Sequence[Entry], right: Sequence[Entry]) -> None:
        """Take rows of both sides, as if they had just come and moved nothing."""
        self._clear()
        for entry in sorted(right, key=itemgetter(0, 1)):
            self._right_rows.setdefault(self._key(entry[2], 1), []).append(tuple(entry))
        self._right_count = self._needed_count = len(right)
        for ts, number, row in left:
            self._heap.append((ts, number, PendingRow(ts, number, self._key(row, 0), row)))
        heapq.heapify(self._heap)
        passed = (self.watermark(1), 0)
        reached = self.watermark(0)
        ready = reached is not None and passed[0] is not None
        while ready and self._heap and self._heap[0][0] <= reached:
            if self.alignment.fixed or self.alignment.due(self._heap[0][0]) > passed:
                break
            self._wait(heapq.heappop(self._heap)[2])

    def snapshot(self) -> Any:
        """The waiting rows of both sides, the watermarks, and the form of the timestamps."""
        return {
            "states": [state.snapshot() for state in self._states],
            "over": list(self._ended),
            "numbers": list(self._numbers),
            "held": [[list(entry) for entry in self._entries(port)] for port in (0, 1)],
            "late": self.late_rows,
            "columns": None if self._joined_rows is None else self._joined_rows.columns,
            "axes": [[axis.timed, FORMS.index(axis.form)] for axis in self.axes],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        self._engine = None
        for mine, known in zip(self._states, state["states"], strict=True):
            mine.restore(known)
        self._ended, self._numbers = list(state["over"]), list(state["numbers"])
        self.late_rows = state["late"]
        for axis, (timed, form) in zip(self.axes, state["axes"], strict=True):
            axis.timed, axis.form = timed, FORMS[form]
        if self._joined_rows is not None:
            self._joined_rows.columns = state["columns"]
            self._joined_rows.expect(self._expected)
        self._fill(*state["held"])

    # -- in words ---------------------------------------------------------------------------------

    def notes(self) -> Iterator[tuple[str, str]]:
        """The match, the slack, and what happens to late rows."""
        yield "match", self.alignment.describe()
        never = self._row_by_row
        yield "batches", f"row by row: {never}" if never else "columns, searched"
        for port, slack in zip(self.ports, self.slacks, strict=True):
            yield f"{port} slack", slack.describe()
        fates = {"drop": "dropped, and counted", "port": "to late_left and late_right"}
        yield "late rows", fates.get(self.late, "refused")


FORMS: list[type | None] = [None, float, Decimal]


def _stamps(
    kind: str, ts: Attribute | None, left: Attribute | None, right: Attribute | None
) -> tuple[Attribute, Attribute]:
    """The timestamps of both sides, given once for both or once for each."""
    given = {"left_ts": left, "right_ts": right}
    if ts is not None:
        for name, value in given.items():
            if value is not None:
                msg = (
                    f"{kind}({ts!r}, {name}={value!r}): two words for one timestamp. Drop "
                    f"`{name}=`, or give left_ts= and right_ts= alone."
                )
                raise ModelError(msg)
        given = {"left_ts": ts, "right_ts": ts}
    for name, value in given.items():
        if value is None or not is_attribute(value):
            msg = (
                f'{kind}({name}={value!r}): not a timestamp. Name it, {kind}("ts"), or, where the '
                f'names differ, left_ts="at", right_ts="time".'
            )
            raise ModelError(msg)
    assert given["left_ts"] is not None
    assert given["right_ts"] is not None
    return given["left_ts"], given["right_ts"]


def _slacks(kind: str, slack: Any) -> tuple[Slack, Slack]:
    """The slack of each side, given once for both or as a pair."""
    pair = tuple(slack) if isinstance(slack, list | tuple) else (slack, slack)
    if len(pair) != 2:
        msg = (
            f"{kind}(slack={slack!r}): {len(pair)} slacks for two inputs. Give one for both, or "
            f"two: slack=(left, right)."
        )
        raise ModelError(msg)
    left, right = (slack_of(each, f"{kind}(slack={slack!r})") for each in pair)
    return left, right


def _null_column(size: int) -> Any:
    import pyarrow as pa

    return pa.nulls(size)
