"""Event time as the clock of a stream: the rows of a sorted DataFrame, and those of replay."""
# ruff: noqa: SIM300 - asserts read expected first

import itertools
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.spark.stream_runs import Query, by_name, stream, union, write
from tests.spark.test_bucket import spec_of
from windowlib import (
    ClockError,
    ClockWarning,
    Count,
    HostError,
    KSlack,
    Operator,
    OrderWarning,
    PartitionAge,
    Sliding,
    Time,
    Tumbling,
    replay,
)
from windowlib.columnar import handover
from windowlib.columnar.arrays.encoding import stream_bytes, stream_table
from windowlib.errors import SchemaError
from windowlib.farms import KeyFarm, PaneFarm
from windowlib.operators import Aggregate, Batch, Dedup, Delay, Join, agg
from windowlib.spark import attach
from windowlib.spark.bucket.bucket import Bucket, MicroBatch
from windowlib.spark.bucket.held_rows import SPAN
from windowlib.spark.observe.inspect import reading_spec
from windowlib.spark.plan.attach import frame_of
from windowlib.spark.plan.query_plan import ending_with, plan_query
from windowlib.spark.plan.shuffle import ENDED, SPANS, PackedRows
from windowlib.spark.plan.streaming import end_stream

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()})
SLACK = 7
OUT: dict[str, Any] = {"rows": agg.count(), "sum": agg.sum("n"), "all": agg.collect("n")}
BY: dict[str, Any] = {"by": "k", "order_by": ("ts", "n")}
OPERATORS: dict[str, Operator] = {
    "tumbling": Aggregate(Tumbling(Time("10s"), **BY), OUT),
    "whole": Aggregate(Tumbling(Time("10s"), order_by=("ts", "n")), OUT),
    "sliding": Aggregate(Sliding(Time("20s"), every=Time("5s"), **BY), OUT),
    "deadline": Aggregate(Tumbling(Count(4) | Time("12s"), **BY), OUT),
    "recent": Aggregate(Sliding(Time("15s"), every=Count(2), **BY), OUT, partial="emit"),
    "count": Aggregate(Tumbling(Count(3), **BY), OUT),
    "delay": Delay(Time("5s")),
}


def plain(made: Any) -> list[str]:
    """Rows in an order of their own: Spark has none over keys, and one timestamp has none."""
    rows = [{**row, "all": sorted(row["all"])} if "all" in row else row for row in map(dict, made)]
    return sorted(map(repr, rows))


def in_time(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["ts"], row["n"]))


# -- without Spark: any disorder, cuts, restarts and keys --


class Host:
    """Buckets with rows that wait, called as Spark calls them; numbers are seconds."""

    def __init__(self, operator: Operator, buckets: int) -> None:
        spec = spec_of(operator, SCHEMA)
        order = (("ts", "n"),)
        self.spec = replace(spec, holds=True, times="ts", follows=1000, orders=order)
        self.buckets = [Bucket(self.spec, 0) for _ in range(buckets)]
        self.state: list[tuple[bytes, list[bytes]]] = [(b"", [])] * buckets
        self.timers: list[int | None] = [None] * buckets
        self.watermark = self.late = 0
        self.made: list[Any] = []

    def micro_batch(self, rows: list[dict[str, Any]], ended: bool = False) -> None:
        """All buckets, then the watermark moves."""
        stamps = [row["ts"] * 1_000_000 for row in rows]
        for number in range(len(self.buckets)):
            mine = [row for row in rows if "abc".index(row["k"]) % len(self.buckets) == number]
            chunks = []
            for place, task in enumerate((mine[::2], mine[1::2])):
                batch = pa.RecordBatch.from_pylist(task, SCHEMA)
                chunks.append(PackedRows(0, place, stream_bytes(batch)))
            if stamps:
                chunks.append(PackedRows(SPANS, 9, SPAN.pack(min(stamps), max(stamps))))
            if ended:
                chunks.append(PackedRows(ENDED, 10, b""))
            timer = self.timers[number]
            if rows or ended or (timer is not None and timer < self.watermark):
                self._step(number, tuple(chunks))
        top = max((row["ts"] for row in rows), default=0)
        self.watermark = max(self.watermark, (top - SLACK) * 1000)

    def _step(self, number: int, chunks: tuple[PackedRows, ...]) -> None:
        saved, log = self.state[number]
        reached = self.spec.reached(self.watermark)
        size = sum(map(len, log))
        result = self.buckets[number].step(MicroBatch("", chunks, reached, len(saved), size, False))
        if result.snapshot is not None:
            self.state[number] = result.snapshot, []
        elif result.entry is not None:
            self.state[number] = saved, [*log, result.entry]
        self.made += [row for _, blob in result.rows for row in stream_table(blob).to_pylist()]
        self.late += result.counts["late"]
        due = result.due
        self.timers[number] = None if due is None else self.spec.timer(due, self.watermark)

    def restart(self) -> None:
        """All buckets in other processes, from what the state store has."""
        self.buckets = [
            Bucket.restored(self.spec, bucket.nonce, *state) if state[0] else bucket
            for bucket, state in zip(self.buckets, self.state, strict=True)
        ]


