"""Corners of arithmetic and of keys on a static DataFrame: the same as of replayed rows."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windowlib import Count, Delta, Operator, OperatorModel, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, agg
from windowlib.spark import attach

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
WIDE = 2**63
SCHEMA = pa.schema(
    {
        "ts": pa.int64(),
        "zero": pa.float64(),
        "money": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
        "big": pa.int64(),
        "other": pa.int64(),
        "wide": pa.decimal128(20, 0),
        "far": pa.float64(),
    }
)
ROWS: list[dict[str, Any]] = [
    {
        "ts": i,
        "zero": (0.0, -0.0, float("nan"), -float("nan"), 1.0)[i % 5],
        "money": Decimal(i % 3) + Decimal("0.10"),
        "at": NOON + timedelta(hours=i % 2),
        "big": 2**53 + i * i % 7 + (i % 3) * 2**60,
        "other": 2**61 - i * 5 % 11,
        "wide": Decimal(WIDE + i),
        "far": float(i) if i < 50 else (float("inf"), float("nan"))[i % 2],
    }
    for i in range(60)
]
STATISTICS: dict[str, Any] = {
    "n": agg.count(),
    "var": agg.var("big"),
    "std": agg.std("big"),
    "cov": agg.cov("big", "other"),
    "corr": agg.corr("big", "other"),
    "dvar": agg.var("money"),
    "dstd": agg.std("money"),
    "sum": agg.sum("wide"),
}


class Widest(Operator):
    """The largest number of a column of Arrow content."""

    model = OperatorModel(windows=[Tumbling], punctuation_out="generating")
    content = "arrow"
    output = "zero double, low decimal(20, 0), high decimal(20, 0)"

    def before_flush(self, window: Any, key: Any) -> None:
        values = window.arrow(key).column("wide").to_pylist()
        self.emit(zero=key, low=min(values), high=max(values))


CASES: dict[str, Operator] = {
    "equal keys": Aggregate(Tumbling(Count(6), by="zero", order_by="ts"), STATISTICS),
    "decimal keys": Aggregate(
        Sliding(Count(6), every=Count(2), by="money", order_by="ts"), STATISTICS
    ),
    "instants": Aggregate(
        Sliding(Delta("ts", 9), every=Count(4), by="at", order_by="ts"), n=agg.count()
    ),
    "arrow content": Widest(Tumbling(Count(5), by="zero", order_by="ts")),
}


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("exact") / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), path)
    return spark.read.parquet(str(path))


def by_key(rows: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows by their first column, which is the key, in order; all NaN are one, as text."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        plain = {name: _plain(value) for name, value in row.items()}
        found.setdefault(repr(next(iter(plain.values()))), []).append(plain)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    return abs(value) if isinstance(value, float) and value != value else value


def same(wanted: Any, got: Any) -> bool:
    """Whether values are the same, to the last bit; a Decimal has the digits of its column."""
    if isinstance(wanted, Decimal):
        return bool(wanted.quantize(got) == got)
    return repr(wanted) == repr(got)


@pytest.mark.parametrize("name", CASES)
def test_a_static_dataframe_gives_what_replayed_rows_give(frame, name):
    operator = CASES[name]
    wanted = by_key(replay(operator, ROWS))
    got = by_key(row.asDict() for row in attach(operator)(frame).collect())
    assert [*wanted] == sorted(got, key=[*wanted].index)
    for key, rows in wanted.items():
        for row, other in zip(rows, got[key], strict=True):
            assert row.keys() == other.keys()
            differing = [each for each in row if not same(row[each], other[each])]
            assert not differing, (key, row, other)


def test_infinity_and_nan_are_refused_as_in_rows(frame):
    operator = Aggregate(Tumbling(Delta("far", 9), order_by="ts"), n=agg.count())
    message = "the value inf cannot be compared"
    with pytest.raises(Exception, match=message):
        list(replay(operator, ROWS))
    with pytest.raises(Exception, match=message):
        attach(operator)(frame).collect()
