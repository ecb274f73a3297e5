"""The in-process host: rows in, rows out, and nothing to start.

>>> from windowlib import Count, Tumbling
>>> from windowlib.operators import Aggregate, agg
>>> mean = Aggregate(Tumbling(Count(2)), mean=agg.mean("x"))
>>> list(replay(mean, [{"x": 1}, {"x": 2}, {"x": 5}, {"x": 6}]))
[{'mean': 1.5}, {'mean': 5.5}]
"""

from __future__ import annotations

import heapq
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from windowlib.attributes import Getter, column_names, key_getter
from windowlib.durations import Duration, Instant
from windowlib.errors import OperatorError, SchemaError, WindowlibWarning
from windowlib.event_time.slack import Slack
from windowlib.event_time.watermark import Watermark
from windowlib.extensions import extension
from windowlib.runtime.arrival_order import stated_order
from windowlib.runtime.counters import late_counting
from windowlib.runtime.marks import Mark, Restart, Tagged, punct
from windowlib.runtime.operator import Operator
from windowlib.runtime.running import Running
from windowlib.spec.policies import Attribute
from windowlib.window.arrow import (
    Times,
    WatermarkTimes,
    as_arrow,
    fitting_row,
    in_order,
    is_batch,
    ranks,
    record_batches,
)
from windowlib.window.state_bytes import written_and_read
from windowlib.window.subwindow import UNSET

CHUNK = 4096
ROWS = 10
"""How many rows a table shows."""
MARKS = (Mark, Restart, Tagged)
FRAMES = {
    "toArrow": "Use df.transform(op), or pass its toArrow()",
    "collect": "Pass its collect()",
    "to_dict": "Pass pa.Table.from_pandas(df)",
}
"""What to do with frames that are no rows yet, by a method that they have."""
Item = tuple[str, Any]


def replay(
    operator: Operator,
    *inputs: Iterable[Any],
    merge: Attribute | None = None,
    times: Attribute | None = None,
    start: Instant | None = None,
    watermark: Watermark | Slack | Duration | None = None,
) -> Replay:
    """Run rows through an operator or a graph, in this process.

    Rows are dicts, dataclasses, named tuples or other objects; Arrow tables and batches count as
    their rows, and so do DataFrames of pandas, polars and others with Arrow streams. Among them may
    stand `punct()`, `advance(to)` and `restart()`. The result is lazy: iterate over it for the rows
    of the first output.

    Args:
        operator: an operator, or a `Graph`.
        inputs: the rows; for several input ports either one iterable of `to(port, row)`, or one
            iterable per port, with `merge`.
        merge: the column by which several inputs are merged; each must be in its order. At equal
            values the earlier port comes first. Joins in time do without: they wait for both.
        times: the column that says when a row arrives, which moves the clock.
        start: where the clock starts; at the first arrival if `times` is given, else at 0.
        watermark: with `times`, how far the clock stays behind the greatest time so far, as "5s" or
            a `Watermark`: the clock of event time, for rows that come out of order. Rows wait until
            it has passed them, and are taken in the order of time; `late_rows` counts those that
            it has passed before they come, which are dropped.
    """
    if not isinstance(operator, Operator):
        raise OperatorError(f"replay({operator!r}, ...): not an operator. Pass an Operator object.")
    if watermark is not None and times is None:
        msg = (
            f"replay(watermark={watermark!r}): nothing says which column it follows. Name it, as "
            f'times="ts".'
        )
        raise OperatorError(msg)
    inputs = tuple(as_arrow(each, "replay") for each in inputs)
    bounded = all(isinstance(each, Sequence) or is_batch(each) for each in inputs)
    return Replay(
        operator, joined_inputs(operator, inputs, merge), times, start, bounded, watermark
    )