@st.composite
def streams(draw: Any, disorder: int) -> list[dict[str, Any]]:
    """Rows that come up to some time late, with ties."""
    at = draw(st.integers(SLACK + 1, 40))
    found = []
    for n, step in enumerate(draw(st.lists(st.integers(0, 9), min_size=1, max_size=30))):
        at += step
        come = at + draw(st.integers(0, disorder))
        found.append((come, {"ts": at, "k": draw(st.sampled_from("abc")), "n": n}))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def fed(host: Host, rows: list[dict[str, Any]], cuts: list[int], restarts: bool) -> None:
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (lo, hi) in enumerate(itertools.pairwise(edges)):
        host.micro_batch(rows[lo:hi])
        if restarts and number % 2:
            host.restart()


CUTS = st.lists(st.integers(0, 30), max_size=4)


def split(name: str, buckets: int) -> int:
    """Into how many buckets an operator may be split."""
    return buckets if OPERATORS[name].splits_by(0) else 1


@pytest.mark.parametrize("name", OPERATORS)
@given(st.data())
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_within_the_slack_are_those_of_replay_in_order(name, data):
    rows = data.draw(streams(SLACK))
    host = Host(OPERATORS[name], split(name, data.draw(st.sampled_from((1, 2, 3)))))
    fed(host, rows, data.draw(CUTS), data.draw(st.booleans()))
    host.micro_batch([], ended=True)
    assert plain(replay(OPERATORS[name], in_time(rows), times="ts")) == plain(host.made)
    assert 0 == host.late


@pytest.mark.parametrize("name", ["tumbling", "deadline"])
@given(st.data())
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
def test_late_rows_are_counted_whichever_keys_share_a_bucket(name, data):
    rows, cuts = data.draw(streams(60)), data.draw(CUTS)
    hosts = [Host(OPERATORS[name], buckets) for buckets in (1, 2, 3)]
    for host in hosts:
        fed(host, rows, cuts, restarts=host is hosts[1])
        host.micro_batch([], ended=True)
    assert 1 == len({(host.late, *plain(host.made)) for host in hosts})


def test_every_row_is_in_a_window_late_or_waiting():
    rows = [{"ts": ts, "k": "a", "n": n} for n, ts in enumerate((20, 21, 40, 22, 60, 61, 80))]
    host = Host(OPERATORS["tumbling"], 1)
    for row in rows:
        host.micro_batch([row])
    host.micro_batch([])
    held = host.buckets[0].held
    assert held is not None
    waiting = [n for pieces in held.pieces for table, _ in pieces for n in table["n"].to_pylist()]
    assert [6] == waiting  # 80 is above the watermark, 73
    assert 1 == host.late  # 22 came when the watermark was 33
    assert [[0, 1], [2], [4, 5]] == [row["all"] for row in host.made if row["rows"]]


def test_the_state_can_be_read_without_the_query():
    operator = OPERATORS["deadline"]
    host = Host(operator, 1)
    for at in range(20, 120):
        host.micro_batch([{"ts": at, "k": "ab"[at % 2], "n": at}])
    assert host.state[0][1]  # some of it is in the log
    spec = reading_spec(operator, {"watermark": "Spark's", "times": "ts"})
    read = Bucket.restored(spec, host.buckets[0].nonce, *host.state[0])
    assert read.held is not None
    assert [111] == [int(stamps.min() / 1e6) for _, stamps in read.held.pieces[0][:1]]
    (mine,), (theirs,) = read.running.windows, host.buckets[0].running.windows
    assert {key: mine.size(key) for key in mine} == {key: theirs.size(key) for key in theirs}


def test_a_row_without_a_time_is_refused():
    host = Host(OPERATORS["tumbling"], 1)
    with pytest.raises(ClockError, match="times='ts': the value None is no point in time"):
        host._step(
            0,
            (
                PackedRows(
                    0,
                    0,
                    stream_bytes(pa.RecordBatch.from_pylist([{"ts": None, "k": "a"}], SCHEMA)),
                ),
            ),
        )


# -- on Spark --


