"""Many keys: what few rows of each cost, and a table of keys that does not grow without end."""

import numpy as np
import pyarrow as pa
import pytest

from tests.columnar.with_each_engine import engine  # noqa: F401 - runs each test with each engine
from windowlib import Count, PartitionCount, Sliding, Tumbling
from windowlib.columnar import handover
from windowlib.columnar.engines import tumbling
from windowlib.columnar.primitives import group
from windowlib.operators import Aggregate, agg


def test_keys_whose_partitions_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(handover, "MANY_KEYS", 1000)
    running = Aggregate(Tumbling(Count(2), by="id"), n=agg.count(), low=agg.min("x")).open()
    (window,) = running.operator.containers
    assert window is not None
    rows, most = 0, 0
    for batch in range(12):
        ids = np.repeat(np.arange(batch * 600, batch * 600 + 600), 2)
        ids[-1] = -1 - batch % 2  # two partitions go on from batch to batch
        found = running.process_batch(pa.table({"id": ids, "x": ids}))
        rows += found.num_rows
        arrays = window.state.handover().engine
        most = max(most, 0 if arrays is None or arrays.keys is None else len(arrays.keys))
    assert rows == 12 * 599 + 6
    assert 600 < most < 3600
    assert len(window) == 12  # one row without a second in each batch


# -- few rows of each key in a batch --------------------------------------------------------------

KEYS, ROWS = 400, 700


def columns(rng, batch):
    """Whole numbers, floats of one sign and of both, with nulls in some batches; all sums exact."""
    numbers = rng.integers(0, 1 << 20, ROWS)
    signed = (numbers - (1 << 19)) / 64
    some = rng.random(ROWS) < 0.1 if batch % 2 else None
    return {
        "whole": pa.array(numbers - (1 << 19), mask=some),
        "float": pa.array(numbers / 64, mask=some),
        "signed": pa.array(signed, mask=some),
    }


def batches(seed):
    rng = np.random.default_rng(seed)
    known = KEYS // 2
    for batch in range(12):
        known = min(known + 20, KEYS)  # some are new
        yield pa.record_batch({"k": rng.integers(0, known, ROWS) * 7, **columns(rng, batch)})


OUTPUTS = {
    "sums": {
        "s": agg.sum("whole"),
        "m": agg.mean("float"),
        "c": agg.count("whole"),
        "n": agg.count(),
    },
    "signed": {"s": agg.sum("signed"), "m": agg.mean("whole")},
    "picks": {"s": agg.sum("float"), "high": agg.max("signed"), "low": agg.min("whole")},
}


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize(
    "spec", [Tumbling(Count(20), by="k"), Sliding(Count(20), every=Count(5), by="k")]
)
def test_few_rows_of_many_keys_give_what_single_rows_give(spec, outputs):
    op = Aggregate(spec, OUTPUTS[outputs])
    whole, single, rows = op.open(), op.open(), list[dict[str, object]]()
    single.connect(0, rows.append)
    for number, batch in enumerate(batches(3)):
        rows.clear()
        single.insert_many(batch.to_pylist())
        assert rows == whole.process_batch(batch).to_pylist()
        if number % 3:
            state = whole.snapshot(arrays=number % 3 == 1)
            whole = op.open()
            whole.restore(state)


def dense(seed):
    """Batches that are sorted by key, whose order is not that in which keys appear."""
    rng = np.random.default_rng(seed)
    for batch in range(6):
        rows = 1500 + batch
        keys = 40 - rng.integers(0, 20 if batch % 3 < 2 else 41, rows)
        yield pa.record_batch({"k": keys, "g": keys % 3, "x": rng.integers(0, 64, rows) / 64})


@pytest.mark.parametrize("group_by", [None, "g"])
@pytest.mark.parametrize(
    "spec",
    [
        Tumbling(Count(20), by="k"),
        Tumbling(Count(20), by="k", forget=PartitionCount(50)),
        Sliding(Count(20), every=Count(5), by="k"),
        Sliding(Count(20), every=Count(7), by="k"),
    ],
)
def test_few_keys_of_whole_numbers_give_what_single_rows_give(spec, group_by):
    outputs = {"s": agg.sum("x"), "m": agg.median("x"), "last": agg.last("x")}
    if isinstance(spec, Sliding):
        outputs["m"] = agg.max("x")
    op = Aggregate(spec, outputs, group_by=group_by)
    whole, single, rows = op.open(), op.open(), list[dict[str, object]]()
    single.connect(0, rows.append)
    for batch in dense(5):
        rows.clear()
        single.insert_many(batch.to_pylist())
        assert rows == whole.process_batch(batch).to_pylist()
    found, expected = (running.operator.containers[0] for running in (whole, single))
    assert found is not None
    assert expected is not None
    assert expected.keys() == found.keys()


@pytest.mark.parametrize("size", [40, 200])
@pytest.mark.parametrize("sliding", [False, True])
def test_sums_of_batches_that_differ_in_sign_lose_little_of_what_they_add(size, sliding):
    rng, keys = np.random.default_rng(size), np.arange(1500) % 6
    spec = (
        Sliding(Count(size), every=Count(8), by="k") if sliding else Tumbling(Count(size), by="k")
    )
    op = Aggregate(spec, s=agg.sum("x"), size=agg.sum("a"))
    whole, single, rows = op.open(), op.open(), list[dict[str, float]]()
    single.connect(0, rows.append)
    for sign in (1, 1, -1, 1, 0, -1):
        x = rng.lognormal(0, 20, len(keys)) * (sign or rng.choice([-1, 1], len(keys)))
        batch = pa.record_batch({"k": keys, "x": x, "a": np.abs(x)})
        rows.clear()
        single.insert_many(batch.to_pylist())
        found = whole.process_batch(batch).to_pylist()
        assert len(rows) == len(found) > 0
        for mine, other in zip(rows, found, strict=True):
            assert mine["k"] == other["k"]
            assert abs(mine["s"] - other["s"]) <= 1e-14 * mine["size"]
            assert abs(mine["size"] - other["size"]) <= 1e-14 * mine["size"]


def test_only_the_rows_of_subwindows_that_open_or_close_are_sorted(engine, monkeypatch):  # noqa: F811
    if engine != "numpy":
        pytest.skip("compiled loops sort no rows")
    sorted_rows = []

    def counted(ids, n):
        sorted_rows.append(len(ids))
        return group(ids, n)

    monkeypatch.setattr(tumbling, "group", counted)
    running = Aggregate(Tumbling(Count(100), by="k"), m=agg.mean("float")).open()
    for batch in batches(5):
        running.process_batch(batch)
    assert len(sorted_rows) > 5
    assert max(sorted_rows) * tumbling.QUIET <= ROWS
