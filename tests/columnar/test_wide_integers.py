"""Whole numbers from 2**63 on in the content of windows as Arrow, and in rows that come out."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from windowlib import (
    Count,
    Operator,
    OperatorModel,
    SchemaError,
    Sliding,
    SlidingWindow,
    Tumbling,
    TumblingWindow,
    WindowEvents,
    replay,
)

TOP = 2**63
WIDE = {
    "uint64": ([TOP, 1], pa.uint64()),
    "the largest uint64": ([2**64 - 1, 0], pa.uint64()),
    "nulls": ([TOP, None], pa.uint64()),
    "both signs": ([TOP, -1], pa.decimal128(38)),
    "beyond 64 bits": ([2**64, 1], pa.decimal128(38)),
    "beyond 38 digits": ([10**40, -(10**40)], pa.decimal256(76)),
}


class Contents(WindowEvents[Any, Any]):
    content = "arrow"

    def before_flush(self, window, key):
        self.emit(window.arrow(key))

    def on_trigger(self, window, key):
        self.emit(window.arrow(key))


def rows_of(values):
    return [{"k": "a", "x": value} for value in values]


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("spec", [Tumbling(Count(2)), Sliding(Count(2), every=Count(2))], ids=str)
def test_the_content_of_a_window_has_a_type_that_holds_them(spec, name, engine):
    values, kind = WIDE[name]
    make = TumblingWindow if isinstance(spec, Tumbling) else SlidingWindow
    window = make(spec, events=Contents(), engine=engine)
    window.insert_many(rows_of(values))
    (found,) = window.events.emitted
    assert pa.schema({"k": pa.string(), "x": kind}) == found.schema
    assert values == found.column("x").to_pylist()


def test_int64_stays_int64():
    window = TumblingWindow(Tumbling(Count(2)), events=Contents())
    window.insert_many(rows_of([TOP - 1, -TOP]))
    assert pa.int64() == window.events.emitted[0].schema.field("x").type


@pytest.mark.parametrize("size", [4, 100])
def test_batches_of_uint64_give_what_their_rows_give(size):
    values = [TOP + i for i in range(2 * size)]
    batch = pa.record_batch({"k": ["a"] * len(values), "x": pa.array(values, pa.uint64())})
    by_batch, by_row = (TumblingWindow(Tumbling(Count(size)), events=Contents()) for _ in range(2))
    by_batch.insert_batch(batch)
    by_row.insert_many(batch.to_pylist())
    assert by_row.events.emitted == by_batch.events.emitted


def test_a_row_that_is_wider_than_the_batches_before_makes_the_column_wider():
    window = TumblingWindow(Tumbling(Count(3)), events=Contents())
    window.insert_batch(pa.record_batch({"k": ["a", "b"], "x": [1, 2]}))
    window.insert({"k": "c", "x": TOP})
    assert window.events.emitted[0].column("x").to_pylist() == [1, 2, TOP]


@pytest.mark.parametrize("values", [[10**30, 0.5], [10**80, 1], [TOP, "a"]], ids=repr)
def test_values_without_one_type_are_refused_with_a_way_out(values):
    window: SlidingWindow[Any, Any] = SlidingWindow(Sliding(Count(2)))
    window.insert_many(rows_of(values))
    with pytest.raises(SchemaError, match=r"the column 'x' has no single type .* window\[key\]"):
        window.arrow()


# -- rows that come out ---------------------------------------------------------------------------


class First(Operator):
    model = OperatorModel(windows=[Tumbling])
    content = "arrow"

    def before_flush(self, window, key):
        self.emit({"first": window.arrow(key).column("x")[0].as_py()})


def test_an_operator_on_arrow_content_gives_the_same_rows_and_batches():
    values = [TOP + i for i in range(200)]
    rows, op = rows_of(values), First(Tumbling(Count(50)))
    wanted = [{"first": TOP + i} for i in range(0, 200, 50)]
    assert wanted == list(replay(op, rows))
    schema = pa.schema({"k": pa.string(), "x": pa.uint64()})
    found = op.open().process_batch(pa.RecordBatch.from_pylist(rows, schema))
    assert pa.schema({"first": pa.uint64()}) == found.schema
    assert wanted == found.to_pylist()


def test_output_that_gets_wider_and_wider_has_one_type():
    class Echo(Operator):
        model = OperatorModel()

        def on_tuple(self, tuple_, port):
            self.emit({"x": int(tuple_["text"])})

    texts = ["1", str(TOP), str(-(2**70))]
    found = Echo().open().process_batch(pa.record_batch({"text": texts}))
    assert [Decimal(text) for text in texts] == found.column("x").to_pylist()
