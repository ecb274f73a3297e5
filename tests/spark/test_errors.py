"""Every mistake on Spark gets a message, and the page of errors shows it."""
# ruff: noqa: SIM300 - asserts read expected first

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as fn
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

import windowlib
import windowlib.spark
from tests.runtime.test_operator_errors import shown, unseen
from tests.window.test_errors import lines_of
from windowlib import Count, Delta, Event, Sliding, Tumbling, WindowlibError
from windowlib.errors import HostError, SchemaError, StateError, StateVersionError
from windowlib.operators import Aggregate, AsOf, Join, agg
from windowlib.spark import session, versions
from windowlib.spark.bucket.bucket import Bucket, check_fingerprint, check_nonce
from windowlib.spark.bucket.processor import Processor
from windowlib.spark.bucket.state_store import FORMAT, StateHead, StateStore, head_bytes, head_of
from windowlib.spark.plan import input_merge, types
from windowlib.spark.plan.key_hash import check_hashes
from windowlib.spark.session import check_java, java_version
from windowlib.window.state_bytes import dump_state, load_state

PACKAGE = Path(windowlib.__file__).parent
PAGE = PACKAGE.parent / "docs" / "spark-errors.md"
SOURCES = sorted((PACKAGE / "spark").rglob("*.py"))
# Raised in a process of its own, on a server of its own (test_connect), or on real checkpoints
# (test_view, test_rescale); what a peer of the cache may send (test_parts).
APART = {"versions", "deployment", "inspect", "state_cache", "rescale"}
ROW = re.compile(r"^\|.*?\| `([^`]+)` \|", re.MULTILINE)


# -- messages that Spark or the machine causes --


class Lacking:
    """A state store that has lost its pages."""

    def getMapState(self, name, key, value):  # noqa: N802
        return self

    def getValue(self, key):  # noqa: N802
        return None


def head(**changes):
    names = StateHead.__dataclass_fields__
    plain: dict[str, Any] = {**dict.fromkeys(names, 0), "format": FORMAT, "about": "{}"}
    return StateHead(**{**plain, "data": None, **changes})


class SomeSpec:
    identity: dict[str, str] = {}  # noqa: RUF012


def other_buckets():
    check_fingerprint({"key": "k", "buckets": "2"}, {"key": "k", "buckets": "4"})


def other_window():
    was, now = ({"window.evict": f"Count(size={size})"} for size in (4, 5))
    check_fingerprint(was, now)


def other_format():
    head_of(head_bytes(head(format=FORMAT + 1)))


def changed_head():
    head_of(head_bytes(head()))


def no_head():
    head_of(b"")


def mixed_up():
    check_nonce("3f2a", "77d0")


def no_bucket():
    Bucket.restored(SomeSpec(), "", dump_state(7), [])  # type: ignore[arg-type]


def changed_bytes():
    data = bytearray(dump_state(b"x" * 1984))
    data[-1] ^= 1
    load_state(bytes(data))


def not_plain():
    dump_state({"operator": {"operator": "Spread"}, "state": {"rule": len}})


def lost_page():
    StateStore(Lacking()).load(head(pages=1))


def too_narrow():
    types.fitted(pa.record_batch({"n": [1, 300]}), pa.schema({"n": pa.int8()}))


def no_common_order():
    tables = [pa.table({"ts": ["a"]}), pa.table({"ts": [1]})]
    list(input_merge.merged_inputs(tables, ["ts", "ts"]))


def unknown_hash():
    check_hashes([ArrayType(LongType())])


def no_such_type():
    types.spark_schema(pa.schema({"m": pa.month_day_nano_interval()}), "Functor")


HERE = [
    (other_buckets, StateVersionError),
    (other_window, StateVersionError),
    (other_format, StateVersionError),
    (lost_page, StateVersionError),
    (changed_head, StateError),
    (no_head, StateError),
    (mixed_up, StateError),
    (no_bucket, StateError),
    (changed_bytes, StateError),
    (not_plain, StateError),
    (too_narrow, SchemaError),
    (no_common_order, SchemaError),
    (no_such_type, SchemaError),
    (unknown_hash, HostError),
]


def error_of(call):
    try:
        call()
    except Exception as error:
        return error
    return None


@pytest.fixture(scope="module")
def texts():
    """The messages in the tables of the page."""
    return ROW.findall(PAGE.read_text())


