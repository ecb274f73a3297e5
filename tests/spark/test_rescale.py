"""State that moves: other buckets and shuffle partitions for the checkpoint of a stopped query."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, LongType, StringType

from tests.spark import killed_job as killing
from tests.spark.stream_runs import Query, by_name, stream, union, write
from windowlib import Count, Event, Keyed, Operator, OperatorModel, Sliding, Tumbling
from windowlib.errors import HostError, ModelError, OperatorError
from windowlib.operators import Aggregate, Dedup, Filter, Join, Sort, agg
from windowlib.runtime.regrouping import regrouped
from windowlib.spark import attach, inspect_state, migrate_state, rescale_state
from windowlib.spark.bucket.processor import Processor
from windowlib.spark.bucket.state_store import (
    FORMAT,
    HEAD,
    KEY_TYPE,
    VALUE_TYPE,
    StateHead,
    StateStore,
    head_bytes,
    head_of,
)
from windowlib.spark.observe.inspect import StateTables
from windowlib.spark.plan import streaming
from windowlib.spark.plan.key_hash import check_hashes, key_hash
from windowlib.spark.rescale import BucketMove, Mover, Splitter

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64(), "side": pa.int64()})
PARTITIONS = "spark.sql.shuffle.partitions"
PAGE = Path(__file__).parents[2] / "docs" / "spark-errors.md"


class Rise(Operator):
    """How far the last value of a flush is above that of the flush before."""

    model = OperatorModel(windows=[Tumbling])
    output = "k string, rise long"
    last = Keyed(n=0)

    def before_flush(self, window, key):
        newest = window[key][-1]["n"]
        self.emit({"k": key, "rise": newest - self.last[key].n})
        self.last[key].n = newest


def rows(number, size=120):
    rng = random.Random(number)
    return [
        {"ts": number * 100 + i // 2, "k": f"key {rng.randrange(12)}", "n": rng.randrange(9),
         "side": rng.randrange(2)}
        for i in range(size)
    ]  # fmt: skip


WIDE = Sliding(Count(4), order_by=("ts", "n"))
ORDER: dict[str, Any] = {"by": "k", "order_by": ("ts", "n")}
OPERATORS = {
    "totals": Aggregate(Tumbling(Count(3), **ORDER), total=agg.sum("n")),
    "slide": Aggregate(Sliding(Count(5), every=Count(2), **ORDER), most=agg.max("n")),
    "sort": Sort("n", window=Tumbling(Count(4), **ORDER)),
    "dedup": Dedup("n", within=Count(3), by="k"),
    "event": Aggregate(
        Tumbling(Event("ts", 30), by="k", late="drop"), n=agg.count(), total=agg.sum("n")
    ),
    "rise": Rise(Tumbling(Count(2), **ORDER)),
    "join": Join(left=WIDE, right=WIDE, on="k", how="left", partition_by="k", unmatched="port"),
}


def frame(source, names):
    """One query with several operators."""
    found = {}
    for name in names:
        op = OPERATORS[name]
        sides = [source.where(fn.col("side") == side).drop("side") for side in (0, 1)]
        frames = sides if name == "join" else [source.drop("side")]
        found[name] = op(*frames) if name == "event" else attach(op, order_by=("ts", "n"))(*frames)
    return union(found)


def expected(name, sizes):
    """What comes out without Spark, of files with so many rows."""
    op, made = OPERATORS[name], list[Any]()
    running = op.open()
    for port in op.model.outputs:
        running.connect(port.name, made.append)
    for number, size in enumerate(sizes):
        for row in sorted(rows(number, size), key=lambda row: (row["ts"], row["n"], row["side"])):
            plain = {key: value for key, value in row.items() if key != "side"}
            running.insert(plain, row["side"] if name == "join" else 0)
    return Counter(told(row) for row in made)


def told(row):
    """A row as text, without what it lacks and without the name of its output."""
    known = {k: v for k, v in row.items() if v is not None and k != "_port"}
    return json.dumps(known, sort_keys=True)


@pytest.fixture
def partitions(spark):
    yield lambda number: spark.conf.set(PARTITIONS, number)
    spark.conf.set(PARTITIONS, 2)


def test_a_checkpoint_keeps_its_shuffle_partitions_whatever_the_session_says(
    spark, tmp_path, partitions
):
    op = attach(Aggregate(Tumbling(Count(3), by="k", order_by="ts"), total=agg.sum("n")))
    query, files = Query(tmp_path / "checkpoint"), tmp_path / "rows"
    for number, said in enumerate((4, 7)):
        partitions(said)
        write(files, number, rows(number), SCHEMA)
        query.run(op(stream(spark, files)))
    held = Counter(row["k"] for number in (0, 1) for row in rows(number))
    assert sum(count // 3 for count in held.values()) == len(query.rows)
    values = spark.read.format("statestore").option("stateVarName", "window")
    stored = values.load(str(query.checkpoint)).where(fn.col("user_map_key.number") == HEAD)
    abouts = [head_of(bytes(row.data)).about for row in stored.select("user_map_value.*").collect()]
    told = {json.loads(about)["fingerprint"][PARTITIONS] for about in abouts}
    assert {"4"} == told


@pytest.mark.long
@pytest.mark.parametrize(
    "names", [("totals", "slide", "dedup"), ("sort", "rise"), ("event", "join")], ids=" ".join
)
def test_operators_of_all_kinds_go_on_with_more_buckets_and_with_fewer(spark, tmp_path, names):
    files, query = tmp_path / "rows", Query(tmp_path / "0")
    for number, to in enumerate((None, 3, 1)):
        write(files, number, rows(number), SCHEMA)
        if to is not None:
            new = tmp_path / str(number)
            given = [OPERATORS["rise"]] if "rise" in names else None
            rescale_state(query.checkpoint, new, spark, given, partitions=to)
            query.checkpoint = new
        query.run(frame(stream(spark, files), names))
    found = by_name(query.rows)
    for name in names:
        assert expected(name, (120,) * 3) == Counter(told(row) for row in found[name]), name


def test_buckets_move_whole_where_their_number_stays(spark, tmp_path):
    files, query = tmp_path / "rows", Query(tmp_path / "0")
    op = attach(Dedup("n", within=Count(5)), order_by=("ts", "k"), port=None)
    write(files, 0, rows(0), SCHEMA)
    query.run(op(stream(spark, files)))
    rescale_state(query.checkpoint, tmp_path / "1", spark, partitions=5)
    before = [row.content for row in inspect_state(tmp_path / "0", spark).collect()]
    after = [row.content for row in inspect_state(tmp_path / "1", spark).collect()]
    assert before == after
    query.checkpoint = tmp_path / "1"
    write(files, 1, rows(1), SCHEMA)
    query.run(op(stream(spark, files)))
    want, seen = 0, list[int]()
    for row in sorted(rows(0), key=lambda r: (r["ts"], r["k"])) + sorted(
        rows(1), key=lambda r: (r["ts"], r["k"])
    ):
        if row["n"] not in seen:
            want, seen = want + 1, [*seen, row["n"]][-5:]
    assert want == len(query.rows)


@pytest.mark.long
def test_a_command_that_is_killed_leaves_the_old_checkpoint_and_no_new_one(spark, tmp_path):
    files, query, new = tmp_path / "rows", Query(tmp_path / "old"), tmp_path / "new"
    op = OPERATORS["totals"]
    write(files, 0, rows(0), SCHEMA)
    query.run(op(stream(spark, files)))
    command = [sys.executable, "-m", "windowlib", "state", "rescale"]
    command += [str(query.checkpoint), str(new), "--partitions", "3"]
    said = tmp_path / "said"  # a pipe that nobody reads would stop it
    with (
        said.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        begun = killing.until(process, lambda: list(tmp_path.glob("new.*.draft")))
        assert begun, said.read_text()
        killing.kill(process.pid, *killing.below(process.pid))
    assert not new.exists()
    rescale_state(query.checkpoint, new, spark, partitions=3)
    query.checkpoint = new
    write(files, 1, rows(1), SCHEMA)
    query.run(op(stream(spark, files)))
    assert expected("totals", (120,) * 2) == Counter(told(row.asDict()) for row in query.rows)


def test_what_cannot_move_is_refused_and_leaves_nothing(spark, tmp_path):
    files, query = tmp_path / "rows", Query(tmp_path / "0")
    write(files, 0, rows(0, 20), SCHEMA)
    op = attach(Dedup("n", within=Count(5)), key="k", order_by="ts")
    query.run(op(stream(spark, files)))
    new = tmp_path / "1"
    with pytest.raises(OperatorError, match="is not partitioned by 'k', so what it holds cannot"):
        rescale_state(query.checkpoint, new, spark, buckets=5)
    with pytest.raises(ModelError, match=r"rescale_state\(buckets=0\): not a number"):
        rescale_state(query.checkpoint, new, spark, buckets=0)
    with pytest.raises(HostError, match=r"the second exists already\. Name a new folder"):
        rescale_state(query.checkpoint, files, spark, partitions=5)
    assert {"rows", "0"} == {path.name for path in tmp_path.iterdir()}
    assert not migrate_state(query.checkpoint, new, spark)
    assert not new.exists()


def test_the_hash_of_a_key_is_that_of_spark(spark):
    when = datetime(2024, 2, 29, 12, 30, 15, 123456)
    values = {
        "string": ["", "IBM", "é" * 40, None],
        "long": [0, -1, 2**62, None],
        "int": [7, -(2**31), 0, None],
        "double": [0.0, -0.0, float("nan"), 1.5],
        "float": [0.0, -0.0, float("nan"), -2.25],
        "boolean": [True, False, None, True],
        "binary": [b"", b"abc", bytes(range(70)), None],
        "date": [date(1969, 12, 31), date(2024, 2, 29), None, date(1, 1, 1)],
        "timestamp": [when.replace(tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC), None],
        "timestamp_ntz": [when, when + timedelta(days=1), None, datetime(1960, 1, 1)],
        "decimal(10,2)": [Decimal("1.25"), Decimal("-0.01"), None, Decimal(0)],
        "decimal(38,4)": [Decimal(10) ** 30, Decimal("-1.5"), None, Decimal(0)],
    }
    ddl = ", ".join(f"c{at} {kind}" for at, kind in enumerate(values))
    table = list(zip(*values.values(), strict=True))
    made = spark.createDataFrame(table, ddl)
    kinds = [field.dataType for field in made.schema]
    hashes = [fn.xxhash64(name) for name in made.columns]
    for row, got in zip(table, made.select(*hashes, fn.xxhash64("*")).collect(), strict=True):
        assert [key_hash([v], [kind]) for v, kind in zip(row, kinds, strict=True)] == list(got)[:-1]
        assert key_hash(row, kinds) == got[-1]
    with pytest.raises(HostError, match="the type array<bigint>, and windowlib does not know"):
        check_hashes([ArrayType(LongType())])
    with pytest.raises(HostError, match="the type string collate UTF8_LCASE, and windowlib"):
        check_hashes([StringType("UTF8_LCASE")])


def test_keys_of_a_graph_are_told_apart_by_its_nodes():
    graph = Filter(lambda row: row["n"] != 3).then(OPERATORS["totals"])
    running = graph.open()
    running.insert_many([{"ts": 0, "k": key, "n": 1} for key in "abcdef"])
    splitter = Splitter(graph, [["k"]], [StringType()], BucketMove(1, 1, 3, 3))
    found = regrouped(graph, [running.snapshot()], splitter._owner, 3)
    keys = [
        {part["key"] for part in state["state"]["Aggregate"]["windows"][0]["parts"]}
        for state in found
    ]
    want = [{key for key in "abcdef" if key_hash([key], [StringType()]) % 3 == n} for n in range(3)]
    assert want == keys


def test_a_bucket_that_moves_whole_keeps_its_keys():
    move = BucketMove(4, 2, 4, 3)
    from windowlib.spark.plan.shuffle import partition_of, spread

    numbers = [move.new_number(bucket) for bucket in spread(4, 2)]
    assert [partition_of(number, 3) for number in numbers] == [0, 1, 2, 0]
    assert move.new_number(-1) == -1


class ValuesOf2:
    """The state variables of format 2, used as the one of the present format."""

    def __init__(self, handle: Any) -> None:
        fields = StateHead.__dataclass_fields__.values()
        kinds = {"int": "long", "str": "string", "bytes | None": "binary"}
        columns = ", ".join(f"{each.name} {kinds[str(each.type)]}" for each in fields)
        self.head = handle.getValueState("window", columns)
        self.pages = handle.getMapState("pages", KEY_TYPE, VALUE_TYPE)

    # Spark's names, not ours.
    # ruff: noqa: N802
    def getValue(self, key):
        if key != (HEAD,):
            return self.pages.getValue(key)
        found = self.head.get()
        return None if found is None else (head_bytes(StateHead(*found)),)

    def updateValue(self, key, value):
        if key != (HEAD,):
            self.pages.updateValue(key, value)
        else:
            head = replace(head_of(*value), format=2).sealed()
            self.head.update(tuple(vars(head).values()))

    def clear(self):
        self.pages.clear()


class ProcessorOf2(Processor):
    """What wrote checkpoints of format 2."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.store = StateStore(SimpleNamespace(getMapState=lambda *_: ValuesOf2(handle)))


