"""Sketches that take whole columns: the same state and answers as value by value."""

import hashlib
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.columnar.test_holistic import OTHERS, VALUES, arrays_of, check, extents_of, made, over
from tests.columnar.with_each_engine import engine  # noqa: F401 - runs each test with each engine
from tests.helpers.examples import examples
from windowlib import Count, SchemaError, Sliding, Tumbling
from windowlib.columnar import handover
from windowlib.columnar.kernels import sketched
from windowlib.operators import Aggregate, agg
from windowlib.operators.sketches import HeavyHitters, HyperLogLog, QuantileSketch
from windowlib.operators.sketches.hashing import digest
from windowlib.window.consumer import Decline

NAN = float("nan")
FUNCTIONS = {
    "count": agg.approx_count_distinct("x", precision=4),  # spills at its third value
    "exact count": agg.approx_count_distinct("x"),
    "quantile": agg.approx_quantile("x", 0.3, size=8),
    "top": agg.approx_top_k("x", 1, capacity=2),
}


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(handover, "MIN_ROWS", 1)
    monkeypatch.setattr(sketched, "FEW_STRINGS", 2)


# -- over extents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "bytes"])
@settings(max_examples=examples(60))
@given(data=st.data())
def test_a_sketch_of_an_extent_is_the_fold_of_its_values(kind, data):
    names = [name for name in FUNCTIONS if kind != "times of day" or "count" not in name]
    aggregate = FUNCTIONS[data.draw(st.sampled_from(names))]
    arrays = data.draw(arrays_of([kind]))
    check(aggregate, arrays, *data.draw(extents_of(len(arrays[0]))))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_the_least_and_the_greatest_text_are_those_of_python(kind):
    texts = ["", "\uffff", "\U00010000", "z", "ä", "Z", "\ue000", "a\0b", "a"] * 5
    lo, hi = np.arange(len(texts) - 3), np.arange(3, len(texts))
    for q in (0, 0.5, 1):
        check(agg.approx_quantile("x", q, size=8), [pa.array(texts, kind)], lo, hi)
    found = over(agg.approx_quantile("x", 1, size=8), [pa.array(texts, kind)], [0], [len(texts)])
    assert found == [max(texts)]


def test_times_of_day_that_cannot_be_hashed_are_left_to_the_event_engine():
    kind, values = VALUES["times of day"]
    with pytest.raises(Decline, match="a value is refused"):
        over(FUNCTIONS["count"], [pa.array(values, kind)], [0], [len(values)])


