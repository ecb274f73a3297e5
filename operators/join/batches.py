"""The hand-over of Arrow batches to a join: as columns, where the rows are the same.

The state of a join is in its windows and indexes, or in the arrays of
`windowlib.columnar.engines.equi_join`. It moves to the arrays with a batch that they can do, and
back with the first call that asks for anything else. The first batch imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windowlib.columnar import handover
from windowlib.columnar.arrays import kept_rows
from windowlib.columnar.engines import row_engine
from windowlib.columnar.engines.equi_join import JoinEngine, JoinKeys, JoinOutcome
from windowlib.columnar.handover import ColumnarHandover, parts_of
from windowlib.runtime.running import nowhere
from windowlib.window.arrow import OutputColumns, dict_rows
from windowlib.window.consumer import Decline

if TYPE_CHECKING:
    from windowlib.columnar.engines.engine import Engine
    from windowlib.operators.join.join import Join
    from windowlib.window.container import Window

MOST = 1 << 18
"""Output rows that are made at once, unless one row alone has more matches."""
LEAN = 100
"""How often an index may be made for a batch that is small against it, before rows are better."""

Insert = Callable[..., None]


class JoinHandover(ColumnarHandover):
    """Takes batches into a join, as columns or not at all.

    Args:
        join: the running operator.
        never: why it takes no columns; empty if it may.
    """

    def __init__(self, join: Join, never: str) -> None:
        super().__init__(*(side.window for side in join._sides))
        self._join, self._never = join, never
        self.engine: JoinEngine | None = None
        self._schemas: list[Any] = [None, None]  # of the last batch of each side
        self._lean = [0, 0]  # how often in a row the index of a side was made for few rows
        self.reason = never or self.reason

    @property
    def in_arrays(self) -> bool:
        """Whether the state is in arrays, and windows and indexes are behind."""
        return self.engine is not None

    def engine_of(self, window: Window[Any, Any]) -> Engine | None:
        """The engine that has the state of a window, if that is in arrays."""
        if self.engine is None:
            return None
        return self.engine.sides[self.windows.index(window)]

    def schema_of(self, window: Window[Any, Any]) -> pa.Schema | None:
        """The schema of the last batch that came to a side."""
        found: pa.Schema | None = self._schemas[self.windows.index(window)]
        return found

    # -- batches ----------------------------------------------------------------------------------

    def take(self, batch: pa.RecordBatch, port: int, insert: Insert) -> pa.RecordBatch:
        """Take a batch if that can be done as columns; the rows that are left.

        Args:
            batch: an Arrow record batch.
            port: which side it comes to.
            insert: takes a single row, for one that what reads the output refuses.
        """
        self._check_idle()
        # Once the state is in arrays, smaller batches pay, too.
        least = handover.MIN_ROWS // 4 if self.in_arrays else handover.MIN_ROWS
        if self._never or not self._columns_pay(batch.num_rows, least):
            self.hand_back()
            return batch
        self._schemas[port] = batch.schema.remove_metadata()
        at, step = 0, handover.SLICE_ROWS
        while at < batch.num_rows:
            part = batch.slice(at, step)
            try:
                taken = self._take(part, port, insert)
            except Decline as reason:
                self._pause_columns(reason)
                self.hand_back()
                break
            self._wait = 0
            if taken:
                at += part.num_rows
            else:
                step = part.num_rows // 2
        return batch.slice(at)

    def _take(self, batch: pa.RecordBatch, port: int, insert: Insert) -> bool:
        """Take rows as columns; false if they give too many at once."""
        engine = self._ready(port, batch.num_rows)
        outcome = engine.insert(batch, port, MOST)
        if outcome is None:
            return False
        stopped = None
        try:
            with self._sending():
                self._send(engine, outcome, port)
        except ReaderStopped as found:
            stopped = found  # its error is raised again outside, as it has not come of this one
        if stopped is not None:
            self._fail(engine, batch, port, stopped, insert)
        engine.commit()
        return True

    # -- output -----------------------------------------------------------------------------------

    def _send(self, engine: JoinEngine, outcome: JoinOutcome, port: int) -> None:
        """Put out what a batch gives: row by row, or as columns if the output takes these."""
        join = self._join
        if join.how == "anti":
            outcome = outcome.filter(outcome.leaves)
        if not len(outcome):
            return
        made = JoinRows(join, engine, outcome, port)
        apart = join._sides[port].output if join._diverts_unmatched and join._outer[port] else 0
        others = (join._puncts[0], join._outputs[apart] if apart else nowhere)
        if join._many is None or any(each is not nowhere for each in others):
            self._send_rows(made, outcome, apart)
            return
        if apart:
            outcome = outcome.filter(~outcome.leaves)
            made = JoinRows(join, engine, outcome, port)
        if len(outcome):
            join._many(OutputColumns(made.arrays(), len(outcome)))

    def _send_rows(self, made: JoinRows, outcome: JoinOutcome, apart: int) -> None:
        """Matches, then rows that leave, then a punctuation, for each row of the batch."""
        outputs, punct = self._join._outputs, self._join._puncts[0]
        causes, leaves = outcome.causes.tolist(), outcome.leaves.tolist()
        rows = made.dicts_with_unmatched() if apart else made.dicts()
        for cause, pairs in groupby(zip(causes, leaves, rows, strict=True), key=itemgetter(0)):
            sent, marked = 0, False
            try:
                for _, leaving, row in pairs:
                    output = apart if leaving else 0
                    outputs[output](row)
                    sent, marked = sent + 1, marked or not output
                if marked:
                    punct()
            except Exception as error:
                raise ReaderStopped(cause, sent, error) from error

    def _fail(
        self,
        engine: JoinEngine,
        batch: pa.RecordBatch,
        port: int,
        stopped: ReaderStopped,
        insert: Insert,
    ) -> None:
        """Bring the join to where row by row would have stopped, and raise."""
        if stopped.row:
            engine.insert(batch.slice(0, stopped.row), port, batch.num_rows * MOST)
            engine.commit()
        self.hand_back()
        join = self._join
        outputs, puncts = join._outputs, join._puncts
        (row,) = batch.slice(stopped.row, 1).to_pylist()
        calls, failure = count(), stopped.error

        def replayed(send: Callable[..., None]) -> Callable[..., None]:
            def call(*row: Any) -> None:
                number = next(calls)
                if number == stopped.sent:
                    raise failure
                if number > stopped.sent:  # the others have been sent
                    send(*row)

            return call

        join._outputs, join._puncts = tuple(map(replayed, outputs)), tuple(map(replayed, puncts))
        try:
            insert(row, port)
        finally:
            join._outputs, join._puncts = outputs, puncts

    # -- moving -----------------------------------------------------------------------------------

    def _ready(self, port: int, rows: int) -> JoinEngine:
        """The engine, with the state in it."""
        join, schema = self._join, self._schemas[port]
        if self.engine is not None and self.engine.schemas[port] not in (None, schema):
            self.hand_back()
        join._note_columns(schema.names, port)
        engine = self.engine or self._loaded(rows)
        if engine.schemas[port] is None:
            window: Any = self.windows[port]
            engine.open(port, window, schema)
        if not engine.indexed(1 - port):
            lean = self._lean[1 - port] + 1 if _is_long(engine.held(1 - port), rows) else 0
            self._lean[1 - port] = lean
            if lean > LEAN:
                raise Decline("windows that are long against the batches are better kept by rows")
        return engine

    def _loaded(self, rows: int) -> JoinEngine:
        """A new engine with the state that is in the windows and indexes."""
        join = self._join
        if join._leaving:
            raise Decline("rows have not been put out")
        keys: Any = join._keys.columns
        stores = [side.stores for side in join._sides]
        engine = JoinEngine(JoinKeys(keys), stores, join._outer, join._left_rows_only, join._number)
        for port, (side, schema) in enumerate(zip(join._sides, self._schemas, strict=True)):
            window: Any = side.window
            if _is_long(len(window), rows):
                raise Decline("windows that are long against the batch are better kept row by row")
            if schema is not None:
                engine.open(port, window, schema, (parts_of(window), side.numbers()))
            elif len(window):
                raise Decline(f"no batch has come to {join.ports[port]}")
        self.engine, self._lean = engine, [0, 0]
        self._moved_to_arrays()
        return engine

    def hand_back(self) -> None:
        """Give the state back to the windows and indexes."""
        engine, join = self.engine, self._join
        if engine is None:
            return
        self._check_idle()
        self.engine, join._number = None, engine.number
        for port, arrays in enumerate(engine.sides):
            side = join._sides[port]
            if arrays is None:
                side.window.state.set_in_arrays(False)
                continue
            ids, parts, numbers = arrays.handed_over()
            self._refill(side.window, arrays, parts, ids)
            side.restore_residents(numbers, hide=join._left_rows_only and port == 0)


def _is_long(held: int, rows: int) -> bool:
    """Whether there are too many held rows to move them for a batch of so many rows."""
    return held > row_engine.MAX_KEPT_PER_NEW * rows + kept_rows.ROOM


class ReaderStopped(Exception):  # noqa: N818 - a message, not an error
    """A reader of the output raised: at which row, and after how many calls for it."""

    def __init__(self, row: int, sent: int, error: Exception) -> None:
        super().__init__(row, sent, error)
        self.row, self.sent, self.error = row, sent, error


class JoinRows:
    """The output rows of a batch, as columns or one by one."""

    def __init__(self, join: Join, engine: JoinEngine, outcome: JoinOutcome, port: int) -> None:
        self._joined_rows, self._shared = join._joined_rows, join._keys.shared
        self._outcome, self._port, self._schemas = outcome, port, engine.schemas
        self._left_names = [] if engine.schemas[0] is None else engine.schemas[0].names
        mine = PickedRows(outcome.rows, outcome.mine)
        other = PickedRows(engine.sides[1 - port], outcome.other)
        self._sides = (mine, other) if port == 0 else (other, mine)

    def _sources(self) -> Iterator[tuple[str, PickedRows, str]]:
        """The columns of the output, and where each comes from."""
        if self._joined_rows is None:  # left rows as they are
            for name in self._left_names:
                yield name, self._sides[0], name
            return
        for side, plan in enumerate(self._joined_rows.plans):
            for column, name in plan:
                shared = column in self._shared  # equal on both sides, or one of them is not there
                yield name, self._sides[self._port if shared else side], column

    def arrays(self) -> dict[str, Any]:
        """The columns of the output as Arrow arrays."""
        return {name: side.array(column) for name, side, column in self._sources()}

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows one by one, columns in the order in which row by row has them."""
        lists = {name: side.values(column) for name, side, column in self._sources()}
        left, alone = self._orders(list(lists))
        rows = dict_rows({name: lists[name] for name in left})
        if left == alone:
            return rows
        pairs = zip(rows, self._outcome.leaves.tolist(), strict=True)
        return ({name: row[name] for name in alone} if leaves else row for row, leaves in pairs)

    def _orders(self, names: list[str]) -> tuple[list[str], list[str]]:
        """The order of columns with a left row, and that of rows that leave."""
        if self._joined_rows is None:
            return names, names
        left = self._joined_rows.order(self._left_names)
        return left, self._joined_rows.order(()) if self._port else left

    def dicts_with_unmatched(self) -> Iterator[dict[str, Any]]:
        """The rows one by one, with unmatched rows as they came in."""
        mine, schema = self._sides[self._port], self._schemas[self._port]
        assert schema is not None
        plain = dict_rows({name: mine.values(name) for name in schema.names})
        both = zip(self.dicts(), plain, self._outcome.leaves.tolist(), strict=True)
        return (row if leaves else pair for pair, row, leaves in both)


class PickedRows:
    """Rows of one side, some of them several times."""

    def __init__(self, rows: Any, places: Any) -> None:
        self._rows, self._places = rows, places
        self._distinct: Any = None

    def _column(self, name: str, places: Any) -> Any:
        return None if self._rows is None else self._rows.picked(name, places)

    def array(self, name: str) -> Any:
        """A column as an Arrow array."""
        column = self._column(name, self._places)
        return pa.nulls(len(self._places)) if column is None else column.arrow()

    def values(self, name: str) -> list[Any]:
        """A column as Python values; one that comes out several times is made once."""
        if self._distinct is None:
            self._distinct = np.unique(self._places, return_inverse=True)
        distinct, which = self._distinct
        column = self._column(name, distinct)
        if column is None:
            return [None] * len(self._places)
        made = column.arrow().to_pylist()
        return [made[i] for i in which.tolist()]