@pytest.fixture
def checkpoint_of_2(spark, tmp_path, monkeypatch):
    """A query whose checkpoint has state of format 2: a snapshot, and a log."""
    files, query = tmp_path / "rows", Query(tmp_path / "0")
    for number in range(3):
        write(files, number, rows(number, 20 if number else 120), SCHEMA)
    with monkeypatch.context() as before:
        before.setattr(streaming, "Processor", ProcessorOf2)
        query.run(attach(OPERATORS["totals"], order_by=("ts", "n"))(stream(spark, files)))
    variables = StateTables(spark, str(query.checkpoint), "test")
    heads = variables._variable(0, "window").select("value.*").collect()
    assert {2} == {head.format for head in heads}
    assert max(head.entries for head in heads) > 0
    return query


def test_a_checkpoint_of_format_2_is_refused_and_goes_on_when_it_was_migrated(
    spark, tmp_path, checkpoint_of_2
):
    query, op = checkpoint_of_2, attach(OPERATORS["totals"], order_by=("ts", "n"))
    files = tmp_path / "rows"
    write(files, 3, rows(3, 20), SCHEMA)
    with pytest.raises(StreamingQueryException) as refused:
        query.run(op(stream(spark, files)))
    (text,) = re.findall(r"Provided key schema does not .*?\.", str(refused.value))
    assert re.search(rf"`{text}` .*`windowlib state migrate", PAGE.read_text())
    old = [row.content for row in inspect_state(query.checkpoint, spark).collect()]
    assert migrate_state(query.checkpoint, tmp_path / "1", spark)
    rescale_state(query.checkpoint, tmp_path / "2", spark, partitions=3)
    assert not migrate_state(tmp_path / "1", tmp_path / "3", spark)
    assert old == [row.content for row in inspect_state(tmp_path / "1", spark).collect()]
    before = dict(query.batches)
    for new in ("1", "2"):
        query.checkpoint, query.batches = tmp_path / new, dict(before)
        query.run(op(stream(spark, files)))
        sizes = (120, 20, 20, 20)
        assert expected("totals", sizes) == Counter(told(row.asDict()) for row in query.rows), new


