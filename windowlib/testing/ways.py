"""The ways in which an operator can run, each as a function of a stream.

A way gives all that comes out, in order. Where one does not apply, `LeftOut` says why.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from windowlib.durations import Instant
from windowlib.errors import FarmError
from windowlib.graph import Graph
from windowlib.marks import Mark, Restart, Tagged, restart
from windowlib.operator import Operator
from windowlib.policies import Attribute
from windowlib.replay import _is_row
from windowlib.running import Running
from windowlib.sliding import SlidingWindow
from windowlib.spec import Spec
from windowlib.testing.driving import Drive, Event
from windowlib.tumbling import TumblingWindow
from windowlib.window import Window

Sent = list[tuple[str, Any]]
SIZES = (1, 2, 3, 7)
"""The sizes of batches that a stream is cut into, beside whole runs of rows and random ones."""
MOST_RESTARTS = 12
FORGETS = "each place evicts its own partitions, so others are forgotten than in one place"


class LeftOut(Exception):  # noqa: N818 - no error, and nobody sees it
    """A way that does not apply, and why."""


class Way(NamedTuple):
    """A name, and what runs it."""

    name: str
    run: Callable[[], Sent]


class Stream(NamedTuple):
    """What goes in: rows and marks, and the column of arrival times."""

    operator: Operator
    items: Sequence[Any]
    times: Attribute | None

    def drive(self, **more: Any) -> Drive:
        """A run of it that has not begun."""
        return Drive(self.operator, times=self.times, **more)


def sent(events: Iterable[Event]) -> Sent:
    """What came out, without when: that differs where batches are taken whole."""
    return [(port, item) for _, port, item in events]


# -- rows -----------------------------------------------------------------------------------------


def plain(stream: Stream, items: Sequence[Any] | None = None, **more: Any) -> Sent:
    """Row by row, as it is meant."""
    drive = stream.drive(**more)
    try:
        drive.take(stream.items if items is None else items)
        drive.finish()
    finally:
        drive.close()
    return sent(drive.events)


def together(stream: Stream) -> Sent:
    """All rows between two marks at once."""
    drive = stream.drive()
    for is_row, group in groupby(stream.items, key=_is_row):
        (drive.take_many if is_row else drive.take)(list(group))
    drive.finish()
    return sent(drive.events)


class ReferenceRunning(Running):
    """A running operator whose windows follow the steps of the tables, one by one."""

    def _container(self, spec: Spec, port: int, start: Instant) -> Window[Any, Any]:
        op = self.operator
        make = op.container(port)
        if make not in (TumblingWindow, SlidingWindow):
            raise LeftOut("it brings windows of its own")
        summarizer = op.summarizer(port)
        return make(spec, events=op, summarizer=summarizer, start=start, engine="reference")


def reference(stream: Stream) -> Sent:
    """With the reference engine in its windows."""
    op = stream.operator
    if type(op).open is not Operator.open or not any(op.windows):
        raise LeftOut("it has no windows itself")
    return plain(stream, opener=lambda start: ReferenceRunning(op, start))


def restarted(stream: Stream, places: Iterable[int]) -> Sent:
    """Saved, pickled and restored in a new copy before the items at some places."""
    wanted = set(places)
    items: list[Any] = []
    for place, item in enumerate(stream.items):
        items += [restart(), item] if place in wanted else [item]
    items += [restart()] if len(stream.items) in wanted else []
    return plain(stream, items)


def row_ways(stream: Stream, *, restarts: bool) -> Iterator[Way]:
    """Those that take rows as they are."""
    yield Way("rows taken together", lambda: together(stream))
    yield Way("the reference engine", lambda: reference(stream))
    if not restarts:
        return
    places = range(len(stream.items) + 1)
    yield Way("a restart before every item", lambda: restarted(stream, places))
    few = sorted(random.Random(0).sample(places, min(len(places), MOST_RESTARTS)))
    for place in few:
        yield Way(f"a restart before item {place + 1}", partial(restarted, stream, [place]))


# -- batches --------------------------------------------------------------------------------------


def as_arrow(stream: Stream) -> Arrowed:
    """The rows as Arrow tables, one for each input; they may be other values then."""
    import pyarrow as pa

    ports = _ports(stream)
    tables: dict[int, Any] = {}
    for port in sorted(set(ports.values())):
        rows = [_row(stream.items[at]) for at in ports if ports[at] == port]
        if odd := [type(row).__name__ for row in rows if not isinstance(row, Mapping)]:
            raise LeftOut(f"its rows are no dicts, but {odd[0]}")
        try:
            tables[port] = pa.Table.from_pylist(_filled(rows))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise LeftOut(f"its rows are no Arrow columns ({error})") from None
    return Arrowed(stream, ports, tables)


def _filled(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows that have all columns, those of the first row first."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _row(item: Any) -> Any:
    return item.row if isinstance(item, Tagged) else item


def _ports(stream: Stream) -> dict[int, int]:
    """The input ports of rows, by their places."""
    model, name = stream.operator.model, stream.operator.name
    return {
        place: model.input(item.port, name) if isinstance(item, Tagged) else 0
        for place, item in enumerate(stream.items)
        if _is_row(item)
    }


class Arrowed(NamedTuple):
    """A stream, and its rows as a table for each input."""

    stream: Stream
    ports: Mapping[int, int]
    tables: Mapping[int, Any]

    def rows(self) -> Stream:
        """The stream with the rows as Arrow has them: numbers of one type, nulls filled in."""
        rest = {port: iter(table.to_pylist()) for port, table in self.tables.items()}
        items = list(self.stream.items)
        for place, port in self.ports.items():
            row, item = next(rest[port]), items[place]
            items[place] = Tagged(item.port, row) if isinstance(item, Tagged) else row
        return self.stream._replace(items=items)

    def pieces(self, sizes: Iterator[int]) -> Iterator[tuple[int, Any] | Mark | Restart | Tagged]:
        """Ports and batches, and the marks between them; no batch has more rows than its size."""
        offsets = dict.fromkeys(self.tables, 0)
        places = range(len(self.stream.items))
        for port, group in groupby(places, key=lambda at: self.ports.get(at, -1)):
            run = list(group)
            if port < 0:
                yield from (self.stream.items[at] for at in run)
                continue
            left = len(run)
            while left:
                size = min(left, next(sizes))
                yield port, self.tables[port].slice(offsets[port], size)
                offsets[port] += size
                left -= size


def batched(
    arrowed: Arrowed, sizes: Iterator[int], *, restarts: bool = False, arrays: bool = False
) -> Sent:
    """As Arrow batches, columns at once where it can."""
    drive = arrowed.stream.drive(arrays=arrays)
    for piece in arrowed.pieces(sizes):
        if type(piece) is tuple:
            drive.take_batch(piece[1], piece[0])
        else:
            drive.take([piece])
        if restarts:
            drive.take([restart()])
    drive.finish()
    return sent(drive.events)


def always(size: int) -> Iterator[int]:
    """The same size for ever."""
    while True:
        yield size


def drawn(seed: int) -> Iterator[int]:
    """Random sizes, the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield rng.choice([1, 1, 2, 3, 5, 8, 20])


