"""Aggregate over Arrow batches against polars, duckdb and pandas; how its cost and errors grow.

Everything runs on one thread. Each workload runs once before it is timed, in each implementation,
and all must agree on the results; only W3's peers, whose windows lie on a grid, answer another
question, and must merely give about as many windows.

The library takes batches as they would arrive and gives its results in the order in which windows
fire; peers take all rows at once and give them in any order. Targets are for the ways to write a
query that the library was measured against first. Faster ways, where there are some, have rows of
their own.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench import accuracy, columnar_peers, sketches
from bench.columnar_data import (
    LONG,
    SIZE,
    SLIDE,
    Candidate,
    Data,
    Scale,
    Windows,
    batches,
    check_same,
    check_similar,
    data,
    windows,
)
from bench.harness import Measure, Setup, alternate, at_least, at_most, ratio
from windowlib import Count, Delta, Operator, OperatorModel, Sliding, Tumbling
from windowlib.columnar import primitives
from windowlib.operators import Aggregate, agg

SMALL, LARGE = 64 * 1024, 256 * 1024
"""Rows in a batch."""

W1 = Aggregate(Tumbling(Count(SIZE), by="key"), mean=agg.mean("value"))
W2 = Aggregate(
    Sliding(Count(SIZE), every=Count(SLIDE), by="key"), mean=agg.mean("value"), max=agg.max("value")
)
W3 = Aggregate(  # peers give windows from the first row on, too
    Sliding(Delta("ts", "60s"), every=Delta("ts", "10s"), by="key"),
    mean=agg.mean("value"),
    max=agg.max("value"),
    partial="emit",
)
W4 = Aggregate(Sliding(Count(LONG), every=Count(1)), max=agg.max("value"))
G14 = Aggregate(Sliding(Count(LONG), every=Count(1)), p95=agg.quantile("value", 0.95))


def run() -> list[Measure]:
    print(f"Python {platform.python_version()}, numpy {np.__version__}, pyarrow {pa.__version__}")
    pin()
    return [*measured(Scale()), *sketches.measured(sketches.Scale())]


def pin() -> None:
    """One thread for everyone; before any peer is imported."""
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    pa.set_cpu_count(1)


def measured(scale: Scale) -> list[Measure]:
    found = engines()
    return [
        *against_peers(scale, found),
        *sum_errors(scale, found),
        *as_keys_grow(scale, found),
        *as_windows_grow(scale, found),
    ]


def engines() -> list[str]:
    """Those that are installed."""
    if find_spec("numba"):
        return ["numpy", "numba"]
    print("numba is not installed, and left out. To compare: pip install -e '.[speed]'")
    return ["numpy"]


# -- ours -----------------------------------------------------------------------------------------


class P95(Operator):
    """W5's handler, over the values as an array."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    content = "arrow"

    def before_flush(self, window: Any, key: Any) -> None:
        self.emit(key=key, p95=np.sort(window.column("value", key))[94])


W5 = P95(Tumbling(Count(SIZE), by="key"))


def aggregated(
    op: Aggregate, engine: str, arriving: list[pa.RecordBatch], before: Iterable[Any] = ()
) -> Candidate:
    """What an Aggregate gives for batches, after some that are not timed."""

    def setup() -> Callable[[], list[pa.RecordBatch]]:
        running = op.open()
        for batch in before:
            running.process_batch(batch)
        return lambda: [running.process_batch(batch) for batch in arriving]

    return on(engine, Candidate(setup, read_batches))


def handled(op: Operator, engine: str, arriving: list[pa.RecordBatch]) -> Candidate:
    """What an operator of one's own emits for batches."""

    def setup() -> Callable[[], list[Any]]:
        running, out = op.open(), list[Any]()
        running.connect(0, out.append)

        def timed() -> list[Any]:
            for batch in arriving:
                running.insert_batch(batch)
            return out

        return timed

    return on(engine, Candidate(setup, lambda rows: windows(pa.Table.from_pylist(rows))))


def on(engine: str, candidate: Candidate) -> Candidate:
    """The same with the array arithmetic of one engine."""

    def setup() -> Callable[[], Any]:
        with primitives.use(engine):
            timed = candidate.setup()

        def run() -> Any:
            with primitives.use(engine):
                return timed()

        return run

    return Candidate(setup, candidate.read)


def read_batches(found: list[pa.RecordBatch]) -> Windows:
    return windows(pa.Table.from_batches(found))


