"""The executions of an operator: rows, batches, restarts, farms, Spark; each a function of a case.

An execution gives the whole output, in order. If it does not apply, it raises `NotApplicable`.
"""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from windowlib.durations import Instant
from windowlib.errors import FarmError, OrderWarning
from windowlib.runtime.graph import Graph
from windowlib.runtime.marks import Mark, Restart, Tagged, restart
from windowlib.runtime.operator import Operator
from windowlib.runtime.replay import is_row_item
from windowlib.runtime.running import Running
from windowlib.spec.policies import Attribute
from windowlib.spec.specification import Spec
from windowlib.testing.stepped_replay import OutputEvent, SteppedReplay
from windowlib.window.container import Window
from windowlib.window.sliding import SlidingWindow
from windowlib.window.tumbling import TumblingWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OutputItems = list[tuple[str, Any]]
Grouped = Callable[[OutputItems], OutputItems]
SIZES = (1, 2, 3, 7)
"""The sizes of batches that a stream is cut into, beside whole runs of rows and random ones."""
MOST_RESTARTS = 12
SPARK = "Spark, a static DataFrame"
EVICTION_REASON = "each place evicts its own partitions, so others are forgotten than in one place"


class NotApplicable(Exception):  # noqa: N818 - no error: the report says it
    """An execution that does not apply, and why."""


class Execution(NamedTuple):
    """An execution: its name, and the function that runs it."""

    name: str
    run: Callable[[], OutputItems]


class Case(NamedTuple):
    """An operator and its input: rows and marks, and the column of arrival times."""

    operator: Operator
    items: Sequence[Any]
    times: Attribute | None

    def replay(self, **more: Any) -> SteppedReplay:
        """A new run of the operator."""
        return SteppedReplay(self.operator, times=self.times, **more)


def outputs(events: Iterable[OutputEvent]) -> OutputItems:
    """The output without its times, which differ where a whole batch is taken at once."""
    return [(port, item) for _, port, item in events]


# -- rows -----------------------------------------------------------------------------------------


def row_by_row(case: Case, items: Sequence[Any] | None = None, **more: Any) -> OutputItems:
    """Row by row: the execution that defines the result."""
    run = case.replay(**more)
    try:
        run.take(case.items if items is None else items)
        run.finish()
    finally:
        run.close()
    return outputs(run.events)


def rows_together(case: Case) -> OutputItems:
    """All rows between two marks at once."""
    run = case.replay()
    for is_row, group in groupby(case.items, key=is_row_item):
        (run.take_many if is_row else run.take)(list(group))
    run.finish()
    return outputs(run.events)


class ReferenceRunning(Running):
    """A running operator whose windows follow the steps of the tables, one by one."""

    def _container(self, spec: Spec, port: int, start: Instant) -> Window[Any, Any]:
        op = self.operator
        make = op.container(port)
        if make not in (TumblingWindow, SlidingWindow):
            raise NotApplicable("it brings windows of its own")
        summarizer = op.summarizer(port)
        return make(spec, events=op, summarizer=summarizer, start=start, engine="reference")


def reference(case: Case) -> OutputItems:
    """With the reference engine in its windows."""
    op = case.operator
    if type(op).open is not Operator.open or not any(op.windows):
        raise NotApplicable("it has no windows itself")
    return row_by_row(case, opener=lambda start: ReferenceRunning(op, start))


def with_restarts(case: Case, places: Iterable[int]) -> OutputItems:
    """Saved as bytes and restored in a new copy before the items at some places."""
    wanted = set(places)
    items: list[Any] = []
    for place, item in enumerate(case.items):
        items += [restart(), item] if place in wanted else [item]
    items += [restart()] if len(case.items) in wanted else []
    return row_by_row(case, items)


def row_executions(case: Case, *, restarts: bool) -> Iterator[Execution]:
    """The executions that take single rows."""
    yield Execution("rows taken together", lambda: rows_together(case))
    yield Execution("the reference engine", lambda: reference(case))
    if not restarts:
        return
    places = range(len(case.items) + 1)
    yield Execution("a restart before every item", lambda: with_restarts(case, places))
    few = sorted(random.Random(0).sample(places, min(len(places), MOST_RESTARTS)))
    for place in few:
        yield Execution(f"a restart before item {place + 1}", partial(with_restarts, case, [place]))


# -- batches --------------------------------------------------------------------------------------


def as_arrow(case: Case) -> ArrowCase:
    """The rows as Arrow tables, one for each input, which may change values."""
    import pyarrow as pa

    ports = _ports(case)
    tables: dict[int, Any] = {}
    for port in sorted(set(ports.values())):
        rows = [_row(case.items[at]) for at in ports if ports[at] == port]
        if odd := [type(row).__name__ for row in rows if not isinstance(row, Mapping)]:
            raise NotApplicable(f"its rows are no dicts, but {odd[0]}")
        try:
            tables[port] = pa.Table.from_pylist(_with_all_columns(rows))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise NotApplicable(f"its rows are no Arrow columns ({error})") from None
    return ArrowCase(case, ports, tables)


