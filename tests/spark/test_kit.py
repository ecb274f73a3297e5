"""The testing kit on Spark: a static DataFrame is one of the ways."""
# ruff: noqa: SIM300 - asserts read expected first

import pytest

from tests.testing.broken_operators import ROWS
from windowlib import Count, Sliding, Time, Tumbling, advance
from windowlib.operators import Aggregate, agg
from windowlib.testing import assert_same_everywhere
from windowlib.testing.executions import SPARK

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


def test_rows_that_differ_on_spark_are_found(spark):
    op = Wrong(Tumbling(Count(2), by="k", order_by="ts"), n=agg.count())
    with pytest.raises(AssertionError, match=f"{SPARK} (differs|raised)"):
        assert_same_everywhere(op, ROWS, spark=spark, **ALONE)


def test_marks_are_not_for_a_dataframe(spark):
    op = Aggregate(Tumbling(Count(2), by="k", order_by="ts"), n=agg.count())
    report = assert_same_everywhere(op, [*ROWS, advance(99)], spark=spark, **ALONE)
    assert "a DataFrame has no marks among its rows" == report.left_out[SPARK]
