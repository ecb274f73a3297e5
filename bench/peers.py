"""W1, W2 and W5 in other libraries that take a row at a time: bytewax and quixstreams.

Both are driven as far inside as possible. bytewax runs its dataflow on a list, in batches of
1,000. quixstreams has its `process_window` called directly, without Kafka and without
serialising messages; state goes to RocksDB, committed every 5,000 rows.
"""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bench.harness import Setup

Row = tuple[str, float, float]
SIZE, SLIDE = 100, 10
COMMIT = 5_000

Result = Callable[[dict[str, Any]], tuple[Any, ...]]
"""What a workload wants of a closed window."""


class Candidate(NamedTuple):
    """What is timed; its outputs, each read as (key, value, ...), are compared before that."""

    setup: Setup
    read: Callable[[Any], tuple[Any, ...]]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def p95(values: list[float]) -> float:
    """W5's handler: the 95th of 100 values in order."""
    return sorted(values)[94]


def candidates(rows: list[Row], directory: str) -> dict[str, Candidate]:
    """The peers that are installed, by workload and name."""
    found: dict[str, Candidate] = {}
    for name, make in (("bytewax", bytewax), ("quixstreams", quixstreams)):
        try:
            found |= make(rows, directory)
        except ImportError:
            print(f"{name} is not installed, and left out. To compare: pip install -e '.[bench]'")
        else:
            print(f"{name} {version(name)}")
    return found


def module(name: str) -> ModuleType:
    """Imported by name, so that types are the same whether it is installed or not."""
    with warnings.catch_warnings(record=True):  # a peer's dependencies warn about each other
        return importlib.import_module(name)


# -- bytewax --------------------------------------------------------------------------------------


def bytewax(rows: list[Row], directory: str) -> dict[str, Candidate]:
    op = module("bytewax.operators")
    dataflow, testing = module("bytewax.dataflow"), module("bytewax.testing")
    pairs = [(key, value) for key, _, value in rows]

    def collected(handler: Callable[[list[float]], float]) -> Callable[[Any], Any]:
        """The way that bytewax offers to have 100 tuples of a key."""

        def stream(source: Any) -> Any:
            lists = op.collect("collect", source, timeout=timedelta(days=1), max_size=SIZE)
            return op.map("handler", lists, lambda pair: (pair[0], handler(pair[1])))

        return stream

    def stateful(step: Callable[[Any, float], Any]) -> Callable[[Any], Any]:
        return lambda source: op.stateful_flat_map("step", source, step)

    def setup(stream: Callable[[Any], Any]) -> Setup:
        def build() -> Callable[[], Any]:
            out: list[Any] = []
            flow = dataflow.Dataflow("bench")
            source = op.input("in", flow, testing.TestingSource(pairs, batch_size=1_000))
            op.output("out", stream(source), testing.TestingSink(out))

            def timed() -> list[Any]:
                testing.run_main(flow)
                return out

            return timed

        return build

    return {
        "W1 bytewax": Candidate(setup(collected(mean)), lambda pair: pair),
        "W1 bytewax by hand": Candidate(setup(stateful(running_mean)), lambda pair: pair),
        "W2 bytewax by hand": Candidate(setup(stateful(sliding)), lambda pair: (pair[0], *pair[1])),
        "W5 bytewax": Candidate(setup(collected(p95)), lambda pair: pair),
    }


def running_mean(state: list[Any] | None, value: float) -> tuple[Any, Iterable[float]]:
    """W1 without keeping tuples, on bytewax's general stateful step."""
    if state is None:
        state = [0, 0.0]
    state[0] += 1
    state[1] += value
    if state[0] == SIZE:
        return None, (state[1] / SIZE,)
    return state, ()


def sliding(state: list[Any] | None, value: float) -> tuple[Any, Iterable[tuple[float, float]]]:
    """W2, for which bytewax has no window."""
    if state is None:
        state = [0, deque(maxlen=SIZE)]
    state[0] += 1
    content = state[1]
    content.append(value)
    if state[0] % SLIDE == 0 and len(content) == SIZE:
        return state, ((sum(content) / SIZE, max(content)),)
    return state, ()


# -- quixstreams ----------------------------------------------------------------------------------


def quixstreams(rows: list[Row], directory: str) -> dict[str, Candidate]:
    windows = module("quixstreams.dataframe.windows.definitions")
    functions = module("quixstreams.dataframe.windows.aggregations")
    stores = module("quixstreams.state.rocksdb.windowed.store")
    messages = [(value, key, int(ts * 1000)) for key, ts, value in rows]

    def setup(definition: Any, result: Result, **outputs: Any) -> Setup:
        opened: list[Any] = []

        def build() -> Callable[[], Any]:
            for store in opened:  # closing is not what is timed
                store.close()
            store = stores.WindowedRocksDBStore("bench", "rows", tempfile.mkdtemp(dir=directory))
            store.assign_partition(0)
            opened[:] = [store]
            window = definition.agg(**outputs)
            return lambda: drive(window, store, result)

        return build

    def drive(window: Any, store: Any, result: Result) -> list[Any]:
        out: list[Any] = []
        for start in range(0, len(messages), COMMIT):
            transaction = store.start_partition_transaction(0)
            for value, key, ts in messages[start : start + COMMIT]:
                _, closed = window.process_window(value, key, ts, None, transaction)
                for closed_key, row in closed:
                    out.append((closed_key, *result(row)))
            transaction.prepare()
            transaction.flush()
        return out

    tumbling = windows.TumblingCountWindowDefinition(SIZE, dataframe=None)
    hopping = windows.HoppingCountWindowDefinition(SIZE, step=SLIDE, dataframe=None)
    mean, largest, content = functions.Mean(), functions.Max(), functions.Collect()
    setups = {
        "W1 quixstreams": setup(tumbling, lambda row: (row["mean"],), mean=mean),
        "W2 quixstreams": setup(
            hopping, lambda row: (row["mean"], row["max"]), mean=mean, max=largest
        ),
        "W5 quixstreams": setup(tumbling, lambda row: (p95(row["values"]),), values=content),
    }
    return {name: Candidate(build, lambda row: row) for name, build in setups.items()}


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Where RocksDB writes: in memory where the system has such a place."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
