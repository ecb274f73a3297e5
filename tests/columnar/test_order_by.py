"""The rows of a batch in the order that a window asks for."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowlib import Count, Graph, OperatorError, SchemaError, Tumbling, replay
from windowlib.operators import Aggregate, agg

rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.one_of(st.none(), st.floats(-3, 3), st.just(math.nan)),
            "seq": st.integers(0, 3),
            "name": st.sampled_from(["a", "b", None]),
        }
    ),
    max_size=12,
)
SCHEMA = pa.schema({"ts": pa.float64(), "seq": pa.int64(), "name": pa.string()})
orders = st.sampled_from(["ts", "seq", ["name", "ts"], ["seq", "ts"]])


def collecting(order_by):
    return Aggregate(Tumbling(Count(4)), {"rows": agg.collect()}, order_by=order_by)


def shown(found):
    return repr(list(found))  # NaN is not equal to itself


@given(rows, orders)
def test_a_table_is_ordered_like_the_list_of_its_rows(given_rows, order_by):
    table = pa.Table.from_pylist(given_rows, SCHEMA)
    op = collecting(order_by)
    assert shown(replay(op, table.to_pylist())) == shown(replay(op, table))


@given(rows, orders)
def test_each_batch_is_ordered_by_itself(given_rows, order_by):
    op = collecting(order_by)
    running = op.open()
    out: list[dict[str, Any]] = []
    running.connect(0, out.append)
    table = pa.Table.from_pylist(given_rows, SCHEMA)
    running.insert_batch(table)
    running.insert_batch(table)
    (window,) = running.operator.containers
    ordered = [row for part in replay(collecting(order_by), table) for row in part["rows"]]
    assert len(table) * 2 == window.seen
    assert shown(ordered) == shown([row for part in out for row in part["rows"]][: len(ordered)])


def test_a_callable_orders_a_batch_row_by_row():
    op = collecting(lambda row: -row["x"])
    running = op.open()
    found = running.process_batch(pa.table({"x": [1, 4, 2, 3]}))
    assert [row["x"] for row in found.column("rows")[0].as_py()] == [4, 3, 2, 1]


@pytest.mark.parametrize("wrapped", [False, True], ids=["operator", "graph"])
def test_rows_that_are_in_order_are_not_ordered_again(wrapped):
    op: Any = collecting("x")
    if wrapped:
        op = Graph(inputs="rows", collected=(op, "rows"))
    running = op.open()
    out: list[dict[str, Any]] = []
    running.connect(0, out.append)
    running.insert_ordered(pa.table({"x": [1, 4, 2, 3]}))
    running.insert_batch(pa.table({"x": [1, 4, 2, 3]}))
    found = [[row["x"] for row in part["rows"]] for part in out]
    assert found == [[1, 4, 2, 3], [1, 2, 3, 4]]


def test_rows_in_order_are_checked_like_others():
    running = collecting("x").open()
    with pytest.raises(SchemaError, match=r"insert_ordered\(list\): not an Arrow batch"):
        running.insert_ordered([{"x": 1}])
    with pytest.raises(SchemaError, match="times='when'"):
        running.insert_ordered(pa.table({"x": [1]}), times="when")
    running.finish()
    with pytest.raises(OperatorError, match="its input has ended"):
        running.insert_ordered(pa.table({"x": [1]}))


def test_an_order_by_a_column_that_is_not_there_is_refused():
    running = collecting("when").open()
    with pytest.raises(SchemaError, match="when"):
        running.insert_batch(pa.table({"x": [1, 2]}))
