"""The stages of farms without Spark: every farm, window and function, cut and restored anywhere.

Tasks get the rows of a stage in any order and on their own; buckets are restored between
micro-batches. What comes out is what the operator gives, row for row.
"""
# ruff: noqa: SIM300 - asserts read expected first

import random
from dataclasses import replace
from itertools import product
from typing import Any, cast
from zlib import crc32

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructType

from tests.helpers.examples import examples
from tests.spark import cases
from tests.spark.stream_runs import by_key, unended
from tests.spark.test_bucket import Kept, chunks_of
from tests.spark.test_farms import ENDS, SUMS, WHOLE, AboveMean, Reach, ordered
from tests.spark.test_same_answers import close
from windowlib import (
    Count,
    Delta,
    Event,
    FarmError,
    Landmark,
    Session,
    Sliding,
    Time,
    Tumbling,
)
from windowlib.columnar.arrays.encoding import stream_table
from windowlib.errors import ModelError
from windowlib.farms import PaneFarm, WindowFarm, WindowPartition
from windowlib.operators import Aggregate, Skyline, agg, desc
from windowlib.spark.bucket.bucket import BucketSpec
from windowlib.spark.farms import farm_plan, window_stages
from windowlib.spark.farms.window_stages import (
    SENT,
    WORKER,
    FiringSender,
    SentFiring,
    shared_slices,
)
from windowlib.spark.plan import validation
from windowlib.spark.plan.attach import PlannedStream
from windowlib.spark.plan.query_plan import AttachOptions, numbered, plan_query
from windowlib.spark.versions import arrow_schema
from windowlib.window.state_bytes import load_state

BY: dict[str, Any] = {"by": "k", "order_by": "ts"}
EVENT: dict[str, Any] = {"by": "k", "watermark": 3}
COLUMNS = StructType().add("ts", LongType()).add("k", StringType()).add("j", IntegerType())
COLUMNS = COLUMNS.add("x", DoubleType()).add("n", LongType())


class SomeReach(Reach):
    """Windows that hold tuples: the clock of a bucket without rows ticks as well."""

    def before_flush(self, window: Any, key: Any) -> None:
        if window.size(key):
            super().before_flush(window, key)

    on_trigger = before_flush


WINDOWS: dict[str, Any] = {
    "count": Sliding(Count(9), every=Count(4), **BY),
    "count, no key": Sliding(Count(20), every=Count(6), order_by="ts"),
    "count, hopping": Sliding(Count(3), every=Count(7), **BY),
    "count, tumbling": Tumbling(Count(5), by=("k", "j"), order_by="ts"),
    "delta": Sliding(Delta("ts", 50), every=Delta("ts", 20), **BY),
    "delta, tumbling": Tumbling(Delta("ts", 40), **BY),
    "count or time": Tumbling(Count(6) | Time("9s"), **BY),
    "time": Sliding(Time("25s"), every=Time("7s"), **BY),
    "time and count": Sliding(Time("20s"), every=Count(4), **BY),
    "count and time": Sliding(Count(7), every=Time("5s"), **BY),
    "event": Sliding(Event("ts", 30), every=Event("ts", 12), late="drop", **EVENT),
    "event, late rows": Tumbling(Event("ts", 30), late="port", **EVENT),
    "event, corrected": Tumbling(Event("ts", 30), late="update", allowed=60, **EVENT),
    "sessions": Session(Event("ts"), gap=9, late="drop", **EVENT),
    "landmark": Landmark(Event("ts", 40), since=0, late="drop", **EVENT),
}
FUNCTIONS: dict[str, Any] = {
    "sums": lambda window: Aggregate(window, SUMS),
    "ends": lambda window: Aggregate(window, ENDS),
    "all values": lambda window: Aggregate(window, WHOLE),
    "step by step": lambda window: Aggregate(window, out=agg.custom(int, _step, column="n")),
    "groups": lambda window: Aggregate(window, SUMS, group_by="j"),
    "skyline": lambda window: Skyline(window, "j", desc("n")),
    "own": SomeReach,
    "twice": AboveMean,
}
FARMS: dict[str, Any] = {
    "windows": lambda op: WindowFarm(op, workers=2),
    "windows, three together": lambda op: WindowFarm(op, workers=2, batch=3),
    "active": lambda op: WindowFarm(op, workers=3, active=True),
    "slices": lambda op: PaneFarm(op, workers=2),
    "windows of pieces": lambda op: WindowFarm(WindowPartition(op, workers=2, parts=2), workers=2),
    "pieces": lambda op: WindowPartition(op, workers=2, parts=3),
}


def key_of(names: tuple[str, str, str]) -> tuple[str, ...]:
    key = WINDOWS[names[1]].by
    own = () if key is None else key if isinstance(key, tuple) else (key,)
    return (*own, "j") if names[2] == "groups" else own  # of which the order is not kept