def ours(data: Data, engine: str) -> dict[str, Candidate]:
    small, large = batches(data.rows, SMALL), batches(data.rows, LARGE)
    named = batches(data.named, SMALL)
    coded = [batch.set_column(0, "key", batch.column(0).dictionary_encode()) for batch in named]
    values, few = data.rows.select(["value"]), data.few.select(["value"])
    return {
        f"W1 {engine}": aggregated(W1, engine, small),
        f"W1s {engine}": aggregated(W1, engine, named),
        f"W1s {engine}, dictionary": aggregated(W1, engine, coded),
        f"W2 {engine}": aggregated(W2, engine, large),
        f"W3 {engine}": aggregated(W3, engine, large),
        f"W4 {engine}": aggregated(W4, engine, batches(values, SMALL)),
        f"W5 {engine}": handled(W5, engine, small),
        f"G14 {engine}": aggregated(G14, engine, batches(few, SMALL)),
    }


# -- against peers --------------------------------------------------------------------------------

WORKLOADS = ("W1", "W1s", "W2", "W3", "W4", "W5", "G14")
LABELS = {"W1": "W1, integer keys", "W1s": "W1, string keys", "G14": "p95 at every row"}


class Wanted(NamedTuple):
    """A target: how many times longer the fastest of these peers takes."""

    target: float | None
    name: str
    ours: str
    peers: tuple[str, ...]


NUMBERED, NAMED = ("W1 polars int_range.over",), ("W1s polars int_range.over",)
ROLLING = ("W2 polars rolling.over", "W2 polars panes")
GRID = ("W3 polars group_by_dynamic", "W3 polars sort, group_by_dynamic")
PANES = ("W3 duckdb panes", "W3 polars panes")
DUCKDB_PANES = ("W3 duckdb panes", "W3 duckdb panes, each spread to its windows")
LISTS = ("W5 polars lists", "W5 polars lists as arrays")
CODED_NUMPY, CODED_NUMBA = "W1s numpy, dictionary", "W1s numba, dictionary"
ONE_LIST = ("W5 polars a list for each key",)
CODED = ("W1s polars Categorical",)
QUANTILE = ("G14 polars rolling_quantile",)

WANTED = [
    Wanted(3.5, "G7 W1, integer keys: polars / numpy", "W1 numpy", NUMBERED),
    Wanted(2.3, "G7 W1, string keys: polars / numpy", "W1s numpy", NAMED),
    Wanted(3, "G8 W2: polars / numpy", "W2 numpy", ROLLING),
    Wanted(4, "G9 W3: polars group_by_dynamic / numpy", "W3 numpy", GRID),
    Wanted(1, "G9 W3: the best panes in duckdb / numpy", "W3 numpy", DUCKDB_PANES),
    Wanted(1, "G9 W3: the best panes in duckdb / numba", "W3 numba", DUCKDB_PANES),
    Wanted(4, "G10 W4: polars / numpy", "W4 numpy", ("W4 polars rolling_max",)),
    Wanted(3.5, "G11 W5: polars / numpy", "W5 numpy", LISTS),
    Wanted(1, "G11 W5: one list a key in polars / numpy", "W5 numpy", ONE_LIST),
    Wanted(3.5, "G11 W5: polars / numba", "W5 numba", LISTS),
    Wanted(1, "G11 W5: one list a key in polars / numba", "W5 numba", ONE_LIST),
    Wanted(9, "G12 W1, integer keys: polars / numba", "W1 numba", NUMBERED),
    Wanted(9, "G12 W2: polars / numba", "W2 numba", ROLLING),
    Wanted(1.5, "G12 W3: panes / numba", "W3 numba", PANES),
    Wanted(1, "G14 p95 at every row: polars / numpy", "G14 numpy", QUANTILE),
    Wanted(1, "G14 p95 at every row: polars / numba", "G14 numba", QUANTILE),
    Wanted(2, "W1, dictionary-coded text: polars Categorical / numpy", CODED_NUMPY, CODED),
    Wanted(2, "W1, dictionary-coded text: polars Categorical / numba", CODED_NUMBA, CODED),
]


def against_peers(scale: Scale, engines: list[str]) -> Iterator[Measure]:
    rows = data(scale)
    found = {name: c for engine in engines for name, c in ours(rows, engine).items()}
    theirs = columnar_peers.candidates(rows)
    times: dict[str, list[float]] = {}
    for workload in WORKLOADS:
        group = of_workload(workload, found) | of_workload(workload, theirs)
        check_workload(workload, group)
        times |= alternate({name: c.setup for name, c in group.items()}, scale.rounds)
    yield from (measure for wanted in WANTED if (measure := compared(wanted, times)))
    yield from all_ways(times, theirs)


def of_workload(workload: str, candidates: Mapping[str, Candidate]) -> dict[str, Candidate]:
    return {name: c for name, c in candidates.items() if name.partition(" ")[0] == workload}


