"""`where` of aggregates and `cast` of expressions, in rows and in batches."""
# ruff: noqa: SIM300 - asserts read expected first

import inspect
import math
import pickle
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib import Count, ModelError, SchemaError, Sliding, Tumbling, replay
from windowlib.operators import Aggregate, agg, col

ROWS: list[dict[str, Any]] = [
    {"x": x, "w": w, "side": side, "k": k}
    for x, w, side, k in zip(
        [5, None, 3, 8, 1, 9, 2, 7, 5, 5, 4, 6],
        [1.5, 2.0, 0.5, 4.0, None, 1.0, 2.5, 3.0, 1.0, 2.0, 0.25, 1.0],
        ["buy", "sell", "buy", None, "buy", "sell", "sell", "buy", "buy", "sell", "buy", "sell"],
        "aabbabababab",
        strict=True,
    )
]
CALLS = {
    "approx_count_distinct": {"column": "x"},
    "approx_quantile": {"column": "x", "q": 0.5},
    "approx_top_k": {"column": "x", "k": 2},
    "arg_max": {"column": "w", "by": "x"},
    "arg_min": {"by": "x"},
    "collect_arg_max": {"column": "w", "by": "x"},
    "collect_arg_min": {"by": "x"},
    "corr": {"x": "x", "y": "w"},
    "cov": {"x": "x", "y": "w"},
    "collect": {"column": "x"},
    "count": {},
    "nth": {"column": "x", "k": 1},
    "quantile": {"column": "x", "q": 0.25},
    "top": {"k": 2, "by": "x"},
    "weighted_mean": {"column": "x", "weight": "w"},
}
FIRINGS = {"count_all", "count_by_group", "count_groups", "window_start", "window_end"}
FIRINGS |= {"revision", "retracts", "custom"}
BUY = col("side") == "buy"


def calls():
    for name in sorted(set(agg.__all__) - FIRINGS):
        function = getattr(agg, name)
        given = (
            CALLS[name]
            if name in CALLS
            else dict.fromkeys(
                (
                    n
                    for n, p in inspect.signature(function).parameters.items()
                    if p.default is p.empty
                ),
                "x",
            )
        )
        yield pytest.param(lambda f=function, given=given: f(**given), id=name)


@pytest.mark.parametrize("call", list(calls()))
def test_every_function_of_some_rows_is_that_of_a_stream_with_only_these(call):
    condition = BUY & (col("x") > 1)
    some = [r for r in ROWS if r["side"] == "buy" and r["x"] is not None and r["x"] > 1]
    (want,) = replay(Aggregate(Tumbling(Count(len(some))), out=call()), some)
    operator = Aggregate(Tumbling(Count(len(ROWS))), out=call().where(condition))
    assert [want] == list(replay(operator, ROWS))
    made = operator.open().process_batch(pa.Table.from_pylist(ROWS)).to_pylist()
    assert str([want]).replace("(", "[").replace(")", "]") == str(made)  # Arrow has lists
    assert [want] == list(replay(pickle.loads(pickle.dumps(operator)), ROWS))
    (none,) = replay(
        Aggregate(Tumbling(Count(3)), out=call().filter(col("side") == "none")), ROWS[:3]
    )
    (empty,) = replay(Aggregate(Tumbling(Count(1)), out=call().where(col("x") > 99)), ROWS[:1])
    assert none == empty


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_conditions_on_text_numbers_and_booleans_work_on_columns(text):
    conditions = [BUY, col("side") != "buy", ~BUY, BUY | (col("x") > 6), BUY & (col("w") < 2)]
    for window in (Tumbling(Count(3), by="k"), Sliding(Count(4), every=Count(2), by="k")):
        outputs = {f"s{i}": agg.sum("x").where(each) for i, each in enumerate(conditions)}
        counts = {f"n{i}": agg.count().where(each) for i, each in enumerate(conditions)}
        operator = Aggregate(window, outputs | counts)
        table = pa.Table.from_pylist(ROWS)
        table = table.set_column(2, "side", table["side"].cast(text))
        assert "columnar" in operator.explain(table)
        assert list(replay(operator, ROWS)) == list(replay(operator, table))


