"""The testing kit on Spark: a static DataFrame is one of the ways."""
# ruff: noqa: SIM300 - asserts read expected first

import warnings

import pytest

from examples.clean_vwap import CleanVwap
from examples.visits import Visits, clicks
from tests.testing.broken_operators import ROWS
from windowlib import Count, OrderWarning, Sliding, Time, Tumbling, advance
from windowlib.operators import Aggregate, agg
from windowlib.samples import trades
from windowlib.testing import assert_same_everywhere
from windowlib.testing.executions import SPARK

TRADES = [{**row, "ts": row["ts"].timestamp()} for row in trades(150)]
ALONE = {"batches": False, "restarts": False, "farms": False}


class Wrong(Aggregate):
    """Says other columns than it sends, so that Spark gets nulls."""

    def schema(self, *columns):
        import pyarrow as pa

        return pa.schema({"k": pa.string(), "n": pa.float64()})


def test_spark_is_one_of_the_ways(spark):
    window = Sliding(Count(3), every=Count(2), by="k", order_by="ts")
    op = Aggregate(window, n=agg.count(), m=agg.mean("x"))
    assert SPARK in assert_same_everywhere(op, ROWS, spark=spark, **ALONE).ran
    timed = Aggregate(Tumbling(Time("3s"), by="k"), n=agg.count())
    assert SPARK in assert_same_everywhere(timed, ROWS, times="ts", spark=spark, **ALONE).ran


@pytest.mark.parametrize(
    ("operator", "rows", "times"),
    [
        (CleanVwap(Sliding(Count(9), every=Count(3), by="symbol")), TRADES, None),
        (Visits("30s"), list(clicks(120)), "ts"),
    ],
    ids=["state", "timers"],
)
def test_declared_state_and_timers_are_the_same_on_spark(spark, operator, rows, times):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderWarning)  # one partition, which has an order
        report = assert_same_everywhere(operator, rows, times=times, spark=spark, **ALONE)
    assert SPARK in report.ran
    assert report.rows > 9


def test_rows_that_differ_on_spark_are_found(spark):
    op = Wrong(Tumbling(Count(2), by="k", order_by="ts"), n=agg.count())
    with pytest.raises(AssertionError, match=f"{SPARK} (differs|raised)"):
        assert_same_everywhere(op, ROWS, spark=spark, **ALONE)


def test_marks_are_not_for_a_dataframe(spark):
    op = Aggregate(Tumbling(Count(2), by="k", order_by="ts"), n=agg.count())
    report = assert_same_everywhere(op, [*ROWS, advance(99)], spark=spark, **ALONE)
    assert "a DataFrame has no marks among its rows" == report.left_out[SPARK]
