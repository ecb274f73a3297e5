"""A value that a column of Arrow would change is refused, and never cut to one that fits."""
# ruff: noqa: SIM300 - asserts read expected first

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windowlib import Count, Operator, OperatorModel, SchemaError, Tumbling
from windowlib.operators import Aggregate, Join, Reorder, Sort, agg
from windowlib.spec.specification import Sliding
from windowlib.window.arrow import exact_array, exact_batch


def sends(declared, value):
    """An operator that sends one value for each row, in a column of a type."""

    class Sends(Operator):
        output = f"a {declared}"

        def on_tuple(self, tuple_, port):
            self.emit(a=value)

    return Sends()


def sent(declared, value):
    return sends(declared, value).open().process_batch(pa.table({"x": [1]}))["a"].to_pylist()


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int", 1.5),
        ("bigint", -0.5),
        ("tinyint", Decimal("1.5")),
        ("int", float("nan")),
        ("bigint", Decimal("NaN")),
        ("date", 1.0),
        ("timestamp", 40.0),  # seconds, as `on_timer` gives them, which would be microseconds
        ("timestamp_ntz", Decimal(40)),
        ("array<int>", [1, None, 1.5]),
        ("struct<b: int>", {"b": 1.5}),
        ("struct<b: int>", (1.5,)),
        ("map<string, int>", {"b": 1.5}),
        ("map<int, string>", [(1.5, "b")]),
        ("array<struct<b: map<string, array<int>>>>", [None, {"b": {"c": [1, 1.5]}}]),
    ],
)
def test_a_number_that_a_column_would_cut_off_is_refused(declared, value):
    with pytest.raises(SchemaError, match=r"the output column 'a' is .*, and a value does not fit"):
        sent(declared, value)


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("int", 2.0, 2),
        ("int", Decimal("2.00"), 2),
        ("int", None, None),
        ("double", 1.5, 1.5),
        ("timestamp_ntz", 40, datetime(1970, 1, 1, 0, 0, 0, 40)),
        ("timestamp", datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)),
        ("array<int>", [2.0, None], [2, None]),
        ("array<double>", [1.5], [1.5]),
        ("struct<b: int, c: string>", {"c": "x"}, {"b": None, "c": "x"}),
        ("map<string, int>", {"b": 2.0}, [("b", 2)]),
    ],
)
def test_one_that_it_holds_goes_through(declared, value, expected):
    assert [expected] == sent(declared, value)


CHANGING = [
    Aggregate(Tumbling(Count(2)), x=agg.sum("x")),
    Aggregate(Tumbling(Count(2)), x=agg.max("x")),
    Aggregate(Tumbling(Count(2)), x=agg.collect("x")),
    Sort("x", window=Tumbling(Count(2))),
]


@pytest.mark.parametrize("op", CHANGING, ids=str)
def test_a_batch_of_whole_numbers_does_not_cut_off_floats_that_came_before(op):
    running = op.open()
    assert 0 == running.process_batch(pa.table({"x": [1.5]})).num_rows
    with pytest.raises(SchemaError, match=r"the output column 'x' .* \(\d\.5 is no int64\)"):
        running.process_batch(pa.table({"x": [1]}))


def test_nor_does_the_other_side_of_a_join():
    one = Sliding(Count(2))
    running = Join(left=one, right=one, on="k").open()
    running.insert({"k": 1, "x": 1.5}, 0)
    running.process_batch(pa.table({"k": [2], "x": [1]}), port=0)
    with pytest.raises(SchemaError, match=r"the output column 'x' .* \(1\.5 is no int64\)"):
        running.process_batch(pa.table({"k": [1], "y": [1]}), port=1)


def test_nor_do_rows_that_wait_for_their_order():
    running = Reorder("ts", slack=5).open()
    running.insert({"ts": 1, "x": 1.5})
    with pytest.raises(SchemaError, match=r"the output column 'x' .* \(1\.5 is no int64\)"):
        running.process_batch(pa.table({"ts": range(2, 302), "x": [1] * 300}))


class Columns(Operator):
    """The values of each window, as a handler of columns reads them."""

    model = OperatorModel(windows=[Tumbling])
    content = "arrow"

    def before_flush(self, window, key):
        self.emit(x=window.arrow(key)["x"].to_pylist())


def test_a_handler_of_columns_reads_no_value_that_was_cut_off():
    rows = list[Any]()
    running = Columns(Tumbling(Count(2))).open()
    running.connect(0, rows.append)
    running.insert({"x": 1.5})
    with pytest.raises(SchemaError, match=r"window\.arrow\(\.\.\.\): .* \(1\.5 is no int64\)"):
        running.insert_batch(pa.table({"x": [1]}))
    running.insert_batch(pa.table({"x": [2, 3]}))
    assert [{"x": [2, 3]}] == rows


def test_rows_of_known_columns_are_exact_or_refused():
    schema = pa.schema({"a": pa.int64(), "b": pa.string()}, metadata={"made": "here"})
    batch = exact_batch([{"a": 2.0}, {"b": "x"}], schema)
    assert [{"a": 2, "b": None}, {"a": None, "b": "x"}] == batch.to_pylist()
    assert batch.schema.equals(schema, check_metadata=True)
    with pytest.raises(ValueError, match=r"^0\.5 is no int64$"):
        exact_batch([{"a": 0.5}], schema)


def test_without_a_type_values_say_it():
    assert pa.float64() == exact_array([1, 1.5]).type