def same_rows(names: tuple[str, str, str], want: Any, got: Any) -> None:
    """The same rows for every key, in the order of windows; late rows are of no window."""
    key = key_of(names)
    told = key == () or names[2] not in ("own", "twice")  # whose rows lack some of the key
    ours, theirs = by_key(want, key), by_key(ordered(got), key)
    assert ours.keys() == theirs.keys()
    for each, rows in ours.items():
        found = theirs[each]
        if not told or each[0] == "late":
            rows, found = sorted(rows, key=str), sorted(found, key=str)
        assert len(rows) == len(found), each
        assert all(map(close, rows, found)), each


def _step(state: int, value: int) -> int:
    return (state * 31 + value) % 1009


def farm_of(names: tuple[str, str, str]) -> Any:
    farm, window, function = names
    return FARMS[farm](FUNCTIONS[function](WINDOWS[window]))


def taken(names: tuple[str, str, str]) -> bool:
    """Whether there is such a farm, and its rows are brought together first."""
    try:
        return not isinstance(LocalQuery(names, random.Random(0)).plan, farm_plan.PaneFarmPlan)
    except (FarmError, ModelError):  # the latter of operators that do not take such windows
        return False


class LocalFrame:
    """What the stages of a farm ask of a DataFrame; rows come to tasks in any order."""

    def __init__(self, rows: list[pa.RecordBatch], rng: random.Random) -> None:
        self.tasks, self.rng = [rows], rng

    def repartition(self, count: int, *columns: str) -> "LocalFrame":
        rows = [
            batch.slice(at, 1) for task in self.tasks for batch in task for at in range(len(batch))
        ]
        self.rng.shuffle(rows)
        tasks: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
        for row in rows:
            key = row.select(columns).to_pylist() if columns else self.rng.random()
            tasks[crc32(repr(key).encode()) % count].append(row)
        made = LocalFrame([], self.rng)
        made.tasks = tasks
        return made

    def mapInArrow(self, work: Any, struct: Any) -> "LocalFrame":  # noqa: N802 - Spark's name
        made = LocalFrame([], self.rng)
        sent = [cloudpickle.loads(cloudpickle.dumps(work)) for _ in self.tasks]
        made.tasks = [list(each(iter(task))) for each, task in zip(sent, self.tasks, strict=True)]
        return made

    def rows(self) -> list[dict[str, Any]]:
        return [row for task in self.tasks for batch in task for row in batch.to_pylist()]


class LocalQuery:
    """A farm over micro-batches: its buckets, and the stages behind them."""

    def __init__(self, names: tuple[str, str, str], rng: random.Random) -> None:
        self.farm, self.rng = farm_of(names), rng
        farm = self.farm
        (spec,) = farm.operator.windows  # one watermark is that of all keys
        said = ", ".join(
            f"{name} {COLUMNS[name].dataType.simpleString()}" for name in key_of(names)
        )
        schema = f"{said or 'k string'}, out bigint" if names[2] == "step by step" else None
        options = AttachOptions(schema=schema)
        plan = plan_query(farm.operator, options, [cast(Any, PlannedStream(COLUMNS))])
        self.keyed = plan.key is not None and not spec.event_time
        self.plan = farm_plan.plan_of(farm, numbered(plan), numbered=True)
        self.buckets: dict[int, Kept] = {}

    def batch(self, rows: list[Any], now: float | None, restore: bool) -> list[dict[str, Any]]:
        def run(plan: Any) -> LocalFrame:
            made = self._sent(plan, rows, now, restore)
            return LocalFrame(made, self.rng)

        def copies(plan: Any, work: Any, farm: str, column: str, workers: int, least: int) -> Any:
            inputs = plan.inputs[0].append(pa.field(column, pa.int32()))
            return replace(plan, operator=work, inputs=(inputs,))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(farm_plan, "frame_of", run)
            patch.setattr(farm_plan, "for_each_worker", copies)
            frame: Any = self.plan.frame()
            return list(frame.rows())

    def _sent(
        self, plan: Any, rows: list[Any], now: float | None, restore: bool
    ) -> list[pa.RecordBatch]:
        spec = BucketSpec(
            operator=plan.operator,
            inputs=plan.inputs,
            outputs=plan.output.spark_schemas,
            made=plan.output.operator_schemas,
            orders=validation.orders(self.plan.operator),
            fingerprint={},
            nonce="run",
            timed=validation.timed(self.plan.operator),
        )
        given: dict[int, list[Any]] = {0: [], 1: []}
        many = plan.operator.workers if WORKER in plan.inputs[0].names else 0
        for row in rows:
            place = crc32(str(row["k"]).encode()) if self.keyed else 0
            for copy in [{**row, WORKER: n} for n in range(many)] or [row]:
                given[(place + copy.get(WORKER, 0)) % 2].append(copy)
        found = []
        for number, own in given.items():
            bucket = self.buckets.setdefault(number, Kept(spec))
            cuts = [self.rng.randrange(len(own) + 1)]
            micros = None if now is None else round(now * 1e6)
            outcome = bucket.step(chunks_of([own], plan.inputs, cuts), micros, restore)
            for port, data in outcome.rows:
                table = stream_table(data)
                name = plan.output.ports[port]
                found += list(self._named(plan, name, table))
        return found

    def _named(self, plan: Any, name: str | None, table: pa.Table) -> Any:
        return plan.unpack().rows(name, table)


