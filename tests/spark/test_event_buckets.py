"""Buckets that follow Spark's watermark, without Spark: any disorder, cuts, restarts and keys."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from tests.helpers.examples import examples
from tests.spark.stream_runs import unended
from tests.spark.test_bucket import spec_of
from windowlib import (
    Event,
    KSlack,
    Landmark,
    Session,
    Sliding,
    Tumbling,
    Watermark,
    WindowlibWarning,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.operators import Aggregate, agg
from windowlib.spark.bucket.bucket import Bucket, MicroBatch
from windowlib.spark.bucket.processor import Processor
from windowlib.spark.plan.folding import Fold, kept_rows
from windowlib.spark.plan.shuffle import HELLO, BucketNumbers, Pack, PackedRows
from windowlib.spark.plan.watermark import DELAY

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()})
SLACK = 7
OUT: dict[str, Any] = {
    "start": agg.window_start(),
    "end": agg.window_end(),
    "rows": agg.count(),
    "sum": agg.sum("n"),
}
TEN, FIVE = Event("ts", 10, offset=3), Event("ts", 5)


def operators(**said: Any) -> dict[str, Aggregate]:
    said = {"by": "k", "watermark": SLACK, **said}
    listed = {**OUT, "all": agg.collect("n")}
    return {
        "tumbling": Aggregate(Tumbling(TEN, **said), OUT),
        "listed": Aggregate(Tumbling(TEN, **said), listed),
        "sliding": Aggregate(Sliding(Event("ts", 10), every=FIVE, **said), OUT),
        "session": Aggregate(Session(Event("ts"), gap=6, **said), OUT),
        "listed session": Aggregate(Session(Event("ts"), gap=6, **said), listed),
        "landmark": Aggregate(Landmark(Event("ts", 10), since=0, **said), OUT),
    }


class Host:
    """Calls buckets as Spark does: with rows, or when the watermark has reached their timer."""

    def __init__(self, operator: Aggregate, buckets: int, folds: bool = True) -> None:
        self.spec = replace(spec_of(operator, SCHEMA), follows=1)
        self.folds = folds and not kept_rows(self.spec)
        self.buckets = [Bucket(self.spec, 0) for _ in range(buckets)]
        self.timers: list[int | None] = [None] * buckets
        self.top, self.watermark = 0, 0
        self.made: list[tuple[str, Any]] = []
        self.late = 0

    def micro_batch(self, rows: list[dict[str, Any]]) -> None:
        """All buckets, then the watermark moves."""
        for number in range(len(self.buckets)):
            mine = [row for row in rows if "abc".index(row["k"]) % len(self.buckets) == number]
            timer = self.timers[number]
            if mine or (timer is not None and timer < self.watermark):
                self._step(number, mine)
        self.top = max([self.top, *(row["ts"] for row in rows)])
        self.watermark = max(self.watermark, self.top - SLACK)

    def _step(self, number: int, rows: list[dict[str, Any]]) -> None:
        chunks = self._chunks(rows) if rows else ()
        bucket = self.buckets[number]
        reached = self.spec.reached(self.watermark)
        result = bucket.step(MicroBatch("run", chunks, reached, 0, 0, False))
        for port, blob in result.rows:
            self.made += [(bucket.names[port], row) for row in stream_table(blob).to_pylist()]
        self.late += result.counts["late"]
        due = result.due
        self.timers[number] = None if due is None else self.spec.timer(due, self.watermark)
        assert result.snapshot is not None

    def _chunks(self, rows: list[dict[str, Any]]) -> tuple[PackedRows, ...]:
        """The rows of two tasks."""
        found: list[PackedRows] = []
        for task in (rows[::2], rows[1::2]):
            batch = pa.RecordBatch.from_pylist(task, SCHEMA)
            if not self.folds:
                found.append(PackedRows(0, len(found), stream_bytes(batch)))
                continue
            buckets = pa.array([0] * len(task), pa.int32())
            given = pa.RecordBatch.from_arrays(
                [buckets, *batch.columns], ["_bucket", *batch.schema.names]
            )
            fold = Fold(self.spec.operator, Pack(0, BucketNumbers(1), "run"))
            for chunks in fold([given]):
                found += [
                    PackedRows(chunk["side"], chunk["place"], chunk["data"])
                    for chunk in chunks.to_pylist()
                    if chunk["side"] != HELLO
                ]
        return tuple(found)

    def restart(self) -> None:
        """All buckets from their snapshots, in other processes."""
        self.buckets = [
            Bucket.restored(self.spec, bucket.nonce, bucket.snapshot(), [])
            for bucket in self.buckets
        ]


@st.composite
def streams(draw: Any, disorder: int) -> list[dict[str, Any]]:
    """Rows that come up to some time late, with ties."""
    at = 1  # Spark's watermark starts at 0, and no timer is less than 1
    steps = draw(st.lists(st.integers(0, 9), min_size=1, max_size=30))
    found = []
    for n, step in enumerate(steps):
        at += step
        come = at + draw(st.integers(0, disorder))
        found.append((come, {"ts": at, "k": draw(st.sampled_from("abc")), "n": n}))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def fed(host: Host, rows: list[dict[str, Any]], cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (lo, hi) in enumerate(pairwise(edges)):
        host.micro_batch(rows[lo:hi])
        if number % 2:
            host.restart()
    host.micro_batch([])  # Spark runs once more when the watermark has moved


def in_order(made: Any) -> list[Any]:
    return sorted(made, key=lambda each: (each[1]["end"], each[1]["k"], repr(each)))


@pytest.fixture(autouse=True, params=[1, 1000], ids=["arrays", "rows"])
def _batches(request, monkeypatch):
    """As arrays and row by row."""
    monkeypatch.setattr(handover, "MIN_ROWS", request.param)


@pytest.mark.parametrize("name", operators())
@given(st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_within_the_slack_are_as_in_replay(name, data):
    rows = data.draw(streams(SLACK))
    cuts = data.draw(st.lists(st.integers(0, 30), max_size=4))
    operator = operators()[name]
    host = Host(operator, data.draw(st.sampled_from((1, 2, 3))), folds=data.draw(st.booleans()))
    fed(host, rows, cuts)
    want = unended(operator, [(None, [rows])], [None])
    stamps = [row["ts"] for row in sorted(rows, key=lambda row: row["n"])]
    assert in_order(ties_sorted(host.made, stamps)) == in_order(ties_sorted(want, stamps))
    assert host.late == 0


def ties_sorted(made: Any, stamps: list[int]) -> list[tuple[str, Any]]:
    """The results with rows of one timestamp in the order of `n`: two tasks have no order."""
    found = []
    for port, row in made:
        listed = row.get("all", [])
        assert [stamps[n] for n in listed] == sorted(stamps[n] for n in listed)
        found.append((port, {**row, "all": sorted(listed, key=lambda n: (stamps[n], n))}))
    return found


@pytest.mark.filterwarnings(f"ignore::{WindowlibWarning.__module__}.{WindowlibWarning.__name__}")
@pytest.mark.parametrize("late", ["drop", "port"])
@given(st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_watermark_is_never_stricter_than_in_replay(late, data):
    rows = data.draw(streams(60))
    cuts = data.draw(st.lists(st.integers(0, 30), max_size=4))
    operator = operators(late=late)["tumbling"]
    several, one = Host(operator, 3), Host(operator, 1, folds=False)
    fed(several, rows, cuts)
    fed(one, rows, cuts)
    assert in_order_of_ports(several.made) == in_order_of_ports(one.made)
    assert several.late == one.late  # whichever keys share a bucket
    running = operator.open()
    running.insert_many(rows)
    assert several.late <= window_of(running).late_rows
    held = sum(window_of(bucket.running).held()[0] for bucket in several.buckets)
    windows = sum(row["rows"] for port, row in several.made if port == "out")
    assert len(rows) == windows + several.late + held
    aside = [row for port, row in several.made if port == "late"]
    assert len(aside) == (several.late if late == "port" else 0)


def window_of(running: Any) -> Any:
    (window,) = running.windows
    return window


def test_only_what_needs_rows_gets_them():
    why = {
        name: kept_rows(replace(spec_of(operator, SCHEMA), follows=1))
        for name, operator in operators().items()
    }
    assert why == {
        "tumbling": "",
        "listed": "a function that needs rows in order",
        "sliding": "",
        "session": "",
        "listed session": "a function that needs rows in order",
        "landmark": "",
    }
    port = spec_of(operators(late="port")["tumbling"], SCHEMA)
    assert kept_rows(replace(port, follows=1)) == "late rows are looked at one by one"
    assert kept_rows(port) == "the windows have a watermark of their own"


def in_order_of_ports(made: Any) -> list[Any]:
    return sorted(map(repr, made))


def test_late_rows_correct_windows_that_are_kept():
    kept: dict[str, Any] = {"late": "update", "allowed": 50}
    operator = Aggregate(Tumbling(TEN, by="k", watermark=SLACK, **kept), OUT)
    host = Host(operator, 2)
    for ts in (5, 40, 40, 6):
        host.micro_batch([{"ts": ts, "k": "a", "n": 1}])
    assert [row["rows"] for _, row in host.made] == [1, 2]
    host.micro_batch([{"ts": 400, "k": "b", "n": 1}])
    host.micro_batch([])
    assert [window_of(bucket.running).held() for bucket in host.buckets] == [(0, 0), (1, 1)]


def test_keys_are_forgotten_when_their_windows_are_closed():
    host = Host(operators()["session"], 1)
    for at in range(200):
        host.micro_batch([{"ts": at * 10, "k": "abc"[at % 3], "n": 1}])
    assert window_of(host.buckets[0].running).held()[1] <= 3
    assert len(host.buckets[0].snapshot()) < 4000


STAMPED = StructType([StructField("ts", TimestampType()), StructField("k", StringType())])
MARKED = StructType(
    [StructField("ts", TimestampType(), True, {DELAY: 600_000}), StructField("k", StringType())]
)
SPARKS = "Spark's, of ts: "


@pytest.mark.parametrize(
    ("watermark", "columns", "want"),
    [
        (None, STAMPED, SPARKS + "the slack of the window, 0"),
        ("5s", STAMPED, SPARKS + "the slack of the window, 5s"),
        ("5s", MARKED, SPARKS + "that of df.withWatermark, 10m"),
        (KSlack(), MARKED, SPARKS + "that of df.withWatermark, 10m"),
        (KSlack(), STAMPED, "the window's own, moved by every row: its slack looks at each row"),
        (Watermark("5s", max_ahead="1h"), STAMPED, "sources= and max_ahead= look at each row"),
    ],
)
def test_the_plan_says_whose_watermark_it_is(watermark, columns, want):
    hourly = Aggregate(Tumbling(Event("ts", "1h"), by="k", watermark=watermark), n=agg.count())
    shown = " ".join(hourly.explain(columns).split())
    assert want in shown
    sparks = want.startswith(SPARKS)
    assert ("k: rows with equal values meet" in shown) is sparks
    assert ("partials of each key and slice, not rows" in shown) is sparks
    assert (
        "rows of all keys move the watermark, so one core takes them all" in shown
    ) is not sparks


class FakeMap(dict[Any, Any]):
    """A map of the state store."""

    def getValue(self, key: Any) -> Any:  # noqa: N802 - Spark's name
        return self.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 - Spark's name
        self[key] = value


class FakeHandle:
    """The state and the timers of one bucket."""

    def __init__(self) -> None:
        self.values, self.timers = FakeMap(), set[int]()
        self.deleteTimer, self.registerTimer = self.timers.remove, self.timers.add

    def getMapState(self, *_: Any) -> FakeMap:  # noqa: N802 - Spark's name
        return self.values


def test_timers_wake_a_bucket_when_the_watermark_reaches_the_end_of_a_window():
    host = Host(operators()["tumbling"], 1)
    processor, handle = Processor(host.spec), FakeHandle()
    processor.init(handle)  # type: ignore[arg-type]

    def called(rows: Any, watermark: int) -> list[Any]:
        chunks = [Row(**chunk._asdict()) for chunk in host._chunks(rows)] if rows else []
        given = processor.handleInputRows((0,), iter(chunks), TimerValues(0, watermark))
        return [row for row in given if row.data is not None]

    row = {"ts": 5, "k": "a", "n": 1}
    assert called([row], 0) == []
    assert handle.timers == {12}  # Spark tells of it when the watermark is 13, the end
    assert called([{**row, "ts": 30}], 3) == []
    assert handle.timers == {12}
    handle_expired = processor.handleExpiredTimer((0,), TimerValues(0, 13), ExpiredTimerInfo(12))
    (made,) = [each for each in handle_expired if each.data is not None]
    assert stream_table(made.data).to_pylist() == [
        {"k": "a", "start": 3, "end": 13, "rows": 1, "sum": 1}
    ]
    assert handle.timers == {12, 32}  # the first of them is Spark's to delete