def _with_all_columns(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows that have all columns, those of the first row first."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _row(item: Any) -> Any:
    return item.row if isinstance(item, Tagged) else item


def _ports(case: Case) -> dict[int, int]:
    """The input ports of rows, by their places."""
    model, name = case.operator.model, case.operator.name
    return {
        place: model.input(item.port, name) if isinstance(item, Tagged) else 0
        for place, item in enumerate(case.items)
        if is_row_item(item)
    }


class ArrowCase(NamedTuple):
    """A stream, and its rows as a table for each input."""

    case: Case
    ports: Mapping[int, int]
    tables: Mapping[int, Any]

    def rows(self) -> Case:
        """The stream with the rows as Arrow has them: numbers of one type, nulls filled in."""
        rest = {port: iter(table.to_pylist()) for port, table in self.tables.items()}
        items = list(self.case.items)
        for place, port in self.ports.items():
            row, item = next(rest[port]), items[place]
            items[place] = Tagged(item.port, row) if isinstance(item, Tagged) else row
        return self.case._replace(items=items)

    def batches(self, sizes: Iterator[int]) -> Iterator[tuple[int, Any] | Mark | Restart | Tagged]:
        """Ports and batches, and the marks between them; no batch has more rows than its size."""
        offsets = dict.fromkeys(self.tables, 0)
        places = range(len(self.case.items))
        for port, group in groupby(places, key=lambda at: self.ports.get(at, -1)):
            run = list(group)
            if port < 0:
                yield from (self.case.items[at] for at in run)
                continue
            left = len(run)
            while left:
                size = min(left, next(sizes))
                yield port, self.tables[port].slice(offsets[port], size)
                offsets[port] += size
                left -= size


def in_batches(
    arrow_case: ArrowCase, sizes: Iterator[int], *, restarts: bool = False, arrays: bool = False
) -> OutputItems:
    """As Arrow batches, columns at once where it can."""
    run = arrow_case.case.replay(arrays=arrays)
    for piece in arrow_case.batches(sizes):
        if type(piece) is tuple:
            run.take_batch(piece[1], piece[0])
        else:
            run.take([piece])
        if restarts:
            run.take([restart()])
    run.finish()
    return outputs(run.events)


def constant_sizes(size: int) -> Iterator[int]:
    """One size without end."""
    while True:
        yield size


def random_sizes(seed: int) -> Iterator[int]:
    """Random sizes, the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield rng.choice([1, 1, 2, 3, 5, 8, 20])


def batch_executions(arrow_case: ArrowCase, *, restarts: bool) -> Iterator[Execution]:
    """The executions that take Arrow batches."""
    yield Execution("whole batches", lambda: in_batches(arrow_case, constant_sizes(10**9)))
    for size in SIZES:
        yield Execution(f"batches of {size}", partial(in_batches, arrow_case, constant_sizes(size)))
    yield Execution("batches of random sizes", lambda: in_batches(arrow_case, random_sizes(0)))
    if not restarts:
        return
    for arrays in (False, True):
        name = f"batches and restarts{', saved as arrays' if arrays else ''}"
        yield Execution(
            name, partial(in_batches, arrow_case, random_sizes(1), restarts=True, arrays=arrays)
        )


# -- farms ----------------------------------------------------------------------------------------


class PicklingPool:
    """A pool of virtual workers whose tasks and answers are bytes, as those of processes are."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def send(self, worker: int, work: str, args: Any, oldest: int) -> None:
        """Send a task to a worker."""
        self._pool.send(worker, work, pickle.loads(pickle.dumps(args)), oldest)

    def wait(self, *, block: bool) -> Iterator[Any]:
        """The answers of tasks that are done."""
        for answer in self._pool.wait(block=block):
            yield pickle.loads(pickle.dumps(answer))


def evicts_partitions(operator: Operator) -> bool:
    """Whether partitions are evicted, in it or in an operator of a graph.

    Where keys are spread, each place counts its own partitions against the limit, as
    `Operator.splits_by` says; so others leave than in one place.
    """
    nodes = operator.operators.values() if isinstance(operator, Graph) else (operator,)
    return any(spec is not None and spec.forget is not None for op in nodes for spec in op.windows)


def on_farm(case: Case, make: Callable[..., Any], *, restarts: bool = False) -> OutputItems:
    """On three workers, whose speed varies."""
    from windowlib.farms import KeyFarm
    from windowlib.farms.virtual import VirtualPool

    try:
        farm = make(case.operator, workers=3, chunk=5)
    except FarmError as error:
        raise NotApplicable(str(error)) from None
    if isinstance(farm, KeyFarm) and evicts_partitions(case.operator):
        raise NotApplicable(EVICTION_REASON)
    rng = random.Random(0)

    def pool(workers: int, job: Any) -> Any:
        return PicklingPool(VirtualPool(workers, job, cost=lambda *_: rng.random()))

    items = list(case.items)
    if restarts:
        items.insert(len(items) // 2, restart())
    return row_by_row(case, items, opener=lambda start: farm.open(start, pool=pool))


def farm_patterns() -> dict[str, Callable[..., Any]]:
    """The farm of each pattern, by name."""
    from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition

    return {
        "KeyFarm": KeyFarm,
        "WindowFarm": WindowFarm,
        "WindowFarm(active=True)": lambda op, **more: WindowFarm(op, active=True, **more),
        "WindowFarm(partials=True)": lambda op, **more: WindowFarm(op, partials=True, **more),
        "PaneFarm": PaneFarm,
        "WindowPartition": WindowPartition,
    }


def farm_executions(case: Case, *, restarts: bool) -> Iterator[Execution]:
    """The executions in farms."""
    for name, make in farm_patterns().items():
        yield Execution(name, partial(on_farm, case, make))
        if restarts:
            yield Execution(f"{name}, restarted", partial(on_farm, case, make, restarts=True))


# -- rows whose order is fixed within a key only --------------------------------------------------


def sorted_by_key(case: Case, found: OutputItems) -> OutputItems:
    """Output sorted by key, for hosts where time and the end come to each key separately.

    Rows whose key is not in the input are left out: those of empty windows, which fire everywhere.
    If output rows lack the key, they are sorted by their texts.
    """
    columns = case.operator.splits_by(0) or ()
    rows = [(port, item) for port, item in found if not isinstance(item, Mark)]
    if not columns or not all(_has_columns(item, columns) for _, item in rows):
        return sorted(rows, key=repr)
    came = {_key_text(_row(item), columns) for item in case.items if is_row_item(item)}
    kept = [each for each in rows if _key_text(each[1], columns) in came]
    return sorted(kept, key=lambda each: (_key_text(each[1], columns), each[0]))


def _has_columns(item: Any, columns: tuple[str, ...]) -> bool:
    return isinstance(item, Mapping) and all(name in item for name in columns)


def _key_text(item: Any, columns: tuple[str, ...]) -> str:
    return repr([item.get(name) if isinstance(item, Mapping) else None for name in columns])


# -- Spark ---------------------------------------------------------------------------------------


def spark_execution(
    spark: SparkSession, arrow_case: ArrowCase, expected: OutputItems
) -> tuple[Execution, OutputItems, Grouped]:
    """The execution, what it should give, and how to put both in one order."""
    columns: dict[str, list[str]] = {}

    def run() -> OutputItems:
        found = _run_on_spark(spark, arrow_case)
        columns.update(found[1])
        return found[0]

    def by_key(sent: OutputItems) -> OutputItems:
        """Rows with the columns of the schema for Spark, key by key."""
        shaped = [
            (port, {name: item.get(name) for name in columns[port]})
            for port, item in sent
            if not isinstance(item, Mark)
        ]
        return sorted_by_key(arrow_case.rows(), shaped)

    return Execution(SPARK, run), expected, by_key


def _run_on_spark(
    spark: SparkSession, arrow_case: ArrowCase
) -> tuple[OutputItems, dict[str, list[str]]]:
    """The output, and the columns of each port."""
    from windowlib.spark import attach

    case = arrow_case.case
    _check_for_spark(arrow_case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderWarning)  # one partition, which has an order
        times: Any = case.times
        frame = spark.createDataFrame(arrow_case.tables[0]).coalesce(1)
        out = attach(case.operator, times=times)(frame)
        rows = [row.asDict(recursive=True) for row in out.collect()]
    names = [port.name for port in case.operator.model.outputs]
    data = [name for name in out.columns if name != "_port"]
    if "_port" not in out.columns:
        return [(names[0], row) for row in rows], dict.fromkeys(names, data)
    sent = [(row.pop("_port"), row) for row in rows]
    return sent, dict.fromkeys(names, data)


def _check_for_spark(arrow_case: ArrowCase) -> None:
    case = arrow_case.case
    if len(case.operator.model.inputs) != 1:
        raise NotApplicable("with several inputs, Spark takes their rows in an order of its own")
    if len(arrow_case.ports) != len(case.items):
        raise NotApplicable("a DataFrame has no marks among its rows")
    if evicts_partitions(case.operator):
        raise NotApplicable(EVICTION_REASON)
    if not arrow_case.ports:
        raise NotApplicable("there are no rows")
    if case.times is not None and not isinstance(case.times, str):
        raise NotApplicable("Spark takes times from a column, and not from a function")
