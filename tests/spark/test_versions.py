"""What differs between versions of Spark gives the same in all of them."""
# ruff: noqa: SIM300 - asserts read expected first

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tests.spark import job
from tests.spark.cases import BY, CUTS, SCHEMA, kept
from tests.spark.stream_runs import Query, stream
from tests.spark.stream_runs import write as write_rows
from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, agg
from windowlib.spark import versions
from windowlib.spark.bucket.processor import METRICS, OUTPUT_DDL
from windowlib.spark.observe.metrics import Sums

ZONE = "Asia/Tokyo"
AT = TimestampType()
NESTED = StructType(
    [
        StructField("at", AT),
        StructField("plain", TimestampNTZType()),
        StructField("list", ArrayType(AT)),
        StructField("map", MapType(StringType(), AT)),
        StructField("struct", StructType([StructField("at", AT), StructField("n", LongType())])),
    ]
)


def zones(kind):
    """The time zones in an Arrow type, in their order."""
    if pa.types.is_timestamp(kind):
        return [kind.tz]
    if pa.types.is_map(kind):
        return zones(kind.item_type)
    return [zone for at in range(kind.num_fields) for zone in zones(kind.field(at).type)]


@pytest.mark.parametrize("takes_zone", [True, False])
def test_timestamps_have_the_zone_of_the_session_wherever_they_are(monkeypatch, takes_zone):
    if takes_zone and not versions._TAKES_ZONE:
        pytest.skip("this Spark does not take a zone")
    if not takes_zone and versions._TAKES_ZONE:  # then as older ones: in UTC, whatever is asked

        def in_utc(schema):
            return to_arrow_schema(schema, timezone="UTC")

        monkeypatch.setattr(versions, "to_arrow_schema", in_utc)
    monkeypatch.setattr(versions, "_TAKES_ZONE", takes_zone)
    found = versions.arrow_schema(NESTED, ZONE)
    assert NESTED.names == found.names
    assert [[ZONE], [None], [ZONE], [ZONE], [ZONE]] == [zones(field.type) for field in found]
    assert pa.map_(pa.string(), pa.timestamp("us", ZONE)) == found.field("map").type


def test_a_time_without_a_zone_stays_without():
    assert TimestampNTZType() == versions.spark_type(pa.timestamp("us"))
    assert TimestampType() == versions.spark_type(pa.timestamp("us", ZONE))


class Echo:
    """A processor that gives back what it gets."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def init(self, handle):
        self.calls.append(("init", handle))

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        for row in rows:
            yield Row(port=int(row.side), data=bytes(row.data), **dict.fromkeys(METRICS))

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803
        yield Row(port=None, data=None, **dict.fromkeys(METRICS, expiredTimerInfo))

    def close(self):
        self.calls.append("close")


def test_pandas_frames_carry_the_rows_of_a_processor():
    pd = pytest.importorskip("pandas")
    echo, columns = Echo(), ["port", "data", *METRICS]
    processor: Any = versions.PandasProcessor(echo, columns)  # type: ignore[arg-type]
    processor.init("handle")
    frame = pd.DataFrame({"_bucket": [1, 1], "side": [0, 1], "place": [5, 6], "data": [b"a", b"b"]})
    made = [*processor.handleInputRows((1,), iter([frame]), None)]
    made += processor.handleExpiredTimer(key=(1,), timerValues=None, expiredTimerInfo=7)
    processor.close()
    assert ["handle", "close"] == [echo.calls[0][1], echo.calls[1]]
    schema = pa.schema(
        [("port", pa.int32()), ("data", pa.binary()), *((name, pa.int64()) for name in METRICS)]
    )
    rows = [row for each in made for row in pa.Table.from_pandas(each, schema).to_pylist()]
    nothing = dict.fromkeys(METRICS)
    assert [
        {"port": 0, "data": b"a", **nothing},
        {"port": 1, "data": b"b", **nothing},
        {"port": None, "data": None, **dict.fromkeys(METRICS, 7)},
    ] == rows


class Grouped:
    """What Spark gives for `groupBy`, with stateful processing for rows, for pandas, or both."""

    def __init__(self, *names: str) -> None:
        for name in names:
            setattr(self, name, lambda *given, name=name: (name, *given))


def test_rows_are_used_where_spark_has_them_and_pandas_elsewhere():
    processor: Any = Echo()
    both = Grouped("transformWithState", "transformWithStateInPandas")
    found: Any = versions.transform_with_state(both, processor, OUTPUT_DDL, "None")
    assert ("transformWithState", processor, OUTPUT_DDL, "Append", "None") == found
    found = versions.transform_with_state(
        Grouped("transformWithStateInPandas"), processor, OUTPUT_DDL, "ProcessingTime"
    )
    name, wrapped, *others = found
    assert ("transformWithStateInPandas", processor) == (name, wrapped.processor)
    assert ["port", "data", *METRICS] == wrapped.columns
    assert [OUTPUT_DDL, "Append", "ProcessingTime"] == others


def test_a_stream_in_pandas_gives_what_replay_gives(spark, tmp_path, monkeypatch):
    """As in Spark 4.0, where there is nothing else; every version has it."""
    from pyspark.sql import GroupedData

    owner = next((each for each in GroupedData.__mro__ if "transformWithState" in vars(each)), None)
    if owner is not None:
        monkeypatch.delattr(owner, "transformWithState")
    operator = Aggregate(Sliding(Count(5), every=Count(2), **BY), n=agg.count(), s=agg.sum("x"))
    rows = [kept(cut, 0) for cut in range(CUTS)]
    for cut, some in enumerate(rows):
        write_rows(tmp_path / "in", cut, some, SCHEMA)
    query = Query(tmp_path / "checkpoint")
    query.run(stream(spark, tmp_path / "in").transform(operator))
    found = [row.asDict() for row in query.rows]
    want = list(replay(operator, [row for some in rows for row in some]))
    assert want
    assert job.by_key(want) == job.by_key(found)


def test_metrics_come_as_rows_as_dicts_or_as_what_connect_makes_of_them():
    values = dict(zip(METRICS, range(1, len(METRICS) + 1), strict=True))
    forms = [Row(**values), values, Row(values=list(values.values()), schema=[])]
    found = []
    for form in forms:
        sums = Sums()
        event = {"runId": "r", "batchId": 0, "observedMetrics": {"windowlib Sum 1": form}}
        assert sums.add(event)
        found.append(sums.totals())
    assert found[0] == found[1] == found[2]
    assert 1 == found[0].rows_in