def rows(seed: int, size: int, disorder: int) -> list[dict[str, Any]]:
    draw, at, found = random.Random(seed), 1_000_000, []
    for n in range(size):
        at += draw.choice((0, 1, 2, 4, 30))
        key = draw.choice("abc" if n < size // 2 else "ab")
        found.append((at + draw.randint(0, disorder), {"ts": at, "k": key, "n": n}))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


KINDS = ("tumbling", "deadline")  # each costs a process; of all, the buckets are shown above


def ending(spark, folder, name, **said):
    """A query that ends, over the files of a folder."""
    placed = attach(OPERATORS[name], times="ts", **said)
    plan = plan_query(placed.operator, placed.options, [stream(spark, folder / "in")])
    return ending_with(plan, folder / "ends")


def test_a_stream_with_a_restart_is_as_the_static_dataframe_and_replay(spark, tmp_path):
    given = rows(5, 200, SLACK)
    (tmp_path / "ends").mkdir()
    query = Query(tmp_path / "checkpoint")
    cuts = [0, 5, 120, 121, 200]

    def run():
        plans = {n: ending(spark, tmp_path, n, watermark=f"{SLACK}s") for n in KINDS}
        query.run(union({name: frame_of(plan) for name, plan in plans.items()}))
        return plans["tumbling"]

    for number, (lo, hi) in enumerate(itertools.pairwise(cuts)):
        write(tmp_path / "in", number, given[lo:hi], SCHEMA)
        if number in (1, 3):
            plan = run()  # availableNow ends, with time policies
    before = by_name(query.rows)
    assert sum(len(found) for found in before.values()) > 40  # idle keys come out as well
    end_stream(plan)
    # every bucket number is in the file, and each operator takes the end of its own
    run()
    found = by_name(query.rows)
    still = spark.read.parquet(str(tmp_path / "in"))
    made = union({name: attach(OPERATORS[name], times="ts")(still) for name in KINDS})
    static = by_name(made.collect())
    for name in KINDS:
        want = plain(replay(OPERATORS[name], in_time(given), times="ts"))
        assert want == plain(static[name]), name
        assert want == plain(found[name]), name


def test_the_watermark_of_the_dataframe_is_the_clock(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 5, 0), SCHEMA)
    source = stream(spark, tmp_path / "in").selectExpr("timestamp_seconds(ts) AS ts", "k", "n")
    op = OPERATORS["tumbling"]
    shown = " ".join(
        attach(op, times="ts").explain(source.withWatermark("ts", "3 minutes")).split()
    )
    assert "event time, Spark's watermark of ts: that of df.withWatermark, 3m; rows wait" in shown
    shown = " ".join(attach(op, times="ts", watermark="5s").explain(source).split())
    assert "the slack of attach(watermark=...), 5s; rows wait until it has passed them" in shown
    assert "order ts, n" in shown
    other = source.withColumn("seen", source.ts).withWatermark("seen", "1 minute")
    with pytest.raises(HostError, match="is of another column than the clock, 'ts'"):
        attach(op, times="ts")(other)


def test_bad_clocks_are_refused_before_anything_runs(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 5, 0), SCHEMA)
    source, op = stream(spark, tmp_path / "in"), OPERATORS["tumbling"]
    for frame in (source, spark.createDataFrame(rows(1, 5, 0), source.schema)):
        with pytest.raises(SchemaError, match=r"attach\(times='k'\): string is no point in time"):
            attach(op, times="k")(frame)
    with pytest.raises(HostError, match="a stream has one clock"):
        attach(op, times="ts", clock=lambda: 0.0)(source)
    with pytest.raises(HostError, match="nothing says which column it follows"):
        attach(op, watermark="5s")
    with pytest.raises(HostError, match="stays behind by a fixed time"):
        attach(op, times="ts", watermark=KSlack())(source)
    farm = PaneFarm(Aggregate(Sliding(Time("20s"), every=Time("5s"), by="k"), n=agg.count()))
    said = " ".join(attach(farm, times="ts").explain(source).split())
    assert "(rows wait until the clock has passed them)" in said
    assert attach(KeyFarm(op, workers=2), times="ts")(source).isStreaming


def test_a_query_that_cannot_end_says_so_before_it_starts(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 5, 0), SCHEMA)
    source, op = stream(spark, tmp_path / "in"), OPERATORS["tumbling"]
    with pytest.warns(ClockWarning, match=r"does not end with trigger\(availableNow=True\)"):
        op(source)
    attach(op, times=None)(source)  # a warning would be an error
    attach(op, times="ts")(source)
    OPERATORS["count"](source)
    aged = Aggregate(Tumbling(Count(3), by="k", forget=PartitionAge("10s"), order_by="ts"), OUT)
    with pytest.warns(ClockWarning, match=r"processing time: a backfill gives other rows"):
        aged(source)
    attach(aged, times="ts")(source)


