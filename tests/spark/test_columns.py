"""Columns of PySpark, `F.col("x") * 2`, as expressions of ours."""
# ruff: noqa: SIM300 - asserts read expected first

import importlib
import pickle
from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from tests.spark.test_connect import lacking
from windowlib import Count, ModelError, Tumbling, replay
from windowlib.operators import Aggregate, Filter, Functor, Sort, agg, asc, col
from windowlib.operators.spark_columns import expression_of

X, Y = "x", "odd name"
EXPRESSIONS = [
    (lambda f: f.col(X), 'col("x")'),
    (lambda f: f.col(f"`{Y}`") + f.lit(2), '(col("odd name") + 2)'),
    (lambda f: 1 - f.col(X) * 2.5, '(1 - (col("x") * 2.5))'),
    (lambda f: -f.col(X) / f.col("y"), '((-col("x")) / col("y"))'),
    (lambda f: (f.col(X) > 1) & ~f.col("b"), '((col("x") > 1) & (col("b") == False))'),
    (lambda f: f.col("s") == "a", "(col(\"s\") == 'a')"),
    (lambda f: f.col(X).between(1, 2), '((col("x") >= 1) & (col("x") <= 2))'),
    (lambda f: f.col("b") | f.lit(True), '(col("b") | True)'),
    (lambda f: f.col(X) != f.lit(None), '((col("x") == None) == False)'),
    (lambda f: f.col(X) ** 2, '(col("x") ** 2).cast("double")'),
    (lambda f: f.col(X).cast("decimal(10,2)").alias("z"), 'col("x").cast("decimal(10,2)")'),
    (lambda f: f.when(f.col(X) > 1, f.col("y")), 'when((col("x") > 1), col("y"))'),
    (lambda f: f.col("s").isin("a", "b"), "((col(\"s\") == 'a') | (col(\"s\") == 'b'))"),
    (lambda f: f.col(X) * f.lit(Decimal("1.20")), "(col(\"x\") * Decimal('1.20'))"),
]  # fmt: skip
REFUSED = [
    (lambda f: f.col("a.b"), "is not translated. Compute it before, as df.withColumn("),
    (lambda f: f.abs(X), 'abs is not translated. Compute it before, as df.withColumn("c", ...)'),
    (lambda f: f.col(X).isin([]), "in is not translated. Compute it before"),
    (lambda f: f.col(X) % 2, "the remainder has the sign of the first operand there"),
    (lambda f: f.col(X).eqNullSafe(1), "two nulls are equal to it, and nulls are not compared"),
    (lambda f: f.sum(X), 'sum is an aggregate of Spark\'s. Use agg.sum, as agg.sum("x").'),
    (lambda f: f.avg(X) + 1, "avg is an aggregate of Spark's. Use agg.mean"),
    (lambda f: f.expr("x + 1"), "is not translated. Compute it before"),
    (lambda f: f.lit(3), "it is a constant. Pass the value itself, 3."),
    (lambda f: f.col(X) > f.lit(date(2026, 1, 1)), "is not translated. Compute it before"),
    (lambda f: f.col(X).cast("array<int>"), "not a type to cast to. Use tinyint"),
]
CONNECT = "pyspark.sql.connect.functions"  # which need no server to make columns
no_connect = pytest.mark.skipif(bool(lacking()), reason="no Spark Connect here")


@pytest.mark.parametrize("name", [F.__name__, pytest.param(CONNECT, marks=no_connect)])
def test_columns_that_mean_the_same_are_translated_and_others_refused(spark, name):
    functions = importlib.import_module(name)
    for make, want in EXPRESSIONS:
        assert want == repr(expression_of(make(functions)))
    for make, message in REFUSED:
        with pytest.raises(ModelError) as caught:
            expression_of(make(functions))
        assert message in str(caught.value)


def test_aggregates_take_them_and_give_what_spark_gives(spark):
    rows = [
        {"k": "ab"[n % 2], "x": n, "price": n / 4, "side": "buy" if n % 3 else None}
        for n in range(24)
    ]
    frame = spark.createDataFrame(rows, "k string, x bigint, price double, side string")
    notional, bought = F.col("price") * F.col("x"), F.col("side") == "buy"
    window = Tumbling(Count(12), by="k", order_by="x")
    operator = Aggregate(
        window,
        total=agg.sum(notional),
        bought=agg.sum(notional).where(bought),
        n=agg.count().where(bought & (F.col("x") > 3)),
        half=agg.max("x").cast("double") / 2,
        having=agg.count() > 1,
    )
    want = frame.groupBy("k").agg(
        F.sum(notional).alias("total"),
        F.sum(F.when(bought, notional)).alias("bought"),
        F.count(F.when(bought & (F.col("x") > 3), 1)).alias("n"),
        (F.max("x") / 2).alias("half"),
    )
    expected = sorted(row.asDict().items() for row in want.collect())
    assert expected == sorted(row.asDict().items() for row in frame.transform(operator).collect())
    assert [dict(each) for each in expected] == sorted(replay(operator, rows), key=lambda r: r["k"])


def test_sorts_take_them_and_keys_say_the_name(spark):
    rows = [{"x": x} for x in (3, 1, 2)]
    window = Tumbling(Count(3), order_by="x")
    for sort in (Sort(asc(-F.col("x")), window=window), Sort(-F.col("x"), window=window)):
        assert [3, 2, 1] == [row["x"] for row in replay(sort, rows)]
        assert sort == pickle.loads(pickle.dumps(sort))  # a column of PySpark's cannot be
        found = spark.createDataFrame(rows, "x bigint").transform(sort).collect()
        assert [3, 2, 1] == [row.x for row in found]
    with pytest.raises(ModelError, match=r'by names a column\. Write by="k"\.'):
        Aggregate(Tumbling(Count(3)), by=F.col("k"), n=agg.count())  # type: ignore[arg-type]
    assert '(col("x") + col("y"))' == repr(col("x") + F.col("y"))


def test_columns_of_a_frame_are_columns_of_that_name(spark):
    frame = spark.createDataFrame([(1, 2)], ["x", "a.b"])
    assert 'col("x")' == repr(expression_of(frame.x))
    assert '(col("a.b") * 2)' == repr(expression_of(frame["`a.b`"] * 2))
    assert 'col("x")' == repr(expression_of(frame.alias("t")["t.x"]))
    with pytest.raises(ModelError, match="is not translated"):
        expression_of(frame.select(F.struct("x").alias("s"))["s.x"])


def test_filters_and_computed_columns_take_them(spark):
    rows = [{"x": x, "s": "ab"[x % 2]} for x in range(6)]
    frame = spark.createDataFrame(rows, "x bigint, s string")
    operator = Filter(frame.s == "a").then(Functor(y=F.col("x") / 2, keep="x"))
    assert [{"x": x, "y": x / 2} for x in (0, 2, 4)] == list(replay(operator, rows))
    found = frame.transform(operator)
    assert "struct<x:bigint,y:double>" == found.schema.simpleString()
    assert [(0, 0.0), (2, 1.0), (4, 2.0)] == sorted(map(tuple, found.collect()))