def check_workload(workload: str, candidates: dict[str, Candidate]) -> None:
    if workload != "W3":
        check_same(candidates)
        return
    print("W3: peers put windows on a grid, which is another query; pandas has one at every row")
    check_same({name: c for name, c in candidates.items() if name in ("W3 numpy", "W3 numba")})
    check_similar({name: c for name, c in candidates.items() if "pandas" not in name})


def compared(wanted: Wanted, times: Mapping[str, list[float]]) -> Measure | None:
    """The fastest of the peers that ran by ours, or None where either is missing."""
    peers = [name for name in wanted.peers if name in times]
    if not peers or wanted.ours not in times:
        print(f"left out: {wanted.name}")
        return None
    fastest = min(peers, key=lambda name: statistics.median(times[name]))
    note = fastest.partition(" ")[2]
    return Measure(wanted.name, ratio(times, fastest, wanted.ours), wanted.target, True, note)


def all_ways(times: Mapping[str, list[float]], peers: Iterable[str]) -> Iterator[Measure]:
    """Every other peer, every other way to write a query there, and what numba adds."""
    shown = {wanted.peers[0] for wanted in WANTED if len(wanted.peers) == 1}
    for peer in peers:
        if peer in shown:
            continue
        workload, _, way = peer.partition(" ")
        engine = "numpy, dictionary" if "Categorical" in way else "numpy"
        name = f"{LABELS.get(workload, workload)}: {way} / {engine}"
        yield at_least(None, name, peer, f"{workload} {engine}", times)
    for workload in WORKLOADS:
        if f"{workload} numba" in times:
            name = f"{LABELS.get(workload, workload)}: numpy / numba"
            yield at_least(None, name, f"{workload} numpy", f"{workload} numba", times)


# -- how cost and errors grow ---------------------------------------------------------------------


def sum_errors(scale: Scale, engines: list[str]) -> Iterator[Measure]:
    found = accuracy.data_sets(scale.sums)
    data_sets = {name: (values, accuracy.exact(values)) for name, values in found.items()}
    for engine in engines:
        with primitives.use(engine):
            errors = {
                name: accuracy.worst(*pair, accuracy.aggregated) for name, pair in data_sets.items()
            }
        name = f"G13 error of a sliding sum / sum of |x|, {engine}"
        data_set, error = max(errors.items(), key=lambda each: each[1])
        yield Measure(name, error, 1e-13, higher_is_better=False, note=data_set)


def as_keys_grow(scale: Scale, engines: list[str]) -> Iterator[Measure]:
    """W6. Windows are filled to all degrees before, so that many keys fire as often as few."""
    few, many = 10, scale.many
    times = grown({keys: filled(keys, scale.rows) for keys in (few, many)}, engines, scale.rounds)
    for engine, target in (("numpy", 3.5), ("numba", 2.5)):
        if engine in engines:
            name = f"G15 W6, per row: {many:,} keys / {few} keys, {engine}"
            yield at_most(target, name, f"{engine} {many}", f"{engine} {few}", times)


def as_windows_grow(scale: Scale, engines: list[str]) -> Iterator[Measure]:
    """G16, with as many slides to a window."""
    values = pa.table({"value": np.random.default_rng(7).random(scale.rows)})
    arriving = batches(values, LARGE)
    sizes = {size: Feed(sliding(size), arriving) for size in (SIZE, scale.large)}
    times = grown(sizes, engines, scale.rounds)
    for engine in engines:
        name = f"G16 per row: window of {scale.large:,} / {SIZE}, {engine}"
        yield at_most(1.5, name, f"{engine} {scale.large}", f"{engine} {SIZE}", times)


class Feed(NamedTuple):
    """An operator, the batches to time, and those that it has seen before."""

    op: Aggregate
    arriving: list[pa.RecordBatch]
    before: tuple[pa.RecordBatch, ...] = ()


def grown(sizes: dict[int, Feed], engines: list[str], rounds: int) -> dict[str, list[float]]:
    """The times of each engine at each size, once the engines agree."""
    setups: dict[str, Setup] = {}
    for size, (op, arriving, before) in sizes.items():
        found = {f"{e} {size}": aggregated(op, e, arriving, before) for e in engines}
        check_same(found)
        setups |= {name: candidate.setup for name, candidate in found.items()}
    return alternate(setups, rounds)


def filled(keys: int, rows: int) -> Feed:
    rng = np.random.default_rng(7)
    ids = np.arange(keys)
    before, timed = (
        pa.table({"key": key, "value": rng.random(len(key))})
        for key in (np.repeat(ids, ids * 37 % SIZE), rng.integers(0, keys, rows))
    )
    return Feed(W1, batches(timed, LARGE), tuple(batches(before, LARGE)))


def sliding(size: int) -> Aggregate:
    window = Sliding(Count(size), every=Count(size * SLIDE // SIZE))
    return Aggregate(window, mean=agg.mean("value"), max=agg.max("value"))