def test_rows_in_the_order_of_time_need_no_other_order(spark, tmp_path):
    write(tmp_path / "in", 0, rows(1, 5, 0), SCHEMA)
    source = stream(spark, tmp_path / "in")
    counts = Aggregate(Tumbling(Count(3), by="k"), n=agg.count())
    with pytest.warns(OrderWarning):
        counts(source)
    attach(counts, times="ts")(source)


def test_two_streams_are_taken_by_time(spark, tmp_path):
    right = pa.schema({"ts": pa.int64(), "k": pa.string(), "m": pa.int64()})
    join = Join(left=Sliding(Time("9s"), by="k"), right=Sliding(Time("9s"), by="k"), on="k")
    left_rows = [{"ts": ts, "k": "a", "n": ts} for ts in (100, 120, 108, 140)]
    right_rows = [{"ts": ts, "k": "a", "m": ts} for ts in (125, 104, 111, 160)]
    query = Query(tmp_path / "checkpoint")
    for number in range(2):
        part = slice(2 * number, 2 * number + 2)
        write(tmp_path / "left", number, left_rows[part], SCHEMA)
        write(tmp_path / "right", number, right_rows[part], right)
        frames = [stream(spark, tmp_path / side) for side in ("left", "right")]
        query.run(attach(join, times="ts", watermark="30s")(*frames))
    want = replay(join, in_time(left_rows), sorted(right_rows, key=lambda r: r["ts"]),
                  merge="ts", times="ts")  # fmt: skip
    passed = [row for row in want if max(row["n"], row["m"]) < 110]  # 140 less 30
    assert sorted(map(repr, passed)) == sorted(repr(row.asDict()) for row in query.rows)
    assert passed


# -- the age of partitions --

OLD = PartitionAge("10s")
AGED: dict[str, Operator] = {
    "flushed": Aggregate(Tumbling(Count(3), **BY, forget=OLD), OUT, evicted_partitions="emit"),
    "ticks": Aggregate(Sliding(Count(4), every=Time("4s"), **BY, forget=OLD), OUT, partial="emit"),
    "emptied": Aggregate(
        Sliding(Time("14s"), every=Count(2), **BY, forget=OLD),
        OUT,
        evicted_partitions="emit",
        partial="emit",
    ),
    "dedup": Dedup("n", within=Count(9), by="k", forget=OLD),
    "batch": Batch(Count(5) | Time("9s"), by="k", forget=OLD),
}


def aged_alone(operator: Operator, rows: list[dict[str, Any]]) -> list[Any]:
    """What each key makes in a window of its own, in which nothing but its rows and time move."""
    first, last = rows[0]["ts"], rows[-1]["ts"]
    made: list[Any] = []
    for key in sorted({row["k"] for row in rows}):
        running = operator.open(first)
        running.isolate_partition_ages()
        running.connect(0, made.append)
        for row in rows:
            if row["k"] == key:
                running.advance(row["ts"])
                running.insert(row)
        running.advance(last)
        running.finish()
    return made


@pytest.mark.parametrize("name", AGED)
@pytest.mark.parametrize("worth", [1, 1000], ids=["arrays", "rows"])
@given(st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_partitions_age_alike_whichever_keys_share_a_bucket(name, worth, data):
    rows, cuts = data.draw(streams(SLACK)), data.draw(CUTS)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "MIN_ROWS", worth)
        for buckets in (1, 2, 3):
            host = Host(AGED[name], buckets)
            fed(host, rows, cuts, restarts=buckets == 2)
            host.micro_batch([], ended=True)
            found[buckets] = plain(row for row in host.made if row.get("rows") != 0)
    want = [row for row in aged_alone(AGED[name], in_time(rows)) if row.get("rows") != 0]
    assert plain(want) == found[1]
    assert found[1] == found[2] == found[3]


def test_an_exact_age_goes_along_in_one_window_alone():
    op = AGED["ticks"]
    stream = [
        {"ts": ts, "k": key, "n": ts} for ts, key in ((1, "a"), (2, "b"), (12, "b"), (13, "c"))
    ]
    one = [row["all"] for row in replay(op, stream, times="ts") if row["k"] == "b"]
    host = Host(op, 1)
    host.micro_batch(stream)
    host.micro_batch([], ended=True)
    split = [row["all"] for row in host.made if row["k"] == "b"]
    assert [[2], [2], [12]] == one  # at 12 a is older than its age, and b exactly as old
    assert [[2], [2], [2, 12]] == split