class Clock:
    """What tells the time of a micro-batch."""

    def getCurrentProcessingTimeInMs(self):
        return 5000


@pytest.mark.parametrize(("follows", "timer"), [(True, 30), (False, 5001)])
def test_a_timer_waits_for_the_next_batch_of_the_query(follows, timer):
    timers = list[int]()

    class Values(dict[Any, Any]):
        def updateValue(self, key, value):
            self[key] = value

    class Handle:
        def getMapState(self, *_):
            return values

        def registerTimer(self, at):
            timers.append(at)

    about = json.dumps({"fingerprint": {"buckets": "2", PARTITIONS: "2"}})
    head = StateHead(FORMAT, 7, "n", "run", "home", about, 30, 1, 0, 0, 0, b"x").sealed()
    mover = Mover(None, BucketMove(2, 2, 2, 5), follows)
    values, handle = Values(), Handle()
    mover.init(handle)
    row = Row(kind=0, number=0, data=head_bytes(head))
    assert list(mover.handleInputRows((3,), iter([row]), Clock())) == []
    assert [timer] == timers
    kept = head_of(*values[(HEAD,)])
    assert (timer, "", "n") == (kept.timer, kept.home, kept.nonce)
    assert json.loads(kept.about)["fingerprint"] == {"buckets": "2", PARTITIONS: "5"}