booleans = st.none() | st.booleans()


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(booleans, booleans, st.none() | st.integers(-3, 3)), min_size=1))
def test_columns_combine_conditions_as_rows_do(rows):
    table = pa.table(
        {name: pa.array(values, kind) for name, values, kind in zip(
            "abx", zip(*rows, strict=True), [pa.bool_(), pa.bool_(), pa.int64()], strict=True
        )}
    )  # fmt: skip
    a, b = col("a"), col("b")
    outputs = {
        "both": agg.collect(a & b),
        "either": agg.collect(a | ~b),
        "n": agg.count().where(a & (b | (col("x") > 0))),
        "sum": agg.sum("x").where(a | b),
    }
    operator = Aggregate(Tumbling(Count(len(rows))), outputs)
    assert list(replay(operator, table.to_pylist())) == list(replay(operator, table))


@pytest.mark.parametrize(
    ("value", "kind", "want"),
    [
        (7.9, "bigint", 7),
        (-7.9, "int", -7),
        ("12", "smallint", 12),
        (" 1.5 ", "double", 1.5),
        (0.1, "float", 0.10000000149011612),
        (True, "int", 1),
        (3, "double", 3.0),
        (3, "string", "3"),
        (False, "string", "false"),
        (Decimal("1E+2"), "string", "100"),
        (1.005, "decimal(10, 2)", Decimal("1.01")),
        ("2.345", "decimal(4, 1)", Decimal("2.3")),
        ("TRUE", "boolean", True),
        (0, "boolean", False),
        (None, "int", None),
    ],
)
def test_a_cast_value(value, kind, want):
    operator = Aggregate(Tumbling(Count(1)), a=agg.last("x").cast(kind), b=agg.count())
    (found,) = replay(operator, [{"x": value}])
    assert want == found["a"]
    assert type(want) is type(found["a"])
    typed = {True: pa.null()}.get(value is None)
    made = operator.open().process_batch(pa.table({"x": pa.array([value], typed)})).to_pylist()
    assert [found] == made


def answer(operator, rows):
    """The rows that come out, or the message."""
    try:
        return str(list(replay(operator, rows)))
    except SchemaError as error:
        return str(error)


@settings(max_examples=examples(60))
@given(
    st.lists(st.none() | st.floats(-1e4, 1e4) | st.just(math.nan), min_size=1),
    st.sampled_from(["double", "bigint", "smallint"]),
)
def test_columns_are_cast_as_values_are(values, kind):
    operator = Aggregate(Tumbling(Count(len(values))), xs=agg.collect(col("x").cast(kind)))
    table = pa.table({"x": pa.array(values, pa.float64())})
    assert answer(operator, table.to_pylist()) == answer(operator, table)


def test_the_schema_says_the_type_of_a_cast():
    operator = Aggregate(
        Tumbling(Count(1)),
        a=agg.sum("x").cast("decimal(12, 3)"),
        b=agg.sum(col("s").cast("double")),
        c=agg.max("x").where(col("s") == "1"),
    )
    schema = operator.schema(pa.schema([("x", pa.int64()), ("s", pa.string())]))
    assert [pa.decimal128(12, 3), pa.float64(), pa.int64()] == schema.types


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: agg.sum("x").where(cast(Any, "x > 1")),
            "agg.sum(\"x\").where('x > 1'): not a condition.",
        ),
        (lambda: agg.count_all().where(BUY), "agg.count_all() reads no rows. Drop the condition"),
        (lambda: agg.collect().where(BUY), "whole rows cannot be left out. Name a column"),
        (lambda: agg.sum(len).where(BUY), "is a function of the row. Put the condition into it."),
        (lambda: agg.sum("x").where(agg.count() > 1), "is known only for a whole window"),
        (lambda: col("x").cast("array<int>"), "cast('array<int>'): not a type to cast to. Use"),
        (lambda: col("x").cast("intt"), "cast('intt'): not a type to cast to. Use tinyint"),
    ],
)
def test_what_cannot_be_filtered_or_cast_is_refused(call, message):
    with pytest.raises(ModelError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(300, "tinyint"), (math.nan, "int"), ("a", "double"), ("yes", "boolean"), (b"1", "string")],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_lost(value, kind):
    operator = Aggregate(Tumbling(Count(2)), xs=agg.collect(col("x").cast(kind)), n=agg.count())
    running = operator.open()
    rows: list[Any] = []
    running.connect(0, rows.append)
    with pytest.raises(SchemaError, match="Filter such rows before, or cast to a type"):
        running.insert({"x": value})
    for _ in range(2):
        running.insert({"x": None})
    assert [{"xs": [], "n": 2}] == rows