@pytest.mark.parametrize(("call", "kind"), HERE, ids=[call.__name__ for call, _ in HERE])
def test_a_mistake_that_shows_while_a_query_runs(texts, call, kind):
    error = error_of(call)
    assert kind is type(error)
    assert str(error) in texts


def without_java(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")


def with_java(monkeypatch, folder, says):
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n/bin/echo '{says}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    return java


OLD = 'openjdk version "11.0.2" 2019-01-15'


def test_a_machine_without_java(texts, monkeypatch):
    without_java(monkeypatch)
    with pytest.raises(HostError) as caught:
        session()
    assert str(caught.value) in texts


def test_a_java_that_is_too_old(texts, monkeypatch, tmp_path):
    java = with_java(monkeypatch, tmp_path, OLD)
    with pytest.raises(HostError) as caught:
        session()
    assert str(caught.value).replace(str(java), "/usr/bin/java") in texts


@pytest.mark.parametrize("says", ['openjdk version "17.0.15"', 'java version "21"', "no idea"])
def test_a_java_that_is_new_enough_or_does_not_tell(monkeypatch, tmp_path, says):
    with_java(monkeypatch, tmp_path, says)
    check_java()


def test_the_version_of_an_old_java():
    assert 8 == java_version('java version "1.8.0_292"')


BLOCKED = """
import sys
sys.modules["pyspark"] = {pyspark}
from windowlib import Count, Sliding
from windowlib.errors import HostError
from windowlib.operators import Aggregate, agg

class Frame:
    isStreaming = False

try:
    Aggregate(Sliding(Count(3)), n=agg.count())(Frame())
except HostError as error:
    print(error)
"""


OLD_PYSPARK = 'type(sys)("pyspark"); sys.modules["pyspark"].__version__ = "3.5.9"'


@pytest.mark.parametrize("found", ["None", OLD_PYSPARK])
def test_without_a_new_enough_pyspark_the_message_says_what_to_install(texts, found):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(pyspark=found)],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in texts