class Lookahead(Iterator[Any]):
    """An iterator over what the steps of a source put into `waiting`, with look-ahead.

    >>> waiting = deque()
    >>> numbers = Lookahead((waiting.append(i) for i in [1, 2, 3]), waiting)
    >>> numbers.fetch(), list(waiting), next(numbers), list(numbers)
    (True, [1], 1, [2, 3])
    """

    def __init__(self, steps: Iterator[None], waiting: deque[Any]) -> None:
        self.steps = steps
        self.waiting = waiting
        """What has come and not been taken."""
        self.failure: Exception | None = None
        """What a step raised; for the caller, after all that waits."""

    def __next__(self) -> Any:
        if not self.waiting and not self.fetch():
            self.end()
            raise StopIteration
        return self.waiting.popleft()

    def fetch(self) -> bool:
        """Wait for at least one more item; false: the source has ended."""
        if self.failure is not None:
            return False
        waiting = self.waiting
        before = len(waiting)
        try:
            for _ in self.steps:
                if len(waiting) > before:
                    return True
        except Exception as error:  # raised in the caller's iteration, after the output before it
            self.failure = error
        return len(waiting) > before

    def end(self) -> None:
        """Raise what the source raised, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


class SideOutputItem(tuple[str, Any]):
    """An item beside the rows of the first output: a port, and its row or `punct()`."""

    __slots__ = ()


class Replay(Iterator[Any]):
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
        bounded: bool = False,
        watermark: Any = None,
    ) -> None:
        self.operator = operator
        self._bounded = bounded  # whether all input is at hand
        self._times = None if times is None else Times(times)
        self._waiting: WaitingRows | None = None
        if times is not None and watermark is not None:
            rows = self._waiting = WaitingRows(rows, WatermarkTimes(times, watermark, "replay"))
        self._start = start
        self._moved = False
        self._out: deque[Any] = deque()  # rows of the first output; all else as `SideOutputItem`
        self._names = [port.name for port in operator.model.outputs]
        self._kept: dict[str, list[Any]] = {name: [] for name in self._names}
        self._checked: set[int] = set()
        self._running: Running | None = None
        steps = self._streamed(rows) if self._waits(rows) else self._chunked(rows)
        self._ahead = Lookahead(chain(steps, self._ended()), self._out)

    def __next__(self) -> Any:
        out, ahead = self._out, self._ahead
        while True:
            if not out:
                if ahead.failure is not None:
                    break
                try:
                    for _ in ahead.steps:  # as `fetch` does, without a call for each row
                        if out:
                            break
                except Exception as error:
                    ahead.failure = error
                if not out:
                    break
            item = out.popleft()
            if type(item) is not SideOutputItem:
                return item
            if type(item[1]) is not Mark:  # most are: a punctuation comes after each row
                port, row = item
                self._kept[port].append(row)  # so that it is there to be asked for
        ahead.end()
        raise StopIteration

    @property
    def late_rows(self) -> int:
        """How many rows came late so far: for the clock of event time, windows and operators."""
        counting = () if self._running is None else late_counting(self._running)
        late: int = sum(each.late_rows for each in counting)
        return late if self._waiting is None else late + self._waiting.late_rows

    def items(self) -> Iterator[Item]:
        """All output in order: pairs of port name and row, or `punct()`."""
        return map(self._item, self._ahead)

    def _item(self, item: Any) -> Item:
        return (item[0], item[1]) if type(item) is SideOutputItem else (self._names[0], item)

    def port(self, name: int | str = 0) -> list[Any]:
        """The rows of one output that have not been iterated over, after running to the end."""
        number = self.operator.model.output(name, self.operator.name)
        for port, item in self.items():
            if not isinstance(item, Mark):
                self._kept[port].append(item)
        return self._kept[self._names[number]]

    def table(self, n: int = ROWS) -> Any:
        """The next `n` rows of the first output as a table, to print or to show in a notebook.

        It computes as many rows as it shows. They stay there to be iterated over.

        >>> from windowlib import Count, Tumbling, replay
        >>> from windowlib.operators import Aggregate, agg
        >>> totals = Aggregate(Tumbling(Count(2)), n=agg.count(), total=agg.sum("x"))
        >>> found = replay(totals, [{"x": 1}, {"x": 2.5}, {"x": 30}, {"x": 4}])
        >>> print(found.table())
        n  total
        -  -----
        2    3.5
        2     34
        2 rows
        >>> list(found)
        [{'n': 2, 'total': 3.5}, {'n': 2, 'total': 34}]
        """
        rows = self._coming()
        while len(rows) < n and self._ahead.fetch():
            rows = self._coming()
        return extension("listing")(rows[:n], more=len(rows) >= n, failure=self._ahead.failure)

    def _coming(self) -> list[Any]:
        """The rows of the first output that were computed already."""
        if not self._names:
            return []
        ahead = [item for item in self._out if type(item) is not SideOutputItem]
        return [*self._kept[self._names[0]], *ahead]

    def _repr_html_(self) -> str:
        """A table if the input is at hand; a source that may have to wait is not asked."""
        if not self._bounded:
            return str(extension("waiting_html")(self.operator))
        return str(self.table().to_html())

    # -- running ----------------------------------------------------------------------------------

    def _waits(self, rows: Iterable[Any]) -> bool:
        """Whether rows come from a source that may have to wait for the next one."""
        known = isinstance(rows, Sequence | Mapping | str | bytes) or not isinstance(rows, Iterable)
        return self._times is None and not known and not hasattr(rows, "to_dict")

    def _chunked(self, rows: Iterable[Any]) -> Iterator[None]:
        """Take many rows at once; what they made is there at each step."""
        for chunk in self._chunks(rows):
            running = self._running or self._opened(chunk)
            self._running = self._take(running, chunk)
            yield

    def _streamed(self, rows: Iterable[Any]) -> Iterator[None]:
        """Take each row before the next is asked for, and pause where one has made something."""
        source, out = iter(rows), self._out
        item = next(source, UNSET)
        while item is not UNSET:
            running = self._running = self._running or self._opened([item])
            if not running.streams or _is_mark(item):
                for chunk in _flat([[item]], open_batches=False):
                    self._running = self._take(running, chunk)
                yield
                item = next(source, UNSET)
            else:
                port = self._port(running, item)
                self._check(item, port)
                running.insert(item, port)
                if out:
                    yield
                item = yield from running.insert_each(
                    source, out, port, sample=item, is_mark=_is_mark
                )

    def _ended(self) -> Iterator[None]:
        """The input has ended."""
        running = self._running or self._opened([])
        self._warn(running)
        running.finish()
        yield

    def _chunks(self, rows: Iterable[Any]) -> Iterator[list[Any]]:
        """The input in pieces; the first has a row if it takes one to say when to start."""
        waiting: list[Any] = []
        known = self._times is None or self._start is not None
        for chunk in row_chunks(rows, open_batches=False):
            waiting += chunk
            known = known or any(map(is_row_item, chunk))
            if known:
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def _opened(self, chunk: Sequence[Any]) -> Running:
        start = self._start
        if start is None and self._times is not None:
            first = next((_row(item) for item in chunk if is_row_item(item)), None)
            if first is not None and is_batch(first):
                (first,) = as_arrow(first, "replay").slice(0, 1).to_pylist()
            start = None if first is None else timedelta(microseconds=self._times(first))
        return self._connected(self._open(0 if start is None else start))

    def _open(self, start: Instant) -> Running:
        return self.operator.open(start)

    def _connected(self, running: Running) -> Running:
        for number, name in enumerate(self._names):
            row, mark = _writers(self._out, name, first=not number)
            declared = self.operator.declared_columns(number)
            if declared is not None:
                row = _checked(row, declared, f"{self.operator.name}.emit(...)")
            running.connect(name, row, mark)
        return running

    def _take(self, running: Running, chunk: list[Any]) -> Running:
        first, kinds = chunk[0], set(map(type, chunk))
        if not any(issubclass(kind, MARKS) for kind in kinds):
            if is_batch(first):
                return self._take_batch(running, first)
            port = self._port(running, first)
            self._check(first, port)
            if self._times is None:
                running.insert_many(chunk, port)
            else:
                self._moved = True
                running.insert_timed(chunk, self._times, port)
            return running
        for item in chunk:
            if is_batch(_row(item)):
                running = self._take_batch(running, item)
            elif isinstance(_row(item), Restart):
                running = self._restarted(running)
            elif _moves(item):
                self._moved = True
                running.advance_micros(_row(item).moment(running.micros))
            else:
                self._take_one(running, item)
        return running

    def _take_batch(self, running: Running, item: Any) -> Running:
        batch, tagged = as_arrow(_row(item), "replay"), isinstance(item, Tagged)
        times = None if self._times is None else self._times.column
        several = len(running.model.inputs) > 1 and not tagged
        if several or times not in (None, *batch.schema.names):
            rows = batch.to_pylist()
            return self._take(running, [Tagged(item.port, row) for row in rows] if tagged else rows)
        assert times is None or isinstance(times, str)
        port = self._port(running, item)
        if port not in self._checked:
            self._checked.add(port)
            self.operator.check_columns(batch.schema.names, port)
        self._moved = self._moved or times is not None
        running.insert_batch(batch, port, times=times)
        return running

    def _take_one(self, running: Running, item: Any) -> None:
        port, row = self._port(running, item), _row(item)
        if isinstance(row, Mark):
            running.punctuate(port)
            return
        self._check(row, port)
        if self._times is not None:
            self._moved = True
            running.advance_micros(self._times.forward(self._times(row), running.micros))
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
        state = written_and_read(running.snapshot())
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


def _writers(
    out: deque[Any], name: str, *, first: bool
) -> tuple[Callable[[Any], None], Callable[[], None]]:
    """Functions that put a row, and a punctuation, of one port into `out`."""
    mark = SideOutputItem((name, punct()))
    row = out.append if first else lambda row: out.append(SideOutputItem((name, row)))
    return row, partial(out.append, mark)


def _checked(
    write: Callable[[Any], None], names: frozenset[str], call: str
) -> Callable[[Any], None]:
    """The same for an output that declares its columns: refuses a row that has another."""

    def checked(row: Any) -> None:
        if isinstance(row, Mapping):
            fitting_row(row, names, call)
        write(row)

    return checked


def _is_mark(item: Any) -> bool:
    """Whether an item among rows is a mark."""
    return isinstance(item, MARKS) or is_batch(item)


def is_row_item(item: Any) -> bool:
    """Whether an item of a stream is a row, and not a mark."""
    return not isinstance(_row(item), Mark | Restart)


def _moves(item: Any) -> bool:
    mark = _row(item)  # the clock is everybody's, so a tag is irrelevant
    return isinstance(mark, Mark) and mark.at is not None


def _row(item: Any) -> Any:
    return item.row if isinstance(item, Tagged) else item


# -- input --------------------------------------------------------------------------------------


def joined_inputs(
    operator: Operator, inputs: tuple[Iterable[Any], ...], merge: Attribute | None
) -> Iterable[Any]:
    """One iterable of rows, tagged with their ports if there are several inputs."""
    ports = operator.model.inputs
    names = ", ".join(port.name for port in ports)
    if len(inputs) == 1 and merge is not None:
        msg = (
            f"replay({operator.name}, ..., merge={merge!r}): there is one iterable, and nothing to "
            f"merge it with. Give one for each input ({names}), or drop `merge=`."
        )
        raise OperatorError(msg)
    if len(inputs) == 1:
        return ordered_input(operator.order_by, inputs[0])
    if len(inputs) != len(ports):
        msg = (
            f"replay({operator.name}, ...): {len(inputs)} inputs given, and it has {len(ports)} "
            f"({names}). Give one iterable per input, or one of to(port, row)."
        )
        raise OperatorError(msg)
    if merge is None and operator.waits:
        return _alternating([port.name for port in ports], inputs)
    if merge is None:
        msg = (
            f"replay({operator.name}, ...): nothing says how the {len(inputs)} inputs interleave. "
            f'Name the column they are ordered by, merge="ts", or tag the rows: to(port, row).'
        )
        raise OperatorError(msg)
    get = Getter(merge, f"merge={merge!r}")
    orders = [stated_order(operator.order_of(port)) for port in range(len(ports))]
    ordered = [ordered_input(order, rows) for order, rows in zip(orders, inputs, strict=True)]
    each = [items_of(rows) for rows in ordered]
    return merged({port.name: items for port, items in zip(ports, each, strict=True)}, get)


def _alternating(ports: Sequence[str], inputs: Sequence[Iterable[Any]]) -> Iterator[Any]:
    """The rows of all inputs, a piece of each in turn."""
    left = {
        port: row_chunks(rows, open_batches=False) for port, rows in zip(ports, inputs, strict=True)
    }
    while left:
        for port, chunks in list(left.items()):
            chunk = next(chunks, None)
            if chunk is None:
                del left[port]
                continue
            for item in chunk:
                yield item if isinstance(item, Restart) else Tagged(port, item)


def ordered_input(by: Any, rows: Iterable[Any]) -> Iterable[Any]:
    """A list or a table in the order that the window asks for; marks stay where they are."""
    bounded = isinstance(rows, Sequence) or is_batch(rows)
    if by is None or not bounded:
        return rows
    if is_batch(rows):
        table: Iterable[Any] = in_order(rows, by)
        return table
    get = key_getter(by if isinstance(by, tuple) else (by,), f"order_by={by!r}")
    return list(sorted_runs(rows, get, f"order_by={by!r}"))


def sorted_runs(rows: Iterable[Any], get: Callable[[Any], Any], owner: str) -> Iterator[Any]:
    """Rows in the order of what `get` reads; marks stay where they are among them."""
    items = items_of(rows)
    for is_row, group in groupby(items, key=is_row_item):
        run = list(group)
        try:
            yield from sorted(run, key=lambda row: ranks(get(_row(row)))) if is_row else run
        except TypeError as error:
            msg = f"{owner}: the values cannot be compared ({error}). Use columns of one type each."
            raise SchemaError(msg) from None


def items_of(rows: Iterable[Any]) -> Iterator[Any]:
    """Rows and marks one by one, those of batches included."""
    return chain.from_iterable(row_chunks(rows))


def row_chunks(rows: Iterable[Any], *, open_batches: bool = True) -> Iterator[list[Any]]:
    """Lists of rows, as long as possible without waiting for the next row; or single batches."""
    kind = type(rows).__name__
    fix = next((fix for name, fix in FRAMES.items() if hasattr(rows, name)), None)
    if is_batch(rows):
        rows = [rows]
    elif fix is not None:
        raise SchemaError(f"replay(op, {kind}): a {kind} is no list of rows. {fix}.")
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
        if not any(map(is_batch, set(map(type, chunk)))):
            if chunk:
                yield list(chunk)
            continue
        for item in chunk:
            if is_batch(item):
                table = as_arrow(item, "replay")
                for part in _slices(table) if open_batches else record_batches(table, "replay"):
                    yield part.to_pylist() if open_batches else [part]
            else:
                yield [item]


def _slices(table: Any) -> Iterator[Any]:
    """An Arrow table or batch in pieces that are worth turning into Python objects at once."""
    return (table.slice(i, CHUNK) for i in range(0, len(table), CHUNK))


# -------------------------------------------------------------------------------------------------
# Rows that wait for the clock of event time.


class WaitingRows:
    """Rows in order of time, each released when the watermark has passed it; the clock follows.

    Args:
        rows: rows in any order, with marks among them, which do not wait.
        clock: what reads their times, and the watermark.

    >>> from windowlib.window.arrow import WatermarkTimes
    >>> rows = WaitingRows([{"ts": ts} for ts in (4, 9, 6, 1, 20)], WatermarkTimes("ts", "3s", ""))
    >>> [item["ts"] if isinstance(item, dict) else item.at.seconds for item in rows]
    [4, 6, 6, 9, 17, 20]
    >>> rows.late_rows
    1
    """

    def __init__(self, rows: Iterable[Any], clock: WatermarkTimes) -> None:
        self._rows, self._clock = rows, clock
        self.late_rows = 0

    def __iter__(self) -> Iterator[Any]:
        waiting: list[tuple[int, int, Any]] = []
        mark, started = -math.inf, False
        items = items_of(self._rows)
        for number, item in enumerate(items):
            if not is_row_item(item):
                yield item
                continue
            at, reached = self._clock(_row(item)), self._clock.reached
            if at < mark:
                self.late_rows += 1
                continue
            heapq.heappush(waiting, (at, number, item))
            while waiting[0][0] < reached:
                started = True
                yield heapq.heappop(waiting)[2]
            if started and reached > mark:
                yield Mark(timedelta(microseconds=reached))
            mark = reached
        while waiting:
            yield heapq.heappop(waiting)[2]


# -------------------------------------------------------------------------------------------------
# Several inputs as one, in the order of a column.


def merged(inputs: Mapping[str, Iterable[Any]], get: Getter) -> Iterator[Any]:
    """The rows and marks of all inputs, tagged with their ports, in the order of what `get` reads.

    >>> rows = merged({"left": [1, 5], "right": [2]}, Getter(lambda row: row, "merge=row"))
    >>> [row.row for row in rows]
    [1, 2, 5]
    """
    firsts: list[Any] = []
    keyed = [_keyed(port, items, get, firsts) for port, items in inputs.items()]
    return (item for _, item in heapq.merge(*keyed, key=itemgetter(0)))


def _keyed(
    port: str, items: Iterable[Any], get: Getter, firsts: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """The rows for a port with what they are merged by; a mark stays behind the row before it."""
    last: Any = _First()
    for item in items:
        if isinstance(item, Restart):
            yield last, item
            continue
        if not isinstance(item, Mark):
            key = get(item)
            if key is None or key != key:
                msg = (
                    f"replay(..., {get.owner}): the row {item!r} for {port!r} has no place in "
                    f"that order. Drop or fill such rows first."
                )
                raise SchemaError(msg)
            if isinstance(last, _First):  # the first of each input stands for its type
                for other in firsts:
                    _before(key, other, get)
                firsts.append(key)
            elif _before(key, last, get):
                msg = (
                    f"replay(..., {get.owner}): the rows for {port!r} are not in order, {key!r} "
                    f"comes after {last!r}. Sort them first."
                )
                raise SchemaError(msg)
            last = key
        yield last, Tagged(port, item)


def _before(key: Any, other: Any, get: Getter) -> bool:
    try:
        return bool(key < other)
    except TypeError:
        msg = (
            f"replay(..., {get.owner}): the values {other!r} and {key!r} do not compare. Use one "
            f"type in all inputs."
        )
        raise SchemaError(msg) from None


class _First:
    """Comes before every value."""

    def __lt__(self, other: object) -> bool:
        return not isinstance(other, _First)

    def __gt__(self, other: object) -> bool:
        return False
