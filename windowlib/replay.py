"""The in-process host: rows in, rows out, and nothing to start.

>>> from windowlib import Count, Tumbling
>>> from operators import Aggregate, agg
>>> mean = Aggregate(Tumbling(Count(2)), mean=agg.mean("x"))
>>> list(replay(mean, [{"x": 1}, {"x": 2}, {"x": 5}, {"x": 6}]))
[{'mean': 1.5}, {'mean': 5.5}]
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby, islice
from typing import Any

from windowlib.arrivals import Times
from windowlib.attributes import Getter, column_names, key_getter
from windowlib.batched import in_order, ranks, record_batches
from windowlib.durations import Instant
from windowlib.errors import OperatorError, SchemaError, WindowlibWarning
from windowlib.marks import Mark, Restart, Tagged, punct
from windowlib.merging import merged
from windowlib.operator import Operator
from windowlib.policies import Attribute
from windowlib.running import Running
from windowlib.shown import Ahead, Tabled

CHUNK = 4096
Item = tuple[str, Any]


def replay(
    operator: Operator,
    *inputs: Iterable[Any],
    merge: Attribute | None = None,
    times: Attribute | None = None,
    start: Instant | None = None,
) -> Replay:
    """Run rows through an operator or a graph, in this process.

    Rows are dicts, dataclasses, named tuples or other objects; Arrow tables and batches count as
    their rows. Among them may stand `punct()`, `advance(to)` and `restart()`. The result is
    lazy: iterate over it for the rows of the first output.

    Args:
        operator: an operator, or a `Graph`.
        inputs: the rows; for several input ports either one iterable of `to(port, row)`, or one
            iterable per port, with `merge`.
        merge: the column by which several inputs are merged; each must be in its order. At equal
            values the earlier port comes first.
        times: the column that says when a row arrives, which moves the clock.
        start: where the clock starts; at the first arrival if `times` is given, else at 0.
    """
    if not isinstance(operator, Operator):
        raise OperatorError(f"replay({operator!r}, ...): not an operator. Pass an Operator object.")
    found = Replay(operator, _joined(operator, inputs, merge), times, start)
    found._bounded = all(isinstance(each, Sequence) or is_batch(each) for each in inputs)
    return found


class Replay(Tabled, Iterator[Any]):
    """The outcome of a replay, computed as it is read.

    Iterate over it for the rows of the first output, or over `items()` for everything in order.
    `port(name)` runs to the end and gives all rows of one output; `table()` shows the next rows.
    """

    def __init__(
        self,
        operator: Operator,
        rows: Iterable[Any],
        times: Attribute | None,
        start: Instant | None,
    ) -> None:
        self.operator = operator
        self._times = None if times is None else Times(times)
        self._start = start
        self._moved = False
        self._out: list[Item] = []
        self._names = [port.name for port in operator.model.outputs]
        self._kept: dict[str, list[Any]] = {name: [] for name in self._names}
        self._checked: set[int] = set()
        self._items = Ahead(self._run(rows))
        self._rows = self._main()

    def __next__(self) -> Any:
        return next(self._rows)

    def items(self) -> Iterator[Item]:
        """All that comes out, in order: pairs of port name and row, or `punct()`."""
        return self._items

    def port(self, name: int | str = 0) -> list[Any]:
        """The rows of one output that have not been iterated over, after running to the end."""
        number = self.operator.model.output(name, self.operator.name)
        for port, item in self._items:
            if not isinstance(item, Mark):
                self._kept[port].append(item)
        return self._kept[self._names[number]]

    def _main(self) -> Iterator[Any]:
        for port, item in self._items:
            if isinstance(item, Mark):
                continue
            if port == self._names[0]:
                yield item
            else:
                self._kept[port].append(item)  # so that it is there to be asked for

    # -- running ----------------------------------------------------------------------------------

    def _run(self, rows: Iterable[Any]) -> Iterator[Item]:
        running: Running | None = None
        failure: Exception | None = None
        try:
            for chunk in self._chunks(rows):
                running = running or self._opened(chunk)
                running = self._take(running, chunk)
                yield from self._drained()
            running = running or self._opened([])
            self._warn(running)
            running.finish()
        except Exception as error:  # what came out before it is the caller's
            failure = error
        yield from self._drained()
        if failure is not None:
            raise failure

    def _chunks(self, rows: Iterable[Any]) -> Iterator[list[Any]]:
        """The input in pieces; the first has a row if it takes one to say when to start."""
        waiting: list[Any] = []
        known = self._times is None or self._start is not None
        for chunk in _chunks(rows, open_batches=False):
            waiting += chunk
            known = known or any(map(_is_row, chunk))
            if known:
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def _drained(self) -> Iterator[Item]:
        done, self._out[:] = list(self._out), []
        return iter(done)

    def _opened(self, chunk: Sequence[Any]) -> Running:
        start = self._start
        if start is None and self._times is not None:
            first = next((_row(item) for item in chunk if _is_row(item)), None)
            if first is not None and is_batch(first):
                (first,) = first.slice(0, 1).to_pylist()
            start = None if first is None else timedelta(microseconds=self._times(first))
        return self._connected(self._open(0 if start is None else start))

    def _open(self, start: Instant) -> Running:
        return self.operator.open(start)

    def _connected(self, running: Running) -> Running:
        for name in self._names:
            row, mark = _writers(self._out, name)
            running.connect(name, row, mark)
        return running

    def _take(self, running: Running, chunk: list[Any]) -> Running:
        if self._times is None and not any(isinstance(i, Mark | Restart | Tagged) for i in chunk):
            if is_batch(chunk[0]):
                return self._take_batch(running, chunk[0])
            port = self._port(running, chunk[0])
            self._check(chunk[0], port)
            running.insert_many(chunk, port)
            return running
        for item in chunk:
            if is_batch(item):
                running = self._take_batch(running, item)
            elif isinstance(_row(item), Restart):
                running = self._restarted(running)
            elif _moves(item):
                self._moved = True
                running.advance_micros(_row(item).moment(running._now))
            else:
                self._take_one(running, item)
        return running

    def _take_batch(self, running: Running, batch: Any) -> Running:
        times = None if self._times is None else self._times.column
        if len(running.model.inputs) > 1 or times not in (None, *batch.schema.names):
            return self._take(running, batch.to_pylist())
        assert times is None or isinstance(times, str)
        if 0 not in self._checked:
            self._checked.add(0)
            self.operator.check_columns(batch.schema.names, 0)
        self._moved = self._moved or times is not None
        running.insert_batch(batch, times=times)
        return running

    def _take_one(self, running: Running, item: Any) -> None:
        port, row = self._port(running, item), _row(item)
        if isinstance(row, Mark):
            running.punctuate(port)
            return
        self._check(row, port)
        if self._times is not None:
            self._moved = True
            running.advance_micros(self._times(row))
        running.insert(row, port)

    def _port(self, running: Running, item: Any) -> int:
        if isinstance(item, Tagged):
            return running.model.input(item.port, self.operator.name)
        if len(running.model.inputs) > 1:
            names = [port.name for port in running.model.inputs]
            msg = (
                f"replay({self.operator.name}, rows): it has {len(names)} inputs, and "
                f"{item!r} does not say which it is for. Write to({names[0]!r}, row), or give one "
                f'iterable per input and merge="ts".'
            )
            raise OperatorError(msg)
        return 0

    def _check(self, row: Any, port: int) -> None:
        """Column names are checked with the first row of a port, before it goes in."""
        if port in self._checked:
            return
        self._checked.add(port)
        if names := column_names(row):
            if not isinstance(row, Mapping):  # an object may have more: properties, say
                read = [name for name, _ in self.operator.reads(port) if isinstance(name, str)]
                names += [each for each in read if each not in names and hasattr(row, each)]
            self.operator.check_columns(names, port)

    def _restarted(self, running: Running) -> Running:
        state = pickle.loads(pickle.dumps(running.snapshot()))
        fresh = self._connected(self._open(running.now))
        fresh.restore(state)
        return fresh

    def _warn(self, running: Running) -> None:
        if running.timed and self._checked and not self._moved:
            msg = (
                f"replay({self.operator.name}, ...): it has a time policy, and nothing moved the "
                f'clock. Pass times="ts", or put advance(...) among the rows.'
            )
            warnings.warn(msg, WindowlibWarning, stacklevel=2)


def _writers(out: list[Item], name: str) -> tuple[Callable[[Any], None], Callable[[], None]]:
    """Functions that put a row, and a punctuation, of one port into `out`."""
    mark = (name, punct())
    return (lambda row: out.append((name, row))), (lambda: out.append(mark))


def _is_row(item: Any) -> bool:
    return not isinstance(_row(item), Mark | Restart)


def _moves(item: Any) -> bool:
    mark = _row(item)  # the clock is everybody's, so a tag is of no matter
    return isinstance(mark, Mark) and mark.at is not None


def _row(item: Any) -> Any:
    return item.row if isinstance(item, Tagged) else item


# -- input --------------------------------------------------------------------------------------


def _joined(
    operator: Operator, inputs: tuple[Iterable[Any], ...], merge: Attribute | None
) -> Iterable[Any]:
    """One iterable of rows, tagged with their ports if there are several inputs."""
    ports = operator.model.inputs
    if len(inputs) == 1:
        return _ordered(operator, inputs[0])
    if len(inputs) != len(ports):
        names = ", ".join(port.name for port in ports)
        msg = (
            f"replay({operator.name}, ...): {len(inputs)} inputs given, and it has {len(ports)} "
            f"({names}). Give one iterable per input, or one of to(port, row)."
        )
        raise OperatorError(msg)
    if merge is None:
        msg = (
            f"replay({operator.name}, ...): nothing says how the {len(inputs)} inputs interleave. "
            f'Name the column they are ordered by, merge="ts", or tag the rows: to(port, row).'
        )
        raise OperatorError(msg)
    get = Getter(merge, f"merge={merge!r}")
    each = [(item for chunk in _chunks(rows) for item in chunk) for rows in inputs]
    return merged({port.name: items for port, items in zip(ports, each, strict=True)}, get)


def _ordered(operator: Operator, rows: Iterable[Any]) -> Iterable[Any]:
    """A list or a table in the order that the window asks for; marks stay where they are."""
    by, bounded = operator.order_by, isinstance(rows, Sequence) or hasattr(rows, "to_pylist")
    if by is None or not bounded:
        return rows
    if is_batch(rows):
        table: Iterable[Any] = in_order(rows, by)
        return table
    get = key_getter(by if isinstance(by, tuple) else (by,), f"order_by={by!r}")  # type: ignore[arg-type]
    return list(sorted_runs(rows, get, f"order_by={by!r}"))


def sorted_runs(rows: Iterable[Any], get: Callable[[Any], Any], owner: str) -> Iterator[Any]:
    """Rows in the order of what `get` reads; marks stay where they are among them."""
    items = (item for chunk in _chunks(rows) for item in chunk)
    for is_row, group in groupby(items, key=_is_row):
        run = list(group)
        try:
            yield from sorted(run, key=lambda row: ranks(get(row))) if is_row else run
        except TypeError as error:
            msg = f"{owner}: the values cannot be compared ({error}). Use columns of one type each."
            raise SchemaError(msg) from None


def _chunks(rows: Iterable[Any], *, open_batches: bool = True) -> Iterator[list[Any]]:
    """Lists of rows, as large as can be had without waiting for the next; or single batches."""
    kind = type(rows).__name__
    if hasattr(rows, "to_pylist"):
        rows = [rows]
    elif hasattr(rows, "to_dict"):
        msg = f"replay(op, {kind}): a {kind} is no list of rows. Pass pa.Table.from_pandas(df)."
        raise SchemaError(msg)
    elif isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        msg = f"replay(op, {rows!r}): a {kind} is no list of rows. Pass a list, as [row]."
        raise SchemaError(msg)
    elif isinstance(rows, Sequence):
        source = iter(rows)
        yield from _flat(iter(lambda: list(islice(source, CHUNK)), []), open_batches)
        return
    yield from _flat(([row] for row in rows), open_batches)


def _flat(chunks: Iterable[Sequence[Any]], open_batches: bool) -> Iterator[list[Any]]:
    """The same with Arrow batches opened up, or each a chunk of its own; no chunk is empty."""
    for chunk in chunks:
        if not any(hasattr(item, "to_pylist") for item in chunk):
            if chunk:
                yield list(chunk)
            continue
        for item in chunk:
            if hasattr(item, "to_pylist"):
                for part in _slices(item) if open_batches else record_batches(item, "replay"):
                    yield part.to_pylist() if open_batches else [part]
            else:
                yield [item]


def is_batch(item: Any) -> bool:
    """Whether it is an Arrow batch."""
    return hasattr(item, "to_pylist")


def _slices(table: Any) -> Iterator[Any]:
    """An Arrow table or batch in pieces that are worth turning into Python objects at once."""
    return (table.slice(i, CHUNK) for i in range(0, len(table), CHUNK))
