"""Batches in few bytes: what comes back is what went in, and it is as small as it says."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.examples import examples
from windowlib.columnar.arrays import encoding
from windowlib.columnar.arrays.encoding import compact, stream_bytes, stream_table

KINDS = [
    pa.int64(),
    pa.int32(),
    pa.int16(),
    pa.uint64(),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("s"),
    pa.date32(),
    pa.time64("ns"),
    pa.duration("ms"),
]


@pytest.fixture(autouse=True)
def _any_number_of_rows(monkeypatch):
    monkeypatch.setattr(encoding, "MIN_COMPACT_ROWS", 1)


def compact_bytes(batch: pa.RecordBatch) -> bytes:
    return stream_bytes(compact(batch))


def same(column: pa.Array) -> bytes:
    """A column as compact bytes, from which it can be read again, type and nulls included."""
    batch = pa.record_batch({"x": column, "n": pa.array(range(len(column)))})
    data = compact_bytes(batch)
    table = stream_table(data)
    assert table.schema.equals(batch.schema, check_metadata=True)
    assert table.equals(pa.table(batch))
    return data


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(KINDS))
    bits = kind.bit_width - (not pa.types.is_unsigned_integer(kind))
    low, high = (0 if bits == kind.bit_width else -(1 << bits)), (1 << bits) - 1
    if pa.types.is_time(kind):
        low, high = 0, 86_399_999_999_999
    base = draw(st.integers(low, high))
    reach = draw(st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 1 << 32, 1 << 62, 1 << 64]))
    near = st.integers(max(low, base - reach), min(high, base + reach))
    values = draw(st.lists(st.none() | near if draw(st.booleans()) else near, min_size=1))
    if draw(st.booleans()) and None not in values:
        values.sort()
    physical = pa.uint64() if kind == pa.uint64() else pa.int64()
    small = pa.int32() if kind.bit_width == 32 else pa.int16()
    return pa.array(values, physical if kind.bit_width == 64 else small).view(kind)


@given(columns())
@settings(max_examples=examples(400))
def test_numbers_and_points_in_time_come_back(column):
    same(column)
    same(column.slice(len(column) // 2))


@given(
    st.lists(st.none() | st.sampled_from(["", "a", "bb", "ü"]) | st.text(max_size=3), min_size=1)
)
@settings(max_examples=examples(200))
def test_texts_come_back(values):
    same(pa.array(values, pa.string()))
    same(pa.array([None if v is None else v.encode() for v in values], pa.binary()))


def test_other_columns_are_left_as_they_are():
    for values in ([0.5, None], [True, False], [[1], []], [{"a": 1}, None], [None, None]):
        same(pa.array(values))
    same(pa.array([], pa.int64()))


@pytest.mark.parametrize(
    ("column", "bytes_a_row"),
    [
        (np.arange(10_000) * 1000 + 10**15, 2),  # in order: the steps
        (np.random.default_rng(1).integers(0, 1000, 10_000) - 10**12, 2),  # near each other
        (np.random.default_rng(1).integers(0, 10**18, 10_000), 8),  # anywhere
        (np.full(10_000, 7), 1),
        (pa.array(["north", "south"] * 5_000), 1),
    ],
)
def test_a_value_takes_as_few_bytes_as_its_distances(column, bytes_a_row):
    batch = pa.record_batch({"x": column})
    size = len(compact_bytes(batch))
    assert bytes_a_row * 10_000 <= size <= bytes_a_row * 10_000 + 2_000
    assert size <= len(stream_bytes(batch)) + 1_000


def test_few_rows_are_written_as_they_are(monkeypatch):
    monkeypatch.setattr(encoding, "MIN_COMPACT_ROWS", 256)
    batch = pa.record_batch({"x": [1, 2, 3]})
    assert compact_bytes(batch) == stream_bytes(batch)
