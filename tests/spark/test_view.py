"""What users see of a query: explain, split, the figures of its progress, and its state."""
# ruff: noqa: SIM300 - asserts read expected first

import hashlib
import io
import json
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from windowlib import (
    Count,
    Delta,
    Event,
    KSlack,
    Operator,
    OperatorModel,
    PartitionAge,
    Sliding,
    Time,
    Tumbling,
    Watermark,
)
from windowlib.errors import (
    HostError,
    ModelError,
    OperatorError,
    SchemaError,
    StateVersionError,
)
from windowlib.operators import Aggregate, Filter, Join, Pair, agg
from windowlib.spark import Listener, Totals, attach, inspect_state, progress, split
from windowlib.spark.bucket.state_store import StateHead, assembled, check_format
from windowlib.spark.observe.inspect import json_text, subwindows
from windowlib.spark.observe.metrics import ProgressView, Sums, notebook

KINDS = {"ts": LongType(), "k": StringType(), "v": DoubleType(), "unread": StringType()}
COLUMNS = StructType([StructField(name, kind) for name, kind in KINDS.items()])
MEANS = Aggregate(
    Sliding(Count(4), every=Count(2), by="k", order_by="ts"), m=agg.mean("v"), n=agg.count()
)
LATE = Aggregate(Tumbling(Delta("ts", 10), by="k", order_by=None), late="port", total=agg.sum("v"))


def rows_of(numbers):
    return [{"ts": n, "k": "abc"[n % 3], "v": float(n), "unread": "x"} for n in numbers]