MATRIX = [names for names in product(FARMS, WINDOWS, FUNCTIONS) if taken(names)]

STEPS = st.lists(
    st.tuples(st.integers(0, 70), st.sampled_from([0, 1, 4, 30]), st.booleans()),
    min_size=2,
    max_size=5,
)


def run(names: tuple[str, str, str], steps: Any, seed: int) -> tuple[Any, Any]:
    """What the operator gives, and what its farm does."""
    query = LocalQuery(names, random.Random(seed))
    farm = query.farm
    timed = validation.timed(farm.operator)
    rows = cases.rows(seed % 5, back="event" in names[1])
    at, now, want_of, got = 0, 100.0, [], list[dict[str, Any]]()
    for size, passed, restore in steps:
        now += passed
        some, at = rows[at : at + size], at + size
        want_of.append((now if timed else None, [some]))
        got += query.batch(some, now if timed else None, restore)
    columns = [name for name in query.plan.plan.output.struct.names if name != "_window"]
    ports = {port.name for port in farm.operator.model.outputs}
    want = []
    for port, row in unended(farm.operator, want_of, validation.orders(farm.operator)):
        own = {**row, "_port": port} if len(ports) > 1 else row
        want.append({name: own.get(name) for name in columns})
    return want, got


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(names=st.sampled_from(MATRIX), steps=STEPS, seed=st.integers(0, 99))
def test_stages_give_what_the_operator_gives(names, steps, seed):
    same_rows(names, *run(names, steps, seed))


TICKING = [names for names in MATRIX if names[1:] == ("count and time", "own")]


@pytest.mark.parametrize("names", TICKING, ids=" - ".join)
def test_time_passes_before_the_first_row(names):
    same_rows(names, *run(names, [(0, 0, False), (0, 30, False), (20, 4, True), (9, 30, False)], 0))


@pytest.mark.parametrize("names", MATRIX, ids=" - ".join)
@pytest.mark.long
def test_every_farm_window_and_function(names):
    want, got = run(names, [(150, 4, False), (40, 30, True), (7, 1, False), (200, 30, True)], 3)
    assert want, "a case that makes no rows proves nothing"
    same_rows(names, want, got)


def test_the_matrix_has_every_farm_and_window():
    assert set(FARMS) == {farm for farm, _, _ in MATRIX}
    assert set(WINDOWS) == {window for _, window, _ in MATRIX}
    assert set(FUNCTIONS) == {function for _, _, function in MATRIX}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=8),
    st.integers(1, 15),
)
def test_slices_cover_windows_and_nothing_else(extents, largest):
    extents = sorted((lo, lo + size) for lo, size in extents)
    fired = [SentFiring(n, lo, hi, 0) for n, (lo, hi) in enumerate(extents)]
    slices = shared_slices(fired, largest)
    assert all(0 < hi - lo <= largest for lo, hi in slices)
    rows = [row for lo, hi in slices for row in range(lo, hi)]
    assert rows == sorted({row for lo, hi in extents for row in range(lo, hi)})
    for lo, hi in extents:
        assert lo == hi or {lo, hi} <= {edge for each in slices for edge in each}


def test_a_partition_with_most_rows_gets_more_tasks():
    op = Aggregate(Sliding(Count(600), every=Count(200), by="k"), SUMS)
    sender = FiringSender(op, shared=True, tasks=6)
    running = sender.open()
    sent: list[Any] = []
    running.connect(0, sent.append)
    keys = ["hot"] * 4000 + ["cold"] * 700
    table = {"k": keys, "n": range(len(keys)), "x": [1.0] * len(keys)}
    running.insert_batch(pa.record_batch(table))
    shares = [window_stages.SentShare(*load_state(row["_what"])) for row in sent]
    many = {key: sum(share.key == key for share in shares) for key in ("hot", "cold")}
    assert many["hot"] > 3
    assert 1 == many["cold"]
    assert arrow_schema(SENT, "UTC").names == list(sent[0])
    assert 1 == len({share.id for share in shares if share.key == "hot"})


def test_active_workers_share_windows_evenly():
    names = ("active", "count", "all values")
    want, _ = run(names, [(200, 0, False)], 3)
    op = farm_of(names).operator
    owned = []
    for worker in range(3):
        active = window_stages.ActiveWindows(op, workers=3)
        running = active.open()
        made: list[Any] = []
        running.connect(0, made.append)
        for row in cases.rows(3)[:200]:
            running.insert({**row, WORKER: worker})
        owned.append(len(made))
    assert len(want) == sum(owned)
    assert max(owned) - min(owned) <= 5
