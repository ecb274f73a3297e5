"""Whole Arrow batches into a join: as columns where that gives what row by row would give.

The state of a join is in its windows and indexes, or in the arrays of `windowlib.columnar.joined`.
It moves to the arrays with a batch that they can do, and back with the first call that asks for
anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from operators.passing import Columns
from windowlib import snapshot
from windowlib.dicts import dict_rows
from windowlib.errors import SchemaError
from windowlib.running import nowhere

if TYPE_CHECKING:
    from operators.join import Join
    from windowlib.columnar.joined import JoinEngine, Outcome
    from windowlib.columnar.lent import Lent

HANDLERS = ("after_insert", "after_evict", "on_partitions_evicted")
MOST = 1 << 18
"""Output rows that are made at once, unless one row alone has more matches."""
LEAN = 100
"""How often an index may be made for a batch that is small against it, before rows are better."""

Insert = Callable[..., None]


class JoinColumns:
    """Takes batches into a join, as columns or not at all.

    Args:
        join: the running operator.
    """

    def __init__(self, join: Join) -> None:
        self._join = join
        self._engine: JoinEngine | None = None
        self._schemas: list[Any] = [None, None]  # of the last batch of each side
        self._pause = self._wait = 0
        self._lean = [0, 0]  # how often in a row the index of a side was made for few rows
        self._lent: list[Lent] = []  # what stands for the windows meanwhile
        self._never = self._why_not()
        self.reason = self._never or "no batch has come"

    @property
    def ahead(self) -> bool:
        """Whether the state is in arrays, and windows and indexes are behind."""
        return self._engine is not None

    def arrays(self, window: Any) -> Any:
        """What has the state of a window, if that is in arrays."""
        return self._engine and self._engine.sides[window is not self._join._sides[0].window]

    def text(self) -> str:
        """How batches are taken, in words."""
        return f"row by row: {self._never}" if self._never else "columns, matched by one look-up"

    def _why_not(self) -> str:
        """Why columns are never taken; empty if they may be."""
        from operators.join import Join

        join, kind = self._join, type(self._join)
        own = [getattr(kind, name) is getattr(Join, name) for name in (*HANDLERS, "on_tuple")]
        windows = [side.window for side in join._sides]
        if not all(own) or any(name not in HANDLERS for window in windows for name in window._on):
            return f"{kind.__name__} has handlers of its own"
        for name, value in (("where", join._where), ("select", join._select)):
            if value is not None:
                return f"{name}= reads each row in Python"
        if join._within is not None:
            return "within= has an index of its own"
        if not all(isinstance(column, str) for side in join._keys.columns for column in side):
            return "a key is read from each row in Python"
        timed = [window.spec for window in windows if window.spec.timed]
        return f"{timed[0].evict} runs on the clock" if timed else ""

    # -- batches ----------------------------------------------------------------------------------

    def take(self, batch: Any, port: int, insert: Insert) -> Any:
        """Take a batch if that can be done as columns; the rows that are left.

        Args:
            batch: an Arrow record batch.
            port: which side it comes to.
            insert: takes a single row, for one that whoever reads the output refuses.
        """
        from windowlib.columnar import host

        for lent in self._lent:
            lent._check_idle()
        if self._never or not self._worth(batch.num_rows):
            self.settle()
            return batch
        self._schemas[port] = batch.schema.remove_metadata()
        at, step = 0, host.SLICE
        while at < batch.num_rows:
            part = batch.slice(at, step)
            taken = self._taken(part, port, insert)
            if taken:
                at += part.num_rows
            elif taken is None:
                step = part.num_rows // 2
            else:
                self.settle()
                break
        return batch.slice(at)

    def _worth(self, rows: int) -> bool:
        """Whether a batch is large enough; once the state is in arrays, smaller ones pay, too."""
        from windowlib.columnar import host

        least = host.WORTH // 4 if self.ahead else host.WORTH
        if rows < least:
            self.reason = f"fewer than {least} rows at once"
            return False
        if self._pause:
            self._pause -= 1
            return False
        return True

    def _taken(self, batch: Any, port: int, insert: Insert) -> bool | None:
        """Whether rows went in as columns; None if they give too many at once."""
        from windowlib.columnar import host
        from windowlib.columnar.decline import Decline

        try:
            engine = self._ready(port, batch.num_rows)
            outcome = engine.insert(batch, port, MOST)
        except Decline as declined:
            self.reason = str(declined)
            self._wait = min(2 * self._wait + 1, host.PATIENCE)
            self._pause = self._wait - 1
            return False
        self._wait = 0
        if outcome is None:
            return None
        stopped = None
        try:
            self._tell(True)
            self._send(engine, outcome, port)
        except Stopped as found:
            stopped = found  # its error is raised again outside, as it has not come of this one
        finally:
            self._tell(False)
        if stopped is not None:
            self._fail(engine, batch, port, stopped, insert)
        engine.commit()
        return True

    def _tell(self, telling: bool) -> None:
        """Say whether rows are being put out that come of a batch which is not yet taken."""
        for lent in self._lent:
            lent._telling = telling

    # -- output -----------------------------------------------------------------------------------

    def _send(self, engine: JoinEngine, outcome: Outcome, port: int) -> None:
        """Put out what a batch gives: row by row, or as columns if somebody takes these."""
        join = self._join
        if join._how == "anti":
            outcome = outcome.only(outcome.leaves)
        if not len(outcome):
            return
        made = JoinRows(join, engine, outcome, port)
        apart = join._sides[port].output if join._apart and join._outer[port] else 0
        others = (join._puncts[0], join._outputs[apart] if apart else nowhere)
        if join._many is None or any(each is not nowhere for each in others):
            self._send_rows(made, outcome, apart)
            return
        if apart:
            outcome = outcome.only(~outcome.leaves)
            made = JoinRows(join, engine, outcome, port)
        if len(outcome):
            join._many(Columns(made.arrays(), len(outcome)))

    def _send_rows(self, made: JoinRows, outcome: Outcome, apart: int) -> None:
        """Matches, then rows that leave, then a punctuation, for each row of the batch."""
        outputs, punct = self._join._outputs, self._join._puncts[0]
        causes, leaves = outcome.causes.tolist(), outcome.leaves.tolist()
        rows = made.apart() if apart else made.dicts()
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
                raise Stopped(cause, sent, error) from error

    def _fail(
        self, engine: JoinEngine, batch: Any, port: int, stopped: Stopped, insert: Insert
    ) -> None:
        """Bring the join to where row by row would have stopped, and raise."""
        if stopped.row:
            engine.insert(batch.slice(0, stopped.row), port, batch.num_rows * MOST)
            engine.commit()
        self.settle()
        join = self._join
        outputs, puncts = join._outputs, join._puncts
        (row,) = batch.slice(stopped.row, 1).to_pylist()
        calls, failure = count(), stopped.error

        def again(send: Callable[..., None]) -> Callable[..., None]:
            def call(*row: Any) -> None:
                number = next(calls)
                if number == stopped.sent:
                    raise failure
                if number > stopped.sent:  # the others have been sent
                    send(*row)

            return call

        join._outputs, join._puncts = tuple(map(again, outputs)), tuple(map(again, puncts))
        try:
            insert(row, port)
        finally:
            join._outputs, join._puncts = outputs, puncts

    # -- hand-over --------------------------------------------------------------------------------

    def _ready(self, port: int, rows: int) -> JoinEngine:
        """The engine, with the state in it."""
        from windowlib.columnar.decline import Decline

        join, schema = self._join, self._schemas[port]
        if self._engine is not None and self._engine.schemas[port] not in (None, schema):
            self.settle()
        if join._pairs is not None:
            try:
                join._pairs.note(dict.fromkeys(schema.names), port)
            except SchemaError as error:  # which the first row gives as well
                raise Decline("columns that cannot be put together") from error
        engine = self._engine or self._loaded(rows)
        if engine.schemas[port] is None:
            window: Any = join._sides[port].window
            engine.open(port, window, schema)
        if not engine.indexed(1 - port):
            lean = self._lean[1 - port] + 1 if _long(engine.held(1 - port), rows) else 0
            self._lean[1 - port] = lean
            if lean > LEAN:
                raise Decline("windows that are long against the batches are better kept by rows")
        return engine

    def _loaded(self, rows: int) -> JoinEngine:
        """A new engine with the state that is in the windows and indexes."""
        from windowlib.columnar.decline import Decline
        from windowlib.columnar.joined import JoinEngine, JoinKeys
        from windowlib.columnar.lent import Lent

        join = self._join
        if join._leaving:
            raise Decline("rows have not been put out")
        keys: Any = join._keys.columns
        stores = [side.stores for side in join._sides]
        engine = JoinEngine(JoinKeys(keys), stores, join._outer, join._once, join._number)
        for port, (side, schema) in enumerate(zip(join._sides, self._schemas, strict=True)):
            window: Any = side.window
            if _long(len(window), rows):
                raise Decline("windows that are long against the batch are better kept row by row")
            if schema is not None:
                parts = [snapshot._part(window, s) for s in window._subs.values()]
                engine.open(port, window, schema, (parts, side.numbers()))
            elif len(window):
                raise Decline(f"no batch has come to {join.ports[port]}")
        self._engine, self._lean = engine, [0, 0]
        self._lent = [Lent(side.window, self.settle, self.arrays) for side in join._sides]
        for lent, schema in zip(self._lent, self._schemas, strict=True):
            lent.lend(schema)
        return engine

    def settle(self) -> None:
        """Give the state back to the windows and indexes."""
        engine, join = self._engine, self._join
        if engine is None:
            return
        for lent in self._lent:
            lent._check_idle()
        self._engine, join._number = None, engine.number
        for port, arrays in enumerate(engine.sides):
            side = join._sides[port]
            window = side.window
            window._lead(False)
            if arrays is None:
                continue
            ids, parts, numbers = arrays.handed_over()
            subs = [snapshot._restored(window, part) for part in parts]
            snapshot.fill(window, subs, arrays.left)
            if window._pe is not None:
                named = dict(zip(ids.tolist(), subs, strict=True))
                window._pe.refill([named[i] for i in arrays.used_order().tolist()])
            side.readmit(numbers, hide=join._once and port == 0)


def _long(held: int, rows: int) -> bool:
    """Whether so many rows are better left where they are, for a batch of so many."""
    from windowlib.columnar.rows import WORTH
    from windowlib.columnar.store import ROOM

    return held > WORTH * rows + ROOM


class Stopped(Exception):  # noqa: N818 - a message, not an error
    """Whoever reads the output raised: at which row, and after how many calls for it."""

    def __init__(self, row: int, sent: int, error: Exception) -> None:
        super().__init__(row, sent, error)
        self.row, self.sent, self.error = row, sent, error


class JoinRows:
    """The output rows of a batch, as columns or one by one."""

    def __init__(self, join: Join, engine: JoinEngine, outcome: Outcome, port: int) -> None:
        self._pairs, self._shared = join._pairs, join._keys.shared
        self._outcome, self._port, self._schemas = outcome, port, engine.schemas
        self._left_names = [] if engine.schemas[0] is None else engine.schemas[0].names
        mine = Picked(outcome.rows, outcome.mine)
        other = Picked(engine.sides[1 - port], outcome.other)
        self._sides = (mine, other) if port == 0 else (other, mine)

    def _sources(self) -> Iterator[tuple[str, Picked, str]]:
        """The columns of the output, and where each comes from."""
        if self._pairs is None:  # left rows as they are
            for name in self._left_names:
                yield name, self._sides[0], name
            return
        for side, plan in enumerate(self._pairs.plans):
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
        if self._pairs is None:
            return names, names
        left = self._pairs.order(self._left_names)
        return left, self._pairs.order(()) if self._port else left

    def apart(self) -> Iterator[dict[str, Any]]:
        """The same, but rows that leave as they are."""
        mine, schema = self._sides[self._port], self._schemas[self._port]
        assert schema is not None
        plain = dict_rows({name: mine.values(name) for name in schema.names})
        both = zip(self.dicts(), plain, self._outcome.leaves.tolist(), strict=True)
        return (row if leaves else pair for pair, row, leaves in both)


class Picked:
    """Rows of one side, some of them several times."""

    def __init__(self, rows: Any, places: Any) -> None:
        self._rows, self._places = rows, places
        self._distinct: Any = None

    def _column(self, name: str, places: Any) -> Any:
        return None if self._rows is None else self._rows.picked(name, places)

    def array(self, name: str) -> Any:
        """A column as an Arrow array."""
        import pyarrow as pa

        column = self._column(name, self._places)
        return pa.nulls(len(self._places)) if column is None else column.arrow()

    def values(self, name: str) -> list[Any]:
        """A column as Python values; one that comes out several times is made once."""
        import numpy as np

        if self._distinct is None:
            self._distinct = np.unique(self._places, return_inverse=True)
        distinct, which = self._distinct
        column = self._column(name, distinct)
        if column is None:
            return [None] * len(self._places)
        made = column.arrow().to_pylist()
        return [made[i] for i in which.tolist()]
