"""The columns of an operator's output follow from those of its input, or from what it says."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Count, Operator, SchemaError, Sliding, Tumbling
from windowlib.operators import (
    Aggregate,
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    Join,
    Lookup,
    Pair,
    Punctor,
    Sort,
    Split,
    Union,
    agg,
)
from windowlib.runtime.schema_text import KNOWN, schema_of
from windowlib.window.arrow import rows_of

TRADES = pa.schema(
    {
        "symbol": pa.dictionary(pa.int8(), pa.string()),
        "price": pa.decimal128(10, 2),
        "qty": pa.int32(),
    }
)
PLAIN = pa.schema({"symbol": pa.string(), "price": pa.decimal128(10, 2), "qty": pa.int32()})
QUOTES = pa.schema({"symbol": pa.string(), "price": pa.float64(), "bid": pa.int64()})
two, ten = Tumbling(Count(2)), Sliding(Count(10))


def trades(n=3):
    rows = [("a", Decimal(1), 3), (None, None, 2), ("b", Decimal(2), None)][:n]
    return pa.Table.from_pylist([dict(zip(PLAIN.names, row, strict=True)) for row in rows], TRADES)


# -- rows that are sent on -------------------------------------------------------------------------

PASSING = [
    Filter(lambda t: t["qty"] != 3),
    Filter("qty"),
    Union(),
    Split(lambda t: t["qty"] == 2, ports=2),
    Delay(Count(1)),
    Dedup("qty", within=Count(2)),
    Punctor(when=lambda t: t["qty"] == 2),
    Sort("qty", window=two),
    Sort("qty", window=Sliding(Count(2))),
]


@pytest.mark.parametrize("op", PASSING, ids=repr)
def test_rows_that_are_sent_on_have_the_columns_of_the_input(op):
    others = [None] * (len(op.model.inputs) - 1)
    assert PLAIN == op.schema(TRADES, *others)
    batch = op.open().process_batch(trades())
    assert PLAIN == batch.schema
    rows: list[Any] = []
    again = op.open()
    again.connect(0, rows.append)
    again.insert_many(trades().to_pylist())
    assert rows == batch.to_pylist()
    assert rows


@pytest.mark.parametrize("op", PASSING, ids=repr)
def test_no_rows_are_a_batch_of_the_same_columns(op):
    batch = op.open().process_batch(trades(0))
    assert (PLAIN, 0) == (batch.schema, batch.num_rows)


def test_a_union_has_the_columns_of_all_inputs():
    op = Union(3)
    assert PLAIN == op.schema(TRADES, None, TRADES)
    both = op.schema(TRADES, QUOTES, None)
    assert ["symbol", "price", "qty", "bid"] == both.names
    assert pa.null() == both.field("price").type  # a decimal here, a float there
    assert op.schema(None, None, None) is None
    running = op.open()
    running.process_batch(trades())
    batch = running.process_batch(pa.table({"qty": [2**40]}), 1)
    assert [{"symbol": None, "price": None, "qty": 2**40}] == batch.to_pylist()
    assert pa.int64() == batch.schema.field("qty").type


# -- rows that are made ----------------------------------------------------------------------------


def test_a_functor_keeps_the_types_of_the_columns_it_keeps():
    def half(row):
        return row["qty"] and row["qty"] / 2

    projected = Functor(keep=["qty", "symbol"], half=half, name_="symbol")
    expected = [("qty", pa.int32()), ("symbol", pa.string()), ("half", pa.null())]
    assert pa.schema([*expected, ("name_", pa.string())]) == projected.schema(TRADES)
    batch = projected.open().process_batch(trades())
    assert [pa.int32(), pa.string(), pa.float64(), pa.string()] == batch.schema.types
    assert {"qty": 3, "symbol": "a", "half": 1.5, "name_": "a"} == batch.to_pylist()[0]
    dropped = Functor(drop="symbol", price="qty")
    assert pa.schema({"price": pa.int32(), "qty": pa.int32()}) == dropped.schema(TRADES)


def test_a_function_of_rows_says_its_columns_or_the_rows_do():
    def make(row):
        return {"n": row["qty"]}

    class Narrow(Functor):
        output = "n smallint"

    assert Functor(make).schema(TRADES) is None
    assert pa.schema({"n": pa.int16()}) == Narrow(make).schema(TRADES)
    assert pa.int64() == Functor(make).open().process_batch(trades()).schema.field("n").type
    batch = Narrow(make).open().process_batch(trades())
    assert pa.int16() == batch.schema.field("n").type
    assert [3, 2, None] == batch.column("n").to_pylist()


def test_a_batch_is_its_key_a_list_of_rows_and_their_number():
    op = Batch(Count(1), by=["symbol", "qty"])
    rows = pa.list_(pa.struct(list(PLAIN)))
    expected = {"symbol": pa.string(), "qty": pa.int32(), "rows": rows, "n": pa.int64()}
    assert pa.schema(expected) == op.schema(TRADES)
    batch = op.open().process_batch(trades())
    assert pa.schema(expected) == batch.schema
    assert 3 == batch.num_rows
    assert [trades().to_pylist()[2]] == batch.to_pylist()[2]["rows"]
    computed = Batch(Count(1), by=lambda t: 0, rows="all")
    assert ["key", "all", "n"] == computed.schema(TRADES).names
    assert pa.null() == computed.schema(TRADES).field("key").type
    assert Batch(Count(1), function=list).schema(TRADES) is None


@pytest.mark.parametrize("kind", [Barrier, Pair])
def test_rows_of_several_inputs_have_the_columns_of_all(kind):
    op = kind(on="symbol", inputs=["t", "q"])
    expected = {
        "symbol": pa.string(),
        "price_t": pa.decimal128(10, 2),
        "qty": pa.int32(),
        "price_q": pa.float64(),
        "bid": pa.int64(),
    }
    assert pa.schema(expected) == op.schema(TRADES, QUOTES)
    assert op.schema(TRADES, None) is None
    assert kind(select=lambda a, b: a).schema(TRADES, QUOTES) is None
    running = op.open()
    running.process_batch(trades(1))
    quote = pa.table({"symbol": ["a"], "price": [1.5], "bid": [2]})
    batch = running.process_batch(quote, 1)
    assert pa.schema(expected) == batch.schema
    assert ["a", 1, 3, 1.5, 2] == [*batch.to_pylist()[0].values()]


def test_a_join_has_the_columns_of_both_sides():
    op = Join(left=ten, right=ten, on="symbol", how="outer")
    expected = {
        "symbol": pa.string(),
        "price": pa.decimal128(10, 2),
        "qty": pa.int32(),
        "price_right": pa.float64(),
        "bid": pa.int64(),
    }
    assert pa.schema(expected) == op.schema(TRADES, QUOTES)
    assert PLAIN == op.schema(TRADES, None)
    assert ["symbol", "qty", "n_l", "n_r"] == Join(
        left=ten, right=ten, left_on="symbol", right_on="symbol", suffixes=("_l", "_r")
    ).schema(
        pa.schema({"symbol": pa.string(), "qty": pa.int8(), "n": pa.int8()}),
        pa.schema({"n": pa.int8(), "symbol": pa.string()}),
    ).names


def test_a_key_of_two_widths_has_the_wider_type():
    op = Lookup(on="k")
    narrow, wide = pa.schema({"k": pa.int8()}), pa.schema({"k": pa.int32()})
    assert pa.schema({"k": pa.int64()}) == op.schema(narrow, wide)
    text = pa.schema({"k": pa.large_string()})
    assert pa.schema({"k": pa.large_string()}) == op.schema(pa.schema({"k": pa.string()}), text)
    assert pa.schema({"k": pa.null()}) == op.schema(narrow, text)


def test_semi_and_anti_joins_have_the_columns_of_the_left():
    for how in ("semi", "anti"):
        op = Join(left=ten, right=ten, on="symbol", how=how)
        assert PLAIN == op.schema(TRADES, QUOTES)
        assert op.schema(None, QUOTES) is None


def test_names_that_clash_are_refused_before_any_row_comes():
    op = Join(left=ten, right=ten, on="k", suffixes=("_right", ""))
    left = pa.schema({"k": pa.int8(), "x": pa.int8(), "x_right": pa.int8()})
    with pytest.raises(SchemaError, match="the output would have two columns 'x_right'"):
        op.schema(left, pa.schema({"k": pa.int8(), "x": pa.int8()}))


def test_rows_that_a_join_took_before_have_columns_too():
    running = Join(left=ten, right=ten, on="k").open()
    running.insert({"k": 1, "y": "one"}, 1)
    batch = running.process_batch(pa.table({"k": [1], "x": [2.5]}))
    assert [{"k": 1, "x": 2.5, "y": "one"}] == batch.to_pylist()
    assert [pa.int64(), pa.float64(), pa.string()] == batch.schema.types


def test_an_aggregate_still_has_its_own():
    op = Aggregate(two, by="symbol", total=agg.sum("qty"))
    assert pa.schema({"symbol": pa.string(), "total": pa.int64()}) == op.schema(TRADES)


# -- what an operator says -------------------------------------------------------------------------


class Peak(Operator):
    output = "symbol string, peak float"

    def on_tuple(self, tuple_, port):
        self.emit(tuple_)


def test_an_operator_of_ones_own_says_its_columns():
    op = Peak()
    expected = pa.schema({"symbol": pa.string(), "peak": pa.float32()})
    assert expected == op.schema(None)
    batch = op.open().process_batch(pa.table({"peak": [1, None], "symbol": ["a", "b"]}))
    assert expected == batch.schema
    assert [{"symbol": "a", "peak": 1.0}, {"symbol": "b", "peak": None}] == batch.to_pylist()


def test_a_column_that_a_row_lacks_is_null_and_one_too_many_is_refused():
    running = Peak().open()
    assert [None] == running.process_batch(pa.table({"peak": [1]})).column("symbol").to_pylist()
    with pytest.raises(SchemaError, match="has a column 'peek', which the output has not"):
        running.process_batch(pa.table({"peek": [1]}))
    assert 1 == running.process_batch(pa.table({"peak": [1]})).num_rows, "the bad row is gone"


def test_rows_that_are_objects_have_columns():
    class Trade:
        def __init__(self, peak):
            self.peak = peak

    class Make(Peak):
        def on_tuple(self, tuple_, port):
            self.emit(Trade(tuple_["x"]))

    batch = Make().open().process_batch(pa.table({"x": [1.5]}))
    assert [{"symbol": None, "peak": 1.5}] == batch.to_pylist()


ARROW = {
    "string": pa.string(),
    "varchar(10)": pa.string(),
    "char(3)": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "void": pa.null(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval day to second": pa.duration("us"),
    "interval hour to minute": pa.duration("us"),
    "interval day": pa.duration("us"),
    "decimal": pa.decimal128(10, 0),
    "dec(5)": pa.decimal128(5, 0),
    "numeric(38, 38)": pa.decimal128(38, 38),
    "array<int>": pa.list_(pa.field("element", pa.int32())),
    "map<string, array<date>>": pa.map_(pa.string(), pa.list_(pa.field("element", pa.date32()))),
    "struct<a: int, b string NOT NULL>": pa.struct(
        [pa.field("a", pa.int32()), pa.field("b", pa.string(), nullable=False)]
    ),
}


@pytest.mark.parametrize("text", ARROW)
def test_every_type_of_spark_has_an_arrow_type(text):
    expected = pa.schema({"x": ARROW[text], "y": pa.int32()})
    assert expected == schema_of(f"x {text}, y int", "Op.output")
    assert expected == schema_of(f"  `x`:{text.upper() if '<' not in text else text} ,y INT ", "o")


def test_every_word_is_tried_above():
    words = {text.split("(")[0].split("<")[0].split(" ")[0] for text in ARROW}
    assert set(KNOWN) == words


@pytest.mark.parametrize("kind", ["year to month", "second to day", "day to", "", "day to day to"])
def test_an_interval_of_no_fixed_length_is_none(kind):
    with pytest.raises(SchemaError, match=r"Write interval day to second|a comma or the end"):
        schema_of(f"x interval {kind}", "Op.output")


def test_an_operator_may_send_durations():
    class Waits(Operator):
        output = "wait interval day to second"

        def on_tuple(self, tuple_, port):
            self.emit(wait=timedelta(seconds=tuple_["x"]))

    assert [{"wait": timedelta(seconds=2)}] == (
        Waits().open().process_batch(pa.table({"x": [2]})).to_pylist()
    )


def test_odd_names_and_comments():
    schema = schema_of("`a b` int COMMENT 'it''s, so: fine', `tick``s` date not null, _x1 int", "o")
    assert ["a b", "tick`s", "_x1"] == schema.names
    assert [True, False, True] == [field.nullable for field in schema]


@given(st.text("abx `'<>(),:09\n-é", max_size=20) | st.sampled_from(["x int", "x array<int>"]))
def test_any_text_is_a_schema_or_an_error_that_names_it(text):
    try:
        assert schema_of(text, "Op.output").names
    except SchemaError as error:
        assert str(error).startswith(f"Op.output = {text!r}: ")  # noqa: PT017 - one or the other


# -- rows of batches -------------------------------------------------------------------------------


def test_rows_of_a_batch_are_those_that_arrow_gives():
    for batch in (trades().to_batches()[0], pa.record_batch({}), pa.record_batch({"a-b 'c'": [1]})):
        assert batch.to_pylist() == rows_of(batch)