def test_a_client_of_connect_without_stateful_processing(texts, monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    spec: Any = SomeSpec()
    with pytest.raises(HostError) as caught:
        versions.transform_with_state(object(), Processor(spec), "port int", "None")
    assert str(caught.value) in texts


def test_a_protobuf_that_spark_cannot_use(texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.proto.StateMessage_pb2", None)
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    with pytest.raises(HostError) as caught:
        versions.check_protobuf()
    assert str(caught.value) in texts
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(HostError, match=r"protobuf>=5\.28\.3,<7"):
        versions.check_protobuf()


def test_everything_in_the_tables_was_raised(texts):
    # With Java twice, PySpark twice, Connect, protobuf, and three that Spark raises: test_by_spark,
    # test_rescale.
    assert len({str(error_of(call)) for call, _ in HERE}) + 9 == len(texts)


# -- the page --


@pytest.fixture(scope="module")
def page(spark):
    return shown(PAGE).errors


@pytest.mark.parametrize("buckets", [0, -1, True, 2.0, "4"], ids=repr)
def test_a_number_of_buckets_is_a_whole_number_from_1_on(buckets):
    op = Aggregate(Sliding(Count(3), by="k"), n=agg.count())
    with pytest.raises(windowlib.ModelError, match="not a number of buckets"):
        windowlib.spark.attach(op, buckets=buckets)


def test_columns_of_a_window_are_looked_at_before_the_query(spark):
    frame = spark.createDataFrame([("a", 1)], "k string, n int")
    for window, reason in (
        (Tumbling(Count(2), order_by="N"), "order_by='N': no such column"),
        (Tumbling(Delta("k", 5), order_by="n"), "the column 'k' is string, which has no distances"),
        (Tumbling(Event("n", "5s")), "the column 'n' is int32, so distances must be numbers"),
    ):
        with pytest.raises(SchemaError, match=reason):
            frame.transform(Aggregate(window, n=agg.count()))


def test_inputs_are_put_in_one_order_by_columns_that_compare(spark):
    left = spark.createDataFrame([(1, "a")], "ts int, k string")
    numbers = left.selectExpr("CAST(ts AS decimal(9, 2)) AS ts", "k")
    times = left.selectExpr("timestamp_seconds(ts) AS ts", "k")
    assert [(1, "a")] == [row[:2] for row in AsOf("ts", on="k")(left, numbers).collect()]
    join = Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k")
    for op in (AsOf("ts", on="k"), windowlib.spark.attach(join, times="ts")):
        with pytest.raises(SchemaError, match=r"by 'ts' \(int\) and 'ts' \(timestamp\), which do"):
            op(left, times)


@pytest.mark.parametrize("argument", ["key", "order_by", "times"])
@pytest.mark.parametrize("given", [3, {"k"}, [], ["k", 3], b"k"], ids=str)
def test_columns_are_said_by_their_names(argument, given):
    op = Aggregate(Sliding(Count(3), by="k"), n=agg.count())
    with pytest.raises(windowlib.ModelError, match=rf"attach\({argument}=.*: not the name"):
        windowlib.spark.attach(op, **{argument: given})


def test_a_clock_is_a_function():
    op = Aggregate(Sliding(Count(3), by="k"), n=agg.count())
    with pytest.raises(windowlib.ModelError, match=r"attach\(clock=3\): not a function"):
        windowlib.spark.attach(op, clock=3)  # type: ignore[arg-type]


def test_a_setting_without_dots_is_none_of_sparks():
    with pytest.raises(
        HostError, match=r"session\(spark_sql_shuffle_partitions=...\): not a setting"
    ):
        session(spark_sql_shuffle_partitions=2)


MAP = MapType(StringType(), LongType())


def columns(**kinds: Any) -> StructType:
    """The columns of a stream that is not there yet."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


@pytest.mark.parametrize("kind", [MAP, ArrayType(MAP)], ids=str)
def test_maps_are_neither_keys_nor_orders(kind):
    frame = columns(ts=LongType(), m=kind)
    for role, window in {
        "key": Tumbling(Count(2), by="m", order_by="ts"),
        "order": Tumbling(Count(2), order_by="m"),
    }.items():
        with pytest.raises(SchemaError, match=f"the {role} 'm' is {kind.simpleString()}, and"):
            Aggregate(window, n=agg.count()).explain(frame)


def test_a_column_that_spark_cannot_hand_over_is_named():
    frame = columns(ts=LongType(), months=YearMonthIntervalType(1, 1))
    read = Aggregate(Tumbling(Count(2), order_by="ts"), last=agg.last("months"))
    with pytest.raises(SchemaError, match=r"the column 'months' \(interval month\) to Python"):
        read.explain(frame)
    unread = Aggregate(Tumbling(Count(2), order_by="ts"), n=agg.count())
    assert "Aggregate" in unread.explain(frame)


def test_a_running_session_keeps_its_time_zone_and_its_partitions(spark):
    own = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": "7"}
    before = {name: spark.conf.get(name) for name in own}
    try:
        for name, value in own.items():
            spark.conf.set(name, value)
        again = session()
        assert {name: again.conf.get(name) for name in own} == own
        assert session(spark__sql__shuffle__partitions=3).conf.get(list(own)[1]) == "3"
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_column_of_pyspark_is_no_name(spark):
    op = Aggregate(Sliding(Count(3), by="k"), n=agg.count())
    for argument in ("key", "order_by", "times"):
        wrong: dict[str, Any] = {argument: fn.col("k")}
        with pytest.raises(
            windowlib.ModelError, match=rf'attach\({argument}=Column.*{argument}="ts"'
        ):
            windowlib.spark.attach(op, **wrong)


def test_an_exception_is_ours_and_ends_well(page):
    assert page
    for source, error in page:
        assert isinstance(error, WindowlibError), source
        text = str(error)
        assert text.endswith((".", "?", ")")), text
        assert " at 0x" not in text


def test_a_message_is_shown_once(page, texts):
    messages = [*(str(error) for _, error in page), *texts]
    assert [] == sorted({each for each in messages if messages.count(each) > 1})


def test_every_raise_has_an_example(page, monkeypatch, tmp_path):
    seen = set()
    for error in [*(error for _, error in page), *(error_of(call) for call, _ in HERE)]:
        seen |= lines_of(error)
    with monkeypatch.context() as changed:
        without_java(changed)
        seen |= lines_of(error_of(check_java))
    with monkeypatch.context() as changed:
        with_java(changed, tmp_path, OLD)
        seen |= lines_of(error_of(check_java))
    seen |= lines_of(error_of(lambda: windowlib.spark.nothing))  # type: ignore[attr-defined]
    left = [path for path in SOURCES if path.stem not in APART]
    assert [] == [place for path in left for place in unseen(path.read_text(), path, seen)]
