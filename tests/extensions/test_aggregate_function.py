"""A function that is declared as docs/contributing.md says works everywhere, and nowhere twice."""

from functools import reduce
from operator import or_

import pyarrow as pa
import pytest

from tests.extensions.bit_or import bit_or
from tests.extensions.bit_or_kernel import BitOrKernel
from windowlib import Count, SchemaError, Sliding, Tumbling, replay
from windowlib.farms import PaneFarm
from windowlib.operators import Aggregate, agg

FLAGS = [1, 2, None, 8, 8, 64, 3, None, None, 128, 5, 4, None, None, None, None, None, None] * 50
ROWS = [{"k": "ab"[i % 2], "flags": flags} for i, flags in enumerate(FLAGS)]
SCHEMA = pa.schema({"k": pa.string(), "flags": pa.int64()})
WINDOWS: dict[str, Tumbling | Sliding] = {
    "tumbling": Tumbling(Count(3), by="k"),
    "sliding": Sliding(Count(4), every=Count(1), by="k", partial="emit"),
    "slices": Sliding(Count(4), every=Count(2)),
}


def batches():
    whole = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    return [whole.slice(0, 401), whole.slice(401, 1), whole.slice(402)]


def bits(values):
    known = [value for value in values if value is not None]
    return reduce(or_, known) if known else None


@pytest.mark.parametrize("window", WINDOWS)
def test_rows_batches_and_the_definition_agree(window):
    op = Aggregate(WINDOWS[window], seen=bit_or("flags"), values=agg.collect("flags"))
    rows = list(replay(op, ROWS))
    assert rows
    for row in rows:
        assert bits(row["values"]) == row["seen"]
    before = BitOrKernel.used
    running = op.open()
    got = [row for each in batches() for row in running.process_batch(each).to_pylist()]
    assert rows == got
    assert before < BitOrKernel.used, "the kernel was not loaded"


def test_the_output_column_has_the_declared_type():
    op = Aggregate(WINDOWS["tumbling"], seen=bit_or("flags"))
    assert pa.schema({"k": pa.string(), "seen": pa.int64()}) == op.schema(SCHEMA)


def test_states_of_rows_and_of_batches_are_the_same():
    op = Aggregate(Tumbling(Count(8), by="k"), seen=bit_or("flags"))
    by_row, by_batch = op.open(), op.open()
    by_row.insert_many(ROWS[:401])
    by_batch.insert_batch(batches()[0])
    state = by_row.snapshot()
    assert state["windows"]
    assert state == by_batch.snapshot()


def test_farms_merge_what_it_declares():
    op = Aggregate(Sliding(Count(4), every=Count(1)), seen=bit_or("flags"))
    rows = [{"flags": 1 << i % 9} for i in range(40)]
    assert list(replay(op, rows)) == list(replay(PaneFarm(op, workers=1, when="always"), rows))


def test_its_text_and_its_refusals_are_those_of_any_function():
    assert 'bit_or("flags")' in repr(bit_or("flags"))
    with pytest.raises(SchemaError, match=r'agg\.bit_or\("flags"\) of 0\.5: not a whole number'):
        list(replay(Aggregate(Tumbling(Count(1)), seen=bit_or("flags")), [{"flags": 0.5}]))
    op = Aggregate(Tumbling(Count(1)), seen=bit_or("k"))
    with pytest.raises(SchemaError, match="a column of string does not add up"):
        op.check_types(SCHEMA)