def written(folder, *batches):
    """A file for each micro-batch, in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (number + 1, number + 1))
    return str(folder)


def stream_of(spark, folder):
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(folder)


def run(writer, checkpoint):
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return query


def ignored(batch, batch_id):
    batch.count()


# -- explain --------------------------------------------------------------------------------------


def spark_lines(text):
    _, _, after = text.partition("on Spark     ")
    found: dict[str, str] = {}
    for line in re.sub(r"\n {13}", " ", after).splitlines()[1:]:
        topic, said = line.strip().split(maxsplit=1)
        found.setdefault(topic, said)
    return found


def test_explain_of_a_schema_says_how_the_operator_runs_on_spark():
    text = MEANS.explain(COLUMNS)
    assert "batches    columnar" in text
    lines = spark_lines(text)
    assert "ts, k, v: what the operator reads" == lines["columns"]
    assert lines["key"].startswith("k: ")
    assert "as spark.sql.shuffle.partitions says" in lines["buckets"]
    assert "snapshot" in lines["state"]
    assert "log" in lines["state"]
    assert "ts" == lines["order"]
    assert "not used" == lines["clock"]
    assert "k string, m double, n bigint" == lines["output"]


def test_explain_says_why_there_is_one_bucket_and_what_to_do():
    lines = spark_lines(Aggregate(Tumbling(Count(3)), n=agg.count()).explain(COLUMNS))
    assert lines["buckets"].startswith("1: rows may meet")
    assert 'by="symbol"' in lines["buckets"]
    assert 'attach(op, key="symbol")' in lines["buckets"]
    assert 'as tasks deliver them: say attach(op, order_by="ts")' == lines["order"]
    assert "it names no columns" in spark_lines(Filter(bool).explain(COLUMNS))["buckets"]


def test_explain_says_what_moves_the_clock():
    timed = Aggregate(Tumbling(Time("1s"), by="k", order_by=None), n=agg.count())
    assert ".trigger(processingTime=" in spark_lines(timed.explain(COLUMNS))["clock"]
    assert "as tasks deliver them" == spark_lines(timed.explain(COLUMNS))["order"]
    aged = Aggregate(Tumbling(Count(2), by="k", forget=PartitionAge("1m")), n=agg.count())
    assert "age of partitions" in spark_lines(aged.explain(COLUMNS))["clock"]


def test_explain_advises_what_helps_to_split_windows_of_event_time():
    columns = StructType([StructField("ts", TimestampType()), StructField("k", StringType())])

    def advised(**said: Any) -> Any:
        op = Aggregate(Tumbling(Event("ts", "1h"), by="k", **said), n=agg.count())
        return spark_lines(op.explain(columns))["buckets"]

    assert "Wait for a fixed time" in advised(watermark=KSlack())
    assert "Drop early=, or say" in advised(watermark="1min", early="1min")
    assert "as spark.sql.shuffle.partitions says" in advised(watermark="1min")
    per_key = Watermark("1min", scope="key")
    split = advised(watermark=per_key, early="1min")
    assert "as spark.sql.shuffle.partitions says" in split


def test_explain_of_two_inputs_says_in_which_order_they_come():
    window = Sliding(Count(2), order_by="ts")
    join = Join(left=window, right=window, on="k", partition_by="k")
    lines = spark_lines(join.explain(COLUMNS, COLUMNS))
    assert lines["inputs"].startswith("merged by these columns")
    assert lines["key"].startswith("k; k: ")
    loose = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k")
    lines = spark_lines(loose.explain(COLUMNS, COLUMNS))
    assert "within a micro-batch all rows of left, then those of right" == lines["inputs"]


def test_explain_of_a_graph_knows_the_columns_of_each_input():
    text = MEANS.then(Filter(lambda row: True)).explain(COLUMNS)
    assert "batches    columnar" in text
    assert "k string, m double, n bigint" == spark_lines(text)["output"]


def test_explain_tells_the_outputs_apart():
    assert "_port is one of out, late" in spark_lines(LATE.explain(COLUMNS))["output"]


def test_explain_wants_columns_for_each_input():
    with pytest.raises(OperatorError, match="1 DataFrames for 2 inputs"):
        Pair().explain(COLUMNS)
    with pytest.raises(SchemaError, match=r"explain\(dict\): not columns of Spark's"):
        Pair().explain(COLUMNS, {"x": 1})


def test_explain_of_dataframes(spark, tmp_path):
    folder = written(tmp_path, rows_of(range(3)))
    still, moving = spark.read.parquet(folder), stream_of(spark, folder)
    assert "2, as spark.sql.shuffle.partitions says; a checkpoint keeps its own" in MEANS.explain(
        moving
    )
    assert "2, as spark.sql.shuffle.partitions says" == spark_lines(MEANS.explain(still))["buckets"]
    assert spark_lines(MEANS.explain(still))["state"].startswith("none")
    attached = attach(MEANS, buckets=5, clock=float)
    lines = spark_lines(attached.explain(moving))
    assert "5, as attach(buckets=5) says" in lines["buckets"]
    assert "the function of attach(clock=...)" == lines["clock"]
    timed = Aggregate(Tumbling(Time("1s"), by="k"), n=agg.count())
    assert 'attach(op, times="ts")' in spark_lines(timed.explain(still))["clock"]
    lines = spark_lines(attach(timed, times="ts").explain(still))
    assert ("the column ts", "ts, when rows arrive") == (lines["clock"], lines["order"])
    assert "not used" == spark_lines(MEANS.explain(still))["clock"]
    assert "on Spark     a stream" in Filter(bool).explain(moving)
    mixed = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k")
    assert "on Spark     a stream" in mixed.explain(moving, COLUMNS)


# -- split ----------------------------------------------------------------------------------------

UNEVEN = [rows_of([0, 3, 30]), rows_of([6, 33, 60])]  # all of "a"; 6 comes after 30
EXPECTED = [{"k": "a", "total": 3.0}, {"k": "a", "total": 63.0}]


def plain(rows):
    return [row.asDict() for row in rows]


def test_each_output_goes_to_its_target_with_its_own_columns(spark, tmp_path):
    spark.sql(f"CREATE DATABASE IF NOT EXISTS gold LOCATION '{tmp_path}/gold'")
    got = []

    def late(batch, batch_id):
        got.append((batch_id, batch.columns, plain(batch.collect())))

    out = stream_of(spark, written(tmp_path / "in", *UNEVEN)).transform(LATE)
    out = out.withColumn("day", fn.lit("monday"))
    try:
        run(split(out, main="gold.totals", late=late), tmp_path / "chk")
        table = spark.table("gold.totals")
        assert ["k", "total", "day"] == table.columns
        found = sorted(plain(table.drop("day").collect()), key=lambda row: row["total"])
        assert EXPECTED == found
    finally:
        spark.sql("DROP DATABASE gold CASCADE")
    assert [0, 1] == [batch_id for batch_id, _, _ in got]
    assert [[*COLUMNS.names, "day"]] * 2 == [columns for _, columns, _ in got]
    assert [6] == [row["ts"] for _, _, rows in got for row in rows]


def test_an_operator_runs_once_however_many_targets_and_whatever_they_read(spark, tmp_path):
    out = stream_of(spark, written(tmp_path / "in", *UNEVEN)).transform(LATE)
    writer = split(out, others="drop", out=lambda batch, batch_id: None)
    query = run(writer, tmp_path / "chk")
    sums = Sums()
    for each in query.recentProgress:
        sums.add(each)
    assert (6, 1) == (sums.totals().rows_in, sums.totals().late)
    (left,) = inspect_state(tmp_path / "chk").collect()
    assert ('"a"', 1, 5) == (left.key, left.size, left.inserted)


def test_a_query_with_one_output_has_only_main(spark, tmp_path):
    out = stream_of(spark, written(tmp_path / "in", rows_of(range(12)))).transform(MEANS)
    got = []
    run(split(out, main=lambda batch, _: got.extend(batch.collect())), tmp_path / "chk")
    assert 3 == len(got)
    with pytest.raises(ModelError, match="It has only one, called 'main'"):
        split(out, late="ops.late")


def test_mistakes_of_split(spark, tmp_path):
    folder = written(tmp_path / "in", *UNEVEN)
    out = stream_of(spark, folder).transform(LATE)
    with pytest.raises(ModelError, match=r'Outputs: out, late\. Did you mean "late"'):
        split(out, main="a", lat="b")
    with pytest.raises(ModelError, match=r'no target for the output late\. .*others="drop"'):
        split(out, main="a")
    with pytest.raises(ModelError, match='both are the output "out"'):
        split(out, main="a", out="b", late="c")
    with pytest.raises(ModelError, match=r"split\(late=3\): not a target"):
        split(out, main="a", late=3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="others='keep'"):
        split(out, main="a", others="keep")
    with pytest.raises(HostError, match="Pass what the operator gave"):
        split(out.withColumn("_port", fn.lit("out")), main="a")
    with pytest.raises(HostError, match="a static DataFrame has no batches"):
        split(spark.read.parquet(folder).transform(LATE), main="a", late="b")


# -- figures --------------------------------------------------------------------------------------


def event(batch, run="r", **metrics):
    observed = {f"windowlib {name} 1": values for name, values in metrics.items()}
    return {"runId": run, "batchId": batch, "observedMetrics": observed}


def test_counts_add_up_and_what_there_is_is_that_of_the_last_start():
    sums = Sums()
    assert sums.add(event(0, a={"rows_in": 5, "partitions": 2, "state_bytes": 10}))
    assert not sums.add(event(0, a={"rows_in": 5, "partitions": 2}))
    assert sums.add(event(1, a={"rows_in": 1, "partitions": -1, "state_bytes": None}))
    assert Totals(batches=2, rows_in=6, partitions=1, state_bytes=10) == sums.totals()
    assert sums.add(event(2, "s", b={"rows_in": 1, "partitions": 4}))
    assert (7, 4) == (sums.totals().rows_in, sums.totals().partitions)


def test_batches_that_nobody_saw_are_counted_and_those_without_figures_are_none_of_them():
    sums = Sums()
    assert sums.add(event(7, a={"rows_in": 1}))
    assert not sums.add(event(8))
    assert sums.add(event(9, a={"rows_in": 1}))
    assert 0 == sums.totals().missed
    assert sums.add(event(12, a={"rows_in": 1}))
    assert 2 == sums.totals().missed
    assert "2 batches are missing: they were not read in time" in sums.totals().lines()


def test_several_operators_in_a_query_are_told_apart():
    sums = Sums()
    sums.add(event(0, a={"rows_in": 5}, b={"rows_in": 2, "partitions": 3}))
    totals = sums.totals()
    assert (7, 3) == (totals.rows_in, totals.partitions)
    assert {"a 1": 5, "b 1": 2} == {name: t.rows_in for name, t in totals.operators.items()}
    assert "<td>7</td>" in totals._repr_html_()
    assert "<th>b 1</th>" in totals._repr_html_()
    assert all(len(line) < 80 for line in totals.lines())
    assert "b 1" in totals.lines()


def test_a_listener_never_raises():
    def told(query, totals):
        raise KeyError(query)

    heard = Listener(told)
    heard.onQueryProgress(None)
    progressed = types.SimpleNamespace(id="q", **event(0, a={"rows_in": 1}))
    heard.onQueryProgress(types.SimpleNamespace(progress=progressed))
    heard.onQueryIdle(None)
    heard.onQueryTerminated(None)
    assert 1 == heard.totals("q").rows_in
    assert Totals() == heard.totals("unknown")


class Ended:
    """A query that has batches to tell of each time somebody looks, and then ends."""

    def __init__(self, *looks, failure=None):
        self.looks, self.failure = list(looks), failure
        self.recentProgress = []

    @property
    def isActive(self):  # noqa: N802
        if self.looks:
            now = self.looks.pop(0)
            if now is KeyboardInterrupt:
                raise KeyboardInterrupt
            self.recentProgress = now
        return bool(self.looks)

    def exception(self):
        return self.failure


BATCHES = [event(n, a={"rows_in": 10, "partitions": 1}) for n in range(4)]


def test_progress_loses_no_batch_between_two_looks_and_writes_a_line_per_change():
    out = io.StringIO()
    query = Ended([], BATCHES[:2], BATCHES[:2], BATCHES[1:4])
    totals = progress(query, every=0.001, out=out)
    assert (4, 40, 4, 0) == (totals.batches, totals.rows_in, totals.partitions, totals.missed)
    lines = out.getvalue().splitlines()
    assert ["batch 2: 20 in", "batch 4: 40 in"] == [line.split(",")[0] for line in lines]
    assert all(len(line) < 80 for line in lines)


def test_ctrl_c_ends_the_watching_and_a_failed_query_is_told():
    assert 20 == progress(Ended(BATCHES[:2], KeyboardInterrupt), 0.001, io.StringIO()).rows_in
    out = io.StringIO()
    with pytest.raises(KeyError):
        progress(Ended(BATCHES[:1], failure=KeyError("x")), every=0.001, out=out)
    assert out.getvalue().startswith("batch 1: 10 in")


@pytest.mark.parametrize("every", [0, -1, "1s", True])
def test_progress_wants_seconds(every):
    with pytest.raises(ModelError, match=r"every=.*not a time\. Use seconds"):
        progress(Ended(), every=every)


def test_in_a_terminal_the_figures_stay_in_their_place():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    view = ProgressView(out, plain=True)
    view.show(Totals(batches=1))
    view.show(Totals(batches=1))
    view.show(Totals(batches=2))
    assert 1 == out.getvalue().count("\x1b[3A")
    assert 6 == len(out.getvalue().splitlines())


def test_in_a_notebook_the_figures_are_a_table_that_is_updated(monkeypatch):
    shown: list[Totals] = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(totals, display_id):
        shown.append(totals)
        return handle

    shell = types.SimpleNamespace(kernel=object())
    fake = types.SimpleNamespace(
        get_ipython=lambda: shell, display=types.SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", fake)
    progress(Ended(BATCHES[:1], BATCHES), every=0.001)
    assert [1, 4] == [totals.batches for totals in shown]
    shell.kernel = None
    assert notebook() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook() is None


def test_listener_and_progress_agree_over_restarts_of_a_query(spark, tmp_path):
    folder, checkpoint = tmp_path / "in", tmp_path / "chk"
    batches = [rows_of(range(at, at + 30)) for at in range(0, 120, 30)]
    told: list[str] = []
    heard = Listener(told=lambda query, totals: told.append(query))
    spark.streams.addListener(heard)
    try:
        seen = []
        for upto in (2, 4):
            source = stream_of(spark, written(folder, *batches[:upto]))
            writer = source.transform(MEANS).writeStream.queryName("means").foreachBatch(ignored)
            writer = writer.option("checkpointLocation", str(checkpoint))
            query = writer.trigger(availableNow=True).start()
            seen.append(progress(query, every=0.2, out=io.StringIO()))
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(heard)
    totals = heard.totals("means")
    assert totals == heard.totals(query) == heard.totals(query.id) == heard.queries[query.id]
    assert [query.id] * 4 == told
    assert [60, 60] == [each.rows_in for each in seen]
    assert (4, 120) == (totals.batches, totals.rows_in)
    assert totals.rows_out == totals.fired == 57
    assert 120 - 12 == totals.evicted
    # What there is, is not added up over starts.
    assert (3, 3) == (totals.partitions, seen[-1].partitions)
    state = inspect_state(str(checkpoint)).select("bucket", "bucket_bytes").distinct().collect()
    assert totals.state_bytes == sum(row.bucket_bytes for row in state) == seen[-1].state_bytes


# -- state ----------------------------------------------------------------------------------------


def tree(folder):
    """Every file below a folder, with what is in it and when it was written."""
    return {
        path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


class Firsts(Operator):
    """An operator with state of its own: it sends the first tuple of every other window."""

    model = OperatorModel(windows=[Tumbling])
    output = "k string, v double"

    def on_open(self):
        self.seen = 0

    def before_flush(self, window, key):
        self.seen += 1
        if self.seen % 2:
            self.emit(k=key, v=window.oldest(key)["v"])

    def snapshot(self):
        return {"seen": self.seen}

    def restore(self, state):
        self.seen = state["seen"]


class Gone(Aggregate):
    """An operator that will not be where it was."""


def open_with(operator, rows):
    running = operator.open()
    running.insert_many(rows)
    return running


def test_the_subwindows_of_a_checkpoint_are_those_of_a_replay(spark, tmp_path):
    checkpoint = str(tmp_path / "chk")
    op = MEANS.then(Aggregate(Tumbling(Count(5), by="k"), total=agg.sum("m"), name="Sums"))
    batches = [rows_of(range(at, at + 20)) for at in range(0, 80, 20)]
    folder = written(tmp_path / "in", *batches)
    run(stream_of(spark, folder).transform(op).writeStream.foreachBatch(ignored), checkpoint)
    before = tree(checkpoint)
    found = inspect_state(checkpoint).collect()
    assert before == tree(checkpoint)
    columns = ("operator", "input", "window", "key", "size", "inserted", "content")
    for batch_id, rows in ((None, range(80)), (1, range(40))):
        found = inspect_state(checkpoint, spark, batch_id=batch_id).collect()
        want = [
            tuple(row.get(name) for name in columns)
            for row in subwindows(open_with(op, rows_of(rows)))
        ]
        assert sorted(want) == sorted(tuple(row[name] for name in columns) for row in found)
        assert 3 == sum(row.operator == "Aggregate" for row in found)
        assert {0} == {row.id for row in found}
    with pytest.raises(HostError, match=r"batch_id=9\): no such batch .* Batches: 0 to 3"):
        inspect_state(checkpoint, batch_id=9)


@pytest.mark.long
def test_tuples_are_listed_and_pages_of_large_state_are_read(spark, tmp_path, monkeypatch):
    rows = [{**row, "unread": f"{row['ts']:3000}"} for row in rows_of(range(1200))]
    op = Join(
        left=Sliding(Count(300), order_by="ts"), right=Sliding(Count(2), order_by="ts"),
        on="ts", partition_by="k",
    )  # fmt: skip
    source = stream_of(spark, written(tmp_path / "in", rows, rows_of(range(1200, 1203))))
    out = op(source, source)
    run(out.writeStream.foreachBatch(ignored), tmp_path / "chk")
    found = inspect_state(str(tmp_path / "chk"), limit=3).collect()
    left = {json.loads(row.key): row for row in found if row.input == "left"}
    assert {"a": 300, "b": 300, "c": 300} == {key: row.size for key, row in left.items()}
    assert [1194, 1197, 1200] == [row["ts"] for row in json.loads(left["a"].content)]
    assert 303 == json.loads(left["a"].oldest)["ts"]
    assert 1200 == json.loads(left["a"].newest)["ts"]
    assert max(row.bucket_bytes for row in found) > 1 << 20  # more than stays in one value
    assert 6 == len(found)


def test_an_operators_own_state_is_listed_and_several_operators_have_numbers(spark, tmp_path):
    firsts = Firsts(Tumbling(Count(2), by="k", order_by="ts"))
    out = stream_of(spark, written(tmp_path / "in", rows_of(range(9)))).transform(firsts)
    out = out.transform(Aggregate(Tumbling(Count(9), by="k", order_by=None), n=agg.sum("v")))
    run(out.writeStream.foreachBatch(ignored), tmp_path / "chk")
    with pytest.raises(HostError, match=r"no 'Firsts' in descriptions\. Pass operator="):
        inspect_state(tmp_path / "chk")
    found = inspect_state(tmp_path / "chk", operator=firsts).collect()
    assert {0, 1} == {row.id for row in found}
    own = [row for row in found if row.input is None]
    assert {"Firsts"} == {row.operator for row in own}
    assert 3 == sum(json.loads(row.content)["seen"] for row in own)


def test_state_that_cannot_be_read_is_refused():
    head = StateHead(2, 0, "", "", "", "{}", 0, 0, 0, pages=1, entries=1, data=None)
    assert (b"ab", [b"c"]) == assembled(head, {(0,): b"ab", (-1,): b"c"}.get)
    with pytest.raises(StateVersionError, match="lacks page -1"):
        assembled(head, {(0,): b"ab"}.get)
    with pytest.raises(StateVersionError, match="state of format 7"):
        check_format(7)


def test_what_json_has_no_form_for_is_a_text():
    assert '"2"' == json_text(type("Two", (), {"__str__": lambda self: "2"})())
    loop: list[object] = []
    loop.append(loop)
    assert '"[[...]]"' == json_text(loop)


def test_mistakes_of_inspect_state(spark, tmp_path):
    with pytest.raises(HostError, match="no checkpoint with a committed batch"):
        inspect_state(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    folder = written(tmp_path / "in", rows_of(range(9)))
    counted = stream_of(spark, folder).groupBy("k").count()
    run(counted.writeStream.outputMode("complete").format("noop"), tmp_path / "other")
    with pytest.raises(HostError, match="no operator of windowlib has state in it"):
        inspect_state(str(tmp_path / "other"))

    window = Tumbling(Count(100), by="k", order_by="ts")
    checkpoint = str(tmp_path / "chk")
    out = stream_of(spark, folder).transform(Gone(window, n=agg.count()))
    run(out.writeStream.foreachBatch(ignored), checkpoint)
    with pytest.raises(HostError, match=r"no 'Gone' in descriptions\. Pass operator="):
        inspect_state(checkpoint)
    moved = type("Gone", (Aggregate,), {})
    assert 3 == inspect_state(checkpoint, operator=moved(window, n=agg.count())).count()
    other = Tumbling(Count(7), by="k", order_by="ts")
    with pytest.raises(StateVersionError, match=r"evict=Count\(size=100\)"):
        inspect_state(checkpoint, operator=moved(other, n=agg.count()))