@pytest.mark.parametrize("kind", [*OTHERS, "bytes"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_types_are_left_to_the_event_engine(name, kind):
    with pytest.raises(Decline, match="one by one"):
        made(FUNCTIONS[name], {**OTHERS, **VALUES}[kind][0])


# -- digests of columns ---------------------------------------------------------------------------

COLUMNS: dict[str, Any] = {
    "floats": pa.array([0.0, -0.0, NAN, -NAN, 1.5, 1e308, float("inf"), 0.1, 3.0]),
    "short floats": pa.array([0.1, NAN, -0.0], pa.float32()),
    "whole numbers": pa.array([0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
    "few bits": pa.array([0, 1, 255], pa.uint8()),
    "texts": pa.array(["", "a", "ä", "1234567", "12345678", "x" * 126, "x" * 127]),
    "long texts": pa.array(["x" * 128, "a", "y" * 300]),
    "large texts": pa.array(["", "a", "bc" * 40], pa.large_string()),
    "a part of texts": pa.array(["zero", "one", "", "three", "four"]).slice(1, 3),
    "times": pa.array([0, 1, 10**15], pa.timestamp("us")),
    "zoned times": pa.array([0, 1, 10**15], pa.timestamp("us", "UTC")),
    "booleans": pa.array([True, False, True]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_digests_of_a_column_are_those_of_its_values(kind):
    from windowlib.columnar.arrays.columns import Column

    array = COLUMNS[kind]
    function: Any = made(FUNCTIONS["count"], array.type)
    found = function.read(Column.of(array))
    assert found.tolist() == [digest(value) for value in array.to_pylist()]


def test_messages_of_every_length_have_the_digests_that_hashlib_gives(engine):  # noqa: F811
    if engine == "numpy":
        pytest.skip("compiled")
    from windowlib.columnar.primitives.blake2b import BLOCK, texts

    rng = random.Random(3)
    messages = [rng.randbytes(n) for n in range(BLOCK)] * 2
    data = np.frombuffer(b"".join(messages), np.uint8)
    offsets = np.cumsum([0, *map(len, messages)])
    wanted = [hashlib.blake2b(b"s" + each, digest_size=8).digest() for each in messages]
    found = texts(b"s", data, offsets)
    assert [int.from_bytes(each, "big") for each in wanted] == found.tolist()


# -- the same state, however the values come ------------------------------------------------------

STREAMS = {
    "distinct": lambda rng: rng.random(),
    "few": lambda rng: rng.randrange(30),
    "mostly new": lambda rng: rng.choice([rng.random()] * 99 + [rng.randrange(40)]),
    "new and old in turn": lambda rng: rng.choice([rng.random(), float(rng.randrange(4))]),
    "skewed": lambda rng: int(rng.paretovariate(0.7)),
    "with NaN": lambda rng: rng.choice([NAN, 1.0, rng.random(), -0.0, 0.0]),
    "texts": lambda rng: f"user {rng.randrange(400)}",
}
SKETCHES = {
    "quantile": lambda: QuantileSketch(8),
    "larger quantile": lambda: QuantileSketch(64),
    "top": lambda: HeavyHitters(2, 5),
    "larger top": lambda: HeavyHitters(10, 64),
}


def pieces(rng, values):
    first = 0
    while first < len(values):
        size = rng.choice([0, 1, 2, 7, 100, 999])
        yield values[first : first + size]
        first += size


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("sketch", SKETCHES)
def test_values_in_bulk_leave_the_state_that_they_leave_one_by_one(sketch, stream):
    for seed in range(5):
        rng = random.Random(seed)
        values = [STREAMS[stream](rng) for _ in range(3_000)]
        one, other = SKETCHES[sketch](), SKETCHES[sketch]()
        for piece in pieces(rng, values):
            for value in piece:
                one.add(value)
            other.add_many(piece)
            assert repr(one.snapshot()) == repr(other.snapshot())


@pytest.mark.parametrize("precision", [4, 9, 10, 11, 12, 18])
def test_digests_in_bulk_leave_the_state_that_they_leave_one_by_one(precision):
    rng = random.Random(precision)
    values = [rng.randrange(3_000) for _ in range(4_000)]
    one, other = HyperLogLog(precision), HyperLogLog(precision)
    for piece in pieces(rng, values):
        for value in piece:
            one.add(value)
        other.add_digests(np.array([digest(value) for value in piece], np.uint64))
        assert one.snapshot() == other.snapshot()


def test_runs_of_zeros_of_every_length_are_counted_in_bulk():
    for precision in (4, 12):
        width = 64 - precision
        edges = [bits for n in range(width + 1) for bits in ((1 << n) - 1, 1 << n, (1 << n) + 1)]
        digests = [edge & ((1 << width) - 1) | place << width for place, edge in enumerate(edges)]
        digests = [each % 2**64 for each in digests]
        one, other = HyperLogLog(precision), HyperLogLog(precision)
        for sketch in (one, other):  # which have spilled
            for value in range(1 << precision):
                sketch.add(value)
        for bits in digests:
            one._register(bits)
        other.add_digests(np.array(digests, np.uint64))
        assert one.snapshot() == other.snapshot()


# -- batches --------------------------------------------------------------------------------------

WINDOWS: dict[str, Any] = {
    "tumbling": Tumbling(Count(7)),
    "tumbling by key": Tumbling(Count(5), by="k"),
    "sliding by key": Sliding(Count(6), every=Count(3), by="k"),
}
RESULTS: dict[str, Any] = {
    "count": agg.approx_count_distinct("x", precision=4),
    "quantile": agg.approx_quantile("x", 0.5, size=8),
    "top": agg.approx_top_k("x", 2, capacity=4),
}
XS: dict[str, list[Any]] = {
    "floats": [0.1, NAN, -0.0, 0.0, 2.5, None, 7.0],
    "texts": ["a", "b", None, "", "longer"],
}


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_batches_give_the_rows_and_leave_the_state_of_single_rows(window, data):
    values = XS[data.draw(st.sampled_from(list(XS)))]
    row = st.tuples(st.sampled_from("ab"), st.sampled_from(values))
    op = Aggregate(WINDOWS[window], **RESULTS)
    one, other = op.open(), op.open()
    out: tuple[list[Any], list[Any]] = ([], [])
    for running, rows in zip((one, other), out, strict=True):
        running.connect(0, rows.append)
    kind = pa.float64() if values is XS["floats"] else pa.string()
    for rows in data.draw(st.lists(st.lists(row, max_size=40), max_size=5)):
        table = {"k": [k for k, _ in rows], "x": pa.array([x for _, x in rows], kind)}
        batch = pa.table(table)
        for each in batch.to_pylist():
            one.insert(each)
        other.insert_batch(batch)
        if data.draw(st.booleans()):
            state = other.snapshot(arrays=True)
            other = op.open()
            other.connect(0, out[1].append)
            other.restore(state)
    assert repr(out[0]) == repr(out[1])
    assert repr(one.snapshot()) == repr(other.snapshot())


def test_a_tumbling_window_of_sketches_is_kept_in_arrays():
    op = Aggregate(Tumbling(Count(500), by="k"), **RESULTS)
    running = op.open()
    running.insert_batch(pa.table({"k": ["a", "b"] * 300, "x": range(600)}))
    (window,) = running.snapshot(arrays=True)["windows"]
    assert "arrays" in window


def test_a_value_that_a_sketch_refuses_is_named_as_with_single_rows():
    def refusal(feed):
        running = Aggregate(Tumbling(Count(500)), q=agg.approx_quantile("x", 0.5)).open()
        running.insert_batch(pa.table({"x": range(100)}))
        with pytest.raises(SchemaError) as refused:
            feed(running, pa.table({"x": ["a"] * 100}))
        return str(refused.value)

    def by_rows(running, table):
        for row in table.to_pylist():
            running.insert(row)

    assert refusal(by_rows) == refusal(lambda running, table: running.insert_batch(table))