def batch_ways(arrowed: Arrowed, *, restarts: bool) -> Iterator[Way]:
    """Those that take Arrow batches."""
    yield Way("whole batches", lambda: batched(arrowed, always(10**9)))
    for size in SIZES:
        yield Way(f"batches of {size}", partial(batched, arrowed, always(size)))
    yield Way("batches of random sizes", lambda: batched(arrowed, drawn(0)))
    if not restarts:
        return
    for arrays in (False, True):
        name = f"batches and restarts{', saved as arrays' if arrays else ''}"
        yield Way(name, partial(batched, arrowed, drawn(1), restarts=True, arrays=arrays))


# -- farms ----------------------------------------------------------------------------------------


class Bytes:
    """A pool of virtual workers that are told and tell everything as bytes, as real ones do."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """Give a worker something to do."""
        self._pool.send(worker, work, pickle.loads(pickle.dumps(args)), oldest)

    def wait(self, *, block: bool) -> Iterator[Any]:
        """What is done."""
        for answer in self._pool.wait(block=block):
            yield pickle.loads(pickle.dumps(answer))


def forgetful(operator: Operator) -> bool:
    """Whether partitions are evicted, in it or in an operator of a graph.

    Where keys are spread, each place counts its own partitions against the limit, as
    `Operator.splits_by` says; so others leave than in one place.
    """
    nodes = operator.operators.values() if isinstance(operator, Graph) else (operator,)
    return any(spec is not None and spec.forget is not None for op in nodes for spec in op.windows)


def farmed(stream: Stream, make: Callable[..., Any], *, restarts: bool = False) -> Sent:
    """On three workers, whose speed varies."""
    from windowlib.farms import KeyFarm
    from windowlib.farms.virtual import VirtualPool

    try:
        farm = make(stream.operator, workers=3, chunk=5)
    except FarmError as error:
        raise LeftOut(str(error)) from None
    if isinstance(farm, KeyFarm) and forgetful(stream.operator):
        raise LeftOut(FORGETS)
    rng = random.Random(0)

    def pool(workers: int, job: Any) -> Any:
        return Bytes(VirtualPool(workers, job, cost=lambda *_: rng.random()))

    items = list(stream.items)
    if restarts:
        items.insert(len(items) // 2, restart())
    return plain(stream, items, opener=lambda start: farm.open(start, pool=pool))


def farm_kinds() -> dict[str, Callable[..., Any]]:
    """The farms there are."""
    from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition

    return {
        "KeyFarm": KeyFarm,
        "WindowFarm": WindowFarm,
        "WindowFarm(active=True)": lambda op, **more: WindowFarm(op, active=True, **more),
        "WindowFarm(partials=True)": lambda op, **more: WindowFarm(op, partials=True, **more),
        "PaneFarm": PaneFarm,
        "WindowPartition": WindowPartition,
    }


def farm_ways(stream: Stream, *, restarts: bool) -> Iterator[Way]:
    """Those that spread the work over workers."""
    for name, make in farm_kinds().items():
        yield Way(name, partial(farmed, stream, make))
        if restarts:
            yield Way(f"{name}, restarted", partial(farmed, stream, make, restarts=True))
