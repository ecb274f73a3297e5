"""The rows of a batch in the order that a window asks for."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import Aggregate, agg
from windowlib import Count, SchemaError, Tumbling, replay

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


def test_an_order_by_a_column_that_is_not_there_is_refused():
    running = collecting("when").open()
    with pytest.raises(SchemaError, match="when"):
        running.insert_batch(pa.table({"x": [1, 2]}))
